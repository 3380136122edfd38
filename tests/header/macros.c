/* macros.c - every macro of the public header once, in the words that C11 and C++20 have in common. */
#include <grad.h>

/* Takes a result that nobody looks at. */
static void drop(const void *result)
{
        (void)result;
}

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)m, (void)user;
        return lg_mul_scalar(inputs.items[0], 2);
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

static void creations(lg_ctx *c)
{
        int64_t n = 3;
        float data[6] = {0, 1, 2, 3, 4, 5};
        lg_shape s = LG_SHAPE(n, 2);
        drop(lg_zeros(c, LG_SHAPE(2, n)));
        drop(lg_zeros(c, s, .dtype = LG_F64, .device = lg_cpu(), .requires_grad = true));
        drop(lg_ones(c, LG_SHAPE_0D));
        drop(lg_full(c, 7, LG_SHAPE(1), .dtype = LG_I32));
        drop(lg_empty(c, LG_SHAPE(0, 2)));
        drop(lg_scalar(c, 1, .dtype = LG_F64));
        drop(lg_arange(c, 0, n, 1, .dtype = LG_F32));
        drop(lg_from(c, data, LG_SHAPE(2, 3)));
        drop(lg_from(c, data, s, .dtype = LG_I64));
        drop(lg_borrow(c, data, NULL, NULL, LG_SHAPE(6)));
        drop(lg_uniform(c, -1, 1, LG_SHAPE(4), .dtype = LG_F16));
        drop(lg_normal(c, 0, 1, LG_SHAPE(4), .requires_grad = true));
        drop(lg_permutation(c, n, .device = lg_cpu()));
        drop(lg_eye(c, 3, n, .device = LG_NO_DEVICE));
        drop(lg_linspace(c, 0, 1, 5, .dtype = LG_F64));
        drop(lg_randint(c, 0, 10, LG_SHAPE(3), .dtype = LG_U8));
        lg_tensor *x = lg_ones(c, s);
        drop(lg_zeros_like(x));
        drop(lg_ones_like(x, .dtype = LG_I64));
        drop(lg_full_like(x, 0.5));
        drop(lg_empty_like(x, .device = LG_DEVICE(LG_DEVICE_CPU, 0)));
        drop(lg_uniform_like(x, -1, 1));
        drop(lg_normal_like(x, 0, 1, .requires_grad = true));
        drop(lg_multinomial(lg_ones(c, LG_SHAPE(4)), 2));
        drop(lg_multinomial(lg_ones(c, LG_SHAPE(2, 4)), 5, .replacement = true));
        drop(lg_zeros_with(c, s, LG_OPTIONS(lg_create_options, .dtype = LG_F32)));
}

static void operations(lg_ctx *c)
{
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(2, -1));
        lg_tensor *t = lg_arange(c, 0, 2, 1);
        drop(lg_slice(x, 1, 0, LG_MAX, .step = 2));
        drop(lg_slice(x, 0, 0, 1));
        drop(lg_permute(x, LG_DIMS(1, 0)));
        drop(lg_sum(x));
        drop(lg_sum(x, .dims = LG_DIMS(0, -1), .keep_dim = true));
        drop(lg_mean(x, .dims = LG_DIMS(1)));
        drop(lg_amax(x));
        drop(lg_amin(x));
        drop(lg_argmax(x, .dims = LG_DIMS(0)));
        drop(lg_var(x, .correction = LG_ZERO));
        drop(lg_argmin(x, .dims = LG_DIMS(0)));
        drop(lg_std(x, .dims = LG_DIMS(1), .correction = 1));
        drop(lg_prod(x, .dims = LG_DIMS(0, 1)));
        drop(lg_logsumexp(x, .dims = LG_DIMS(1)));
        drop(lg_any(x));
        drop(lg_all(x, .keep_dim = true));
        drop(lg_norm(x, 2));
        drop(lg_norm(x, 1.5, .dims = LG_DIMS(1), .keep_dim = true));
        drop(lg_cross_entropy(x, t));
        drop(lg_cross_entropy(x, t, .reduction = LG_SUM, .ignore_index = LG_ZERO_INT, .label_smoothing = 0.1));
        drop(lg_mse(x, x, .reduction = LG_NONE));
        drop(lg_nll(x, t, .reduction = LG_SUM, .weight = lg_ones(c, LG_SHAPE(3)), .ignore_index = -1));
        drop(lg_l1(x, x));
        drop(lg_bce(x, x, .reduction = LG_SUM));
        drop(lg_bce_with_logits(x, x, .pos_weight = x));
        drop(lg_huber(x, x, .delta = 2));
        drop(lg_smooth_l1(x, x, .beta = LG_ZERO));
        drop(lg_kl_div(x, x, .reduction = LG_BATCH_MEAN, .log_target = true));
        drop(lg_cat(LG_LIST(x, x, x), 0));
        lg_tensor *const both[] = {x, x};
        drop(lg_stack(LG_LIST_OF(2, both), 0));
        drop(lg_flip(lg_squeeze(x, LG_ALL_DIMS), LG_DIMS(0)));
        drop(lg_embedding(x, t));
        drop(lg_embedding(x, t, .padding_idx = -1));
        drop(lg_tril(x));
        drop(lg_triu(x, .diagonal = 1));
        drop(lg_pad(x, LG_INTS(1, -1)));
        drop(lg_pad(x, LG_INTS(0, 2, 1, 0), .value = 3));
        const int64_t pads[] = {1, 1};
        drop(lg_pad(x, LG_INTS_OF(2, pads), .value = -LG_INFINITY));
        lg_tensor *i;
        drop(lg_sort(x, 1));
        drop(lg_sort(x, -1, .descending = true, .indices = &i));
        drop(lg_argsort(x, 0, .descending = true));
        drop(lg_topk(x, 2, 1, .smallest = true, .indices = &i));
        drop(lg_max(x, 1));
        drop(lg_min(x, 1, .keep_dim = true, .indices = &i));
}

