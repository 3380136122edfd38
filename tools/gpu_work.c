/* gpu_work.c - tensors that the rows of gpu_bench work on, and their derivatives. */
#include "gpu_bench.h"

lg_tensor *values(work *w, lg_shape shape)
{
        return lg_uniform(w->c, -1, 1, shape, .dtype = w->dtype, .device = w->device);
}

lg_tensor *leaf(work *w, lg_shape shape)
{
        return lg_requires_grad(values(w, shape), true);
}

lg_tensor *indices(work *w, lg_shape shape, int64_t below)
{
        return lg_cast(lg_uniform(w->c, 0, below, shape, .device = w->device), LG_I64);
}

double width(const work *w)
{
        return (double)lg_dtype_size(w->dtype);
}

void make_flat(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0]));
        w->bytes = 2 * width(w) * (double)w->size[0];
}

void make_matrix(work *w)
{
        w->x = values(w, LG_SHAPE(w->size[0], w->size[1]));
        w->bytes = 2 * width(w) * (double)(w->size[0] * w->size[1]);
}

lg_tensor *images(work *w)
{
        lg_tensor *x = values(w, LG_SHAPE(w->size[0], w->size[2], w->size[2], w->size[1]));
        return lg_permute(x, LG_DIMS(0, 3, 1, 2));
}

double image_bytes(const work *w)
{
        return width(w) * (double)(w->size[0] * w->size[1] * w->size[2] * w->size[2]);
}

void run_backward(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x), .grads = LG_LIST(w->z), .retain_graph = true);
}

void run_backward_w(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->w), .grads = LG_LIST(w->z), .retain_graph = true);
}

void run_backward_both(work *w)
{
        lg_grad(LG_LIST(w->y), LG_LIST(w->x, w->w), .grads = LG_LIST(w->z), .retain_graph = true);
}
