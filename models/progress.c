/* progress.c - shows the progress of an epoch, loss, images or tokens per second and time left: as a bar on a terminal,
 * else as lines. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "progress.h"

#define WIDTH 24
#define EACH 0.1      /* seconds between updates of the bar on a terminal */
#define EACH_LINE 5.0 /* seconds between lines without a terminal */

double seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(progress *p, const char *what, int64_t epoch, int64_t epochs, bool quiet)
{
        *p = (progress){.on = !quiet, .start = seconds(), .what = what, .epoch = epoch, .epochs = epochs};
        p->terminal = isatty(STDERR_FILENO);
        p->shown = p->start;
}

bool progress_due(const progress *p)
{
        return p->on && seconds() - p->shown >= (p->terminal ? EACH : EACH_LINE);
}

void progress_show(progress *p, int64_t step, int64_t steps, int64_t images, double loss)
{
        char bar[WIDTH + 1];
        int full = (int)(step * WIDTH / steps);
        p->shown = seconds();
        double spent = p->shown - p->start;
        memset(bar, '.', WIDTH);
        memset(bar, '#', (size_t)full);
        bar[WIDTH] = 0;
        fprintf(stderr, "%s%s %lld/%lld [%s] %3lld%%  loss %.4f  %.0f %s/s  %.0f s left%s", p->terminal ? "\r" : "",
                p->what, (long long)p->epoch, (long long)p->epochs, bar, (long long)(step * 100 / steps), loss,
                (double)(images - p->images_before) / spent, p->unit ? p->unit : "images",
                spent * (double)(steps - step) / (double)(step - p->steps_before), p->terminal ? " \033[K" : "\n");
        fflush(stderr);
}

void progress_end(progress *p)
{
        if (p->on && p->terminal)
                fputs("\r\033[K", stderr);
}
