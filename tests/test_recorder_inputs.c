/* test_recorder_inputs.c - recorded steps on inputs of any layout, on slices, without elements, and on the same memory.
 */
#include "recorded_trial.h"

AROUND_TESTS(begin, end);

/* The n-th input of 8 columns: rows of a table, transposed, reversed in steps, expanded. */
static lg_tensor *row(lg_ctx *c, lg_tensor *table, int n)
{
        switch (n % 5) {
        case 0:
                return lg_slice(table, 0, 4 * n, 4 * n + 4);
        case 1:
                return lg_transpose(lg_normal(c, 0, 1, LG_SHAPE(8, 4)), 0, 1);
        case 2:
                return lg_slice(table, 0, n, n + 8, .step = 2);
        case 3:
                return lg_expand(lg_slice(table, 0, n, n + 1), LG_SHAPE(4, 8));
        default:
                return lg_normal(c, 0, 1, LG_SHAPE(4, 8));
        }
}

static lg_tensor *reduces(lg_ctx *c, lg_list in, void *user)
{
        lg_tensor *x = in.items[0], *sums = lg_sum(lg_exp(x), .dims = LG_DIMS(0));
        (void)c;
        return lg_add(lg_mul(sums, lg_reshape(lg_slice(x, 0, 1, 2), LG_SHAPE(8))),
                      lg_sum(lg_forward(((trial *)user)->run.net, x)));
}

TEST_CASE(layouts)
{
        trial t = {0};
        open_trial(&t);
        lg_ctx *c = t.run.c;
        lg_recorder *r = lg_recorder_new(c, reduces, .user = &t, .verify_every = 4);
        lg_tensor *table = lg_normal(c, 0, 1, LG_SHAPE(200, 8));
        for (int n = 0; n < 40; n++) {
                lg_tensor *x = row(c, table, n < 10 ? 5 * n : n), *y = lg_recorder_run(r, x);
                if (!y)
                        fail_msg("run %d: %s", n, lg_error(c));
                assert_same_bits(y, lg_detach(reduces(c, LG_LIST(lg_contiguous(x)), &t)));
        }
        assert_true(lg_recorder_replays(r) > 20);
        assert_usable(&t);
}

static lg_tensor *sums_two(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_add(lg_mul(in.items[0], in.items[0]), in.items[1]);
}

TEST_CASE(one_tensor_twice)
{
        lg_ctx *c = open_ctx();
        lg_recorder *r = lg_recorder_new(c, sums_two);
        for (int n = 0; n < 12; n++) {
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3)), *y = n % 4 ? lg_normal(c, 0, 1, LG_SHAPE(3)) : x;
                assert_same_bits(lg_recorder_run(r, x, y), sums_two(c, LG_LIST(x, y), NULL));
        }
        assert_int_equal(lg_recorder_replays(r), 9);
        lg_close(c);
}

TEST_CASE(no_elements)
{
        lg_ctx *c = open_ctx();
        lg_recorder *r = lg_recorder_new(c, sums_two);
        for (int n = 0; n < 12; n++) {
                lg_tensor *x = lg_zeros(c, LG_SHAPE(n % 2 ? 3 : 0));
                assert_int_equal(lg_numel(lg_recorder_run(r, x, x)), n % 2 ? 3 : 0);
        }
        assert_int_equal(lg_recorder_replays(r), 6);
        lg_close(c);
}

/* A parameter as an input, which the step changes. */
TEST_CASE(a_parameter)
{
        trial t = {0};
        open_trial(&t);
        lg_tensor *w = lg_reshape(lg_slice(lg_detach(lg_parameter(t.run.net, "0.weight")), 0, 0, 4), LG_SHAPE(4, 8));
        for (int n = 0; n < 8; n++) {
                for (int i = 0; i < n; i++)
                        assert_non_null(run_once(&t));
                assert_fails(t.run.c, lg_recorder_run(t.run.recorder, w), LG_ERR_STATE,
                             "changes the memory of an input");
        }
        assert_usable(&t);
}
