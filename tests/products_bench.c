/* products_bench.c - the CPU's matrix products beside OpenBLAS, BLIS and oneDNN, by turns on one thread.
 *
 *     BUILD/tests/products_bench [--force] [--isa avx512|avx2|portable] [--seconds S]
 *
 * The libraries are loaded where this machine has them. --force makes OpenBLAS and BLIS take their AVX-512 kernels,
 * which they do not choose on every processor that has the instructions. Prints GFLOP/s by CPU time, the ratio to the
 * best of the others, and at the end the geometric mean of the ratios and the lowest.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../kernels/cpu/isa.h"

typedef struct shape {
        int m, n, k;
        char a, b; /* T: stored as the transpose */
        int batch;
} shape;

/* Squares; layers of the workloads of lg-bench, forward and both gradients; heads of attention; convolutions of 1 x 1.
 */
static const shape shapes[] = {
        {64, 64, 64, 'N', 'N', 1},       {128, 128, 128, 'N', 'N', 1},    {256, 256, 256, 'N', 'N', 1},
        {512, 512, 512, 'N', 'N', 1},    {768, 768, 768, 'N', 'N', 1},    {1024, 1024, 1024, 'N', 'N', 1},
        {1024, 1024, 1024, 'N', 'T', 1}, {1024, 1024, 1024, 'T', 'N', 1}, {96, 96, 96, 'N', 'T', 1},
        {200, 200, 200, 'N', 'T', 1},    {333, 333, 333, 'N', 'N', 1},    {32, 64, 4, 'N', 'T', 1},
        {32, 64, 64, 'N', 'T', 1},       {64, 64, 32, 'T', 'N', 1},       {32, 64, 64, 'N', 'N', 1},
        {256, 64, 64, 'N', 'T', 1},      {256, 64, 64, 'N', 'N', 1},      {64, 64, 256, 'T', 'N', 1},
        {256, 64, 2, 'N', 'T', 1},       {64, 128, 784, 'N', 'T', 1},     {128, 784, 64, 'T', 'N', 1},
        {64, 10, 128, 'N', 'T', 1},      {10, 128, 64, 'T', 'N', 1},      {64, 128, 10, 'N', 'N', 1},
        {128, 512, 784, 'N', 'T', 1},    {512, 784, 128, 'T', 'N', 1},    {128, 512, 512, 'N', 'T', 1},
        {128, 512, 512, 'N', 'N', 1},    {512, 512, 128, 'T', 'N', 1},    {128, 10, 512, 'N', 'T', 1},
        {10, 512, 128, 'T', 'N', 1},     {128, 512, 10, 'N', 'N', 1},     {64, 120, 400, 'N', 'T', 1},
        {120, 400, 64, 'T', 'N', 1},     {64, 400, 120, 'N', 'N', 1},     {64, 84, 120, 'N', 'T', 1},
        {84, 120, 64, 'T', 'N', 1},      {64, 120, 84, 'N', 'N', 1},      {64, 128, 12544, 'N', 'T', 1},
        {64, 12544, 128, 'N', 'N', 1},   {128, 12544, 64, 'T', 'N', 1},   {12544, 128, 64, 'N', 'N', 1},
        {12544, 64, 128, 'N', 'T', 1},   {64, 128, 12544, 'T', 'N', 1},   {1024, 768, 256, 'N', 'T', 1},
        {1024, 256, 768, 'N', 'N', 1},   {768, 256, 1024, 'T', 'N', 1},   {1024, 256, 256, 'N', 'T', 1},
        {256, 256, 1024, 'T', 'N', 1},   {1024, 1024, 256, 'N', 'T', 1},  {1024, 256, 1024, 'N', 'T', 1},
        {1024, 256, 1024, 'N', 'N', 1},  {1024, 1024, 256, 'N', 'N', 1},  {256, 1024, 1024, 'T', 'N', 1},
        {128, 128, 32, 'N', 'T', 64},    {128, 32, 128, 'N', 'N', 64},    {128, 32, 128, 'T', 'N', 64},
        {2048, 128, 64, 'N', 'T', 1},    {2048, 64, 128, 'N', 'N', 1},    {128, 64, 2048, 'T', 'N', 1},
        {512, 256, 128, 'N', 'T', 1},    {512, 512, 256, 'N', 'T', 1},    {16, 1000, 512, 'N', 'T', 1},
        {1, 4096, 1024, 'N', 'T', 1},    {4096, 1, 1024, 'N', 'N', 1},    {4096, 16, 64, 'N', 'N', 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, PEERS = 3, ROUNDS = 5 };

typedef void cblas_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                      const float *b, int ldb, float beta, float *c, int ldc);
typedef int dnnl_fn(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                    const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

typedef struct peer {
        const char *name, *files[3], *function;
        union {
                void *found; /* NULL: not on this machine */
                cblas_fn *cblas;
                dnnl_fn *dnnl;
        } call;
} peer;
static peer peers[PEERS] = {
        {"OpenBLAS", {"libopenblas.so.0", "libopenblas-r0.so.0"}, "cblas_sgemm", {NULL}},
        {"BLIS", {"libblis.so.4", "libblis.so.3"}, "cblas_sgemm", {NULL}},
        {"oneDNN", {"libdnnl.so.3", "libdnnl.so.2"}, "dnnl_sgemm", {NULL}},
};

typedef struct bench {
        lg_queue queue;
        const lg_kernels *kernels;
        float *a, *b, *c;
        void *scratch[64];
        int pieces;
} bench;

static void *scratch(lg_queue *q, size_t bytes)
{
        bench *b = q->owner;
        return b->pieces < 64 ? b->scratch[b->pieces++] = aligned_alloc(64, (bytes + 64) / 64 * 64) : NULL;
}

static double cpu_seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run_own(bench *x, const shape *s)
{
        lg_gemm_args g = {.dtype = LG_F32, .m = s->m, .n = s->n, .k = s->k, .a = x->a, .b = x->b, .c = x->c};
        g.a_row = s->a == 'T' ? 1 : s->k;
        g.a_col = s->a == 'T' ? s->m : 1;
        g.b_row = s->b == 'T' ? 1 : s->n;
        g.b_col = s->b == 'T' ? s->k : 1;
        g.ldc = s->n;
        if (s->batch > 1) {
                g.batch_ndim = 1;
                g.batch[0] = s->batch;
                g.a_batch[0] = (int64_t)s->m * s->k;
                g.b_batch[0] = (int64_t)s->n * s->k;
                g.c_batch[0] = (int64_t)s->m * s->n;
        }
        x->kernels->gemm(&x->queue, &g);
        while (x->pieces)
                free(x->scratch[--x->pieces]);
}

static void run_peer(bench *x, const shape *s, const peer *p)
{
        enum { row_major = 101, plain = 111, transposed = 112 };
        const int lda = s->a == 'T' ? s->m : s->k, ldb = s->b == 'T' ? s->k : s->n;
        for (int i = 0; i < s->batch; i++) {
                const float *a = x->a + (size_t)i * (size_t)(s->m * s->k),
                            *b = x->b + (size_t)i * (size_t)(s->n * s->k);
                float *c = x->c + (size_t)i * (size_t)(s->m * s->n);
                if (p == &peers[2])
                        p->call.dnnl(s->a, s->b, s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
                else
                        p->call.cblas(row_major, s->a == 'T' ? transposed : plain, s->b == 'T' ? transposed : plain,
                                      s->m, s->n, s->k, 1, a, lda, b, ldb, 0, c, s->n);
        }
}

static void run(bench *x, const shape *s, int who)
{
        if (who == 0)
                run_own(x, s);
        else
                run_peer(x, s, &peers[who - 1]);
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* GFLOP/s of each, 0 where it is not there: the median of rounds in which they take turns. */
static void measure(bench *x, const shape *s, double seconds, double rate[1 + PEERS])
{
        const double flops = 2.0 * s->m * s->n * s->k * s->batch;
        double took[1 + PEERS][ROUNDS];
        for (int r = -1; r < ROUNDS; r++) { /* the first one warms up */
                for (int who = 0; who <= PEERS; who++) {
                        if (who && !peers[who - 1].call.found)
                                continue;
                        int calls = r < 0 ? 1 : (int)(seconds / ROUNDS / (flops / 1e11)) + 1;
                        double start = cpu_seconds();
                        for (int i = 0; i < calls; i++)
                                run(x, s, who);
                        took[who][r < 0 ? 0 : r] = (cpu_seconds() - start) / calls;
                }
        }
        for (int who = 0; who <= PEERS; who++) {
                rate[who] = 0;
                if (who && !peers[who - 1].call.found)
                        continue;
                qsort(took[who], ROUNDS, sizeof(double), compare);
                rate[who] = flops / took[who][ROUNDS / 2] * 1e-9;
        }
}

static void report(bench *x, double seconds)
{
        double sum = 0, lowest = INFINITY;
        printf("%-24s %8s %9s %9s %9s  ratio\n", "m n k", "libgrad", peers[0].name, peers[1].name, peers[2].name);
        for (int i = 0; i < SHAPES; i++) {
                const shape *s = &shapes[i];
                double rate[1 + PEERS], best = 0;
                char name[64];
                measure(x, s, seconds, rate);
                for (int who = 1; who <= PEERS; who++)
                        best = fmax(best, rate[who]);
                const double ratio = best > 0 ? rate[0] / best : 1;
                sum += log(ratio);
                lowest = fmin(lowest, ratio);
                snprintf(name, sizeof name, "%d %d %d %c%c", s->m, s->n, s->k, s->a, s->b);
                if (s->batch > 1)
                        snprintf(name, sizeof name, "%d x %d %d %d %c%c", s->batch, s->m, s->n, s->k, s->a, s->b);
                printf("%-24s %8.1f %9.1f %9.1f %9.1f  %5.2f\n", name, rate[0], rate[1], rate[2], rate[3], ratio);
                fflush(stdout);
        }
        printf("%d shapes: geometric mean %.3f, lowest %.2f\n", SHAPES, exp(sum / SHAPES), lowest);
}

static void load(peer *p)
{
        for (int i = 0; i < 3 && p->files[i] && !p->call.found; i++) {
                void *library = dlopen(p->files[i], RTLD_NOW | RTLD_LOCAL);
                p->call.found = library ? dlsym(library, p->function) : NULL;
        }
}

int main(int count, char **args)
{
        const char *isa = NULL;
        double seconds = 0.2;
        bool force = false;
        for (int i = 1; i < count; i++) {
                if (!strcmp(args[i], "--force"))
                        force = true;
                else if (!strcmp(args[i], "--isa") && i + 1 < count)
                        isa = args[++i];
                else if (!strcmp(args[i], "--seconds") && i + 1 < count)
                        seconds = atof(args[++i]);
                else
                        return fprintf(stderr, "usage: %s [--force] [--isa ISA] [--seconds S]\n", args[0]), 2;
        }
        const char *threads = getenv("OMP_NUM_THREADS");
        if (!threads || strcmp(threads, "1") != 0) { /* OpenMP reads it before main() */
                setenv("OMP_NUM_THREADS", "1", true);
                setenv("OPENBLAS_NUM_THREADS", "1", true);
                execv("/proc/self/exe", args);
        }
        if (force) {
                setenv("OPENBLAS_CORETYPE", "SkylakeX", true);
                setenv("BLIS_ARCH_TYPE", "0", true);
        }
        for (int i = 0; i < PEERS; i++)
                load(&peers[i]);
        bench x = {.queue = {.api = lg_cpu_device(), .threads = 1, .workspace = scratch}};
        x.kernels = isa ? lg__cpu_kernels(isa) : x.queue.api->kernels;
        x.queue.owner = &x;
        const size_t most = (size_t)4 << 20;
        x.a = aligned_alloc(64, most * sizeof(float));
        x.b = aligned_alloc(64, most * sizeof(float));
        x.c = aligned_alloc(64, most * sizeof(float));
        if (!x.kernels || !x.a || !x.b || !x.c)
                return fprintf(stderr, "no such instruction set, or no memory\n"), 1;
        for (size_t i = 0; i < most; i++)
                x.a[i] = x.b[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
        report(&x, seconds);
        free(x.a);
        free(x.b);
        free(x.c);
        return 0;
}
