/* transforms.h - steps on the samples of a data set: crops, flips, rotations, colours, sizes; mixing batches.
 *
 * A transform makes a new first field, "x", of each sample; the other fields stay. Its shapes and dtypes are checked
 * where it meets a data set, by lg_dataset_transform: LG_ERR_SHAPE, LG_ERR_DTYPE. Images are (C, H, W) or (H, W), of
 * u8, f32 or f64. The loader's threads run it. What is random is drawn from the sample's own numbers (lg_rng), in the
 * order that each comment states: the same seed, epoch and sample give the same bytes, whatever the number of threads.
 *
 * lg_transform *t = lg_transforms(c, lg_transform_random_crop(c, 32, 32, .padding = 4),
 *                                 lg_transform_random_horizontal_flip(c),
 *                                 lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(0.25)));
 * lg_loader *batches = lg_loader_open(c, lg_dataset_transform(train, t), 64, .shuffle = true, .workers = 2);
 */
#ifndef LG_TRANSFORMS_H
#define LG_TRANSFORMS_H

#include "grad/data.h"

LG_BEGIN

/* Belongs to the context until lg_transform_free; data sets and chains that are made with it keep what they need. */
typedef struct lg_transform lg_transform;
/* The samples of d, a stream too, with what t makes of their first field, which must not be ragged. */
LG_API LG_NEW lg_dataset *lg_dataset_transform(lg_dataset *d, lg_transform *t);
/* One after the other, itself a transform. NULL if one is NULL. lg_transforms(c, first, second) */
#define lg_transforms(...) lg_transforms_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_transform, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_transform *lg_transforms_list(lg_ctx *c, lg_transform *const *parts);
LG_API void lg_transform_free(lg_transform *t);

/* ---- values ---- */

/* u8 becomes f32, x / 255; floats stay (torchvision's ToTensor). Any shape. */
LG_API LG_NEW lg_transform *lg_transform_to_float(lg_ctx *c);
/* (x - mean) / std, of u8 (x / 255 - mean) / std in f32 (torchvision's Normalize after ToTensor). One number for values
 * of any shape, or one for each channel of (C, H, W): LG_NUMBERS(0.485, 0.456, 0.406). std is above 0. */
LG_API LG_NEW lg_transform *lg_transform_normalize(lg_ctx *c, lg_numbers_in mean, lg_numbers_in std);

/* ---- crops and flips ---- */

typedef enum lg_pad_mode {
        LG_PAD_ZEROS = 0,     /* .value beside the image */
        LG_PAD_REFLECT = 1,   /* dcb|abcd|cba; padding is below height and width */
        LG_PAD_REPLICATE = 2, /* aaa|abcd|ddd */
} lg_pad_mode;
typedef struct lg_crop_options {
        LG_OPTIONS_HEAD
        int64_t padding LG_DEFAULT; /* pixels on each side; 0 */
        lg_pad_mode mode LG_DEFAULT;
        double value LG_DEFAULT; /* of what LG_PAD_ZEROS adds */
} lg_crop_options;
/* A window of that size, anywhere in the padded image with the same probability. Draws its top, then its left.
 * lg_transform_random_crop(c, 32, 32, .padding = 4, .mode = LG_PAD_REFLECT) */
