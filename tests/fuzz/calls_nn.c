/* calls_nn.c - calls of modules: layers, trees of modules, forward, parameters. */
#include "vm.h"

/* A new module becomes a root. */
static void take(vm *m, lg_module *a)
{
        check_done(m, a != NULL);
        if (a)
                PUT(m, m->now->modules, a);
}

/* What has a parent now is no root any more. */
static void forget(vm *m, const lg_module *a)
{
        for (int i = 0; i < MODULES; i++)
                if (m->now->modules[i] == a)
                        m->now->modules[i] = NULL;
}

void call_layer(vm *m)
{
        lg_ctx *c = m->now->ctx;
        int64_t in = size(m), out;
        bool padded;
        lg_embedding_layer_options e = *LG_OPTIONS(lg_embedding_layer_options, .padding_idx = 0);
        lg_prelu_layer_options p = *LG_OPTIONS(lg_prelu_layer_options, .dtype = LG_DTYPE_NONE);
        lg_linear_options l = *LG_OPTIONS(lg_linear_options, .no_bias = false);
        switch (byte(m) % 8) {
        case 0:
                take(m, lg_nn_dropout(c, number(m)));
                return;
        case 1:
                out = size(m);
                padded = flag(m);
                e.padding_idx = size(m);
                e.padding_idx = !padded ? 0 : e.padding_idx ? e.padding_idx : LG_ZERO_INT;
                take(m, lg_nn_embedding_with(c, in, out, HAND(m, e)));
                return;
        case 2:
                take(m, flag(m) ? lg_nn_flatten(c) : lg_nn_parameter_list(c));
                return;
        case 3:
                p.dtype = float_dtype(m);
                p.device = device(m);
                take(m, lg_nn_prelu_with(c, in, HAND(m, p)));
                return;
        case 4:
                take(m, lg_nn_multihead_attention(c, in, size(m), .kv_heads = size(m), .batch_first = flag(m),
                                                  .add_bias_kv = flag(m), .add_zero_attn = flag(m)));
                return;
        case 6:
                out = size(m);
                take(m, flag(m) ? lg_nn_bilinear_with(c, in, in, out, HAND(m, l))
                                : lg_nn_adaptive_log_softmax(c, in, out, LG_INTS(size(m), size(m)),
                                                             .div_value = number(m), .head_bias = flag(m)));
                return;
        case 5:
                take(m, lg_nn_lstm(c, in, size(m), .layers = size(m) % 4, .batch_first = flag(m),
                                   .bidirectional = flag(m)));
                return;
        default:
                out = size(m);
                l.no_bias = flag(m);
                l.dtype = float_dtype(m);
                l.device = device(m);
                take(m, lg_nn_linear_with(c, in, out, HAND(m, l)));
        }
}

void call_conv_layer(vm *m)
{
        uint8_t i = byte(m) % 3, b = byte(m);
        int64_t in = size(m), out = size(m), kernel = size(m);
        lg_conv_transpose2d_layer_options o = *LG_OPTIONS(lg_conv_transpose2d_layer_options, .no_bias = b & 1);
        o.stride = b & 2 ? size(m) : 0;
        o.padding = b & 4 ? size(m) : 0;
        o.dilation = b & 8 ? size(m) : 0;
        o.groups = b & 16 ? size(m) : 0;
        o.output_padding = b & 32 ? size(m) : 0;
        if (b >= 0xC0) {
                int64_t h = size(m), up = size(m), w = size(m);
                o.kernels = LG_PAIR(h, w);
                o.paddings = LG_PAIR(up, size(m));
        }
        lg_conv2d_layer_options two =
                *LG_OPTIONS(lg_conv2d_layer_options, .stride = o.stride, .padding = o.padding, .dilation = o.dilation,
                            .groups = o.groups, .no_bias = o.no_bias, .kernels = o.kernels, .paddings = o.paddings);
        lg_conv1d_layer_options one = *LG_OPTIONS(lg_conv1d_layer_options, .stride = o.stride, .padding = o.padding,
                                                  .dilation = o.dilation, .groups = o.groups, .no_bias = o.no_bias);
        take(m, i == 0   ? lg_nn_conv2d_with(m->now->ctx, in, out, kernel, HAND(m, two))
                : i == 1 ? lg_nn_conv1d_with(m->now->ctx, in, out, kernel, HAND(m, one))
                         : lg_nn_conv_transpose2d_with(m->now->ctx, in, out, kernel, HAND(m, o)));
}

