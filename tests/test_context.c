/* test_context.c - the first error sticks, nothing is computed while it is set, and no argument can crash a call. */
#include "test.h"

TEST_CASE(first_error_stays)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_error(c));
        assert_int_equal(lg_error_code_of(c), LG_ERR_NONE);
        lg_tensor *a = lg_zeros(c, LG_SHAPE(2, 3)), *b = lg_zeros(c, LG_SHAPE(4));
        assert_null(lg_add(a, b));
        assert_int_equal(lg_error_code_of(c), LG_ERR_SHAPE);
        char first[512];
        snprintf(first, sizeof first, "%s", lg_error(c));
        assert_non_null(strstr(first, "add"));
        assert_non_null(strstr(first, "(2, 3)"));
        assert_non_null(strstr(first, "(4)") ? strstr(first, "(4)") : strstr(first, "(4,)"));
        assert_null(lg_select(a, 7, 0));
        assert_false(lg_set_error(c, LG_ERR_IO, "another"));
        assert_string_equal(lg_error(c), first);
        assert_int_equal(lg_error_code_of(c), LG_ERR_SHAPE);
        lg_clear_error(c);
        assert_null(lg_error(c));
        assert_non_null(lg_add(a, a));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(nothing_is_computed_while_an_error_is_set)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_full(c, LG_SHAPE(2), 3, .requires_grad = true), *y = lg_sum(lg_square(x));
        lg_tensor *buffer = lg_ones(c, LG_SHAPE(2));
        int64_t live = lg_live_tensors(c);
        lg_random_state random = lg_random_state_of(c);
        lg_device device = lg_default_device(c);
        int threads = lg_threads(c);
        lg_set_error(c, LG_ERR_IO, "disk %d", 7);
        lg_seed(c, 77);
        lg_set_random_state(c, (lg_random_state){5, 5});
        assert_false(lg_set_threads(c, threads + 1));
        assert_int_equal(lg_threads(c), threads);
        lg_set_default_device(c, LG_DEVICE(LG_DEVICE_SHADOW, 1));
        assert_true(lg_device_equal(device, lg_default_device(c)));
        assert_null(lg_zeros(c, LG_SHAPE(2)));
        assert_null(lg_uniform(c, 0, 1, LG_SHAPE(2)));
        assert_null(lg_permutation(c, 5));
        assert_null(lg_arange(c, 0, 3, 1));
        assert_null(lg_add(x, x));
        assert_null(lg_sum(x));
        assert_null(lg_matmul(x, x));
        assert_null(lg_reshape(x, LG_SHAPE(1, 2)));
        assert_null(lg_cat(LG_LIST(x, x), 0));
        assert_null(lg_detach(x));
        assert_null(lg_copy(x, lg_cpu()));
        assert_false(lg_backward(y));
        assert_null(lg_grad(LG_LIST(y), LG_LIST(x)));
        assert_false(lg_fill_(buffer, 9));
        assert_false(lg_add_(buffer, buffer));
        assert_false(lg_write(buffer, (float[]){8, 8}, LG_F32, 8));
        assert_false(lg_hook(x, NULL, NULL));
        assert_int_equal(lg_scope_begin(c).id, 0);
        assert_string_equal(lg_error(c), "disk 7");
        assert_int_equal(lg_live_tensors(c), live);
        assert_memory_equal(&random, &(lg_random_state[]){lg_random_state_of(c)}, sizeof random);

        assert_list(buffer, 0, 1, 1); /* reading works */
        assert_near(lg_item(lg_select(x, 0, 0)), NAN, 0);
        FILE *f = tmpfile();
        lg_print(f, buffer);
        assert_true(ftell(f) > 0);
        fclose(f);
        lg_free(buffer);
        assert_int_equal(lg_live_tensors(c), live - 1);
        lg_clear_error(c);
        assert_null(lg_grad_of(x));
        assert_true(lg_backward(y));
        assert_list(lg_grad_of(x), 0, 6, 6);
        lg_close(c);
}

