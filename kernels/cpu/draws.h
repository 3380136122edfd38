/* draws.h - Philox for vectors of counters. */
#ifndef LG_CPU_DRAWS_H
#define LG_CPU_DRAWS_H

#include "simd.h"
#include "../philox.h"

/* Replaces the counters w[0] (64 bits; the other words of a counter are 0) by the four words of their Philox blocks, in
 * the lower halves of the lanes. The upper halves are undefined. */
LG_INLINE void lg_philox_blocks(uint64_t seed, lg_vec_u64 w[4])
{
        const lg_vec_u64 zero = {0};
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        w[1] = w[0] >> 32;
        w[2] = w[3] = zero;
        LG_UNROLL
        for (int round = 0; round < 10; round++) {
                const lg_vec_u64 p0 = lg_vec_multiply_halves(w[0], zero + LG_PHILOX_M0);
                const lg_vec_u64 p1 = lg_vec_multiply_halves(w[2], zero + LG_PHILOX_M1);
                w[0] = (p1 >> 32) ^ w[1] ^ (zero + k0);
                w[1] = p1;
                w[2] = (p0 >> 32) ^ w[3] ^ (zero + k1);
                w[3] = p0;
                k0 += LG_PHILOX_K0;
                k1 += LG_PHILOX_K1;
        }
}

#endif
