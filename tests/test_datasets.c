/* test_datasets.c - data sets of the program's own: fields, streams, views, what is misused. */
#include <limits.h>
#include <errno.h>
#include "samples.h"

/* ---- own samples ---- */

TEST_CASE(own_samples_are_the_same_for_any_workers)
{
        int64_t ids[5][2][64];
        double draws[5][2][64];
        for (int workers = 0; workers < 5; workers++) {
                lg_ctx *c = open_ctx();
                source from = new_source();
                lg_dataset *d = own(c, &from);
                assert_int_equal(lg_dataset_size(d), SAMPLES);
                assert_string_equal(lg_dataset_fields(d).field[2].name, "z");
                lg_loader *l = lg_loader_open(c, d, 4, .shuffle = true, .seed = 3, .workers = workers,
                                              .prefetch = workers == 4 ? 1 : 0);
                lg_dataset_free(d);
                assert_int_equal(from.releases, 0);
                for (int e = 0; e < 2; e++)
                        assert_int_equal(epoch(l, ids[workers][e], draws[workers][e]), SAMPLES);
                assert_ok(c);
                lg_loader_close(l);
                assert_int_equal(from.releases, 1);
                lg_close(c);
                assert_memory_equal(ids[workers], ids[0], SAMPLES * sizeof(int64_t));
                assert_memory_equal(draws[workers][1], draws[0][1], SAMPLES * sizeof(double));
        }
        /* each sample has random numbers of its own, others in another epoch */
        for (int i = 0; i < SAMPLES; i++)
                for (int k = 0; k < SAMPLES; k++) {
                        bool same = draws[0][0][i] == draws[0][0][k];
                        assert_true(same == (i == k));
                        assert_true(draws[0][0][i] != draws[0][1][k]);
                }
}

TEST_CASE(a_sample_that_fails_is_told)
{
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                source from = new_source();
                int64_t ids[64];
                double draws[64];
                lg_dataset *d = own(c, &from);
                lg_loader *l = lg_loader_open(c, d, 4, .workers = workers);
                lg_batch b;
                int64_t live = lg_live_tensors(c);
                from.fail_at = 9;
                assert_true(lg_loader_next(l, &b) && lg_loader_next(l, &b));
                assert_false(lg_loader_next(l, &b));
                assert_int_equal(lg_live_tensors(c), live);
                assert_false(lg_loader_next(l, &b)); /* the error stays */
                assert_error(c, LG_ERR_IO, "lg_loader_next: sample 9: the well is dry, 0.5");
                assert_false(lg_loader_next(l, &b)); /* the same batch again */
                assert_error(c, LG_ERR_IO, "sample 9");
                pthread_mutex_lock(&from.lock);
                from.why = NULL;
                pthread_mutex_unlock(&from.lock);
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_IO, "sample 9 cannot be made: its function gives false");
                pthread_mutex_lock(&from.lock);
                from.fail_at = -1;
                pthread_mutex_unlock(&from.lock);
                assert_true(lg_loader_next(l, &b));
                assert_int_equal(b.index, 2);
                assert_int_equal(take(&b, ids, draws, 0), 4);
                assert_int_equal(ids[0], 8);
                assert_int_equal(epoch(l, ids, draws), SAMPLES - 12);
                assert_int_equal(epoch(l, ids, draws), SAMPLES);
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(one_sample_is_given)
{
        lg_ctx *c = open_ctx();
        source from = new_source();
        lg_dataset *d = own(c, &from);
        lg_batch b;
        assert_true(lg_dataset_get(d, 7, &b));
        assert_int_equal(lg_shape_of(b.x).ndim, 1);
        assert_int_equal(lg_shape_of(b.y).ndim, 0);
        assert_true(lg_item(b.y) == 107);
        assert_false(lg_dataset_get(d, SAMPLES, &b));
        assert_error(c, LG_ERR_ARGUMENT, "there is no sample 23; there are 23");
        assert_false(lg_dataset_get(d, -1, &b));
        assert_error(c, LG_ERR_ARGUMENT, "-1");
        assert_false(lg_dataset_get(d, 0, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        from.fail_at = 3;
        assert_false(lg_dataset_get(d, 3, &b));
        assert_error(c, LG_ERR_IO, "lg_dataset_get: sample 3: the well is dry");
        lg_close(c);
        assert_int_equal(from.releases, 1);
}

/* ---- misuse ---- */

typedef struct meddler {
        lg_ctx *c;
        lg_loader *l;
        lg_dataset *d;
        lg_scope outer;
} meddler;

static bool meddle(lg_sample *s, void *user)
{
        meddler *m = user;
        lg_batch b;
        *(float *)s->data[0] = 1;
        lg_dataset_free(m->d);
        if (s->index == 0)
                lg_loader_close(m->l);
        if (s->index == 1)
                drop(lg_loader_next(m->l, &b) ? NULL : "");
        if (s->index == 2)
                lg_scope_end(m->c, m->outer);
        if (s->index == 3)
                lg_close(m->c);
        if (s->index == 4)
                m->outer = lg_scope_begin(m->c);
        return true;
}

TEST_CASE(functions_that_meddle_are_stopped)
{
        static const char *const texts[] = {"making a batch", "making a batch", "has not returned", "", ""};
        for (int64_t i = 0; i < 5; i++) {
                lg_ctx *c = open_ctx();
                meddler m = {.c = c, .outer = lg_scope_begin(c)};
                m.d = lg_dataset_new(c, 5, LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D)), meddle, &m);
                lg_dataset *one = lg_dataset_subset(m.d, LG_INTS(i));
                m.l = lg_loader_open(c, one, 1);
                lg_batch b;
                bool ok = lg_loader_next(m.l, &b);
                assert_true(ok == (i == 4 || (i == 3 && !lg_error(c))));
                if (i < 3)
                        assert_error(c, LG_ERR_STATE, texts[i]);
                lg_clear_error(c);
                lg_loader_close(m.l);
                lg_close(c);
        }
}

