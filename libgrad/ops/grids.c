/* grids.c - grids of vectors, combinations of elements, indices of triangles, and powers: meshgrid, broadcast_tensors,
 * cartesian_prod, combinations, tril_indices, triu_indices, logspace. Made of other ops. */
#include <math.h>
#include <string.h>
#include "graph/op.h"

/* Frees tensors that a loop made, of which some may be NULL, and their array. */
static void drop(lg_ctx *c, lg_tensor **made, int count)
{
        for (int i = 0; i < count && made; i++)
                lg__tensor_release(made[i]);
        lg__free(c, made, (size_t)count * sizeof *made);
}

/* ---- meshgrid and broadcast_tensors, which store a view of each tensor ---- */

typedef struct views {
        lg_tensor **ret;
        int64_t room, *ret_count;
        bool xy;
} views;

static bool has_room(const lg__call *call)
{
        const views *v = call->attributes;
        return (v->ret && v->room >= call->in_count) ||
               lg__fail(call->ctx, LG_ERR_ARGUMENT, "%s: there are %d tensors, but there is room for %lld",
                        call->op->name, call->in_count, (long long)(v->ret ? v->room : 0));
}

/* Expands each input, after reshaping it to own(call, i, &shape) if own is given. Returns the first view. */
static lg_tensor *expand_all(const lg__call *call, lg_shape to, lg_shape (*own)(const lg__call *call, int i))
{
        const views *v = call->attributes;
        const int n = call->in_count;
        const size_t bytes = (size_t)n * sizeof *call->in;
        lg_tensor **made = lg__alloc(call->ctx, bytes), *first = NULL;
        bool ok = made != NULL;
        for (int i = 0; i < n && ok; i++) {
                lg_tensor *x = own ? lg_reshape(call->in[i], own(call, i)) : call->in[i];
                ok = (made[i] = lg_expand(x, to)) != NULL;
        }
        if (!ok) {
                drop(call->ctx, made, n);
                return NULL;
        }
        memcpy(v->ret, made, bytes);
        first = made[0];
        *v->ret_count = n;
        lg__free(call->ctx, made, bytes);
        return first;
}

/* Returns the dimension of the grid that vector i has. */
static int axis(const lg__call *call, int i)
{
        const views *v = call->attributes;
        return v->xy && call->in_count > 1 && i < 2 ? 1 - i : i;
}

static int64_t length(const lg_tensor *x)
{
        return x->at.shape.ndim ? x->at.shape.size[0] : 1;
}

static lg_shape along_axis(const lg__call *call, int i)
{
        lg_shape s = {.ndim = call->in_count};
        for (int d = 0; d < s.ndim; d++)
                s.size[d] = 1;
        s.size[axis(call, i)] = length(call->in[i]);
        return s;
}

/* Checks that all inputs are vectors or 0-d. */
static bool are_vectors(const lg__call *call)
{
        for (int i = 0; i < call->in_count; i++)
                if (call->in[i]->at.shape.ndim > 1)
                        return lg__fail(call->ctx, LG_ERR_SHAPE, "%s: tensor %d is %s, not a vector", call->op->name, i,
                                        lg__tensor_text(call->in[i]).s);
        return true;
}

static lg_tensor *compose_meshgrid(const lg__call *call)
{
        lg_shape s = {.ndim = call->in_count};
        if (!has_room(call) || !are_vectors(call))
                return NULL;
        if (call->in_count > LG_MAX_DIMS)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "meshgrid: %d vectors; a grid has at most %d dimensions",
                                call->in_count, LG_MAX_DIMS);
        for (int i = 0; i < call->in_count; i++) {
                if (call->in[i]->at.dtype != call->in[0]->at.dtype)
                        return lg__fail(call->ctx, LG_ERR_DTYPE,
                                        "meshgrid: tensor %d is %s, tensor 0 is %s; all have one dtype", i,
                                        lg__tensor_text(call->in[i]).s, lg__tensor_text(call->in[0]).s);
                s.size[axis(call, i)] = length(call->in[i]);
        }
        return expand_all(call, s, along_axis);
}

static lg_tensor *compose_broadcast_tensors(const lg__call *call)
{
        lg_shape s = LG_SHAPE_0D;
        for (int i = 0; i < call->in_count; i++)
                if (!lg__broadcast(call->ctx, "broadcast_tensors", s, call->in[i]->at.shape, &s))
                        return NULL;
        return has_room(call) ? expand_all(call, s, NULL) : NULL;
}

