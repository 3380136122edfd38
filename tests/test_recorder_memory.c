/* test_recorder_memory.c - recorded steps: their memory, what outlives them, and steps that fail for want of memory. */
#include "failing.h"
#include "recorded.h"

AROUND_TESTS(begin, end);

static lg_module *modal_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 16), lg_nn_dropout(c, 0.3), lg_nn_batch_norm1d(c, 16),
                                lg_nn_gelu(c), lg_nn_linear(c, 16, 3));
}

/* ---- memory and shapes ---- */

static lg_tensor *run_one(run *r, int64_t n)
{
        return lg_recorder_run(r->recorder, rows_of_8(r->c, n), lg_randint(r->c, 0, 3, LG_SHAPE(n)));
}

static run open_run(lg_ctx *c, lg_module *(*network)(lg_ctx *c))
{
        run r = {.c = c, .net = network(c)};
        r.opt = lg_adam(c, lg_parameters(r.net), 1e-2);
        return r;
}

/* Of ten sizes in turn, four are kept: each run finds its recording freed. */
TEST_CASE(more_sizes_than_recordings)
{
        run r = open_run(open_ctx(), small_network);
        r.recorder = lg_recorder_new(r.c, train, .user = &r, .max_recordings = 4);
        int64_t used = 0;
        for (int round = 0; round < 40; round++) {
                for (int64_t n = 1; n <= (round < 30 ? 10 : 4); n++) {
                        lg_scope s = lg_scope_begin(r.c);
                        assert_non_null(run_one(&r, n));
                        assert_true(lg_scope_end(r.c, s));
                }
                const int64_t now = lg_memory_stats(r.c, lg_default_device(r.c)).used;
                if (round == 5)
                        used = now;
                assert_true(round < 5 || round >= 30 || now == used);
        }
        assert_int_equal(lg_recorder_replays(r.recorder), 7 * 4);
        lg_close(r.c);
}

TEST_CASE(memory_is_given_back)
{
        run r = open_run(open_ctx(), modal_network);
        const lg_device d = lg_default_device(r.c);
        int64_t used = 0, live = 0;
        for (int round = 0; round < 4; round++) {
                r.recorder = round ? lg_recorder_new(r.c, train, .user = &r) : NULL;
                for (int i = 0; i < 8; i++) {
                        lg_scope s = lg_scope_begin(r.c);
                        lg_tensor *x = rows_of_8(r.c, 5), *y = lg_randint(r.c, 0, 3, LG_SHAPE(5));
                        assert_non_null(round ? lg_recorder_run(r.recorder, x, y) : train(r.c, LG_LIST(x, y), &r));
                        assert_true(lg_scope_end(r.c, s));
                }
                lg_recorder_free(r.recorder);
                lg_zero_grad(r.opt);
                if (round == 0) {
                        used = lg_memory_stats(r.c, d).used;
                        live = lg_live_tensors(r.c);
                }
                assert_int_equal(lg_memory_stats(r.c, d).used, used);
                assert_int_equal(lg_live_tensors(r.c), live);
        }
        lg_close(r.c);
}

/* Recordings that no further run can use are freed, not kept until there are too many. */
TEST_CASE(recordings_of_no_more_use)
{
        run r = open_run(open_ctx(), small_network);
        const lg_device d = lg_default_device(r.c);
        r.recorder = lg_recorder_new(r.c, train, .user = &r);
        int64_t used = 0;
        for (int round = 0; round < 6; round++) {
                for (int i = 0; i < 15; i++) {
                        lg_scope s = lg_scope_begin(r.c);
                        if (i == 0 || i == 5)
                                assert_true(lg_freeze(lg_child(r.net, 0), i == 0));
                        if (i == 10)
                                assert_true(lg_module_cast(r.net, LG_F64) && lg_module_cast(r.net, LG_F32));
                        assert_non_null(run_one(&r, 4));
                        assert_true(lg_scope_end(r.c, s));
                }
                const int64_t now = lg_memory_stats(r.c, d).used;
                if (round == 1)
                        used = now;
                assert_true(round < 2 || now == used);
        }
        assert_true(lg_recorder_replays(r.recorder) > 20);
        lg_close(r.c);
}

