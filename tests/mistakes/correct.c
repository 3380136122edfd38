/* correct.c - right calls that are not among the examples of the public header: lists, options, nested calls. It is
 * compiled only, as C11 to C2x and C++20 to C++23 under many warnings; -DNO_NAMED leaves out what C++17 does not have,
 * options by name. */
#include <grad.h>

#ifdef NO_NAMED
#define NAMED(...)
#else
#define NAMED(...) __VA_ARGS__
#endif

void *volatile sink;
enum { CLASSES = 10, WIDTH = 28 };

void shapes(lg_ctx *c, lg_tensor *x, size_t a, int b, int64_t d, unsigned e, short s, bool flag)
{
        sink = lg_zeros(c, LG_SHAPE(a));
        sink = lg_zeros(c, LG_SHAPE(a, b, d, e, s, sizeof(float), 7ULL, 'a'));
        sink = lg_zeros(c, LG_SHAPE(b + 1, (b + 1) / 2, (int)a, flag ? 2 : 3, -b));
        sink = lg_zeros(c, LG_SHAPE(flag));
        sink = lg_zeros(c, LG_SHAPE(CLASSES, WIDTH, WIDTH + 1));
        sink = lg_zeros(c, LG_SHAPE(lg_numel(x), lg_size_of(x, -1), lg_ndim_of(x)));
        sink = lg_zeros(c, LG_SHAPE_0D);
        sink = lg_reshape(x, LG_SHAPE(-1, a));
        lg_shape shape = lg_shape_of(x);
        if (shape.ndim == 2 && shape.size[shape.ndim - 1] > 3)
                sink = lg_zeros(c, shape);
        sink = lg_reshape(x, LG_SHAPE(shape.ndim, shape.size[0]));
        for (int i = 0; i < shape.ndim; i++)
                shape.size[i] *= 2;
        shape.ndim = 1;
        shape.ndim++;
        shape = LG_SHAPE(2, 3);
        sink = lg_expand(x, shape);
        lg_shape number = LG_SHAPE_0D, copy = shape;
        number.size[number.ndim++] = copy.size[0];
        sink = lg_ones(c, number);
        const lg_shape fixed = LG_SHAPE(CLASSES);
        sink = lg_ones(c, fixed);
        lg_dims dims = LG_DIMS(0, -1), all = LG_ALL_DIMS;
        if (dims.count != all.count && dims.dim[0] == 0)
                dims = LG_DIMS(b, s);
        sink = lg_squeeze(x, dims);
        sink = lg_flip(x, all);
        sink = lg_permute(x, LG_DIMS(1, 0));
        lg_pair pair = LG_PAIR(a, CLASSES);
        pair = LG_PAIR(b, e);
        if (pair.given && pair.h < pair.w)
                pair = LG_PAIR(pair.w, pair.h + 1);
        NAMED(sink = lg_max_pool2d(x, 2, .strides = pair);)
        NAMED(sink = lg_sum(x, .dims = dims);)
        NAMED(sink = lg_zeros(c, shape, .device = lg_device_of(x));)
}

