/* calls_ops.c - calls of ops: elementwise, reductions, products, convolutions, norms, losses, indices. */
#include "vm.h"

typedef lg_tensor *unary_fn(lg_tensor *x);
typedef lg_tensor *scalar_fn(lg_tensor *x, double s);
typedef lg_tensor *binary_fn(lg_tensor *a, lg_tensor *b);
typedef lg_tensor *reduce_fn(lg_reduce_options o);

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
        static reduce_fn *const table[] = {lg_sum_, lg_mean_, lg_amax_, lg_amin_,      lg_argmax_, lg_argmin_,
                                           lg_var_, lg_std_,  lg_prod_, lg_logsumexp_, lg_any_,    lg_all_};
        uint8_t i = byte(m);
        lg_reduce_options o = {.x = tensor(m)};
        if (flag(m))
                o = (lg_reduce_options){o.x, dims(m), flag(m), number(m)};
        give(m, table[i % COUNT(table)](o));
}

void call_norm(vm *m)
{
        lg_tensor *x = tensor(m);
        double p = number(m);
        give(m, lg_norm(x, p, .dims = dims(m), .keep_dim = flag(m)));
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

static lg_conv_options conv_options(vm *m)
{
        lg_conv_options o = {0};
        uint8_t b = byte(m);
        o.stride = b & 1 ? size(m) : 0;
        o.padding = b & 2 ? size(m) : 0;
        o.dilation = b & 4 ? size(m) : 0;
        o.groups = b & 8 ? size(m) : 0;
        o.output_padding = b & 16 ? size(m) : 0;
        for (int i = 0; i < 2 && b >= 0xC0; i++) {
                o.strides[i] = flag(m) ? size(m) : 0;
                o.paddings[i] = flag(m) ? size(m) : 0;
                o.dilations[i] = flag(m) ? size(m) : 0;
                o.output_paddings[i] = flag(m) ? size(m) : 0;
        }
        return o;
}

void call_conv(vm *m)
{
        static lg_tensor *(*const table[])(lg_tensor *, lg_tensor *, lg_conv_options) = {
                lg_conv2d_, lg_conv1d_, lg_conv_transpose2d_, lg_conv_transpose1d_};
        uint8_t i = byte(m) % COUNT(table);
        lg_tensor *x = tensor(m), *w;
        lg_conv_options o = conv_options(m);
        if (flag(m)) {
                bool one_d = i & 1, transposed = i >= 2;
                int64_t in = lg_size_of(x, one_d ? -2 : -3), a = small(m), k = small(m);
                in = o.groups > 0 && !transposed ? in / o.groups : in;
                lg_shape s = {one_d ? 3 : 4, {transposed ? in : a, transposed ? a : in, k, flag(m) ? k : small(m)}};
                w = fresh(m, s);
        } else {
                w = tensor(m);
        }
        o.b = flag(m) ? maybe(m) : NULL;
        give(m, table[i](x, w, o));
}

static lg_pool_options pool_options(vm *m)
{
        lg_pool_options o = {.kernel = size(m)};
        uint8_t b = byte(m);
        o.stride = b & 1 ? size(m) : 0;
        o.padding = b & 2 ? size(m) : 0;
        o.dilation = b & 4 ? size(m) : 0;
        o.ceil_mode = b & 8;
        o.no_count_padding = b & 16;
        o.divisor = b & 32 ? size(m) : 0;
        for (int i = 0; i < 2 && b >= 0xC0; i++) {
                o.kernels[i] = size(m);
                o.strides[i] = flag(m) ? size(m) : 0;
                o.paddings[i] = flag(m) ? size(m) : 0;
                o.dilations[i] = flag(m) ? size(m) : 0;
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
        lg_pool_options o = pool_options(m);
        bool two = flag(m);
        if (flag(m)) {
                o.indices = &indices;
                lg_tensor *y = two ? lg_max_pool2d_(x, o) : lg_max_pool1d_(x, o);
                give_with_indices(m, y, indices);
        } else {
                give(m, two ? lg_max_pool2d_(x, o) : lg_max_pool1d_(x, o));
        }
}

void call_avg_pool(vm *m)
{
        lg_tensor *x = tensor(m);
        lg_pool_options o = pool_options(m);
        give(m, flag(m) ? lg_avg_pool2d_(x, o) : lg_avg_pool1d_(x, o));
}

void call_adaptive_pool(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        lg_adaptive_pool_options o = {.size = size(m)};
        uint8_t i = byte(m) % 4;
        if (flag(m)) {
                o.sizes[0] = size(m);
                o.sizes[1] = size(m);
        }
        if (i == 0)
                give(m, lg_adaptive_avg_pool1d_(x, o));
        else if (i == 1)
                give(m, lg_adaptive_avg_pool2d_(x, o));
        else if (i == 2)
                give(m, lg_adaptive_max_pool2d_(x, o));
        o.indices = &indices;
        if (i == 3)
                give_with_indices(m, lg_adaptive_max_pool2d_(x, o), indices);
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
        lg_batch_norm_options o = {.b = w && flag(m) ? w : for_channels(m, x)};
        if (flag(m)) {
                o.running_mean = for_channels(m, x);
                o.running_var = for_channels(m, x);
        }
        o.training = flag(m);
        o.momentum = flag(m) ? number(m) : 0;
        o.eps = flag(m) ? number(m) : 0;
        give(m, lg_batch_norm_(x, w, o));
}

void call_layer_norm(vm *m)
{
        lg_tensor *x = tensor(m), *w = for_channels(m, x);
        lg_layer_norm_options o = {.b = for_channels(m, x), .eps = flag(m) ? number(m) : 0};
        switch (byte(m) % 4) {
        case 0:
                give(m, lg_layer_norm_(x, dim(m), w, o));
                return;
        case 1:
                give(m, lg_group_norm_(x, size(m), w, o));
                return;
        case 2:
                give(m, lg_instance_norm_(x, w, o));
                return;
        default:
                give(m, lg_rms_norm(x, dim(m), w, .eps = o.eps));
        }
}

void call_normalize(vm *m)
{
        lg_tensor *x = tensor(m);
        int d = dim(m);
        give(m, lg_normalize(x, d, .eps = number(m)));
}

void call_dropout(vm *m)
{
        lg_tensor *x = tensor(m);
        lg_dropout_options o = {.p = number(m), .off = flag(m)};
        give(m, flag(m) ? lg_dropout_(x, o) : lg_feature_dropout_(x, o));
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
        lg_cross_entropy_options o = {.target = target, .reduction = (lg_reduction)(byte(m) % 5)};
        o.weight = flag(m) ? for_channels(m, x) : NULL;
        o.ignore_index = flag(m) ? size(m) : 0;
        o.label_smoothing = flag(m) ? number(m) : 0;
        o.ignore_zero = flag(m);
        if (flag(m))
                give(m, lg_cross_entropy_(x, o));
        else
                give(m, lg_nll(x, target, .reduction = o.reduction, .weight = o.weight, .ignore_index = o.ignore_index,
                               .ignore_zero = o.ignore_zero));
}

void call_loss(vm *m)
{
        static lg_tensor *(*const table[])(lg_tensor *, lg_loss_options) = {lg_mse_, lg_l1_, lg_bce_};
        uint8_t i = byte(m) % 7;
        lg_tensor *x = tensor(m), *y = flag(m) ? fresh(m, lg_shape_of(x)) : tensor(m);
        lg_reduction r = (lg_reduction)(byte(m) % 5);
        if (i < COUNT(table))
                give(m, table[i](x, (lg_loss_options){y, r}));
        else if (i == 3)
                give(m, lg_bce_with_logits(x, y, .reduction = r, .pos_weight = maybe(m)));
        else if (i == 4)
                give(m, lg_huber(x, y, .reduction = r, .delta = number(m)));
        else if (i == 5)
                give(m, lg_smooth_l1(x, y, .reduction = r, .beta = number(m)));
        else
                give(m, lg_kl_div(x, y, .reduction = r, .log_target = flag(m)));
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
        if (flag(m))
                give(m, lg_embedding(w, index, .padding_idx = flag(m) ? size(m) : 0, .padding_zero = flag(m)));
        else
                give(m, lg_one_hot(index, size(m)));
}

void call_masked_fill(vm *m)
{
        lg_tensor *x = tensor(m), *mask = flag(m) ? lg_gt_scalar(x, 0) : tensor(m);
        m->odd = m->odd || !mask;
        give(m, lg_masked_fill(x, mask, number(m)));
}

void call_triangle(vm *m)
{
        lg_triangle_options o = {.x = tensor(m), .diagonal = size(m)};
        o.diagonal = flag(m) && o.diagonal > 0 ? -o.diagonal : o.diagonal;
        give(m, flag(m) ? lg_tril_(o) : lg_triu_(o));
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
        lg_pads p = {.count = b < 0xF0 ? b % 5 * 2 : b < 0xF8 ? b % 20 : b < 0xFC ? 1 : -2};
        for (int i = 0; i < p.count && i < 2 * LG_MAX_DIMS; i++) {
                p.pad[i] = size(m);
                p.pad[i] = p.pad[i] > 4 && p.pad[i] < 9 ? 4 - p.pad[i] : p.pad[i];
        }
        give(m, lg_pad(x, p, .value = number(m)));
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
        switch (byte(m) % 3) {
        case 0:
                give(m, lg_argsort(x, d, .descending = flag(m)));
                return;
        case 1:
                give(m, lg_sort(x, d, .descending = flag(m)));
                return;
        default:
                give_with_indices(m, lg_sort(x, d, .descending = flag(m), .indices = &indices), indices);
        }
}

void call_topk(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        int64_t k = size(m);
        int d = dim(m);
        lg_tensor *y = lg_topk(x, k, d, .smallest = flag(m), .indices = &indices);
        give_with_indices(m, y, indices);
}

void call_choose(vm *m)
{
        lg_tensor *x = tensor(m), *indices = NULL;
        lg_choose_options o = {.dim = dim(m), .keep_dim = flag(m)};
        if (flag(m)) {
                give(m, flag(m) ? lg_max_(x, o) : lg_min_(x, o));
                return;
        }
        o.indices = &indices;
        lg_tensor *y = flag(m) ? lg_max_(x, o) : lg_min_(x, o);
        give_with_indices(m, y, indices);
}
