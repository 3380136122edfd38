/* test_reentry.c - the caller's code turns against the call that it is called from: a loader in the release function of
 * its own batch, a module in that of its own result, prints within prints. */
#include "failing.h"

static int calls;

/* Memory on the host whose end is one call of `fn`. */
static lg_tensor *borrowed(lg_ctx *c, void (*fn)(void *user), void *user)
{
        static float values[4] = {1, 2, 3, 4};
        calls = 0;
        return lg_borrow(c, values, fn, user, LG_SHAPE(2, 2));
}

/* ---- loaders ---- */

static void free_loader(void *user)
{
        calls++;
        lg_loader_close(user);
}

static void restart_loader(void *user)
{
        calls++;
        lg_loader_restart(user);
}

static void next_batch(void *user)
{
        lg_batch b;
        calls++;
        assert_false(lg_loader_next(user, &b));
}

static lg_loader *six_rows(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(6, 1), .device = lg_cpu());
        return lg_loader_open(c, lg_dataset_tensors(c, x, x), 2);
}

/* lg_loader_next ends the last step, whose tensors may be memory of the caller's. */
TEST_CASE(a_loader_is_not_used_while_it_ends_a_step)
{
        static void (*const all[])(void *user) = {next_batch, restart_loader, free_loader};
        for (int i = 0; i < 9; i++) {
                lg_ctx *c = open_ctx();
                lg_batch b;
                lg_loader *l = six_rows(c);
                assert_true(lg_loader_next(l, &b));
                borrowed(c, all[i % 3], l);
                if (i / 3 == 0)
                        assert_false(lg_loader_next(l, &b));
                else if (i / 3 == 1)
                        lg_loader_restart(l);
                else
                        lg_loader_close(l);
                assert_int_equal(calls, 1);
                assert_error(c, LG_ERR_STATE, "this loader is ending its step");
                for (int rows = 1; i / 3 == 0 && rows < 3; rows++)
                        assert_true(lg_loader_next(l, &b) && b.index == rows);
                lg_close(c);
        }
}

static void close_context(void *user)
{
        calls++;
        lg_close(user);
}

TEST_CASE(a_context_is_not_closed_while_a_loader_ends_a_step)
{
        lg_ctx *c = open_ctx();
        lg_batch b;
        lg_loader *l = six_rows(c);
        assert_true(lg_loader_next(l, &b));
        borrowed(c, close_context, c);
        assert_false(lg_loader_next(l, &b));
        assert_int_equal(calls, 1);
        assert_error(c, LG_ERR_STATE, "lg_close: ");
        assert_true(lg_loader_next(l, &b) && b.index == 1);
        lg_close(c);
}

/* ---- modules ---- */

static lg_module *victim;

static void free_victim(void *user)
{
        (void)user;
        calls++;
        lg_module_free(victim);
}

static lg_tensor *leave_borrowed(lg_module *m, lg_list in, void *user)
{
        (void)user;
        borrowed(lg_module_ctx(m), free_victim, NULL);
        return in.items[0];
}

static lg_tensor *return_borrowed(lg_module *m, lg_list in, void *user)
{
        (void)in, (void)user;
        return borrowed(lg_module_ctx(m), free_victim, NULL);
}

static bool print_to(lg_module *m, bool memory)
{
        FILE *f = tmpfile();
        assert_non_null(f);
        bool ok = memory ? lg_module_print_memory(f, m, .input = LG_SHAPE(2, 2))
                         : lg_module_print(f, m, .input = LG_SHAPE(2, 2));
        fclose(f);
        return ok;
}

