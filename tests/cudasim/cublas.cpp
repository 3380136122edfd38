/* cublas.cpp - the functions of cuBLASLt in use: records are checked, products are plain loops in their stream.
 *
 * Misuse ends the program. Algorithms are chosen for one problem and refuse any other; some want a workspace, which is
 * written to. f64 has no epilogues. $CUDASIM_CUBLAS_REFUSE=1: there is no algorithm for anything;
 * $CUDASIM_CUBLAS_LISTS=0: none for lists of pointers. Such lists are read when the product runs.
 */
#include "sim.h"
#include "product.h"
#include <cstdlib>

using namespace cudasim;

namespace
{
enum kind : uint32_t { HANDLE = 0x71a0, PRODUCT, LAYOUT, PREFERENCE };

int64_t made_so_far;

struct handle {
        kind is = HANDLE;
        int device = 0;
};

struct product {
        kind is = PRODUCT;
        cublasComputeType_t compute;
        cudaDataType_t scale;
        int32_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
        uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
        const void *bias = nullptr;
};

struct layout {
        kind is = LAYOUT;
        cudaDataType_t type;
        uint64_t rows, cols;
        int64_t ld, stride = 0;
        int32_t batch = 1;
        uint32_t mode = 0; /* 1: the operand is an array of pointers */
};

struct preference {
        kind is = PREFERENCE;
        uint64_t workspace = 0;
        uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
        uint32_t alignment[4] = {256, 256, 256, 256}; /* of A, B, C, D */
};

/* A record behind an opaque pointer, which must be one of that kind and alive. */
template <typename T> T *as(const char *call, const void *p)
{
        T *t = (T *)p;
        if (!t || t->is != T().is)
                die("%s: %p is no such record, or none any longer", call, p);
        return t;
}

template <typename T> cublasStatus_t make(const char *call, void *ret, T **made)
{
        if (fails(call))
                return CUBLAS_STATUS_ALLOC_FAILED;
        *made = new T;
        memcpy(ret, made, sizeof *made);
        count_handles(1);
        made_so_far++;
        return CUBLAS_STATUS_SUCCESS;
}

template <typename T> cublasStatus_t end(const char *call, const void *p)
{
        T *t = as<T>(call, p);
        t->is = (kind)0;
        delete t;
        count_handles(-1);
        return CUBLAS_STATUS_SUCCESS;
}

/* The value of an attribute, whose size must be its type's. */
template <typename T> cublasStatus_t put(const char *call, int attribute, T *to, const void *from, size_t bytes)
{
        if (fails(call))
                return CUBLAS_STATUS_INTERNAL_ERROR;
        if (!from || bytes != sizeof *to)
                die("%s: attribute %d has %zu bytes, not %zu", call, attribute, sizeof *to, bytes);
        memcpy((void *)to, from, bytes);
        return CUBLAS_STATUS_SUCCESS;
}

/* ---- one product, as an algorithm knows it ---- */

static_assert(sizeof(problem) % 8 == 0, "it is hashed by bytes");

/* What stands in a cublasLtMatmulAlgo_t. */
struct algorithm {
        uint64_t magic, problem, workspace;
        uint32_t alignment[4], bias_alignment;
};
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm is 64 bytes");
constexpr uint64_t magic = 0x6c74616c676f5f31;

uint64_t hash_of(const problem &p)
{
        uint64_t h = 14695981039346656037u;
        for (size_t i = 0; i < sizeof p; i++)
                h = (h ^ ((const unsigned char *)&p)[i]) * 1099511628211u;
        return h;
}

uint32_t alignment_of(const void *p)
{
        uintptr_t at = (uintptr_t)p | 256;
        return (uint32_t)(at & (~at + 1));
}

void check_layout(const char *call, const layout *l, const layout *d)
{
        if (l->rows < 1 || l->cols < 1 || l->rows > INT32_MAX || l->cols > INT32_MAX)
                die("%s: a matrix of %llu x %llu", call, (unsigned long long)l->rows, (unsigned long long)l->cols);
        if (l->ld < (int64_t)l->rows)
                die("%s: a leading dimension of %lld for %llu rows", call, (long long)l->ld,
                    (unsigned long long)l->rows);
        if (l->type != d->type || l->batch != d->batch || l->batch < 1 || l->stride < 0 || l->mode != d->mode)
                die("%s: layouts of several types or batches", call);
        if (l->mode > 1 || (l->mode && l->stride))
                die("%s: a list of matrices has mode 1 and no stride", call);
}

problem problem_of(const char *call, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d)
{
        const product *o = as<product>(call, desc);
        const layout *l[4] = {as<layout>(call, a), as<layout>(call, b), as<layout>(call, c), as<layout>(call, d)};
        for (const layout *one : l)
                check_layout(call, one, l[3]);
        problem p;
        memset(&p, 0, sizeof p);
        p.m = (int64_t)l[3]->rows;
        p.n = (int64_t)l[3]->cols;
        p.k = (int64_t)(o->ta ? l[0]->rows : l[0]->cols);
        p.batch = l[3]->batch;
        p.type = l[3]->type;
        p.compute = o->compute;
        p.ta = o->ta;
        p.tb = o->tb;
        p.epilogue = o->epilogue;
        p.listed = l[3]->mode;
        for (int i = 0; i < 3; i++) {
                p.ld[i] = l[i]->ld;
                p.stride[i] = l[i]->stride;
        }
        if ((int64_t)(o->ta ? l[0]->cols : l[0]->rows) != p.m || (int64_t)(o->tb ? l[1]->rows : l[1]->cols) != p.n ||
            (int64_t)(o->tb ? l[1]->cols : l[1]->rows) != p.k)
                die("%s: the sizes of A, B and D do not meet", call);
        if (l[2]->rows != l[3]->rows || l[2]->cols != l[3]->cols || l[2]->ld != l[3]->ld ||
            l[2]->stride != l[3]->stride)
                die("%s: C lies otherwise than D", call);
        /* One behind the other, or side by side in common columns. */
        if (p.batch > 1 && !p.listed && p.stride[2] < (p.n - 1) * p.ld[2] + p.m &&
            (p.stride[2] < p.m || (p.batch - 1) * p.stride[2] + p.m > p.ld[2]))
                die("%s: the matrices of D overlap", call);
        bool wide = p.type == CUDA_R_64F;
        if (wide ? o->compute != CUBLAS_COMPUTE_64F || o->scale != CUDA_R_64F
                 : (o->compute != CUBLAS_COMPUTE_32F &&
                    !(o->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && p.type == CUDA_R_32F)) ||
                            o->scale != CUDA_R_32F)
                die("%s: a compute or scale type that does not go with the data's", call);
        return p;
}

/* The bytes from the first to the last element of an operand whose matrices are not listed, or of a listed matrix. */
size_t extent(const layout *l)
{
        return (size_t)((l->batch - 1) * l->stride + ((int64_t)l->cols - 1) * l->ld + (int64_t)l->rows) *
               size_of(l->type);
}

/* Checks an operand, or a list of its matrices. */
void check_operand(const void *p, const layout *l, int number, uint32_t alignment)
{
        if (alignment_of(p) < (l->mode ? sizeof(void *) : alignment))
                die("cublasLtMatmul: operand %d at %p is not aligned to the %u bytes of the preference", number, p,
                    alignment);
        check_device("cublasLtMatmul", p, l->mode ? (size_t)l->batch * sizeof(void *) : extent(l));
}

/* Checks the matrices of a list, while the product runs. */
void check_list(const void *p, const layout &l, int number, uint32_t alignment)
{
        layout one = l;
        one.mode = 0;
        for (int i = 0; one.mode != l.mode && i < l.batch; i++)
                check_operand(((const void *const *)p)[i], &one, number, alignment);
}

algorithm check_algorithm(const problem &p, const cublasLtMatmulAlgo_t *algo, const void *workspace, size_t bytes)
{
        algorithm a;
        if (!algo)
                die("cublasLtMatmul: no algorithm");
        memcpy(&a, algo, sizeof a);
        if (a.magic != magic || a.problem != hash_of(p))
                die("cublasLtMatmul: the algorithm was chosen for another product");
        if (bytes < a.workspace)
                die("cublasLtMatmul: a workspace of %zu bytes, not %llu", bytes, (unsigned long long)a.workspace);
        if (a.workspace && (uintptr_t)workspace % 256)
                die("cublasLtMatmul: the workspace is not aligned to 256 bytes");
        check_device("cublasLtMatmul", workspace, (size_t)a.workspace);
        return a;
}
} // namespace

