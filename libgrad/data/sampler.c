/* sampler.c - samplers, which make one sample at a time in a thread: random numbers, errors, scratch memory. */
#include <string.h>
#include "../../kernels/philox.h"
#include "data.h"

/* ---- random numbers ---- */

void lg__rng_begin(lg_rng *r, uint64_t seed, int64_t epoch, lg__rng_kind kind, int64_t id)
{
        *r = (lg_rng){.seed = seed,
                      .epoch = (uint32_t)epoch,
                      .id = {(uint32_t)id, (uint32_t)((uint64_t)id >> 32) ^ (uint32_t)kind << 30},
                      .used = 4};
}

/* Returns the next `count` (at most 4) random words, from one Philox block; skips words left in a block if too few. */
static const uint32_t *words(lg_rng *r, int count)
{
        if (r->used + count > 4) {
                lg_philox_words at = {{r->block++, r->epoch, r->id[0], r->id[1]}};
                at = lg_philox(at, (uint32_t)r->seed, (uint32_t)(r->seed >> 32));
                memcpy(r->words, at.w, sizeof at.w);
                r->used = 0;
        }
        r->used += count;
        return r->words + r->used - count;
}

double lg_rng_uniform(lg_rng *r)
{
        if (!r)
                return 0;
        const uint32_t *w = words(r, 2);
        return lg_philox_uniform53(w[0], w[1]);
}

double lg_rng_normal(lg_rng *r)
{
        lg_philox_words b;
        double z[2];
        if (!r)
                return 0;
        memcpy(b.w, words(r, 4), sizeof b.w);
        lg_philox_normal2(b, z);
        return z[0];
}

/* Returns the upper 64 bits of the product of n and 64 random bits: uniform in [0, n) with a bias below n / 2^64. */
int64_t lg_rng_below(lg_rng *r, int64_t n)
{
        if (!r || n < 1)
                return 0;
        const uint32_t *w = words(r, 2);
        uint64_t bits = (uint64_t)w[0] << 32 | w[1], m = (uint64_t)n;
        uint64_t low = (bits & 0xffffffff) * (m & 0xffffffff), mid = (bits >> 32) * (m & 0xffffffff) + (low >> 32);
        uint64_t cross = (bits & 0xffffffff) * (m >> 32) + (mid & 0xffffffff);
        return (int64_t)((bits >> 32) * (m >> 32) + (mid >> 32) + (cross >> 32));
}

/* ---- samplers ---- */

bool lg__sampler_init(lg__sampler *sampler, lg_ctx *c, const lg_dataset *d)
{
        *sampler = (lg__sampler){.scratch_bytes = d->scratch_bytes};
        sampler->scratch = sampler->scratch_bytes ? lg__host_alloc(c, sampler->scratch_bytes) : NULL;
        return sampler->scratch || !sampler->scratch_bytes;
}

void lg__sampler_free(lg__sampler *sampler, lg_ctx *c)
{
        if (sampler->scratch)
                lg__host_free(c, sampler->scratch, sampler->scratch_bytes);
        sampler->scratch = NULL;
}

static bool fail(lg_sample *s, lg_error_code code, const char *format, va_list args)
{
        lg__sampler *sampler = (lg__sampler *)s;
        if (!sampler->code) {
                locale_t was = lg__point_begin();
                sampler->code = code;
                vsnprintf(sampler->message, sizeof sampler->message, format, args);
                lg__point_end(was);
        }
        return false;
}

bool lg__sample_fail(lg_sample *s, lg_error_code code, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fail(s, code, format, args);
        va_end(args);
        return false;
}

bool lg_sample_fail(lg_sample *s, const char *format, ...)
{
        if (!s || !format)
                return false;
        va_list args;
        va_start(args, format);
        fail(s, LG_ERR_IO, format, args);
        va_end(args);
        return false;
}

bool lg__dataset_sample(const lg_dataset *d, lg__sampler *sampler, uint64_t seed, int64_t epoch, int64_t i, int64_t id)
{
        lg_sample *s = &sampler->sample;
        s->index = i;
        s->fields = d->fields.count; /* set each time, as the last sample's function may have changed s->fields */
        s->rng = &sampler->rng;
        for (int f = 0; f < d->fields.count; f++)
                s->length[f] = d->fields.field[f].ragged ? d->fields.field[f].shape.size[0] : 0;
        lg__rng_begin(&sampler->rng, seed, epoch, LG__RNG_SAMPLE, id);
        sampler->code = LG_ERR_NONE;
        sampler->scratch_used = 0;
        if (!d->kind->get(d, s))
                return false;
        for (int f = 0; f < d->fields.count; f++) {
                const lg_field *field = &d->fields.field[f];
                if (field->ragged && (s->length[f] < 0 || s->length[f] > field->shape.size[0]))
                        return lg__sample_fail(
                                s, LG_ERR_ARGUMENT, "sample %lld says that its field %s has %lld rows; 0 to %lld fit",
                                (long long)i, field->name, (long long)s->length[f], (long long)field->shape.size[0]);
        }
        return true;
}
