/* blas_plan.h - keys and plans of matrix products by cuBLASLt: what blas.cu asks of blas_plan.cu. */
#ifndef LG_CUDA_BLAS_PLAN_H
#define LG_CUDA_BLAS_PLAN_H

#include <cublasLt.h>
#include "cuda.h"

#define LG_BLAS_SETS 128
#define LG_BLAS_WAYS 4

/* Everything that the choice of an algorithm depends on. Zeroed before it is filled, so that keys compare by bytes. */
typedef struct lg_blas_key {
        int64_t m, n, k, lda, ldb, ldc;
        int64_t a_batch, b_batch, c_batch; /* distances in the batch; 0 if `pointers` */
        int32_t batch, dtype, device;
        uint8_t a_alignment, b_alignment, c_alignment; /* alignments of the addresses, in bytes */
        bool pointers;                                 /* the matrices of the batch are listed by their addresses */
        bool biased, a_transposed, b_transposed, deterministic, tf32;
        uint8_t unused[3];
} lg_blas_key;

/* The library's descriptors of a product. */
typedef struct lg_blas_descriptors {
        cublasLtMatmulDesc_t product;
        cublasLtMatrixLayout_t a, b, c;
} lg_blas_descriptors;

typedef struct lg_blas_plan {
        lg_blas_key key;
        bool used, found; /* used: the plan is one; found: cuBLASLt has an algorithm */
        cublasLtMatmulAlgo_t algorithm;
        size_t workspace;
        lg_blas_descriptors descriptors; /* NULL if !found */
} lg_blas_plan;

/* A bounded table of plans, in which a new plan replaces the oldest of its set. */
typedef struct lg_blas_table {
        lg_blas_plan plans[LG_BLAS_SETS][LG_BLAS_WAYS];
        unsigned char oldest[LG_BLAS_SETS];
} lg_blas_table;

/* Returns whether s is a success; if not, records `call` and cuBLASLt's message in q. */
bool lg_blas_good(lg_queue *q, const char *call, cublasStatus_t s);
/* Fills *k. Returns false if cuBLASLt cannot compute the product: by its strides, as its sizes exceed 32 bits, or
 * before cuBLAS 13 by its batch. */
bool lg_blas_make_key(lg_queue *q, const lg_gemm_args *g, bool bias, lg_blas_key *k);
/* Returns the plan for key k from table t, or a new one. NULL: an error, which is in q. */
const lg_blas_plan *lg_blas_plan_for(lg_queue *q, cublasLtHandle_t handle, lg_blas_table *t, const lg_blas_key *k);
/* Destroys the descriptors of all plans. */
void lg_blas_end_table(lg_blas_table *t);

#endif
