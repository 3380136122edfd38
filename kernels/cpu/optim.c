/* optim.c - optimiser steps, gradient norms and loss scaling, each one pass over many tensors. */
#include "cpu.h"
#include "simd.h"
#include "../updates.h"
#include <math.h>
#include <string.h>

#define CHUNK 4096 /* elements of a tensor per task */
#define PIECE 512  /* elements that are converted to f32 at once */

/* Indices of the tensors of an update: parameter, gradient, states; absent ones are NULL. */
enum { PARAM, GRAD, STATE, TENSORS = STATE + LG_UPDATE_STATES };

/* Loops of one kernel in f32 and f64. The set functions compute the constants of a step from the step inputs; where
 * these are NULL, loops get `args` instead of constants. */
typedef struct loops {
        void (*set_f32)(void *ret, const double *dial, int64_t skipped);
        void (*set_f64)(void *ret, const double *dial, int64_t skipped);
        void (*f32)(int64_t n, float *const *t, const void *numbers);
        void (*f64)(int64_t n, double *const *t, const void *numbers);
        const void *args;
} loops;
typedef double numbers_of_step[16];

typedef struct work work;
struct work {
        /* Processes the chunk of an update from element `first` on; `number` counts the chunks of all updates. */
        void (*chunk)(const work *w, const lg_update *u, int64_t first, int64_t number);
        const lg_update *updates;
        int64_t count;
        const double *step_inputs; /* inputs of an optimiser step */
        loops loops;
        double *parts; /* for the kernel norms: a partial sum for each chunk */
};

/* Runs the f32 loop over elements [first, first + n) of 16-bit tensors, of which PIECE are widened at a time. States
 * and the master are f32 already. */
static void run_half(const work *w, const lg_update *u, int64_t first, int64_t n, const void *numbers)
{
        LG_ALIGN64 float wide[STATE][PIECE];
        char *param = u->param;
        const char *grad = u->grad;
        for (int64_t at = first, end = first + n; at < end; at += PIECE) {
                int64_t k = lg_least(PIECE, end - at);
                float *values[TENSORS] = {u->master ? u->master + at : wide[PARAM], grad ? wide[GRAD] : NULL};
                for (int s = 0; s < LG_UPDATE_STATES; s++)
                        values[STATE + s] = u->state[s] ? (float *)u->state[s] + at : NULL;
                if (!u->master)
                        lg_load[LG_COMPUTE_F32][u->dtype](k, wide[PARAM], param + at * 2);
                if (grad)
                        lg_load[LG_COMPUTE_F32][u->dtype](k, wide[GRAD], grad + at * 2);
                w->loops.f32(k, values, numbers);
                lg_store[LG_COMPUTE_F32][u->dtype](k, param + at * 2, values[PARAM]);
        }
}

static void run_chunk(const work *w, const lg_update *u, int64_t first, int64_t number)
{
        (void)number;
        const int64_t n = lg_least(CHUNK, u->n - first);
        numbers_of_step room;
        const void *numbers = w->loops.set_f32 ? room : w->loops.args;
        if (w->loops.set_f32)
                (u->dtype == LG_F64 ? w->loops.set_f64 : w->loops.set_f32)(room, w->step_inputs,
                                                                           u->skipped ? *u->skipped : 0);
        if (lg_bytes_of(u->dtype) == 2) {
                run_half(w, u, first, n, numbers);
                return;
        }
        /* Casts const away; loops only read the gradient. */
        void *from[TENSORS] = {u->param, (void *)(uintptr_t)u->grad, u->state[0], u->state[1], u->state[2]};
        float *f32[TENSORS];
        double *f64[TENSORS];
        for (int s = 0; s < TENSORS; s++) {
                f32[s] = from[s] ? (float *)from[s] + first : NULL;
                f64[s] = from[s] ? (double *)from[s] + first : NULL;
        }
        if (u->dtype == LG_F32)
                w->loops.f32(n, f32, numbers);
        else
                w->loops.f64(n, f64, numbers);
}

/* Processes chunks [first, end), counted over all updates. */
static void run_chunks(const void *user, int64_t first, int64_t end, int thread)
{
        const work *w = user;
        (void)thread;
        for (int64_t i = 0, begin = 0; i < w->count && begin < end; i++) {
                int64_t chunks = lg_ceil_div(w->updates[i].n, CHUNK);
                for (int64_t c = lg_most(0, first - begin); c < lg_least(chunks, end - begin); c++)
                        w->chunk(w, &w->updates[i], c * CHUNK, begin + c);
                begin += chunks;
        }
}

