/* test_callbacks.c - the caller's code in the middle of a call: release functions, hooks, own forwards, traces,
 * lambdas. Whatever it calls there, nothing is freed twice, used after its end, or taken from under the call. */
#include "failing.h"

static int releases;
static void count_release(void *user)
{
        (void)user;
        releases++;
}

static lg_tensor *vector(lg_ctx *c, double a, double b)
{
        return lg_from(c, ((double[]){a, b}), LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true);
}

/* ---- data of own ops ---- */

static bool makes_nan(lg_custom_call *k)
{
        return (k->out[0] = lg_full(k->ctx, LG_SHAPE(2), NAN, .dtype = LG_F64)) != NULL;
}

static bool same(lg_custom_call *k)
{
        return (k->out[0] = lg_copy(k->in[0], LG_NO_DEVICE)) != NULL;
}

static bool pass_on(lg_custom_call *k)
{
        k->grad_in[0] = k->grad_out[0];
        return true;
}

static bool refuse(lg_custom_call *k)
{
        (void)k;
        return false;
}

TEST_CASE(an_own_op_that_makes_a_nan_is_released_once)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = vector(c, 1, 2);
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = makes_nan, .backward = pass_on,
                                           .user = malloc(8), .release = free);
        lg_set_anomaly(c, true);
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_error(c, LG_ERR_STATE, "made nan");
        op.release = count_release;
        releases = 0;
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_error(c, LG_ERR_STATE, "made nan");
        assert_int_equal(releases, 1);
        lg_close(c);
        assert_int_equal(releases, 1);
}

static void no_trace(const lg_trace_record *r, void *user)
{
        (void)r, (void)user;
}

static lg_tensor *forward_own(lg_module *m, lg_list in, void *user)
{
        return lg_custom_with(lg_module_ctx(m), "mine", in, user);
}

static lg_tensor *forward_only_child(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_forward(lg_child(m, 0), in.items[0]);
}

/* Under a trace, the node keeps its place in the module tree. A long one takes memory of its own: that fails, too. */
TEST_CASE(an_own_op_is_released_once_when_memory_runs_out)
{
        failing f = {0};
        lg_ctx *c = lg_open(FAILING(&f));
        test_device(c);
        lg_custom_options op =
                *LG_OPTIONS(lg_custom_options, .forward = same, .backward = pass_on, .release = count_release);
        lg_module *net =
                lg_nn_module(c, "A type with a name of forty bytes or more", .forward = forward_own, .user = &op);
        char name[63];
        memset(name, 'n', 62);
        name[62] = 0;
        for (int i = 0; i < 16; i++) {
                lg_module *outer =
                        lg_nn_module(c, "A type with a name of forty bytes or more", .forward = forward_only_child);
                lg_module_add(outer, name, net);
                net = outer;
        }
        lg_tensor *x = vector(c, 1, 2), *y = NULL;
        lg_set_trace(c, no_trace);
        for (int n = 1; !y; n++) {
                lg_scope s = lg_scope_begin(c);
                lg_empty_cache(c);
                releases = 0;
                arm(&f, n, false);
                y = lg_forward(net, x);
                arm(&f, 0, false);
                assert_int_equal(releases, y ? 0 : 1);
                assert_true(y || lg_error_code_of(c) == LG_ERR_MEMORY);
                lg_clear_error(c);
                lg_scope_end(c, s);
                assert_true(n < 1000);
        }
        assert_int_equal(releases, 1);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

TEST_CASE(the_name_of_an_own_op_may_go)
{
        lg_ctx *c = open_ctx();
        char *name = malloc(400);
        memset(name, 'n', 399);
        memcpy(name, "short-lived", 11);
        name[399] = 0;
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = same, .backward = refuse);
        lg_tensor *y = lg_custom_with(c, name, LG_LIST(vector(c, 1, 2)), &op);
        free(name);
        assert_false(lg_backward(lg_sum(y)));
        assert_error(c, LG_ERR_STATE, "short-livednnn");
        lg_close(c);
}

/* ---- borrowed memory ---- */

typedef struct borrowed {
        lg_ctx *c;
        lg_tensor *t, *other;
        float values[4];
        int calls;
} borrowed;

static void use_what_ends(void *user)
{
        borrowed *b = user;
        b->calls++;
        assert_int_equal(lg_numel(b->t), 0);
        assert_null(lg_reshape(b->t, LG_SHAPE(2, 2)));
        assert_error(b->c, LG_ERR_STATE, "reshape: x was freed");
        assert_null(lg_keep(b->t));
        assert_error(b->c, LG_ERR_STATE, "lg_keep");
        assert_null(lg_escape(b->t));
        assert_error(b->c, LG_ERR_STATE, "lg_escape");
        lg_free(b->t);
}

