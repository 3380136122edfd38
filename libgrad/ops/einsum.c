/* einsum.c - Einstein summation: products of any number of tensors, summed over the labels that the result lacks.
 *
 * Diagonals, dimensions of size 1 and sums over labels of one operand come first. Then pairs are multiplied until one
 * tensor is left, as opt_einsum's greedy path does: first the pair whose product is smallest in comparison with its
 * factors. The product of a pair is one matrix product of views, or an elementwise one if nothing is summed.
 */
#include <string.h>
#include "graph/op.h"

/* A label is a bit: letters A to Z, then a to z, then the dimensions of an ellipsis, the last one first. */
enum { LETTERS = 52, LABELS = LETTERS + LG_MAX_DIMS };
#define BIT(label) ((uint64_t)1 << (label))

/* A factor: an operand, or the product of some. */
typedef struct factor {
        lg_tensor *t;
        int n;
        uint8_t label[LG_MAX_DIMS]; /* of each dimension */
} factor;

typedef struct labels {
        int n;
        uint8_t at[LABELS];
} labels;

typedef struct equation {
        lg_ctx *c;
        const char *text, *at; /* the equation, and the place that is read */
        int64_t size[LABELS];  /* of each label; -1: not used yet */
        int times[LABELS];     /* how often a letter is used */
        int dots;              /* number of dimensions of the ellipsis */
        labels out;
} equation;

/* ---- reading an equation ---- */

/* Sets an error about the place that is read. Returns false. */
static bool wrong(const equation *e, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);
static bool wrong(const equation *e, lg_error_code code, const char *format, ...)
{
        char reason[200];
        va_list args;
        va_start(args, format);
        vsnprintf(reason, sizeof reason, format, args);
        va_end(args);
        return lg__fail(e->c, code, "einsum: in \"%.100s\", at position %lld: %s", e->text,
                        (long long)(e->at - e->text), reason);
}

static int label_of(char ch)
{
        return ch >= 'A' && ch <= 'Z' ? ch - 'A' : ch >= 'a' && ch <= 'z' ? ch - 'a' + 26 : -1;
}

static int letter_of(int label)
{
        return label < 26 ? 'A' + label : 'a' + label - 26;
}

static bool at_end(const equation *e)
{
        return *e->at == '\0' || *e->at == ',' || *e->at == '-';
}

/* Reads the next label of a term: a letter, LETTERS for an ellipsis, -1 at the end of the term, -2 with an error. */
static int next_label(equation *e, bool had_dots)
{
        while (*e->at == ' ')
                e->at++;
        if (at_end(e))
                return -1;
        const bool dots = !strncmp(e->at, "...", 3);
        const int label = dots ? LETTERS : label_of(*e->at);
        if (label < 0)
                wrong(e, LG_ERR_ARGUMENT, "'%c' is not a letter, a comma, \"...\" or \"->\"", *e->at);
        else if (dots && had_dots)
                wrong(e, LG_ERR_ARGUMENT, "a second ellipsis");
        if (label < 0 || (dots && had_dots))
                return -2;
        e->at += dots ? 3 : 1;
        return label;
}

/* Records that operand `index` has this size along a label, where sizes of 1 broadcast. */
static bool meet(equation *e, int label, int64_t size, int index)
{
        int64_t *all = &e->size[label];
        if (*all != size && *all != 1 && size != 1 && *all >= 0)
                return label < LETTERS
                               ? wrong(e, LG_ERR_SHAPE, "'%c' has size %lld in tensor %d, but %lld before",
                                       letter_of(label), (long long)size, index, (long long)*all)
                               : wrong(e, LG_ERR_SHAPE,
                                       "the ellipsis of tensor %d has size %lld in its dimension %d, but %lld before",
                                       index, (long long)size, LETTERS - 1 - label, (long long)*all);
        if (*all < 0 || *all == 1)
                *all = size;
        return true;
}

