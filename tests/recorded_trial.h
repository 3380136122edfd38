/* recorded_trial.h - what tests of wrong uses of recorders share: a training whose step does something else as well. */
#ifndef LG_TEST_RECORDED_TRIAL_H
#define LG_TEST_RECORDED_TRIAL_H

#include "recorded.h"

/* What a step of these tests does in its n-th call, beside training. */
typedef struct trial {
        run run;
        int calls, at; /* of the step; the call in which it does it, 0: in all */
        bool (*act)(struct trial *t, lg_tensor *x);
        lg_tensor *made, *other;
        lg_loader *loader;
        lg_tensor *in[9];
} trial;

static inline lg_tensor *step(lg_ctx *c, lg_list in, void *user)
{
        trial *t = user;
        t->calls++;
        if (t->act && (!t->at || t->calls == t->at) && !t->act(t, in.items[0]))
                return NULL;
        return train(c, LG_LIST(in.items[0], t->in[1]), &t->run);
}

static inline void open_trial(trial *t)
{
        lg_ctx *c = t->run.c = open_ctx();
        t->run.net = small_network(c);
        t->run.opt = lg_adam(c, lg_parameters(t->run.net), 1e-2);
        t->run.schedule = lg_cosine_lr(t->run.opt, 100);
        t->in[0] = rows_of_8(c, 4);
        t->in[1] = lg_randint(c, 0, 3, LG_SHAPE(4));
        t->other = rows_of_8(c, 4);
        t->loader = lg_loader_open(c, lg_dataset_list(c, LG_LIST(lg_zeros(c, LG_SHAPE(4, 2), .device = lg_cpu()))), 2);
        t->run.recorder = lg_recorder_new(c, step, .user = t);
        assert_ok(c);
}

static inline lg_tensor *run_once(trial *t)
{
        return lg_recorder_run(t->run.recorder, t->in[0]);
}

/* The recorder works after an error, and uses recordings. */
static inline void assert_usable(trial *t)
{
        const int64_t before = lg_recorder_replays(t->run.recorder);
        t->act = NULL;
        for (int i = 0; i < 8; i++)
                if (!run_once(t))
                        fail_msg("%s", lg_error(t->run.c));
        assert_true(lg_recorder_replays(t->run.recorder) > before + 2);
        lg_close(t->run.c);
}

#endif
