/* test_batches.c - which samples a loader draws, and batches of them: weights, padding, functions of the program. */
#include <errno.h>
#include "samples.h"

/* ---- weights ---- */

TEST_CASE(weights_draw_samples)
{
        lg_ctx *c = open_ctx();
        source from = new_source();
        static int64_t ids[64 * 1000];
        static double draws[64 * 1000];
        double w[SAMPLES] = {0};
        w[3] = 1;
        w[7] = 2;
        w[11] = 5;
        lg_dataset *d = own(c, &from);
        lg_tensor *weights = lg_from(c, w, LG_SHAPE(SAMPLES), .dtype = LG_F64, .device = lg_cpu());
        lg_loader *l = lg_loader_open(c, d, 50, .weights = weights, .samples = 40000, .seed = 1, .workers = 2);
        assert_int_equal(lg_loader_batches(l), 800);
        int count[SAMPLES] = {0};
        int64_t n = 0;
        for (lg_batch b; lg_loader_next(l, &b);)
                n = take(&b, ids, draws, (int)n);
        assert_int_equal(n, 40000);
        for (int64_t i = 0; i < n; i++)
                count[ids[i]]++;
        assert_int_equal(count[3] + count[7] + count[11], 40000);
        assert_near(count[3], 5000, 250); /* four standard deviations */
        assert_near(count[7], 10000, 350);
        assert_true(draws[0] != draws[1] && draws[1] != draws[2]); /* a sample that comes twice is made anew */
        l = lg_loader_open(c, d, 2, .weights = weights, .no_replacement = true);
        int first[SAMPLES] = {0};
        for (int e = 0; e < 4000; e++) {
                assert_int_equal(epoch(l, ids, draws), 3);
                assert_int_equal(ids[0] + ids[1] + ids[2], 21);
                first[ids[0]]++;
        }
        assert_near(first[3], 500, 90);
        assert_near(first[11], 2500, 130);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_weights_are_told)
{
        lg_ctx *c = open_ctx();
        source from = new_source();
        double w[SAMPLES] = {0};
        lg_dataset *d = own(c, &from);
#define WEIGHTS lg_from(c, w, LG_SHAPE(SAMPLES), .dtype = LG_F64, .device = lg_cpu())
        assert_null(lg_loader_open(c, d, 2, .weights = WEIGHTS));
        assert_error(c, LG_ERR_ARGUMENT, "no sample has a weight");
        w[2] = -1;
        assert_null(lg_loader_open(c, d, 2, .weights = WEIGHTS));
        assert_error(c, LG_ERR_ARGUMENT, "weight 2 is -1");
        w[2] = NAN;
        assert_null(lg_loader_open(c, d, 2, .weights = WEIGHTS));
        assert_error(c, LG_ERR_ARGUMENT, "weight 2 is");
        w[2] = 1;
        assert_null(lg_loader_open(c, d, 2, .weights = WEIGHTS, .no_replacement = true, .samples = 2));
        assert_error(c, LG_ERR_ARGUMENT, ".samples is 2, but 1");
        assert_null(lg_loader_open(c, d, 2, .weights = WEIGHTS, .shuffle = true));
        assert_error(c, LG_ERR_ARGUMENT, ".shuffle");
        assert_null(lg_loader_open(c, d, 2, .samples = 2));
        assert_error(c, LG_ERR_ARGUMENT, "no .weights");
        assert_null(lg_loader_open(c, d, 2, .weights = lg_zeros(c, LG_SHAPE(3), .device = lg_cpu())));
        assert_error(c, LG_ERR_SHAPE, "23 samples");
        lg_close(c);
}

/* ---- ragged fields, collate functions ---- */

/* tokens: index % 5 rows of (index, index + 1). */
static bool make_ragged(lg_sample *s, void *user)
{
        (void)user;
        int32_t *tokens = s->data[0];
        assert_int_equal(s->length[0], 4);
        s->length[0] = s->index % 5;
        for (int64_t i = 0; i < s->length[0]; i++) {
                tokens[2 * i] = (int32_t)s->index;
                tokens[2 * i + 1] = (int32_t)s->index + 1;
        }
        *(float *)s->data[1] = (float)s->index;
        return true;
}

static lg_dataset *ragged(lg_ctx *c, int64_t size)
{
        return lg_dataset_new(
                c, size,
                LG_FIELDS(LG_RAGGED_FIELD("tokens", LG_I32, LG_SHAPE(4, 2), -7), LG_FIELD("y", LG_F32, LG_SHAPE_0D)),
                make_ragged, NULL);
}

TEST_CASE(ragged_fields_are_padded)
{
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                lg_loader *l = lg_loader_open(c, ragged(c, 12), 4, .workers = workers);
                lg_batch b;
                assert_true(lg_loader_next(l, &b)); /* lengths 0, 1, 2, 3 */
                assert_int_equal(lg_size_of(b.x, 0), 4);
                assert_int_equal(lg_size_of(b.x, 1), 3);
                assert_int_equal(lg_size_of(b.x, 2), 2);
                double x[64], n[8];
                assert_int_equal(read_all(b.x, x, 64), 24);
                assert_int_equal(read_all(b.length[0], n, 8), 4);
                assert_null(b.length[1]);
                for (int i = 0; i < 4; i++) {
                        assert_true(n[i] == i);
                        for (int k = 0; k < 3; k++)
                                for (int e = 0; e < 2; e++)
                                        assert_true(x[(i * 3 + k) * 2 + e] == (k < i ? i + e : -7));
                }
                assert_true(lg_loader_next(l, &b)); /* 4, 0, 1, 2 */
                assert_int_equal(lg_size_of(b.x, 1), 4);
                assert_true(lg_loader_next(l, &b)); /* 3, 4, 0, 1 */
                assert_false(lg_loader_next(l, &b));
                lg_loader_close(l);
                l = lg_loader_open(c, lg_dataset_subset(ragged(c, 12), LG_INTS(0, 5, 10)), 8, .workers = workers);
                assert_true(lg_loader_next(l, &b)); /* nobody has a row */
                assert_int_equal(lg_size_of(b.x, 1), 0);
                assert_ok(c);
                lg_close(c);
        }
        lg_ctx *c = open_ctx();
        lg_batch b;
        assert_true(lg_dataset_get(ragged(c, 12), 2, &b));
        assert_int_equal(lg_size_of(b.x, 0), 2);
        lg_close(c);
}

