/* test_devices.c - devices: what is told of them, copies between them, pinned memory, batches copied ahead, limits. */
#include "test.h"

static lg_device other_device(lg_ctx *c)
{
        lg_device d = test_device(c);
        d.index = d.type == LG_DEVICE_CPU ? 0 : 1;
        return d;
}

static lg_tensor *counting(lg_ctx *c, int64_t n, lg_device d)
{
        return lg_arange(c, 0, (double)n, 1, .dtype = LG_F32, .device = d);
}

static void assert_counting(const lg_tensor *t, int64_t n, double first)
{
        double *got = calloc((size_t)n + 1, sizeof *got);
        assert_int_equal(read_all(t, got, n), n);
        for (int64_t i = 0; i < n; i++)
                assert_near(got[i], first + (double)i, 0);
        free(got);
}

TEST_CASE(what_is_told_of_a_device)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c), found[20];
        lg_device_info_t info;
        assert_true(lg_device_info(c, d, &info));
        assert_true(info.name[0]);
        if (d.type == LG_DEVICE_CUDA) {
                assert_true(info.total_bytes > 0 && info.free_bytes > 0 && info.free_bytes <= info.total_bytes);
                assert_true(info.processors > 0 && info.major >= 7);
                assert_true(strchr(info.driver, '.') && strchr(info.runtime, '.'));
                assert_true(info.blas[0] && info.dnn[0]);
        } else
                assert_true(info.major == 0 && !info.driver[0] && !info.blas[0]);
        assert_false(lg_device_info(c, d, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "ret");

        int n = lg_try_all_cuda(c, 20, found), cudas = lg_device_count(c, LG_DEVICE_CUDA);
        assert_int_equal(n, cudas ? cudas : 1);
        assert_true(cudas || d.type != LG_DEVICE_CUDA);
        for (int i = 0; i < n; i++)
                assert_true(lg_device_equal(found[i], cudas ? LG_DEVICE(LG_DEVICE_CUDA, i) : lg_cpu()));
        assert_int_equal(lg_try_all_cuda(c, 1, found), 1);
        assert_int_equal(lg_try_all_cuda(c, 0, found), 0);
        assert_int_equal(lg_try_all_cuda(c, 3, NULL), 0);
        assert_int_equal(lg_try_all_cuda(NULL, 20, found), 1);
        assert_ok(c);
        assert_true(lg_device_equal(lg_try_cuda(c, 999), lg_cpu()));
        assert_true(lg_device_equal(lg_try_cuda(c, -1), lg_cpu()));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(copies_between_two_devices)
{
        lg_ctx *c = open_ctx();
        lg_device a = test_device(c), b = other_device(c);
        lg_tensor *x = counting(c, 1000, a), *y = lg_copy(x, b), *back = lg_copy(lg_mul_scalar(y, 1), a);
        assert_true(lg_device_equal(lg_device_of(y), b));
        assert_counting(y, 1000, 0);
        assert_counting(back, 1000, 0);
        /* What a copy reads may be freed and used again at once. */
        for (int i = 0; i < 8; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_tensor *t = lg_add_scalar(counting(c, 4096, a), i);
                lg_tensor *far = lg_copy(t, b);
                lg_free(t);
                lg_fill_(lg_empty(c, LG_SHAPE(4096), .device = a), -1);
                assert_counting(far, 4096, i);
                lg_scope_end(c, s);
        }
        lg_tensor *t = lg_to(lg_transpose(lg_reshape(x, LG_SHAPE(10, 100)), 0, 1), b);
        assert_near(lg_item(lg_sum(lg_select(t, 1, 1))), 14950, 0);
        assert_int_equal(lg_numel(lg_copy(lg_empty(c, LG_SHAPE(0), .device = a), b)), 0);
        assert_ok(c);
        lg_close(c);
}

/* What a call read may change as soon as the call has returned. */
TEST_CASE(memory_of_the_host)
{
        lg_ctx *c = open_ctx();
        float values[1000];
        for (int i = 0; i < 1000; i++)
                values[i] = (float)i;
        lg_tensor *x = lg_from(c, values, LG_SHAPE(1000));
        memset(values, 0, sizeof values);
        lg_tensor *host = counting(c, 1000, lg_cpu()), *y = lg_copy(host, test_device(c));
        lg_fill_(host, -1);
        assert_counting(x, 1000, 0);
        assert_counting(y, 1000, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(pinned_memory)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c);
        lg_tensor *x = counting(c, 5000, lg_cpu()), *p = lg_pin(x, d);
        assert_ok(c);
        assert_true((p == x) == (d.type != LG_DEVICE_CUDA));
        assert_ptr_equal(lg_pin(p, d), p);
        assert_true(lg_device_equal(lg_device_of(p), lg_cpu()));
        assert_counting(p, 5000, 0);
        lg_tensor *there = lg_to(p, d), *part = lg_to(lg_slice(p, 0, 1000, 1010), d);
        if (p != x) {
                lg_fill_(p, 7); /* waits for the copies */
                lg_free(p);
                assert_near(lg_item(lg_sum(part)), 10045, 0);
        }
        assert_counting(there, 5000, 0);
        assert_counting(part, 10, 1000);
        assert_int_equal(lg_numel(lg_to(lg_pin(lg_empty(c, LG_SHAPE(0), .device = lg_cpu()), d), d)), 0);
        if (lg_device_count(c, LG_DEVICE_CUDA) > 1 && p != x) { /* pinned for one, copied to the other */
                lg_tensor *q = lg_pin(x, d), *other = lg_to(q, LG_DEVICE(LG_DEVICE_CUDA, !d.index));
                lg_fill_(q, 7);
                assert_counting(other, 5000, 0);
        }
        lg_tensor *back = lg_to(there, lg_cpu());
        assert_counting(back, 5000, 0);
        assert_ok(c);
        if (d.type == LG_DEVICE_CUDA) {
                assert_null(lg_pin(there, d));
                assert_error(c, LG_ERR_DEVICE, "lg_pin");
                assert_null(lg_pin(lg_zeros(c, LG_SHAPE(2), .device = lg_cpu(), .requires_grad = true), d));
                assert_error(c, LG_ERR_STATE, "lg_detach");
        }
        assert_null(lg_pin(NULL, d));
        lg_clear_error(c);
        drop(lg_to(lg_pin(counting(c, 100, lg_cpu()), d), d)); /* still under way when all is closed */
        lg_close(c);
}

/* Every row comes once and whole, whatever is copied ahead, also after a break. */
TEST_CASE(batches_on_the_device)
{
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                lg_tensor *x = lg_reshape(counting(c, 103 * 6, lg_cpu()), LG_SHAPE(103, 6));
                lg_tensor *y = lg_arange(c, 0, 103, 1, .device = lg_cpu());
                lg_dataset *data = lg_dataset_tensors(c, x, y);
                lg_loader *l = lg_loader_open(c, data, 10, .workers = workers, .shuffle = true, .seed = 5,
                                              .device = test_device(c));
                assert_ok(c);
                for (int epoch = 0; epoch < 4; epoch++) {
                        int64_t rows = 0;
                        double sum = 0;
                        for (lg_batch b; lg_loader_next(l, &b);) {
                                lg_tensor *first = lg_select(b.x, 1, 0);
                                lg_tensor *same = lg_eq(first, lg_mul_scalar(lg_cast(b.y, LG_F32), 6));
                                assert_true(lg_item(lg_all(same)));
                                sum += lg_item(lg_sum(b.y));
                                rows += lg_shape_of(b.x).size[0];
                                if (epoch == 1 && rows == 30)
                                        break;
                        }
                        if (epoch == 1)
                                lg_loader_restart(l);
                        else {
                                assert_int_equal(rows, 103);
                                assert_near(sum, 103 * 102 / 2, 0);
                        }
                }
                lg_batch b;
                assert_true(lg_loader_next(l, &b)); /* one more is under way when the loader ends */
                assert_ok(c);
                if (workers == 1)
                        lg_loader_close(l);
                lg_close(c);
        }
}

