/* conv.c - Conv1d, Conv2d, ConvTranspose2d. */
#include <math.h>
#include "nn.h"

typedef struct conv {
        int64_t in, out;
        bool transposed;
        int spaces; /* 1 or 2 */
        lg_conv_layer_options o;
} conv;

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        const conv *k = user;
        lg_tensor *x = lg__module_input(m, inputs);
        if (!x)
                return NULL;
        lg_tensor *w = m->parts->tensor, *b = m->parts->next ? m->parts->next->tensor : NULL;
        lg_conv_options o = {.b = b, .stride = k->o.stride, .padding = k->o.padding, .dilation = k->o.dilation};
        o.groups = k->o.groups;
        for (int i = 0; i < 2; i++) {
                o.strides[i] = k->o.strides[i];
                o.paddings[i] = k->o.paddings[i];
                o.dilations[i] = k->o.dilations[i];
        }
        if (!k->transposed)
                return k->spaces == 1 ? lg_conv1d_(x, w, o) : lg_conv2d_(x, w, o);
        o.output_padding = k->o.output_padding;
        o.output_paddings[0] = k->o.output_paddings[0];
        o.output_paddings[1] = k->o.output_paddings[1];
        return lg_conv_transpose2d_(x, w, o);
}

/* PyTorch's first values: uniform in +-1/sqrt(fan_in), where fan_in counts the inputs of one element of the weight's
 * rows; weights before the bias. */
static bool fill(lg_module *m, const void *options)
{
        const conv *k = options;
        const int64_t *side = k->o.kernels;
        int64_t rows = k->transposed ? k->in : k->out, columns = (k->transposed ? k->out : k->in) / k->o.groups;
        lg_shape shape = k->spaces == 1 ? LG_SHAPE(rows, columns, side[1]) : LG_SHAPE(rows, columns, side[0], side[1]);
        double fan_in = (double)columns * (double)side[0] * (double)side[1]; /* may be too great for an int64_t */
        double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
        return lg__module_uniform(m, "weight", bound, shape, k->o.dtype, k->o.device) &&
               (k->o.no_bias || lg__module_uniform(m, "bias", bound, LG_SHAPE(k->out), k->o.dtype, k->o.device));
}

static lg_module *make(lg_ctx *c, const char *op, const char *type, conv k)
{
        if (!lg__ok(c))
                return NULL;
        lg_conv_layer_options *o = &k.o;
        o->groups = o->groups ? o->groups : 1;
        if (!o->kernels[0] && !o->kernels[1])
                o->kernels[0] = o->kernels[1] = o->kernel;
        if (k.spaces == 1)
                o->kernels[0] = 1;
        if (k.in < 1 || k.out < 1 || o->groups < 1 || k.in % o->groups || k.out % o->groups)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: %lld to %lld channels in %lld groups; both must be 1 or more and a multiple of the groups",
                        op, (long long)k.in, (long long)k.out, (long long)o->groups);
        if (o->kernels[0] < 1 || o->kernels[1] < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: a kernel of %lld x %lld; sides must be 1 or more", op,
                                (long long)o->kernels[0], (long long)o->kernels[1]);
        if (o->stride < 0 || o->padding < 0 || o->dilation < 0 || o->output_padding < 0)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: stride %lld, padding %lld, dilation %lld, output_padding %lld; none may be negative", op,
                        (long long)o->stride, (long long)o->padding, (long long)o->dilation,
                        (long long)o->output_padding);
        if (!lg__module_dtype(c, op, o->dtype))
                return NULL;
        return lg__module_build(c, type, forward, &k, sizeof k, fill, &k);
}

lg_module *lg_nn_conv2d_(lg_ctx *c, int64_t in, int64_t out, lg_conv_layer_options o)
{
        return make(c, "lg_nn_conv2d", "Conv2d", (conv){.in = in, .out = out, .spaces = 2, .o = o});
}

lg_module *lg_nn_conv1d_(lg_ctx *c, int64_t in, int64_t out, lg_conv_layer_options o)
{
        return make(c, "lg_nn_conv1d", "Conv1d", (conv){.in = in, .out = out, .spaces = 1, .o = o});
}

lg_module *lg_nn_conv_transpose2d_(lg_ctx *c, int64_t in, int64_t out, lg_conv_layer_options o)
{
        conv k = {.in = in, .out = out, .spaces = 2, .transposed = true, .o = o};
        return make(c, "lg_nn_conv_transpose2d", "ConvTranspose2d", k);
}
