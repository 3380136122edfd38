/* test_matmul.c - matmul and linear against three loops, for all ranks, layouts and dtypes. */
#include "golden.h"

static const lg_dtype floats[] = {LG_F64, LG_F32, LG_F16, LG_BF16};
static const double limits[] = {1e-13, 1e-5, 2e-3, 1.6e-2};

/* C[b] = A[b * sa] B[b * sb] of row-major doubles; sa, sb: 0 repeats the matrix. */
static void product(const double *a, const double *b, double *y, int batch, int sa, int sb, int m, int k, int n)
{
        for (int i = 0; i < batch; i++)
                for (int r = 0; r < m; r++)
                        for (int s = 0; s < n; s++) {
                                double sum = 0;
                                for (int t = 0; t < k; t++)
                                        sum += a[i * sa * m * k + r * k + t] * b[i * sb * k * n + t * n + s];
                                y[(i * m + r) * n + s] = sum;
                        }
}

#define ROOM 4000
static double a_values[ROOM], b_values[ROOM], ref[ROOM];

TEST_CASE(two_dimensions)
{
        lg_ctx *c = open_ctx();
        const int sizes[][3] = {{1, 1, 1}, {2, 3, 4}, {1, 7, 5}, {5, 7, 1}, {17, 33, 9}, {31, 40, 50}};
        for (int d = 0; d < 4; d++)
                for (int i = 0; i < 6; i++)
                        for (int layout = 0; layout < 4; layout++) {
                                int m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
                                lg_scope s = lg_scope_begin(c);
                                lg_tensor *a =
                                        layout & 1
                                                ? lg_transpose(lg_uniform(c, -1, 1, LG_SHAPE(k, m), .dtype = floats[d]),
                                                               0, 1)
                                                : lg_uniform(c, -1, 1, LG_SHAPE(m, k), .dtype = floats[d]);
                                lg_tensor *b =
                                        layout & 2
                                                ? lg_slice(lg_uniform(c, -1, 1, LG_SHAPE(k, 2 * n), .dtype = floats[d]),
                                                           1, 0, LG_MAX, .step = 2)
                                                : lg_uniform(c, -1, 1, LG_SHAPE(k, n), .dtype = floats[d]);
                                read_all(a, a_values, ROOM);
                                read_all(b, b_values, ROOM);
                                product(a_values, b_values, ref, 1, 0, 0, m, k, n);
                                lg_tensor *y = lg_matmul(a, b);
                                assert_ok(c);
                                assert_int_equal(lg_dtype_of(y), floats[d]);
                                assert_int_equal(lg_size_of(y, 0), m);
                                assert_values(y, ref, (int64_t)m * n, limits[d]);
                                lg_scope_end(c, s);
                        }
        lg_close(c);
}

TEST_CASE(batches_broadcast)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_uniform(c, -1, 1, LG_SHAPE(5, 3, 4), .dtype = LG_F64);
        lg_tensor *b = lg_uniform(c, -1, 1, LG_SHAPE(4, 2), .dtype = LG_F64);
        read_all(a, a_values, ROOM);
        read_all(b, b_values, ROOM);
        product(a_values, b_values, ref, 5, 1, 0, 3, 4, 2);
        assert_values(lg_matmul(a, b), ref, 30, 1e-13);
        lg_tensor *many = lg_uniform(c, -1, 1, LG_SHAPE(5, 4, 2), .dtype = LG_F64);
        read_all(many, b_values, ROOM);
        product(a_values, b_values, ref, 5, 1, 1, 3, 4, 2);
        assert_values(lg_matmul(a, many), ref, 30, 1e-13);
        assert_values(lg_matmul(lg_transpose(lg_contiguous(lg_transpose(a, 0, 2)), 0, 2), many), ref, 30, 1e-13);
        lg_tensor *y = lg_matmul(lg_reshape(a, LG_SHAPE(5, 1, 3, 4)), lg_reshape(many, LG_SHAPE(1, 5, 4, 2)));
        assert_int_equal(lg_ndim_of(y), 4);
        assert_int_equal(lg_numel(y), 150);
        lg_tensor *one = lg_select(lg_select(y, 0, 3), 0, 1); /* a[3] b[1] */
        product(a_values + 36, b_values + 8, ref, 1, 0, 0, 3, 4, 2);
        assert_values(one, ref, 6, 1e-13);
        lg_close(c);
}

