/* subset.c - data sets made from other data sets: a subset, the two parts of a split, a concatenation. */
#include <math.h>
#include <string.h>
#include "data.h"

/* Returns false and sets an error if d belongs to another context or is a stream (no indices). */
static bool has_numbers(lg_ctx *c, const lg_dataset *d, const char *op)
{
        if (!lg__dataset_check(c, d, op))
                return false;
        return !d->stream || lg__fail(d->object.ctx, LG_ERR_ARGUMENT,
                                      "%s: the data set is a stream, whose samples come in one order", op);
}

/* Merges flags, scratch size and depth of `base`, a data set inside d, into d; from the first also fields, classes. */
static bool take_over(lg_dataset *d, const lg_dataset *base, const char *op)
{
        d->random = d->random || base->random;
        d->calls_user_code = d->calls_user_code || base->calls_user_code;
        if (!d->fields.count)
                d->classes = base->classes;
        if (base->scratch_bytes > d->scratch_bytes)
                d->scratch_bytes = base->scratch_bytes;
        if (!lg__data_nests(d->object.ctx, op, &d->depth, base->depth))
                return false;
        return d->fields.count || lg__fields_take(d->object.ctx, op, &d->fields, &base->fields);
}

/* ---- subsets ---- */

typedef struct subset {
        lg_dataset head;
        lg_dataset *base;
        int64_t *samples; /* indices in `base`, head.size of them */
} subset;

static void subset_destroy(lg_dataset *d)
{
        subset *s = (subset *)d;
        if (s->samples)
                lg__host_free(d->object.ctx, s->samples, (size_t)d->size * sizeof *s->samples + 1);
        lg__object_done(s->base);
}

static bool subset_get(const lg_dataset *d, lg_sample *s)
{
        const subset *of = (const subset *)d;
        s->index = of->samples[s->index];
        return of->base->kind->get(of->base, s);
}

static const lg__set_kind subset_kind = {.get = subset_get, .destroy = subset_destroy, .bytes = sizeof(subset)};

static lg_dataset *make_subset(lg_dataset *d, const char *op, int64_t count, const int64_t *samples)
{
        lg_ctx *c = d->object.ctx;
        lg_dataset *made = lg__dataset_new(c, &subset_kind, count);
        subset *s = (subset *)made;
        if (!made)
                return NULL;
        s->base = lg__object_use(d);
        s->samples = lg__host_alloc(c, (size_t)count * sizeof *samples + 1);
        if (s->samples && count)
                memcpy(s->samples, samples, (size_t)count * sizeof *samples);
        return s->samples && take_over(made, d, op) ? made : lg__object_destroy(made);
}

lg_dataset *lg_dataset_subset(lg_dataset *d, lg_ints samples)
{
        if (!has_numbers(NULL, d, "lg_dataset_subset"))
                return NULL;
        lg_ctx *c = d->object.ctx;
        if (!lg__list_ok(c, "lg_dataset_subset", samples.count, samples.items))
                return NULL;
        for (int64_t i = 0; i < samples.count; i++) {
                if (samples.items[i] < 0 || samples.items[i] >= d->size)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "lg_dataset_subset: number %lld of the list is sample %lld; there are %lld",
                                        (long long)i, (long long)samples.items[i], (long long)d->size);
        }
        return make_subset(d, "lg_dataset_subset", samples.count, samples.items);
}

