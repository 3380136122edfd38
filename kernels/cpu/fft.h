/* fft.h - plans of Fourier transforms: factors of a length and the tables of their roots of unity. */
#ifndef LG_CPU_FFT_H
#define LG_CPU_FFT_H

#include "cpu.h"

/* A pass of a transform: `before` transforms of radix * after elements each become radix * before of `after` elements.
 * turns: e(i k / (radix after)) for i < after and 0 < k < radix, with e(t) = exp(-2 pi i t). roots, of odd radices:
 * cos(2 pi k / radix) for k < radix, then as many sines. */
typedef struct lg_fft_step {
        int64_t radix, before, after;
        void *turns, *roots;
} lg_fft_step;

/* Plan of n elements. Bluestein's algorithm, if `length` is not n: the steps are those of a cyclic convolution of
 * `length` elements with `spectrum`, and chirp is e(j^2 / (2 n)). */
typedef struct lg_fft_plan {
        int64_t n, length;
        int steps;
        lg_fft_step step[64];
        void *chirp, *spectrum;
} lg_fft_plan;

/* Tables of one length and use. A long transform of n = plan[0].n * plan[1].n elements is split in two, with factors
 * e(j k / n) between them: `lanes` holds those of k < plan[0].n and j < the lanes of a vector, and the powers of e(1 /
 * turn) at multiples of LG_FFT_LOW and below it give the others. pairs: e(k / (2 n)) for 2 k <= n, which separate the
 * transform of 2 n reals from that of n pairs. */
#define LG_FFT_LOW 1024
typedef struct lg_fft_tables {
        bool split, real;
        lg_dtype dtype;
        int64_t n;
        lg_fft_plan plan[2];
        void *lanes, *pairs;
        double *high, *low;
        int64_t turn;
        size_t bytes;
} lg_fft_tables;

/* Returns the tables of complex transforms of n elements; `real`: with those of 2 n reals. `split` asks for two
 * factors, and is ignored if n has none of a useful size. They are kept with the queue or valid until the kernel
 * returns. Returns NULL if memory is exhausted. */
#define lg_fft_tables_of LG_CPU(fft_tables_of)
const lg_fft_tables *lg_fft_tables_of(lg_queue *q, lg_dtype dtype, int64_t n, bool split, bool real);

/* Writes e(k / n) = exp(-2 pi i k / n), from angles of at most pi / 4. 0 <= k < n. */
#define lg_fft_turn LG_CPU(fft_turn)
void lg_fft_turn(int64_t k, int64_t n, double *ret);
/* Returns whether all prime factors of n are radices. */
#define lg_fft_is_smooth LG_CPU(fft_is_smooth)
bool lg_fft_is_smooth(int64_t n);
/* Returns the shortest length 2^a c of at least n, for a few odd c. */
#define lg_fft_length_from LG_CPU(fft_length_from)
int64_t lg_fft_length_from(int64_t n);
/* Transforms long lines whose length has a large prime factor. */
#define lg_fft_prime LG_CPU(fft_prime)
bool lg_fft_prime(lg_queue *q, const lg_fft_args *a);

/* Transforms the vectors of f64 at x, and returns where the result is: x or y. A buffer holds `length` pairs. */
#define lg_fft_vectors LG_CPU(fft_vectors)
double *lg_fft_vectors(const lg_fft_plan *p, double *x, double *y);

#endif
