/* calls_ops.c - calls of ops: elementwise, reductions, products, convolutions, norms, losses, indices. */
#include "vm.h"

typedef lg_tensor *unary_fn(lg_tensor *x);
typedef lg_tensor *scalar_fn(lg_tensor *x, double s);
typedef lg_tensor *binary_fn(lg_tensor *a, lg_tensor *b);
typedef lg_tensor *reduce_fn(lg_tensor *x, const lg_reduce_options *options);

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

/* A side of a pair, which is then given: i 0 is the height, 1 the width. */
static void give_side(vm *m, lg_pair *p, int i)
{
        p->given = 1;
        *(i ? &p->w : &p->h) = size(m);
}

/* Of all convolutions: each takes its own of them. */
static lg_conv_transpose2d_options conv_options(vm *m)
{
        lg_conv_transpose2d_options o = *LG_OPTIONS(lg_conv_transpose2d_options, .stride = 0);
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
        uint8_t i = byte(m) % 4;
        lg_tensor *x = tensor(m), *w;
        lg_conv_transpose2d_options o = conv_options(m);
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
        lg_conv2d_options two =
                *LG_OPTIONS(lg_conv2d_options, .stride = o.stride, .padding = o.padding, .dilation = o.dilation,
                            .groups = o.groups, .strides = o.strides, .paddings = o.paddings, .dilations = o.dilations);
        lg_conv1d_options one = *LG_OPTIONS(lg_conv1d_options, .stride = o.stride, .padding = o.padding,
                                            .dilation = o.dilation, .groups = o.groups);
        lg_conv_transpose1d_options back =
                *LG_OPTIONS(lg_conv_transpose1d_options, .stride = o.stride, .padding = o.padding,
                            .dilation = o.dilation, .groups = o.groups, .output_padding = o.output_padding);
        give(m, i == 0   ? lg_conv2d_with(x, w, b, HAND(m, two))
                : i == 1 ? lg_conv1d_with(x, w, b, HAND(m, one))
                : i == 2 ? lg_conv_transpose2d_with(x, w, b, HAND(m, o))
                         : lg_conv_transpose1d_with(x, w, b, HAND(m, back)));
}

void call_conv_volumes(vm *m)
{
        lg_tensor *x = tensor(m);
        const bool transposed = flag(m);
        const lg_conv_transpose2d_options of = conv_options(m);
        lg_conv_transpose3d_options o =
                *LG_OPTIONS(lg_conv_transpose3d_options, .stride = of.stride, .padding = of.padding,
                            .dilation = of.dilation, .groups = of.groups, .output_padding = of.output_padding);
        if (flag(m)) {
                const int64_t d = size(m), h = size(m);
                o.strides = LG_TRIPLE(d, h, size(m));
        }
        lg_conv3d_options forward = *LG_OPTIONS(lg_conv3d_options, .stride = o.stride, .padding = o.padding,
                                                .dilation = o.dilation, .groups = o.groups, .strides = o.strides);
        int64_t in = lg_size_of(x, -4), a = small(m), k = small(m);
        in = o.groups > 0 && !transposed ? in / o.groups : in;
        lg_tensor *w = flag(m) ? tensor(m)
                               : fresh(m, LG_SHAPE(transposed ? in : a, transposed ? a : in, k, small(m), small(m)));
        lg_tensor *b = flag(m) ? maybe(m) : NULL;
        give(m, transposed ? lg_conv_transpose3d_with(x, w, b, HAND(m, o)) : lg_conv3d_with(x, w, b, HAND(m, forward)));
}

void call_attention(vm *m)
{
        lg_tensor *q = tensor(m), *k, *v;
        if (flag(m)) {
                lg_shape s = lg_shape_of(q);
                s.size[s.ndim > 1 ? s.ndim - 2 : 0] = small(m);
                k = fresh(m, s);
                v = flag(m) ? k : fresh(m, s);
        } else {
                k = tensor(m);
                v = flag(m) ? k : tensor(m);
        }
        lg_attention_options o = *LG_OPTIONS(lg_attention_options, .causal = flag(m));
        uint8_t b = byte(m);
        o.offset = b & 1 ? size(m) : 0;
        o.mask = b & 2 ? maybe(m) : NULL;
        o.kv_lengths = b & 4 ? indices(m, LG_SHAPE(small(m)), small(m)) : NULL;
        o.scale = b & 8 ? number(m) : 0;
        o.softcap = b & 16 ? number(m) : 0;
        o.dropout = b & 32 ? number(m) : 0;
        o.window_left = b & 64 ? size(m) : 0;
        o.window_right = b & 128 ? size(m) : 0;
        give(m, lg_attention_with(q, k, v, HAND(m, o)));
}

