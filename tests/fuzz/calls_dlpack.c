/* calls_dlpack.c - a tensor out by DLPack and in again, as it was or as hostile as it can be without other memory. */
#include "vm.h"

#if LG_DLPACK
#include <dlpack/dlpack.h>

/* Never so that the elements would be elsewhere: that no library can notice. */
static void spoil(DLTensor *d, uint8_t b)
{
        switch (b % 8) {
        case 0:
                d->ndim = b < 128 ? 9 : -1;
                break;
        case 1:
                d->dtype.lanes = b / 8;
                break;
        case 2:
                d->device.device_type = (DLDeviceType)(b / 8);
                break;
        case 3:
                if (d->ndim && d->shape[0] > 1)
                        d->strides[0] = b < 128 ? INT64_MAX - b : INT64_MIN + b;
                break;
        case 4:
                if (d->ndim)
                        d->shape[0] = b < 128 ? -b : INT64_MAX - b;
                break;
        default:
                break;
        }
}

void call_dlpack(vm *m)
{
        lg_tensor *t = tensor(m);
        uint8_t b = byte(m);
        const bool here = lg_ctx_of(t) == m->now->ctx; /* no context keeps the other's memory */
        DLManagedTensor *x = lg_to_dlpack(t);
        check_done(m, x != NULL);
        if (!x)
                return;
        spoil(&x->dl_tensor, b);
        t = here && flag(m) ? lg_from_dlpack(m->now->ctx, x) : NULL;
        if (!t)
                x->deleter(x);
        else
                give(m, t);
}
#else
void call_dlpack(vm *m)
{
        FUZZ_CHECK(!lg_to_dlpack(tensor(m)), "an export without DLPack");
}
#endif
