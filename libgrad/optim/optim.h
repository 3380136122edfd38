/* optim.h - the record of an optimiser: parameters in groups, and the state of each parameter. Private to optim/. */
#ifndef LG_OPTIM_PRIVATE_H
#define LG_OPTIM_PRIVATE_H

#include <math.h>
#include "graph/graph.h"

#define LG__STATES LG_UPDATE_STATES

/* A parameter and the state that the optimiser stores for it. */
typedef struct lg__slot {
        lg_tensor *param;
        uint64_t serial; /* of param: differs if param was freed and its record reused */
        lg__node *node;  /* counted reference to param's leaf node */
        int group;
        lg_tensor *state[LG__STATES]; /* owned; NULL before the first step in which param has a gradient */
        lg_tensor *master;            /* owned: f32 copy of a 16-bit param, or NULL */
        const lg__storage *of;        /* param's storage and its version, when master was last rounded to it */
        uint32_t version;
        int64_t step;             /* number of updates, skipped ones included */
        lg_tensor *skipped;       /* owned: number of skipped updates, 0-d, i64; NULL: 0 */
        uint64_t unscaled;        /* serial of the gradient that was unscaled in the optimiser's round; 0: none */
        lg_tensor *step_inputs;   /* owned: a leader's hyperparameters for the kernel, LG_STEP_INPUTS f64; else NULL or
                                     unused */
        lg_tensor *values, *grad; /* param and its gradient, dense, in one layout, in lg_step(); grad NULL: no update */
        int64_t leader;           /* in lg_step(): the first slot that the same kernel call updates; -1: none yet */
        lg_tensor *change, *next[LG__STATES]; /* in lg_step(), of a rule with `compute`: its results */
} lg__slot;

/* The hyperparameters of a group of parameters; schedules change some. */
typedef struct lg__group {
        double lr, weight_decay;
        union {
                double momentum; /* of SGD and RMSprop; 0: no momentum */
                double beta1;    /* of Adam and Adamax; schedules change beta1 in place of momentum */
        };
        double beta2, eps; /* if the optimiser has them */
        unsigned states;   /* the states that its parameters use, a bit each */
        bool master;       /* 16-bit parameters have an f32 master copy */
        double keep; /* of a rule with `compute`, in lg_step(): the factor of the parameter, 1 - lr weight_decay */
        double initial_lr; /* lr before the first schedule; NAN: no schedule yet */
        double next_lr;    /* lr that a schedule's step, which may still fail, has computed */
} lg__group;

/* The options that the kernel `descend` reads: none. */
typedef lg_param_group_options lg_descend_options;

/* Numbers of the update formulas in kernels/updates.def. */
enum {
#define UPDATE(name, ...) LG__UPDATE_##name,
#include "../../kernels/updates.def"
#undef UPDATE
};

/* An update that is computed by ops, unrecorded, in the dtype of the states. */
typedef struct lg__computation {
        const lg_optimizer *opt;
        const lg__group *group;
        lg_tensor *param, *grad;   /* values of the parameter, and the gradient */
        lg_tensor *const *state;   /* the states before the step, zeros at first */
        lg_dtype dtype;            /* of the parameter */
        lg_tensor *step;           /* 1, 2, ..., 0-d, f64, on the parameter's device */
        lg_tensor *exact, *number; /* the numbers of lg__rule.numbers, f64 and in the dtype of the states */
        lg_tensor **next, *change; /* results: the states after the step, and what is subtracted from the parameter */
} lg__computation;

/* Numbers that may change from step to step, which ops read in device memory. The step is f64 only. */
enum {
        LG__STEP,
        LG__RATE,
        LG__BETA1, /* or momentum */
        LG__REST1, /* 1 - beta1 */
        LG__LOG_BETA1,
        LG__BETA2,
        LG__REST2,
        LG__LOG_BETA2,
        LG__DECAY
};
/* Writes the rate, and the betas with what follows from them. */
void lg__adam_numbers(double *ret, double lr, double beta1, double beta2);
/* Returns one of the numbers, 0-d, in the dtype of the states. NULL: an error. */
static inline lg_tensor *lg__number(const lg__computation *k, int i)
{
        return lg_select(k->number, 0, i);
}
/* Returns the update of Adam, by ops, without its rate; its states are `first` and the next one. NULL: an error. */
lg_tensor *lg__adam_direction(lg__computation *k, int first, double eps, bool maximize);