void creations(lg_ctx *c, float *f, const double *g, void *memory, const void *bytes, void (*release)(void *))
{
        lg_device device = lg_cpu();
        sink = lg_scalar(c, 5 / 2);
        lg_tensor *x = lg_eye(c, 3, CLASSES);
        sink = lg_ones_like(lg_zeros_like(x));
        const float fixed[] = {1, 2};
        int i[] = {1, 2};
        const int64_t l[] = {1, 2};
        long long ll[] = {1, 2};
        long k[] = {1, 2};
        unsigned char u[] = {1, 2};
        const bool t[] = {true, false};
        static const float table[2][2] = {{1, 2}, {3, 4}};
        sink = lg_from(c, f, LG_SHAPE(6));
        sink = lg_from(c, f + 2, LG_SHAPE(4));
        sink = lg_from(c, &f[2], LG_SHAPE_0D);
        sink = lg_from(c, g, LG_SHAPE(6));
        sink = lg_from(c, fixed, LG_SHAPE(2));
        sink = lg_from(c, i, LG_SHAPE(2));
        sink = lg_from(c, l, LG_SHAPE(2));
        sink = lg_from(c, ll, LG_SHAPE(2));
        sink = lg_from(c, k, LG_SHAPE(2));
        sink = lg_from(c, u, LG_SHAPE(2));
        sink = lg_from(c, t, LG_SHAPE(2));
        sink = lg_from(c, &table[0][0], LG_SHAPE(2, 2));
        sink = lg_from(c, table[1], LG_SHAPE(2));
        sink = lg_from_with(c, bytes, LG_F16, LG_SHAPE(2), NULL);
        sink = lg_borrow(c, f, NULL, NULL, LG_SHAPE(6));
        sink = lg_borrow(c, f, release, f, LG_SHAPE(6));
        sink = lg_zeros_with(c, LG_SHAPE(2), NULL);
        (void)bytes, (void)memory, (void)device;
#ifndef NO_NAMED
        sink = lg_empty(c, LG_SHAPE(2), .device = lg_try_cuda(c, 0));
        sink = lg_normal(c, 0, 1, LG_SHAPE(3), .requires_grad = true);
        sink = lg_permutation(c, 10, .device = lg_cpu());
        sink = lg_zeros_like(x, .dtype = LG_I64, .device = device);
        sink = lg_ones_like(x, .requires_grad = true);
        sink = lg_empty_like(x, .dtype = lg_dtype_of(x));
        sink = lg_uniform_like(x, -1, 1, .dtype = LG_F16);
        sink = lg_normal_like(x, 0, 1, .requires_grad = true);
        sink = lg_linspace(c, 0, 1, 5, .dtype = LG_F64);
        sink = lg_randint(c, 0, 10, LG_SHAPE(3), .dtype = LG_I32);
        sink = lg_from(c, bytes, LG_SHAPE(2), .dtype = LG_BF16);
        sink = lg_from(c, (const void *)u, LG_SHAPE(2), .dtype = LG_U8);
        sink = lg_borrow(c, memory, release, NULL, LG_SHAPE(6), .dtype = LG_F32);
        sink = lg_borrow(c, f, NULL, NULL, LG_SHAPE(6), .requires_grad = true);
        lg_create_options options = *LG_OPTIONS(lg_create_options, .dtype = LG_F64);
        sink = lg_zeros_with(c, LG_SHAPE(2), &options);
        sink = lg_ones_with(c, LG_SHAPE(2), LG_OPTIONS(lg_create_options, .dtype = LG_F64));
#endif
}

void reductions(lg_tensor *x, lg_tensor *none)
{
        sink = lg_norm(x);
        sink = lg_sum(lg_sum(lg_sum(x)));
        sink = lg_sum(none ? none : x);
        sink = lg_sum_with(x, NULL);
#ifndef NO_NAMED
        sink = lg_mean(x, .keep_dim = true);
        sink = lg_amin(x, .dims = LG_DIMS(1));
        sink = lg_argmin(x, .dims = LG_DIMS(1));
        sink = lg_var(x, .correction = LG_ZERO);
        sink = lg_norm(x, .p = LG_INFINITY);
        sink = lg_all(x, .keep_dim = true);
        sink = lg_sum(x, .dims = lg_ndim_of(x) > 1 ? LG_DIMS(1) : LG_ALL_DIMS);
        lg_reduce_options options = *LG_OPTIONS(lg_reduce_options, .keep_dim = true);
        options.dims = LG_DIMS(1);
        sink = lg_sum_with(x, &options);
#endif
}