#define lg_transform_random_crop(...)                                                                                  \
        LG_CALL3(lg_transform_random_crop_with, lg_crop_options, lg_transform_random_crop_takes_c_height_width,        \
                 __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_crop_with(lg_ctx *c, int64_t height, int64_t width,
                                                          const lg_crop_options *options);
/* The window in the middle; where it is larger than the image, zeros are added (torchvision's CenterCrop). */
LG_API LG_NEW lg_transform *lg_transform_center_crop(lg_ctx *c, int64_t height, int64_t width);

typedef struct lg_flip_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT; /* the probability; 0.5 */
} lg_flip_options;
/* Left becomes right, with probability p. Draws one number. */
#define lg_transform_random_horizontal_flip(...)                                                                       \
        LG_CALL1(lg_transform_random_horizontal_flip_with, lg_flip_options,                                            \
                 lg_transform_random_horizontal_flip_takes_c, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_horizontal_flip_with(lg_ctx *c, const lg_flip_options *options);
/* Top becomes bottom. */
#define lg_transform_random_vertical_flip(...)                                                                         \
        LG_CALL1(lg_transform_random_vertical_flip_with, lg_flip_options, lg_transform_random_vertical_flip_takes_c,   \
                 __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_vertical_flip_with(lg_ctx *c, const lg_flip_options *options);

/* ---- geometry ---- */

/* Height and width become these, bilinear and smoothed where they shrink, as Pillow's resize(BILINEAR) and
 * torchvision's Resize with antialias: u8 within one level of Pillow's, f32 within rounding. */
LG_API LG_NEW lg_transform *lg_transform_resize(lg_ctx *c, int64_t height, int64_t width);

typedef struct lg_rotation_options {
        LG_OPTIONS_HEAD
        double value LG_DEFAULT; /* beside the image */
} lg_rotation_options;
/* Turned about its centre, counterclockwise by -degrees to degrees, in its size, bilinear (torchvision's RandomRotation
 * of tensors with BILINEAR). Draws the angle. lg_transform_random_rotation(c, 15) */
#define lg_transform_random_rotation(...)                                                                              \
        LG_CALL2(lg_transform_random_rotation_with, lg_rotation_options, lg_transform_random_rotation_takes_c_degrees, \
                 __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_rotation_with(lg_ctx *c, double degrees,
                                                              const lg_rotation_options *options);

typedef struct lg_affine_options {
        LG_OPTIONS_HEAD
        double degrees LG_DEFAULT;     /* clockwise by -degrees to degrees; 0 */
        double translate_x LG_DEFAULT; /* the most, as a part of the width: a whole number of pixels; 0 */
        double translate_y LG_DEFAULT; /* of the height; 0 */
        double scale_min LG_DEFAULT;   /* 1 */
        double scale_max LG_DEFAULT;   /* 1 */
        double shear LG_DEFAULT;       /* along x by -shear to shear degrees; 0 */
        double value LG_DEFAULT;       /* beside the image */
} lg_affine_options;
/* Sheared, scaled and turned about its centre, then moved, in its size, bilinear (torchvision's RandomAffine of tensors
 * with BILINEAR). Draws angle, x, y, scale and shear. lg_transform_random_affine(c, .degrees = 10, .scale_min = 0.9) */
#define lg_transform_random_affine(...)                                                                                \
        LG_CALL1(lg_transform_random_affine_with, lg_affine_options, lg_transform_random_affine_takes_c, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_affine_with(lg_ctx *c, const lg_affine_options *options);

/* ---- colours ---- */

typedef struct lg_jitter_options {
        LG_OPTIONS_HEAD
        double brightness LG_DEFAULT; /* times max(0, 1 - brightness) to 1 + brightness; 0: stays */
        double contrast LG_DEFAULT;   /* about the mean of the grey image, in the same way */
} lg_jitter_options;
/* Images of 1 channel or 3, of 0 to 255 or, in floats, 0 to 1, in which values stay (torchvision's ColorJitter of
 * tensors). Draws both factors, then which comes first. lg_transform_color_jitter(c, .brightness = 0.4) */
#define lg_transform_color_jitter(...)                                                                                 \
        LG_CALL1(lg_transform_color_jitter_with, lg_jitter_options, lg_transform_color_jitter_takes_c, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_color_jitter_with(lg_ctx *c, const lg_jitter_options *options);

typedef struct lg_erasing_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT;         /* the probability; 0.5 */
        double scale_min LG_DEFAULT; /* part of the image's area; 0.02 */
        double scale_max LG_DEFAULT; /* 0.33 */
        double ratio_min LG_DEFAULT; /* height to width; 0.3 */
        double ratio_max LG_DEFAULT; /* 3.3 */
        double value LG_DEFAULT;     /* what the rectangle becomes; 0 */
        bool random LG_DEFAULT;      /* normal numbers instead; in u8, bytes of equal probability */
} lg_erasing_options;
/* A rectangle of random size and place is erased, with probability p (torchvision's RandomErasing). Draws whether;
 * then, at most ten times, until it fits, area and ratio; then top and left; then the noise by channels and rows. */
#define lg_transform_random_erasing(...)                                                                               \
        LG_CALL1(lg_transform_random_erasing_with, lg_erasing_options, lg_transform_random_erasing_takes_c, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_random_erasing_with(lg_ctx *c, const lg_erasing_options *options);

/* ---- own ones ---- */

/* What an own transform works on: `from` to `to`, both contiguous, which are not the same memory. */
typedef struct lg_transform_call {
        const lg_field *in, *out;
        const void *from;
        void *to;
        lg_rng *rng;
        lg_sample *sample; /* for lg_sample_fail */
} lg_transform_call;
/* Runs in the loader's threads, as lg_sample_fn does. False: LG_ERR_IO and what lg_sample_fail said. */
typedef bool lg_transform_fn(const lg_transform_call *call, void *user);
typedef struct lg_transform_options {
        LG_OPTIONS_HEAD
        lg_shape shape LG_DEFAULT;              /* what it makes; that of the field */
        lg_dtype dtype LG_DEFAULT;              /* that of the field */
        bool random LG_DEFAULT;                 /* it draws from call->rng */
        void (*release)(void *user) LG_DEFAULT; /* is called as it ends, or where it cannot be made */
} lg_transform_options;
/* lg_transform_new(c, invert, NULL, .dtype = LG_F32) */
#define lg_transform_new(...)                                                                                          \
        LG_CALL3(lg_transform_new_with, lg_transform_options, lg_transform_new_takes_c_fn_user, __VA_ARGS__)
LG_API LG_NEW lg_transform *lg_transform_new_with(lg_ctx *c, lg_transform_fn *fn, void *user,
                                                  const lg_transform_options *options);

/* ---- batches ---- */

typedef struct lg_mixup_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT;    /* 0.2 */
        int64_t classes LG_DEFAULT; /* must be given */
} lg_mixup_options;
/* Batches in which sample i is l x[i] + (1 - l) x[i - 1], the last one before the first, with one l of Beta(alpha,
 * alpha) for each batch (Zhang et al., "mixup", 2018; torchvision's MixUp). x is f32 or f64; y, class numbers in i64
 * (), becomes probabilities in f32 (classes), in the same mix, for lg_cross_entropy. Other fields stay. A class out of
 * range is LG_ERR_ARGUMENT. lg_loader_open(c, train, 64, .collate = lg_mixup(c, .classes = 10)) */
#define lg_mixup(...) LG_CALL1(lg_mixup_with, lg_mixup_options, lg_mixup_takes_c, __VA_ARGS__)
LG_API LG_NEW lg_collate *lg_mixup_with(lg_ctx *c, const lg_mixup_options *options);

LG_END_C
#endif