#define GUARD std::lock_guard<std::recursive_mutex> guard_(everything())

extern "C" {
int64_t cudasim_products_described(void)
{
        return made_so_far;
}

size_t CUBLASWINAPI cublasLtGetVersion(void)
{
        return CUBLAS_VERSION;
}

const char *CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t s)
{
        return s == CUBLAS_STATUS_SUCCESS          ? "the operation completed successfully"
               : s == CUBLAS_STATUS_ALLOC_FAILED   ? "the resource allocation failed"
               : s == CUBLAS_STATUS_NOT_SUPPORTED  ? "the functionality requested is not supported"
               : s == CUBLAS_STATUS_INTERNAL_ERROR ? "an internal operation failed"
                                                   : "an error";
}

cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t *ret)
{
        GUARD;
        handle *h;
        if (fails(__func__, LOAD) || breaks_capture())
                return CUBLAS_STATUS_ALLOC_FAILED;
        cublasStatus_t s = make(__func__, ret, &h);
        if (s == CUBLAS_STATUS_SUCCESS)
                h->device = current_device;
        return s;
}

cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t h)
{
        GUARD;
        return end<handle>(__func__, h);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute,
                                                     cudaDataType_t scale)
{
        GUARD;
        product *p;
        cublasStatus_t s = make(__func__, ret, &p);
        if (s == CUBLAS_STATUS_SUCCESS) {
                p->compute = compute;
                p->scale = scale;
        }
        return s;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t p)
{
        GUARD;
        return end<product>(__func__, p);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                           cublasLtMatmulDescAttributes_t attribute, const void *from,
                                                           size_t bytes)
{
        GUARD;
        product *p = as<product>(__func__, desc);
        switch (attribute) {
        case CUBLASLT_MATMUL_DESC_TRANSA:
                return put(__func__, attribute, &p->ta, from, bytes);
        case CUBLASLT_MATMUL_DESC_TRANSB:
                return put(__func__, attribute, &p->tb, from, bytes);
        case CUBLASLT_MATMUL_DESC_EPILOGUE:
                return put(__func__, attribute, &p->epilogue, from, bytes);
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
                return put(__func__, attribute, &p->bias, from, bytes);
        default:
                die("%s: attribute %d is not simulated", __func__, (int)attribute);
        }
}

cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType type, uint64_t rows,
                                                       uint64_t cols, int64_t ld)
{
        GUARD;
        layout *l;
        cublasStatus_t s = make(__func__, ret, &l);
        if (s != CUBLAS_STATUS_SUCCESS)
                return s;
        if (!size_of(type))
                die("%s: data type %d is not simulated", __func__, (int)type);
        l->type = type;
        l->rows = rows;
        l->cols = cols;
        l->ld = ld;
        return s;
}

cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
        GUARD;
        return end<layout>(__func__, l);
}

cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t record,
                                                             cublasLtMatrixLayoutAttribute_t attribute,
                                                             const void *from, size_t bytes)
{
        GUARD;
        layout *l = as<layout>(__func__, record);
        switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
                return put(__func__, attribute, &l->batch, from, bytes);
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
                return put(__func__, attribute, &l->stride, from, bytes);
#if CUBLAS_VER_MAJOR >= 13
        case CUBLASLT_MATRIX_LAYOUT_BATCH_MODE:
                return put(__func__, attribute, &l->mode, from, bytes);
#endif
        default:
                die("%s: attribute %d is not simulated", __func__, (int)attribute);
        }
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
        GUARD;
        preference *p;
        return make(__func__, ret, &p);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
        GUARD;
        return end<preference>(__func__, p);
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t record,
                                                                 cublasLtMatmulPreferenceAttributes_t attribute,
                                                                 const void *from, size_t bytes)
{
        GUARD;
        preference *p = as<preference>(__func__, record);
        switch (attribute) {
        case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
                return put(__func__, attribute, &p->workspace, from, bytes);
        case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
                return put(__func__, attribute, &p->schemes, from, bytes);
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
                return put(__func__, attribute, &p->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                           from, bytes);
        default:
                die("%s: attribute %d is not simulated", __func__, (int)attribute);
        }
}

cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                                           cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                           cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                           cublasLtMatmulPreference_t record, int wanted,
                                                           cublasLtMatmulHeuristicResult_t *results, int *ret_count)
{
        GUARD;
        as<handle>(__func__, h);
        const preference *like = as<preference>(__func__, record);
        const problem p = problem_of(__func__, desc, a, b, c, d);
        const product *o = as<product>(__func__, desc);
        const char *refuse = getenv("CUDASIM_CUBLAS_REFUSE"), *lists = getenv("CUDASIM_CUBLAS_LISTS");
        if (fails(__func__))
                return CUBLAS_STATUS_INTERNAL_ERROR;
        *ret_count = 0;
        if (p.epilogue != CUBLASLT_EPILOGUE_DEFAULT && p.epilogue != CUBLASLT_EPILOGUE_BIAS)
                die("%s: epilogue %u is not simulated", __func__, p.epilogue);
        if ((refuse && *refuse == '1') || (p.listed && lists && *lists == '0') || wanted < 1 ||
            (p.type == CUDA_R_64F && p.epilogue != CUBLASLT_EPILOGUE_DEFAULT))
                return CUBLAS_STATUS_NOT_SUPPORTED;
        algorithm made;
        memset(&made, 0, sizeof made);
        made.magic = magic;
        made.problem = hash_of(p);
        made.workspace = p.k >= 8 && like->workspace >= 5000 ? 5000 : 0;
        memcpy(made.alignment, like->alignment, sizeof made.alignment);
        made.bias_alignment = p.epilogue == CUBLASLT_EPILOGUE_BIAS ? alignment_of(o->bias) : 0;
        memset((void *)results, 0xff, sizeof *results);
        memcpy(&results->algo, &made, sizeof made);
        results->workspaceSize = made.workspace;
        results->state = CUBLAS_STATUS_SUCCESS;
        *ret_count = 1;
        return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CUBLASWINAPI cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha,
                                           const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                                           cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                                           cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                                           const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                                           cudaStream_t stream)
{
        GUARD;
        if (as<handle>(__func__, h)->device != current_device)
                die("%s: the handle is of device %d, but %d is current", __func__, ((handle *)h)->device,
                    current_device);
        const problem p = problem_of(__func__, desc, a_layout, b_layout, c_layout, d_layout);
        const algorithm chosen = check_algorithm(p, algo, workspace, bytes);
        const product *o = as<product>(__func__, desc);
        const bool biased = p.epilogue == CUBLASLT_EPILOGUE_BIAS;
        const void *at[4] = {a, b, c, d};
        layout layouts[4];
        for (int i = 0; i < 4; i++) {
                const cublasLtMatrixLayout_t records[4] = {a_layout, b_layout, c_layout, d_layout};
                layouts[i] = *as<layout>(__func__, records[i]);
                check_operand(at[i], &layouts[i], i, chosen.alignment[i]);
        }
        if (c != d)
                die("%s: C is not D", __func__);
        if (biased && (!o->bias || alignment_of(o->bias) < chosen.bias_alignment))
                die("%s: no bias, or one that is not aligned to the %u bytes of the one that the algorithm was chosen "
                    "for",
                    __func__, chosen.bias_alignment);
        const bool wide = p.type == CUDA_R_64F;
        if (biased)
                check_device(__func__, o->bias, (size_t)p.m * size_of((cudaDataType_t)p.type));
        if (fails(__func__) || fails(__func__, LOAD))
                return CUBLAS_STATUS_EXECUTION_FAILED;
        const operands with = {(const char *)a,
                               (const char *)b,
                               (char *)d,
                               biased ? o->bias : nullptr,
                               wide ? *(const double *)alpha : (double)*(const float *)alpha,
                               wide ? *(const double *)beta : (double)*(const float *)beta};
        enqueue(stream, [=] {
                for (int i = 0; i < 4; i++)
                        check_list(at[i], layouts[i], i, chosen.alignment[i]);
                if (chosen.workspace)
                        memset(workspace, 0xa5, (size_t)chosen.workspace);
                if (wide)
                        multiply<double>(p, with);
                else
                        multiply<float>(p, with);
        });
        return CUBLAS_STATUS_SUCCESS;
}
} // extern "C"
