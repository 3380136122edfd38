/* dlib.cpp - dlib's side of tools/compare. A step includes the copy of the samples into a tensor, as dnn_trainer makes
 * it. */
#include <dlib/dnn.h>
#include "peer.h"

using namespace dlib;

using small_net = loss_multiclass_log<fc<SMALL_OUT, relu<fc<64, relu<fc<64, input<matrix<float>>>>>>>>;
using large_net = loss_multiclass_log<fc<LARGE_OUT, relu<fc<128, input<matrix<float>>>>>>;

template <typename net_type> struct network {
        net_type net;
        dnn_trainer<net_type> trainer{net, sgd(0, 0)}; /* neither weight decay nor momentum */
        std::vector<matrix<float>> x;
        std::vector<unsigned long> y;

        network(int batch, int in, int out)
        {
                trainer.set_learning_rate(RATE);
                trainer.set_learning_rate_shrink_factor(1); /* keeps the rate */
                for (int i = 0; i < batch; i++) {
                        x.emplace_back(in, 1);
                        for (int j = 0; j < in; j++)
                                x.back()(j) = input_value(i * in + j);
                        y.push_back(static_cast<unsigned long>(i % out));
                }
        }

        static double train(void *user, long steps)
        {
                network &n = *static_cast<network *>(user);
                for (long i = 0; i < steps; i++)
                        n.trainer.train_one_step(n.x, n.y);
                n.trainer.get_net(); /* waits for the trainer's thread */
                return n.trainer.get_average_loss();
        }
};

static void act(const std::string &what, int argc, char **argv)
{
        if (what == "mismatch") {
                matrix<float> a = ones_matrix<float>(2, 3), product = a * a;
                std::printf("no error: a result of %ldx%ld\n", product.nr(), product.nc());
        } else if (what == "mismatch in a network") {
                network<small_net> n(SMALL_BATCH, SMALL_IN, SMALL_OUT);
                n.net(n.x);
                n.net(network<large_net>(LARGE_BATCH, LARGE_IN, LARGE_OUT).x);
        } else if (what == "shortage") {
                limit_memory();
                resizable_tensor x(1 << 15, 1 << 15);
        } else if (what == "weights" && argc == 3) {
                network<small_net> n(SMALL_BATCH, SMALL_IN, SMALL_OUT);
                n.net(n.x);
                serialize(argv[2]) << n.net;
        } else if (what == "train" && argc == 6 && !std::strcmp(argv[2], "large")) {
                network<large_net> n(LARGE_BATCH, LARGE_IN, LARGE_OUT);
                report_training(n.train, &n, argv[3], std::atof(argv[5]));
        } else if (what == "train" && argc == 6) {
                network<small_net> n(SMALL_BATCH, SMALL_IN, SMALL_OUT);
                report_training(n.train, &n, argv[3], std::atof(argv[5]));
        }
}

int main(int argc, char **argv)
{
        const char *caught = NULL;
        try {
                act(argc > 1 ? argv[1] : "", argc, argv);
        } catch (const std::bad_alloc &) {
                caught = "std::bad_alloc";
        } catch (const fatal_error &) {
                caught = "dlib::fatal_error";
        }
        if (caught)
                std::printf("exception: %s\n%g\n", caught, static_cast<double>(sum(ones_matrix<float>(2, 3))));
}
