/* batch.c - makes batches in memory: samples side by side, padded where they are ragged, or as a function makes them.
 */
#include <string.h>
#include "data.h"

/* ---- what batches are ---- */

/* The bits of the value that a field is padded with. */
static bool find_padding(lg_ctx *c, const lg_field *f, uint64_t *ret)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = scope.id ? lg_full(c, f->pad, LG_SHAPE(1), .dtype = f->dtype, .device = lg_cpu()) : NULL;
        if (t)
                memcpy(ret, lg__data(t), lg__dtype_bytes(f->dtype));
        if (scope.id)
                lg_scope_end(c, scope);
        return t != NULL;
}

/* Rows of the biggest batch. */
static int64_t most_rows(const lg__job *j)
{
        const int64_t last = j->rows > 0 ? lg__job_places(j, j->batches - 1).count : 0;
        return j->rows < 0 || (j->batches > 1 && last < j->batch) ? j->batch : last;
}

/* False, with an error: a batch of one of them has more elements than there can be. */
static bool batches_fit(const lg__job *j, lg_ctx *c, const lg_fields *fields)
{
        for (int f = 0; f < fields->count; f++) {
                const lg_shape *of = &fields->field[f].shape;
                lg_shape s = {.ndim = of->ndim + 1, .size = {most_rows(j)}};
                memcpy(s.size + 1, of->size, (size_t)of->ndim * sizeof *s.size);
                if (!lg__shape_valid(c, "lg_loader_open", s))
                        return false;
        }
        return true;
}

static void add_part(lg__job *j, lg_field field, int lengths_of)
{
        j->part[j->parts] = field;
        j->lengths_of[j->parts++] = lengths_of;
}

bool lg__job_init(lg__job *j, lg_ctx *c)
{
        j->in = j->out = j->set->fields;
        if (j->collate && j->collate->plan && !j->collate->plan(j->collate, c, &j->in, &j->out))
                return false;
        if (j->collate && !j->collate->plan)
                j->out = j->collate->fields;
        if (!batches_fit(j, c, &j->in) || !batches_fit(j, c, &j->out))
                return false;
        for (int f = 0; f < j->out.count; f++) {
                const lg_field *field = &j->out.field[f];
                add_part(j, *field, -1);
                if (field->ragged && !find_padding(c, field, &j->pad[f]))
                        return false;
        }
        for (int f = 0; f < j->out.count; f++) {
                if (j->out.field[f].ragged)
                        add_part(j, LG_FIELD(j->out.field[f].name, LG_I64, LG_SHAPE_0D), f);
        }
        return true;
}

bool lg__job_is_direct(const lg__job *j)
{
        return !j->collate && j->parts == j->in.count;
}

size_t lg__part_bytes(const lg__job *j, int part)
{
        return (size_t)most_rows(j) * lg__field_bytes(&j->part[part]);
}

lg_shape lg__part_shape(const lg__job *j, int part, const lg__made *made)
{
        const lg_field *f = &j->part[part];
        lg_shape s = {.ndim = f->shape.ndim + 1};
        s.size[0] = made->count;
        memcpy(s.size + 1, f->shape.size, (size_t)f->shape.ndim * sizeof *s.size);
        if (f->ragged)
                s.size[1] = made->longest[part];
        return s;
}

/* ---- makers ---- */

static size_t slot_bytes(const lg__job *j, int f)
{
        return (size_t)most_rows(j) * lg__field_bytes(&j->in.field[f]) + 1;
}

static size_t lengths_bytes(const lg__job *j)
{
        return (size_t)most_rows(j) * sizeof(int64_t) + 1;
}

bool lg__maker_begin(lg__maker *m, lg_ctx *c, const lg__job *j)
{
        memset(m, 0, sizeof *m);
        bool ok = lg__hand_begin(&m->hand, c, j->set);
        for (int f = 0; ok && f < j->in.count; f++) {
                const lg_field *field = &j->in.field[f];
                if (j->collate || field->ragged)
                        ok = (m->slots[f] = lg__host_alloc(c, slot_bytes(j, f))) != NULL;
                if (ok && field->ragged)
                        ok = (m->lengths[f] = lg__host_alloc(c, lengths_bytes(j))) != NULL;
        }
        return ok;
}

