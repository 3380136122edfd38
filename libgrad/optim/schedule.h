/* schedule.h - the record of a schedule, and what the files that make schedules share. Private to optim/.
 *
 * A schedule is a formula, the learning rate at step t as a function of t and the first rate, or it is made of other
 * schedules.
 */
#ifndef LG_SCHEDULE_PRIVATE_H
#define LG_SCHEDULE_PRIVATE_H

#include "optim.h"

/* Returns the learning rate at step t of a group whose first rate is lr0. May fail by the context's error. */
typedef double lg__rate_fn(const lg_scheduler *s, int64_t t, double lr0);

struct lg_scheduler {
        lg__object object;
        lg__link link;     /* in its optimiser's list */
        lg_optimizer *opt; /* NULL: it was freed */
        const char *name;
        lg__rate_fn *rate; /* NULL: it has children */
        bool absolute;     /* takes rates from the formula, regardless of the last ones */
        double (*momentum)(const lg_scheduler *s, int64_t t); /* at step t; NULL: it stays */
        int64_t epoch;                                        /* number of the last step */
        int groups;                                           /* number of groups when it was made */
        lg_scheduler *owner, *const *children;
        int child_count;
        bool in_turn; /* one child runs after another, from milestone to milestone; else all do */
        int levels;   /* of schedules in it */
        lg_ints milestones;
        int64_t span; /* step_size, t_max, total or total_steps */
        double low;   /* eta_min: what is above it is multiplied */
        double factor, begin, end;
        union {
                lg_plateau_options plateau;
                lg_one_cycle_options cycle;
                struct {
                        lg_lambda_fn *fn;
                        void *user;
                } lambda;
        } o;
        double best; /* of a plateau */
        int64_t bad, cooling;
};

/* Makes a schedule like `like`, whose lists are copied, and sets the rates of step 0. NULL: an error; the rates and the
 * children are as they were. */
lg_scheduler *lg__scheduler_new(lg_optimizer *opt, const lg_scheduler *like);
/* True if s can be stepped now; else false, with an error unless s is NULL. */
bool lg__scheduler_ready(const lg_scheduler *s, const char *op);
/* True if a schedule of opt can be made now; else false, with an error unless opt is NULL. */
bool lg__schedulable(lg_optimizer *opt, const char *name);
/* The same, and the options are taken. */
bool lg__schedule_take(lg_optimizer *opt, const char *name, const void *options, void *ret, size_t size);

#endif