TEST_CASE(null_is_an_error_and_no_crash)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2));
        assert_null(lg_add(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "add");
        assert_null(lg_add(NULL, x));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        assert_null(lg_linear(x, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "linear");
        assert_non_null(lg_linear(x, x, NULL)); /* the bias is optional */
        assert_null(lg_cross_entropy(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "cross_entropy");
        assert_null(lg_mse(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "");
        assert_null(lg_cat(LG_LIST(x, NULL), 0));
        assert_error(c, LG_ERR_ARGUMENT, "cat");
        assert_false(lg_copy_(x, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_copy_");
        assert_false(lg_read(x, NULL, LG_F32, 16));
        assert_error(c, LG_ERR_ARGUMENT, "lg_read");
        assert_null(lg_from(c, NULL, LG_SHAPE(2)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_from");
        lg_parse_device(c, NULL);
        assert_error(c, LG_ERR_ARGUMENT, "lg_parse_device");
        lg_close(c);
}

TEST_CASE(every_call_takes_a_null_context)
{
        assert_non_null(strstr(lg_error(NULL), "no context"));
        assert_int_not_equal(lg_error_code_of(NULL), LG_ERR_NONE);
        lg_clear_error(NULL);
        lg_close(NULL);
        assert_false(lg_set_error(NULL, LG_ERR_IO, "x"));
        assert_int_equal(lg_scope_begin(NULL).id, 0);
        assert_false(lg_scope_end(NULL, (lg_scope){1}));
        assert_null(lg_escape(NULL));
        assert_null(lg_keep(NULL));
        lg_free(NULL);
        assert_int_equal(lg_live_tensors(NULL), 0);
        assert_int_equal(lg_memory_stats(NULL, lg_cpu()).used, 0);
        lg_reset_peak_memory(NULL, lg_cpu());
        lg_empty_cache(NULL);
        lg_seed(NULL, 1);
        lg_set_random_state(NULL, lg_random_state_of(NULL));
        assert_false(lg_set_threads(NULL, 2));
        assert_int_equal(lg_threads(NULL), 0);
        lg_set_deterministic(NULL, true);
        assert_int_equal(lg_try_cuda(NULL, 0).type, LG_DEVICE_CPU);
        assert_int_equal(lg_parse_device(NULL, "cpu").type, LG_DEVICE_NONE);
        lg_device_info_t info;
        assert_false(lg_device_info(NULL, lg_cpu(), &info));
        lg_set_default_device(NULL, lg_cpu());
        assert_false(lg_synchronize(NULL));
        assert_null(lg_zeros(NULL, LG_SHAPE(1)));
        assert_null(lg_normal(NULL, 0, 1, LG_SHAPE(1)));
        assert_null(lg_add(NULL, NULL));
        assert_null(lg_sum(NULL));
        assert_null(lg_reshape(NULL, LG_SHAPE(1)));
        assert_null(lg_cat((lg_list){0, NULL}, 0));
        assert_false(lg_backward(NULL));
        assert_false(lg_fill_(NULL, 1));
        assert_null(lg_set_requires_grad(NULL, true));
        assert_null(lg_grad_of(NULL));
        assert_int_equal(lg_numel(NULL), 0);
        assert_int_equal(lg_dtype_of(NULL), LG_DTYPE_NONE);
        assert_int_equal(lg_shape_of(NULL).ndim, 0);
        assert_null(lg_ctx_of(NULL));
        assert_true(isnan(lg_item(NULL)));
        lg_print(stderr, NULL);
        bool was = lg_set_grad_mode(NULL, false);
        lg_set_grad_mode(NULL, was);
}

TEST_CASE(null_objects_are_no_crash)
{
        assert_null(lg_nn_linear(NULL, 2, 3));
        assert_null(lg_nn_relu(NULL));
        assert_null(lg_nn_sequential(NULL, NULL));
        assert_null(lg_forward(NULL, NULL));
        assert_int_equal(lg_parameters(NULL).count, 0);
        assert_false(lg_module_to(NULL, lg_cpu()));
        lg_train(NULL, true);
        lg_module_free(NULL);
        assert_null(lg_child(NULL, 0));
        assert_null(lg_sgd(NULL, ((lg_list){0, NULL}), 0.1));
        assert_null(lg_adam(NULL, ((lg_list){0, NULL}), 0.1));
        assert_false(lg_step(NULL));
        assert_false(lg_zero_grad(NULL));
        lg_optimizer_free(NULL);
        assert_null(lg_dataset_fashion_mnist(NULL, "train"));
        assert_null(lg_loader_open(NULL, NULL, 4));
        lg_batch b;
        assert_false(lg_loader_next(NULL, &b));
        lg_loader_restart(NULL);
        lg_loader_close(NULL);
        lg_dataset_free(NULL);
}

/* The shadow device comes with the build; a program compiled by hand may run without it. */
static bool have_shadow(void)
{
        return getenv("LIBGRAD_SHADOW") != NULL;
}

TEST_CASE(messages_name_what_is_wrong)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(64, 784));
        assert_null(lg_matmul(x, x));
        assert_non_null(strstr(lg_error(c), "(64, 784)"));
        assert_error(c, LG_ERR_SHAPE, "matmul");
        assert_null(lg_mean(lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64)));
        assert_error(c, LG_ERR_DTYPE, "i64");
        lg_close(c);
}

TEST_CASE(messages_name_both_devices)
{
        if (!have_shadow())
                skip();
        lg_ctx *c = open_ctx();
        lg_device cpu = lg_cpu(), shadow = lg_parse_device(c, "shadow");
        assert_ok(c);
        lg_tensor *x = lg_zeros(c, LG_SHAPE(64, 784), .device = cpu);
        lg_tensor *w = lg_zeros(c, LG_SHAPE(784, 10), .device = shadow);
        assert_null(lg_matmul(x, w));
        assert_non_null(strstr(lg_error(c), "(64, 784)"));
        assert_non_null(strstr(lg_error(c), "(784, 10)"));
        assert_non_null(strstr(lg_error(c), "cpu"));
        assert_non_null(strstr(lg_error(c), "shadow:0"));
        assert_non_null(strstr(lg_error(c), "lg_to()"));
        assert_error(c, LG_ERR_DEVICE, "matmul");
        lg_close(c);
}

TEST_CASE(contexts_do_not_mix)
{
        lg_ctx *a = open_ctx(), *b = open_ctx();
        lg_tensor *x = lg_ones(a, LG_SHAPE(2)), *y = lg_ones(b, LG_SHAPE(2));
        assert_null(lg_add(x, y));
        assert_true(lg_error_code_of(a) == LG_ERR_ARGUMENT || lg_error_code_of(b) == LG_ERR_ARGUMENT);
        lg_clear_error(a);
        lg_clear_error(b);
        assert_null(lg_cat(LG_LIST(x, y), 0));
        assert_true(lg_error_code_of(a) == LG_ERR_ARGUMENT || lg_error_code_of(b) == LG_ERR_ARGUMENT);
        lg_clear_error(a);
        lg_clear_error(b);
        lg_set_error(a, LG_ERR_IO, "only here");
        assert_non_null(lg_add(y, y));
        assert_ok(b);
        lg_close(a);
        assert_list(lg_add(y, y), 0, 2, 2);
        lg_close(b);
}

static lg_tensor *gives_theirs(lg_module *m, lg_list in, void *user)
{
        (void)m, (void)in;
        return user;
}

static lg_tensor *checked(lg_ctx *c, lg_list in, void *user)
{
        (void)c;
        return user ? user : lg_sum(in.items[0]);
}

#define TOLD(call)                                                                                                     \
        do {                                                                                                           \
                if (call)                                                                                              \
                        fail_msg("%s", #call);                                                                         \
                if (lg_error_code_of(c) != LG_ERR_ARGUMENT || !strstr(lg_error(c), "another context"))                 \
                        fail_msg("%s: %s", #call, lg_error(c) ? lg_error(c) : "no error");                             \
                lg_clear_error(c);                                                                                     \
        } while (0)

/* y is of another context, which has an error: c is told that, wherever y stands. */
static void tensors_of_a_failed_context(lg_ctx *c, lg_tensor *y)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2)), *b = lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_BOOL);
        lg_tensor *i = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64), *ii = lg_zeros(c, LG_SHAPE(2, 2), .dtype = LG_I64);
        lg_tensor *image = lg_ones(c, LG_SHAPE(1, 1, 2, 2)), *v = lg_ones(c, LG_SHAPE(2));
        TOLD(lg_add(x, y));
        TOLD(lg_add(y, x));
        TOLD(lg_where(b, x, y));
        TOLD(lg_copy_(x, y));
        TOLD(lg_copy_(y, x));
        TOLD(lg_add_(y, x));
        TOLD(lg_cat(LG_LIST(x, y), 0));
        TOLD(lg_cat(LG_LIST(y, x), 0));
        TOLD(lg_stack(LG_LIST(x, y), 0));
        TOLD(lg_stack(LG_LIST(y, x), 0));
        TOLD(lg_matmul(x, y));
        TOLD(lg_matmul(y, x));
        TOLD(lg_linear(x, y, NULL));
        TOLD(lg_linear(y, x, NULL));
        TOLD(lg_linear(x, x, y));
        TOLD(lg_conv2d(image, y, NULL));
        TOLD(lg_conv2d(y, image, NULL));
        TOLD(lg_conv2d(image, image, y));
        TOLD(lg_mse(x, y));
        TOLD(lg_mse(y, x));
        TOLD(lg_bce_with_logits(x, x, .pos_weight = y));
        TOLD(lg_cross_entropy(x, y));
        TOLD(lg_cross_entropy(y, i));
        TOLD(lg_cross_entropy(x, i, .weight = y));
        TOLD(lg_embedding(y, x));
        TOLD(lg_embedding(i, y));
        TOLD(lg_masked_fill(x, y, 0));
        TOLD(lg_masked_fill(y, b, 0));
        TOLD(lg_gather(x, 0, y));
        TOLD(lg_gather(y, 0, ii));
        TOLD(lg_scatter_add(x, 0, ii, y));
        TOLD(lg_index_select(x, 0, y));
        TOLD(lg_index_select(y, 0, i));
        TOLD(lg_index_add(x, 0, i, y));
        TOLD(lg_index_add(y, 0, i, x));
        TOLD(lg_lerp(x, y, x));
        TOLD(lg_lerp(y, x, x));
        TOLD(lg_lerp_scalar(y, x, 1));
        TOLD(lg_layer_norm(x, lg_shape_of(v), y, v));
        TOLD(lg_layer_norm(y, lg_shape_of(v), v, v));
        TOLD(lg_batch_norm(x, v, v, .running_mean = y, .running_var = v));
}

static void objects_and_tensors_of_a_failed_context(lg_ctx *c, lg_tensor *y)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2), .device = lg_cpu()), *w;
        w = lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_F64, .requires_grad = true);
        lg_module *m = lg_nn_module(c, "Own", .forward = gives_theirs, .user = y);
        lg_check_report r;
        TOLD(lg_sgd(c, LG_LIST(y), 1));
        TOLD(lg_sgd(c, LG_LIST(w, y), 1));
        TOLD(lg_add_param_group(lg_sgd(c, LG_LIST(w), 1), LG_LIST(y)));
        TOLD(lg_dataset_tensors(c, y, x));
        TOLD(lg_dataset_tensors(c, x, y));
        TOLD(lg_module_add_parameter(m, "p", y));
        TOLD(lg_module_add_buffer(m, "p", y));
        TOLD(lg_forward(m, x));
        TOLD(lg_forward(m, y));
        TOLD(lg_gradcheck(c, checked, LG_LIST(y), .report = &r));
        TOLD(lg_gradcheck(c, checked, LG_LIST(w), .user = y, .report = &r));
        TOLD(lg_gradgradcheck(c, checked, LG_LIST(w), .user = y, .report = &r));
        TOLD(lg_backward(lg_sum(w), .grad = y));
        TOLD(lg_backward(y, .grad = w));
        TOLD(lg_grad(LG_LIST(w), LG_LIST(y)));
        TOLD(lg_clip_grad_value(LG_LIST(w, y), 1));
}