void lg__maker_end(lg__maker *m, lg_ctx *c, const lg__job *j)
{
        for (int f = 0; f < j->in.count; f++) {
                if (m->slots[f])
                        lg__host_free(c, m->slots[f], slot_bytes(j, f));
                if (m->lengths[f])
                        lg__host_free(c, m->lengths[f], lengths_bytes(j));
        }
        lg__hand_end(&m->hand, c);
}

/* ---- making ---- */

static bool failed(lg__made *made, const lg__hand *h, lg_error_code otherwise, const char *text)
{
        made->code = h->code ? h->code : otherwise;
        snprintf(made->message, sizeof made->message, "%s", h->code ? h->message : text);
        return false;
}

/* Samples of batch b, to where they stay or into the slots. A stream may end before. */
static bool make_samples(const lg__job *j, lg__maker *m, int64_t b, lg__made *made)
{
        const lg__places places = lg__job_places(j, b);
        const int64_t first = places.first, n = places.count;
        lg__hand *h = &m->hand;
        for (int64_t k = 0; k < n; k++) {
                const int64_t i = j->order ? j->order[first + k] : first + k;
                for (int f = 0; f < j->in.count; f++) {
                        char *to = m->slots[f] ? m->slots[f] : made->data[f];
                        h->sample.data[f] = to ? to + (size_t)k * lg__field_bytes(&j->in.field[f]) : NULL;
                }
                if (!lg__dataset_sample(j->set, h, j->seed, j->epoch, i, j->by_place ? first + k : i)) {
                        if (j->rows < 0 && !h->code)
                                break;
                        return failed(made, h, LG_ERR_IO, "a sample cannot be made");
                }
                for (int f = 0; f < j->in.count; f++) {
                        if (m->lengths[f])
                                m->lengths[f][k] = h->sample.length[f];
                }
                made->count = k + 1;
        }
        if (made->count < j->batch && j->drop_last)
                made->count = 0;
        return true;
}

/* Samples of one ragged field from their slots, each as long as the longest. */
static void pad(const lg_field *f, uint64_t padding, const char *slots, const int64_t *lengths, int part,
                lg__made *made)
{
        const size_t width = lg__dtype_bytes(f->dtype);
        int64_t longest = 0, row = 1; /* elements of a row */
        for (int i = 1; i < f->shape.ndim; i++)
                row *= f->shape.size[i];
        for (int64_t k = 0; k < made->count; k++)
                longest = lengths[k] > longest ? lengths[k] : longest;
        made->longest[part] = longest;
        char *to = made->data[part];
        for (int64_t k = 0; k < made->count; k++) {
                const size_t bytes = (size_t)(lengths[k] * row) * width;
                memcpy(to, slots + (size_t)k * lg__field_bytes(f), bytes);
                to += bytes;
                for (int64_t i = 0; i < (longest - lengths[k]) * row; i++, to += width)
                        memcpy(to, &padding, width);
        }
}

static void pad_all(const lg__job *j, const lg__maker *m, lg__made *made)
{
        for (int p = 0; p < j->parts; p++) {
                if (j->part[p].ragged)
                        pad(&j->part[p], j->pad[p], m->slots[p], m->lengths[p], p, made);
                else if (j->lengths_of[p] >= 0)
                        memcpy(made->data[p], m->lengths[j->lengths_of[p]], (size_t)made->count * sizeof(int64_t));
        }
}

static bool collate(const lg__job *j, lg__maker *m, int64_t b, lg__made *made)
{
        lg_rng rng;
        lg_collation call = {.count = made->count, .in = j->in, .out = j->out, .rng = &rng};
        for (int f = 0; f < j->in.count; f++) {
                call.from[f] = m->slots[f];
                call.lengths[f] = m->lengths[f];
        }
        for (int f = 0; f < j->out.count; f++)
                call.to[f] = made->data[f];
        lg__rng_begin(&rng, j->seed, j->epoch, LG__RNG_BATCH, b);
        m->hand.code = LG_ERR_NONE;
        if (j->collate->run ? j->collate->run(j->collate, &call, &m->hand) : j->collate->fn(&call, j->collate->user))
                return true;
        return failed(made, &m->hand, LG_ERR_ARGUMENT, "the collate function gives false");
}

void lg__batch_make(const lg__job *j, lg__maker *m, int64_t b, lg__made *made)
{
        made->count = 0;
        made->code = LG_ERR_NONE;
        if (!make_samples(j, m, b, made) || !made->count)
                return;
        if (j->collate)
                collate(j, m, b, made);
        else
                pad_all(j, m, made);
}
