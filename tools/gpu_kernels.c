/* gpu_kernels.c - measures the kernels that the tables of gpu_kernels_*.c name, a figure for each row and dtype. */
#include <stdio.h>
#include <string.h>
#include "gpu_bench.h"

static void print_size(const int64_t *size)
{
        for (int i = 0; i < 4 && size[i]; i++)
                printf("%s%lld", i ? " x " : "", (long long)size[i]);
}

static void measure_row(bench *b, const row *r, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .dtype = dtype};
        memcpy(w.size, b->small ? r->small : r->size, sizeof w.size);
        r->make(&w);
        double us = time_calls(b, &w, r->run);
        printf("{\"part\": \"kernels\", \"name\": \"%s\", \"dtype\": \"%s\", \"size\": \"", r->name,
               b->tf32 ? "tf32" : lg_dtype_name(dtype));
        print_size(w.size);
        printf("\", \"kernels\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f", r->kernels, w.bytes, w.flops);
        end_figure(b, "us", us);
        lg_optimizer_free(w.opt);
        lg_scaler_free(w.scaler);
        lg_module_free(w.net);
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
}

/* In small sizes some rows are the same. */
static bool seen(const bench *b, const rows *table, const row *r)
{
        for (const row *a = table->row; b->small && a < r; a++)
                if (a->dtypes == r->dtypes && !strcmp(a->name, r->name) && !memcmp(a->small, r->small, sizeof a->small))
                        return true;
        return false;
}

static void measure_table(bench *b, const rows *table)
{
        for (const row *r = table->row; r < table->row + table->count; r++) {
                if ((b->tf32 && !r->float32_product) || seen(b, table, r))
                        continue;
                const unsigned dtypes = b->tf32 ? F32 : r->dtypes;
                for (int dtype = 0; dtype <= LG_BOOL; dtype++)
                        if (dtypes >> dtype & 1 && !time_is_over(b))
                                measure_row(b, r, (lg_dtype)dtype);
        }
}

void measure_kernels(bench *b)
{
        const rows *const tables[] = {&pointwise_rows, &product_rows, &reduction_rows, &choice_rows};
        b->quick = true;
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
                measure_table(b, tables[i]);
        if (!b->tf32 && !b->small && !time_is_over(b))
                measure_row(b, pointwise_rows.row, LG_F32); /* the copy again, with the clocks up */
        b->quick = false;
}
