/* profiler_table.c - lg_profiler_print(): tables of a profile by op, by module and by region. */
#include <stdlib.h>
#include <string.h>
#include "profiler.h"

typedef struct table {
        FILE *f;
        const lg_profiler *p;
        lg__row_kind kind;
        int64_t wall;
        const lg__row **rows; /* by their own time, the longest first */
        int64_t count;
        int width;   /* of names */
        bool device; /* the device's time is known */
} table;

static int by_self(const void *a, const void *b)
{
        const lg__row *x = *(const lg__row *const *)a, *y = *(const lg__row *const *)b;
        return x->self != y->self ? (x->self < y->self) - (x->self > y->self) : (x > y) - (x < y);
}

/* Returns "-" for a rate that is not known. */
static lg__text rate(double amount, double seconds)
{
        lg__text t;
        if (amount > 0 && seconds > 0)
                snprintf(t.s, sizeof t.s, "%.2f", amount / seconds * 1e-9);
        else
                snprintf(t.s, sizeof t.s, "-");
        return t;
}

static void print_row(const table *t, const lg__row *r)
{
        const double seconds = r->device > 0 ? r->device : (double)r->self * 1e-9;
        lg__text calls = {"-"}, average = {"-"};
        if (r->calls) {
                snprintf(calls.s, sizeof calls.s, "%lld", (long long)r->calls);
                snprintf(average.s, sizeof average.s, "%.2f", (double)r->total * 1e-3 / (double)r->calls);
        }
        fprintf(t->f, "%-*s %6.1f %8s %11.3f %11.3f %10s", t->width, r->name,
                t->wall ? 100.0 * (double)r->self / (double)t->wall : 0, calls.s, (double)r->self * 1e-6,
                (double)r->total * 1e-6, average.s);
        if (t->device)
                fprintf(t->f, " %11.3f", r->device * 1e3);
        fprintf(t->f, " %9s %9s %10.3f %10.3f %10.3f\n", rate(r->flops, seconds).s, rate((double)r->bytes, seconds).s,
                (double)r->allocated * 1e-6, (double)r->kept * 1e-6, (double)r->peak * 1e-6);
}

static void print_head(const table *t)
{
        static const char *const names[] = {"by op", "by module", "by region"};
        fprintf(t->f, "\n%-*s %6s %8s %11s %11s %10s", t->width, names[t->kind], "self %", "calls", "self ms",
                "total ms", "average us");
        if (t->device)
                fprintf(t->f, " %11s", "device ms");
        fprintf(t->f, " %9s %9s %10s %10s %10s\n", "GFLOP/s", "GB/s", "alloc MB", "kept MB", "peak MB");
}

static void add(lg__row *sum, const lg__row *r)
{
        sum->self += r->self;
        sum->bytes += r->bytes;
        sum->allocated += r->allocated;
        sum->kept += r->kept;
        sum->peak = r->peak > sum->peak ? r->peak : sum->peak;
        sum->flops += r->flops;
        sum->device += r->device;
}

/* Prints the rows, the rows that do not fit in one more, and their sum. */
static void print_rows(table *t, int most)
{
        lg__row all = {.name = "all"}, rest = {.name = ""};
        qsort(t->rows, (size_t)t->count, sizeof *t->rows, by_self);
        const int64_t shown = t->count > most ? most : t->count;
        t->width = 24;
        for (int64_t i = 0; i < t->count; i++) {
                const int length = (int)strlen(t->rows[i]->name);
                add(&all, t->rows[i]);
                t->device = t->device || t->rows[i]->device > 0;
                if (i < shown)
                        t->width = length > t->width ? length : t->width;
                else
                        add(&rest, t->rows[i]);
        }
        print_head(t);
        for (int64_t i = 0; i < shown; i++)
                print_row(t, t->rows[i]);
        snprintf(rest.name, sizeof rest.name, "%lld more", (long long)(t->count - shown));
        rest.total = rest.self;
        if (shown < t->count)
                print_row(t, &rest);
        all.total = all.self;
        print_row(t, &all);
}

/* Copies the rows of the profile, so that those of modules have the time of the modules inside them in their total, and
 * the first row of each kind the rest of the time. */
static void complete(lg__row *rows, const lg_profiler *p, int64_t wall)
{
        int64_t rest[] = {wall, wall, wall};
        memcpy(rows, p->rows, (size_t)p->row_count * sizeof *rows);
        for (int64_t i = 0; i < p->row_count; i++)
                if (i != LG__OTHER && i != LG__NO_MODULE && i != LG__NO_REGION)
                        rest[rows[i].kind] -= rows[i].self;
        for (int i = 0; i <= LG__NO_REGION; i++)
                rows[i].self = rows[i].total = rest[i];
        for (int64_t i = LG__ROWS; i < p->row_count; i++)
                if (rows[i].kind == LG__ROW_MODULE)
                        rows[i].total = rows[i].self;
        for (int64_t i = p->row_count - 1; i >= LG__ROWS; i--) /* rows of inner modules come later */
                if (rows[i].kind == LG__ROW_MODULE && rows[i].parent >= LG__ROWS)
                        rows[rows[i].parent].total += rows[i].total;
}

static bool has_work(const lg__row *r)
{
        return r->calls || r->self || r->allocated || r->kept;
}

static void print(FILE *f, const lg_profiler *p, const lg__row *rows, const lg__row **list, int64_t wall, int most)
{
        fprintf(f, "%lld %s, %.3f ms", (long long)p->done, p->done == 1 ? "step" : "steps", (double)wall * 1e-6);
        if (p->done)
                fprintf(f, ", %.3f ms each", (double)wall * 1e-6 / (double)p->done);
        fputc('\n', f);
        for (int kind = LG__ROW_OP; kind <= LG__ROW_REGION; kind++) {
                table t = {.f = f, .p = p, .kind = (lg__row_kind)kind, .wall = wall, .rows = list};
                bool any = kind == LG__ROW_OP;
                for (int64_t i = 0; i < p->row_count; i++)
                        if (rows[i].kind == t.kind && has_work(&rows[i])) {
                                list[t.count++] = &rows[i];
                                any = any || i >= LG__ROWS;
                        }
                if (any)
                        print_rows(&t, most);
        }
}

bool lg_profiler_print_with(FILE *f, lg_profiler *p, const lg_profiler_print_options *options)
{
        const char *op = "lg_profiler_print";
        lg_profiler_print_options o;
        lg_ctx *c = p ? p->object.ctx : NULL;
        if (!lg__take(c, op, options, &o, sizeof o))
                return false;
        if (!f || o.rows < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, f ? "%s: .rows is negative" : "%s: the file is NULL", op);
        const int64_t wall = lg__profiler_wall(p);
        const size_t bytes = (size_t)p->row_count * (sizeof(lg__row) + sizeof(lg__row *));
        lg__row *rows = !p->recording && !lg__profiler_resolve(p) ? NULL : lg__host_alloc(c, bytes);
        if (!rows)
                return false;
        complete(rows, p, wall);
        locale_t was = lg__point_begin();
        print(f, p, rows, (const lg__row **)(rows + p->row_count), wall, o.rows ? o.rows : 20);
        lg__point_end(was);
        lg__host_free(c, rows, bytes);
        return lg__written(c, f, op);
}
