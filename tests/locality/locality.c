/* locality.c - counts the lines that a training step's kernels read, by the thread that wrote them last.
 *
 * locality WORKLOAD THREADS: counts the third step. Prints a row of the table that `run` begins, and the functions of
 * loops, by op, that read most from other threads; `run` replaces addresses of functions by their names. */
#include <bench.h>
#include <tensor/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"
#include "turns.h"

enum { MOST_ROWS = 1024, SHOWN = 5, WARM_UP = 2 };

/* Lines read by the loops of one function in one op. */
static struct row {
        char op[64];  /* "": the op has not ended */
        uintptr_t fn; /* 0: code between loops */
        int64_t lines[KINDS], activations[KINDS];
} rows[MOST_ROWS];
static int row_count;
#define OPTIMISER "optimiser"
static int64_t loops;

static void add(int64_t *sum, const int64_t *lines)
{
        for (int i = 0; i < KINDS; i++)
                sum[i] += lines[i];
}

static void add_row(const char *op, uintptr_t fn, const int64_t *lines, const int64_t *activations)
{
        int i = 0;
        while (i < row_count && (rows[i].fn != fn || strcmp(rows[i].op, op) != 0))
                i++;
        if (i == MOST_ROWS)
                return;
        if (i == row_count)
                rows[row_count++] = (struct row){.fn = fn};
        snprintf(rows[i].op, sizeof rows[i].op, "%s", op);
        add(rows[i].lines, lines);
        add(rows[i].activations, activations);
}

static void end_loop(uintptr_t fn)
{
        loops += fn != 0;
        add_row("", fn, lines_read, activations_read);
        memset(lines_read, 0, sizeof lines_read);
        memset(activations_read, 0, sizeof activations_read);
}

/* Adds the loops since the last op to those of this op. The first of them may be those of functions that no trace
 * reports, such as the sum of two gradients. */
static void end_op(const char *op)
{
        end_loop(0);
        for (int i = row_count - 1; i >= 0; i--)
                if (!rows[i].op[0]) {
                        const struct row r = rows[i];
                        rows[i] = rows[--row_count];
                        add_row(op, r.fn, r.lines, r.activations);
                }
}

static void traced(const lg_trace_record *r, void *user)
{
        char name[64];
        const bool fused = r->of && strcmp(r->op, r->of) == 0;
        (void)user;
        snprintf(name, sizeof name, "%s%s%s", r->of ? r->of : r->op,
                 !r->of  ? ""
                 : fused ? " backward"
                         : " backward: ",
                 r->of && !fused ? r->op : "");
        end_op(name);
}

static int by_foreign(const void *a, const void *b)
{
        const int64_t *x = ((const struct row *)a)->activations, *y = ((const struct row *)b)->activations;
        const int64_t first = x[FOREIGN] + x[SHARED], second = y[FOREIGN] + y[SHARED];
        return (first < second) - (first > second);
}

static void print_lines(const int64_t *lines)
{
        const double all = (double)(lines[OWN] + lines[FOREIGN] + lines[SHARED] + lines[UNWRITTEN]);
        printf("%9.2f", all * LINE / 1e6);
        for (int i = 0; i < KINDS; i++)
                printf(" %9.1f", all > 0 ? 100 * (double)lines[i] / all : 0);
}

static void report(const char *workload, int threads)
{
        int64_t all[KINDS] = {0}, activations[KINDS] = {0};
        for (int i = 0; i < row_count; i++) {
                add(all, rows[i].lines);
                if (strcmp(rows[i].op, OPTIMISER) != 0) /* which reads the gradients of parameters */
                        add(activations, rows[i].activations);
        }
        print_lines(all);
        printf(" %6lld  %s, %d threads\n", (long long)loops, workload, threads);
        print_lines(activations);
        printf(" %6s    activations and their gradients\n", "");
        qsort(rows, (size_t)row_count, sizeof *rows, by_foreign);
        for (int i = 0; i < SHOWN && i < row_count; i++) {
                print_lines(rows[i].activations);
                printf(" %6s    %s, %016llx\n", "", rows[i].op, (unsigned long long)rows[i].fn);
        }
}

static void run_step(work *w, const item *it)
{
        lg_scope scope = lg_scope_begin(w->c);
        it->run(w);
        lg_scope_end(w->c, scope);
        end_op(OPTIMISER);
}

int main(int argc, char **argv)
{
        const item *it = workloads, *end = workloads + workload_count;
        const int threads = argc == 3 ? atoi(argv[2]) : 0;
        while (it < end && (argc != 3 || strcmp(it->name, argv[1]) != 0))
                it++;
        if (it == end || threads < 2 || threads > MOST_THREADS) {
                fprintf(stderr, "usage: locality WORKLOAD THREADS, from 2 to %d\n", MOST_THREADS);
                return 2;
        }
        work w = {.c = lg_open(.threads = threads, .seed = 1), .amp = LG_F32};
        it->make(&w);
        const lg_list params = lg_parameters(w.net);
        for (int64_t i = 0; i < params.count; i++)
                memory_mark(params.items[i]->storage->data, params.items[i]->storage->bytes, false);
        turns_begin(end_loop);
        for (int i = 0; i < WARM_UP; i++)
                run_step(&w, it);
        lg_set_trace(w.c, traced);
        row_count = 0;
        loops = 0;
        run_step(&w, it);
        const char *error = lg_error(w.c);
        if (error)
                fprintf(stderr, "%s\n", error);
        else
                report(it->name, threads);
        lg_close(w.c);
        return error != NULL;
}
