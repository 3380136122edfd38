/* gpu_kernels.c - measures the kernels that gpu_kernels.def lists, a figure for each row and dtype.
 *
 * Bytes are those that must be moved: each input read once, each output written once.
 */
#include <stdio.h>
#include <string.h>
#include "gpu_bench.h"

enum {
        F32 = 1 << LG_F32,
        F64 = 1 << LG_F64,
        F16 = 1 << LG_F16,
        BF16 = 1 << LG_BF16,
        TF32 = 2 << LG_BOOL, /* f32 products computed in TF32 */
        FLOATS = F32 | F16 | BF16,
        DOUBLES = F32 | F64,
        PRODUCT = FLOATS | TF32
};

/* A call to measure, once for each dtype. Only run is timed. */
typedef struct row {
        const char *name, *kernels;
        unsigned dtypes; /* dtypes to measure, a sum of bits such as F32 */
        int64_t size[4], small[4];
        void (*make)(work *w);
        void (*run)(work *w);
} row;

/* ---- tensors ---- */

/* Returns random values in [-1, 1) of w's dtype. */
static lg_tensor *values(work *w, lg_shape shape)
{
        return lg_uniform(w->c, -1, 1, shape, .dtype = w->dtype, .device = w->device);
}

static lg_tensor *leaf(work *w, lg_shape shape)
{
        return lg_set_requires_grad(values(w, shape), true);
}

static lg_tensor *indices(work *w, lg_shape shape, int64_t below)
{
        return lg_cast(lg_uniform(w->c, 0, below, shape, .device = w->device), LG_I64);
}

/* Returns the bytes of an element of w's dtype. */
static double width(const work *w)
{
        return (double)lg_dtype_size(w->dtype);
}

/* Returns size[0] images of size[1] channels and size[2] x size[2] pixels, stored with channels last, as libgrad does.
 */
static lg_tensor *images(work *w)
{
        lg_tensor *x = values(w, LG_SHAPE(w->size[0], w->size[2], w->size[2], w->size[1]));
        return lg_permute(x, LG_DIMS(0, 3, 1, 2));
}

static double image_bytes(const work *w)
{
        return width(w) * (double)(w->size[0] * w->size[1] * w->size[2] * w->size[2]);
}

/* ---- elementwise: of x, or of x and w ---- */

static void make_flat(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0]));
        w->bytes = 2 * width(w) * (double)w->size[0];
}

static void make_two(work *w)
{
        make_flat(w);
        w->w = values(w, LG_SHAPE(w->size[0]));
        w->bytes *= 1.5;
}

static void make_matrix(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = 2 * width(w) * (double)(w->size[0] * w->size[1]);
}

static void make_bias(work *w)
{
        make_matrix(w);
        w->w = values(w, LG_SHAPE(w->size[1]));
}

/* Makes x for a conversion to w's dtype: f16 if that is f32, else f32. */
static void make_convert(work *w)
{
        const lg_dtype from = w->dtype == LG_F32 ? LG_F16 : LG_F32;
        w->x = lg_uniform(w->c, -1, 1, LG_SHAPE(w->size[0]), .dtype = from, .device = w->device);
        w->bytes = (double)(lg_dtype_size(from) + lg_dtype_size(w->dtype)) * (double)w->size[0];
}

/* Takes every second column: whole cache lines are read for half of their elements. */
static void make_strided(work *w)
{
        make_matrix(w);
        w->x = lg_slice(w->x, 1, 0, LG_MAX, .step = 2);
        w->bytes *= 0.75;
}

static void make_transposed(work *w)
{
        make_matrix(w);
        w->x = lg_transpose(w->x, 0, 1);
}

/* Prepares an op that reads no tensor and writes one of x's size: half the bytes of make_flat(). */
static void make_written(work *w)
{
        make_flat(w);
        w->bytes /= 2;
}

/* Prepares an op with a bool result, one byte per element. */
static void make_test(work *w)
{
        make_flat(w);
        w->bytes = (width(w) + 1) * (double)w->size[0];
}

static void make_comparison(work *w)
{
        make_two(w);
        w->bytes = (2 * width(w) + 1) * (double)w->size[0];
}

/* Makes integers of w's width, which is 4 bytes. */
static void make_integers(work *w)
{
        make_two(w);
        w->x = lg_cast(lg_mul_scalar(w->x, 1e6), LG_I32);
        w->w = lg_cast(lg_mul_scalar(w->w, 1e6), LG_I32);
}

/* Prepares lg_where(); y is the condition. */
static void make_where(work *w)
{
        lg_shape shape = LG_SHAPE(w->size[0]);
        w->x = leaf(w, shape);
        w->w = leaf(w, shape);
        w->y = lg_gt_scalar(values(w, shape), 0);
        w->bytes = (3 * width(w) + 1) * (double)w->size[0];
}

