/* test_clone.c - copies of modules: their values, modes and places, and the program's own data. */
#include "failing.h"

static lg_module *mixed(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 3, 3), lg_nn_batch_norm2d(c, 3), lg_nn_relu(c),
                                          lg_nn_flatten(c), lg_nn_linear(c, 48, 5), lg_nn_dropout(c, 0.5));
        lg_module_to(net, test_device(c));
        return net;
}

static lg_tensor *pictures(lg_ctx *c)
{
        return lg_uniform(c, 0, 1, LG_SHAPE(4, 1, 6, 6));
}

static void compare(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        lg_tensor *other = is_buffer ? lg_buffer(user, path) : lg_parameter(user, path);
        assert_ptr_not_equal(t, other);
        assert_true(lg_dtype_of(t) == lg_dtype_of(other));
        assert_int_equal(lg_requires_grad(t), lg_requires_grad(other));
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_copy(t, lg_cpu()), lg_copy(other, lg_cpu()))))) == 0);
}

TEST_CASE(copies_are_the_same_and_apart)
{
        lg_ctx *c = open_ctx();
        lg_module *net = mixed(c);
        lg_backward(lg_mean(lg_forward(net, pictures(c)))); /* statistics and gradients */
        lg_freeze(lg_child(net, 0), true);
        lg_train(lg_child(net, 5), false);
        lg_random_state random = lg_random_state_of(c);
        int64_t live = lg_live_tensors(c);
        lg_module *copy = lg_module_clone(net);
        assert_non_null(copy);
        assert_true(lg_live_tensors(c) > live);
        lg_random_state after = lg_random_state_of(c);
        assert_memory_equal(&random, &after, sizeof random);
        assert_string_equal(lg_module_type(copy), "Sequential");
        assert_int_equal(lg_child_count(copy), 6);
        assert_true(lg_each_tensor(net, compare, copy));
        assert_false(lg_is_training(lg_child(copy, 5)));
        assert_true(lg_is_training(lg_child(copy, 1)));
        assert_null(lg_grad_of(lg_parameter(copy, "4.weight")));
        assert_non_null(lg_grad_of(lg_parameter(net, "4.weight")));
        /* the same numbers, and from then on others */
        lg_train(net, false);
        lg_train(copy, false);
        lg_tensor *x = pictures(c), *a = lg_forward(net, x), *b = lg_forward(copy, x);
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(a, b)))) == 0);
        lg_optimizer *opt = lg_sgd(c, lg_parameters_matching(copy, "4.*"), 0.1);
        assert_true(lg_backward(lg_sum(b)) && lg_step(opt));
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_parameter(copy, "4.weight"), lg_parameter(net, "4.weight"))))) >
                    0);
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_forward(net, x), a)))) == 0);
        lg_module_free(net);
        assert_non_null(lg_forward(copy, x));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(copies_go_to_a_device)
{
        lg_ctx *c = open_ctx();
        lg_module *net = mixed(c), *copy = lg_module_clone(net, .device = lg_cpu());
        assert_true(lg_device_equal(lg_device_of(lg_parameter(copy, "0.weight")), lg_cpu()));
        assert_true(lg_device_equal(lg_device_of(lg_buffer(copy, "1.running_mean")), lg_cpu()));
        assert_true(lg_device_equal(lg_device_of(lg_parameter(net, "0.weight")), test_device(c)));
        assert_true(lg_each_tensor(net, compare, copy));
        /* a part of a module is copied without its parent */
        lg_module *layer = lg_module_clone(lg_child(net, 4));
        assert_string_equal(lg_module_type(layer), "Linear");
        lg_module_free(layer);
        assert_ok(c);
        assert_null(lg_module_clone(net, .device = LG_DEVICE(LG_DEVICE_CUDA, 77)));
        assert_error(c, LG_ERR_DEVICE, "there is");
        assert_null(lg_module_clone(NULL));
        lg_close(c);
}

/* ---- the program's own data ---- */

typedef struct own {
        lg_tensor *scale; /* of the module */
        int *alive;
        bool fails, errs;
} own;

static lg_tensor *scaled(lg_module *m, lg_list in, void *user)
{
        (void)m;
        return lg_mul(in.items[0], ((own *)user)->scale);
}

