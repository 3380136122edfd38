/* blas.cu - matrix products by cuBLASLt.
 *
 * cuBLASLt's matrices are column-major, so C = A B is computed as C^T = B^T A^T: row-major operands then need no
 * transposition. A bias is added by the library's epilogue. A ReLU is not, because the library's turns NaN into 0.
 */
#include "blas.h"
#include <cublasLt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORKSPACE ((uint64_t)32 << 20)
#define WORKSPACE_ALIGNMENT 256
#define SETS 128
#define WAYS 4

/* Everything that the choice of an algorithm depends on. Zeroed before it is filled, so that keys compare by bytes. */
typedef struct blas_key {
        int64_t m, n, k, lda, ldb, ldc, a_batch, b_batch, c_batch;
        int32_t batch, dtype;
        uint16_t a_alignment, b_alignment, c_alignment; /* alignments of the addresses, in bytes */
        bool biased, a_transposed, b_transposed, deterministic, tf32;
        uint8_t unused[5];
} blas_key;

typedef struct blas_plan {
        blas_key key;
        bool known, found; /* known: cuBLASLt was asked; found: it has an algorithm */
        cublasLtMatmulAlgo_t algorithm;
        size_t workspace;
} blas_plan;

/* A queue's cuBLASLt handle and a bounded table of plans, in which a new plan replaces the oldest of its set. */
typedef struct blas {
        cublasLtHandle_t handle;
        blas_plan plans[SETS][WAYS];
        unsigned char oldest[SETS];
} blas;

static bool good(lg_queue *q, const char *call, cublasStatus_t s)
{
        return s == CUBLAS_STATUS_SUCCESS ||
               lg_queue_fail(q, s == CUBLAS_STATUS_ALLOC_FAILED ? LG_NO_MEMORY : LG_BROKEN, "%s: %s", call,
                             cublasLtGetStatusString(s));
}

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
                if (!good(q, "cublasLtCreate", s)) {
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
        if (b)
                cublasLtDestroy(b->handle);
        free(b);
        lg_cuda(q)->blas = NULL;
}

/* ---- keys and descriptors ---- */

/* Finds how a matrix with strides row and col is stored. Returns false if neither rows nor columns are contiguous. */
static bool stored(int64_t rows, int64_t cols, int64_t row, int64_t col, bool *ret_transposed, int64_t *ret_ld)
{
        bool by_row = (col == 1 || cols <= 1) && (rows <= 1 || row >= cols);
        bool by_col = (row == 1 || rows <= 1) && (cols <= 1 || col >= rows);
        *ret_transposed = !by_row;
        *ret_ld = by_row ? (rows <= 1 ? cols : row) : cols <= 1 ? rows : col;
        return by_row || by_col;
}

/* Returns the largest power of two that divides the address p, at most 256. */
static uint16_t alignment_of(const void *p)
{
        uintptr_t at = (uintptr_t)p | 256;
        return (uint16_t)(at & (~at + 1));
}

/* Fills *k. Returns false if cuBLASLt cannot compute the product: by its strides, or as its sizes exceed 32 bits. */
static bool make_key(lg_queue *q, const lg_gemm_args *g, bool bias, blas_key *k)
{
        memset(k, 0, sizeof *k);
        if (!stored(g->m, g->k, g->a_row, g->a_col, &k->a_transposed, &k->lda) ||
            !stored(g->k, g->n, g->b_row, g->b_col, &k->b_transposed, &k->ldb))
                return false;
        k->m = g->m;
        k->n = g->n;
        k->k = g->k;
        k->ldc = g->m == 1 ? g->n : g->ldc;
        k->dtype = g->dtype;
        k->batch = 1;
        if (g->batch_ndim) {
                k->batch = (int32_t)g->batch[0];
                k->a_batch = g->a_batch[0];
                k->b_batch = g->b_batch[0];
                k->c_batch = g->c_batch[0];
        }
        k->a_alignment = alignment_of(g->a);
        k->b_alignment = alignment_of(g->b);
        k->c_alignment = alignment_of(g->c);
        k->biased = bias;
        k->deterministic = q->deterministic;
        k->tf32 = q->tf32 && g->dtype == LG_F32;
        const int64_t most = INT32_MAX;
        return k->m <= most && k->n <= most && k->k <= most && k->lda <= most && k->ldb <= most && k->ldc <= most;
}

