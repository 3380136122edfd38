/* options.h - the command line of the training programs. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct options {
        const char *model, *amp, *optimizer, *schedule, *device, *data, *csv, *plot;
        const char *save, *resume, *keep_best, *predict, *weights; /* files; NULL: not given */
        double lr, ema;                                            /* below 0: not given */
        int64_t epochs, batch, steps, log_steps, seed, threads, save_every, early_stop;
        int64_t timeout; /* in seconds */
        int64_t workers; /* -1: auto */
        bool quiet, report, augment, group, sync_batch_norm;
} options;

typedef enum parsed { PARSED_OK, PARSED_HELP, PARSED_WRONG } parsed;
/* Fills ret; prints the help or one line on stderr where there is nothing to train. */
parsed options_parse(int argc, char **argv, options *ret);
/* The number of a schedule, and its name. */
int64_t options_schedule_number(const char *name);
const char *options_schedule(int64_t number);

#endif
