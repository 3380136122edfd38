/* simd.h - vectors of the instruction set for which a file is compiled: loads and stores of whole vectors or of the
 * first lanes, multiply-add, transposes. Names end in the type of the elements. */
#ifndef LG_CPU_SIMD_H
#define LG_CPU_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../half.h"
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* LG_INLINE: inlined in each caller. LG_UNROLL unrolls a loop completely; one that remains puts registers into memory.
 * Neither under a sanitizer, which checks each lane of each copy: kernels took four times as long to compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LG_INLINE static __attribute__((unused))
#define LG_UNROLL
#endif
#endif
#ifndef LG_INLINE
#define LG_INLINE static inline __attribute__((always_inline))
#define LG_UNROLL _Pragma("GCC unroll 48")
#endif

/* Bytes of a vector, and the rows and vectors of a block of sums that fits in the registers. */
#if defined(__AVX512F__)
#define LG_VECTOR 64
#define LG_BLOCK_ROWS 14
#define LG_EACH_ROWS LG_ROWS_14
#elif defined(__AVX2__)
#define LG_VECTOR 32
#define LG_BLOCK_ROWS 6
#define LG_EACH_ROWS LG_ROWS_6
#elif defined(__aarch64__)
#define LG_VECTOR 16
#define LG_BLOCK_ROWS 12
#define LG_EACH_ROWS LG_ROWS_12
#else
#define LG_VECTOR 16
#define LG_BLOCK_ROWS 5
#define LG_EACH_ROWS LG_ROWS_5
#endif
#define LG_BLOCK_VECTORS 2
/* Size of wide blocks of products: more vectors by fewer rows, where there are enough registers. */
#if LG_VECTOR == 64
#define LG_WIDE_ROWS 6
#define LG_WIDE_VECTORS 4
#define LG_EACH_WIDE LG_ROWS_6
#else
#define LG_WIDE_ROWS LG_BLOCK_ROWS
#define LG_WIDE_VECTORS LG_BLOCK_VECTORS
#define LG_EACH_WIDE(X, ...)
#endif
/* LG_PACKS_A: large products may also copy A. With six rows in a block this pays since each multiply-add needs more
 * loads; with fourteen, only where A's rows share few cache sets. LG_FETCHES_B: blocks of fourteen rows have time for
 * prefetching B. LG_STEPS: unrolled steps along k in the loop over copies. */
#define LG_PACKS_A (LG_VECTOR >= 32)
#define LG_FETCHES_B (LG_VECTOR == 64)
#define LG_STEPS 4
/* LG_ROWS_N expands X(rows, ...) for every number of rows up to N; LG_EACH_ROWS does for each row count of a block. */
#define LG_ROWS_5(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__)
#define LG_ROWS_6(X, ...) LG_ROWS_5(X, __VA_ARGS__) X(6, __VA_ARGS__)
#define LG_ROWS_9(X, ...) LG_ROWS_6(X, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__)
#define LG_ROWS_12(X, ...) LG_ROWS_9(X, __VA_ARGS__) X(10, __VA_ARGS__) X(11, __VA_ARGS__) X(12, __VA_ARGS__)
#define LG_ROWS_14(X, ...) LG_ROWS_12(X, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
/* Expands X(rows, columns) for each block of sums along k: by number of columns, the last one for a single row of A. */
#if defined(__AVX512F__) || defined(__aarch64__)
#define LG_MOST_DOTS 25
#define LG_EACH_DOTS(X) X(8, 1) X(8, 2) X(7, 3) X(6, 4) X(5, 5) X(1, 8)
#elif defined(__AVX2__)
#define LG_MOST_DOTS 12
#define LG_EACH_DOTS(X) X(8, 1) X(6, 2) X(4, 3) X(1, 8)
#else
#define LG_MOST_DOTS 8
#define LG_EACH_DOTS(X) X(8, 1) X(4, 2) X(2, 4) X(1, 8)
#endif
#define LG_LANES_f32 (LG_VECTOR / 4)
#define LG_LANES_f64 (LG_VECTOR / 8)

/* Keeps v in a register; otherwise gcc would load it again for every use. */
#if defined(__AVX512F__)
#define LG_IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__SSE2__)
#define LG_IN_REGISTER(v) __asm__("" : "+x"(v))
#else
#define LG_IN_REGISTER(v) (void)(v)
#endif

