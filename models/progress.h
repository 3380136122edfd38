/* progress.h - a bar on the terminal: how far an epoch is. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
        bool on; /* stderr is a terminal */
        double start, shown;
        int64_t epoch, epochs;
} progress;

/* Seconds of a clock that only goes forward. */
double seconds(void);
void progress_begin(progress *p, int64_t epoch, int64_t epochs, bool quiet);
/* True if it is time to show something new: reading a loss makes the program wait for the device. */
bool progress_due(const progress *p);
void progress_show(progress *p, int64_t step, int64_t steps, int64_t images, double loss);
void progress_end(progress *p);

#endif