/* Reads the term of operand `index`, f->t, and sets its labels. */
static bool read_term(equation *e, factor *f, int index)
{
        const lg_shape s = f->t->at.shape;
        int letters = 0, before = -1, label;
        while ((label = next_label(e, before >= 0)) >= 0) {
                if (label < LETTERS && letters == s.ndim)
                        return wrong(e, LG_ERR_SHAPE, "the term has more letters than tensor %d, %s, has dimensions",
                                     index, lg__tensor_text(f->t).s);
                if (label < LETTERS)
                        f->label[letters++] = (uint8_t)label;
                else
                        before = letters;
        }
        const int dots = s.ndim - letters;
        if (label < -1)
                return false;
        if (before < 0 && dots)
                return wrong(e, LG_ERR_SHAPE,
                             "the term has %d letters, but tensor %d is %s; \"...\" stands for the rest", letters,
                             index, lg__tensor_text(f->t).s);
        if (dots) {
                memmove(f->label + before + dots, f->label + before, (size_t)(letters - before));
                for (int i = 0; i < dots; i++)
                        f->label[before + i] = (uint8_t)(LETTERS + dots - 1 - i);
        }
        f->n = s.ndim;
        e->dots = dots > e->dots ? dots : e->dots;
        for (int i = 0; i < s.ndim; i++) {
                e->times[f->label[i]]++;
                if (!meet(e, f->label[i], s.size[i], index))
                        return false;
        }
        return true;
}

static void put_dots(const equation *e, labels *out)
{
        for (int i = e->dots - 1; i >= 0; i--)
                out->at[out->n++] = (uint8_t)(LETTERS + i);
}

/* Reads the labels of the result, or finds them if there is no "->": the ellipsis, then letters that are used once. */
static bool read_result(equation *e)
{
        int label;
        bool dots = false;
        uint64_t seen = 0;
        if (*e->at == '\0') {
                put_dots(e, &e->out);
                for (int i = 0; i < LETTERS; i++)
                        if (e->times[i] == 1)
                                e->out.at[e->out.n++] = (uint8_t)i;
        } else if (e->at[1] != '>') {
                return wrong(e, LG_ERR_ARGUMENT, "'-' without '>'");
        } else {
                e->at += 2;
        }
        while (*e->at && (label = next_label(e, dots)) != -1) {
                if (label < -1)
                        return false;
                e->at -= label < LETTERS; /* of the letter, for messages */
                if (label < LETTERS && e->size[label] < 0)
                        return wrong(e, LG_ERR_ARGUMENT, "'%c' of the result is in no term", *e->at);
                if (label < LETTERS && seen & BIT(label))
                        return wrong(e, LG_ERR_ARGUMENT, "'%c' is twice in the result", *e->at);
                e->at += label < LETTERS;
                seen |= BIT(label);
                dots = dots || label == LETTERS;
                if (label == LETTERS)
                        put_dots(e, &e->out);
                else
                        e->out.at[e->out.n++] = (uint8_t)label;
        }
        if (*e->at)
                return wrong(e, LG_ERR_ARGUMENT, "'%c' in the result", *e->at);
        return e->out.n <= LG_MAX_DIMS || wrong(e, LG_ERR_SHAPE, "the result would have %d dimensions", e->out.n);
}

static bool read_equation(equation *e, factor *factors, int count)
{
        for (int i = 0; i < LABELS; i++)
                e->size[i] = -1;
        for (int i = 0; i < count; i++) {
                if (!read_term(e, &factors[i], i))
                        return false;
                if (i + 1 < count && *e->at != ',')
                        return wrong(e, LG_ERR_ARGUMENT, "%d terms for %d tensors", i + 1, count);
                e->at += i + 1 < count;
        }
        if (*e->at == ',')
                return wrong(e, LG_ERR_ARGUMENT, "more terms than the %d tensors", count);
        return read_result(e);
}

/* ---- one factor ---- */

static uint64_t mask_of(const factor *f)
{
        uint64_t mask = 0;
        for (int i = 0; i < f->n; i++)
                mask |= BIT(f->label[i]);
        return mask;
}

static uint64_t result_mask(const equation *e)
{
        uint64_t mask = 0;
        for (int i = 0; i < e->out.n; i++)
                mask |= BIT(e->out.at[i]);
        return mask;
}

static void drop_label(factor *f, int i)
{
        memmove(f->label + i, f->label + i + 1, (size_t)(--f->n - i));
}

