/* test_options.c - structs that cross between programs and libraries of different versions, values that stand for zero,
 * unknown enumerators, getters. */
#include <stdio.h>
#include "failing.h"

/* The options of a program that was compiled with a newer header. */
typedef struct newer {
        lg_reduce_options o;
        int64_t later;
} newer;

TEST_CASE(options_of_other_versions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3, 4}), LG_SHAPE(2, 2));
        newer n = {.o = {.size_ = sizeof n, .dims = LG_DIMS(1)}};
        assert_list(lg_sum_with(x, &n.o), 0, 3, 7);
        n.later = 1;
        assert_null(lg_sum_with(x, &n.o));
        assert_error(c, LG_ERR_ARGUMENT, "sum: an option of a newer libgrad");
        n.o.size_ = sizeof n.o; /* what lies behind is not looked at */
        assert_list(lg_sum_with(x, &n.o), 0, 3, 7);
        n.o.keep_dim = true;
        n.o.size_ = offsetof(lg_reduce_options, keep_dim); /* an older one knows less */
        assert_int_equal(lg_ndim_of(lg_sum_with(x, &n.o)), 1);
        for (size_t size = 0; size < sizeof(size_t); size++) {
                n.o.size_ = size;
                assert_null(lg_sum_with(x, &n.o));
                assert_error(c, LG_ERR_ARGUMENT, "sum: options without their size");
        }
        n.o.size_ = (size_t)1 << 40; /* nobody's: what lay in memory that was not set */
        assert_null(lg_sum_with(x, &n.o));
        assert_error(c, LG_ERR_ARGUMENT, "sum: options without their size");
        assert_list(lg_sum_with(x, NULL), 0, 10);
        lg_open_options o = *LG_OPTIONS(lg_open_options, .seed = 3);
        o.size_ = 3;
        assert_null(lg_open_with(&o));
        lg_ctx *other = lg_open_with(NULL);
        assert_non_null(other);
        lg_close(other);
        lg_close(c);
}

/* A struct that the library fills, in a program that knows half or more of it. */
TEST_CASE(structs_that_are_filled)
{
        lg_ctx *c = open_ctx();
        struct {
                lg_memory_stats_t s;
                int64_t later, behind;
        } stats;
        assert_non_null(lg_zeros(c, LG_SHAPE(4), .device = lg_cpu()));
        memset(&stats, 7, sizeof stats);
        assert_ptr_equal(lg_memory_stats_with(c, lg_cpu(), &stats.s, offsetof(lg_memory_stats_t, peak)), &stats.s);
        assert_true(stats.s.used > 0 && stats.s.peak == 0x0707070707070707);
        lg_memory_stats_with(c, lg_cpu(), &stats.s, sizeof stats.s + sizeof stats.later);
        assert_true(stats.s.peak >= stats.s.used && stats.later == 0 && stats.behind == 0x0707070707070707);
        assert_int_equal(lg_memory_stats(NULL, lg_cpu()).used, 0);
        struct {
                lg_device_info_t i;
                char behind;
        } info = {.behind = 7};
        assert_true(lg_device_info_with(c, lg_cpu(), &info.i, 8));
        assert_true(info.i.name[0] && info.i.total_bytes == 0);
        assert_true(lg_device_info(c, lg_cpu(), &info.i));
        assert_true(info.i.total_bytes > 0 && info.behind == 7);
        lg_close(c);
}

TEST_CASE(zero_where_it_is_not_the_default)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((double[]){1, 2, 3, 6}), LG_SHAPE(4));
        assert_near(lg_item(lg_var(x)), 14.0 / 3, 1e-12);
        assert_near(lg_item(lg_var(x, .correction = LG_ZERO)), 3.5, 1e-12);
        assert_list(lg_pad(x, LG_INTS(1, 0), .value = LG_ZERO), 0, 0, 1, 2, 3, 6);
        assert_list(lg_tril(lg_reshape(x, LG_SHAPE(2, 2)), .diagonal = LG_ZERO_INT), 0, 1, 0, 3, 6);
        lg_tensor *signal = lg_reshape(x, LG_SHAPE(1, 1, 4)), *w = lg_ones(c, LG_SHAPE(1, 1, 2), .dtype = LG_F64);
        assert_list(lg_conv1d(signal, w, NULL, .padding = LG_ZERO_INT), 0, 3, 5, 9);
        assert_null(lg_conv1d(signal, w, NULL, .stride = LG_ZERO_INT));
        assert_error(c, LG_ERR_ARGUMENT, "conv1d: stride is 0; it must be at least 1");
        lg_tensor *p = lg_from(c, ((float[]){1}), LG_SHAPE(1), .requires_grad = true);
        lg_optimizer *opt =
                lg_sgd(c, LG_LIST(p), 0.5, .momentum = LG_ZERO, .weight_decay = LG_ZERO, .dampening = LG_ZERO);
        lg_backward(lg_sum(p));
        assert_true(lg_step(opt));
        assert_list(p, 0, 0.5);
        assert_true(isinf(LG_INFINITY) && LG_INFINITY > 0);
        assert_near(lg_item(lg_norm(x, .p = LG_INFINITY)), 6, 0);
        lg_close(c);
}

