/* calls_ops.c - calls of ops: elementwise, reductions, products, convolutions, norms, losses, indices. */
#include "vm.h"

typedef lg_tensor *unary_fn(lg_tensor *x);
typedef lg_tensor *scalar_fn(lg_tensor *x, double s);
typedef lg_tensor *binary_fn(lg_tensor *a, lg_tensor *b);
typedef lg_tensor *reduce_fn(lg_tensor *x, const lg_reduce_options *options);

void call_unary(vm *m)
{
        static unary_fn *const table[] = {
                lg_neg,     lg_abs,     lg_sign,  lg_square,      lg_exp,         lg_expm1,      lg_log,
                lg_log1p,   lg_sqrt,    lg_rsqrt, lg_reciprocal,  lg_sin,         lg_cos,        lg_tanh,
                lg_erf,     lg_sigmoid, lg_relu,  lg_softsign,    lg_silu,        lg_gelu,       lg_gelu_tanh,
                lg_exp2,    lg_log2,    lg_log10, lg_tan,         lg_asin,        lg_acos,       lg_atan,
                lg_sinh,    lg_cosh,    lg_asinh, lg_acosh,       lg_atanh,       lg_erfc,       lg_log_sigmoid,
                lg_relu6,   lg_selu,    lg_mish,  lg_hardsigmoid, lg_hardswish,   lg_tanhshrink, lg_floor,
                lg_ceil,    lg_round,   lg_trunc, lg_frac,        lg_logical_not, lg_isnan,      lg_isinf,
                lg_isfinite};
        uint8_t i = byte(m);
        give(m, table[i % COUNT(table)](tensor(m)));
}

void call_unary_scalar(vm *m)
{
        static scalar_fn *const table[] = {lg_add_scalar,     lg_sub_scalar,     lg_rsub_scalar, lg_mul_scalar,
                                           lg_div_scalar,     lg_rdiv_scalar,    lg_pow_scalar,  lg_rpow_scalar,
                                           lg_maximum_scalar, lg_minimum_scalar, lg_eq_scalar,   lg_ne_scalar,
                                           lg_lt_scalar,      lg_le_scalar,      lg_gt_scalar,   lg_ge_scalar};
        uint8_t i = byte(m);
        lg_tensor *x = tensor(m);
        give(m, table[i % COUNT(table)](x, number(m)));
}

void call_activation(vm *m)
{
        static scalar_fn *const table[] = {lg_leaky_relu, lg_elu, lg_celu, lg_hardshrink, lg_softshrink};
        uint8_t i = byte(m) % 8;
        lg_tensor *x = tensor(m);
        double a = number(m);
        if (i < COUNT(table))
                give(m, table[i](x, a));
        else if (i == 5)
                give(m, lg_hardtanh(x, a, number(m)));
        else if (i == 6)
                give(m, lg_softplus(x, a, number(m)));
        else
                give(m, lg_clamp(x, a, number(m)));
}

void call_binary(vm *m)
{
        static binary_fn *const table[] = {
                lg_add,   lg_sub,   lg_mul,          lg_div,       lg_pow,         lg_maximum,    lg_minimum,
                lg_atan2, lg_xlogy, lg_floor_divide, lg_remainder, lg_fmod,        lg_eq,         lg_ne,
                lg_lt,    lg_le,    lg_gt,           lg_ge,        lg_logical_and, lg_logical_or, lg_logical_xor};
        uint8_t i = byte(m);
        lg_tensor *a = tensor(m), *b = tensor(m), *y = table[i % COUNT(table)](a, b);
        FUZZ_CHECK(!y || (a && b && (lg_ctx_of(a) == lg_ctx_of(b) || m->odd)), "a result of two contexts");
        give(m, y);
}

void call_where(vm *m)
{
        lg_tensor *a = tensor(m), *b = tensor(m);
        uint8_t i = byte(m) % 3;
        if (i == 0)
                give(m, lg_where(tensor(m), a, b));
        else if (i == 1)
                give(m, lg_lerp(a, b, tensor(m)));
        else
                give(m, lg_lerp_scalar(a, b, number(m)));
}

