/* schedule.h - the record of a schedule, and the functions that create schedules. Private to optim/.
 *
 * A schedule is a formula, the learning rate at step t as a function of t and the first rate, or consists of other
 * schedules, its children.
 */
#ifndef LG_SCHEDULE_PRIVATE_H
#define LG_SCHEDULE_PRIVATE_H

#include "optim.h"

/* Returns the learning rate at step t of a group whose first rate is lr0. May set an error. */
typedef double lg__rate_fn(const lg_scheduler *s, int64_t t, double lr0);

struct lg_scheduler {
        lg__object object;
        lg__link link;     /* in the list of its optimiser's schedules */
        lg_optimizer *opt; /* NULL: the optimiser was freed */
        const char *name;
        lg__rate_fn *rate; /* the formula; NULL: the schedule has children */
        bool multiplies;   /* the formula is a factor of the last rate */
        bool absolute;     /* sets rates by the formula, regardless of the last rates */
        double (*momentum)(const lg_scheduler *s, int64_t t); /* momentum at step t; NULL: unchanged */
        int64_t epoch;                                        /* number of the last step */
        int groups; /* number of the optimiser's groups when the schedule was made */
        lg_scheduler *owner, *const *children;
        int child_count;
        bool in_turn; /* children run one after another, from milestone to milestone; false: all run */
        int levels;   /* depth of nested schedules; 0: no children */
        lg_ints milestones;
        int64_t span;              /* number of steps: step_size, t_max, total or total_steps */
        double low;                /* eta_min, or 0: only the part of a rate above `low` is scaled */
        double factor, begin, end; /* numbers of the formula */
        union {
                lg_plateau_options plateau;
                lg_one_cycle_options cycle;
                lg_cyclic_options cycles;
                struct {
                        lg_lambda_fn *fn;
                        void *user;
                } lambda;
        } o;
        double best;          /* best metric so far, of lg_reduce_on_plateau() */
        int64_t bad, cooling; /* of a plateau schedule: steps without improvement, remaining steps of the cooldown */
};

/* Makes a schedule with the members of `like`, copying its lists, and sets the rates of step 0. NULL: an error, which
 * leaves the rates and the children unchanged. */
lg_scheduler *lg__scheduler_new(lg_optimizer *opt, const lg_scheduler *like);
/* Returns whether s can be stepped now; if not, sets an error unless s is NULL. */
bool lg__scheduler_ready(const lg_scheduler *s, const char *op);
/* Returns whether a schedule of opt can be made now; if not, sets an error unless opt is NULL. */
bool lg__schedulable(lg_optimizer *opt, const char *name);
/* Does the same, and copies the options to ret. */
bool lg__schedule_take(lg_optimizer *opt, const char *name, const void *options, void *ret, size_t size);
/* Returns whether an option is finite and above 0; if not, sets an error. */
bool lg__schedule_positive(lg_optimizer *opt, const char *name, const char *option, double value);
/* Checks the momenta between which a schedule goes, and that all groups have momentum, for which they have a buffer. */
bool lg__schedule_momentum(const lg_optimizer *opt, const char *name, double base, double most);

#endif
