/* dataset.c - functions for all kinds of data sets: creation, destruction, checks, fields, reading a single sample. */
#include <string.h>
#include "data.h"

const char *const lg__field_names[LG_MAX_FIELDS] = {"x",      "y",      "field2", "field3",
                                                    "field4", "field5", "field6", "field7"};

static void destroy(lg__object *o)
{
        lg_dataset *d = (lg_dataset *)o;
        if (d->kind->destroy)
                d->kind->destroy(d);
        lg__fields_free(o->ctx, &d->fields);
}

static const lg__type type = {.destroy = destroy};

lg_dataset *lg__dataset_new(lg_ctx *c, const lg__set_kind *kind, int64_t size)
{
        lg_dataset *d = lg__object_new(c, &type, kind->bytes);
        if (!d)
                return NULL;
        d->kind = kind;
        d->size = size;
        return d;
}

static bool field_is_good(lg_ctx *c, const char *op, const lg_field *f, int i)
{
        if (!f->name || !f->name[0])
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: field %d has no name", op, i);
        for (int k = 0; k < i; k++)
                if (!strcmp(f[-1 - k].name, f->name))
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: two fields are called %s", op, f->name);
        if (f->dtype < LG_F32 || f->dtype >= LG_DTYPE_COUNT)
                return lg__fail(c, LG_ERR_DTYPE, "%s: field %s has dtype %d, which is none", op, f->name, f->dtype);
        if (!lg__shape_valid(c, op, f->shape))
                return false;
        if (f->shape.ndim == LG_MAX_DIMS)
                return lg__fail(c, LG_ERR_SHAPE, "%s: field %s has %d dimensions; a batch has one more, and %d at most",
                                op, f->name, f->shape.ndim, LG_MAX_DIMS);
        if (f->ragged && f->shape.ndim < 1)
                return lg__fail(c, LG_ERR_SHAPE, "%s: field %s is ragged, but has no dimension that can differ", op,
                                f->name);
        return !f->ragged || lg__dtype_holds(c, op, f->dtype, f->pad);
}

bool lg__fields_take(lg_ctx *c, const char *op, lg_fields *to, const lg_fields *fields)
{
        if (fields->count < 1 || fields->count > LG_MAX_FIELDS)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %d fields; 1 to %d can be had: LG_FIELDS(...)", op,
                                fields->count, LG_MAX_FIELDS);
        for (int i = 0; i < fields->count; i++) {
                if (!field_is_good(c, op, &fields->field[i], i))
                        return false;
                to->field[i] = fields->field[i];
                to->field[i].name = lg__strdup(c, fields->field[i].name);
                if (!to->field[i].name)
                        return false;
                to->count = i + 1;
        }
        return true;
}

void lg__fields_free(lg_ctx *c, lg_fields *fields)
{
        for (int f = 0; f < fields->count; f++)
                lg__strfree(c, (char *)fields->field[f].name);
        fields->count = 0;
}

bool lg__dataset_check(lg_ctx *c, const lg_dataset *d, const char *op)
{
        if (!d || (c && d->object.ctx != c))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the data set is %s", op, d ? "of another context" : "NULL");
        return lg__ok(d->object.ctx) && lg__object_lasts(&d->object, op);
}

bool lg__data_nests(lg_ctx *c, const char *op, int *depth, int below)
{
        if (below >= LG_MAX_DATA_DEPTH - 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: data sets or transforms nest more than %d levels deep", op,
                                LG_MAX_DATA_DEPTH);
        *depth = below >= *depth ? below + 1 : *depth;
        return true;
}

void lg_dataset_free(lg_dataset *d)
{
        lg__object_free(d);
}

int64_t lg_dataset_size(const lg_dataset *d)
{
        return d ? d->size : 0;
}

lg_fields lg_dataset_fields(const lg_dataset *d)
{
        lg_fields none = {.count = 0};
        return d ? d->fields : none;
}

lg_names lg_dataset_classes(const lg_dataset *d)
{
        return d ? d->classes : (lg_names){0, NULL};
}

/* ---- one sample ---- */

static bool get(lg_dataset *d, int64_t i, lg__sampler *sampler, lg_batch *b)
{
        lg_ctx *c = d->object.ctx;
        for (int f = 0; f < d->fields.count; f++) {
                b->field[f] = lg__tensor_empty(c, lg_cpu(), d->fields.field[f].dtype, d->fields.field[f].shape);
                if (!b->field[f])
                        return false;
                sampler->sample.data[f] = lg__data(b->field[f]);
        }
        lg_scope fence = lg__scope_begin(c);
        uint32_t made;
        if (!fence.id)
                return false;
        c->user_calls++;
        bool ok = lg__dataset_sample(d, sampler, 0, 0, i, i);
        c->user_calls--;
        lg__scope_leave(c, fence, c->scope, NULL, 0, &made);
        if (!ok)
                return lg__fail(c, sampler->code ? sampler->code : LG_ERR_IO, "lg_dataset_get: %s",
                                sampler->code ? sampler->message : "the sample's function gives false");
        for (int f = 0; f < d->fields.count; f++)
                if (d->fields.field[f].ragged) /* keeps only the rows of this sample */
                        b->field[f] = lg_slice(b->field[f], 0, 0, sampler->sample.length[f]);
        return lg__ok(c);
}

bool lg_dataset_get_with(lg_dataset *d, int64_t i, lg_batch *ret, size_t size)
{
        lg__sampler sampler;
        if (!lg__dataset_check(NULL, d, "lg_dataset_get") || !lg__unrecorded(d->object.ctx, "lg_dataset_get"))
                return false;
        lg_ctx *c = d->object.ctx;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_get: the batch is NULL");
        if (d->stream)
                return lg__fail(c, LG_ERR_STATE, "lg_dataset_get: the data set is a stream; a loader reads it");
        if (i < 0 || i >= d->size)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_dataset_get: there is no sample %lld; there are %lld",
                                (long long)i, (long long)d->size);
        lg_batch b = {.index = i, .count = d->size, .fields = d->fields.count};
        lg__object_use(d);
        bool ok = lg__sampler_init(&sampler, c, d) && get(d, i, &sampler, &b);
        lg__sampler_free(&sampler, c);
        lg__object_done(d);
        b.x = b.field[0];
        b.y = b.field[1];
        if (ok)
                lg__give(ret, size, &b, sizeof b);
        return ok;
}
