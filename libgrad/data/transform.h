/* transform.h - transforms of the first field of a sample. Private to data/.
 *
 * When a data set is made, a transform infers the dtype and shape of its output from those of its input. Later several
 * threads run the transform on samples at once, so a transform is constant and does not use the context. Images are (C,
 * H, W) or (H, W).
 */
#ifndef LG_DATA_TRANSFORM_H
#define LG_DATA_TRANSFORM_H

#include <stddef.h>
#include "data.h"

/* Arguments of one run of a transform. */
typedef struct lg__step {
        const lg_field *in, *out;
        const void *from;
        void *to; /* output; does not overlap `from` */
        lg_rng *rng;
        void *scratch;     /* memory of the size that was inferred; NULL: none */
        lg_sample *sample; /* the sample being made, for lg_sample_fail() */
} lg__step;

/* An option of type double: its name, offset in the struct of options, default value and valid range. */
typedef struct lg__number {
        const char *name;
        size_t offset;
        double otherwise, low, high;
        bool above_previous; /* the value of the previous number replaces `low` */
} lg__number;
#define LG__NUMBER(options, name, ...)                                                                                 \
        {                                                                                                              \
#name, offsetof(options, name), __VA_ARGS__                                                            \
        }

typedef struct lg__transform_kind {
        const char *op; /* name of the public function, for messages */
        /* Sets *ret, at first a copy of *in, to the output field, and *ret_scratch, at first 0, to the bytes of scratch
         * memory that a run needs. Returns false with an error of the context. NULL: the field does not change. */
        bool (*infer)(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);
        bool (*run)(const lg_transform *t, const lg__step *s); /* returns false after lg_sample_fail() */
        void (*destroy)(lg_transform *t);                      /* frees what the record refers to; may be NULL */
        size_t bytes;                                          /* size of the record of this kind */
        bool random;                                           /* draws random numbers */
        bool images;                                           /* accepts images only */
        size_t value;              /* offset of a fill value that the dtype must hold; 0: none */
        const lg__number *numbers; /* all options of type double; the last entry has no name */
} lg__transform_kind;

/* A transform: the first member of the records of all kinds. */
struct lg_transform {
        lg__object object;
        const lg__transform_kind *kind;
        bool random;          /* a run draws random numbers */
        bool calls_user_code; /* a run calls a function of the program */
        int depth;            /* nested levels of transforms inside, below LG_MAX_DATA_DEPTH */
};
/* Returns a registered record whose members after the head are zero, or NULL with an error. */
lg_transform *lg__transform_new(lg_ctx *c, const lg__transform_kind *kind);
/* Returns a record made of an lg_transform and, after it, the struct of options, with defaults filled in. Returns NULL
 * and sets LG_ERR_ARGUMENT if an option of type double is out of range. */
lg_transform *lg__transform_of_options(lg_ctx *c, const lg__transform_kind *kind, const void *options);
/* Defines NAME_kind, a kind of transform that changes images at random, and the public function
 * lg_transform_NAME_with(), which makes a transform of that kind. */
#define LG__RANDOM_TRANSFORM(name, record, options_type, ...)                                                          \
        static const lg__transform_kind name##_kind = {                                                                \
                .op = "lg_transform_" #name, .bytes = sizeof(record), .random = true, .images = true, __VA_ARGS__};    \
        lg_transform *lg_transform_##name##_with(lg_ctx *c, const options_type *options)                               \
        {                                                                                                              \
                return lg__transform_of_options(c, &name##_kind, options);                                             \
        }
/* Returns false and sets LG_ERR_ARGUMENT "op: name is ..." if `value` is not in [low, high]. */
bool lg__number_within(lg_ctx *c, const char *op, const char *name, double value, double low, double high);
/* Calls kind->infer after checking that the input is an image and holds the value, where the kind requires that. */
bool lg__transform_infer(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);

/* First members of transforms that change the size of images; height and width are those of the output. */
typedef struct lg__resizing {
        lg_transform head;
        int64_t height, width;
} lg__resizing;
/* Returns an lg__resizing record. Returns NULL and sets LG_ERR_ARGUMENT if height or width is not from 1 to 2^24. */
lg_transform *lg__transform_of_size(lg_ctx *c, const lg__transform_kind *kind, int64_t height, int64_t width);
bool lg__infer_resized(const lg_transform *t, lg_ctx *c, const lg_field *in, lg_field *ret, size_t *ret_scratch);

/* Channels, height and width of an image; an image (H, W) has one channel. */
typedef struct lg__image {
        int64_t c, h, w;
} lg__image;
static inline lg__image lg__image_of(const lg_field *f)
{
        const int n = f->shape.ndim;
        return (lg__image){n > 2 ? f->shape.size[0] : 1, f->shape.size[n - 2], f->shape.size[n - 1]};
}
/* Sets n pixels at `to` to `value`, converted to dtype. */
void lg__pixels_fill(void *to, lg_dtype dtype, double value, int64_t n);
/* Runs a block of code for dtype LG_U8, LG_F32 or LG_F64, in which `pixel` is the C type of an element and `real` the
 * type to compute with. For LG_U8, `real` is for_bytes, and the constant is_bytes is true. */
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
