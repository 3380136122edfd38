/* test_epilogues.c - what follows a layer and is done in the same pass: a residual and ReLU after batch norm, ReLU
 * after linear and convolution, batch norm in evaluation; by the functions' options and by modules that see what comes
 * behind them.
 */
#include "test.h"

/* ---- the option of batch norm ---- */

enum { LEAVES = 4 }; /* x, w, b, residual */
typedef struct shapes {
        lg_shape x;
        bool residual, relu, training;
} shapes;

/* Values and gradients of batch norm with its epilogue, done in one pass or by three functions. */
typedef struct outcome {
        lg_tensor *y, *grad[LEAVES], *mean, *var;
} outcome;

static outcome compute(lg_ctx *c, const shapes *s, lg_tensor *const leaf[LEAVES], bool in_one)
{
        const lg_shape channels = LG_SHAPE(s->x.size[1]);
        const lg_dtype dtype = lg_dtype_of(leaf[0]);
        outcome o = {.mean = lg_full(c, channels, 0.25, .dtype = dtype),
                     .var = lg_full(c, channels, 1.5, .dtype = dtype)};
        lg_tensor *z = s->residual ? leaf[3] : NULL;
        if (in_one) {
                o.y = lg_batch_norm(leaf[0], leaf[1], leaf[2], .running_mean = o.mean, .running_var = o.var,
                                    .training = s->training, .residual = z, .relu = s->relu);
        } else {
                o.y = lg_batch_norm(leaf[0], leaf[1], leaf[2], .running_mean = o.mean, .running_var = o.var,
                                    .training = s->training);
                o.y = z ? lg_add(o.y, z) : o.y;
                o.y = s->relu ? lg_relu(o.y) : o.y;
        }
        lg_tensor *g = lg_sin(lg_reshape(lg_arange(c, 0, (double)lg_numel(leaf[0]), 1, .dtype = dtype), s->x));
        lg_backward(o.y, .grad = g);
        for (int i = 0; i < LEAVES; i++) {
                lg_tensor *grad = i < 3 || z ? lg_grad_of(leaf[i]) : NULL;
                o.grad[i] = grad ? lg_contiguous(lg_mul_scalar(grad, 1)) : NULL;
                lg_clear_grad(leaf[i]);
        }
        return o;
}

static lg_tensor *leaf_of(lg_tensor *t)
{
        return lg_set_requires_grad(lg_detach(t), true);
}

TEST_CASE(the_same_in_one_pass)
{
        lg_ctx *c = open_ctx();
        const lg_shape sizes[] = {LG_SHAPE(7, 3),         LG_SHAPE(2, 5, 9),      LG_SHAPE(3, 64, 5, 7),
                                  LG_SHAPE(2, 600, 2, 2), LG_SHAPE(40, 16, 6, 6), LG_SHAPE(2, 2, 2, 2, 2)};
        for (int i = 0; i < 6 * 8; i++) {
                const shapes s = {sizes[i / 8], i & 1, i & 2, i & 4};
                const lg_dtype dtype = i % 16 < 8 ? LG_F32 : LG_F64;
                lg_scope scope = lg_scope_begin(c);
                const lg_shape channels = LG_SHAPE(s.x.size[1]);
                lg_tensor *x = lg_normal(c, 1, 2, s.x, .dtype = dtype);
                lg_tensor *leaf[LEAVES] = {leaf_of(x), leaf_of(lg_normal(c, 0, 1, channels, .dtype = dtype)),
                                           leaf_of(lg_normal(c, 0, 1, channels, .dtype = dtype)),
                                           leaf_of(lg_normal(c, 0, 1, s.x, .dtype = dtype))};
                outcome one = compute(c, &s, leaf, true), three = compute(c, &s, leaf, false);
                assert_ok(c);
                assert_same_bits(one.y, three.y);
                assert_same_bits(one.mean, three.mean);
                assert_same_bits(one.var, three.var);
                for (int k = 0; k < (s.residual ? 4 : 3); k++)
                        assert_same_bits(one.grad[k], three.grad[k]);
                lg_scope_end(c, scope);
        }
        assert_ok(c);
        lg_close(c);
}