/* The library's descriptors of a product, destroyed with this object. */
struct records {
        cublasLtMatmulDesc_t product = NULL;
        cublasLtMatrixLayout_t a = NULL, b = NULL, c = NULL;
        cublasLtMatmulPreference_t preference = NULL;

        records() = default;
        records(const records &) = delete;
        records &operator=(const records &) = delete;
        ~records()
        {
                if (product)
                        cublasLtMatmulDescDestroy(product);
                for (cublasLtMatrixLayout_t layout : {a, b, c})
                        if (layout)
                                cublasLtMatrixLayoutDestroy(layout);
                if (preference)
                        cublasLtMatmulPreferenceDestroy(preference);
        }
};

static cudaDataType_t data_type(int32_t dtype)
{
        return dtype == LG_F64 ? CUDA_R_64F : dtype == LG_F32 ? CUDA_R_32F : dtype == LG_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

/* Describes a batch of column-major `rows` x `cols` matrices with leading dimension ld, `stride` elements apart. */
static bool make_layout(lg_queue *q, cublasLtMatrixLayout_t *ret, const blas_key *k, int64_t rows, int64_t cols,
                        int64_t ld, int64_t stride)
{
        return good(q, "cublasLtMatrixLayoutCreate",
                    cublasLtMatrixLayoutCreate(ret, data_type(k->dtype), (uint64_t)rows, (uint64_t)cols, ld)) &&
               good(q, "cublasLtMatrixLayoutSetAttribute",
                    cublasLtMatrixLayoutSetAttribute(*ret, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &k->batch,
                                                     sizeof k->batch)) &&
               good(q, "cublasLtMatrixLayoutSetAttribute",
                    cublasLtMatrixLayoutSetAttribute(*ret, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                     sizeof stride));
}

template <typename T>
static bool set(lg_queue *q, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const T &value)
{
        return good(q, "cublasLtMatmulDescSetAttribute",
                    cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof value));
}