/* Replaces dimensions of the same label by their diagonal. Their sizes must be equal. */
static bool take_diagonals(const equation *e, factor *f, int index)
{
        for (int i = 0; i < f->n; i++)
                for (int j = i + 1; j < f->n; j++) {
                        const uint8_t label = f->label[i];
                        const int64_t *size = f->t->at.shape.size;
                        if (f->label[j] != label)
                                continue;
                        if (size[i] != size[j])
                                return lg__fail(e->c, LG_ERR_SHAPE,
                                                "einsum: in \"%.100s\": '%c' of tensor %d has the sizes %lld and %lld",
                                                e->text, letter_of(label), index, (long long)size[i],
                                                (long long)size[j]);
                        if (!(f->t = lg_diagonal(f->t, .dim1 = i ? i : LG_ZERO_INT, .dim2 = j)))
                                return false;
                        drop_label(f, j);
                        drop_label(f, i);
                        f->label[f->n++] = label;
                        i = -1;
                        break;
                }
        return true;
}

/* Removes dimensions of size 1, which broadcast or are restored at the end. */
static bool squeeze(factor *f)
{
        bool any = false;
        for (int i = f->n - 1; i >= 0; i--)
                if (f->t->at.shape.size[i] == 1) {
                        drop_label(f, i);
                        any = true;
                }
        return !any || (f->t = lg_squeeze(f->t, LG_ALL_DIMS));
}

/* Sums over the labels that neither the mask `kept` has nor another factor. */
static bool sum_own(factor *f, uint64_t kept)
{
        lg_dims dims = LG_ALL_DIMS;
        for (int i = f->n - 1; i >= 0; i--)
                if (!(kept & BIT(f->label[i]))) {
                        dims.dim[dims.count++] = i;
                        drop_label(f, i);
                }
        return dims.count == 0 || (f->t = lg_sum(f->t, .dims = dims));
}

/* ---- products of two factors ---- */

static void append(labels *to, int label)
{
        to->at[to->n++] = (uint8_t)label;
}

/* Returns the labels in `mask` in the order in which f has them in memory, so that they join to one dimension. */
static labels in_memory_order(const factor *f, uint64_t mask)
{
        labels all = {.n = 0};
        int64_t strides[LG_MAX_DIMS];
        for (int i = 0; i < f->n; i++) {
                if (!(mask & BIT(f->label[i])))
                        continue;
                const int64_t stride = f->t->at.strides[i];
                int at = all.n++;
                for (; at > 0 && strides[at - 1] < stride; at--) {
                        strides[at] = strides[at - 1];
                        all.at[at] = all.at[at - 1];
                }
                strides[at] = stride;
                all.at[at] = f->label[i];
        }
        return all;
}

/* Returns the labels in `mask` in the order of the result, and the others after them. */
static labels in_result_order(const equation *e, uint64_t mask)
{
        labels all = {.n = 0};
        for (int i = 0; i < e->out.n; i++)
                if (mask & BIT(e->out.at[i]))
                        append(&all, e->out.at[i]);
        const uint64_t left = mask & ~result_mask(e);
        for (int i = 0; i < LABELS; i++)
                if (left & BIT(i))
                        append(&all, i);
        return all;
}

/* Returns f's tensor with its dimensions in the order of the groups. */
static lg_tensor *permuted(const factor *f, const labels *const groups[], int count)
{
        lg_dims order = LG_ALL_DIMS;
        bool same = true;
        for (int g = 0; g < count; g++)
                for (int k = 0; k < groups[g]->n; k++)
                        for (int i = 0; i < f->n; i++)
                                if (f->label[i] == groups[g]->at[k]) {
                                        same = same && i == order.count;
                                        order.dim[order.count++] = i;
                                }
        return same ? f->t : lg_permute(f->t, order);
}

/* Appends to s the sizes of the labels, or, if `joined`, their product. */
static void append_sizes(const equation *e, lg_shape *s, const labels *l, bool joined)
{
        if (joined)
                s->size[s->ndim++] = 1;
        for (int i = 0; i < l->n; i++)
                if (joined)
                        s->size[s->ndim - 1] *= e->size[l->at[i]];
                else
                        s->size[s->ndim++] = e->size[l->at[i]];
}

