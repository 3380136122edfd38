/* transform.h - steps on the first field of a sample. Private to data/.
 *
 * A transform says once what it makes of a field; then threads run it on samples, several at once. It knows no context
 * and changes nothing of its own. Images are (C, H, W) or (H, W).
 */
#ifndef LG_DATA_TRANSFORM_H
#define LG_DATA_TRANSFORM_H

#include "data.h"

/* One run of a transform. */
typedef struct lg__step {
        const lg_field *in, *out;
        const void *from;
        void *to; /* not the same memory */
        lg_rng *rng;
        void *scratch;     /* as much as the plan asked for */
        lg_sample *sample; /* for lg_sample_fail */
} lg__step;

typedef struct lg__transform_kind {
        const char *op; /* the public function, for messages */
        /* What it makes of a field; false: an error of the context. *ret is a copy of the field, *ret_scratch is 0. */
        bool (*plan)(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);
        bool (*run)(const lg_transform *t, const lg__step *s); /* false: lg_sample_fail */
        void (*destroy)(lg_transform *t);                      /* what it has beside the record; NULL: nothing */
        size_t bytes;                                          /* of the record */
        bool random;                                           /* it draws random numbers */
} lg__transform_kind;

/* The head of the record of every kind. */
struct lg_transform {
        lg__object object;
        const lg__transform_kind *kind;
        bool random; /* it draws random numbers */
        bool own;    /* code of the user's runs in it */
        int depth;   /* of transforms below it, as that of data sets */
};
/* A registered record, behind its head a copy of `like`, a record of that kind. */
lg_transform *lg__transform_new(lg_ctx *c, const lg__transform_kind *kind, const void *like);
/* False, with an error "op: ...": t is NULL, of another context, or ends just now. */
bool lg__transform_check(lg_ctx *c, const lg_transform *t, const char *op);

/* What options have in common. False: LG_ERR_ARGUMENT "op: name is ...". */
bool lg__number_within(lg_ctx *c, const char *op, const char *name, double value, double low, double high);
bool lg__image_size(lg_ctx *c, const char *op, int64_t height, int64_t width); /* 1 to 2^24 */

/* The channels, height and width of an image field; false: LG_ERR_SHAPE or LG_ERR_DTYPE "op: ...". */
typedef struct lg__image {
        int64_t c, h, w;
} lg__image;
bool lg__image_field(lg_ctx *c, const char *op, const lg_field *f, lg__image *ret);
/* The same of a field that is one. */
static inline lg__image lg__image_of(const lg_field *f)
{
        const int n = f->shape.ndim;
        return (lg__image){n > 2 ? f->shape.size[0] : 1, f->shape.size[n - 2], f->shape.size[n - 1]};
}
/* The field of an image of that height and width; false: LG_ERR_SHAPE. */
bool lg__image_resized(lg_ctx *c, const char *op, int64_t height, int64_t width, lg_field *f);
/* Sets n pixels. */
void lg__pixels_fill(void *to, lg_dtype dtype, double value, int64_t n);

#endif
