/* fft_plan.h - plans of Fourier transforms by cuFFT: what fft.cu asks of fft_plan.cu. */
#ifndef LG_CUDA_FFT_PLAN_H
#define LG_CUDA_FFT_PLAN_H

#include "cuda.h"

/* A batch of transforms of n elements, without padding, so that keys compare by bytes. Elements are `stride` apart, the
 * transforms of the batch in_distance and out_distance elements. */
typedef struct lg_fft_key {
        int64_t n, stride, in_distance, out_distance, batch;
        int32_t kind, dtype;
} lg_fft_key;

extern "C" {
/* Computes `times` batches by cuFFT, whose inputs are in_step and outputs out_step bytes apart; all are aligned to a
 * complex element. LG_FFT_HALF may overwrite its input. Results are not scaled. */
bool lg_cuda_fft_run(lg_queue *q, const lg_fft_key *key, bool inverse, char *in, int64_t in_step, char *out,
                     int64_t out_step, int64_t times);
/* Frees q's plans; q's work must be finished. */
void lg_cuda_fft_close(lg_queue *q);
}

#endif