static void free_own(void *user)
{
        own *o = user;
        --*o->alive;
        free(o);
}

static void *clone_own(lg_module *copy, void *user)
{
        own *from = user, *o = from->fails ? NULL : malloc(sizeof *o);
        lg_module_free(copy); /* refused: it is being made */
        assert_error(lg_module_ctx(copy), LG_ERR_STATE, "is running");
        if (!o)
                return NULL;
        *o = *from;
        ++*o->alive;
        o->scale = lg_parameter(copy, "scale");
        drop(lg_ones(lg_module_ctx(copy), LG_SHAPE(3))); /* ends with the call */
        lg_scope left_open = lg_scope_begin(lg_module_ctx(copy));
        (void)left_open;
        if (from->errs)
                drop(lg_parameter(copy, "none"));
        return o;
}

static lg_module *own_module(lg_ctx *c, int *alive, own **ret)
{
        own *o = malloc(sizeof *o);
        assert_non_null(o);
        *o = (own){.alive = alive};
        *alive = 1;
        lg_module *m = lg_nn_module(c, "Scaled", .forward = scaled, .user = o, .release = free_own, .clone = clone_own);
        o->scale = lg_module_add_parameter(m, "scale", lg_full(c, LG_SHAPE(2), 3));
        *ret = o;
        return m;
}

TEST_CASE(own_data_is_copied_by_the_program)
{
        lg_ctx *c = open_ctx();
        int alive;
        own *first;
        lg_module *m = own_module(c, &alive, &first), *net = lg_nn_sequential(c, m, lg_nn_relu(c));
        int64_t live = lg_live_tensors(c);
        lg_module *copy = lg_module_clone(net);
        assert_ok(c);
        assert_int_equal(alive, 2);
        assert_int_equal(lg_live_tensors(c), live + 1);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        assert_true(lg_backward(lg_sum(lg_forward(copy, x))));
        assert_non_null(lg_grad_of(lg_parameter(copy, "0.scale")));
        assert_null(lg_grad_of(lg_parameter(net, "0.scale")));
        live = lg_live_tensors(c);
        first->fails = true;
        assert_null(lg_module_clone(net));
        assert_error(c, LG_ERR_STATE, "lg_module_clone: .clone of the Scaled returned NULL");
        first->fails = false;
        first->errs = true;
        assert_null(lg_module_clone(net));
        assert_error(c, LG_ERR_ARGUMENT, "none");
        assert_int_equal(alive, 2);
        assert_int_equal(lg_live_tensors(c), live);
        lg_module *other = lg_nn_module(c, "Other", .forward = scaled, .user = first);
        assert_null(lg_module_clone(other));
        assert_error(c, LG_ERR_STATE, "the Other has .user");
        lg_close(c);
        assert_int_equal(alive, 0);
}

/* In a forward with other parameters the module does not have its own. */
static lg_tensor *cloning(lg_module *m, lg_list in, void *user)
{
        *(lg_module **)user = lg_module_clone(m);
        return in.items[0];
}

TEST_CASE(lent_parameters_are_not_copied)
{
        lg_ctx *c = open_ctx();
        lg_module *made = NULL, *m = lg_nn_module(c, "Cloning", .forward = cloning, .user = &made);
        lg_module_add_parameter(m, "w", lg_ones(c, LG_SHAPE(1)));
        lg_tensor *x = lg_ones(c, LG_SHAPE(1));
        assert_null(lg_forward_params(m, LG_LIST(x), x));
        assert_error(c, LG_ERR_STATE, "lg_module_clone: lg_forward_params runs the Cloning");
        assert_null(made);
        lg_close(c);
}

TEST_CASE(every_allocation_may_fail)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        lg_module *net = mixed(c);
        int64_t n = 0;
        for (bool done = false; !done && n < 1000; n++) {
                lg_empty_cache(c);
                int64_t live = lg_live_tensors(c), bytes = f.bytes;
                arm(&f, n + 1, false);
                lg_module *copy = lg_module_clone(net);
                arm(&f, 0, false);
                done = copy != NULL;
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                lg_module_free(copy);
                lg_empty_cache(c);
                assert_int_equal(lg_live_tensors(c), live);
                assert_true(f.bytes <= bytes + 4096);
        }
        assert_in_range(n, 5, 999);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}
