/* blas.cu - matrix products by cuBLASLt. A ReLU is left to others, because the library's turns NaN into 0. */
#include "blas.h"
#include "blas_plan.h"
#include <stdio.h>
#include <stdlib.h>

#define WORKSPACE_ALIGNMENT 256

/* A queue's cuBLASLt handle and plans. */
typedef struct blas {
        cublasLtHandle_t handle;
        lg_blas_table table;
} blas;

static blas *open_blas(lg_queue *q)
{
        lg_cuda_queue *c = lg_cuda(q);
        if (!c->blas) {
                blas *b = (blas *)calloc(1, sizeof *b);
                if (!b) {
                        lg_queue_fail(q, LG_NO_MEMORY, "cuBLASLt: no memory for its plans");
                        return NULL;
                }
                cublasStatus_t s;
                do
                        s = cublasLtCreate(&b->handle);
                while (s != CUBLAS_STATUS_SUCCESS &&
                       lg_cuda_again(q, s == CUBLAS_STATUS_ALLOC_FAILED || s == CUBLAS_STATUS_NOT_INITIALIZED));
                if (!lg_blas_good(q, "cublasLtCreate", s)) {
                        free(b);
                        return NULL;
                }
                c->blas = b;
        }
        return (blas *)c->blas;
}

void lg_cuda_blas_version(char *words, size_t size)
{
        size_t v = cublasLtGetVersion(); /* cuBLASLt numbers versions so: 130100 is 13.1.0 */
        snprintf(words, size, "%d.%d.%d", (int)(v / 10000), (int)(v / 100 % 100), (int)(v % 100));
}

void lg_cuda_blas_close(lg_queue *q)
{
        blas *b = (blas *)lg_cuda(q)->blas;
        if (!b)
                return;
        lg_blas_end_table(&b->table);
        cublasLtDestroy(b->handle);
        free(b);
        lg_cuda(q)->blas = NULL;
}

/* Lists the addresses of the matrices of a batch: those of A, then of B, then of C. */
static __global__ void list_matrices(lg_gemm_args g, int64_t size, int64_t batch, const void **to)
{
        for (int64_t i = LG_FIRST; i < batch; i += LG_STEP) {
                to[i] = (const char *)g.a + lg_offset(g.batch_ndim, g.batch, g.a_batch, i) * size;
                to[batch + i] = (const char *)g.b + lg_offset(g.batch_ndim, g.batch, g.b_batch, i) * size;
                to[2 * batch + i] = (const char *)g.c + lg_offset(g.batch_ndim, g.batch, g.c_batch, i) * size;
        }
}

/* Replaces the operands of g by lists of their matrices, in scratch memory. */
static bool list_operands(lg_queue *q, lg_gemm_args *g, int64_t batch)
{
        const void **list = (const void **)q->workspace(q, (size_t)(3 * batch) * sizeof *list);
        if (!list || !lg_launch(q, "gemm (pointers)", list_matrices, lg_blocks(q, batch), *g,
                                (int64_t)lg_bytes_of(g->dtype), batch, list))
                return false;
        g->a = list;
        g->b = list + batch;
        g->c = list + 2 * batch;
        return true;
}

static bool run(lg_queue *q, blas *b, const lg_gemm_args *g, const lg_blas_plan *p)
{
        const lg_blas_descriptors *d = &p->descriptors;
        const float one = 1, beta = (float)g->beta;
        const double wide_one = 1, wide_beta = g->beta;
        const bool wide = g->dtype == LG_F64;
        char *workspace = NULL;
        if (p->workspace) { /* q->workspace() aligns to 64 bytes only */
                workspace = (char *)q->workspace(q, p->workspace + WORKSPACE_ALIGNMENT);
                if (!workspace)
                        return false;
                workspace += -(uintptr_t)workspace % WORKSPACE_ALIGNMENT;
        }
        if (p->key.biased && !lg_blas_good(q, "cublasLtMatmulDescSetAttribute",
                                           cublasLtMatmulDescSetAttribute(d->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                                          &g->bias, sizeof g->bias)))
                return false;
        cublasStatus_t s;
        lg_cuda_count_launch();
        do
                s = cublasLtMatmul(b->handle, d->product, wide ? (const void *)&wide_one : &one, g->b, d->b, g->a, d->a,
                                   wide ? (const void *)&wide_beta : &beta, g->c, d->c, g->c, d->c, &p->algorithm,
                                   workspace, p->workspace, lg_cuda(q)->stream);
        while (s != CUBLAS_STATUS_SUCCESS && lg_cuda_again(q, s == CUBLAS_STATUS_ALLOC_FAILED));
        return lg_blas_good(q, "cublasLtMatmul", s);
}

lg_blas_answer lg_cuda_blas(lg_queue *q, const lg_gemm_args *given, bool bias)
{
        lg_gemm_args g = *given;
        lg_blas_key key;
        if (!lg_is_float(g.dtype) || !lg_blas_make_key(q, &g, bias, &key))
                return LG_BLAS_NOTHING;
        blas *b = open_blas(q);
        const lg_blas_plan *p = b ? lg_blas_plan_for(q, b->handle, &b->table, &key) : NULL;
        if (!p)
                return LG_BLAS_FAILED;
        if (!p->found)
                return LG_BLAS_NOTHING;
        if (key.pointers && !list_operands(q, &g, key.batch))
                return LG_BLAS_FAILED;
        return run(q, b, &g, p) ? LG_BLAS_DONE : LG_BLAS_FAILED;
}
