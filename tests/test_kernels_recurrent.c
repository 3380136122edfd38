/* test_kernels_recurrent.c - CPU recurrent layers against plain loops, and their derivatives along a direction. */
#include "kernels.h"

typedef struct shape {
        lg_recurrent_kind kind;
        bool reverse, lengths;
        int64_t steps, batch, inputs, hidden, projection;
} shape;

/* Parts of the array of all inputs, x, w_ih, w_hh, b_ih, b_hh, w_hr, h0, c0, and of all results, y, h, c. */
enum { PARTS = 8 };
typedef struct places {
        int64_t gates, state, in[PARTS + 1], out[4];
} places;

static places places_of(const shape *s)
{
        places p = {.gates = s->kind == LG_RECURRENT_LSTM ? 4 : s->kind == LG_RECURRENT_GRU ? 3 : 1};
        p.state = s->projection ? s->projection : s->hidden;
        const int64_t down = p.gates * s->hidden, lstm = s->kind == LG_RECURRENT_LSTM;
        const int64_t in[] = {s->steps * s->batch * s->inputs,
                              down * s->inputs,
                              down * p.state,
                              down,
                              down,
                              s->projection * s->hidden,
                              s->batch * p.state,
                              lstm * s->batch * s->hidden};
        const int64_t out[] = {s->steps * s->batch * p.state, s->batch * p.state, lstm * s->batch * s->hidden};
        for (int i = 0; i < PARTS; i++)
                p.in[i + 1] = p.in[i] + in[i];
        for (int i = 0; i < 3; i++)
                p.out[i + 1] = p.out[i] + out[i];
        return p;
}

static double squash(double x)
{
        return 1 / (1 + exp(-x));
}

/* One unit's new h before the projection, from the sums a of the input and b of the state; changes *c. */
static double cell(lg_recurrent_kind kind, const double *a, const double *b, double h, double *c)
{
        if (kind == LG_RECURRENT_LSTM) {
                *c = squash(a[1] + b[1]) * *c + squash(a[0] + b[0]) * tanh(a[2] + b[2]);
                return squash(a[3] + b[3]) * tanh(*c);
        }
        if (kind == LG_RECURRENT_GRU) {
                const double z = squash(a[1] + b[1]), n = tanh(a[2] + squash(a[0] + b[0]) * b[2]);
                return (1 - z) * n + z * h;
        }
        return kind == LG_RECURRENT_TANH ? tanh(a[0] + b[0]) : fmax(a[0] + b[0], 0);
}

/* Runs sample n; y, h and c are those of all samples. */
static void run_sample(const shape *s, const double *in, int64_t length, int64_t n, double *out)
{
        const places p = places_of(s);
        const double *w = in + p.in[1], *u = in + p.in[2], *bw = in + p.in[3], *bu = in + p.in[4], *r = in + p.in[5];
        double h[64], m[64], c[64] = {0}, a[4], b[4];
        memcpy(h, in + p.in[6] + n * p.state, (size_t)p.state * sizeof *h);
        if (s->kind == LG_RECURRENT_LSTM)
                memcpy(c, in + p.in[7] + n * s->hidden, (size_t)s->hidden * sizeof *c);
        for (int64_t i = 0; i < length; i++) {
                const int64_t t = s->reverse ? length - 1 - i : i;
                const double *x = in + (t * s->batch + n) * s->inputs;
                for (int64_t k = 0; k < s->hidden; k++) {
                        for (int64_t g = 0, row = k; g < p.gates; g++, row += s->hidden) {
                                a[g] = bw[row];
                                b[g] = bu[row];
                                for (int64_t j = 0; j < s->inputs; j++)
                                        a[g] += w[row * s->inputs + j] * x[j];
                                for (int64_t j = 0; j < p.state; j++)
                                        b[g] += u[row * p.state + j] * h[j];
                        }
                        m[k] = cell(s->kind, a, b, h[k < p.state ? k : 0], &c[k]);
                }
                for (int64_t k = 0; k < p.state; k++) {
                        h[k] = s->projection ? 0 : m[k];
                        for (int64_t j = 0; s->projection && j < s->hidden; j++)
                                h[k] += r[k * s->hidden + j] * m[j];
                }
                memcpy(out + (t * s->batch + n) * p.state, h, (size_t)p.state * sizeof *h);
        }
        memcpy(out + p.out[1] + n * p.state, h, (size_t)p.state * sizeof *h);
        if (s->kind == LG_RECURRENT_LSTM)
                memcpy(out + p.out[2] + n * s->hidden, c, (size_t)s->hidden * sizeof *c);
}

/* <results, g> of the inputs in + by u. */
static double product(const shape *s, const double *in, double by, const double *u, const int64_t *lengths,
                      const double *g, double *out)
{
        const places p = places_of(s);
        double *moved = malloc((size_t)p.in[PARTS] * sizeof *moved), sum = 0;
        for (int64_t i = 0; i < p.in[PARTS]; i++)
                moved[i] = in[i] + by * u[i];
        memset(out, 0, (size_t)p.out[3] * sizeof *out);
        for (int64_t n = 0; n < s->batch; n++)
                run_sample(s, moved, s->lengths ? lengths[n] : s->steps, n, out);
        for (int64_t i = 0; i < p.out[3]; i++)
                sum += out[i] * g[i];
        free(moved);
        return sum;
}

static void *at(void *p, lg_dtype t, const int64_t *places, int i)
{
        return places[i + 1] > places[i] ? (char *)p + places[i] * size_of[t] : NULL;
}

