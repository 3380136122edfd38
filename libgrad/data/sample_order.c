/* sample_order.c - the order of samples in an epoch: shuffled, or drawn by weights. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../kernels/philox.h"
#include "data.h"

uint64_t lg__next_seed(lg_ctx *c)
{
        lg_philox_words b = lg_philox_block(c->random.seed, c->random.counter++);
        return (uint64_t)b.w[0] << 32 | b.w[1];
}

/* ---- options ---- */

static bool weights_are_good(lg_ctx *c, const lg_tensor *w, int64_t size)
{
        if (!lg__in_context(c, w, "lg_loader_open", "weights") || !lg__check(w, "lg_loader_open", "weights"))
                return false;
        if (w->storage->device->id.type != LG_DEVICE_CPU)
                return lg__fail(c, LG_ERR_DEVICE, "lg_loader_open: weights is %s; it lies on the cpu: lg_to() it",
                                lg__tensor_text(w).s);
        if (w->at.shape.ndim != 1 || w->at.shape.size[0] != size)
                return lg__fail(c, LG_ERR_SHAPE, "lg_loader_open: weights is %s; the data set has %lld samples",
                                lg__tensor_text(w).s, (long long)size);
        return true;
}

/* Returns the number of weights above 0. Returns -1 and sets LG_ERR_ARGUMENT if there is none, if a weight is negative,
 * infinite or NaN, or if the sum of all weights is infinite. */
static int64_t count_weights(lg_ctx *c, const double *w, int64_t n)
{
        int64_t positive = 0;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
                if (!(w[i] >= 0) || isinf(w[i])) {
                        lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: weight %lld is %g", (long long)i, w[i]);
                        return -1;
                }
                positive += w[i] > 0;
                sum += w[i];
        }
        if (isinf(sum)) {
                lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: the sum of the weights is inf; make them smaller");
                return -1;
        }
        if (!positive)
                lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: no sample has a weight above 0");
        return positive ? positive : -1;
}

static bool take_weights(lg__sample_order *d, lg_ctx *c, lg_tensor *w, int64_t samples)
{
        if (!weights_are_good(c, w, d->size))
                return false;
        d->weights = lg__host_alloc(c, (size_t)d->size * sizeof *d->weights + 1);
        if (!d->weights || !lg_read(w, d->weights, LG_F64, (size_t)d->size * sizeof *d->weights))
                return false;
        int64_t positive = count_weights(c, d->weights, d->size);
        if (positive < 0)
                return false;
        d->samples = samples ? samples : d->no_replacement ? positive : d->size;
        if (d->samples < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: .samples is %lld; it must be 1 or more",
                                (long long)d->samples);
        if (d->no_replacement && d->samples > positive)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: .samples is %lld, but %lld samples have a weight above 0",
                                (long long)d->samples, (long long)positive);
        return true;
}

bool lg__sample_order_fits(const lg__sample_order *d, lg_ctx *c, const char *op)
{
        const int64_t most = d->shuffle ? INT32_MAX : d->weights ? (int64_t)1 << 48 : INT64_MAX;
        return d->samples <= most ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: an epoch of %lld samples cannot be %s; at most %lld can", op,
                        (long long)d->samples, d->shuffle ? "shuffled" : "drawn", (long long)most);
}

bool lg__sample_order_init(lg__sample_order *d, lg_ctx *c, int64_t size, const lg_loader_options *o)
{
        *d = (lg__sample_order){
                .shuffle = o->shuffle, .no_replacement = o->no_replacement, .size = size, .samples = size};
        if (!o->weights && (o->no_replacement || o->samples))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_loader_open: .%s is given, but no .weights",
                                o->samples ? "samples" : "no_replacement");
        if (o->weights && o->shuffle)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: .weights and .shuffle are given; weights draw in any order already");
        if (size < 0 && (o->weights || o->shuffle))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_loader_open: the data set is a stream, which has one order: no "
                                ".shuffle, no .weights");
        return (!o->weights || take_weights(d, c, o->weights, o->samples)) &&
               lg__sample_order_fits(d, c, "lg_loader_open");
}

