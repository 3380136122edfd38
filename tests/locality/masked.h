/* masked.h - shows loads and stores of some lanes, which compilers do not instrument, to memory.c. */
#if defined(__AVX2__)
#include <immintrin.h>
void __tsan_read_range(void *p, long size);
void __tsan_write_range(void *p, long size);

#define FIRST_BYTES(bits) __builtin_popcount((unsigned)(bits)) * 4L
#define _mm256_maskload_ps(p, m)                                                                                       \
        (__tsan_read_range((void *)(p), FIRST_BYTES(_mm256_movemask_ps((__m256)(m)))), _mm256_maskload_ps(p, m))
#define _mm256_maskstore_ps(p, m, v)                                                                                   \
        (__tsan_write_range(p, FIRST_BYTES(_mm256_movemask_ps((__m256)(m)))), _mm256_maskstore_ps(p, m, v))
#define _mm512_maskz_loadu_ps(m, p) (__tsan_read_range((void *)(p), FIRST_BYTES(m)), _mm512_maskz_loadu_ps(m, p))
#define _mm512_mask_storeu_ps(p, m, v) (__tsan_write_range(p, FIRST_BYTES(m)), _mm512_mask_storeu_ps(p, m, v))
#endif
