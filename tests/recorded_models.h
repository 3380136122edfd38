/* recorded_models.h - what tests of recorded training share: networks with batches, their steps, and recorders. */
#ifndef LG_TEST_RECORDED_MODELS_H
#define LG_TEST_RECORDED_MODELS_H

#include "test.h"
#include "../models/models.h"

typedef struct recorded_model {
        const char *name;
        lg_module *(*network)(lg_ctx *c);
        int64_t batch;
        int ndim; /* of a sample */
        int64_t sample[3];
} recorded_model;

typedef struct training {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_recorder *recorder;
        lg_tensor *x, *y;
} training;

static inline lg_module *resnet18_for_colours(lg_ctx *c)
{
        return lg_model_resnet18(c, 3, 10);
}

static inline lg_tensor *training_step(lg_ctx *c, lg_list in, void *user)
{
        training *t = user;
        (void)c;
        lg_tensor *loss = lg_cross_entropy(lg_forward(t->net, in.items[0]), in.items[1]);
        lg_zero_grad(t->opt);
        lg_backward(loss);
        lg_step(t->opt);
        return loss;
}

static inline void open_training(training *t, lg_ctx *c, const recorded_model *m, bool eager)
{
        lg_shape shape = {.ndim = m->ndim + 1, .size = {m->batch}};
        memcpy(shape.size + 1, m->sample, (size_t)m->ndim * sizeof *shape.size);
        lg_set_deterministic(c, true);
        *t = (training){.c = c, .net = m->network(c)};
        t->opt = lg_adam(c, lg_parameters(t->net), 1e-3);
        t->x = lg_keep(lg_normal(c, 0, 1, shape));
        t->y = lg_keep(lg_randint(c, 0, 10, LG_SHAPE(m->batch)));
        t->recorder = lg_recorder_new(c, training_step, .user = t, .eager = eager);
        assert_ok(c);
}

static inline bool run_step(training *t)
{
        lg_scope s = lg_scope_begin(t->c);
        const bool ok = lg_recorder_run(t->recorder, t->x, t->y) != NULL;
        lg_scope_end(t->c, s);
        return ok;
}

static inline void run_steps(training *t, int steps)
{
        for (int i = 0; i < steps; i++)
                if (!run_step(t))
                        fail_msg("step %d: %s", i, lg_error(t->c));
}

/* Returns the number before some words in the print of a recorder; -1: they are not in it. */
static inline int64_t printed(const lg_recorder *r, const char *words)
{
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        assert_true(f && lg_recorder_print(f, r));
        fclose(f);
        const char *at = strstr(text, words);
        while (at && at > text && strchr(" 0123456789", at[-1]))
                at--;
        const int64_t n = at ? atoll(at) : -1;
        free(text);
        return n;
}

/* Returns how many recordings of r are captured as graphs. */
static inline int count_graphs(const lg_recorder *r)
{
        char *text = NULL;
        size_t size = 0;
        int count = 0;
        FILE *f = open_memstream(&text, &size);
        assert_true(f && lg_recorder_print(f, r));
        fclose(f);
        for (const char *p = text; (p = strstr(p, "captured as a graph")); p++)
                count++;
        free(text);
        return count;
}

#endif
