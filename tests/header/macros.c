/* macros.c - the kinds of macros of the public header, run, in the words that C11 and C++20 have in common: values,
 * lists with and without a name, options, calls of any length, blocks, loops, callbacks. tests/mistakes/check.py
 * compiles them all. */
#include <grad.h>

/* Takes a result that nobody looks at. */
static void drop(const void *result)
{
        (void)result;
}

static bool forward_all(lg_module *m, lg_list inputs, lg_outputs *out, void *user)
{
        (void)m, (void)user;
        out->items[0] = inputs.items[0];
        out->items[1] = lg_neg(inputs.items[0]);
        out->count = 2;
        return true;
}

static bool twice(lg_custom_call *call)
{
        call->out[0] = lg_mul_scalar(call->in[0], 2);
        return true;
}

static bool twice_backward(lg_custom_call *call)
{
        call->grad_in[0] = lg_mul_scalar(call->grad_out[0], 2);
        return true;
}

static void *allocate(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        ++*(int *)user;
        return lg_system_alloc(c, device, bytes);
}

static void release(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        --*(int *)user;
        lg_system_free(c, device, p, bytes);
}

static lg_tensor *sum_of_squares(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_square(inputs.items[0]));
}

static void operations(lg_ctx *c)
{
        int64_t n = 3;
        float data[6] = {0, 1, 2, 3, 4, 5};
        lg_shape s = LG_SHAPE(n, 2);
        drop(lg_zeros(c, s, .dtype = LG_F64, .device = lg_cpu(), .requires_grad = true));
        drop(lg_full(c, LG_SHAPE_0D, 7, .dtype = LG_I32));
        drop(lg_eye(c, 3, n, .device = LG_NO_DEVICE));
        drop(lg_zeros_with(c, s, LG_OPTIONS(lg_create_options, .device = LG_DEVICE(LG_DEVICE_CPU, 0))));
        lg_tensor *x = lg_reshape(lg_from(c, data, LG_SHAPE(2, 3)), LG_SHAPE(2, -1)), *both[] = {x, x}, *i;
        drop(lg_sum(x, .dims = LG_DIMS(0, -1), .keep_dim = true));
        drop(lg_var(x, .correction = LG_ZERO));
        drop(lg_cross_entropy(x, lg_arange(c, 0, 2, 1), .reduction = LG_SUM, .ignore_index = LG_ZERO_INT));
        drop(lg_cat(LG_LIST(x, x, x), 0));
        drop(lg_stack(LG_LIST_OF(2, both), 0));
        drop(lg_flip(lg_squeeze(x, LG_ALL_DIMS), LG_DIMS(0)));
        const int64_t pads[] = {1, 1};
        drop(lg_pad(x, LG_INTS(0, 2, 1, 0), .value = 3));
        drop(lg_pad(x, LG_INTS_OF(2, pads), .value = -LG_INFINITY));
        drop(lg_topk(x, 2, 1, .smallest = true, .indices = &i));
        lg_tensor *image = lg_ones(c, LG_SHAPE(1, 2, 5, 5)), *w = lg_ones(c, LG_SHAPE(2, 2, 3, 3));
        drop(lg_conv2d(image, w, NULL, .padding = 1, .strides = LG_PAIR(1, 2)));
        drop(lg_max_pool2d(image, 0, .kernels = LG_PAIR(2, 1), .indices = &i));
}

static void graph(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true), *y = lg_sum(lg_exp(x)), *g[1];
        lg_backward(y, .retain_graph = true);
        lg_grad(LG_LIST(y), LG_LIST(x), .result = g, .create_graph = true);
        lg_custom(c, "twice", LG_LIST(x), .forward = twice, .backward = twice_backward);
        lg_no_grad(c)
        {
                lg_fill_(x, 2);
        }
        lg_autocast(c, LG_BF16)
        {
                y = lg_square(x);
        }
        lg_check_report report;
        lg_gradcheck(c, sum_of_squares, LG_LIST(x), .report = &report);
}

static void modules(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        lg_module *own = lg_nn_module(c, "Both", .forward_all = forward_all);
        lg_outputs out;
        lg_forward_all(own, &out, x);
        lg_forward_all(own, &out, x, out.items[1]);
        drop(lg_forward(own, x, x));
        drop(lg_nn_module_list(c));
        lg_module *line =
                lg_module_clone(lg_nn_sequential(c, lg_nn_linear(c, 2, 1), lg_nn_relu(c)), .device = lg_cpu());
        drop(lg_forward_params(line, LG_LIST(lg_zeros(c, LG_SHAPE(1, 2)), lg_ones(c, LG_SHAPE(1))), x));
        lg_device_info_t info;
        if (lg_device_info(c, lg_cpu(), &info) && lg_memory_stats(c, lg_cpu()).used < 0)
                lg_set_error(c, LG_ERR_STATE, "%s: less memory than none", info.name);
}

static bool get(lg_sample *s, void *user)
{
        (void)user;
        *(float *)s->data[0] = (float)lg_rng_uniform(s->rng);
        return s->index >= 0 || lg_sample_fail(s, "sample %d", 1);
}

static void training(lg_ctx *c)
{
        const double half[] = {0.5};
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 3));
        lg_module *net =
                lg_nn_sequential(c, lg_nn_linear(c, 3, 4, .no_bias = true), lg_nn_relu(c), lg_nn_linear(c, 4, 2));
        lg_optimizer *sgd = lg_sgd(c, lg_parameters(net), 1, .momentum = 0.9);
        drop(lg_multi_step_lr(sgd, LG_INTS(3, 5)));
        drop(lg_chained_lr(lg_constant_lr(sgd, 3), lg_exponential_lr(sgd, 0.9)));
        lg_group *group = lg_group_open(c, .timeout = 10);
        lg_data_parallel(net, group, .bucket_bytes = 1 << 20, .keep_buffers = true);
        lg_no_sync(net)
        {
                lg_backward(lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(2, 3)))));
        }
        lg_dataset *own = lg_dataset_new(c, 4, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(1))), get, NULL);
        lg_dataset *data = lg_dataset_tensors(c, x, lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64));
        lg_transform *t = lg_transforms(c, lg_transform_random_horizontal_flip(c), lg_transform_to_float(c));
        lg_loader *l = lg_loader_open(c, lg_dataset_subset(data, LG_INTS(0, 3, 2)), 2, .shuffle = true, .group = group);
        lg_each_batch(b, l)
        {
                lg_backward(lg_cross_entropy(lg_forward(net, b.x), b.y));
                lg_step(sgd);
        }
        l = lg_loader_open(c, own, 2, .workers = LG_AUTO);
        for (lg_batch b; lg_loader_next(l, &b);)
                drop(b.x);
        lg_each_batch(b, l) drop(b.field[0]);
        lg_transform_free(t);
        drop(lg_transform_normalize(c, LG_NUMBERS(0.5, 1, 0), LG_NUMBERS_OF(1, half)));
        if (lg_error(c))
                lg_write_npz(c, "two.npz", LG_NAMES("x", "y"), LG_LIST(x, x));
}

int main(void)
{
        int blocks = 0;
        lg_ctx *c = lg_open();
        lg_close(c);
        c = lg_open(.threads = 1, .seed = 3, .alloc = allocate, .free = release, .user = &blocks);
        operations(c);
        graph(c);
        modules(c);
        training(c);
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        bool failed = lg_error(c);
        lg_close(c);
        return failed || blocks != 0;
}