/* Rounded once: not after the norm, and not after the sum. */
TEST_CASE(sixteen_bits)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 8; d++) {
                const lg_dtype dtype = d & 1 ? LG_BF16 : LG_F16;
                const bool relu = d & 2, training = d & 4;
                lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(4, 6, 5), .dtype = dtype);
                lg_tensor *z = lg_normal(c, 0, 30, LG_SHAPE(4, 6, 5), .dtype = dtype);
                lg_tensor *mean = lg_zeros(c, LG_SHAPE(6)), *var = lg_ones(c, LG_SHAPE(6));
                lg_tensor *y = lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var,
                                             .training = training, .residual = z, .relu = relu);
                lg_tensor *wide =
                        lg_batch_norm(lg_cast(x, LG_F32), NULL, NULL, .running_mean = lg_zeros(c, LG_SHAPE(6)),
                                      .running_var = lg_ones(c, LG_SHAPE(6)), .training = training,
                                      .residual = lg_cast(z, LG_F32), .relu = relu);
                assert_same_bits(y, lg_cast(wide, dtype));
        }
        assert_ok(c);
        lg_close(c);
}

/* Which gradients are asked for decides nothing about the others. */
TEST_CASE(some_gradients)
{
        lg_ctx *c = open_ctx();
        const shapes s = {LG_SHAPE(6, 3, 4), true, true, true};
        lg_tensor *value[LEAVES] = {lg_normal(c, 0, 1, s.x), lg_normal(c, 0, 1, LG_SHAPE(3)),
                                    lg_normal(c, 0, 1, LG_SHAPE(3)), lg_normal(c, 0, 1, s.x)};
        lg_tensor *leaf[LEAVES];
        for (int i = 0; i < LEAVES; i++)
                leaf[i] = leaf_of(value[i]);
        outcome all = compute(c, &s, leaf, true);
        for (int only = 0; only < LEAVES; only++) {
                for (int i = 0; i < LEAVES; i++)
                        leaf[i] = i == only ? leaf_of(value[i]) : value[i];
                lg_tensor *y =
                        lg_batch_norm(leaf[0], leaf[1], leaf[2], .training = true, .residual = leaf[3], .relu = true);
                lg_backward(y, .grad = lg_sin(lg_reshape(lg_arange(c, 0, 72, 1), s.x)));
                assert_same_bits(lg_grad_of(leaf[only]), all.grad[only]);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number_stays)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){-1, 1, NAN, 2, 5, INFINITY}), LG_SHAPE(2, 3), .requires_grad = true);
        lg_tensor *zero = lg_zeros(c, LG_SHAPE(3)), *one = lg_ones(c, LG_SHAPE(3));
        lg_tensor *y =
                lg_batch_norm(x, NULL, NULL, .running_mean = zero, .running_var = one, .eps = LG_ZERO, .relu = true);
        assert_list(y, 0, 0, 1, NAN, 2, 5, INFINITY);
        lg_backward(lg_sum(y)); /* in evaluation nothing but the factor: no infinity takes part in dx */
        assert_list(lg_grad_of(x), 0, 0, 1, 0, 1, 1, 1);
        lg_tensor *z = lg_from(c, ((float[]){0, NAN, 0, -3, -9, 0}), LG_SHAPE(2, 3));
        assert_list(lg_batch_norm(x, NULL, NULL, .running_mean = zero, .running_var = one, .eps = LG_ZERO,
                                  .residual = z, .relu = true),
                    0, 0, NAN, NAN, 0, 0, INFINITY);
        assert_ok(c);
        lg_close(c);
}

/* Running statistics are constants: in evaluation no gradient goes to them, whoever asks for one. */
TEST_CASE(constant_statistics)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 8; i++) {
                const bool by_mean = i & 1, by_x = i & 2, relu = i & 4;
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 3), .requires_grad = by_x);
                lg_tensor *mean = lg_zeros(c, LG_SHAPE(3), .requires_grad = by_mean);
                lg_tensor *var = lg_ones(c, LG_SHAPE(3), .requires_grad = !by_mean);
                lg_tensor *y = lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var, .relu = relu);
                assert_int_equal(lg_requires_grad(y), by_x);
                lg_backward(lg_sum(y));
                if (by_x)
                        assert_ok(c);
                else
                        assert_error(c, LG_ERR_STATE, "");
                assert_null(lg_grad_of(by_mean ? mean : var));
        }
        lg_close(c);
}

