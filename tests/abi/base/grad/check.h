/* check.h - checks derivatives against finite differences. */
#ifndef LG_CHECK_H
#define LG_CHECK_H

#include "grad/base.h"

LG_BEGIN

/* The function to check: makes one output from the inputs, by ops. */
typedef lg_tensor *lg_check_fn(lg_ctx *c, lg_list inputs, void *user);

/* What was found: the worst element over all inputs. error = |analytic - numeric| / max(1, max |numeric|). */
typedef struct lg_check_report {
        bool ok;
        int input;       /* of the worst element */
        int64_t element; /* row-major */
        double analytic, numeric, error;
        int64_t checked; /* elements looked at */
        char text[256];  /* one line that says it */
} lg_check_report;

typedef struct lg_check_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;
        double eps LG_DEFAULT;           /* step of the five-point stencil: 1e-3 */
        double tolerance LG_DEFAULT;     /* gradcheck 1e-7, gradgradcheck 1e-6 */
        int64_t max_elements LG_DEFAULT; /* of each input: all; else a random sample of so many */
        uint64_t seed LG_DEFAULT;        /* of the upstream gradient and the sample */
        lg_check_report *report LG_DEFAULT;
} lg_check_options;
#define LG_CHECK(f, takes, ...)                                                                                        \
        f(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, takes), LG_ARG3(__VA_ARGS__, takes, takes),                       \
          sizeof(lg_check_report), LG_OPTIONS(lg_check_options, LG_TAIL3(__VA_ARGS__)))
/* d <v, fn(inputs)> / d inputs by lg_grad against a five-point stencil in f64, for a random v. False and LG_ERR_NONE
 * when the derivative is wrong (see report); false and an error when fn fails. The random state of c is left as it was.
 * lg_gradcheck(c, fn, LG_LIST(x, w), .report = &r) */
#define lg_gradcheck(...) LG_CHECK(lg_gradcheck_with, lg_gradcheck_takes_c_fn_inputs, __VA_ARGS__)
LG_API bool lg_gradcheck_with(lg_ctx *c, lg_check_fn *fn, lg_list_in inputs, size_t report_size,
                              const lg_check_options *options);
/* The same for the derivative of the derivative: gradcheck of (inputs, v) -> <w, d<v, fn>/d inputs>. */
#define lg_gradgradcheck(...) LG_CHECK(lg_gradgradcheck_with, lg_gradgradcheck_takes_c_fn_inputs, __VA_ARGS__)
LG_API bool lg_gradgradcheck_with(lg_ctx *c, lg_check_fn *fn, lg_list_in inputs, size_t report_size,
                                  const lg_check_options *options);

LG_END_C
#endif