static void normalisations(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3, 2)), *w = lg_ones(c, LG_SHAPE(3)), *v = lg_ones(c, LG_SHAPE(2));
        drop(lg_batch_norm(x, w, w, .training = true, .momentum = 0.2));
        drop(lg_batch_norm(x, w, w, .training = true, .residual = x, .relu = true));
        drop(lg_layer_norm(x, 1, v, v));
        drop(lg_rms_norm(x, 1, v, .eps = LG_ZERO));
        drop(lg_group_norm(x, 3, w, NULL));
        drop(lg_instance_norm(x, w, w, .eps = 1e-3));
        drop(lg_normalize(x, -1, .eps = 1e-6));
        drop(lg_dropout(x, 1, .off = true));
        drop(lg_feature_dropout(x, 0.5));
}

static void convolutions(lg_ctx *c)
{
        lg_tensor *image = lg_ones(c, LG_SHAPE(1, 2, 5, 5)), *w = lg_ones(c, LG_SHAPE(2, 2, 3, 3));
        drop(lg_conv2d(image, w, NULL, .padding = 1, .strides = LG_PAIR(1, 2)));
        drop(lg_conv_transpose2d(image, w, NULL, .stride = 2, .output_padding = 1));
        drop(lg_conv1d(lg_select(image, 2, 0), lg_select(w, 2, 0), NULL));
        drop(lg_conv_transpose1d(lg_select(image, 2, 0), lg_select(w, 2, 0), lg_ones(c, LG_SHAPE(2)), .groups = 1));
}

static void pooling(lg_ctx *c)
{
        lg_tensor *image = lg_ones(c, LG_SHAPE(1, 2, 4, 4)), *signal = lg_ones(c, LG_SHAPE(2, 4)), *i;
        drop(lg_max_pool2d(image, 2, .indices = &i));
        drop(lg_avg_pool2d(image, 0, .kernels = LG_PAIR(2, 1), .strides = LG_PAIR(1, 2)));
        drop(lg_adaptive_avg_pool2d(image, 1));
        drop(lg_adaptive_max_pool2d(image, 0, .sizes = LG_PAIR(1, 2)));
        drop(lg_max_pool1d(signal, 2, .stride = 1));
        drop(lg_avg_pool1d(signal, 3, .padding = 1));
        drop(lg_adaptive_avg_pool1d(signal, 2));
}