/* An op whose results are not finite is found though it has moved statistics that are not finite, either, now. */
TEST_CASE(anomalies)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((double[]){1e200, -1e200}), LG_SHAPE(2, 1));
        lg_tensor *mean = lg_zeros(c, LG_SHAPE(1), .dtype = LG_F64), *var = lg_ones(c, LG_SHAPE(1), .dtype = LG_F64);
        assert_true(lg_set_anomaly(c, true));
        drop(lg_batch_norm(x, NULL, NULL, .training = true, .running_mean = mean, .running_var = var));
        assert_error(c, LG_ERR_STATE, "anomaly: batch_norm made");
        lg_fill_(var, NAN); /* one of the inputs in evaluation */
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(layouts_and_nothing)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 4, 5, 6)), *z = lg_normal(c, 0, 1, LG_SHAPE(3, 4, 6, 5));
        lg_tensor *turned = lg_transpose(z, 2, 3), *wide = lg_expand(lg_slice(x, 0, 1, 2), LG_SHAPE(3, 4, 5, 6));
        lg_tensor *const residuals[] = {turned, wide};
        for (int i = 0; i < 2; i++)
                assert_same_bits(lg_batch_norm(x, NULL, NULL, .training = true, .residual = residuals[i]),
                                 lg_add(lg_batch_norm(x, NULL, NULL, .training = true), residuals[i]));
        const lg_shape empty[] = {LG_SHAPE(0, 4, 2), LG_SHAPE(2, 4, 0), LG_SHAPE(3, 0, 2)};
        for (int i = 0; i < 3; i++) {
                lg_tensor *none = lg_ones(c, empty[i], .requires_grad = true);
                lg_tensor *s = lg_ones(c, LG_SHAPE(i == 2 ? 0 : 4));
                for (int training = 0; training < 2; training++) {
                        lg_tensor *y = lg_batch_norm(none, s, s, .training = training, .running_mean = s,
                                                     .running_var = s, .residual = none, .relu = true);
                        assert_int_equal(lg_numel(y), 0);
                        lg_backward(lg_sum(y));
                }
                assert_list(lg_sum(s), 0, i == 2 ? 0 : 4); /* nothing was seen, nothing moves */
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_residuals)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 3)), *mean = lg_zeros(c, LG_SHAPE(3));
        drop(lg_batch_norm(x, NULL, NULL, .training = true, .running_mean = mean, .residual = mean));
        assert_error(c, LG_ERR_SHAPE, "but residual is f32 (3,)");
        drop(lg_batch_norm(x, NULL, NULL, .training = true, .residual = lg_cast(x, LG_F64)));
        assert_error(c, LG_ERR_DTYPE, "residual is f64 (4, 3)");
        drop(lg_batch_norm(x, NULL, NULL, .training = true, .residual = lg_cast(x, LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "residual");
        lg_tensor *far = lg_ones(c, LG_SHAPE(4, 3), .device = lg_parse_device(c, "shadow:1"));
        drop(lg_batch_norm(x, NULL, NULL, .training = true, .residual = far));
        assert_error(c, LG_ERR_DEVICE, "residual");
        assert_list(lg_sum(mean), 0, 0);
        assert_ok(c);
        lg_close(c);
}

/* ---- modules ---- */

static int ops, norms;
static void count(const lg_trace_record *r, void *user)
{
        (void)user;
        ops += !strcmp(r->op, "relu") || (!strcmp(r->op, "add") && r->out[0].ndim > 1);
        norms += !strncmp(r->op, "batch_norm", 10);
}

/* How many sums and ReLUs of their own a forward has, and its result. */
static lg_tensor *counted(lg_ctx *c, lg_module *m, lg_tensor *x, int *ret)
{
        ops = norms = 0;
        assert_true(lg_set_trace(c, count));
        lg_tensor *y = lg_forward(m, x);
        assert_true(lg_set_trace(c, NULL));
        assert_ok(c);
        *ret = ops;
        return y;
}

static lg_module *norm(lg_ctx *c)
{
        return lg_nn_batch_norm1d(c, 4, .no_running = true);
}

static lg_tensor *by_hand(lg_tensor *x)
{
        return lg_batch_norm(x, lg_ones(lg_ctx_of(x), LG_SHAPE(4)), lg_zeros(lg_ctx_of(x), LG_SHAPE(4)),
                             .training = true);
}

TEST_CASE(modules_end_with_what_follows)
{
        lg_ctx *c = open_ctx();
        int apart;
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 4)), *y = by_hand(x);
        /* Batch norm and ReLU, side by side and through two Sequentials. */
        lg_module *nets[] = {lg_nn_sequential(c, norm(c), lg_nn_relu(c)),
                             lg_nn_sequential(c, lg_nn_sequential(c, lg_nn_sequential(c, norm(c))), lg_nn_relu(c))};
        for (int i = 0; i < 2; i++) {
                assert_same_bits(counted(c, nets[i], x, &apart), lg_relu(y));
                assert_int_equal(apart, 0);
        }
        /* The block of ResNet, with and without a shortcut of its own, then also copied. */
        lg_module *block =
                lg_nn_sequential(c, lg_nn_residual(c, lg_nn_sequential(c, lg_nn_identity(c), norm(c))), lg_nn_relu(c));
        lg_module *turned = lg_nn_sequential(c, lg_nn_residual(c, norm(c), .shortcut = lg_nn_tanh(c)), lg_nn_relu(c));
        assert_same_bits(counted(c, block, x, &apart), lg_relu(lg_add(y, x)));
        assert_int_equal(apart, 0);
        assert_same_bits(counted(c, turned, x, &apart), lg_relu(lg_add(y, lg_tanh(x))));
        assert_int_equal(apart, 0);
        assert_same_bits(counted(c, lg_module_clone(block), x, &apart), lg_relu(lg_add(y, x)));
        assert_int_equal(apart, 0);
        /* A Residual alone; one within another, of which the inner one has a sum already. */
        lg_module *alone = lg_nn_residual(c, norm(c)), *twice = lg_nn_residual(c, lg_nn_residual(c, norm(c)));
        assert_same_bits(counted(c, alone, x, &apart), lg_add(y, x));
        assert_int_equal(apart, 0);
        assert_same_bits(counted(c, twice, x, &apart), lg_add(lg_add(y, x), x));
        assert_int_equal(apart, 1);
        lg_close(c);
}

