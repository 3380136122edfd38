/* functional.h - derivatives of functions: products with vectors, Jacobians, Hessians, gradients of single samples.
 *
 * The functions of this header run a function of the program and return its derivatives at given inputs, as
 * torch.autograd.functional does:
 *
 *     static lg_tensor *energy(lg_ctx *c, lg_list in, void *user)
 *     {
 *             return lg_sum(lg_pow_scalar(in.items[0], 3));
 *     }
 *     ...
 *     lg_tensor *x = lg_ones(c, LG_SHAPE(2), .dtype = LG_F64);
 *     lg_tensor *h = lg_hessian(c, energy, x);
 */
#ifndef LG_FUNCTIONAL_H
#define LG_FUNCTIONAL_H

#include "grad/base.h"

LG_BEGIN

/* A function: computes one output, a float tensor of any shape, from the inputs by ops. It must not change or free the
 * inputs, which belong to the caller. Tensors that it makes live until it returns, except the output. */
typedef lg_tensor *lg_function(lg_ctx *c, lg_list inputs, void *user);

/* ---- derivatives ----
 *
 * Inputs are float tensors, whether they require grad or not; fn receives tensors with their values in their place.
 * Results for an input that the output does not depend on are zeros. Grad mode is on while fn runs, and the gradients
 * of leaves are left alone. On failure all results are NULL. Functions fail with LG_ERR_ARGUMENT also if fn returns
 * NULL without an error, and with the error that fn set.
 */

/* Options of the functions of this header. */
typedef struct lg_function_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;         /* passed to fn; default NULL */
        lg_tensor **value LG_DEFAULT;  /* receives the output of fn; default NULL */
        lg_tensor **result LG_DEFAULT; /* receives all results, one for each input; default NULL */
        bool create_graph LG_DEFAULT;  /* records the results and the value, as results of the inputs; default false */
} lg_function_options;

/* Computes the gradients of <v, fn(inputs)> with respect to the inputs: v times the Jacobian. v has the shape of the
 * output, or is NULL for an output of one element: 1. Returns the first gradient; all belong to
 * the innermost open scope.
 * Example: lg_vjp(c, fn, LG_LIST(x), v, .value = &y) */
#define lg_vjp(...) LG_CALL4(lg_vjp_with, lg_function_options, lg_vjp_takes_c_fn_inputs_v, V, V, V, V, __VA_ARGS__)
LG_API lg_tensor *lg_vjp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_tensor *v,
                              const lg_function_options *options);

/* Computes the derivative of fn in a direction: the Jacobian times the tangents, one for each input and of its shape.
 * The result has the shape of the output. It is computed by two backwards.
 * Example: lg_jvp(c, fn, LG_LIST(x), LG_LIST(v), .value = &y) */
#define lg_jvp(...)                                                                                                    \
        LG_CALL4(lg_jvp_with, lg_function_options, lg_jvp_takes_c_fn_inputs_tangents, V, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_jvp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in tangents,
                                     const lg_function_options *options);

/* Computes the derivatives of all elements of the output by all elements of the inputs. The result for an input has the
 * dimensions of the output followed by those of the input. There is a backward for each element of the output. Returns
 * the result for the first input; all belong to the innermost open scope.
 * Example: lg_jacobian(c, fn, LG_LIST(x)) */
#define lg_jacobian(...)                                                                                               \
        LG_CALL3(lg_jacobian_with, lg_function_options, lg_jacobian_takes_c_fn_inputs, V, V, V, __VA_ARGS__)
LG_API lg_tensor *lg_jacobian_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, const lg_function_options *options);

/* Computes the second derivatives of fn, a function of x alone with an output of one element. The result has the
 * dimensions of x twice.
 * Example: lg_hessian(c, fn, x) */
#define lg_hessian(...) LG_CALL3(lg_hessian_with, lg_function_options, lg_hessian_takes_c_fn_x, V, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_hessian_with(lg_ctx *c, lg_function *fn, lg_tensor *x, const lg_function_options *options);

/* Computes the Hessian times a vector, in the time of a few calls of fn, which has an output of one element. The vector
 * consists of one tensor for each input, of its shape, and so does the result, the first of which is returned; all
 * belong to the innermost open scope.
 * Example: lg_hvp(c, fn, LG_LIST(x), LG_LIST(v), .result = hv) */
#define lg_hvp(...) LG_CALL4(lg_hvp_with, lg_function_options, lg_hvp_takes_c_fn_inputs_v, V, V, V, V, __VA_ARGS__)
LG_API lg_tensor *lg_hvp_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in v,
                              const lg_function_options *options);

/* Computes the gradients with respect to the inputs for each sample alone, as torch.func.vmap(grad(fn)) does. Samples
 * are tensors with one first size N; for each i, fn receives the inputs and then a part of size 1, the i-th, of each
 * tensor of samples, and returns one element: the loss of that sample. The result for an input has the shape (N,
 * input's); the value has the shape (N). It is a loop: a backward for each sample. lg_forward_params() runs a module
 * with the inputs as its parameters. Returns the result for the first input; all belong to the innermost open scope.
 * Example: lg_grad_per_sample(c, fn, LG_LIST(w), LG_LIST(x, y), .result = grads) */
#define lg_grad_per_sample(...)                                                                                        \
        LG_CALL4(lg_grad_per_sample_with, lg_function_options, lg_grad_per_sample_takes_c_fn_inputs_samples, V, V, V,  \
                 V, __VA_ARGS__)
LG_API lg_tensor *lg_grad_per_sample_with(lg_ctx *c, lg_function *fn, lg_list_in inputs, lg_list_in samples,
                                          const lg_function_options *options);

LG_END_C
#endif