/* Of all poolings: each takes its own of them. */
typedef struct pool_numbers {
        int64_t stride, padding, dilation, divisor;
        bool ceil_mode, no_count_padding;
        lg_pair kernels, strides, paddings, dilations;
} pool_numbers;

static pool_numbers pool_options(vm *m)
{
        pool_numbers o = {0};
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
        const pool_numbers o = pool_options(m);
        bool two = flag(m);
        lg_tensor **to = flag(m) ? &indices : NULL;
        lg_max_pool2d_options images =
                *LG_OPTIONS(lg_max_pool2d_options, .stride = o.stride, .padding = o.padding, .dilation = o.dilation,
                            .ceil_mode = o.ceil_mode, .kernels = o.kernels, .strides = o.strides,
                            .paddings = o.paddings, .dilations = o.dilations, .indices = to);
        lg_max_pool1d_options signals = *LG_OPTIONS(lg_max_pool1d_options, .stride = o.stride, .padding = o.padding,
                                                    .dilation = o.dilation, .ceil_mode = o.ceil_mode, .indices = to);
        lg_tensor *y =
                two ? lg_max_pool2d_with(x, kernel, HAND(m, images)) : lg_max_pool1d_with(x, kernel, HAND(m, signals));
        if (to)
                give_with_indices(m, y, indices);
        else
                give(m, y);
}

void call_avg_pool(vm *m)
{
        lg_tensor *x = tensor(m);
        int64_t kernel = size(m);
        const pool_numbers o = pool_options(m);
        lg_avg_pool2d_options images =
                *LG_OPTIONS(lg_avg_pool2d_options, .stride = o.stride, .padding = o.padding, .ceil_mode = o.ceil_mode,
                            .no_count_padding = o.no_count_padding, .divisor = o.divisor, .kernels = o.kernels,
                            .strides = o.strides, .paddings = o.paddings);
        lg_avg_pool1d_options signals = *LG_OPTIONS(lg_avg_pool1d_options, .stride = o.stride, .padding = o.padding,
                                                    .ceil_mode = o.ceil_mode, .no_count_padding = o.no_count_padding);
        give(m, flag(m) ? lg_avg_pool2d_with(x, kernel, HAND(m, images))
                        : lg_avg_pool1d_with(x, kernel, HAND(m, signals)));
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
                give(m, lg_layer_norm_with(x, shape(m), w, b, HAND(m, o)));
                return;
        case 1:
                give(m, lg_group_norm_with(x, size(m), w, b, HAND(m, o)));
                return;
        case 2:
                give(m, lg_instance_norm_with(x, w, b, HAND(m, o)));
                return;
        default:
                give(m, lg_rms_norm_with(x, shape(m), w, HAND(m, r)));
        }
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

/* Writes by index, and indexing with a list. */
void call_scatter(vm *m)
{
        lg_tensor *x = tensor(m), *src = flag(m) ? x : tensor(m);
        int d = dim(m);
        lg_tensor *index = indices(m, lg_shape_of(x), lg_size_of(x, d)),
                  *some = indices(m, LG_SHAPE(small(m)), lg_size_of(x, 0));
        lg_scatter_reduce_options r = *LG_OPTIONS(lg_scatter_reduce_options, .exclude_self = flag(m));
        lg_put_options p = *LG_OPTIONS(lg_put_options, .accumulate = flag(m));
        const lg_scatter_reduction how = (lg_scatter_reduction)(byte(m) % 6);
        switch (byte(m) % 6) {
        case 0:
                give(m, lg_scatter(x, d, index, src));
                return;
        case 1:
                give(m, lg_scatter_reduce_with(x, d, index, src, how, HAND(m, r)));
                return;
        case 2:
                give(m, lg_put_with(x, indices(m, lg_shape_of(src), lg_numel(x)), src, HAND(m, p)));
                return;
        case 3:
                give(m, lg_index(x, LG_LIST(some, flag(m) ? some : LG_ALL)));
                return;
        case 4:
                give(m, lg_index_put_with(x, LG_LIST(flag(m) ? some : lg_gt_scalar(x, 0)), src, HAND(m, p)));
                return;
        default:
                give(m, lg_index_reduce_with(x, 0, some, lg_index_select(src, 0, some), how, HAND(m, r)));
        }
}

void call_index_select(vm *m)
{
        lg_tensor *x = tensor(m);
        int d = dim(m);
        int64_t n = lg_size_of(x, d);
        lg_tensor *index = indices(m, LG_SHAPE(flag(m) ? n : small(m)), n);
        if (flag(m))
                give(m, lg_index_select(x, d, index));
        else if (flag(m))
                give(m, lg_index_copy(x, d, index, lg_index_select(x, d, index)));
        else
                give(m, lg_index_add(x, d, index, flag(m) ? x : tensor(m)));
}

