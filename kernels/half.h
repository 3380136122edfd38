/* half.h - conversion of f16 and bf16 to and from f32: rounds to nearest even and handles subnormals, infinities and
 * NaN.
 *
 * All functions are free of branches, so that loops over them are vectorised on every instruction set. */
#ifndef LG_HALF_H
#define LG_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t lg_bits_of_f32(float x)
{
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        return u;
}

static inline float lg_f32_of_bits(uint32_t u)
{
        float x;
        memcpy(&x, &u, sizeof x);
        return x;
}

static inline float lg_f32_of_bf16(uint16_t h)
{
        return lg_f32_of_bits((uint32_t)h << 16);
}

static inline uint16_t lg_bf16_of_f32(float x)
{
        uint32_t u = lg_bits_of_f32(x);
        uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
        uint32_t nan = (u >> 16) | 0x40u;
        return (uint16_t)((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

static inline float lg_f32_of_f16(uint16_t h)
{
        uint32_t sign = (uint32_t)(h & 0x8000u) << 16, low = h & 0x7FFFu;
        uint32_t normal = (low << 13) + (112u << 23);
        uint32_t special = (low << 13) | 0x7F800000u;
        /* A subnormal f16 is its mantissa times 2^-24, and this product is exact in f32. */
        uint32_t subnormal = lg_bits_of_f32((float)(int32_t)low * 0x1p-24f);
        uint32_t r = low < 0x0400u ? subnormal : normal;
        r = low >= 0x7C00u ? special : r;
        return lg_f32_of_bits(r | sign);
}

static inline uint16_t lg_f16_of_f32(float x)
{
        uint32_t u = lg_bits_of_f32(x), sign = (u >> 16) & 0x8000u, low = u & 0x7FFFFFFFu;
        uint32_t normal = (low - (112u << 23) + 0xFFFu + ((low >> 13) & 1u)) >> 13;
        /* One unit in the last place of an f32 near 0.5 equals one f16 subnormal step: adding 0.5 rounds correctly. */
        uint32_t subnormal = lg_bits_of_f32(lg_f32_of_bits(low) + 0.5f) - 0x3F000000u;
        uint32_t nan = 0x7E00u | ((low >> 13) & 0x3FFu);
        uint32_t r = low < 0x38800000u ? subnormal : normal;
        r = low >= 0x47800000u ? 0x7C00u : r;
        r = low > 0x7F800000u ? nan : r;
        return (uint16_t)(r | sign);
}

#endif