/* ---- products ---- */

/* Makes size[3] products (0: one) of m x k by k x n matrices; size is m, n, k. */
static void make_gemm(work *w)
{
        int64_t m = w->size[0], n = w->size[1], k = w->size[2], batch = w->size[3] ? w->size[3] : 1;
        w->x = values(w, batch > 1 ? LG_SHAPE(batch, m, k) : LG_SHAPE(m, k));
        w->w = values(w, batch > 1 ? LG_SHAPE(batch, k, n) : LG_SHAPE(k, n));
        w->flops = 2 * (double)batch * (double)m * (double)n * (double)k;
        w->bytes = width(w) * (double)batch * (double)(m * k + k * n + m * n);
}

/* Makes lines of complex numbers. */
static void make_complex(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1], 2));
        w->bytes = 4 * width(w) * (double)(w->size[0] * w->size[1]);
}

/* Makes size[0] positive definite matrices of size[1] rows. */
static void make_definite(work *w)
{
        const int64_t n = w->size[1];
        lg_tensor *x = values(w, w->size[0] > 1 ? LG_SHAPE(w->size[0], n, n) : LG_SHAPE(n, n));
        lg_tensor *eye = lg_eye(w->c, n, n, .dtype = w->dtype, .device = w->device);
        w->x = lg_add(lg_div_scalar(lg_matmul(x, lg_transpose(x, -2, -1)), (double)n), eye);
        w->bytes = 2 * width(w) * (double)(w->size[0] * n * n);
}

/* Makes size[1] heads of size[2] queries and keys with size[3] elements, for causal attention. */
static void make_attention(work *w)
{
        const lg_shape s = LG_SHAPE(w->size[0], w->size[1], w->size[2], w->size[3]);
        w->x = leaf(w, s);
        w->w = leaf(w, s);
        w->v = leaf(w, s);
        const double n = (double)(w->size[0] * w->size[1] * w->size[2] * w->size[3]);
        w->flops = 2 * n * (double)w->size[2];
        w->bytes = 4 * width(w) * n;
}

/* Makes the same for the derivative, which has five products in place of two. */
static void make_attention_backward(work *w)
{
        make_attention(w);
        w->flops *= 2.5;
}

/* Makes an LSTM over size[0] steps of size[1] samples with size[2] features and units. */
static void make_lstm(work *w)
{
        const double rows = (double)(w->size[0] * w->size[1]), n = (double)w->size[2];
        w->net = lg_nn_lstm(w->c, w->size[2], w->size[2], .dtype = w->dtype, .device = w->device);
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1], w->size[2]));
        w->flops = 16 * rows * n * n;
        w->bytes = width(w) * (7 * rows * n + 8 * n * n);
}

/* Makes the same for the derivative by x and the weights. */
static void make_lstm_backward(work *w)
{
        make_lstm(w);
        w->flops *= 2;
}

/* Makes a convolution of images to images of the same size, with kernels size[3] wide. */
static void make_conv(work *w)
{
        int64_t channels = w->size[1], wide = w->size[3];
        w->x = images(w);
        w->w = values(w, LG_SHAPE(channels, channels, wide, wide));
        w->flops = 2 * (double)(wide * wide * channels) * image_bytes(w) / width(w);
        w->bytes = 2 * image_bytes(w);
}

/* Makes a depthwise convolution, whose bytes matter, not its operations. */
static void make_depthwise(work *w)
{
        w->x = images(w);
        w->w = values(w, LG_SHAPE(w->size[1], 1, w->size[3], w->size[3]));
        w->bytes = 2 * image_bytes(w);
}

/* ---- reductions, norms: weight w, bias z; losses: labels y ---- */

static void make_read(work *w)
{
        make_matrix(w);
        w->bytes /= 2;
}

/* qr_of, eigh_of and svd_of return the last factor. */
static lg_tensor *qr_of(lg_tensor *x)
{
        lg_tensor *q, *r;
        return lg_qr(x, &q, &r) ? r : NULL;
}
static lg_tensor *eigh_of(lg_tensor *x)
{
        lg_tensor *w, *v;
        return lg_eigh(x, &w, &v) ? v : NULL;
}
static lg_tensor *svd_of(lg_tensor *x)
{
        lg_tensor *u, *s, *vt;
        return lg_svd(x, &u, &s, &vt) ? vt : NULL;
}

/* Makes a layer for the gradient of its bias alone, which needs no product. */
static void make_layer(work *w)
{
        w->net = lg_nn_sequential(w->c, lg_nn_linear(w->c, 16, w->size[1], .dtype = w->dtype, .device = w->device),
                                  lg_nn_relu(w->c));
        w->w = lg_parameter(w->net, "0.bias");
        w->x = values(w, LG_SHAPE(w->size[0], 16));
        w->bytes = 3 * width(w) * (double)(w->size[0] * w->size[1]);
}