static lg_tensor *sum_of_all(lg_module *m, lg_list inputs, void *user)
{
        (void)m, (void)user;
        return lg_sum(inputs.items[0]);
}

TEST_CASE(what_does_not_end_so)
{
        lg_ctx *c = open_ctx();
        int apart;
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 4)), *y = by_hand(x);
        lg_module *tanh_relu = lg_nn_sequential(c, lg_nn_sequential(c, norm(c), lg_nn_tanh(c)), lg_nn_relu(c));
        assert_same_bits(counted(c, tanh_relu, x, &apart), lg_relu(lg_tanh(y)));
        assert_int_equal(apart, 1);
        lg_module *empty = lg_nn_sequential(c, lg_nn_sequential(c), lg_nn_relu(c));
        assert_same_bits(counted(c, empty, x, &apart), lg_relu(x));
        assert_int_equal(apart, 1);
        lg_module *linear = lg_nn_residual(c, lg_nn_linear(c, 4, 4)); /* linear knows no sum */
        lg_tensor *w = lg_parameter(linear, "block.weight"), *b = lg_parameter(linear, "block.bias");
        assert_same_bits(counted(c, linear, x, &apart), lg_add(lg_linear(x, w, b), x));
        assert_int_equal(apart, 1);
        /* A sum that broadcasts: as functions make it. */
        lg_module *wide = lg_nn_sequential(
                c, lg_nn_residual(c, norm(c), .shortcut = lg_nn_module(c, "Sum", .forward = sum_of_all)),
                lg_nn_relu(c));
        assert_same_bits(counted(c, wide, x, &apart), lg_relu(lg_add(y, lg_sum(x))));
        assert_int_equal(apart, 2);
        lg_close(c);
}

