/* transform_values.c - transforms of each value: to floats, or to mean 0 and standard deviation 1.
 *
 * y = (x - mean) / std, with mean and std of each channel; u8 values are first divided by 255. The results are equal to
 * torchvision's ToTensor and Normalize, bit for bit.
 */
#include <math.h>
#include <string.h>
#include "transform.h"

typedef struct values {
        lg_transform head;
        int64_t count; /* number of channels; 1: one mean and std for fields of any shape */
        double *mean, *std;
        float *of_byte; /* result for each u8 value, 256 per channel */
} values;

static size_t numbers_bytes(int64_t count)
{
        return (size_t)count * (2 * sizeof(double) + 256 * sizeof(float));
}

static void destroy_values(lg_transform *t)
{
        values *v = (values *)t;
        lg__free(t->object.ctx, v->mean, numbers_bytes(v->count));
}

static bool infer_values(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch)
{
        const values *v = (const values *)t;
        (void)ret_scratch;
        if (in->dtype != LG_U8 && in->dtype != LG_F32 && in->dtype != LG_F64)
                return lg__fail(c, LG_ERR_DTYPE, "%s: %s is %s %s; values are u8, f32 or f64", t->kind->op, in->name,
                                lg_dtype_name(in->dtype), lg__shape_text(in->shape).s);
        if (v->count > 1 && (in->shape.ndim != 3 || in->shape.size[0] != v->count))
                return lg__fail(c, LG_ERR_SHAPE, "%s: %s is %s %s, but there are means of %lld channels (C, H, W)",
                                t->kind->op, in->name, lg_dtype_name(in->dtype), lg__shape_text(in->shape).s,
                                (long long)v->count);
        ret->dtype = in->dtype == LG_U8 ? LG_F32 : in->dtype;
        return true;
}

static void convert(const values *v, int64_t channel, const lg__step *s, int64_t at, int64_t n)
{
        const double mean = v->mean[channel], std = v->std[channel];
        if (s->in->dtype == LG_U8) {
                const uint8_t *x = (const uint8_t *)s->from + at;
                const float *of_byte = v->of_byte + 256 * channel;
                float *y = (float *)s->to + at;
                for (int64_t i = 0; i < n; i++)
                        y[i] = of_byte[x[i]];
                return;
        }
        LG__WITH_PIXEL(s->in->dtype, float, {
                const real *x = (const real *)s->from + at, m = (real)mean, d = (real)std;
                real *y = (real *)s->to + at;
                for (int64_t i = 0; i < n; i++)
                        y[i] = (x[i] - m) / d;
        });
}

static bool run_values(const lg_transform *t, const lg__step *s)
{
        const values *v = (const values *)t;
        const int64_t n = lg__shape_numel(s->in->shape) / v->count;
        for (int64_t channel = 0; channel < v->count && n; channel++)
                convert(v, channel, s, channel * n, n);
        return true;
}

static lg_transform *make(lg_ctx *c, const lg__transform_kind *kind, int64_t count, lg_numbers_in mean,
                          lg_numbers_in std)
{
        values *v = (values *)lg__transform_new(c, kind);
        if (!v)
                return NULL;
        v->count = count;
        v->mean = lg__alloc(c, numbers_bytes(count));
        if (!v->mean)
                return lg__object_destroy(v);
        v->std = v->mean + count;
        v->of_byte = (float *)(v->std + count);
        for (int64_t i = 0; i < count; i++) {
                v->mean[i] = mean.items[mean.count > 1 ? i : 0];
                v->std[i] = std.items[std.count > 1 ? i : 0];
                for (int byte = 0; byte < 256; byte++)
                        v->of_byte[256 * i + byte] = ((float)byte / 255 - (float)v->mean[i]) / (float)v->std[i];
        }
        return &v->head;
}

#define KIND(of)                                                                                                       \
        {                                                                                                              \
                .op = "lg_transform_" #of, .infer = infer_values, .run = run_values, .destroy = destroy_values,        \
                .bytes = sizeof(values)                                                                                \
        }
static const lg__transform_kind to_float_kind = KIND(to_float), normalize_kind = KIND(normalize);

lg_transform *lg_transform_to_float(lg_ctx *c)
{
        static const double zero = 0, one = 1;
        return make(c, &to_float_kind, 1, (lg_numbers_in){1, &zero}, (lg_numbers_in){1, &one});
}

static bool numbers_are_good(lg_ctx *c, lg_numbers_in numbers, const char *name, bool is_std)
{
        if (numbers.count < 1 || numbers.count > 1 << 20 || !numbers.items)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s has %lld numbers; it is LG_NUMBERS(...) of each channel",
                                normalize_kind.op, name, numbers.items ? (long long)numbers.count : 0);
        for (int64_t i = 0; i < numbers.count; i++) {
                const float x = (float)numbers.items[i];
                if (!isfinite(x) || (is_std && !(x > 0)))
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s of channel %lld is %g; it must be %s",
                                        normalize_kind.op, name, (long long)i, numbers.items[i],
                                        is_std ? "above 0, and finite in f32" : "finite in f32");
        }
        return true;
}

lg_transform *lg_transform_normalize(lg_ctx *c, lg_numbers_in mean, lg_numbers_in std)
{
        if (!lg__ok(c) || !numbers_are_good(c, mean, "mean", false) || !numbers_are_good(c, std, "std", true))
                return NULL;
        if (mean.count != std.count && mean.count != 1 && std.count != 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: mean has %lld numbers but std %lld", normalize_kind.op,
                                (long long)mean.count, (long long)std.count);
        return make(c, &normalize_kind, mean.count > std.count ? mean.count : std.count, mean, std);
}
