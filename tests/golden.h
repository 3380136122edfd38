/* golden.h - results and gradients against PyTorch's numbers: lines of a file in tests/data, "name y... dx...".
 *
 * Each line is made by the script of the same name (data/golden.py has what they share): a result in f64, then its
 * gradient by x, of the sum of the result weighted by 1, 2, 3, ... in row-major order.
 */
#ifndef LG_GOLDEN_H
#define LG_GOLDEN_H

#include "test.h"

typedef struct golden {
        const char *name;
        lg_shape shape; /* of x */
        lg_tensor *(*run)(lg_ctx *c, lg_tensor *x);
} golden;
typedef lg_tensor *golden_input_fn(lg_ctx *c, const golden *row);

/* The function of a row, whose result is an expression of c and x. */
#define GOLDEN_RUN(name, expression, ...)                                                                              \
        static lg_tensor *run_##name(lg_ctx *c, lg_tensor *x)                                                          \
        {                                                                                                              \
                (void)c;                                                                                               \
                return expression;                                                                                     \
        }
/* The row, with x's shape at the end. */
#define GOLDEN_ROW(name, expression, ...)                                                                              \
        {#name, {.ndim = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .size = {__VA_ARGS__}}, run_##name},
/* A test of rows, a macro that lists them as ROW(name, expression, sizes...). */
#define GOLDEN_TEST(name, file, input, rows)                                                                           \
        rows(GOLDEN_RUN) static const golden name##_rows[] = {rows(GOLDEN_ROW)};                                       \
        TEST_CASE(name)                                                                                                \
        {                                                                                                              \
                golden_check(file, input, name##_rows, sizeof name##_rows / sizeof *name##_rows);                      \
        }                                                                                                              \
        struct golden

/* 2 sin(1.3 i + phase), f64, in that shape: what golden.py's tensor() makes. */
static inline lg_tensor *golden_tensor(lg_ctx *c, lg_shape shape, double phase)
{
        double n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= (double)shape.size[i];
        lg_tensor *i = lg_arange(c, 0, n, 1, .dtype = LG_F64);
        return lg_reshape(lg_mul_scalar(lg_sin(lg_add_scalar(lg_mul_scalar(i, 1.3), phase)), 2), shape);
}

/* x of phase 0. */
static inline lg_tensor *golden_input(lg_ctx *c, const golden *row)
{
        return golden_tensor(c, row->shape, 0);
}

/* A tensor of that phase and of x's dtype. */
static inline lg_tensor *golden_like(const lg_tensor *x, lg_shape shape, double phase)
{
        return lg_cast(golden_tensor(lg_ctx_of(x), shape, phase), lg_dtype_of(x));
}

/* (7 i + 3) mod top, i64: what golden.py's i64() makes. */
static inline lg_tensor *golden_index(lg_ctx *c, lg_shape shape, int64_t top)
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
#define I64(top, ...) golden_index(c, LG_SHAPE(__VA_ARGS__), top)
#define LIST64(...)                                                                                                    \
        lg_from(c, ((const int64_t[]){__VA_ARGS__}),                                                                   \
                LG_SHAPE((int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), .dtype = LG_I64)

/* x in a layout of its own: its dimensions are in reverse order in memory, and each is read backwards. */
static inline lg_tensor *golden_turned(lg_tensor *x)
{
        lg_dims back = {.count = lg_ndim_of(x)};
        for (int i = 0; i < back.count; i++)
                back.dim[i] = back.count - 1 - i;
        return lg_flip(lg_permute(lg_contiguous(lg_permute(lg_flip(x, LG_ALL_DIMS), back)), back), LG_ALL_DIMS);
}

/* An index that the call, or the next read of its result, finds to be wrong. */
#define assert_no_index(call, text)                                                                                    \
        do {                                                                                                           \
                double out_[64];                                                                                       \
                lg_tensor *y_ = call;                                                                                  \
                assert_int_equal(!y_, reports_at_once(c));                                                             \
                assert_false(lg_read(y_, out_, LG_F64, (size_t)lg_numel(y_) * sizeof *out_));                          \
                assert_error(c, LG_ERR_ARGUMENT, text);                                                                \
        } while (0)

/* Y of ops.py. */
static inline lg_tensor *golden_ops_y(lg_ctx *c)
{
        lg_tensor *y = lg_reshape(lg_arange(c, 0, 12, 1, .dtype = LG_F64), LG_SHAPE(3, 4));
        return lg_sub_scalar(lg_div_scalar(y, 4), 1);
}

/* X or IMAGE of ops.py. */
static inline lg_tensor *golden_ops_input(lg_ctx *c, const golden *row)
{
        const double x[] = {0.5, -1.25, 2.0, 0.1, 1.5, 0.3, -0.7, 2.2, -0.4, 0.9, 0.25, -1.1};
        return row->shape.ndim == 3 ? lg_reshape(lg_sin(lg_arange(c, 0, 24, 1, .dtype = LG_F64)), row->shape)
                                    : lg_from(c, x, row->shape, .dtype = LG_F64);
}

/* A row's result and gradient, by the fused derivative and by the one in ops, in f64 and f32, of x in two layouts.
 * Other inputs that a row makes in f64 promote x: rows cast them to x's dtype, or their limit for f32 holds all the
 * more. */
static inline void golden_check_row(const golden *r, golden_input_fn *input, const double *wanted, int64_t n)
{
        const lg_dtype dtypes[] = {LG_F64, LG_F32};
        const double limits[] = {1e-12, 1e-5};
        for (int k = 0; k < 8; k++) {
                lg_ctx *c = open_ctx();
                int d = k & 1;
                lg_tensor *given = lg_cast(input(c, r), dtypes[d]);
                lg_tensor *x = lg_set_requires_grad(lg_detach(k & 4 ? golden_turned(given) : given), true);
                lg_tensor *y = r->run(c, x);
                if (lg_error(c))
                        fail_msg("%s: %s", r->name, lg_error(c));
                int64_t m = lg_numel(y), of_x = lg_numel(x);
                if (m + of_x != n)
                        fail_msg("%s: %lld numbers are wanted, but there are %lld and %lld", r->name, (long long)n,
                                 (long long)m, (long long)of_x);
                assert_values(y, wanted, m, limits[d]);
                lg_tensor *w = lg_arange(c, 1, (double)m + 1, 1, .dtype = LG_F64);
                lg_backward(y, .grad = lg_reshape(lg_cast(w, lg_dtype_of(y)), lg_shape_of(y)), .create_graph = k & 2);
                if (lg_error(c))
                        fail_msg("%s: %s", r->name, lg_error(c));
                assert_values(lg_grad_of(x), wanted + m, of_x, limits[d]);
                lg_close(c);
        }
}

/* Rows against their lines of a file. */
static inline void golden_check(const char *file, golden_input_fn *input, const golden *rows, int count)
{
        enum { room = 4096 };
        const char *folder = getenv("LG_TEST_DATA");
        char path[4096], name[64];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/data", file);
        FILE *f = fopen(path, "r");
        if (!f)
                fail_msg("%s cannot be read", path);
        double *v = calloc(room, sizeof *v);
        int found = 0;
        while (fscanf(f, "%63s", name) == 1) {
                const golden *r = NULL;
                for (int i = 0; i < count; i++)
                        r = strcmp(rows[i].name, name) ? r : &rows[i];
                int64_t n = 0;
                for (int ch; (ch = fgetc(f)) == ' ' && n < room;)
                        n += fscanf(f, "%lf", &v[n]) == 1;
                if (r)
                        golden_check_row(r, input, v, n);
                found += r != NULL;
        }
        free(v);
        fclose(f);
        assert_int_equal(found, count);
}

#endif
