/* optim.cu - optimisers: one launch for each tensor; nothing changes while a fault is set. */
#include "cuda.h"

/* The tensors of an update, and where the fault is. */
typedef struct step_of {
        lg_update u;
        const lg_fault *fault;
} step_of;

#define STATE(k, i) (s.u.state[k] ? lg_load<H>(s.u.state[k], s.u.dtype, i) : (H)0)
#define SET(k, i, v) lg_store<H>(s.u.state[k], s.u.dtype, i, v)
#define BEGIN                                                                                                          \
        if (s.fault->code != LG_FAULT_NONE)                                                                            \
                return;                                                                                                \
        for (int64_t i = LG_FIRST; i < s.u.n; i += LG_STEP) {                                                          \
                H p = lg_load<H>(s.u.param, s.u.dtype, i), g = lg_load<H>(s.u.grad, s.u.dtype, i);                     \
                g = (a.maximize ? -g : g);
#define END                                                                                                            \
        lg_store<H>(s.u.param, s.u.dtype, i, p);                                                                       \
        }

template <typename H> static __global__ void sgd_loop(lg_sgd_args a, step_of s)
{
        BEGIN
        H d = g + (H)a.weight_decay * p, lr = (H)a.lr, momentum = (H)a.momentum;
        if (s.u.state[0]) {
                H b = a.first ? d : momentum * STATE(0, i) + (H)(1 - a.dampening) * d;
                SET(0, i, b);
                d = a.nesterov ? d + momentum * b : b;
        }
        p -= lr * d;
        END
}

template <typename H> static __global__ void adam_loop(lg_adam_args a, step_of s, double rate, double root)
{
        BEGIN
        H d = g + (a.decoupled ? (H)0 : (H)a.weight_decay) * p;
        if (a.decoupled)
                p *= (H)(1 - a.lr * a.weight_decay);
        H m = (H)a.beta1 * STATE(0, i) + (H)(1 - a.beta1) * d,
          v = (H)a.beta2 * STATE(1, i) + (H)(1 - a.beta2) * (d * d);
        SET(0, i, m);
        SET(1, i, v);
        if (s.u.state[2]) {
                H most = STATE(2, i);
                v = v > most || v != v ? v : most;
                SET(2, i, v);
        }
        p -= (H)rate * (m / ((H)sqrt(v) * (H)root + (H)a.eps));
        END
}

template <typename H> static __global__ void rmsprop_loop(lg_rmsprop_args a, step_of s)
{
        BEGIN
        H d = g + (H)a.weight_decay * p, v = (H)a.alpha * STATE(0, i) + (H)(1 - a.alpha) * (d * d), spread = v;
        SET(0, i, v);
        if (s.u.state[1]) {
                H mean = (H)a.alpha * STATE(1, i) + (H)(1 - a.alpha) * d;
                SET(1, i, mean);
                spread -= mean * mean;
        }
        d /= (H)sqrt(spread) + (H)a.eps;
        if (s.u.state[2]) {
                d += (H)a.momentum * STATE(2, i);
                SET(2, i, d);
        }
        p -= (H)a.lr * d;
        END
}

template <typename H> static __global__ void adagrad_loop(lg_adagrad_args a, step_of s, double rate)
{
        BEGIN
        H d = g + (H)a.weight_decay * p, sum = STATE(0, i) + d * d;
        SET(0, i, sum);
        p -= (H)rate * (d / ((H)sqrt(sum) + (H)a.eps));
        END
}

/* A fault that host code noted counts, too. */
template <typename F> static bool each(lg_queue *q, const lg_update *updates, int64_t count, const char *name, F launch)
{
        for (int64_t i = 0; i < count; i++) {
                if (!lg_is_float(updates[i].dtype))
                        return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)updates[i].dtype);
                step_of s = {updates[i], lg_cuda(q)->fault};
                if (!launch(s, s.u.n ? lg_blocks(q, s.u.n) : 0))
                        return false;
        }
        return true;
}

extern "C" bool lg_cuda_sgd(lg_queue *q, const lg_sgd_args *a)
{
        return each(q, a->updates, a->count, "sgd", [&](const step_of &s, int64_t blocks) {
                return LG_WITH_FLOAT(s.u.dtype, lg_launch(q, "sgd", sgd_loop<H>, blocks, *a, s));
        });
}

extern "C" bool lg_cuda_adam(lg_queue *q, const lg_adam_args *a)
{
        double rate = a->lr / (1 - pow(a->beta1, (double)a->step)), root = 1 / sqrt(1 - pow(a->beta2, (double)a->step));
        return each(q, a->updates, a->count, "adam", [&](const step_of &s, int64_t blocks) {
                return LG_WITH_FLOAT(s.u.dtype, lg_launch(q, "adam", adam_loop<H>, blocks, *a, s, rate, root));
        });
}

extern "C" bool lg_cuda_rmsprop(lg_queue *q, const lg_rmsprop_args *a)
{
        return each(q, a->updates, a->count, "rmsprop", [&](const step_of &s, int64_t blocks) {
                return LG_WITH_FLOAT(s.u.dtype, lg_launch(q, "rmsprop", rmsprop_loop<H>, blocks, *a, s));
        });
}

extern "C" bool lg_cuda_adagrad(lg_queue *q, const lg_adagrad_args *a)
{
        double rate = a->lr / (1 + (double)(a->step - 1) * a->lr_decay);
        return each(q, a->updates, a->count, "adagrad", [&](const step_of &s, int64_t blocks) {
                return LG_WITH_FLOAT(s.u.dtype, lg_launch(q, "adagrad", adagrad_loop<H>, blocks, *a, s, rate));
        });
}