void lists(lg_ctx *c, lg_tensor *x, lg_tensor *w, lg_module *net, lg_optimizer *opt, size_t n)
{
        sink = lg_cat(LG_LIST(x), 0);
        sink = lg_cat(LG_LIST(x, w, x), -1);
        sink = lg_cat(LG_LIST(lg_relu(x), lg_cat(LG_LIST(x, w), 0)), 0);
        sink = lg_cat(LG_LIST(n ? x : w, n ? w : x), 0);
        sink = lg_stack(LG_LIST(x, w), 0);
        sink = lg_cat(lg_parameters(net), 0);
        lg_list params = lg_parameters(net);
        sink = params.count ? lg_cat(params, 0) : NULL;
        lg_tensor *items[3] = {x, w, x};
        lg_tensor *const fixed[] = {x, w};
        lg_list list = LG_LIST_OF(3, items);
        sink = lg_cat(list, 0);
        sink = lg_cat(LG_LIST_OF(2, fixed), 0);
        sink = lg_cat(LG_LIST_OF((int64_t)n, items), 0);
        sink = lg_adam(c, LG_LIST(x, w), 1e-3);
        sink = lg_grad(LG_LIST(x), LG_LIST(w, x));
        const int64_t pads[] = {1, 1, 2, 0};
        lg_ints ints = LG_INTS_OF(4, pads);
        sink = lg_pad(x, ints);
        sink = lg_pad(x, LG_INTS_OF(2, pads));
        sink = lg_pad(x, LG_INTS(1, -1));
        sink = lg_pad(x, LG_INTS((int64_t)n, (int)n, CLASSES, (n + 1) / 2));
        sink = lg_multi_step_lr(opt, LG_INTS(30, n));
        lg_clip_grad_value(LG_LIST(x, w), 1);
        lg_split(x, 2, 0, items, 3);
        NAMED(sink = lg_pad(x, LG_INTS(0, 2, 1, 0, 0, 0, 0, 0, 1, 1), .value = -1);)
        NAMED(sink = lg_pad(x, ints, .value = 3);)
}

#ifndef NO_NAMED
void images(lg_tensor *x, lg_tensor *w, int stride)
{
        lg_tensor *i = NULL;
        sink = lg_conv2d(x, w, NULL, .stride = stride, .strides = LG_PAIR(2, stride), .paddings = LG_PAIR(0, 1));
        sink = lg_conv1d(x, w, NULL, .dilation = 2, .groups = 4);
        sink = lg_max_pool2d(x, 3, .stride = 2, .padding = 1, .ceil_mode = true, .indices = &i);
        sink = lg_max_pool1d(x, 2, .stride = 1);
        sink = lg_avg_pool2d(x, 0, .kernels = LG_PAIR(2, 1), .strides = LG_PAIR(1, 2));
        sink = lg_avg_pool1d(x, 3, .padding = 1);
        sink = lg_adaptive_avg_pool2d(x, 0, .sizes = LG_PAIR(1, 2));
        sink = lg_adaptive_avg_pool1d(x, 2);
        sink = i;
}

void norms(lg_tensor *x, lg_tensor *w, lg_tensor *b, bool training)
{
        sink = lg_batch_norm(x, w, b, .running_mean = w, .running_var = b, .training = training, .momentum = LG_ZERO);
        sink = lg_batch_norm(x, w, b, .training = true, .residual = x, .relu = true);
        sink = lg_group_norm(x, 3, w, NULL, .eps = LG_ZERO);
        sink = lg_instance_norm(x, w, b, .eps = 1e-3);
        sink = lg_rms_norm(x, LG_SHAPE(8), w, .eps = LG_ZERO);
        sink = lg_normalize(x, 1, .eps = 1e-6);
        sink = lg_feature_dropout(x, 0.5, .training = training);
}

void picking(lg_tensor *x, lg_tensor *t)
{
        sink = lg_max(lg_max(x, 1), 0);
        lg_tensor *i = NULL;
        sink = lg_embedding(t, x, .padding_idx = LG_ZERO_INT);
        sink = lg_topk(x, 5, -1, .smallest = true, .indices = &i);
        sink = lg_kthvalue(x, 2, 1, .keep_dim = true, .indices = &i);
        sink = lg_unique(x, .dims = LG_DIMS(0), .inverse = &i, .counts = &i);
        sink = lg_quantile(x, LG_NUMBERS(0.25, 0.5), .dims = LG_DIMS(1), .interpolation = LG_QUANTILE_LOWER);
        sink = lg_scatter(lg_scatter_scalar(x, 1, t, 2), 1, t, x);
        sink = lg_scatter_reduce(x, 1, t, x, LG_SCATTER_AMAX, .exclude_self = true);
        sink = lg_index_put(x, LG_LIST(t, LG_ALL), lg_index(x, LG_LIST(t)), .accumulate = true);
        sink = lg_masked_scatter(x, lg_isin(x, x), lg_take(x, t));
        sink = lg_index_fill(lg_index_copy(x, 0, t, x), 0, t, 1);
        sink = lg_take_along_dim(x, t, 0);
        sink = i;
}

