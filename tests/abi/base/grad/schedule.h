/* schedule.h - schedules, which change the learning rates of an optimiser, a test that finds a rate, and moving
 * averages.
 *
 * A schedule is made for an optimiser and is stepped by the program, once for each epoch or for each batch:
 *
 *     lg_scheduler *rate = lg_one_cycle_lr(opt, 3e-3, epochs * lg_loader_batches(batches));
 *     lg_ema *average = lg_ema_new(net, 0.999);
 *     ...
 *             lg_step(opt);
 *             lg_scheduler_step(rate);
 *             lg_ema_update(average);
 *
 * lg_checkpoint_add() of state.h saves both.
 */
#ifndef LG_SCHEDULE_H
#define LG_SCHEDULE_H

#include "grad/nn.h"
#include "grad/optim.h"

LG_BEGIN

/* ---- schedules ----
 *
 * The names and formulas are those of torch.optim.lr_scheduler. In the formulas, t is the number of the step, which is
 * 0 when the schedule is made, and lr0 is the learning rate that a group had before its first schedule. Making a
 * schedule sets the rates of step 0, and each lg_scheduler_step() those of the next step. If a rate is not the
 * formula's, it is multiplied by the ratio of the formula's values at the next step and at this one (for
 * cosines, all of them less eta_min): so the factors of several schedules of one optimiser multiply, and a rate
 * set by lg_set_lr() goes on from there. Only lg_lambda_lr(), lg_cyclic_lr() and lg_one_cycle_lr() set rates regardless
 * of the last ones. Groups that are added later are left alone.
 *
 * step_size, t_max, total and total_steps are above 0, and so are gammas and factors unless stated otherwise. Making
 * and stepping a schedule fail with LG_ERR_ARGUMENT if a rate would be negative or not finite, and with LG_ERR_STATE if
 * the optimiser was freed or inside a function of the program that a call with this optimiser has called, such as the
 * one of lg_lambda_lr().
 */

typedef struct lg_step_lr_options {
        LG_OPTIONS_HEAD
        double gamma LG_DEFAULT; /* the factor; default 0.1. LG_ZERO sets 0. */
} lg_step_lr_options;
/* Makes a schedule that multiplies the rates by gamma every step_size steps (StepLR): lr0 gamma^floor(t / step_size).
 * Example: lg_step_lr(opt, 30, .gamma = 0.5) */
#define lg_step_lr(...) LG_CALL2(lg_step_lr_with, lg_step_lr_options, lg_step_lr_takes_opt_step_size, V, I, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_step_lr_with(lg_optimizer *opt, int64_t step_size, const lg_step_lr_options *options);

typedef struct lg_multi_step_lr_options {
        LG_OPTIONS_HEAD
        double gamma LG_DEFAULT; /* the factor; default 0.1. LG_ZERO sets 0. */
} lg_multi_step_lr_options;
/* Makes a schedule that multiplies the rates by gamma at each of one or more milestones, in steps (MultiStepLR).
 * Example: lg_multi_step_lr(opt, LG_INTS(30, 80), .gamma = 0.5) */
