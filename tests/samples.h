/* samples.h - samples of a program's own, which count how often they are made and fail when they are told to. */
#ifndef LG_TEST_SAMPLES_H
#define LG_TEST_SAMPLES_H

#include <pthread.h>
#include "failing.h"

#define SAMPLES 23

typedef struct source {
        int64_t calls, fail_at, releases, at, size; /* fail_at: that sample fails; -1: none */
        pthread_mutex_t lock;
        const char *why;
} source;

static inline source new_source(void)
{
        return (source){.fail_at = -1, .size = SAMPLES, .lock = PTHREAD_MUTEX_INITIALIZER, .why = "the well is dry"};
}

static inline void released(void *user)
{
        ((source *)user)->releases++;
}

/* x: (i, i + 0.5, a uniform number), y: 100 + i, z: i as u8. */
static inline bool make(lg_sample *s, void *user)
{
        source *from = user;
        float *x = s->data[0];
        pthread_mutex_lock(&from->lock);
        from->calls++;
        int64_t fail_at = from->fail_at;
        pthread_mutex_unlock(&from->lock);
        if (s->index == fail_at)
                return from->why ? lg_sample_fail(s, "sample %lld: %s, %.1f", (long long)s->index, from->why, 0.5)
                                 : false;
        x[0] = (float)s->index;
        x[1] = (float)s->index + 0.5f;
        x[2] = (float)lg_rng_uniform(s->rng);
        *(int64_t *)s->data[1] = 100 + s->index;
        *(uint8_t *)s->data[2] = (uint8_t)s->index;
        return true;
}

static inline lg_fields three_fields(void)
{
        return LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE(3)), LG_FIELD("y", LG_I64, LG_SHAPE_0D),
                         LG_FIELD("z", LG_U8, LG_SHAPE(1)));
}

static inline lg_dataset *own(lg_ctx *c, source *from)
{
        return lg_dataset_new(c, SAMPLES, three_fields(), make, from, .release = released);
}

/* Checks a batch of own samples and notes which they are. */
static inline int take(const lg_batch *b, int64_t *ids, double *draws, int count)
{
        double x[3 * 64], y[64], z[64];
        assert_int_equal(b->fields, 3);
        assert_ptr_equal(b->x, b->field[0]);
        assert_ptr_equal(b->y, b->field[1]);
        assert_null(b->length[0]);
        int64_t n = read_all(b->y, y, 64);
        assert_int_equal(read_all(b->x, x, 3 * 64), 3 * n);
        assert_int_equal(read_all(b->field[2], z, 64), n);
        for (int i = 0; i < n; i++, count++) {
                ids[count] = (int64_t)x[3 * i];
                draws[count] = x[3 * i + 2];
                assert_true(x[3 * i + 1] == x[3 * i] + 0.5 && y[i] == x[3 * i] + 100 && z[i] == x[3 * i]);
        }
        return count;
}

static inline int epoch(lg_loader *l, int64_t *ids, double *draws)
{
        int count = 0;
        for (lg_batch b; lg_loader_next(l, &b);)
                count = take(&b, ids, draws, count);
        return count;
}

#endif
