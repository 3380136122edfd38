/* test_limits.c - numbers that a dtype cannot hold, and sizes up to 2^63: errors that name them, and no overflow. */
#include "test.h"

static lg_tensor *bytes(lg_ctx *c, lg_dtype dtype)
{
        return lg_cast(lg_from(c, ((uint8_t[]){0, 1, 5, 250}), LG_SHAPE(4), .dtype = LG_U8), dtype);
}

typedef lg_tensor *with_number(lg_tensor *x, double s);

static lg_tensor *clamp_low(lg_tensor *x, double s)
{
        return lg_clamp(x, s, INFINITY);
}

static lg_tensor *clamp_high(lg_tensor *x, double s)
{
        return lg_clamp(x, -INFINITY, s);
}

static lg_tensor *hardtanh_low(lg_tensor *x, double s)
{
        return lg_hardtanh(x, s, INFINITY);
}

static lg_tensor *hardtanh_high(lg_tensor *x, double s)
{
        return lg_hardtanh(x, -INFINITY, s);
}

static lg_tensor *filled(lg_tensor *x, double s)
{
        return lg_masked_fill(x, lg_eq_scalar(x, 0), s);
}

static lg_tensor *padded(lg_tensor *x, double s)
{
        return lg_pad(x, LG_INTS(1, 1), .value = s);
}

typedef struct number_op {
        const char *name;
        with_number *op;
        int bound; /* 1: from below, 2: from above */
} number_op;
static const number_op number_ops[] = {
        {"add_scalar", lg_add_scalar, 0},
        {"sub_scalar", lg_sub_scalar, 0},
        {"rsub_scalar", lg_rsub_scalar, 0},
        {"mul_scalar", lg_mul_scalar, 0},
        {"maximum_scalar", lg_maximum_scalar, 1},
        {"minimum_scalar", lg_minimum_scalar, 2},
        {"clamp", clamp_low, 1},
        {"clamp", clamp_high, 2},
        {"hardtanh", hardtanh_low, 1},
        {"hardtanh", hardtanh_high, 2},
        {"masked_fill", filled, 0},
        {"pad", padded, 0},
};
enum { NUMBER_OPS = sizeof number_ops / sizeof *number_ops };

static void assert_refused(lg_ctx *c, const number_op *n, lg_dtype dtype, double s)
{
        char text[200];
        snprintf(text, sizeof text, "%s: the value %.17g is out of the range of %s, ", n->name, s,
                 lg_dtype_name(dtype));
        if (n->op(bytes(c, dtype), s))
                fail_msg("%s of %s with %g is not refused", n->name, lg_dtype_name(dtype), s);
        assert_error(c, LG_ERR_ARGUMENT, text);
}

/* What an integer dtype cannot hold is refused by every op that would have to store it. */
TEST_CASE(numbers_out_of_range)
{
        lg_ctx *c = open_ctx();
        static const struct {
                lg_dtype dtype;
                double below, above;
        } ranges[] = {{LG_U8, -1, 256}, {LG_I32, -2147483649.0, 0x1p31}, {LG_I64, -0x1.0000000000001p63, 0x1p63}};
        for (int i = 0; i < NUMBER_OPS; i++) {
                const number_op *n = &number_ops[i];
                for (int r = 0; r < 3; r++) {
                        lg_dtype d = ranges[r].dtype;
                        const double outside[2][2] = {{ranges[r].below, -INFINITY}, {ranges[r].above, INFINITY}};
                        assert_refused(c, n, d, NAN);
                        for (int side = 0; side < 2; side++)
                                for (int k = 0; k < 2; k++)
                                        if (n->bound != 1 + side)
                                                assert_refused(c, n, d, outside[side][k]);
                                        else /* bounds nothing */
                                                assert_list(n->op(bytes(c, d), outside[side][k]), 0, 0, 1, 5, 250);
                }
        }
        assert_ok(c);
        lg_close(c);
}

