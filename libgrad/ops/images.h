/* images.h - converts signals and single images to batches of images, for convolution and pooling. Private to ops/. */
#ifndef LG_OPS_IMAGES_H
#define LG_OPS_IMAGES_H

#include "graph/op.h"

/* Returns input 0 of a composite as (N, C, H, W): a signal becomes an image of height 1, a single image a batch of
 * one. Returns NULL and sets an error for other numbers of dimensions. */
static inline lg_tensor *lg__as_images(const lg__call *call, bool signal)
{
        lg_tensor *x = call->in[0];
        const int n = x->at.shape.ndim, most = signal ? 3 : 4;
        if (n != most && n != most - 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: x is %s; it takes %s%s", call->op->name,
                                lg__tensor_text(x).s, signal ? "(N, C, L) or (C, L)" : "(N, C, H, W) or (C, H, W)",
                                lg__layout_hint(x, signal ? 1 : 2, 1));
        x = signal ? lg_unsqueeze(x, -2) : x;
        return n < most ? lg_unsqueeze(x, 0) : x;
}

/* Returns the result y (N, C, H, W) with the number of dimensions that input 0 had. */
static inline lg_tensor *lg__as_given(const lg__call *call, lg_tensor *y, bool signal)
{
        const bool alone = call->in[0]->at.shape.ndim < (signal ? 3 : 4);
        y = signal ? lg_squeeze(y, LG_DIMS(-2)) : y;
        return alone ? lg_squeeze(y, LG_DIMS(0)) : y;
}

#endif
