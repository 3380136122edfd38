/* test_scope.c - who owns a tensor, when it ends, what its memory does then, and what use after that gives. */
#include "failing.h"

TEST_CASE(nested_scopes_free_what_was_made_in_them)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c);
        lg_tensor *before = lg_ones(c, LG_SHAPE(3));
        int64_t live = lg_live_tensors(c), used = lg_memory_stats(c, d).used;
        lg_scope outer = lg_scope_begin(c);
        lg_tensor *a = lg_add(before, before);
        lg_scope inner = lg_scope_begin(c);
        drop(lg_add(a, a));
        drop(lg_mul(a, a));
        assert_int_equal(lg_live_tensors(c), live + 3);
        assert_true(lg_scope_end(c, inner));
        assert_int_equal(lg_live_tensors(c), live + 1);
        assert_list(a, 0, 2, 2, 2);
        assert_true(lg_scope_end(c, outer));
        assert_int_equal(lg_live_tensors(c), live);
        assert_int_equal(lg_memory_stats(c, d).used, used);
        assert_list(before, 0, 1, 1, 1);
        lg_close(c);
}

TEST_CASE(ending_a_scope_ends_those_inside)
{
        lg_ctx *c = open_ctx();
        int64_t live = lg_live_tensors(c);
        lg_scope outer = lg_scope_begin(c);
        lg_scope inner = lg_scope_begin(c);
        drop(lg_ones(c, LG_SHAPE(3)));
        assert_true(lg_scope_end(c, outer));
        assert_int_equal(lg_live_tensors(c), live);
        assert_false(lg_scope_end(c, inner));
        assert_error(c, LG_ERR_STATE, "lg_scope_end");
        lg_scope again = lg_scope_begin(c);
        lg_set_error(c, LG_ERR_IO, "x");
        assert_true(lg_scope_end(c, again)); /* works while an error is set */
        lg_close(c);
}

/* What no lg_scope_begin gave: nothing, an id made up, that of the outermost scope, a scope of another context. */
TEST_CASE(scopes_that_are_not_the_callers_to_end)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_scope s = lg_scope_begin(c), theirs = lg_scope_begin(other);
        int64_t live = lg_live_tensors(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        assert_false(lg_scope_end(c, (lg_scope){0}));
        assert_error(c, LG_ERR_STATE, "lg_scope_begin failed");
        assert_false(lg_scope_end(c, (lg_scope){s.id + 1}));
        assert_error(c, LG_ERR_STATE, "not open");
        assert_false(lg_scope_end(c, (lg_scope){s.id - 1}));
        assert_error(c, LG_ERR_STATE, "not open");
        assert_false(lg_scope_end(c, theirs));
        assert_error(c, LG_ERR_STATE, "another context");
        assert_false(lg_scope_end(NULL, s));
        assert_int_equal(lg_live_tensors(c), live + 1);
        assert_list(lg_add(x, x), 0, 2, 2);
        assert_true(lg_scope_end(c, s));
        assert_list(lg_ones(c, LG_SHAPE(2)), 0, 1, 1);
        /* a scope that could not be begun: the error that was first stays */
        lg_set_error(c, LG_ERR_IO, "the first one");
        s = lg_scope_begin(c);
        assert_int_equal(s.id, 0);
        assert_false(lg_scope_end(c, s));
        assert_error(c, LG_ERR_IO, "the first one");
        lg_close(other);
        lg_close(c);
}

static lg_scope around;

static lg_tensor *ends_in_hook(lg_tensor *grad, void *user)
{
        assert_false(lg_scope_end(lg_ctx_of(grad), around));
        (void)user;
        return NULL;
}

static bool ends_in_forward(lg_custom_call *k)
{
        k->out[0] = lg_mul_scalar(k->in[0], 2);
        return lg_scope_end(k->ctx, around);
}

static bool ends_in_backward(lg_custom_call *k)
{
        k->grad_in[0] = lg_mul_scalar(k->grad_out[0], 2);
        return lg_scope_end(k->ctx, around);
}

