/* signature.c - checks and casts inputs as the signature of an op demands, and prints attributes as text. */
#include <string.h>
#include "graph/op.h"

const char *lg__operand_name(const lg__op *op, int i)
{
        return lg__operand_of(op, i)->name;
}

/* ---- checks of inputs ---- */

/* Returns the name of input i for messages. */
static lg__text name_of(const lg__op *op, int i)
{
        lg__text text;
        const lg__operand *o = lg__operand_of(op, i);
        if (o->variadic)
                snprintf(text.s, sizeof text.s, "tensor %d", i - op->operand_count + 1);
        else
                snprintf(text.s, sizeof text.s, "%s", o->name);
        return text;
}

/* Returns a hint to use lg_<op>_scalar(), if there is one: in C, the number 0 as an argument is a null pointer. */
static lg__text number_hint(const lg_ctx *c, const lg__op *op)
{
        lg__text text = {""};
        char name[64];
        snprintf(name, sizeof name, "%s_scalar", op->name);
        if (c->up->has_op(name))
                snprintf(text.s, sizeof text.s, "; for a number there is lg_%s()", name);
        return text;
}

/* Returns a hint with the order of the operands if operand i is floats where indices are taken, or the reverse, and
 * another operand is what operand i must be. */
static lg__text order_hint(const lg__op *op, lg_tensor *const *in, int in_count, int index)
{
        const bool wants_index = lg__operand_of(op, index)->takes == LG__INDEX;
        lg__text text = {""};
        int used = snprintf(text.s, sizeof text.s, "; the order is (");
        bool swapped = false;
        for (int i = 0; i < in_count && i < op->operand_count; i++) {
                swapped =
                        swapped || (i != index && lg__is_address(in[i]) &&
                                    (wants_index ? in[i]->at.dtype == LG_I64
                                                 : in[index]->at.dtype == LG_I64 && lg__dtype_float(in[i]->at.dtype) &&
                                                           !strcmp(name_of(op, i).s, "target")));
                used += snprintf(text.s + used, sizeof text.s - (size_t)used, "%s%s", i ? ", " : "", name_of(op, i).s);
        }
        snprintf(text.s + used, sizeof text.s - (size_t)used, ")");
        return swapped ? text : (lg__text){""};
}

static bool check_dtype(const lg__op *op, lg_tensor *const *in, int in_count, int i)
{
        const lg_tensor *t = in[i];
        const lg__class takes = lg__operand_of(op, i)->takes;
        if (takes < LG__FLOAT)
                return true;
        if ((takes == LG__FLOAT || takes == LG__WEIGHT) && !lg__dtype_float(t->at.dtype))
                return lg__fail(t->ctx, LG_ERR_DTYPE, "%s: %s is %s, not of a float dtype; convert it with lg_cast()%s",
                                op->name, name_of(op, i).s, lg__tensor_text(t).s, order_hint(op, in, in_count, i).s);
        if (takes == LG__INTEGER && lg__dtype_float(t->at.dtype))
                return lg__fail(t->ctx, LG_ERR_DTYPE, "%s: %s is %s, not of an integer dtype or bool", op->name,
                                name_of(op, i).s, lg__tensor_text(t).s);
        if (takes == LG__INDEX && t->at.dtype != LG_I64)
                return lg__fail(t->ctx, LG_ERR_DTYPE, "%s: %s is %s; indices are i64: lg_cast(%s, LG_I64)%s", op->name,
                                name_of(op, i).s, lg__tensor_text(t).s, name_of(op, i).s,
                                order_hint(op, in, in_count, i).s);
        if (takes == LG__MASK && t->at.dtype != LG_BOOL)
                return lg__fail(t->ctx, LG_ERR_DTYPE, "%s: %s is %s, not bool: lg_cast(%s, LG_BOOL)", op->name,
                                name_of(op, i).s, lg__tensor_text(t).s, name_of(op, i).s);
        return true;
}

static bool check(const lg__op *op, lg_ctx *c, lg_tensor *const *in, int in_count, int i)
{
        const lg_tensor *t = in[i], *first = in[0];
        if (!t)
                return lg__operand_of(op, i)->optional || lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL%s", op->name,
                                                                   name_of(op, i).s, number_hint(c, op).s);
        if (!lg__is_address(t))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is the number %d, not a tensor%s", op->name,
                                name_of(op, i).s, (int)(intptr_t)t, number_hint(c, op).s);
        if (t->live != LG__LIVE)
                return lg__check(t, op->name, name_of(op, i).s);
        if (t->storage->device != first->storage->device && !(op->flags & LG__ACROSS))
                return lg__fail(c, LG_ERR_DEVICE, "%s: %s is %s but %s is %s; move one with lg_to()", op->name,
                                name_of(op, 0).s, lg__tensor_text(first).s, name_of(op, i).s, lg__tensor_text(t).s);
        return check_dtype(op, in, in_count, i);
}

