/* optim.h - optimisers, their learning rates, and gradient clipping.
 *
 * An optimiser updates parameters by their gradients. A training step computes a loss, clears the old gradients,
 * computes new ones and updates:
 *
 *     lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
 *     lg_each_batch(b, batches) {
 *             lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
 *             lg_zero_grad(opt);
 *             lg_backward(loss);
 *             lg_clip_grad_norm(lg_parameters(net), 1);
 *             lg_step(opt);
 *     }
 *
 * schedule.h changes learning rates during a run; lg_checkpoint_add() of state.h saves an optimiser.
 */
#ifndef LG_OPTIM_H
#define LG_OPTIM_H

#include "grad/base.h"

LG_BEGIN

/* ---- optimisers ----
 *
 * The formulas, names and defaults are those of torch.optim. In the formulas, p is an element of a parameter, g of its
 * gradient (negated if .maximize is given), and t counts the updates of the parameter from 1 on.
 *
 * Parameters are leaves that require grad, or parameters of modules, frozen or not, as lg_parameters() lists them. The
 * optimiser keeps their handles, not the list, and does not own them; it skips frozen ones until they are unfrozen. The
 * state it stores for a parameter is f64 for f64, else f32, and follows the parameter to another device
 * (lg_module_to()) in the next lg_step(). A parameter, or its memory, is listed once, and is not expanded. Learning
 * rates and options are finite and not negative; betas and rhos are below 1.
 *
 * An update that is small beside a 16-bit parameter is lost when that is rounded. With .master = true the optimiser
 * keeps an f32 copy of each f16 or bf16 parameter (master weights), updates the copy and rounds it to the parameter.
 * Values that the program writes into the parameter go into the copy in the next lg_step().
 */