static void make_layer_norm(work *w)
{
        make_matrix(w);
        lg_set_requires_grad(w->x, true);
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
}

static void make_batch_norm(work *w)
{
        w->x = lg_set_requires_grad(images(w), true);
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
        w->mean = values(w, LG_SHAPE(w->size[1]));
        w->var = lg_full(w->c, LG_SHAPE(w->size[1]), 1, .dtype = w->dtype, .device = w->device);
        w->bytes = 2 * image_bytes(w);
}

static void make_group_norm(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1], w->size[2], w->size[2]));
        w->w = leaf(w, LG_SHAPE(w->size[1]));
        w->z = leaf(w, LG_SHAPE(w->size[1]));
        w->bytes = 2 * image_bytes(w);
}

static void make_cross_entropy(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = indices(w, LG_SHAPE(w->size[0]), w->size[1]);
        w->w = lg_full(w->c, LG_SHAPE(w->size[1]), 0.5, .dtype = w->dtype, .device = w->device);
        w->bytes = width(w) * (double)(w->size[0] * w->size[1]);
}

/* ---- look-up of elements or whole rows at indices y; sorting; pooling; resizing and sampling ---- */

static void make_gather(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = indices(w, LG_SHAPE(w->size[0], w->size[1]), w->size[1]);
        w->bytes = (2 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}

static void make_scatter_add(work *w)
{
        make_gather(w);
        w->w = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = (3 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}

static void make_index_select(work *w)
{
        make_matrix(w);
        w->y = lg_permutation(w->c, w->size[0], .device = w->device);
}

/* Looks up size[2] random rows in a table of size[0] rows. */
static void make_embedding(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1]));
        w->y = indices(w, LG_SHAPE(w->size[2]), w->size[0]);
        w->bytes = 2 * width(w) * (double)(w->size[2] * w->size[1]);
}

/* Makes size[0] heads of size[1] positions, and the tables for them. */
static void make_rotary(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1], w->size[2]));
        w->w = lg_rotary_table(w->c, w->size[1], w->size[2], &w->z, .device = w->device);
        w->bytes = 2 * width(w) * (double)(w->size[0] * w->size[1] * w->size[2]);
}

/* Prepares sorting, which writes values and i64 indices. */
static void make_sort(work *w)
{
        make_matrix(w);
        w->bytes = (2 * width(w) + 8) * (double)(w->size[0] * w->size[1]);
}

static void make_searchsorted(work *w)
{
        make_matrix(w);
        w->w = lg_sort(values(w, LG_SHAPE(w->size[1])), 0);
        w->bytes = (width(w) + 8) * (double)(w->size[0] * w->size[1]);
}

/* Makes a random mask. lg_nonzero() makes the host wait for the number of elements that are not 0. */
static void make_nonzero(work *w)
{
        w->x = lg_gt_scalar(values(w, LG_SHAPE(w->size[0], w->size[1])), 0);
        w->bytes = (2 + 8) * (double)(w->size[0] * w->size[1]);
}

static void make_pool(work *w)
{
        w->x = lg_set_requires_grad(images(w), true);
        w->bytes = 1.25 * image_bytes(w);
}

/* Makes images for twice their size, which takes 4 times their bytes. */
static void make_interpolate(work *w)
{
        w->x = lg_set_requires_grad(images(w), true);
        w->bytes = 5 * image_bytes(w);
}

/* Makes row-major images, and a grid of as many random points. */
static void make_grid_sample(work *w)
{
        w->x = leaf(w, LG_SHAPE(w->size[0], w->size[1], w->size[2], w->size[2]));
        w->w = leaf(w, LG_SHAPE(w->size[0], w->size[2], w->size[2], 2));
        w->bytes = 2 * image_bytes(w);
}

/* ---- optimisers: size[0] tensors of size[1] elements; bytes are `times` those of the parameters ---- */

static void make_parameters(work *w, double times)
{
        int64_t count = w->size[0] < MOST_PARAMETERS ? w->size[0] : MOST_PARAMETERS;
        for (int64_t i = 0; i < count; i++) {
                w->room[i] = leaf(w, LG_SHAPE(w->size[1]));
                lg_backward(lg_sum(w->room[i]));
        }
        w->parameters = LG_LIST_OF(count, w->room);
        w->bytes = times * width(w) * (double)(count * w->size[1]);
}

static void make_clip(work *w)
{
        make_parameters(w, 3);
}

static void make_scaled(work *w)
{
        make_parameters(w, 9);
        w->opt = lg_adam(w->c, w->parameters, 1e-3);
        w->scaler = lg_scaler_new(w->c);
        w->x = lg_ones(w->c, LG_SHAPE_0D, .device = w->device);
}