static bool make_too_long(lg_sample *s, void *user)
{
        (void)user;
        s->length[0] = 5;
        return true;
}

TEST_CASE(rows_beyond_the_most_are_told)
{
        lg_ctx *c = open_ctx();
        lg_dataset *d =
                lg_dataset_new(c, 3, LG_FIELDS(LG_RAGGED_FIELD("t", LG_F32, LG_SHAPE(4), 0)), make_too_long, NULL);
        lg_loader *l = lg_loader_open(c, d, 2, .workers = 1);
        lg_batch b;
        assert_false(lg_loader_next(l, &b));
        assert_error(c, LG_ERR_ARGUMENT, "sample 0 says that its field t has 5 rows; 0 to 4 fit");
        lg_close(c);
}

/* The sum of the tokens and a number that is drawn for the batch. */
static bool sum_up(const lg_collation *b, void *user)
{
        int *fails = user;
        float *sums = b->to[0];
        const double drawn = lg_rng_normal(b->rng);
        assert_int_equal(b->in.count, 2);
        assert_int_equal(b->out.count, 1);
        if (*fails)
                return false;
        for (int64_t i = 0; i < b->count; i++) {
                const int32_t *tokens = (const int32_t *)b->from[0] + i * 8;
                sums[2 * i] = 0;
                sums[2 * i + 1] = (float)drawn;
                for (int64_t k = 0; k < b->lengths[0][i]; k++)
                        sums[2 * i] += (float)tokens[2 * k];
        }
        return true;
}

TEST_CASE(functions_make_batches)
{
        double drawn[3][3];
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                int fails = 0;
                lg_collate *m = lg_collate_new(c, LG_FIELDS(LG_FIELD("sums", LG_F32, LG_SHAPE(2))), sum_up, &fails);
                lg_loader *l = lg_loader_open(c, ragged(c, 10), 4, .collate = m, .seed = 4, .workers = workers);
                lg_collate_free(m);
                int64_t at = 0;
                lg_each_batch(b, l)
                {
                        double x[8];
                        int64_t n = read_all(b.x, x, 8) / 2;
                        assert_int_equal(n, b.index < 2 ? 4 : 2);
                        for (int i = 0; i < n; i++, at++)
                                assert_true(x[2 * i] == (double)(at * (at % 5)));
                        drawn[workers][b.index] = x[1];
                        assert_true(drawn[workers][b.index] == drawn[0][b.index]);
                }
                assert_true(drawn[0][0] != drawn[0][1]);
                fails = 1;
                lg_batch b;
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_ARGUMENT, "the collate function gives false");
                lg_close(c);
        }
}

/* ---- memory ---- */

/* All of it, with the n-th allocation failing. Returns how many there were. */
static int64_t life(int64_t n)
{
        failing f = {0};
        source from = new_source();
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        int fails = 0;
        int64_t ids[64], calls;
        double draws[64], w[SAMPLES];
        lg_dataset *a = NULL, *b = NULL;
        for (int i = 0; i < SAMPLES; i++)
                w[i] = 1;
        test_device(c);
        lg_tensor *weights = lg_from(c, w, LG_SHAPE(SAMPLES), .dtype = LG_F64, .device = lg_cpu());
        assert_ok(c);
        arm(&f, n, false);
        lg_dataset *d = own(c, &from), *both = lg_dataset_concat(c, d, d), *r = ragged(c, 9);
        drop(lg_dataset_split(both, 0.5, &a, &b, .seed = 1) ? a : NULL);
        lg_collate *m = lg_collate_new(c, LG_FIELDS(LG_FIELD("sums", LG_F32, LG_SHAPE(2))), sum_up, &fails);
        lg_loader *loaders[] = {lg_loader_open(c, a, 4, .workers = 1), lg_loader_open(c, d, 4, .weights = weights),
                                lg_loader_open(c, r, 4), lg_loader_open(c, r, 4, .collate = m, .shuffle = true)};
        for (int i = 0; i < 4 && !lg_error(c); i++)
                for (lg_batch batch; lg_loader_next(loaders[i], &batch);)
                        drop(&batch);
        bool failed = lg_error(c) != NULL;
        calls = f.calls;
        arm(&f, 0, false);
        if (failed)
                assert_error(c, LG_ERR_MEMORY, "");
        if (!failed)
                assert_int_equal(epoch(loaders[1], ids, draws), SAMPLES);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
        assert_int_equal(from.releases, 1);
        assert_true(failed == (n > 0 && n <= calls));
        return calls;
}

TEST_CASE(no_memory_is_told)
{
        int64_t calls = life(0);
        for (int64_t n = 1; n <= calls; n++)
                life(n);
}
