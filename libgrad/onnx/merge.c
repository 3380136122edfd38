/* merge.c - compares runs of a module with inputs of several sizes, and writes what changes as products of sizes. */
#include "recording.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define OP "lg_onnx_save"

bool lg__onnx_product(const int64_t *v, int count, const lg__onnx_symbols *symbols, char ret[64])
{
        int64_t factor = v[0];
        char names[48] = "";
        for (int j = 0; j < symbols->count && j + 1 < count; j++) {
                const lg__onnx_symbol *s = &symbols->at[j];
                if (v[j + 1] == v[0])
                        continue;
                int64_t other;
                if (factor % s->size || v[0] % s->size || __builtin_mul_overflow(v[0] / s->size, s->other, &other) ||
                    v[j + 1] != other)
                        return false;
                factor /= s->size;
                const size_t used = strlen(names);
                snprintf(names + used, sizeof names - used, "*$%d", j);
        }
        return (size_t)snprintf(ret, 64, "%lld%s", (long long)factor, names) < 64;
}

/* A form that is being compared in all recordings. */
typedef struct comparison {
        const lg__onnx_symbols *symbols;
        int count;
        const char *at[LG__ONNX_SYMBOLS + 1]; /* the rest, by recording */
        lg__form merged;
} comparison;

/* Returns the number of characters of a number in front of s, or 0. */
static size_t number_length(const char *s)
{
        const bool sign = *s == '-' || *s == '+';
        size_t n = sign;
        if (!isdigit((unsigned char)s[n]))
                return 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '.' || (strchr("+-", s[n]) && s[n] && tolower(s[n - 1]) == 'e'))
                n++;
        return n;
}

/* Copies a number that is the same everywhere, or writes it as a product of sizes if `may` is set. */
static bool merge_number(comparison *c, bool may)
{
        int64_t v[LG__ONNX_SYMBOLS + 1];
        const size_t first = number_length(c->at[0]);
        bool same = true;
        for (int i = 0; i < c->count; i++) {
                const size_t n = number_length(c->at[i]);
                if (!n)
                        return false;
                same = same && n == first && !strncmp(c->at[i], c->at[0], n);
                v[i] = strtoll(c->at[i], NULL, 10);
        }
        char product[64];
        if (same)
                lg__form_add(&c->merged, "%.*s", (int)first, c->at[0]);
        else if (may && lg__onnx_product(v, c->count, c->symbols, product))
                lg__form_add(&c->merged, "%s", product);
        else
                return false;
        for (int i = 0; i < c->count; i++)
                c->at[i] += number_length(c->at[i]);
        return true;
}

static bool merge_form(comparison *c)
{
        bool inside = false, word = false;
        while (*c->at[0]) {
                const char now = *c->at[0];
                if (!word && number_length(c->at[0])) {
                        if (!merge_number(c, inside))
                                return false;
                        continue;
                }
                for (int i = 0; i < c->count; i++)
                        if (*c->at[i]++ != now)
                                return false;
                lg__form_add(&c->merged, "%c", now);
                inside = now == '[' || (inside && now != ']');
                word = isalnum((unsigned char)now) || now == '_';
        }
        for (int i = 1; i < c->count; i++)
                if (*c->at[i])
                        return false;
        return c->merged.length < sizeof c->merged.s;
}

static void *differ(lg__onnx_recording *r, int64_t i, const char *how)
{
        const lg__onnx_applied *a = i < r->op_count ? &r->ops[i] : NULL;
        return lg__fail(r->ctx, LG_ERR_STATE, OP ": %s in \"%s\" %s", a ? a->op->name : "the forward",
                        a && *a->where != '-' ? a->where : r->root->type, how);
}

/* Returns whether the recordings' op i is the same, of the same values. */
static bool same_op(lg__onnx_recording *const *r, int count, int64_t i)
{
        const lg__onnx_applied *a = &r[0]->ops[i];
        for (int k = 1; k < count; k++) {
                const lg__onnx_applied *b = &r[k]->ops[i];
                if (a->op != b->op || a->in_count != b->in_count || a->out_count != b->out_count ||
                    memcmp(a->in, b->in, (size_t)a->in_count * sizeof *a->in) ||
                    memcmp(a->out, b->out, (size_t)a->out_count * sizeof *a->out))
                        return false;
        }
        return true;
}

/* Returns whether all elements of t, on the CPU and row-major, are the same bytes. */
static bool is_uniform(const lg_tensor *t)
{
        const size_t bytes = lg__dtype_bytes(t->at.dtype);
        const int64_t n = lg__layout_numel(&t->at);
        const char *p = lg__data(t);
        return n > 0 && !memcmp(p, p + bytes, (size_t)(n - 1) * bytes);
}