static lg_recurrent_args args_of(const shape *s, lg_dtype t, void *in, const int64_t *lengths, void *out, void *kept)
{
        const places p = places_of(s);
        const int64_t cells = s->steps * s->batch * s->hidden;
        const bool lstm = s->kind == LG_RECURRENT_LSTM, gated = lstm || s->kind == LG_RECURRENT_GRU;
        return (lg_recurrent_args){.dtype = t,
                                   .kind = s->kind,
                                   .reverse = s->reverse,
                                   .origin = 1,
                                   .steps = s->steps,
                                   .batch = s->batch,
                                   .inputs = s->inputs,
                                   .hidden = s->hidden,
                                   .projection = s->projection,
                                   .x = at(in, t, p.in, 0),
                                   .w_ih = at(in, t, p.in, 1),
                                   .w_hh = at(in, t, p.in, 2),
                                   .b_ih = at(in, t, p.in, 3),
                                   .b_hh = at(in, t, p.in, 4),
                                   .w_hr = at(in, t, p.in, 5),
                                   .h0 = at(in, t, p.in, 6),
                                   .c0 = at(in, t, p.in, 7),
                                   .lengths = s->lengths ? lengths : NULL,
                                   .y = at(out, t, p.out, 0),
                                   .h = at(out, t, p.out, 1),
                                   .c = at(out, t, p.out, 2),
                                   .gates = gated ? kept : NULL,
                                   .cells = lstm ? (char *)kept + 4 * cells * size_of[t] : NULL};
}

/* Runs the forward, for what it keeps, and the derivative. */
static void derive(const lg_kernels *k, lg_queue *q, const lg_recurrent_vjp_args *v)
{
        CALL(k->recurrent, q, &v->layer);
        CALL(k->recurrent_vjp, q, v);
}

/* <dx, u> is the slope. */
static void check_slope(const shape *s, lg_dtype t, const void *dx, const double *u, double slope)
{
        const int64_t n = places_of(s).in[PARTS];
        double sum = 0, most = 1;
        for (int64_t i = 0; i < n; i++) {
                sum += get(t, dx, i) * u[i];
                most = fmax(most, fabs(sum));
        }
        if (!(fabs(sum - slope) <= (t == LG_F64 ? 1e-7 : 1e-4) * most))
                fail_msg("kind %d, dtype %d: the derivative along a direction is %.9g, and %.9g by differences",
                         (int)s->kind, (int)t, sum, slope);
}

static void check_layer(lg_dtype t, const shape *s)
{
        const places p = places_of(s);
        const int64_t in = p.in[PARTS], out = p.out[3], kept = 5 * s->steps * s->batch * s->hidden;
        const double by = 1e-5;
        void *x = make_array(t, in, -0.5, 0.5), *y = malloc((size_t)out * 8), *k5 = malloc((size_t)kept * 8 + 1);
        void *g = make_array(t, out, -1, 1), *dx = malloc((size_t)in * 8);
        double *wide = malloc((size_t)in * 8), *u = malloc((size_t)in * 8), *gw = malloc((size_t)out * 8),
               *want = malloc((size_t)out * 8);
        int64_t lengths[64];
        for (int64_t i = 0; i < in; i++)
                wide[i] = get(t, x, i);
        for (int64_t i = 0; i < in; i++)
                u[i] = random_real(-1, 1);
        for (int64_t i = 0; i < out; i++)
                gw[i] = get(t, g, i);
        for (int64_t n = 0; n < s->batch; n++)
                lengths[n] = n * 7 % (s->steps + 1);
        const double slope =
                (product(s, wide, by, u, lengths, gw, want) - product(s, wide, -by, u, lengths, gw, want)) / (2 * by);
        product(s, wide, 0, u, lengths, gw, want);
        const lg_recurrent_args a = args_of(s, t, x, lengths, y, k5);
        EVERY(y, (size_t)(out * (int64_t)size_of[t]), CALL(k->recurrent, &q, &a),
              check_array("y", t, y, want, out, tolerance[t]));
        const lg_recurrent_vjp_args v = {.layer = a,
                                         .dy = at(g, t, p.out, 0),
                                         .dh = at(g, t, p.out, 1),
                                         .dc = at(g, t, p.out, 2),
                                         .dx = at(dx, t, p.in, 0),
                                         .dw_ih = at(dx, t, p.in, 1),
                                         .dw_hh = at(dx, t, p.in, 2),
                                         .db_ih = at(dx, t, p.in, 3),
                                         .db_hh = at(dx, t, p.in, 4),
                                         .dw_hr = at(dx, t, p.in, 5),
                                         .dh0 = at(dx, t, p.in, 6),
                                         .dc0 = at(dx, t, p.in, 7)};
        EVERY(dx, (size_t)(in * (int64_t)size_of[t]), derive(k, &q, &v), check_slope(s, t, dx, u, slope));
        free(x), free(y), free(k5), free(g), free(dx), free(wide), free(u), free(gw), free(want);
}

TEST_CASE(test_recurrent)
{
        const shape shapes[] = {
                {LG_RECURRENT_LSTM, false, false, 5, 3, 4, 7, 0},    {LG_RECURRENT_LSTM, true, true, 20, 17, 9, 37, 0},
                {LG_RECURRENT_LSTM, false, true, 9, 30, 33, 40, 35}, {LG_RECURRENT_GRU, false, false, 1, 2, 5, 33, 0},
                {LG_RECURRENT_GRU, true, true, 20, 17, 34, 37, 0},   {LG_RECURRENT_TANH, false, true, 6, 30, 3, 33, 0},
                {LG_RECURRENT_RELU, true, false, 3, 1, 1, 1, 0}};
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
                for (int t = 0; t < 2; t++)
                        check_layer(t ? LG_F32 : LG_F64, &shapes[i]);
}
