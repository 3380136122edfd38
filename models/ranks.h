/* ranks.h - a run on several processes: --group. Without --group, a run counts as one process. */
#ifndef RANKS_H
#define RANKS_H

#include "run.h"

/* Joins the group, if --group is given. Returns the device of this process. */
lg_device ranks_open(run *r);
/* Makes the network data-parallel if there is a group. Returns false if an error is set, for example because the
 * processes have resumed at different steps. */
bool ranks_share(run *r);
/* Returns whether this process is the one that prints and writes the files, rank 0. */
bool ranks_first(const run *r);
int64_t ranks_count(const run *r);
/* Replaces each of n numbers by its sum over all processes. Returns false after an error. */
bool ranks_sum(run *r, double *numbers, int n);
/* Sets r->interrupted on all processes if one of them was interrupted. Returns on all processes whether rank 0 is due
 * to show its progress p, which may be NULL. */
bool ranks_agree(run *r, const progress *p);
/* Returns whether a file exists, on all processes. Returns false with an error if it exists on some of them only. */
bool ranks_have(run *r, const char *option, const char *path);
/* Waits for all processes before the end, so that none succeeds if another has failed; prints the context's error. */
void ranks_end(run *r);

#endif
