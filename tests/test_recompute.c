/* test_recompute.c - lg_recompute(): the same bits as lg_forward(), with less memory. */
#include "failing.h"

static lg_module *block(lg_ctx *c)
{
        lg_module *m = lg_nn_sequential(c, lg_nn_conv2d(c, 3, 8, 3, .padding = 1), lg_nn_batch_norm2d(c, 8),
                                        lg_nn_relu(c), lg_nn_dropout(c, 0.4), lg_nn_conv2d(c, 8, 3, 3, .padding = 1));
        lg_module_to(m, lg_default_device(c));
        return m;
}

/* What a run leaves: the gradients of the input and of all parameters, buffers, and the next random numbers. */
#define ROOM 1024
typedef struct left {
        double numbers[ROOM];
        int64_t count;
} left;

static void take(left *l, const lg_tensor *t)
{
        l->count += read_all(t, l->numbers + l->count, ROOM - l->count);
}

static void take_buffer(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path;
        if (is_buffer)
                take(user, t);
}

typedef lg_tensor *way(lg_module *m, lg_tensor *x);

static lg_tensor *plain(lg_module *m, lg_tensor *x)
{
        return lg_forward(m, x);
}

static lg_tensor *again(lg_module *m, lg_tensor *x)
{
        return lg_recompute(m, x);
}

static lg_tensor *inside(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_recompute(lg_child(m, 0), in.items[0]);
}

static lg_tensor *nested(lg_module *m, lg_tensor *x)
{
        lg_module *outer = lg_child(m, 0);
        return lg_recompute(outer, x);
}

/* The children of a Sequential in groups of two, and what is left. */
static lg_tensor *groups(lg_module *m, lg_tensor *x)
{
        assert_true(lg_recompute_every(m, 2));
        return lg_forward(m, x);
}

/* The same within a module that is run again itself. */
static lg_tensor *groups_again(lg_module *m, lg_tensor *x)
{
        assert_true(lg_recompute_every(m, 1));
        return lg_recompute(m, x);
}

/* Two steps without a change of parameters; in a region or not. */
static left run(way *f, lg_dtype region)
{
        left l = {.count = 0};
        lg_ctx *c = lg_open(.seed = 5, .threads = 1);
        test_device(c);
        lg_set_deterministic(c, true); /* else cuDNN may add up in another order each time */
        lg_module *m = block(c), *holder = lg_nn_module(c, "Holder"),
                  *outer = lg_nn_module(c, "Outer", .forward = inside);
        if (f == nested) {
                lg_module_add(holder, "outer", outer);
                lg_module_add(outer, "inner", m);
        }
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 5, 5), .requires_grad = true);
        lg_tensor *w = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 5, 5));
        for (int i = 0; i < 2; i++) {
                lg_tensor *y = NULL;
                lg_autocast(c, region) y = f(f == nested ? holder : m, lg_mul(x, w));
                assert_ok(c);
                lg_backward(lg_sum(lg_mul(lg_square(y), w)));
        }
        assert_ok(c);
        take(&l, lg_grad_of(x));
        lg_list p = lg_parameters(m);
        for (int64_t i = 0; i < p.count; i++)
                take(&l, lg_grad_of(p.items[i]));
        lg_each_tensor(m, take_buffer, &l);
        take(&l, lg_uniform(c, 0, 1, LG_SHAPE(4)));
        assert_ok(c);
        lg_close(c);
        return l;
}

static void assert_same(const left *a, const left *b)
{
        assert_true(a->count > 300);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->numbers, b->numbers, (size_t)a->count * sizeof *a->numbers);
}

TEST_CASE(the_same_bits)
{
        static const lg_dtype regions[] = {LG_F32, LG_BF16, LG_F16};
        for (int i = 0; i < 3; i++) {
                const left a = run(plain, regions[i]), b = run(again, regions[i]), c = run(nested, regions[i]);
                const left d = run(groups, regions[i]), e = run(groups_again, regions[i]);
                assert_same(&a, &b);
                assert_same(&a, &c);
                assert_same(&a, &d);
                assert_same(&a, &e);
        }
}

/* ---- inputs, results ---- */

static lg_tensor *pick(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_mul(lg_embedding(in.items[0], lg_parameter(m, "weight")), in.items[1]);
}

