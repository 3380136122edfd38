/* profile_trace.c - profiles steps of a network, for trace_check.py: profile_trace MODEL TRACE TABLES [BATCH] */
#include "../models/models.h"
#include "test.h"

/* the encoder of tools/lg_bench */
lg_module *encoder_new(lg_ctx *c);

int main(int argc, char **argv)
{
        /* Sequences are short, for the simulator. */
        enum { SKIPPED = 2, STEPS = 3, BATCHES = SKIPPED + STEPS + 1, LENGTH = 16 };
        const int64_t batch = argc > 4 ? strtol(argv[4], NULL, 10) : 2;
        if (argc < 4)
                return 2;
        lg_ctx *c = lg_open(.seed = 1);
        const lg_device device = test_device(c);
        const bool encoder = !strcmp(argv[1], "encoder");
        lg_module *net = encoder ? encoder_new(c) : lg_model(c, argv[1]);
        lg_module_to(net, device);
        lg_dataset *data = lg_dataset_tensors(
                c,
                lg_normal(c, 0, 1,
                          encoder ? LG_SHAPE(BATCHES * batch, LENGTH, 256) : LG_SHAPE(BATCHES * batch, 1, 28, 28),
                          .device = lg_cpu()),
                lg_zeros(c, LG_SHAPE(BATCHES * batch), .dtype = LG_I64, .device = lg_cpu()));
        lg_loader *loader = lg_loader_open(c, data, batch, .shuffle = true, .device = device, .workers = 1);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
        lg_profiler *p = lg_profiler_open(c, .skip = SKIPPED, .steps = STEPS, .path = argv[2]);
        lg_each_batch(b, loader)
        {
                lg_tensor *loss = NULL;
                lg_region(c, "forward \"quoted\"") loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                lg_item(loss);
                lg_profiler_step(p);
        }
        FILE *f = fopen(argv[3], "w");
        const bool ok = f && lg_profiler_print(f, p, .rows = 1000) && !fclose(f) && lg_profiler_close(p);
        if (!ok)
                fprintf(stderr, "%s\n", lg_error(c) ? lg_error(c) : "it failed");
        lg_close(c);
        return !ok;
}