/* ---- convolutions ---- */

/* The same layers one by one. */
static lg_tensor *one_by_one(lg_module *seq, lg_tensor *x)
{
        for (int i = 0; i < lg_child_count(seq); i++)
                x = lg_forward(lg_child(seq, i), x);
        return x;
}

TEST_CASE(convolutions_with_relu)
{
        lg_ctx *c = open_ctx();
        int apart;
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int i = 0; i < 12; i++) {
                const bool signal = i % 3 == 2, alone = i % 3 == 1;
                const lg_dtype dtype = dtypes[i / 3];
                lg_module *conv = signal ? lg_nn_conv1d(c, 3, 5, 3, .dtype = dtype)
                                         : lg_nn_conv2d(c, 3, 5, 3, .padding = 1, .dtype = dtype);
                lg_module *net = lg_nn_sequential(c, conv, lg_nn_relu(c));
                const lg_shape s = signal ? LG_SHAPE(2, 3, 9) : alone ? LG_SHAPE(3, 6, 7) : LG_SHAPE(2, 3, 6, 7);
                lg_tensor *x = lg_normal(c, 0, 1, s, .dtype = dtype, .requires_grad = true);
                lg_tensor *y = counted(c, net, x, &apart), *two = one_by_one(net, x);
                assert_int_equal(apart, 0);
                assert_same_bits(y, two);
                const lg_list w = lg_parameters(net);
                lg_tensor *all[] = {x, w.items[0], w.items[1]}, *a[3], *b[3];
                lg_tensor *g = lg_normal(c, 0, 1, lg_shape_of(y), .dtype = dtype);
                lg_grad(LG_LIST(y), LG_LIST_OF(3, all), .grads = LG_LIST(g), .result = a, .retain_graph = true);
                lg_grad(LG_LIST(two), LG_LIST_OF(3, all), .grads = LG_LIST(g), .result = b);
                double sums[5];
                assert_same_bits(a[0], b[0]);
                assert_same_bits(a[1], b[1]);
                assert_values(a[2], sums, read_all(b[2], sums, 5), other_order(c, dtype));
                lg_fill_(lg_detach(y), 1); /* which tells what saved it */
                lg_grad(LG_LIST(y), LG_LIST(x), .grads = LG_LIST(g), .result = a);
                assert_error(c, LG_ERR_STATE, "conv2d_relu saved its output");
        }
        lg_close(c);
}

/* In evaluation, where nothing is recorded, convolution, batch norm, the sum and ReLU are one kernel. */
TEST_CASE(convolutions_in_evaluation)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        const double limits[] = {2e-6, 1e-14, 4e-3, 3e-2};
        for (int i = 0; i < 16; i++) {
                const lg_dtype dtype = dtypes[i / 4];
                const bool affine = i & 1, bias = i & 2;
                lg_module *body = lg_nn_sequential(
                        c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1, .no_bias = !bias, .dtype = dtype),
                        lg_nn_batch_norm2d(c, 4, .no_affine = !affine), lg_nn_relu(c),
                        lg_nn_conv2d(c, 4, 4, 1, .no_bias = !bias, .dtype = dtype), lg_nn_batch_norm2d(c, 4));
                lg_module *net = lg_nn_sequential(c, lg_nn_residual(c, body), lg_nn_relu(c));
                lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(3, 4, 6, 5), .dtype = dtype), *by_one, *at_once;
                double want[360];
                int apart;
                for (int k = 0; k < 3; k++)
                        drop(lg_forward(net, lg_normal(c, 1, 3, LG_SHAPE(3, 4, 6, 5), .dtype = dtype)));
                lg_train(net, false);
                by_one = lg_relu(lg_add(one_by_one(body, x), x));
                assert_int_equal(read_all(by_one, want, 360), 360);
                lg_no_grad(c)
                {
                        at_once = counted(c, net, x, &apart);
                        assert_int_equal(apart + norms, 0);
                }
                assert_values(at_once, want, 360, limits[i / 4]);
        }
        assert_ok(c);
        lg_close(c);
}

