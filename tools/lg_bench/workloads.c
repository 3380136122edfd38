/* workloads.c - training steps: a chain of scalar ops, perceptrons, a physics-informed network, classifiers.
 *
 * torch_peer.py and jax_peer.py have the same steps, with the same shapes, batches, losses and optimisers. Data are
 * drawn once. The optimiser is Adam, for resnet18 SGD with momentum.
 */
#include "models.h"
#include "bench.h"

enum { CHAIN = 1000, RL_BATCH = 32, PINN_POINTS = 256, CLASSES = 10, SEQUENCES = 8 };
enum { RECURRENT_STEPS = 100, RECURRENT_BATCH = 32, RECURRENT_INPUTS = 128, RECURRENT_HIDDEN = 256 };

static void use_adam(work *w)
{
        w->opt = lg_adam(w->c, lg_parameters(w->net), 1e-3);
}

static void update(work *w, lg_tensor *loss)
{
        lg_zero_grad(w->opt);
        lg_backward(loss);
        lg_step(w->opt);
}

/* ---- a chain of scalar multiplications: recorded, differentiated, freed ---- */

static void make_chain(work *w)
{
        w->w = lg_ones(w->c, LG_SHAPE_0D, .requires_grad = true);
}

static void run_chain(work *w)
{
        lg_tensor *x = w->w;
        for (int i = 0; i < CHAIN; i++)
                x = lg_mul(x, w->w);
        lg_backward(x);
        lg_clear_grad(w->w);
}

/* ---- REINFORCE: mean(-log p(action) advantage) of 32 steps of an agent with 4 observations and 2 actions ---- */

static void make_rl(work *w)
{
        lg_ctx *c = w->c;
        w->net = lg_nn_sequential(c, lg_nn_linear(c, 4, 64), lg_nn_tanh(c), lg_nn_linear(c, 64, 64), lg_nn_tanh(c),
                                  lg_nn_linear(c, 64, 2));
        use_adam(w);
        w->x = lg_normal(c, 0, 1, LG_SHAPE(RL_BATCH, 4));
        w->y = lg_randint(c, 0, 2, LG_SHAPE(RL_BATCH));
        w->g = lg_normal(c, 0, 1, LG_SHAPE(RL_BATCH));
}

static void run_rl(work *w)
{
        lg_tensor *loss = NULL;
        lg_autocast(w->c, w->amp)
        {
                lg_tensor *each = lg_cross_entropy(lg_forward(w->net, w->x), w->y, .reduction = LG_NONE);
                loss = lg_mean(lg_mul(each, w->g));
        }
        update(w, loss);
}

/* ---- a physics-informed network: u'' = -pi^2 sin(pi x) at 256 points ---- */

static void make_pinn(work *w)
{
        lg_ctx *c = w->c;
        w->net = lg_nn_sequential(c, lg_nn_linear(c, 1, 64), lg_nn_tanh(c), lg_nn_linear(c, 64, 64), lg_nn_tanh(c),
                                  lg_nn_linear(c, 64, 64), lg_nn_tanh(c), lg_nn_linear(c, 64, 1));
        use_adam(w);
        w->x = lg_uniform(c, 0, 1, LG_SHAPE(PINN_POINTS, 1), .requires_grad = true);
        const double pi = 3.141592653589793;
        w->y = lg_detach(lg_mul_scalar(lg_sin(lg_mul_scalar(w->x, pi)), -pi * pi));
}

/* Returns du/dx at each point; u[i] depends on x[i] alone. */
static lg_tensor *derivative(lg_tensor *u, lg_tensor *x)
{
        return lg_grad(LG_LIST(lg_sum(u)), LG_LIST(x), .create_graph = true);
}

static void run_pinn(work *w)
{
        lg_tensor *loss = NULL;
        lg_autocast(w->c, w->amp)
        {
                lg_tensor *second = derivative(derivative(lg_forward(w->net, w->x), w->x), w->x);
                loss = lg_mse(second, w->y);
        }
        update(w, loss);
        lg_clear_grad(w->x);
}

/* ---- classification of ten classes ---- */

static void take_images(work *w, lg_shape shape)
{
        use_adam(w);
        w->x = lg_normal(w->c, 0, 1, shape);
        w->y = lg_randint(w->c, 0, CLASSES, LG_SHAPE(shape.size[0]));
}

static void make_mlp_small(work *w)
{
        w->net = lg_model_mlp(w->c);
        take_images(w, LG_SHAPE(64, 784));
}

static void make_mlp_wide(work *w)
{
        lg_ctx *c = w->c;
        w->net = lg_nn_sequential(c, lg_nn_linear(c, 784, 512), lg_nn_relu(c), lg_nn_linear(c, 512, 512), lg_nn_relu(c),
                                  lg_nn_linear(c, 512, CLASSES));
        take_images(w, LG_SHAPE(128, 784));
}

static void make_lenet(work *w)
{
        w->net = lg_model_lenet(w->c);
        take_images(w, LG_SHAPE(64, 1, 28, 28));
}