TEST_CASE(vectors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *v = lg_from(c, ((float[]){1, 2, 3}), LG_SHAPE(3)),
                  *m = lg_from(c, ((float[]){1, 0, 2, 0, 1, 1}), LG_SHAPE(2, 3));
        lg_tensor *dot = lg_matmul(v, v);
        assert_int_equal(lg_ndim_of(dot), 0);
        assert_near(lg_item(dot), 14, 0);
        assert_list(lg_matmul(m, v), 0, 7, 5);
        assert_list(lg_matmul(v, lg_transpose(m, 0, 1)), 0, 7, 5);
        assert_int_equal(lg_ndim_of(lg_matmul(v, lg_ones(c, LG_SHAPE(2, 4, 3, 5)))), 3);
        assert_list(lg_matmul(lg_ones(c, LG_SHAPE(2, 0)), lg_ones(c, LG_SHAPE(0, 2))), 0, 0, 0, 0, 0);
        assert_int_equal(lg_numel(lg_matmul(lg_ones(c, LG_SHAPE(0, 2)), lg_ones(c, LG_SHAPE(2, 2)))), 0);
        assert_int_equal(lg_dtype_of(lg_matmul(m, lg_ones(c, LG_SHAPE(3, 1), .dtype = LG_F64))), LG_F64);
        lg_close(c);
}

TEST_CASE(linear)
{
        lg_ctx *c = open_ctx();
        for (int d = 0; d < 4; d++) {
                lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(2, 3, 8), .dtype = floats[d]);
                lg_tensor *w = lg_uniform(c, -1, 1, LG_SHAPE(5, 8), .dtype = floats[d]);
                lg_tensor *b = lg_uniform(c, -1, 1, LG_SHAPE(5), .dtype = floats[d]);
                double bias[5];
                read_all(x, a_values, ROOM);
                read_all(lg_transpose(w, 0, 1), b_values, ROOM);
                read_all(b, bias, 5);
                product(a_values, b_values, ref, 1, 0, 0, 6, 8, 5);
                assert_values(lg_linear(x, w, NULL), ref, 30, limits[d]);
                for (int i = 0; i < 30; i++)
                        ref[i] += bias[i % 5];
                lg_tensor *y = lg_linear(x, w, b);
                assert_int_equal(lg_ndim_of(y), 3);
                assert_values(y, ref, 30, limits[d]);
                lg_tensor *odd = lg_slice(lg_cat(LG_LIST(lg_slice(b, 0, 0, 1), b), 0), 0, 1, 6); /* begins anywhere */
                assert_values(lg_linear(x, w, odd), ref, 30, limits[d]);
        }
        lg_close(c);
}

/* Returns x wrapped to the dtype. */
static int64_t wrapped(lg_dtype dtype, uint64_t x)
{
        return dtype == LG_I64 ? (int64_t)x : dtype == LG_I32 ? (int64_t)(int32_t)(uint32_t)x : (int64_t)(uint8_t)x;
}

enum { B = 3, M = 5, K = 40, N = 18 };
static int64_t left[B * M * K], right[K * N], beside[N], made[B * M * N];

/* Compares the products with sums modulo 2^64, a[b] of size (m, k) by (k, n). */
static void assert_integers(const lg_tensor *y, lg_dtype dtype, bool bias)
{
        assert_int_equal(lg_dtype_of(y), dtype);
        assert_true(lg_read(y, made, LG_I64, sizeof made));
        for (int i = 0; i < B * M; i++)
                for (int j = 0; j < N; j++) {
                        uint64_t sum = bias ? (uint64_t)beside[j] : 0;
                        for (int k = 0; k < K; k++)
                                sum += (uint64_t)left[i * K + k] * (uint64_t)right[k * N + j];
                        if (made[i * N + j] != wrapped(dtype, sum))
                                fail_msg("%s: element (%d, %d) is %lld, not %lld", lg_dtype_name(dtype), i, j,
                                         (long long)made[i * N + j], (long long)wrapped(dtype, sum));
                }
}