TEST_CASE(a_tensor_whose_memory_is_released_has_ended)
{
        lg_ctx *c = open_ctx();
        borrowed b = {.c = c};
        int64_t live = lg_live_tensors(c);
        for (int i = 0; i < 2; i++) {
                lg_scope s = lg_scope_begin(c);
                b.t = lg_borrow(c, b.values, use_what_ends, &b, LG_SHAPE(4));
                if (i)
                        lg_free(b.t);
                lg_scope_end(c, s);
                assert_int_equal(b.calls, i + 1);
                assert_int_equal(lg_live_tensors(c), live);
        }
        assert_ok(c);
        lg_close(c);
}

static void backward_again(void *user)
{
        borrowed *b = user;
        b->calls++;
        assert_false(lg_backward(b->t));
        assert_error(b->c, LG_ERR_STATE, "freed by an earlier lg_backward");
}

/* What the graph saved is released when a backward has gone through it; that graph cannot be used once more there. */
TEST_CASE(a_graph_whose_values_are_released_is_used_up)
{
        lg_ctx *c = open_ctx();
        lg_set_default_device(c, lg_cpu());
        borrowed b = {.c = c, .values = {1, 2, 3, 4}};
        lg_tensor *w = lg_full(c, LG_SHAPE(4), 2, .requires_grad = true);
        lg_tensor *x = lg_borrow(c, b.values, backward_again, &b, LG_SHAPE(4));
        b.t = lg_sum(lg_mul(x, w));
        lg_free(x);
        assert_true(lg_backward(b.t));
        assert_int_equal(b.calls, 1);
        assert_list(lg_grad_of(w), 0, 1, 2, 3, 4);
        lg_close(c);
}

static lg_scope around;

static void end_around_and_escape(void *user)
{
        borrowed *b = user;
        b->calls++;
        assert_true(lg_scope_end(b->c, around));
        lg_escape(b->other); /* out of a scope that ends, whose enclosing one has ended */
}

TEST_CASE(scopes_end_while_a_scope_ends)
{
        lg_ctx *c = open_ctx();
        borrowed b = {.c = c};
        int64_t live = lg_live_tensors(c);
        around = lg_scope_begin(c);
        lg_scope inner = lg_scope_begin(c);
        b.other = lg_ones(c, LG_SHAPE(2)); /* ends after the borrowed one */
        drop(lg_borrow(c, b.values, end_around_and_escape, &b, LG_SHAPE(4)));
        assert_true(lg_scope_end(c, inner));
        assert_int_equal(b.calls, 1);
        assert_int_equal(lg_live_tensors(c), live);
        assert_ok(c);
        lg_close(c);
}

/* ---- the end of a context ---- */

static void compute_at_the_end(void *user)
{
        borrowed *b = user;
        b->calls++;
        lg_clear_error(b->c);
        assert_non_null(strstr(lg_error(b->c), "closed"));
        assert_null(lg_ones(b->c, LG_SHAPE(2)));
        assert_int_equal(lg_scope_begin(b->c).id, 0);
        lg_close(b->c);
}

TEST_CASE(a_context_that_is_closed_computes_nothing)
{
        lg_ctx *c = open_ctx();
        borrowed b = {.c = c};
        drop(lg_nn_module(c, "Own", .forward = forward_only_child, .user = &b, .release = compute_at_the_end));
        drop(lg_borrow(c, b.values, compute_at_the_end, &b, LG_SHAPE(4)));
        lg_keep(lg_borrow(c, b.values, compute_at_the_end, &b, LG_SHAPE(4)));
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = same, .backward = pass_on, .user = &b,
                                           .release = compute_at_the_end);
        assert_non_null(lg_custom_with(c, "mine", LG_LIST(vector(c, 1, 2)), &op));
        lg_close(c);
        assert_int_equal(b.calls, 4);
}

static void close_in_release(void *user)
{
        lg_close(user);
}

static lg_tensor *close_in_hook(lg_tensor *g, void *user)
{
        (void)g;
        lg_close(user);
        return NULL;
}

static lg_tensor *close_in_forward(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_close(lg_module_ctx(m));
        return in.items[0];
}

static bool close_in_own(lg_custom_call *k)
{
        lg_close(k->ctx);
        return same(k);
}

static void close_in_trace(const lg_trace_record *r, void *user)
{
        (void)r;
        lg_close(user);
}

