/* test_sort.c - sort, topk, max and min along a dimension, against the C library's sort and PyTorch's numbers. */
#include "golden.h"

static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

typedef struct item {
        double value;
        int64_t at;
        bool descending;
} item;

/* NaN above all, equals in the order of their places. */
static int compare(const void *p, const void *q)
{
        const item *a = p, *b = q;
        bool less = a->value < b->value || (isnan(b->value) && !isnan(a->value));
        bool more = a->value > b->value || (isnan(a->value) && !isnan(b->value));
        int way = a->descending ? -1 : 1;
        return less ? -way : more ? way : a->at < b->at ? -1 : 1;
}

/* values and indices are what the first k of x's elements in order are; x is (outer, n, inner). */
static void check_sorted(lg_tensor *x, int dim, int64_t k, bool descending, lg_tensor *values, lg_tensor *indices)
{
        lg_shape s = lg_shape_of(x);
        int64_t outer = 1, inner = 1, n = s.ndim ? s.size[dim] : 1, count = lg_numel(x);
        for (int i = 0; i < s.ndim; i++) {
                outer *= i < dim ? s.size[i] : 1;
                inner *= i > dim ? s.size[i] : 1;
        }
        double *from = calloc((size_t)count + 1, sizeof *from);
        double *want = calloc((size_t)(outer * k * inner) + 1, sizeof *want);
        double *places = calloc((size_t)(outer * k * inner) + 1, sizeof *places);
        item *line = calloc((size_t)n + 1, sizeof *line);
        read_all(x, from, count);
        for (int64_t l = 0; l < outer * inner; l++) {
                int64_t o = l / inner, i = l % inner;
                for (int64_t j = 0; j < n; j++)
                        line[j] = (item){from[(o * n + j) * inner + i], j, descending};
                qsort(line, (size_t)n, sizeof *line, compare);
                for (int64_t j = 0; j < k; j++) {
                        want[(o * k + j) * inner + i] = line[j].value;
                        places[(o * k + j) * inner + i] = (double)line[j].at;
                }
        }
        assert_int_equal(lg_dtype_of(values), lg_dtype_of(x));
        assert_int_equal(lg_dtype_of(indices), LG_I64);
        assert_int_equal(lg_ndim_of(values), s.ndim);
        assert_values(values, want, outer * k * inner, 0);
        assert_values(indices, places, outer * k * inner, 0);
        free(from);
        free(want);
        free(places);
        free(line);
}

/* Whole numbers in [-20, 20], so that there are equals; unsigned and bool fold them. */
static lg_tensor *numbers(lg_ctx *c, lg_dtype dtype, lg_shape shape)
{
        lg_tensor *x = lg_uniform(c, -20.9, 20.9, shape);
        x = lg_cast(lg_cast(x, LG_I32), LG_F32);
        if (dtype == LG_BOOL)
                x = lg_relu(x);
        return lg_cast(dtype == LG_U8 ? lg_abs(x) : x, dtype);
}

TEST_CASE(every_dtype_and_layout)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < DTYPES; d++)
                for (int dim = 0; dim < 3; dim++)
                        for (int layout = 0; layout < 3; layout++)
                                for (int way = 0; way < 2; way++) {
                                        lg_scope s = lg_scope_begin(c);
                                        lg_tensor *x = numbers(c, dtypes[d], LG_SHAPE(5, 37, 4)), *i;
                                        if (layout == 1)
                                                x = lg_permute(x, LG_DIMS(2, 0, 1));
                                        if (layout == 2)
                                                x = lg_slice(x, 1, 1, 35, .step = 3);
                                        int64_t n = lg_size_of(x, dim);
                                        lg_tensor *y = lg_sort(x, dim - 3, .descending = way, .indices = &i);
                                        assert_ok(c);
                                        check_sorted(x, dim, n, way, y, i);
                                        check_sorted(x, dim, n, way, y, lg_argsort(x, dim, .descending = way));
                                        for (int64_t k = 0; k <= n; k += k < 3 ? 1 : 7) {
                                                y = lg_topk(x, k, dim, .smallest = !way, .indices = &i);
                                                assert_ok(c);
                                                check_sorted(x, dim, k, way, y, i);
                                        }
                                        lg_scope_end(c, s);
                                }
        lg_close(c);
}

