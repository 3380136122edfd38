/* scaler.h - loss scaling, for training in f16.
 *
 * Gradients in f16 that are below 6e-8 become 0. A scaler multiplies the loss by a large number, the scale, so that
 * they stay above that, and divides the gradients of the parameters, which are f32, by it before the step:
 *
 *     lg_scaler *scaler = lg_scaler_new(c);
 *     lg_each_batch(b, batches) {
 *             lg_autocast(c, LG_F16) {
 *                     loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
 *             }
 *             lg_zero_grad(opt);
 *             lg_scaler_backward(scaler, loss);
 *             lg_scaler_unscale(scaler, opt);
 *             lg_clip_grad_norm(lg_parameters(net), 1);
 *             lg_scaler_step(scaler, opt);
 *             lg_scaler_update(scaler);
 *     }
 *
 * A step is skipped if a gradient is infinite or NAN, and the scale becomes smaller; after many good steps it grows.
 * lg_scaler_unscale() is needed only to read or change gradients before the step. bf16, like f32, needs none.
 *
 * The rules are those of torch.amp.GradScaler. Only lg_scaler_scale_of() waits for the device.
 */
#ifndef LG_SCALER_H
#define LG_SCALER_H

#include "grad/graph.h"
#include "grad/optim.h"

LG_BEGIN

/* ---- a scaler ---- */

typedef struct lg_scaler_options {
        LG_OPTIONS_HEAD
        double init_scale LG_DEFAULT;       /* the scale at first; default 65536 */
        double growth_factor LG_DEFAULT;    /* the scale grows by this factor; default 2 */
        double backoff_factor LG_DEFAULT;   /* and shrinks by this one; default 0.5 */
        int64_t growth_interval LG_DEFAULT; /* it grows after so many good steps in a row; default 2000 */
} lg_scaler_options;
/* Makes a scaler, which lg_checkpoint_add() saves. .init_scale is above 0 and in f32's range, .growth_factor above 1,
 * .backoff_factor between 0 and 1, and .growth_interval at least 1.
 * Example: lg_scaler_new(c, .growth_interval = 500) */
#define lg_scaler_new(...) LG_CALL1(lg_scaler_new_with, lg_scaler_options, lg_scaler_new_takes_c, V, __VA_ARGS__)
LG_API LG_NEW lg_scaler *lg_scaler_new_with(lg_ctx *c, const lg_scaler_options *options);

/* Frees a scaler. Fails with LG_ERR_STATE in a function given to lg_set_trace(). */
LG_API void lg_scaler_free(lg_scaler *s);

/* ---- a step ---- */

/* Computes gradients as lg_backward() does, with its options, but of loss, and from .grad, times the scale.
 * Example: lg_scaler_backward(scaler, loss, .retain_graph = true) */
#define lg_scaler_backward(...)                                                                                        \
        LG_CALL2(lg_scaler_backward_with, lg_backward_options, lg_scaler_backward_takes_s_loss, V, V, __VA_ARGS__)
LG_API bool lg_scaler_backward_with(lg_scaler *s, lg_tensor *loss, const lg_backward_options *options);

/* Returns loss, of a float dtype, times the scale, recorded, for lg_grad(); divide its gradients by the scale. */
LG_API LG_NEW lg_tensor *lg_scaler_scale(lg_scaler *s, lg_tensor *loss);

/* Divides the gradients of all parameters of opt by the scale, each once, and notes whether one of the quotients is
 * infinite or NAN. Fails with LG_ERR_STATE if all of them are divided already, if lg_scaler_backward() and
 * lg_scaler_scale() have not been called since the last lg_scaler_update(), or if no parameter has a gradient; with
 * LG_ERR_DTYPE if a gradient is f16; and as lg_step() does. */
LG_API bool lg_scaler_unscale(lg_scaler *s, lg_optimizer *opt);

/* Updates parameters as lg_step() does, after lg_scaler_unscale() if that was not called, unless a gradient is infinite
 * or NAN. A skipped update leaves parameters and optimiser as they are and does not count; schedules and averages go
 * on. Fails with LG_ERR_STATE if it was called for opt since the last lg_scaler_update(), and as both functions do. */
LG_API bool lg_scaler_step(lg_scaler *s, lg_optimizer *opt);

/* Ends the step, after the lg_scaler_step() of all optimisers: multiplies the scale by .backoff_factor if one found an
 * infinite or NAN gradient, and by .growth_factor if none did for .growth_interval times in a row, unless the scale
 * would be infinite. Fails with LG_ERR_STATE if neither lg_scaler_step() nor lg_scaler_unscale() was called since the
 * last one. */
LG_API bool lg_scaler_update(lg_scaler *s);

/* Returns the scale, or NAN if s is NULL or after a failure. Waits for the device. */
LG_API double lg_scaler_scale_of(lg_scaler *s);

LG_END_C
#endif
