/* reinforce.c - REINFORCE with a baseline (Williams 1992) on cart-pole (Barto, Sutton and Anderson 1983).
 *
 * Look at play(), which draws actions (lg_multinomial, lg_read), and improve(), which makes good actions likelier.
 *
 *     cc -std=c11 reinforce.c $(pkg-config --cflags --libs libgrad) -lm && ./a.out [ITERATIONS]
 * prints the number of steps for which the pole stays up, at most 500; a random policy reaches 22:
 *     iteration  50  mean length 472.4
 *     iteration 100  mean length 500.0
 */
#include <grad.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EPISODES = 16, LIMIT = 500 };

/* Episodes that run in parallel. */
typedef struct rollout {
        int steps;                           /* steps of the longest episode */
        float length[EPISODES];              /* steps until the pole fell */
        float state[LIMIT + 1][EPISODES][4]; /* position and speed of the cart, angle and angular speed of the pole */
        int64_t action[LIMIT][EPISODES];     /* 0: push to the left, 1: to the right */
} rollout;

/* Pushes a cart (1 kg) with a pole (0.1 kg, 1 m) by 10 N for 0.02 s. Returns false if the pole falls or it leaves. */
static bool move_cart(float s[4], int64_t action)
{
        double sine = sin(s[2]), cosine = cos(s[2]);
        double push = ((action ? 10 : -10) + 0.05 * s[3] * s[3] * sine) / 1.1;
        double turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
        double change[4] = {s[1], push - 0.05 * turn * cosine / 1.1, s[3], turn};
        for (int i = 0; i < 4; i++)
                s[i] += (float)(0.02 * change[i]);
        return fabs(s[0]) < 2.4 && fabs(s[2]) < 0.2095;
}

static void play(lg_ctx *c, lg_module *policy, rollout *r)
{
        memset(r, 0, sizeof *r);
        lg_read(lg_uniform(c, -0.05, 0.05, LG_SHAPE(EPISODES, 4)), r->state[0], LG_F32, sizeof r->state[0]);
        for (int running = EPISODES; running && r->steps < LIMIT && !lg_error(c);) {
                int t = r->steps++;
                lg_tensor *state = lg_from(c, &r->state[t][0][0], LG_SHAPE(EPISODES, 4));
                lg_tensor *action = lg_multinomial(lg_softmax(lg_forward(policy, state), 1), 1);
                lg_read(action, r->action[t], LG_I64, sizeof r->action[t]);
                memcpy(r->state[t + 1], r->state[t], sizeof r->state[t]);
                for (int e = 0; e < EPISODES; e++)
                        if (r->length[e] == 0 && (!move_cart(r->state[t + 1][e], r->action[t][e]) || t + 1 == LIMIT)) {
                                r->length[e] = (float)(t + 1);
                                running--;
                        }
        }
}

/* Returns the advantages (steps, EPISODES): 1 - 0.99^(steps left in the episode), minus the mean of that over the
 * episodes still running; 0 after the end of an episode. */
static lg_tensor *advantages(lg_ctx *c, const rollout *r)
{
        lg_tensor *now = lg_reshape(lg_arange(c, 0, r->steps, 1), LG_SHAPE(-1, 1));
        lg_tensor *left = lg_maximum_scalar(lg_sub(lg_from(c, r->length, LG_SHAPE(EPISODES)), now), 0);
        lg_tensor *gain = lg_rsub_scalar(lg_rpow_scalar(left, 0.99), 1), *running = lg_gt_scalar(left, 0);
        lg_tensor *baseline = lg_div(lg_sum(gain, .dims = LG_DIMS(1), .keep_dim = true),
                                     lg_sum(running, .dims = LG_DIMS(1), .keep_dim = true));
        return lg_mul(lg_sub(gain, baseline), running);
}

static void improve(lg_ctx *c, lg_module *policy, lg_optimizer *opt, const rollout *r)
{
        int64_t n = (int64_t)r->steps * EPISODES;
        lg_tensor *logits = lg_forward(policy, lg_from(c, &r->state[0][0][0], LG_SHAPE(n, 4)));
        lg_tensor *minus_log_p = lg_cross_entropy(logits, lg_from(c, r->action[0], LG_SHAPE(n)), .reduction = LG_NONE);
        lg_zero_grad(opt);
        lg_backward(lg_mean(lg_mul(minus_log_p, lg_flatten(advantages(c, r), .end_dim = 1))));
        lg_step(opt);
}

int main(int argc, char **argv)
{
        int iterations = argc > 1 ? atoi(argv[1]) : 100;
        lg_ctx *c = lg_open(.seed = 1);
        lg_module *policy = lg_nn_sequential(c, lg_nn_linear(c, 4, 32), lg_nn_tanh(c), lg_nn_linear(c, 32, 2));
        lg_optimizer *opt = lg_adam(c, lg_parameters(policy), 1e-2);
        rollout r;
        for (int i = 1; i <= iterations && !lg_error(c); i++) {
                lg_scope s = lg_scope_begin(c);
                lg_no_grad(c)
                        play(c, policy, &r);
                improve(c, policy, opt, &r);
                if (i % 10 == 0)
                        printf("iteration %3d  mean length %.1f\n", i,
                               lg_item(lg_mean(lg_from(c, r.length, LG_SHAPE(EPISODES)))));
                lg_scope_end(c, s);
        }
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
