/* batch.c - makes batches in host memory: stacks samples, pads ragged fields, or calls a collate function. */
#include <string.h>
#include "data.h"

/* ---- plans ---- */

/* Stores the bits of one element of f's padding value, converted to f's dtype, in *ret. Returns false with an error. */
static bool find_padding(lg_ctx *c, const lg_field *f, uint64_t *ret)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = scope.id ? lg_full(c, LG_SHAPE(1), f->pad, .dtype = f->dtype, .device = lg_cpu()) : NULL;
        if (t)
                memcpy(ret, lg__data(t), lg__dtype_bytes(f->dtype));
        lg_scope_end(c, scope);
        return t != NULL;
}

/* Returns the number of samples of the largest batch of this rank. */
static int64_t most_rows(const lg__batch_plan *plan)
{
        const int64_t last = plan->rows > 0 ? lg__batch_places(plan, plan->batches - 1).count : 0;
        return plan->rows < 0 || (plan->batches > 1 && last < plan->batch) ? plan->batch : last;
}

/* Returns false and sets an error if a batch of some field would overflow the element count. */
static bool batches_fit(const lg__batch_plan *plan, lg_ctx *c, const lg_fields *fields)
{
        for (int f = 0; f < fields->count; f++) {
                const lg_shape *of = &fields->field[f].shape;
                lg_shape s = {.ndim = of->ndim + 1, .size = {most_rows(plan)}};
                memcpy(s.size + 1, of->size, (size_t)of->ndim * sizeof *s.size);
                if (!lg__shape_valid(c, "lg_loader_open", s))
                        return false;
        }
        return true;
}

static void add_part(lg__batch_plan *plan, lg_field field, int lengths_of)
{
        plan->part[plan->parts] = field;
        plan->lengths_of[plan->parts++] = lengths_of;
}

bool lg__batch_plan_init(lg__batch_plan *plan, lg_ctx *c)
{
        plan->in = plan->out = plan->set->fields;
        if (plan->collate && plan->collate->infer && !plan->collate->infer(plan->collate, c, &plan->in, &plan->out))
                return false;
        if (plan->collate && !plan->collate->infer)
                plan->out = plan->collate->fields;
        if (!batches_fit(plan, c, &plan->in) || !batches_fit(plan, c, &plan->out))
                return false;
        for (int f = 0; f < plan->out.count; f++) {
                const lg_field *field = &plan->out.field[f];
                add_part(plan, *field, -1);
                if (field->ragged && !find_padding(c, field, &plan->pad[f]))
                        return false;
        }
        for (int f = 0; f < plan->out.count; f++) {
                if (plan->out.field[f].ragged)
                        add_part(plan, LG_FIELD(plan->out.field[f].name, LG_I64, LG_SHAPE_0D), f);
        }
        return true;
}

bool lg__batch_plan_is_direct(const lg__batch_plan *plan)
{
        return !plan->collate && plan->parts == plan->in.count;
}

size_t lg__part_bytes(const lg__batch_plan *plan, int part)
{
        return (size_t)most_rows(plan) * lg__field_bytes(&plan->part[part]);
}

lg_shape lg__part_shape(const lg__batch_plan *plan, int part, const lg__host_batch *batch)
{
        const lg_field *f = &plan->part[part];
        lg_shape s = {.ndim = f->shape.ndim + 1};
        s.size[0] = batch->count;
        memcpy(s.size + 1, f->shape.size, (size_t)f->shape.ndim * sizeof *s.size);
        if (f->ragged)
                s.size[1] = batch->longest[part];
        return s;
}

/* ---- batch builders ---- */

static size_t samples_bytes(const lg__batch_plan *plan, int f)
{
        return (size_t)most_rows(plan) * lg__field_bytes(&plan->in.field[f]) + 1;
}

static size_t lengths_bytes(const lg__batch_plan *plan)
{
        return (size_t)most_rows(plan) * sizeof(int64_t) + 1;
}

bool lg__batch_builder_init(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan)
{
        memset(builder, 0, sizeof *builder);
        bool ok = lg__sampler_init(&builder->sampler, c, plan->set);
        for (int f = 0; ok && f < plan->in.count; f++) {
                const lg_field *field = &plan->in.field[f];
                if (plan->collate || field->ragged)
                        ok = (builder->samples[f] = lg__host_alloc(c, samples_bytes(plan, f))) != NULL;
                if (ok && field->ragged)
                        ok = (builder->lengths[f] = lg__host_alloc(c, lengths_bytes(plan))) != NULL;
        }
        return ok;
}

void lg__batch_builder_free(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan)
{
        for (int f = 0; f < plan->in.count; f++) {
                if (builder->samples[f])
                        lg__host_free(c, builder->samples[f], samples_bytes(plan, f));
                if (builder->lengths[f])
                        lg__host_free(c, builder->lengths[f], lengths_bytes(plan));
        }
        lg__sampler_free(&builder->sampler, c);
}

/* ---- building batches ---- */

static bool failed(lg__host_batch *batch, const lg__sampler *sampler, lg_error_code otherwise, const char *text)
{
        batch->code = sampler->code ? sampler->code : otherwise;
        snprintf(batch->message, sizeof batch->message, "%s", sampler->code ? sampler->message : text);
        return false;
}

