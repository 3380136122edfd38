/* transforms.h - changes to the samples of a data set (crops, flips, rotations, colours, sizes), and mixed batches.
 *
 * A transform replaces the first field of each sample, "x"; the other fields stay. lg_dataset_transform() applies it to
 * a data set, and the loader's threads then run it. Names and defaults are torchvision's:
 *
 *     lg_transform *t = lg_transforms(c, lg_transform_random_crop(c, 32, 32, .padding = 4),
 *                                     lg_transform_random_horizontal_flip(c),
 *                                     lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(0.25)));
 *     lg_loader *batches = lg_loader_open(c, lg_dataset_transform(train, t), 64, .shuffle = true, .workers = 2);
 *
 * Unless stated otherwise, transforms take images (C, H, W) or (H, W), of u8, f32 or f64, and keep their dtype.
 * Transforms are fastest on u8, so put lg_transform_to_float() or lg_transform_normalize() last.
 *
 * Random transforms draw from the random numbers of the sample (lg_rng), in the order that their comments state. So the
 * same seed, epoch and sample give the same bytes, whatever the number of threads.
 *
 * A transform is checked against the samples by lg_dataset_transform(), which fails with LG_ERR_SHAPE or LG_ERR_DTYPE
 * if they do not fit. Heights and widths are from 1 to 2^24, probabilities from 0 to 1.
 */
#ifndef LG_TRANSFORMS_H
#define LG_TRANSFORMS_H

#include "grad/data.h"

LG_BEGIN

/* ---- transforms and data sets ---- */

/* A step on the first field of a sample. Data sets and other transforms that use it keep it alive until they end. */
typedef struct lg_transform lg_transform;

/* Makes a data set of the samples of d, which may be a stream, with t applied to their first field. It keeps d and t
 * alive. Fails with LG_ERR_SHAPE if the field is ragged, and with LG_ERR_ARGUMENT if it cannot hold the .value of the
 * transform or if data sets would nest more than LG_MAX_DATA_DEPTH levels deep.
 * Example: lg_dataset_transform(train, lg_transform_to_float(c)) */
LG_API LG_NEW lg_dataset *lg_dataset_transform(lg_dataset *d, lg_transform *t);

/* Returns a transform that applies the given ones, one after another. They nest up to LG_MAX_DATA_DEPTH levels deep.
 * Example: lg_transforms(c, first, second) */
#define lg_transforms(...) lg_transforms_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_transform, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_transform *lg_transforms_list(lg_ctx *c, lg_transform *const *parts);

/* Frees t, or marks it to be freed when the last data set or transform that uses it ends. */
LG_API void lg_transform_free(lg_transform *t);

/* ---- values ---- */

/* Converts u8 to f32 and divides by 255; f32 and f64 stay as they are (torchvision's ToTensor). Takes any shape. */
LG_API LG_NEW lg_transform *lg_transform_to_float(lg_ctx *c);

/* Computes (x - mean) / std; for u8, (x / 255 - mean) / std in f32 (torchvision's Normalize, for u8 after ToTensor).
 * mean and std each have one number, for any shape, or one for each channel of (C, H, W), finite in f32; std > 0.
 * Example: lg_transform_normalize(c, LG_NUMBERS(0.485, 0.456, 0.406), LG_NUMBERS(0.229, 0.224, 0.225)) */
LG_API LG_NEW lg_transform *lg_transform_normalize(lg_ctx *c, lg_numbers_in mean, lg_numbers_in std);

/* ---- crops and flips ---- */

typedef struct lg_crop_options {
        LG_OPTIONS_HEAD
        int64_t padding LG_DEFAULT;  /* pixels added on each side before the crop; default 0 */
        lg_pad_mode mode LG_DEFAULT; /* how they are filled, except LG_PAD_CIRCULAR; default LG_PAD_CONSTANT */
        double value LG_DEFAULT;     /* of pixels that LG_PAD_CONSTANT adds; default 0 */
} lg_crop_options;
/* Cuts a window of height by width pixels out of the padded image, which must not be smaller, at a random place
 * (torchvision's RandomCrop). Draws its top, then its left.
 * Example: lg_transform_random_crop(c, 32, 32, .padding = 4, .mode = LG_PAD_REFLECT) */
