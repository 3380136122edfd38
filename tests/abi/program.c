/* program.c - a program of its time: compiled with a copy of the header as it was, run against the newest library.
 * Every struct that crosses between the two is in it. Prints what it could not do. */
#include <grad.h>
#include <string.h>

static int failures;

static void expect(bool ok, const char *what)
{
        if (!ok)
                printf("%s\n", what);
        failures += !ok;
}
#define EXPECT(condition) expect((condition), #condition)

static bool close_to(const lg_tensor *t, double value)
{
        double d = lg_item(t) - value;
        return d < 1e-5 && d > -1e-5;
}

static lg_tensor *twice(lg_module *m, lg_list in, void *user)
{
        (void)m, (void)user;
        return lg_mul_scalar(in.items[0], 2);
}

static bool both(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        (void)m, (void)user;
        out->count = 2;
        out->items[0] = lg_sum(in.items[0]);
        out->items[1] = lg_mean(in.items[0], .dims = LG_DIMS(-1), .keep_dim = true);
        return true;
}

static bool cube(lg_custom_call *k)
{
        k->out[0] = lg_pow_scalar(k->in[0], 3);
        return k->out[0] != NULL;
}

static bool cube_back(lg_custom_call *k)
{
        k->grad_in[0] = lg_mul(k->grad_out[0], lg_mul_scalar(lg_square(k->in[0]), 3));
        return k->grad_in[0] != NULL;
}

static lg_tensor *checked(lg_ctx *c, lg_list in, void *user)
{
        (void)user;
        return lg_custom(c, "cube", in, .forward = cube, .backward = cube_back);
}

static void traced(const lg_trace_record *r, void *user)
{
        *(int *)user += r->op && r->out_count == 1 && r->out[0].ndim <= LG_MAX_DIMS;
}

static void tensors(lg_ctx *c)
{
        const float data[6] = {1, 2, 3, 4, 5, 6};
        lg_tensor *x = lg_from(c, data, LG_SHAPE(2, 3), .dtype = LG_F64, .requires_grad = true), *i;
        EXPECT(close_to(lg_sum(x), 21) && lg_shape_of(x).ndim == 2 && lg_shape_of(x).size[1] == 3);
        EXPECT(close_to(lg_var(x, .correction = LG_ZERO), 35.0 / 12));
        EXPECT(close_to(lg_sum(lg_slice(x, 1, 0, LG_MAX, .step = 2)), 14));
        EXPECT(close_to(lg_sum(lg_pad(x, LG_INTS(1, 1), .value = 2)), 29));
        EXPECT(close_to(lg_max(lg_flatten(x), 0, .indices = &i), 6) && lg_item_i64(i) == 5);
        lg_tensor *image = lg_ones(c, LG_SHAPE(1, 2, 4, 6)), *w = lg_ones(c, LG_SHAPE(3, 2, 3, 3));
        lg_shape s = lg_shape_of(lg_conv2d(image, w, NULL, .padding = 1, .strides = LG_PAIR(1, 2)));
        EXPECT(s.ndim == 4 && s.size[2] == 4 && s.size[3] == 3);
        s = lg_shape_of(lg_max_pool2d(image, 0, .kernels = LG_PAIR(2, 3)));
        EXPECT(s.size[2] == 2 && s.size[3] == 2);
        lg_tensor *g = lg_grad(LG_LIST(lg_sum(lg_square(x))), LG_LIST(x), .create_graph = true);
        EXPECT(close_to(lg_sum(g), 42));
        lg_tensor *h = lg_grad(LG_LIST(lg_sum(g)), LG_LIST(x));
        EXPECT(close_to(lg_sum(h), 12));
        lg_check_report report;
        EXPECT(lg_gradcheck(c, checked, LG_LIST(x), .report = &report) && report.ok && report.checked == 6);
        EXPECT(lg_gradgradcheck(c, checked, LG_LIST(x), .max_elements = 3));
}