TEST_CASE(several_inputs)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_module(c, "Pick", .forward = pick);
        lg_module_add_parameter(m, "weight", lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(3, 2)));
        lg_tensor *index = lg_from(c, ((int64_t[]){2, 0}), LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *x = lg_full(c, LG_SHAPE(2), 3, .requires_grad = true);
        lg_backward(lg_sum(lg_recompute(m, index, x)));
        assert_ok(c);
        assert_list(lg_grad_of(x), 0, 4, 6);
        assert_list(lg_grad_of(lg_parameter(m, "weight")), 0, 3, 3, 0, 0, 3, 3);
        lg_freeze(m, true);
        lg_clear_grad(x);
        lg_backward(lg_sum(lg_recompute(m, index, x)));
        assert_list(lg_grad_of(x), 0, 4, 6);
        assert_false(lg_requires_grad(lg_recompute(m, index, lg_detach(x))));
        lg_no_grad(c) assert_false(lg_requires_grad(lg_recompute(m, index, x)));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *twice(lg_tensor *grad, void *user)
{
        ++*(int *)user;
        return lg_mul_scalar(grad, 2);
}

TEST_CASE(hooks_run_once)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_linear(c, 2, 1, .no_bias = true);
        lg_tensor *w = lg_parameter(m, "weight"), *x = lg_ones(c, LG_SHAPE(1, 2), .requires_grad = true);
        int calls = 0;
        lg_hook(w, twice, &calls);
        lg_backward(lg_sum(lg_recompute(m, x)));
        assert_list(lg_grad_of(w), 0, 2, 2);
        assert_int_equal(calls, 1);
        lg_clear_grad(w);
        lg_grad(LG_LIST(lg_sum(lg_recompute(m, x))), LG_LIST(w), .create_graph = true);
        assert_int_equal(calls, 2);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *give_back(lg_module *m, lg_list in, void *user)
{
        (void)m, (void)user;
        return in.items[0];
}

static lg_tensor *look(lg_tensor *grad, void *user)
{
        double *ret = ((void **)user)[1];
        *ret = lg_item(((void **)user)[0]);
        return grad;
}

/* A result that its own hook reads. */
static lg_tensor *looked_at(lg_module *m, lg_list in, void *user)
{
        (void)m;
        lg_tensor *y = lg_square(in.items[0]);
        ((void **)user)[0] = y;
        if (lg_requires_grad(y)) /* the second time */
                lg_hook(y, look, user);
        return y;
}

TEST_CASE(results_that_others_hold)
{
        double seen = 0;
        lg_ctx *c = open_ctx();
        void *user[] = {NULL, &seen};
        lg_module *m = lg_nn_module(c, "GiveBack", .forward = give_back),
                  *n = lg_nn_module(c, "LookedAt", .forward = looked_at, .user = user);
        lg_tensor *x = lg_full(c, LG_SHAPE(1), 3, .requires_grad = true);
        lg_backward(lg_sum(lg_mul_scalar(lg_recompute(m, x), 2)));
        assert_list(lg_grad_of(x), 0, 2);
        lg_clear_grad(x);
        lg_backward(lg_sum(lg_recompute(n, x)));
        assert_list(lg_grad_of(x), 0, 6);
        assert_true(seen == 9);
        lg_tensor *kept = lg_full(c, LG_SHAPE(1), 5), *y = lg_recompute(m, x);
        lg_clear_grad(x);
        lg_backward(y, .grad = kept, .retain_graph = true);
        lg_backward(y, .grad = kept);
        assert_list(lg_grad_of(x), 0, 10);
        assert_list(kept, 0, 5);
        assert_ok(c);
        lg_close(c);
}

/* ---- derivatives of any order ---- */

static lg_module *smooth(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 3, 4, .dtype = LG_F64), lg_nn_tanh(c),
                                lg_nn_linear(c, 4, 2, .dtype = LG_F64));
}

static lg_tensor *of_inputs(lg_ctx *c, lg_list in, void *m)
{
        (void)c;
        return lg_recompute(m, in.items[0]);
}

static lg_tensor *of_groups(lg_ctx *c, lg_list in, void *m)
{
        (void)c;
        return lg_forward(m, in.items[0]);
}