void call_pool_layer(vm *m)
{
        lg_ctx *c = m->now->ctx;
        int64_t kernel = size(m);
        const int64_t stride = size(m), padding = size(m);
        lg_max_pool2d_layer_options o = *LG_OPTIONS(lg_max_pool2d_layer_options, .stride = stride, .padding = padding);
        lg_avg_pool2d_options v = *LG_OPTIONS(lg_avg_pool2d_options, .stride = stride, .padding = padding);
        lg_adaptive_avg_pool2d_options a = *LG_OPTIONS(lg_adaptive_avg_pool2d_options, .sizes = {.given = 0});
        switch (byte(m) % 3) {
        case 0:
                take(m, lg_nn_max_pool2d_with(c, kernel, HAND(m, o)));
                return;
        case 1:
                take(m, lg_nn_avg_pool2d_with(c, kernel, HAND(m, v)));
                return;
        default:
                take(m, lg_nn_adaptive_avg_pool2d_with(c, kernel, HAND(m, a)));
        }
}

void call_norm_layer(vm *m)
{
        lg_ctx *c = m->now->ctx;
        uint8_t i = byte(m) % 5;
        lg_batch_norm_layer_options b = *LG_OPTIONS(lg_batch_norm_layer_options, .no_affine = flag(m),
                                                    .no_running = flag(m), .dtype = float_dtype(m));
        lg_layer_norm_layer_options n = *LG_OPTIONS(lg_layer_norm_layer_options, .no_affine = b.no_affine,
                                                    .no_bias = b.no_running, .dtype = b.dtype);
        lg_rms_norm_layer_options r =
                *LG_OPTIONS(lg_rms_norm_layer_options, .no_affine = b.no_affine, .dtype = b.dtype);
        lg_group_norm_layer_options g = *LG_OPTIONS(lg_group_norm_layer_options, .no_affine = b.no_affine);
        int64_t channels = i < 3 ? size(m) : 0;
        lg_shape s = i < 3 ? LG_SHAPE_0D : shape(m);
        switch (i) {
        case 0:
                take(m, lg_nn_batch_norm1d_with(c, channels, HAND(m, b)));
                return;
        case 1:
                take(m, lg_nn_batch_norm2d_with(c, channels, HAND(m, b)));
                return;
        case 2:
                take(m, lg_nn_group_norm_with(c, size(m), channels, HAND(m, g)));
                return;
        case 3:
                take(m, lg_nn_layer_norm_with(c, s, HAND(m, n)));
                return;
        default:
                take(m, lg_nn_rms_norm_with(c, s, HAND(m, r)));
        }
}

void call_activation_layer(vm *m)
{
        static lg_module *(*const plain[])(lg_ctx *) = {
                lg_nn_relu,       lg_nn_relu6,    lg_nn_selu,        lg_nn_gelu,        lg_nn_gelu_tanh,
                lg_nn_silu,       lg_nn_mish,     lg_nn_sigmoid,     lg_nn_log_sigmoid, lg_nn_tanh,
                lg_nn_tanhshrink, lg_nn_softsign, lg_nn_hardsigmoid, lg_nn_hardswish,   lg_nn_identity};
        static lg_module *(*const scalar[])(lg_ctx *, double) = {lg_nn_leaky_relu, lg_nn_elu, lg_nn_celu,
                                                                 lg_nn_hardshrink, lg_nn_softshrink};
        static lg_module *(*const pair[])(lg_ctx *, double, double) = {lg_nn_hardtanh, lg_nn_softplus};
        static lg_module *(*const along[])(lg_ctx *, int) = {lg_nn_softmax, lg_nn_log_softmax, lg_nn_glu};
        lg_ctx *c = m->now->ctx;
        size_t i = byte(m) % (COUNT(plain) + COUNT(scalar) + COUNT(pair) + COUNT(along));
        if (i < COUNT(plain)) {
                take(m, plain[i](c));
        } else if ((i -= COUNT(plain)) < COUNT(scalar)) {
                take(m, scalar[i](c, number(m)));
        } else if ((i -= COUNT(scalar)) < COUNT(pair)) {
                double a = number(m);
                take(m, pair[i](c, a, number(m)));
        } else {
                take(m, along[i - COUNT(pair)](c, dim(m)));
        }
}