static bool step_scaled(work *w)
{
        drop(lg_scaler_scale(w->scaler, w->x));
        return lg_scaler_step(w->scaler, w->opt) && lg_scaler_update(w->scaler);
}

/* ---- the table ---- */

/* Makes z, which has the layout of y, the incoming gradient of y; the backward moves `times` the bytes. */
static void make_backward(work *w, double times, lg_tensor *y, lg_tensor *z)
{
        w->y = y;
        w->z = lg_detach(z);
        w->bytes *= times;
}

#define OF_LINE(name) OF_LINE_2(name, __LINE__)
#define OF_LINE_2(name, line) OF_LINE_3(name, line)
#define OF_LINE_3(name, line) name##_of_##line
/* Defines the function that runs `call`, whose result is a pointer, a number or a bool. */
#define RUN(call)                                                                                                      \
        static void OF_LINE(run)(work * w)                                                                             \
        {                                                                                                              \
                const bool result = call;                                                                              \
                (void)result;                                                                                          \
        }
#define ROW(name, kernels, dtypes, sizes, make, call) RUN(call)
#define SLOPE(name, kernels, dtypes, sizes, make, times, call, ...)                                                    \
        static void OF_LINE(make)(work * w)                                                                            \
        {                                                                                                              \
                make(w);                                                                                               \
                lg_list inputs = LG_LIST(__VA_ARGS__);                                                                 \
                for (int64_t i = 0; i < inputs.count; i++)                                                             \
                        lg_set_requires_grad(inputs.items[i], true);                                                   \
                make_backward(w, times, call, call);                                                                   \
        }                                                                                                              \
        RUN(lg_grad(LG_LIST(w->y), LG_LIST(__VA_ARGS__), .grads = LG_LIST(w->z), .retain_graph = true))
#define OPTIMIZER(name, kernels, dtypes, times, optimizer)                                                             \
        static void OF_LINE(make)(work * w)                                                                            \
        {                                                                                                              \
                make_parameters(w, times);                                                                             \
                w->opt = optimizer;                                                                                    \
        }                                                                                                              \
        RUN(lg_step(w->opt))
#include "gpu_kernels.def"
#undef ROW
#undef SLOPE
#undef OPTIMIZER
#define ROW(name, kernels, dtypes, sizes, make, call) {name, kernels, dtypes, sizes, make, OF_LINE(run)},
#define SLOPE(name, kernels, dtypes, sizes, make, times, call, ...)                                                    \
        {name, kernels, dtypes, sizes, OF_LINE(make), OF_LINE(run)},
#define OPTIMIZER(name, kernels, dtypes, times, optimizer)                                                             \
        {name, kernels, dtypes, PARAMETERS, OF_LINE(make), OF_LINE(run)},
static const row table[] = {
#include "gpu_kernels.def"
};

/* ---- measuring ---- */

static void print_size(const int64_t *size)
{
        for (int i = 0; i < 4 && size[i]; i++)
                printf("%s%lld", i ? " x " : "", (long long)size[i]);
}

static void measure_row(bench *b, const row *r, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .dtype = dtype};
        memcpy(w.size, b->small ? r->small : r->size, sizeof w.size);
        r->make(&w);
        double us = time_calls(b, &w, r->run);
        printf("{\"part\": \"kernels\", \"name\": \"%s\", \"dtype\": \"%s\", \"size\": \"", r->name,
               b->tf32 ? "tf32" : lg_dtype_name(dtype));
        print_size(w.size);
        printf("\", \"kernels\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f", r->kernels, w.bytes, w.flops);
        end_figure(b, "us", us);
        lg_optimizer_free(w.opt);
        lg_scaler_free(w.scaler);
        lg_module_free(w.net);
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
}

/* Returns whether an earlier row is the same, as some are in small sizes. */
static bool seen(const bench *b, const row *r)
{
        for (const row *a = table; b->small && a < r; a++)
                if (a->dtypes == r->dtypes && !strcmp(a->name, r->name) && !memcmp(a->small, r->small, sizeof a->small))
                        return true;
        return false;
}

void measure_kernels(bench *b)
{
        b->quick = true;
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                const row *r = &table[i];
                const unsigned dtypes = !b->tf32 ? r->dtypes : r->dtypes & TF32 ? F32 : 0;
                for (int dtype = 0; dtype <= LG_BOOL && !seen(b, r); dtype++)
                        if (dtypes >> dtype & 1 && !time_is_over(b))
                                measure_row(b, r, (lg_dtype)dtype);
        }
        if (!b->tf32 && !b->small && !time_is_over(b))
                measure_row(b, table, LG_F32); /* measures the first copy again, after clocks have risen */
        b->quick = false;
}