/* Long lines, long enough for several levels of merging; few and many of them; any number of threads. */
TEST_CASE(long_lines)
{
        lg_ctx *c = open_ctx();
        const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 1025, 40001};
        for (int threads = 1; threads <= 4; threads += 3) {
                lg_set_threads(c, threads);
                for (int k = 0; k < 11; k++)
                        for (int64_t lines = 1; lines <= 9; lines += 4) {
                                lg_scope s = lg_scope_begin(c);
                                lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(lines, sizes[k])), *i, *y;
                                y = lg_sort(x, 1, .indices = &i);
                                check_sorted(x, 1, sizes[k], false, y, i);
                                int64_t few = sizes[k] < 60 ? sizes[k] : 60;
                                y = lg_topk(x, few, 1, .indices = &i);
                                check_sorted(x, 1, few, true, y, i);
                                assert_ok(c);
                                lg_scope_end(c, s);
                        }
        }
        lg_tensor *x = lg_cast(lg_uniform(c, 0, 9, LG_SHAPE(7000, 3, 5)), LG_U8), *i, *y; /* short ones side by side */
        y = lg_sort(x, 0, .descending = true, .indices = &i);
        check_sorted(x, 0, 7000, true, y, i);
        y = lg_sort(x, 1, .indices = &i);
        check_sorted(x, 1, 3, false, y, i);
        x = lg_normal(c, 0, 1, LG_SHAPE(2, 700), .dtype = LG_F64);
        y = lg_sort(x, 1, .indices = &i);
        check_sorted(x, 1, 700, false, y, i);
        /* in order already, and the other way round */
        lg_tensor *up = lg_arange(c, 0, 5000, 1), *down = lg_rsub_scalar(up, 4999);
        assert_true(lg_item_i64(lg_sum(lg_abs(lg_sub(lg_sort(up, 0), up)))) == 0);
        assert_true(lg_item_i64(lg_sum(lg_abs(lg_sub(lg_sort(down, 0), up)))) == 0);
        assert_true(lg_item_i64(lg_sum(lg_abs(lg_sub(lg_argsort(down, 0), down)))) == 0);
        lg_close(c);
}

TEST_CASE(special_values)
{
        lg_ctx *c = open_ctx();
        const float v[] = {1, NAN, -INFINITY, 0, INFINITY, -0.f, -NAN, -1, 0};
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_cast(lg_from(c, v, LG_SHAPE(9)), dtypes[d]), *i, *y = lg_sort(x, 0, .indices = &i);
                assert_list(y, 0, -INFINITY, -1, 0, -0., 0, 1, INFINITY, NAN, NAN);
                assert_list(i, 0, 2, 7, 3, 5, 8, 0, 4, 1, 6);
                assert_list(lg_argsort(x, 0, .descending = true), 0, 1, 6, 4, 0, 3, 5, 8, 7, 2);
                double bits[9];
                read_all(y, bits, 9);
                assert_true(signbit(bits[3]) &&
                            !signbit(bits[2])); /* a sort moves zeros, it does not make them alike */
                assert_list(lg_topk(x, 2, 0, .indices = &i), 0, NAN, NAN);
                assert_list(i, 0, 1, 6);
                assert_list(lg_topk(x, 4, -1, .smallest = true, .indices = &i), 0, -INFINITY, -1, 0, 0);
                assert_list(i, 0, 2, 7, 3, 5);
                assert_list(lg_topk(x, 1, -1, .smallest = true), 0, -INFINITY);
                assert_true(isnan(lg_item(lg_max(x, 0, .indices = &i))));
                assert_int_equal(lg_item_i64(i), 1);
                assert_true(isnan(lg_item(lg_min(x, 0, .indices = &i))));
                assert_int_equal(lg_item_i64(i), 1);
        }
        const int64_t far[] = {INT64_MAX, INT64_MIN, 9007199254740993, 9007199254740992, -1};
        lg_tensor *x = lg_from(c, far, LG_SHAPE(5), .dtype = LG_I64), *i;
        int64_t got[5];
        assert_true(lg_read(lg_sort(x, 0, .indices = &i), got, LG_I64, sizeof got));
        assert_memory_equal(got, ((int64_t[]){INT64_MIN, -1, 9007199254740992, 9007199254740993, INT64_MAX}),
                            sizeof got);
        assert_list(i, 0, 1, 4, 3, 2, 0);
        assert_list(lg_argsort(x, 0, .descending = true), 0, 0, 2, 3, 4, 1);
        lg_close(c);
}