/* Returns f as matrices: a batch, and two groups of labels that each become one dimension. */
static lg_tensor *as_matrices(const equation *e, const factor *f, const labels *batch, const labels *m, const labels *n)
{
        lg_shape to = LG_SHAPE_0D;
        lg_tensor *t = permuted(f, (const labels *const[]){batch, m, n}, 3);
        const bool joined = batch->n > LG_MAX_DIMS - 2;
        if (m->n == 1 && n->n == 1 && !joined)
                return t;
        append_sizes(e, &to, batch, joined);
        append_sizes(e, &to, m, true);
        append_sizes(e, &to, n, true);
        return t ? lg_reshape(t, to) : NULL;
}

/* Returns f with a dimension for each label of the batch, the left and the right group, of size 1 where f has none. */
static lg_tensor *aligned(const equation *e, const factor *f, const labels *batch, const labels *left,
                          const labels *right, bool is_left)
{
        const labels *own = is_left ? left : right, *other = is_left ? right : left;
        lg_shape to = LG_SHAPE_0D;
        lg_tensor *t = permuted(f, (const labels *const[]){batch, own}, 2);
        append_sizes(e, &to, batch, false);
        for (int i = 0; i < other->n && !is_left; i++)
                to.size[to.ndim++] = 1;
        append_sizes(e, &to, own, false);
        for (int i = 0; i < other->n && is_left; i++)
                to.size[to.ndim++] = 1;
        return !t || other->n == 0 ? t : lg_reshape(t, to);
}

/* Sets *a to the product of a and b, summed over what both have and `kept` has not. */
static bool multiply(const equation *e, factor *a, const factor *b, uint64_t kept)
{
        const uint64_t in_a = mask_of(a), in_b = mask_of(b), summed = in_a & in_b & ~kept;
        const labels batch = in_result_order(e, in_a & in_b & kept), sum = in_memory_order(a, summed);
        const labels left = in_memory_order(a, in_a & ~in_b), right = in_memory_order(b, in_b & ~in_a);
        lg_shape whole = LG_SHAPE_0D;
        append_sizes(e, &whole, &batch, false);
        append_sizes(e, &whole, &left, false);
        append_sizes(e, &whole, &right, false);
        if (summed) {
                lg_tensor *x = as_matrices(e, a, &batch, &left, &sum);
                lg_tensor *y = x ? as_matrices(e, b, &batch, &sum, &right) : NULL;
                a->t = lg_matmul(x, y);
                if (left.n != 1 || right.n != 1 || batch.n > LG_MAX_DIMS - 2)
                        a->t = lg_reshape(a->t, whole);
        } else {
                lg_tensor *x = aligned(e, a, &batch, &left, &right, true);
                a->t = lg_mul(x, x ? aligned(e, b, &batch, &left, &right, false) : NULL);
        }
        const labels *groups[] = {&batch, &left, &right};
        a->n = 0;
        for (int g = 0; g < 3; g++)
                for (int i = 0; i < groups[g]->n; i++)
                        a->label[a->n++] = groups[g]->at[i];
        return a->t != NULL;
}

/* ---- the path ---- */

static double elements(const equation *e, uint64_t mask)
{
        double n = 1;
        for (int i = 0; i < LABELS; i++)
                if (mask & BIT(i))
                        n *= (double)e->size[i];
        return n;
}

/* Returns the labels that the result or factors other than i and j have. */
static uint64_t kept_by_others(const equation *e, const factor *f, int count, int i, int j)
{
        uint64_t kept = result_mask(e);
        for (int k = 0; k < count; k++)
                if (k != i && k != j)
                        kept |= mask_of(&f[k]);
        return kept;
}

/* Finds the pair whose product is smallest in comparison with its factors. Returns false and sets an error if all
 * products would have too many dimensions. */
static bool choose_pair(const equation *e, const factor *f, int count, int *ret_i, int *ret_j)
{
        double least = 0;
        *ret_i = *ret_j = -1;
        for (int i = 0; i < count; i++)
                for (int j = i + 1; j < count; j++) {
                        const uint64_t a = mask_of(&f[i]), b = mask_of(&f[j]);
                        const uint64_t y = (a | b) & (kept_by_others(e, f, count, i, j) | (a ^ b));
                        const double cost = elements(e, y) - elements(e, a) - elements(e, b);
                        if (__builtin_popcountll(y) > LG_MAX_DIMS || (*ret_i >= 0 && cost >= least))
                                continue;
                        least = cost;
                        *ret_i = i;
                        *ret_j = j;
                }
        return *ret_i >= 0 ||
               lg__fail(e->c, LG_ERR_SHAPE,
                        "einsum: in \"%.100s\": the product of any two tensors has more than %d dimensions", e->text,
                        LG_MAX_DIMS);
}