/* What a forward leaves behind ends with its scope, what a print's forward returns with the print's. */
TEST_CASE(a_module_is_not_freed_while_its_scope_ends)
{
        lg_ctx *c = open_ctx();
        lg_set_default_device(c, lg_cpu());
        victim = lg_nn_module(c, "Own", .forward = leave_borrowed);
        drop(lg_forward(victim, lg_ones(c, LG_SHAPE(2, 2))));
        assert_int_equal(calls, 1);
        assert_error(c, LG_ERR_STATE, "lg_module_free: the Own or a module in it is running");
        victim = lg_nn_module(c, "Own", .forward = return_borrowed);
        for (int memory = 0; memory < 2; memory++) {
                print_to(victim, memory);
                assert_int_equal(calls, 1);
                if (memory)
                        assert_error(c, LG_ERR_STATE, "lg_module_free: the Own or a module in it is running");
                else
                        assert_ok(c); /* a print says it in its table */
        }
        lg_module_free(victim);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *add_buffers(lg_module *m, lg_list in, void *user)
{
        char name[16];
        for (int i = 0; i < *(int *)user; i++) {
                snprintf(name, sizeof name, "later%d", calls++);
                assert_non_null(lg_module_add_buffer(m, name, lg_ones(lg_module_ctx(m), LG_SHAPE(2))));
        }
        lg_fill_(lg_buffer(m, "first"), 5);
        return in.items[0];
}

/* Buffers that there were before are restored; those that the forward adds stay as it made them. */
TEST_CASE(a_forward_adds_buffers_while_memory_is_measured)
{
        lg_ctx *c = open_ctx();
        int count = 300;
        lg_module *m = lg_nn_module(c, "Own", .forward = add_buffers, .user = &count);
        lg_module_add_buffer(m, "first", lg_full(c, LG_SHAPE(2), 3));
        calls = 0;
        assert_true(print_to(m, true));
        assert_ok(c);
        assert_list(lg_buffer(m, "first"), 0, 3, 3);
        assert_list(lg_buffer(m, "later299"), 0, 1, 1);
        lg_close(c);
}

static lg_tensor *print_inside(lg_module *m, lg_list in, void *user)
{
        (void)user;
        if (calls++ == 0) {
                assert_true(print_to(m, false));
                assert_true(print_to(m, true));
                assert_false(lg_is_training(m)); /* the outer print goes on */
                lg_module_add(m, "late", lg_nn_dropout(lg_module_ctx(m), 0.5));
        }
        return in.items[0];
}

TEST_CASE(a_print_in_a_forward_leaves_the_training_mode)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_module(c, "Own", .forward = print_inside);
        calls = 0;
        assert_true(print_to(m, false));
        assert_int_equal(calls, 3);
        assert_true(lg_is_training(m));
        assert_true(lg_is_training(lg_child(m, 0)));
        calls = 1;
        lg_train(m, false);
        assert_true(print_to(m, false));
        assert_false(lg_is_training(m));
        assert_false(lg_is_training(lg_child(m, 0)));
        assert_ok(c);
        lg_close(c);
}

static lg_scope around;

static void end_around(void *user)
{
        calls++;
        lg_scope_end(user, around);
}

static lg_tensor *leave_ending(lg_module *m, lg_list in, void *user)
{
        borrowed(lg_module_ctx(m), end_around, user);
        return in.items[0];
}

TEST_CASE(prints_keep_their_scopes)
{
        for (int memory = 0; memory < 2; memory++) {
                lg_ctx *c = open_ctx();
                lg_set_default_device(c, lg_cpu());
                lg_module *m = lg_nn_module(c, "Own", .forward = leave_ending, .user = c);
                lg_module_add_buffer(m, "first", lg_full(c, LG_SHAPE(2), 3));
                around = lg_scope_begin(c);
                assert_int_equal(print_to(m, memory), !memory);
                assert_int_equal(calls, 1);
                if (memory)
                        assert_error(c, LG_ERR_STATE, "has not returned");
                else
                        assert_ok(c);
                assert_list(lg_buffer(m, "first"), 0, 3, 3);
                assert_true(lg_scope_end(c, around));
                lg_close(c);
        }
}

/* ---- what is being freed ---- */

static void use_victim(void *user)
{
        lg_tensor *x = user;
        calls++;
        assert_null(lg_forward(victim, x));
        assert_error(lg_ctx_of(x), LG_ERR_STATE, "lg_forward: what it is given was freed, or is being freed");
        assert_null(lg_module_add_buffer(victim, "late", x));
        assert_error(lg_ctx_of(x), LG_ERR_STATE, "lg_module_add_buffer: what it is given was freed, or is being freed");
        assert_null(lg_module_add(victim, "late", lg_nn_relu(lg_ctx_of(x))));
        assert_error(lg_ctx_of(x), LG_ERR_STATE, "lg_module_add: what it is given was freed, or is being freed");
        assert_null(lg_nn_sequential(lg_ctx_of(x), victim));
        assert_error(lg_ctx_of(x), LG_ERR_STATE, "lg_nn_sequential: what it is given was freed, or is being freed");
        assert_int_equal(lg_parameters(victim).count, 1);
}