TEST_CASE(integers)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_U8};
        for (int d = 0; d < 3; d++) {
                uint64_t state = 1;
                for (int i = 0; i < B * M * K + K * N + N; i++) {
                        int64_t *to = i < B * M * K ? left + i : i < B * M * K + K * N ? right + (i - B * M * K) : NULL;
                        state = state * 6364136223846793005u + 1442695040888963407u;
                        *(to ? to : beside + (i - B * M * K - K * N)) = wrapped(dtypes[d], state >> (i % 40));
                }
                lg_tensor *a = lg_cast(lg_from(c, left, LG_SHAPE(B, M, K)), dtypes[d]);
                lg_tensor *b = lg_cast(lg_from(c, right, LG_SHAPE(K, N)), dtypes[d]);
                lg_tensor *bias = lg_cast(lg_from(c, beside, LG_SHAPE(N)), dtypes[d]);
                lg_tensor *by_column = lg_transpose(lg_contiguous(lg_transpose(b, 0, 1)), 0, 1);
                assert_integers(lg_matmul(a, b), dtypes[d], false);
                assert_integers(lg_matmul(a, by_column), dtypes[d], false);
                assert_integers(lg_matmul(a, lg_expand(b, LG_SHAPE(B, K, N))), dtypes[d], false);
                assert_integers(lg_linear(a, lg_transpose(b, 0, 1), bias), dtypes[d], true);
                assert_integers(lg_einsum("bmk,kn->bmn", LG_LIST(a, b)), dtypes[d], false);
                assert_integers(lg_tensordot(a, b, .count = 1), dtypes[d], false);
                assert_integers(lg_reshape(lg_addmm(bias, lg_reshape(a, LG_SHAPE(B * M, K)), b), LG_SHAPE(B, M, N)),
                                dtypes[d], true);
                assert_int_equal(lg_numel(lg_matmul(lg_slice(a, 1, 0, 0), b)), 0);
                assert_list(lg_matmul(lg_zeros(c, LG_SHAPE(2, 0), .dtype = dtypes[d]),
                                      lg_zeros(c, LG_SHAPE(0, 1), .dtype = dtypes[d])),
                            0, 0, 0);
        }
        lg_close(c);
}

/* The dtype of a product of integers is that of a sum of the operands, and bool counts as i64. */
TEST_CASE(dtypes_of_integers)
{
        lg_ctx *c = open_ctx();
        lg_tensor *i = lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_I32), *u = lg_cast(i, LG_U8), *b = lg_cast(i, LG_BOOL);
        assert_int_equal(lg_dtype_of(lg_matmul(i, u)), LG_I32);
        assert_int_equal(lg_dtype_of(lg_matmul(u, lg_cast(i, LG_I64))), LG_I64);
        assert_int_equal(lg_dtype_of(lg_matmul(b, b)), LG_I64);
        assert_list(lg_matmul(b, b), 0, 2, 2, 2, 2);
        lg_tensor *dot = lg_matmul(lg_from(c, ((int64_t[]){1, 1}), LG_SHAPE(2)),
                                   lg_from(c, ((int64_t[]){(int64_t)1 << 53, 1}), LG_SHAPE(2)));
        int64_t sum = 0;
        assert_true(lg_read(dot, &sum, LG_I64, sizeof sum));
        assert_true(sum == ((int64_t)1 << 53) + 1);
        lg_close(c);
}

TEST_CASE(what_does_not_fit)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_ones(c, LG_SHAPE(2, 3)), *v = lg_ones(c, LG_SHAPE(3)), *s = lg_scalar(c, 1);
        drop(lg_matmul(a, a));
        assert_error(c, LG_ERR_SHAPE, "(2, 3)");
        drop(lg_matmul(a, s));
        assert_error(c, LG_ERR_SHAPE, "matmul");
        drop(lg_matmul(lg_ones(c, LG_SHAPE(2, 1, 2)), lg_ones(c, LG_SHAPE(3, 2, 2))));
        assert_error(c, LG_ERR_SHAPE, "matmul");
        lg_tensor *i = lg_ones(c, LG_SHAPE(2, 2), .dtype = LG_I64);
        assert_fails(c, lg_matmul(i, lg_ones(c, LG_SHAPE(2, 2))), LG_ERR_DTYPE, "matmul: a is i64 (2, 2)");
        assert_fails(c, lg_linear(lg_ones(c, LG_SHAPE(2, 2)), i, NULL), LG_ERR_DTYPE, "linear: x is f32 (2, 2)");
        drop(lg_linear(a, lg_ones(c, LG_SHAPE(4, 2)), NULL));
        assert_error(c, LG_ERR_SHAPE, "linear");
        drop(lg_linear(a, lg_ones(c, LG_SHAPE(4, 3)), v));
        assert_error(c, LG_ERR_SHAPE, "linear");
        drop(lg_linear(a, v, NULL));
        assert_error(c, LG_ERR_SHAPE, "linear");
        lg_close(c);
}