/* The ends of the range are in it, numbers are cut to whole ones, and comparisons take any. */
TEST_CASE(numbers_in_range)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = bytes(c, LG_U8);
        assert_list(lg_add_scalar(x, 5.9), 0, 5, 6, 10, 255);
        assert_list(lg_sub_scalar(x, -0.9), 0, 0, 1, 5, 250);
        assert_list(lg_rsub_scalar(x, 255.9), 0, 255, 254, 250, 5);
        assert_list(lg_mul_scalar(x, 0.5), 0, 0, 0, 0, 0);
        assert_list(lg_maximum_scalar(x, 255), 0, 255, 255, 255, 255);
        assert_list(lg_minimum_scalar(x, 0), 0, 0, 0, 0, 0);
        assert_list(lg_clamp(x, -7, 300), 0, 0, 1, 5, 250);
        assert_list(lg_clamp(x, 1.5, 6.5), 0, 1, 1, 5, 6);
        assert_list(lg_lt_scalar(x, 1e300), 0, 1, 1, 1, 1);
        assert_list(lg_gt_scalar(x, -1), 0, 1, 1, 1, 1);
        assert_list(lg_eq_scalar(x, NAN), 0, 0, 0, 0, 0);
        assert_list(lg_div_scalar(x, 1000), 1e-7, 0, 0.001, 0.005, 0.25); /* f32 */
        lg_tensor *wide = lg_full(c, LG_SHAPE(1), -1, .dtype = LG_I64);
        int64_t low;
        assert_true(lg_read(lg_add_scalar(lg_mul_scalar(wide, 0x1p62), -0x1p62), &low, LG_I64, sizeof low));
        assert_true(low == INT64_MIN);
        assert_ok(c);
        lg_close(c);
}

/* A number is true if it is not zero, as in lg_full; as a bound it is compared with 0 and 1. */
TEST_CASE(numbers_with_bool)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((bool[]){false, true}), LG_SHAPE(2), .dtype = LG_BOOL);
        static const double trues[] = {1, -1, 0.5, 300, INFINITY, NAN};
        for (size_t i = 0; i < sizeof trues / sizeof *trues; i++) {
                assert_list(lg_add_scalar(x, trues[i]), 0, 1, 1);
                assert_list(lg_mul_scalar(x, trues[i]), 0, 0, 1);
                assert_list(lg_rsub_scalar(x, trues[i]), 0, 1, 0);
                assert_list(filled(x, trues[i]), 0, 1, 1);
        }
        assert_list(lg_add_scalar(x, 0), 0, 0, 1);
        assert_list(lg_clamp(x, -INFINITY, INFINITY), 0, 0, 1);
        assert_list(lg_clamp(x, -3, 3), 0, 0, 1);
        assert_list(lg_maximum_scalar(x, 0.5), 0, 0, 1);
        assert_list(lg_maximum_scalar(x, 2), 0, 1, 1);
        assert_list(lg_minimum_scalar(x, -2), 0, 0, 0);
        assert_int_equal(lg_dtype_of(lg_add_scalar(x, 2)), LG_BOOL);
        assert_ok(c);
        lg_close(c);
}

/* ---- sizes ---- */

static const int64_t sizes[] = {INT64_MIN,
                                INT64_MIN + 1,
                                -((int64_t)1 << 62),
                                -1,
                                0,
                                2,
                                INT32_MAX,
                                (int64_t)1 << 32,
                                (int64_t)1 << 40,
                                (int64_t)1 << 58,
                                (int64_t)1 << 61,
                                ((int64_t)1 << 62) + 2,
                                INT64_MAX - 1,
                                INT64_MAX};
enum { SIZES = sizeof sizes / sizeof *sizes, LIMIT = 1 << 20 };

/* What calls with sizes work on. */
typedef struct things {
        lg_ctx *c;
        lg_tensor *image, *empty, *weight, *row, *huge, *index, *table;
        lg_dataset *data;
        lg_optimizer *opt;
} things;