static double close_in_lambda(int64_t epoch, void *user)
{
        (void)epoch;
        lg_close(user);
        return 1;
}

static lg_tensor *close_in_check(lg_ctx *c, lg_list in, void *user)
{
        (void)user;
        lg_close(c);
        return lg_sum(in.items[0]);
}

static void close_in_visit(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path, (void)t, (void)is_buffer;
        lg_close(user);
}

#define REFUSED(c, call)                                                                                               \
        do {                                                                                                           \
                (void)(call);                                                                                          \
                assert_error(c, LG_ERR_STATE, "lg_close: ");                                                           \
        } while (0)

TEST_CASE(a_context_cannot_be_closed_inside_a_call)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = vector(c, 1, 2), *y = lg_sum(x);
        float values[4];
        lg_hook(y, close_in_hook, c);
        REFUSED(c, lg_backward(y));
        lg_module *m = lg_nn_module(c, "Own", .forward = close_in_forward, .user = c, .release = close_in_release);
        lg_module_add_parameter(m, "p", vector(c, 1, 2));
        REFUSED(c, drop(lg_forward(m, x)));
        REFUSED(c, lg_each_tensor(m, close_in_visit, c));
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = close_in_own, .backward = pass_on);
        REFUSED(c, lg_custom_with(c, "mine", LG_LIST(x), &op));
        op.forward = same;
        op.backward = close_in_own;
        REFUSED(c, lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(x), &op))));
        op.release = close_in_release;
        op.user = c;
        lg_tensor *z;
        lg_no_grad(c)
        {
                REFUSED(c, lg_custom_with(c, "mine", LG_LIST(x), &op));
        }
        z = lg_custom_with(c, "mine", LG_LIST(x), &op);
        REFUSED(c, (lg_free(z), true));
        z = lg_borrow(c, values, close_in_release, c, LG_SHAPE(4));
        REFUSED(c, (lg_free(z), true));
        lg_set_trace(c, close_in_trace, .user = c);
        REFUSED(c, drop(lg_exp(x)));
        lg_set_trace(c, NULL);
        lg_check_report report;
        REFUSED(c, lg_gradcheck(c, close_in_check, LG_LIST(x), .report = &report));
        lg_optimizer *opt = lg_sgd(c, LG_LIST(x), 1);
        REFUSED(c, drop(lg_lambda_lr(opt, close_in_lambda, c)));
        REFUSED(c, (lg_module_free(m), true));
        assert_list(lg_add(x, x), 0, 2, 4);
        lg_close(c);
}

/* ---- modules, schedules, scopes ---- */

static lg_module *victim;

static lg_tensor *free_in_forward(lg_module *m, lg_list in, void *user)
{
        (void)m, (void)user;
        lg_module_free(victim);
        return in.items[0];
}

static void free_in_visit(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path, (void)t, (void)is_buffer, (void)user;
        lg_module_free(victim);
}

static void free_in_release(void *user)
{
        releases++;
        (void)user;
        lg_module_free(victim);
}

TEST_CASE(a_module_cannot_be_freed_while_it_runs)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = vector(c, 1, 2);
        lg_module *inner =
                lg_nn_module(c, "Inner", .forward = free_in_forward, .user = NULL, .release = free_in_release);
        lg_module_add_parameter(inner, "p", vector(c, 1, 2));
        victim = inner;
        assert_null(lg_forward(inner, x));
        assert_error(c, LG_ERR_STATE, "lg_module_free");
        lg_module *net = lg_nn_sequential(c, inner);
        victim = net;
        assert_null(lg_forward(net, x));
        assert_error(c, LG_ERR_STATE, "lg_module_free");
        lg_each_tensor(net, free_in_visit, NULL);
        assert_error(c, LG_ERR_STATE, "lg_module_free");
        victim = lg_nn_module(c, "Other", .forward = forward_only_child);
        assert_non_null(lg_forward(net, x)); /* another one may go */
        victim = net;
        releases = 0;
        lg_module_free(net); /* while it ends, too */
        assert_int_equal(releases, 1);
        assert_ok(c);
        lg_close(c);
}

typedef struct schedules {
        lg_optimizer *opt;
        lg_scheduler *s;
        lg_tensor *more;
        int what;
} schedules;

static double disturb(int64_t epoch, void *user)
{
        schedules *s = user;
        if (epoch && s->what == 0)
                lg_scheduler_free(s->s);
        if (epoch && s->what == 1)
                lg_optimizer_free(s->opt);
        for (int i = 0; epoch && s->what == 2 && i < 20; i++)
                lg_add_param_group(s->opt, LG_LIST(lg_ones(lg_ctx_of(s->more), LG_SHAPE(2), .requires_grad = true)));
        return 0.5;
}