static lg_tensor *own_module(lg_module *a, lg_list in, void *user)
{
        vm *m = ((debt *)user)->m;
        mischief(m, lg_module_ctx(a));
        lg_tensor *x = in.count ? in.items[0] : NULL;
        for (int i = 0; i < lg_child_count(a) && x && i < 4; i++)
                x = lg_forward(lg_child(a, i), x);
        switch (byte(m) % 6) {
        case 1:
                return NULL;
        case 2:
                return tensor(m);
        case 3:
                return lg_exp(x);
        case 4:
                lg_free(x);
                return x;
        default:
                return x;
        }
}

static void *clone_own(lg_module *copy, void *user)
{
        vm *m = ((debt *)user)->m;
        mischief(m, lg_module_ctx(copy));
        debt *d = byte(m) < 0xE0 ? owe(m, 0) : NULL;
        if (d)
                d->ctx = lg_module_ctx(copy);
        return d;
}

static void make_own(vm *m, const char *type, lg_forward_fn *forward, lg_forward_all_fn *forward_all)
{
        debt *d = owe(m, 0);
        lg_module_options o = *LG_OPTIONS(lg_module_options, .forward = forward, .forward_all = forward_all, .user = d);
        o.release = release;
        o.clone = clone_own;
        take(m, lg_nn_module_with(m->now->ctx, type, HAND_WITH(m, o, release)));
        if (m->unread)
                forgive(d);
}

void call_own_module(vm *m)
{
        uint8_t b = byte(m);
        make_own(m, b == 0xFF ? NULL : b == 0xFE ? "" : "Own", b == 0xFD ? NULL : own_module, NULL);
}

static bool own_module_all(lg_module *a, lg_list in, lg_outputs *out, void *user)
{
        vm *m = ((debt *)user)->m;
        mischief(m, lg_module_ctx(a));
        uint8_t b = byte(m);
        out->count = b < 0xF0 ? b % 4 : b % 16 - 4;
        for (int64_t i = 0; i < out->count && i < LG_MAX_OUTPUTS; i++) {
                lg_tensor *x = in.count ? in.items[i % in.count] : NULL;
                uint8_t how = byte(m) % 4;
                out->items[i] = how == 0 ? x : how == 1 ? lg_neg(x) : how == 2 ? tensor(m) : out->items[i / 2];
        }
        return b != 0xFF;
}

void call_own_module_all(vm *m)
{
        lg_forward_fn *forward = byte(m) > 0xF0 ? own_module : NULL;
        make_own(m, "All", forward, own_module_all);
}

void call_forward_all(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *x = tensor(m);
        uint8_t b = byte(m);
        /* A program with another header knows fewer results, or more. */
        const size_t known = b < 0x80 ? sizeof(lg_outputs) : sizeof(int64_t) + b % 16 * sizeof(lg_tensor *);
        lg_outputs *out = calloc(1, known);
        FUZZ_CHECK(out, "no memory");
        bool ok = b == 0xFF ? lg_forward_all_list(a, NULL, known, LG_ARRAY(lg_tensor, x, ))
                  : b & 1   ? lg_forward_all_list(a, out, known, LG_ARRAY(lg_tensor, x, tensor(m), ))
                            : lg_forward_all_list(a, out, known, LG_ARRAY(lg_tensor, x, ));
        check_done(m, ok);
        FUZZ_CHECK(ok ? out->count >= 1 && out->count <= LG_MAX_OUTPUTS : out->count == 0, "%lld results",
                   (long long)out->count);
        for (int64_t i = 0; i < out->count && sizeof out->count + (size_t)i * sizeof x < known; i++)
                give_read(m, out->items[i]);
        free(out);
}

void call_sequential(vm *m)
{
        lg_ctx *c = m->now->ctx;
        lg_module *a = PICK(m, m->now->modules), *b = flag(m) ? PICK(m, m->now->modules) : module(m), *s;
        uint8_t i = byte(m) % 4;
        m->odd = m->odd || !a || !b;
        if (i == 0)
                s = lg_nn_sequential(c, a, b);
        else if (i == 1)
                s = lg_nn_module_list(c, a, b);
        else if (i == 2)
                s = lg_nn_sequential(c, b = a);
        else
                s = lg_nn_module_list(c), a = b = NULL;
        if (s) {
                forget(m, a);
                forget(m, b);
        }
        take(m, s);
}