static void make_lenet_one(work *w)
{
        w->net = lg_model_lenet(w->c);
        take_images(w, LG_SHAPE(1, 1, 28, 28));
}

static void make_cnn(work *w)
{
        w->net = lg_model_cnn(w->c);
        take_images(w, LG_SHAPE(64, 1, 28, 28));
}

static void make_resnet18(work *w)
{
        w->net = lg_model_resnet18(w->c, 3, CLASSES);
        take_images(w, LG_SHAPE(32, 3, 32, 32));
        lg_optimizer_free(w->opt);
        w->opt = lg_sgd(w->c, lg_parameters(w->net), 0.01, .momentum = 0.9);
}

static void make_sequences(work *w, int64_t batch)
{
        w->net = encoder_new(w->c);
        use_adam(w);
        w->x = encoder_input(w->c, batch);
        w->y = lg_randint(w->c, 0, CLASSES, LG_SHAPE(batch));
}

static void make_encoder(work *w)
{
        make_sequences(w, SEQUENCES);
}

static void make_encoder_one(work *w)
{
        make_sequences(w, 1);
}

/* Maps y (T, N, H) to its last step. */
static lg_tensor *last_step(lg_module *m, lg_list in, void *user)
{
        (void)m;
        (void)user;
        return lg_select(in.items[0], 0, -1);
}

static void make_recurrent(work *w, lg_module *layer)
{
        w->net = lg_nn_sequential(w->c, layer, lg_nn_module(w->c, "Last", .forward = last_step),
                                  lg_nn_linear(w->c, RECURRENT_HIDDEN, CLASSES));
        use_adam(w);
        w->x = lg_normal(w->c, 0, 1, LG_SHAPE(RECURRENT_STEPS, RECURRENT_BATCH, RECURRENT_INPUTS));
        w->y = lg_randint(w->c, 0, CLASSES, LG_SHAPE(RECURRENT_BATCH));
}

static void make_lstm(work *w)
{
        make_recurrent(w, lg_nn_lstm(w->c, RECURRENT_INPUTS, RECURRENT_HIDDEN));
}

static void make_gru(work *w)
{
        make_recurrent(w, lg_nn_gru(w->c, RECURRENT_INPUTS, RECURRENT_HIDDEN));
}

/* ---- attention: (1, 8, 1024, 64), causal, forward and backward ---- */

enum { ATTENTION_HEADS = 8, ATTENTION_LENGTH = 1024, ATTENTION_HEAD = 64 };

static void make_attention(work *w)
{
        lg_tensor **const all[] = {&w->x, &w->y, &w->w, &w->g};
        for (int i = 0; i < 4; i++)
                *all[i] = lg_normal(w->c, 0, 1, LG_SHAPE(1, ATTENTION_HEADS, ATTENTION_LENGTH, ATTENTION_HEAD),
                                    .requires_grad = i < 3);
}

static void run_attention(work *w)
{
        lg_tensor *y = NULL;
        lg_autocast(w->c, w->amp) y = lg_attention(w->x, w->y, w->w, .causal = true);
        lg_backward(y, .grad = lg_cast(w->g, lg_dtype_of(y)));
        lg_clear_grad(w->x);
        lg_clear_grad(w->y);
        lg_clear_grad(w->w);
}

static double flops_attention(void)
{
        return 3.5 * 2 * ATTENTION_HEADS * ATTENTION_LENGTH * ATTENTION_LENGTH * ATTENTION_HEAD;
}

/* ---- a GPT of 124 million parameters ---- */

static void make_gpt(work *w, int64_t batch, int64_t length)
{
        w->net = gpt_new(w->c);
        use_adam(w);
        w->x = gpt_tokens(w->c, batch, length);
        w->y = lg_flatten(gpt_tokens(w->c, batch, length));
}

static void make_gpt_long(work *w)
{
        make_gpt(w, 1, 1024);
}

static void make_gpt_short(work *w)
{
        make_gpt(w, 4, 64);
}

static double flops_gpt_long(void)
{
        return gpt_flops(1, 1024);
}

static double flops_gpt_short(void)
{
        return gpt_flops(4, 64);
}

static void run_classify(work *w)
{
        lg_tensor *loss = NULL;
        lg_autocast(w->c, w->amp) loss = lg_cross_entropy(lg_forward(w->net, w->x), w->y);
        update(w, loss);
}

/* ---- operations of products and convolutions: forward, weight gradient and, except in first layers, input gradient
 * ---- */

static double dense(double batch, double in, double out, bool first)
{
        return 2 * batch * in * out * (first ? 2 : 3);
}

static double conv(double images, double in, double out, double kernel, double side, bool first)
{
        return dense(images * side * side, in * kernel * kernel, out, first);
}

static double flops_rl(void)
{
        return dense(RL_BATCH, 4, 64, true) + dense(RL_BATCH, 64, 64, false) + dense(RL_BATCH, 64, 2, false);
}

static double flops_mlp_small(void)
{
        return dense(64, 784, 128, true) + dense(64, 128, CLASSES, false);
}

