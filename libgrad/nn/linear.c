/* linear.c - Linear: y = x W^T + b; Bilinear: y = x1 W x2 + b. */
#include <math.h>
#include "graph/op.h"
#include "nn.h"

lg_tensor *lg__linear_forward(lg_module *m, lg_tensor *x, lg__epilogue epilogue)
{
        const lg__part *weight = m->parts, *bias = weight->next;
        return (epilogue.relu ? lg__linear_relu : lg_linear)(x, weight->tensor, bias ? bias->tensor : NULL);
}

typedef struct sizes {
        int64_t in, out, in2; /* in2 of Bilinear */
        lg_linear_options o;
} sizes;

/* Draws the weight, then the bias, in PyTorch's order: uniform in +-1/sqrt(in). */
static bool fill(lg_module *m, const void *options)
{
        const sizes *s = options;
        double bound = s->in ? 1 / sqrt((double)s->in) : 0;
        return lg__module_uniform(m, "weight", bound, LG_SHAPE(s->out, s->in), s->o.dtype, s->o.device) &&
               (s->o.no_bias || lg__module_uniform(m, "bias", bound, LG_SHAPE(s->out), s->o.dtype, s->o.device));
}

lg_module *lg_nn_linear_with(lg_ctx *c, int64_t in, int64_t out, const lg_linear_options *options)
{
        sizes s = {.in = in, .out = out};
        if (!lg__take(c, "lg_nn_linear", options, &s.o, sizeof s.o))
                return NULL;
        if (in < 0 || out < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_linear: %lld to %lld features; both must be 0 or more",
                                (long long)in, (long long)out);
        if (!lg__module_dtype(c, "lg_nn_linear", s.o.dtype))
                return NULL;
        return lg__module_set_epilogues(lg__module_build(c, "Linear", NULL, NULL, 0, fill, &s), lg__linear_forward,
                                        LG__EPILOGUE_RELU);
}

/* ---- Bilinear ---- */

static lg_tensor *forward_bilinear(lg_module *m, lg_list in, void *user)
{
        const lg__part *weight = m->parts, *bias = weight->next;
        (void)user;
        if (in.count != 2)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: Bilinear takes x1 and x2, not %lld inputs",
                                (long long)in.count);
        return lg_bilinear(in.items[0], in.items[1], weight->tensor, bias ? bias->tensor : NULL);
}

static bool fill_bilinear(lg_module *m, const void *options)
{
        const sizes *s = options;
        const double bound = 1 / sqrt((double)s->in);
        return lg__module_uniform(m, "weight", bound, LG_SHAPE(s->out, s->in, s->in2), s->o.dtype, s->o.device) &&
               (s->o.no_bias || lg__module_uniform(m, "bias", bound, LG_SHAPE(s->out), s->o.dtype, s->o.device));
}

lg_module *lg_nn_bilinear_with(lg_ctx *c, int64_t in1, int64_t in2, int64_t out, const lg_linear_options *options)
{
        sizes s = {.in = in1, .in2 = in2, .out = out};
        if (!lg__take(c, "lg_nn_bilinear", options, &s.o, sizeof s.o))
                return NULL;
        if (in1 < 1 || in2 < 0 || out < 0)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "lg_nn_bilinear: %lld and %lld to %lld features; in1 is 1 or more, the others 0 or more",
                        (long long)in1, (long long)in2, (long long)out);
        if (!lg__module_dtype(c, "lg_nn_bilinear", s.o.dtype))
                return NULL;
        return lg__module_build(c, "Bilinear", forward_bilinear, NULL, 0, fill_bilinear, &s);
}