static bool twice(lg_custom_call *k)
{
        lg_scope own = lg_scope_begin(k->ctx); /* one of its own it may end, with those inside */
        if (!lg_scope_begin(k->ctx).id)
                return false;
        k->out[0] = lg_keep(lg_mul_scalar(k->in[0], 2));
        return lg_scope_end(k->ctx, own);
}

static lg_tensor *ends_in_check(lg_ctx *c, lg_list in, void *user)
{
        (void)user;
        lg_tensor *y = lg_sum(in.items[0]);
        lg_scope_end(c, around);
        return y;
}

/* Whoever is called in the middle of a call cannot take away what that call stands on. */
TEST_CASE(code_that_is_called_cannot_end_scopes_around_the_call)
{
        lg_ctx *c = open_ctx();
        around = lg_scope_begin(c);
        lg_tensor *x = lg_full(c, LG_SHAPE_0D, 3, .dtype = LG_F64, .requires_grad = true), *y = lg_square(x), *r;
        lg_hook(y, ends_in_hook, NULL);
        assert_false(lg_backward(y, .retain_graph = true));
        assert_error(c, LG_ERR_STATE, "has not returned");
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x), .result = &r));
        assert_error(c, LG_ERR_STATE, "has not returned");
        assert_null(r);
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = ends_in_forward, .backward = ends_in_backward);
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_error(c, LG_ERR_STATE, "has not returned");
        op.forward = twice;
        assert_non_null(y = lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_list(y, 0, 6);
        assert_false(lg_backward(y));
        assert_error(c, LG_ERR_STATE, "has not returned");
        lg_check_report report;
        assert_false(lg_gradcheck(c, ends_in_check, LG_LIST(x), .report = &report));
        assert_error(c, LG_ERR_STATE, "has not returned");
        assert_list(lg_add(x, x), 0, 6);
        assert_true(lg_scope_end(c, around));
        lg_close(c);
}

TEST_CASE(escape_and_keep)
{
        lg_ctx *c = open_ctx();
        int64_t live = lg_live_tensors(c);
        lg_scope one = lg_scope_begin(c);
        lg_scope two = lg_scope_begin(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2)), *y = lg_add(x, x), *z = lg_add(y, x);
        assert_ptr_equal(lg_escape(y), y);
        assert_ptr_equal(lg_keep(z), z);
        lg_scope_end(c, two);
        assert_list(y, 0, 2, 2);
        assert_null(lg_neg(x));
        assert_error(c, LG_ERR_STATE, "neg");
        lg_escape(y);
        lg_scope_end(c, one);
        assert_list(y, 0, 2, 2);
        assert_list(z, 0, 3, 3);
        assert_int_equal(lg_live_tensors(c), live + 2);
        lg_free(z);
        lg_free(y);
        assert_int_equal(lg_live_tensors(c), live);
        lg_keep(lg_ones(c, LG_SHAPE(2))); /* never freed: lg_close does */
        lg_close(c);
}

TEST_CASE(use_after_the_scope_is_told)
{
        lg_ctx *c = open_ctx();
        lg_scope s = lg_scope_begin(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .requires_grad = true), *y = lg_sum(x);
        lg_scope_end(c, s);
        lg_tensor *z = lg_ones(c, LG_SHAPE(2));
        assert_null(lg_add(z, x));
        assert_error(c, LG_ERR_STATE, "scope");
        assert_null(lg_reshape(x, LG_SHAPE(1, 2)));
        assert_error(c, LG_ERR_STATE, "reshape");
        assert_false(lg_backward(y));
        assert_error(c, LG_ERR_STATE, "backward");
        assert_false(lg_fill_(x, 2));
        assert_error(c, LG_ERR_STATE, "lg_fill_");
        assert_null(lg_keep(x));
        assert_error(c, LG_ERR_STATE, "lg_keep");
        float v[2];
        assert_false(lg_read(x, v, LG_F32, sizeof v));
        assert_error(c, LG_ERR_STATE, "lg_read");
        assert_int_equal(lg_numel(x), 0);
        assert_null(lg_ctx_of(x));
        lg_free(x); /* twice freed is no crash */
        assert_list(z, 0, 1, 1);
        lg_close(c);
}