TEST_CASE(enumerators_that_are_unknown)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        double out[2];
        for (int wrong = -1; wrong < 100; wrong = wrong < 0 ? LG_BOOL + 1 : wrong + 40) {
                assert_null(lg_zeros(c, LG_SHAPE(2), .dtype = (lg_dtype)wrong));
                assert_error(c, LG_ERR_DTYPE, "is no dtype");
                assert_null(lg_from(c, (const void *)out, LG_SHAPE(2), .dtype = (lg_dtype)wrong));
                assert_error(c, LG_ERR_DTYPE, "is no dtype");
                assert_null(lg_borrow(c, (void *)out, NULL, NULL, LG_SHAPE(2), .dtype = (lg_dtype)wrong));
                assert_error(c, LG_ERR_DTYPE, "is no dtype");
                assert_null(lg_cast(x, (lg_dtype)wrong));
                assert_error(c, LG_ERR_DTYPE, "no dtype");
                assert_false(lg_read(x, out, (lg_dtype)wrong, sizeof out));
                assert_error(c, LG_ERR_DTYPE, "no dtype");
                assert_false(lg_write(x, out, (lg_dtype)wrong, sizeof out));
                assert_error(c, LG_ERR_DTYPE, "no dtype");
                assert_null(lg_mse(x, x, .reduction = (lg_reduction)wrong));
                assert_error(c, LG_ERR_ARGUMENT, "is no reduction");
                assert_null(lg_to(x, LG_DEVICE((lg_device_type)wrong, 0)));
                assert_error(c, LG_ERR_ARGUMENT, "there is no device type");
                assert_int_equal(lg_device_count(c, (lg_device_type)wrong), 0);
                assert_int_equal(lg_dtype_size((lg_dtype)wrong), 0);
                assert_int_equal(lg_promote((lg_dtype)wrong, LG_F32), LG_DTYPE_NONE);
                assert_false(lg_dtype_is_float((lg_dtype)wrong));
        }
        lg_close(c);
}

TEST_CASE(memory_says_its_dtype)
{
        lg_ctx *c = open_ctx();
        const int64_t i64[2] = {1, -2};
        int32_t i32[2] = {3, 4};
        const unsigned char u8[2] = {5, 255};
        bool bits[2] = {true, false};
        long long wide[2] = {7, 8};
        const void *bytes = u8;
        assert_int_equal(lg_dtype_of(lg_from(c, i64, LG_SHAPE(2))), LG_I64);
        assert_int_equal(lg_dtype_of(lg_from(c, i32, LG_SHAPE(2))), LG_I32);
        assert_int_equal(lg_dtype_of(lg_from(c, u8, LG_SHAPE(2))), LG_U8);
        assert_int_equal(lg_dtype_of(lg_from(c, bits, LG_SHAPE(2))), LG_BOOL);
        assert_int_equal(lg_dtype_of(lg_from(c, wide, LG_SHAPE(2))), LG_I64);
        lg_tensor *t = lg_from(c, i64, LG_SHAPE(2), .dtype = LG_F16, .requires_grad = true);
        assert_int_equal(lg_dtype_of(t), LG_F16);
        assert_true(lg_requires_grad(t));
        assert_list(t, 0, 1, -2);
        assert_list(lg_from(c, u8, LG_SHAPE(2), .dtype = LG_BOOL), 0, 1, 1);
        assert_list(lg_from(c, bytes, LG_SHAPE(2), .dtype = LG_U8), 0, 5, 255);
        assert_null(lg_from(c, bytes, LG_SHAPE(2)));
        assert_error(c, LG_ERR_DTYPE, "lg_from: data is a void *, which has no dtype; give .dtype");
        assert_list(lg_borrow(c, i32, NULL, NULL, LG_SHAPE(2), .device = lg_cpu()), 0, 3, 4);
        assert_null(lg_borrow(c, i32, NULL, NULL, LG_SHAPE(2), .dtype = LG_F32));
        assert_error(c, LG_ERR_DTYPE, "lg_borrow: data is i32, but .dtype is f32; lg_from() converts a copy");
        lg_close(c);
}

