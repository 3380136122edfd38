/* recorded.h - what tests of recorders share: a training, once by its function and once by recordings. */
#ifndef LG_TEST_RECORDED_H
#define LG_TEST_RECORDED_H

#include "temporary.h"

typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt, *other; /* other: another one, or NULL */
        lg_scheduler *schedule;
        lg_scaler *scaler;
        lg_ema *average;
        lg_recorder *recorder, *second; /* second: another recorder, or NULL */
        const struct scenario *of;
        int steps;
} run;

typedef struct scenario {
        const char *name;
        lg_module *(*network)(lg_ctx *c);          /* default: small_network() */
        lg_function *step;                         /* default: train() */
        void (*begin)(run *r);                     /* default: Adam */
        void (*between)(run *r, int i);            /* before run i; default: nothing */
        lg_tensor *(*input)(lg_ctx *c, int64_t n); /* default: (n, 8) */
        int64_t (*batch)(int i);                   /* samples of run i; default: 7 */
        int ordinary;                              /* runs that use no recording; default: 3 of a recorder */
        int every;                                 /* each n-th run is one of the second recorder; default: none is */
        lg_function *second;                       /* its step; default: the same */
        lg_dtype dtype;                            /* of the network; default: f32 */
        const void *with;                          /* what else `begin` makes */
} scenario;

/* $LG_RECORDED_STEPS, or so many steps. */
static inline int steps_or(int few)
{
        const char *given = getenv("LG_RECORDED_STEPS");
        return given ? atoi(given) : few;
}

static inline lg_module *small_network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 8, 16), lg_nn_relu(c), lg_nn_linear(c, 16, 16), lg_nn_tanh(c),
                                lg_nn_linear(c, 16, 3));
}

static inline lg_tensor *update(run *r, lg_tensor *loss)
{
        lg_zero_grad(r->opt);
        lg_backward(loss);
        lg_step(r->opt);
        return loss;
}

static inline lg_tensor *loss_of(run *r, lg_list in)
{
        lg_tensor *x = r->of && r->of->dtype ? lg_cast(in.items[0], r->of->dtype) : in.items[0];
        return lg_cross_entropy(lg_forward(r->net, x), in.items[1]);
}

static inline lg_tensor *train(lg_ctx *c, lg_list in, void *user)
{
        (void)c;
        return update(user, loss_of(user, in));
}

static inline lg_tensor *rows_of_8(lg_ctx *c, int64_t n)
{
        return lg_normal(c, 0, 1, LG_SHAPE(n, 8));
}

typedef struct outcome {
        double *loss;
        int64_t replays;
        char *file, *grads;
        size_t bytes, grad_bytes;
} outcome;

/* The gradients of all parameters, each after a number that says whether there is one. */
static inline void read_gradients(const run *r, outcome *o)
{
        lg_list all = lg_parameters(r->net);
        for (int64_t i = 0; i < all.count; i++)
                o->grad_bytes += (1 + (size_t)lg_numel(all.items[i])) * 8;
        char *p = o->grads = calloc(1, o->grad_bytes + 1);
        for (int64_t i = 0; i < all.count; i++) {
                const lg_tensor *g = lg_grad_of(all.items[i]);
                const size_t bytes = g ? (size_t)lg_numel(g) * lg_dtype_size(lg_dtype_of(g)) : 0;
                *p = g != NULL;
                p += 8;
                if (g && !lg_read(g, p, lg_dtype_of(g), bytes))
                        fail_msg("%s", lg_error(r->c));
                p += (bytes + 7) / 8 * 8;
        }
}

static inline lg_checkpoint *checkpoint_of(run *r)
{
        lg_checkpoint *k = lg_checkpoint_new(r->c);
        lg_checkpoint_add(k, "model", r->net);
        if (r->opt)
                lg_checkpoint_add(k, "optimizer", r->opt);
        if (r->other)
                lg_checkpoint_add(k, "other", r->other);
        if (r->schedule)
                lg_checkpoint_add(k, "schedule", r->schedule);
        if (r->scaler)
                lg_checkpoint_add(k, "scaler", r->scaler);
        if (r->average)
                lg_checkpoint_add(k, "average", r->average);
        return k;
}

/* Parameters, buffers, states and the position of the random generator, as a checkpoint stores them. */
static inline void read_state(run *r, outcome *o)
{
        lg_checkpoint *k = checkpoint_of(r);
        assert_true(lg_checkpoint_save(k, path));
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        o->bytes = (size_t)ftell(f);
        rewind(f);
        o->file = malloc(o->bytes + 1);
        assert_int_equal(fread(o->file, 1, o->bytes, f), o->bytes);
        fclose(f);
}

static inline double value_of(const lg_tensor *y)
{
        double v[64];
        return y ? (read_all(y, v, 64), v[0]) : NAN;
}

