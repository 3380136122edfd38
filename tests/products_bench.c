/* products_bench.c - the CPU's matrix products beside OpenBLAS, BLIS and oneDNN, by turns on one thread.
 *
 *     BUILD/tests/products_bench [--force] [--bf16|--f16] [--isa avx512|avx2|portable] [--seconds S] [--only TEXT]
 *
 * The libraries are loaded where this machine has them. --force makes OpenBLAS and BLIS take their AVX-512 kernels,
 * which they do not choose on every processor that has the instructions. Prints GFLOP/s by CPU time, the ratio to the
 * best of the others, and at the end the geometric mean of the ratios and the lowest. --only: of shapes whose line has
 * the text, as "12544" or " TN". --bf16 and --f16: own products of that type beside own ones of f32.
 */
#include "bench.h"

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
enum { SHAPES = sizeof shapes / sizeof *shapes, PEERS = 3, OWN_F32, WHO };

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

typedef struct one_case {
        bench *bench;
        const shape *shape;
        lg_dtype dtype;
        float *a, *b, *c;
} one_case;

static void run_own(const one_case *x, lg_dtype dtype)
{
        const shape *s = x->shape;
        lg_gemm_args g = {.dtype = dtype, .m = s->m, .n = s->n, .k = s->k, .a = x->a, .b = x->b, .c = x->c};
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
        bench_reuse(x->bench);
        x->bench->kernels->gemm(&x->bench->queue, &g);
}

static void run_peer(const one_case *x, const peer *p)
{
        const shape *s = x->shape;
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

static void run(void *case_, int who)
{
        const one_case *x = case_;
        if (who == 0)
                run_own(x, x->dtype);
        else if (who == OWN_F32)
                run_own(x, LG_F32);
        else
                run_peer(x, &peers[who - 1]);
}

static void report(one_case *x)
{
        const shape *s = x->shape;
        const double flops = 2.0 * s->m * s->n * s->k * s->batch;
        bool here[WHO] = {true};
        double time[WHO], best = INFINITY;
        char name[64];
        snprintf(name, sizeof name, "%d %d %d %c%c", s->m, s->n, s->k, s->a, s->b);
        if (s->batch > 1)
                snprintf(name, sizeof name, "%d x %d %d %d %c%c", s->batch, s->m, s->n, s->k, s->a, s->b);
        if (!strstr(name, x->bench->only))
                return;
        for (int who = 1; who < WHO; who++)
                here[who] = who == OWN_F32 ? x->dtype != LG_F32 : x->dtype == LG_F32 && peers[who - 1].call.found;
        bench_turns(x->bench, run, x, WHO, here, time);
        printf("%-24s", name);
        for (int who = 0; who < WHO; who++) {
                printf(" %9.1f", flops / time[who] * 1e-9);
                best = who ? fmin(best, time[who]) : best;
        }
        printf("  %5.2f\n", best / time[0]);
        fflush(stdout);
        if (best < INFINITY)
                bench_add(x->bench, best / time[0]);
}

static float *numbers(void)
{
        const size_t count = (size_t)4 << 20;
        float *p = aligned_alloc(64, count * sizeof *p);
        for (size_t i = 0; p && i < count; i++)
                p[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
        return p;
}

int main(int count, char **args)
{
        bench b;
        int failed = bench_open(&b, count, args, (const char *const[]){"--force", "--bf16", "--f16", NULL});
        if (failed)
                return failed;
        if (b.given[0]) {
                setenv("OPENBLAS_CORETYPE", "SkylakeX", true);
                setenv("BLIS_ARCH_TYPE", "0", true);
        }
        for (int i = 0; i < PEERS; i++)
                peers[i].call.found = bench_find(peers[i].files, peers[i].function);
        one_case x = {.bench = &b, .a = numbers(), .b = numbers(), .c = numbers()};
        x.dtype = b.given[1] ? LG_BF16 : b.given[2] ? LG_F16 : LG_F32;
        failed = !x.a || !x.b || !x.c;
        printf("%-24s %9s %9s %9s %9s %9s  ratio\n", "m n k; GFLOP/s", "libgrad", peers[0].name, peers[1].name,
               peers[2].name, "own f32");
        for (int i = 0; i < SHAPES && !failed; i++) {
                x.shape = &shapes[i];
                report(&x);
        }
        if (failed)
                fprintf(stderr, "no memory\n");
        bench_print(&b);
        bench_close(&b);
        free(x.a);
        free(x.b);
        free(x.c);
        return failed;
}
