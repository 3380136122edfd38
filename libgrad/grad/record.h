/* record.h - recorded steps: a function of the program that runs again as a list of kernel calls.
 *
 * A training step does the same in every iteration, with other numbers. A recorder runs the step's function three
 * times, notes which kernels it calls, and from then on calls these kernels again without running the function: no
 * graph is recorded, no tensor is made, nothing is allocated. Small models, whose kernels take microseconds, gain most:
 *
 *     static struct model { lg_module *net; lg_optimizer *opt; } model;
 *     static lg_tensor *step(lg_ctx *c, lg_list in, void *user)
 *     {
 *             lg_tensor *loss = lg_cross_entropy(lg_forward(model.net, in.items[0]), in.items[1]);
 *             lg_zero_grad(model.opt);
 *             lg_backward(loss);
 *             lg_step(model.opt);
 *             return loss;
 *     }
 *     ...
 *     lg_recorder *r = lg_recorder_new(c, step);
 *     for (lg_batch b; lg_loader_next(batches, &b);) {
 *             lg_tensor *loss = lg_recorder_run(r, b.x, b.y);
 *             lg_scheduler_step(cosine);
 *     }
 *
 * The results are those of the function, bit for bit. What may change from run to run is: the values of the inputs, of
 * parameters, gradients and states; the numbers of an optimiser's groups, such as its learning rate; the position and
 * the seed of the random generator; the scale of an lg_scaler. Any other number of the program that the function uses,
 * such as the factor of lg_mul_scalar() or the values of lg_from(), is a constant of the recording. So the second and
 * the third run are compared, and a number that differs in them is LG_ERR_STATE: make it an input, as a tensor of one
 * element. A number that changes later is found by .verify_every.
 *
 * Runs record anew, at first running the function again, when the inputs have other shapes or dtypes; when a module
 * that the function runs was set to training or evaluation, moved or cast; when a parameter was frozen or its gradient
 * freed or made; when parts were added to the module; and when lg_no_grad(), lg_autocast(), threads, determinism, TF32
 * or the default device are set in another way.
 */
#ifndef LG_RECORD_H
#define LG_RECORD_H

#include "grad/functional.h"

LG_BEGIN

typedef struct lg_recorder lg_recorder;

typedef struct lg_recorder_options {
        LG_OPTIONS_HEAD
        void *user LG_DEFAULT;           /* passed to fn; default NULL */
        int max_recordings LG_DEFAULT;   /* most recordings, of which the least recently used one is freed; default 8 */
        bool eager LG_DEFAULT;           /* run fn every time; default false */
        int64_t verify_every LG_DEFAULT; /* run fn in every n-th run instead of the recording, and compare; default 0:
                                            never */
} lg_recorder_options;
/* Makes a recorder of a function. fn computes its result, a tensor or NULL, from its inputs, which it must not change,
 * and from what `user` points to. Besides ops it may call lg_backward(), lg_zero_grad(), lg_step(), the functions of
 * lg_scaler, lg_clip_grad_norm(), lg_ema_update() and lg_recompute(). Functions that read values (lg_item(), lg_read())
 * or write them (lg_write()), make modules, optimisers or other objects, use loaders, schedules, files or caches of
 * keys and values, set rates, hooks or seeds fail inside it with LG_ERR_STATE. So do those that exchange data between
 * processes, unless the data goes from GPU to GPU by NCCL; then all ranks of the group run such recorders alike. So
 * does a run that keeps a tensor which it has made, changes an input or changes a mode of the context. All tensors are
 * on one device. LG_ERR_ARGUMENT if fn is NULL or an option is negative. Example: lg_recorder_new(c, fn, .user = net)
 */
#define lg_recorder_new(...)                                                                                           \
        LG_CALL2(lg_recorder_new_with, lg_recorder_options, lg_recorder_new_takes_c_fn, V, V, __VA_ARGS__)
LG_API LG_NEW lg_recorder *lg_recorder_new_with(lg_ctx *c, lg_function *fn, const lg_recorder_options *options);

/* Runs the recorder's function, or its recording, on 1 to 8 inputs of one device, which do not require grad. Returns
 * the result, a copy that belongs to the innermost open scope and requires no grad, or NULL if there is none. Fails
 * with the error of fn; with LG_ERR_STATE if two runs differ or an input requires grad; with LG_ERR_DEVICE for inputs
 * on two devices. A recording that fails for want of memory has changed nothing. A device-side error in it, such as a
 * label out of range, is reported as the function would report it, and its optimiser steps change nothing. While a
 * trace, anomaly detection or a profiler is on, fn runs every time. Example: lg_recorder_run(r, x, y) */
#define lg_recorder_run(...)                                                                                           \
        lg_recorder_run_list(                                                                                          \
                LG_ARG1(__VA_ARGS__),                                                                                  \
                LG_ARRAY(lg_tensor, LG_ARG2(__VA_ARGS__, lg_recorder_run_takes_r_inputs), LG_TAIL2(__VA_ARGS__)))
LG_API lg_tensor *lg_recorder_run_list(lg_recorder *r, lg_tensor *const *inputs);

/* Returns how many runs used a recording, or 0 if r is NULL.
 * Example: lg_recorder_replays(r) */
LG_API int64_t lg_recorder_replays(const lg_recorder *r);

/* Prints the recordings to f: for each, the shapes of its inputs, how often it ran, its memory, and its kernel calls
 * with the functions that made them, results, the bytes that their ops read and write, and times in microseconds (of
 * the list's first run; on CUDA of the third run). Returns false if an argument is NULL or f could not be written.
 * Example: lg_recorder_print(stdout, r) */
LG_API bool lg_recorder_print(FILE *f, const lg_recorder *r);

/* Frees a recorder and its recordings. r may be NULL. */
LG_API void lg_recorder_free(lg_recorder *r);

LG_END_C
#endif
