/* test_epochs.c - lg_each_batch, and loaders whose last batch is left out. */
#include "test.h"

static lg_loader *loader_of(lg_ctx *c, int64_t rows, int workers)
{
        lg_tensor *x = lg_arange(c, 0, (double)rows, 1, .device = lg_cpu());
        return lg_loader_open(c, lg_dataset_tensors(c, x, x), 4, .shuffle = true, .seed = 5, .workers = workers);
}

static bool first_rows(lg_loader *l, int64_t ret[4])
{
        lg_each_batch(b, l)
        {
                assert_ptr_equal(b.loader, l);
                return lg_read(b.x, ret, LG_I64, 4 * sizeof *ret); /* leaves in the middle */
        }
        return false;
}

TEST_CASE(an_epoch_begins_anew)
{
        for (int workers = 0; workers < 3; workers += 2) {
                lg_ctx *c = open_ctx();
                lg_loader *l = loader_of(c, 10, workers), *plain = loader_of(c, 10, 0);
                int64_t first[4], second[4];
                /* the same orders as those of lg_loader_next, epoch by epoch */
                for (int epoch = 0; epoch < 3; epoch++) {
                        int count = 0;
                        bool seen[10] = {false};
                        lg_each_batch(b, l)
                        {
                                lg_batch other;
                                int64_t rows[4], others[4];
                                size_t bytes = (size_t)lg_numel(b.x) * sizeof *rows;
                                assert_true(lg_loader_next(plain, &other));
                                assert_int_equal(b.index, count);
                                assert_int_equal(b.count, 3);
                                assert_true(lg_read(b.x, rows, LG_I64, bytes) &&
                                            lg_read(other.x, others, LG_I64, bytes));
                                assert_memory_equal(rows, others, bytes);
                                for (int64_t i = 0; i < lg_numel(b.x); i++)
                                        seen[rows[i]] = true;
                                count++;
                        }
                        lg_loader_restart(plain);
                        assert_int_equal(count, 3);
                        for (int i = 0; i < 10; i++)
                                assert_true(seen[i]);
                }
                assert_true(first_rows(l, first) && first_rows(l, second));
                assert_memory_not_equal(first, second, sizeof first);
                int batches = 0;
                lg_each_batch(b, l)
                {
                        batches++;
                        if (b.index == 1)
                                break;
                }
                lg_each_batch(b, l)
                {
                        if (batches++ == 2)
                                assert_int_equal(b.index, 0);
                }
                assert_int_equal(batches, 5);
                assert_ok(c);
                lg_close(c);
        }
}

/* The outer loop cannot go on where it was; what was left by break can begin again, also inside another loop. */
TEST_CASE(a_loop_inside_a_loop)
{
        for (int left = 0; left < 2; left++) {
                lg_ctx *c = open_ctx();
                lg_loader *l = loader_of(c, 10, 0), *other = loader_of(c, 10, 0);
                int outer = 0, inner = 0;
                lg_each_batch(b, l)
                {
                        outer++;
                        lg_each_batch(k, l)
                        {
                                assert_int_equal(k.index, inner++);
                                if (left)
                                        break;
                        }
                }
                assert_int_equal(outer, 1);
                assert_int_equal(inner, left ? 1 : lg_loader_batches(l));
                assert_error(c, LG_ERR_STATE, "open a second loader for the inner one");
                outer = inner = 0;
                lg_each_batch(b, l)
                {
                        outer++;
                        lg_each_batch(k, other) inner++;
                        if (b.index == 1) { /* a step that is skipped, and an epoch that is begun again */
                                assert_true(lg_loader_next(l, &b));
                                assert_int_equal(b.index, 2);
                        }
                }
                assert_int_equal(outer, lg_loader_batches(l) - 1);
                assert_int_equal(inner, outer * lg_loader_batches(l));
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(nothing_to_go_through)
{
        lg_ctx *c = open_ctx();
        int count = 0;
        lg_each_batch(b, NULL)
        {
                count += b.x != NULL;
        }
        lg_each_batch(b, loader_of(c, 0, 0))
        {
                count++;
        }
        lg_loader *l = loader_of(c, 10, 0);
        lg_set_error(c, LG_ERR_STATE, "before");
        lg_each_batch(b, l)
        {
                count++;
        }
        assert_int_equal(count, 0);
        lg_close(c);
}

TEST_CASE(no_full_batch)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2), .device = lg_cpu()), *y = lg_ones(c, LG_SHAPE(3), .device = lg_cpu());
        lg_dataset *d = lg_dataset_tensors(c, x, y);
        assert_null(lg_loader_open(c, d, 4, .drop_last = true));
        assert_error(c, LG_ERR_ARGUMENT, "lg_loader_open:");
        lg_loader *l = lg_loader_open(c, d, 3, .drop_last = true);
        assert_int_equal(lg_loader_batches(l), 1);
        l = lg_loader_open(c, d, 4);
        assert_int_equal(lg_loader_batches(l), 1);
        lg_close(c);
}

/* A program that knows less of a batch than the library, or more. */
TEST_CASE(batches_of_other_versions)
{
        lg_ctx *c = open_ctx();
        lg_loader *l = loader_of(c, 10, 0);
        struct {
                lg_batch b;
                int64_t later, behind;
        } b;
        memset(&b, 7, sizeof b);
        assert_true(lg_loader_next_with(l, &b.b, offsetof(lg_batch, index)));
        assert_true(lg_numel(b.b.x) == 4 && b.b.index == 0x0707070707070707);
        assert_true(lg_loader_next_with(l, &b.b, sizeof b.b + sizeof b.later));
        assert_true(b.b.index == 1 && b.later == 0 && b.behind == 0x0707070707070707);
        lg_close(c);
}