void losses(lg_tensor *x, lg_tensor *y, lg_tensor *t, lg_tensor *w)
{
        sink = lg_cross_entropy(x, t, .reduction = LG_SUM, .weight = w, .label_smoothing = 0.1);
        sink = lg_cross_entropy(x, t, .ignore_index = LG_ZERO_INT);
        sink = lg_nll(x, t, .ignore_index = -1);
        sink = lg_mse(x, y, .reduction = LG_NONE);
        sink = lg_l1(x, y, .reduction = LG_SUM);
        sink = lg_bce(x, y, .reduction = LG_SUM);
        sink = lg_bce_with_logits(x, y, .pos_weight = w);
        sink = lg_smooth_l1(x, y, .beta = LG_ZERO);
        sink = lg_kl_div(x, y, .reduction = LG_BATCH_MEAN, .log_target = true);
}
#endif

static bool cube(lg_custom_call *call)
{
        call->out[0] = lg_mul(lg_square(call->in[0]), call->in[0]);
        return call->out[0] != NULL;
}

static bool cube_backward(lg_custom_call *call)
{
        call->grad_in[0] = lg_mul(call->grad_out[0], lg_mul_scalar(lg_square(call->in[0]), 3));
        return call->grad_in[0] != NULL;
}

static void release_nothing(void *user)
{
        (void)user;
}

static lg_tensor *sum_of_squares(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_square(inputs.items[0]));
}

void gradients(lg_ctx *c, lg_tensor *x, lg_tensor *w, lg_module *net)
{
        lg_check_report report;
        lg_tensor *both[2];
        lg_no_grad(c)
        {
                lg_no_grad(c)
                {
                        sink = lg_relu(x);
                        lg_no_grad(c) lg_fill_(x, 2);
                }
                lg_add_(x, w);
        }
        lg_no_grad(lg_ctx_of(x)) lg_fill_(w, 2);
        lg_autocast(c, LG_F16)
        {
                sink = lg_relu(x);
                lg_autocast(c, LG_F32) sink = lg_relu(w);
                lg_no_grad(c) lg_autocast(c, LG_BF16) sink = lg_relu(w);
        }
        if (!lg_gradcheck(c, sum_of_squares, lg_parameters(net)))
                sink = x;
        (void)report, (void)both, (void)net, (void)cube, (void)cube_backward, (void)release_nothing;
#ifndef NO_NAMED
        lg_backward(x, .grad = w, .retain_graph = true);
        lg_backward(lg_mse(x, w, .reduction = LG_SUM), .create_graph = true);
        lg_grad(LG_LIST(x, w), LG_LIST(w), .grads = LG_LIST(x, w), .result = both, .create_graph = true);
        sink = lg_custom(c, "cube", LG_LIST(x, w), .forward = cube, .backward = cube_backward, .user = net,
                         .release = release_nothing, .out_count = 2, .out = both);
        lg_gradcheck(c, sum_of_squares, LG_LIST(x), .user = net, .eps = 1e-4, .max_elements = 10, .report = &report);
#else
        sink = lg_custom(c, "nothing", LG_LIST(x));
#endif
}

