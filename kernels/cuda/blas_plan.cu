/* blas_plan.cu - keys and plans of matrix products by cuBLASLt: descriptors, and the choice of an algorithm.
 *
 * cuBLASLt's matrices are column-major, so C = A B is computed as C^T = B^T A^T: row-major operands then need no
 * transposition. A bias is added by the library's epilogue.
 */
#include "blas_plan.h"
#include <mutex>
#include <string.h>

#define MOST_WORKSPACE ((uint64_t)32 << 20)
#define FIRST_WITH_LISTS 130000 /* first version of cuBLAS with lists of matrices */
#define BIAS_ALIGNMENT 16

/* The answers of cuBLASLt to all queues of the process: plans without descriptors. */
static lg_blas_table answers;
static std::mutex answers_lock;

bool lg_blas_good(lg_queue *q, const char *call, cublasStatus_t s)
{
        return s == CUBLAS_STATUS_SUCCESS ||
               lg_queue_fail(q, s == CUBLAS_STATUS_ALLOC_FAILED ? LG_NO_MEMORY : LG_BROKEN, "%s: %s", call,
                             cublasLtGetStatusString(s));
}

/* ---- tables of plans ---- */

static void end_descriptors(lg_blas_descriptors *d)
{
        if (d->product)
                cublasLtMatmulDescDestroy(d->product);
        for (cublasLtMatrixLayout_t layout : {d->a, d->b, d->c})
                if (layout)
                        cublasLtMatrixLayoutDestroy(layout);
        *d = {};
}

static uint64_t hash_of(const lg_blas_key *k)
{
        static_assert(sizeof(lg_blas_key) % 8 == 0, "a key is hashed by words");
        uint64_t word, hash = 14695981039346656037u;
        for (size_t i = 0; i < sizeof *k; i += 8) {
                memcpy(&word, (const char *)k + i, 8);
                hash = (hash ^ word) * 1099511628211u;
                hash ^= hash >> 29;
        }
        return hash;
}

static size_t set_of(const lg_blas_key *k)
{
        return hash_of(k) % LG_BLAS_SETS;
}

/* Returns the plan for key k, or NULL. */
static lg_blas_plan *find_plan(lg_blas_table *t, const lg_blas_key *k)
{
        for (lg_blas_plan &p : t->plans[set_of(k)])
                if (p.used && memcmp(&p.key, k, sizeof *k) == 0)
                        return &p;
        return NULL;
}

static lg_blas_plan *add_plan(lg_blas_table *t, const lg_blas_plan *plan)
{
        const size_t set = set_of(&plan->key);
        lg_blas_plan *p = &t->plans[set][t->oldest[set]];
        t->oldest[set] = (unsigned char)((t->oldest[set] + 1) % LG_BLAS_WAYS);
        end_descriptors(&p->descriptors);
        *p = *plan;
        return p;
}

/* Copies the answer for p's key from the answers to the process. Returns false if there is none. */
static bool recall_answer(lg_blas_plan *p)
{
        std::lock_guard<std::mutex> guard(answers_lock);
        const lg_blas_plan *known = find_plan(&answers, &p->key);
        if (known)
                *p = *known;
        return known != NULL;
}

static void share_answer(const lg_blas_plan *p)
{
        lg_blas_plan answer = *p;
        answer.descriptors = {};
        std::lock_guard<std::mutex> guard(answers_lock);
        add_plan(&answers, &answer);
}

/* Forgets the answers of cuBLASLt, for tests of what happens if a question fails. */
extern "C" __attribute__((visibility("default"))) void lg_cuda_forget_algorithms(void)
{
        std::lock_guard<std::mutex> guard(answers_lock);
        memset(&answers, 0, sizeof answers);
}

