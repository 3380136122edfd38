/* ranks.h - a run on several processes: --group. Without it, all of this is about one process. */
#ifndef RANKS_H
#define RANKS_H

#include "run.h"

/* Joins the group, if --group asks for one. Returns the device of this process. */
lg_device ranks_open(run *r);
/* Makes the network data-parallel. All processes have read --resume's file, and the same run in it. */
bool ranks_share(run *r);
/* Whether this process prints, and writes the files. */
bool ranks_first(const run *r);
int64_t ranks_count(const run *r);
/* Replaces n numbers by their sums over all processes. */
bool ranks_sum(run *r, double *numbers, int n);
/* All processes get to know whether one of them was interrupted, r->interrupted, and whether the first wants to show
 * how far it is: the result. */
bool ranks_agree(run *r, const progress *p);
/* Whether a file is there, on all processes or on none; false, with an error: on some of them. */
bool ranks_have(run *r, const char *option, const char *path);
/* Before the end: no process succeeds where another has failed. Reports the error of the context. */
void ranks_end(run *r);

#endif