/* A product that is cut into tiles gives the bits it gives on one thread; NaN in old memory does not leak in. */
TEST_CASE(big_products)
{
        lg_ctx *c = open_ctx();
        enum { SIZE = 200 };
        static double one[SIZE * SIZE], three[SIZE * SIZE];
        lg_free(lg_full(c, LG_SHAPE(SIZE, SIZE), NAN));
        lg_tensor *a = lg_uniform(c, -1, 1, LG_SHAPE(SIZE, SIZE)), *b = lg_uniform(c, -1, 1, LG_SHAPE(SIZE, SIZE));
        lg_set_threads(c, 1);
        read_all(lg_matmul(a, b), one, SIZE * SIZE);
        lg_set_threads(c, 3);
        read_all(lg_matmul(a, b), three, SIZE * SIZE);
        assert_memory_equal(one, three, sizeof one);
        lg_tensor *exact = lg_matmul(lg_cast(a, LG_F64), lg_cast(b, LG_F64));
        read_all(exact, three, SIZE * SIZE);
        for (int i = 0; i < SIZE * SIZE; i++)
                assert_near(one[i], three[i], 1e-4);
        lg_tensor *eye = lg_cast(lg_eq(lg_arange(c, 0, SIZE, 1), lg_unsqueeze(lg_arange(c, 0, SIZE, 1), 1)), LG_F32);
        read_all(a, three, SIZE * SIZE);
        assert_values(lg_matmul(a, eye), three, SIZE * SIZE, 0);
        lg_close(c);
}

/* Gradients of operands that are broadcast along the batch: in 16 bits, those in f32 rounded once. */
TEST_CASE(gradients_of_broadcast_operands)
{
        lg_ctx *c = open_ctx();
        const lg_shape shapes[][2] = {{LG_SHAPE(3, 4), LG_SHAPE(70, 4, 5)},
                                      {LG_SHAPE(4), LG_SHAPE(70, 4, 5)},
                                      {LG_SHAPE(40, 3, 4), LG_SHAPE(1, 4, 5)},
                                      {LG_SHAPE(40, 1, 3, 4), LG_SHAPE(30, 4, 5)},
                                      {LG_SHAPE(2, 1, 5, 1, 3, 4), LG_SHAPE(6, 1, 7, 4, 5)},
                                      {LG_SHAPE(1, 6, 3, 4), LG_SHAPE(9, 6, 4, 5)},
                                      {LG_SHAPE(3, 4), LG_SHAPE(0, 4, 5)}};
        for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
                const lg_dtype dtype = i & 1 ? LG_BF16 : LG_F16;
                lg_tensor *x[2], *wide[2], *g[2], *h[2];
                for (int k = 0; k < 2; k++) {
                        x[k] = lg_set_requires_grad(lg_uniform(c, 0.5, 1, shapes[i / 2][k], .dtype = dtype), true);
                        wide[k] = lg_set_requires_grad(lg_cast(lg_detach(x[k]), LG_F32), true);
                }
                lg_tensor *y = lg_matmul(x[0], x[1]);
                lg_tensor *seed = lg_uniform(c, 0.5, 1, lg_shape_of(y), .dtype = dtype);
                lg_grad(LG_LIST(y), LG_LIST(x[0], x[1]), .grads = LG_LIST(seed), .result = g);
                lg_grad(LG_LIST(lg_matmul(wide[0], wide[1])), LG_LIST(wide[0], wide[1]),
                        .grads = LG_LIST(lg_cast(seed, LG_F32)), .result = h);
                for (int k = 0; k < 2; k++) {
                        double got[1600], want[1600];
                        const int64_t n = read_all(g[k], got, 1600);
                        assert_shape(g[k], shapes[i / 2][k]);
                        assert_int_equal(read_all(h[k], want, 1600), n);
                        for (int64_t j = 0; j < n; j++) /* half a unit in the last place, and the order of f32 sums */
                                assert_near(got[j], want[j], want[j] * (dtype == LG_F16 ? 0x1.01p-11 : 0x1.01p-8));
                }
        }
        assert_ok(c);
        lg_close(c);
}

/* Operands whose batch, rows or columns are read backwards. */
TEST_CASE(reversed_operands)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < 64; i++) {
                const lg_dtype dtype = i & 32 ? LG_F64 : LG_F32;
                lg_tensor *a = lg_uniform(c, -1, 1, LG_SHAPE(2, 3, 4, 5), .dtype = dtype);
                lg_tensor *b = lg_uniform(c, -1, 1, LG_SHAPE(3, 5, 6), .dtype = dtype), *p = a, *q = b;
                for (int d = 0; d < 4; d++)
                        p = (i & 7) >> d & 1 ? lg_flip(p, LG_DIMS(d)) : p;
                q = i & 8 ? lg_flip(q, LG_DIMS(0)) : q;
                q = i & 16 ? lg_flip(q, LG_DIMS(-1)) : q;
                double got[144], want[144];
                read_all(lg_matmul(p, q), got, 144);
                read_all(lg_matmul(lg_contiguous(p), lg_contiguous(q)), want, 144);
                for (int j = 0; j < 144; j++)
                        assert_near(got[j], want[j], 1e-6);
        }
        assert_ok(c);
        lg_close(c);
}