/* Returns whether t, on the CPU, has one dimension and is 0, 1, 2, .... */
static bool is_count(const lg_tensor *t)
{
        lg_tensor *wide = t->at.shape.ndim == 1 ? lg__clone_values(t, t->ctx->cpu->id, LG_F64) : NULL;
        bool count = wide != NULL;
        for (int64_t i = 0; count && i < wide->at.shape.size[0]; i++)
                count = ((const double *)lg__data(wide))[i] == (double)i;
        return count;
}

/* Compares a tensor that no op computed in two recordings: equal, or in another size and all of one number, or
 * counting, which sets *counts. */
static bool same_constant(lg_tensor *a, lg_tensor *b, bool *counts)
{
        lg_ctx *c = a->ctx;
        if (a->storage == b->storage && lg__layout_same(&a->at, &b->at) && a->at.offset == b->at.offset)
                return true;
        if (a->at.dtype != b->at.dtype || a->at.shape.ndim != b->at.shape.ndim)
                return false;
        const lg_scope scope = lg_scope_begin(c);
        const lg_tensor *x = lg__clone_values(a, c->cpu->id, a->at.dtype);
        const lg_tensor *y = lg__clone_values(b, c->cpu->id, b->at.dtype);
        const size_t bytes = lg__dtype_bytes(a->at.dtype);
        bool same = x && y;
        if (same && lg__same_shape(&a->at, &b->at))
                same = !lg__layout_numel(&x->at) ||
                       !memcmp(lg__data(x), lg__data(y), (size_t)lg__layout_numel(&x->at) * bytes);
        else if (same && !(*counts = is_count(x) && is_count(y)))
                same = is_uniform(x) && is_uniform(y) && !memcmp(lg__data(x), lg__data(y), bytes);
        lg_scope_end(c, scope);
        return same;
}

/* Sets the text of the shape of value i, which has several sizes in the recordings. Returns false if no product fits.
 */
static bool set_sizes(lg__onnx_recording *const *r, int count, int64_t i, const lg__onnx_symbols *symbols)
{
        lg__form text = {.length = 0};
        lg__form_add(&text, "[");
        for (int d = 0; d < r[0]->values[i].shape.ndim; d++) {
                int64_t v[LG__ONNX_SYMBOLS + 1];
                char product[64];
                for (int k = 0; k < count; k++)
                        v[k] = r[k]->values[i].shape.size[d];
                if (!lg__onnx_product(v, count, symbols, product))
                        return false;
                lg__form_add(&text, "%s%s", d ? " " : "", product);
        }
        lg__form_add(&text, "]");
        char *copy = lg__arena_get(r[0]->ctx, &r[0]->arena, 1, text.length + 1);
        r[0]->values[i].sizes = copy ? memcpy(copy, text.s, text.length + 1) : NULL;
        return copy != NULL;
}

static bool same_values(lg__onnx_recording *const *r, int count, const lg__onnx_symbols *symbols)
{
        for (int64_t i = 0; i < r[0]->value_count; i++) {
                lg__onnx_value *a = &r[0]->values[i];
                bool same = true, resized = false;
                for (int k = 1; k < count && same; k++) {
                        const lg__onnx_value *b = &r[k]->values[i];
                        same = !a->tensor == !b->tensor && a->input == b->input &&
                               (!a->tensor || same_constant(a->tensor, b->tensor, &a->counts));
                        resized = resized || (a->tensor && same && !lg__same_shape(&a->tensor->at, &b->tensor->at));
                }
                if (r[0]->ctx->error || (same && (!resized || set_sizes(r, count, i, symbols))))
                        continue;
                return differ(r[0], a->user,
                              "uses a tensor that is no result of an op, but differs from run to run: it depends on "
                              "the inputs, on their sizes or on random numbers");
        }
        return !r[0]->ctx->error;
}

bool lg__onnx_merge(lg__onnx_recording *const *r, int count, const lg__onnx_symbols *symbols)
{
        for (int k = 1; k < count; k++)
                if (r[k]->op_count != r[0]->op_count || r[k]->value_count != r[0]->value_count ||
                    r[k]->outputs.count != r[0]->outputs.count)
                        return differ(r[0], r[0]->op_count,
                                      "applies other ops if the inputs have other sizes or values");
        for (int64_t i = 0; i < r[0]->op_count; i++) {
                comparison c = {.symbols = symbols, .count = count};
                if (!same_op(r, count, i))
                        return differ(r[0], i, "is another op if the inputs have other sizes or values");
                for (int k = 0; k < count; k++)
                        c.at[k] = r[k]->ops[i].form;
                if (!merge_form(&c))
                        return differ(r[0], i,
                                      "has numbers that change with the sizes of the inputs, but are no multiples of "
                                      "one; .symbolic names the dimensions that may change, .fixed = true fixes all");
                const size_t bytes = c.merged.length + 1;
                char *text = lg__arena_get(r[0]->ctx, &r[0]->arena, 1, bytes);
                if (!text)
                        return false;
                r[0]->ops[i].form = memcpy(text, c.merged.s, bytes);
        }
        return same_values(r, count, symbols);
}