/* Fast check of the common case. Returns true if all inputs are valid; false means that the full check must decide. */
static bool is_plain(const lg__op *op, lg_tensor *const *in, int in_count)
{
        const lg_tensor *first = in[0];
        bool plain = lg__is_address(first) && !first->ctx->error;
        for (int i = 0; i < in_count && plain; i++) {
                const lg_tensor *t = in[i];
                plain = lg__is_address(t) && t->live == LG__LIVE && t->ctx == first->ctx &&
                        t->storage->device == first->storage->device && lg__operand_of(op, i)->takes <= LG__WEIGHT &&
                        lg__dtype_float(t->at.dtype);
        }
        return plain;
}

lg_ctx *lg__accept(const lg__op *op, lg_tensor *const *in, int in_count)
{
        if (in_count > 0 && is_plain(op, in, in_count))
                return in[0]->ctx;
        lg_ctx *c = NULL;
        for (int i = 0; i < in_count && !c; i++)
                c = lg__ctx_of(in[i]);
        for (int i = 0; i < in_count; i++)
                if (lg__is_address(in[i]) && in[i]->ctx != c) {
                        lg__in_context(c, in[i], op->name, name_of(op, i).s);
                        return NULL;
                }
        if (!lg__ok(c))
                return NULL;
        for (int i = 0; i < in_count; i++)
                if (!check(op, c, in, in_count, i))
                        return NULL;
        return c;
}

/* ---- casts of inputs ---- */

static int category(lg_dtype d)
{
        return lg__dtype_float(d) ? 3 : d == LG_BOOL ? 1 : d == LG_DTYPE_NONE ? 0 : 2;
}

/* common dtype of the 0-d inputs, of[0], and of the other inputs, of[1] */
typedef struct dtypes {
        lg_dtype of[2];
} dtypes;

static void meet(dtypes *d, const lg_tensor *t)
{
        lg_dtype *slot = &d->of[t->at.shape.ndim > 0];
        *slot = *slot && *slot != t->at.dtype ? lg_promote(*slot, t->at.dtype) : t->at.dtype;
}

static lg_dtype common(const dtypes *d)
{
        return category(d->of[0]) > category(d->of[1]) ? d->of[0] : d->of[1];
}

lg_dtype lg__common_dtype(lg_tensor *const *in, int n)
{
        dtypes d = {{LG_DTYPE_NONE, LG_DTYPE_NONE}};
        for (int i = 0; i < n; i++)
                if (in[i])
                        meet(&d, in[i]);
        return common(&d);
}

static bool is_promoted(lg__class takes)
{
        return takes <= LG__FLOAT || takes == LG__INTEGER;
}

static lg_dtype promoted(const lg__op *op, lg_tensor *const *in, int n)
{
        dtypes d = {{LG_DTYPE_NONE, LG_DTYPE_NONE}};
        for (int i = 0; i < n; i++)
                if (in[i] && is_promoted(lg__operand_of(op, i)->takes))
                        meet(&d, in[i]);
        return common(&d);
}

/* Returns the dtype in which input i, not NULL, is computed; `common` is the promoted dtype or LG_DTYPE_NONE. */
static lg_dtype dtype_for(const lg__op *op, lg_tensor *const *in, int i, lg_dtype common)
{
        const lg__class takes = lg__operand_of(op, i)->takes;
        if (takes == LG__WEIGHT)
                return in[0]->at.dtype == LG_F64 ? LG_F64 : LG_F32;
        if (!is_promoted(takes))
                return in[i]->at.dtype;
        const lg_dtype d = common ? common : in[i]->at.dtype;
        if (takes == LG__REAL && !lg__dtype_float(d))
                return LG_F32;
        if (takes == LG__WHOLE && !lg__dtype_float(d))
                return LG_I64;
        return takes == LG__NUMBER && d == LG_BOOL ? LG_I64 : d;
}

static bool has_order(const lg_tensor *t, lg__order order)
{
        if (order == LG__CHANNELS_LAST && t->at.shape.ndim > 2)
                return lg__layout_is_channels_last(&t->at);
        if (order == LG__KERNEL && lg__lies_last(t))
                return true;
        return lg__layout_is_contiguous(&t->at);
}

/* Returns whether no cast or copy is needed: all inputs are of one float dtype, and all operands accept any layout. */
static bool is_ready(const lg__op *op, lg_tensor *const *in, int in_count)
{
        const lg_dtype dtype = in[0]->at.dtype;
        bool ready = lg__dtype_float(dtype);
        for (int i = 0; i < in_count && ready; i++)
                ready = in[i] && in[i]->at.dtype == dtype && lg__operand_of(op, i)->takes <= LG__FLOAT &&
                        lg__operand_of(op, i)->order == LG__STRIDED;
        return ready;
}

