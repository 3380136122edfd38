/* test_gather.c - picking by index along a dimension, and adding where an index points. */
#include <limits.h>
#include "golden.h"

#define SRC golden_like(x, LG_SHAPE(2, 3, 4), 0.7)
#define TEN lg_reshape(lg_slice(lg_flatten(SRC), 0, 0, 10), LG_SHAPE(2, 5))
#define ROWS(ROW)                                                                                                      \
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
        ROW(index_add_src, lg_index_add(SRC, 1, LIST64(2, 0, 2), x), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

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
        lg_close(c);
}

/* Small sums and repeated indices in f16 and bf16 add up in f32: 300 ones on 2048 would be lost one by one. */
TEST_CASE(half_precision)
{
        lg_ctx *c = open_ctx();
        lg_tensor *zeros = lg_zeros(c, LG_SHAPE(300), .dtype = LG_I64);
        for (int d = 0; d < 2; d++) {
                lg_dtype dtype = d ? LG_BF16 : LG_F16;
                lg_tensor *x = lg_full(c, LG_SHAPE(1), 2048, .dtype = dtype);
                lg_tensor *y = lg_index_add(x, 0, zeros, lg_ones(c, LG_SHAPE(300), .dtype = dtype));
                assert_near(lg_item(y), 2348, d ? 4 : 1);
        }
        const double limits[] = {2e-3, 1.6e-2};
        lg_tensor *w = lg_normal(c, 0, 1, LG_SHAPE(9, 8), .dtype = LG_F64), *i = I64(9, 5, 30);
        lg_tensor *src = lg_normal(c, 0, 1, LG_SHAPE(150, 8), .dtype = LG_F64), *flat = lg_reshape(i, LG_SHAPE(150));
        double sum[72];
        read_all(lg_index_add(w, 0, flat, src), sum, 72);
        for (int d = 0; d < 2; d++) {
                lg_dtype dtype = d ? LG_BF16 : LG_F16;
                lg_tensor *narrow = lg_cast(w, dtype);
                assert_values(lg_index_add(narrow, 0, flat, lg_cast(src, dtype)), sum, 72, limits[d]);
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
        assert_ok(c);
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

TEST_CASE(indices_out_of_range)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2), .requires_grad = true), *bad = LIST64(1, 3), *minus = LIST64(0, -1);
        lg_tensor *src = lg_ones(c, LG_SHAPE(2, 2));
        assert_no_index(lg_index_select(x, 0, bad), "index_select: index holds 3, but there are 3 places");
        assert_no_index(lg_index_select(x, 0, minus), "index_select: index holds -1, but there are 3 places");
        assert_no_index(lg_gather(x, 1, lg_reshape(LIST64(0, 1, 1, 5000000000), LG_SHAPE(2, 2))),
                        "gather: index holds 5000000000, but there are 2");
        assert_no_index(lg_scatter_add(x, 0, lg_reshape(bad, LG_SHAPE(1, 2)), src),
                        "scatter_add: index holds 3, but there are 3");
        assert_no_index(lg_index_add(x, 0, minus, src), "index_add: index holds -1, but there are 3");
        assert_no_index(lg_index_select(lg_zeros(c, LG_SHAPE(2, 0)), 1, LIST64(0)),
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
        lg_tensor *wide = lg_zeros(c, LG_SHAPE(1, 3), .dtype = LG_I64);
        assert_fails(c, lg_gather(x, 2, two), LG_ERR_ARGUMENT, "gather: there is no dimension 2");
        assert_fails(c, lg_gather(x, 0, x), LG_ERR_DTYPE, "gather: index is f32 (3, 2)");
        assert_fails(c, lg_gather(x, 0, one), LG_ERR_SHAPE, "gather: index is i64 (1,)");
        assert_fails(c, lg_gather(x, 0, wide), LG_ERR_SHAPE, "none larger but dimension 0");
        assert_fails(c, lg_gather(x, 0, NULL), LG_ERR_ARGUMENT, "gather: index is NULL");
        assert_fails(c, lg_gather(NULL, 0, two), LG_ERR_ARGUMENT, "gather: x is NULL");
        assert_fails(c, lg_scatter_add(x, 0, wide, lg_ones(c, LG_SHAPE(1, 3))), LG_ERR_SHAPE, "scatter_add: index is");
        assert_fails(c, lg_scatter_add(x, 1, wide, x), LG_ERR_SHAPE, "src is f32 (3, 2)");
        assert_fails(c, lg_scatter_add(x, 0, two, lg_cast(x, LG_F64)), LG_ERR_DTYPE, "src is f64 (3, 2)");
        assert_fails(c, lg_scatter_add(lg_cast(x, LG_BOOL), 0, two, lg_cast(x, LG_BOOL)), LG_ERR_DTYPE, "not bool");
        assert_fails(c, lg_scatter_add(x, 0, x, x), LG_ERR_DTYPE, "scatter_add: index is f32");
        assert_fails(c, lg_scatter_add(x, 3, two, x), LG_ERR_ARGUMENT, "scatter_add: there is no dimension 3");
        assert_fails(c, lg_scatter_add(x, 0, two, NULL), LG_ERR_ARGUMENT, "scatter_add: src is NULL");
        assert_fails(c, lg_index_select(x, 0, two), LG_ERR_SHAPE, "index_select: index is i64 (2, 1)");
        assert_fails(c, lg_index_select(x, 0, lg_ones(c, LG_SHAPE(2))), LG_ERR_DTYPE, "index_select: index is f32");
        assert_fails(c, lg_index_select(x, 2, one), LG_ERR_ARGUMENT, "index_select: there is no dimension 2");
        assert_fails(c, lg_index_select(x, 0, NULL), LG_ERR_ARGUMENT, "index_select: index is NULL");
        assert_fails(c, lg_index_add(x, 0, one, x), LG_ERR_SHAPE, "index_add: src is f32 (3, 2)");
        assert_fails(c, lg_index_add(x, 0, one, lg_ones(c, LG_SHAPE(1, 2), .dtype = LG_F64)), LG_ERR_DTYPE,
                     "src is f64");
        assert_fails(c, lg_index_add(x, 0, one, NULL), LG_ERR_ARGUMENT, "index_add: src is NULL");
        assert_fails(c, lg_index_add(x, 9, one, x), LG_ERR_ARGUMENT, "index_add: there is no dimension 9");
        assert_null(lg_gather(NULL, 0, NULL));
        assert_ok(c);
        lg_close(c);
}
