/* convolutions_bench.c - the CPU's convolutions beside oneDNN, or beside each algorithm, by turns on one
 * thread.
 *
 *     BUILD/tests/convolutions_bench [--algorithms] [--isa avx512|avx2|portable] [--seconds S] [--only TEXT]
 *
 * Forward, input gradient and weight gradient of the layers of usual networks ("resnet" and "imagenet" are resnet18's,
 * of CIFAR's images and ImageNet's). Prints microseconds by CPU time, the
 * ratio of the best of the others to libgrad, and at the end the geometric mean of the ratios and the lowest.
 * --algorithms: the others are the algorithms that conv.c chooses from. --only: of cases whose line has the text, as
 * "resnet" or "weight".
 */
#include "bench.h"
#include "convolutions_onednn.h"

typedef struct shape {
        const char *network;
        int n, channels, outputs, size, kernel, stride, padding, dilation, groups;
} shape;

static const shape shapes[] = {
        {"lenet", 64, 1, 6, 28, 5, 1, 2, 1, 1},          {"lenet", 64, 6, 16, 14, 5, 1, 0, 1, 1},
        {"cnn", 64, 1, 32, 28, 3, 1, 1, 1, 1},           {"cnn", 64, 32, 64, 28, 3, 1, 1, 1, 1},
        {"vgg", 32, 3, 64, 32, 3, 1, 1, 1, 1},           {"vgg", 32, 64, 64, 32, 3, 1, 1, 1, 1},
        {"vgg", 32, 64, 128, 16, 3, 1, 1, 1, 1},         {"vgg", 32, 128, 256, 8, 3, 1, 1, 1, 1},
        {"vgg", 32, 256, 512, 4, 3, 1, 1, 1, 1},         {"vgg", 32, 512, 512, 2, 3, 1, 1, 1, 1},
        {"resnet", 32, 64, 128, 32, 3, 2, 1, 1, 1},      {"resnet", 32, 64, 128, 32, 1, 2, 0, 1, 1},
        {"resnet", 32, 128, 128, 16, 3, 1, 1, 1, 1},     {"resnet", 32, 128, 256, 16, 3, 2, 1, 1, 1},
        {"resnet", 32, 128, 256, 16, 1, 2, 0, 1, 1},     {"resnet", 32, 256, 256, 8, 3, 1, 1, 1, 1},
        {"resnet", 32, 256, 512, 8, 3, 2, 1, 1, 1},      {"resnet", 32, 256, 512, 8, 1, 2, 0, 1, 1},
        {"resnet", 32, 512, 512, 4, 3, 1, 1, 1, 1},      {"imagenet", 4, 3, 64, 224, 7, 2, 3, 1, 1},
        {"imagenet", 4, 64, 64, 56, 3, 1, 1, 1, 1},      {"imagenet", 4, 64, 128, 56, 3, 2, 1, 1, 1},
        {"imagenet", 4, 64, 128, 56, 1, 2, 0, 1, 1},     {"imagenet", 4, 128, 128, 28, 3, 1, 1, 1, 1},
        {"imagenet", 4, 128, 256, 28, 3, 2, 1, 1, 1},    {"imagenet", 4, 128, 256, 28, 1, 2, 0, 1, 1},
        {"imagenet", 4, 256, 256, 14, 3, 1, 1, 1, 1},    {"imagenet", 4, 256, 512, 14, 3, 2, 1, 1, 1},
        {"imagenet", 4, 256, 512, 14, 1, 2, 0, 1, 1},    {"imagenet", 4, 512, 512, 7, 3, 1, 1, 1, 1},
        {"resnet50", 4, 64, 256, 56, 1, 1, 0, 1, 1},     {"resnet50", 4, 256, 64, 56, 1, 1, 0, 1, 1},
        {"resnet50", 4, 512, 128, 28, 1, 1, 0, 1, 1},    {"resnet50", 4, 256, 1024, 14, 1, 1, 0, 1, 1},
        {"small", 32, 256, 256, 3, 3, 1, 1, 1, 1},       {"small", 32, 256, 256, 5, 3, 1, 1, 1, 1},
        {"small", 32, 256, 256, 6, 3, 1, 1, 1, 1},       {"small", 4, 256, 256, 2, 3, 1, 1, 1, 1},
        {"depthwise", 4, 32, 32, 112, 3, 1, 1, 1, 32},   {"depthwise", 4, 64, 64, 112, 3, 2, 1, 1, 64},
        {"depthwise", 4, 256, 256, 28, 3, 1, 1, 1, 256}, {"depthwise", 4, 512, 512, 14, 3, 1, 1, 1, 512},
        {"depthwise", 4, 96, 96, 28, 5, 2, 2, 1, 96},    {"dilated", 8, 64, 64, 28, 3, 1, 2, 2, 1},
        {"dilated", 4, 256, 256, 14, 3, 1, 4, 4, 1},     {"grouped", 4, 128, 128, 28, 3, 1, 1, 1, 32},
        {"grouped", 8, 64, 64, 28, 3, 1, 1, 1, 4},       {"transposed", 16, 32, 64, 32, 4, 2, 1, 1, 1},
        {"transposed", 16, 64, 128, 16, 4, 2, 1, 1, 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, KINDS = 3, OWN = 0, OTHERS = 3 };
static const char *const kinds[KINDS] = {"forward", "input", "weight"};

typedef bool algorithm_fn(lg_queue *q, const lg_conv_args *a);
typedef bool fits_fn(const lg_conv_args *a);
/* The algorithms of an instruction set that this build may lack. */
typedef struct algorithms {
        const char *isa;
        algorithm_fn *products, *direct, *weight, *winograd, *winograd_weight;
        fits_fn *products_fit, *winograd_fits;
} algorithms;
#define WEAK __attribute__((weak))
#define ALGORITHMS(isa)                                                                                                \
        WEAK algorithm_fn LG_ISA_NAME(conv_products, isa), LG_ISA_NAME(conv_direct, isa),                              \
                LG_ISA_NAME(conv_weight, isa), LG_ISA_NAME(conv_winograd, isa),                                        \
                LG_ISA_NAME(conv_winograd_weight, isa);                                                                \
        WEAK fits_fn LG_ISA_NAME(conv_products_fit, isa), LG_ISA_NAME(conv_winograd_fits, isa);
ALGORITHMS(avx512)
ALGORITHMS(avx2)
ALGORITHMS(portable)
#undef ALGORITHMS
#define ALGORITHMS(isa)                                                                                                \
        {                                                                                                              \
#isa, LG_ISA_NAME(conv_products, isa), LG_ISA_NAME(conv_direct, isa), LG_ISA_NAME(conv_weight, isa),   \
                        LG_ISA_NAME(conv_winograd, isa), LG_ISA_NAME(conv_winograd_weight, isa),                       \
                        LG_ISA_NAME(conv_products_fit, isa), LG_ISA_NAME(conv_winograd_fits, isa),                     \
        }
static const algorithms all_algorithms[] = {ALGORITHMS(avx512), ALGORITHMS(avx2), ALGORITHMS(portable)};

typedef struct one_case {
        bench *bench;
        lg_conv_args args;
        algorithm_fn *own[1 + OTHERS]; /* libgrad's choice, and its algorithms */
        bench_onednn *peers[1 + OTHERS];
} one_case;

static void run(void *case_, int who)
{
        one_case *c = case_;
        bench_reuse(c->bench);
        if (c->own[who])
                c->own[who](&c->bench->queue, &c->args);
        else
                bench_onednn_run(c->peers[who]);
}

static void set_algorithms(one_case *c)
{
        const lg_conv_args *a = &c->args;
        const bool weight = a->kind == LG_CONV_WEIGHT_GRAD;
        for (size_t i = 0; i < sizeof all_algorithms / sizeof *all_algorithms; i++) {
                const algorithms *w = &all_algorithms[i];
                if (lg__cpu_kernels(w->isa) != c->bench->kernels)
                        continue;
                if (w->products_fit(a))
                        c->own[1] = w->products;
                if (weight || a->kind == LG_CONV_FORWARD || a->at.stride[0] == 1)
                        c->own[2] = weight ? w->weight : w->direct;
                if (w->winograd_fits(a))
                        c->own[3] = weight ? w->winograd_weight : w->winograd;
        }
}

/* Whether what two of them wrote is the same but for rounding. */
static bool agree(const float *a, const float *b, size_t count)
{
        double most = 0, difference = 0;
        for (size_t i = 0; i < count; i++) {
                most = fmax(most, fabs((double)b[i]));
                difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        }
        return difference <= 1e-4 * most;
}

static void report_case(one_case *c, const char *name)
{
        bench *b = c->bench;
        const size_t count = bench_convolution_count(&c->args, c->args.kind);
        bool here[1 + OTHERS];
        double seconds[1 + OTHERS], best = INFINITY;
        float *own = malloc(count * sizeof *own);
        run(c, OWN);
        if (own)
                memcpy(own, c->args.out, count * sizeof *own);
        printf("%-44s", name);
        for (int who = 0; who <= OTHERS; who++) {
                here[who] = c->own[who] || c->peers[who];
                if (!here[who])
                        continue;
                run(c, who);
                if (!own || !agree(own, c->args.out, count))
                        printf(" [%d differs]", who);
        }
        free(own);
        bench_turns(b, run, c, 1 + OTHERS, here, seconds);
        for (int who = 0; who <= OTHERS; who++) {
                best = who ? fmin(best, seconds[who]) : best;
                printf(here[who] ? " %9.1f" : "         -", seconds[who] * 1e6);
        }
        const double ratio = isfinite(best) ? best / seconds[OWN] : 1;
        bench_add(b, ratio);
        printf("  %5.2f\n", ratio);
        fflush(stdout);
}

static lg_conv_args arguments(const shape *s, lg_conv_kind kind)
{
        const int64_t out = (s->size + 2 * s->padding - s->dilation * (s->kernel - 1) - 1) / s->stride + 1;
        lg_conv_args a = {.kind = kind, .dtype = LG_F32, .n = s->n, .channels = s->channels, .outputs = s->outputs};
        a.at.groups = s->groups;
        for (int d = 0; d < 2; d++) {
                a.at.in[d] = s->size;
                a.at.kernel[d] = s->kernel;
                a.at.stride[d] = s->stride;
                a.at.padding[d] = s->padding;
                a.at.dilation[d] = s->dilation;
                a.at.out[d] = out;
        }
        return a;
}

static float *numbers(size_t count)
{
        float *p = aligned_alloc(64, (count * sizeof *p + 63) / 64 * 64);
        for (size_t i = 0; p && i < count; i++)
                p[i] = (float)((uint32_t)i * 2654435761u >> 21) / 1024 - 1;
        return p;
}

static bool report(bench *b, const shape *s, lg_conv_kind kind)
{
        one_case c = {b, arguments(s, kind), {b->kernels->conv}, {NULL}};
        lg_conv_args *a = &c.args;
        float *all[KINDS]; /* y, x, w: what each kind computes */
        char name[80];
        snprintf(name, sizeof name, "%s %d>%d %dx%d%s%.0d%s%.0d %dx%d b%d %s", s->network, s->channels, s->outputs,
                 s->kernel, s->kernel, s->stride > 1 ? " s" : "", s->stride > 1 ? s->stride : 0,
                 s->dilation > 1 ? " d" : "", s->dilation > 1 ? s->dilation : 0, s->size, s->size, s->n, kinds[kind]);
        if (!strstr(name, b->only))
                return true;
        bool enough = true;
        for (int i = 0; i < KINDS; i++)
                enough = (all[i] = numbers(bench_convolution_count(a, (lg_conv_kind)i))) && enough;
        a->g = all[LG_CONV_FORWARD];
        a->x = all[LG_CONV_INPUT_GRAD];
        a->w = all[LG_CONV_WEIGHT_GRAD];
        a->out = all[kind];
        if (b->given[0])
                set_algorithms(&c);
        for (int i = 0; enough && !b->given[0] && i < BENCH_ONEDNN_ALGORITHMS; i++)
                c.peers[1 + i] = bench_onednn_open(a, i);
        if (enough)
                report_case(&c, name);
        for (int i = 0; i <= OTHERS; i++)
                bench_onednn_close(c.peers[i]);
        for (int i = 0; i < KINDS; i++)
                free(all[i]);
        return enough;
}

int main(int count, char **args)
{
        bench b;
        int failed = bench_open(&b, count, args, (const char *const[]){"--algorithms", NULL});
        if (failed)
                return failed;
        printf("%-44s %9s %9s %9s %9s  ratio\n", "microseconds", "libgrad", b.given[0] ? "products" : "oneDNN",
               b.given[0] ? "direct" : "Winograd", b.given[0] ? "Winograd" : "");
        for (int i = 0; i < SHAPES && !failed; i++)
                for (int kind = 0; kind < KINDS && !failed; kind++)
                        failed = !report(&b, &shapes[i], (lg_conv_kind)kind);
        if (failed)
                fprintf(stderr, "no memory\n");
        bench_print(&b);
        bench_close(&b);
        return failed;
}
