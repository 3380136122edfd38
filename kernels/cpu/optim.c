/* optim.c - optimisers: one pass over the parameters, their gradients and the optimiser's state. */
#include "cpu.h"
#include <math.h>

#define CHUNK 4096 /* elements of one task */
#define PIECE 512  /* elements that are widened at once */

/* Tensors: parameter, gradient, states; NULL where there is none. */
enum { PARAM, GRAD, STATE, TENSORS = STATE + LG_UPDATE_STATES };

typedef struct pass pass;
struct pass {
        /* Does what there is to do with a chunk of an update; `number` counts the chunks of all. */
        void (*chunk)(const pass *p, const lg_update *u, int64_t first, int64_t number);
        const lg_update *updates;
        int64_t count;
        void (*f32)(int64_t n, float *const *t, const void *args);
        void (*f64)(int64_t n, double *const *t, const void *args);
        const void *args;
        double *parts; /* of norms: a sum for each chunk */
};

/* 16-bit tensors, state too, are widened piece by piece. */
static void run_half(const pass *p, lg_dtype dtype, int64_t n, char *const *t)
{
        LG_ALIGN64 float wide[TENSORS][PIECE]; /* kernels are told what there is by the pointers */
        for (int64_t i = 0; i < n; i += PIECE) {
                int64_t k = lg_least(PIECE, n - i);
                float *values[TENSORS] = {0};
                for (int s = 0; s < TENSORS; s++) {
                        if (!t[s])
                                continue;
                        values[s] = wide[s];
                        lg_load[LG_COMPUTE_F32][dtype](k, wide[s], t[s] + i * 2);
                }
                p->f32(k, values, p->args);
                for (int s = 0; s < TENSORS; s++) {
                        if (t[s] && s != GRAD)
                                lg_store[LG_COMPUTE_F32][dtype](k, t[s] + i * 2, wide[s]);
                }
        }
}

static void run_chunk(const pass *p, const lg_update *u, int64_t first, int64_t number)
{
        (void)number;
        int64_t n = lg_least(CHUNK, u->n - first), offset = first * (int64_t)lg_bytes_of(u->dtype);
        /* The gradient is only read. */
        char *from[TENSORS] = {u->param, (char *)(uintptr_t)u->grad, u->state[0], u->state[1], u->state[2]};
        char *t[TENSORS];
        float *f32[TENSORS];
        double *f64[TENSORS];
        for (int s = 0; s < TENSORS; s++) {
                t[s] = from[s] ? from[s] + offset : NULL;
                f32[s] = (float *)(void *)t[s];
                f64[s] = (double *)(void *)t[s];
        }
        if (u->dtype == LG_F32)
                p->f32(n, f32, p->args);
        else if (u->dtype == LG_F64)
                p->f64(n, f64, p->args);
        else
                run_half(p, u->dtype, n, t);
}

/* Chunks [first, end) of all updates' chunks. */
static void run_chunks(const void *user, int64_t first, int64_t end, int thread)
{
        const pass *p = user;
        (void)thread;
        for (int64_t i = 0, begin = 0; i < p->count && begin < end; i++) {
                int64_t chunks = lg_ceil_div(p->updates[i].n, CHUNK);
                for (int64_t c = lg_most(0, first - begin); c < lg_least(chunks, end - begin); c++)
                        p->chunk(p, &p->updates[i], c * CHUNK, begin + c);
                begin += chunks;
        }
}

/* How many chunks there are; -1: a dtype has no kernel. */
static int64_t count_chunks(lg_queue *q, const char *name, const pass *p, int64_t *ret_elements)
{
        int64_t chunks = 0;
        *ret_elements = 0;
        for (int64_t i = 0; i < p->count; i++) {
                if (!lg_is_float(p->updates[i].dtype)) {
                        lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)p->updates[i].dtype);
                        return -1;
                }
                chunks += lg_ceil_div(p->updates[i].n, CHUNK);
                *ret_elements += p->updates[i].n;
        }
        return chunks;
}