static void layers(lg_ctx *c)
{
        lg_module *net = lg_nn_sequential(
                c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1), lg_nn_batch_norm2d(c, 4, .momentum = 0.2),
                lg_nn_max_pool2d(c, 2),
                lg_nn_residual(c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1), .shortcut = lg_nn_identity(c)),
                lg_nn_conv_transpose2d(c, 4, 2, 2, .stride = 2, .no_bias = true), lg_nn_avg_pool2d(c, 2),
                lg_nn_group_norm(c, 2, 2), lg_nn_adaptive_avg_pool2d(c, 2), lg_nn_flatten(c), lg_nn_batch_norm1d(c, 8),
                lg_nn_layer_norm(c, LG_SHAPE(8), .no_bias = true), lg_nn_rms_norm(c, LG_SHAPE(8)),
                lg_nn_linear(c, 8, 3));
        drop(lg_nn_module_list(c, lg_nn_conv1d(c, 1, 2, 3)));
        drop(lg_nn_module_list(c));
        drop(lg_nn_embedding(c, 5, 3, .padding_idx = LG_ZERO_INT));
        drop(lg_nn_prelu(c, 4));
        drop(lg_nn_prelu(c, 1, .dtype = LG_F16));
        lg_tensor *w = lg_parameter(net, "0.weight");
        lg_init_xavier_uniform(w);
        lg_init_xavier_normal(w, .gain = 2);
        lg_init_kaiming_uniform(w, .slope = 0.1);
        lg_init_kaiming_normal(w, .fan_out = true);
        lg_init_orthogonal(w);
        lg_trace(c, NULL);
        lg_anomaly(c, true, .nan_only = true);
        lg_tensor *y = lg_forward(net, lg_uniform(c, 0, 1, LG_SHAPE(2, 1, 4, 4)));
        lg_anomaly(c, false);
        FILE *f = tmpfile();
        if (f) {
                lg_graph_dot(f, y, .module = net);
                lg_module_print(f, net);
                lg_module_print(f, net, .input = LG_SHAPE(2, 1, 4, 4));
                lg_module_print_memory(f, net, .input = LG_SHAPE(2, 1, 4, 4));
                fclose(f);
        }
}

static void graph(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true), *y = lg_sum(lg_exp(x)), *g[1];
        lg_backward(y, .retain_graph = true);
        lg_backward(y);
        lg_tensor *z = lg_sum(lg_exp(x));
        lg_grad(LG_LIST(z), LG_LIST(x), .result = g, .create_graph = true);
        lg_custom(c, "twice", LG_LIST(x), .forward = twice, .backward = twice_backward);
        lg_no_grad(c)
        {
                lg_fill_(x, 2);
        }
        lg_autocast(c, LG_BF16)
        {
                z = lg_square(z);
        }
        lg_check_report report;
        lg_gradcheck(c, sum_of_squares, LG_LIST(x), .report = &report);
        lg_gradgradcheck(c, sum_of_squares, LG_LIST(x), .tolerance = 1e-5);
}

static void facts(lg_ctx *c)
{
        lg_device_info_t info;
        lg_device_info(c, lg_cpu(), &info);
        if (lg_memory_stats(c, lg_cpu()).used < 0)
                lg_set_error(c, LG_ERR_STATE, "%s: less memory than none", info.name);
}

static void modules(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(2));
        lg_module *own = lg_nn_module(c, "Both", .forward_all = forward_all);
        lg_outputs out;
        lg_forward_all(own, &out, x);
        lg_forward_all(own, &out, x, out.items[1]);
        drop(lg_forward(own, x, x));
        drop(lg_recompute(own, x, x));
        lg_module *line = lg_nn_linear(c, 2, 1);
        drop(lg_module_clone(line));
        drop(lg_module_clone(line, .device = lg_cpu()));
        drop(lg_forward_params(line, LG_LIST(lg_zeros(c, LG_SHAPE(1, 2)), lg_ones(c, LG_SHAPE(1))), x));
}

static void schedules(lg_optimizer *sgd, lg_optimizer *adam)
{
        drop(lg_step_lr(sgd, 3, .gamma = 0.5));
        drop(lg_multi_step_lr(sgd, LG_INTS(3, 5)));
        drop(lg_cosine_lr(sgd, 10, .eta_min = 1e-4));
        drop(lg_linear_lr(sgd, 4, .start_factor = 0.5));
        drop(lg_constant_lr(sgd, 3));
        drop(lg_one_cycle_lr(adam, 0.1, 100, .linear = true));
        drop(lg_reduce_on_plateau(adam, 0.5, .patience = LG_ZERO_INT));
        drop(lg_sequential_lr(LG_INTS(4), lg_linear_lr(sgd, 4), lg_cosine_lr(sgd, 10)));
        drop(lg_chained_lr(lg_constant_lr(sgd, 3), lg_exponential_lr(sgd, 0.9)));
}

