/* test_index.c - picking and placing by index, masks, padding, joining and taking apart. */
#include <limits.h>
#include "golden.h"

/* (7 i + 3) mod top, i64: what index.py's i64() makes. */
static lg_tensor *index_of(lg_ctx *c, lg_shape shape, int64_t top)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        int64_t *v = calloc((size_t)n + 1, sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = (7 * i + 3) % top;
        lg_tensor *t = lg_from(c, v, shape, .dtype = LG_I64);
        free(v);
        return t;
}
#define I64(top, ...) index_of(c, LG_SHAPE(__VA_ARGS__), top)
#define LIST64(...)                                                                                                    \
        lg_from(c, ((const int64_t[]){__VA_ARGS__}),                                                                   \
                LG_SHAPE((int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), .dtype = LG_I64)

static lg_tensor *source(lg_ctx *c, const lg_tensor *x)
{
        return lg_cast(golden_tensor(c, LG_SHAPE(2, 3, 4), 0.7), lg_dtype_of(x));
}

static lg_tensor *weighted(lg_tensor *x, int64_t size, int64_t chunks, int dim)
{
        lg_tensor *p[8];
        int64_t n = chunks ? lg_chunk(x, chunks, dim, p, 8) : lg_split(x, size, dim, p, 8);
        for (int64_t i = 0; i < n; i++)
                p[i] = lg_mul_scalar(p[i], (double)i + 2);
        return lg_cat((lg_list){n, p}, dim);
}

#define SRC source(c, x)
#define TEN lg_reshape(lg_slice(lg_flatten(SRC, 0, -1), 0, 0, 10), LG_SHAPE(2, 5))
#define ROWS                                                                                                           \
        ROW(gather_0, lg_gather(x, 0, I64(4, 6, 3)), 4, 5)                                                             \
        ROW(gather_1, lg_gather(x, 1, I64(5, 3, 7)), 4, 5)                                                             \
        ROW(gather_middle, lg_gather(x, -2, I64(3, 2, 5, 3)), 2, 3, 4)                                                 \
        ROW(gather_turned, lg_gather(lg_transpose(x, 0, 1), 0, I64(5, 2, 4)), 4, 5)                                    \
        ROW(scatter_add_0, lg_scatter_add(x, 0, I64(4, 3, 4), lg_select(SRC, 0, 1)), 4, 5)                             \
        ROW(scatter_add_last, lg_scatter_add(x, 2, I64(4, 2, 2, 3), SRC), 2, 3, 4)                                     \
        ROW(scatter_add_src, lg_scatter_add(SRC, 1, I64(3, 2, 3, 4), x), 2, 3, 4)                                      \
        ROW(index_select_0, lg_index_select(x, 0, I64(4, 6)), 4, 5)                                                    \
        ROW(index_select_1, lg_index_select(x, 1, I64(3, 4)), 2, 3, 4)                                                 \
        ROW(index_select_last, lg_index_select(x, -1, I64(4, 3)), 2, 3, 4)                                             \
        ROW(index_add_0, lg_index_add(x, 0, LIST64(1, 1), TEN), 4, 5)                                                  \
        ROW(index_add_src, lg_index_add(SRC, 1, LIST64(2, 0, 2), x), 2, 3, 4)                                          \
        ROW(embedding, lg_embedding(x, I64(4, 2, 3)), 4, 5)                                                            \
        ROW(embedding_padding, lg_embedding(x, I64(4, 2, 3), .padding_idx = 2), 4, 5)                                  \
        ROW(embedding_padding_zero, lg_embedding(x, I64(4, 2, 3), .padding_idx = LG_ZERO_INT), 4, 5)                   \
        ROW(embedding_padding_end, lg_embedding(x, I64(4, 2, 3), .padding_idx = -1), 4, 5)                             \
        ROW(one_hot, lg_matmul(x, lg_cast(lg_one_hot(I64(7, 5), 7), lg_dtype_of(x))), 4, 5)                            \
        ROW(masked_fill, lg_masked_fill(x, lg_eq_scalar(I64(2, 3, 1), 1), -4.5), 2, 3, 4)                              \
        ROW(masked_fill_wide, lg_masked_fill(x, lg_eq_scalar(I64(3, 2, 1, 5), 1), 2), 4, 5)                            \
        ROW(masked_select, lg_masked_select(x, lg_eq_scalar(I64(3, 2, 3, 4), 1)), 2, 3, 4)                             \
        ROW(masked_select_wide, lg_masked_select(x, lg_eq_scalar(I64(3, 2, 1, 5), 1)), 4, 5)                           \
        ROW(masked_select_narrow, lg_masked_select(x, lg_eq_scalar(I64(2, 3, 1), 1)), 2, 3, 4)                         \
        ROW(tril, lg_tril(x), 4, 5)                                                                                    \
        ROW(tril_1, lg_tril(x, .diagonal = 1), 2, 3, 4)                                                                \
        ROW(triu_minus, lg_triu(x, .diagonal = -1), 4, 5)                                                              \
        ROW(triu_far, lg_triu(x, .diagonal = 9), 4, 5)                                                                 \
        ROW(flip, lg_mul(lg_flip(x, LG_DIMS(0, 2)), x), 2, 3, 4)                                                       \
        ROW(roll, lg_roll(x, 2, 1), 2, 3, 4)                                                                           \
        ROW(roll_back, lg_roll(x, -7, -1), 4, 5)                                                                       \
        ROW(pad, lg_pad(x, LG_INTS(1, 2, 0, 1), .value = -0.5), 2, 3, 4)                                               \
        ROW(pad_crop, lg_pad(x, LG_INTS(-1, 1, 2, -2)), 4, 5)                                                          \
        ROW(stack, lg_stack(LG_LIST(x, lg_mul_scalar(x, 2), SRC), 1), 2, 3, 4)                                         \
        ROW(stack_last, lg_stack(LG_LIST(x, lg_square(x)), -1), 4, 5)                                                  \
        ROW(split, weighted(x, 2, 0, 1), 4, 5)                                                                         \
        ROW(chunk, weighted(x, 0, 3, 0), 4, 5)                                                                         \
        ROW(repeat, lg_repeat(x, LG_SHAPE(2, 3)), 4, 5)                                                                \
        ROW(repeat_front, lg_repeat(x, LG_SHAPE(2, 1, 1, 2)), 2, 3, 4)
#define ROW(name, expression, ...) GOLDEN_RUN(name, expression)
ROWS
#undef ROW
#define ROW(...) GOLDEN_ROW(__VA_ARGS__)
        static const golden rows[] = {ROWS};

static lg_tensor *turned_input(lg_ctx *c, const golden *row)
{
        lg_dims back = {.count = row->shape.ndim};
        for (int i = 0; i < back.count; i++)
                back.dim[i] = back.count - 1 - i;
        lg_tensor *x = lg_flip(golden_input(c, row), LG_ALL_DIMS);
        x = lg_flip(lg_contiguous(x), LG_ALL_DIMS);
        return lg_permute(lg_contiguous(lg_permute(x, back)), back);
}

TEST_CASE(as_pytorch)
{
        golden_check("index.txt", golden_input, rows, sizeof rows / sizeof *rows);
        golden_check("index.txt", turned_input, rows, sizeof rows / sizeof *rows);
}

/* ---- against plain loops: every dtype, sizes that run threads ---- */

/* x (outer, size, inner), index (outer, n, inner): what is picked, and what x becomes when src is added. */
typedef struct loops {
        int64_t outer, size, n, inner;
        double *x, *src, *picked, *sum;
        int64_t *index;
} loops;

static void loops_init(loops *l)
{
        int64_t of_x = l->outer * l->size * l->inner, of_src = l->outer * l->n * l->inner;
        l->x = calloc((size_t)of_x + 1, sizeof *l->x);
        l->sum = calloc((size_t)of_x + 1, sizeof *l->sum);
        l->src = calloc((size_t)of_src + 1, sizeof *l->src);
        l->picked = calloc((size_t)of_src + 1, sizeof *l->picked);
        l->index = calloc((size_t)of_src + 1, sizeof *l->index);
        for (int64_t i = 0; i < of_x; i++)
                l->sum[i] = l->x[i] = (double)(i * 5 % 23);
        for (int64_t i = 0; i < of_src; i++) {
                l->index[i] = (i * i + 3 * i / 7) % l->size;
                l->src[i] = (double)(i % 2);
        }
        for (int64_t o = 0; o < l->outer; o++)
                for (int64_t k = 0; k < l->n; k++)
                        for (int64_t i = 0; i < l->inner; i++) {
                                int64_t p = (o * l->n + k) * l->inner + i;
                                int64_t q = (o * l->size + l->index[p]) * l->inner + i;
                                l->picked[p] = l->x[q];
                                l->sum[q] += l->src[p];
                        }
}

static void loops_finish(loops *l)
{
        free(l->x);
        free(l->src);
        free(l->picked);
        free(l->sum);
        free(l->index);
}

static void check_loops(lg_ctx *c, const loops *l, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(c);
        int64_t of_x = l->outer * l->size * l->inner, of_src = l->outer * l->n * l->inner;
        lg_shape at = LG_SHAPE(l->outer, l->size, l->inner), by = LG_SHAPE(l->outer, l->n, l->inner);
        lg_tensor *x = lg_cast(lg_from(c, l->x, at, .dtype = LG_F64), dtype);
        lg_tensor *src = lg_cast(lg_from(c, l->src, by, .dtype = LG_F64), dtype);
        lg_tensor *index = lg_from(c, l->index, by, .dtype = LG_I64);
        lg_tensor *y = lg_gather(x, 1, index);
        assert_values(y, l->picked, of_src, 0);
        assert_int_equal(lg_dtype_of(y), dtype);
        y = lg_scatter_add(x, 1, index, src);
        double *rounded = calloc((size_t)of_x, sizeof *rounded); /* the sums are exact in f32, and rounded once */
        read_all(lg_cast(lg_from(c, l->sum, at, .dtype = LG_F64), dtype), rounded, of_x);
        assert_values(y, rounded, of_x, 0);
        free(rounded);
        assert_int_equal(lg_dtype_of(y), dtype);
        assert_values(x, l->x, of_x, 0); /* which is as it was */
        lg_scope_end(c, scope);
}

TEST_CASE(every_dtype)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                loops l = {.outer = 2, .size = 5, .n = 7, .inner = 3};
                loops_init(&l);
                check_loops(c, &l, dtypes[d]);
                loops_finish(&l);
        }
        lg_tensor *b = lg_gt_scalar(lg_arange(c, 0, 4, 1), 1);
        assert_list(lg_gather(b, 0, LIST64(3, 0, 2)), 0, 1, 0, 1);
        assert_list(lg_roll(b, 1, 0), 0, 1, 0, 0, 1);
        assert_list(lg_pad(b, LG_INTS(1, 1), .value = 1), 0, 1, 0, 0, 1, 1, 1);
        assert_int_equal(lg_dtype_of(lg_masked_fill(lg_arange(c, 0, 4, 1), b, 9)), LG_I64);
        assert_list(lg_masked_fill(lg_arange(c, 0, 4, 1), b, 9), 0, 0, 1, 9, 9);
        assert_int_equal(lg_dtype_of(lg_masked_fill(lg_ones(c, LG_SHAPE(4), .dtype = LG_F16), b, 9)), LG_F16);
        assert_list(lg_tril(lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_BOOL)), 0, 1, 0, 1, 1);
        assert_int_equal(lg_dtype_of(lg_triu(lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_U8))), LG_U8);
        lg_close(c);
}