void layers(lg_ctx *c, lg_module *a)
{
        sink = lg_nn_rms_norm(c, LG_SHAPE(8, 2));
        sink = lg_nn_sequential(c);
        sink = lg_nn_sequential(c, a);
        sink = lg_nn_sequential(c, a, lg_nn_relu(c), lg_nn_sequential(c, lg_nn_relu(c), lg_nn_sequential(c)));
        sink = lg_nn_module_list(c, a, lg_nn_dropout(c, 0.5), lg_nn_flatten(c));
#ifndef NO_NAMED
        sink = lg_nn_avg_pool2d(c, 2, .no_count_padding = true);
        sink = lg_nn_adaptive_avg_pool2d(c, 0, .sizes = LG_PAIR(1, 2));
        sink = lg_nn_batch_norm1d(c, 8, .no_affine = true);
        sink = lg_nn_layer_norm(c, LG_SHAPE(8), .no_bias = true);
        sink = lg_nn_rms_norm(c, LG_SHAPE(8), .eps = LG_ZERO);
        sink = lg_nn_group_norm(c, 2, 8, .eps = 1e-6);
        sink = lg_nn_embedding(c, 5, 3, .padding_idx = LG_ZERO_INT);
        sink = lg_nn_prelu(c, 1, .dtype = LG_F16);
#endif
}

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        return lg_forward(lg_child(m, 0), inputs.items[0]);
}

static bool forward_all(lg_module *m, lg_list inputs, lg_outputs *ret, void *user)
{
        (void)m, (void)user;
        ret->items[0] = lg_relu(inputs.items[0]);
        ret->count = 1;
        return ret->items[0] != NULL;
}

void modules(lg_ctx *c, lg_module *net, lg_tensor *x, lg_tensor *mask, FILE *f)
{
        lg_outputs out;
        lg_tensor *items[2] = {x, mask};
        sink = lg_recompute(net, x, mask);
        sink = lg_forward(net, items[0], items[1]);
        sink = lg_forward(net, lg_forward(net, lg_forward(net, lg_forward(net, x), mask)));
        lg_tensor *ended[] = {x, mask, LG_END};
        sink = lg_forward_list(net, ended);
        sink = lg_forward_params(net, lg_parameters(net), x);
        sink = lg_forward_params(net, LG_LIST(lg_mul_scalar(x, 2), mask), x, mask);
        if (lg_forward_all(net, &out, x, mask) && out.count > 1)
                sink = out.items[1];
        sink = lg_nn_module(c, "Container");
        (void)forward, (void)forward_all, (void)f;
#ifndef NO_NAMED
        sink = lg_nn_module(c, "Block", .forward_all = forward_all, .user = net, .release = release_nothing,
                            .clone = NULL);
        lg_module_print(f, net, .input = lg_shape_of(x));
        lg_init_xavier_normal(x, .gain = 2);
        lg_init_orthogonal(x, .gain = 0.5);
#endif
}

lg_tensor *loss(lg_ctx *c, void *user);