static void training(lg_ctx *c)
{
        lg_module *net =
                lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_relu(c), lg_nn_module(c, "Twice", .forward = forward),
                                 lg_nn_linear(c, 4, 2, .no_bias = true));
        lg_optimizer *sgd = lg_sgd(c, lg_parameters(net), 1, .momentum = 0.9);
        lg_optimizer *adam = lg_adam(c, lg_parameters(net), 1e-3, .eps = LG_ZERO);
        lg_group *group = lg_group_open(c, .timeout = 10);
        lg_tensor *sum = lg_all_reduce(lg_ones(c, LG_SHAPE(2, 3)), group, .op = LG_RANKS_MEAN);
        sum = lg_reduce_scatter(sum, group, .op = LG_RANKS_MAX);
        if (!lg_item(lg_sum(sum)))
                return;
        lg_scaler *scaler = lg_scaler_new(c, .growth_interval = 100);
        lg_data_parallel(net, group, .bucket_bytes = 1 << 20, .keep_buffers = true);
        lg_no_sync(net)
        {
                lg_scaler_backward(scaler, lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(2, 3)))), .retain_graph = true);
        }
        lg_dataset *data = lg_dataset_tensors(c, lg_ones(c, LG_SHAPE(4, 3)), lg_zeros(c, LG_SHAPE(4), .dtype = LG_I64),
                                              .scale = 0.5);
        lg_loader *l = lg_loader_open(c, data, 2, .shuffle = true, .group = group);
        lg_list p = lg_parameters(net);
        lg_optimizer *others[] = {lg_adamw(c, p, 1e-3, .amsgrad = true), lg_rmsprop(c, p, 1e-3, .centered = true),
                                  lg_adagrad(c, p, 1e-2, .lr_decay = 0.1), lg_adadelta(c, p, 1, .rho = 0.95)};
        lg_add_group(others[0], LG_LIST(lg_ones(c, LG_SHAPE(2), .requires_grad = true)), .lr = 0.5, .eps = 1e-6);
        lg_clip_grad_norm(p, 1, .p = 2);
        schedules(sgd, adam);
        for (lg_batch b; lg_loader_next(l, &b);)
                drop(b.x);
        lg_each_batch(b, l)
        {
                lg_backward(lg_cross_entropy(lg_forward(net, b.x), b.y));
                lg_step(sgd);
                lg_step(adam);
        }
        drop(lg_forward(net, lg_ones(c, LG_SHAPE(1, 3))));
        if (c == NULL) {
                drop(lg_fashion_mnist(c, "train"));
                drop(lg_fashion_mnist(c, "test", .folder = "nowhere"));
                lg_tensor *t = lg_read_npy(c, "x.npy");
                lg_write_npz(c, "two.npz", LG_NAMES("x", "y"), LG_LIST(t, t));
        }
}

static bool get(lg_sample *s, void *user)
{
        (void)user;
        *(float *)s->data[0] = (float)lg_rng_uniform(s->rng);
        return s->index >= 0 || lg_sample_fail(s, "sample %d", 1);
}

static bool collate(const lg_collation *b, void *user)
{
        (void)user;
        *(float *)b->to[0] = *(const float *)b->from[0];
        return true;
}

static void data_sets(lg_ctx *c)
{
        lg_dataset *d = lg_dataset_new(c, 5, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D)), get, NULL);
        lg_dataset *r = lg_dataset_new(c, 5, LG_FIELDS(LG_RAGGED_FIELD("x", LG_F32, LG_SHAPE(1), 0)), get, NULL,
                                       .release = NULL);
        lg_dataset *s = lg_dataset_stream(c, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D)), get, NULL, .seek = NULL);
        lg_dataset *list = lg_dataset_list(c, LG_LIST(lg_ones(c, LG_SHAPE(5), .device = lg_cpu())), .scale = 2);
        lg_dataset *all = lg_dataset_concat(c, d, lg_dataset_subset(d, LG_INTS(0, 1))), *a, *b;
        lg_dataset_split(all, 0.5, &a, &b);
        lg_dataset_split(all, 0.5, &a, &b, .seed = 1);
        lg_batch one;
        lg_dataset_get(a, 0, &one);
        lg_collate *m =
                lg_collate_new(c, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D)), collate, NULL, .release = NULL);
        lg_loader *l = lg_loader_open(c, b, 2, .workers = LG_AUTO, .collate = m);
        lg_each_batch(batch, l) lg_print(stderr, batch.field[0]);
        (void)r, (void)s, (void)list;
}