/* Small sums and repeated indices in f16 and bf16 add up in f32: 300 ones on 2048 would be lost one by one. */
TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        lg_tensor *zeros = lg_zeros(c, LG_SHAPE(300), .dtype = LG_I64);
        for (int d = 0; d < 2; d++) {
                lg_dtype dtype = d ? LG_BF16 : LG_F16;
                lg_tensor *x = lg_full(c, 2048, LG_SHAPE(1), .dtype = dtype);
                lg_tensor *y = lg_index_add(x, 0, zeros, lg_ones(c, LG_SHAPE(300), .dtype = dtype));
                assert_near(lg_item(y), 2348, d ? 4 : 1);
        }
        const double limits[] = {2e-3, 1.6e-2};
        lg_tensor *w = lg_normal(c, 0, 1, LG_SHAPE(9, 8), .dtype = LG_F64), *i = I64(9, 5, 30);
        lg_tensor *src = lg_normal(c, 0, 1, LG_SHAPE(150, 8), .dtype = LG_F64), *flat = lg_reshape(i, LG_SHAPE(150));
        double sum[72], rows_of[1200];
        read_all(lg_index_add(w, 0, flat, src), sum, 72);
        read_all(lg_embedding(w, i), rows_of, 1200);
        for (int d = 0; d < 2; d++) {
                lg_dtype dtype = d ? LG_BF16 : LG_F16;
                lg_tensor *narrow = lg_cast(w, dtype);
                assert_values(lg_index_add(narrow, 0, flat, lg_cast(src, dtype)), sum, 72, limits[d]);
                assert_values(lg_embedding(narrow, i), rows_of, 1200, limits[d]);
        }
        assert_ok(c);
        lg_close(c);
}

