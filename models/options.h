/* options.h - the command line of fashion-mnist. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct options {
        const char *model, *amp, *optimizer, *schedule, *device, *data, *csv, *plot, *board, *profile;
        const char *save, *resume, *keep_best, *onnx, *predict, *weights; /* file names, or NULL if not given */
        double lr, ema; /* learning rate, decay of averages; negative: not given */
        int64_t epochs, batch, steps, log_steps, seed, threads, save_every, early_stop;
        int64_t timeout; /* time limit for other processes, in seconds */
        int64_t workers; /* threads that prepare batches; -1: auto */
        bool quiet, report, augment, group, sync_batch_norm, find_lr;
} options;

typedef enum parsed { PARSED_OK, PARSED_HELP, PARSED_WRONG } parsed;
/* Parses the command line into *ret. If there is nothing to train, prints the help, or a message on stderr. */
parsed options_parse(int argc, char **argv, options *ret);
/* Return the number of a schedule by its name, and the reverse. */
int64_t options_schedule_number(const char *name);
const char *options_schedule(int64_t number);

#endif