static void files(lg_ctx *c)
{
        if (c == NULL) {
                drop(lg_read_png(c, "cat.png"));
                drop(lg_read_png(c, "cat.png", .channels = 3));
                lg_csv *t = lg_csv_open(c, "iris.csv");
                drop(lg_csv_open(c, "iris.csv", .separator = ';', .no_header = true, .trim = true,
                                 .missing = LG_NAMES("", "-9")));
                drop(lg_csv_numbers(t, LG_NAMES("length", "width")));
                drop(lg_csv_numbers(t, lg_csv_columns(t), .missing_as = LG_ZERO, .dtype = LG_F64));
                drop(lg_csv_integers(t, "label"));
                drop(lg_csv_integers(t, "label", .missing_as = LG_ZERO_INT));
                drop(lg_csv_categories(t, "species"));
                drop(lg_csv_categories(t, "species", .texts = lg_csv_texts(t, "species"), .missing_as = -100));
                drop(lg_csv_categories(t, "species", .texts = LG_NAMES("setosa", "virginica")));
                drop(lg_image_folder(c, "pets"));
                drop(lg_image_folder(c, "pets", .height = 64, .width = 64));
                drop(lg_dataset_records(c, "a.bin", LG_FIELDS(LG_FIELD("x", LG_U8, LG_SHAPE(3)))));
                drop(lg_dataset_records(c, "a.bin", LG_FIELDS(LG_FIELD("x", LG_U8, LG_SHAPE(3))), .skip = 16));
                drop(lg_dataset_npy(c, LG_NAMES("x.npy", "y.npy")));
                drop(lg_dataset_text(c, "book.txt", 256));
                drop(lg_dataset_text(c, "book.txt", 256, .stride = 1));
                drop(lg_cifar10(c, "train"));
                drop(lg_cifar10(c, "train", .folder = "nowhere"));
                drop(lg_cifar100(c, "train"));
                drop(lg_cifar100(c, "train", .folder = "nowhere", .coarse = true));
        }
}

static void state(lg_ctx *c)
{
        double best = 0;
        lg_module *net = lg_nn_relu(c);
        lg_optimizer *opt = lg_sgd(c, LG_LIST(lg_ones(c, LG_SHAPE(2), .requires_grad = true)), 1);
        lg_checkpoint *k = lg_checkpoint_new(c);
        lg_checkpoint_add(k, "model", net);
        lg_checkpoint_add(k, "optimizer", opt);
        lg_checkpoint_add(k, "rate", lg_exponential_lr(opt, 0.5));
        lg_checkpoint_add(k, "average", lg_ema_new(net, 0.9));
        lg_checkpoint_add_number(k, "best", &best);
        if (c == NULL) {
                lg_weight t;
                lg_weights *w = lg_weights_open(c, "net.safetensors");
                if (lg_weights_at(w, 0, &t) && !lg_weights_read(w, t.name))
                        lg_weights_close(w);
                lg_load(net, "net.safetensors");
                lg_load(net, "net.safetensors", .partial = true, .prefix = "net.", .rename = LG_NAMES("a", "b"),
                        .cast = true);
        }
}

static bool keep(const lg_transform_call *call, void *user)
{
        (void)user;
        *(float *)call->to = *(const float *)call->from;
        return true;
}

static void transforms(lg_ctx *c)
{
        const double half[] = {0.5};
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2, 3, 8, 8), .dtype = LG_U8, .device = lg_cpu());
        lg_tensor *y = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64, .device = lg_cpu());
        lg_dataset *data = lg_dataset_tensors(c, x, y);
        lg_transform *t =
                lg_transforms(c, lg_transform_random_crop(c, 8, 8, .padding = 2, .mode = LG_PAD_REFLECT, .value = 1),
                              lg_transform_random_horizontal_flip(c), lg_transform_random_vertical_flip(c, .p = 0.1),
                              lg_transform_random_rotation(c, 15, .value = 1),
                              lg_transform_random_affine(c, .degrees = 10, .shear = 5),
                              lg_transform_color_jitter(c, .brightness = 0.4, .contrast = 0.4),
                              lg_transform_to_float(c), lg_transform_random_erasing(c, .p = 1, .random = true),
                              lg_transform_resize(c, 6, 6), lg_transform_center_crop(c, 4, 4),
                              lg_transform_normalize(c, LG_NUMBERS(0.5, 1, 0), LG_NUMBERS_OF(1, half)),
                              lg_transform_new(c, keep, NULL, .shape = LG_SHAPE(1), .dtype = LG_F32));
        lg_loader *batches = lg_loader_open(c, lg_dataset_transform(data, t), 2, .device = lg_cpu(),
                                            .collate = lg_mixup(c, .alpha = 0.2, .classes = 3));
        lg_each_batch(b, batches)
        {
                drop(b.x);
        }
        lg_transform_free(t);
}

int main(void)
{
        lg_ctx *c = lg_open();
        lg_close(c);
        int blocks = 0;
        c = lg_open(.threads = 1, .seed = 3, .alloc = allocate, .free = release, .user = &blocks);
        creations(c);
        operations(c);
        normalisations(c);
        convolutions(c);
        pooling(c);
        layers(c);
        graph(c);
        facts(c);
        modules(c);
        training(c);
        data_sets(c);
        files(c);
        state(c);
        transforms(c);
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        bool failed = lg_error(c);
        lg_close(c);
        return failed || blocks != 0;
}
