/* record.h - steps recorded as lists of kernel calls. */
#ifndef LG_RECORD_H
#define LG_RECORD_H

#include "grad/functional.h"

LG_BEGIN

typedef struct lg_recorder lg_recorder;
typedef struct lg_recorder_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;          /* passed to fn; default NULL */
        int max_recordings LG_DEFAULT;  /* recordings kept at most; default 8 */
        int64_t verify_every LG_DEFAULT; /* every so many runs, fn runs again and is compared; default 0, never */
        bool eager LG_DEFAULT;          /* always runs fn; default false */
} lg_recorder_options;
/* Makes a recorder of fn. Example: lg_recorder_new(c, step, .user = &run) */
#define lg_recorder_new(...) LG_CALL2(lg_recorder_new_with, lg_recorder_options, lg_recorder_new_takes_c_fn, V, V, __VA_ARGS__)
LG_API lg_recorder *lg_recorder_new_with(lg_ctx *c, lg_function *fn, const lg_recorder_options *options);
/* Runs a step. */
LG_API lg_tensor *lg_recorder_run_list(lg_recorder *r, lg_list_in inputs);
/* Returns how many runs were run from a list. */
LG_API int64_t lg_recorder_replays(const lg_recorder *r);
LG_API void lg_recorder_free(lg_recorder *r);

LG_END_C
#endif
