/* csv.c - writes the figures of each epoch to a CSV file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "csv.h"
#include "plot.h"
#include "ranks.h"

static bool unwritten(csv *file, run *r)
{
        r->unwritten = true;
        return lg_set_error(r->c, LG_ERR_IO, "%s cannot be written: %s", file->name, strerror(errno));
}

/* Keeps the complete lines of epochs before the current one and removes the rest. Returns false after an error. */
static bool keep_lines(csv *file, run *r)
{
        char line[256];
        long keep = 0;
        while (fgets(line, sizeof line, file->f) && strchr(line, '\n') && atoll(line) < r->epoch)
                keep = ftell(file->f);
        if (fseek(file->f, keep, SEEK_SET) || ftruncate(fileno(file->f), keep))
                return unwritten(file, r);
        if (!keep)
                fputs("epoch,train_loss,test_loss,test_accuracy,seconds\n", file->f);
        return true;
}

bool csv_open(csv *file, run *r)
{
        const options *o = r->o;
        if ((!o->csv && !o->plot) || !ranks_first(r))
                return true;
        file->temporary = !o->csv;
        snprintf(file->name, sizeof file->name, "%s%s", o->csv ? o->csv : o->plot, o->csv ? "" : ".csv");
        file->f = r->step && o->csv ? fopen(file->name, "r+") : NULL;
        if (file->f)
                return keep_lines(file, r);
        file->f = fopen(file->name, "w");
        if (!file->f)
                return lg_set_error(r->c, LG_ERR_IO, "%s cannot be written", file->name);
        fputs("epoch,train_loss,test_loss,test_accuracy,seconds\n", file->f);
        return true;
}

void csv_write(csv *file, run *r, const figures *f)
{
        if (!file->f)
                return;
        fprintf(file->f, "%lld,%.9g,%.9g,%.4f,%.3f\n", (long long)r->epoch, f->train_loss, f->test_loss, f->accuracy,
                f->time);
        run_flush(r, file->f, file->name);
}

void csv_close(csv *file, run *r)
{
        if (!file->f)
                return;
        run_flush(r, file->f, file->name);
        if (fclose(file->f))
                unwritten(file, r);
        if (!lg_error(r->c) && r->o->plot && !plot_epochs(file->name, r->o->plot, r->o->model))
                lg_set_error(r->c, LG_ERR_IO, "gnuplot could not draw %s", r->o->plot);
        if (file->temporary)
                unlink(file->name);
}
