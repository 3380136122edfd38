/* check.h - checks of derivatives against finite differences.
 *
 * Use these functions to test a custom op, a module or a part of a model: they compare the gradients that lg_grad()
 * computes with finite differences in f64 and report the element that differs most:
 *
 *     static lg_tensor *f(lg_ctx *c, lg_list in, void *user)
 *     {
 *             return lg_tanh(lg_matmul(in.items[0], in.items[1]));
 *     }
 *     ...
 *     lg_check_report r;
 *     lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(3, 4), .dtype = LG_F64, .requires_grad = true);
 *     lg_tensor *w = lg_uniform(c, -1, 1, LG_SHAPE(4, 2), .dtype = LG_F64, .requires_grad = true);
 *     if (!lg_gradcheck(c, f, LG_LIST(x, w), .report = &r))
 *             puts(lg_error(c) ? lg_error(c) : r.text);
 *
 * Inputs that require a gradient are checked; they must be f64. Their elements are changed in place and restored, and
 * so is the random state of c. fn is called many times and must compute the same; each call starts from the same random
 * state, so dropout repeats its mask. The functions return true if all errors are within .tolerance. They return false
 * without an error if a derivative is wrong, and the report says where, and with an error if the check cannot be made:
 * LG_ERR_DTYPE also if the output of fn is not a float tensor; LG_ERR_ARGUMENT if no input requires a gradient or fn
 * returns NULL without an error; LG_ERR_SHAPE if the shape of the output changes from call to call; LG_ERR_STATE if fn
 * frees an input or changes whether it requires a gradient; and the error that fn set.
 */
#ifndef LG_CHECK_H
#define LG_CHECK_H

#include "grad/functional.h"

LG_BEGIN

/* The result of a check: the worst element over all inputs. */
typedef struct lg_check_report {
        bool ok;         /* no error is above the tolerance */
        int input;       /* the input of the worst element; in lg_gradgradcheck(), the one after the last is v */
        int64_t element; /* its index in row-major order */
        double analytic; /* its gradient by lg_grad() */
        double numeric;  /* its gradient by finite differences */
        double error;    /* |analytic - numeric| / max(1, max |numeric|), with the maximum over the input */
        int64_t checked; /* the number of elements that were compared */
        char text[256];  /* all of that in one line; "not checked" after a failure */
} lg_check_report;

/* Takes the arguments of the two functions below apart. */
#define LG_CHECK(f, takes, ...)                                                                                        \
        f(LG_ARG1(__VA_ARGS__), LG_ARG2(__VA_ARGS__, takes), LG_ARG3(__VA_ARGS__, takes, takes),                       \
          sizeof(lg_check_report), LG_OPTIONS(lg_check_options, LG_TAIL3(__VA_ARGS__)))

/* Options of lg_gradcheck() and lg_gradgradcheck(). */
typedef struct lg_check_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;              /* passed to fn; default NULL */
        double eps LG_DEFAULT;              /* step of the five-point stencil; default 1e-3 */
        double tolerance LG_DEFAULT;        /* largest error; default 1e-7, second derivative 1e-6; LG_ZERO sets 0 */
        int64_t max_elements LG_DEFAULT;    /* how many elements of each input are checked, at random; default: all */
        uint64_t seed LG_DEFAULT;           /* of v and of the random elements; default 0 */
        lg_check_report *report LG_DEFAULT; /* receives the result; default NULL */
} lg_check_options;
/* Checks the first derivative of fn: compares d <v, fn(inputs)> / d inputs, by lg_grad() for a random v, with the
 * five-point stencil (f(x - 2h) - 8 f(x - h) + 8 f(x + h) - f(x + 2h)) / 12h, where f is <v, fn> and h is .eps.
 * Example: lg_gradcheck(c, fn, LG_LIST(x, w), .report = &r) */
#define lg_gradcheck(...) LG_CHECK(lg_gradcheck_with, lg_gradcheck_takes_c_fn_inputs, __VA_ARGS__)
LG_API bool lg_gradcheck_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, size_t report_size,
                              const lg_check_options *options);

/* Checks the second derivative of fn: applies lg_gradcheck() to (inputs, v) -> <w, d <v, fn(inputs)> / d inputs>, for
 * random v and w.
 * Example: lg_gradgradcheck(c, fn, LG_LIST(x, w), .tolerance = 1e-5) */
#define lg_gradgradcheck(...) LG_CHECK(lg_gradgradcheck_with, lg_gradgradcheck_takes_c_fn_inputs, __VA_ARGS__)
LG_API bool lg_gradgradcheck_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, size_t report_size,
                                  const lg_check_options *options);

LG_END_C
#endif
