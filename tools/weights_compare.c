/* weights_compare.c - compares the tensors of two files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "weights.h"

/* A file and its tensors, sorted by name. */
typedef struct side {
        const char *path;
        lg_weights *file;
        lg_weight *items;
        int64_t count;
} side;

static int by_name(const void *a, const void *b)
{
        return strcmp(((const lg_weight *)a)->name, ((const lg_weight *)b)->name);
}

static bool begin(lg_ctx *c, side *s, const char *path)
{
        lg_weight t;
        *s = (side){.path = path, .file = lg_weights_open(c, path)};
        while (lg_weights_at(s->file, s->count, &t))
                s->count++;
        s->items = s->file ? calloc((size_t)s->count + 1, sizeof *s->items) : NULL;
        for (int64_t i = 0; s->items && i < s->count; i++)
                lg_weights_at(s->file, i, &s->items[i]);
        if (s->items)
                qsort(s->items, (size_t)s->count, sizeof *s->items, by_name);
        else
                lg_set_error(c, LG_ERR_MEMORY, "no memory for the names of %lld tensors", (long long)s->count);
        return s->items;
}

static void end(side *s)
{
        free(s->items);
        lg_weights_close(s->file);
}

/* ---- values ---- */

typedef struct gap {
        int64_t values, unlike, nans; /* numbers of values: all, different ones, and NaN in one file only */
        double largest;               /* largest difference of two numbers */
} gap;

/* Compares two values; a NaN is equal to a NaN. */
static void add_f64(gap *g, double x, double y)
{
        if (x == y || (isnan(x) && isnan(y)))
                return;
        g->unlike++;
        if (isnan(x) || isnan(y))
                g->nans++;
        else
                g->largest = fmax(g->largest, fabs(x - y));
}

static void add_i64(gap *g, int64_t x, int64_t y)
{
        g->unlike += x != y;
        uint64_t distance = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
        g->largest = fmax(g->largest, (double)distance);
}

/* Compares the values of two tensors: as f64, or exactly as i64 if neither dtype is a float. */
static gap compare_values(lg_ctx *c, const side *a, const lg_weight *x, const side *b, const lg_weight *y)
{
        gap g = {0};
        lg_dtype as = lg_dtype_is_float(x->dtype) || lg_dtype_is_float(y->dtype) ? LG_F64 : LG_I64;
        weights_part *p = weights_begin(c, a->file, x->name, as), *q = weights_begin(c, b->file, y->name, as);
        while (weights_next(c, p) && weights_next(c, q)) {
                g.values += p->count;
                for (int64_t i = 0; i < p->count; i++)
                        if (as == LG_I64)
                                add_i64(&g, p->values.i64[i], q->values.i64[i]);
                        else
                                add_f64(&g, p->values.f64[i], q->values.f64[i]);
        }
        weights_end(p);
        weights_end(q);
        return g;
}

/* ---- tensors ---- */

typedef struct tally {
        int64_t both, same, only[2], unread; /* unread: number of tensors whose dtype libgrad does not have */
} tally;

static bool same_shape(const lg_weight *x, const lg_weight *y)
{
        bool same = x->shape.ndim == y->shape.ndim;
        for (int i = 0; same && i < x->shape.ndim; i++)
                same = x->shape.size[i] == y->shape.size[i];
        return same;
}

static void print_gap(const gap *g)
{
        printf("%lld of %lld values differ", (long long)g->unlike, (long long)g->values);
        if (g->unlike > g->nans)
                printf(", by at most %.6g", g->largest);
        if (g->nans)
                printf("; NaN in one file only: %lld", (long long)g->nans);
}

/* Prints how a tensor differs, or that its values were not compared. */
static void print_unlike(const lg_weight *x, const lg_weight *y, bool shapes, bool dtypes, const gap *g)
{
        const char *before = ": ";
        weights_print_text(x->name, 0);
        if (!shapes) {
                printf("%sshape ", before);
                weights_print_shape(x->shape, 0);
                fputs(" and ", stdout);
                weights_print_shape(y->shape, 0);
                before = "; ";
        }
        if (!dtypes) {
                printf("%sdtype %s and %s", before, x->dtype_name, y->dtype_name);
                before = "; ";
        }
        if (g->unlike) {
                fputs(before, stdout);
                print_gap(g);
        } else if (shapes && dtypes) {
                printf("%snot compared, its dtype is %s", before, x->dtype_name);
        }
        putchar('\n');
}

/* Compares a tensor that is in both files; prints a line if it differs. */
static void compare_tensor(lg_ctx *c, tally *n, const side *a, const lg_weight *x, const side *b, const lg_weight *y)
{
        bool shapes = same_shape(x, y), dtypes = !strcmp(x->dtype_name, y->dtype_name);
        bool readable = x->dtype != LG_DTYPE_NONE && y->dtype != LG_DTYPE_NONE;
        gap g = {0};
        if (shapes && readable)
                g = compare_values(c, a, x, b, y);
        if (lg_error(c))
                return;
        bool same = shapes && dtypes && readable && !g.unlike;
        n->both++;
        n->same += same;
        n->unread += shapes && dtypes && !readable;
        if (!same)
                print_unlike(x, y, shapes, dtypes, &g);
}

static void print_only(const side *s, const lg_weight *t, int64_t *count)
{
        ++*count;
        fputs("only in ", stdout);
        weights_print_text(s->path, 0);
        fputs(": ", stdout);
        weights_print_text(t->name, 0);
        printf("  %s  ", t->dtype_name);
        weights_print_shape(t->shape, 0);
        putchar('\n');
}

static bool finish(lg_ctx *c, const tally *n)
{
        printf("in both: %lld, of them the same: %lld, only in the first: %lld, only in the second: %lld\n",
               (long long)n->both, (long long)n->same, (long long)n->only[0], (long long)n->only[1]);
        if (n->unread)
                lg_set_error(c, LG_ERR_DTYPE,
                             "tensors that were not compared, because libgrad does not have their dtype: %lld",
                             (long long)n->unread);
        return n->same == n->both && !n->only[0] && !n->only[1];
}

bool weights_compare(lg_ctx *c, const char *path, const char *other)
{
        side a, b = {0};
        tally n = {0};
        bool same = false;
        if (begin(c, &a, path) && begin(c, &b, other)) {
                for (int64_t i = 0, j = 0; (i < a.count || j < b.count) && !lg_error(c);) {
                        int order = i == a.count ? 1 : j == b.count ? -1 : by_name(&a.items[i], &b.items[j]);
                        if (order < 0)
                                print_only(&a, &a.items[i++], &n.only[0]);
                        else if (order > 0)
                                print_only(&b, &b.items[j++], &n.only[1]);
                        else
                                compare_tensor(c, &n, &a, &a.items[i++], &b, &b.items[j++]);
                }
                same = !lg_error(c) && finish(c, &n);
        }
        end(&a);
        end(&b);
        return same;
}
