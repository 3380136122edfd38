/* kernels_conv.h - what the tests of CPU convolution share: geometries, plain sums in f64, each algorithm. */
#ifndef LG_TEST_KERNELS_CONV_H
#define LG_TEST_KERNELS_CONV_H

#include "kernels.h"

/* The algorithms, also where conv chooses another: the portable set is in every build. */
bool LG_ISA_NAME(conv_products_fit, portable)(const lg_conv_args *a);
bool LG_ISA_NAME(conv_products, portable)(lg_queue *q, const lg_conv_args *a);
bool LG_ISA_NAME(conv_cut_fits, portable)(const lg_conv_args *a);
bool LG_ISA_NAME(conv_direct, portable)(lg_queue *q, const lg_conv_args *a);
bool LG_ISA_NAME(conv_weight, portable)(lg_queue *q, const lg_conv_args *a);
bool LG_ISA_NAME(conv_winograd_fits, portable)(const lg_conv_args *a);
bool LG_ISA_NAME(conv_winograd, portable)(lg_queue *q, const lg_conv_args *a);
bool LG_ISA_NAME(conv_winograd_weight, portable)(lg_queue *q, const lg_conv_args *a);

typedef struct row {
        int64_t n, channels, outputs;
        lg_conv_geometry at; /* out is computed */
} row;

#define AT(h, w, kh, kw, sh, sw, ph, pw, dh, dw, g)                                                                    \
        {                                                                                                              \
                .in = {h, w}, .kernel = {kh, kw}, .stride = {sh, sw}, .padding = {ph, pw}, .dilation = {dh, dw},       \
                .groups = g                                                                                            \
        }

/* The sizes of the output, where they are not given. */
static inline void set_outputs(lg_conv_geometry *at)
{
        for (int d = 0; d < 2; d++)
                if (at->out[d] == 0)
                        at->out[d] = (at->in[d] + 2 * at->padding[d] - at->dilation[d] * (at->kernel[d] - 1) - 1) /
                                             at->stride[d] +
                                     1;
}

/* Adds the product at each place where an output pixel, a kernel element and an input pixel meet. */
PLAIN static inline void visit(const lg_conv_args *a, int64_t n, int64_t o, int64_t i, int64_t j, double *ret)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t channels = a->channels / at->groups, group = o / (a->outputs / at->groups);
        const int64_t y = ((n * at->out[0] + i) * at->out[1] + j) * a->outputs + o;
        for (int64_t k = 0; k < at->kernel[0]; k++)
                for (int64_t l = 0; l < at->kernel[1]; l++) {
                        int64_t h = i * at->stride[0] - at->padding[0] + k * at->dilation[0];
                        int64_t w = j * at->stride[1] - at->padding[1] + l * at->dilation[1];
                        if (h < 0 || w < 0 || h >= at->in[0] || w >= at->in[1])
                                continue;
                        int64_t x = ((n * at->in[0] + h) * at->in[1] + w) * a->channels + group * channels;
                        for (int64_t c = 0; c < channels; c++, x++) {
                                int64_t v = ((o * channels + c) * at->kernel[0] + k) * at->kernel[1] + l;
                                if (a->kind == LG_CONV_FORWARD)
                                        ret[y] += ((const double *)a->x)[x] * ((const double *)a->w)[v];
                                else if (a->kind == LG_CONV_INPUT_GRAD)
                                        ret[x] += ((const double *)a->g)[y] * ((const double *)a->w)[v];
                                else
                                        ret[v] += ((const double *)a->g)[y] * ((const double *)a->x)[x];
                        }
                }
}

PLAIN static inline void reference(const lg_conv_args *a, int64_t count, double *ret)
{
        for (int64_t i = 0; i < count; i++)
                ret[i] = a->b ? ((const double *)a->b)[i % a->outputs] : 0;
        for (int64_t n = 0; n < a->n; n++)
                for (int64_t o = 0; o < a->outputs; o++)
                        for (int64_t i = 0; i < a->at.out[0]; i++)
                                for (int64_t j = 0; j < a->at.out[1]; j++)
                                        visit(a, n, o, i, j, ret);
}

/* The values of `count` elements of dtype t, as doubles. */
PLAIN static inline double *doubles(lg_dtype t, const void *p, int64_t count)
{
        double *d = malloc((size_t)(count + 1) * sizeof *d);
        for (int64_t i = 0; i < count; i++)
                d[i] = get(t, p, i);
        return d;
}

static inline bool is_empty(const lg_conv_args *a)
{
        return a->n * a->channels * a->outputs * a->at.in[0] * a->at.in[1] * a->at.out[0] * a->at.out[1] == 0;
}

typedef bool conv_fn(lg_queue *q, const lg_conv_args *a);
enum { PRODUCTS, DIRECT, WINOGRAD, ALGORITHMS };

/* The algorithm of that number in the portable set, or another where it does not fit. */
static inline conv_fn *portable(int algorithm, const lg_conv_args *a)
{
        const bool weight = a->kind == LG_CONV_WEIGHT_GRAD;
        bool direct = true;
        for (int d = 0; d < 2 && a->kind == LG_CONV_INPUT_GRAD; d++)
                direct = direct &&
                         (a->at.stride[d] == 1 || (a->at.dilation[d] == 1 && a->at.stride[d] <= a->at.kernel[d]));
        if (is_empty(a) || !(a->dtype == LG_F32 || a->dtype == LG_F64))
                return lg__cpu_kernels("portable")->conv;
        if (algorithm == WINOGRAD && LG_ISA_NAME(conv_winograd_fits, portable)(a))
                return weight ? LG_ISA_NAME(conv_winograd_weight, portable) : LG_ISA_NAME(conv_winograd, portable);
        if (algorithm == DIRECT && weight && LG_ISA_NAME(conv_cut_fits, portable)(a))
                return LG_ISA_NAME(conv_weight, portable);
        return (algorithm == DIRECT && direct && !weight) || !LG_ISA_NAME(conv_products_fit, portable)(a)
                       ? LG_ISA_NAME(conv_direct, portable)
                       : LG_ISA_NAME(conv_products, portable);
}

/* The same, or NULL where an algorithm of a lower number is the same. */
static inline conv_fn *another(int algorithm, const lg_conv_args *a)
{
        conv_fn *fn = portable(algorithm, a);
        for (int lower = 0; lower < algorithm; lower++)
                if (portable(lower, a) == fn)
                        return NULL;
        return fn;
}

#endif
