/* test_recorder_errors.c - errors in recorded steps: of a device, as the function reports them, and of memory. */
#include "failing.h"
#include "recorded_trial.h"

AROUND_TESTS(begin, end);

/* ---- of a device ---- */

static lg_tensor *inverts(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_inverse(in.items[0]));
}

static lg_tensor *decomposes(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_cholesky(in.items[0]));
}

static lg_tensor *solves(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_sum(lg_solve(in.items[0], in.items[0]));
}

static lg_tensor *matrices(lg_ctx *c, bool good)
{
        lg_tensor *x = lg_repeat(lg_eye(c, 2, 2), LG_SHAPE(3, 1, 1));
        lg_tensor *y = good ? x : lg_cat(LG_LIST(lg_slice(x, 0, 0, 2), lg_zeros(c, LG_SHAPE(1, 2, 2))), 0);
        return y;
}

/* Stores the error of a run with a bad matrix, which may come when the result is read. */
static void read_error(lg_ctx *c, lg_recorder *r, char text[512])
{
        lg_tensor *y = lg_recorder_run(r, matrices(c, false));
        if (y && !lg_error(c))
                lg_item(y);
        snprintf(text, 512, "%s", lg_error(c) ? lg_error(c) : "none");
        lg_clear_error(c);
}

TEST_CASE(singular_matrices)
{
        static lg_function *const rows[] = {inverts, decomposes, solves};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                lg_ctx *c = open_ctx();
                char eager[512], recorded[512];
                lg_recorder *r = lg_recorder_new(c, rows[i]);
                read_error(c, lg_recorder_new(c, rows[i], .eager = true), eager);
                assert_non_null(strstr(eager, "2"));
                for (int n = 0; n < 8; n++) {
                        for (int k = 0; k < n; k++)
                                assert_non_null(lg_recorder_run(r, matrices(c, true)));
                        read_error(c, r, recorded);
                        assert_string_equal(recorded, eager);
                }
                assert_true(lg_recorder_replays(r) > 10);
                lg_close(c);
        }
}

/* ---- of memory ---- */

static lg_module *modal_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 4), lg_nn_dropout(c, 0.3), lg_nn_linear(c, 4, 3));
}

static lg_tensor *train_with_all(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = loss_of(r, in);
        (void)c;
        update_scaled(r, loss);
        lg_ema_update(r->average);
        return lg_error(c) ? NULL : loss;
}

/* The n-th allocation of a run fails, and training goes on. Returns false if there was no n-th one. */
static bool fail_in_run(int which, int64_t n)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        run r = {.c = c, .net = modal_network(c)};
        r.opt = lg_adam(c, lg_parameters(r.net), 1e-2);
        r.scaler = lg_scaler_new(c);
        r.average = lg_ema_new(r.net, 0.9);
        r.recorder = lg_recorder_new(c, train_with_all, .user = &r);
        lg_tensor *x = rows_of_8(c, 4), *y = lg_randint(c, 0, 3, LG_SHAPE(4)), *w = lg_parameter(r.net, "0.weight");
        for (int i = 1; i < which; i++)
                assert_non_null(lg_recorder_run(r.recorder, x, y));
        lg_tensor *before = lg_contiguous(lg_mul_scalar(lg_detach(w), 1));
        lg_empty_cache(c);
        arm(&f, n, false);
        lg_tensor *loss = lg_recorder_run(r.recorder, x, y);
        arm(&f, 0, false);
        if (!loss) {
                assert_error(c, LG_ERR_MEMORY, "");
                if (which > 3)
                        assert_same_bits(lg_detach(w), before);
                else /* a round may have begun */
                        lg_scaler_free(r.scaler), r.scaler = lg_scaler_new(c);
        }
        for (int i = 0; i < 6; i++) {
                lg_tensor *next = lg_recorder_run(r.recorder, x, y);
                if (!next)
                        fail_msg("run %d after a failure of %d in run %d: %s", i, (int)n, which, lg_error(c));
                assert_true(isfinite(lg_item(next)));
        }
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        return !loss;
}

TEST_CASE(each_allocation_of_all)
{
        for (int i = 1; i <= 5; i++) {
                int64_t n = 1;
                while (fail_in_run(i, n))
                        n++;
                assert_true(n > 1);
        }
}
