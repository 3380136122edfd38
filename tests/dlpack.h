/* dlpack.h - what the tests of DLPack share: the consumer's side of an export. */
#ifndef LG_TEST_DLPACK_H
#define LG_TEST_DLPACK_H

#include <dlpack/dlpack.h>
#include "failing.h"

static inline void end(DLManagedTensor *m)
{
        assert_non_null(m);
        m->deleter(m);
}

/* The element of two indices by the strides of the export. */
static inline float element(const DLManagedTensor *m, int64_t i, int64_t j)
{
        const DLTensor *d = &m->dl_tensor;
        return ((float *)d->data)[i * d->strides[0] + j * d->strides[1]];
}

/* 0, 1, 2, ... on the CPU. */
static inline lg_tensor *counting(lg_ctx *c, lg_shape shape, lg_dtype dtype)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        lg_tensor *t = lg_arange(c, 0, (double)n, 1, .device = lg_cpu(), .dtype = LG_F32);
        return lg_cast(lg_reshape(t, shape), dtype);
}

#endif
