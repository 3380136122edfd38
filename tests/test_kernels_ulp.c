/* test_kernels_ulp.c - the errors of the f32 functions of the pointwise kernels, in units in the last place (ulp).
 *
 * The references are libm's functions in f64, rounded nowhere. tools/ulp.c measures the errors for all inputs, in
 * minutes for each function. */
#include "kernels.h"

enum { CHUNK = 4096, STRIDE = 2053 /* a prime */ };

static double sigmoid(double x)
{
        return 1 / (1 + exp(-x));
}

static double gelu(double x)
{
        return 0.5 * x * erfc(x * -0.70710678118654752440);
}

/* An error above `limit` ulp is one, unless it is below `absolute`. */
static const struct function {
        const char *name;
        int kernel;
        double (*reference)(double);
        double limit, absolute;
} functions[] = {
        {"exp", LG_PW_exp, exp, 1.1, 0},
        {"expm1", LG_PW_expm1, expm1, 1.5, 0},
        {"log", LG_PW_log, log, 1, 0},
        {"log1p", LG_PW_log1p, log1p, 1.5, 0},
        {"sin", LG_PW_sin, sin, 1, 0},
        {"cos", LG_PW_cos, cos, 1, 0},
        {"tanh", LG_PW_tanh, tanh, 1.4, 0},
        {"erf", LG_PW_erf, erf, 1.4, 0},
        {"sigmoid", LG_PW_sigmoid, sigmoid, 1.45, 0},
        {"erfc", LG_PW_erfc, erfc, 4, 0},
        {"gelu", LG_PW_gelu, gelu, 4, 1e-7},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct worst {
        double ulp, absolute, over; /* the largest errors; `over`: ulp, of those above the absolute limit */
        float at;                   /* where `over` is */
} worst;

/* What the distance between neighbours in f32 is at v. */
static double unit_at(double v)
{
        int e;
        frexp(v, &e);
        return ldexp(1, (e > 128 ? 128 : e < -125 ? -125 : e) - 24);
}

static void compare(const struct function *f, const char *isa, float x, float got, double want, worst *w)
{
        const double limit = 0x1p128; /* infinity stands where the next number would */
        if (isnan(want) || isinf(want) || want == 0) {
                if (isnan(want) ? !isnan(got) : got != (float)want || !signbit(got) != !signbit(want))
                        fail_msg("%s(%a) is %a on %s, not %a", f->name, (double)x, (double)got, isa, want);
                return;
        }
        double g = isinf(got) ? copysign(limit, got) : (double)got;
        double error = fabs(g - fmax(-limit, fmin(want, limit))), ulp = error / unit_at(want);
        if (isnan(got))
                fail_msg("%s(%a) is not a number on %s", f->name, (double)x, isa);
        w->ulp = fmax(w->ulp, ulp);
        w->absolute = fmax(w->absolute, error);
        if (error > f->absolute && ulp > w->over) {
                w->over = ulp;
                w->at = x;
        }
}

static void run(const lg_kernels *k, int kernel, const float *x, float *y)
{
        lg_queue q = make_queue(1);
        lg_pointwise_args a = {.ndim = 1, .shape = {CHUNK}, .dtype = LG_F32, .out = y, .out_strides = {1}};
        a.in[0] = x;
        a.in_strides[0][0] = 1;
        CALL(k->pointwise[kernel], &q, &a);
}

static void scan(const struct function *f, worst *w)
{
        static float x[CHUNK], y[CHUNK];
        static double want[CHUNK];
        for (uint64_t first = 0; first < (uint64_t)1 << 32; first += (uint64_t)CHUNK * STRIDE) {
                for (uint64_t i = 0; i < CHUNK; i++) {
                        uint64_t bits = first + i * STRIDE;
                        x[i] = bits >> 32 ? 1 : lg_f32_of_bits((uint32_t)bits);
                        want[i] = f->reference((double)x[i]);
                }
                for (int isa = 0; isa < ISAS; isa++) {
                        const lg_kernels *k = lg__cpu_kernels(isas[isa]);
                        if (!k)
                                continue;
                        run(k, f->kernel, x, y);
                        for (int i = 0; i < CHUNK; i++)
                                compare(f, isas[isa], x[i], y[i], want[i], &w[isa]);
                }
        }
}

TEST_CASE(test_errors)
{
        int over = 0;
        for (int i = 0; i < FUNCTIONS; i++) {
                const struct function *f = &functions[i];
                worst w[ISAS] = {{0}};
                scan(f, w);
                for (int isa = 0; isa < ISAS; isa++) {
                        if (!lg__cpu_kernels(isas[isa]))
                                continue;
                        printf("%-8s %-9s %8.3f ulp, %8.2e", f->name, isas[isa], w[isa].ulp, w[isa].absolute);
                        printf(w[isa].over > f->limit ? "; above the limit at %a: %.3f ulp\n" : "\n", (double)w[isa].at,
                               w[isa].over);
                        over += w[isa].over > f->limit;
                }
                fflush(stdout);
        }
        assert_int_equal(over, 0);
}

/* Arguments that the stride may miss: special ones, and those where errors of a stride of 1 are largest. */
static const float hard[] = {0,
                             -0.0f,
                             INFINITY,
                             -INFINITY,
                             NAN,
                             1,
                             -1,
                             0x1p-149f,
                             -0x1p-149f,
                             0x1p-126f,
                             0x1.fffffep127f,
                             0x1.98e5dep+13f,
                             0x1.3ac5dap+14f,
                             0x1p17f,
                             0x1.000002p17f,
                             0x1.6ac5b2p99f,
                             -0x1.47d0fep34f,
                             -5.83925819f,
                             -0.346718043f,
                             1.39867234f,
                             0.415410727f,
                             5005.30664f,
                             19.6708088f,
                             0.557649195f,
                             0.899428427f,
                             0x1.1bf908p-1f,
                             0x1.ccffb4p-1f,
                             0x1.637a18p-2f,
                             -0x1.26388p+4f};
enum { HARD = sizeof hard / sizeof *hard };

TEST_CASE(test_hard)
{
        static float x[CHUNK], y[CHUNK];
        for (int i = 0; i < CHUNK; i++)
                x[i] = hard[i % HARD];
        for (int i = 0; i < FUNCTIONS * ISAS; i++) {
                const struct function *f = &functions[i / ISAS];
                const lg_kernels *k = lg__cpu_kernels(isas[i % ISAS]);
                worst w = {0};
                if (!k)
                        continue;
                run(k, f->kernel, x, y);
                for (int j = 0; j < CHUNK; j++)
                        compare(f, isas[i % ISAS], x[j], y[j], f->reference((double)x[j]), &w);
                if (w.over > f->limit)
                        fail_msg("%s(%a) has an error of %g ulp on %s", f->name, (double)w.at, w.over, isas[i % ISAS]);
        }
}

/* Equal arguments give equal bits, whichever others are in the chunk. */
TEST_CASE(test_alike)
{
        static float x[CHUNK], y[CHUNK], z[CHUNK];
        for (int i = 0; i < FUNCTIONS * ISAS; i++) {
                const struct function *f = &functions[i / ISAS];
                const lg_kernels *k = lg__cpu_kernels(isas[i % ISAS]);
                if (!k)
                        continue;
                for (int j = 0; j < CHUNK; j++)
                        x[j] = 0.0137f * (float)(j - CHUNK / 2);
                run(k, f->kernel, x, y);
                for (int j = 0; j < CHUNK; j += 5)
                        x[j] = hard[j % HARD];
                run(k, f->kernel, x, z);
                for (int j = 0; j < CHUNK; j++)
                        if (j % 5 && lg_bits_of_f32(y[j]) != lg_bits_of_f32(z[j]))
                                fail_msg("%s(%a) has two values on %s", f->name, (double)x[j], isas[i % ISAS]);
                memcpy(y, x, sizeof y);
                run(k, f->kernel, y, y);
                assert_memory_equal(y, z, sizeof y);
        }
}
