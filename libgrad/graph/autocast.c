/* autocast.c - lg_autocast() regions, in which ops take their inputs in a 16-bit dtype or in f32, as the autocast
 * class in their signature says.
 *
 * Casts of f32 leaves to 16 bits are cached, at most one for each leaf node. A cached cast is valid while the leaf's
 * storage, the storage's version and the grad mode are the same as when it was made. It is freed when the outermost
 * region ends, when its leaf is freed, and when another cast replaces it.
 */
#include <string.h>
#include "graph/op.h"

#define FEW 16 /* number of inputs up to which the arrays are on the stack */

struct lg__cast {
        lg__link link; /* in the context's list of casts; must be the first member */
        lg__node *leaf;
        lg__storage *of;
        uint32_t version;
        bool recorded;
        lg_tensor *value;
};

/* ---- cached casts ---- */

static void drop(lg__cast *k)
{
        lg_ctx *c = k->leaf->ctx;
        lg__link_remove(&k->link);
        k->leaf->cast = NULL;
        lg__tensor_release(k->value);
        lg__storage_unref(k->of);
        lg__free(c, k, sizeof *k);
}

void lg__drop_cast(const lg__node *leaf)
{
        if (leaf->cast)
                drop(leaf->cast);
}

void lg__drop_casts(lg_ctx *c)
{
        while (c->casts.prev != &c->casts)
                drop((lg__cast *)c->casts.prev);
}

static bool may_keep(const lg_tensor *t)
{
        return t->node && !t->node->op && t->at.dtype == LG_F32;
}

static lg_tensor *kept(const lg_tensor *t, lg_dtype dtype)
{
        const lg__cast *k = may_keep(t) ? t->node->cast : NULL;
        const bool good = k && k->of == t->storage && k->version == t->storage->version &&
                          k->recorded == t->ctx->recording && k->value->at.dtype == dtype;
        return good ? k->value : NULL;
}

/* Caches `value`, a cast of the leaf t, and takes ownership of it. If there is no memory, sets an error and returns
 * false, and the value stays a tensor of its scope. */
static bool keep(const lg_tensor *t, lg_tensor *value)
{
        lg_ctx *c = t->ctx;
        lg__drop_cast(t->node);
        lg__cast *k = lg__alloc(c, sizeof *k);
        if (!k)
                return false;
        *k = (lg__cast){.leaf = t->node,
                        .of = lg__storage_ref(t->storage),
                        .version = t->storage->version,
                        .recorded = c->recording,
                        .value = lg__tensor_own(value)};
        lg__link_add(&c->casts, &k->link);
        t->node->cast = k;
        return true;
}

/* ---- autocast classes of ops ---- */

static bool is_cast(const lg__op *op, lg_tensor *const *in, int i)
{
        return in[i] && lg__dtype_float(in[i]->at.dtype) && lg__operand_of(op, i)->takes <= LG__FLOAT;
}

/* Returns the dtype to which the op's float inputs are cast, or LG_DTYPE_NONE if they are not cast: the op's class
 * says so, or one of the inputs is f64. */
static lg_dtype dtype_for(const lg__op *op, const lg_ctx *c, lg_tensor *const *in, int in_count)
{
        lg_dtype widest = LG_DTYPE_NONE;
        for (int i = 0; i < in_count; i++)
                if (is_cast(op, in, i))
                        widest = widest ? lg_promote(widest, in[i]->at.dtype) : in[i]->at.dtype;
        if (widest == LG_F64 || op->autocast == LG__AS_IT_IS)
                return LG_DTYPE_NONE;
        return op->autocast == LG__LOW ? c->autocast : op->autocast == LG__F32 ? LG_F32 : widest;
}

/* Sets *to to a cast of x; sets *ret_own if the caller must release the cast. Returns false if an error is set. */
static bool cast_input(lg_tensor *x, lg_dtype dtype, lg_tensor **to, bool *ret_own)
{
        if ((*to = kept(x, dtype)))
                return true;
        *to = x->ctx->up->cast(x, dtype);
        if (!*to || dtype == LG_F32 || !may_keep(x))
                *ret_own = *to != NULL;
        else if (!keep(x, *to))
                *ret_own = true;
        return *to && !x->ctx->error;
}

static lg_tensor *apply(const lg__op *op, lg_ctx *c, lg_tensor **inputs, bool *own, lg_tensor *const *in, int in_count,
                        const void *attributes, lg_tensor **ret_out)
{
        const lg_dtype dtype = dtype_for(op, c, in, in_count), was = c->autocast;
        lg_tensor *y = NULL;
        bool ok = true;
        c->autocast = LG_F32;
        for (int i = 0; i < in_count && ok; i++)
                if (dtype && is_cast(op, in, i) && in[i]->at.dtype != dtype)
                        ok = cast_input(in[i], dtype, &inputs[i], &own[i]);
        if (ok)
                y = lg__apply(op, inputs, in_count, attributes, ret_out);
        c->autocast = was;
        for (int i = 0; i < in_count; i++)
                if (own[i] && inputs[i] != y)
                        lg__tensor_release(inputs[i]);
        return y;
}

lg_tensor *lg__apply_cast(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, const void *attributes,
                          lg_tensor **ret_out)
{
        lg_tensor *few[FEW], **inputs = few;
        bool own_few[FEW] = {false}, *own = own_few;
        const size_t bytes = (size_t)in_count * (sizeof *inputs + sizeof *own);
        if (in_count > FEW) {
                if (!(inputs = lg__alloc(c, bytes)))
                        return NULL;
                own = (bool *)(inputs + in_count);
        }
        memcpy(inputs, in, (size_t)in_count * sizeof *inputs);
        lg_tensor *y = apply(op, c, inputs, own, in, in_count, attributes, ret_out);
        if (inputs != few)
                lg__free(c, inputs, bytes);
        return y;
}

/* ---- public functions: begin and end of regions ---- */

lg_dtype lg_set_autocast_mode(lg_ctx *c, lg_dtype dtype)
{
        const lg_dtype was = lg_autocast_mode(c);
        if (!c)
                return was;
        if (dtype != LG_DTYPE_NONE && dtype != LG_F32 && dtype != LG_F16 && dtype != LG_BF16) {
                lg__fail(c, LG_ERR_DTYPE,
                         "lg_autocast: dtype is %s; it can be f16, bf16, or f32 for a region without casts",
                         lg_dtype_name(dtype));
                return was;
        }
        if (!lg__may_end(c, "lg_set_autocast_mode")) /* the traced op may be using cached casts */
                return was;
        c->autocast = dtype;
        if (dtype == LG_DTYPE_NONE)
                lg__drop_casts(c);
        return was;
}

lg_dtype lg_autocast_mode(const lg_ctx *c)
{
        return c ? c->autocast : LG_DTYPE_NONE;
}
