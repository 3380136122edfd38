/* find_lr.c - the learning-rate range test of fashion-mnist, in place of a training. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "find_lr.h"
#include "plot.h"

static lg_tensor *next_loss(lg_ctx *c, void *user)
{
        run *r = user;
        lg_batch b;
        lg_tensor *loss = NULL;
        if (run_interrupted())
                return lg_set_error(c, LG_ERR_STATE, "interrupted"), NULL;
        if (!lg_loader_next(r->train, &b) && !lg_loader_next(r->train, &b)) /* a second call begins an epoch */
                return NULL;
        lg_autocast(c, (lg_dtype)r->amp) loss = lg_cross_entropy(lg_forward(r->net, b.x), b.y);
        return loss;
}

static void write_csv(run *r, const lg_lr_point *p, int64_t count)
{
        FILE *f = fopen(r->o->csv, "w");
        bool ok = f && fputs("rate,loss,smoothed_loss\n", f) >= 0;
        for (int64_t i = 0; i < count && ok; i++)
                ok = fprintf(f, "%.9g,%.9g,%.9g\n", p[i].lr, p[i].loss, p[i].smoothed) > 0;
        if ((f && fclose(f)) || !ok) {
                r->unwritten = true;
                lg_set_error(r->c, LG_ERR_IO, "%s cannot be written: %s", r->o->csv, strerror(errno));
        }
}

static void tell(run *r, const lg_lr_point *p, int64_t count, double found)
{
        const options *o = r->o;
        if (!o->quiet)
                printf("%10s  %10s  %s\n", "rate", "loss", "smoothed loss");
        for (int64_t i = 0; i < count && !o->quiet; i++)
                printf("%10.3g  %10.5g  %.5g\n", p[i].lr, p[i].loss, p[i].smoothed);
        if (found > 0)
                printf("suggested learning rate %.3g\n", found);
        run_flush(r, stdout, "the standard output");
        if (o->csv)
                write_csv(r, p, count);
        if (o->plot && !plot_rates(p, count, found, o->plot, o->model))
                lg_set_error(r->c, LG_ERR_IO, "gnuplot could not draw %s", o->plot);
}

void find_lr(run *r)
{
        const int64_t steps = r->o->steps ? r->o->steps : 100;
        lg_lr_point *p = malloc((size_t)steps * sizeof *p);
        int64_t count = 0;
        if (!p) {
                lg_set_error(r->c, LG_ERR_MEMORY, "no memory for the curve");
                return;
        }
        const double found = lg_find_lr(r->net, r->opt, next_loss, r, .steps = steps, .loader = r->train, .curve = p,
                                        .count = &count);
        if (count)
                tell(r, p, count, found);
        free(p);
}
