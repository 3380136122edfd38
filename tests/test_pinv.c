/* test_pinv.c - pseudo-inverses and least squares: PyTorch's numbers, Penrose's conditions, empty matrices, refusals.
 */
#include "matrices.h"

#define LIKE(...) golden_like(x, LG_SHAPE(__VA_ARGS__), 0.7)

static lg_tensor *regular(lg_tensor *x)
{
        const lg_shape s = lg_shape_of(x);
        lg_tensor *one = lg_eye(lg_ctx_of(x), s.size[s.ndim - 2], s.size[s.ndim - 1], .dtype = lg_dtype_of(x));
        return lg_add(lg_exp(lg_mul_scalar(x, 0.5)), lg_mul_scalar(one, 3));
}

static lg_tensor *symmetric(lg_tensor *x)
{
        return lg_add(regular(x), turned(regular(x)));
}

/* The matrix of the row lstsq_tall, as a constant. */
static lg_tensor *tall(const lg_tensor *x)
{
        return regular(golden_like(x, LG_SHAPE(5, 3), 0));
}

#define ROWS(ROW)                                                                                                      \
        ROW(pinv_square, lg_pinv(regular(x)), 4, 4)                                                                    \
        ROW(pinv_tall, lg_pinv(regular(x)), 5, 3)                                                                      \
        ROW(pinv_wide, lg_pinv(regular(x)), 3, 5)                                                                      \
        ROW(pinv_batch, lg_pinv(regular(x)), 2, 1, 4, 3)                                                               \
        ROW(pinv_hermitian_square, lg_pinv(symmetric(x), .hermitian = true), 4, 4)                                     \
        ROW(pinv_hermitian_batch, lg_pinv(symmetric(x), .hermitian = true), 2, 3, 3)                                   \
        ROW(pinv_rank_2, lg_pinv(x, .rtol = 1e-6), 4, 5)                                                               \
        ROW(lstsq_tall, lg_lstsq(regular(x), LIKE(5, 2)), 5, 3)                                                        \
        ROW(lstsq_wide, lg_lstsq(regular(x), LIKE(3, 2)), 3, 5)                                                        \
        ROW(lstsq_right, lg_lstsq(tall(x), lg_add_scalar(x, 0)), 5, 2)                                                 \
        ROW(lstsq_rank_2, lg_lstsq(x, LIKE(4, 2), .rcond = 1e-6), 4, 5)
/* x of phase 0.7 for the row whose right side it is. */
static lg_tensor *input(lg_ctx *c, const golden *row)
{
        return golden_tensor(c, row->shape, strcmp(row->name, "lstsq_right") ? 0 : 0.7);
}
GOLDEN_TEST(as_pytorch_computes_it, "factorizations.txt", input, ROWS);

/* a p a = a, p a p = p, and a p and p a are symmetric. */
static void check(lg_ctx *c, lg_tensor *a)
{
        lg_tensor *p = lg_pinv(a, .rtol = 1e-4), *ap = lg_matmul(wide(a), wide(p)), *pa = lg_matmul(wide(p), wide(a));
        (void)c;
        assert_true(lg_item(lg_norm(lg_sub(ap, turned(ap)))) <= 1e5 * epsilon(a) * (double)lg_numel(a));
        assert_true(lg_item(lg_norm(lg_sub(pa, turned(pa)))) <= 1e5 * epsilon(a) * (double)lg_numel(a));
        assert_true(backward_error(lg_matmul(pa, wide(p)), p) <= 1e5);
}

TEST_CASE(conditions)
{
        each_matrices(check);
}

TEST_CASE(vectors_and_batches)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = matrices(c, RANDOM, 5, 3, LG_F64, 1), *x = matrices(c, RANDOM, 3, 2, LG_F64, 1);
        lg_tensor *b = lg_matmul(a, x);
        assert_true(lg_item(lg_norm(lg_sub(lg_lstsq(a, b), x))) < 1e-12);
        assert_true(lg_item(lg_norm(lg_sub(lg_lstsq(a, b, .rcond = LG_ZERO), x))) < 1e-12);
        assert_true(lg_item(lg_norm(lg_sub(lg_lstsq(a, lg_select(b, -1, 1)), lg_select(x, -1, 1)))) < 1e-12);
        lg_tensor *one = lg_select(a, 0, 0);
        assert_shape(lg_lstsq(one, lg_select(lg_select(b, 0, 0), -1, 0)), LG_SHAPE(3));
        assert_shape(lg_lstsq(one, b), LG_SHAPE(2, 3, 2));
        assert_shape(lg_lstsq(turned(one), matrices(c, RANDOM, 3, 4, LG_F64, 1)), LG_SHAPE(2, 5, 4));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        assert_shape(lg_pinv(lg_zeros(c, LG_SHAPE(2, 0, 3))), LG_SHAPE(2, 3, 0));
        assert_shape(lg_pinv(lg_zeros(c, LG_SHAPE(0, 2, 3))), LG_SHAPE(0, 3, 2));
        assert_list(lg_lstsq(lg_zeros(c, LG_SHAPE(0, 2)), lg_zeros(c, LG_SHAPE(0, 1))), 0, 0, 0);
        assert_shape(lg_lstsq(lg_zeros(c, LG_SHAPE(2, 0)), lg_zeros(c, LG_SHAPE(2, 1))), LG_SHAPE(0, 1));
        assert_list(lg_pinv(lg_zeros(c, LG_SHAPE(1, 2))), 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refuses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_ones(c, LG_SHAPE(4, 3));
        assert_refuses(lg_pinv(x));
        assert_refuses(lg_lstsq(x, x));
        assert_fails(c, lg_pinv(a, .atol = -1), LG_ERR_ARGUMENT, "atol is -1");
        assert_fails(c, lg_pinv(a, .rtol = NAN), LG_ERR_ARGUMENT, "rtol nan");
        assert_fails(c, lg_pinv(a, .hermitian = true), LG_ERR_SHAPE, "f32 (4, 3)");
        assert_fails(c, lg_lstsq(a, lg_ones(c, LG_SHAPE(3, 1))), LG_ERR_SHAPE, "(..., m, k)");
        assert_fails(c, lg_lstsq(a, a, .rcond = -1), LG_ERR_ARGUMENT, "rtol -1");
        lg_close(c);
}

static lg_tensor *step(lg_ctx *c, void *user)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *y = s.id ? lg_escape(lg_lstsq(user, lg_pinv(user))) : NULL;
        lg_scope_end(c, s);
        return y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_matrices(step);
}
