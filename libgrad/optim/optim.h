/* optim.h - what an optimiser is: parameters in groups, their state, and a kernel that updates many at once. Private to
 * optim/.
 */
#ifndef LG_OPTIM_PRIVATE_H
#define LG_OPTIM_PRIVATE_H

#include <math.h>
#include "graph/graph.h"

#define LG__STATES LG_UPDATE_STATES

/* A parameter with what the optimiser keeps for it. */
typedef struct lg__slot {
        lg_tensor *param;
        uint64_t serial; /* of param, by which a freed handle that lives again is told apart */
        lg__node *node;  /* a reference to its leaf node */
        int group;
        lg_tensor *state[LG__STATES]; /* owned; NULL before the first step with a gradient */
        lg_tensor *master;            /* owned: a 16-bit param in f32, or NULL */
        const lg__storage *of;        /* what the master has made of param: its storage and that one's version */
        uint32_t version;
        int64_t step;       /* updates so far, with those that were skipped */
        lg_tensor *skipped; /* owned: how many were, 0-d, i64; NULL: none */
        uint64_t unscaled;  /* serial of the gradient that is without the scale, in the optimiser\'s round; 0: none */
        lg_tensor *dials;   /* owned: LG_DIALS numbers of the step, f64; of a leader, else NULL or unused */
        lg_tensor *values, *grad; /* contiguous, while lg_step runs; grad NULL: nothing to do (any more) */
        int64_t leader; /* the first of the slots that the same kernel call updates, in lg_step; -1: none yet */
} lg__slot;

/* What may differ between groups, and what schedules change. */
typedef struct lg__group {
        double lr, weight_decay;
        union {
                double momentum; /* of SGD and RMSprop */
                double beta1;    /* of Adam, which schedules change as they change momentum */
        };
        double beta2, eps; /* of those that have them */
        unsigned states;   /* which of LG__STATES its parameters use, by bit */
        bool master;       /* 16-bit parameters have one */
        double initial_lr; /* before any schedule; NAN: there was none */
        double next_lr;    /* of the step of a schedule that is under way: it may fail */
} lg__group;

/* The formulas of kernels/updates.def. */
enum {
#define UPDATE(name, ...) LG__UPDATE_##name,
#include "../../kernels/updates.def"
#undef UPDATE
};

typedef struct lg__rule {
        const char *name;               /* "lg_sgd" */
        int update;                     /* LG__UPDATE_... */
        const char *states[LG__STATES]; /* PyTorch's names */
        unsigned momentum_state;        /* the state that momentum takes, by bit; 0: it has no momentum */
        bool betas, eps;                /* it has these */
        /* True unless the group's numbers do not go with the optimiser's options: an error of `op`. NULL: they do. */
        bool (*accepts)(const lg_optimizer *opt, const lg__group *g, const char *op);
} lg__rule;

struct lg_optimizer {
        lg__object object;
        const lg__rule *rule;
        double first_state; /* what state 0 begins with */
        void *options;      /* those of its rule, with defaults applied */
        size_t options_bytes;
        int group_count;
        lg__group *groups;
        int64_t count;
        lg__slot *slots;
        lg_update *updates;  /* room for all */
        lg__link schedulers; /* which end their work with it */
        int running;         /* calls that use it and may call the user's code */
        /* What the scaler of that round has done with the gradients. */
        uint64_t round;
        bool stepped;
        lg_tensor *found; /* owned: not 0 if one was not finite, 0-d, f32 */
};

/* False, with an error: parameter i was freed. */
bool lg__slot_lives(const lg_optimizer *opt, int64_t i, const char *op);
/* The same for an update; its gradient must be on its device, too. */
bool lg__slot_find(lg_optimizer *opt, int64_t i, const char *op);
/* The gradient to apply, or NULL: it has none, or its requires_grad is off just now. */
lg_tensor *lg__slot_gradient(const lg__slot *s);
/* What is to be changed where it lies: a dense tensor. */
static inline lg_update lg__update_in_place(const lg_tensor *t)
{
        return (lg_update){
                .dtype = t->at.dtype, .n = lg__shape_numel(t->at.shape), .param = lg__data(t), .grad = lg__data(t)};
}
/* That of an optimiser's state. */
lg_dtype lg__state_dtype(const lg_tensor *param);
/* True if the parameter has a master, or will have one. */
bool lg__slot_has_master(const lg_optimizer *opt, const lg__slot *s);
/* lg_step(), unless `skip`, one f32 on some device, is not 0: read there and not here. NULL: it is 0. */
bool lg__optimizer_step(lg_optimizer *opt, lg_tensor *skip, const char *op);
/* What it holds; and a schedule. */
bool lg__optimizer_visit(lg__object *o, lg__roster *r);
bool lg__scheduler_visit(lg__object *o, lg__roster *r);
/* An optimiser over the parameters, group 0, after checking them. It keeps a copy of the options. */
lg_optimizer *lg__optimizer_new(lg_ctx *c, const lg__rule *rule, lg_list params, lg__group first, const void *options,
                                size_t bytes);
/* True if the option is finite and at least 0, or LG_ERR_ARGUMENT. */
bool lg__option_check(lg_ctx *c, const char *op, const char *option, double value);
/* True if it is in [0, 1). */
bool lg__fraction_check(lg_ctx *c, const char *op, const char *option, double value);
/* Tells schedulers that their optimiser is gone. */
void lg__schedulers_forget(lg_optimizer *opt);

#endif
