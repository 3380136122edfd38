/* test_profiler.c - profiles: times that sum, figures of ops, steps, regions, errors, no memory. */
#include <unistd.h>
#include "../libgrad/inspect/profiler.h"
#include "failing.h"
#include "test.h"

/* ---- a step to look at ---- */

typedef struct work {
        lg_module *net;
        lg_optimizer *opt;
        lg_tensor *x, *y;
} work;

static work work_of(lg_ctx *c)
{
        work w;
        lg_seed(c, 3);
        w.net = lg_nn_sequential(c, lg_nn_conv2d(c, 2, 4, 3), lg_nn_relu(c), lg_nn_flatten(c), lg_nn_linear(c, 64, 5));
        w.opt = lg_adam(c, lg_parameters(w.net), 0.01);
        w.x = lg_normal(c, 0, 1, LG_SHAPE(6, 2, 6, 6));
        w.y = lg_from(c, ((int64_t[]){0, 1, 2, 3, 4, 0}), LG_SHAPE(6));
        return w;
}

static double step(lg_ctx *c, const work *w)
{
        lg_scope scope = lg_scope_begin(c);
        double loss = NAN;
        lg_region(c, "model")
        {
                lg_tensor *l = lg_cross_entropy(lg_forward(w->net, w->x), w->y);
                lg_zero_grad(w->opt);
                lg_region(c, "gradients") drop(lg_backward(l) ? l : NULL);
                lg_clip_grad_norm(lg_parameters(w->net), 1);
                lg_step(w->opt);
                loss = lg_item(l);
        }
        lg_scope_end(c, scope);
        return loss;
}

static const lg__row *find_row(const lg_profiler *p, const char *name)
{
        for (int64_t i = 0; i < p->row_count; i++)
                if (!strcmp(p->rows[i].name, name))
                        return &p->rows[i];
        fail_msg("there is no row \"%s\"", name);
        return NULL;
}

static char *printed(lg_profiler *p, int rows)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        assert_true(f && lg_profiler_print(f, p, .rows = rows));
        fclose(f);
        return text;
}

/* ---- what is recorded ---- */

static void check_sums(const lg_profiler *p)
{
        int64_t self[] = {0, 0, 0};
        for (int64_t i = LG__ROWS - 1; i < p->row_count; i++) {
                const lg__row *r = &p->rows[i];
                assert_true(r->self >= 0 && r->open == 0 && r->flops >= 0);
                assert_true(r->kind == LG__ROW_MODULE || r->total >= r->self || r->kind == LG__ROW_REGION);
                self[r->kind] += r->self;
        }
        for (int i = 0; i < 3; i++)
                assert_true(self[i] > 0 && self[i] <= p->wall);
        assert_true(p->depth == 0 && !p->recording);
}

TEST_CASE(figures)
{
        enum { STEPS = 3 };
        lg_ctx *c = open_ctx();
        const work w = work_of(c);
        lg_profiler *p = lg_profiler_open(c, .skip = 2, .steps = STEPS);
        assert_non_null(p);
        for (int i = 0; i < 2 + STEPS + 2; i++) {
                assert_true(step(c, &w) > 0);
                assert_true(lg_profiler_step(p));
                assert_true(p->recording == (i >= 1 && i < 1 + STEPS));
        }
        assert_ok(c);
        assert_int_equal(p->done, STEPS);
        check_sums(p);
        /* products: 6 x 64 x 5; the loss needs no gradient of x */
        const double product = 2.0 * 6 * 64 * 5, conv = 2.0 * 6 * 4 * 16 * 2 * 9;
        assert_near(find_row(p, "linear")->flops, STEPS * product, 0);
        assert_near(find_row(p, "3 (Linear)")->flops, STEPS * 3 * product, 0);
        assert_near(find_row(p, "0 (Conv2d)")->flops, STEPS * 2 * conv, 0);
        assert_near(find_row(p, "(Sequential)")->flops, 0, 0);
        assert_near(find_row(p, "model")->flops, STEPS * (product + conv), 0);
        assert_near(find_row(p, "gradients")->flops, STEPS * (2 * product + conv), 0);
        static const char *const once[] = {"linear",    "linear (derivative)", "cross_entropy (derivative)",
                                           "backward",  "zero_grad",           "clip_grad_norm",
                                           "adam step", "0 (Conv2d)",          "model",
                                           "gradients", "(Sequential)",        "copy to host"};
        for (size_t i = 0; i < sizeof once / sizeof *once; i++)
                assert_int_equal(find_row(p, once[i])->calls, STEPS);
        assert_true(find_row(p, "linear")->bytes >= STEPS * 4 * (6 * 64 + 64 * 5 + 5 + 6 * 5));
        assert_true(find_row(p, "model")->total > find_row(p, "gradients")->total);
        assert_true(find_row(p, "linear")->allocated > 0 && find_row(p, "3 (Linear)")->peak > 0);
        lg_profiler_close(p);
        lg_close(c);
}

