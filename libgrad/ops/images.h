/* images.h - converts signals, single images and single volumes to batches, for convolution and pooling; convolution of
 * volumes. Private to ops/. */
#ifndef LG_OPS_IMAGES_H
#define LG_OPS_IMAGES_H

#include "graph/op.h"

/* Sets side d of a geometry, 0 for the height, 1 for the width. */
static inline void lg__set_side(lg_conv_geometry *g, int d, const lg__side *s)
{
        g->in[d] = s->in;
        g->kernel[d] = s->kernel;
        g->out[d] = s->out;
        g->stride[d] = s->stride;
        g->padding[d] = s->padding;
        g->dilation[d] = s->dilation;
}

static inline lg__side lg__side_at(const lg_conv_geometry *g, int d)
{
        return (lg__side){g->in[d], g->kernel[d], g->out[d], g->stride[d], g->padding[d], g->dilation[d]};
}

/* Returns input 0 of a composite as (N, C, H, W), or for 3 spatial dimensions as (N, C, D, H, W): a signal becomes an
 * image of height 1, a single image or volume a batch of one. Returns NULL and sets an error for other numbers of
 * dimensions. */
static inline lg_tensor *lg__as_images(const lg__call *call, int spaces)
{
        lg_tensor *x = call->in[0];
        const int n = x->at.shape.ndim, most = spaces + 2;
        if (n != most && n != most - 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s%s", call->op->name,
                                lg__tensor_text(x).s, lg__images_text(spaces), lg__layout_hint(x, spaces, 1));
        x = spaces == 1 ? lg_unsqueeze(x, -2) : x;
        return n < most ? lg_unsqueeze(x, 0) : x;
}

/* Checks that no dimension of x (N, C, ...) but the batch is empty. A single image has a batch of 1. False if x is
 * NULL, after an error. */
static inline bool lg__has_pixels(const lg__call *call, const lg_tensor *x)
{
        bool any = x != NULL;
        for (int i = 1; any && i < x->at.shape.ndim; i++)
                any = any && x->at.shape.size[i];
        return any || lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; no dimension but that of the batch may be empty",
                               call->op->name, lg__tensor_text(call->in[0]).s);
}

/* Returns side d of those of `spaces` dimensions, which are `each` unless they are given: 0 is the first one. */
static inline int64_t lg__side_of(int spaces, int d, lg_triple given, int64_t each)
{
        const lg_triple sides = lg__sides(given, each);
        d += 3 - spaces;
        return d == 0 ? sides.d : d == 1 ? sides.h : sides.w;
}

/* Returns the result y of a batch with the number of dimensions that input 0 had. */
static inline lg_tensor *lg__as_given(const lg__call *call, lg_tensor *y, int spaces)
{
        const bool alone = call->in[0]->at.shape.ndim < spaces + 2;
        y = spaces == 1 ? lg_squeeze(y, LG_DIMS(-2)) : y;
        return alone ? lg_squeeze(y, LG_DIMS(0)) : y;
}

/* Returns whether lg__conv_long() is faster for signals x (N, C, 1, L) and kernels w (O, C, 1, K), with stride and
 * dilation
 * 1. It returns their convolution (N, O, 1, L'), with the bias b, which may be NULL (conv_long.c). */
bool lg__conv_is_long(const lg_tensor *x, const lg_tensor *w, int64_t padding);
lg_tensor *lg__conv_long(lg_tensor *x, lg_tensor *w, lg_tensor *b, int64_t padding);

/* Computes a convolution of volumes (N, C, D, H, W) by convolutions of images (conv_volumes.c). k has the arguments of
 * the image (H, W), with x, g, w, z and out of the volumes; `depth` is the geometry of D. */
bool lg__conv_volumes(const lg__call *call, const lg_conv_args *k, const lg__side *depth);

/* Writes the means or maxima, by operator `reduce`, of windows along a dimension: those of adaptive pooling. */
void lg__form_areas(lg__form *f, const char *x, const char *reduce, int dim, int64_t in, int64_t out);

#endif
