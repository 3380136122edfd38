/* blas.h - products by a library, for gemm.cu. */
#ifndef LG_CUDA_BLAS_H
#define LG_CUDA_BLAS_H

#include "cuda.h"

typedef enum lg_blas_answer { LG_BLAS_DONE, LG_BLAS_NOTHING, LG_BLAS_FAILED } lg_blas_answer;
/* C = A B + beta C, and + bias if it is asked for; no relu. k > 0, one dimension of batch at most. NOTHING: the library
 * does not have it, and C is as it was; FAILED: noted in the queue. */
lg_blas_answer lg_cuda_blas(lg_queue *q, const lg_gemm_args *g, bool bias);
/* cuBLASLt's version in words. */
void lg_cuda_blas_version(char *words, size_t size);
/* Frees what q keeps here, when its work is done. */
void lg_cuda_blas_close(lg_queue *q);

#endif
