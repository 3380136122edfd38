/* split.c - splits a tensor along a dimension: split, chunk, unbind.
 *
 * The pieces are views of x. If split or chunk makes 2 to LG__MAX_OUT pieces, they are the results of one op, `pieces`,
 * whose dx joins their gradients; else each is the result of its own slice or select.
 */
#include <string.h>
#include "graph/op.h"

/* ---- pieces ---- */

#define PIECES_FIELDS(FIELD) FIELD(int, dim, 0) FIELD(i64, size, 0) FIELD(int, count, 0)
LG__ATTRIBUTES(pieces, PIECES_FIELDS)

/* Returns the shape of piece i of a tensor of shape x; the last piece may be smaller. */
static lg_shape piece_shape(const pieces_attributes *a, lg_shape x, int i)
{
        const int64_t left = x.size[a->dim] - i * a->size;
        x.size[a->dim] = left < a->size ? left : a->size;
        return x;
}

static bool infer_pieces(lg__call *call)
{
        const pieces_attributes *a = call->attributes;
        const lg__layout *x = &call->in[0]->at;
        call->out_count = a->count;
        for (int i = 0; i < a->count; i++) {
                lg__layout *y = &call->out_at[i];
                lg__layout_copy(y, x);
                y->shape = piece_shape(a, x->shape, i);
                y->offset += i * a->size * x->strides[a->dim];
        }
        return true;
}

static bool vjp_pieces(lg__vjp *v)
{
        const pieces_attributes *a = v->attributes;
        lg_tensor *g[LG__MAX_OUT], *some = NULL;
        for (int i = 0; i < a->count && !some; i++)
                some = v->grad[i];
        for (int i = 0; i < a->count; i++)
                g[i] = v->grad[i] ? v->grad[i]
                                  : lg_expand(lg__constant(some, 0), piece_shape(a, lg__input_shape(v, 0), i));
        return (v->grad_in[0] = lg_cat(LG_LIST_OF(a->count, g), a->dim)) != NULL;
}

static bool form_pieces(lg__form *f, const lg__call *call)
{
        const pieces_attributes *a = call->attributes;
        for (int i = 0; i < call->out_count; i++)
                lg__form_add(f, i ? ", y%d" : "y%d", i);
        lg__form_add(f, " = Split(x, [");
        for (int i = 0; i < call->out_count; i++)
                lg__form_add(f, "%lld ", (long long)call->out[i]->at.shape.size[a->dim]);
        lg__form_add(f, "], axis=%d)", a->dim);
        return true;
}

LG__DEFINE(pieces, .flags = LG__ALIASES, LG__OPERANDS({"x"}), LG__RESULTS({"y"}), LG__HAS(pieces),
           .infer = infer_pieces, .vjp = vjp_pieces, .form = form_pieces)

/* ---- split, chunk, unbind ---- */

typedef struct parts {
        enum { SPLIT, CHUNK, UNBIND } kind;
        int64_t asked; /* size of a piece, or number of pieces (CHUNK) */
        int dim;
        lg_tensor **ret;
        int64_t room;
        int64_t *ret_count;
} parts;

static bool make_pieces(const lg__call *call, int dim, int64_t size, int64_t count, lg_tensor **ret)
{
        const bool unbinds = ((const parts *)call->attributes)->kind == UNBIND;
        const pieces_attributes a = {dim, size, (int)count};
        lg_tensor *x = call->in[0];
        if (!unbinds && count > 1 && count <= LG__MAX_OUT)
                return lg__apply(LG__OP(pieces), &x, 1, &a, ret);
        const int64_t n = x->at.shape.size[dim];
        for (int64_t i = 0; i < count; i++) {
                const int64_t from = i * size, to = n - from < size ? n : from + size;
                if (!(ret[i] = unbinds ? lg_select(x, dim, i) : lg_slice(x, dim, from, to)))
                        return false;
        }
        return true;
}

/* Makes `count` pieces of `size` elements along dim, the last of which may be smaller. Stores them in the caller's
 * array, and returns the first. */
static lg_tensor *split_into(const lg__call *call, int dim, int64_t size, int64_t count)
{
        const parts *p = call->attributes;
        lg_tensor *x = call->in[0];
        if (!p->ret || p->room < count)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: x, %s, gives %lld pieces, but there is room for %lld",
                                call->op->name, lg__tensor_text(x).s, (long long)count,
                                (long long)(p->ret ? p->room : 0));
        size_t bytes = (size_t)count * sizeof *p->ret;
        lg_tensor **pieces = lg__alloc(call->ctx, bytes), *first = NULL;
        bool ok = pieces && make_pieces(call, dim, size, count, pieces);
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
        if (p->kind == CHUNK && asked < 1)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "chunk: %lld chunks; there must be at least 1",
                                (long long)asked);
        if (p->kind == SPLIT && (asked < 0 || (asked == 0 && n > 0)))
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "split: pieces of size %lld; it must be above 0",
                                (long long)asked);
        if (n == 0)
                return p->kind == UNBIND ? NULL : split_into(call, dim, 0, p->kind == CHUNK ? asked : 1);
        const int64_t size = p->kind == CHUNK ? 1 + (n - 1) / asked : asked;
        return split_into(call, dim, size, 1 + (n - 1) / size);
}

/* Defines the public function lg_of(), which returns the number of pieces, or 0 on failure. */
#define TAKEN_APART(of, kind, asked, ...)                                                                              \
        static const lg__op of = {.name = #of, .compose = compose, LG__OPERANDS({"x"})};                               \
        int64_t lg_##of(lg_tensor *x, __VA_ARGS__, lg_tensor **ret, int64_t room)                                      \
        {                                                                                                              \
                int64_t count = 0;                                                                                     \
                return lg__apply1(&of, x, &(parts){kind, asked, dim, ret, room, &count}) ? count : 0;                  \
        }
TAKEN_APART(split, SPLIT, size, int64_t size, int dim)
TAKEN_APART(chunk, CHUNK, chunks, int64_t chunks, int dim)
TAKEN_APART(unbind, UNBIND, 1, int dim)