void call_reduce(vm *m)
{
        static reduce_fn *const table[] = {lg_sum_with,    lg_mean_with,      lg_amax_with, lg_amin_with,
                                           lg_argmax_with, lg_argmin_with,    lg_var_with,  lg_std_with,
                                           lg_prod_with,   lg_logsumexp_with, lg_any_with,  lg_all_with};
        uint8_t i = byte(m);
        lg_tensor *x = tensor(m);
        lg_reduce_options o = *LG_OPTIONS(lg_reduce_options, .dims = LG_ALL_DIMS);
        if (flag(m))
                o = *LG_OPTIONS(lg_reduce_options, .dims = dims(m), .keep_dim = flag(m), .correction = number(m));
        give(m, table[i % COUNT(table)](x, HAND(m, o)));
}

void call_norm(vm *m)
{
        lg_tensor *x = tensor(m);
        double p = number(m);
        lg_norm_options o = *LG_OPTIONS(lg_norm_options, .dims = dims(m), .keep_dim = flag(m));
        give(m, lg_norm_with(x, p, HAND(m, o)));
}

void call_matmul(vm *m)
{
        lg_tensor *a = tensor(m);
        bool fits = flag(m);
        int64_t k = lg_ndim_of(a) ? lg_size_of(a, -1) : 1;
        if (flag(m)) {
                lg_tensor *b = fits ? fresh(m, LG_SHAPE(k, small(m))) : tensor(m);
                give(m, lg_matmul(a, b));
        } else {
                lg_tensor *w = fits ? fresh(m, LG_SHAPE(small(m), k)) : tensor(m);
                give(m, lg_linear(a, w, flag(m) ? maybe(m) : NULL));
        }
}

void call_softmax(vm *m)
{
        static lg_tensor *(*const table[])(lg_tensor *, int) = {lg_softmax, lg_log_softmax, lg_cumsum, lg_cumprod};
        uint8_t i = byte(m);
        lg_tensor *x = tensor(m);
        give(m, table[i % COUNT(table)](x, dim(m)));
}

/* A side of a pair, which is then given: i 0 is the height, 1 the width. */
static void give_side(vm *m, lg_pair *p, int i)
{
        p->given = 1;
        *(i ? &p->w : &p->h) = size(m);
}

static lg_conv_options conv_options(vm *m)
{
        lg_conv_options o = *LG_OPTIONS(lg_conv_options, .stride = 0);
        uint8_t b = byte(m);
        o.stride = b & 1 ? size(m) : 0;
        o.padding = b & 2 ? size(m) : 0;
        o.dilation = b & 4 ? size(m) : 0;
        o.groups = b & 8 ? size(m) : 0;
        o.output_padding = b & 16 ? size(m) : 0;
        for (int i = 0; i < 2 && b >= 0xC0; i++) {
                if (flag(m))
                        give_side(m, &o.strides, i);
                if (flag(m))
                        give_side(m, &o.paddings, i);
                if (flag(m))
                        give_side(m, &o.dilations, i);
                if (flag(m))
                        give_side(m, &o.output_paddings, i);
        }
        return o;
}

void call_conv(vm *m)
{
        static lg_tensor *(*const table[])(lg_tensor *, lg_tensor *, lg_tensor *, const lg_conv_options *) = {
                lg_conv2d_with, lg_conv1d_with, lg_conv_transpose2d_with, lg_conv_transpose1d_with};
        uint8_t i = byte(m) % COUNT(table);
        lg_tensor *x = tensor(m), *w;
        lg_conv_options o = conv_options(m);
        if (flag(m)) {
                bool one_d = i & 1, transposed = i >= 2;
                int64_t in = lg_size_of(x, one_d ? -2 : -3), a = small(m), k = small(m);
                in = o.groups > 0 && !transposed ? in / o.groups : in;
                lg_shape s = LG_SHAPE(transposed ? in : a, transposed ? a : in, k, flag(m) ? k : small(m));
                s.ndim = one_d ? 3 : 4;
                w = fresh(m, s);
        } else {
                w = tensor(m);
        }
        lg_tensor *b = flag(m) ? maybe(m) : NULL;
        give(m, table[i](x, w, b, HAND(m, o)));
}