TEST_CASE(what_is_set_can_be_read)
{
        lg_ctx *c = lg_open();
        assert_true(lg_conv_allow_tf32(c) && !lg_allow_tf32(c) && !lg_deterministic(c));
        for (int on = 1; on >= 0; on--) {
                lg_set_deterministic(c, on);
                lg_set_allow_tf32(c, on);
                lg_set_conv_allow_tf32(c, on);
                lg_set_grad_mode(c, on);
                assert_int_equal(lg_deterministic(c), on);
                assert_int_equal(lg_allow_tf32(c), on);
                assert_int_equal(lg_conv_allow_tf32(c), on);
                assert_int_equal(lg_grad_mode(c), on);
        }
        assert_false(lg_anomaly(c));
        lg_set_anomaly(c, true);
        assert_true(lg_anomaly(c));
        lg_set_anomaly(c, false);
        assert_false(lg_anomaly(c) || lg_anomaly(NULL));
        assert_int_equal(lg_memory_limit(c, lg_cpu()), 0);
        assert_true(lg_set_memory_limit(c, lg_cpu(), 1 << 30));
        assert_int_equal(lg_memory_limit(c, lg_cpu()), 1 << 30);
        lg_device was = lg_set_default_device(c, lg_cpu());
        assert_true(lg_device_equal(lg_default_device(c), lg_cpu()));
        lg_set_default_device(c, was);
        assert_true(lg_device_equal(lg_default_device(c), was));
        assert_false(lg_deterministic(NULL) || lg_allow_tf32(NULL) || lg_conv_allow_tf32(NULL) || lg_grad_mode(NULL));
        assert_int_equal(lg_default_device(NULL).type, LG_DEVICE_NONE);
        assert_int_equal(lg_memory_limit(NULL, lg_cpu()), 0);
        lg_close(c);
}

TEST_CASE(threads_as_openmp_is_told)
{
        lg_ctx *c = lg_open(.threads = 2);
        assert_int_equal(lg_threads(c), 2);
        setenv("OMP_NUM_THREADS", "3,2", 1);
        lg_ctx *three = lg_open();
        assert_int_equal(lg_threads(three), 3);
        assert_int_equal(lg_threads(c), 2);
        assert_true(lg_set_threads(c, 0));
        assert_int_equal(lg_threads(c), 3);
        assert_true(lg_set_threads(c, 1));
        assert_int_equal(lg_threads(c), 1);
        const char *const odd[] = {"", "x", "-4", "0", "99999999999999999999"};
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
                setenv("OMP_NUM_THREADS", odd[i], 1);
                lg_set_threads(c, 0);
                assert_true(lg_threads(c) >= 1);
        }
        unsetenv("OMP_NUM_THREADS");
        lg_close(three);
        lg_close(c);
}

typedef struct heard {
        int times;
        char text[300];
} heard;

static void hear(lg_ctx *c, const char *text, void *user)
{
        heard *h = user;
        h->times++;
        snprintf(h->text, sizeof h->text, "%s", text);
        lg_close(c); /* refused */
}

TEST_CASE(a_loop_without_a_scope)
{
        lg_ctx *c = open_ctx();
        heard h = {0};
        lg_on_message(NULL, hear, &h);
        lg_on_message(c, hear, &h);
        lg_tensor *x = lg_zeros(c, LG_SHAPE(1));
        lg_scope s = lg_scope_begin(c);
        for (int i = 0; i < 12000; i++)
                drop(lg_reshape(x, LG_SHAPE(1, 1)));
        lg_scope_end(c, s);
        assert_int_equal(h.times, 0);
        for (int i = 1; i < 9999; i++)
                lg_free(lg_reshape(x, LG_SHAPE(1, 1)));
        assert_int_equal(h.times, 0);
        for (int i = 0; i < 12000; i++)
                lg_free(lg_reshape(x, LG_SHAPE(1, 1)));
        assert_int_equal(h.times, 1);
        assert_non_null(strstr(h.text, "lg_scope_begin()"));
        assert_error(c, LG_ERR_STATE, "lg_close: a call that uses the context has not returned");
        lg_close(c);
}