typedef struct lg_sgd_options {
        LG_OPTIONS_HEAD
        double momentum LG_DEFAULT;     /* the factor of the last b; default 0: without momentum */
        double dampening LG_DEFAULT;    /* the part of d that is left out of b; may be negative; default 0 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool nesterov LG_DEFAULT;       /* Nesterov momentum; needs .momentum and no .dampening; default false */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_sgd_options;
/* Makes an optimiser for stochastic gradient descent (torch.optim.SGD). An update computes
 * - d = g + weight_decay p;
 * - b = momentum b + (1 - dampening) d, but b = d in the first update and without momentum;
 * - p -= lr b or, with .nesterov, p -= lr (d + momentum b).
 *
 * Example: lg_sgd(c, lg_parameters(net), 0.1, .momentum = 0.9) */
#define lg_sgd(...) LG_CALL3(lg_sgd_with, lg_sgd_options, lg_sgd_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_sgd_with(lg_ctx *c, lg_list_in params, double lr, const lg_sgd_options *options);

typedef struct lg_adam_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last v; default 0.999 */
        double eps LG_DEFAULT;          /* added to the root; default 1e-8 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool decoupled LG_DEFAULT;      /* decays weights as AdamW does; default false */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool amsgrad LG_DEFAULT;        /* uses the greatest v so far in place of v (AMSGrad); default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_adam_options;
/* Makes an Adam optimiser (Kingma and Ba 2015; torch.optim.Adam). An update computes
 * - g += weight_decay p or, with .decoupled, p *= 1 - lr weight_decay;
 * - m = beta1 m + (1 - beta1) g;
 * - v = beta2 v + (1 - beta2) g^2;
 * - p -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps).
 *
 * Example: lg_adam(c, lg_parameters(net), 1e-3) */
#define lg_adam(...) LG_CALL3(lg_adam_with, lg_adam_options, lg_adam_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adam_with(lg_ctx *c, lg_list_in params, double lr, const lg_adam_options *options);

typedef struct lg_adamw_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last v; default 0.999 */
        double eps LG_DEFAULT;          /* added to the root; default 1e-8 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0.01 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool amsgrad LG_DEFAULT;        /* uses the greatest v so far in place of v (AMSGrad); default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_adamw_options;
/* Makes an AdamW optimiser (Loshchilov and Hutter 2019; torch.optim.AdamW): lg_adam() with .decoupled.
 * Example: lg_adamw(c, lg_parameters(net), 1e-3, .weight_decay = 0.05) */
#define lg_adamw(...) LG_CALL3(lg_adamw_with, lg_adamw_options, lg_adamw_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adamw_with(lg_ctx *c, lg_list_in params, double lr, const lg_adamw_options *options);

typedef struct lg_adamax_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last u; default 0.999 */
        double eps LG_DEFAULT;          /* added to |g|; default 1e-8 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_adamax_options;
/* Makes an Adamax optimiser (Kingma and Ba 2015; torch.optim.Adamax). An update computes
 * - g += weight_decay p;
 * - m = beta1 m + (1 - beta1) g;
 * - u = max(beta2 u, |g| + eps);
 * - p -= lr / (1 - beta1^t) m / u.
 *
 * Example: lg_adamax(c, lg_parameters(net), 2e-3) */
#define lg_adamax(...) LG_CALL3(lg_adamax_with, lg_adamax_options, lg_adamax_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adamax_with(lg_ctx *c, lg_list_in params, double lr, const lg_adamax_options *options);

typedef struct lg_rmsprop_options {
        LG_OPTIONS_HEAD
        double alpha LG_DEFAULT;        /* the factor of the last v; default 0.99. LG_ZERO sets 0, here and below. */
        double eps LG_DEFAULT;          /* added to the root; default 1e-8 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        double momentum LG_DEFAULT;     /* the factor of the last b; default 0: without momentum */
        bool centered LG_DEFAULT;       /* subtracts the squared mean of the gradient; default false */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_rmsprop_options;
/* Makes an RMSprop optimiser (Hinton 2012; torch.optim.RMSprop). An update computes
 * - g += weight_decay p;
 * - v = alpha v + (1 - alpha) g^2;
 * - a = alpha a + (1 - alpha) g with .centered, else a = 0;
 * - b = momentum b + g / (sqrt(max(v - a^2, 0)) + eps);
 * - p -= lr b.
 *
 * Example: lg_rmsprop(c, lg_parameters(net), 1e-2) */
#define lg_rmsprop(...)                                                                                                \
        LG_CALL3(lg_rmsprop_with, lg_rmsprop_options, lg_rmsprop_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_rmsprop_with(lg_ctx *c, lg_list_in params, double lr, const lg_rmsprop_options *options);

typedef struct lg_adagrad_options {
        LG_OPTIONS_HEAD
        double lr_decay LG_DEFAULT;                  /* lowers the rate with t; default 0 */
        double eps LG_DEFAULT;                       /* added to the root; default 1e-10. LG_ZERO sets 0. */
        double weight_decay LG_DEFAULT;              /* pulls weights towards 0; default 0 */
        double initial_accumulator_value LG_DEFAULT; /* the first s; default 0 */
        bool maximize LG_DEFAULT;                    /* ascends instead of descending; default false */
        bool master LG_DEFAULT;                      /* updates f32 copies of 16-bit parameters; default false */
} lg_adagrad_options;
/* Makes an Adagrad optimiser (Duchi et al. 2011; torch.optim.Adagrad). An update computes
 * - g += weight_decay p;
 * - s += g^2;
 * - p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps).
 *
 * Example: lg_adagrad(c, lg_parameters(net), 1e-2) */
#define lg_adagrad(...)                                                                                                \
        LG_CALL3(lg_adagrad_with, lg_adagrad_options, lg_adagrad_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adagrad_with(lg_ctx *c, lg_list_in params, double lr, const lg_adagrad_options *options);

typedef struct lg_adadelta_options {
        LG_OPTIONS_HEAD
        double rho LG_DEFAULT;          /* the factor of the last v and u; default 0.9. LG_ZERO sets 0, as below. */
        double eps LG_DEFAULT;          /* added under both roots; default 1e-6 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_adadelta_options;
/* Makes an Adadelta optimiser (Zeiler 2012; torch.optim.Adadelta, where lr is 1 by default). An update computes
 * - g += weight_decay p;
 * - v = rho v + (1 - rho) g^2;
 * - d = sqrt(u + eps) / sqrt(v + eps) g;
 * - u = rho u + (1 - rho) d^2;
 * - p -= lr d.
 *
 * Example: lg_adadelta(c, lg_parameters(net), 1) */
#define lg_adadelta(...)                                                                                               \
        LG_CALL3(lg_adadelta_with, lg_adadelta_options, lg_adadelta_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adadelta_with(lg_ctx *c, lg_list_in params, double lr,
                                             const lg_adadelta_options *options);

typedef struct lg_nadam_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;          /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;          /* the factor of the last v; default 0.999 */
        double eps LG_DEFAULT;            /* added to the root; default 1e-8 */
        double weight_decay LG_DEFAULT;   /* pulls weights towards 0; default 0 */
        double momentum_decay LG_DEFAULT; /* how fast the momentum rises to beta1; default 4e-3 */
        bool decoupled LG_DEFAULT;        /* decays weights as AdamW does; default false */
        bool maximize LG_DEFAULT;         /* ascends instead of descending; default false */
        bool master LG_DEFAULT;           /* updates f32 copies of 16-bit parameters; default false */
} lg_nadam_options;
/* Makes a NAdam optimiser (Dozat 2016; torch.optim.NAdam). With mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2) and
 * their product M(t) = mu(1) ... mu(t), an update computes
 * - g += weight_decay p or, with .decoupled, p *= 1 - lr weight_decay;
 * - m = beta1 m + (1 - beta1) g;
 * - v = beta2 v + (1 - beta2) g^2;
 * - p -= lr ((1 - mu(t)) / (1 - M(t)) g + mu(t + 1) / (1 - M(t + 1)) m) / (sqrt(v / (1 - beta2^t)) + eps).
 *
 * Example: lg_nadam(c, lg_parameters(net), 2e-3) */
#define lg_nadam(...) LG_CALL3(lg_nadam_with, lg_nadam_options, lg_nadam_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_nadam_with(lg_ctx *c, lg_list_in params, double lr, const lg_nadam_options *options);

typedef struct lg_radam_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last v; default 0.999 */
        double eps LG_DEFAULT;          /* added to the root; default 1e-8 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool decoupled LG_DEFAULT;      /* decays weights as AdamW does; default false */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_radam_options;
/* Makes a RAdam optimiser (Liu et al. 2020; torch.optim.RAdam). With R = 2 / (1 - beta2) - 1 and r = R - 2 t beta2^t /
 * (1 - beta2^t), an update computes
 * - g += weight_decay p or, with .decoupled, p *= 1 - lr weight_decay;
 * - m = beta1 m + (1 - beta1) g;
 * - v = beta2 v + (1 - beta2) g^2;
 * - d = m / (1 - beta1^t);
 * - if r > 5: d *= sqrt((r - 4) (r - 2) R / ((R - 4) (R - 2) r)) sqrt(1 - beta2^t) / (sqrt(v) + eps);
 * - p -= lr d.
 *
 * Example: lg_radam(c, lg_parameters(net), 1e-3) */
#define lg_radam(...) LG_CALL3(lg_radam_with, lg_radam_options, lg_radam_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_radam_with(lg_ctx *c, lg_list_in params, double lr, const lg_radam_options *options);

typedef struct lg_asgd_options {
        LG_OPTIONS_HEAD
        double lambd LG_DEFAULT; /* pulls weights towards 0 and lowers the rate; default 1e-4. LG_ZERO sets 0, here and
                                    below. */
        double alpha LG_DEFAULT; /* the power of the fall of the rate; default 0.75 */
        double t0 LG_DEFAULT;    /* the update at which the average begins; default 1e6 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_asgd_options;
/* Makes an optimiser for averaged stochastic gradient descent (Polyak and Juditsky 1992; torch.optim.ASGD). An update
 * computes
 * - g += weight_decay p;
 * - e = lr / (1 + lambd lr (t - 1))^alpha;
 * - p -= e (g + lambd p);
 * - a += (p - a) / max(1, t - 1 - t0), the average, which checkpoints have as "ax".
 *
 * Example: lg_asgd(c, lg_parameters(net), 1e-2) */
#define lg_asgd(...) LG_CALL3(lg_asgd_with, lg_asgd_options, lg_asgd_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_asgd_with(lg_ctx *c, lg_list_in params, double lr, const lg_asgd_options *options);

typedef struct lg_rprop_options {
        LG_OPTIONS_HEAD
        double eta_minus LG_DEFAULT; /* the factor of s after a change of sign, above 0 and below 1; default 0.5 */
        double eta_plus LG_DEFAULT;  /* the factor of s without one, above 1; default 1.2 */
        double step_min LG_DEFAULT;  /* the least s; default 1e-6. LG_ZERO sets 0. */
        double step_max LG_DEFAULT;  /* the greatest s; default 50 */
        bool maximize LG_DEFAULT;    /* ascends instead of descending; default false */
        bool master LG_DEFAULT;      /* updates f32 copies of 16-bit parameters; default false */
} lg_rprop_options;
/* Makes an Rprop optimiser (Riedmiller and Braun 1993; torch.optim.Rprop), for gradients of all data at once. An update
 * computes, with s = lr and no last g before the first one,
 * - s *= eta_plus if g has the sign of the last g, s *= eta_minus if it has the other one, and s is clamped to
 *   [step_min, step_max];
 * - g = 0 if it has the other sign;
 * - p -= s sign(g).
 *
 * Example: lg_rprop(c, lg_parameters(net), 1e-2) */
#define lg_rprop(...) LG_CALL3(lg_rprop_with, lg_rprop_options, lg_rprop_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_rprop_with(lg_ctx *c, lg_list_in params, double lr, const lg_rprop_options *options);

typedef struct lg_lion_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the share of m in the update; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last m; default 0.99 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_lion_options;
/* Makes a Lion optimiser (Chen et al. 2023). An update computes
 * - p *= 1 - lr weight_decay;
 * - p -= lr sign(beta1 m + (1 - beta1) g);
 * - m = beta2 m + (1 - beta2) g.
 *
 * Example: lg_lion(c, lg_parameters(net), 1e-4, .weight_decay = 0.1) */
#define lg_lion(...) LG_CALL3(lg_lion_with, lg_lion_options, lg_lion_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_lion_with(lg_ctx *c, lg_list_in params, double lr, const lg_lion_options *options);

typedef struct lg_lamb_options {
        LG_OPTIONS_HEAD
        double beta1 LG_DEFAULT;        /* the factor of the last m; default 0.9. LG_ZERO sets 0, here and below. */
        double beta2 LG_DEFAULT;        /* the factor of the last v; default 0.999 */
        double eps LG_DEFAULT;          /* added to the root; default 1e-6 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0.01 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_lamb_options;
/* Makes a LAMB optimiser (You et al. 2020), for large batches. An update computes, with norms over a parameter,
 * - m = beta1 m + (1 - beta1) g;
 * - v = beta2 v + (1 - beta2) g^2;
 * - u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p;
 * - p -= lr |p| / |u| u, but lr u if |p| or |u| is 0.
 *
 * Example: lg_lamb(c, lg_parameters(net), 2e-3) */
#define lg_lamb(...) LG_CALL3(lg_lamb_with, lg_lamb_options, lg_lamb_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_lamb_with(lg_ctx *c, lg_list_in params, double lr, const lg_lamb_options *options);

typedef struct lg_adafactor_options {
        LG_OPTIONS_HEAD
        double beta2_decay LG_DEFAULT; /* the power of t in the averages, at most 0; default -0.8. LG_ZERO sets 0, here
                                          and below. */
        double eps1 LG_DEFAULT; /* the least root of v; default: the relative precision of the parameter's dtype */
        double eps2 LG_DEFAULT; /* the least scale of a step; default 1e-3 */
        double d LG_DEFAULT;    /* the greatest root mean square of u, at least 1; default 1 */
        double weight_decay LG_DEFAULT; /* pulls weights towards 0; default 0 */
        bool maximize LG_DEFAULT;       /* ascends instead of descending; default false */
        bool master LG_DEFAULT;         /* updates f32 copies of 16-bit parameters; default false */
} lg_adafactor_options;
/* Makes an Adafactor optimiser (Shazeer and Stern 2018; torch.optim.Adafactor, whose deviations from the paper it has).
 * It stores sums of rows and columns in place of a matrix. An update computes, with w = t^beta2_decay and rms the root
 * mean square over a parameter,
 * - a = max(eps2, rms(p)) min(lr, 1 / sqrt(t));
 * - p *= 1 - lr weight_decay;
 * - two dimensions and more: r += w (mean of g^2 over the last - r), q += w (mean of g^2 over the one before - q), v =
 * r q / max(eps1, mean of r over the one before); else v += w (g^2 - v);
 * - u = g / sqrt(max(v, eps1^2));
 * - p -= a / max(1, rms(u) / d) u.
 *
 * Example: lg_adafactor(c, lg_parameters(net), 1e-2) */
#define lg_adafactor(...)                                                                                              \
        LG_CALL3(lg_adafactor_with, lg_adafactor_options, lg_adafactor_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_adafactor_with(lg_ctx *c, lg_list_in params, double lr,
                                              const lg_adafactor_options *options);

/* How the rate of lg_muon() depends on the R rows and C columns of a matrix. */
typedef enum lg_muon_lr {
        LG_MUON_ORIGINAL,          /* sqrt(max(1, R / C)) */
        LG_MUON_MATCH_RMS_ADAMW,   /* 0.2 sqrt(max(R, C)): as large as the updates of AdamW */
        LG_MUON_SPECTRAL_UNCLAMPED /* sqrt(R / C) */
} lg_muon_lr;
typedef struct lg_muon_options {
        LG_OPTIONS_HEAD
        double momentum LG_DEFAULT;      /* the factor of the last b; default 0.95. LG_ZERO sets 0, here and below. */
        double weight_decay LG_DEFAULT;  /* pulls weights towards 0, as in AdamW; default 0.1 */
        double eps LG_DEFAULT;           /* the least norm to divide a matrix by; default 1e-7 */
        double ns_a LG_DEFAULT;          /* coefficients of an iteration; default 3.4445 */
        double ns_b LG_DEFAULT;          /* default -4.775 */
        double ns_c LG_DEFAULT;          /* default 2.0315 */
        int64_t ns_steps LG_DEFAULT;     /* the number of iterations, below 100; default 5. LG_ZERO_INT sets 0. */
        double beta1 LG_DEFAULT;         /* of AdamW, for what is no matrix; default 0.9 */
        double beta2 LG_DEFAULT;         /* of AdamW; default 0.999 */
        double adamw_eps LG_DEFAULT;     /* of AdamW; default 1e-8 */
        lg_muon_lr adjust_lr LG_DEFAULT; /* how the rate depends on the size of a matrix; default LG_MUON_ORIGINAL */
        bool no_nesterov LG_DEFAULT;     /* uses b in place of Nesterov momentum; default false */
        bool maximize LG_DEFAULT;        /* ascends instead of descending; default false */
        bool master LG_DEFAULT;          /* updates f32 copies of 16-bit parameters; default false */
} lg_muon_options;
/* Makes a Muon optimiser (Jordan et al. 2024; torch.optim.Muon) for parameters of two dimensions; for the others it is
 * lg_adamw(), with the same rate and decay: lg_add_param_group() gives parameters others. An update of a matrix
 * computes
 * - b = momentum b + (1 - momentum) g;
 * - x = g + momentum (b - g), or b with .no_nesterov; transposed if it has more rows than columns;
 * - x /= max(|x|, eps), and ns_steps times: y = x x^T, x = ns_a x + (ns_b y + ns_c y y) x;
 * - p *= 1 - lr weight_decay;
 * - p -= lr s x, with s by .adjust_lr.
 *
 * It computes in f32, or in f64 for f64; PyTorch iterates in bf16.
 *
 * Example: lg_muon(c, lg_parameters(net), 0.02) */
#define lg_muon(...) LG_CALL3(lg_muon_with, lg_muon_options, lg_muon_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_muon_with(lg_ctx *c, lg_list_in params, double lr, const lg_muon_options *options);

typedef struct lg_lbfgs_options {
        LG_OPTIONS_HEAD
        int64_t max_iter LG_DEFAULT; /* the greatest number of iterations in a step; default 20 */
        int64_t max_eval LG_DEFAULT; /* the greatest number of calls of the function in a step; default 1.25 max_iter */
        double tolerance_grad
                LG_DEFAULT; /* ends a step if all |g| are at most this; default 1e-7. LG_ZERO sets 0, as below. */
        double tolerance_change
                LG_DEFAULT;              /* ends a step if no p, or the loss, changes by more than this; default 1e-9 */
        int64_t history_size LG_DEFAULT; /* the number of stored pairs of changes; default 100 */
        bool strong_wolfe LG_DEFAULT; /* searches along each direction by the strong Wolfe conditions; default false */
        bool maximize LG_DEFAULT;     /* ascends instead of descending; default false */
} lg_lbfgs_options;
/* Makes an L-BFGS optimiser (Nocedal 1980; torch.optim.LBFGS, where lr is 1 by default), for functions without noise.
 * lg_step_closure() steps it. The parameters are of one dtype, f32 or f64, on one device and in one group. In a step,
 * up to .max_iter times, it computes a direction from the last changes of the parameters and of their gradients, and
 * goes lr times that far or, with .strong_wolfe, as far as a line search finds good, which begins there.
 *
 * Example: lg_lbfgs(c, lg_parameters(net), 1, .strong_wolfe = true) */
#define lg_lbfgs(...) LG_CALL3(lg_lbfgs_with, lg_lbfgs_options, lg_lbfgs_takes_c_params_lr, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_optimizer *lg_lbfgs_with(lg_ctx *c, lg_list_in params, double lr, const lg_lbfgs_options *options);

/* ---- steps ---- */

/* Updates all parameters by their gradients. Parameters without a gradient, and those whose requires_grad is off, are
 * left alone. While a device-side error is pending, nothing changes on that device. Fails with LG_ERR_STATE for an
 * optimiser of lg_lbfgs(), or if a parameter was freed or its gradient is on another device or of another dtype. If an
 * update needs several kernels (for groups, devices, or parameters with different numbers of updates) and a later one
 * fails (LG_ERR_CUDA), the parameters of earlier ones stay updated. */
LG_API bool lg_step(lg_optimizer *opt);

/* Returns the loss of a step, one element, from the present parameters, and does nothing else. */
typedef lg_tensor *lg_closure_fn(lg_ctx *c, void *user);

/* Steps an optimiser by a function that computes the loss: clears the gradients, calls fn in a scope of its own with
 * grad mode on, calls lg_backward() and updates as lg_step() does. Only an optimiser of lg_lbfgs() needs it, which
 * calls fn several times; the others call it once. The loss at the beginning of the step is stored in *loss, unless
 * loss is NULL. If fn fails (LG_ERR_ARGUMENT if it returns NULL without an error), all parameters have their values
 * from before the step. Gradients are those of the last call of fn. */
LG_API bool lg_step_closure(lg_optimizer *opt, lg_closure_fn *fn, void *user, double *loss);

/* Frees the gradients of all parameters (zero_grad(set_to_none=True) of PyTorch), so that the next lg_backward() starts
 * from none. Fails with LG_ERR_STATE in a function given to lg_set_trace(). */
LG_API bool lg_zero_grad(lg_optimizer *opt);

/* Frees an optimiser; its parameters stay. Fails with LG_ERR_STATE inside a function of the program that a call with
 * this optimiser has called, such as the one of lg_lambda_lr(), and in a function given to lg_set_trace(). */
LG_API void lg_optimizer_free(lg_optimizer *opt);

/* ---- groups and learning rates ----
 *
 * Groups are parameters with options of their own. Group 0 has the parameters that the optimiser was made with;
 * lg_add_param_group() adds others, with the numbers 1, 2, ...
 */

/* Options of lg_add_param_group(). An option that is not given has the present value of group 0; LG_ZERO sets 0. */
typedef struct lg_param_group_options {
        LG_OPTIONS_HEAD
        double lr LG_DEFAULT;           /* for all optimisers */
        double weight_decay LG_DEFAULT; /* for all optimisers but Rprop */
        double momentum LG_DEFAULT;     /* for SGD, RMSprop and Muon */
        double beta1 LG_DEFAULT;        /* for Adam and those like it, Lion and LAMB */
        double beta2 LG_DEFAULT;        /* for the same */
        double eps LG_DEFAULT;          /* for those that have an option .eps */
} lg_param_group_options;
/* Adds parameters as a group with options of its own. A parameter is in one group only. Fails with LG_ERR_ARGUMENT if
 * the optimiser has no such option (momentum for Adam, beta1 for SGD).
 * Example: lg_add_param_group(opt, lg_parameters(head), .lr = 1e-2) */
#define lg_add_param_group(...)                                                                                        \
        LG_CALL2(lg_add_param_group_with, lg_param_group_options, lg_add_param_group_takes_opt_params, V, V,           \
                 __VA_ARGS__)
LG_API bool lg_add_param_group_with(lg_optimizer *opt, lg_list_in params, const lg_param_group_options *options);

/* Returns the number of groups, or 0 if opt is NULL. */
LG_API int lg_param_group_count(const lg_optimizer *opt);

/* Returns or sets the learning rate of a group. lg_param_group_lr() returns NAN if there is no such group. */
LG_API double lg_param_group_lr(const lg_optimizer *opt, int group);
LG_API bool lg_set_param_group_lr(lg_optimizer *opt, int group, double lr);

/* Returns the learning rate of group 0, or NAN if opt is NULL. lg_set_lr() sets that of all groups. */
LG_API double lg_lr(const lg_optimizer *opt);
LG_API bool lg_set_lr(lg_optimizer *opt, double lr);

/* ---- gradient clipping ----
 *
 * These functions change the gradients of the given parameters in place, between lg_backward() and lg_step(). They do
 * not wait for a device, unless .error_if_nonfinite is given. Parameters without a gradient are left out. An empty list
 * gives false without an error.
 */

typedef struct lg_clip_options {
        LG_OPTIONS_HEAD
        double p LG_DEFAULT; /* the order of the norm, above 0; LG_INFINITY: the greatest magnitude; default 2 */
        /* Receives the norm before the change, 0-d, which belongs to the innermost open scope; default NULL. */
        lg_tensor **norm LG_DEFAULT;
        bool error_if_nonfinite LG_DEFAULT; /* fails if the norm is infinite or NaN; default false */
} lg_clip_options;
/* Scales the gradients so that the norm of all their elements together is at most max_norm: g *= min(1, max_norm /
 * (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does. max_norm is not negative. With .error_if_nonfinite it waits
 * for the device to read the norm, and fails with LG_ERR_STATE, without a change, if that is not finite.
 * Example: lg_clip_grad_norm(lg_parameters(net), 1) */
#define lg_clip_grad_norm(...)                                                                                         \
        LG_CALL2(lg_clip_grad_norm_with, lg_clip_options, lg_clip_grad_norm_takes_params_max_norm, V, V, __VA_ARGS__)
LG_API bool lg_clip_grad_norm_with(lg_list_in params, double max_norm, const lg_clip_options *options);

/* Clamps each element of the gradients to [-value, value]. */
LG_API bool lg_clip_grad_value(lg_list_in params, double value);

LG_END_C
#endif
