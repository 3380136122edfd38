/* sum_to.c - the one place where gradients of broadcast inputs are summed. */
#include "graph/op.h"

lg_tensor *lg__sum_to(lg_tensor *x, lg_shape shape)
{
        if (!x || lg__shape_equal(x->at.shape, shape))
                return x;
        lg_dims dims = LG_ALL_DIMS;
        int missing = x->at.shape.ndim - shape.ndim;
        for (int i = 0; i < x->at.shape.ndim; i++)
                if (i < missing || (shape.size[i - missing] == 1 && x->at.shape.size[i] != 1))
                        dims.dim[dims.count++] = i;
        if (dims.count)
                x = lg_sum(x, .dims = dims, .keep_dim = true);
        return lg_reshape(x, shape);
}