/* Lines along the innermost, the outermost and a middle dimension, few and many. */
TEST_CASE(big_sizes)
{
        lg_ctx *c = open_ctx();
        loops shapes[] = {
                {.outer = 1, .size = 50, .n = 90000, .inner = 1}, {.outer = 1, .size = 40, .n = 900, .inner = 70},
                {.outer = 700, .size = 30, .n = 60, .inner = 1},  {.outer = 1, .size = 3, .n = 2, .inner = 50000},
                {.outer = 3, .size = 40, .n = 90, .inner = 200},  {.outer = 3, .size = 9, .n = 11000, .inner = 2}};
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                loops_init(&shapes[i]);
                for (int threads = 1; threads <= 3; threads += 2) {
                        lg_set_threads(c, threads);
                        check_loops(c, &shapes[i], LG_F32);
                        check_loops(c, &shapes[i], LG_BF16);
                }
                loops_finish(&shapes[i]);
        }
        assert_ok(c);
        lg_close(c);
}

/* What scatter_add along dimension 0 gives: added to x one by one, in the order of the indices. */
static void add_in_order(lg_tensor *x, lg_tensor *index, lg_tensor *src, double *sums)
{
        const int64_t count = lg_numel(src), columns = lg_size_of(src, 1);
        double *at = malloc((size_t)count * sizeof *at), *values = malloc((size_t)count * sizeof *values);
        read_all(index, at, count);
        read_all(src, values, count);
        read_all(x, sums, lg_numel(x));
        for (int64_t i = 0; i < count; i++) {
                double *sum = &sums[(int64_t)at[i] * columns + i % columns];
                *sum = (float)*sum + (float)values[i];
        }
        free(at);
        free(values);
}

