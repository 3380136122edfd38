/* windows.h - the windows of ONNX's convolutions and pooling. Private to onnx/. */
#ifndef LG_ONNX_WINDOWS_H
#define LG_ONNX_WINDOWS_H

#include "import.h"

#define SIDES 3

/* The windows of an operator over images with 1 to 3 sides, each described along d, h and w. Missing sides are 1. */
typedef struct lg__onnx_windows {
        int sides;
        int64_t in[SIDES], kernel[SIDES], stride[SIDES], dilation[SIDES], before[SIDES], after[SIDES];
        bool even; /* before and after are equal */
} lg__onnx_windows;

/* Reads an attribute with one number for each side, or `each` for all. */
bool lg__onnx_sides(const lg__onnx_call *c, const char *name, int sides, int64_t each, int64_t *ret);
/* Sets the padding from "pads" or "auto_pad". */
bool lg__onnx_pads(const lg__onnx_call *c, lg__onnx_windows *w);
/* Describes the windows over operand 0, with the kernel's sizes from operand `kernel` or, if that is 0, the attribute.
 */
bool lg__onnx_windows_of(const lg__onnx_call *c, int kernel, lg__onnx_windows *ret);
/* Returns x (N, C, ...) with `value` around it, and sets the padding of the windows to 0. */
lg_tensor *lg__onnx_padded(lg_tensor *x, lg__onnx_windows *w, double value);

static inline lg_triple triple(const int64_t *v)
{
        return LG_TRIPLE(v[0], v[1], v[2]);
}

static inline lg_pair pair(const int64_t *v)
{
        return LG_PAIR(v[1], v[2]);
}

/* Returns x (N, C, L) as (N, C, 1, L), and y (N, C, 1, L) as (N, C, L); images with more sides as they are. */
static inline lg_tensor *with_height(lg_tensor *x)
{
        return x && x->at.shape.ndim == 3 ? lg_unsqueeze(x, 2) : x;
}

static inline lg_tensor *without_height(const lg__onnx_windows *w, lg_tensor *y)
{
        return y && w->sides == 1 ? lg_squeeze(y, LG_DIMS(2)) : y;
}

#endif