TEST_CASE(a_graph_keeps_the_values_it_needs)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(2), 3, .requires_grad = true);
        lg_scope s = lg_scope_begin(c);
        lg_tensor *y = lg_escape(lg_sum(lg_mul(lg_exp(x), lg_square(x))));
        lg_scope_end(c, s);
        assert_true(lg_backward(y));
        double e = exp(3.0);
        assert_list(lg_grad_of(x), 1e-5, e * 9 + e * 6, e * 9 + e * 6);
        lg_close(c);
}

TEST_CASE(memory_comes_back_and_is_used_again)
{
        failing n = {0};
        lg_ctx *c = lg_open(FAILING(&n));
        lg_device d = test_device(c);
        assert_true(n.allocs > 0);
        lg_memory_stats_t at_first = lg_memory_stats(c, d);
        lg_tensor *x = lg_ones(c, LG_SHAPE(1000, 1000));
        lg_memory_stats_t m = lg_memory_stats(c, d);
        assert_true(m.used - at_first.used >= 4000000 && m.used - at_first.used <= 5000000);
        assert_true(m.peak >= m.used);
        lg_free(x);
        m = lg_memory_stats(c, d);
        assert_int_equal(m.used, at_first.used);
        assert_true(m.cached - at_first.cached >= 4000000);
        int64_t allocs = n.allocs;
        for (int i = 0; i < 10; i++)
                lg_free(lg_ones(c, LG_SHAPE(1000, 1000)));
        assert_int_equal(n.allocs, allocs);
        assert_int_equal(lg_memory_stats(c, d).system_allocs, m.system_allocs);
        lg_reset_peak_memory(c, d);
        assert_int_equal(lg_memory_stats(c, d).peak, lg_memory_stats(c, d).used);
        int64_t bytes = n.bytes;
        lg_empty_cache(c);
        assert_int_equal(lg_memory_stats(c, d).cached, 0);
        assert_true(n.bytes <= bytes - 4000000);
        lg_close(c);
        assert_int_equal(n.allocs, n.frees);
        assert_int_equal(n.bytes, 0);
}

/* A request that the system refuses is met when giving the cache back helps. */
TEST_CASE(the_cache_is_given_back_before_memory_is_out)
{
        failing n = {.limit = 16000000};
        lg_ctx *c = lg_open(FAILING(&n));
        test_device(c);
        lg_free(lg_ones(c, LG_SHAPE(2500000)));
        lg_tensor *other = lg_ones(c, LG_SHAPE(1800000)); /* of another size class: both do not fit */
        assert_ok(c);
        assert_non_null(other);
        assert_null(lg_ones(c, LG_SHAPE(3000000)));
        assert_error(c, LG_ERR_MEMORY, "out of memory");
        lg_free(other);
        assert_non_null(lg_ones(c, LG_SHAPE(3000000)));
        lg_close(c);
        assert_int_equal(n.bytes, 0);
}

TEST_CASE(memory_is_aligned_and_huge_requests_fail)
{
        lg_ctx *c = open_ctx();
        for (size_t n = 1; n < 5000; n += 77) {
                void *p = lg_system_alloc(c, lg_cpu(), n);
                assert_int_equal((uintptr_t)p % 64, 0);
                lg_system_free(c, lg_cpu(), p, n);
        }
        for (size_t n = 1 << 21; n < 1 << 24; n += 1234567) { /* large pages of 2 MB */
                char *p = lg_system_alloc(c, lg_cpu(), n);
                assert_int_equal((uintptr_t)p % (1 << 21), 0);
                p[n - 1] = 1;
                lg_system_free(c, lg_cpu(), p, n);
        }
        assert_null(lg_zeros(c, LG_SHAPE((int64_t)1 << 45)));
        assert_non_null(strstr(lg_error(c), "batch"));
        assert_error(c, LG_ERR_MEMORY, "out of memory");
        assert_null(lg_zeros(c, LG_SHAPE((int64_t)1 << 40, (int64_t)1 << 40)));
        assert_error(c, LG_ERR_SHAPE, "");
        assert_list(lg_ones(c, LG_SHAPE(2)), 0, 1, 1);
        lg_close(c);
}

