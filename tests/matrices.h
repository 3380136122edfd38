/* matrices.h - matrices of several kinds, and the backward errors of their factors. */
#ifndef LG_TEST_MATRICES_H
#define LG_TEST_MATRICES_H

#include "failing.h"
#include "golden.h"

/* Kinds of matrices: random; zero; equal elements (rank 1); rows and columns of decreasing size; the identity;
 * Hilbert's matrix, nearly singular. */
enum { RANDOM, ZERO, EQUAL, GRADED, IDENTITY, HILBERT, KINDS };

/* A batch of two (m, n) of that kind, times unit. */
static inline lg_tensor *matrices(lg_ctx *c, int kind, int64_t m, int64_t n, lg_dtype dtype, double unit)
{
        double *v = calloc((size_t)(2 * m * n) + 1, sizeof *v);
        for (int64_t at = 0; at < 2 * m * n; at++) {
                const double i = (double)(at / n % m), j = (double)(at % n),
                             x = sin(12.9 * (double)at * (double)at + 1);
                v[at] = kind == RANDOM     ? x
                        : kind == ZERO     ? 0
                        : kind == EQUAL    ? 1
                        : kind == GRADED   ? x * pow(10, -i / 2 - j / 3)
                        : kind == IDENTITY ? i == j
                                           : 1 / (i + j + 1);
                v[at] *= unit;
        }
        lg_tensor *t = lg_cast(lg_from(c, v, LG_SHAPE(2, m, n), .dtype = LG_F64), dtype);
        free(v);
        return t;
}

static inline double epsilon(const lg_tensor *t)
{
        return lg_dtype_of(t) == LG_F64 ? 0x1p-52 : 0x1p-23;
}

static inline lg_tensor *wide(lg_tensor *t)
{
        return lg_cast(t, LG_F64);
}

static inline lg_tensor *turned(lg_tensor *t)
{
        return lg_transpose(t, -1, -2);
}

/* |product - a| / |a| in units of the larger size times epsilon; |product| itself if a is 0. */
static inline double backward_error(lg_tensor *product, lg_tensor *a)
{
        const lg_shape s = lg_shape_of(a);
        const int64_t m = s.size[s.ndim - 2], n = s.size[s.ndim - 1];
        const double top = lg_numel(a) ? lg_item(lg_amax(lg_abs(wide(a)))) : 0, by = top > 0 ? top : 1;
        const double size = lg_item(lg_norm(lg_div_scalar(wide(a), by)));
        const double off = lg_item(lg_norm(lg_div_scalar(lg_sub(product, wide(a)), by)));
        return size > 0 ? off / size / epsilon(a) / (double)(m > n ? m : n) : off;
}

/* The same of q^T q - 1: how far the columns of q are from orthonormal. */
static inline double turn_error(lg_tensor *q)
{
        lg_tensor *product = lg_matmul(turned(wide(q)), wide(q));
        const int64_t n = lg_shape_of(product).size[2];
        lg_tensor *one = lg_eye(lg_ctx_of(q), n, n, .dtype = LG_F64);
        const double rows = (double)lg_shape_of(q).size[1];
        return lg_item(lg_norm(lg_sub(product, one))) / epsilon(q) / (rows > 0 ? rows : 1);
}

/* a diag(s) b, in f64. */
static inline lg_tensor *scaled_product(lg_tensor *a, lg_tensor *s, lg_tensor *b)
{
        return lg_matmul(lg_mul(wide(a), lg_unsqueeze(wide(s), -2)), wide(b));
}

static const struct {
        int64_t m, n;
} matrix_sizes[] = {{1, 1}, {2, 2}, {3, 3}, {7, 3}, {3, 7}, {1, 5}, {5, 1}, {17, 17}, {33, 32}, {31, 65}, {70, 37}};
static const struct {
        lg_dtype dtype;
        double unit;
} matrix_units[] = {{LG_F32, 1}, {LG_F64, 1}, {LG_F32, 1e-30}, {LG_F32, 1e30}, {LG_F64, 1e-290}, {LG_F64, 1e290}};

/* Calls check(c, matrices) for every kind, size and dtype and, except on a GPU, whose library need not scale, scale. */
static inline void each_matrices(void (*check)(lg_ctx *c, lg_tensor *a))
{
        lg_ctx *c = open_ctx();
        const bool scales = lg_default_device(c).type != LG_DEVICE_CUDA;
        for (size_t u = 0; u < (scales ? sizeof matrix_units / sizeof *matrix_units : 2); u++)
                for (size_t i = 0; i < sizeof matrix_sizes / sizeof *matrix_sizes; i++)
                        for (int kind = 0; kind < KINDS; kind++) {
                                const lg_scope s = lg_scope_begin(c);
                                check(c, matrices(c, kind, matrix_sizes[i].m, matrix_sizes[i].n, matrix_units[u].dtype,
                                                  matrix_units[u].unit));
                                assert_ok(c);
                                lg_scope_end(c, s);
                        }
        lg_close(c);
}

/* The same bits or, on a GPU, whose library may compute one without the other, nearly the same values. */
static inline void assert_alike(lg_tensor *a, lg_tensor *b)
{
        if (lg_default_device(lg_ctx_of(a)).type != LG_DEVICE_CUDA) {
                assert_same_bits(a, b);
                return;
        }
        const double top = lg_item(lg_amax(lg_abs(wide(b))));
        assert_near(lg_item(lg_amax(lg_abs(lg_sub(wide(a), wide(b))))), 0, 200 * epsilon(a) * top);
}

/* Whether all elements are NaN. */
static inline bool all_nan(lg_tensor *t)
{
        return lg_item(lg_sum(lg_isnan(t))) == (double)lg_numel(t);
}

/* Calls make() of a matrix with every allocation failing; make() ends a scope of its own. */
static inline void fail_each_of_matrices(lg_tensor *(*make)(lg_ctx *c, void *a))
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        assert_true(fail_each(c, &f, true, make, matrices(c, RANDOM, 36, 36, LG_F32, 1)) > 2);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

/* x as f16 is refused by that call, and a vector, too. */
#define assert_refuses(call)                                                                                           \
        do {                                                                                                           \
                lg_tensor *x = lg_zeros(c, LG_SHAPE(3, 3), .dtype = LG_F16);                                           \
                assert_fails(c, call, LG_ERR_DTYPE, "f16");                                                            \
                x = lg_zeros(c, LG_SHAPE(3), .dtype = LG_F64);                                                         \
                assert_fails(c, call, LG_ERR_SHAPE, "f64 (3,)");                                                       \
        } while (0)

#endif