TEST_CASE(greatest_and_smallest)
{
        lg_ctx *c = open_ctx();
        const float v[] = {1, 7, 7, 2, 3, 3, 0, 0};
        for (int d = 0; d < DTYPES - 1; d++) {
                lg_tensor *x = lg_cast(lg_from(c, v, LG_SHAPE(2, 4)), dtypes[d]), *i = NULL, *y;
                y = lg_max(x, 1, .indices = &i);
                assert_list(y, 0, 7, 3);
                assert_list(i, 0, 1, 0);
                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                assert_int_equal(lg_ndim_of(i), 1);
                assert_list(lg_min(x, -2, .keep_dim = true, .indices = &i), 0, 1, 3, 0, 0);
                assert_list(i, 0, 0, 1, 1, 1);
                assert_int_equal(lg_ndim_of(i), 2);
                assert_list(lg_max(lg_transpose(x, 0, 1), 0), 0, 7, 3);
                assert_list(lg_min(lg_slice(x, 1, 0, 4, .step = 2), 1), 0, 1, 0);
        }
        lg_tensor *b = lg_from(c, ((bool[]){0, 1, 1}), LG_SHAPE(3), .dtype = LG_BOOL), *i;
        assert_list(lg_max(b, 0, .indices = &i), 0, 1);
        assert_list(i, 0, 1);
        /* The gradient of equals goes to the first. */
        lg_tensor *x = lg_from(c, v, LG_SHAPE(2, 4), .requires_grad = true);
        lg_backward(lg_sum(lg_max(x, 1)));
        assert_list(lg_grad_of(x), 0, 0, 1, 0, 0, 1, 0, 0, 0);
        lg_tensor *again = lg_from(c, v, LG_SHAPE(2, 4), .requires_grad = true);
        lg_backward(lg_sum(lg_min(again, 1)));
        assert_list(lg_grad_of(again), 0, 1, 0, 0, 0, 0, 0, 1, 0);
        /* Many lines, in threads. */
        lg_tensor *many = lg_uniform(c, -1, 1, LG_SHAPE(50000, 3), .requires_grad = true), *top = lg_max(many, 1);
        assert_near(lg_item(lg_sum(top)), lg_item(lg_sum(lg_amax(many, .dims = LG_DIMS(1)))), 0);
        lg_backward(lg_sum(top));
        assert_near(lg_item(lg_sum(lg_grad_of(many))), 50000, 0);
        assert_near(lg_item(lg_sum(lg_mul(lg_grad_of(many), many))), lg_item(lg_sum(top)), 1e-2);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges_and_errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *zero = lg_scalar(c, 4), *i, *mark = zero;
        assert_list(lg_sort(zero, 0, .indices = &i), 0, 4);
        assert_list(i, 0, 0);
        assert_list(lg_topk(zero, 1, -1), 0, 4);
        assert_list(lg_max(zero, -1, .keep_dim = true, .indices = &i), 0, 4);
        assert_int_equal(lg_ndim_of(i), 0);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(2, 0)), *x = lg_ones(c, LG_SHAPE(2, 3));
        assert_int_equal(lg_numel(lg_sort(none, 1, .indices = &i)), 0);
        assert_int_equal(lg_size_of(i, 0), 2);
        assert_int_equal(lg_numel(lg_argsort(none, 0)), 0);
        assert_int_equal(lg_numel(lg_max(none, 0)), 0);
        lg_tensor *leaf = lg_ones(c, LG_SHAPE(2, 3), .requires_grad = true);
        lg_backward(lg_sum(lg_topk(leaf, 0, 1)));
        assert_list(lg_grad_of(leaf), 0, 0, 0, 0, 0, 0, 0);
        assert_ok(c);
        i = mark;
        assert_null(lg_max(none, 1, .indices = &i));
        assert_error(c, LG_ERR_SHAPE, "max: x is");
        assert_null(lg_min(none, 1, .indices = &i));
        assert_error(c, LG_ERR_SHAPE, "min: x is");
        assert_null(lg_max(x, 2, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "max: there is no dimension 2");
        assert_null(lg_sort(x, -3, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "sort: there is no dimension -3");
        assert_null(lg_argsort(x, 2));
        assert_error(c, LG_ERR_ARGUMENT, "argsort: there is no dimension 2");
        assert_null(lg_topk(x, 4, 1, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "topk: k is 4");
        assert_null(lg_topk(x, -1, 1, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "topk: k is -1");
        assert_null(lg_topk(zero, 0, 0, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "topk: k is 0");
        assert_null(lg_topk(x, 1, 5, .indices = &i));
        assert_error(c, LG_ERR_ARGUMENT, "topk: there is no dimension 5");
        assert_ptr_equal(i, mark);
        int64_t before = lg_live_tensors(c);
        drop(lg_sort(x, 0));
        drop(lg_argsort(x, 0));
        assert_int_equal(lg_live_tensors(c), before + 2);
        lg_close(c);
}

#define ROWS(ROW)                                                                                                      \
        ROW(max_1, lg_max(x, 1), 3, 4)                                                                                 \
        ROW(max_0_keep, lg_max(x, 0, .keep_dim = true), 2, 3, 4)                                                       \
        ROW(min_2, lg_min(x, 2), 2, 3, 4)                                                                              \
        ROW(sort_1, lg_sort(x, 1), 2, 3, 4)                                                                            \
        ROW(sort_0_descending, lg_sort(x, 0, .descending = true), 3, 4)                                                \
        ROW(topk_3_1, lg_topk(x, 3, 1), 2, 7)                                                                          \
        ROW(topk_2_0_smallest, lg_topk(x, 2, 0, .smallest = true), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "sort.txt", golden_input, ROWS);
