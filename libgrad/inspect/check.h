/* check.h - a gradient check on its way. Private to check.c and differences.c. */
#ifndef LG_CHECK_PRIVATE_H
#define LG_CHECK_PRIVATE_H

#include "graph/op.h"

typedef struct check {
        lg_ctx *c;
        const char *name;
        lg_function *fn;
        lg_check_options o;
        lg_random_state random; /* that every call of fn begins with: masks repeat themselves */
        lg_list inputs;
        lg_tensor **x;        /* the inputs, some replaced by copies of their own */
        bool *checked;        /* by input: it requires grad */
        lg_tensor **analytic; /* by input, on the host; NULL: zero */
        lg_tensor *v;         /* the upstream gradient, on the host */
        lg_check_report worst;
} check;

/* Host memory for n items of up to 8 bytes, which ends with the innermost scope. */
void *lg__check_scratch(lg_ctx *c, int64_t n);
/* The output of fn, a float tensor whose kernels reported no error; or NULL and an error. */
lg_tensor *lg__check_call(check *k);
/* Compares the gradient of one input with finite differences and notes the worst element. */
bool lg__check_differences(check *k, int64_t input);

#endif