void call_embedding(vm *m)
{
        lg_tensor *w = tensor(m), *index = indices(m, LG_SHAPE(small(m), small(m)), lg_size_of(w, 0));
        if (flag(m)) {
                lg_embedding_options o = *LG_OPTIONS(lg_embedding_options, .padding_idx = flag(m) ? size(m) : 0);
                o.padding_idx = flag(m) ? LG_ZERO_INT : o.padding_idx;
                lg_embedding_bag_options b = *LG_OPTIONS(lg_embedding_bag_options, .padding_idx = o.padding_idx);
                b.mode = (lg_bag_mode)(byte(m) % 3);
                give(m,
                     flag(m) ? lg_embedding_with(index, w, HAND(m, o)) : lg_embedding_bag_with(index, w, HAND(m, b)));
        } else {
                give(m, lg_one_hot(index, size(m)));
        }
}

/* Sequences and targets that may fit x of three dimensions. */
void call_ctc(vm *m)
{
        lg_tensor *x = tensor(m);
        const int64_t n = lg_ndim_of(x) == 3 ? lg_size_of(x, 1) : small(m), s = small(m);
        lg_tensor *targets = indices(m, flag(m) ? LG_SHAPE(n, s) : LG_SHAPE(n), lg_size_of(x, -1));
        lg_tensor *times = indices(m, LG_SHAPE(n), lg_size_of(x, 0) + 1), *lengths = indices(m, LG_SHAPE(n), s + 1);
        lg_ctc_options o = *LG_OPTIONS(lg_ctc_options, .reduction = (lg_reduction)(byte(m) % 4), .blank = byte(m) % 3);
        o.zero_infinity = flag(m);
        give(m, lg_ctc_with(x, targets, times, lengths, HAND(m, o)));
}

/* Tables that fit x: parts of x itself. */
void call_rotary(vm *m)
{
        lg_tensor *x = tensor(m);
        const int64_t pairs = lg_size_of(x, -1) / 2;
        lg_rotary_options o = *LG_OPTIONS(lg_rotary_options, .interleaved = flag(m), .dims = flag(m) ? 2 * pairs : 0);
        lg_tensor *cos = lg_slice(x, -1, 0, pairs), *sin = flag(m) ? cos : lg_slice(x, -1, pairs, 2 * pairs);
        give(m, lg_rotary_with(x, cos, sin, HAND(m, o)));
}

/* x, seldom of another number of dimensions, with sizes or scales that may fit. */
void call_interpolate(vm *m)
{
        lg_tensor *x = tensor(m);
        const uint8_t way = byte(m);
        const int64_t sizes[] = {size(m), size(m), size(m)};
        const double scales[] = {number(m), number(m), number(m)};
        lg_interpolate_options o = *LG_OPTIONS(lg_interpolate_options, .mode = (lg_interpolate_mode)(byte(m) % 8));
        while (x && lg_ndim_of(x) < 3 + way % 3 && !lg_error(m->now->ctx))
                x = lg_unsqueeze(x, 0);
        if (way & 8)
                o.size = LG_INTS_OF(way & 64 ? 1 : 1 + way % 3, sizes);
        else if (way & 16)
                o.scales = LG_NUMBERS_OF(1 + way % 3, scales);
        if (!(way & 24) || way > 250)
                o.scale = flag(m) ? small(m) / 2.0 : number(m);
        o.align_corners = way & 32 && flag(m);
        o.antialias = flag(m) && flag(m);
        o.recompute_scale_factor = flag(m) && flag(m);
        give(m, lg_interpolate_with(x, HAND(m, o)));
}

/* Points that x itself or another tensor names. */
void call_grid_sample(vm *m)
{
        lg_tensor *x = tensor(m), *grid = tensor(m);
        lg_grid_sample_options o = *LG_OPTIONS(lg_grid_sample_options, .mode = (lg_grid_mode)(byte(m) % 4),
                                               .padding_mode = (lg_grid_padding)(byte(m) % 4));
        o.align_corners = flag(m);
        if (flag(m))
                grid = fresh(m, LG_SHAPE(lg_size_of(x, 0), small(m), small(m), lg_ndim_of(x) - 2));
        give(m, lg_grid_sample_with(x, grid, HAND(m, o)));
}

