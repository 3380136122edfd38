/* norm_loops.h - normalisations as plain loops, which those of libgrad are held against. */
#ifndef LG_NORM_LOOPS_H
#define LG_NORM_LOOPS_H

#include "golden.h"

/* How elements fall into sets (of one mean and variance) and onto weights, by row-major index of (N, C, L). */
typedef struct split {
        int64_t n, channels, length, groups; /* groups 0: batch norm; -1: layer norm over the last dimension */
} split;

static inline int64_t set_of(const split *s, int64_t i)
{
        int64_t channel = i / s->length % s->channels;
        if (s->groups < 0)
                return i / s->length;
        if (s->groups == 0)
                return channel;
        return i / s->length / s->channels * s->groups + channel / (s->channels / s->groups);
}

static inline int64_t weight_of(const split *s, int64_t i)
{
        return s->groups < 0 ? i % s->length : i / s->length % s->channels;
}

typedef struct results {
        double *y, *dx, *dw, *db;
} results;

/* What has one mean and variance. */
typedef struct set {
        long double size, mean, var, sum, product;
} set;

static inline double *numbers(int64_t n)
{
        return calloc((size_t)n + 1, sizeof(double));
}

static inline void reference(const split *s, const double *x, const double *w, const double *b, const double *g,
                             results r)
{
        int64_t count = s->n * s->channels * s->length, sets = s->n * s->channels + s->channels;
        set *all = calloc((size_t)sets, sizeof *all);
        for (int64_t i = 0; i < count; i++) {
                all[set_of(s, i)].size++;
                all[set_of(s, i)].mean += x[i];
        }
        for (int64_t i = 0; i < sets; i++)
                all[i].mean /= all[i].size ? all[i].size : 1;
        for (int64_t i = 0; i < count; i++) {
                set *k = &all[set_of(s, i)];
                k->var += (x[i] - k->mean) * (x[i] - k->mean) / k->size;
        }
        for (int64_t i = 0; i < count; i++) {
                set *k = &all[set_of(s, i)];
                int64_t c = weight_of(s, i);
                long double t = (x[i] - k->mean) / sqrtl(k->var + 1e-5L);
                r.y[i] = (double)(t * w[c] + b[c]);
                r.dw[c] += (double)(g[i] * t);
                r.db[c] += g[i];
                k->sum += g[i] * w[c];
                k->product += g[i] * w[c] * t;
        }
        for (int64_t i = 0; i < count; i++) {
                const set *k = &all[set_of(s, i)];
                long double sd = sqrtl(k->var + 1e-5L), t = (x[i] - k->mean) / sd;
                r.dx[i] = (double)((g[i] * w[weight_of(s, i)] - k->sum / k->size - t * k->product / k->size) / sd);
        }
        free(all);
}

static inline lg_tensor *normalise(const split *s, lg_tensor *x, lg_tensor *w, lg_tensor *b)
{
        return s->groups < 0    ? lg_layer_norm(x, lg_shape_of(w), w, b)
               : s->groups == 0 ? lg_batch_norm(x, w, b, .training = true)
                                : lg_group_norm(x, s->groups, w, b);
}

/* y, dx, dw, db in the dtype of x; of weights, f64 for f64 and f32 otherwise. */
static inline void compute(const split *s, const lg_tensor *const in[4], lg_tensor *ret[4])
{
        lg_tensor *x = lg_set_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[0]), true);
        lg_tensor *w = lg_set_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[1]), true);
        lg_tensor *b = lg_set_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[2]), true);
        ret[0] = normalise(s, x, w, b);
        lg_grad(LG_LIST(ret[0]), LG_LIST(x, w, b), .grads = LG_LIST((lg_tensor *)(uintptr_t)in[3]), .result = ret + 1);
}

/* Values of mean `mean` and deviation 1 in one dtype against loops in f64; 1 and 2 threads. */
static inline void check_big(split s, lg_dtype dtype, double mean, double limit)
{
        lg_ctx *c = open_ctx();
        lg_dtype wide = dtype == LG_F64 ? LG_F64 : LG_F32;
        lg_shape shape = LG_SHAPE(s.n, s.channels, s.length);
        int64_t count = lg_numel(lg_zeros(c, shape)), weights = s.groups < 0 ? s.length : s.channels;
        const lg_tensor *in[4] = {
                lg_normal(c, mean, 1, shape, .dtype = dtype), lg_uniform(c, 0.5, 1.5, LG_SHAPE(weights), .dtype = wide),
                lg_normal(c, 0, 1, LG_SHAPE(weights), .dtype = wide), lg_normal(c, 0.3, 1, shape, .dtype = dtype)};
        lg_tensor *one[4], *two[4];
        double *host[4];
        results r = {numbers(count), numbers(count), numbers(weights), numbers(weights)};
        double *const wanted[] = {r.y, r.dx, r.dw, r.db};
        for (int i = 0; i < 4; i++) {
                host[i] = numbers(lg_numel(in[i]));
                read_all(in[i], host[i], lg_numel(in[i]));
        }
        reference(&s, host[0], host[1], host[2], host[3], r);
        lg_set_threads(c, 1);
        compute(&s, in, one);
        lg_set_threads(c, 2);
        compute(&s, in, two);
        assert_ok(c);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(lg_dtype_of(one[i]), i < 2 ? dtype : wide);
                /* Halves were rounded before: sums of many of them are held to the same limit. */
                assert_values(one[i], wanted[i], lg_numel(one[i]), limit);
                assert_same_bits(one[i], two[i]);
                free(host[i]);
                free(wanted[i]);
        }
        lg_close(c);
}

/* Tensors of images with channels last, sliced, transposed and expanded. */
static inline void other_layouts(lg_tensor *plain, lg_tensor *ret[4])
{
        ret[0] = lg_permute(lg_contiguous(lg_permute(plain, LG_DIMS(0, 2, 3, 1))), LG_DIMS(0, 3, 1, 2));
        ret[1] = lg_slice(plain, 3, 0, LG_MAX, .step = 2);
        ret[2] = lg_transpose(plain, 2, 3);
        ret[3] = lg_expand(lg_slice(plain, 0, 1, LG_MAX), LG_SHAPE(3, 4, 3, 5));
}

#endif