bool lg_dataset_split_with(lg_dataset *d, double fraction, lg_dataset **ret_first, lg_dataset **ret_second,
                           const lg_split_options *options)
{
        static const char op[] = "lg_dataset_split";
        lg_split_options o;
        if (ret_first)
                *ret_first = NULL;
        if (ret_second)
                *ret_second = NULL;
        if (!has_numbers(NULL, d, op) || !lg__take(d->object.ctx, op, options, &o, sizeof o))
                return false;
        lg_ctx *c = d->object.ctx;
        if (!ret_first || !ret_second)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", op, ret_first ? "second" : "first");
        if (ret_first == ret_second)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: first and second are one pointer", op);
        if (!(fraction >= 0 && fraction <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the fraction is %g; 0 to 1 is a part", op, fraction);
        const lg__sample_order draw = {.shuffle = true, .size = d->size, .samples = d->size};
        if (!lg__sample_order_fits(&draw, c, op))
                return false;
        const size_t bytes = (size_t)d->size * sizeof(int64_t) + 1;
        const int64_t first = (int64_t)round(fraction * (double)d->size);
        int64_t *order = lg__host_alloc(c, bytes);
        if (!order)
                return false;
        if (lg__sample_order_draw(&draw, c, o.seed ? o.seed : lg__next_seed(c), 0, order))
                *ret_first = make_subset(d, op, first, order);
        if (*ret_first)
                *ret_second = make_subset(d, op, d->size - first, order + first);
        lg__host_free(c, order, bytes);
        if (*ret_second)
                return true;
        lg_dataset_free(*ret_first);
        *ret_first = NULL;
        return false;
}

/* ---- concatenations ---- */

typedef struct concat {
        lg_dataset head;
        lg_dataset **parts;
        int64_t *ends; /* ends[i]: number of samples in parts 0 to i */
        int64_t count;
} concat;

static void concat_destroy(lg_dataset *d)
{
        concat *a = (concat *)d;
        for (int64_t i = 0; i < a->count; i++)
                lg__object_done(a->parts[i]);
        lg__free(d->object.ctx, a->parts, (size_t)a->count * sizeof *a->parts);
        lg__free(d->object.ctx, a->ends, (size_t)a->count * sizeof *a->ends);
}

static bool concat_get(const lg_dataset *d, lg_sample *s)
{
        const concat *a = (const concat *)d;
        int64_t low = 0, high = a->count - 1; /* binary search for the part that has the sample */
        while (low < high) {
                int64_t mid = (low + high) / 2;
                if (a->ends[mid] > s->index)
                        high = mid;
                else
                        low = mid + 1;
        }
        s->index -= low ? a->ends[low - 1] : 0;
        return a->parts[low]->kind->get(a->parts[low], s);
}

static const lg__set_kind concat_kind = {.get = concat_get, .destroy = concat_destroy, .bytes = sizeof(concat)};

static bool same_fields(lg_ctx *c, const lg_dataset *a, const lg_dataset *b, int64_t i)
{
        bool same = a->fields.count == b->fields.count;
        for (int f = 0; same && f < a->fields.count; f++) {
                const lg_field *x = &a->fields.field[f], *y = &b->fields.field[f];
                same = x->dtype == y->dtype && lg__shape_equal(x->shape, y->shape) && x->ragged == y->ragged;
                if (!same)
                        return lg__fail(c, LG_ERR_SHAPE,
                                        "lg_dataset_concat: field %s is %s %s%s in the first data set but %s %s%s in "
                                        "number %lld",
                                        x->name, lg_dtype_name(x->dtype), lg__shape_text(x->shape).s,
                                        x->ragged ? " ragged" : "", lg_dtype_name(y->dtype), lg__shape_text(y->shape).s,
                                        y->ragged ? " ragged" : "", (long long)i);
        }
        return same ||
               lg__fail(c, LG_ERR_SHAPE, "lg_dataset_concat: the first data set has %d fields but number %lld has %d",
                        a->fields.count, (long long)i, b->fields.count);
}

static bool join(concat *a, lg_ctx *c, int64_t count, lg_dataset *const *sets)
{
        a->parts = lg__alloc(c, (size_t)count * sizeof *a->parts);
        a->ends = a->parts ? lg__alloc(c, (size_t)count * sizeof *a->ends) : NULL;
        if (!a->ends) {
                lg__free(c, a->parts, (size_t)count * sizeof *a->parts);
                a->parts = NULL;
                return false;
        }
        a->count = count;
        for (int64_t i = 0; i < count; i++) {
                a->parts[i] = lg__object_use(sets[i]);
                a->ends[i] = a->head.size += sets[i]->size;
        }
        for (int64_t i = 0; i < count; i++) {
                if (!take_over(&a->head, sets[i], "lg_dataset_concat"))
                        return false;
        }
        return true;
}

lg_dataset *lg_dataset_concat_list(lg_ctx *c, lg_dataset *const *sets)
{
        int64_t count = 0, samples = 0;
        if (!lg__ok(c))
                return NULL;
        for (; sets && sets[count] != LG_END; count++) {
                if (!has_numbers(c, sets[count], "lg_dataset_concat") || !same_fields(c, sets[0], sets[count], count))
                        return NULL;
                if (__builtin_add_overflow(samples, sets[count]->size, &samples))
                        return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_concat: there are more than 2^63 samples");
        }
        if (!count)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_concat: there is no data set");
        lg_dataset *d = lg__dataset_new(c, &concat_kind, 0);
        return d && join((concat *)d, c, count, sets) ? d : lg__object_destroy(d);
}
