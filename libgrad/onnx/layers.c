/* layers.c - ONNX's products, norms, attention, resizing and losses. */
#include <math.h>
#include "import.h"

/* ---- products ---- */

/* Computes alpha A B + beta C, as a linear layer where B is the transposed weight and nothing is scaled. */
LG__ONNX(Gemm)
{
        lg_tensor *a = c->in[0], *b = c->in[1], *d = lg__onnx_in(c, 2);
        const double alpha = lg__onnx_float(c, "alpha", 1), beta = lg__onnx_float(c, "beta", 1);
        const bool by_rows = lg__onnx_int(c, "transB", 0);
        if (lg__onnx_int(c, "transA", 0))
                a = lg_transpose(a, 0, 1);
        if (a && by_rows && alpha == 1 && beta == 1 && (!d || d->at.shape.ndim == 1) && a->at.shape.ndim == 2 &&
            (!d || d->at.shape.size[0] == b->at.shape.size[0]))
                return lg_linear(a, b, d);
        lg_tensor *y = lg_matmul(a, by_rows ? lg_transpose(b, 0, 1) : b);
        y = alpha == 1 ? y : lg_mul_scalar(y, alpha);
        return d ? lg_add(y, beta == 1 ? d : lg_mul_scalar(d, beta)) : y;
}

LG__ONNX(Einsum)
{
        return lg_einsum(lg__onnx_text(c, "equation", ""), (lg_list){c->in_count, c->in});
}

/* ---- norms ---- */

/* In training, running statistics are as ONNX defines them: the variance of the batch is divided by its count. */
LG__ONNX(BatchNormalization)
{
        lg_tensor *x = c->in[0], *mean = c->in[3], *var = c->in[4];
        const double eps = lg__onnx_float(c, "epsilon", 1e-5), keep = lg__onnx_float(c, "momentum", 0.9);
        if (!lg__onnx_int(c, "training_mode", 0)) {
                const bool flat = x->at.shape.ndim == 1;
                lg_tensor *y = lg_batch_norm(flat ? lg_unsqueeze(x, 1) : x, c->in[1], c->in[2], .running_mean = mean,
                                             .running_var = var, .eps = eps ? eps : LG_ZERO);
                return flat && y ? lg_squeeze(y, LG_DIMS(1)) : y;
        }
        lg_dims dims = {.count = 0};
        for (int i = 0; i < x->at.shape.ndim; i++)
                if (i != 1)
                        dims.dim[dims.count++] = i;
        lg_tensor *m = lg_mean(x, .dims = dims), *v = lg_var(x, .dims = dims, .correction = LG_ZERO);
        c->out[1] = lg_add(lg_mul_scalar(mean, keep), lg_mul_scalar(m, 1 - keep));
        c->out[2] = lg_add(lg_mul_scalar(var, keep), lg_mul_scalar(v, 1 - keep));
        return lg_batch_norm(x, c->in[1], c->in[2], .training = true, .eps = eps ? eps : LG_ZERO);
}

LG__ONNX(InstanceNormalization)
{
        const double eps = lg__onnx_float(c, "epsilon", 1e-5);
        return lg_instance_norm(c->in[0], c->in[1], c->in[2], .eps = eps ? eps : LG_ZERO);
}

/* Before opset 21, scale and bias have an entry for each group. */
LG__ONNX(GroupNormalization)
{
        lg_tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
        const int64_t groups = lg__onnx_int(c, "num_groups", 1);
        const double eps = lg__onnx_float(c, "epsilon", 1e-5);
        const int64_t channels = x->at.shape.ndim > 1 ? x->at.shape.size[1] : 0;
        if (groups > 0 && w->at.shape.size[0] != channels) {
                w = lg_repeat_interleave(w, channels / groups, 0);
                b = lg_repeat_interleave(b, channels / groups, 0);
        }
        return lg_group_norm(x, groups, w, b, .eps = eps ? eps : LG_ZERO);
}

/* Returns the sizes of x's dimensions from the node's axis on. */
static bool take_last(const lg__onnx_call *c, lg_shape *ret)
{
        const lg_shape *s = &c->in[0]->at.shape;
        const int axis = lg__onnx_axis(c, lg__onnx_int(c, "axis", -1), s->ndim);
        if (axis < 0)
                return false;
        ret->ndim = s->ndim - axis;
        for (int i = 0; i < ret->ndim; i++)
                ret->size[i] = s->size[axis + i];
        return true;
}

static bool has_shape(const lg_tensor *t, lg_shape shape)
{
        return !t || lg__shape_equal(t->at.shape, shape);
}

