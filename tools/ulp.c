/* ulp.c - the errors of elementwise functions in f32, in units in the last place: ulp [STEP [NAME...]].
 *
 * Prints a table of the largest error of each function, or of those named, over every STEP-th of the 2^32 arguments (by
 * default all), and the argument with that error. The references are functions of f64, whose errors are less than 1e-8
 * ulp of f32. A NaN in place of a number, a number in place of a NaN, and a wrong sign, also of 0, are infinite errors;
 * infinity counts as the number after the largest finite one. Each processor tests a part of the arguments.
 */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <grad.h>

#if LG_MVEC
/* glibc declares its vector functions only under -ffast-math. */
#define VECTOR __attribute__((simd("notinbranch"))) extern
VECTOR double exp(double);
VECTOR double expm1(double);
VECTOR double log(double);
VECTOR double log1p(double);
VECTOR double sin(double);
VECTOR double cos(double);
VECTOR double tanh(double);
VECTOR double erf(double);
#endif

enum { CHUNK = 1 << 15, MOST_THREADS = 64 };

typedef struct error {
        double ulp;
        float at;
} error;

/* The functions to test: X(name, the reference as a formula of x). */
#define EACH(X)                                                                                                        \
        X(exp, exp(x))                                                                                                 \
        X(expm1, expm1(x))                                                                                             \
        X(log, log(x))                                                                                                 \
        X(log1p, log1p(x))                                                                                             \
        X(sin, sin(x))                                                                                                 \
        X(cos, cos(x))                                                                                                 \
        X(tanh, tanh(x))                                                                                               \
        X(erf, erf(x))                                                                                                 \
        X(sigmoid, 1 / (1 + exp(-x)))

#define REFERENCE(name, formula)                                                                                       \
        static void name##_reference(const float *from, double *to)                                                    \
        {                                                                                                              \
                _Pragma("omp simd") for (int i = 0; i < CHUNK; i++)                                                    \
                {                                                                                                      \
                        const double x = (double)from[i];                                                              \
                        to[i] = formula;                                                                               \
                }                                                                                                      \
        }
EACH(REFERENCE)

static const struct function {
        const char *name;
        lg_tensor *(*function)(lg_tensor *x);
        void (*reference)(const float *from, double *to);
} functions[] = {
#define FUNCTION(name, formula) {#name, lg_##name, name##_reference},
        EACH(FUNCTION)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct part {
        pthread_t thread;
        const struct function *function;
        uint64_t first, step, stride; /* first chunk, distance of arguments, distance of chunks */
        error worst;
        bool failed;
} part;

/* Returns 1 / ulp of f32 at v, FLT_MIN <= v < 2^128: a power of 2, from the exponent of v. */
static double per_unit(double v)
{
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        bits = (2 * 1023 + FLT_MANT_DIG - 1 - (bits >> 52)) << 52;
        memcpy(&v, &bits, sizeof v);
        return v;
}

static double error_of(float got, double want)
{
        const double most = 0x1p128, g = fabs((double)got), w = fabs(want);
        const double error = fabs((g < most ? g : most) - (w < most ? w : most));
        const double ulp = error * per_unit(w < (double)FLT_MIN   ? (double)FLT_MIN
                                            : w < (double)FLT_MAX ? w
                                                                  : (double)FLT_MAX);
        const bool no_number = got != got, none_wanted = want != want;
        const bool wrong = (no_number != none_wanted) | (!no_number & (!signbit(got) != !signbit(want)));
        return wrong ? INFINITY : ulp;
}

static void measure_chunk(lg_ctx *c, part *p, uint64_t first)
{
        float x[CHUNK], y[CHUNK] = {0};
        double want[CHUNK];
        for (uint64_t i = 0; i < CHUNK; i++) {
                const uint64_t place = first + i * p->step;
                const uint32_t bits = place >> 32 ? 0 : (uint32_t)place;
                memcpy(&x[i], &bits, sizeof bits);
        }
        lg_scope scope = lg_scope_begin(c);
        lg_read(p->function->function(lg_from(c, x, LG_SHAPE(CHUNK))), y, LG_F32, sizeof y);
        lg_scope_end(c, scope);
        p->function->reference(x, want);
        for (int i = 0; i < CHUNK; i++) {
                const double ulp = error_of(y[i], want[i]);
                if (ulp > p->worst.ulp)
                        p->worst = (error){ulp, x[i]};
        }
}

static void *measure_part(void *user)
{
        part *p = user;
        lg_ctx *c = lg_open(.threads = 1);
        const uint64_t chunk = CHUNK * p->step;
        for (uint64_t first = p->first * chunk; first < (uint64_t)1 << 32 && !lg_error(c); first += p->stride * chunk)
                measure_chunk(c, p, first);
        p->failed = lg_error(c) != NULL;
        if (p->failed)
                fprintf(stderr, "ulp: %s\n", lg_error(c));
        lg_close(c);
        return NULL;
}

static bool measure(const struct function *f, uint64_t step, int threads, error *ret_worst)
{
        part parts[MOST_THREADS];
        bool ok = true;
        int started = 0;
        for (; started < threads && ok; started++) {
                part *p = &parts[started];
                *p = (part){.function = f, .first = (uint64_t)started, .step = step, .stride = (uint64_t)threads};
                ok = pthread_create(&p->thread, NULL, measure_part, p) == 0;
                started -= !ok;
        }
        *ret_worst = (error){0};
        for (int i = 0; i < started; i++) {
                pthread_join(parts[i].thread, NULL);
                ok = ok && !parts[i].failed;
                if (parts[i].worst.ulp > ret_worst->ulp)
                        *ret_worst = parts[i].worst;
        }
        return ok;
}

static bool is_wanted(const char *name, char **names)
{
        for (char **n = names; *n; n++)
                if (strcmp(*n, name) == 0)
                        return true;
        return !*names;
}

int main(int count, char **words)
{
        const long processors = sysconf(_SC_NPROCESSORS_ONLN);
        const int threads = processors < 1 ? 1 : processors > MOST_THREADS ? MOST_THREADS : (int)processors;
        const long long step = count > 1 ? atoll(words[1]) : 1;
        bool ok = step > 0;
        if (!ok)
                fprintf(stderr, "usage: ulp [STEP [NAME...]]\n");
        else
                printf("| function | largest error, ulp | at |\n|---|---|---|\n");
        for (int i = 0; ok && i < FUNCTIONS; i++) {
                error worst;
                if (!is_wanted(functions[i].name, count > 2 ? words + 2 : words + count))
                        continue;
                ok = measure(&functions[i], (uint64_t)step, threads, &worst);
                if (ok)
                        printf("| %s | %.2f | %.9g |\n", functions[i].name, worst.ulp, (double)worst.at);
                fflush(stdout);
        }
        return ok ? 0 : 1;
}
