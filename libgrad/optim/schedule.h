/* schedule.h - the record of a schedule, and what the files that make schedules share. Private to optim/.
 *
 * Most schedules are a rule that computes the next learning rate of a group from the last one, lg__schedule_fn. Others
 * have a step of their own: one cycle, plateau, and schedules of schedules.
 */
#ifndef LG_SCHEDULE_PRIVATE_H
#define LG_SCHEDULE_PRIVATE_H

#include "optim.h"

#define LG__SCHEDULE_LEVELS 32 /* of schedules in schedules, at most: steps and the end of one recurse */

/* The learning rate of a group at s->epoch, after `lr` at the epoch before. At epoch 0, lr is the first one. */
typedef double lg__schedule_fn(const lg_scheduler *s, const lg__group *g, double lr);

struct lg_scheduler {
        lg__object object;
        lg__link link;     /* in its optimiser's list */
        lg_optimizer *opt; /* NULL: it is gone */
        const char *name;
        lg__schedule_fn *next;
        bool (*step)(lg_scheduler *s); /* NULL: by `next` */
        int64_t epoch, kept_epoch;     /* now, and before the step that is under way */
        int groups;                    /* that there were at first */
        lg_scheduler *owner, **children;
        int child_count;
        int levels; /* of schedules in it */
        int64_t *milestones;
        int64_t milestone_count;
        int64_t span; /* step_size, t_max, total or total_steps */
        union {
                double gamma;
                lg_cosine_lr_options cosine;
                lg_linear_lr_options linear;
                lg_constant_lr_options constant;
                lg_plateau_options plateau;
                lg_one_cycle_options cycle;
                struct {
                        lg_lambda_fn *fn;
                        void *user;
                } lambda;
        } o;
        double max_lr;       /* one cycle */
        double factor, best; /* plateau */
        int64_t bad, cooling;
};

/* A schedule with the name, the rule or step and the numbers of `like`. One with a rule is at epoch 0, its rates made
 * of what they were. NULL: an error, also where a rate is wrong. */
lg_scheduler *lg__scheduler_new(lg_optimizer *opt, const lg_scheduler *like);
/* Frees a new schedule; the rates are what they were before it. Returns NULL. */
lg_scheduler *lg__scheduler_give_up(lg_scheduler *s);
/* Sets the rate of a group; LG_ERR_ARGUMENT if lg_set_lr would refuse it. */
bool lg__scheduler_set(const lg_scheduler *s, int group, double lr);
/* True if opt is there, its context without error. */
bool lg__schedulable(lg_optimizer *opt, const char *name);
/* The same, and the options are taken. */
bool lg__schedule_take(lg_optimizer *opt, const char *name, const void *options, void *ret, size_t size);

#endif
