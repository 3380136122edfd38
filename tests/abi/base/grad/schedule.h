/* schedule.h - learning rates that change, gradients that are clipped, averages of weights. */
#ifndef LG_SCHEDULE_H
#define LG_SCHEDULE_H

#include "grad/nn.h"
#include "grad/optim.h"

LG_BEGIN

/* Schedules change the learning rates of an optimiser's groups, each from its own first one, as
 * torch.optim.lr_scheduler does: making one sets the rates of step 0, lg_scheduler_step those of the next. A schedule
 * belongs to the context; when its optimiser is gone, a step is LG_ERR_STATE. Groups that are added later keep their
 * rate. Where a rate would be negative or not finite (gamma too large, a function that returns NaN), making or stepping
 * the schedule is LG_ERR_ARGUMENT; the rates and the schedule stay as they were. */
typedef struct lg_step_lr_options {
        LG_OPTIONS_HEAD
        double gamma LG_DEFAULT; /* 0.1 */
} lg_step_lr_options;
/* lr gamma each step_size steps. lg_step_lr(opt, 30, .gamma = 0.5) */
#define lg_step_lr(...) LG_CALL2(lg_step_lr_with, lg_step_lr_options, lg_step_lr_takes_opt_step_size, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_step_lr_with(lg_optimizer *opt, int64_t step_size, const lg_step_lr_options *options);
typedef struct lg_multi_step_lr_options {
        LG_OPTIONS_HEAD
        double gamma LG_DEFAULT; /* 0.1 */
} lg_multi_step_lr_options;
/* lr gamma at each of the milestones, which are copied. lg_multi_step_lr(opt, LG_INTS(30, 80), .gamma = 0.5) */
#define lg_multi_step_lr(...)                                                                                          \
        LG_CALL2(lg_multi_step_lr_with, lg_multi_step_lr_options, lg_multi_step_lr_takes_opt_milestones, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_multi_step_lr_with(lg_optimizer *opt, lg_ints_in milestones,
                                                  const lg_multi_step_lr_options *options);
/* lr gamma each step. */
LG_API LG_NEW lg_scheduler *lg_exponential_lr(lg_optimizer *opt, double gamma);
typedef struct lg_cosine_lr_options {
        LG_OPTIONS_HEAD
        double eta_min LG_DEFAULT;
} lg_cosine_lr_options;
/* Half a cosine from lr to eta_min in t_max steps, and back (CosineAnnealingLR). lg_cosine_lr(opt, steps) */
#define lg_cosine_lr(...) LG_CALL2(lg_cosine_lr_with, lg_cosine_lr_options, lg_cosine_lr_takes_opt_t_max, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_cosine_lr_with(lg_optimizer *opt, int64_t t_max, const lg_cosine_lr_options *options);
typedef struct lg_linear_lr_options {
        LG_OPTIONS_HEAD
        double start_factor LG_DEFAULT; /* 1/3 */
        double end_factor LG_DEFAULT;   /* 1 */
} lg_linear_lr_options;
/* lr times a factor that goes from start to end in `total` steps: a warm-up. lg_linear_lr(opt, 100, .start_factor =
 * 0.01) */
#define lg_linear_lr(...) LG_CALL2(lg_linear_lr_with, lg_linear_lr_options, lg_linear_lr_takes_opt_total, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_linear_lr_with(lg_optimizer *opt, int64_t total, const lg_linear_lr_options *options);
typedef struct lg_constant_lr_options {
        LG_OPTIONS_HEAD
        double factor LG_DEFAULT; /* 1/3 */
} lg_constant_lr_options;
/* lr factor for `total` steps, then lr. */
#define lg_constant_lr(...)                                                                                            \
        LG_CALL2(lg_constant_lr_with, lg_constant_lr_options, lg_constant_lr_takes_opt_total, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_constant_lr_with(lg_optimizer *opt, int64_t total,
                                                const lg_constant_lr_options *options);
/* lr fn(step, user). In fn, freeing the schedule or its optimiser, and making or stepping a schedule of that optimiser,
 * is LG_ERR_STATE, and nothing is freed or changed. */
typedef double lg_lambda_fn(int64_t step, void *user);
LG_API LG_NEW lg_scheduler *lg_lambda_lr(lg_optimizer *opt, lg_lambda_fn *fn, void *user);
typedef struct lg_one_cycle_options {
        LG_OPTIONS_HEAD
        double pct_start LG_DEFAULT;        /* 0.3: the share of the steps that lr rises */
        double div_factor LG_DEFAULT;       /* 25: lr begins with max_lr / div_factor */
        double final_div_factor LG_DEFAULT; /* 1e4: and ends with that / final_div_factor */
        double base_momentum LG_DEFAULT;    /* 0.85; momentum, or beta1, goes down to it while lr rises */
        double max_momentum LG_DEFAULT;     /* 0.95 */
        bool no_cycle_momentum LG_DEFAULT;  /* leave momentum as it is; needed where a group has none */
        bool linear LG_DEFAULT;             /* straight lines, not cosines */
        bool three_phase LG_DEFAULT;        /* down as long as up, then on to the end */
} lg_one_cycle_options;
/* Smith and Topin 2018 (OneCycleLR), to be stepped after each batch; a step beyond total_steps is LG_ERR_STATE.
 * lg_one_cycle_lr(opt, 0.1, epochs * lg_loader_batches(l)) */
#define lg_one_cycle_lr(...)                                                                                           \
        LG_CALL3(lg_one_cycle_lr_with, lg_one_cycle_options, lg_one_cycle_lr_takes_opt_max_lr_total_steps, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_one_cycle_lr_with(lg_optimizer *opt, double max_lr, int64_t total_steps,
                                                 const lg_one_cycle_options *options);
typedef struct lg_plateau_options {
        LG_OPTIONS_HEAD
        int64_t patience LG_DEFAULT; /* 10; LG_ZERO_INT: none */
        double threshold LG_DEFAULT; /* 1e-4: what counts as better, as a share of the best */
        int64_t cooldown LG_DEFAULT;
        double min_lr LG_DEFAULT;
        double eps LG_DEFAULT;              /* 1e-8: lr changes of no more than that are left out */
        bool max_mode LG_DEFAULT;           /* greater is better */
        bool absolute_threshold LG_DEFAULT; /* threshold is a difference */
} lg_plateau_options;
/* lr factor when a metric has not become better for `patience` steps; stepped by lg_scheduler_step_metric.
 * lg_reduce_on_plateau(opt, 0.5, .patience = 3) */
#define lg_reduce_on_plateau(...)                                                                                      \
        LG_CALL2(lg_reduce_on_plateau_with, lg_plateau_options, lg_reduce_on_plateau_takes_opt_factor, __VA_ARGS__)
LG_API LG_NEW lg_scheduler *lg_reduce_on_plateau_with(lg_optimizer *opt, double factor,
                                                      const lg_plateau_options *options);
/* One schedule after the other: number i from milestones[i - 1] on; one milestone fewer than schedules, all of one
 * optimiser. The new schedule owns them. More than 32 levels of such schedules are LG_ERR_ARGUMENT. Arrays of the _list
 * functions end with LG_END. lg_sequential_lr(LG_INTS(100), warmup, cosine) */
#define lg_sequential_lr(...) lg_sequential_lr_list(LG_ARG1(__VA_ARGS__), LG_ARRAY(lg_scheduler, LG_TAIL1(__VA_ARGS__)))
LG_API LG_NEW lg_scheduler *lg_sequential_lr_list(lg_ints_in milestones, lg_scheduler *const *schedulers);
/* All of them at each step; their factors multiply. lg_chained_lr(warmup, decay) */
#define lg_chained_lr(...) lg_chained_lr_list(LG_ARRAY(lg_scheduler, LG_TAIL1(, __VA_ARGS__)))
LG_API LG_NEW lg_scheduler *lg_chained_lr_list(lg_scheduler *const *schedulers);
LG_API bool lg_scheduler_step(lg_scheduler *s);
/* Of lg_reduce_on_plateau; lg_scheduler_step(s) of it is an error. */
LG_API bool lg_scheduler_step_metric(lg_scheduler *s, double metric);
LG_API void lg_scheduler_free(lg_scheduler *s);

/* An exponential moving average of a module's parameters: average = decay average + (1 - decay) value at each update,
 * the values themselves at the first one; buffers are copied (torch.optim.swa_utils.AveragedModel). It belongs to the
 * context, goes where the module goes at the next update, and ends before the module does. */
LG_API LG_NEW lg_ema *lg_ema_new(lg_module *m, double decay);
LG_API bool lg_ema_update(lg_ema *e);
/* Exchanges averages and values: to evaluate with the averages; a second call exchanges them back. */
LG_API bool lg_ema_swap(lg_ema *e);
LG_API void lg_ema_free(lg_ema *e);

LG_END_C
#endif
