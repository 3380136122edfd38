/* conv.c - Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d. */
#include <math.h>
#include <string.h>
#include "graph/op.h"
#include "nn.h"

typedef struct conv {
        int64_t in, out;
        bool transposed;
        int spaces;            /* spatial dimensions, 1 to 3 */
        lg_triple kernel;      /* size of the kernel; the depth is 1 if spaces is below 3, the height if it is 1 */
        lg__conv_options each; /* options of the op; groups is resolved (at least 1) */
        bool no_bias;
        lg_dtype dtype;
        lg_device device;
        lg_pad_mode mode;
        int64_t pads[6]; /* padding by lg_pad(), unless the mode is LG_PAD_CONSTANT */
} conv;

static lg_tensor *forward(lg_module *m, lg_tensor *x, lg__epilogue epilogue)
{
        const conv *k = m->user;
        lg_tensor *w = m->parts->tensor, *b = m->parts->next ? m->parts->next->tensor : NULL;
        if (k->transposed)
                return lg__conv_transpose(x, w, b, k->spaces, &k->each);
        if (k->mode != LG_PAD_CONSTANT && x->at.shape.ndim > k->spaces)
                x = lg_pad(x, LG_INTS_OF(2 * k->spaces, k->pads), .mode = k->mode);
        if (!x)
                return NULL;
        lg__conv_epilogue e = {.residual = epilogue.plus, .relu = epilogue.relu};
        if (epilogue.norm && !lg__norm_affine(epilogue.norm, lg_promote(x->at.dtype, w->at.dtype), &e.scale, &e.shift))
                return NULL;
        return lg__conv_with_epilogue(x, w, b, k->spaces, &k->each, &e);
}

/* Draws PyTorch's initial values, first the weight, then the bias: uniform in +-1/sqrt(fan_in), where fan_in is the
 * number of elements in one row (the slice of one index of dimension 0) of the weight. */
static bool fill(lg_module *m, const void *options)
{
        const conv *k = options;
        const int64_t d = k->kernel.d, h = k->kernel.h, w = k->kernel.w;
        int64_t rows = k->transposed ? k->in : k->out, columns = (k->transposed ? k->out : k->in) / k->each.groups;
        lg_shape shape = k->spaces == 1   ? LG_SHAPE(rows, columns, w)
                         : k->spaces == 2 ? LG_SHAPE(rows, columns, h, w)
                                          : LG_SHAPE(rows, columns, d, h, w);
        m->convolves = true;
        double fan_in = (double)columns * (double)d * (double)h * (double)w; /* a double, since int64_t may overflow */
        double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
        return lg__module_uniform(m, "weight", bound, shape, k->dtype, k->device) &&
               (k->no_bias || lg__module_uniform(m, "bias", bound, LG_SHAPE(k->out), k->dtype, k->device));
}

/* Sets the sides to `each` unless they were given. Returns false with an error if one is below `least`. */
static bool choose(lg_ctx *c, const char *op, const char *name, int64_t each, int64_t least, lg_triple *sides)
{
        *sides = lg__sides(*sides, each);
        if (sides->d >= least && sides->h >= least && sides->w >= least)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: a %s of %lld x %lld; sides must be %lld or more", op, name,
                        (long long)(sides->h < least   ? sides->h
                                    : sides->d < least ? sides->d
                                                       : sides->h),
                        (long long)sides->w, (long long)least);
}

/* Replaces the padding of the op by lg_pad(). */
static bool set_mode(lg_ctx *c, const char *op, conv *k)
{
        const lg_triple p = k->each.paddings;
        if (k->mode < LG_PAD_CONSTANT || k->mode > LG_PAD_CIRCULAR)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: padding_mode is %d; it is an lg_pad_mode", op, (int)k->mode);
        if (k->mode == LG_PAD_CONSTANT)
                return true;
        memcpy(k->pads, (int64_t[]){p.w, p.w, p.h, p.h, p.d, p.d}, sizeof k->pads);
        k->each.paddings = LG_TRIPLE(0, 0, 0);
        return true;
}