TEST_CASE(wrong_arguments_are_told)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        source from = new_source();
        const lg_fields f = three_fields();
        lg_fields bad = f;
        assert_null(lg_dataset_new(c, -1, f, make, &from, .release = released));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_stream()");
        assert_null(lg_dataset_new(c, 1, f, NULL, &from, .release = released));
        assert_error(c, LG_ERR_ARGUMENT, "function is NULL");
        bad.count = 9;
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_ARGUMENT, "9 fields");
        bad = f;
        bad.field[1].name = NULL;
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_ARGUMENT, "field 1 has no name");
        bad = f;
        bad.field[1].dtype = (lg_dtype)77;
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_DTYPE, "field y");
        bad.field[1] = LG_FIELD("y", LG_F32, LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1));
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_SHAPE, "8 dimensions");
        bad.field[1] = LG_FIELD("y", LG_F32, LG_SHAPE(-1));
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_SHAPE, "-1");
        bad.field[1] = LG_RAGGED_FIELD("y", LG_F32, LG_SHAPE_0D, 0);
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_SHAPE, "ragged");
        bad.field[1] = LG_RAGGED_FIELD("y", LG_U8, LG_SHAPE(3), -1);
        assert_null(lg_dataset_new(c, 1, bad, make, &from, .release = released));
        assert_error(c, LG_ERR_ARGUMENT, "-1");
        assert_null(lg_dataset_new(NULL, 1, f, make, &from, .release = released));
        assert_int_equal(from.releases, 10);
        lg_dataset *d = own(c, &from), *o = own(other, &from);
        assert_null(lg_dataset_subset(d, LG_INTS(0, 23)));
        assert_error(c, LG_ERR_ARGUMENT, "number 1 of the list is sample 23; there are 23");
        assert_null(lg_dataset_subset(NULL, LG_INTS(0)));
        assert_null(lg_dataset_concat(c, d, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "NULL");
        assert_null(lg_dataset_concat(c, d, o));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        lg_dataset *a, *b;
        assert_false(lg_dataset_split(d, 1.5, &a, &b));
        assert_error(c, LG_ERR_ARGUMENT, "1.5");
        assert_false(lg_dataset_split(d, NAN, &a, &b));
        assert_error(c, LG_ERR_ARGUMENT, "nan");
        assert_false(lg_dataset_split(d, 0.5, &a, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "second is NULL");
        assert_null(a);
        const int64_t many = (int64_t)1 << 58;
        lg_dataset *huge = lg_dataset_new(c, 64, LG_FIELDS(LG_FIELD("x", LG_F64, LG_SHAPE(many))), make, &from);
        assert_null(lg_loader_open(c, huge, 64)); /* 2^67 bytes */
        assert_error(c, LG_ERR_SHAPE, "lg_loader_open: the shape (64, 288230376151711744) has too many elements");
        assert_null(lg_loader_open(c, o, 2));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        assert_null(lg_loader_open(c, d, 2, .workers = -1));
        assert_error(c, LG_ERR_ARGUMENT, "LG_AUTO");
        const lg_field twice = LG_FIELD("x", LG_F32, LG_SHAPE_0D);
        assert_null(lg_dataset_stream(c, LG_FIELDS(twice, LG_FIELD("y", LG_F32, LG_SHAPE_0D), twice), make, &from));
        assert_error(c, LG_ERR_ARGUMENT, "two fields are called x");
        assert_null(lg_loader_open(c, d, 2, .workers = 1, .prefetch = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".prefetch = -1");
        assert_null(lg_loader_open(c, d, 2, .workers = 1, .prefetch = INT_MAX));
        assert_error(c, LG_ERR_ARGUMENT, "65536");
        lg_close(c);
        lg_close(other);
        assert_int_equal(from.releases, 12);
}

/* ---- streams ---- */

static bool next(lg_sample *s, void *user)
{
        source *from = user;
        if (from->at == from->size)
                return false;
        assert_int_equal(s->index, from->at);
        s->index = from->at++;
        return make(s, user);
}

static bool seek(void *user, int64_t sample)
{
        source *from = user;
        if (sample > from->size)
                return false;
        from->at = sample;
        return true;
}

TEST_CASE(streams_end_and_begin_again)
{
        for (int workers = 0; workers < 3; workers++) {
                for (int64_t size = 20; size < 24; size++) {
                        lg_ctx *c = open_ctx();
                        source from = new_source();
                        int64_t ids[64];
                        double draws[64];
                        lg_batch b;
                        from.size = size;
                        lg_dataset *d =
                                lg_dataset_stream(c, three_fields(), next, &from, .seek = seek, .release = released);
                        assert_int_equal(lg_dataset_size(d), -1);
                        lg_loader *l = lg_loader_open(c, d, 4, .workers = workers);
                        assert_null(lg_loader_open(c, d, 4));
                        assert_error(c, LG_ERR_STATE, "another loader reads this stream");
                        assert_int_equal(lg_loader_batches(l), -1);
                        for (int e = 0; e < 2; e++) {
                                assert_int_equal(epoch(l, ids, draws), size);
                                for (int i = 0; i < size; i++)
                                        assert_int_equal(ids[i], i);
                        }
                        assert_true(lg_loader_next(l, &b)); /* left in the middle */
                        assert_int_equal(b.count, -1);
                        lg_loader_restart(l);
                        assert_int_equal(epoch(l, ids, draws), size);
                        from.fail_at = 5;
                        assert_true(lg_loader_next(l, &b));
                        assert_false(lg_loader_next(l, &b));
                        assert_error(c, LG_ERR_IO, "sample 5: the well");
                        from.fail_at = -1;
                        assert_int_equal(epoch(l, ids, draws), size);
                        lg_loader_close(l);
                        l = lg_loader_open(c, d, 4, .drop_last = true, .workers = workers);
                        assert_int_equal(epoch(l, ids, draws), size / 4 * 4);
                        assert_ok(c);
                        lg_close(c);
                        assert_int_equal(from.releases, 1);
                }
        }
}

TEST_CASE(streams_have_one_order)
{
        lg_ctx *c = open_ctx();
        source from = new_source();
        int64_t ids[64];
        double draws[64];
        lg_batch b;
        lg_dataset *d = lg_dataset_stream(c, three_fields(), next, &from);
        assert_null(lg_loader_open(c, d, 4, .shuffle = true));
        assert_error(c, LG_ERR_ARGUMENT, "one order");
        assert_null(lg_dataset_subset(d, LG_INTS(0)));
        assert_error(c, LG_ERR_ARGUMENT, "stream");
        assert_false(lg_dataset_get(d, 0, &b));
        assert_error(c, LG_ERR_STATE, "stream");
        lg_loader *l = lg_loader_open(c, d, 4, .workers = 1);
        assert_int_equal(epoch(l, ids, draws), SAMPLES);
        assert_false(lg_loader_next(l, &b));
        assert_error(c, LG_ERR_STATE, "stands at sample 23 and is to go on at 0, but it has no .seek");
        lg_close(c);
}

/* ---- views ---- */

TEST_CASE(views_choose_samples)
{
        lg_ctx *c = open_ctx();
        source from = new_source();
        int64_t ids[128];
        double draws[128];
        lg_dataset *d = own(c, &from), *a, *b, *a2, *b2;
        lg_dataset *some = lg_dataset_subset(d, LG_INTS(5, 5, 0, 22)),
                   *none = lg_dataset_subset(d, LG_INTS_OF(0, NULL));
        lg_dataset *both = lg_dataset_concat(c, none, some, d, none, some);
        lg_dataset_free(some);
        lg_dataset_free(d);
        lg_dataset_free(none);
        assert_int_equal(lg_dataset_size(both), 4 + SAMPLES + 4);
        lg_loader *l = lg_loader_open(c, both, 7, .workers = 2);
        assert_int_equal(epoch(l, ids, draws), 31);
        const int64_t begin[] = {5, 5, 0, 22, 0, 1, 2};
        assert_memory_equal(ids, begin, sizeof begin);
        assert_int_equal(ids[26], 22);
        assert_int_equal(ids[30], 22);
        lg_loader_close(l);
        assert_true(lg_dataset_split(both, 0.3, &a, &b, .seed = 5));
        assert_true(lg_dataset_split(both, 0.3, &a2, &b2, .seed = 5));
        lg_dataset_free(both);
        assert_int_equal(lg_dataset_size(a), 9);
        assert_int_equal(lg_dataset_size(b), 22);
        int64_t again[128], count[SAMPLES] = {0};
        lg_loader *la = lg_loader_open(c, a, 7), *lb = lg_loader_open(c, b, 7), *la2 = lg_loader_open(c, a2, 7);
        assert_int_equal(epoch(la, ids, draws), 9);
        assert_int_equal(epoch(la2, again, draws), 9);
        assert_memory_equal(ids, again, 9 * sizeof *ids);
        assert_int_equal(epoch(lb, ids + 9, draws), 22);
        for (int i = 0; i < 31; i++)
                count[ids[i]]++;
        for (int i = 0; i < SAMPLES; i++)
                assert_int_equal(count[i], i == 5 ? 5 : i == 0 || i == 22 ? 3 : 1);
        assert_ok(c);
        lg_close(c);
        assert_int_equal(from.releases, 1);
}

TEST_CASE(joined_sets_have_the_same_fields)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu()),
                  *y = lg_zeros(c, LG_SHAPE(4), .device = lg_cpu());
        lg_dataset *a = lg_dataset_list(c, LG_LIST(x)), *b = lg_dataset_tensors(c, x, y),
                   *e = lg_dataset_list(c, LG_LIST(y));
        assert_null(lg_dataset_concat(c, a, b));
        assert_error(c, LG_ERR_SHAPE, "1 fields but number 1 has 2");
        assert_null(lg_dataset_concat(c, a, e));
        assert_error(c, LG_ERR_SHAPE, "field x is f32 (2,) in the first data set but f32 () in number 1");
        assert_null(lg_dataset_list(c, LG_LIST(x, lg_zeros(c, LG_SHAPE(3), .device = lg_cpu()))));
        assert_error(c, LG_ERR_SHAPE, "x has 4 rows but y has 3");
        lg_loader *l = lg_loader_open(c, a, 3);
        lg_each_batch(batch, l)
        {
                assert_int_equal(batch.fields, 1);
                assert_null(batch.y);
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- random numbers ---- */

static bool draw_many(lg_sample *s, void *user)
{
        double *sums = user, *x = s->data[0];
        for (int i = 0; i < 20000; i++) {
                double u = lg_rng_uniform(s->rng), z = lg_rng_normal(s->rng);
                int64_t k = lg_rng_below(s->rng, 3), big = lg_rng_below(s->rng, INT64_MAX);
                assert_true(u >= 0 && u < 1 && k >= 0 && k < 3 && big >= 0);
                sums[0] += u;
                sums[1] += u * u;
                sums[2] += z;
                sums[3] += z * z;
                sums[4 + k]++;
                sums[7] += (double)big / (double)INT64_MAX;
        }
        assert_int_equal(lg_rng_below(s->rng, 1), 0);
        assert_int_equal(lg_rng_below(s->rng, 0), 0);
        assert_int_equal(lg_rng_below(s->rng, -5), 0);
        *x = sums[0];
        return true;
}

TEST_CASE(random_numbers_are_random)
{
        lg_ctx *c = open_ctx();
        double s[8] = {0};
        lg_batch b;
        assert_true(lg_dataset_get(lg_dataset_new(c, 1, LG_FIELDS(LG_FIELD("x", LG_F64, LG_SHAPE(1))), draw_many, s), 0,
                                   &b));
        for (int i = 0; i < 8; i++)
                s[i] /= 20000;
        assert_near(s[0], 0.5, 0.01);
        assert_near(s[1], 1.0 / 3, 0.01);
        assert_near(s[2], 0, 0.03);
        assert_near(s[3], 1, 0.05);
        for (int k = 4; k < 7; k++)
                assert_near(s[k], 1.0 / 3, 0.015);
        assert_near(s[7], 0.5, 0.01);
        assert_ok(c);
        lg_close(c);
}
