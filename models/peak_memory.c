/* peak_memory.c - measures the peak resident memory of training steps of resnet18 above that before the first step.
 *
 * peak-memory [batch [steps [threads]]] prints bytes; tools/peak-memory compares them with PyTorch's.
 */
#include <stdlib.h>
#include "models.h"
#include "resident.h"

static double train(lg_ctx *c, int64_t batch, int64_t steps)
{
        lg_module *net = lg_model_resnet18(c, 3, 10);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.01, .momentum = 0.9);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(batch, 3, 32, 32));
        lg_tensor *y = lg_cast(lg_uniform(c, 0, 10, LG_SHAPE(batch)), LG_I64);
        double last = 0;
        resident_reset();
        int64_t before = resident("VmRSS:");
        for (int64_t i = 0; i < steps && !lg_error(c); i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, x), y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                last = lg_item(loss);
                lg_scope_end(c, scope);
        }
        lg_memory_stats_t stats = lg_memory_stats(c, lg_cpu());
        printf("peak %lld bytes above %lld before; buffers: peak %lld, used %lld, cached %lld; loss %.4f\n",
               (long long)(resident("VmHWM:") - before), (long long)before, (long long)stats.peak,
               (long long)stats.used, (long long)stats.cached, last);
        return last;
}

int main(int argc, char **argv)
{
        int64_t batch = argc > 1 ? atoll(argv[1]) : 32, steps = argc > 2 ? atoll(argv[2]) : 2;
        lg_ctx *c = lg_open(.threads = argc > 3 ? atoi(argv[3]) : 0);
        if (c)
                train(c, batch, steps);
        if (lg_error(c))
                fprintf(stderr, "peak-memory: %s\n", lg_error(c));
        int code = lg_error(c) != NULL;
        lg_close(c);
        return code;
}
