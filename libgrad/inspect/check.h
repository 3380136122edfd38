/* check.h - the state of a running gradient check. Private to check.c and differences.c. */
#ifndef LG_CHECK_PRIVATE_H
#define LG_CHECK_PRIVATE_H

#include "graph/op.h"

typedef struct check {
        lg_ctx *c;
        const char *name;
        lg_function *fn;
        lg_check_options o;
        lg_random_state random; /* state at the start of every call of fn, so that dropout masks repeat */
        lg_list inputs;
        lg_tensor **x;        /* the inputs; those that share memory are replaced by copies */
        bool *checked;        /* by input: whether it requires grad */
        lg_tensor **analytic; /* gradients by input, on the host; NULL: zero */
        lg_tensor *v;         /* the upstream gradient, on the host */
        lg_check_report worst;
} check;

/* Returns host memory for n items of up to 8 bytes, freed with the innermost scope. NULL: no memory. */
void *lg__check_scratch(lg_ctx *c, int64_t n);
/* Calls fn and returns its output, a float tensor, after waiting for the device. NULL: an error. */
lg_tensor *lg__check_call(check *k);
/* Compares the gradient of one input with finite differences and updates k->worst. Returns false with an error. */
bool lg__check_differences(check *k, int64_t input);

#endif