TEST_CASE(gradchecks)
{
        lg_ctx *c = open_ctx();
        lg_module *m = smooth(c);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(2, 3), .dtype = LG_F64, .requires_grad = true);
        lg_list p = lg_parameters(m);
        assert_true(lg_gradcheck(c, of_inputs, LG_LIST(x, p.items[0], p.items[1], p.items[2]), .user = m));
        assert_true(lg_gradgradcheck(c, of_inputs, LG_LIST(x, p.items[0], p.items[2]), .user = m));
        for (int n = 1; n <= 2; n++) {
                assert_true(lg_recompute_every(m, n));
                assert_true(lg_gradcheck(c, of_groups, LG_LIST(x, p.items[0], p.items[1], p.items[2]), .user = m));
                assert_true(lg_gradgradcheck(c, of_groups, LG_LIST(x, p.items[0], p.items[2]), .user = m));
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- memory ---- */

/* Layers of `size` with GELU behind each. */
static lg_module *layers_of(lg_ctx *c, int layers, int64_t size)
{
        lg_module *m = lg_nn_sequential(c);
        for (int i = 0; i < layers; i++) {
                lg_module_append(m, lg_nn_linear(c, size, size));
                lg_module_append(m, lg_nn_gelu(c));
        }
        lg_module_to(m, test_device(c));
        return m;
}

static int64_t peak(bool recomputes, double *ret_grad)
{
        enum { blocks = 6, layers = 4, size = 64 };
        lg_ctx *c = lg_open(.threads = 1, .seed = 1);
        lg_device d = test_device(c);
        lg_module *m[blocks];
        for (int i = 0; i < blocks; i++)
                m[i] = layers_of(c, layers, size);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(1024, size), .requires_grad = true), *y = x;
        const int64_t before = lg_memory_stats(c, d).used;
        lg_reset_peak_memory(c, d);
        for (int i = 0; i < blocks; i++) {
                lg_tensor *next = recomputes ? lg_recompute(m[i], y) : lg_forward(m[i], y);
                if (y != x)
                        lg_free(y);
                y = next;
        }
        lg_backward(lg_sum(y));
        assert_ok(c);
        double all[1024 * size];
        read_all(lg_grad_of(x), all, 1024 * size);
        *ret_grad = all[100];
        const int64_t most = lg_memory_stats(c, d).peak - before;
        lg_close(c);
        return most;
}

TEST_CASE(takes_less_memory)
{
        double a, b;
        const int64_t kept = peak(false, &a), less = peak(true, &b);
        assert_true(a == b);
        assert_true((double)less < 0.6 * (double)kept);
}

/* What a Sequential of 24 layers takes at most beyond what is there, with groups of n, and a gradient. */
static int64_t peak_of_groups(int64_t n, double *ret_grad)
{
        enum { size = 64 };
        lg_ctx *c = lg_open(.threads = 1, .seed = 1);
        lg_device d = test_device(c);
        lg_module *m = layers_of(c, 24, size);
        assert_true(lg_recompute_every(m, n));
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(1024, size), .requires_grad = true);
        const int64_t before = lg_memory_stats(c, d).used;
        lg_reset_peak_memory(c, d);
        lg_backward(lg_sum(lg_forward(m, x)));
        assert_ok(c);
        *ret_grad = lg_item(lg_sum(lg_grad_of(x)));
        const int64_t most = lg_memory_stats(c, d).peak - before;
        lg_close(c);
        return most;
}

TEST_CASE(groups_take_less_memory)
{
        double a, b, off;
        const int64_t kept = peak_of_groups(0, &a), less = peak_of_groups(8, &b), all = peak_of_groups(48, &off);
        assert_true(a == b && a == off);
        assert_true((double)less < 0.6 * (double)kept && all == kept);
}

/* Three layers of large results: when the last layer's weights are derived there are x, two inputs of GELU, the last
 * one's gradient, its input and that one's gradient; the caller holds y. */
TEST_CASE(what_is_read_no_more_ends)
{
        enum { rows = 2048, size = 64 };
        lg_ctx *c = lg_open(.threads = 1, .seed = 1);
        lg_device d = test_device(c);
        lg_module *m = layers_of(c, 3, size);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(rows, size));
        const int64_t before = lg_memory_stats(c, d).used;
        lg_backward(lg_sum(lg_square(lg_recompute(m, x))));
        assert_ok(c);
        const double arrays = (double)(lg_memory_stats(c, d).peak - before) / (rows * size * sizeof(float));
        assert_true(arrays < 7.5);
        lg_close(c);
}

/* ---- errors ---- */

