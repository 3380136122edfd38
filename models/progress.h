/* progress.h - the progress of an epoch on stderr: a bar on a terminal, else a line every five seconds. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
        bool on, terminal;
        double start, shown; /* times of the begin and of the last output, in seconds() */
        const char *what;    /* label of the bar: "epoch" or "test" */
        const char *unit;    /* of what is counted, such as "tokens"; NULL: "images" */
        int64_t epoch, epochs;
        int64_t steps_before, images_before; /* done before the start, if the epoch was resumed */
} progress;

/* Returns the seconds of a monotonic clock. */
double seconds(void);
void progress_begin(progress *p, const char *what, int64_t epoch, int64_t epochs, bool quiet);
/* Returns whether output is due: a tenth of a second, or without a terminal five seconds, after the last one. */
bool progress_due(const progress *p);
/* Shows that `step` of `steps` steps are done, with `images` images so far, whose mean loss is `loss`. */
void progress_show(progress *p, int64_t step, int64_t steps, int64_t images, double loss);
void progress_end(progress *p);

#endif