/* Returns whether the result has a label of b before all labels of a, in those that only one of them has. */
static bool comes_first(const equation *e, const factor *b, const factor *a)
{
        const uint64_t in_a = mask_of(a), in_b = mask_of(b);
        for (int i = 0; i < e->out.n; i++)
                if ((in_a ^ in_b) & BIT(e->out.at[i]))
                        return (in_b & BIT(e->out.at[i])) != 0;
        return false;
}

static bool contract(const equation *e, factor *f, int count)
{
        for (; count > 1; count--) {
                int i = 0, j = 0;
                if (!choose_pair(e, f, count, &i, &j))
                        return false;
                const uint64_t kept = kept_by_others(e, f, count, i, j);
                if (comes_first(e, &f[j], &f[i])) {
                        const factor was = f[i];
                        f[i] = f[j];
                        f[j] = was;
                }
                if (!multiply(e, &f[i], &f[j], kept))
                        return false;
                memmove(&f[j], &f[j + 1], (size_t)(count - 1 - j) * sizeof *f);
        }
        return true;
}

/* Returns the last factor in the order and with all dimensions of the result, as a handle of its own. */
static lg_tensor *finish(const equation *e, const factor *f, const lg__call *call)
{
        const labels *const out[] = {&e->out};
        lg_shape s = LG_SHAPE_0D;
        append_sizes(e, &s, &e->out, false);
        lg_tensor *y = permuted(f, out, 1);
        bool given = false;
        for (int i = 0; i < call->in_count; i++)
                given = given || y == call->in[i];
        return y && (given || !lg__shape_equal(y->at.shape, s)) ? lg_reshape(y, s) : y;
}

/* Takes diagonals, casts and sums the factors. Products of more than two 16-bit tensors, and sums before products, are
 * computed in f32, to round once: *dtype becomes the dtype of the products. */
static bool prepare(const equation *e, factor *f, int count, lg_dtype *dtype)
{
        bool sums = false;
        for (int i = 0; i < count; i++)
                if (!take_diagonals(e, &f[i], i) || !squeeze(&f[i]))
                        return false;
        for (int i = 0; i < count; i++)
                sums = sums || (mask_of(&f[i]) & ~kept_by_others(e, f, count, i, i));
        if ((*dtype == LG_F16 || *dtype == LG_BF16) && (count > 2 || sums))
                *dtype = LG_F32;
        for (int i = 0; i < count; i++)
                if (!(f[i].t = lg_cast(f[i].t, *dtype)) || !sum_own(&f[i], kept_by_others(e, f, count, i, i)))
                        return false;
        return true;
}

static lg_tensor *compose_einsum(const lg__call *call)
{
        const int count = call->in_count;
        const size_t bytes = (size_t)count * sizeof(factor);
        const lg_dtype dtype = lg__common_dtype(call->in, count);
        equation e = {.c = call->ctx, .text = call->attributes, .at = call->attributes};
        if (!e.text)
                return lg__fail(e.c, LG_ERR_ARGUMENT, "einsum: the equation is NULL");
        factor *f = lg__alloc(e.c, bytes);
        for (int i = 0; i < count && f; i++)
                f[i].t = call->in[i];
        lg_tensor *y = NULL;
        lg_dtype wide = dtype;
        lg_scope scope = lg_scope_begin(e.c);
        if (f && scope.id && read_equation(&e, f, count) && prepare(&e, f, count, &wide) && contract(&e, f, count))
                y = finish(&e, f, call);
        y = lg_escape(y && wide != dtype ? lg_cast(y, dtype) : y);
        lg_scope_end(e.c, scope);
        lg__free(e.c, f, bytes);
        return y;
}

LG__DEFINE(einsum, .autocast = LG__LOW, .compose = compose_einsum,
           LG__OPERANDS({"operand", LG__NUMBER, .variadic = true}))

lg_tensor *lg_einsum(const char *equation, lg_list operands)
{
        return lg__apply_list(LG__OP(einsum), operands, equation);
}