void training(lg_ctx *c, lg_module *net, lg_tensor *x, lg_tensor *w, lg_tensor *y)
{
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        lg_add_param_group(opt, LG_LIST(w));
        lg_group *group = lg_group_open(c);
        y = lg_reduce_scatter(lg_all_reduce(y, group), group);
        lg_no_sync(net)
        {
                lg_backward(y);
        }
        lg_scaler_free(lg_scaler_new(c));
        lg_scheduler *a = lg_step_lr(opt, 30), *b = lg_cosine_lr(opt, 100);
        sink = lg_sequential_lr(LG_INTS(100), a, b);
        sink = lg_sequential_lr(LG_INTS(100, 200), lg_linear_lr(opt, 100), b, a);
        sink = lg_chained_lr(a);
        sink = lg_chained_lr(a, b, lg_exponential_lr(opt, 0.9));
        lg_dataset *data = lg_dataset_tensors(c, x, y);
        lg_write_npz(c, "batch.npz", LG_NAMES("x"), LG_LIST(x));
        lg_tensor *const arrays[] = {x, y};
        const char *const texts[] = {"x", "y"};
        lg_write_npz(c, "batch.npz", LG_NAMES_OF(2, texts), LG_LIST_OF(2, arrays));
        struct DLManagedTensor *shared = lg_to_dlpack(x);
        sink = lg_from_dlpack(c, shared);
        lg_names names = lg_npz_names(c, "batch.npz");
        lg_write_npz(c, "again.npz", names, LG_LIST(x, y));
        lg_names_free(c, names);
        lg_loader *loader = lg_loader_open(c, data, 64);
        for (lg_batch batch; lg_loader_next(loader, &batch);)
                sink = batch.x;
        lg_each_batch(batch, loader)
        {
                lg_zero_grad(opt);
                lg_backward(lg_cross_entropy(lg_forward(net, batch.x), batch.y));
                lg_step(opt);
                if (batch.index + 1 == batch.count)
                        break;
        }
        lg_each_batch(outer, loader)
        {
                lg_each_batch(inner, lg_loader_open(c, data, 1)) lg_no_grad(c) sink = lg_mse(outer.x, inner.x);
        }
#ifndef NO_NAMED
        lg_tensor *norm;
        sink = lg_sgd(c, lg_parameters(net), 0.1, .momentum = 0.9, .nesterov = true);
        sink = lg_adam(c, lg_parameters(net), 1e-3, .beta1 = LG_ZERO, .weight_decay = 0.01);
        sink = lg_adamw(c, lg_parameters(net), 1e-3, .weight_decay = LG_ZERO, .amsgrad = true);
        sink = lg_rmsprop(c, lg_parameters(net), 1e-3, .centered = true);
        sink = lg_adagrad(c, lg_parameters(net), 1e-2, .lr_decay = 0.1);
        sink = lg_adadelta(c, lg_parameters(net), 1, .rho = LG_ZERO, .eps = 1e-3);
        lg_add_param_group(opt, lg_parameters_matching(net, "*.bias"), .lr = 0.5, .weight_decay = LG_ZERO);
        lg_clip_grad_norm(LG_LIST(w), 1, .p = LG_INFINITY, .norm = &norm);
        sink = lg_cosine_lr(opt, 100, .eta_min = 1e-4);
        sink = lg_constant_lr(opt, 100, .factor = 0.5);
        sink = lg_one_cycle_lr(opt, 0.1, 100, .pct_start = 0.2, .linear = true);
        sink = lg_find_lr(net, opt, loss, NULL, .from = 1e-5, .smoothing = LG_ZERO, .loader = loader) ? net : NULL;
        sink = lg_reduce_on_plateau(opt, 0.5, .patience = LG_ZERO_INT, .min_lr = 1e-6);
        lg_profiler *profiler = lg_profiler_open(c, .skip = 3, .steps = 10, .path = "trace.json");
        lg_region(c, "outer")
        {
                lg_region(c, "inner") lg_step(opt);
        }
        lg_profiler_print(stdout, profiler, .rows = 5);
        lg_profiler_close(profiler);
        sink = lg_dataset_tensors(c, x, y, .scale = 1.0 / 255, .shift = -0.5);
        sink = lg_dataset_fashion_mnist(c, "test", .folder = "nowhere", .bytes = true);
        sink = lg_loader_open(c, data, 64, .shuffle = true, .drop_last = true, .workers = 2, .device = lg_cpu());
#endif
}

void data_sets(lg_ctx *c, lg_tensor *x, lg_tensor *y, lg_sample_fn *get, lg_collate_fn *collate)
{
        lg_dataset *train, *valid;
        lg_batch one;
        const lg_field label = LG_FIELD("y", LG_I64, LG_SHAPE_0D);
        const lg_fields fields = LG_FIELDS(LG_RAGGED_FIELD("x", LG_F32, LG_SHAPE(100, 3), -1), label);
        lg_dataset *d = lg_dataset_new(c, 1000, fields, get, NULL), *e = lg_dataset_list(c, LG_LIST(x, y));
        lg_dataset *stream = lg_dataset_stream(c, LG_FIELDS(label), get, NULL);
        lg_dataset *both = lg_dataset_concat(c, d, e), *part = lg_dataset_subset(both, LG_INTS(1, 5));
        if (!lg_dataset_split(part, 0.9, &train, &valid) || !lg_dataset_get(train, 0, &one))
                return;
        lg_collate *made = lg_collate_new(c, LG_FIELDS(label), collate, NULL);
        lg_loader *loader = lg_loader_open(c, stream, 64);
#ifndef NO_NAMED
        loader = lg_loader_open(c, d, 64, .workers = LG_AUTO, .weights = x, .collate = made, .samples = 10,
                                .no_replacement = true, .prefetch = 8);
        e = lg_dataset_list(c, LG_LIST(x, y), .scale = 1.0 / 255);
        d = lg_dataset_new(c, 1000, LG_FIELDS(LG_FIELD("x", LG_U8, LG_SHAPE(3))), get, NULL, .release = NULL);
        stream = lg_dataset_stream(c, fields, get, NULL, .seek = NULL);
        made = lg_collate_new(c, fields, collate, NULL, .release = NULL);
#endif
        (void)made, (void)d, (void)e, (void)stream, (void)loader;
}