/* The same bits on one thread and on several, where the order of a sum shows: that of the indices. */
TEST_CASE(threads_change_nothing)
{
        lg_ctx *c = open_ctx();
        enum { N = 6000, D = 33, SIZE = 17 };
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(SIZE, D)), *src = lg_uniform(c, -1, 1, LG_SHAPE(N, D));
        lg_tensor *index = I64(SIZE, N), *wide = I64(SIZE, N, D);
        double ordered[SIZE * D], one[SIZE * D], many[SIZE * D];
        for (int k = 0; k < 2; k++) {
                add_in_order(x, k ? lg_expand(lg_unsqueeze(index, 1), LG_SHAPE(N, D)) : wide, src, ordered);
                lg_set_threads(c, 1);
                read_all(k ? lg_index_add(x, 0, index, src) : lg_scatter_add(x, 0, wide, src), one, SIZE * D);
                assert_memory_equal(ordered, one, sizeof one);
                for (int threads = 2; threads <= 5; threads++) {
                        lg_set_threads(c, threads);
                        read_all(k ? lg_index_add(x, 0, index, src) : lg_scatter_add(x, 0, wide, src), many, SIZE * D);
                        assert_memory_equal(one, many, sizeof one);
                }
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- layouts and edges ---- */

TEST_CASE(strided_inputs)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(3, 4));
        lg_tensor *turned = lg_transpose(x, 0, 1), *every = lg_slice(I64(4, 6), 0, 0, LG_MAX, .step = 2); /* 3 1 3 */
        assert_list(lg_index_select(turned, 0, every), 0, 3, 7, 11, 1, 5, 9, 3, 7, 11);
        assert_list(lg_index_select(turned, 1, lg_flip(LIST64(0, 2), LG_DIMS(0))), 0, 8, 0, 9, 1, 10, 2, 11, 3);
        lg_tensor *i = lg_expand(LIST64(1, 2), LG_SHAPE(3, 2));
        assert_list(lg_gather(x, 1, i), 0, 1, 2, 5, 6, 9, 10);
        assert_list(lg_gather(lg_expand(LIST64(4, 5, 6), LG_SHAPE(2, 3)), 1, lg_transpose(lg_slice(i, 0, 0, 2), 0, 1)),
                    0, 5, 5, 6, 6);
        lg_tensor *ones = lg_expand(lg_scalar(c, 1, .dtype = LG_I64), LG_SHAPE(3, 3));
        assert_list(lg_index_add(turned, 0, every, ones), 0, 0, 4, 8, 2, 6, 10, 2, 6, 10, 5, 9, 13);
        assert_list(lg_scatter_add(x, -1, i, turned), 0, 0, 1, 6, 3, 4, 6, 11, 7, 8, 11, 16, 11);
        assert_list(
                lg_embedding(lg_transpose(x, 0, 1), lg_transpose(lg_reshape(LIST64(0, 1, 3, 2), LG_SHAPE(2, 2)), 0, 1)),
                0, 0, 4, 8, 3, 7, 11, 1, 5, 9, 2, 6, 10);
        assert_list(lg_pad(turned, LG_INTS(-2, 1, 0, -2), .value = 7), 0, 8, 7, 9, 7);
        assert_list(lg_roll(turned, 1, 0), 0, 3, 7, 11, 0, 4, 8, 1, 5, 9, 2, 6, 10);
        assert_list(lg_tril(lg_slice(turned, 0, 0, 3)), 0, 0, 0, 0, 1, 5, 0, 2, 6, 10);
        assert_list(lg_repeat(turned, LG_SHAPE(1, 2)), 0, 0, 4, 8, 0, 4, 8, 1, 5, 9, 1, 5, 9, 2, 6, 10, 2, 6, 10, 3, 7,
                    11, 3, 7, 11);
        assert_list(lg_stack(LG_LIST(lg_select(x, 1, 0), lg_select(x, 1, 3)), 0), 0, 0, 4, 8, 3, 7, 11);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty_and_scalar)
{
        lg_ctx *c = open_ctx();
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0), .dtype = LG_I64), *m = lg_ones(c, LG_SHAPE(3, 2));
        lg_tensor *hollow = lg_zeros(c, LG_SHAPE(0, 2)), *zero = lg_zeros(c, LG_SHAPE_0D, .dtype = LG_I64);
        assert_shape(lg_index_select(m, 0, none), LG_SHAPE(0, 2));
        assert_shape(lg_index_select(hollow, 0, none), LG_SHAPE(0, 2));
        assert_list(lg_index_add(m, 0, none, hollow), 0, 1, 1, 1, 1, 1, 1);
        assert_shape(lg_gather(m, 1, lg_zeros(c, LG_SHAPE(3, 0), .dtype = LG_I64)), LG_SHAPE(3, 0));
        assert_list(lg_gather(lg_scalar(c, 5), 0, zero), 0, 5);
        assert_list(lg_scatter_add(lg_scalar(c, 5), -1, zero, lg_scalar(c, 2)), 0, 7);
        assert_shape(lg_embedding(m, none), LG_SHAPE(0, 2));
        assert_shape(lg_embedding(m, zero), LG_SHAPE(2));
        assert_shape(lg_one_hot(none, 4), LG_SHAPE(0, 4));
        assert_list(lg_one_hot(zero, 2), 0, 1, 0);
        assert_shape(lg_tril(lg_zeros(c, LG_SHAPE(0, 3))), LG_SHAPE(0, 3));
        assert_list(lg_triu(m, .diagonal = INT64_MIN), 0, 1, 1, 1, 1, 1, 1);
        assert_list(lg_tril(m, .diagonal = INT64_MIN), 0, 0, 0, 0, 0, 0, 0);
        assert_shape(lg_flip(hollow, LG_DIMS(0, 1)), LG_SHAPE(0, 2));
        assert_list(lg_flip(lg_scalar(c, 3), LG_ALL_DIMS), 0, 3);
        assert_shape(lg_roll(hollow, 3, 0), LG_SHAPE(0, 2));
        assert_list(lg_roll(lg_arange(c, 0, 3, 1), INT64_MIN, 0), 0, 2, 0, 1); /* -2^63 mod 3 is 1 */
        assert_list(lg_pad(hollow, LG_INTS(0, 0, 0, 1), .value = 2), 0, 2, 2);
        assert_shape(lg_pad(m, LG_INTS(-1, -1)), LG_SHAPE(3, 0));
        assert_list(lg_pad(lg_scalar(c, 3), LG_INTS_OF(0, NULL)), 0, 3);
        assert_shape(lg_repeat(m, LG_SHAPE(2, 0, 1)), LG_SHAPE(2, 0, 2));
        assert_shape(lg_repeat(hollow, LG_SHAPE(2, 2)), LG_SHAPE(0, 4));
        assert_list(lg_repeat(lg_scalar(c, 3), LG_SHAPE(2)), 0, 3, 3);
        assert_shape(lg_stack(LG_LIST(hollow, hollow), -1), LG_SHAPE(0, 2, 2));
        assert_list(lg_masked_fill(lg_scalar(c, 3), lg_ones(c, LG_SHAPE(2), .dtype = LG_BOOL), 1), 0, 1, 1);
        assert_ok(c);
        lg_close(c);
}

