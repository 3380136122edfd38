/* sequence.c - positions, padding and masks of sequences, made of other ops: tables of angles for lg_rotary(),
 * sinusoidal encodings, pad_sequence and sequence_mask. */
#include <math.h>
#include "graph/op.h"

/* ---- positions ---- */

/* Returns the angles (length, ceil(dims / 2)) in f64, and sets *o to the options, or returns NULL and sets an error. */
static lg_tensor *angles(lg_ctx *c, const char *op, int64_t length, int64_t dims, const lg_position_options *options,
                         lg_position_options *o)
{
        const double most = 0x1p53;
        if (!lg__take(c, op, options, o, sizeof *o))
                return NULL;
        const double base = lg__option(o->base, 10000), scale = lg__option(o->scale, 1);
        const double offset = (double)lg__whole_option(o->offset, 0);
        o->dtype = o->dtype ? o->dtype : LG_F32;
        if (length < 0 || dims < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: length is %lld and dims is %lld; they are 0, 1 or more", op,
                                (long long)length, (long long)dims);
        if (!(base > 0) || !isfinite(base) || scale == 0 || !isfinite(scale))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: base is %g and scale is %g; they are finite, base positive and scale not 0", op,
                                base, scale);
        if (!(fabs(offset) <= most) || !((double)length <= most))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: offset is %g and length is %lld, beyond 2^53", op, offset,
                                (long long)length);
        if (lg_dtype_size(o->dtype) && !lg__dtype_float(o->dtype))
                return lg__fail(c, LG_ERR_DTYPE, "%s: dtype %s; the result is of a float dtype", op,
                                lg_dtype_name(o->dtype));
        lg_create_options wide = *LG_OPTIONS(lg_create_options, .dtype = o->dtype, .device = o->device);
        if (!lg__may_create(c, op, LG_SHAPE(length, dims), &wide))
                return NULL;
        wide.dtype = LG_F64;
        lg_tensor *t = lg_arange_with(c, offset, offset + (double)length, 1, &wide);
        lg_tensor *i = lg_arange_with(c, 0, (double)dims, 2, &wide);
        lg_tensor *slowness = lg_rpow_scalar(lg_div_scalar(i, (double)dims), base);
        return lg_div(lg_mul_scalar(lg_unsqueeze(t, 1), scale), slowness);
}

lg_tensor *lg_rotary_table_with(lg_ctx *c, int64_t length, int64_t dims, lg_tensor **ret_sin,
                                const lg_position_options *options)
{
        lg_position_options o;
        if (c && !lg_error(c) && !ret_sin)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_rotary_table: ret_sin is NULL");
        if (c && !lg_error(c) && dims % 2 != 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_rotary_table: dims is %lld, which is not even",
                                (long long)dims);
        if (!c)
                return NULL;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *angle = angles(c, "lg_rotary_table", length, dims, options, &o);
        lg_tensor *sin = angle ? lg_escape(lg_cast(lg_sin(angle), o.dtype)) : NULL;
        lg_tensor *cos = sin ? lg_escape(lg_cast(lg_cos(angle), o.dtype)) : NULL;
        lg_scope_end(c, scope);
        if (cos)
                *ret_sin = sin;
        return cos;
}

lg_tensor *lg_sinusoidal_positions_with(lg_ctx *c, int64_t length, int64_t dims, const lg_position_options *options)
{
        lg_position_options o;
        if (!c)
                return NULL;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *angle = angles(c, "lg_sinusoidal_positions", length, dims, options, &o);
        lg_tensor *pairs = angle ? lg_stack(LG_LIST(lg_sin(angle), lg_cos(angle)), -1) : NULL;
        lg_tensor *all = pairs ? lg_reshape(pairs, LG_SHAPE(length, (dims + 1) / 2 * 2)) : NULL;
        lg_tensor *y = all ? lg_contiguous(lg_cast(lg_slice(all, 1, 0, dims), o.dtype)) : NULL;
        lg_escape(y);
        lg_scope_end(c, scope);
        return y;
}

/* ---- padding and masks ---- */

