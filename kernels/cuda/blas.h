/* blas.h - matrix products by cuBLASLt, for gemm.cu. */
#ifndef LG_CUDA_BLAS_H
#define LG_CUDA_BLAS_H

#include "cuda.h"

typedef enum lg_blas_answer { LG_BLAS_DONE, LG_BLAS_NOTHING, LG_BLAS_FAILED } lg_blas_answer;
/* Computes C = A B + beta C, plus the bias if `bias`; no ReLU. g has k > 0. With several batch dimensions, the library
 * gets a list of the matrices' addresses. Returns LG_BLAS_NOTHING, with C unchanged, if the library cannot compute it,
 * or LG_BLAS_FAILED with the error in q. */
lg_blas_answer lg_cuda_blas(lg_queue *q, const lg_gemm_args *g, bool bias);
/* Writes cuBLASLt's version, such as "13.1.0". */
void lg_cuda_blas_version(char *words, size_t size);
/* Frees q's cuBLASLt handle and plans; q's work must be finished. The process keeps the library's answers. */
void lg_cuda_blas_close(lg_queue *q);

#endif