static lg_pool_options pool_options(vm *m)
{
        lg_pool_options o = *LG_OPTIONS(lg_pool_options, .stride = 0);
        uint8_t b = byte(m);
        o.stride = b & 1 ? size(m) : 0;
        o.padding = b & 2 ? size(m) : 0;
        o.dilation = b & 4 ? size(m) : 0;
        o.ceil_mode = b & 8;
        o.no_count_padding = b & 16;
        o.divisor = b & 32 ? size(m) : 0;
        for (int i = 0; i < 2 && b >= 0xC0; i++) {
                give_side(m, &o.kernels, i);
                if (flag(m))
                        give_side(m, &o.strides, i);
                if (flag(m))
                        give_side(m, &o.paddings, i);
                if (flag(m))
                        give_side(m, &o.dilations, i);
        }
        return o;
}

/* A call that leaves .indices alone when it fails, and sets it when it does not. */
static void give_with_indices(vm *m, lg_tensor *y, lg_tensor *indices)
{
        FUZZ_CHECK((y != NULL) == (indices != NULL) || m->odd, "indices without a value, or a value without indices");
        give(m, y);
        give_read(m, indices);
}

void call_max_pool(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        int64_t kernel = size(m);
        lg_pool_options o = pool_options(m);
        bool two = flag(m);
        o.indices = flag(m) ? &indices : NULL;
        const lg_pool_options *handed = HAND(m, o);
        lg_tensor *y = two ? lg_max_pool2d_with(x, kernel, handed) : lg_max_pool1d_with(x, kernel, handed);
        if (o.indices)
                give_with_indices(m, y, indices);
        else
                give(m, y);
}

void call_avg_pool(vm *m)
{
        lg_tensor *x = tensor(m);
        int64_t kernel = size(m);
        lg_pool_options o = pool_options(m);
        const lg_pool_options *handed = HAND(m, o);
        give(m, flag(m) ? lg_avg_pool2d_with(x, kernel, handed) : lg_avg_pool1d_with(x, kernel, handed));
}

void call_adaptive_pool(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        lg_adaptive_pool_options o = *LG_OPTIONS(lg_adaptive_pool_options, .indices = NULL);
        int64_t n = size(m);
        uint8_t i = byte(m) % 4;
        for (int k = 0; k < 2 && (k || flag(m)); k++)
                give_side(m, &o.sizes, k);
        o.indices = i == 3 ? &indices : NULL;
        const lg_adaptive_pool_options *handed = HAND(m, o);
        if (i == 0)
                give(m, lg_adaptive_avg_pool1d_with(x, n, handed));
        else if (i == 1)
                give(m, lg_adaptive_avg_pool2d_with(x, n, handed));
        else if (i == 2)
                give(m, lg_adaptive_max_pool2d_with(x, n, handed));
        else {
                lg_tensor *y = lg_adaptive_max_pool2d_with(x, n, handed);
                give_with_indices(m, y, indices);
        }
}

/* One for each channel, or any. */
static lg_tensor *for_channels(vm *m, lg_tensor *x)
{
        lg_tensor *t = flag(m) && lg_ndim_of(x) > 1 ? fresh(m, LG_SHAPE(lg_size_of(x, 1))) : maybe(m);
        return t;
}

void call_batch_norm(vm *m)
{
        lg_tensor *x = tensor(m), *w = for_channels(m, x);
        lg_tensor *b = w && flag(m) ? w : for_channels(m, x);
        lg_batch_norm_options o = *LG_OPTIONS(lg_batch_norm_options, .momentum = 0);
        if (flag(m)) {
                o.running_mean = for_channels(m, x);
                o.running_var = for_channels(m, x);
        }
        o.training = flag(m);
        o.momentum = flag(m) ? number(m) : 0;
        o.eps = flag(m) ? number(m) : 0;
        o.residual = flag(m) ? tensor(m) : NULL;
        o.relu = flag(m);
        give(m, lg_batch_norm_with(x, w, b, HAND(m, o)));
}

