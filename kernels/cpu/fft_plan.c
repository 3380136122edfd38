/* fft_plan.c - factors of lengths of Fourier transforms, and the tables of their roots of unity. */
#include <math.h>
#include <stdlib.h>
#include "engine.h"
#include "fft.h"
#include "simd.h"

#define LG_FFT_KEPT ((size_t)2 << 20) /* the most bytes of tables that a queue keeps for one length */
#define LARGEST_FACTOR 97             /* larger ones are for Bluestein's algorithm */

void lg_fft_turn(int64_t k, int64_t n, double *ret)
{
        const double unit = 0.78539816339744830962 / (double)n;
        int64_t x = 8 * k;
        const bool below = x < 4 * n;
        x = below ? x : 8 * n - x;
        const bool left = x >= 2 * n;
        x = left ? 4 * n - x : x;
        const bool steep = x > n;
        const double angle = (double)(steep ? 2 * n - x : x) * unit, c = cos(angle), s = sin(angle);
        ret[0] = (left ? -1 : 1) * (steep ? s : c);
        ret[1] = (below ? -1 : 1) * (steep ? c : s);
}

static void set(lg_dtype t, void *to, int64_t i, double value)
{
        if (t == LG_F64)
                ((double *)to)[i] = value;
        else
                ((float *)to)[i] = (float)value;
}

/* Stores e(k / n) as pair i of a table. */
static void set_turn(lg_dtype t, void *to, int64_t i, int64_t k, int64_t n)
{
        double e[2];
        lg_fft_turn(k % n, n, e);
        set(t, to, 2 * i, e[0]);
        set(t, to, 2 * i + 1, e[1]);
}

/* A piece of memory that is cut in order: first without a base, to learn its size. */
typedef struct room {
        char *base;
        size_t used;
} room;

static void *cut(room *r, int64_t count, size_t size)
{
        char *p = lg_byte_at(r->base, (int64_t)r->used);
        r->used += ((size_t)count * size + 63) / 64 * 64;
        return p;
}

static int64_t largest_factor(int64_t n)
{
        int64_t largest = 1;
        for (int64_t f = 2; f * f <= n; f += 1 + (f > 2))
                for (; n % f == 0; n /= f)
                        largest = f;
        return n > 1 ? n : largest;
}

bool lg_fft_is_smooth(int64_t n)
{
        return largest_factor(n) <= LARGEST_FACTOR;
}

int64_t lg_fft_length_from(int64_t n)
{
        static const int odd[] = {1, 3, 5, 9, 15};
        int64_t best = 0;
        for (int i = 0; i < 5; i++) {
                int64_t length = odd[i];
                while (length < n)
                        length *= 2;
                best = best == 0 || length < best ? length : best;
        }
        return best;
}

static void add_step(lg_fft_plan *p, lg_dtype t, int64_t radix, int64_t *left, room *r)
{
        lg_fft_step *s = &p->step[p->steps++];
        const int64_t whole = *left;
        *s = (lg_fft_step){.radix = radix, .before = p->length / whole, .after = whole / radix};
        *left /= radix;
        s->turns = cut(r, 2 * s->after * (radix - 1), lg_bytes_of(t));
        for (int64_t i = 0; r->base && i < s->after; i++)
                for (int64_t k = 1; k < radix; k++)
                        set_turn(t, s->turns, i * (radix - 1) + k - 1, i * k, whole);
        if (radix % 2 == 0)
                return;
        s->roots = cut(r, 2 * radix, lg_bytes_of(t));
        for (int64_t k = 0; r->base && k < radix; k++) {
                double e[2];
                lg_fft_turn(k, radix, e);
                set(t, s->roots, k, e[0]);
                set(t, s->roots, radix + k, -e[1]);
        }
}

/* Sets the steps of p, whose length is smooth. */
static void add_steps(lg_fft_plan *p, lg_dtype t, room *r)
{
        int64_t left = p->length;
        int twos = __builtin_ctzll((unsigned long long)left);
        p->steps = 0;
        while (twos > 0) {
                const int take = twos == 1 || twos == 2 || twos == 4 ? (twos == 4 ? 2 : twos) : 3;
                add_step(p, t, (int64_t)1 << take, &left, r);
                twos -= take;
        }
        for (int64_t f = 3; left > 1; f += 2)
                while (left % f == 0)
                        add_step(p, t, f, &left, r);
}

static void add_plan(lg_fft_plan *p, lg_dtype t, int64_t n, room *r)
{
        *p = (lg_fft_plan){.n = n, .length = lg_fft_is_smooth(n) ? n : lg_fft_length_from(2 * n - 1)};
        add_steps(p, t, r);
        if (p->length == n)
                return;
        p->chirp = cut(r, 2 * n, lg_bytes_of(t));
        p->spectrum = cut(r, 2 * p->length, lg_bytes_of(t));
        for (int64_t j = 0, square = 0; r->base && j < n; square = (square + 2 * j + 1) % (2 * n), j++)
                set_turn(t, p->chirp, j, square, 2 * n);
}

