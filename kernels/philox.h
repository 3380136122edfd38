/* philox.h - Philox 4x32-10: random words from a seed and a counter, and uniform and normal numbers made of words.
 *
 * Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. Words and uniforms are equal on all devices. */
#ifndef LG_PHILOX_H
#define LG_PHILOX_H

#include <math.h>
#include <stdint.h>

#ifndef LG_HOST_DEVICE
#ifdef __CUDACC__
#define LG_HOST_DEVICE __host__ __device__
#else
#define LG_HOST_DEVICE
#endif
#endif

typedef struct lg_philox_words {
        uint32_t w[4];
} lg_philox_words;

/* Multipliers of a round (M), and the increments of the key after each round (K). */
#define LG_PHILOX_M0 0xD2511F53u
#define LG_PHILOX_M1 0xCD9E8D57u
#define LG_PHILOX_K0 0x9E3779B9u
#define LG_PHILOX_K1 0xBB67AE85u

/* Returns the four random words for the counter c and the key (k0, k1), after ten rounds. */
LG_HOST_DEVICE static inline lg_philox_words lg_philox(lg_philox_words c, uint32_t k0, uint32_t k1)
{
        for (int round = 0; round < 10; round++) {
                uint64_t p0 = (uint64_t)LG_PHILOX_M0 * c.w[0], p1 = (uint64_t)LG_PHILOX_M1 * c.w[2];
                lg_philox_words n;
                n.w[0] = (uint32_t)(p1 >> 32) ^ c.w[1] ^ k0;
                n.w[1] = (uint32_t)p1;
                n.w[2] = (uint32_t)(p0 >> 32) ^ c.w[3] ^ k1;
                n.w[3] = (uint32_t)p0;
                c = n;
                k0 += LG_PHILOX_K0;
                k1 += LG_PHILOX_K1;
        }
        return c;
}

/* Returns a seed (k 0) or the number of a block (k 1), moved by the k-th number in memory of the device, if any. */
LG_HOST_DEVICE static inline uint64_t lg_philox_moved(uint64_t value, const uint64_t *moved, int k)
{
        return value + (moved ? moved[k] : 0);
}

/* Returns the four random words of block number `counter` of the stream of `seed`. */
LG_HOST_DEVICE static inline lg_philox_words lg_philox_block(uint64_t seed, uint64_t counter)
{
        lg_philox_words c;
        c.w[0] = (uint32_t)counter;
        c.w[1] = (uint32_t)(counter >> 32);
        c.w[2] = 0;
        c.w[3] = 0;
        return lg_philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* Returns a uniform number in [0, 1) made of the upper 24 bits of w; exact in f32. */
LG_HOST_DEVICE static inline double lg_philox_uniform24(uint32_t w)
{
        return (double)(w >> 8) * (1.0 / 16777216.0);
}

/* Returns the upper 53 bits of the 64-bit number (hi, lo). */
LG_HOST_DEVICE static inline uint64_t lg_philox_bits53(uint32_t hi, uint32_t lo)
{
        return (((uint64_t)hi << 32) | lo) >> 11;
}

/* Returns a uniform number in [0, 1) with 53 bits. */
LG_HOST_DEVICE static inline double lg_philox_uniform53(uint32_t hi, uint32_t lo)
{
        return (double)lg_philox_bits53(hi, lo) * (1.0 / 9007199254740992.0);
}

/* Makes two independent standard normal numbers from the uniforms u1 in (0, 1] and u2 in [0, 1) (Box-Muller). */
LG_HOST_DEVICE static inline void lg_box_muller(double u1, double u2, double *ret_z0, double *ret_z1)
{
        double r = sqrt(-2.0 * log(u1)), t = 6.283185307179586476925 * u2;
        *ret_z0 = r * cos(t);
        *ret_z1 = r * sin(t);
}

/* Makes the four normals of block b for f32, f16 and bf16: words 0 and 1 give z[0] and z[1], words 2 and 3 the rest. */
LG_HOST_DEVICE static inline void lg_philox_normal4(lg_philox_words b, double z[4])
{
        const double scale = 1.0 / 4294967296.0;
        lg_box_muller(((double)b.w[0] + 1.0) * scale, (double)b.w[1] * scale, &z[0], &z[1]);
        lg_box_muller(((double)b.w[2] + 1.0) * scale, (double)b.w[3] * scale, &z[2], &z[3]);
}

/* Makes the two normals of block b for f64: words 0 and 1 give u1, words 2 and 3 give u2 (lg_box_muller). */
LG_HOST_DEVICE static inline void lg_philox_normal2(lg_philox_words b, double z[2])
{
        double u1 = ((double)lg_philox_bits53(b.w[0], b.w[1]) + 1.0) * (1.0 / 9007199254740992.0);
        lg_box_muller(u1, lg_philox_uniform53(b.w[2], b.w[3]), &z[0], &z[1]);
}

#endif