static things open_things(void)
{
        things t = {.c = open_ctx()};
        lg_ctx *c = t.c;
        t.image = lg_ones(c, LG_SHAPE(1, 4, 3, 5), .requires_grad = true);
        t.empty = lg_zeros(c, LG_SHAPE(0, 4, 3, 5));
        t.weight = lg_ones(c, LG_SHAPE(4, 4, 2, 2));
        t.row = lg_ones(c, LG_SHAPE(6, 3), .requires_grad = true);
        t.huge = lg_expand(lg_ones(c, LG_SHAPE(1)), LG_SHAPE((int64_t)1 << 58));
        t.index = lg_arange(c, 0, 3, 1);
        t.table = lg_ones(c, LG_SHAPE(4, 2));
        lg_device cpu = lg_cpu();
        t.data = lg_dataset_tensors(c, lg_ones(c, LG_SHAPE(5, 3), .device = cpu),
                                    lg_ones(c, LG_SHAPE(5), .device = cpu));
        t.opt = lg_sgd(c, LG_LIST(t.row), 0.1);
        assert_true(lg_set_memory_limit(c, cpu, LIMIT) && lg_set_memory_limit(c, lg_device_of(t.row), LIMIT));
        assert_ok(c);
        return t;
}

/* The call did what it said, or set an error; either way the context is good for the next. */
static void after(const things *t, const char *call, int64_t a, int64_t b)
{
        if (lg_error_code_of(t->c) == LG_ERR_CUDA)
                fail_msg("%s of %lld and %lld: %s", call, (long long)a, (long long)b, lg_error(t->c));
        lg_clear_error(t->c);
}

