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
#define GOLDEN_RUN(name, expression)                                                                                   \
        static lg_tensor *run_##name(lg_ctx *c, lg_tensor *x)                                                          \
        {                                                                                                              \
                (void)c;                                                                                               \
                return expression;                                                                                     \
        }
/* The row, with x's shape at the end. */
#define GOLDEN_ROW(name, expression, ...)                                                                              \
        {#name, {.ndim = sizeof((int[]){__VA_ARGS__}) / sizeof(int), .size = {__VA_ARGS__}}, run_##name},

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

/* A row's result and gradient, by the fused derivative and by the one in ops, in f64 and f32. Other inputs that a row
 * makes in f64 promote x: rows cast them to x's dtype, or their limit for f32 holds all the more. */
static inline void golden_check_row(const golden *r, golden_input_fn *input, const double *wanted, int64_t n)
{
        const lg_dtype dtypes[] = {LG_F64, LG_F32};
        const double limits[] = {1e-12, 1e-5};
        for (int k = 0; k < 4; k++) {
                lg_ctx *c = open_ctx();
                int d = k & 1;
                lg_tensor *x = lg_requires_grad(lg_cast(input(c, r), dtypes[d]), true), *y = r->run(c, x);
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

/* All lines of a file against their rows; each row has its line. */
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
                if (!r)
                        fail_msg("%s: no row for %s", file, name);
                int64_t n = 0;
                for (int ch; (ch = fgetc(f)) == ' ' && n < room;)
                        n += fscanf(f, "%lf", &v[n]) == 1;
                golden_check_row(r, input, v, n);
                found++;
        }
        free(v);
        fclose(f);
        assert_int_equal(found, count);
}

#endif
