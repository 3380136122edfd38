/* conv.h - declarations shared by the files of convolution. */
#ifndef LG_CPU_CONV_H
#define LG_CPU_CONV_H

#include "block.h"

/* ---- distribution of a loop's parts over the threads, if the call is worth it ---- */

#define lg_conv_share LG_CPU(conv_share)
void lg_conv_share(lg_queue *q, const lg_conv_args *a, int64_t parts, lg_range_fn *f, const void *job);

/* ---- sums of the weight gradient ---- */

/* `count` arrays (outputs, taps, channels of a group), one after the other; `row` is the stride of rows of channels. */
typedef struct lg_conv_sums {
        const void *sums;
        int64_t count, outputs, taps, channels, row;
} lg_conv_sums;

/* Adds the arrays in their order and writes the sum to the weight gradient, a->out (outputs, channels, taps). */
#define lg_conv_add_sums LG_CPU(conv_add_sums)
void lg_conv_add_sums(lg_queue *q, const lg_conv_args *a, const lg_conv_sums *s);

/* ---- parts of images ---- */

/* Division of the outputs into parts of whole rows: several rows of one image, or several whole images. */
typedef struct lg_conv_cut {
        const lg_conv_args *a;
        int64_t images, rows, bands; /* images and rows per part; parts per image */
        int64_t parts, pixels;       /* number of parts; the most output pixels in a part */
        int64_t height, width;       /* height and width in pixels of the input that a part reads */
        bool reaches;                /* windows extend beyond the image */
        bool copies;                 /* parts are copied to `bytes` of scratch, with zeros outside the image */
        int64_t bytes;
} lg_conv_cut;

/* Part of the outputs: rows [top, top + count) of each of `images` images; `first` is the number of its first pixel
 * among all. `from` is the input at the start of this pixel's window, `line` elements before the next row and `image`
 * elements before the next image. */
typedef struct lg_conv_rows {
        int64_t images, top, count, first;
        const void *from;
        ptrdiff_t line, image;
} lg_conv_rows;

/* Returns false if stride, dilation or padding is so large that a padded copy of a few rows would be too large. */
#define lg_conv_cut_fits LG_CPU(conv_cut_fits)
bool lg_conv_cut_fits(const lg_conv_args *a);
/* Divides the outputs into parts that read about `bytes` bytes each, at least `parts` of them if possible, with several
 * images up to `pixels` pixels. Takes the arguments of a forward convolution (also for WEIGHT_GRAD), nothing empty. */
#define lg_conv_cut_of LG_CPU(conv_cut_of)
lg_conv_cut lg_conv_cut_of(const lg_conv_args *a, int64_t bytes, int64_t parts, int64_t pixels);
/* lg_conv_take loads a part, into scratch if the division copies; lg_conv_taken returns a part loaded before. */
#define lg_conv_taken LG_CPU(conv_taken)
lg_conv_rows lg_conv_taken(const lg_conv_cut *c, int64_t part, const char *scratch);
#define lg_conv_take LG_CPU(conv_take)
lg_conv_rows lg_conv_take(const lg_conv_cut *c, int64_t part, char *scratch);

/* Returns whether a FORWARD convolution has an epilogue: a scale, a residual or ReLU (conv_end.inc). */
static inline bool lg_conv_has_end(const lg_conv_args *a)
{
        return a->scale || a->z || a->relu;
}

/* Returns whether the kernel is 1x1 with stride 1 and no padding: the image is then its own im2col matrix. */
#define lg_conv_is_plain LG_CPU(conv_is_plain)
bool lg_conv_is_plain(const lg_conv_geometry *at);

/* Returns a stride >= count that is no multiple of 256, which would map arrays to the same sets of the L1 cache. */
static inline int64_t lg_conv_spread(int64_t count)
{
        return count % 256 == 0 ? count + 16 : count;
}

/* ---- algorithms, for f32 or f64 and tensors that are not empty ---- */

/* Returns the arguments of a forward convolution. INPUT_GRAD with stride 1 becomes one of g, whose padding may be
 * negative; its `kind` stays and means that the weights (channels, outputs, kernel) are rotated by 180 degrees. */
#define lg_conv_as_forward LG_CPU(conv_as_forward)
lg_conv_args lg_conv_as_forward(const lg_conv_args *a);

/* Convolution as matrix products: gradients of any geometry; FORWARD if it is plain, with one group and no scale. */
#define lg_conv_products_fit LG_CPU(conv_products_fit)
bool lg_conv_products_fit(const lg_conv_args *a);
#define lg_conv_products LG_CPU(conv_products)
bool lg_conv_products(lg_queue *q, const lg_conv_args *a);

/* Direct FORWARD and INPUT_GRAD, without an im2col matrix. If INPUT_GRAD has a stride, its dilation must be 1 and the
 * kernel no smaller than the stride. */
#define lg_conv_direct LG_CPU(conv_direct)
bool lg_conv_direct(lg_queue *q, const lg_conv_args *a);

/* Direct WEIGHT_GRAD, without an im2col matrix, if lg_conv_cut_fits(). */
#define lg_conv_weight LG_CPU(conv_weight)
bool lg_conv_weight(lg_queue *q, const lg_conv_args *a);

/* All kinds of convolution with groups, if a vector has room for several groups. */
#define lg_conv_suits_groups LG_CPU(conv_suits_groups)
bool lg_conv_suits_groups(const lg_conv_args *a);
#define lg_conv_groups LG_CPU(conv_groups)
bool lg_conv_groups(lg_queue *q, const lg_conv_args *a);

/* Winograd's algorithm: 3x3 with stride and dilation 1, one group; f32, or f16 and bf16 with b and z in f32. */
#define lg_conv_winograd_fits LG_CPU(conv_winograd_fits)
bool lg_conv_winograd_fits(const lg_conv_args *a);
#define lg_conv_winograd LG_CPU(conv_winograd)
bool lg_conv_winograd(lg_queue *q, const lg_conv_args *a); /* for FORWARD and INPUT_GRAD */
#define lg_conv_winograd_weight LG_CPU(conv_winograd_weight)
bool lg_conv_winograd_weight(lg_queue *q, const lg_conv_args *a);

#define LG_BOTH "conv_end.inc"
#include "both.inc"

#endif