static void run_all(lg_queue *q, const pass *p, int64_t chunks, int64_t elements)
{
        lg_parallel(q, chunks, lg_grain(elements / lg_most(chunks, 1)), run_chunks, p);
}

static bool run_pass(lg_queue *q, const char *name, const pass *p)
{
        int64_t elements, chunks;
        if (q->error.code != LG_DEVICE_OK)
                return true;
        if ((chunks = count_chunks(q, name, p, &elements)) < 0)
                return false;
        run_all(q, p, chunks, elements);
        return true;
}

#define LG_T float
#define LG_SQRT(x) sqrtf(x)
#define OPTIMISER(name) static void name##_f32(int64_t n, float *const *t, const void *args)
#include "optim.inc"
#undef LG_T
#undef LG_SQRT
#undef OPTIMISER
#define LG_T double
#define LG_SQRT(x) sqrt(x)
/* Both loops are known at the head of the second one: there the kernel is made of them. */
#define OPTIMISER(name)                                                                                                \
        static void name##_f64(int64_t n, double *const *t, const void *args);                                         \
        bool LG_CPU(name)(lg_queue * q, const lg_##name##_args *a)                                                     \
        {                                                                                                              \
                return run_pass(q, #name, &(pass){run_chunk, a->updates, a->count, name##_f32, name##_f64, a, NULL});  \
        }                                                                                                              \
        static void name##_f64(int64_t n, double *const *t, const void *args)
#include "optim.inc"

/* ---- the norm of all gradients, and their scaling ---- */

static void square_chunk(const pass *p, const lg_update *u, int64_t first, int64_t number)
{
        int64_t n = lg_least(CHUNK, u->n - first);
        const char *from = (const char *)u->grad + first * (int64_t)lg_bytes_of(u->dtype);
        double sum = 0;
        for (int64_t i = 0; i < n; i += PIECE) {
                LG_ALIGN64 double wide[PIECE];
                int64_t k = lg_least(PIECE, n - i);
                lg_load[LG_COMPUTE_F64][u->dtype](k, wide, from + i * (int64_t)lg_bytes_of(u->dtype));
                LG_PRAGMA_(omp simd reduction(+ : sum))
                for (int64_t j = 0; j < k; j++)
                        sum += wide[j] * wide[j];
        }
        p->parts[number] = sum;
}

bool LG_CPU(norms)(lg_queue *q, const lg_norms_args *a)
{
        pass p = {.chunk = square_chunk, .updates = a->updates, .count = a->count};
        int64_t elements, chunks = count_chunks(q, "norms", &p, &elements);
        if (chunks < 0 || !(p.parts = q->workspace(q, (size_t)(chunks + 1) * sizeof *p.parts)))
                return false;
        run_all(q, &p, chunks, elements);
        double sum = 0;
        for (int64_t i = 0; i < chunks; i++)
                sum += p.parts[i];
        *a->total = sum;
        return true;
}

static void scale_f32(int64_t n, float *const *t, const void *args)
{
        const float by = (float)*((const lg_scale_args *)args)->factor;
        LG_SIMD
        for (int64_t i = 0; i < n; i++)
                t[PARAM][i] *= by;
}

static void scale_f64(int64_t n, double *const *t, const void *args)
{
        const double by = *((const lg_scale_args *)args)->factor;
        LG_SIMD
        for (int64_t i = 0; i < n; i++)
                t[PARAM][i] *= by;
}

bool LG_CPU(scale)(lg_queue *q, const lg_scale_args *a)
{
        pass p = {run_chunk, a->updates, a->count, scale_f32, scale_f64, a, NULL};
        int64_t elements, chunks = count_chunks(q, "scale", &p, &elements);
        if (chunks < 0)
                return false;
        run_all(q, &p, chunks, elements);
        return true;
}