static lg_tensor *add_last(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_add(in.items[0], lg_parameter(m, "last"));
}

TEST_CASE(a_module_that_is_being_freed)
{
        lg_ctx *c = open_ctx();
        lg_set_default_device(c, lg_cpu());
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2));
        victim = lg_nn_module(c, "Own", .forward = add_last);
        assert_non_null(lg_module_add_parameter(victim, "first", borrowed(c, use_victim, x)));
        lg_module_add_parameter(victim, "last", lg_ones(c, LG_SHAPE(2, 2)));
        assert_list(lg_forward(victim, x), 0, 2, 2, 2, 2);
        lg_module_free(victim);
        assert_int_equal(calls, 1);
        assert_ok(c);
        lg_close(c);
}

static lg_dataset *rows;

static void open_rows(void *user)
{
        calls++;
        assert_null(lg_loader_open(user, rows, 1));
        assert_error(user, LG_ERR_STATE, "lg_loader_open: what it is given was freed, or is being freed");
}

TEST_CASE(a_data_set_that_is_being_freed)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = borrowed(c, open_rows, c);
        rows = lg_dataset_tensors(c, x, x);
        lg_free(x);
        lg_dataset_free(rows);
        assert_int_equal(calls, 1);
        assert_ok(c);
        lg_close(c);
}

/* ---- optimisers ---- */

static lg_optimizer *opt;

static void free_opt(void *user)
{
        (void)user;
        calls++;
        lg_optimizer_free(opt);
}

static lg_tensor *give_borrowed(lg_tensor *grad, void *user)
{
        (void)user;
        return borrowed(lg_ctx_of(grad), free_opt, NULL);
}

/* A gradient can be memory of the caller's: a hook gave it. */
TEST_CASE(an_optimiser_is_not_freed_while_it_forgets_gradients)
{
        lg_ctx *c = open_ctx();
        lg_set_default_device(c, lg_cpu());
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2), .requires_grad = true),
                  *y = lg_ones(c, LG_SHAPE(2), .requires_grad = true);
        lg_hook(x, give_borrowed, NULL);
        opt = lg_sgd(c, LG_LIST(x, y), 1);
        assert_true(lg_backward(lg_sum(x)));
        assert_list(lg_grad_of(x), 0, 1, 2, 3, 4);
        assert_int_equal(calls, 0);
        lg_zero_grad(opt);
        assert_int_equal(calls, 1);
        assert_error(c, LG_ERR_STATE, "lg_optimizer_free: a call that uses the optimiser has not returned");
        assert_true(lg_zero_grad(opt));
        lg_optimizer_free(opt);
        assert_ok(c);
        lg_close(c);
}

/* ---- moving ---- */

static bool twice(lg_custom_call *k)
{
        return (k->out[0] = lg_add(k->in[0], k->in[0])) != NULL;
}

static bool twice_back(lg_custom_call *k)
{
        return (k->grad_in[0] = lg_add(k->grad_out[0], k->grad_out[0])) != NULL;
}

/* A gradient's own graph ends when its module moves, and with it what an own op holds. */
TEST_CASE(a_module_is_moved_before_what_was_there_is_released)
{
        lg_ctx *c = open_ctx();
        lg_device there = lg_parse_device(c, "shadow");
        lg_set_default_device(c, lg_cpu());
        victim = lg_nn_module(c, "Own", .forward = add_last);
        lg_tensor *w = lg_module_add_parameter(victim, "first", lg_ones(c, LG_SHAPE(2)));
        lg_module_add_parameter(victim, "last", lg_ones(c, LG_SHAPE(2)));
        lg_custom_options op =
                *LG_OPTIONS(lg_custom_options, .forward = twice, .backward = twice_back, .release = free_victim);
        lg_scope s = lg_scope_begin(c);
        lg_backward(lg_sum(lg_square(lg_custom_with(c, "mine", LG_LIST(w), &op))), .create_graph = true);
        assert_ok(c);
        lg_scope_end(c, s);
        assert_true(lg_requires_grad(lg_grad_of(w)));
        calls = 0;
        assert_true(lg_module_to(victim, there));
        assert_int_equal(calls, 1);
        assert_ok(c);
        lg_close(c);
}
