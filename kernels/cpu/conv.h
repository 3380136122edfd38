/* conv.h - what the files of convolution share. */
#ifndef LG_CPU_CONV_H
#define LG_CPU_CONV_H

#include "block.h"

/* ---- parts of a loop, shared out to threads where the call is worth it ---- */

#define lg_conv_share LG_CPU(conv_share)
void lg_conv_share(lg_queue *q, const lg_conv_args *a, int64_t parts, lg_range_fn *f, const void *job);

/* ---- sums of the weights' gradient ---- */

/* `count` arrays (outputs, taps, channels of a group), whose rows of channels are `row` elements apart. */
typedef struct lg_conv_sums {
        const void *sums;
        int64_t count, outputs, taps, channels, row;
} lg_conv_sums;

/* The sum of the arrays, in their order, to (outputs, channels, taps). */
#define lg_conv_add_sums LG_CPU(conv_add_sums)
void lg_conv_add_sums(lg_queue *q, const lg_conv_args *a, const lg_conv_sums *s);

/* ---- parts of images ---- */

/* The outputs cut into parts of whole rows: of some rows of one image, or of some whole images. */
typedef struct lg_conv_cut {
        const lg_conv_args *a;
        int64_t images, rows, bands; /* of a part; bands of an image */
        int64_t parts, pixels;       /* pixels: the most that a part has */
        int64_t height, width;       /* of the input that a part sees */
        bool reaches;                /* beyond the image */
        bool copies;                 /* with zeros around, into scratch of so many bytes: where it reaches and fits */
        int64_t bytes;
} lg_conv_cut;

/* A part: `count` rows from row `top` on of each of some images, of which the first pixel is `first` of all, and the
 * input from where the window of that pixel begins: `line` elements to its next row, `image` to that of the next image.
 */
typedef struct lg_conv_rows {
        int64_t images, top, count, first;
        const void *from;
        ptrdiff_t line, image;
} lg_conv_rows;

/* False: strides, dilation or padding so large that a copy of a few rows with zeros around would be, too. */
#define lg_conv_cut_fits LG_CPU(conv_cut_fits)
bool lg_conv_cut_fits(const lg_conv_args *a);
/* Parts that read about so many bytes: `parts` of them if there is so much, of no more whole images than make so many
 * pixels. The arguments are those of a forward convolution (of WEIGHT_GRAD, too), and nothing is empty. */
#define lg_conv_cut_of LG_CPU(conv_cut_of)
lg_conv_cut lg_conv_cut_of(const lg_conv_args *a, int64_t bytes, int64_t parts, int64_t pixels);
/* A part that scratch has a copy of, if the cut copies; the other makes that copy. */
#define lg_conv_taken LG_CPU(conv_taken)
lg_conv_rows lg_conv_taken(const lg_conv_cut *c, int64_t part, const char *scratch);
#define lg_conv_take LG_CPU(conv_take)
lg_conv_rows lg_conv_take(const lg_conv_cut *c, int64_t part, char *scratch);

/* Returns whether a FORWARD convolution has an end: a scale, a residual or ReLU (conv_end.inc). */
static inline bool lg_conv_has_end(const lg_conv_args *a)
{
        return a->scale || a->z || a->relu;
}

/* 1x1 of stride 1: an image is its own matrix of windows. */
#define lg_conv_is_plain LG_CPU(conv_is_plain)
bool lg_conv_is_plain(const lg_conv_geometry *at);

/* Elements from array to array: no multiple of a large power of two, which would be one set of the first cache. */
static inline int64_t lg_conv_spread(int64_t count)
{
        return count % 256 == 0 ? count + 16 : count;
}

/* ---- ways to compute; of f32 or f64, and not empty ---- */

/* The arguments of FORWARD; those of INPUT_GRAD with stride 1 as the forward convolution of g that it is, with a
 * padding that may be negative: its kind says that the weights are turned by 180 degrees, (channels, outputs, kernel).
 */
#define lg_conv_as_forward LG_CPU(conv_as_forward)
lg_conv_args lg_conv_as_forward(const lg_conv_args *a);

/* As matrix products: gradients of any geometry; FORWARD if it is plain, has one group and no scale. */
#define lg_conv_products_fit LG_CPU(conv_products_fit)
bool lg_conv_products_fit(const lg_conv_args *a);
#define lg_conv_products LG_CPU(conv_products)
bool lg_conv_products(lg_queue *q, const lg_conv_args *a);

/* FORWARD and INPUT_GRAD without a matrix of windows. With a stride, INPUT_GRAD must not be dilated, and the kernel no
 * smaller than the stride. */
#define lg_conv_direct LG_CPU(conv_direct)
bool lg_conv_direct(lg_queue *q, const lg_conv_args *a);

/* WEIGHT_GRAD without a matrix of windows, where the cut fits. */
#define lg_conv_weight LG_CPU(conv_weight)
bool lg_conv_weight(lg_queue *q, const lg_conv_args *a);

/* All kinds, where a vector has room for several groups. */
#define lg_conv_suits_groups LG_CPU(conv_suits_groups)
bool lg_conv_suits_groups(const lg_conv_args *a);
#define lg_conv_groups LG_CPU(conv_groups)
bool lg_conv_groups(lg_queue *q, const lg_conv_args *a);

/* By Winograd's algorithm: 3x3, stride and dilation 1, one group; f32, or f16 and bf16 of which b and z are f32. */
#define lg_conv_winograd_fits LG_CPU(conv_winograd_fits)
bool lg_conv_winograd_fits(const lg_conv_args *a);
#define lg_conv_winograd LG_CPU(conv_winograd)
bool lg_conv_winograd(lg_queue *q, const lg_conv_args *a); /* FORWARD and INPUT_GRAD */
#define lg_conv_winograd_weight LG_CPU(conv_winograd_weight)
bool lg_conv_winograd_weight(lg_queue *q, const lg_conv_args *a);

#define LG_BOTH "conv_end.inc"
#include "both.inc"

#endif
