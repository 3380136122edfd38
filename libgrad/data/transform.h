/* transform.h - transforms of the first field of a sample. Private to data/.
 *
 * A transform infers once which field it makes of another one; then threads run it on samples, several at once. It has
 * no context and does not change. Images are (C, H, W) or (H, W).
 */
#ifndef LG_DATA_TRANSFORM_H
#define LG_DATA_TRANSFORM_H

#include <stddef.h>
#include "data.h"

/* One run of a transform. */
typedef struct lg__step {
        const lg_field *in, *out;
        const void *from;
        void *to; /* other memory than `from` */
        lg_rng *rng;
        void *scratch;     /* as much as was inferred */
        lg_sample *sample; /* for lg_sample_fail() */
} lg__step;

/* An option of type double: its place in the struct of options, its default and range. */
typedef struct lg__number {
        const char *name;
        size_t offset;
        double otherwise, low, high;
        bool above_previous; /* `low` is the value of the number before */
} lg__number;
#define LG__NUMBER(options, name, ...)                                                                                 \
        {                                                                                                              \
#name, offsetof(options, name), __VA_ARGS__                                                            \
        }

typedef struct lg__transform_kind {
        const char *op; /* the public function, for messages */
        /* Infers the field that it makes of another one; returns false with an error of the context. *ret is a copy of
         * the field, *ret_scratch is 0. NULL: fields stay as they are. */
        bool (*infer)(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);
        bool (*run)(const lg_transform *t, const lg__step *s); /* returns false after lg_sample_fail() */
        void (*destroy)(lg_transform *t);                      /* frees what the record refers to; NULL: nothing */
        size_t bytes;                                          /* size of the record */
        bool random;                                           /* draws random numbers */
        bool images;                                           /* takes images only */
        size_t value;              /* offset in the record of a double that the dtype must hold; 0: none */
        const lg__number *numbers; /* options that are numbers, up to one without a name */
} lg__transform_kind;

/* First member of the record of every kind. */
struct lg_transform {
        lg__object object;
        const lg__transform_kind *kind;
        bool random; /* draws random numbers */
        bool own;    /* runs code of the program */
        int depth;   /* levels of transforms below it, as in data sets */
};
/* Returns a registered record, zero behind its head, or NULL with an error. */
lg_transform *lg__transform_new(lg_ctx *c, const lg__transform_kind *kind);
/* Returns a record that consists of its head and its options. Fails with LG_ERR_ARGUMENT if a number is out of range.
 */
lg_transform *lg__transform_of_options(lg_ctx *c, const lg__transform_kind *kind, const void *options);
/* Defines name_kind, of transforms that change images at random, and lg_transform_NAME_with(), which makes a record of
 * that type. */
#define LG__RANDOM_TRANSFORM(name, record, options_type, ...)                                                          \
        static const lg__transform_kind name##_kind = {                                                                \
                .op = "lg_transform_" #name, .bytes = sizeof(record), .random = true, .images = true, __VA_ARGS__};    \
        lg_transform *lg_transform_##name##_with(lg_ctx *c, const options_type *options)                               \
        {                                                                                                              \
                return lg__transform_of_options(c, &name##_kind, options);                                             \
        }
/* Returns false and sets LG_ERR_ARGUMENT "op: name is ..." if a number is out of range. */
bool lg__number_within(lg_ctx *c, const char *op, const char *name, double value, double low, double high);
/* Calls kind->infer after the checks that the kind describes. */
bool lg__transform_infer(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);

/* First members of transforms to images of another size. */
typedef struct lg__resizing {
        lg_transform head;
        int64_t height, width;
} lg__resizing;
/* Returns such a record. Fails with LG_ERR_ARGUMENT if a size is not from 1 to 2^24. */
lg_transform *lg__transform_of_size(lg_ctx *c, const lg__transform_kind *kind, int64_t height, int64_t width);
bool lg__infer_resized(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);

/* Channels, height and width of an image. */
typedef struct lg__image {
        int64_t c, h, w;
} lg__image;
static inline lg__image lg__image_of(const lg_field *f)
{
        const int n = f->shape.ndim;
        return (lg__image){n > 2 ? f->shape.size[0] : 1, f->shape.size[n - 2], f->shape.size[n - 1]};
}
/* Sets n pixels. */
void lg__pixels_fill(void *to, lg_dtype dtype, double value, int64_t n);
/* Runs a block with the C types of a dtype: `pixel` for an element and `real` to compute with. For LG_U8 that is
 * `for_bytes`, and is_bytes is true. */
#define LG__WITH_PIXEL(dtype, for_bytes, ...)                                                                          \
        do {                                                                                                           \
                if ((dtype) == LG_U8)                                                                                  \
                        LG__TYPES_(uint8_t, for_bytes, true, __VA_ARGS__)                                              \
                else if ((dtype) == LG_F32)                                                                            \
                        LG__TYPES_(float, float, false, __VA_ARGS__)                                                   \
                else                                                                                                   \
                        LG__TYPES_(double, double, false, __VA_ARGS__)                                                 \
        } while (0)
#define LG__TYPES_(pixel_, real_, is_bytes_, ...)                                                                      \
        {                                                                                                              \
                typedef pixel_ pixel __attribute__((unused));                                                          \
                typedef real_ real __attribute__((unused));                                                            \
                const bool is_bytes __attribute__((unused)) = (is_bytes_);                                             \
                __VA_ARGS__                                                                                            \
        }

#endif