static void assert_same_values(lg_tensor *got, lg_tensor *want, double tolerance)
{
        double expected[512];
        const int64_t n = read_all(want, expected, 512);
        assert_values(got, expected, n, tolerance);
}

/* Returns a view of x's values in a larger block, where NaN is before, behind and between its rows. */
static lg_tensor *amid_nan(lg_tensor *x)
{
        const int last = lg_shape_of(x).ndim - 1;
        lg_tensor *y = last ? lg_pad(x, LG_INTS(3, 2, 1, 1), .value = NAN) : lg_pad(x, LG_INTS(3, 2), .value = NAN);
        y = last ? lg_slice(y, last - 1, 1, 1 + lg_size_of(x, last - 1)) : y;
        return lg_slice(y, last, 3, 3 + lg_size_of(x, last));
}

/* Nothing beyond a view is read, whatever its alignment. */
TEST_CASE(views_amid_nan)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        for (int i = 0; i < 8; i++) {
                const lg_dtype dtype = dtypes[i / 2];
                const int64_t m = i % 2 ? 1 : 7, k = i % 2 ? 16 : 9, n = 5;
                const double tolerance = dtype == LG_F16 ? 4e-3 : dtype == LG_BF16 ? 3e-2 : 1e-6;
                lg_tensor *a = lg_uniform(c, -1, 1, LG_SHAPE(2, m, k), .dtype = dtype), *b, *w, *bias;
                b = lg_uniform(c, -1, 1, LG_SHAPE(2, k, n), .dtype = dtype);
                w = lg_uniform(c, -1, 1, LG_SHAPE(n, k), .dtype = dtype);
                bias = lg_uniform(c, -1, 1, LG_SHAPE(n), .dtype = dtype);
                assert_same_values(lg_matmul(amid_nan(a), amid_nan(b)), lg_matmul(a, b), tolerance);
                assert_same_values(lg_matmul(lg_transpose(amid_nan(b), 1, 2), lg_transpose(amid_nan(a), 1, 2)),
                                   lg_transpose(lg_matmul(a, b), 1, 2), tolerance);
                assert_same_values(lg_linear(amid_nan(a), amid_nan(w), amid_nan(bias)), lg_linear(a, w, bias),
                                   tolerance);
        }
        assert_ok(c);
        lg_close(c);
}

/* Products of heads that are views of packed queries and keys, and their gradients. */
TEST_CASE(packed_heads)
{
        enum { SEQUENCES = 4, LENGTH = 3, HEADS = 3, HEAD = 5 };
        lg_ctx *c = open_ctx();
        for (lg_dtype dtype = LG_F32; dtype <= LG_BF16; dtype++) {
                const double tolerance = dtype == LG_F16 ? 8e-3 : dtype == LG_BF16 ? 6e-2 : 1e-6;
                lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(SEQUENCES, LENGTH, 2, HEADS, HEAD), .dtype = dtype);
                lg_tensor *g = lg_uniform(c, -1, 1, LG_SHAPE(SEQUENCES, HEADS, LENGTH, LENGTH), .dtype = dtype);
                lg_tensor *scores[2], *slopes[2];
                lg_set_requires_grad(x, true);
                for (int packed = 0; packed < 2; packed++) {
                        lg_tensor *all = lg_permute(x, LG_DIMS(2, 0, 3, 1, 4));
                        lg_tensor *q = lg_select(all, 0, 0), *k = lg_select(all, 0, 1);
                        q = packed ? q : lg_contiguous(q);
                        k = packed ? k : lg_contiguous(k);
                        scores[packed] = lg_matmul(q, lg_transpose(k, -2, -1));
                        lg_grad(LG_LIST(scores[packed]), LG_LIST(x), .grads = LG_LIST(g), .result = &slopes[packed]);
                }
                assert_same_values(scores[1], scores[0], tolerance);
                assert_same_values(slopes[1], slopes[0], tolerance);
        }
        assert_ok(c);
        lg_close(c);
}

#define ROWS(ROW) ROW(linear, lg_linear(x, golden_ops_y(c), lg_select(golden_ops_y(c), 1, 0)), 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "ops.txt", golden_ops_input, ROWS);