#define lg_multi_step_lr(...)                                                                                          \
        LG_CALL2(lg_multi_step_lr_with, lg_multi_step_lr_options, lg_multi_step_lr_takes_opt_milestones, V, V,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_multi_step_lr_with(lg_optimizer *opt, lg_ints_in milestones,
                                                  const lg_multi_step_lr_options *options);

/* Makes a schedule that multiplies the rates by gamma every step (ExponentialLR): lr0 gamma^t. */
LG_API LG_NEW lg_scheduler *lg_exponential_lr(lg_optimizer *opt, double gamma);

typedef struct lg_cosine_lr_options {
        LG_OPTIONS_HEAD
        double eta_min LG_DEFAULT; /* the lowest rate; default 0 */
} lg_cosine_lr_options;
/* Makes a schedule that follows half a cosine from lr0 to eta_min in t_max steps, and then back (CosineAnnealingLR):
 * eta_min + (lr0 - eta_min) (1 + cos(pi t / t_max)) / 2.
 * Example: lg_cosine_lr(opt, steps) */
#define lg_cosine_lr(...)                                                                                              \
        LG_CALL2(lg_cosine_lr_with, lg_cosine_lr_options, lg_cosine_lr_takes_opt_t_max, V, I, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_cosine_lr_with(lg_optimizer *opt, int64_t t_max, const lg_cosine_lr_options *options);

typedef struct lg_cosine_restarts_options {
        LG_OPTIONS_HEAD
        int64_t t_mult LG_DEFAULT; /* the factor of each period's length to the one before, at least 1; default 1 */
        double eta_min LG_DEFAULT; /* the lowest rate; default 0 */
} lg_cosine_restarts_options;
/* Makes a schedule of cosines with warm restarts (Loshchilov and Hutter 2017; CosineAnnealingWarmRestarts): it follows
 * half a cosine from lr0 to eta_min in t_0 steps, then starts from lr0 again, for a period that is t_mult times longer.
 * Example: lg_cosine_restarts_lr(opt, 10, .t_mult = 2) */
#define lg_cosine_restarts_lr(...)                                                                                     \
        LG_CALL2(lg_cosine_restarts_lr_with, lg_cosine_restarts_options, lg_cosine_restarts_lr_takes_opt_t_0, V, I,    \
                 __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_cosine_restarts_lr_with(lg_optimizer *opt, int64_t t_0,
                                                       const lg_cosine_restarts_options *options);

typedef struct lg_polynomial_lr_options {
        LG_OPTIONS_HEAD
        double power LG_DEFAULT; /* the power, 0 or more; default 1. LG_ZERO sets 0. */
} lg_polynomial_lr_options;
/* Makes a schedule that falls to 0 in `total` steps as a power (PolynomialLR): lr0 (1 - min(t, total) / total)^power.
 * Example: lg_polynomial_lr(opt, 100, .power = 2) */
#define lg_polynomial_lr(...)                                                                                          \
        LG_CALL2(lg_polynomial_lr_with, lg_polynomial_lr_options, lg_polynomial_lr_takes_opt_total, V, I, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_polynomial_lr_with(lg_optimizer *opt, int64_t total,
                                                  const lg_polynomial_lr_options *options);

typedef struct lg_linear_lr_options {
        LG_OPTIONS_HEAD
        double start_factor LG_DEFAULT; /* the factor of step 0, above 0; default 1/3 */
        double end_factor LG_DEFAULT;   /* the factor of step `total`; default 1. LG_ZERO sets 0. */
} lg_linear_lr_options;
/* Makes a schedule whose factor changes linearly from .start_factor to .end_factor in `total` steps and then stays, for
 * a warm-up (LinearLR): lr0 (start_factor + (end_factor - start_factor) min(t, total) / total).
 * Example: lg_linear_lr(opt, 100, .start_factor = 0.01) */
#define lg_linear_lr(...)                                                                                              \
        LG_CALL2(lg_linear_lr_with, lg_linear_lr_options, lg_linear_lr_takes_opt_total, V, I, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_linear_lr_with(lg_optimizer *opt, int64_t total, const lg_linear_lr_options *options);

typedef struct lg_constant_lr_options {
        LG_OPTIONS_HEAD
        double factor LG_DEFAULT; /* the factor, above 0; default 1/3 */
} lg_constant_lr_options;
/* Makes a schedule that multiplies the rates by .factor for the first `total` steps (ConstantLR).
 * Example: lg_constant_lr(opt, 5) */
#define lg_constant_lr(...)                                                                                            \
        LG_CALL2(lg_constant_lr_with, lg_constant_lr_options, lg_constant_lr_takes_opt_total, V, I, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_constant_lr_with(lg_optimizer *opt, int64_t total,
                                                const lg_constant_lr_options *options);

/* Returns the factor of lr0 at a step. It is called once for each group. */
typedef double lg_lambda_fn(int64_t step, void *user);

/* Makes a schedule of a function of the program (LambdaLR): lr0 fn(t, user). fn is called when the schedule is made and
 * at each step; user must last as long as the schedule. */
LG_API LG_NEW lg_scheduler *lg_lambda_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user);

/* Makes a schedule that multiplies the rates by fn(t, user) at each step from t = 1 on (MultiplicativeLR). fn is called
 * as that of lg_lambda_lr() is. */
LG_API LG_NEW lg_scheduler *lg_multiplicative_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user);

/* How the height of a cycle of lg_cyclic_lr() changes. */
typedef enum lg_cyclic_mode {
        LG_CYCLIC_TRIANGULAR,  /* not at all */
        LG_CYCLIC_TRIANGULAR2, /* it is halved after each cycle */
        LG_CYCLIC_EXP_RANGE    /* it is multiplied by gamma^t */
} lg_cyclic_mode;
typedef struct lg_cyclic_options {
        LG_OPTIONS_HEAD
        int64_t step_size_up LG_DEFAULT;   /* the steps in which rates rise; default 2000 */
        int64_t step_size_down LG_DEFAULT; /* the steps in which they fall; default: as many */
        double gamma LG_DEFAULT;           /* of LG_CYCLIC_EXP_RANGE; default 1. LG_ZERO sets 0, here and below. */
        double base_momentum LG_DEFAULT;   /* the momentum when rates are highest; default 0.8 */
        double max_momentum LG_DEFAULT;    /* the momentum when rates are lowest; default 0.9 */
        lg_cyclic_mode mode LG_DEFAULT;    /* default LG_CYCLIC_TRIANGULAR */
        bool no_cycle_momentum LG_DEFAULT; /* leaves momentum as it is; default false */
} lg_cyclic_options;
/* Makes a schedule of cycles (Smith 2017; CyclicLR): all groups get the same rate, which rises from base_lr to max_lr
 * and falls back, again and again, while momentum (beta1 for Adam) falls and rises. A group without momentum needs
 * .no_cycle_momentum.
 * Example: lg_cyclic_lr(opt, 1e-3, 0.1, .step_size_up = 500) */
#define lg_cyclic_lr(...)                                                                                              \
        LG_CALL3(lg_cyclic_lr_with, lg_cyclic_options, lg_cyclic_lr_takes_opt_base_lr_max_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_cyclic_lr_with(lg_optimizer *opt, double base_lr, double max_lr,
                                              const lg_cyclic_options *options);

typedef struct lg_one_cycle_options {
        LG_OPTIONS_HEAD
        double pct_start LG_DEFAULT;        /* the part of the steps in which rates rise, 0 to 1; default 0.3 */
        double div_factor LG_DEFAULT;       /* rates begin with max_lr / div_factor; default 25 */
        double final_div_factor LG_DEFAULT; /* they end with the first rate / final_div_factor; default 1e4 */
        double base_momentum LG_DEFAULT;    /* the momentum when rates are highest; default 0.85 */
        double max_momentum LG_DEFAULT;     /* the momentum when rates are lowest; default 0.95 */
        bool no_cycle_momentum LG_DEFAULT;  /* leaves momentum as it is; default false */
        bool linear LG_DEFAULT;             /* changes linearly; default false: along cosines */
        bool three_phase LG_DEFAULT;        /* falls to the first rate, then on to the last; default false */
} lg_one_cycle_options;
/* Makes a schedule of one cycle (Smith and Topin 2018; OneCycleLR): all groups get the same rate, which rises to max_lr
 * and then falls far below its beginning, while momentum (beta1 for Adam) falls and rises. Step it after each batch:
 * lg_scheduler_step() beyond total_steps fails with LG_ERR_STATE. A group without momentum needs .no_cycle_momentum.
 * Example: lg_one_cycle_lr(opt, 0.1, epochs * lg_loader_batches(l)) */
#define lg_one_cycle_lr(...)                                                                                           \
        LG_CALL3(lg_one_cycle_lr_with, lg_one_cycle_options, lg_one_cycle_lr_takes_opt_max_lr_total_steps, V, V, I,    \
                 __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_one_cycle_lr_with(lg_optimizer *opt, double max_lr, int64_t total_steps,
                                                 const lg_one_cycle_options *options);

typedef struct lg_plateau_options {
        LG_OPTIONS_HEAD
        int64_t patience LG_DEFAULT;        /* steps without improvement to allow; default 10. LG_ZERO_INT sets 0. */
        double threshold LG_DEFAULT;        /* the least improvement, as a part of the best metric; default 1e-4 */
        int64_t cooldown LG_DEFAULT;        /* steps after a reduction that are not counted; default 0 */
        double min_lr LG_DEFAULT;           /* the lowest rate; default 0 */
        double eps LG_DEFAULT;              /* reductions of this or less are left out; default 1e-8 */
        bool max_mode LG_DEFAULT;           /* a greater metric is better; default false: a smaller one is */
        bool absolute_threshold LG_DEFAULT; /* .threshold is a difference, not a part; default false */
} lg_plateau_options;
/* Makes a schedule that multiplies the rates by `factor`, between 0 and 1, when a metric has not improved for more than
 * .patience steps (ReduceLROnPlateau). lg_scheduler_step_metric() steps it.
 * Example: lg_reduce_on_plateau(opt, 0.5, .patience = 3) */
#define lg_reduce_on_plateau(...)                                                                                      \
        LG_CALL2(lg_reduce_on_plateau_with, lg_plateau_options, lg_reduce_on_plateau_takes_opt_factor, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_reduce_on_plateau_with(lg_optimizer *opt, double factor,
                                                      const lg_plateau_options *options);

/* ---- schedules of schedules ----
 *
 * The new schedule owns those that it is made of, which must be of one optimiser: they are stepped and freed with it.
 * Functions fail with LG_ERR_ARGUMENT if a schedule is given twice, of another optimiser or owned by another schedule,
 * or if schedules nest more than 32 levels deep.
 */

/* Makes a schedule that runs others one after another (SequentialLR): the first until step milestones[0], then the
 * second, which begins at its step 0, and so on. There is one milestone fewer than schedules, above 0 and rising.
 * Example: lg_sequential_lr(LG_INTS(100), warmup, cosine) */
#define lg_sequential_lr(...) lg_sequential_lr_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_scheduler, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_scheduler *lg_sequential_lr_list(lg_ints_in milestones, lg_scheduler *const *schedulers);

/* Makes a schedule that steps all the others at each step, so that their factors multiply (ChainedScheduler).
 * Example: lg_chained_lr(warmup, decay) */
#define lg_chained_lr(...) lg_chained_lr_list(LG_ARRAY(lg_scheduler, LG_TAIL1(, __VA_ARGS__)))
LG_API LG_NEW lg_scheduler *lg_chained_lr_list(lg_scheduler *const *schedulers);

/* ---- steps of schedules ---- */

/* Sets the rates of the next step. Fails with LG_ERR_STATE also if s is one of lg_reduce_on_plateau(). */
LG_API bool lg_scheduler_step(lg_scheduler *s);

/* Steps a schedule of lg_reduce_on_plateau() (else LG_ERR_STATE) with a metric, such as the epoch's validation loss. */
LG_API bool lg_scheduler_step_metric(lg_scheduler *s, double metric);

/* Frees a schedule; rates stay as they are. Fails with LG_ERR_ARGUMENT if another schedule owns it, and with
 * LG_ERR_STATE inside a function of the program that a call with its optimiser has called. */
LG_API void lg_scheduler_free(lg_scheduler *s);

/* ---- the rate to begin with ---- */

/* A step of lg_find_lr(): its rate, the loss before it, and the smoothed loss. */
typedef struct lg_lr_point {
        double lr, loss, smoothed;
} lg_lr_point;

typedef struct lg_find_lr_options {
        LG_OPTIONS_HEAD
        double from LG_DEFAULT;        /* the first rate, above 0; default 1e-7 */
        double to LG_DEFAULT;          /* the last rate, above .from; default 10 */
        int64_t steps LG_DEFAULT;      /* the greatest number of steps, 10 to 1e6; default 100 */
        double smoothing LG_DEFAULT;   /* the weight of the losses so far, below 1; default 0.9. LG_ZERO sets 0. */
        double stop LG_DEFAULT;        /* the multiple of the lowest loss that ends the test, above 1; default 4 */
        lg_loader *loader LG_DEFAULT;  /* the loader from which fn takes batches; a stream needs .seek; default NULL */
        lg_lr_point *curve LG_DEFAULT; /* receives the steps: an array of .steps elements; default NULL */
        int64_t *count LG_DEFAULT;     /* receives the number of steps in .curve; default NULL */
} lg_find_lr_options;
/* Suggests a learning rate by a range test (Smith 2017; lr_find of fastai and Lightning): it makes steps of
 * lg_step_closure() at rates that grow by one factor from .from to .to, the same for all groups, until the loss is not
 * finite or the smoothed loss exceeds the lowest one by (.stop - 1) times its magnitude. Each call of fn returns the
 * loss of the next batch. Returns the rate in the middle of the tenth of .steps in which the smoothed loss, an
 * exponential average without its bias, fell most on its way to the lowest value; the first tenth is left out. For a
 * schedule with a peak, such as lg_one_cycle_lr(), this is the peak. Call it outside the steps of .loader:
 * lg_loader_restart() ends one.
 *
 * Afterwards, also after an error, everything is as before, bit for bit: parameters and buffers of m and opt, their
 * gradients, states and rates of opt, training modes, the context's random numbers and .loader. What else fn changes
 * stays changed. Returns 0 with an error: LG_ERR_STATE if the first loss is not finite, or if the loss falls nowhere or
 * diverges too early (then .curve is complete); an error of fn (LG_ERR_ARGUMENT if it returns NULL without one). While
 * it runs, no parameters can be added to opt, and m, its parts and opt cannot be freed.
 * Example: lg_find_lr(net, opt, next_loss, batches, .loader = batches) */
#define lg_find_lr(...)                                                                                                \
        LG_CALL4(lg_find_lr_with, lg_find_lr_options, lg_find_lr_takes_m_opt_fn_user, V, V, V, V, __VA_ARGS__)
LG_API double lg_find_lr_with(lg_module *m, lg_optimizer *opt, lg_closure_fn *fn, void *user,
                              const lg_find_lr_options *options);

/* ---- moving averages of weights ----
 *
 * An average of the weights in training is often better than the last ones. To evaluate it, swap it into the module:
 *
 *     lg_ema_swap(average);
 *     y = lg_forward(net, x);
 *     lg_ema_swap(average);
 *
 * Functions fail with LG_ERR_STATE if the module was freed.
 */

/* Makes an exponential moving average of the parameters of m, at first a copy of them
 * (torch.optim.swa_utils.AveragedModel). decay is from 0 to 1. */
LG_API LG_NEW lg_ema *lg_ema_new(lg_module *m, double decay);

/* Updates the averages: average = decay average + (1 - decay) value. The first update copies the values, and buffers
 * are always copied. They follow the module to another device. Fails with LG_ERR_STATE also while swapped in. */
LG_API bool lg_ema_update(lg_ema *e);

/* Exchanges the averages with the values in the module, buffers included. A second call exchanges them back. */
LG_API bool lg_ema_swap(lg_ema *e);

/* Frees the average; if swapped in, the module keeps it. Fails with LG_ERR_STATE in a callback of lg_set_trace(). */
LG_API void lg_ema_free(lg_ema *e);

LG_END_C
#endif