TEST_CASE(wrong_groups_are_told)
{
        lg_ctx *c = open_ctx();
        lg_module *m = smooth(c), *linear = lg_nn_linear(c, 2, 2);
        assert_false(lg_recompute_every(m, -1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_recompute_every: n is -1");
        assert_false(lg_recompute_every(linear, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_recompute_every: m is a Linear");
        assert_false(lg_recompute_every(NULL, 1));
        assert_true(lg_recompute_every(m, 1));
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_F64), *y = lg_forward(m, x);
        lg_module_free(m);
        assert_false(lg_backward(lg_sum(y)));
        assert_error(c, LG_ERR_STATE, "lg_recompute: the module was freed");
        lg_close(c);
}

static lg_tensor *changing(lg_module *m, lg_list in, void *user)
{
        (void)m;
        return ++*(int *)user % 2 ? lg_square(in.items[0]) : lg_square(lg_slice(in.items[0], 0, 0, 1));
}

TEST_CASE(errors)
{
        lg_ctx *c = open_ctx();
        int calls = 0;
        lg_module *m = lg_nn_linear(c, 2, 2), *wild = lg_nn_module(c, "Wild", .forward = changing, .user = &calls);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2), .requires_grad = true), *y = lg_recompute(m, x);
        assert_null(lg_recompute(m, lg_ones(c, LG_SHAPE(2, 3))));
        assert_error(c, LG_ERR_SHAPE, "linear");
        assert_null(lg_recompute(NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "the module is NULL");
        assert_null(lg_recompute(m, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "takes one input");
        assert_false(lg_backward(lg_sum(lg_recompute(wild, x))));
        assert_error(c, LG_ERR_STATE, "the forward of Wild gave");
        lg_no_grad(c) lg_fill_(lg_parameter(m, "weight"), 1);
        assert_false(lg_backward(lg_sum(y)));
        assert_error(c, LG_ERR_STATE, "changed in place");
        y = lg_recompute(m, x);
        lg_module_free(m);
        assert_false(lg_backward(lg_sum(y)));
        assert_error(c, LG_ERR_STATE, "lg_recompute: the module was freed");
        lg_close(c);
}

/* The backward runs modules again as they were in the forward, or not at all. */
TEST_CASE(training_modes)
{
        lg_ctx *c = open_ctx();
        lg_module *inner = lg_nn_dropout(c, 0.5), *last = lg_nn_dropout(c, 0.5);
        lg_module *m =
                lg_nn_sequential(c, lg_nn_linear(c, 2, 2), lg_nn_sequential(c, inner), lg_nn_linear(c, 2, 2), last);
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 2), .requires_grad = true);
        for (int grouped = 0; grouped < 2; grouped++) {
                assert_true(lg_recompute_every(m, grouped ? 2 : 0));
                lg_tensor *y = grouped ? lg_forward(m, x) : lg_recompute(m, x);
                lg_train(inner, false);
                assert_false(lg_backward(lg_sum(y), .retain_graph = true));
                assert_error(c, LG_ERR_STATE,
                             "lg_recompute: the training mode of the Sequential, or of a module in it");
                lg_train(inner, true);
                lg_train(last, !grouped); /* it is in no group that runs again */
                assert_true(lg_backward(lg_sum(y)));
                lg_train(m, true);
        }
        lg_close(c);
}

static lg_tensor *step_by(lg_ctx *c, way *f, lg_module *m)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *y = lg_sum(f(m, lg_ones(c, LG_SHAPE(1, 3, 4, 4))));
        lg_backward(y);
        lg_escape(y);
        if (s.id)
                lg_scope_end(c, s);
        return lg_error(c) ? NULL : y;
}

static lg_tensor *step(lg_ctx *c, void *m)
{
        return step_by(c, again, m);
}

static lg_tensor *step_of_groups(lg_ctx *c, void *m)
{
        lg_recompute_every(m, 2);
        return step_by(c, plain, m);
}

static lg_tensor *times_user(lg_module *m, lg_list in, void *user)
{
        (void)m;
        return lg_mul(lg_tanh(in.items[0]), user);
}

/* What the forward takes from elsewhere would get no gradient. */
TEST_CASE(a_tensor_from_elsewhere)
{
        lg_ctx *c = open_ctx();
        test_device(c);
        lg_tensor *w = lg_full(c, LG_SHAPE(2), 3, .requires_grad = true);
        lg_tensor *x = lg_full(c, LG_SHAPE(2), 2, .requires_grad = true);
        lg_module *m = lg_nn_module(c, "Scale", .forward = times_user, .user = w);
        assert_false(lg_backward(lg_sum(lg_recompute(m, x))));
        assert_error(c, LG_ERR_STATE, "the forward of Scale uses a tensor that requires grad, in mul");
        assert_null(lg_grad_of(w));
        lg_set_requires_grad(w, false);
        lg_clear_grad(x);
        assert_true(lg_backward(lg_sum(lg_recompute(m, x))));
        assert_non_null(lg_grad_of(x));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_step(step, block);
        fail_each_of_step(step_of_groups, block);
}