void call_affine_grid(vm *m)
{
        const int64_t n = small(m);
        lg_affine_grid_options o = *LG_OPTIONS(lg_affine_grid_options, .align_corners = flag(m));
        lg_tensor *theta = flag(m) ? fresh(m, LG_SHAPE(n, 2, 3)) : tensor(m);
        give(m, lg_affine_grid_with(theta, LG_SHAPE(n, 1, small(m), small(m)), HAND(m, o)));
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

/* Equations of the letters i to l, most of them right, and seldom of other characters. */
void call_einsum(vm *m)
{
        lg_tensor *room[4] = {NULL};
        lg_list operands = list(m, room);
        char equation[80], *to = equation;
        const bool odd = byte(m) > 240;
        for (int64_t i = 0; i < operands.count && i < 4; i++) {
                if (i)
                        *to++ = ',';
                for (int d = 0; d < lg_ndim_of(operands.items[i]); d++)
                        *to++ = (char)('i' + byte(m) % 4);
        }
        for (int i = 0, n = odd ? byte(m) % 8 : 0; i < n; i++)
                *to++ = "i.-> ,Z7"[byte(m) % 8];
        if (flag(m)) {
                *to++ = '-', *to++ = '>';
                for (int i = 0, given = byte(m); i < 4; i++)
                        if (given >> i & 1)
                                *to++ = (char)('i' + i);
        }
        *to = '\0';
        give(m, lg_einsum(equation, operands));
}

void call_grids(vm *m)
{
        lg_tensor *room[4] = {NULL}, *ret[4] = {NULL};
        lg_list tensors = list(m, room);
        const int64_t places = byte(m) % 5;
        lg_meshgrid_options o = *LG_OPTIONS(lg_meshgrid_options, .xy = flag(m));
        const int64_t got = flag(m) ? lg_meshgrid_with(tensors, ret, places, HAND(m, o))
                                    : lg_broadcast_tensors(tensors, ret, places);
        FUZZ_CHECK(got == 0 || got == tensors.count, "%lld views of %lld", (long long)got, (long long)tensors.count);
        for (int64_t i = 0; i < got; i++)
                give_read(m, ret[i]);
}

/* Factors that fit each other. */
void call_products(vm *m)
{
        const int64_t n = small(m), rows = small(m), k = small(m), columns = small(m);
        lg_tensor *x = flag(m) ? fresh(m, LG_SHAPE(columns)) : maybe(m);
        if (flag(m)) {
                lg_tensor *w = fresh(m, LG_SHAPE(columns, rows, k));
                give(m, lg_bilinear(fresh(m, LG_SHAPE(n, rows)), fresh(m, LG_SHAPE(n, k)), w, x));
        } else {
                lg_addmm_options o = *LG_OPTIONS(lg_addmm_options, .beta = number(m), .alpha = number(m));
                lg_tensor *a = fresh(m, LG_SHAPE(n, rows, k));
                give(m, lg_baddbmm_with(x, a, fresh(m, LG_SHAPE(n, k, columns)), HAND(m, o)));
        }
}

/* Factors of a matrix, or batch, of any kind; any of the results may not be wanted. */
void call_factors(vm *m)
{
        lg_tensor *a = flag(m) ? tensor(m) : fresh(m, LG_SHAPE(small(m), small(m), small(m))), *out[3] = {NULL};
        const uint8_t b = byte(m);
        lg_tensor **ret[3];
        for (int i = 0; i < 3; i++)
                ret[i] = b >> i & 1 ? &out[i] : NULL;
        const bool option = b & 8;
        const bool ok = b >> 4 & 1   ? lg_qr(a, ret[0], ret[1], .complete = option)
                        : b >> 5 & 1 ? lg_eigh(a, ret[0], ret[1], .upper = option)
                                     : lg_svd(a, ret[0], ret[1], ret[2], .full = option);
        check_done(m, ok);
        for (int i = 0; i < 3; i++)
                if (out[i])
                        give(m, out[i]);
}

/* The factor of a positive definite matrix, and the way from a signal to its frames and back. */
void call_signals(vm *m)
{
        const int64_t n = 1 + small(m) % 6;
        if (flag(m)) {
                lg_tensor *a = fresh(m, LG_SHAPE(2, n, n));
                lg_tensor *sum = lg_add(lg_matmul(a, lg_transpose(a, -1, -2)), lg_eye(m->now->ctx, n, n));
                give(m, lg_cholesky(sum, .upper = flag(m)));
                return;
        }
        lg_tensor *frames = lg_stft(fresh(m, LG_SHAPE(2, 20)), n, .hop = 1 + small(m) % 3, .two_sided = flag(m));
        give(m, lg_istft(frames, n, .hop = 1 + small(m) % 3, .length = small(m), .two_sided = flag(m)));
}