/* What is masked or cut away may be NaN and leaves no trace in values or gradients. */
TEST_CASE(nan_is_masked)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, NAN, 3, 4}), LG_SHAPE(2, 2), .requires_grad = true);
        lg_tensor *y = lg_tril(x);
        assert_list(y, 0, 1, 0, 3, 4);
        lg_backward(lg_sum(lg_mul(y, lg_masked_fill(x, lg_ne(x, x), 5))));
        assert_list(lg_grad_of(x), 0, 2, 0, 6, 8);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(flip_is_a_view)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(2, 3)), *f = lg_flip(x, LG_ALL_DIMS);
        assert_int_equal(lg_stride_of(f, 0), -3);
        assert_int_equal(lg_stride_of(f, 1), -1);
        assert_false(lg_is_contiguous(f));
        assert_list(f, 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_contiguous(f), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_reshape(f, LG_SHAPE(3, 2)), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_flatten(lg_flip(x, LG_DIMS(1)), 0, 1), 0, 2, 1, 0, 5, 4, 3);
        assert_list(lg_slice(f, 1, 1, LG_MAX), 0, 4, 3, 1, 0);
        assert_list(lg_sum(f, .dims = LG_DIMS(0)), 0, 7, 5, 3);
        assert_list(lg_cumsum(f, 1), 0, 5, 9, 12, 2, 3, 3);
        assert_list(lg_amax(f, .dims = LG_DIMS(1)), 0, 5, 2);
        assert_list(lg_matmul(f, lg_transpose(f, 0, 1)), 0, 50, 14, 14, 5);
        assert_list(lg_add(f, x), 0, 5, 5, 5, 5, 5, 5);
        assert_list(lg_cast(f, LG_I32), 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_cat(LG_LIST(f, f), 0), 0, 5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 0);
        assert_list(lg_softmax(lg_mul_scalar(lg_flip(lg_zeros(c, LG_SHAPE(2)), LG_DIMS(0)), 2), 0), 0, 0.5, 0.5);
        assert_true(lg_write(f, (float[]){9, 8, 7, 6, 5, 4}, LG_F32, 6 * sizeof(float)));
        assert_list(x, 0, 4, 5, 6, 7, 8, 9);
        assert_true(lg_add_(f, lg_ones(c, LG_SHAPE(3))));
        assert_list(x, 0, 5, 6, 7, 8, 9, 10);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(copies_and_views)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5)), *p[5] = {NULL};
        lg_fill_(lg_repeat(x, LG_SHAPE(1)), 1);
        lg_fill_(lg_repeat(lg_reshape(x, LG_SHAPE(5, 1)), LG_SHAPE(1, 1)), 1);
        lg_fill_(lg_roll(x, 0, 0), 1);
        lg_fill_(lg_pad(x, LG_INTS(0, 0)), 1);
        lg_fill_(lg_stack(LG_LIST(x), 0), 1);
        assert_list(x, 0, 0, 0, 0, 0, 0);
        assert_int_equal(lg_split(x, 2, 0, p, 3), 3);
        assert_int_equal(lg_numel(p[2]), 1);
        lg_fill_(p[1], 3);
        assert_list(x, 0, 0, 0, 3, 3, 0);
        assert_int_equal(lg_chunk(x, 4, -1, p, 4), 3); /* ceil(5 / 4) = 2 each: there are three of them */
        assert_int_equal(lg_chunk(x, 9, 0, p, 9), 5);
        assert_int_equal(lg_split(x, 100, 0, p, 1), 1);
        assert_int_equal(lg_split(lg_zeros(c, LG_SHAPE(0)), 0, 0, p, 1), 1);
        assert_int_equal(lg_chunk(lg_zeros(c, LG_SHAPE(2, 0)), 3, 1, p, 3), 3);
        assert_int_equal(lg_numel(p[2]), 0);
        lg_tensor *steps = lg_from(c, ((float[]){1, 2, 3, 4, 5, 6}), LG_SHAPE(2, 3));
        assert_int_equal(lg_unbind(steps, -1, p, 5), 3);
        assert_shape(p[2], LG_SHAPE(2));
        assert_list(p[2], 0, 3, 6);
        assert_int_equal(lg_unbind(lg_zeros(c, LG_SHAPE(2, 0)), 1, NULL, 0), 0);
        assert_ok(c);
        lg_scope s = lg_scope_begin(c);
        int64_t before = lg_live_tensors(c);
        lg_tensor *many[30];
        for (int i = 0; i < 30; i++)
                many[i] = x;
        assert_shape(lg_stack((lg_list){30, many}, 1), LG_SHAPE(5, 30));
        assert_int_equal(lg_live_tensors(c), before + 1); /* the views in between are gone */
        lg_scope_end(c, s);
        lg_close(c);
}