/* Returns the number of chunks, or -1 with an error if a dtype has no kernel. */
static int64_t count_chunks(lg_queue *q, const char *name, const work *w, int64_t *ret_elements)
{
        int64_t chunks = 0;
        *ret_elements = 0;
        for (int64_t i = 0; i < w->count; i++) {
                if (!lg_is_float(w->updates[i].dtype)) {
                        lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)w->updates[i].dtype);
                        return -1;
                }
                chunks += lg_ceil_div(w->updates[i].n, CHUNK);
                *ret_elements += w->updates[i].n;
        }
        return chunks;
}

static void run_all(lg_queue *q, const work *w, int64_t chunks, int64_t elements)
{
        lg_parallel(q, chunks, lg_grain(elements / lg_most(chunks, 1)), run_chunks, w);
}

/* Runs `loops` over all elements of all updates. Returns false and sets an error for an unsupported dtype. */
static bool run_updates(lg_queue *q, const char *name, const lg_update *updates, int64_t count,
                        const double *step_inputs, loops loops)
{
        const work w = {
                .chunk = run_chunk, .updates = updates, .count = count, .step_inputs = step_inputs, .loops = loops};
        int64_t elements, chunks = count_chunks(q, name, &w, &elements);
        if (chunks >= 0)
                run_all(q, &w, chunks, elements);
        return chunks >= 0;
}

static bool run_pass(lg_queue *q, const char *name, const lg_pass *p, loops loops)
{
        if (q->error.code != LG_DEVICE_OK)
                return true;
        if (p->skip && *p->skip != 0) {
                for (int64_t i = 0; i < p->count; i++)
                        ++*p->updates[i].skipped;
                return true;
        }
        return run_updates(q, name, p->updates, p->count, p->step_inputs, loops);
}

/* Sets a->found to 1 unless `finite`. Several threads may write the same value at once. */
static void find(const lg_unscale_args *a, bool finite)
{
        float one = 1;
        if (!finite)
                __atomic_store(a->found, &one, __ATOMIC_RELAXED);
}

#define LG_BOTH "optim.inc"
#include "both.inc"

#define UPDATE(name, ...)                                                                                              \
        bool LG_CPU(name)(lg_queue * q, const lg_pass *p)                                                              \
        {                                                                                                              \
                return run_pass(q, #name, p,                                                                           \
                                (loops){name##_set_f32, name##_set_f64, name##_at_f32, name##_at_f64, NULL});          \
        }
#include "../updates.def"

bool LG_CPU(dials)(lg_queue *q, const lg_dials_args *a)
{
        (void)q;
        for (int64_t i = 0; i < a->count; i++)
                memcpy(a->dials[i].to, a->dials[i].value, sizeof a->dials[i].value);
        return true;
}

/* ---- the norm of all gradients, and their scaling ---- */

static void square_chunk(const work *w, const lg_update *u, int64_t first, int64_t number)
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
        w->parts[number] = sum;
}

bool LG_CPU(norms)(lg_queue *q, const lg_norms_args *a)
{
        work w = {.chunk = square_chunk, .updates = a->updates, .count = a->count};
        int64_t elements, chunks = count_chunks(q, "norms", &w, &elements);
        if (chunks < 0 || !(w.parts = q->workspace(q, (size_t)(chunks + 1) * sizeof *w.parts)))
                return false;
        run_all(q, &w, chunks, elements);
        double sum = 0;
        for (int64_t i = 0; i < chunks; i++)
                sum += w.parts[i];
        *a->total = sum;
        return true;
}

bool LG_CPU(scale)(lg_queue *q, const lg_scale_args *a)
{
        return run_updates(q, "scale", a->updates, a->count, NULL,
                           (loops){.f32 = scale_at_f32, .f64 = scale_at_f64, .args = a});
}

bool LG_CPU(unscale)(lg_queue *q, const lg_unscale_args *a)
{
        return run_updates(q, "unscale", a->updates, a->count, NULL,
                           (loops){.f32 = unscale_at_f32, .f64 = unscale_at_f64, .args = a});
}

bool LG_CPU(rescale)(lg_queue *q, const lg_rescale_args *a)
{
        if (q->error.code != LG_DEVICE_OK)
                return true;
        const bool found = *a->found != 0, grows = !found && *a->steps + 1 >= a->interval;
        const float scale = (float)(*a->scale * (found ? a->backoff : a->growth));
        if (found || (grows && isfinite(scale)))
                *a->scale = scale;
        *a->steps = found || grows ? 0 : *a->steps + 1;
        return true;
}