#define lg_transform_random_crop(...)                                                                                  \
        LG_CALL3(lg_transform_random_crop_with, lg_crop_options, lg_transform_random_crop_takes_c_height_width, V, I,  \
                 I, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_crop_with(lg_ctx *c, int64_t height, int64_t width,
                                                          const lg_crop_options *options);

/* Cuts height by width pixels out of the middle of the image, with zeros beyond it (torchvision's CenterCrop). */
LG_API LG_NEW lg_transform *lg_transform_center_crop(lg_ctx *c, int64_t height, int64_t width);

typedef struct lg_flip_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT; /* the probability of a flip; default 0.5. LG_ZERO sets 0. */
} lg_flip_options;
/* Mirrors the image with probability .p, left to right or upside down (torchvision's RandomHorizontalFlip and
 * RandomVerticalFlip). Each draws one number.
 * Example: lg_transform_random_vertical_flip(c, .p = 0.1) */
#define lg_transform_random_horizontal_flip(...)                                                                       \
        LG_CALL1(lg_transform_random_horizontal_flip_with, lg_flip_options,                                            \
                 lg_transform_random_horizontal_flip_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_horizontal_flip_with(lg_ctx *c, const lg_flip_options *options);
#define lg_transform_random_vertical_flip(...)                                                                         \
        LG_CALL1(lg_transform_random_vertical_flip_with, lg_flip_options, lg_transform_random_vertical_flip_takes_c,   \
                 V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_vertical_flip_with(lg_ctx *c, const lg_flip_options *options);

/* ---- geometry ----
 *
 * These transforms interpolate bilinearly.
 *
 * Rotations and affine maps compute what torchvision computes, except at the edges of the image. Where a point that is
 * read is near an edge, so that only the part m < 1 of the bilinear weights falls on pixels of the image, the result is
 * s + (1 - m) value, with s the sum of these pixels times their weights. torchvision, which multiplies s by the mask m
 * although s has these weights already, computes m s + (1 - m) value.
 */

/* Resizes to height by width pixels, antialiased where it shrinks, as Pillow's resize(BILINEAR) and torchvision's
 * Resize(antialias=True) do. u8 is within one level of Pillow's, f32 within rounding. The image must have pixels. */
LG_API LG_NEW lg_transform *lg_transform_resize(lg_ctx *c, int64_t height, int64_t width);

typedef struct lg_rotation_options {
        LG_OPTIONS_HEAD
        double value LG_DEFAULT; /* of pixels from outside the image; default 0 */
} lg_rotation_options;
/* Rotates the image about its centre by a random angle, counterclockwise from -degrees to degrees, and keeps its size
 * (torchvision's RandomRotation of tensors with BILINEAR). degrees is from 0 to 360. Draws the angle.
 * Example: lg_transform_random_rotation(c, 15) */
#define lg_transform_random_rotation(...)                                                                              \
        LG_CALL2(lg_transform_random_rotation_with, lg_rotation_options, lg_transform_random_rotation_takes_c_degrees, \
                 V, V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_rotation_with(lg_ctx *c, double degrees,
                                                              const lg_rotation_options *options);

typedef struct lg_affine_options {
        LG_OPTIONS_HEAD
        double degrees LG_DEFAULT; /* rotates clockwise by -degrees to degrees, at most 360; default 0 */
        /* Moves by up to this part of the width, from 0 to 1, a whole number of pixels; default 0. */
        double translate_x LG_DEFAULT;
        double translate_y LG_DEFAULT; /* the same of the height; default 0 */
        double scale_min LG_DEFAULT;   /* scales by at least this, from 0.001 to 1000; default 1 */
        double scale_max LG_DEFAULT;   /* scales by at most this; default 1 */
        double shear LG_DEFAULT;       /* shears along x by -shear to shear degrees, at most 89; default 0 */
        double value LG_DEFAULT;       /* of pixels from outside the image; default 0 */
} lg_affine_options;
/* Shears, scales and rotates the image about its centre, then moves it, each by a random amount, and keeps its size
 * (torchvision's RandomAffine of tensors with BILINEAR). Draws angle, moves along x and y, scale and shear.
 * Example: lg_transform_random_affine(c, .degrees = 10, .scale_min = 0.9) */
#define lg_transform_random_affine(...)                                                                                \
        LG_CALL1(lg_transform_random_affine_with, lg_affine_options, lg_transform_random_affine_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_affine_with(lg_ctx *c, const lg_affine_options *options);

/* ---- colours and erasing ---- */

typedef struct lg_jitter_options {
        LG_OPTIONS_HEAD
        /* The factor of brightness is from max(0, 1 - brightness) to 1 + brightness; default 0: no change. */
        double brightness LG_DEFAULT;
        /* The factor of contrast is from max(0, 1 - contrast) to 1 + contrast; default 0: no change. */
        double contrast LG_DEFAULT;
} lg_jitter_options;
/* Changes brightness and contrast of images with 1 or 3 channels, in random order (torchvision's ColorJitter of
 * tensors): brightness computes r x and contrast r x + (1 - r) m, each with a random factor r, where m is the mean of
 * the grey image. Results are clamped to 0 to 255 for u8, else 0 to 1. Draws both factors, then which comes first.
 * Example: lg_transform_color_jitter(c, .brightness = 0.4) */
#define lg_transform_color_jitter(...)                                                                                 \
        LG_CALL1(lg_transform_color_jitter_with, lg_jitter_options, lg_transform_color_jitter_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_color_jitter_with(lg_ctx *c, const lg_jitter_options *options);

typedef struct lg_erasing_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT;         /* the probability of erasing; default 0.5. LG_ZERO sets 0. */
        double scale_min LG_DEFAULT; /* the least part of the image's area; default 0.02. LG_ZERO sets 0. */
        double scale_max LG_DEFAULT; /* the greatest part of the area, up to 1; default 0.33 */
        double ratio_min LG_DEFAULT; /* the least height / width; default 0.3 */
        double ratio_max LG_DEFAULT; /* the greatest height / width; default 3.3 */
        double value LG_DEFAULT;     /* of erased pixels; default 0 */
        bool random LG_DEFAULT;      /* sets them to normal random numbers, of u8 to random bytes; default false */
} lg_erasing_options;
/* Erases, with probability .p, a rectangle of random size, shape and place (Zhong et al. 2020; torchvision's
 * RandomErasing). If ten random rectangles do not fit, the image stays as it is. Draws whether to erase; then area and
 * ratio, up to ten times; then top and left; then the noise, in the order of channels and rows.
 * Example: lg_transform_random_erasing(c, .p = 1, .random = true) */
#define lg_transform_random_erasing(...)                                                                               \
        LG_CALL1(lg_transform_random_erasing_with, lg_erasing_options, lg_transform_random_erasing_takes_c, V,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_erasing_with(lg_ctx *c, const lg_erasing_options *options);

/* ---- transforms of your own ---- */

/* One run of a transform of the program: from .from to .to, which are contiguous and do not overlap. */
typedef struct lg_transform_call {
        const lg_field *in, *out; /* the field before and after */
        const void *from;         /* its values before */
        void *to;                 /* where to write its values after */
        lg_rng *rng;              /* the random numbers of the sample */
        lg_sample *sample;        /* the sample, for lg_sample_fail() */
} lg_transform_call;

/* Transforms one sample. The loader's threads call it under the rules of lg_sample_fn: several at once, without the
 * context, and it fails as that does. `user` is the pointer given to lg_transform_new(). */
typedef bool lg_transform_fn(const lg_transform_call *call, void *user);

typedef struct lg_transform_options {
        LG_OPTIONS_HEAD
        lg_shape shape LG_DEFAULT;              /* of the result; default: that of the field */
        lg_dtype dtype LG_DEFAULT;              /* of the result; default: that of the field */
        bool random LG_DEFAULT;                 /* must be true if fn draws from call->rng; default false */
        void (*release)(void *user) LG_DEFAULT; /* called when the transform ends or cannot be made; default: none */
} lg_transform_options;
/* Returns a transform that calls fn(call, user) for each sample. It takes fields of any dtype and shape.
 * Example: lg_transform_new(c, invert, NULL, .dtype = LG_F32) */
#define lg_transform_new(...)                                                                                          \
        LG_CALL3(lg_transform_new_with, lg_transform_options, lg_transform_new_takes_c_fn_user, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_new_with(lg_ctx *c, lg_transform_fn *fn, void *user,
                                                  const lg_transform_options *options);

/* ---- mixed batches ---- */

typedef struct lg_mixup_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT;    /* of the Beta distribution, from 0.001 to 1000; default 0.2 */
        int64_t classes LG_DEFAULT; /* the number of classes, from 1 to 2^24; must be given */
} lg_mixup_options;
/* Returns a way to make batches of mixed samples, for the .collate of a loader: sample i becomes l x[i] + (1 - l)
 * x[i - 1], where x[-1] is the last one, with one l drawn from Beta(alpha, alpha) for each batch (Zhang et al.,
 * "mixup", 2018; torchvision's MixUp). "x" is f32 or f64. "y", class numbers i64 (), becomes probabilities f32
 * (classes), mixed in the same way, as lg_cross_entropy() takes them. Other fields stay. Fields are checked by
 * lg_loader_open(), classes by lg_loader_next() (LG_ERR_ARGUMENT).
 * Example: lg_loader_open(c, train, 64, .collate = lg_mixup(c, .classes = 10)) */
#define lg_mixup(...) LG_CALL1(lg_mixup_with, lg_mixup_options, lg_mixup_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_collate *lg_mixup_with(lg_ctx *c, const lg_mixup_options *options);

LG_END_C
#endif