/* Memory that a module keeps is that of lg_memory_stats(). */
TEST_CASE(memory_of_modules)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 64, 256), lg_nn_linear(c, 256, 64));
        lg_tensor *x = lg_ones(c, LG_SHAPE(128, 64));
        const lg_memory_stats_t before = lg_memory_stats(c, test_device(c));
        lg_profiler *p = lg_profiler_open(c);
        drop(lg_forward(net, x));
        assert_true(lg_profiler_step(p));
        const lg_memory_stats_t after = lg_memory_stats(c, test_device(c));
        const lg__row *first = find_row(p, "0 (Linear)"), *second = find_row(p, "1 (Linear)");
        assert_true(first->kept >= 128 * 256 * 4 && second->kept >= 128 * 64 * 4);
        assert_true(first->kept + second->kept <= after.used - before.used);
        assert_true(second->peak >= first->peak && second->peak <= after.peak);
        lg_profiler_close(p);
        lg_close(c);
}

TEST_CASE(tables)
{
        lg_ctx *c = open_ctx();
        const work w = work_of(c);
        lg_profiler *p = lg_profiler_open(c);
        char *text = printed(p, 0);
        assert_non_null(strstr(text, "0 steps"));
        free(text);
        for (int i = 0; i < 2; i++) {
                step(c, &w);
                lg_profiler_step(p);
        }
        text = printed(p, 0); /* while it records */
        assert_non_null(strstr(text, "2 steps"));
        free(text);
        lg__profiler_stop(p);
        text = printed(p, 3);
        static const char *const words[] = {"2 steps, ",    "\nby op ", "\nby module ",
                                            "\nby region ", " more ",   "\nall "};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                assert_non_null(strstr(text, words[i]));
        assert_null(strstr(text, "zero_grad"));
        free(text);
        text = printed(p, 1000);
        assert_null(strstr(text, " more "));
        assert_non_null(strstr(text, "\nzero_grad "));
        assert_non_null(strstr(text, "\nother "));
        free(text);
        lg_profiler_close(p);
        lg_close(c);
}

/* ---- nothing else changes ---- */

TEST_CASE(same_losses)
{
        double losses[2][4];
        for (int k = 0; k < 2; k++) {
                lg_ctx *c = open_ctx();
                const work w = work_of(c);
                lg_profiler *p = k ? lg_profiler_open(c) : NULL;
                for (int i = 0; i < 4; i++) {
                        losses[k][i] = step(c, &w);
                        assert_true(!p || lg_profiler_step(p));
                }
                assert_int_equal(c->observers != NULL, k);
                assert_true(!p || lg_profiler_close(p));
                assert_null(c->observers);
                assert_null(c->frame);
                lg_close(c);
        }
        assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
}

/* ---- regions ---- */

TEST_CASE(regions)
{
        lg_ctx *c = open_ctx();
        int times = 0;
        lg_region(c, "without a profiler") times++;
        assert_null(c->frame);
        lg_profiler *p = lg_profiler_open(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(4));
        for (int i = 0; i < 3; i++) {
                char name[] = "outer";
                lg_region(c, name)
                {
                        name[0] = 'X'; /* the name was copied */
                        drop(lg_exp(x));
                        lg_region(c, "inner") times++;
                        lg_region(c, "outer") times++;
                }
        }
        /* ends what was left open */
        const uint64_t outer = lg_region_begin(c, "left"), inner = lg_region_begin(c, "open");
        assert_true(outer && inner);
        lg_region_end(c, outer);
        lg_region_end(c, inner);
        lg_region_end(c, 0);
        lg_region_end(NULL, outer);
        assert_int_equal(lg_region_begin(NULL, "x"), 0);
        assert_fails(c, lg_region_begin(c, NULL), LG_ERR_ARGUMENT, "lg_region_begin: the name is NULL");
        assert_int_equal(times, 7);
        assert_null(c->frame);
        lg_region(c, "bad \xff\n") times++;
        assert_int_equal(find_row(p, "bad ??")->calls, 1);
        assert_int_equal(find_row(p, "outer")->calls, 3); /* one of two in each other */
        assert_int_equal(find_row(p, "inner")->calls, 3);
        assert_int_equal(find_row(p, "left")->calls, 1);
        assert_int_equal(find_row(p, "open")->calls, 1);
        assert_int_equal(find_row(p, "exp")->calls, 3);
        assert_true(find_row(p, "exp")->self > 0);
        assert_true(lg_profiler_close(p));
        lg_close(c);
}