/* Prefetches the cache line `bytes` after p, for reading or (lg_prefetch_to) writing. The address may be invalid. */
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
        /* Returns max(v, 0) for each lane; NaN stays NaN. */                                                          \
        LG_INLINE lg_vec_##t lg_vec_relu_##t(lg_vec_##t v)                                                             \
        {                                                                                                              \
                return (lg_vec_##t)((lg_bits_##t)v & ~(v <= (lg_vec_##t){0}));                                         \
        }                                                                                                              \
        /* Returns a where the lane of c is -1, and b where it is 0. */                                                \
        LG_INLINE lg_vec_##t lg_vec_choose_##t(lg_bits_##t c, lg_vec_##t a, lg_vec_##t b)                              \
        {                                                                                                              \
                return (lg_vec_##t)(((lg_bits_##t)a & c) | ((lg_bits_##t)b & ~c));                                     \
        }
LG_SIMD_FOR(f32, float)
LG_SIMD_FOR(f64, double)
#undef LG_SIMD_FOR

/* ---- vec_all: x in all lanes; vec_fma: a b + c, rounded once where the processor can; vec_max: the larger, or b if
 * one is NaN; mask_first, load_some, store_some: only the first n lanes; loads set the others to 0 ---- */

#if defined(__AVX2__)
#if defined(__AVX512F__)
typedef __mmask16 lg_mask_f32;
typedef __mmask8 lg_mask_f64;
#define LG_FIRST_f32(n) (lg_mask_f32)((1u << (n)) - 1)
#define LG_FIRST_f64(n) (lg_mask_f64)((1u << (n)) - 1)
#define LG_DO(op, s) _mm512_##op##_##s
#define LG_LOAD_SOME(s, p, m) _mm512_maskz_loadu_##s(m, p)
#define LG_STORE_SOME(s, p, m, v) _mm512_mask_storeu_##s(p, m, v)
#else
typedef __m256i lg_mask_f32, lg_mask_f64;
#define LG_FIRST_f32(n) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define LG_FIRST_f64(n) _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3))
#define LG_DO(op, s) _mm256_##op##_##s
#define LG_LOAD_SOME(s, p, m) _mm256_maskload_##s(p, m)
#define LG_STORE_SOME(s, p, m, v) _mm256_maskstore_##s(p, m, v)
#endif
/* lg_vec_fma_to keeps the sum in c's register: gcc would move unrolled sums between registers; AVX2 has too few. */
#if LG_VECTOR == 32
#define LG_FMA_TO(s) __asm__("vfmadd231" #s " %2, %1, %0" : "+x"(c) : "x"(a), "x"(b))
#else
#define LG_FMA_TO(s) c = LG_DO(fmadd, s)(a, b, c)
#endif
#define LG_SIMD_FOR(t, type, s)                                                                                        \
        LG_INLINE lg_mask_##t lg_mask_first_##t(int64_t n)                                                             \
        {                                                                                                              \
                return LG_FIRST_##t(n);                                                                                \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_all_##t(type x)                                                                    \
        {                                                                                                              \
                return LG_DO(set1, s)(x);                                                                              \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_fma_##t(lg_vec_##t a, lg_vec_##t b, lg_vec_##t c)                                  \
        {                                                                                                              \
                return LG_DO(fmadd, s)(a, b, c);                                                                       \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_fma_to_##t(lg_vec_##t a, lg_vec_##t b, lg_vec_##t c)                               \
        {                                                                                                              \
                LG_FMA_TO(s);                                                                                          \
                return c;                                                                                              \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_max_##t(lg_vec_##t a, lg_vec_##t b)                                                \
        {                                                                                                              \
                return LG_DO(max, s)(a, b);                                                                            \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_load_some_##t(const type *p, lg_mask_##t m)                                        \
        {                                                                                                              \
                return LG_LOAD_SOME(s, p, m);                                                                          \
        }                                                                                                              \
        LG_INLINE void lg_vec_store_some_##t(type *p, lg_mask_##t m, lg_vec_##t v)                                     \
        {                                                                                                              \
                LG_STORE_SOME(s, p, m, v);                                                                             \
        }
LG_SIMD_FOR(f32, float, ps)
LG_SIMD_FOR(f64, double, pd)
#undef LG_SIMD_FOR
#else
typedef int64_t lg_mask_f32, lg_mask_f64; /* number of valid lanes, from the first on */
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
        LG_INLINE lg_vec_##t lg_vec_fma_to_##t(lg_vec_##t a, lg_vec_##t b, lg_vec_##t c)                               \
        {                                                                                                              \
                return LG_MULTIPLY_ADD(t);                                                                             \
        }                                                                                                              \
        LG_INLINE lg_vec_##t lg_vec_max_##t(lg_vec_##t a, lg_vec_##t b)                                                \
        {                                                                                                              \
                return lg_vec_choose_##t(a > b, a, b);                                                                 \
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

/* ---- permutations ---- */

/* Index vector of lg_permute(): for each 32-bit lane of the result, the lane of v that it is taken from. */
#define LG_PLACES (LG_VECTOR / 4)
typedef int32_t lg_places __attribute__((vector_size(LG_VECTOR)));

LG_INLINE lg_places lg_places_load(const int32_t *p)
{
        lg_places v;
        memcpy(&v, p, sizeof v);
        return v;
}

LG_INLINE lg_places lg_permute(lg_places v, lg_places at)
{
#if LG_VECTOR == 64
        return (lg_places)_mm512_permutexvar_epi32((__m512i)at, (__m512i)v);
#elif LG_VECTOR == 32
        return (lg_places)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)at);
#else
        lg_places r = v;
        for (int i = 0; i < LG_PLACES; i++)
                r[i] = v[at[i]];
        return r;
#endif
}
LG_INLINE lg_vec_f32 lg_vec_permute_f32(lg_vec_f32 v, lg_places at)
{
        return (lg_vec_f32)lg_permute((lg_places)v, at);
}
LG_INLINE lg_vec_f64 lg_vec_permute_f64(lg_vec_f64 v, lg_places at)
{
        return (lg_vec_f64)lg_permute((lg_places)v, at);
}

/* ---- past the caches ---- */

/* Stores to an address that is a multiple of LG_VECTOR bytes, bypassing the caches where the processor can: whole cache
 * lines are written without being read first. Call lg_streams_end() before another thread reads them. */
LG_INLINE void lg_vec_stream_f32(float *p, lg_vec_f32 v)
{
#if defined(__AVX2__)
        LG_DO(stream, ps)(p, v);
#else
        lg_vec_store_f32(p, v);
#endif
}

LG_INLINE void lg_streams_end(void)
{
#if defined(__AVX2__)
        _mm_sfence();
#endif
}

/* ---- unsigned integers of 64 bits ---- */

typedef uint64_t lg_vec_u64 __attribute__((vector_size(LG_VECTOR)));

/* Returns the 64-bit products of the lower 32 bits of each lane. */
LG_INLINE lg_vec_u64 lg_vec_multiply_halves(lg_vec_u64 a, lg_vec_u64 b)
{
#if defined(__AVX512F__)
        return (lg_vec_u64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
        return (lg_vec_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
        return (lg_vec_u64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
        return (a & UINT32_MAX) * (b & UINT32_MAX);
#endif
}

/* ---- f16 and bf16: lg_halves has as many elements as a vector of f32 ---- */

typedef uint16_t lg_halves __attribute__((vector_size(LG_VECTOR / 2)));

#if defined(__F16C__)
#if LG_VECTOR == 64
#define LG_WIDEN(h) _mm512_cvtph_ps((__m256i)(h))
#define LG_NARROW(v) _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)
#define LG_WIDEN_BITS(h) _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)(h)), 16)
#else
#define LG_WIDEN(h) _mm256_cvtph_ps((__m128i)(h))
#define LG_NARROW(v) _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)
#define LG_WIDEN_BITS(h) _mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)(h)), 16)
#endif
LG_INLINE lg_vec_f32 lg_vec_of_f16(lg_halves h)
{
        return LG_WIDEN(h);
}
LG_INLINE lg_vec_f32 lg_vec_of_bf16(lg_halves h)
{
        return (lg_vec_f32)LG_WIDEN_BITS(h);
}
LG_INLINE lg_halves lg_f16_of_vec(lg_vec_f32 v)
{
        return (lg_halves)LG_NARROW(v);
}
#else
LG_INLINE lg_vec_f32 lg_vec_of_f16(lg_halves h)
{
        lg_vec_f32 v;
        for (int i = 0; i < LG_LANES_f32; i++)
                v[i] = lg_f32_of_f16(h[i]);
        return v;
}
LG_INLINE lg_vec_f32 lg_vec_of_bf16(lg_halves h)
{
        lg_vec_f32 v;
        for (int i = 0; i < LG_LANES_f32; i++)
                v[i] = lg_f32_of_bf16(h[i]);
        return v;
}
LG_INLINE lg_halves lg_f16_of_vec(lg_vec_f32 v)
{
        lg_halves h;
        for (int i = 0; i < LG_LANES_f32; i++)
                h[i] = lg_f16_of_f32(v[i]);
        return h;
}
#endif

/* Rounds to nearest even. Not done by vcvtneps2bf16, which treats subnormals as zeros. */
LG_INLINE lg_halves lg_bf16_of_vec(lg_vec_f32 v)
{
        typedef uint32_t bits __attribute__((vector_size(LG_VECTOR)));
        const bits u = (bits)v, high = u >> 16, rounded = (u + 0x7FFF + (high & 1)) >> 16;
#if LG_VECTOR == 64
        const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
        return (lg_halves)_mm512_cvtepi32_epi16(
                _mm512_mask_or_epi32((__m512i)rounded, is_nan, (__m512i)high, _mm512_set1_epi32(0x40)));
#else
        const bits is_nan = (bits)(v != v);
        return __builtin_convertvector((rounded & ~is_nan) | ((high | 0x40) & is_nan), lg_halves);
#endif
}

/* ---- sums of lanes ----
 *
 * LG_MEET_f32(a, b, d), for d a power of 2: lane i is a[i] + a[i ^ d] if bit d of i is clear, else b[i] + b[i ^ d]. */

#define LG_KEPT(i, d, n) ((i) & (d) ? (n) + (i) : (i))
#define LG_SENT(i, d, n) ((i) & (d) ? (n) + (i) - (d) : ((i) + (d)) % (n))
#define LG_2(X, i, d, n) X(i, d, n), X((i) + 1, d, n)
#define LG_4(X, i, d, n) LG_2(X, i, d, n), LG_2(X, (i) + 2, d, n)
#define LG_8(X, i, d, n) LG_4(X, i, d, n), LG_4(X, (i) + 4, d, n)
#define LG_16(X, i, d, n) LG_8(X, i, d, n), LG_8(X, (i) + 8, d, n)
#define LG_MEET(list, a, b, d, n)                                                                                      \
        (__builtin_shufflevector(a, b, list(LG_KEPT, 0, d, n)) + __builtin_shufflevector(a, b, list(LG_SENT, 0, d, n)))
#if LG_VECTOR == 64
#define LG_MEET_f32(a, b, d) LG_MEET(LG_16, a, b, d, 16)
#define LG_MEET_f64(a, b, d) LG_MEET(LG_8, a, b, d, 8)
#elif LG_VECTOR == 32
#define LG_MEET_f32(a, b, d) LG_MEET(LG_8, a, b, d, 8)
#define LG_MEET_f64(a, b, d) LG_MEET(LG_4, a, b, d, 4)
#else
#define LG_MEET_f32(a, b, d) LG_MEET(LG_4, a, b, d, 4)
#define LG_MEET_f64(a, b, d) LG_MEET(LG_2, a, b, d, 2)
#endif

/* ---- pairs of bf16 in words of 32 bits, only for processors that lg_bf16_pairs() finds ---- */

#if LG_VECTOR == 64
/* Returns c plus the two products of the pairs in a and b. Subnormal values and sums are 0. */
LG_INLINE lg_vec_f32 lg_vec_dot_pairs(lg_vec_f32 a, lg_vec_f32 b, lg_vec_f32 c)
{
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
        return c;
}

/* Rounds the lanes of a and then those of b, which become pairs of neighbours. Subnormal values become 0. */
LG_INLINE lg_vec_f32 lg_pairs_of_vecs(lg_vec_f32 a, lg_vec_f32 b)
{
        lg_vec_f32 pairs;
        __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(pairs) : "v"(b), "v"(a));
        return pairs;
}

/* Return the pairs (a[i], b[i]) of 16-bit values, of the lower or of the upper halves of two vectors. */
typedef uint16_t lg_vec_u16 __attribute__((vector_size(LG_VECTOR)));
#define LG_INTERLEAVED(i, first, n) ((first) + (i) / 2 + (i) % 2 * (n))
#define LG_INTERLEAVE(a, b, first)                                                                                     \
        (lg_vec_f32) __builtin_shufflevector((lg_vec_u16)(a), (lg_vec_u16)(b), LG_16(LG_INTERLEAVED, 0, first, 32),    \
                                             LG_16(LG_INTERLEAVED, 16, first, 32))
LG_INLINE lg_vec_f32 lg_pairs_low(lg_vec_f32 a, lg_vec_f32 b)
{
        return LG_INTERLEAVE(a, b, 0);
}
LG_INLINE lg_vec_f32 lg_pairs_high(lg_vec_f32 a, lg_vec_f32 b)
{
        return LG_INTERLEAVE(a, b, 16);
}
#endif

/* ---- transposes ----
 *
 * Interleaving row i with row i + half, for all i of the first half, rotates the bits of each element's (row, lane)
 * index by one: after as many rounds as a lane's index has bits, rows have become columns. */

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

/* LOW_IN and HIGH_IN interleave within each half of a vector (one instruction of AVX2); LOWER and UPPER join the lower
 * or the upper halves of two vectors. */
#if LG_VECTOR == 32
#define LG_HALVES 2
#define LG_LOW_IN_f32(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define LG_HIGH_IN_f32(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LG_LOWER_f32(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define LG_UPPER_f32(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define LG_LOW_IN_f64(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define LG_HIGH_IN_f64(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define LG_LOWER_f64(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define LG_UPPER_f64(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#else
#define LG_HALVES 1
#define LG_LOW_IN_f32 LG_LOW_f32
#define LG_HIGH_IN_f32 LG_HIGH_f32
#define LG_LOW_IN_f64 LG_LOW_f64
#define LG_HIGH_IN_f64 LG_HIGH_f64
#define LG_LOWER_f32(a, b) (a)
#define LG_UPPER_f32(a, b) (b)
#define LG_LOWER_f64(a, b) (a)
#define LG_UPPER_f64(a, b) (b)
#endif

/* Transposes: to[c * to_row + r] = from[r * from_row + c] for `rows` rows and `cols` columns, at most the lanes of a
 * vector each. Whole vectors are written; lanes beyond `rows` are 0. */
#define LG_SIMD_FOR(t, type)                                                                                           \
        LG_INLINE void lg_vec_transpose_##t(const type *from, ptrdiff_t from_row, type *to, ptrdiff_t to_row,          \
                                            int64_t rows, int64_t cols)                                                \
        {                                                                                                              \
                enum { lanes = LG_LANES_##t, half = lanes / 2, part = lanes / LG_HALVES };                             \
                lg_vec_##t v[lanes], w[lanes];                                                                         \
                const lg_mask_##t mask = lg_mask_first_##t(cols);                                                      \
                if (LG_HALVES == 2 && cols == lanes) {                                                                 \
                        LG_UNROLL                                                                                      \
                        for (int i = 0; i < lanes; i++)                                                                \
                                v[i] = i < rows ? lg_vec_load_##t(from + i * from_row) : (lg_vec_##t){0};              \
                } else {                                                                                               \
                        LG_UNROLL                                                                                      \
                        for (int i = 0; i < lanes; i++)                                                                \
                                v[i] = i < rows ? lg_vec_load_some_##t(from + i * from_row, mask) : (lg_vec_##t){0};   \
                }                                                                                                      \
                LG_UNROLL                                                                                              \
                for (int i = 0; LG_HALVES == 2 && i < half; i++) {                                                     \
                        w[i] = LG_LOWER_##t(v[i], v[i + half]);                                                        \
                        w[i + half] = LG_UPPER_##t(v[i], v[i + half]);                                                 \
                }                                                                                                      \
                LG_UNROLL                                                                                              \
                for (int i = 0; LG_HALVES == 2 && i < lanes; i++)                                                      \
                        v[i] = w[i];                                                                                   \
                LG_UNROLL                                                                                              \
                for (int round = 1; round < part; round *= 2) {                                                        \
                        LG_UNROLL                                                                                      \
                        for (int i = 0; i < half; i++) {                                                               \
                                const int at = i / (part / 2) * part, j = i % (part / 2);                              \
                                w[at + 2 * j] = LG_LOW_IN_##t(v[at + j], v[at + j + part / 2]);                        \
                                w[at + 2 * j + 1] = LG_HIGH_IN_##t(v[at + j], v[at + j + part / 2]);                   \
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
