/* conv_winograd.h - one-dimensional Winograd transforms for vectors of f32; see conv_winograd.c.
 *
 * Images are f32, f16 or bf16. Element i of a line is at i * step. Six points are 0, +-5/8, +-3/2 and infinity; four
 * points are 0, +-1 and infinity. */
#ifndef LG_CPU_CONV_WINOGRAD_H
#define LG_CPU_CONV_WINOGRAD_H

#include "conv.h"
#include "simd.h"

#define WIDTH (LG_BLOCK_VECTORS * LG_LANES_f32) /* channels or outputs per panel */
#define MOST_POINTS 36

typedef lg_vec_f32 vec;

LG_INLINE vec all(float x)
{
        return lg_vec_all_f32(x);
}

/* load_pixel loads and store_pixel stores channels [c, c + count), at most a vector, of a pixel; other lanes are 0. */
LG_INLINE vec load_pixel(const lg_dtype t, const void *pixel, int64_t c, int64_t count)
{
        const bool whole = count >= LG_LANES_f32;
        if (t == LG_F32) {
                const float *p = (const float *)pixel + c;
                return whole ? lg_vec_load_f32(p) : lg_vec_load_some_f32(p, lg_mask_first_f32(count));
        }
        lg_halves h = {0};
        memcpy(&h, (const uint16_t *)pixel + c, whole ? sizeof h : (size_t)count * sizeof(uint16_t));
        return t == LG_F16 ? lg_vec_of_f16(h) : lg_vec_of_bf16(h);
}

LG_INLINE void store_pixel(const lg_dtype t, void *pixel, int64_t c, int64_t count, vec v)
{
        const bool whole = count >= LG_LANES_f32;
        if (t == LG_F32 && whole) {
                lg_vec_store_f32((float *)pixel + c, v);
        } else if (t == LG_F32) {
                lg_vec_store_some_f32((float *)pixel + c, lg_mask_first_f32(count), v);
        } else {
                const lg_halves h = t == LG_F16 ? lg_f16_of_vec(v) : lg_bf16_of_vec(v);
                memcpy((uint16_t *)pixel + c, &h, whole ? sizeof h : (size_t)count * sizeof(uint16_t));
        }
}

/* Returns a x + y. */
LG_INLINE vec plus(float a, vec x, vec y)
{
        return lg_vec_fma_f32(all(a), x, y);
}

#define A 0.625F
#define A2 (A * A)
#define B 1.5F
#define B2 (B * B)

LG_INLINE void input_line_4(const vec *d, int step, vec *to, int to_step)
{
        const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
        const vec even_a = plus(-B2, d2, d4), odd_a = plus(-B2, d1, d3);
        const vec even_b = plus(-A2, d2, d4), odd_b = plus(-A2, d1, d3);
        to[0] = plus(A2 * B2, d0, plus(-A2 - B2, d2, d4));
        to[to_step] = plus(A, odd_a, even_a);
        to[2 * to_step] = plus(-A, odd_a, even_a);
        to[3 * to_step] = plus(B, odd_b, even_b);
        to[4 * to_step] = plus(-B, odd_b, even_b);
        to[5 * to_step] = plus(A2 * B2, d1, plus(-A2 - B2, d3, d5));
}

/* Computes `count` (4 or 3) results from the products at the six points; the point infinity contributes to the last. */
LG_INLINE void results_of_6(const vec *m, int step, vec *to, int to_step, int count)
{
        const vec m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step], last = m[5 * step];
        const vec sum_a = m1 + m2, sum_b = m3 + m4, odd_a = m1 - m2, odd_b = m3 - m4;
        to[0] = m[0] + sum_a + sum_b;
        to[to_step] = plus(A, odd_a, all(B) * odd_b);
        to[2 * to_step] = plus(A2, sum_a, count == 3 ? plus(B2, sum_b, last) : all(B2) * sum_b);
        if (count == 4)
                to[3 * to_step] = plus(A2 * A, odd_a, plus(B2 * B, odd_b, last));
}

/* Evaluates a kernel at the six points. even[i] and odd[i] are the sums of its elements with even and odd number at the
 * point A (i = 0) or B (1), the odd ones divided by the point. */
LG_INLINE void kernel_at_6(vec first, vec last, const vec even[2], const vec odd[2], vec *to, int to_step)
{
        const vec a = all(1 / (2 * A2 * (A2 - B2))), b = all(1 / (2 * B2 * (B2 - A2)));
        to[0] = all(1 / (A2 * B2)) * first;
        to[to_step] = a * plus(A, odd[0], even[0]);
        to[2 * to_step] = a * plus(-A, odd[0], even[0]);
        to[3 * to_step] = b * plus(B, odd[1], even[1]);
        to[4 * to_step] = b * plus(-B, odd[1], even[1]);
        to[5 * to_step] = last;
}

LG_INLINE void output_line_4(const vec *m, int step, vec *to, int to_step)
{
        results_of_6(m, step, to, to_step, 4);
}

LG_INLINE void kernel_line_4(const vec *w, int step, vec *to, int to_step)
{
        const vec w0 = w[0], w1 = w[step], w2 = w[2 * step];
        kernel_at_6(w0, w2, (const vec[]){plus(A2, w2, w0), plus(B2, w2, w0)}, (const vec[]){w1, w1}, to, to_step);
}

LG_INLINE void input_line_2(const vec *d, int step, vec *to, int to_step)
{
        const vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
        to[0] = d0 - d2;
        to[to_step] = d1 + d2;
        to[2 * to_step] = d2 - d1;
        to[3 * to_step] = d1 - d3;
}

LG_INLINE void output_line_2(const vec *m, int step, vec *to, int to_step)
{
        const vec m1 = m[step], m2 = m[2 * step];
        to[0] = m[0] + m1 + m2;
        to[to_step] = m1 - m2 - m[3 * step];
}

LG_INLINE void kernel_line_2(const vec *w, int step, vec *to, int to_step)
{
        const vec w1 = w[step], half = all(0.5F), even = half * (w[0] + w[2 * step]);
        to[0] = w[0];
        to[to_step] = plus(0.5F, w1, even);
        to[2 * to_step] = plus(-0.5F, w1, even);
        to[3 * to_step] = w[2 * step];
}

/* Transforms for the weight gradient: 3 results from 6 points, with 4 elements of g as the kernel. */
LG_INLINE void gradient_line_4(const vec *g, int step, vec *to, int to_step)
{
        const vec g0 = g[0], g1 = g[step], g2 = g[2 * step], g3 = g[3 * step];
        kernel_at_6(g0, g3, (const vec[]){plus(A2, g2, g0), plus(B2, g2, g0)},
                    (const vec[]){plus(A2, g3, g1), plus(B2, g3, g1)}, to, to_step);
}

LG_INLINE void weight_line_4(const vec *m, int step, vec *to, int to_step)
{
        results_of_6(m, step, to, to_step, 3);
}

#undef A
#undef A2
#undef B
#undef B2

/* Transforms a tile of 6x6 input pixels `from` of dtype t to 36 points, for channels [first, end): point i is at to[i *
 * step]. Prefetches the memory `ahead` bytes after the pixels. */
#define lg_conv_take_tile LG_CPU(conv_take_tile)
void lg_conv_take_tile(lg_dtype t, const void *const *from, int64_t first, int64_t end, ptrdiff_t ahead, float *to,
                       ptrdiff_t step);

#endif