static inline run start_run(const scenario *s, int steps)
{
        run r = {.c = open_ctx(), .of = s, .steps = steps};
        lg_set_deterministic(r.c, true); /* some convolutions add up gradients in another order each time */
        r.net = s->network ? s->network(r.c) : small_network(r.c);
        if (s->dtype)
                lg_module_cast(r.net, s->dtype);
        if (s->begin)
                s->begin(&r);
        else
                r.opt = lg_adam(r.c, lg_parameters(r.net), 1e-2);
        assert_ok(r.c);
        return r;
}

/* Makes the recorders, of a run that does not move any more, and runs steps `from` to `to`. */
static inline void run_steps(run *r, bool eager, int from, int to, double *loss)
{
        const scenario *s = r->of;
        lg_ctx *c = r->c;
        lg_function *step = s->step ? s->step : train, *second = s->second ? s->second : step;
        r->recorder = lg_recorder_new(c, step, .user = r, .eager = eager);
        r->second = s->every ? lg_recorder_new(c, second, .user = r, .eager = eager) : NULL;
        for (int i = from; i < to; i++) {
                lg_scope scope = lg_scope_begin(c);
                if (s->between)
                        s->between(r, i);
                const int64_t n = s->batch ? s->batch(i) : 7;
                lg_tensor *x = s->input ? s->input(c, n) : rows_of_8(c, n), *y = lg_randint(c, 0, 3, LG_SHAPE(n));
                const bool other = r->second && i % s->every == s->every - 1;
                lg_tensor *result = lg_recorder_run(other ? r->second : r->recorder, x, y);
                if (lg_error(c))
                        fail_msg("%s, %s run %d: %s", s->name, eager ? "eager" : "recorded", i, lg_error(c));
                loss[i] = value_of(result);
                if (r->schedule)
                        lg_scheduler_step(r->schedule);
                assert_true(lg_scope_end(c, scope));
        }
}

/* Reads what the run has come to, and closes its context. */
static inline void finish_run(run *r, outcome *o)
{
        o->replays += lg_recorder_replays(r->recorder) + lg_recorder_replays(r->second);
        read_gradients(r, o);
        read_state(r, o);
        assert_ok(r->c);
        lg_close(r->c);
}

/* A step with loss scaling and clipping. */
static inline lg_tensor *update_scaled(run *r, lg_tensor *loss)
{
        lg_zero_grad(r->opt);
        lg_scaler_backward(r->scaler, loss);
        lg_scaler_unscale(r->scaler, r->opt);
        lg_clip_grad_norm(lg_parameters(r->net), 1);
        lg_scaler_step(r->scaler, r->opt);
        lg_scaler_update(r->scaler);
        return loss;
}

static inline void with_average(run *r)
{
        r->opt = lg_adam(r->c, lg_parameters(r->net), 1e-2);
        r->average = lg_ema_new(r->net, 0.9);
}

static inline lg_tensor *train_averaged(lg_ctx *c, lg_list in, void *user)
{
        run *r = user;
        lg_tensor *loss = train(c, in, user);
        lg_ema_update(r->average);
        return loss;
}

static inline outcome run_all(const scenario *s, bool eager, int steps)
{
        outcome o = {.loss = calloc((size_t)steps, sizeof *o.loss)};
        run r = start_run(s, steps);
        run_steps(&r, eager, 0, steps, o.loss);
        finish_run(&r, &o);
        return o;
}

/* Checks that two outcomes are the same, bit for bit, and frees them. */
static inline void assert_same_outcome(const char *name, outcome a, outcome b, int steps)
{
        for (int i = 0; i < steps; i++)
                if (memcmp(&a.loss[i], &b.loss[i], sizeof *a.loss) && !(isnan(a.loss[i]) && isnan(b.loss[i])))
                        fail_msg("%s: loss %d is %.17g, not %.17g", name, i, b.loss[i], a.loss[i]);
        if (a.grad_bytes != b.grad_bytes || memcmp(a.grads, b.grads, a.grad_bytes))
                fail_msg("%s: the gradients differ", name);
        if (a.bytes != b.bytes || memcmp(a.file, b.file, a.bytes))
                fail_msg("%s: the states differ", name);
        free(a.loss), free(a.file), free(a.grads);
        free(b.loss), free(b.file), free(b.grads);
}

/* Checks that recordings give the losses, gradients and states of the function, bit for bit. */
static inline void assert_recorded(const scenario *s, int steps)
{
        outcome a = run_all(s, true, steps), b = run_all(s, false, steps);
        const int ordinary = s->ordinary ? s->ordinary : s->every ? 6 : 3;
        if (a.replays != 0 || b.replays != steps - ordinary)
                fail_msg("%s: %lld of %d runs used a recording, not %d", s->name, (long long)b.replays, steps,
                         steps - ordinary);
        assert_same_outcome(s->name, a, b, steps);
}

#endif