void lg__sample_order_free(lg__sample_order *d, lg_ctx *c)
{
        if (d->weights)
                lg__host_free(c, d->weights, (size_t)d->size * sizeof *d->weights + 1);
        d->weights = NULL;
}

/* ---- drawing the order ---- */

/* Shuffles 0 to n - 1 as lg_permutation() does, with the seed's random numbers from a position given by the epoch. */
static bool shuffle(lg_ctx *c, int64_t n, uint64_t seed, int64_t epoch, int64_t *order)
{
        lg_random_state was = c->random;
        lg_scope scope = lg_scope_begin(c);
        c->random = (lg_random_state){seed, (uint64_t)epoch * ((uint64_t)n / 2 + 1)};
        lg_tensor *t = scope.id ? lg_permutation(c, n, .device = lg_cpu()) : NULL;
        if (t && n)
                memcpy(order, lg__data(t), (size_t)n * sizeof *order);
        c->random = was;
        lg_scope_end(c, scope);
        return t != NULL;
}

/* Returns the first index i with sums[i] > x, or n - 1 if no sum is larger; the n sums are in rising order. */
static int64_t find_sum(const double *sums, int64_t n, double x)
{
        int64_t low = 0, high = n - 1;
        while (low < high) {
                int64_t mid = (low + high) / 2;
                if (sums[mid] > x)
                        high = mid;
                else
                        low = mid + 1;
        }
        return low;
}

/* Draws d->samples indices with replacement, by uniform numbers among the cumulative sums of the weights. */
static void weighted_order(const lg__sample_order *d, lg_rng *r, double *sums, int64_t *order)
{
        double sum = 0;
        int64_t last = 0; /* last sample with a weight above 0; rounding may find a later one */
        for (int64_t i = 0; i < d->size; i++) {
                sums[i] = sum += d->weights[i];
                last = d->weights[i] > 0 ? i : last;
        }
        for (int64_t k = 0; k < d->samples; k++) {
                int64_t i = find_sum(sums, d->size, lg_rng_uniform(r) * sum);
                order[k] = i < last ? i : last;
        }
}

typedef struct key {
        double at;
        int64_t sample;
} key;

static int earlier(const void *a, const void *b)
{
        const key *x = a, *y = b;
        return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->sample > y->sample) - (x->sample < y->sample);
}

/* Draws without replacement: the smallest exponential variates with weights as rates (Efraimidis and Spirakis 2006). */
static void weighted_order_without_replacement(const lg__sample_order *d, lg_rng *r, key *keys, int64_t *order)
{
        for (int64_t i = 0; i < d->size; i++) {
                double u = lg_rng_uniform(r);
                keys[i] = (key){d->weights[i] > 0 ? fmin(-log1p(-u) / d->weights[i], DBL_MAX) : INFINITY, i};
        }
        qsort(keys, (size_t)d->size, sizeof *keys, earlier);
        for (int64_t k = 0; k < d->samples; k++)
                order[k] = keys[k].sample;
}

bool lg__sample_order_draw(const lg__sample_order *d, lg_ctx *c, uint64_t seed, int64_t epoch, int64_t *order)
{
        lg_rng r;
        if (d->shuffle)
                return shuffle(c, d->samples, seed, epoch, order);
        const size_t bytes = (size_t)d->size * (d->no_replacement ? sizeof(key) : sizeof(double)) + 1;
        void *room = lg__host_alloc(c, bytes);
        if (!room)
                return false;
        lg__rng_begin(&r, seed, epoch, LG__RNG_ORDER, 0);
        if (d->no_replacement)
                weighted_order_without_replacement(d, &r, room, order);
        else
                weighted_order(d, &r, room, order);
        lg__host_free(c, room, bytes);
        return true;
}