/* src larger than the index: what the index does not reach has no part, nor a gradient. */
TEST_CASE(index_smaller_than_src)
{
        lg_ctx *c = open_ctx();
        lg_tensor *src = lg_from(c, ((float[]){1, 2, 3, 4, 5, 6}), LG_SHAPE(2, 3), .requires_grad = true);
        lg_tensor *y = lg_scatter_add(lg_zeros(c, LG_SHAPE(2, 4)), 1, lg_reshape(LIST64(3, 3), LG_SHAPE(1, 2)), src);
        assert_list(y, 0, 0, 0, 0, 3, 0, 0, 0, 0);
        lg_backward(lg_sum(lg_mul_scalar(y, 7)));
        assert_list(lg_grad_of(src), 0, 7, 7, 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

/* ---- what is refused ---- */

TEST_CASE(indices_out_of_range)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2), .requires_grad = true), *bad = LIST64(1, 3), *minus = LIST64(0, -1);
        lg_tensor *src = lg_ones(c, LG_SHAPE(2, 2));
#define REFUSED(call, text)                                                                                            \
        do {                                                                                                           \
                double out_[64];                                                                                       \
                lg_tensor *y_ = call;                                                                                  \
                assert_int_equal(!y_, reports_at_once(c));                                                             \
                assert_false(lg_read(y_, out_, LG_F64, (size_t)lg_numel(y_) * sizeof *out_));                          \
                assert_error(c, LG_ERR_ARGUMENT, text);                                                                \
        } while (0)
        REFUSED(lg_index_select(x, 0, bad), "index_select: index holds 3, but there are 3 places");
        REFUSED(lg_index_select(x, 0, minus), "index_select: index holds -1, but there are 3 places");
        REFUSED(lg_gather(x, 1, lg_reshape(LIST64(0, 1, 1, 5000000000), LG_SHAPE(2, 2))),
                "gather: index holds 5000000000, but there are 2");
        REFUSED(lg_scatter_add(x, 0, lg_reshape(bad, LG_SHAPE(1, 2)), src),
                "scatter_add: index holds 3, but there are 3");
        REFUSED(lg_index_add(x, 0, minus, src), "index_add: index holds -1, but there are 3");
        REFUSED(lg_embedding(x, lg_reshape(bad, LG_SHAPE(2, 1))), "embedding: index holds 3, but there are 3");
        REFUSED(lg_one_hot(LIST64(0, 7, 9), 4), "but there are 4 places");
        REFUSED(lg_one_hot(LIST64(INT64_MIN), 4), "one_hot: index holds -9223372036854775808");
        REFUSED(lg_index_select(lg_zeros(c, LG_SHAPE(2, 0)), 1, LIST64(0)),
                "index_select: index holds 0, but there are 0");
        /* the last one of many, and one of two */
        int64_t *v = calloc(100000, sizeof *v);
        v[99999] = 77;
        lg_tensor *many = lg_from(c, v, LG_SHAPE(100000), .dtype = LG_I64);
        drop(lg_index_select(lg_ones(c, LG_SHAPE(5)), 0, many));
        lg_synchronize(c);
        assert_error(c, LG_ERR_ARGUMENT, "index holds 77, but there are 5");
        v[50001] = -4;
        many = lg_from(c, v, LG_SHAPE(100000), .dtype = LG_I64);
        drop(lg_index_add(lg_ones(c, LG_SHAPE(5)), 0, many, lg_ones(c, LG_SHAPE(100000))));
        lg_synchronize(c);
        assert_non_null(lg_error(c));
        assert_error(c, LG_ERR_ARGUMENT,
                     strstr(lg_error(c), "-4") ? "index_add: index holds -4" : "index_add: index holds 77");
        free(v);
        assert_true(lg_synchronize(c));
        lg_close(c);
}

