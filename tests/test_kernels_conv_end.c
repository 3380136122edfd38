/* test_kernels_conv_end.c - the end of CPU convolution, by every algorithm, against plain loops in f64. */
#include "kernels_conv.h"

enum { RELU = 1, SCALE = 2, Z = 4, BIAS = 8, ENDS = 16 };

static const row rows[] = {
        {3, 1, 1, AT(5, 9, 2, 3, 1, 1, 1, 1, 1, 1, 1)},
        {3, 1, 2, AT(6, 11, 3, 3, 1, 1, 0, 2, 1, 1, 1)},
        {3, 1, 6, AT(12, 13, 5, 5, 1, 1, 2, 2, 1, 1, 1)},
        {2, 3, 5, AT(7, 6, 2, 3, 1, 2, 2, 3, 2, 1, 1)},
        {2, 5, 7, AT(4, 5, 1, 1, 1, 1, 0, 0, 1, 1, 1)},
        {1, 9, 9, AT(6, 9, 3, 3, 1, 1, 1, 2, 1, 1, 9)},
        {2, 18, 17, AT(5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        /* nothing to sum, and no outputs */
        {2, 0, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {1, 2, 19, AT(0, 3, 2, 1, 1, 1, 1, 0, 1, 1, 1)},
        {0, 3, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 3, 0, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        /* enough for several threads: few outputs, direct, Winograd's two tiles, by panels, products, depthwise, groups
         */
        {64, 1, 2, AT(28, 28, 5, 5, 1, 1, 2, 2, 1, 1, 1)},
        {64, 1, 6, AT(28, 28, 5, 5, 1, 1, 2, 2, 1, 1, 1)},
        {9, 3, 33, AT(20, 21, 3, 3, 2, 1, 1, 1, 1, 1, 1)},
        {5, 32, 70, AT(14, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {9, 32, 35, AT(6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 256, 260, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {3, 64, 100, AT(15, 15, 1, 1, 1, 1, 0, 0, 1, 1, 1)},
        {3, 64, 64, AT(15, 15, 1, 1, 1, 1, 0, 0, 1, 1, 4)},
        {4, 77, 77, AT(28, 28, 3, 3, 1, 1, 1, 1, 1, 1, 77)},
        {4, 24, 36, AT(13, 14, 3, 3, 1, 1, 1, 1, 1, 1, 2)},
        {4, 64, 64, AT(28, 28, 3, 3, 1, 1, 1, 1, 1, 1, 16)},
        {4, 66, 99, AT(21, 20, 3, 3, 1, 1, 1, 1, 1, 1, 33)},
};
enum { ROWS = (int)(sizeof rows / sizeof *rows), SMALL_ROWS = 11 };

/* A call, and what it must give. */
typedef struct one_case {
        int row, end;
        lg_conv_args a;
        int64_t count;
        double *want, most; /* most: of what goes into the ReLU */
} one_case;

/* y = relu(y * scale + shift + z) */
PLAIN static void end_reference(const lg_conv_args *a, const double *z, one_case *c)
{
        const lg_dtype t = a->dtype == LG_F64 ? LG_F64 : LG_F32;
        c->most = 1;
        for (int64_t i = 0; i < c->count; i++) {
                double y = c->want[i];
                c->most = fmax(c->most, fabs(y));
                if (a->scale)
                        y = y * get(t, a->scale, i % a->outputs) + get(t, a->shift, i % a->outputs);
                y += z ? z[i] : 0;
                c->most = fmax(c->most, fabs(y));
                c->want[i] = a->relu && y <= 0 ? 0 : y;
        }
}

/* Operands of a case; with `broken` some of what is added is NaN. */
static one_case open_case(int r, lg_dtype t, int end, bool broken)
{
        const lg_dtype wide = t == LG_F64 ? LG_F64 : LG_F32;
        one_case c = {.row = r, .end = end};
        lg_conv_args *a = &c.a;
        *a = (lg_conv_args){.dtype = t, .n = rows[r].n, .channels = rows[r].channels, .outputs = rows[r].outputs};
        a->at = rows[r].at;
        set_outputs(&a->at);
        const int64_t x = a->n * a->at.in[0] * a->at.in[1] * a->channels;
        const int64_t w = a->outputs * (a->channels / a->at.groups) * a->at.kernel[0] * a->at.kernel[1];
        c.count = a->n * a->at.out[0] * a->at.out[1] * a->outputs;
        a->x = make_array(t, x, -1, 1);
        a->w = make_array(t, w, -1, 1);
        a->b = end & BIAS ? make_array(t, a->outputs, -1, 1) : NULL;
        a->scale = end & SCALE ? make_array(wide, a->outputs, -2, 2) : NULL;
        a->shift = end & SCALE ? make_array(wide, a->outputs, -3, 3) : NULL;
        a->z = end & Z ? make_array(t, c.count, -3, 3) : NULL;
        a->relu = end & RELU;
        if (broken && c.count > 0) {
                if (a->b)
                        put(t, (void *)(uintptr_t)a->b, 0, NAN);
                if (a->scale)
                        put(wide, (void *)(uintptr_t)a->scale, a->outputs - 1, NAN);
                if (a->z)
                        put(t, (void *)(uintptr_t)a->z, c.count / 2, NAN);
        }
        a->out = malloc((size_t)(c.count + 1) * size_of[t]);
        c.want = malloc((size_t)(c.count + 1) * sizeof *c.want);
        lg_conv_args d = *a;
        d.x = doubles(t, a->x, x);
        d.w = doubles(t, a->w, w);
        d.b = a->b ? doubles(t, a->b, a->outputs) : NULL;
        double *z = a->z ? doubles(t, a->z, c.count) : NULL;
        reference(&d, c.count, c.want);
        end_reference(a, z, &c);
        free((void *)(uintptr_t)d.x), free((void *)(uintptr_t)d.w), free((void *)(uintptr_t)d.b), free(z);
        return c;
}

static void close_case(one_case *c)
{
        const void *all[] = {c->a.x, c->a.w, c->a.b, c->a.scale, c->a.shift, c->a.z, c->a.out, c->want};
        for (int i = 0; i < 8; i++)
                free((void *)(uintptr_t)all[i]);
}

/* A 16-bit result is rounded once: by half a unit of its last place, whatever it was made of. */
static void check(const one_case *c, const char *by)
{
        static const double sums[LG_DTYPE_COUNT] = {0, 1e-5, 1e-13, 1e-5, 1e-5};
        static const double unit[LG_DTYPE_COUNT] = {0, 0, 0, 0x1p-11, 0x1p-8};
        const lg_dtype t = c->a.dtype;
        for (int64_t i = 0; i < c->count; i++) {
                const double got = get(t, c->a.out, i), want = c->want[i];
                const double bound = sums[t] * c->most + unit[t] * fabs(want);
                if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= bound))
                        fail_msg("row %d end %d dtype %d by %s at %lld: %g, not %g", c->row, c->end, t, by,
                                 (long long)i, got, want);
        }
}

/* On every instruction set and number of threads, whose bits are those of one thread. */
static void run_everywhere(const one_case *c, int threads)
{
        const size_t bytes = (size_t)c->count * size_of[c->a.dtype];
        void *first = malloc(bytes + 1);
        for (int i = 0; i < ISAS; i++) {
                const lg_kernels *k = lg__cpu_kernels(isas[i]);
                for (int n = 1; k && n <= threads; n++) {
                        lg_queue q = make_queue(n);
                        memset(c->a.out, 0x77, bytes);
                        CALL(k->conv, &q, &c->a);
                        if (n == 1) {
                                check(c, isas[i]);
                                memcpy(first, c->a.out, bytes);
                        }
                        assert_memory_equal(first, c->a.out, bytes);
                        q.api->close(&q);
                }
        }
        free(first);
}

static void run_algorithms(const one_case *c)
{
        static const char *const names[ALGORITHMS] = {"products", "direct", "Winograd"};
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                conv_fn *fn = another(algorithm, &c->a);
                if (!fn)
                        continue;
                lg_queue q = make_queue(2);
                memset(c->a.out, 0x77, (size_t)c->count * size_of[c->a.dtype]);
                CALL(fn, &q, &c->a);
                check(c, names[algorithm]);
                q.api->close(&q);
        }
}

TEST_CASE(test_ends)
{
        for (int r = 0; r < ROWS; r++)
                for (int t = 0; t < (r < SMALL_ROWS ? 4 : 3); t++)
                        for (int end = 0; end < ENDS; end++) {
                                if ((SANITIZED || r >= SMALL_ROWS) && (end + r) % 4 != t) /* each end of some dtype */
                                        continue;
                                one_case c = open_case(r, float_types[t], end, false);
                                run_everywhere(&c, 2);
                                run_algorithms(&c);
                                close_case(&c);
                        }
}

TEST_CASE(test_threads)
{
        for (int r = SMALL_ROWS; r < ROWS; r++)
                for (int t = 0; t < 2; t++) {
                        one_case c = open_case(r, float_types[t], ENDS - 1, false);
                        run_everywhere(&c, 7);
                        close_case(&c);
                }
}

TEST_CASE(test_nan)
{
        for (int r = 0; r < ROWS; r++)
                for (int t = 0; t < (r < SMALL_ROWS ? 4 : 1); t++)
                        for (int end = RELU; end < ENDS; end += r < SMALL_ROWS ? 2 : 6) {
                                one_case c = open_case(r, float_types[t], end, true);
                                run_everywhere(&c, 1);
                                close_case(&c);
                        }
}