LG__ONNX(LayerNormalization)
{
        lg_tensor *x = c->in[0], *w = c->in[1], *b = lg__onnx_in(c, 2);
        const double eps = lg__onnx_float(c, "epsilon", 1e-5);
        lg_shape last;
        if (!take_last(c, &last))
                return NULL;
        if (lg__onnx_wants(c, 1) || lg__onnx_wants(c, 2)) {
                lg_dims dims = {.count = last.ndim};
                for (int i = 0; i < last.ndim; i++)
                        dims.dim[i] = x->at.shape.ndim - last.ndim + i;
                lg_tensor *wide = x->at.dtype == LG_F64 ? x : lg_cast(x, LG_F32);
                lg_tensor *var = lg_var(wide, .dims = dims, .keep_dim = true, .correction = LG_ZERO);
                c->out[1] = lg_mean(wide, .dims = dims, .keep_dim = true);
                c->out[2] = lg_rsqrt(lg_add_scalar(var, eps));
        }
        if (has_shape(w, last) && has_shape(b, last))
                return lg_layer_norm(x, last, w, b, .eps = eps ? eps : LG_ZERO);
        lg_tensor *y = lg_mul(lg_layer_norm(x, last, NULL, NULL, .eps = eps ? eps : LG_ZERO), w);
        return b ? lg_add(y, b) : y;
}

LG__ONNX(RMSNormalization)
{
        lg_tensor *x = c->in[0], *w = c->in[1];
        const double eps = lg__onnx_float(c, "epsilon", 1e-5);
        lg_shape last;
        if (!take_last(c, &last))
                return NULL;
        return has_shape(w, last) ? lg_rms_norm(x, last, w, .eps = eps ? eps : LG_ZERO)
                                  : lg_mul(lg_rms_norm(x, last, NULL, .eps = eps ? eps : LG_ZERO), w);
}

/* A node drops elements if it says so or, before opset 12, never; libgrad's modules drop them in training instead. */
LG__ONNX(Dropout)
{
        lg_tensor *x = c->in[0];
        const double p = lg__onnx_number(c, 1, lg__onnx_float(c, "ratio", 0.5));
        const bool on = lg__onnx_number(c, 2, 0) != 0;
        if (!lg__ok(c->ctx))
                return NULL;
        if (!on || p == 0) {
                if (lg__onnx_wants(c, 1))
                        c->out[1] = lg_ones_like(x, .dtype = LG_BOOL);
                return x;
        }
        lg_tensor *kept = lg_dropout(lg_ones_like(x), p, .training = true);
        c->out[1] = kept ? lg_ne_scalar(kept, 0) : NULL;
        return kept ? lg_mul(x, kept) : NULL;
}

LG__ONNX(LRN)
{
        return lg_local_response_norm(c->in[0], lg__onnx_int(c, "size", 0), .alpha = lg__onnx_float(c, "alpha", 1e-4),
                                      .beta = lg__onnx_float(c, "beta", 0.75), .k = lg__onnx_float(c, "bias", 1));
}

/* ---- padding and resizing ---- */

LG__ONNX(Pad)
{
        static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
        static const lg_pad_mode ours[] = {LG_PAD_CONSTANT, LG_PAD_REFLECT, LG_PAD_REPLICATE, LG_PAD_CIRCULAR};
        lg_tensor *x = c->in[0];
        lg__onnx_ints pads, axes = {.count = -1};
        if (!(c->in_count > 1 ? lg__onnx_ints_in(c, 1, &pads) : lg__onnx_ints_of(c, "pads", &pads)) ||
            !lg__onnx_ints_in(c, 3, &axes))
                return NULL;
        const int ndim = x->at.shape.ndim;
        const int64_t n = axes.count >= 0 ? axes.count : ndim;
        int64_t list[2 * LG_MAX_DIMS] = {0};
        if (pads.count != 2 * n)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "%lld pads for %lld dimensions", (long long)pads.count,
                                     (long long)n);
        for (int64_t i = 0; i < n; i++) {
                const int axis = lg__onnx_axis(c, axes.count >= 0 ? axes.v[i] : i, ndim);
                if (axis < 0)
                        return NULL;
                list[2 * (ndim - 1 - axis)] = pads.v[i];
                list[2 * (ndim - 1 - axis) + 1] = pads.v[n + i];
        }
        const char *mode = lg__onnx_text(c, "mode", "constant");
        const double value = lg__onnx_number(c, 2, lg__onnx_float(c, "value", 0));
        for (int i = 0; i < 4 && lg__ok(c->ctx); i++)
                if (!strcmp(mode, modes[i]))
                        return lg_pad(x, ((lg_ints){2 * ndim, list}), .mode = ours[i], .value = value);
        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "mode %s", lg__onnx_text(c, "mode", ""));
}

LG__ONNX(CenterCropPad)
{
        lg_tensor *x = c->in[0];
        lg__onnx_ints sizes, axes;
        int64_t list[2 * LG_MAX_DIMS] = {0};
        const int ndim = x->at.shape.ndim;
        if (!lg__onnx_ints_in(c, 1, &sizes) || !lg__onnx_ints_of(c, "axes", &axes) || !lg__onnx_are_sizes(c, &sizes))
                return NULL;
        for (int64_t i = 0; i < sizes.count; i++) {
                const int axis = lg__onnx_axis(c, axes.count > i ? axes.v[i] : i, ndim);
                if (axis < 0)
                        return NULL;
                const int64_t more = sizes.v[i] - x->at.shape.size[axis], before = more / 2 - (more < 0 && more % 2);
                list[2 * (ndim - 1 - axis)] = more < 0 ? -(-more / 2) : before;
                list[2 * (ndim - 1 - axis) + 1] = more - list[2 * (ndim - 1 - axis)];
        }
        return lg_pad(x, ((lg_ints){2 * ndim, list}));
}