TEST_CASE(what_belongs_to_a_failed_context)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *y = lg_ones(other, LG_SHAPE(2, 2), .dtype = LG_F64, .requires_grad = true, .device = lg_cpu());
        lg_tensor *ended = lg_ones(other, LG_SHAPE(2, 2));
        lg_free(ended);
        lg_set_error(other, LG_ERR_IO, "theirs");
        tensors_of_a_failed_context(c, y);
        objects_and_tensors_of_a_failed_context(c, y);
        assert_error(other, LG_ERR_IO, "theirs");
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2));
        TOLD(lg_add(x, ended));
        TOLD(lg_clip_grad_value(LG_LIST(x, ended), 1));
        assert_ok(other);
        lg_close(other);
        lg_close(c);
}

TEST_CASE(names)
{
        assert_string_equal(lg_version(), LG_VERSION);
        assert_string_equal(lg_error_name(LG_ERR_SHAPE), "LG_ERR_SHAPE");
        assert_string_equal(lg_error_name(LG_ERR_CUDA), "LG_ERR_CUDA");
        assert_non_null(lg_error_name((lg_error_code)99));
        assert_string_equal(lg_dtype_name(LG_BF16), "bf16");
        assert_string_equal(lg_dtype_name(LG_BOOL), "bool");
        assert_int_equal(lg_dtype_size(LG_F16), 2);
        assert_int_equal(lg_dtype_size(LG_I64), 8);
        assert_int_equal(lg_dtype_size(LG_DTYPE_NONE), 0);
        assert_true(lg_dtype_is_float(LG_F16));
        assert_false(lg_dtype_is_float(LG_U8));
}

