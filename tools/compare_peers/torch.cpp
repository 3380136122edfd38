/* torch.cpp - libtorch's side of tools/compare. */
#include <torch/torch.h>
#include "peer.h"

namespace nn = torch::nn;

struct network {
        nn::Sequential net;
        torch::optim::SGD opt;
        torch::Tensor x, y;
};

static double train(void *user, long steps)
{
        network &n = *static_cast<network *>(user);
        torch::Tensor loss;
        for (long i = 0; i < steps; i++) {
                n.opt.zero_grad();
                loss = nn::functional::cross_entropy(n.net->forward(n.x), n.y);
                loss.backward();
                n.opt.step();
        }
        return loss.item<double>();
}

static network make_network(bool large)
{
        int batch = large ? LARGE_BATCH : SMALL_BATCH, in = large ? LARGE_IN : SMALL_IN;
        torch::Tensor x = torch::empty({batch, in}),
                      y = torch::arange(batch, torch::kLong) % int(large ? LARGE_OUT : SMALL_OUT);
        for (int i = 0; i < batch * in; i++)
                x.data_ptr<float>()[i] = input_value(i);
        nn::Sequential net = large ? nn::Sequential(nn::Linear(LARGE_IN, 128), nn::ReLU(), nn::Linear(128, LARGE_OUT))
                                   : nn::Sequential(nn::Linear(SMALL_IN, 64), nn::ReLU(), nn::Linear(64, 64),
                                                    nn::ReLU(), nn::Linear(64, SMALL_OUT));
        return {net, torch::optim::SGD(net->parameters(), RATE), x, y};
}

static void act(const std::string &what, int argc, char **argv)
{
        if (what == "second") {
                torch::Tensor x = torch::tensor(2., torch::requires_grad());
                torch::Tensor dx = torch::autograd::grad({x * x * x}, {x}, {}, std::nullopt, true)[0];
                std::printf("%g\n", torch::autograd::grad({dx}, {x})[0].item<double>());
        } else if (what == "mismatch") {
                torch::matmul(torch::ones({2, 3}), torch::ones({2, 3}));
        } else if (what == "mismatch in a network") {
                make_network(false).net->forward(make_network(true).x);
        } else if (what == "shortage") {
                limit_memory();
                torch::ones({1 << 15, 1 << 15});
        } else if (what == "weights" && argc == 3) {
                nn::Linear net(3, 2);
                torch::save(net, argv[2]);
                std::printf("%.9g\n", (net->weight.sum() + net->bias.sum()).item<double>());
        } else if (what == "train" && argc == 6) {
                if (std::atoi(argv[4]))
                        torch::set_num_threads(std::atoi(argv[4]));
                torch::manual_seed(1);
                network n = make_network(!std::strcmp(argv[2], "large"));
                report_training(train, &n, argv[3], std::atof(argv[5]));
        }
}

int main(int argc, char **argv)
{
        const char *caught = nullptr;
        try {
                act(argc > 1 ? argv[1] : "", argc, argv);
        } catch (const c10::Error &) {
                caught = "c10::Error";
        } catch (const std::bad_alloc &) {
                caught = "std::bad_alloc";
        }
        if (caught)
                std::printf("exception: %s\n%g\n", caught, torch::ones({2, 3}).sum().item<double>());
}
