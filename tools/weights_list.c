/* weights_list.c - lists the tensors of a file with mean and standard deviation, and its metadata. */
#include <math.h>
#include <string.h>
#include "weights.h"

#define MOST_WIDTH 60 /* widest column of names, shapes or keys; longer entries shift the rest of their line */

/* Figures of a tensor. The mean and `squares` are of the finite values, updated with each value (Welford 1962). */
typedef struct figures {
        int64_t finite, nans, infinite;
        double mean, squares; /* sum of squared distances from the mean */
} figures;

static void add(figures *f, double x)
{
        if (!isfinite(x)) {
                f->nans += isnan(x) != 0;
                f->infinite += isinf(x) != 0;
                return;
        }
        double before = x - f->mean;
        f->mean += before / (double)++f->finite;
        f->squares += before * (x - f->mean);
}

static void print_figures(const figures *f)
{
        if (f->finite)
                printf("  %12.5g", f->mean);
        else
                printf("  %12s", "-");
        if (f->finite > 1)
                printf("  %12.5g", sqrt(f->squares / (double)(f->finite - 1)));
        else
                printf("  %12s", "-");
        printf("  %8lld  %8lld\n", (long long)f->nans, (long long)f->infinite);
}

/* Totals of all tensors, and the widths of columns. */
typedef struct table {
        int64_t tensors, values, bytes;
        int name, shape, key;
} table;

static void widen(int *width, int wanted)
{
        *width = wanted > *width && wanted <= MOST_WIDTH ? wanted : *width;
}

static table measure(const lg_weights *w)
{
        table all = {.name = 6, .shape = 5};
        const char *key, *value;
        lg_weight t;
        for (; lg_weights_at(w, all.tensors, &t); all.tensors++) {
                int64_t n = 1;
                for (int i = 0; i < t.shape.ndim; i++)
                        n *= t.shape.size[i];
                all.values += n;
                all.bytes += t.bytes;
                widen(&all.name, weights_text_width(t.name));
                widen(&all.shape, weights_shape_width(t.shape));
        }
        for (int64_t i = 0; lg_weights_metadata(w, i, &key, &value); i++)
                widen(&all.key, weights_text_width(key));
        return all;
}

static bool print_tensor(lg_ctx *c, lg_weights *w, const table *all, const lg_weight *t)
{
        figures f = {0};
        if (t->dtype != LG_DTYPE_NONE) {
                weights_part *p = weights_begin(c, w, t->name, LG_F64);
                while (weights_next(c, p))
                        for (int64_t i = 0; i < p->count; i++)
                                add(&f, p->values.f64[i]);
                weights_end(p);
        }
        if (lg_error(c))
                return false;
        weights_print_text(t->name, all->name);
        printf("  %-7s  ", t->dtype_name);
        weights_print_shape(t->shape, all->shape);
        if (t->dtype == LG_DTYPE_NONE)
                printf("  %12s  %12s  %8s  %8s\n", "-", "-", "-", "-");
        else
                print_figures(&f);
        return true;
}

static void print_texts(const lg_weights *w, const table *all)
{
        const char *key, *value;
        for (int64_t i = 0; lg_weights_metadata(w, i, &key, &value); i++) {
                weights_print_text(key, all->key);
                fputs("  ", stdout);
                weights_print_text(value, 0);
                putchar('\n');
        }
}

bool weights_list(lg_ctx *c, const char *path)
{
        lg_weights *w = lg_weights_open(c, path);
        lg_weight t;
        if (!w)
                return false;
        table all = measure(w);
        if (all.tensors)
                printf("%-*s  %-7s  %-*s  %12s  %12s  %8s  %8s\n", all.name, "tensor", "dtype", all.shape, "shape",
                       "mean", "std", "NaN", "inf");
        bool ok = true;
        for (int64_t i = 0; ok && lg_weights_at(w, i, &t); i++)
                ok = print_tensor(c, w, &all, &t);
        if (ok) {
                printf("tensors: %lld, values: %lld, bytes: %lld\n", (long long)all.tensors, (long long)all.values,
                       (long long)all.bytes);
                print_texts(w, &all);
        }
        lg_weights_close(w);
        return ok;
}