static double flops_mlp_wide(void)
{
        return dense(128, 784, 512, true) + dense(128, 512, 512, false) + dense(128, 512, CLASSES, false);
}

static double flops_lenet(void)
{
        return conv(64, 1, 6, 5, 28, true) + conv(64, 6, 16, 5, 10, false) + dense(64, 400, 120, false) +
               dense(64, 120, 84, false) + dense(64, 84, CLASSES, false);
}

static double flops_lenet_one(void)
{
        return flops_lenet() / 64;
}

static double flops_encoder(void)
{
        return encoder_flops(SEQUENCES);
}

static double flops_encoder_one(void)
{
        return encoder_flops(1);
}

static double flops_cnn(void)
{
        return conv(64, 1, 32, 3, 26, true) + conv(64, 32, 64, 3, 24, false) + dense(64, 9216, 128, false) +
               dense(64, 128, CLASSES, false);
}

static double flops_resnet18(void)
{
        double sum = conv(32, 3, 64, 3, 32, true) + dense(32, 512, CLASSES, false), in = 64, side = 32;
        for (int stage = 0; stage < 4; stage++) {
                double out = 64 << stage;
                if (stage) {
                        side /= 2;
                        sum += conv(32, in, out, 1, side, false);
                }
                sum += conv(32, in, out, 3, side, false) + 3 * conv(32, out, out, 3, side, false);
                in = out;
        }
        return sum;
}

static double flops_recurrent(double gates)
{
        const double rows = RECURRENT_STEPS * RECURRENT_BATCH;
        return dense(rows, RECURRENT_INPUTS, gates * RECURRENT_HIDDEN, true) +
               dense(rows, RECURRENT_HIDDEN, gates * RECURRENT_HIDDEN, false) +
               dense(RECURRENT_BATCH, RECURRENT_HIDDEN, CLASSES, false);
}

static double flops_lstm(void)
{
        return flops_recurrent(4);
}

static double flops_gru(void)
{
        return flops_recurrent(3);
}

const item workloads[] = {
        {"op-chain", "a scalar multiplication: recorded, differentiated, freed", WORKLOAD, make_chain, run_chain, CHAIN,
         NULL, 0, 0},
        {"rl-mlp", "REINFORCE, 4-64-64-2 with tanh, batch 32, Adam", WORKLOAD, make_rl, run_rl, 1, flops_rl, 0, 0},
        {"pinn", "a second derivative in the loss, 1-64-64-64-1 with tanh, 256 points, Adam", WORKLOAD, make_pinn,
         run_pinn, 1, NULL, 0, 0},
        {"mlp-small", "784-128-10 with ReLU, batch 64, Adam", WORKLOAD, make_mlp_small, run_classify, 1,
         flops_mlp_small, 0, 0},
        {"mlp-wide", "784-512-512-10 with ReLU, batch 128, Adam", WORKLOAD, make_mlp_wide, run_classify, 1,
         flops_mlp_wide, 0, 0},
        {"lenet", "LeNet-5 with ReLU and max pooling, 28 x 28, batch 64, Adam", WORKLOAD, make_lenet, run_classify, 1,
         flops_lenet, 0, 0},
        {"lenet-1", "the same, one image", WORKLOAD, make_lenet_one, run_classify, 1, flops_lenet_one, 0, 0},
        {"cnn", "3x3 convolutions to 32 and 64 channels, 28 x 28, batch 64, Adam", WORKLOAD, make_cnn, run_classify, 1,
         flops_cnn, 0, 0},
        {"resnet18", "ResNet-18 for CIFAR, 32 x 32, batch 32, SGD with momentum", WORKLOAD, make_resnet18, run_classify,
         1, flops_resnet18, 0, 0},
        {"encoder", "4 transformer layers of 256, 8 heads, 8 sequences of 128, Adam", WORKLOAD, make_encoder,
         run_classify, 1, flops_encoder, 0, 0},
        {"encoder-1", "the same, one sequence", WORKLOAD, make_encoder_one, run_classify, 1, flops_encoder_one, 0, 0},
        {"attention", "causal attention, 8 heads of 64, 1024 positions, forward and backward", WORKLOAD, make_attention,
         run_attention, 1, flops_attention, 0, 0},
        {"gpt-1x1024", "a GPT of 124 million parameters, 1 sequence of 1024, Adam", LARGE, make_gpt_long, run_classify,
         1, flops_gpt_long, 0, 0},
        {"gpt-4x64", "the same, 4 sequences of 64", LARGE, make_gpt_short, run_classify, 1, flops_gpt_short, 0, 0},
        {"lstm", "LSTM, 100 steps of 128 features to 256, batch 32, Adam", WORKLOAD, make_lstm, run_classify, 1,
         flops_lstm, 0, 0},
        {"gru", "GRU, 100 steps of 128 features to 256, batch 32, Adam", WORKLOAD, make_gru, run_classify, 1, flops_gru,
         0, 0},
};
const int workload_count = sizeof workloads / sizeof *workloads;