static bool make_product(lg_queue *q, const blas_key *k, const void *bias, records *r)
{
        const bool wide = k->dtype == LG_F64;
        const cublasComputeType_t compute = wide      ? CUBLAS_COMPUTE_64F
                                            : k->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                      : CUBLAS_COMPUTE_32F;
        const int32_t first = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        if (!good(q, "cublasLtMatmulDescCreate",
                  cublasLtMatmulDescCreate(&r->product, compute, wide ? CUDA_R_64F : CUDA_R_32F)) ||
            !set(q, r->product, CUBLASLT_MATMUL_DESC_TRANSA, first) ||
            !set(q, r->product, CUBLASLT_MATMUL_DESC_TRANSB, second))
                return false;
        return !k->biased || (set(q, r->product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
                              set(q, r->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
}

/* Describes the product in the library's order: its first matrix is B, its rows are the columns of C. */
static bool describe(lg_queue *q, const blas_key *k, const void *bias, records *r)
{
        return make_product(q, k, bias, r) &&
               make_layout(q, &r->b, k, k->b_transposed ? k->k : k->n, k->b_transposed ? k->n : k->k, k->ldb,
                           k->b_batch) &&
               make_layout(q, &r->a, k, k->a_transposed ? k->m : k->k, k->a_transposed ? k->k : k->m, k->lda,
                           k->a_batch) &&
               make_layout(q, &r->c, k, k->n, k->m, k->ldc, k->c_batch);
}

/* ---- choice of the algorithm ---- */

template <typename T>
static bool prefer(lg_queue *q, records *r, cublasLtMatmulPreferenceAttributes_t attribute, T value)
{
        return good(q, "cublasLtMatmulPreferenceSetAttribute",
                    cublasLtMatmulPreferenceSetAttribute(r->preference, attribute, &value, sizeof value));
}

static bool make_preference(lg_queue *q, const blas_key *k, records *r)
{
        /* If strict, partial sums are stored in the workspace in the compute type and added in a separate step: in a
         * fixed order and not rounded to 16 bits. */
        const bool strict = k->deterministic || k->dtype == LG_F16 || k->dtype == LG_BF16;
        const uint32_t schemes = strict ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
        return good(q, "cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate(&r->preference)) &&
               prefer<uint64_t>(q, r, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, MOST_WORKSPACE) &&
               prefer<uint32_t>(q, r, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes) &&
               prefer<uint32_t>(q, r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, k->b_alignment) &&
               prefer<uint32_t>(q, r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, k->a_alignment) &&
               prefer<uint32_t>(q, r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, k->c_alignment) &&
               prefer<uint32_t>(q, r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, k->c_alignment);
}

/* Asks cuBLASLt for an algorithm and stores the answer in p, even if there is none. */
static bool ask(lg_queue *q, blas *b, records *r, blas_plan *p)
{
        cublasLtMatmulHeuristicResult_t best;
        int count = 0;
        if (!make_preference(q, &p->key, r))
                return false;
        cublasStatus_t s = cublasLtMatmulAlgoGetHeuristic(b->handle, r->product, r->b, r->a, r->c, r->c, r->preference,
                                                          1, &best, &count);
        bool refused = s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE ||
                       s == CUBLAS_STATUS_ARCH_MISMATCH;
        if (!refused && !good(q, "cublasLtMatmulAlgoGetHeuristic", s))
                return false;
        p->found = !refused && count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
        if (p->found) {
                p->algorithm = best.algo;
                p->workspace = best.workspaceSize;
        }
        p->known = true;
        return true;
}

/* Returns the plan for key k. If there is none, returns a slot that has the key, with known = false. */
static blas_plan *look_up(blas *b, const blas_key *k)
{
        static_assert(sizeof(blas_key) % 8 == 0, "a key is hashed by words");
        uint64_t word, hash = 14695981039346656037u;
        for (size_t i = 0; i < sizeof *k; i += 8) {
                memcpy(&word, (const char *)k + i, 8);
                hash = (hash ^ word) * 1099511628211u;
                hash ^= hash >> 29;
        }
        size_t set = hash % SETS;
        for (int i = 0; i < WAYS; i++)
                if (b->plans[set][i].known && memcmp(&b->plans[set][i].key, k, sizeof *k) == 0)
                        return &b->plans[set][i];
        blas_plan *p = &b->plans[set][b->oldest[set]];
        b->oldest[set] = (unsigned char)((b->oldest[set] + 1) % WAYS);
        memset(p, 0, sizeof *p);
        p->key = *k;
        return p;
}

/* ---- products ---- */

static bool run(lg_queue *q, blas *b, const lg_gemm_args *g, const records *r, const blas_plan *p)
{
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
        cublasStatus_t s;
        lg_cuda_count_launch();
        do
                s = cublasLtMatmul(b->handle, r->product, wide ? (const void *)&wide_one : &one, g->b, r->b, g->a, r->a,
                                   wide ? (const void *)&wide_beta : &beta, g->c, r->c, g->c, r->c, &p->algorithm,
                                   workspace, p->workspace, lg_cuda(q)->stream);
        while (s != CUBLAS_STATUS_SUCCESS && lg_cuda_again(q, s == CUBLAS_STATUS_ALLOC_FAILED));
        return good(q, "cublasLtMatmul", s);
}

lg_blas_answer lg_cuda_blas(lg_queue *q, const lg_gemm_args *g, bool bias)
{
        blas_key key;
        if (!make_key(q, g, bias, &key))
                return LG_BLAS_NOTHING;
        blas *b = open_blas(q);
        if (!b)
                return LG_BLAS_FAILED;
        blas_plan *p = look_up(b, &key);
        if (p->known && !p->found)
                return LG_BLAS_NOTHING;
        records r;
        if (!describe(q, &key, g->bias, &r) || (!p->known && !ask(q, b, &r, p)))
                return LG_BLAS_FAILED;
        if (!p->found)
                return LG_BLAS_NOTHING;
        return run(q, b, g, &r, p) ? LG_BLAS_DONE : LG_BLAS_FAILED;
}