void lg_blas_end_table(lg_blas_table *t)
{
        for (auto &set : t->plans)
                for (lg_blas_plan &p : set)
                        end_descriptors(&p.descriptors);
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

/* Returns the alignment of an operand's matrices: a power of two of bytes, at most 16, for which kernels ask. If their
 * addresses are listed, that of all is found by the distances in the batch, too. */
static uint8_t alignment_of(const lg_gemm_args *g, const void *first, const int64_t *distances, bool listed)
{
        uintptr_t at = (uintptr_t)first | 16;
        for (int d = 0; listed && d < g->batch_ndim; d++)
                at |= (uintptr_t)distances[d] * lg_bytes_of(g->dtype);
        return (uint8_t)(at & (~at + 1));
}

bool lg_blas_make_key(lg_queue *q, const lg_gemm_args *g, bool bias, lg_blas_key *k)
{
        memset(k, 0, sizeof *k);
        k->pointers = g->batch_ndim > 1;
        if ((k->pointers && CUBLAS_VERSION < FIRST_WITH_LISTS) ||
            !stored(g->m, g->k, g->a_row, g->a_col, &k->a_transposed, &k->lda) ||
            !stored(g->k, g->n, g->b_row, g->b_col, &k->b_transposed, &k->ldb))
                return false;
        const int64_t batch = lg_count(g->batch_ndim, g->batch), most = INT32_MAX;
        k->m = g->m;
        k->n = g->n;
        k->k = g->k;
        k->ldc = g->m == 1 ? g->n : g->ldc;
        k->dtype = g->dtype;
        k->device = q->index;
        k->batch = (int32_t)batch;
        if (g->batch_ndim == 1) {
                k->a_batch = g->a_batch[0];
                k->b_batch = g->b_batch[0];
                k->c_batch = g->c_batch[0];
        }
        k->a_alignment = alignment_of(g, g->a, g->a_batch, k->pointers);
        k->b_alignment = alignment_of(g, g->b, g->b_batch, k->pointers);
        k->c_alignment = alignment_of(g, g->c, g->c_batch, k->pointers);
        k->biased = bias;
        k->deterministic = q->deterministic;
        k->tf32 = q->tf32 && g->dtype == LG_F32;
        return k->m <= most && k->n <= most && k->k <= most && k->lda <= most && k->ldb <= most && k->ldc <= most &&
               batch <= most;
}

static cudaDataType_t data_type(int32_t dtype)
{
        return dtype == LG_F64 ? CUDA_R_64F : dtype == LG_F32 ? CUDA_R_32F : dtype == LG_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

template <typename T>
static bool lay(lg_queue *q, cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T value)
{
        return lg_blas_good(q, "cublasLtMatrixLayoutSetAttribute",
                            cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
}

/* Describes a batch of column-major `rows` x `cols` matrices with leading dimension ld, `stride` elements apart. */
static bool make_layout(lg_queue *q, cublasLtMatrixLayout_t *ret, const lg_blas_key *k, int64_t rows, int64_t cols,
                        int64_t ld, int64_t stride)
{
        if (!lg_blas_good(q, "cublasLtMatrixLayoutCreate",
                          cublasLtMatrixLayoutCreate(ret, data_type(k->dtype), (uint64_t)rows, (uint64_t)cols, ld)) ||
            !lay(q, *ret, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, k->batch))
                return false;
#if CUBLAS_VERSION >= FIRST_WITH_LISTS
        if (k->pointers)
                return lay<uint32_t>(q, *ret, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, CUBLASLT_BATCH_MODE_POINTER_ARRAY);
#endif
        return lay(q, *ret, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
}

template <typename T>
static bool set(lg_queue *q, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const T &value)
{
        return lg_blas_good(q, "cublasLtMatmulDescSetAttribute",
                            cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof value));
}

static bool make_product(lg_queue *q, const lg_blas_key *k, cublasLtMatmulDesc_t *ret)
{
        const bool wide = k->dtype == LG_F64;
        const cublasComputeType_t compute = wide      ? CUBLAS_COMPUTE_64F
                                            : k->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                      : CUBLAS_COMPUTE_32F;
        const int32_t first = k->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = k->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        /* The choice of an algorithm depends on the alignment of this pointer, which each call replaces. */
        const void *const bias = (const void *)(uintptr_t)BIAS_ALIGNMENT;
        if (!lg_blas_good(q, "cublasLtMatmulDescCreate",
                          cublasLtMatmulDescCreate(ret, compute, wide ? CUDA_R_64F : CUDA_R_32F)) ||
            !set(q, *ret, CUBLASLT_MATMUL_DESC_TRANSA, first) || !set(q, *ret, CUBLASLT_MATMUL_DESC_TRANSB, second))
                return false;
        return !k->biased || (set(q, *ret, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
                              set(q, *ret, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
}

/* Describes the product in the library's order: its first matrix is B, its rows are the columns of C. */
static bool describe(lg_queue *q, const lg_blas_key *k, lg_blas_descriptors *d)
{
        return make_product(q, k, &d->product) &&
               make_layout(q, &d->b, k, k->b_transposed ? k->k : k->n, k->b_transposed ? k->n : k->k, k->ldb,
                           k->b_batch) &&
               make_layout(q, &d->a, k, k->a_transposed ? k->m : k->k, k->a_transposed ? k->k : k->m, k->lda,
                           k->a_batch) &&
               make_layout(q, &d->c, k, k->n, k->m, k->ldc, k->c_batch);
}

/* ---- choice of the algorithm ---- */

template <typename T>
static bool prefer(lg_queue *q, cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t attribute, T value)
{
        return lg_blas_good(q, "cublasLtMatmulPreferenceSetAttribute",
                            cublasLtMatmulPreferenceSetAttribute(to, attribute, &value, sizeof value));
}

static bool make_preference(lg_queue *q, const lg_blas_key *k, cublasLtMatmulPreference_t *ret)
{
        /* If strict, partial sums are stored in the workspace in the compute type and added in a separate step: in a
         * fixed order and not rounded to 16 bits. */
        const bool strict = k->deterministic || k->dtype == LG_F16 || k->dtype == LG_BF16;
        const uint32_t schemes = strict ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
        return lg_blas_good(q, "cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate(ret)) &&
               prefer<uint64_t>(q, *ret, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, MOST_WORKSPACE) &&
               prefer<uint32_t>(q, *ret, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes) &&
               prefer<uint32_t>(q, *ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, k->b_alignment) &&
               prefer<uint32_t>(q, *ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, k->a_alignment) &&
               prefer<uint32_t>(q, *ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, k->c_alignment) &&
               prefer<uint32_t>(q, *ret, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, k->c_alignment);
}

/* Asks cuBLASLt for an algorithm and stores the answer in p, even if there is none. */
static bool ask(lg_queue *q, cublasLtHandle_t handle, cublasLtMatmulPreference_t preference, lg_blas_plan *p)
{
        const lg_blas_descriptors *d = &p->descriptors;
        cublasLtMatmulHeuristicResult_t best;
        int count = 0;
        cublasStatus_t s = cublasLtMatmulAlgoGetHeuristic(handle, d->product, d->b, d->a, d->c, d->c, preference, 1,
                                                          &best, &count);
        bool refused = s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE ||
                       s == CUBLAS_STATUS_ARCH_MISMATCH;
        if (!refused && !lg_blas_good(q, "cublasLtMatmulAlgoGetHeuristic", s))
                return false;
        p->found = !refused && count > 0 && best.state == CUBLAS_STATUS_SUCCESS;
        if (p->found) {
                p->algorithm = best.algo;
                p->workspace = best.workspaceSize;
        }
        return true;
}

/* Describes the product of p's key, and asks for an algorithm unless the process knows the answer. */
static bool fill_plan(lg_queue *q, cublasLtHandle_t handle, lg_blas_plan *p)
{
        const bool known = recall_answer(p);
        if (known && !p->found)
                return true;
        if (!describe(q, &p->key, &p->descriptors))
                return false;
        if (known)
                return true;
        cublasLtMatmulPreference_t preference = NULL;
        const bool asked = make_preference(q, &p->key, &preference) && ask(q, handle, preference, p);
        if (preference)
                cublasLtMatmulPreferenceDestroy(preference);
        if (asked)
                share_answer(p);
        return asked;
}

const lg_blas_plan *lg_blas_plan_for(lg_queue *q, cublasLtHandle_t handle, lg_blas_table *t, const lg_blas_key *k)
{
        const lg_blas_plan *found = find_plan(t, k);
        lg_blas_plan made = {};
        if (found)
                return found;
        if (!lg_cuda_before_first(q, (const void *)(uintptr_t)hash_of(k)))
                return NULL;
        made.key = *k;
        made.used = true;
        const bool filled = fill_plan(q, handle, &made);
        if (!filled || !made.found)
                end_descriptors(&made.descriptors);
        return filled ? add_plan(t, &made) : NULL;
}
