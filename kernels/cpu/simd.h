/* simd.h - vectors of the instruction set that a file is compiled for: loads and stores, whole or of the first lanes,
 * multiply-add, transposes. Names end in the type of the elements. */
#ifndef LG_CPU_SIMD_H
#define LG_CPU_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define LG_INLINE static inline __attribute__((always_inline))
/* Before a loop over registers: what stays a loop puts them into memory. */
#define LG_UNROLL _Pragma("GCC unroll 16")

/* The bytes of a vector, and the rows and vectors of a block of sums that fits in the registers. */
#if defined(__AVX512F__)
#define LG_VECTOR 64
#define LG_BLOCK_ROWS 14
#elif defined(__AVX2__)
#define LG_VECTOR 32
#define LG_BLOCK_ROWS 6
#elif defined(__aarch64__)
#define LG_VECTOR 16
#define LG_BLOCK_ROWS 12
#else
#define LG_VECTOR 16
#define LG_BLOCK_ROWS 5
#endif
#define LG_BLOCK_VECTORS 2
/* X(rows) of every number of rows that a block can have. */
#if LG_BLOCK_ROWS == 14
#define LG_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#elif LG_BLOCK_ROWS == 12
#define LG_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#elif LG_BLOCK_ROWS == 6
#define LG_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define LG_EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#endif
#define LG_LANES_f32 (LG_VECTOR / 4)
#define LG_LANES_f64 (LG_VECTOR / 8)

/* So many bytes from p on, where there need be nothing: what will soon be read, and what written. */
LG_INLINE void lg_prefetch(const void *p, ptrdiff_t bytes)
{
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes));
}
LG_INLINE void lg_prefetch_to(const void *p, ptrdiff_t bytes)
{
        __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes), 1);
}

typedef float lg_vec_f32 __attribute__((vector_size(LG_VECTOR)));
typedef double lg_vec_f64 __attribute__((vector_size(LG_VECTOR)));
typedef int32_t lg_bits_f32 __attribute__((vector_size(LG_VECTOR)));
typedef int64_t lg_bits_f64 __attribute__((vector_size(LG_VECTOR)));