void files(lg_ctx *c, lg_tensor *x)
{
        if (!lg_write_png(x, "cat.png") || !lg_write_png(lg_read_png(c, "cat.png"), "cat.png"))
                return;
        lg_csv *t = lg_csv_open(c, "iris.csv");
        lg_names columns = lg_csv_columns(t), texts = lg_csv_texts(t, "species");
        if (lg_csv_rows(t) > 0 && columns.count > 1 && texts.count > 1)
                sink = lg_csv_numbers(t, columns);
        if (lg_dataset_classes(lg_dataset_image_folder(c, "pets")).count > 2)
                return;
#ifndef NO_NAMED
        sink = lg_dataset_text(c, "book.txt", 256, .stride = 1);
        sink = lg_dataset_tokens(c, "train.bin", 256, .vocabulary = 50257, .separator = 50256);
        sink = lg_csv_open(c, "iris.csv", .separator = '\t', .no_header = true, .trim = true,
                           .missing = LG_NAMES("-9"));
        sink = lg_csv_numbers(t, LG_NAMES("length"), .missing_as = LG_ZERO, .dtype = LG_F64);
        sink = lg_csv_integers(t, "label", .missing_as = LG_ZERO_INT);
        sink = lg_csv_categories(t, "species", .texts = texts, .missing_as = -100);
        sink = lg_dataset_cifar10(c, "train", .folder = "nowhere", .bytes = true);
        sink = lg_dataset_cifar100(c, "test", .folder = "nowhere", .coarse = true, .bytes = true);
#endif
}

static bool invert(const lg_transform_call *call, void *user)
{
        (void)user;
        return call->in->dtype == LG_U8 || lg_sample_fail(call->sample, "no bytes");
}

void transforms(lg_ctx *c, int n, float f, const double *means)
{
        lg_transform *crop = lg_transform_random_crop(c, 32, n), *flip = lg_transform_random_horizontal_flip(c);
        lg_numbers three = LG_NUMBERS_OF(3, means);
        sink = lg_transforms(c);
        sink = lg_transforms(c, crop);
        sink = lg_transforms(c, crop, flip, lg_transforms(c, lg_transform_to_float(c), lg_transform_resize(c, n, 224)));
        sink = lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(1));
        sink = lg_transform_normalize(c, LG_NUMBERS(0.485, 0.456, n / 2.0), LG_NUMBERS(f, (f + 1) / 2, means[0]));
        sink = lg_transform_normalize(c, LG_NUMBERS((0.5), -1), LG_NUMBERS_OF(2, means));
        sink = lg_transform_normalize(c, three, three);
        sink = lg_transform_new(c, invert, NULL);
#ifndef NO_NAMED
        sink = lg_transform_random_horizontal_flip(c, .p = 0.1);
        sink = lg_transform_random_vertical_flip(c, .p = LG_ZERO);
        sink = lg_transform_random_rotation(c, 15, .value = 1);
        sink = lg_transform_random_affine(c, .degrees = 10, .translate_x = 0.1, .translate_y = 0.1, .scale_min = 0.9,
                                          .scale_max = 1.1, .shear = 5, .value = 1);
        sink = lg_transform_color_jitter(c, .brightness = 0.4, .contrast = 0.4);
        sink = lg_transform_random_erasing(c, .p = 1, .scale_min = 0.1, .scale_max = 0.2, .ratio_min = 1,
                                           .ratio_max = 1, .value = 1, .random = true);
        sink = lg_transform_new(c, invert, &n, .shape = LG_SHAPE(1, n), .dtype = LG_F32, .random = true,
                                .release = NULL);
        sink = lg_mixup(c, .alpha = 0.2, .classes = 10);