#define TRY(...)                                                                                                       \
        do {                                                                                                           \
                (void)(__VA_ARGS__);                                                                                   \
                after(t, #__VA_ARGS__, a, b);                                                                          \
        } while (0)
#define TRY_LAYER(x, ...)                                                                                              \
        do {                                                                                                           \
                lg_module *m = (__VA_ARGS__);                                                                          \
                if (m)                                                                                                 \
                        drop(lg_forward(m, x));                                                                        \
                after(t, #__VA_ARGS__, a, b);                                                                          \
                lg_module_free(m);                                                                                     \
        } while (0)

static void try_layers(const things *t, int64_t a, int64_t b)
{
        lg_ctx *c = t->c;
        TRY_LAYER(t->image, lg_nn_conv2d(c, a, b, 1));
        TRY_LAYER(t->image, lg_nn_conv2d(c, a, a, 1, .groups = b));
        TRY_LAYER(t->image, lg_nn_conv2d(c, 4, 4, 0, .kernels = LG_PAIR(a, b)));
        TRY_LAYER(t->image, lg_nn_conv2d(c, 4, 4, 2, .stride = a, .padding = b));
        TRY_LAYER(t->image, lg_nn_conv2d(c, 4, 4, 2, .dilation = a, .padding = b));
        TRY_LAYER(t->row, lg_nn_conv1d(c, 6, a, b));
        TRY_LAYER(t->row, lg_nn_conv1d(c, 6, 6, 2, .stride = a, .padding = b));
        TRY_LAYER(t->image, lg_nn_conv_transpose2d(c, 4, a, b));
        TRY_LAYER(t->image, lg_nn_conv_transpose2d(c, 4, 4, 2, .stride = a, .padding = b));
        TRY_LAYER(t->image, lg_nn_conv_transpose2d(c, 4, 4, 2, .dilation = a, .output_padding = b));
        TRY_LAYER(t->row, lg_nn_linear(c, a, b));
        TRY_LAYER(t->index, lg_nn_embedding(c, a, b));
        TRY_LAYER(t->index, lg_nn_embedding(c, 4, 2, .padding_idx = a));
        TRY_LAYER(t->index, lg_nn_embedding(c, a, 2, .padding_idx = b));
        TRY_LAYER(t->image, lg_nn_prelu(c, a));
        TRY_LAYER(t->row, lg_nn_batch_norm1d(c, a));
        TRY_LAYER(t->row, lg_nn_conv1d(c, 6, 6, 2, .dilation = a, .groups = b));
        TRY_LAYER(t->image, lg_nn_batch_norm2d(c, a));
        TRY_LAYER(t->image, lg_nn_group_norm(c, a, b));
        TRY_LAYER(t->row, lg_nn_layer_norm(c, LG_SHAPE(a, b)));
        TRY_LAYER(t->image, lg_nn_max_pool2d(c, a, .stride = b));
        TRY_LAYER(t->image, lg_nn_avg_pool2d(c, 0, .kernels = LG_PAIR(a, b)));
        TRY_LAYER(t->image, lg_nn_adaptive_avg_pool2d(c, 0, .sizes = LG_PAIR(a, b)));
}

static void try_windows(const things *t, int64_t a, int64_t b)
{
        lg_tensor *none = lg_zeros(t->c, LG_SHAPE(0, (int64_t)1 << 40, 1, 1));
        lg_tensor *channels = lg_zeros(t->c, LG_SHAPE(1, 0, 3, 5));
        TRY(drop(lg_conv2d(t->image, t->weight, NULL, .groups = a, .stride = b)));
        TRY(drop(lg_conv2d(channels, none, NULL, .groups = a)));
        TRY(drop(lg_conv_transpose2d(channels, none, NULL, .groups = a)));
        TRY(drop(lg_conv2d(t->empty, t->weight, NULL, .strides = LG_PAIR(a, b), .paddings = LG_PAIR(b, a))));
        TRY(drop(lg_conv_transpose2d(t->image, t->weight, NULL, .strides = LG_PAIR(a, b), .paddings = LG_PAIR(b, a))));
        TRY(drop(lg_conv_transpose2d(t->empty, t->weight, NULL, .strides = LG_PAIR(a, b), .dilations = LG_PAIR(b, a))));
        TRY(drop(lg_max_pool2d(t->image, a, .padding = a / 2, .stride = b)));
        TRY(drop(lg_max_pool2d(t->image, 2, .stride = a, .dilation = b, .ceil_mode = true)));
        TRY(drop(lg_avg_pool2d(t->image, a, .padding = a / 2, .stride = b, .ceil_mode = true)));
        TRY(drop(lg_avg_pool2d(t->image, 2, .stride = a, .divisor = b)));
        TRY(drop(lg_avg_pool2d(t->empty, 0, .kernels = LG_PAIR(a, b), .paddings = LG_PAIR(a / 2, b / 2), .stride = 1)));
        TRY(drop(lg_max_pool1d(t->row, a, .stride = b)));
        TRY(drop(lg_adaptive_avg_pool2d(t->image, 0, .sizes = LG_PAIR(a, b))));
        TRY(drop(lg_adaptive_max_pool2d(t->empty, 0, .sizes = LG_PAIR(a, b))));
        TRY(drop(lg_group_norm(t->image, a, NULL, NULL)));
        TRY(drop(lg_group_norm(channels, a, NULL, NULL)));
}

static void try_shapes(const things *t, int64_t a, int64_t b)
{
        lg_tensor *many[40], *ret[4];
        for (int i = 0; i < 40; i++)
                many[i] = t->huge;
        TRY(drop(lg_reshape(t->row, LG_SHAPE(a, b))));
        TRY(drop(lg_reshape(t->empty, LG_SHAPE(a, b, -1))));
        TRY(drop(lg_expand(lg_ones(t->c, LG_SHAPE(1, 1)), LG_SHAPE(a, b))));
        TRY(drop(lg_expand(t->row, LG_SHAPE(a, b, 6, 3))));
        TRY(drop(lg_expand(t->huge, LG_SHAPE(a, b))));
        TRY(drop(lg_flatten(lg_expand(lg_ones(t->c, LG_SHAPE(1, 1)), LG_SHAPE(a, b)))));
        TRY(drop(lg_repeat(t->row, LG_SHAPE(a, b))));
        TRY(drop(lg_repeat(t->empty, LG_SHAPE(a, 1, b, 1, 1))));
        TRY(drop(lg_pad(t->row, LG_INTS(a, b))));
        TRY(drop(lg_pad(t->row, LG_INTS(a, b, b, a))));
        TRY(drop(lg_pad(t->empty, LG_INTS(a, 0, 0, b))));
        TRY(drop(lg_select(t->row, 0, a)));
        TRY(drop(lg_roll(t->row, a, 0)));
        TRY(lg_split(t->row, a, 0, ret, 4));
        TRY(lg_chunk(t->empty, a, 0, ret, 4));
        TRY(drop(lg_topk(t->row, a, 0)));
        TRY(drop(lg_tril(t->row, .diagonal = a)));
        TRY(drop(lg_triu(t->empty, .diagonal = a)));
        TRY(drop(lg_one_hot(t->index, a)));
        TRY(drop(lg_embedding(t->index, t->table, .padding_idx = a)));
        TRY(drop(lg_cat(LG_LIST_OF(40, many), 0)));
        TRY(drop(lg_stack(LG_LIST_OF(40, many), 1)));
        TRY(drop(lg_cross_entropy(t->table, lg_zeros(t->c, LG_SHAPE(4), .dtype = LG_I64), .ignore_index = a)));
        TRY(drop(lg_matmul(lg_unsqueeze(t->huge, 1), lg_unsqueeze(t->huge, 0))));
        TRY(drop(lg_mul(lg_unsqueeze(t->huge, 1), t->huge)));
        TRY(lg_backward(lg_sum(lg_slice(t->row, 0, a, b))));
        TRY(lg_backward(lg_sum(lg_slice(t->row, 0, 0, a, .step = b))));
        TRY(lg_backward(lg_sum(lg_slice(t->row, 0, 5, 6, .step = b))));
}

/* Along dimensions, by rows and classes that there may not be. */
static void try_choices(const things *t, int64_t a, int64_t b)
{
        const int dim = (int)(a < INT32_MIN ? INT32_MIN : a > INT32_MAX ? INT32_MAX : a);
        lg_tensor *rows = lg_full(t->c, LG_SHAPE(2), (double)a, .dtype = LG_I64), *labels = lg_select(rows, 0, 0);
        TRY(drop(lg_select(t->row, dim, b)));
        TRY(drop(lg_slice(t->row, dim, a, b)));
        TRY(drop(lg_transpose(t->row, dim, 0)));
        TRY(drop(lg_unsqueeze(t->row, dim)));
        TRY(drop(lg_flatten(t->row, .start_dim = dim, .end_dim = LG_ZERO_INT)));
        TRY(drop(lg_flip(t->row, LG_DIMS(dim))));
        TRY(drop(lg_roll(t->row, b, dim)));
        TRY(drop(lg_sum(t->row, .dims = LG_DIMS(dim))));
        TRY(drop(lg_softmax(t->row, dim)));
        TRY(drop(lg_cumsum(t->row, dim)));
        TRY(drop(lg_sort(t->row, dim)));
        TRY(drop(lg_cat(LG_LIST(t->row, t->row), dim)));
        TRY(drop(lg_normalize(t->row, dim)));
        TRY(drop(lg_layer_norm(t->row, LG_SHAPE(a), NULL, NULL)));
        TRY(drop(lg_index_select(t->row, 0, rows)));
        TRY(drop(lg_gather(t->row, dim, lg_expand(rows, LG_SHAPE(3, 2)))));
        TRY(drop(lg_cross_entropy(t->table, lg_expand(labels, LG_SHAPE(4)), .ignore_index = b)));
        TRY(drop(lg_nll(t->table, lg_expand(labels, LG_SHAPE(4)), .ignore_index = b)));
        TRY(drop(lg_multinomial(lg_ones(t->c, LG_SHAPE(3)), a)));
        TRY(lg_synchronize(t->c));
}

static void try_data(const things *t, int64_t a, int64_t b)
{
        lg_ctx *c = t->c;
        char text[4096];
        snprintf(text, sizeof text, "%s/optim.txt", getenv("LG_TEST_DATA"));
        lg_dataset *made[8] = {lg_dataset_subset(t->data, LG_INTS(a, b))};
        after(t, "lg_dataset_subset", a, b);
        lg_dataset *images = lg_dataset_tensors(c, lg_ones(c, LG_SHAPE(2, 3, 4, 4), .device = lg_cpu()), NULL);
        TRY(made[1] = lg_dataset_transform(images, lg_transform_resize(c, a, b)));
        TRY(made[2] = lg_dataset_transform(images, lg_transform_center_crop(c, a, b)));
        TRY(made[3] = lg_dataset_transform(images, lg_transform_random_crop(c, a, a, .padding = b)));
        TRY(made[4] = lg_dataset_transform(images, lg_transform_random_crop(c, a, b, .padding = 1)));
        TRY(made[5] = lg_dataset_text(c, text, a, .stride = b));
        TRY(made[6] = lg_dataset_tokens(c, text, a, .bits = 16, .stride = b, .vocabulary = a, .separator = b));
        for (int i = 0; i < 7; i++) {
                lg_batch sample;
                const lg_fields fields = lg_dataset_fields(made[i]);
                int64_t n = fields.count ? 1 : LIMIT;
                for (int d = 0; fields.count && d < fields.field[0].shape.ndim; d++)
                        n = n > LIMIT ? n : n * fields.field[0].shape.size[d];
                if (n < LIMIT)
                        TRY(lg_dataset_get(made[i], a, &sample));
                if (n < LIMIT)
                        TRY(lg_dataset_get(made[i], 0, &sample));
                lg_dataset_free(made[i]);
        }
        lg_dataset_free(images);
        after(t, "lg_dataset_free", a, b);
}

static void try_creations(const things *t, int64_t a, int64_t b)
{
        lg_ctx *c = t->c;
        lg_tensor *borrowed;
        TRY(drop(lg_zeros(c, LG_SHAPE(a, b))));
        TRY(drop(lg_empty(c, LG_SHAPE(0, a, b), .dtype = LG_I64)));
        TRY(drop(lg_from(c, NULL, LG_SHAPE(a, b))));
        TRY(borrowed = lg_borrow(c, NULL, NULL, NULL, LG_SHAPE(a, b, 0)));
        TRY(drop(lg_uniform(c, 0, 1, LG_SHAPE(a, b))));
        TRY(drop(lg_arange(c, a, b, 1)));
        TRY(drop(lg_arange(c, a, b, a)));
        TRY(drop(lg_arange(c, 0, a, b, .dtype = LG_F64)));
        TRY(drop(lg_arange(c, a, b, 1, .dtype = LG_U8)));
        TRY(drop(lg_permutation(c, a)));
        TRY(drop(lg_eye(c, a, b)));
        TRY(drop(lg_linspace(c, 0, 1, a)));
        TRY(drop(lg_randint(c, a, b, LG_SHAPE(3))));
        TRY(lg_read(t->row, NULL, LG_F32, (size_t)a));
        TRY(lg_write(t->row, NULL, LG_F32, (size_t)a));
        (void)borrowed;
}

static void try_training(const things *t, int64_t a, int64_t b)
{
        lg_scheduler *made[] = {lg_step_lr(t->opt, a), NULL, NULL, NULL, NULL, NULL, NULL};
        after(t, "lg_step_lr", a, b);
        TRY(made[1] = lg_multi_step_lr(t->opt, LG_INTS(a, b)));
        TRY(made[2] = lg_cosine_lr(t->opt, a));
        TRY(made[3] = lg_linear_lr(t->opt, a));
        TRY(made[4] = lg_constant_lr(t->opt, a));
        TRY(made[5] = lg_one_cycle_lr(t->opt, 0.1, a, .no_cycle_momentum = true));
        TRY(made[6] = lg_reduce_on_plateau(t->opt, 0.5, .patience = a, .cooldown = b));
        for (int i = 0; i < 7; i++) {
                for (int k = 0; k < 3 && made[i]; k++) {
                        if (i == 6)
                                lg_scheduler_step_metric(made[i], 1);
                        else
                                lg_scheduler_step(made[i]);
                        after(t, "a step", a, b);
                }
                lg_scheduler_free(made[i]);
        }
        for (int workers = 0; workers < 2; workers++) {
                lg_loader *l = lg_loader_open(t->c, t->data, a, .workers = workers, .drop_last = b < 0);
                for (lg_batch batch; lg_loader_next(l, &batch);)
                        assert_true(lg_size_of(batch.x, 0) <= 5);
                after(t, "lg_loader_open", a, b);
                lg_loader_close(l);
        }
}

/* Every size of calls near 2^63 and next to 0, by pairs: nothing overflows, nothing ends the process. */
TEST_CASE(sizes_near_the_end)
{
        things t = open_things();
        for (int i = 0; i < SIZES; i++)
                for (int k = 0; k < SIZES; k++) {
                        lg_scope scope = lg_scope_begin(t.c);
                        try_layers(&t, sizes[i], sizes[k]);
                        try_windows(&t, sizes[i], sizes[k]);
                        try_shapes(&t, sizes[i], sizes[k]);
                        try_choices(&t, sizes[i], sizes[k]);
                        try_data(&t, sizes[i], sizes[k]);
                        try_creations(&t, sizes[i], sizes[k]);
                        try_training(&t, sizes[i], sizes[k]);
                        lg_scope_end(t.c, scope);
                }
        lg_close(t.c);
}

TEST_CASE(sizes_that_are_too_large)
{
        things t = open_things();
        lg_ctx *c = t.c;
        const int64_t far = (int64_t)1 << 62, most = INT32_MAX;
#define REFUSED(code, message, ...)                                                                                    \
        assert_null(__VA_ARGS__);                                                                                      \
        assert_error(c, code, message)
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_nn_conv2d(c, far, far, 3));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_nn_conv2d(c, 4, 4, far));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_nn_linear(c, far, far));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_nn_embedding(c, far, far));
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, (int64_t)1 << 40, 1, 1)), *x = lg_zeros(c, LG_SHAPE(1, 0, 3, 5));
        REFUSED(LG_ERR_ARGUMENT, "conv_transpose2d: 4611686018427387904 groups; they must divide the 0 of w",
                lg_conv_transpose2d(x, none, NULL, .groups = far));
        REFUSED(LG_ERR_SHAPE, "conv_transpose2d: w is f32 (0, 1099511627776, 1, 1)",
                lg_conv_transpose2d(x, none, NULL, .groups = most));
        REFUSED(LG_ERR_SHAPE, "conv2d: w is f32 (0, 1099511627776, 1, 1)", lg_conv2d(x, none, NULL, .groups = most));
        REFUSED(LG_ERR_ARGUMENT, "avg_pool2d: kernel 1099511627776",
                lg_avg_pool2d(t.image, (int64_t)1 << 40, .padding = (int64_t)1 << 39));
        REFUSED(LG_ERR_ARGUMENT, "max_pool2d: kernel 2, stride 9223372036854775807",
                lg_max_pool2d(t.image, 2, .stride = INT64_MAX, .ceil_mode = true));
        REFUSED(LG_ERR_SHAPE, "(1, 4, 2147483647, 2147483647) has too many elements",
                lg_adaptive_avg_pool2d(t.image, 0, .sizes = LG_PAIR(most, most)));
        lg_tensor *many[40];
        for (int i = 0; i < 40; i++)
                many[i] = t.huge;
        REFUSED(LG_ERR_SHAPE, "cat: the sizes of dimension 0 add up beyond 2^63", lg_cat(LG_LIST_OF(40, many), 0));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_cat((lg_list){2, many}, 0));
        REFUSED(LG_ERR_SHAPE, "repeat: x is f32 (6, 3)", lg_repeat(t.row, LG_SHAPE(far, 1)));
        REFUSED(LG_ERR_SHAPE, "pad: x is f32 (6, 3)", lg_pad(t.row, LG_INTS(INT64_MAX, INT64_MAX)));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_expand(t.huge, LG_SHAPE(4, (int64_t)1 << 58)));
        REFUSED(LG_ERR_SHAPE, "too many elements", lg_one_hot(t.index, far));
        REFUSED(LG_ERR_SHAPE, "lg_arange: from 0 to 4.61169e+18 by 1 has too many elements", lg_arange(c, 0, far, 1));
        REFUSED(LG_ERR_MEMORY, "out of memory", lg_zeros(c, LG_SHAPE((int64_t)1 << 58)));
        lg_tensor *part = lg_slice(t.row, 0, 2, 3, .step = far); /* one row: the step is not taken */
        assert_true(lg_backward(lg_sum(part)));
        assert_list(lg_sum(lg_grad_of(t.row), .dims = LG_DIMS(1)), 0, 0, 0, 3, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}