typedef struct lg__rule {
        const char *name;               /* the public function, as in "lg_sgd" */
        int update;                     /* LG__UPDATE_...: the formula */
        const char *states[LG__STATES]; /* PyTorch's names of the states; NULL: there is none */
        unsigned momentum_state;        /* bit of the state that momentum uses; 0: no momentum */
        bool betas, eps;                /* groups have beta1 and beta2; eps */
        bool no_decay;                  /* groups have no weight_decay */
        bool decays;                    /* with `compute`: the parameter is multiplied by 1 - lr weight_decay */
        /* Computes an update by ops, which the kernel `descend` ends. NULL: the kernel `update` does all. */
        bool (*compute)(lg__computation *k);
        /* Writes the numbers of a slot's next update that `compute` reads, but the step. */
        void (*numbers)(const lg_optimizer *opt, const lg__slot *s, double *ret);
        /* Returns the states that a parameter has, a bit each. NULL: those of its group. */
        unsigned (*states_of)(const lg_tensor *param);
        /* Changes the shape of a parameter to that of its state k. NULL: they are equal. */
        void (*reshape)(int k, lg_shape *shape);
        /* Steps by a function that computes the loss. NULL: clears the gradients, calls it, and does lg_step(). */
        bool (*step_closure)(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss);
        /* Frees, or visits, what the optimiser stores in `memory`. NULL: nothing. */
        void (*finish)(lg_optimizer *opt);
        bool (*visit)(lg_optimizer *opt, lg__state_entries *list);
        /* Returns whether g fits the optimiser's options; if not, sets an error of `op`. NULL: always. */
        bool (*accepts)(const lg_optimizer *opt, const lg__group *g, const char *op);
} lg__rule;

struct lg_optimizer {
        lg__object object;
        const lg__rule *rule;
        double first_state; /* initial value of state 0 */
        void *options;      /* owned: lg_sgd_options, ... with defaults applied */
        size_t options_bytes;
        int group_count;
        lg__group *groups;
        int64_t count;
        lg__slot *slots;
        lg_update *updates;  /* scratch: an element per slot */
        lg__link schedulers; /* list of the schedules of this optimiser */
        int running;         /* number of calls under way that use it and may call user code */
        bool fixed;          /* lg_find_lr() runs: no parameters can be added */
        void *memory;        /* owned: what lg_lbfgs() stores from step to step; NULL for others */
        /* Loss scaling: stepped and found belong to this round of the scaler. */
        uint64_t round;
        bool stepped;
        lg_tensor *found; /* owned, 0-d, f32: not 0 if a gradient was not finite */
};

/* Returns false with an error if parameter i was freed. */
bool lg__slot_lives(const lg_optimizer *opt, int64_t i, const char *op);
/* Does the same, finds the parameter's leaf node, and checks its gradient's device and dtype. */
bool lg__slot_find(lg_optimizer *opt, int64_t i, const char *op);
/* Returns the parameter's gradient; NULL if there is none or requires_grad is off. */
lg_tensor *lg__slot_gradient(const lg__slot *s);
/* Describes a dense tensor that a kernel changes in place. */
static inline lg_update lg__update_in_place(const lg_tensor *t)
{
        return (lg_update){
                .dtype = t->at.dtype, .n = lg__shape_numel(t->at.shape), .param = lg__data(t), .grad = lg__data(t)};
}
/* Returns the dtype of a parameter's states: f64 if param is f64, else f32. */
lg_dtype lg__state_dtype(const lg_tensor *param);
/* Returns the states of a slot, a bit each. */
static inline unsigned lg__slot_states(const lg_optimizer *opt, const lg__slot *s)
{
        return opt->rule->states_of ? opt->rule->states_of(s->param) : opt->groups[s->group].states;
}
/* Returns the shape of state k of a slot. */
static inline lg_shape lg__slot_shape(const lg_optimizer *opt, const lg__slot *s, int k)
{
        lg_shape shape = s->param->at.shape;
        if (opt->rule->reshape)
                opt->rule->reshape(k, &shape);
        return shape;
}
/* Returns whether the parameter has or will have a master copy. */
bool lg__slot_has_master(const lg_optimizer *opt, const lg__slot *s);
/* Does lg_step(), but skips all updates if `skip` (0-d, f32; NULL: 0) is not 0, which kernels read, not the host. */
bool lg__optimizer_step(lg_optimizer *opt, lg_tensor *skip, const char *op);
/* Clears the gradients, calls fn, which computes the loss, and calls lg_backward(). Stores the loss in *loss. */
bool lg__closure_run(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss);
/* Does lg_step_closure() without its checks. */
bool lg__closure_step(lg_optimizer *opt, const char *op, lg_closure_fn *fn, void *user, double *loss);
/* Name the state of an optimiser and of a schedule in a list of entries. */
bool lg__optimizer_visit(lg__object *o, lg__state_entries *list);
bool lg__scheduler_visit(lg__object *o, lg__state_entries *list);
/* Makes an optimiser with the parameters as group 0, after checks. Copies the options (`bytes` bytes). */
lg_optimizer *lg__optimizer_new(lg_ctx *c, const lg__rule *rule, lg_list params, lg__group first, const void *options,
                                size_t bytes);
/* Returns whether the option is finite and at least 0; if not, sets LG_ERR_ARGUMENT. */
bool lg__option_check(lg_ctx *c, const char *op, const char *option, double value);
/* Does the same for the range [0, 1). */
bool lg__fraction_check(lg_ctx *c, const char *op, const char *option, double value);
/* Detaches all schedules of an optimiser that is being freed. */
void lg__schedulers_forget(lg_optimizer *opt);

#endif
