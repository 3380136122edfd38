/* optim.h - what an optimiser is: parameters, their state, and a kernel that updates many at once. Private to optim/.
 */
#ifndef LG_OPTIM_PRIVATE_H
#define LG_OPTIM_PRIVATE_H

#include <math.h>
#include "../core.h"

#define LG__STATES 2

/* A parameter with what the optimiser keeps for it. */
typedef struct lg__slot {
        lg_tensor *param;
        lg__node *node; /* a reference to its leaf node, by which a freed handle that lives again is told apart */
        lg_shape shape;
        lg_tensor *state[LG__STATES]; /* owned; NULL before the first step with a gradient */
        int64_t step;                 /* updates so far */
        lg_tensor *values, *grad;     /* contiguous, while lg_step runs; grad NULL: nothing to do (any more) */
} lg__slot;

typedef struct lg__rule {
        const char *name; /* "lg_sgd" */
        /* Runs the kernel over updates on one device that have all had `step` updates before. */
        bool (*run)(const lg_optimizer *opt, lg__device *d, const lg_update *updates, int64_t count, int64_t step);
} lg__rule;

struct lg_optimizer {
        lg__object object;
        const lg__rule *rule;
        int states; /* how many of LG__STATES it uses */
        double lr;
        union {
                lg_sgd_options sgd;
                lg_adam_options adam;
        } o;
        int64_t count;
        lg__slot *slots;
        lg_update *updates; /* room for all */
};

/* An optimiser over the parameters after checking them; its options are to be set by the caller. */
lg_optimizer *lg__optimizer_new(lg_ctx *c, const lg__rule *rule, lg_list params, double lr, int states);
/* True if the option is finite and at least 0, or LG_ERR_ARGUMENT. */
bool lg__option_check(lg_ctx *c, const char *op, const char *option, double value);

#endif
