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
        int64_t in = size(m);
        switch (byte(m) % 6) {
        case 0:
                take(m, lg_nn_dropout(c, number(m)));
                return;
        case 1:
                take(m, lg_nn_embedding(c, in, size(m), .padding = flag(m), .padding_idx = size(m)));
                return;
        case 2:
                take(m, lg_nn_flatten(c));
                return;
        case 3:
                take(m, lg_nn_prelu(c, in, .dtype = float_dtype(m), .device = device(m)));
                return;
        default:
                take(m, lg_nn_linear(c, in, size(m), .no_bias = flag(m), .dtype = float_dtype(m), .device = device(m)));
        }
}

void call_conv_layer(vm *m)
{
        static lg_module *(*const table[])(lg_ctx *, int64_t, int64_t, lg_conv_layer_options) = {
                lg_nn_conv2d_, lg_nn_conv1d_, lg_nn_conv_transpose2d_};
        uint8_t i = byte(m), b = byte(m);
        int64_t in = size(m), out = size(m);
        lg_conv_layer_options o = {.kernel = size(m), .no_bias = b & 1};
        o.stride = b & 2 ? size(m) : 0;
        o.padding = b & 4 ? size(m) : 0;
        o.dilation = b & 8 ? size(m) : 0;
        o.groups = b & 16 ? size(m) : 0;
        o.output_padding = b & 32 ? size(m) : 0;
        for (int k = 0; k < 2 && b >= 0xC0; k++) {
                o.kernels[k] = size(m);
                o.paddings[k] = size(m);
        }
        take(m, table[i % COUNT(table)](m->now->ctx, in, out, o));
}

void call_pool_layer(vm *m)
{
        lg_ctx *c = m->now->ctx;
        lg_pool_options o = {.kernel = size(m), .stride = size(m), .padding = size(m)};
        switch (byte(m) % 3) {
        case 0:
                take(m, lg_nn_max_pool2d_(c, o));
                return;
        case 1:
                take(m, lg_nn_avg_pool2d_(c, o));
                return;
        default:
                take(m, lg_nn_adaptive_avg_pool2d(c, o.kernel));
        }
}

void call_norm_layer(vm *m)
{
        lg_ctx *c = m->now->ctx;
        uint8_t i = byte(m) % 5;
        lg_batch_norm_layer_options b = {.no_affine = flag(m), .no_running = flag(m), .dtype = float_dtype(m)};
        lg_norm_layer_options n = {.no_affine = b.no_affine, .no_bias = b.no_running, .dtype = b.dtype};
        if (i < 3)
                b.channels = size(m);
        else
                n.shape = shape(m);
        switch (i) {
        case 0:
                take(m, lg_nn_batch_norm1d_(c, b));
                return;
        case 1:
                take(m, lg_nn_batch_norm2d_(c, b));
                return;
        case 2:
                take(m, lg_nn_group_norm(c, size(m), b.channels, .no_affine = b.no_affine));
                return;
        case 3:
                take(m, lg_nn_layer_norm_(c, n));
                return;
        default:
                take(m, lg_nn_rms_norm_(c, n));
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
        static lg_module *(*const along[])(lg_ctx *, int) = {lg_nn_softmax, lg_nn_log_softmax};
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

void call_own_module(vm *m)
{
        uint8_t b = byte(m);
        debt *d = owe(m, 0);
        take(m, lg_nn_module(m->now->ctx,
                             b == 0xFF   ? NULL
                             : b == 0xFE ? ""
                                         : "Own",
                             b == 0xFD ? NULL : own_module, .user = d, .release = release));
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
        lg_module *r = lg_nn_residual(m->now->ctx, a, .shortcut = b);
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
        give(m, flag(m) ? lg_module_add_parameter(a, name(m), t) : lg_module_add_buffer(a, name(m), t));
}

void call_forward(vm *m)
{
        lg_module *a = module(m);
        lg_tensor *x = tensor(m);
        give(m, byte(m) < 0xF0 ? lg_forward(a, x) : flag(m) ? lg_forward(a, x, tensor(m)) : lg_forward(a));
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
        lg_child_named(a, name(m));
        lg_child(a, dim(m));
        lg_each_parameter(a, on_parameter, m);
        lg_module_type(a);
        FUZZ_CHECK(!a || lg_module_ctx(a) == m->now->ctx, "a module of no context");
        FUZZ_CHECK(lg_parameter_count(a) >= 0, "fewer than no parameters");
}

void call_module_print(vm *m)
{
        lg_module *a = module(m);
        m->depth++; /* own modules run in here: their callbacks stay shallow */
        if (flag(m))
                lg_module_print(m->nowhere, a, shape(m));
        else
                lg_module_print_memory(m->nowhere, a, shape(m));
        m->depth--;
}

void call_freeze(vm *m)
{
        lg_module *a = module(m);
        check_done(m, lg_freeze(a, flag(m)));
}

void call_init(vm *m)
{
        static bool (*const table[])(lg_init_options) = {lg_init_xavier_uniform_, lg_init_xavier_normal_,
                                                         lg_init_kaiming_uniform_, lg_init_kaiming_normal_,
                                                         lg_init_orthogonal_};
        lg_tensor *t = tensor(m);
        uint8_t i = byte(m) % 9;
        double a = flag(m) ? number(m) : 0, b = flag(m) ? number(m) : 1;
        if (i < COUNT(table))
                check_done(m, table[i]((lg_init_options){t, a, b, flag(m)}));
        else if (i == 5)
                check_done(m, lg_init_constant(t, a));
        else if (i == 6)
                check_done(m, lg_init_uniform(t, a, b));
        else if (i == 7)
                check_done(m, lg_init_normal(t, a, b));
        else
                check_done(m, lg_init_trunc_normal(t, a, b, number(m), number(m)));
}

void call_module_free(vm *m)
{
        lg_module *a = module(m);
        for (int i = 0; i < MODULES; i++)
                if (m->now->modules[i] == a)
                        m->now->modules[i] = NULL;
        lg_module_free(a); /* of a child: an error */
}
