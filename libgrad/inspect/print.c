/* print.c - tensors as text, by PyTorch's rules (torch/_tensor_str.py). */
#include <math.h>
#include <string.h>
#include "graph/op.h"

enum { PRECISION = 4, THRESHOLD = 1000, EDGE = 3, LINE = 80, INDENT = 7 /* width of "tensor(" */ };

/* A file with the current column, and the format of the tensor being printed. */
typedef struct printer {
        FILE *f;
        int column;
        const lg_tensor *shown; /* values on the host, f64 or i64, contiguous; of a large tensor the edges only */
        bool cut[LG_MAX_DIMS];  /* dimensions whose middle is left out */
        bool real, truth;       /* the dtype is a float dtype; is bool */
        bool whole, scientific;
        int width;
} printer;

typedef struct number {
        char s[400];
} number;

static void put(printer *p, const char *s)
{
        const char *line = strrchr(s, '\n');
        fputs(s, p->f);
        p->column = line ? (int)strlen(line + 1) : p->column + (int)strlen(s);
}

static void new_line(printer *p, int count, int indent)
{
        for (int i = 0; i < count; i++)
                put(p, "\n");
        for (int i = 0; i < indent; i++)
                put(p, " ");
}

/* ---- numbers ---- */

static number format(const printer *p, int64_t i)
{
        number n;
        if (!p->real) {
                int64_t v = ((const int64_t *)lg__data(p->shown))[i];
                if (p->truth)
                        snprintf(n.s, sizeof n.s, "%s", v ? "True" : "False");
                else
                        snprintf(n.s, sizeof n.s, "%lld", (long long)v);
                return n;
        }
        double v = ((const double *)lg__data(p->shown))[i];
        if (isnan(v)) /* C may write "-nan" */
                snprintf(n.s, sizeof n.s, "nan");
        else if (p->scientific)
                snprintf(n.s, sizeof n.s, "%.*e", PRECISION, v);
        else if (p->whole)
                snprintf(n.s, sizeof n.s, isinf(v) ? "%.0f" : "%.0f.", v);
        else
                snprintf(n.s, sizeof n.s, "%.*f", PRECISION, v);
        return n;
}

/* Chooses one format and width for all values that are shown. */
static void choose_format(printer *p)
{
        int64_t n = lg__shape_numel(p->shown->at.shape);
        const double *v = lg__data(p->shown);
        double least = INFINITY, most = 0;
        p->whole = true;
        p->width = 1;
        for (int64_t i = 0; p->real && i < n; i++) {
                if (v[i] == 0 || !isfinite(v[i]))
                        continue;
                least = fmin(least, fabs(v[i]));
                most = fmax(most, fabs(v[i]));
                p->whole = p->whole && v[i] == ceil(v[i]);
        }
        p->scientific = p->real && most > 0 && (most / least > 1000 || most > 1e8 || least < 1e-4);
        for (int64_t i = 0; i < n; i++) {
                /* Zeros, infinities and NaN do not widen the column, as in PyTorch. */
                if (p->real && (v[i] == 0 || !isfinite(v[i])))
                        continue;
                int width = (int)strlen(format(p, i).s);
                p->width = width > p->width ? width : p->width;
        }
}

static void put_number(printer *p, int64_t i)
{
        number n = format(p, i);
        for (int k = (int)strlen(n.s); k < p->width; k++)
                put(p, " ");
        put(p, n.s);
}

/* ---- brackets ---- */

static void put_row(printer *p, int dim, int indent, int64_t first)
{
        int64_t n = p->shown->at.shape.size[dim], items = n + p->cut[dim];
        int per_line = (LINE - indent) / (p->width + 2);
        per_line = per_line > 1 ? per_line : 1;
        for (int64_t i = 0; i < items; i++) {
                if (i && i % per_line == 0) {
                        put(p, ",");
                        new_line(p, 1, indent + 1);
                } else if (i) {
                        put(p, ", ");
                }
                if (p->cut[dim] && i == EDGE)
                        put(p, " ...");
                else
                        put_number(p, first + (p->cut[dim] && i > EDGE ? i - 1 : i));
        }
}

/* Prints the values from dimension `dim` on that begin at element `first`. Recurses at most LG_MAX_DIMS deep. */
static void put_values(printer *p, int dim, int indent, int64_t first)
{
        const lg__layout *at = &p->shown->at;
        if (dim == at->shape.ndim) {
                put_number(p, first);
                return;
        }
        put(p, "[");
        if (dim == at->shape.ndim - 1)
                put_row(p, dim, indent, first);
        for (int64_t i = 0; i < at->shape.size[dim] && dim < at->shape.ndim - 1; i++) {
                if (i) {
                        put(p, ",");
                        new_line(p, at->shape.ndim - dim - 1, indent + 1);
                }
                if (p->cut[dim] && i == EDGE) {
                        put(p, "...,");
                        new_line(p, at->shape.ndim - dim - 1, indent + 1);
                }
                put_values(p, dim + 1, indent + 1, first + i * at->strides[dim]);
        }
        put(p, "]");
}

/* ---- values ---- */