TEST_CASE(a_schedule_cannot_be_freed_in_its_lambda)
{
        lg_ctx *c = open_ctx();
        schedules s = {.more = vector(c, 1, 2)};
        s.opt = lg_sgd(c, LG_LIST(s.more), 1);
        lg_scheduler *lambda = lg_lambda_lr(s.opt, disturb, &s);
        s.s = lambda;
        lg_scheduler_step(lambda);
        assert_error(c, LG_ERR_STATE, "lg_scheduler_free");
        s.s = lg_chained_lr(lambda);
        lg_scheduler_step(s.s);
        assert_error(c, LG_ERR_STATE, "lg_scheduler_free");
        s.what = 1;
        lg_scheduler_step(s.s);
        assert_error(c, LG_ERR_STATE, "lg_optimizer_free");
        s.what = 2;
        assert_true(lg_scheduler_step(s.s));
        assert_int_equal(lg_param_group_count(s.opt), 21);
        assert_near(lg_lr(s.opt), 0.5, 0);
        lg_scheduler_free(s.s);
        lg_optimizer_free(s.opt);
        assert_ok(c);
        lg_close(c);
}

static void end_in_trace(const lg_trace_record *r, void *user)
{
        (void)r;
        assert_false(lg_scope_end(user, around));
}

TEST_CASE(a_trace_cannot_end_scopes_around_the_op)
{
        lg_ctx *c = open_ctx();
        around = lg_scope_begin(c);
        lg_tensor *x = vector(c, 1, 2);
        lg_set_trace(c, end_in_trace, .user = c);
        assert_null(lg_exp(x));
        assert_error(c, LG_ERR_STATE, "has not returned");
        lg_set_trace(c, NULL);
        assert_list(lg_add(x, x), 0, 2, 4);
        assert_true(lg_scope_end(c, around));
        lg_close(c);
}

/* ---- loaders ---- */

typedef struct loaders {
        lg_loader *outer, *inner;
        int what;
} loaders;

static void disturb_outer(loaders *l)
{
        lg_batch b;
        if (l->inner && !lg_loader_next(l->inner, &b))
                assert_true(lg_loader_next(l->inner, &b)); /* the next epoch */
        if (l->what == 0)
                assert_false(lg_loader_next(l->outer, &b));
        if (l->what == 1)
                lg_loader_restart(l->outer);
        if (l->what == 2)
                lg_loader_close(l->outer);
}

static lg_tensor *next_in_forward(lg_module *m, lg_list in, void *user)
{
        (void)m;
        disturb_outer(user);
        return lg_add(in.items[0], in.items[0]);
}

static lg_tensor *next_in_hook(lg_tensor *g, void *user)
{
        disturb_outer(user);
        return lg_add(g, g);
}

/* The step of a loader is a scope around the call: code that is called cannot end it, with or without a loader of its
 * own. */
TEST_CASE(a_step_cannot_be_ended_inside_a_call)
{
        lg_ctx *c = open_ctx();
        lg_tensor *data = lg_ones(c, LG_SHAPE(6, 1), .device = lg_cpu());
        lg_dataset *d = lg_dataset_tensors(c, data, data);
        loaders l = {.outer = lg_loader_open(c, d, 2)};
        lg_loader *inner = lg_loader_open(c, d, 3);
        lg_module *m = lg_nn_module(c, "Own", .forward = next_in_forward, .user = &l);
        lg_batch b;
        for (int i = 0; i < 6; i++) {
                l.what = i % 3;
                l.inner = i < 3 ? inner : NULL;
                assert_true(lg_loader_next(l.outer, &b));
                assert_int_equal(b.index, i % 3); /* nothing moved on */
                assert_null(lg_forward(m, b.x));
                assert_error(c, LG_ERR_STATE, "has not returned");
                assert_list(lg_add(b.x, b.x), 0, 2, 2);
                lg_tensor *w = lg_ones(c, LG_SHAPE(2, 1), .requires_grad = true), *y = lg_mul(w, b.x);
                lg_hook(y, next_in_hook, &l);
                assert_false(lg_backward(lg_sum(y)));
                assert_error(c, LG_ERR_STATE, "has not returned");
                assert_list(lg_add(b.x, w), 0, 2, 2);
                if (i == 2)
                        assert_false(lg_loader_next(l.outer, &b));
        }
        lg_loader_close(l.outer);
        assert_ok(c);
        lg_close(c);
}