/* Resolves and checks the kernel size and the op's options in k, and makes the module. */
static lg_module *make(lg_ctx *c, const char *op, const char *type, conv k, int64_t kernel)
{
        lg__conv_options *e = &k.each;
        if (!choose(c, op, "kernel", kernel, 1, &k.kernel) ||
            !choose(c, op, "stride", lg__whole_option(e->stride, 1), 1, &e->strides) ||
            !choose(c, op, "padding", lg__whole_option(e->padding, 0), 0, &e->paddings) ||
            !choose(c, op, "dilation", lg__whole_option(e->dilation, 1), 1, &e->dilations) ||
            !choose(c, op, "output_padding", lg__whole_option(e->output_padding, 0), 0, &e->output_paddings))
                return NULL;
        if (!set_mode(c, op, &k))
                return NULL;
        const int64_t groups = e->groups = lg__whole_option(e->groups, 1);
        if (k.spaces < 3)
                k.kernel.d = 1;
        if (k.spaces == 1)
                k.kernel.h = 1;
        if (k.in < 1 || k.out < 1 || groups < 1 || k.in % groups || k.out % groups)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: %lld to %lld channels in %lld groups; both must be 1 or more and a multiple of the groups",
                        op, (long long)k.in, (long long)k.out, (long long)groups);
        if (!lg__module_dtype(c, op, k.dtype))
                return NULL;
        const unsigned epilogues = LG__EPILOGUE_SUM | LG__EPILOGUE_RELU | LG__EPILOGUE_NORM | LG__RECORDS_RELU;
        return lg__module_set_epilogues(lg__module_build(c, type, NULL, &k, sizeof k, fill, &k), forward,
                                        k.transposed ? 0 : epilogues);
}

#define NUMBERS .stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups
#define SIDES(as) .strides = as(o.strides), .paddings = as(o.paddings), .dilations = as(o.dilations)
#define ADDED .output_padding = o.output_padding
#define AS_IT_IS(triple) triple
#define EACH(...)                                                                                                      \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }
#define CONVOLUTION(of, type, dims, is_transposed, side, each, ...)                                                    \
        lg_module *lg_nn_##of##_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,                               \
                                     const lg_##of##_layer_options *options)                                           \
        {                                                                                                              \
                lg_##of##_layer_options o;                                                                             \
                if (!lg__take(c, "lg_nn_" #of, options, &o, sizeof o))                                                 \
                        return NULL;                                                                                   \
                const conv k = {in, out, is_transposed, dims, side, each, o.no_bias, o.dtype, o.device, __VA_ARGS__};  \
                return make(c, "lg_nn_" #of, type, k, kernel);                                                         \
        }
CONVOLUTION(conv1d, "Conv1d", 1, false, (lg_triple){.given = 0}, EACH(NUMBERS), .mode = o.padding_mode)
CONVOLUTION(conv2d, "Conv2d", 2, false, lg__deepened(o.kernels), EACH(NUMBERS, SIDES(lg__deepened)),
            .mode = o.padding_mode)
CONVOLUTION(conv3d, "Conv3d", 3, false, o.kernels, EACH(NUMBERS, SIDES(AS_IT_IS)), .mode = o.padding_mode)
CONVOLUTION(conv_transpose1d, "ConvTranspose1d", 1, true, (lg_triple){.given = 0}, EACH(NUMBERS, ADDED), )
CONVOLUTION(conv_transpose2d, "ConvTranspose2d", 2, true, lg__deepened(o.kernels),
            EACH(NUMBERS, SIDES(lg__deepened), ADDED, .output_paddings = lg__deepened(o.output_paddings)), )
CONVOLUTION(conv_transpose3d, "ConvTranspose3d", 3, true, o.kernels,
            EACH(NUMBERS, SIDES(AS_IT_IS), ADDED, .output_paddings = o.output_paddings), )