/* Makes the samples of batch b, fewer at the end of a stream. Returns false with an error in `batch` if one fails. */
static bool make_samples(const lg__batch_plan *plan, lg__batch_builder *builder, int64_t b, lg__host_batch *batch)
{
        const lg__places places = lg__batch_places(plan, b);
        const int64_t first = places.first, n = places.count;
        lg__sampler *sampler = &builder->sampler;
        for (int64_t k = 0; k < n; k++) {
                const int64_t i = plan->order ? plan->order[first + k] : first + k;
                for (int f = 0; f < plan->in.count; f++) {
                        char *to = builder->samples[f] ? builder->samples[f] : batch->data[f];
                        sampler->sample.data[f] = to ? to + (size_t)k * lg__field_bytes(&plan->in.field[f]) : NULL;
                }
                if (!lg__dataset_sample(plan->set, sampler, plan->seed, plan->epoch, i,
                                        plan->by_position ? first + k : i)) {
                        if (plan->rows < 0 && !sampler->code)
                                break;
                        return failed(batch, sampler, LG_ERR_IO, "a sample cannot be made");
                }
                for (int f = 0; f < plan->in.count; f++) {
                        if (builder->lengths[f])
                                builder->lengths[f][k] = sampler->sample.length[f];
                }
                batch->count = k + 1;
        }
        if (batch->count < plan->batch && plan->drop_last)
                batch->count = 0;
        return true;
}

/* Copies the samples of ragged field f into the batch, padded to the longest, whose row count is stored there. */
static void pad(const lg_field *f, uint64_t padding, const char *samples, const int64_t *lengths, int part,
                lg__host_batch *batch)
{
        const size_t width = lg__dtype_bytes(f->dtype);
        int64_t longest = 0, row = 1; /* row: number of elements in a row */
        for (int i = 1; i < f->shape.ndim; i++)
                row *= f->shape.size[i];
        for (int64_t k = 0; k < batch->count; k++)
                longest = lengths[k] > longest ? lengths[k] : longest;
        batch->longest[part] = longest;
        char *to = batch->data[part];
        for (int64_t k = 0; k < batch->count; k++) {
                const size_t bytes = (size_t)(lengths[k] * row) * width;
                memcpy(to, samples + (size_t)k * lg__field_bytes(f), bytes);
                to += bytes;
                for (int64_t i = 0; i < (longest - lengths[k]) * row; i++, to += width)
                        memcpy(to, &padding, width);
        }
}

static void pad_all(const lg__batch_plan *plan, const lg__batch_builder *builder, lg__host_batch *batch)
{
        for (int p = 0; p < plan->parts; p++) {
                if (plan->part[p].ragged)
                        pad(&plan->part[p], plan->pad[p], builder->samples[p], builder->lengths[p], p, batch);
                else if (plan->lengths_of[p] >= 0)
                        memcpy(batch->data[p], builder->lengths[plan->lengths_of[p]],
                               (size_t)batch->count * sizeof(int64_t));
        }
}

static bool collate(const lg__batch_plan *plan, lg__batch_builder *builder, int64_t b, lg__host_batch *batch)
{
        lg_rng rng;
        lg_collation call = {.count = batch->count, .in = plan->in, .out = plan->out, .rng = &rng};
        for (int f = 0; f < plan->in.count; f++) {
                call.from[f] = builder->samples[f];
                call.lengths[f] = builder->lengths[f];
        }
        for (int f = 0; f < plan->out.count; f++)
                call.to[f] = batch->data[f];
        lg__rng_begin(&rng, plan->seed, plan->epoch, LG__RNG_BATCH, b);
        builder->sampler.code = LG_ERR_NONE;
        if (plan->collate->run ? plan->collate->run(plan->collate, &call, &builder->sampler)
                               : plan->collate->fn(&call, plan->collate->user))
                return true;
        return failed(batch, &builder->sampler, LG_ERR_ARGUMENT, "the collate function gives false");
}

void lg__batch_build(const lg__batch_plan *plan, lg__batch_builder *builder, int64_t b, lg__host_batch *batch)
{
        batch->count = 0;
        batch->code = LG_ERR_NONE;
        if (!make_samples(plan, builder, b, batch) || !batch->count)
                return;
        if (plan->collate)
                collate(plan, builder, b, batch);
        else
                pad_all(plan, builder, batch);
}

/* ---- collate functions ---- */

static void destroy_collate(lg__object *o)
{
        lg_collate *k = (lg_collate *)o;
        lg__release(o->ctx, k->release, k->user);
        lg__fields_free(o->ctx, &k->fields);
}

static const lg__type collate_type = {.destroy = destroy_collate};

lg_collate *lg__collate_new(lg_ctx *c, lg_collate_fn *fn, void *user, void (*release)(void *user))
{
        lg_collate *k = lg__object_new(c, &collate_type, sizeof *k);
        if (!k) {
                lg__release(c, release, user);
                return NULL;
        }
        k->fn = fn;
        k->user = user;
        k->release = release;
        return k;
}

static bool are_fixed(lg_ctx *c, const lg_fields *fields)
{
        for (int f = 0; f < fields->count; f++) {
                if (fields->field[f].ragged)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "lg_collate_new: field %s is ragged; what a function makes has fixed shapes",
                                        fields->field[f].name);
        }
        return true;
}

lg_collate *lg_collate_new_with(lg_ctx *c, lg_fields fields, lg_collate_fn *fn, void *user,
                                const lg_collate_options *options)
{
        lg_collate_options o;
        lg__take_without(options, &o, sizeof o); /* .release is called even on failure */
        bool ok = lg__take(c, "lg_collate_new", options, &o, sizeof o);
        if (ok && !fn)
                ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_collate_new: the function is NULL");
        if (!ok) {
                lg__release(c, o.release, user);
                return NULL;
        }
        lg_collate *k = lg__collate_new(c, fn, user, o.release);
        return k && lg__fields_take(c, "lg_collate_new", &k->fields, &fields) && are_fixed(c, &fields)
                       ? k
                       : lg__object_destroy(k);
}

void lg_collate_free(lg_collate *k)
{
        lg__object_free(k);
}