/* A region and a module that began before the recording. */
TEST_CASE(begins_inside)
{
        lg_ctx *c = open_ctx();
        lg_profiler *p = lg_profiler_open(c, .skip = 1, .steps = 1);
        lg_region(c, "all")
        {
                assert_true(lg_profiler_step(p));
                drop(lg_ones(c, LG_SHAPE(3)));
                assert_true(lg_profiler_step(p));
        }
        assert_true(p->stopped && find_row(p, "all")->calls == 1);
        assert_true(find_row(p, "all")->total > 0 && find_row(p, "all")->total <= p->wall);
        assert_true(lg_profiler_close(p));
        p = lg_profiler_open(c);
        lg_region(c, "open")
        {
                drop(lg_ones(c, LG_SHAPE(3)));
                assert_true(lg_profiler_close(p));
        }
        assert_null(c->frame);
        lg_close(c);
}

/* ---- errors ---- */

TEST_CASE(wrong_use)
{
        lg_ctx *c = open_ctx();
        assert_fails(c, lg_profiler_open(c, .skip = -1), LG_ERR_ARGUMENT, "lg_profiler_open: .skip = -1");
        assert_fails(c, lg_profiler_open(c, .steps = -2), LG_ERR_ARGUMENT, ".steps = -2");
        assert_fails(c, lg_profiler_open(c, .path = ""), LG_ERR_ARGUMENT, ".path is empty");
        lg_profiler *p = lg_profiler_open(c, .steps = 1, .path = "/dev/null/none/trace.json");
        assert_fails(c, lg_profiler_open(c), LG_ERR_STATE, "close it first");
        assert_fails(c, lg_profiler_print(NULL, p), LG_ERR_ARGUMENT, "lg_profiler_print: the file is NULL");
        assert_fails(c, lg_profiler_print(stdout, p, .rows = -1), LG_ERR_ARGUMENT, ".rows");
        assert_false(lg_profiler_print(stdout, NULL));
        assert_false(lg_profiler_step(NULL));
        assert_false(lg_profiler_close(NULL));
        assert_null(lg_profiler_open(NULL));
        assert_fails(c, lg_profiler_step(p), LG_ERR_IO, "lg_profiler_step: ");
        assert_true(lg_profiler_close(p)); /* it was reported */
        p = lg_profiler_open(c, .path = "/dev/null/none/trace.json");
        assert_fails(c, lg_profiler_close(p), LG_ERR_IO, "lg_profiler_close: ");
        p = lg_profiler_open(c, .path = "/dev/null/none/trace.json");
        assert_null(lg_add(lg_ones(c, LG_SHAPE(2)), lg_ones(c, LG_SHAPE(3)))); /* nothing is written after an error */
        assert_false(lg_profiler_close(p));
        assert_error(c, LG_ERR_SHAPE, "add");
        drop(lg_profiler_open(c, .path = "/dev/null/none/trace.json")); /* freed by lg_close() */
        lg_close(c);
}

/* Every allocation of the profiler fails once, and all later ones: the training gives the same losses. */
TEST_CASE(no_memory)
{
        enum { STEPS = 2 };
        char path[] = "/tmp/grad-profile-XXXXXX";
        close(mkstemp(path));
        double expected[STEPS];
        int lost = 0, kept = 0;
        for (int64_t n = 0; n < 400 && !kept; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                test_device(c);
                const work w = work_of(c);
                for (int i = 0; i < 4; i++)
                        step(c, &w); /* all memory that a step needs is cached now */
                lg_profiler *p = n ? lg_profiler_open(c, .path = path) : NULL;
                assert_true(p || !n);
                arm(&f, n, false);
                for (int i = 0; i < STEPS; i++) {
                        const double loss = step(c, &w);
                        assert_ok(c);
                        expected[i] = n ? expected[i] : loss;
                        assert_memory_equal(&loss, &expected[i], sizeof loss);
                }
                arm(&f, 0, false);
                if (p && p->failed) {
                        lost++;
                        assert_fails(c, lg_profiler_close(p), LG_ERR_MEMORY, "lg_profiler_close: there was no memory");
                } else if (p) {
                        kept++;
                        assert_true(lg_profiler_close(p));
                }
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
        assert_true(lost > 5 && kept == 1);
        /* nor does opening or writing leave anything */
        for (int64_t n = 1; n < 40; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                test_device(c);
                arm(&f, n, true);
                lg_profiler *p = lg_profiler_open(c, .path = path);
                drop(p ? lg_ones(c, LG_SHAPE(3)) : NULL);
                assert_true(lg_profiler_close(p) || (p && lg_error_code_of(c) == LG_ERR_MEMORY) || !p);
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
        remove(path);
}
