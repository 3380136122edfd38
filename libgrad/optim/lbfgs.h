/* lbfgs.h - what L-BFGS stores, and a step of it. Private to lbfgs.c and wolfe.c. */
#ifndef LG_LBFGS_PRIVATE_H
#define LG_LBFGS_PRIVATE_H

#include "optim.h"

/* State from step to step, under PyTorch's names in files. Vectors have all elements of all parameters. */
typedef struct lg__lbfgs {
        int64_t iterations, calls; /* n_iter, func_evals */
        double t, scale;           /* the last step length; H_diag, the scale of the first approximation of H */
        lg_tensor *d, *last;       /* the last direction; prev_flat_grad, the gradient where it begins */
        int64_t room;              /* history_size: length of the arrays */
        lg_tensor **y, **s; /* old_dirs and old_stps: changes of the gradient and of x, oldest first, then NULL */
        lg_tensor *ro;      /* 1 / y.s of each pair, f64, on the CPU */
} lg__lbfgs;

typedef struct lg__lbfgs_step {
        lg_optimizer *opt;
        lg__lbfgs *memory;
        const char *op;
        lg_closure_fn *fn;
        void *user;
        lg_dtype region;   /* the autocast region of the caller, for fn */
        lg_tensor *first;  /* the parameters before the step */
        lg_tensor *x;      /* the parameters before the iteration */
        lg_tensor *now;    /* the parameters that are tried */
        lg_tensor **parts; /* views of `now` in the shapes of the parameters */
        lg_tensor *scratch;
        int64_t evaluations; /* calls of fn in this step */
} lg__lbfgs_step;

double lg__lbfgs_dot(lg_tensor *a, lg_tensor *b);
/* Returns the greatest magnitude. */
double lg__lbfgs_greatest(lg_tensor *a);
/* Computes the loss and the gradient at x + t d, where it leaves the parameters. */
bool lg__lbfgs_try(lg__lbfgs_step *k, double t, double *ret_f, lg_tensor **ret_g);
/* Searches along d, from *t on, for a step length that fulfils the strong Wolfe conditions, by up to `most` calls. Loss
 * *f, gradient *g and `slope` g.d at x become those at x + *t d. */
bool lg__lbfgs_search(lg__lbfgs_step *k, int64_t most, double *f, lg_tensor **g, double slope, double *t);

#endif