LG__ONNX(GridSample)
{
        const char *mode = lg__onnx_text(c, "mode", "linear"), *pad = lg__onnx_text(c, "padding_mode", "zeros");
        const lg_grid_mode how = strstr(mode, "nearest") ? LG_GRID_NEAREST
                                 : strstr(mode, "cubic") ? LG_GRID_BICUBIC
                                                         : LG_GRID_BILINEAR;
        const lg_grid_padding around = !strcmp(pad, "border")       ? LG_GRID_BORDER
                                       : !strcmp(pad, "reflection") ? LG_GRID_REFLECTION
                                                                    : LG_GRID_ZEROS;
        return lg_grid_sample(c->in[0], c->in[1], .mode = how, .padding_mode = around,
                              .align_corners = lg__onnx_int(c, "align_corners", 0) != 0);
}

LG__ONNX(AffineGrid)
{
        lg__onnx_ints sizes;
        lg_shape shape = {.ndim = 0};
        if (!lg__onnx_ints_in(c, 1, &sizes))
                return NULL;
        for (; shape.ndim < sizes.count && shape.ndim < LG_MAX_DIMS; shape.ndim++)
                shape.size[shape.ndim] = sizes.v[shape.ndim];
        return lg_affine_grid(c->in[0], shape, .align_corners = lg__onnx_int(c, "align_corners", 0) != 0);
}

/* ---- attention ---- */

LG__ONNX(RotaryEmbedding)
{
        lg_tensor *x = c->in[0], *cosine = c->in[1], *sine = c->in[2], *places = lg__onnx_in(c, 3);
        const int64_t heads = lg__onnx_int(c, "num_heads", 0), dims = lg__onnx_int(c, "rotary_embedding_dim", 0);
        const lg_shape s = x->at.shape;
        if (s.ndim == 3) { /* (batch, steps, heads * size) */
                if (heads < 1)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "num_heads is missing");
                x = lg_transpose(lg_reshape(x, LG_SHAPE(s.size[0], s.size[1], heads, s.size[2] / heads)), 1, 2);
        }
        if (s.ndim < 3 || (places && (places->at.shape.ndim != 2 || cosine->at.shape.ndim != 2)))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operand is %s, the cosines %s", lg__tensor_text(c->in[0]).s,
                                     lg__tensor_text(cosine).s);
        if (places) { /* rows of the tables, by place */
                lg_tensor *rows = lg_reshape(lg_cast(places, LG_I64), LG_SHAPE(-1));
                const lg_shape *p = &places->at.shape;
                lg_shape shape = LG_SHAPE(p->size[0], p->size[p->ndim - 1], cosine->at.shape.size[1]);
                cosine = lg_reshape(lg_index_select(cosine, 0, rows), shape);
                sine = lg_reshape(lg_index_select(sine, 0, rows), shape);
        }
        cosine = cosine ? lg_unsqueeze(cosine, -3) : NULL; /* the same for all heads */
        sine = cosine ? lg_unsqueeze(sine, -3) : NULL;
        lg_tensor *y =
                sine ? lg_rotary(x, cosine, sine, .interleaved = lg__onnx_int(c, "interleaved", 0) != 0, .dims = dims)
                     : NULL;
        return y && s.ndim == 3 ? lg_reshape(lg_transpose(y, 1, 2), s) : y;
}

/* ---- losses ---- */

static lg_reduction loss_reduction(const lg__onnx_call *c)
{
        const char *how = lg__onnx_text(c, "reduction", "mean");
        return !strcmp(how, "none") ? LG_NONE : !strcmp(how, "sum") ? LG_SUM : LG_MEAN;
}

LG__ONNX(NegativeLogLikelihoodLoss)
{
        const lg__onnx_attribute *ignored = lg__onnx_attribute_of(c, "ignore_index");
        return lg_nll(c->in[0], lg_cast(c->in[1], LG_I64), .weight = lg__onnx_in(c, 2), .reduction = loss_reduction(c),
                      .ignore_index = !ignored     ? INT32_MIN
                                      : ignored->i ? ignored->i
                                                   : LG_ZERO_INT);
}

LG__ONNX(SoftmaxCrossEntropyLoss)
{
        const lg__onnx_attribute *ignored = lg__onnx_attribute_of(c, "ignore_index");
        if (lg__onnx_wants(c, 1))
                c->out[1] = lg_log_softmax(c->in[0], 1);
        return lg_cross_entropy(c->in[0], lg_cast(c->in[1], LG_I64), .weight = lg__onnx_in(c, 2),
                                .reduction = loss_reduction(c),
                                .ignore_index = !ignored     ? INT32_MIN
                                                : ignored->i ? ignored->i
                                                             : LG_ZERO_INT);
}
