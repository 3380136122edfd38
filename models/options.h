/* options.h - the command line of the training programs. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct options {
        const char *model, *optimizer, *schedule, *device, *data, *csv, *plot;
        double lr; /* below 0: not given */
        int64_t epochs, batch, steps, log_steps, seed, threads;
        bool quiet, report;
} options;

typedef enum parsed { PARSED_OK, PARSED_HELP, PARSED_WRONG } parsed;
/* Fills ret; prints the help or one line on stderr where there is nothing to train. */
parsed options_parse(int argc, char **argv, options *ret);

#endif
