/* elementwise.c - runs elementwise kernels on tensors: converts shapes and strides to arguments. Records nothing. */
#include "tensor.h"

static bool run(int id, lg_tensor *out, lg_tensor *const *in, double p0, double p1, bool accumulate, const char *op)
{
        lg_pointwise_args a; /* only the first ndim sizes and strides are set */
        lg__device *d = out->storage->device;
        if (lg__layout_numel(&out->at) == 0)
                return true;
        a.ndim = out->at.shape.ndim;
        a.dtype = out->at.dtype;
        a.out = lg__data(out);
        a.p0 = p0;
        a.p1 = p1;
        a.accumulate = accumulate;
        for (int i = 0; i < a.ndim; i++) {
                a.shape[i] = out->at.shape.size[i];
                a.out_strides[i] = out->at.strides[i];
        }
        for (int i = 0; i < LG_PW_INPUTS; i++) {
                a.in[i] = NULL;
                if (!in[i])
                        continue;
                a.in[i] = lg__data(in[i]);
                if (a.ndim)
                        lg__broadcast_strides(&in[i]->at, out->at.shape, a.in_strides[i]);
                if (in[i]->at.dtype != LG_BOOL)
                        a.dtype = in[i]->at.dtype; /* comparisons have the dtype of their inputs */
        }
        if (out->at.dtype == LG_BOOL && in[0]->at.dtype == LG_BOOL)
                a.dtype = LG_BOOL;
        return lg__kernel_done(d, op,
                               (!d->cache.ctx->tape || lg__tape_add(d, op, LG__KERNEL_POINTWISE + id, &a, sizeof a)) &&
                                       d->api->kernels->pointwise[id](d->queue, &a));
}

bool lg__pointwise_run(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op)
{
        return run(id, out, in, p0, p1, false, op);
}

bool lg__pointwise_add(int id, lg_tensor *out, lg_tensor *const in[LG_PW_INPUTS], double p0, double p1, const char *op)
{
        return run(id, out, in, p0, p1, true, op);
}