#define LG_SIMD_FOR(t, type)                                                                                           \
        LG_INLINE lg_vec_##t lg_vec_load_##t(const type *p)                                                            \
        {                                                                                                              \
                lg_vec_##t v;                                                                                          \
                memcpy(&v, p, sizeof v);                                                                               \
                return v;                                                                                              \
        }                                                                                                              \
        LG_INLINE void lg_vec_store_##t(type *p, lg_vec_##t v)                                                         \
        {                                                                                                              \
                memcpy(p, &v, sizeof v);                                                                               \
        }                                                                                                              \
        /* 0 for what is not above 0; NaN stays. */                                                                    \
        LG_INLINE lg_vec_##t lg_vec_relu_##t(lg_vec_##t v)                                                             \
        {                                                                                                              \
                return (lg_vec_##t)((lg_bits_##t)v & ~(v <= (lg_vec_##t){0}));                                         \
        }
LG_SIMD_FOR(f32, float)
LG_SIMD_FOR(f64, double)
#undef LG_SIMD_FOR

/* ---- x in all lanes; a b + c, rounded once where the machine can; the first lanes, by a mask: the others are 0 and
 * not stored ---- */

#if defined(__AVX512F__)
typedef __mmask16 lg_mask_f32;
typedef __mmask8 lg_mask_f64;
LG_INLINE lg_mask_f32 lg_mask_first_f32(int64_t n)
{
        return (lg_mask_f32)((1u << n) - 1);
}
LG_INLINE lg_mask_f64 lg_mask_first_f64(int64_t n)
{
        return (lg_mask_f64)((1u << n) - 1);
}
LG_INLINE lg_vec_f32 lg_vec_all_f32(float x)
{
        return _mm512_set1_ps(x);
}
LG_INLINE lg_vec_f64 lg_vec_all_f64(double x)
{
        return _mm512_set1_pd(x);
}
LG_INLINE lg_vec_f32 lg_vec_fma_f32(lg_vec_f32 a, lg_vec_f32 b, lg_vec_f32 c)
{
        return _mm512_fmadd_ps(a, b, c);
}
LG_INLINE lg_vec_f64 lg_vec_fma_f64(lg_vec_f64 a, lg_vec_f64 b, lg_vec_f64 c)
{
        return _mm512_fmadd_pd(a, b, c);
}
LG_INLINE lg_vec_f32 lg_vec_load_some_f32(const float *p, lg_mask_f32 m)
{
        return _mm512_maskz_loadu_ps(m, p);
}
LG_INLINE lg_vec_f64 lg_vec_load_some_f64(const double *p, lg_mask_f64 m)
{
        return _mm512_maskz_loadu_pd(m, p);
}
LG_INLINE void lg_vec_store_some_f32(float *p, lg_mask_f32 m, lg_vec_f32 v)
{
        _mm512_mask_storeu_ps(p, m, v);
}
LG_INLINE void lg_vec_store_some_f64(double *p, lg_mask_f64 m, lg_vec_f64 v)
{
        _mm512_mask_storeu_pd(p, m, v);
}
#elif defined(__AVX2__)
typedef __m256i lg_mask_f32, lg_mask_f64;
LG_INLINE lg_mask_f32 lg_mask_first_f32(int64_t n)
{
        return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
LG_INLINE lg_mask_f64 lg_mask_first_f64(int64_t n)
{
        return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
LG_INLINE lg_vec_f32 lg_vec_all_f32(float x)
{
        return _mm256_set1_ps(x);
}
LG_INLINE lg_vec_f64 lg_vec_all_f64(double x)
{
        return _mm256_set1_pd(x);
}
LG_INLINE lg_vec_f32 lg_vec_fma_f32(lg_vec_f32 a, lg_vec_f32 b, lg_vec_f32 c)
{
        return _mm256_fmadd_ps(a, b, c);
}
LG_INLINE lg_vec_f64 lg_vec_fma_f64(lg_vec_f64 a, lg_vec_f64 b, lg_vec_f64 c)
{
        return _mm256_fmadd_pd(a, b, c);
}
LG_INLINE lg_vec_f32 lg_vec_load_some_f32(const float *p, lg_mask_f32 m)
{
        return _mm256_maskload_ps(p, m);
}
LG_INLINE lg_vec_f64 lg_vec_load_some_f64(const double *p, lg_mask_f64 m)
{
        return _mm256_maskload_pd(p, m);
}
LG_INLINE void lg_vec_store_some_f32(float *p, lg_mask_f32 m, lg_vec_f32 v)
{
        _mm256_maskstore_ps(p, m, v);
}
LG_INLINE void lg_vec_store_some_f64(double *p, lg_mask_f64 m, lg_vec_f64 v)
{
        _mm256_maskstore_pd(p, m, v);
}
#else
typedef int64_t lg_mask_f32, lg_mask_f64; /* how many lanes */
LG_INLINE lg_vec_f32 lg_vec_all_f32(float x)
{
        return (lg_vec_f32){x, x, x, x};
}
LG_INLINE lg_vec_f64 lg_vec_all_f64(double x)
{
        return (lg_vec_f64){x, x};
}
#if defined(__aarch64__)
#define LG_MULTIPLY_ADD(t) (lg_vec_##t) vfmaq_##t(c, a, b)
#else
#define LG_MULTIPLY_ADD(t) a *b + c
#endif
#define LG_SIMD_FOR(t, type)                                                                                           \
        LG_INLINE lg_mask_##t lg_mask_first_##t(int64_t n)                                                             \
        {                                                                                                              \
                return n;                                                                                              \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_fma_##t(lg_vec_##t a, lg_vec_##t b, lg_vec_##t c)                                  \
        {                                                                                                              \
                return LG_MULTIPLY_ADD(t);                                                                             \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_load_some_##t(const type *p, lg_mask_##t m)                                        \
        {                                                                                                              \
                lg_vec_##t v = {0};                                                                                    \
                for (int i = 0; i < LG_LANES_##t; i++)                                                                 \
                        if (i < m)                                                                                     \
                                v[i] = p[i];                                                                           \
                return v;                                                                                              \
        }                                                                                                              \
        LG_INLINE void lg_vec_store_some_##t(type *p, lg_mask_##t m, lg_vec_##t v)                                     \
        {                                                                                                              \
                for (int i = 0; i < LG_LANES_##t; i++)                                                                 \
                        if (i < m)                                                                                     \
                                p[i] = v[i];                                                                           \
        }
LG_SIMD_FOR(f32, float)
LG_SIMD_FOR(f64, double)
#undef LG_SIMD_FOR
#endif

/* ---- transposes ----
 *
 * Interleaving row i with row i + half, for all i of the first half, turns the lanes' index round by one bit: after as
 * many rounds as the index has bits, rows are columns. */

#if LG_VECTOR == 64
#define LG_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define LG_HIGH_f32(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LG_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LG_HIGH_f64(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LG_VECTOR == 32
#define LG_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define LG_HIGH_f32(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LG_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define LG_HIGH_f64(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define LG_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define LG_HIGH_f32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LG_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define LG_HIGH_f64(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* to[c * to_row + r] = from[r * from_row + c] for `rows` rows and `cols` columns, at most as many as a vector has
 * lanes; the rest of each vector that is written is 0. */
#define LG_SIMD_FOR(t, type)                                                                                           \
        LG_INLINE void lg_vec_transpose_##t(const type *from, ptrdiff_t from_row, type *to, ptrdiff_t to_row,          \
                                            int64_t rows, int64_t cols)                                                \
        {                                                                                                              \
                enum { lanes = LG_LANES_##t, half = lanes / 2 };                                                       \
                lg_vec_##t v[lanes], w[lanes];                                                                         \
                const lg_mask_##t mask = lg_mask_first_##t(cols);                                                      \
                LG_UNROLL                                                                                              \
                for (int i = 0; i < lanes; i++)                                                                        \
                        v[i] = i < rows ? lg_vec_load_some_##t(from + i * from_row, mask) : (lg_vec_##t){0};           \
                LG_UNROLL                                                                                              \
                for (int round = 1; round < lanes; round *= 2) {                                                       \
                        LG_UNROLL                                                                                      \
                        for (int i = 0; i < half; i++) {                                                               \
                                w[2 * i] = LG_LOW_##t(v[i], v[i + half]);                                              \
                                w[2 * i + 1] = LG_HIGH_##t(v[i], v[i + half]);                                         \
                        }                                                                                              \
                        LG_UNROLL                                                                                      \
                        for (int i = 0; i < lanes; i++)                                                                \
                                v[i] = w[i];                                                                           \
                }                                                                                                      \
                LG_UNROLL                                                                                              \
                for (int i = 0; i < lanes; i++)                                                                        \
                        if (i < cols)                                                                                  \
                                lg_vec_store_##t(to + i * to_row, v[i]);                                               \
        }
LG_SIMD_FOR(f32, float)
LG_SIMD_FOR(f64, double)
#undef LG_SIMD_FOR

#endif
