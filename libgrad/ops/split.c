/* split.c - a tensor taken apart along a dimension; the pieces are slices. */
#include <string.h>
#include "graph/op.h"

typedef struct parts {
        bool chunks; /* so many are asked for, and not such of that size */
        int64_t asked;
        int dim;
        lg_tensor **ret;
        int64_t room;
        int64_t *ret_count;
} parts;

/* `count` pieces of `size`, the last as long as what is left; returns the first. */
static lg_tensor *take_apart(const lg__call *call, int dim, int64_t size, int64_t count)
{
        const parts *p = call->attributes;
        lg_tensor *x = call->in[0];
        if (!p->ret || p->room < count)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: x, %s, gives %lld pieces, but there is room for %lld",
                                call->op->name, lg__tensor_text(x).s, (long long)count,
                                (long long)(p->ret ? p->room : 0));
        size_t bytes = (size_t)count * sizeof *p->ret;
        lg_tensor **pieces = lg__alloc(call->ctx, bytes), *first = NULL;
        bool ok = pieces != NULL;
        for (int64_t i = 0; i < count && ok; i++) {
                int64_t left = x->at.shape.size[dim] - i * size, n = left < size ? left : size;
                ok = (pieces[i] = lg_slice(x, dim, i * size, i * size + n)) != NULL;
        }
        if (ok) {
                memcpy(p->ret, pieces, bytes);
                *p->ret_count = count;
                first = pieces[0];
        }
        for (int64_t i = 0; pieces && i < count && !ok; i++)
                lg__tensor_release(pieces[i]);
        lg__free(call->ctx, pieces, bytes);
        return first;
}

static lg_tensor *compose(const lg__call *call)
{
        const parts *p = call->attributes;
        const lg_shape s = call->in[0]->at.shape;
        const int dim = lg__dim(call->ctx, call->op->name, p->dim, s.ndim);
        if (dim < 0)
                return NULL;
        const int64_t n = s.size[dim], asked = p->asked;
        if (p->chunks && asked < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "chunk: %lld chunks; there must be at least 1",
                                (long long)asked);
        if (!p->chunks && (asked < 0 || (asked == 0 && n > 0)))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "split: pieces of size %lld; it must be above 0",
                                (long long)asked);
        if (n == 0)
                return take_apart(call, dim, 0, p->chunks ? asked : 1);
        const int64_t size = p->chunks ? 1 + (n - 1) / asked : asked;
        return take_apart(call, dim, size, 1 + (n - 1) / size);
}

static const lg__op split = {.name = "split", .compose = compose, LG__OPERANDS({"x"})};
static const lg__op chunk = {.name = "chunk", .compose = compose, LG__OPERANDS({"x"})};

int64_t lg_split(lg_tensor *x, int64_t size, int dim, lg_tensor **ret, int64_t room)
{
        int64_t count = 0;
        return lg__apply1(&split, x, &(parts){false, size, dim, ret, room, &count}) ? count : 0;
}

int64_t lg_chunk(lg_tensor *x, int64_t chunks, int dim, lg_tensor **ret, int64_t room)
{
        int64_t count = 0;
        return lg__apply1(&chunk, x, &(parts){true, chunks, dim, ret, room, &count}) ? count : 0;
}