TEST_CASE(limits)
{
        lg_ctx *c = open_ctx();
        lg_device d = test_device(c);
        lg_tensor *small = lg_full(c, LG_SHAPE(1000), 3);
        assert_false(lg_set_memory_limit(c, d, -1));
        assert_error(c, LG_ERR_ARGUMENT, "-1");
        assert_true(lg_set_memory_limit(c, d, lg_memory_stats(c, d).used + (8 << 20)));
        lg_tensor *most = lg_zeros(c, LG_SHAPE(1 << 20), .dtype = LG_F32);
        assert_ok(c);
        assert_null(lg_zeros(c, LG_SHAPE(3 << 20), .dtype = LG_F32));
        assert_error(c, LG_ERR_MEMORY, "lg_set_memory_limit");
        lg_free(most); /* what is cached is given back to make room */
        lg_tensor *now = lg_ones(c, LG_SHAPE(7 << 18), .dtype = LG_F32);
        assert_ok(c);
        assert_near(lg_item(lg_sum(now)), 7 << 18, 0);
        assert_near(lg_item(lg_sum(small)), 3000, 0);
        assert_true(lg_set_memory_limit(c, d, 0));
        assert_non_null(lg_zeros(c, LG_SHAPE(3 << 20), .dtype = LG_F32));
        assert_ok(c);
        lg_set_allow_tf32(c, true);
        assert_near(lg_item(lg_sum(lg_matmul(lg_ones(c, LG_SHAPE(8, 8)), lg_ones(c, LG_SHAPE(8, 8))))), 512, 0);
        lg_set_allow_tf32(c, false);
        lg_set_allow_tf32(NULL, true);
        assert_false(lg_set_memory_limit(NULL, d, 0));
        lg_close(c);
}

/* A graph that was recorded before its parameter moved brings gradients of the old device. */
TEST_CASE(a_graph_from_before_a_move)
{
        lg_ctx *c = open_ctx();
        lg_device here = test_device(c), there = lg_cpu();
        if (here.type == LG_DEVICE_CPU)
                here = lg_parse_device(c, "shadow");
        for (int i = 0; i < 2; i++) {
                lg_module *m = lg_nn_linear(c, 2, 1, .no_bias = true, .device = i ? there : here);
                lg_tensor *w = lg_parameter(m, "weight"), *old = lg_sum(lg_square(w));
                assert_true(lg_backward(lg_sum(w)));
                assert_true(lg_module_to(m, i ? here : there));
                assert_false(lg_backward(old, .retain_graph = true));
                assert_error(c, LG_ERR_DEVICE, "lg_backward: a gradient on ");
                assert_list(lg_grad_of(w), 0, 1, 1);
                /* both ways to one leaf in one graph */
                lg_clear_grad(w);
                lg_tensor *all = lg_add(lg_to(old, i ? here : there), lg_sum(w));
                assert_false(lg_backward(all, .retain_graph = true));
                assert_error(c, LG_ERR_DEVICE, "lg_backward: a gradient on ");
                assert_null(lg_grad(LG_LIST(all), LG_LIST(w), .create_graph = true));
                assert_error(c, LG_ERR_DEVICE, "lg_grad: a gradient on ");
                assert_null(lg_grad_of(w));
                assert_true(lg_backward(lg_sum(w)));
                assert_list(lg_grad_of(w), 0, 1, 1);
        }
        lg_close(c);
}
