/* split.c - a tensor taken apart along a dimension; the pieces are slices. */
#include <string.h>
#include "../op.h"

/* `count` pieces of `size`, the last as long as what is left. */
static int64_t take_apart(lg_tensor *x, int dim, int64_t size, int64_t count, lg_tensor **ret, int64_t room,
                          const char *op)
{
        if (!ret || room < count) {
                lg__fail(x->ctx, LG_ERR_ARGUMENT, "%s: x, %s, gives %lld pieces, but there is room for %lld", op,
                         lg__tensor_text(x).s, (long long)count, (long long)(ret ? room : 0));
                return 0;
        }
        size_t bytes = (size_t)count * sizeof *ret;
        lg_tensor **pieces = lg__alloc(x->ctx, bytes);
        bool ok = pieces != NULL;
        for (int64_t i = 0; i < count && ok; i++) {
                int64_t left = x->at.shape.size[dim] - i * size, n = left < size ? left : size;
                ok = (pieces[i] = lg_slice(x, dim, i * size, i * size + n)) != NULL;
        }
        if (ok)
                memcpy(ret, pieces, bytes);
        for (int64_t i = 0; pieces && i < count && !ok; i++)
                lg__tensor_release(pieces[i]);
        lg__free(x->ctx, pieces, bytes);
        return ok ? count : 0;
}

int64_t lg_split(lg_tensor *x, int64_t size, int dim, lg_tensor **ret, int64_t room)
{
        if (!lg__check(x, "split", "x") || (dim = lg__dim(x->ctx, "split", dim, x->at.shape.ndim)) < 0)
                return 0;
        int64_t n = x->at.shape.size[dim];
        if (size < 0 || (size == 0 && n > 0)) {
                lg__fail(x->ctx, LG_ERR_ARGUMENT, "split: pieces of size %lld; it must be above 0", (long long)size);
                return 0;
        }
        return take_apart(x, dim, size, n ? 1 + (n - 1) / size : 1, ret, room, "split");
}

int64_t lg_chunk(lg_tensor *x, int64_t chunks, int dim, lg_tensor **ret, int64_t room)
{
        if (!lg__check(x, "chunk", "x") || (dim = lg__dim(x->ctx, "chunk", dim, x->at.shape.ndim)) < 0)
                return 0;
        int64_t n = x->at.shape.size[dim];
        if (chunks < 1) {
                lg__fail(x->ctx, LG_ERR_ARGUMENT, "chunk: %lld chunks; there must be at least 1", (long long)chunks);
                return 0;
        }
        int64_t size = n ? 1 + (n - 1) / chunks : 0;
        return take_apart(x, dim, size, size ? 1 + (n - 1) / size : chunks, ret, room, "chunk");
}
