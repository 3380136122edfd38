/* loss.c - losses made of other ops. mse: (x - t)^2, its mean, its sum, or as it is. */
#include "../op.h"

lg_tensor *lg_mse_(lg_tensor *x, lg_loss_options o)
{
        lg_tensor *t = o.target;
        if (!x || !t)
                return lg__fail(x ? x->ctx : lg__ctx_of(t), LG_ERR_ARGUMENT, "mse: %s is NULL", x ? "target" : "x");
        if (!lg__check(x, "mse", "x") || !lg__check(t, "mse", "target"))
                return NULL;
        if (!lg__shape_equal(x->at.shape, t->at.shape))
                return lg__fail(x->ctx, LG_ERR_SHAPE, "mse: x is %s but target is %s; they need one shape",
                                lg__tensor_text(x).s, lg__tensor_text(t).s);
        if (o.reduction < LG_MEAN || o.reduction > LG_NONE)
                return lg__fail(x->ctx, LG_ERR_ARGUMENT, "mse: %d is no reduction", (int)o.reduction);
        lg_tensor *each = lg_square(lg_sub(x, t));
        return o.reduction == LG_NONE ? each : o.reduction == LG_SUM ? lg_sum(each) : lg_mean(each);
}