#define VIEWS(of)                                                                                                      \
        static const lg__op of = {.name = #of, .compose = compose_##of, LG__OPERANDS({"x", .variadic = true})};
VIEWS(meshgrid)
VIEWS(broadcast_tensors)

int64_t lg_meshgrid_with(lg_list list, lg_tensor **ret, int64_t room, const lg_meshgrid_options *options)
{
        lg_meshgrid_options o;
        int64_t count = 0;
        if (!list.items || list.count < 1 || !lg__take(lg__ctx_of(list.items[0]), "meshgrid", options, &o, sizeof o))
                return 0;
        return lg__apply_list(&meshgrid, list, &(views){ret, room, &count, o.xy}) ? count : 0;
}

int64_t lg_broadcast_tensors(lg_list list, lg_tensor **ret, int64_t room)
{
        int64_t count = 0;
        return lg__apply_list(&broadcast_tensors, list, &(views){ret, room, &count, false}) ? count : 0;
}

/* ---- cartesian_prod: vector i repeats each element for all rows of the vectors after it ---- */

static lg_tensor *compose_cartesian_prod(const lg__call *call)
{
        lg_ctx *c = call->ctx;
        const int n = call->in_count;
        int64_t most = 1, before = 1;
        if (!are_vectors(call))
                return NULL;
        if (n == 1)
                return lg_reshape(call->in[0], LG_SHAPE(length(call->in[0])));
        for (int i = 0; i < n; i++)
                if (length(call->in[i]) && __builtin_mul_overflow(most, length(call->in[i]), &most))
                        return lg__fail(c, LG_ERR_SHAPE, "cartesian_prod: more than 2^63 rows");
        lg_tensor **made = lg__alloc(c, (size_t)n * sizeof *made), *y = NULL;
        bool ok = made != NULL;
        for (int i = 0; i < n && ok; i++) {
                const int64_t own = length(call->in[i]);
                int64_t after = 1;
                for (int j = i + 1; j < n; j++)
                        after *= length(call->in[j]);
                lg_tensor *all = lg_expand(lg_reshape(call->in[i], LG_SHAPE(1, own, 1)), LG_SHAPE(before, own, after));
                ok = (made[i] = lg_reshape(all, LG_SHAPE(before * own * after))) != NULL;
                before *= own;
        }
        if (ok)
                y = lg_stack(LG_LIST_OF(n, made), 1);
        drop(c, made, n);
        return y;
}
LG__COMPOSITE(cartesian_prod, {"x", .variadic = true})

lg_tensor *lg_cartesian_prod(lg_list list)
{
        return lg__apply_list(LG__OP(cartesian_prod), list, NULL);
}

/* ---- combinations: their indices are made on the host ---- */

typedef struct choice {
        int64_t r;
        const lg_combinations_options *options;
} choice;

/* Returns the number of combinations of r of n, or -1 if it exceeds 2^62. */
static int64_t count_combinations(int64_t n, int64_t r, bool again)
{
        int64_t count = 1;
        if (again && n > 0 && r > 0 && __builtin_add_overflow(n, r - 1, &n))
                return -1;
        if (r > n)
                return 0;
        for (int64_t k = 0; k < (r < n - r ? r : n - r); k++) {
                if (__builtin_mul_overflow(count, n - k, &count))
                        return -1;
                count /= k + 1;
        }
        return count;
}

/* Writes the combinations of r of n indices, as rows in lexicographic order. */
static void write_combinations(int64_t *to, int64_t count, int64_t n, int64_t r, bool again)
{
        for (int64_t k = 0; k < r && count; k++)
                to[k] = again ? 0 : k;
        for (int64_t i = 1; i < count; i++) {
                const int64_t *last = to;
                to += r;
                int64_t k = r - 1;
                while (last[k] == (again ? n - 1 : n - r + k))
                        k--;
                memcpy(to, last, (size_t)r * sizeof *to);
                to[k]++;
                for (int64_t j = k + 1; j < r; j++)
                        to[j] = to[j - 1] + !again;
        }
}

static lg_tensor *compose_combinations(const lg__call *call)
{
        const choice *ch = call->attributes;
        lg_tensor *x = call->in[0], *index = NULL;
        const int64_t r = ch->r;
        lg_combinations_options o;
        size_t bytes;
        if (!lg__take(call->ctx, "combinations", ch->options, &o, sizeof o))
                return NULL;
        if (x->at.shape.ndim != 1)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "combinations: x is %s, not a vector", lg__tensor_text(x).s);
        if (r < 0)
                return lg__fail(call->ctx, LG_ERR_ARGUMENT, "combinations: r is %lld, below 0", (long long)r);
        if (r == 0)
                return lg__made(lg_slice(x, 0, 0, 0), x);
        const int64_t n = x->at.shape.size[0], count = count_combinations(n, r, o.with_replacement);
        if (count < 0 || __builtin_mul_overflow((size_t)count, (size_t)r, &bytes) ||
            __builtin_mul_overflow(bytes, sizeof(int64_t), &bytes) || bytes > INT64_MAX)
                return lg__fail(call->ctx, LG_ERR_SHAPE, "combinations: there are too many of %lld of %lld elements",
                                (long long)r, (long long)n);
        int64_t *indices = lg__alloc(call->ctx, bytes);
        if (indices || bytes == 0) {
                write_combinations(indices, count, n, r, o.with_replacement);
                index = lg_from(call->ctx, indices, LG_SHAPE(count * r), .device = call->device->id);
        }
        lg__free(call->ctx, indices, bytes);
        return index ? lg_reshape(lg_index_select(x, 0, index), LG_SHAPE(count, r)) : NULL;
}
LG__COMPOSITE(combinations, {"x"})