void call_layer_norm(vm *m)
{
        lg_tensor *x = tensor(m), *w = for_channels(m, x);
        lg_tensor *b = for_channels(m, x);
        lg_layer_norm_options o = *LG_OPTIONS(lg_layer_norm_options, .eps = flag(m) ? number(m) : 0);
        lg_rms_norm_options r = *LG_OPTIONS(lg_rms_norm_options, .eps = o.eps);
        switch (byte(m) % 4) {
        case 0:
                give(m, lg_layer_norm_with(x, dim(m), w, b, HAND(m, o)));
                return;
        case 1:
                give(m, lg_group_norm_with(x, size(m), w, b, HAND(m, o)));
                return;
        case 2:
                give(m, lg_instance_norm_with(x, w, b, HAND(m, o)));
                return;
        default:
                give(m, lg_rms_norm_with(x, dim(m), w, HAND(m, r)));
        }
}

void call_normalize(vm *m)
{
        lg_tensor *x = tensor(m);
        int d = dim(m);
        lg_normalize_options o = *LG_OPTIONS(lg_normalize_options, .eps = number(m));
        give(m, lg_normalize_with(x, d, HAND(m, o)));
}

void call_dropout(vm *m)
{
        lg_tensor *x = tensor(m);
        double p = number(m);
        lg_dropout_options o = *LG_OPTIONS(lg_dropout_options, .off = flag(m));
        const lg_dropout_options *handed = HAND(m, o);
        give(m, flag(m) ? lg_dropout_with(x, p, handed) : lg_feature_dropout_with(x, p, handed));
}

void call_cross_entropy(vm *m)
{
        lg_tensor *x = tensor(m);
        lg_shape s = lg_shape_of(x);
        int64_t classes = lg_size_of(x, s.ndim > 1 ? 1 : 0);
        for (int i = s.ndim > 1 ? 1 : 0; i + 1 < s.ndim; i++)
                s.size[i] = s.size[i + 1];
        s.ndim = s.ndim ? s.ndim - 1 : 0;
        lg_tensor *target = indices(m, s, classes);
        lg_cross_entropy_options o = *LG_OPTIONS(lg_cross_entropy_options, .reduction = (lg_reduction)(byte(m) % 5));
        o.weight = flag(m) ? for_channels(m, x) : NULL;
        o.ignore_index = flag(m) ? size(m) : 0;
        o.label_smoothing = flag(m) ? number(m) : 0;
        o.ignore_index = flag(m) ? LG_ZERO_INT : o.ignore_index;
        lg_nll_options n = *LG_OPTIONS(lg_nll_options, .reduction = o.reduction, .weight = o.weight,
                                       .ignore_index = o.ignore_index);
        if (flag(m))
                give(m, lg_cross_entropy_with(x, target, HAND(m, o)));
        else
                give(m, lg_nll_with(x, target, HAND(m, n)));
}

/* A target of probabilities, or of what is none. */
void call_soft_cross_entropy(vm *m)
{
        lg_tensor *x = tensor(m), *target = flag(m) ? fresh(m, lg_shape_of(x)) : lg_softmax(x, dim(m));
        m->odd = m->odd || !target;
        lg_cross_entropy_options o = *LG_OPTIONS(lg_cross_entropy_options, .reduction = (lg_reduction)(byte(m) % 5));
        o.weight = flag(m) ? for_channels(m, x) : NULL;
        o.ignore_index = flag(m) ? size(m) : 0;
        o.label_smoothing = flag(m) ? number(m) : 0;
        give(m, lg_cross_entropy_with(x, target, HAND(m, o)));
}