/* Sets p's spectrum: the transform of the conjugate chirp, divided by the length, computed in f64. */
static bool add_spectrum(lg_queue *q, lg_fft_plan *p, lg_dtype t)
{
        const int64_t lanes = LG_LANES_f64, n = p->n, length = p->length;
        lg_fft_plan wide = {.n = length, .length = length};
        room r = {NULL, 0};
        if (length == n)
                return true;
        add_steps(&wide, LG_F64, &r);
        double *x = q->workspace(q, (size_t)(2 * lanes * length) * sizeof *x);
        double *y = q->workspace(q, (size_t)(2 * lanes * length) * sizeof *y);
        r = (room){q->workspace(q, r.used), 0};
        if (!x || !y || !r.base)
                return false;
        add_steps(&wide, LG_F64, &r);
        memset(x, 0, (size_t)(2 * lanes * length) * sizeof *x);
        for (int64_t j = 0, square = 0; j < n; square = (square + 2 * j + 1) % (2 * n), j++) {
                double e[2];
                lg_fft_turn(square, 2 * n, e);
                for (int side = 0; side < 2; side++) {
                        double *to = x + 2 * lanes * (side && j > 0 ? length - j : j);
                        to[0] = e[0] / (double)length;
                        to[lanes] = -e[1] / (double)length;
                }
        }
        x = lg_fft_vectors(&wide, x, y);
        for (int64_t k = 0; k < length; k++) {
                set(t, p->spectrum, 2 * k, x[2 * lanes * k]);
                set(t, p->spectrum, 2 * k + 1, x[2 * lanes * k + lanes]);
        }
        return true;
}

/* The largest divisor of n up to its root. */
static int64_t divisor(int64_t n)
{
        int64_t best = 1;
        for (int64_t f = 2; f * f <= n; f++)
                best = n % f == 0 ? f : best;
        return best;
}

/* Sets the tables of t in r, or only their sizes. */
static void add_tables(lg_fft_tables *t, room *r)
{
        const int64_t lanes = LG_VECTOR / (int64_t)lg_bytes_of(t->dtype), n = t->n, n1 = t->split ? divisor(n) : n;
        add_plan(&t->plan[0], t->dtype, n1, r);
        t->turn = t->real ? 2 * n : n;
        if (t->split) {
                add_plan(&t->plan[1], t->dtype, n / n1, r);
                t->lanes = cut(r, 2 * lanes * n1, lg_bytes_of(t->dtype));
                for (int64_t k = 0; r->base && k < n1; k++)
                        for (int64_t l = 0; l < lanes; l++) {
                                double e[2];
                                lg_fft_turn(k * l % n, n, e);
                                set(t->dtype, t->lanes, 2 * lanes * k + l, e[0]);
                                set(t->dtype, t->lanes, 2 * lanes * k + lanes + l, e[1]);
                        }
                const int64_t highs = t->turn / LG_FFT_LOW + 1;
                t->high = cut(r, 2 * highs, sizeof *t->high);
                t->low = cut(r, 2 * LG_FFT_LOW, sizeof *t->low);
                for (int64_t k = 0; r->base && k < highs; k++)
                        lg_fft_turn(k * LG_FFT_LOW, t->turn, t->high + 2 * k);
                for (int64_t k = 0; r->base && k < LG_FFT_LOW; k++)
                        lg_fft_turn(k % t->turn, t->turn, t->low + 2 * k);
        } else if (t->real) {
                t->pairs = cut(r, n + 2, lg_bytes_of(t->dtype));
                for (int64_t k = 0; r->base && 2 * k <= n; k++)
                        set_turn(t->dtype, t->pairs, k, k, 2 * n);
        }
}

static bool same(const lg_fft_tables *a, const lg_fft_tables *b)
{
        return a->n == b->n && a->dtype == b->dtype && a->split == b->split && a->real == b->real;
}

const lg_fft_tables *lg_fft_tables_of(lg_queue *q, lg_dtype dtype, int64_t n, bool split, bool real)
{
        lg_fft_tables want = {.dtype = dtype, .n = n, .split = split && divisor(n) >= 8, .real = real}, *t;
        lg_engine *e = q->memo;
        for (int i = 0; e && i < LG_KEPT_TABLES; i++)
                if (e->tables[i] && same(e->tables[i], &want))
                        return e->tables[i];
        room r = {NULL, 0};
        add_tables(&want, &r);
        const size_t bytes = (sizeof *t + 63) / 64 * 64 + r.used;
        t = e && bytes <= LG_FFT_KEPT ? aligned_alloc(64, bytes) : NULL;
        const bool kept = t != NULL;
        if (!kept && !(t = q->workspace(q, bytes)))
                return NULL;
        *t = want;
        r = (room){(char *)t + (sizeof *t + 63) / 64 * 64, 0};
        add_tables(t, &r);
        if (!add_spectrum(q, &t->plan[0], dtype) || (t->split && !add_spectrum(q, &t->plan[1], dtype))) {
                if (kept)
                        free(t);
                return NULL;
        }
        if (kept) {
                const unsigned at = e->next_table++ % LG_KEPT_TABLES;
                free(e->tables[at]);
                e->tables[at] = t;
        }
        return t;
}