static void devices(lg_ctx *c)
{
        lg_memory_stats_t before = lg_memory_stats(c, lg_cpu());
        lg_tensor *big = lg_zeros(c, LG_SHAPE(1000), .device = lg_cpu());
        EXPECT(big && lg_memory_stats(c, lg_cpu()).used >= before.used + 4000);
        lg_device_info_t info;
        EXPECT(lg_device_info(c, lg_cpu(), &info) && info.processors > 0 && info.name[0]);
        EXPECT(!lg_parse_device(c, "nowhere").type && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        EXPECT(!lg_zeros(c, LG_SHAPE(2, -1)) && lg_error_code_of(c) == LG_ERR_SHAPE);
        lg_clear_error(c);
}

static lg_module *network(lg_ctx *c)
{
        lg_module *body = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1, .no_bias = true),
                                           lg_nn_batch_norm2d(c, 4, .momentum = 0.2), lg_nn_relu(c));
        return lg_nn_sequential(c, lg_nn_residual(c, body, .shortcut = lg_nn_conv2d(c, 1, 4, 1)),
                                lg_nn_max_pool2d(c, 2), lg_nn_module(c, "Twice", .forward = twice), lg_nn_flatten(c),
                                lg_nn_layer_norm(c, LG_SHAPE(16), .eps = 1e-6), lg_nn_dropout(c, 0.1),
                                lg_nn_linear(c, 16, 3));
}

static void training(lg_ctx *c)
{
        int ops = 0, batches = 0;
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(30, 1, 4, 4), .device = lg_cpu());
        lg_tensor *y = lg_argmax(lg_slice(lg_flatten(x, .start_dim = 1), 1, 0, 3), .dims = LG_DIMS(1));
        lg_module *net = network(c);
        lg_optimizer *opt = lg_adamw(c, lg_parameters_matching(net, "!*.bias"), 1e-2, .weight_decay = 0.05);
        EXPECT(lg_add_param_group(opt, lg_parameters_matching(net, "*.bias"), .lr = 1e-2, .weight_decay = LG_ZERO));
        lg_scheduler *rate = lg_sequential_lr(LG_INTS(10), lg_linear_lr(opt, 10, .start_factor = 0.1),
                                              lg_multi_step_lr(opt, LG_INTS(20, 30), .gamma = 0.5));
        lg_loader *loader = lg_loader_open(c, lg_dataset_tensors(c, x, y, .scale = 1), 8, .shuffle = true, .seed = 3);
        double first = 0, last = 0;
        for (int epoch = 0; epoch < 40; epoch++)
                lg_each_batch(b, loader)
                {
                        lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y, .label_smoothing = 0.05);
                        lg_zero_grad(opt);
                        lg_backward(loss);
                        lg_clip_grad_norm(lg_parameters(net), 5, .p = 2);
                        lg_step(opt);
                        if (b.index == 0)
                                lg_scheduler_step(rate);
                        last = lg_item(loss);
                        first = batches++ ? first : last;
                }
        EXPECT(batches == 160 && last < first / 2);
        lg_outputs out;
        lg_module *m = lg_nn_module(c, "Both", .forward_all = both);
        EXPECT(lg_forward_all(m, &out, x) && out.count == 2 && lg_ndim_of(out.items[1]) == 4);
        lg_train(net, false);
        EXPECT(lg_set_trace(c, traced, .user = &ops));
        EXPECT(lg_forward_params(net, lg_parameters(net), x) != NULL);
        EXPECT(lg_set_trace(c, NULL) && ops > 5);
        FILE *f = tmpfile();
        EXPECT(f && lg_module_print(f, net, .input = LG_SHAPE(2, 1, 4, 4)));
        EXPECT(f && lg_graph_dot(f, lg_sum(lg_forward(net, x)), .module = net));
        if (f)
                fclose(f);
}

int main(void)
{
        lg_ctx *c = lg_open(.threads = 1, .seed = 7);
        if (!c)
                return 1;
        tensors(c);
        devices(c);
        training(c);
        if (lg_error(c)) {
                printf("%s\n", lg_error(c));
                failures++;
        }
        lg_close(c);
        printf("compiled with %s, run with %s: %d failures\n", LG_VERSION, lg_version(), failures);
        return failures > 0;
}