bool lg__prepare(const lg__op *op, lg_tensor **in, int in_count)
{
        if (is_ready(op, in, in_count))
                return true;
        const lg__upward *up = in[0]->ctx->up;
        const lg_dtype common = op->flags & LG__PROMOTE ? promoted(op, in, in_count) : LG_DTYPE_NONE;
        for (int i = 0; i < in_count; i++) {
                if (!in[i])
                        continue;
                lg_tensor *given = in[i];
                const lg__order order = lg__operand_of(op, i)->order;
                const lg_dtype dtype = dtype_for(op, in, i, common);
                if (given->at.dtype != dtype && !(in[i] = up->cast(given, dtype)))
                        return false;
                if (order == LG__STRIDED || has_order(in[i], order))
                        continue;
                lg_tensor *cast = in[i];
                in[i] = order == LG__CHANNELS_LAST && cast->at.shape.ndim > 2 ? up->channels_last(cast)
                                                                              : up->contiguous(cast);
                if (cast != given)
                        lg__tensor_release(cast);
                if (!in[i])
                        return false;
        }
        return true;
}

/* ---- attributes as text ---- */

/* Writes to a buffer from `at` on, up to `end`. */
typedef struct writer {
        char *at, *end;
} writer;

static void write(writer *w, const char *format, ...) LG_PRINTF(2, 3);
static void write(writer *w, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        const int n = vsnprintf(w->at, (size_t)(w->end - w->at), format, args);
        va_end(args);
        w->at = n < w->end - w->at ? w->at + n : w->end - 1;
}

static void write_dims(writer *w, const lg_dims *dims)
{
        for (int i = 0; i < dims->count; i++)
                write(w, "%s%d", i ? ", " : "(", dims->dim[i]);
        write(w, dims->count ? ")" : "()");
}

static void write_pair(writer *w, const char *name, const int64_t pair[2], int64_t usual)
{
        if (pair[0] != usual || pair[1] != usual)
                write(w, "%s (%lld, %lld)", name, (long long)pair[0], (long long)pair[1]);
}

static void write_geometry(writer *w, const lg_conv_geometry *g)
{
        write_pair(w, "kernel", g->kernel, -1);
        write_pair(w, ", stride", g->stride, 1);
        write_pair(w, ", padding", g->padding, 0);
        write_pair(w, ", dilation", g->dilation, 1);
        if (g->groups != 1)
                write(w, ", groups %lld", (long long)g->groups);
}

static void write_side(writer *w, const lg__side *s)
{
        write(w, "kernel %lld, stride %lld, padding %lld, dilation %lld", (long long)s->kernel, (long long)s->stride,
              (long long)s->padding, (long long)s->dilation);
}

static const struct {
        size_t bytes, align;
} types[] = {
#define TYPE(of, type) {sizeof(type), _Alignof(type)},
        LG__FIELD_TYPES(TYPE)
#undef TYPE
};

/* Returns the field's value as a number. For a field that is not a number, returns a value that differs from its
 * default, so that the field is printed, except for a side that is not there. */
static double number_of(const lg__field *f, const void *p)
{
#define TYPE(of, in_c)                                                                                                 \
        if (f->type == LG__FIELD_##of)                                                                                 \
                return (double)*(const in_c *)p;
        LG__NUMBER_TYPES(TYPE)
#undef TYPE
        if (f->type == LG__FIELD_side && ((const lg__side *)p)->kernel == 0)
                return f->usual;
        return f->usual + 1;
}

static void write_value(writer *w, const lg__field *f, const void *p)
{
        static const char *const reductions[] = {"mean", "sum", "none", "batch mean"};
        if (f->type != LG__FIELD_geometry)
                write(w, "%s%s", f->name, f->type == LG__FIELD_bool ? "" : " ");
        if (f->type == LG__FIELD_geometry)
                write_geometry(w, p);
        else if (f->type == LG__FIELD_side)
                write_side(w, p);
        else if (f->type == LG__FIELD_reduction)
                write(w, "%s", reductions[*(const lg_reduction *)p & 3]);
        else if (f->type == LG__FIELD_dtype)
                write(w, "%s", lg_dtype_name(*(const lg_dtype *)p));
        else if (f->type == LG__FIELD_device)
                write(w, "%s", lg_device_name(*(const lg_device *)p));
        else if (f->type == LG__FIELD_shape)
                write(w, "%s", lg__shape_text(*(const lg_shape *)p).s);
        else if (f->type == LG__FIELD_dims)
                write_dims(w, p);
        else if (f->type != LG__FIELD_bool)
                write(w, "%.15g", number_of(f, p));
}

const void *lg__next_field(const void *attributes, const lg__field **field, size_t *at)
{
        const lg__field *f = *field;
        if (!f || !f->name)
                return NULL;
        const size_t align = types[f->type].align, from = (*at + align - 1) / align * align;
        *at = from + types[f->type].bytes;
        *field = f + 1;
        return (const char *)attributes + from;
}

lg__attributes_text lg__attributes_text_of(const lg__op *op, const void *attributes)
{
        lg__attributes_text text = {""};
        writer w = {text.s, text.s + sizeof text.s};
        const lg__field *next = op->fields;
        size_t at = 0;
        for (const void *p; (p = lg__next_field(attributes, &next, &at));) {
                const lg__field *f = next - 1;
                if (number_of(f, p) == f->usual || f->type == LG__FIELD_origin)
                        continue;
                if (*text.s)
                        write(&w, ", ");
                write_value(&w, f, p);
        }
        return text;
}