/* Copies one corner of t: of each dimension that is cut, the first or, if `corner` has its bit, the last elements. */
static bool copy_corner(const printer *p, const lg_tensor *t, lg_tensor *shown, unsigned corner)
{
        lg__layout from = t->at, to = shown->at;
        for (int i = 0; i < from.shape.ndim; i++) {
                if (!p->cut[i])
                        continue;
                int64_t n = from.shape.size[i];
                from.shape.size[i] = to.shape.size[i] = EDGE;
                if (corner >> i & 1) {
                        from.offset += (n - EDGE) * from.strides[i];
                        to.offset += EDGE * to.strides[i];
                }
        }
        lg_tensor *a = lg__tensor_new(t->ctx, t->storage, &from), *b = lg__tensor_new(t->ctx, shown->storage, &to);
        bool ok = a && b && lg__copy_values(b, a, "lg_print");
        lg__tensor_release(a);
        lg__tensor_release(b);
        return ok;
}

/* Returns the values to be shown, on the host; of a tensor with more than THRESHOLD elements only the corners. */
static lg_tensor *gather(printer *p, const lg_tensor *t)
{
        lg_shape shape = t->at.shape;
        unsigned cut = 0;
        for (int i = 0; i < shape.ndim && lg__shape_numel(t->at.shape) > THRESHOLD; i++) {
                p->cut[i] = shape.size[i] > 2 * EDGE;
                if (p->cut[i]) {
                        shape.size[i] = 2 * EDGE;
                        cut |= 1u << i;
                }
        }
        lg_tensor *shown = lg__tensor_empty(t->ctx, lg_cpu(), p->real ? LG_F64 : LG_I64, shape);
        bool ok = shown != NULL;
        for (unsigned corner = 0; corner <= cut && ok; corner++)
                if ((corner & ~cut) == 0)
                        ok = copy_corner(p, t, shown, corner);
        return lg__created(shown, ok, false);
}

/* Does the same while an error is set, and keeps that error. */
static lg_tensor *gather_despite_error(printer *p, const lg_tensor *t)
{
        lg_ctx *c = t->ctx;
        lg_error_code was = c->error;
        char message[sizeof c->message];
        memcpy(message, c->message, sizeof message);
        c->error = LG_ERR_NONE;
        lg_tensor *shown = gather(p, t);
        if (was) {
                memcpy(c->message, message, sizeof message);
                c->error = was;
        }
        return shown;
}

/* ---- device, size, dtype, grad_fn ---- */

static void put_suffix(printer *p, const char *name, const char *value, const char *end)
{
        number n;
        int length = snprintf(n.s, sizeof n.s, "%s%s%s", name, value, end);
        /* two columns more than are printed, as PyTorch counts */
        if (p->column + 2 + length + 2 > LINE) {
                put(p, ",");
                new_line(p, 1, INDENT);
        } else {
                put(p, ", ");
        }
        put(p, n.s);
}

static void put_suffixes(printer *p, const lg_tensor *t, bool with_shape)
{
        lg_dtype d = t->at.dtype;
        bool empty = lg__shape_numel(t->at.shape) == 0;
        if (t->storage->device->id.type != LG_DEVICE_CPU)
                put_suffix(p, "device='", lg_device_name(t->storage->device->id), "'");
        if (with_shape || (empty && t->at.shape.ndim != 1))
                put_suffix(p, "size=", lg__shape_text(t->at.shape).s, "");
        /* elements show whether a tensor is i64 or bool; an empty tensor needs its dtype */
        if (d != LG_F32 && (empty || with_shape || (d != LG_I64 && d != LG_BOOL)))
                put_suffix(p, "dtype=", lg_dtype_name(d), "");
        if (t->node && t->node->op)
                put_suffix(p, "grad_fn=<", t->node->op->name ? t->node->op->name : "?", ">");
        else if (t->node)
                put_suffix(p, "requires_grad=True", "", "");
}

static void put_tensor(printer *p, const lg_tensor *t, const lg_tensor *shown)
{
        bool empty = lg__shape_numel(t->at.shape) == 0;
        locale_t was = lg__point_begin();
        put(p, "tensor(");
        if (shown) {
                p->shown = shown;
                choose_format(p);
                put_values(p, 0, INDENT, 0);
        } else {
                put(p, empty ? "[]" : "...");
        }
        put_suffixes(p, t, !shown && !empty);
        put(p, ")\n");
        lg__point_end(was);
}

bool lg_print(FILE *f, const lg_tensor *t)
{
        lg_ctx *c = lg__ctx_of(t);
        if (!f)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_print: the file is NULL");
        if (!t || t->live != LG__LIVE) {
                fputs("NULL tensor\n", f);
                return lg__written(c, f, "lg_print");
        }
        printer p = {.f = f, .real = lg__dtype_float(t->at.dtype), .truth = t->at.dtype == LG_BOOL};
        bool empty = lg__shape_numel(t->at.shape) == 0;
        lg_tensor *shown = empty ? NULL : gather_despite_error(&p, t);
        put_tensor(&p, t, shown);
        lg__tensor_release(shown);
        return lg__written(c, f, "lg_print") && (shown || empty);
}