/* What a convolution cannot take along: norms of other channels, of signals, in training; sums that broadcast. */
TEST_CASE(convolutions_that_end_alone)
{
        lg_ctx *c = open_ctx();
        lg_module *other = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 3, 1), lg_nn_batch_norm2d(c, 4));
        lg_module *signal = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 3, 1), lg_nn_batch_norm1d(c, 3));
        lg_module *training = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 3, 1), lg_nn_batch_norm2d(c, 3));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 2, 3, 3));
        lg_train(other, false);
        lg_train(signal, false);
        lg_no_grad(c)
        {
                drop(lg_forward(other, x));
                assert_error(c, LG_ERR_SHAPE, "it needs shape (3,)");
                drop(lg_forward(signal, x));
                assert_error(c, LG_ERR_SHAPE, "(N, C) or (N, C, L)");
                drop(lg_forward(signal, lg_select(x, 0, 0))); /* (C, H, W) is no (N, C, L) */
                assert_ok(c);
                lg_tensor *y = lg_forward(training, x);
                assert_near(lg_item(lg_mean(y)), 0, 1e-6);
        }
        lg_module *wide =
                lg_nn_residual(c, lg_nn_conv2d(c, 2, 2, 1), .shortcut = lg_nn_module(c, "Sum", .forward = sum_of_all));
        lg_tensor *recorded = lg_forward(wide, x);
        lg_no_grad(c) assert_same_bits(lg_forward(wide, x), recorded);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *begin_to_record(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_set_grad_mode(lg_ctx_of(inputs.items[0]), true);
        (void)m;
        return lg_mul_scalar(inputs.items[0], 2);
}

/* Dtypes are those of the convolution's result; random numbers and gradients do not depend on what is fused. */
TEST_CASE(evaluation_changes_nothing_else)
{
        lg_ctx *c = open_ctx();
        lg_module *wide = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 2, 3, .dtype = LG_F64),
                                           lg_nn_batch_norm2d(c, 2, .dtype = LG_F64));
        lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(2, 1, 5, 5)), *y;
        double want[36];
        drop(lg_forward(wide, x));
        lg_train(wide, false);
        read_all(lg_forward(wide, x), want, 36);
        lg_no_grad(c)
        {
                y = lg_forward(wide, x);
                assert_int_equal(lg_dtype_of(y), LG_F64);
                assert_values(y, want, 36, 1e-14);
        }
        lg_module *block = lg_nn_sequential(c, lg_nn_dropout(c, 0.5), lg_nn_conv2d(c, 1, 1, 1));
        lg_module *drops = lg_nn_residual(c, block, .shortcut = lg_nn_dropout(c, 0.5));
        lg_seed(c, 7);
        lg_tensor *recorded = lg_forward(drops, x);
        lg_seed(c, 7);
        lg_no_grad(c) assert_same_bits(lg_forward(drops, x), recorded);
        lg_module *own = lg_nn_residual(
                c, lg_nn_sequential(c, lg_nn_module(c, "Own", .forward = begin_to_record), lg_nn_conv2d(c, 1, 1, 1)));
        lg_set_grad_mode(c, false);
        y = lg_forward(own, x);
        assert_true(lg_set_grad_mode(c, true));
        lg_backward(lg_sum(y));
        assert_non_null(lg_grad_of(lg_parameter(own, "block.1.weight")));
        assert_ok(c);
        lg_close(c);
}

/* ---- what modules tell ---- */

/* The modules' own numbers stay: batches, shapes in the summary, errors by name. */
TEST_CASE(modules_stay_what_they_are)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_residual(c, lg_nn_batch_norm1d(c, 3)), lg_nn_relu(c));
        drop(lg_forward(net, lg_ones(c, LG_SHAPE(2, 4))));
        assert_error(c, LG_ERR_SHAPE, "(in module \"0.block\", BatchNorm1d)");
        /* An epilogue that was not completed is not left behind. */
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 3));
        lg_train(net, false);
        lg_tensor *y = lg_forward(lg_child(lg_child(net, 0), 0), x);
        assert_true(lg_item(lg_sum(lg_lt_scalar(y, 0))) > 0);
        assert_shape(y, LG_SHAPE(5, 3));
        assert_ok(c);
        lg_close(c);
}
