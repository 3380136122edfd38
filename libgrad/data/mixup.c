/* mixup.c - batches of mixed samples and mixed labels.
 *
 * x'[i] = l x[i] + (1 - l) x[i - 1], likewise one-hot labels, with one l per batch from Beta(alpha, alpha): g / (g + h)
 * of two gamma variates, by Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; in logarithms,
 * since gamma variates of small alpha underflow.
 */
#include <math.h>
#include <string.h>
#include "transform.h"

typedef struct mixup {
        lg_ctx *ctx;
        double alpha;
        int64_t classes;
} mixup;

static const char op[] = "lg_mixup";

static void release(void *user)
{
        mixup *m = user;
        lg__free(m->ctx, m, sizeof *m);
}

static bool infer(const lg_collate *k, lg_ctx *c, const lg_fields *in, lg_fields *ret)
{
        const mixup *m = k->user;
        const lg_field *x = &in->field[0], *y = &in->field[1];
        if ((x->dtype != LG_F32 && x->dtype != LG_F64) || x->ragged)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s%s; samples that are mixed are f32 or f64, of one size",
                                op, x->name, lg_dtype_name(x->dtype), x->ragged ? ", ragged" : "");
        if (in->count < 2 || y->dtype != LG_I64 || y->shape.ndim || y->ragged)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the second field is %s%s%s; it must be class numbers, i64 ()",
                                op, in->count < 2 ? "missing" : lg_dtype_name(y->dtype), in->count < 2 ? "" : " ",
                                in->count < 2 ? "" : lg__shape_text(y->shape).s);
        for (int f = 2; f < in->count; f++) {
                if (in->field[f].ragged)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is ragged; such fields cannot be mixed", op,
                                        in->field[f].name);
        }
        *ret = *in;
        ret->field[1].dtype = LG_F32;
        ret->field[1].shape = LG_SHAPE(m->classes);
        return true;
}

/* Draws log(g / d) for a gamma variate g of shape alpha; d depends on alpha only and cancels in beta_number(). For
 * alpha < 1 draws a variate of shape alpha + 1 and multiplies it by u^(1 / alpha) with u uniform in (0, 1]. */
static double log_gamma_number(lg_rng *r, double alpha)
{
        const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, scale = 1 / sqrt(9 * d);
        for (;;) {
                const double z = lg_rng_normal(r), root = 1 + scale * z, v = root * root * root;
                const double u = 1 - lg_rng_uniform(r); /* uniform in (0, 1], so that log(u) is finite */
                if (v > 0 && log(u) <= z * z / 2 + d - d * v + d * log(v))
                        return log(v) + (alpha < 1 ? log(1 - lg_rng_uniform(r)) / alpha : 0);
        }
}

static double beta_number(lg_rng *r, double alpha)
{
        const double g = log_gamma_number(r, alpha);
        return 1 / (1 + exp(log_gamma_number(r, alpha) - g));
}

/* Returns the index of the sample before sample i in a batch of `count` samples: the last one if i is 0. */
static int64_t sample_before(int64_t i, int64_t count)
{
        return i ? i - 1 : count - 1;
}

static void mix_values(const lg_collation *b, double part)
{
        const int64_t n = lg__shape_numel(b->in.field[0].shape);
        for (int64_t i = 0; i < b->count; i++) {
                const int64_t j = sample_before(i, b->count) * n, k = i * n;
                LG__WITH_PIXEL(b->in.field[0].dtype, float, {
                        const real *x = b->from[0], l = (real)part, rest = (real)(1 - part);
                        real *y = b->to[0];
                        for (int64_t e = 0; e < n; e++)
                                y[k + e] = l * x[k + e] + rest * x[j + e];
                });
        }
}

static bool mix_labels(const lg_collation *b, int64_t classes, double part, lg__sampler *sampler)
{
        const int64_t *label = b->from[1];
        float *y = b->to[1];
        for (int64_t i = 0; i < b->count; i++) {
                if (label[i] < 0 || label[i] >= classes)
                        return lg__sample_fail(&sampler->sample, LG_ERR_ARGUMENT,
                                               "%s: %s of sample %lld of the batch is %lld, not in 0 to %lld", op,
                                               b->in.field[1].name, (long long)i, (long long)label[i],
                                               (long long)classes - 1);
        }
        memset(y, 0, (size_t)(b->count * classes) * sizeof *y);
        for (int64_t i = 0; i < b->count; i++, y += classes) {
                y[label[i]] += (float)part;
                y[label[sample_before(i, b->count)]] += (float)(1 - part);
        }
        return true;
}

static bool run(const lg_collate *k, const lg_collation *b, lg__sampler *sampler)
{
        const mixup *m = k->user;
        const double part = beta_number(b->rng, m->alpha);
        if (!mix_labels(b, m->classes, part, sampler))
                return false;
        mix_values(b, part);
        for (int f = 2; f < b->in.count; f++) {
                const size_t bytes = (size_t)b->count * lg__field_bytes(&b->in.field[f]);
                if (bytes)
                        memcpy(b->to[f], b->from[f], bytes);
        }
        return true;
}

lg_collate *lg_mixup_with(lg_ctx *c, const lg_mixup_options *options)
{
        lg_mixup_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        o.alpha = lg__option(o.alpha, 0.2);
        if (!lg__number_within(c, op, "alpha", o.alpha, 1e-3, 1e3))
                return NULL;
        if (o.classes < 1 || o.classes > 1 << 24)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: classes is %lld; it must be given, from 1 to %d", op,
                                (long long)o.classes, 1 << 24);
        mixup *m = lg__alloc(c, sizeof *m);
        if (!m)
                return NULL;
        *m = (mixup){c, o.alpha, o.classes};
        lg_collate *k = lg__collate_new(c, NULL, m, release);
        if (!k)
                return NULL;
        k->infer = infer;
        k->run = run;
        return k;
}