#endif
}

void state(lg_ctx *c, lg_module *net)
{
        lg_weight tensor;
        lg_weights *file = lg_weights_open(c, "net.safetensors");
        for (int i = 0; lg_weights_at(file, i, &tensor); i++)
                sink = lg_weights_read(file, tensor.name);
        if (lg_load(net, "net.safetensors"))
                sink = net;
        NAMED(lg_load(net, "net.safetensors", .prefix = "net.", .rename = LG_NAMES("fc", "6"), .cast = true);)
}

#ifndef NO_NAMED
static void *get(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        (void)user;
        return lg_system_alloc(c, device, bytes);
}

static void give(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        (void)user;
        lg_system_free(c, device, p, bytes);
}
#endif

void contexts(lg_ctx *c, lg_device device)
{
        lg_device_info_t info;
        lg_memory_stats_t stats = lg_memory_stats(c, device);
        if (lg_memory_stats(c, lg_cpu()).peak > stats.used && !lg_device_info(c, lg_cpu(), &info))
                sink = lg_open();
        NAMED(sink = lg_open(.alloc = get, .free = give, .user = c);)
}

void nested(lg_ctx *c, lg_module *net, lg_tensor *x, lg_tensor *w, lg_tensor *b, lg_tensor *t)
{
        sink = lg_reshape(lg_conv2d(lg_forward(net, x), lg_zeros(c, lg_shape_of(w)), lg_sum(b)),
                          LG_SHAPE(lg_size_of(lg_sum(x), 0), -1));
        sink = lg_cat(LG_LIST(lg_sum(lg_cat(LG_LIST(x, lg_cat(LG_LIST(x, w), 0)), 0)), lg_forward(net, x, w)), 0);
        static const float one[] = {1};
        sink = lg_mul(lg_from(c, one, LG_SHAPE(1)), lg_expand(lg_from(c, one, LG_SHAPE_0D), LG_SHAPE(1)));
        lg_backward(lg_cross_entropy(lg_forward(net, lg_dropout(lg_embedding(t, w), 0.1)), t));
#ifndef NO_NAMED
        sink = lg_sum(lg_conv2d(lg_max_pool2d(lg_conv2d(x, w, b, .stride = 2), 3, .stride = 2), w, NULL, .padding = 1),
                      .dims = LG_DIMS(0, 1), .keep_dim = true);
        sink = lg_pad(lg_pad(lg_pad(x, LG_INTS(1, 1), .value = 1), LG_INTS(lg_ndim_of(lg_sum(x)), 0)), LG_INTS(1, 0),
                      .value = lg_item(lg_sum(x, .keep_dim = true)));
        lg_backward(lg_cross_entropy(lg_forward(net, lg_dropout(x, 0.1, .training = true)), t, .weight = lg_sum(w)),
                    .grad = lg_ones(c, LG_SHAPE_0D, .dtype = lg_dtype_of(lg_mean(x, .keep_dim = true))));
        lg_grad(LG_LIST(lg_sum(x)), LG_LIST(x), .grads = LG_LIST(lg_scalar(c, 1, .dtype = LG_F32)));
        sink = lg_nn_sequential(
                c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1),
                lg_nn_residual(c, lg_nn_sequential(c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1), lg_nn_relu(c)),
                               .shortcut = lg_nn_sequential(c, lg_nn_identity(c))),
                lg_nn_module(c, "Block", .forward = forward));
        lg_module_replace(net, "0", lg_nn_residual(c, lg_nn_identity(c), .shortcut = lg_nn_identity(c)));
        sink = lg_soft_margin(x, w, .reduction = LG_SUM);
        sink = lg_gaussian_nll(x, w, x, .full = true);
        sink = lg_triplet_margin(x, w, x, .swap = true);
        sink = lg_aminmax(x, &x);
        lg_module_print(stdout, lg_nn_linear(c, 2, 3, .no_bias = true), .inputs = LG_LIST(lg_zeros(c, LG_SHAPE(1, 2))));
#endif
}