void call_residual(vm *m)
{
        lg_module *a = PICK(m, m->now->modules), *b = flag(m) ? PICK(m, m->now->modules) : NULL;
        m->odd = m->odd || !a;
        lg_residual_options o = *LG_OPTIONS(lg_residual_options, .shortcut = b);
        const lg_residual_options *handed = HAND_WITH(m, o, shortcut);
        lg_module *r = lg_nn_residual_with(m->now->ctx, a, handed);
        if (r) {
                forget(m, a);
                forget(m, b);
        }
        take(m, r);
}

static const char *name(vm *m)
{
        static const char *const names[] = {"a",
                                            "b",
                                            "weight",
                                            "0",
                                            "1",
                                            "bias",
                                            "running_mean",
                                            "",
                                            "a.b",
                                            "0.weight",
                                            "0.0",
                                            "\xff%s",
                                            "0123456789012345678901234567890123456789012345678901234567890123"};
        uint8_t b = byte(m);
        return b == 0xFF ? NULL : names[b % COUNT(names)];
}

void call_module_add(vm *m)
{
        const side *other = &m->sides[m->now == m->sides];
        lg_module *to = module(m);
        uint8_t b = byte(m);
        lg_module *child = b >= 0xF0 ? other->modules[b % MODULES] : m->now->modules[b % MODULES];
        child = flag(m) ? child : module(m);
        m->odd = m->odd || !child;
        bool done = flag(m) ? lg_module_append(to, child) : lg_module_add(to, name(m), child);
        check_done(m, done);
        if (done)
                forget(m, child);
}

void call_module_parameter(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *t = tensor(m);
        switch (byte(m) % 3) {
        case 0:
                give(m, lg_module_append_parameter(a, t));
                return;
        case 1:
                give(m, lg_module_add_parameter(a, name(m), t));
                return;
        default:
                give(m, lg_module_add_buffer(a, name(m), t));
        }
}

void call_forward(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *x = tensor(m);
        give(m, byte(m) < 0xF0 ? lg_forward(a, x)
                : flag(m)      ? lg_forward(a, x, tensor(m))
                               : lg_forward_list(a, (lg_tensor *const[]){LG_END}));
}

/* With parameters of its own, a copy of them that is in the graph, or any tensors. */
void call_forward_params(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *x = tensor(m), *room[4];
        lg_list own = lg_parameters(a), params = own;
        uint8_t b = byte(m) % 4;
        if (b == 1)
                params = list(m, room);
        for (int64_t i = 0; b > 1 && i < own.count && i < 4; i++) {
                room[i] = b == 2 ? lg_mul_scalar(own.items[i], number(m)) : own.items[i];
                params = LG_LIST_OF(i + 1, room);
        }
        m->odd = m->odd || !params.count;
        give(m, flag(m) ? lg_forward_params(a, params, x, tensor(m)) : lg_forward_params(a, params, x));
}

/* A module that runs again in the backward, by itself or by groups of its children. */
void call_recompute(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *x = tensor(m);
        uint8_t b = byte(m) % 4;
        if (b == 0)
                check_done(m, lg_recompute_every(a, size(m)));
        else
                give(m, b == 1 ? lg_recompute(a, x, tensor(m)) : lg_recompute(a, x));
}

/* Layers that fit their input, by the calls of their own. */
void call_run_module(vm *m)
{
        lg_ctx *c = m->now->ctx;
        lg_tensor *x = tensor(m), *h = NULL;
        const int64_t in = lg_ndim_of(x) > 0 ? lg_size_of(x, -1) : 1;
        const bool causal = flag(m);
        lg_module *a;
        switch (byte(m) % 3) {
        case 0:
                take(m, a = lg_nn_gru(c, in, 2, .bidirectional = causal));
                give(m, lg_run_rnn(a, x, .h = &h));
                break;
        case 1:
                take(m, a = lg_nn_multihead_attention(c, in, 1));
                give(m, lg_run_attention(a, x, x, x, .causal = causal));
                break;
        default:
                take(m, a = lg_nn_transformer_encoder_layer(c, in, 1, .feedforward = 2));
                give(m, lg_run_encoder(a, x, .causal = causal));
        }
}

