/* sequences.h - modules with parameters by transformer.py's formula, as functions of an input or of all parameters. */
#ifndef LG_TEST_SEQUENCES_H
#define LG_TEST_SEQUENCES_H

#include "golden.h"

/* Sets parameter k of m to 0.3 golden_tensor(shape, k), and returns m. */
static inline lg_module *filled(lg_module *m)
{
        lg_list p = lg_parameters(m);
        lg_no_grad(lg_module_ctx(m)) for (int64_t k = 0; k < p.count; k++) assert_true(
                lg_copy_(p.items[k], lg_mul_scalar(golden_like(p.items[k], lg_shape_of(p.items[k]), (double)k), 0.3)));
        return m;
}

/* Runs m on the inputs, up to NULL, with 0.3 x as its parameters, joined in their order. */
static inline lg_tensor *by_params(lg_module *m, lg_tensor *x, lg_tensor *a, lg_tensor *b, lg_tensor *v)
{
        enum { room = 256 };
        lg_tensor *parts[room], *const inputs[] = {a, b ? b : LG_END, v ? v : LG_END, LG_END};
        lg_list p = lg_parameters(m);
        int64_t from = 0;
        assert_true(p.count <= room);
        for (int64_t k = 0; k < p.count; from += lg_numel(p.items[k]), k++)
                parts[k] = lg_reshape(lg_mul_scalar(lg_slice(x, 0, from, from + lg_numel(p.items[k])), 0.3),
                                      lg_shape_of(p.items[k]));
        assert_int_equal(from, lg_numel(x));
        return lg_forward_params_list(m, LG_LIST_OF(p.count, parts), inputs);
}

static inline double largest_difference(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_amax(lg_abs(lg_sub(a, b))));
}

/* A bool tensor of that shape. */
#define BOOLS(shape, ...) lg_cast(lg_from(c, ((const double[]){__VA_ARGS__}), shape, .dtype = LG_F64), LG_BOOL)

#endif