void call_loss(vm *m)
{
        static lg_tensor *(*const table[])(lg_tensor *, lg_tensor *,
                                           const lg_loss_options *) = {lg_mse_with, lg_l1_with, lg_bce_with};
        uint8_t i = byte(m) % 7;
        lg_tensor *x = tensor(m), *y = flag(m) ? fresh(m, lg_shape_of(x)) : tensor(m);
        lg_reduction r = (lg_reduction)(byte(m) % 5);
        lg_loss_options plain = *LG_OPTIONS(lg_loss_options, .reduction = r);
        lg_bce_with_logits_options logits = *LG_OPTIONS(lg_bce_with_logits_options, .reduction = r);
        lg_huber_options huber = *LG_OPTIONS(lg_huber_options, .reduction = r);
        lg_smooth_l1_options smooth = *LG_OPTIONS(lg_smooth_l1_options, .reduction = r);
        lg_kl_div_options kl = *LG_OPTIONS(lg_kl_div_options, .reduction = r);
        if (i < COUNT(table)) {
                give(m, table[i](x, y, HAND(m, plain)));
        } else if (i == 3) {
                logits.pos_weight = maybe(m);
                give(m, lg_bce_with_logits_with(x, y, HAND(m, logits)));
        } else if (i == 4) {
                huber.delta = number(m);
                give(m, lg_huber_with(x, y, HAND(m, huber)));
        } else if (i == 5) {
                smooth.beta = number(m);
                give(m, lg_smooth_l1_with(x, y, HAND(m, smooth)));
        } else {
                kl.log_target = flag(m);
                give(m, lg_kl_div_with(x, y, HAND(m, kl)));
        }
}

void call_gather(vm *m)
{
        lg_tensor *x = tensor(m);
        int d = dim(m);
        lg_tensor *index = indices(m, lg_shape_of(x), lg_size_of(x, d));
        if (flag(m))
                give(m, lg_gather(x, d, index));
        else
                give(m, lg_scatter_add(x, d, index, flag(m) ? x : tensor(m)));
}

void call_index_select(vm *m)
{
        lg_tensor *x = tensor(m);
        int d = dim(m);
        int64_t n = lg_size_of(x, d);
        lg_tensor *index = indices(m, LG_SHAPE(flag(m) ? n : small(m)), n);
        if (flag(m))
                give(m, lg_index_select(x, d, index));
        else
                give(m, lg_index_add(x, d, index, flag(m) ? x : tensor(m)));
}

void call_embedding(vm *m)
{
        lg_tensor *w = tensor(m), *index = indices(m, LG_SHAPE(small(m), small(m)), lg_size_of(w, 0));
        if (flag(m)) {
                lg_embedding_options o = *LG_OPTIONS(lg_embedding_options, .padding_idx = flag(m) ? size(m) : 0);
                o.padding_idx = flag(m) ? LG_ZERO_INT : o.padding_idx;
                give(m, lg_embedding_with(w, index, HAND(m, o)));
        } else {
                give(m, lg_one_hot(index, size(m)));
        }
}

void call_masked_fill(vm *m)
{
        lg_tensor *x = tensor(m), *mask = flag(m) ? lg_gt_scalar(x, 0) : tensor(m);
        m->odd = m->odd || !mask;
        give(m, lg_masked_fill(x, mask, number(m)));
}

/* What is drawn by a tensor's values, or chosen by them. */
void call_draw(vm *m)
{
        lg_tensor *x = tensor(m), *mask;
        uint8_t i = byte(m) % 4;
        if (i == 0) {
                give(m, lg_bernoulli(x));
        } else if (i == 1) {
                int64_t count = size(m);
                lg_multinomial_options o = *LG_OPTIONS(lg_multinomial_options, .replacement = flag(m));
                give(m, lg_multinomial_with(x, count, HAND(m, o)));
        } else if (i == 2) {
                give(m, lg_nonzero(x));
        } else {
                mask = flag(m) ? lg_gt_scalar(x, 0) : tensor(m);
                m->odd = m->odd || !mask;
                give(m, lg_masked_select(x, mask));
        }
}

