/* test_qr.c - QR factorisation: PyTorch's numbers, backward errors, empty matrices, NaN, refusals. */
#include "matrices.h"

#define APART lg_exp(lg_mul_scalar(x, 0.5))

/* q and r with the diagonal of r made positive, flattened. */
static lg_tensor *factors(lg_tensor *a, bool complete)
{
        lg_tensor *q, *r;
        if (!lg_qr(a, &q, &r, .complete = complete))
                return NULL;
        lg_tensor *sign = lg_sign(lg_detach(lg_diagonal(r, .dim1 = -2, .dim2 = -1)));
        q = lg_mul(q, lg_unsqueeze(sign, -2));
        r = lg_mul(r, lg_unsqueeze(sign, -1));
        return lg_cat(LG_LIST(lg_flatten(q), lg_flatten(r)), 0);
}

#define ROWS(ROW)                                                                                                      \
        ROW(qr_square, factors(APART, false), 4, 4)                                                                    \
        ROW(qr_tall, factors(APART, false), 5, 3)                                                                      \
        ROW(qr_wide, factors(APART, false), 3, 5)                                                                      \
        ROW(qr_batch, factors(APART, false), 2, 1, 4, 3)                                                               \
        ROW(qr_complete, factors(APART, true), 3, 5)
GOLDEN_TEST(as_pytorch_computes_it, "factorizations.txt", golden_input, ROWS);

static void check(lg_ctx *c, lg_tensor *a)
{
        (void)c;
        for (int complete = 0; complete < 2; complete++) {
                lg_tensor *q, *r, *alone;
                assert_true(lg_qr(a, &q, &r, .complete = complete));
                assert_true(backward_error(lg_matmul(wide(q), wide(r)), a) <= 10);
                assert_true(turn_error(q) <= 10);
                assert_near(lg_item(lg_norm(lg_tril(r, .diagonal = -1))), 0, 0);
                assert_true(lg_qr(a, NULL, &alone, .complete = complete));
                assert_alike(alone, r);
        }
}

TEST_CASE(backward_errors)
{
        each_matrices(check);
}

TEST_CASE(large)
{
        lg_ctx *c = open_ctx();
        check(c, matrices(c, RANDOM, 200, 150, LG_F32, 1));
        check(c, matrices(c, RANDOM, 100, 210, LG_F64, 1));
        lg_close(c);
}

TEST_CASE(empty)
{
        lg_ctx *c = open_ctx();
        lg_tensor *q, *r;
        assert_true(lg_qr(lg_zeros(c, LG_SHAPE(2, 0, 3)), &q, &r));
        assert_shape(q, LG_SHAPE(2, 0, 0));
        assert_shape(r, LG_SHAPE(2, 0, 3));
        assert_true(lg_qr(lg_zeros(c, LG_SHAPE(3, 0)), &q, &r, .complete = true));
        assert_list(q, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1);
        assert_shape(r, LG_SHAPE(3, 0));
        assert_true(lg_qr(lg_zeros(c, LG_SHAPE(0, 4, 3)), &q, &r));
        assert_shape(q, LG_SHAPE(0, 4, 3));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(not_a_number)
{
        lg_ctx *c = open_ctx();
        const double bad[] = {NAN, INFINITY};
        for (int i = 0; i < 2; i++) {
                lg_tensor *q, *r, *a = matrices(c, RANDOM, 6, 5, LG_F64, 1);
                lg_copy_(lg_select(lg_select(lg_select(a, 0, 1), 0, 4), 0, 2), lg_scalar(c, bad[i], .dtype = LG_F64));
                assert_true(lg_qr(a, &q, &r));
                assert_true(all_nan(lg_select(q, 0, 1)) && lg_item(lg_sum(lg_isnan(q))) == 30);
                assert_true(all_nan(lg_triu(lg_select(r, 0, 1))) || lg_item(lg_sum(lg_isnan(r))) > 0);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(refuses)
{
        lg_ctx *c = open_ctx();
        lg_tensor *q, *r, *a = lg_ones(c, LG_SHAPE(4, 3), .requires_grad = true);
        assert_refuses(lg_qr(x, &q, &r));
        assert_true(lg_qr(a, &q, &r, .complete = true));
        assert_fails(c, lg_backward(lg_sum(r)), LG_ERR_STATE, "complete q");
        lg_close(c);
}

static lg_tensor *step(lg_ctx *c, void *user)
{
        const lg_scope s = lg_scope_begin(c);
        lg_tensor *q, *r, *y = NULL;
        if (s.id && lg_qr(user, &q, &r))
                y = lg_escape(q);
        lg_scope_end(c, s);
        return y;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_matrices(step);
}