TEST_CASE(devices)
{
        lg_ctx *c = lg_open(.threads = 3, .seed = 5);
        assert_int_equal(lg_threads(c), 3);
        assert_int_equal(lg_random_state_of(c).seed, 5);
        assert_true(lg_set_threads(c, 1));
        assert_int_equal(lg_threads(c), 1);
        assert_true(lg_set_threads(c, INT32_MAX)); /* as many as can be started, and it works */
        assert_in_range(lg_threads(c), 16, 4096);
        assert_near(lg_item(lg_sum(lg_ones(c, LG_SHAPE(300000)))), 300000, 0);
        assert_true(lg_set_threads(c, 1));
        assert_false(lg_set_threads(c, -1));
        assert_error(c, LG_ERR_ARGUMENT, "threads");
        assert_true(lg_device_equal(lg_parse_device(c, "cpu:0"), lg_cpu()));
        assert_string_equal(lg_device_name(lg_parse_device(c, "cpu")), "cpu");
        assert_int_equal(lg_device_count(c, LG_DEVICE_CPU), 1);
        lg_parse_device(c, "shadow:2");
        assert_error(c, LG_ERR_DEVICE, "shadow");
        lg_parse_device(c, "cpu:1");
        assert_error(c, LG_ERR_DEVICE, "cpu");
        const char *const wrong[] = {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cuda:1x", "cpux", "cpu:0 "};
        const char *const absent[] = {"cpu:63", "cpu:64", "cpu:4294967296", "cuda:64", "cuda:99999999999999999999999"};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                assert_int_equal(lg_parse_device(c, wrong[i]).type, LG_DEVICE_NONE);
                assert_error(c, LG_ERR_ARGUMENT, "is no device");
        }
        for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
                assert_int_equal(lg_parse_device(c, absent[i]).type, LG_DEVICE_NONE);
                assert_error(c, LG_ERR_DEVICE, "there is no device c");
        }
        if (lg_device_count(c, LG_DEVICE_CUDA) == 0) {
                assert_true(lg_device_equal(lg_try_cuda(c, 0), lg_cpu()));
                assert_ok(c);
                lg_parse_device(c, "cuda");
                assert_error(c, LG_ERR_DEVICE, "cuda");
        }
        lg_device_info_t info;
        assert_true(lg_device_info(c, lg_cpu(), &info));
        assert_true(strlen(info.name) > 0);
        assert_true(lg_synchronize(c));
        lg_close(c);
}