void call_triangle(vm *m)
{
        lg_tensor *x = tensor(m);
        lg_triangle_options o = *LG_OPTIONS(lg_triangle_options, .diagonal = size(m));
        o.diagonal = flag(m) && o.diagonal > 0 ? -o.diagonal : o.diagonal;
        const lg_triangle_options *handed = HAND(m, o);
        give(m, flag(m) ? lg_tril_with(x, handed) : lg_triu_with(x, handed));
}

void call_flip(vm *m)
{
        lg_tensor *x = tensor(m);
        if (flag(m)) {
                give(m, lg_flip(x, dims(m)));
        } else {
                int64_t shift = size(m);
                give(m, lg_roll(x, shift, dim(m)));
        }
}

void call_pad(vm *m)
{
        lg_tensor *x = tensor(m);
        uint8_t b = byte(m);
        const int count = b < 0xF0 ? b % 5 * 2 : b < 0xF8 ? b % 20 : b < 0xFC ? 1 : -2;
        int64_t pads[20] = {0};
        for (int i = 0; i < count && i < 2 * LG_MAX_DIMS; i++) {
                pads[i] = size(m);
                pads[i] = pads[i] > 4 && pads[i] < 9 ? 4 - pads[i] : pads[i];
        }
        lg_pad_options o = *LG_OPTIONS(lg_pad_options, .value = number(m));
        give(m, lg_pad_with(x, LG_INTS_OF(count, b == 0xFB ? NULL : pads), HAND(m, o)));
}

void call_repeat(vm *m)
{
        lg_tensor *x = tensor(m);
        give(m, lg_repeat(x, shape(m)));
}

void call_cat(vm *m)
{
        lg_tensor *room[4];
        lg_list all = list(m, room);
        if (flag(m))
                for (int64_t i = 1; i < all.count; i++)
                        room[i] = room[0];
        int d = dim(m);
        give(m, flag(m) ? lg_cat(all, d) : lg_stack(all, d));
}

void call_split(vm *m)
{
        lg_tensor *ret[6] = {NULL}, *x = tensor(m);
        int64_t n = size(m), room = byte(m) % 7;
        int d = dim(m);
        int64_t got = flag(m) ? lg_split(x, n, d, ret, room) : lg_chunk(x, n, d, ret, room);
        FUZZ_CHECK(got >= 0 && got <= room, "%lld pieces for %lld places", (long long)got, (long long)room);
        if (lg_size_of(x, d) != 0)
                check_done(m, got > 0);
        for (int64_t i = 0; i < 6; i++)
                FUZZ_CHECK((i < got) == (ret[i] != NULL) || m->odd, "piece %lld of %lld", (long long)i, (long long)got);
        for (int64_t i = 0; i < got; i++)
                give_read(m, ret[i]);
}

void call_sort(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        int d = dim(m);
        uint8_t i = byte(m) % 3;
        lg_sort_options o = *LG_OPTIONS(lg_sort_options, .descending = flag(m), .indices = i == 2 ? &indices : NULL);
        lg_argsort_options a = *LG_OPTIONS(lg_argsort_options, .descending = o.descending);
        if (i == 0) {
                give(m, lg_argsort_with(x, d, HAND(m, a)));
                return;
        }
        lg_tensor *y = lg_sort_with(x, d, HAND(m, o));
        if (i == 1)
                give(m, y);
        else
                give_with_indices(m, y, indices);
}

void call_topk(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        int64_t k = size(m);
        int d = dim(m);
        lg_topk_options o = *LG_OPTIONS(lg_topk_options, .smallest = flag(m), .indices = &indices);
        lg_tensor *y = lg_topk_with(x, k, d, HAND(m, o));
        give_with_indices(m, y, indices);
}

void call_choose(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        int d = dim(m);
        lg_max_options o = *LG_OPTIONS(lg_max_options, .keep_dim = flag(m));
        o.indices = flag(m) ? NULL : &indices;
        const lg_max_options *handed = HAND(m, o);
        lg_tensor *y = flag(m) ? lg_max_with(x, d, handed) : lg_min_with(x, d, handed);
        if (o.indices)
                give_with_indices(m, y, indices);
        else
                give(m, y);
}