TEST_CASE(wrong_shapes_and_dtypes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2)), *one = LIST64(0), *two = lg_reshape(LIST64(0, 1), LG_SHAPE(2, 1));
        lg_tensor *wide = lg_zeros(c, LG_SHAPE(1, 3), .dtype = LG_I64), *p[2] = {x, x};
#define WRONG(call, code, text)                                                                                        \
        do {                                                                                                           \
                assert_false((call) != 0);                                                                             \
                assert_error(c, code, text);                                                                           \
        } while (0)
        WRONG(lg_gather(x, 2, two), LG_ERR_ARGUMENT, "gather: there is no dimension 2");
        WRONG(lg_gather(x, 0, x), LG_ERR_DTYPE, "gather: index is f32 (3, 2)");
        WRONG(lg_gather(x, 0, one), LG_ERR_SHAPE, "gather: index is i64 (1,)");
        WRONG(lg_gather(x, 0, wide), LG_ERR_SHAPE, "none larger but dimension 0");
        WRONG(lg_gather(x, 0, NULL), LG_ERR_ARGUMENT, "gather: index is NULL");
        WRONG(lg_gather(NULL, 0, two), LG_ERR_ARGUMENT, "gather: x is NULL");
        WRONG(lg_scatter_add(x, 0, wide, lg_ones(c, LG_SHAPE(1, 3))), LG_ERR_SHAPE, "scatter_add: index is");
        WRONG(lg_scatter_add(x, 1, wide, x), LG_ERR_SHAPE, "src is f32 (3, 2)");
        WRONG(lg_scatter_add(x, 0, two, lg_cast(x, LG_F64)), LG_ERR_DTYPE, "src is f64 (3, 2)");
        WRONG(lg_scatter_add(lg_cast(x, LG_BOOL), 0, two, lg_cast(x, LG_BOOL)), LG_ERR_DTYPE, "not bool");
        WRONG(lg_scatter_add(x, 0, x, x), LG_ERR_DTYPE, "scatter_add: index is f32");
        WRONG(lg_scatter_add(x, 3, two, x), LG_ERR_ARGUMENT, "scatter_add: there is no dimension 3");
        WRONG(lg_scatter_add(x, 0, two, NULL), LG_ERR_ARGUMENT, "scatter_add: src is NULL");
        WRONG(lg_index_select(x, 0, two), LG_ERR_SHAPE, "index_select: index is i64 (2, 1)");
        WRONG(lg_index_select(x, 0, lg_ones(c, LG_SHAPE(2))), LG_ERR_DTYPE, "index_select: index is f32");
        WRONG(lg_index_select(x, 2, one), LG_ERR_ARGUMENT, "index_select: there is no dimension 2");
        WRONG(lg_index_select(lg_scalar(c, 1), 0, one), LG_ERR_ARGUMENT, "index_select: there is no dimension 0");
        WRONG(lg_index_select(x, 0, NULL), LG_ERR_ARGUMENT, "index_select: index is NULL");
        WRONG(lg_index_add(x, 0, one, x), LG_ERR_SHAPE, "index_add: src is f32 (3, 2)");
        WRONG(lg_index_add(x, 0, one, lg_ones(c, LG_SHAPE(1, 2), .dtype = LG_F64)), LG_ERR_DTYPE, "src is f64");
        WRONG(lg_index_add(x, 0, one, NULL), LG_ERR_ARGUMENT, "index_add: src is NULL");
        WRONG(lg_index_add(x, 9, one, x), LG_ERR_ARGUMENT, "index_add: there is no dimension 9");
        WRONG(lg_embedding(x, x), LG_ERR_DTYPE, "embedding: index is f32");
        WRONG(lg_embedding(one, one), LG_ERR_SHAPE, "embedding: weight is i64 (1,)");
        WRONG(lg_embedding(x, NULL), LG_ERR_ARGUMENT, "embedding: index is NULL");
        WRONG(lg_embedding(NULL, one), LG_ERR_ARGUMENT, "embedding: weight is NULL");
        WRONG(lg_embedding(x, one, .padding_idx = 3), LG_ERR_ARGUMENT, "padding_idx is 3, but weight has 3 rows");
        WRONG(lg_embedding(x, one, .padding_idx = -4), LG_ERR_ARGUMENT, "padding_idx is -4");
        lg_tensor *deep = lg_zeros(c, LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), .dtype = LG_I64);
        WRONG(lg_embedding(x, deep), LG_ERR_SHAPE, "embedding: index is i64 (1, 1, 1, 1, 1, 1, 1, 1)");
        WRONG(lg_one_hot(deep, 2), LG_ERR_SHAPE, "one_hot: index is");
        WRONG(lg_one_hot(x, 2), LG_ERR_DTYPE, "one_hot: index is f32");
        WRONG(lg_one_hot(one, 0), LG_ERR_ARGUMENT, "one_hot: 0 classes");
        WRONG(lg_masked_fill(x, x, 1), LG_ERR_DTYPE, "masked_fill: mask is f32 (3, 2)");
        WRONG(lg_masked_fill(x, NULL, 1), LG_ERR_ARGUMENT, "masked_fill: mask is NULL");
        WRONG(lg_masked_fill(x, lg_ones(c, LG_SHAPE(4), .dtype = LG_BOOL), 1), LG_ERR_SHAPE, "masked_fill: the shapes");
        WRONG(lg_masked_select(x, x), LG_ERR_DTYPE, "masked_select: mask is f32 (3, 2)");
        WRONG(lg_masked_select(x, NULL), LG_ERR_ARGUMENT, "masked_select: mask is NULL");
        WRONG(lg_masked_select(x, lg_ones(c, LG_SHAPE(4), .dtype = LG_BOOL)), LG_ERR_SHAPE,
              "masked_select: the shapes");
        WRONG(lg_tril(one), LG_ERR_SHAPE, "tril: x is i64 (1,)");
        WRONG(lg_triu(lg_scalar(c, 1)), LG_ERR_SHAPE, "triu: x is f32 ()");
        WRONG(lg_flip(x, LG_DIMS(0, -2)), LG_ERR_ARGUMENT, "flip: dimension 0 is given twice");
        WRONG(lg_flip(x, LG_DIMS(2)), LG_ERR_ARGUMENT, "flip: there is no dimension 2");
        WRONG(lg_flip(x, (lg_dims){.count = 9}), LG_ERR_ARGUMENT, "flip: a set of 9");
        WRONG(lg_roll(x, 1, 2), LG_ERR_ARGUMENT, "roll: there is no dimension 2");
        WRONG(lg_pad(x, LG_INTS(1)), LG_ERR_ARGUMENT, "pad: 1 pads for x, f32 (3, 2)");
        WRONG(lg_pad(x, LG_INTS(1, 1, 1, 1, 1, 1)), LG_ERR_ARGUMENT, "pad: 6 pads");
        WRONG(lg_pad(x, LG_INTS(-2, -1)), LG_ERR_SHAPE, "dimension 1 cannot be padded by -2 and -1");
        WRONG(lg_pad(x, LG_INTS(INT64_MAX, 1)), LG_ERR_SHAPE, "pad: x is f32 (3, 2)");
        WRONG(lg_pad(x, LG_INTS(INT64_MIN, 1)), LG_ERR_ARGUMENT, "pad: pad 0 is out of range");
        WRONG(lg_repeat(x, LG_SHAPE(2)), LG_ERR_SHAPE, "repeat: x is f32 (3, 2)");
        WRONG(lg_repeat(x, ((lg_shape){.ndim = INT_MIN})), LG_ERR_SHAPE, "repeat: x is f32 (3, 2)");
        WRONG(lg_repeat(x, LG_SHAPE(2, -1)), LG_ERR_SHAPE, "(2, -1) times");
        WRONG(lg_repeat(x, LG_SHAPE(INT64_MAX, 1)), LG_ERR_SHAPE, "repeat");
        WRONG(lg_stack(LG_LIST(x, lg_ones(c, LG_SHAPE(2, 3))), 0), LG_ERR_SHAPE, "stack: tensor 1 is f32 (2, 3)");
        WRONG(lg_stack(LG_LIST(x, NULL), 0), LG_ERR_ARGUMENT, "stack: tensor 1 is NULL");
        WRONG(lg_stack(LG_LIST(x, x), 3), LG_ERR_ARGUMENT, "stack: there is no dimension 3");
        WRONG(lg_stack(LG_LIST(deep, deep), 0), LG_ERR_SHAPE, "8 dimensions already");
        WRONG(lg_split(x, 1, 0, p, 2), LG_ERR_ARGUMENT, "split: x, f32 (3, 2) on");
        WRONG(lg_split(x, 1, 0, NULL, 9), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 0");
        WRONG(lg_split(x, 0, 0, p, 2), LG_ERR_ARGUMENT, "split: pieces of size 0");
        WRONG(lg_split(x, 1, 2, p, 2), LG_ERR_ARGUMENT, "split: there is no dimension 2");
        WRONG(lg_unbind(x, 0, p, 2), LG_ERR_ARGUMENT, "unbind: x, f32 (3, 2) on");
        WRONG(lg_unbind(x, 0, NULL, 9), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 0");
        WRONG(lg_unbind(x, 2, p, 2), LG_ERR_ARGUMENT, "unbind: there is no dimension 2");
        WRONG(lg_unbind(lg_ones(c, LG_SHAPE_0D), 0, p, 2), LG_ERR_ARGUMENT, "unbind: there is no dimension 0");
        WRONG(lg_chunk(x, 0, 0, p, 2), LG_ERR_ARGUMENT, "chunk: 0 chunks");
        WRONG(lg_chunk(x, 3, 0, p, 2), LG_ERR_ARGUMENT, "gives 3 pieces, but there is room for 2");
        WRONG(lg_chunk(x, 2, -3, p, 2), LG_ERR_ARGUMENT, "chunk: there is no dimension -3");
        assert_ptr_equal(p[0], x);
        assert_ptr_equal(p[1], x);
        assert_int_equal(lg_split(NULL, 1, 0, p, 2), 0);
        assert_null(lg_gather(NULL, 0, NULL));
        assert_null(lg_nonzero(NULL));
        assert_null(lg_masked_select(NULL, NULL));
        assert_null(lg_stack((lg_list){0, NULL}, 0));
        assert_ok(c);
        lg_close(c);
}
