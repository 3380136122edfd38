/* progress.h - how far an epoch is, for whoever watches: a bar on a terminal, else a line now and then. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
        bool on, terminal;
        double start, shown; /* by the clock of seconds() */
        const char *what;    /* "epoch" or "test" */
        int64_t epoch, epochs;
        int64_t steps_before, images_before; /* done before the start */
} progress;

/* Seconds on a clock that never goes back. */
double seconds(void);
void progress_begin(progress *p, const char *what, int64_t epoch, int64_t epochs, bool quiet);
/* Whether it is time to show something: a tenth of a second, or off a terminal five seconds, after the last time. */
bool progress_due(const progress *p);
/* step of steps is done, with `images` so far; loss is their mean. */
void progress_show(progress *p, int64_t step, int64_t steps, int64_t images, double loss);
void progress_end(progress *p);

#endif