lg_tensor *lg_combinations_with(lg_tensor *x, int64_t r, const lg_combinations_options *options)
{
        return LG__APPLY(combinations, (&(choice){r, options}), x);
}

/* ---- indices of triangles, logspace ---- */

static lg_tensor *triangle(lg_ctx *c, const char *op, bool upper, int64_t rows, int64_t columns,
                           const lg_triangle_indices_options *options)
{
        lg_triangle_indices_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (rows < 0 || columns < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld rows and %lld columns; they are 0 or more", op,
                                (long long)rows, (long long)columns);
        if (!lg__shape_valid(c, op, LG_SHAPE(rows, columns)))
                return NULL;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *all = lg_ones(c, LG_SHAPE(rows, columns), .dtype = LG_BOOL, .device = o.device);
        lg_tensor *kept = upper ? lg_triu(all, .diagonal = o.offset) : lg_tril(all, .diagonal = o.offset);
        lg_tensor *y = lg_escape(lg_contiguous(lg_transpose(lg_nonzero(kept), 0, 1)));
        lg_scope_end(c, scope);
        return y;
}

lg_tensor *lg_tril_indices_with(lg_ctx *c, int64_t rows, int64_t columns, const lg_triangle_indices_options *options)
{
        return triangle(c, "lg_tril_indices", false, rows, columns, options);
}

lg_tensor *lg_triu_indices_with(lg_ctx *c, int64_t rows, int64_t columns, const lg_triangle_indices_options *options)
{
        return triangle(c, "lg_triu_indices", true, rows, columns, options);
}

lg_tensor *lg_logspace_with(lg_ctx *c, double start, double stop, int64_t count, const lg_logspace_options *options)
{
        lg_logspace_options o;
        if (!lg__take(c, "lg_logspace", options, &o, sizeof o))
                return NULL;
        const double base = lg__option(o.base, 10);
        lg_create_options to = *LG_OPTIONS(lg_create_options, .dtype = o.dtype ? o.dtype : LG_F32, .device = o.device);
        if (!isfinite(start) || !isfinite(stop) || !isfinite(base))
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_logspace: from %g to %g with base %g: they are not finite",
                                start, stop, base);
        if (count < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_logspace: count is %lld, below 0", (long long)count);
        if (!lg__may_create(c, "lg_logspace", LG_SHAPE(count), &to))
                return NULL;
        if (!lg__dtype_float(to.dtype))
                return lg__fail(c, LG_ERR_DTYPE, "lg_logspace: dtype %s; its values are floats",
                                lg_dtype_name(to.dtype));
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *powers = lg_linspace(c, start, stop, count, .dtype = LG_F64, .device = o.device);
        lg_tensor *y = lg_cast(lg_rpow_scalar(powers, base), to.dtype);
        y = lg_escape(o.requires_grad ? lg_set_requires_grad(y, true) : y);
        lg_scope_end(c, scope);
        return y;
}