TEST_CASE(a_second_device)
{
        if (!have_shadow())
                skip();
        lg_ctx *c = lg_open();
        lg_device second = lg_parse_device(c, "shadow:1");
        assert_ok(c);
        assert_string_equal(lg_device_name(second), "shadow:1");
        assert_int_equal(lg_device_count(c, LG_DEVICE_SHADOW), 2);
        assert_true(lg_device_equal(lg_set_default_device(c, second), lg_cpu()));
        assert_true(lg_device_equal(lg_device_of(lg_zeros(c, LG_SHAPE(1))), second));
        assert_true(lg_device_equal(lg_default_device(c), second));
        assert_true(lg_synchronize(c));
        lg_close(c);
}

/* On the CPU the op itself reports it. */
TEST_CASE(a_fault_on_the_device_is_told_at_the_next_read)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3)), *y = lg_from(c, ((int64_t[]){1, 7}), LG_SHAPE(2), .dtype = LG_I64);
        lg_tensor *loss = lg_cross_entropy(x, y);
        assert_int_equal(loss == NULL, reports_at_once(c));
        assert_int_equal(lg_error_code_of(c), reports_at_once(c) ? LG_ERR_ARGUMENT : LG_ERR_NONE);
        lg_item(loss);
        assert_error(c, LG_ERR_ARGUMENT, "7");
        assert_true(lg_synchronize(c));
        loss = lg_cross_entropy(x, y);
        assert_false(lg_synchronize(c));
        assert_error(c, LG_ERR_ARGUMENT, "3 classes");
        assert_true(lg_synchronize(c));
        lg_close(c);
}
