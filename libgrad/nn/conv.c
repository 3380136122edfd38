/* conv.c - Conv1d, Conv2d, ConvTranspose2d. */
#include <math.h>
#include "graph/op.h"
#include "nn.h"

typedef struct conv {
        int64_t in, out;
        bool transposed;
        int spaces;           /* 1 or 2 */
        lg_pair kernel;       /* of a signal: its height is 1 */
        lg_conv_options each; /* of the op */
        lg_conv_layer_options o;
} conv;

static lg_tensor *forward(lg_module *m, lg_tensor *x, lg__ending ending)
{
        const conv *k = m->user;
        lg_tensor *w = m->parts->tensor, *b = m->parts->next ? m->parts->next->tensor : NULL;
        if (k->transposed)
                return lg_conv_transpose2d_with(x, w, b, &k->each);
        lg__conv_ending e = {.residual = ending.plus, .relu = ending.relu};
        if (ending.norm && !lg__norm_affine(ending.norm, lg_promote(x->at.dtype, w->at.dtype), &e.scale, &e.shift))
                return NULL;
        return lg__conv_ending_with(x, w, b, k->spaces == 1, &k->each, &e);
}

/* PyTorch's first values: uniform in +-1/sqrt(fan_in), where fan_in counts the inputs of one element of the weight's
 * rows; weights before the bias. */
static bool fill(lg_module *m, const void *options)
{
        const conv *k = options;
        const int64_t h = k->kernel.h, w = k->kernel.w;
        int64_t rows = k->transposed ? k->in : k->out, columns = (k->transposed ? k->out : k->in) / k->each.groups;
        lg_shape shape = k->spaces == 1 ? LG_SHAPE(rows, columns, w) : LG_SHAPE(rows, columns, h, w);
        m->convolves = true;
        double fan_in = (double)columns * (double)h * (double)w; /* may be too great for an int64_t */
        double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
        return lg__module_uniform(m, "weight", bound, shape, k->o.dtype, k->o.device) &&
               (k->o.no_bias || lg__module_uniform(m, "bias", bound, LG_SHAPE(k->out), k->o.dtype, k->o.device));
}

/* Both sides, of which none may be below `least`. */
static bool choose(lg_ctx *c, const char *op, const conv *k, const char *name, lg_pair pair, int64_t both,
                   int64_t least, lg_pair *ret)
{
        if (pair.given && k->spaces == 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .%ss is a pair for images; give one number", op, name);
        *ret = lg__sides(pair, both);
        if (ret->h >= least && ret->w >= least)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: a %s of %lld x %lld; sides must be %lld or more", op, name,
                        (long long)ret->h, (long long)ret->w, (long long)least);
}

static bool geometry_of(lg_ctx *c, const char *op, conv *k, int64_t kernel)
{
        const lg_conv_layer_options *o = &k->o;
        lg_pair stride, padding, dilation, output_padding;
        if (!choose(c, op, k, "kernel", o->kernels, kernel, 1, &k->kernel) ||
            !choose(c, op, k, "stride", o->strides, lg__whole_option(o->stride, 1), 1, &stride) ||
            !choose(c, op, k, "padding", o->paddings, lg__whole_option(o->padding, 0), 0, &padding) ||
            !choose(c, op, k, "dilation", o->dilations, lg__whole_option(o->dilation, 1), 1, &dilation) ||
            !choose(c, op, k, "output_padding", o->output_paddings, lg__whole_option(o->output_padding, 0), 0,
                    &output_padding))
                return false;
        if (!k->transposed && (output_padding.h || output_padding.w))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: output_padding is for transposed convolutions", op);
        lg_conv_options *e = &k->each;
        *e = (lg_conv_options){.size_ = sizeof *e, .groups = lg__whole_option(o->groups, 1)};
        if (k->spaces == 1) {
                k->kernel.h = 1;
                e->stride = stride.w;
                e->padding = padding.w;
                e->dilation = dilation.w;
        } else {
                e->strides = stride;
                e->paddings = padding;
                e->dilations = dilation;
                e->output_paddings = output_padding;
        }
        return true;
}

static lg_module *make(lg_ctx *c, const char *op, const char *type, conv k, int64_t kernel,
                       const lg_conv_layer_options *options)
{
        if (!lg__take(c, op, options, &k.o, sizeof k.o) || !geometry_of(c, op, &k, kernel))
                return NULL;
        const int64_t groups = k.each.groups;
        if (k.in < 1 || k.out < 1 || groups < 1 || k.in % groups || k.out % groups)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: %lld to %lld channels in %lld groups; both must be 1 or more and a multiple of the groups",
                        op, (long long)k.in, (long long)k.out, (long long)groups);
        if (!lg__module_dtype(c, op, k.o.dtype))
                return NULL;
        const unsigned ends = LG__ENDS_WITH_SUM | LG__ENDS_WITH_RELU | LG__ENDS_WITH_NORM | LG__RECORDS_RELU;
        return lg__module_ends(lg__module_build(c, type, NULL, &k, sizeof k, fill, &k), forward,
                               k.transposed ? 0 : ends);
}

lg_module *lg_nn_conv2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel, const lg_conv_layer_options *options)
{
        conv k = {.in = in, .out = out, .spaces = 2};
        return make(c, "lg_nn_conv2d", "Conv2d", k, kernel, options);
}

lg_module *lg_nn_conv1d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel, const lg_conv_layer_options *options)
{
        conv k = {.in = in, .out = out, .spaces = 1};
        return make(c, "lg_nn_conv1d", "Conv1d", k, kernel, options);
}

lg_module *lg_nn_conv_transpose2d_with(lg_ctx *c, int64_t in, int64_t out, int64_t kernel,
                                       const lg_conv_layer_options *options)
{
        conv k = {.in = in, .out = out, .spaces = 2, .transposed = true};
        return make(c, "lg_nn_conv_transpose2d", "ConvTranspose2d", k, kernel, options);
}
