/* layout.c - memory layouts: strides, contiguity, channels-last order, overlap. */
#include <stdlib.h>
#include <string.h>
#include "tensor.h"

void lg__layout_contiguous(lg__layout *at)
{
        int64_t stride = 1;
        for (int i = at->shape.ndim - 1; i >= 0; i--) {
                at->strides[i] = stride;
                stride *= at->shape.size[i] > 0 ? at->shape.size[i] : 1;
        }
        at->offset = 0;
}

void lg__layout_channels_last(lg__layout *at)
{
        int n = at->shape.ndim;
        int64_t stride = at->shape.size[1] > 0 ? at->shape.size[1] : 1;
        at->strides[1] = 1;
        for (int i = n - 1; i >= 0; i--) {
                if (i == 1)
                        continue;
                at->strides[i] = stride;
                stride *= at->shape.size[i] > 0 ? at->shape.size[i] : 1;
        }
        at->offset = 0;
}

bool lg__layout_is_channels_last(const lg__layout *at)
{
        lg__layout wanted = {.shape = at->shape};
        if (at->shape.ndim < 3)
                return false;
        lg__layout_channels_last(&wanted);
        for (int i = 0; i < at->shape.ndim; i++)
                if (at->shape.size[i] > 1 && at->strides[i] != wanted.strides[i])
                        return lg__shape_numel(at->shape) == 0;
        return true;
}

bool lg__layout_is_dense(const lg__layout *at)
{
        unsigned left = 0;
        int64_t stride = 1;
        if (lg__layout_is_contiguous(at))
                return true;
        for (int i = 0; i < at->shape.ndim; i++)
                left |= at->shape.size[i] > 1 ? 1u << i : 0;
        while (left) {
                int i = 0;
                while (i < at->shape.ndim && !((left >> i & 1) && at->strides[i] == stride))
                        i++;
                if (i == at->shape.ndim)
                        return false;
                stride *= at->shape.size[i];
                left &= ~(1u << i);
        }
        return true;
}

bool lg__keep_layout(lg__layout *at, const lg__layout *like)
{
        if (!lg__shape_equal(at->shape, like->shape) || !lg__layout_is_dense(like))
                return false;
        if (!lg__layout_is_contiguous(like))
                memcpy(at->strides, like->strides, sizeof at->strides);
        return true;
}

bool lg__layout_is_contiguous(const lg__layout *at)
{
        int64_t stride = 1;
        if (lg__layout_numel(at) == 0)
                return true;
        for (int i = at->shape.ndim - 1; i >= 0; i--) {
                if (at->shape.size[i] > 1 && at->strides[i] != stride)
                        return false;
                stride *= at->shape.size[i];
        }
        return true;
}

bool lg__lies_last(const lg_tensor *w)
{
        return w->storage->device->api->weights_last && w->at.shape.ndim == 4 && lg__layout_is_channels_last(&w->at) &&
               !lg__layout_is_contiguous(&w->at);
}

void lg__layout_reach(const lg__layout *at, int64_t *ret_low, int64_t *ret_high)
{
        *ret_low = *ret_high = at->offset;
        for (int i = 0; i < at->shape.ndim; i++) {
                int64_t far = (at->shape.size[i] - 1) * at->strides[i];
                *(far < 0 ? ret_low : ret_high) += far;
        }
}

bool lg__layout_overlaps(const lg__layout *at)
{
        bool done[LG_MAX_DIMS] = {false};
        int64_t used = 0; /* distance from the first to the last element reached by the dimensions of smaller stride */
        for (int k = 0; k < at->shape.ndim; k++) {
                int least = -1;
                for (int i = 0; i < at->shape.ndim; i++)
                        if (!done[i] && (least < 0 || llabs(at->strides[i]) < llabs(at->strides[least])))
                                least = i;
                done[least] = true;
                if (at->shape.size[least] < 2)
                        continue;
                if (llabs(at->strides[least]) <= used)
                        return true;
                used += (at->shape.size[least] - 1) * llabs(at->strides[least]);
        }
        return false;
}
