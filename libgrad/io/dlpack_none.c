/* dlpack_none.c - where libgrad is built without the header of DLPack, no tensors go in or out. */
#include "tensor/tensor.h"

static void *missing(lg_ctx *c, const char *op)
{
        return lg__fail(c, LG_ERR_STATE, "%s: " LG__BUILT_WITHOUT("DLPack", "libdlpack-dev"), op);
}

struct DLManagedTensor *lg_to_dlpack(lg_tensor *t)
{
        return lg__check(t, "lg_to_dlpack", "t") ? missing(t->ctx, "lg_to_dlpack") : NULL;
}

lg_tensor *lg_from_dlpack(lg_ctx *c, struct DLManagedTensor *m)
{
        (void)m;
        return lg__ok(c) ? missing(c, "lg_from_dlpack") : NULL;
}