/* Gradients, and results that were given out, outlive the recorder, and the context its last one. */
TEST_CASE(recorder_is_freed)
{
        run r = open_run(open_ctx(), small_network);
        r.recorder = lg_recorder_new(r.c, train, .user = &r);
        lg_tensor *loss = NULL;
        for (int i = 0; i < 6; i++)
                loss = run_one(&r, 4);
        const double value = lg_item(loss);
        lg_tensor *w = lg_parameter(r.net, "0.weight"), *copy = lg_contiguous(lg_mul_scalar(lg_grad_of(w), 1));
        lg_recorder_free(r.recorder);
        lg_empty_cache(r.c);
        lg_tensor *other = lg_full(r.c, LG_SHAPE(1000), 7);
        assert_same_bits(lg_grad_of(w), copy);
        assert_near(lg_item(loss), value, 0);
        drop(train(r.c, LG_LIST(rows_of_8(r.c, 4), lg_randint(r.c, 0, 3, LG_SHAPE(4))), &r));
        assert_near(lg_item(lg_select(other, 0, 999)), 7, 0);
        assert_ok(r.c);
        r.recorder = lg_recorder_new(r.c, train, .user = &r);
        for (int i = 0; i < 6; i++)
                assert_non_null(run_one(&r, 4));
        lg_close(r.c);
        lg_recorder_free(NULL);
}

/* ---- failures ---- */

/* The n-th allocation of a run fails: an error, of a recording with all as before; training goes on. Returns false if
 * there was no n-th one. */
static bool fail_in_run(int which, int64_t n)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        run r = open_run(c, modal_network);
        r.recorder = lg_recorder_new(c, train, .user = &r);
        for (int i = 1; i < which; i++)
                assert_non_null(run_one(&r, 4));
        lg_tensor *x = rows_of_8(c, 4), *y = lg_randint(c, 0, 3, LG_SHAPE(4)), *w = lg_parameter(r.net, "0.weight");
        lg_tensor *before = lg_contiguous(lg_mul_scalar(lg_detach(w), 1));
        const lg_random_state state = lg_random_state_of(c);
        lg_empty_cache(c);
        arm(&f, n, false);
        lg_tensor *loss = lg_recorder_run(r.recorder, x, y);
        arm(&f, 0, false);
        if (!loss) {
                assert_error(c, LG_ERR_MEMORY, "");
                if (which > 3) {
                        assert_same_bits(lg_detach(w), before);
                        assert_int_equal(lg_random_state_of(c).counter, state.counter);
                }
        }
        for (int i = 0; i < 8; i++) {
                lg_tensor *next = lg_recorder_run(r.recorder, x, y);
                if (!next)
                        fail_msg("run %d after a failure in run %d: %s", i, which, lg_error(c));
                assert_true(isfinite(lg_item(next)));
        }
        assert_true(lg_recorder_replays(r.recorder) >= 3);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        return !loss;
}

TEST_CASE(each_allocation_fails)
{
        for (int i = 1; i <= 5; i++) {
                int64_t n = 1;
                while (fail_in_run(i, n))
                        n++;
                assert_true(n > 1);
        }
}

TEST_CASE(label_out_of_range)
{
        run r = open_run(open_ctx(), small_network);
        lg_ctx *c = r.c;
        r.recorder = lg_recorder_new(c, train, .user = &r);
        for (int bad = 0; bad < 7; bad++) {
                lg_tensor *w = lg_parameter(r.net, "0.weight"), *before = lg_contiguous(lg_mul_scalar(lg_detach(w), 1));
                lg_tensor *loss =
                        lg_recorder_run(r.recorder, rows_of_8(c, 2), lg_from(c, ((int64_t[]){1, 3}), LG_SHAPE(2)));
                if (loss && !lg_error(c))
                        lg_item(loss);
                assert_error(c, LG_ERR_ARGUMENT, "cross_entropy: target holds the class index 3");
                assert_same_bits(lg_detach(w), before);
                for (int i = 0; i < bad; i++)
                        assert_non_null(run_one(&r, 2));
        }
        assert_true(lg_recorder_replays(r.recorder) > 10);
        lg_close(c);
}