void call_train(vm *m)
{
        lg_module *a = module(m);
        lg_train(a, flag(m));
        lg_is_training(a);
}

void call_module_to(vm *m)
{
        lg_module *a = module(m);
        check_done(m, lg_module_to(a, device(m)));
}

static void on_parameter(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)is_buffer;
        FUZZ_CHECK(path && *path && lg_ctx_of(t), "a parameter without a path");
        give_read(user, t);
}

void call_module_facts(vm *m)
{
        static const char *const patterns[] = {"*", "*.bias", "!*.bias", "0.*", "[", "", "!", "weight", "\\"};
        lg_module *a = module(m);
        uint8_t b = byte(m);
        lg_list l = lg_parameters(a);
        if (l.count)
                give_read(m, l.items[byte(m) % l.count]);
        lg_parameters_matching(a, b == 0xFF ? NULL : patterns[b % COUNT(patterns)]);
        give_read(m, lg_parameter(a, name(m)));
        give_read(m, lg_buffer(a, name(m)));
        const char *path = name(m);
        const bool there = lg_has_child(a, path), good = !lg_error(m->now->ctx);
        FUZZ_CHECK((lg_child_named(a, path) != NULL) == there || !good, "lg_has_child is wrong");
        lg_child(a, dim(m));
        lg_each_tensor(a, on_parameter, m);
        lg_module_type(a);
        FUZZ_CHECK(!a || lg_module_ctx(a) == m->now->ctx, "a module of no context");
        FUZZ_CHECK(lg_parameter_numel(a) >= 0, "fewer than no parameters");
}

void call_module_print(vm *m)
{
        lg_module *a = module(m);
        m->depth++; /* own modules run in here: their callbacks stay shallow */
        bool memory = !flag(m);
        lg_module_print_options o = *LG_OPTIONS(lg_module_print_options, .input = shape(m));
        lg_tensor *room[4];
        if (o.input.ndim == 7)
                o.inputs = list(m, room);
        const lg_module_print_options *handed = HAND(m, o);
        if (memory)
                lg_module_print_memory_with(m->nowhere, a, handed);
        else
                lg_module_print_with(m->nowhere, a, handed);
        m->depth--;
}

void call_freeze(vm *m)
{
        lg_module *a = module(m);
        check_done(m, lg_freeze(a, flag(m)));
}

void call_init(vm *m)
{
        lg_tensor *t = tensor(m);
        uint8_t i = byte(m) % 9;
        double a = flag(m) ? number(m) : 0, b = flag(m) ? number(m) : 1;
        lg_init_xavier_options x = *LG_OPTIONS(lg_init_xavier_options, .gain = a);
        lg_init_orthogonal_options o = *LG_OPTIONS(lg_init_orthogonal_options, .gain = a);
        lg_init_kaiming_options k =
                *LG_OPTIONS(lg_init_kaiming_options, .gain = a, .slope = b, .fan_out = i < 5 && flag(m));
        if (i < 2)
                check_done(m, (i ? lg_init_xavier_normal_with : lg_init_xavier_uniform_with)(t, HAND(m, x)));
        else if (i < 4)
                check_done(m, (i == 3 ? lg_init_kaiming_normal_with : lg_init_kaiming_uniform_with)(t, HAND(m, k)));
        else if (i == 4)
                check_done(m, lg_init_orthogonal_with(t, HAND(m, o)));
        else if (i == 5)
                check_done(m, lg_init_constant(t, a));
        else if (i == 6)
                check_done(m, lg_init_uniform(t, a, b));
        else if (i == 7)
                check_done(m, lg_init_normal(t, a, b));
        else {
                const double low = number(m);
                check_done(m, lg_init_trunc_normal(t, a, b, low, number(m)));
        }
}

void call_module_free(vm *m)
{
        lg_module *a = module(m);
        for (int i = 0; i < MODULES; i++)
                if (m->now->modules[i] == a)
                        m->now->modules[i] = NULL;
        lg_module_free(a); /* of a child: an error */
}
