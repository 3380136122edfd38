/* read.c - reads values of a file into tensors in pieces, which needs memory for one piece only. */
#include "load.h"

#define PIECE ((int64_t)4 << 20) /* bytes; a whole number of elements of any dtype */

/* Returns `count` elements of t, from element `first`, as a flat view of t, which must be contiguous. */
static lg_tensor *part_of(lg_tensor *t, int64_t first, int64_t count)
{
        lg_tensor *flat = lg_reshape(lg_detach(t), LG_SHAPE(lg__shape_numel(t->at.shape)));
        return flat ? lg_slice(flat, 0, first, first + count) : NULL;
}

static bool put_part(lg__weights *w, const lg__weight *e, lg_tensor *t, int64_t at, void *piece, int64_t bytes)
{
        const int64_t size = (int64_t)lg__dtype_bytes(e->dtype);
        if (!lg__weights_read_part(w, e, at, piece, bytes) || !t)
                return lg__ok(w->ctx);
        lg_scope scope = lg__scope_begin(w->ctx);
        lg_tensor *part = scope.id ? part_of(t, at / size, bytes / size) : NULL;
        bool ok = part && lg__write_values(part, w->op, piece, e->dtype, (size_t)bytes);
        lg_scope_end(w->ctx, scope);
        return ok;
}

bool lg__weight_put(lg__weights *w, const lg__weight *e, lg_tensor *t)
{
        const int64_t all = e->end - e->begin, most = all < PIECE ? all : PIECE;
        if (t && !lg__layout_is_contiguous(&t->at)) { /* the file has the elements in row-major order */
                lg_scope scope = lg__scope_begin(w->ctx);
                lg_tensor *rows = scope.id ? lg__weight_tensor(w, e, t->at.dtype, t->storage->device->id) : NULL;
                const bool copied = rows && lg__copy_values(t, rows, w->op);
                lg_scope_end(w->ctx, scope);
                return copied;
        }
        if (t && t->at.dtype == e->dtype && t->storage->device->id.type == LG_DEVICE_CPU)
                return lg__weights_read_part(w, e, 0, lg__data(t), all);
        void *piece = lg__alloc(w->ctx, (size_t)most + 1);
        bool ok = piece != NULL;
        for (int64_t at = 0; ok && at < all; at += most)
                ok = put_part(w, e, t, at, piece, all - at < most ? all - at : most);
        lg__free(w->ctx, piece, (size_t)most + 1);
        return ok;
}

lg_tensor *lg__weight_tensor(lg__weights *w, const lg__weight *e, lg_dtype dtype, lg_device device)
{
        lg_tensor *t = lg__tensor_empty(w->ctx, device, dtype, e->shape);
        return lg__created(t, t && lg__weight_put(w, e, t), false);
}