TEST_CASE(many_tensors)
{
        lg_ctx *c = open_ctx();
        int64_t live = lg_live_tensors(c);
        lg_scope s = lg_scope_begin(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(1));
        for (int i = 0; i < 20000; i++)
                drop(lg_reshape(x, LG_SHAPE(1, 1)));
        assert_int_equal(lg_live_tensors(c), live + 20001);
        lg_scope_end(c, s);
        assert_int_equal(lg_live_tensors(c), live);
        lg_close(c);
}

static void release_in(void *user)
{
        lg_ctx *c = user;
        lg_tensor *t = lg_ones(c, LG_SHAPE(3));
        assert_non_null(t);
        lg_scope_end(c, lg_scope_begin(c));
        lg_keep(t);
}

static void end_in(void *user)
{
        lg_scope_end(user, around); /* it is ending already, or the one inside it is */
        lg_clear_error(user);
}

static void close_in(void *user)
{
        drop(lg_ones(user, LG_SHAPE(3)));
        assert_string_equal(lg_error(user), "the context is being closed");
        lg_close(user);
}

TEST_CASE(release_functions_may_call_back)
{
        lg_ctx *c = lg_open();
        float data[2] = {1, 2};
        int64_t live = lg_live_tensors(c);
        lg_scope s = lg_scope_begin(c);
        drop(lg_borrow(c, data, release_in, c, LG_SHAPE(2)));
        assert_true(lg_scope_end(c, s));
        assert_int_equal(lg_live_tensors(c), live + 1);
        around = lg_scope_begin(c);
        drop(lg_borrow(c, data, end_in, c, LG_SHAPE(2)));
        s = lg_scope_begin(c);
        drop(lg_borrow(c, data, end_in, c, LG_SHAPE(2)));
        assert_true(lg_scope_end(c, s));
        assert_false(lg_scope_end(c, around));
        assert_error(c, LG_ERR_STATE, "not open");
        assert_int_equal(lg_live_tensors(c), live + 1);
        drop(lg_borrow(c, data, close_in, c, LG_SHAPE(2)));
        lg_keep(lg_borrow(c, data, close_in, c, LG_SHAPE(2)));
        lg_close(c);
}

/* So many that no test would end if the end of each searched all of them. */
TEST_CASE(scopes_end_without_a_search)
{
        lg_ctx *c = open_ctx();
        const lg_scope outer = lg_scope_begin(c);
        for (int i = 1; i < 1000000; i++)
                assert_true(lg_scope_begin(c).id);
        assert_true(lg_scope_end(c, outer));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *leaves_a_scope_open(lg_ctx *c, lg_list in, void *user)
{
        (void)user;
        return lg_scope_begin(c).id ? lg_square(in.items[0]) : NULL;
}

TEST_CASE(a_checked_function_leaves_a_scope_open)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_uniform(c, 1, 2, LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        int64_t live = lg_live_tensors(c);
        lg_check_report r;
        assert_true(lg_gradcheck(c, leaves_a_scope_open, LG_LIST(x), .report = &r));
        assert_int_equal(r.checked, 3);
        assert_true(lg_gradgradcheck(c, leaves_a_scope_open, LG_LIST(x)));
        assert_int_equal(lg_live_tensors(c), live);
        lg_close(c);
}

static lg_tensor *read_later;

static void read_in(void *user)
{
        double out[2] = {7, 7};
        *(int *)user += lg_read(read_later, out, LG_F64, sizeof out);
}

TEST_CASE(a_release_function_reads_at_the_close)
{
        lg_ctx *c = open_ctx();
        float data[2] = {1, 2};
        int read = 0;
        read_later = lg_keep(lg_ones(c, LG_SHAPE(2)));
        lg_keep(lg_borrow(c, data, read_in, &read, LG_SHAPE(2), .device = lg_cpu()));
        lg_close(c); /* with another dtype a read makes a tensor, for which there is no scope any more */
        assert_int_equal(read, 0);
}