/* Checks that all sequences have the sizes of the first but for their lengths; returns the greatest length or -1. */
static int64_t greatest_length(const lg__call *call)
{
        int64_t most = 0;
        const lg_shape first = call->in[0]->at.shape;
        for (int i = 0; i < call->in_count; i++) {
                lg_shape s = call->in[i]->at.shape;
                const int64_t length = s.ndim ? s.size[0] : 0;
                s.size[0] = first.size[0];
                if (first.ndim == 0 || !lg__shape_equal(s, first)) {
                        lg__fail(call->ctx, LG_ERR_SHAPE,
                                 "pad_sequence: tensor %d is %s, tensor 0 is %s; they are (length, ...), and only "
                                 "their lengths may differ",
                                 i, lg__tensor_text(call->in[i]).s, lg__tensor_text(call->in[0]).s);
                        return -1;
                }
                most = length > most ? length : most;
        }
        return most;
}

/* Returns the lengths of the inputs as a tensor. */
static lg_tensor *lengths_of(const lg__call *call)
{
        const size_t bytes = (size_t)call->in_count * sizeof(int64_t);
        int64_t *lengths = lg__alloc(call->ctx, bytes);
        for (int i = 0; i < call->in_count && lengths; i++)
                lengths[i] = call->in[i]->at.shape.size[0];
        lg_tensor *t =
                lengths ? lg_from(call->ctx, lengths, LG_SHAPE(call->in_count), .device = call->device->id) : NULL;
        lg__free(call->ctx, lengths, bytes);
        return t;
}

/* Returns x padded at the end to `length`. */
static lg_tensor *padded(lg_tensor *x, int64_t length, double value)
{
        int64_t pads[2 * LG_MAX_DIMS] = {0};
        const int n = x->at.shape.ndim;
        pads[2 * n - 1] = length - x->at.shape.size[0];
        return lg_pad(x, LG_INTS_OF(2 * n, pads), .value = value);
}

static lg_tensor *compose_pad_sequence(const lg__call *call)
{
        lg_pad_sequence_options o;
        lg_ctx *c = call->ctx;
        if (!lg__take(c, "pad_sequence", call->attributes, &o, sizeof o))
                return NULL;
        const int64_t length = greatest_length(call);
        if (length < 0 || !lg__dtype_holds(c, "pad_sequence", call->in[0]->at.dtype, o.value))
                return NULL;
        const size_t bytes = (size_t)call->in_count * sizeof(lg_tensor *);
        lg_tensor **parts = lg__alloc(c, bytes), *y = NULL, *lengths = o.lengths ? lengths_of(call) : NULL;
        bool ok = parts != NULL;
        for (int i = 0; i < call->in_count && ok; i++)
                ok = (parts[i] = padded(call->in[i], length, o.value)) != NULL;
        if (ok)
                y = lg_stack(LG_LIST_OF(call->in_count, parts), o.batch_first ? 0 : 1);
        for (int i = 0; i < call->in_count && parts; i++)
                lg__tensor_release(parts[i]);
        lg__free(c, parts, bytes);
        if (y && lengths)
                *o.lengths = lengths;
        return o.lengths && !lengths ? NULL : y;
}

LG__DEFINE(pad_sequence, .compose = compose_pad_sequence, .flags = LG__PROMOTE, LG__OPERANDS({"x", .variadic = true}))

lg_tensor *lg_pad_sequence_with(lg_list list, const lg_pad_sequence_options *options)
{
        return lg__apply_list(LG__OP(pad_sequence), list, options);
}

static lg_tensor *compose_sequence_mask(const lg__call *call)
{
        const int64_t length = *(const int64_t *)call->attributes;
        if (length < 0 || (double)length > 0x1p53)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "sequence_mask: length is %lld; it is 0 or more",
                                (long long)length);
        lg_tensor *t = lg_arange(call->ctx, 0, (double)length, 1, .dtype = LG_I64, .device = call->device->id);
        return lg_lt(t, lg_unsqueeze(call->in[0], -1));
}

LG__COMPOSITE(sequence_mask, {"lengths", LG__INDEX})

lg_tensor *lg_sequence_mask(lg_tensor *lengths, int64_t length)
{
        return LG__APPLY(sequence_mask, &length, lengths);
}
