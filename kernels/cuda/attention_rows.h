/* attention_rows.h - kernels of attention that turn rows of products into weights and into derivatives of scores. */
#ifndef LG_CUDA_ATTENTION_ROWS_H
#define LG_CUDA_ATTENTION_ROWS_H

#include "scores.h"
#include "scalar.h"
#include "../philox.h"

enum { BATCH, KV_HEAD, SHARER, QUERY, DIMS };

typedef struct chunk {
        int64_t first[DIMS], count[DIMS];
} chunk;

/* Arguments of the kernels of rows. limit: draws of 24 bits below it drop a weight; kept: factor of the others. */
typedef struct rules {
        lg_attention_args a;
        chunk at;
        int64_t rows, sharers, plane; /* plane: rows of a plane of stats */
        bool narrow;                  /* of 16-bit floats */
        uint32_t limit;
        double kept;
        lg_device_error *error;
} rules;

/* The score's row of one query, as the first thread of the team sees it: keys [first, end) may be visible. */
template <typename H> struct place {
        const rules &r;
        int64_t row, first, end, mask;
        int64_t at[DIMS]; /* of the query, in the tensors */

        __device__ inline place(const rules &given, int64_t i) : r(given), first(0)
        {
                const lg_attention_args &a = r.a;
                for (int d = DIMS - 1; d >= 0; d--) {
                        at[d] = r.at.first[d] + i % r.at.count[d];
                        i /= r.at.count[d];
                }
                const int64_t b = at[BATCH], p = at[QUERY] + a.offset;
                row = (b * a.heads + head()) * a.queries + at[QUERY];
                mask = b * a.mask_strides[0] + head() * a.mask_strides[1] + at[QUERY] * a.mask_strides[2];
                end = a.kv_lengths ? a.kv_lengths[b] : a.keys;
                if (end < 0 || end > a.keys) {
                        lg_note(r.error, a.origin, end, a.keys + 1);
                        end = 0;
                }
                if (a.right >= 0 && p + a.right + 1 < end)
                        end = p + a.right + 1;
                if (a.left >= 0 && p - a.left > 0)
                        first = p - a.left;
        }
        __device__ inline int64_t head() const
        {
                return at[KV_HEAD] * r.sharers + at[SHARER];
        }
        /* Returns whether the mask hides key j; if it does not, adds its element to *x. */
        __device__ inline bool masks(int64_t j, H *x) const
        {
                const int64_t i = mask + j * r.a.mask_strides[3];
                if (r.a.mask_dtype == LG_BOOL)
                        return !((const uint8_t *)r.a.mask)[i];
                const H m = ((const H *)r.a.mask)[i];
                *x += m;
                return m == -INFINITY;
        }
        /* Replaces products q k from key j on by scores, -infinity where a key is hidden. slope: the scores'
         * derivatives by the products. */
        template <int V> __device__ inline void score(int64_t j, H *d, H *slope) const
        {
                const H scale = (H)r.a.scale, cap = (H)r.a.softcap;
                LG_UNROLL
                for (int u = 0; u < V; u++) {
                        H x = d[u] * scale;
                        slope[u] = scale;
                        if (cap > 0) {
                                const H t = lgm_tanh(x / cap);
                                x = cap * t;
                                slope[u] *= 1 - t * t;
                        }
                        const bool hidden = j + u < first || j + u >= end || (r.a.mask && masks(j + u, &x));
                        d[u] = hidden ? -(H)INFINITY : x;
                }
        }
        /* Sets the factors by which dropout multiplies the weights of the keys from j on. */
        template <int V> __device__ inline void draw(int64_t j, H *factor) const
        {
                lg_philox_words words = {};
                LG_UNROLL
                for (int u = 0; u < V; u++) {
                        if (r.limit && (V == 1 || u % 4 == 0))
                                words = lg_philox_block(lg_philox_moved(r.a.seed, r.a.moved, 0),
                                                        lg_philox_moved(r.a.counter, r.a.moved, 1) +
                                                                (uint64_t)row * (uint64_t)((r.a.keys + 3) / 4) +
                                                                (uint64_t)((j + u) / 4));
                        factor[u] = words.w[(j + u) % 4] >> 8 >= r.limit ? (H)r.kept : (H)0;
                }
        }
        /* Returns whether neither length nor windows leave one of the V keys from j on. */
        __device__ inline bool skips(int64_t j, int V) const
        {
                return j + V <= first || j >= end;
        }
};

/* Replaces products q k by the weights of v, and stores the rows' stats. */
template <typename H, int TEAM, int V> static __global__ void weights_rows(rules r, H *scores)
{
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        for (int64_t i = LG_FIRST_ROW(TEAM); i < r.rows; i += LG_ROW_STEP(TEAM)) {
                const place<H> p(r, i);
                H *s = scores + i * r.a.keys, d[V], other[V];
                lg_running<H> seen = {-INFINITY, 0};
                lg_each<TEAM, 0, V>(r.a.keys, [&](int, int64_t j) {
                        if (p.skips(j, V))
                                return;
                        lg_read<H, V>(s + j, d);
                        p.template score<V>(j, d, other);
                        seen.template take<V>(d);
                });
                H top = lg_team_max<TEAM>(seen.top, shared);
                const H sum = lg_team_sum<TEAM>(seen.below(top), shared), inverse = sum != 0 ? 1 / sum : (H)0;
                top = sum != 0 ? top : (H)0;
                if (lg_rank<TEAM>() == 0) {
                        ((H *)r.a.stats)[p.row] = r.narrow && sum != 0 ? top + (H)log(sum) : top;
                        if (!r.narrow)
                                ((H *)r.a.stats)[r.plane + p.row] = inverse;
                }
                lg_each<TEAM, 0, V>(r.a.keys, [&](int, int64_t j) {
                        if (p.skips(j, V)) {
                                for (int u = 0; u < V; u++)
                                        d[u] = 0;
                        } else {
                                lg_read<H, V>(s + j, d);
                                p.template score<V>(j, d, other);
                                p.template draw<V>(j, other);
                                for (int u = 0; u < V; u++)
                                        d[u] = lg_exp(d[u] - top) * inverse * other[u];
                        }
                        lg_write<H, V>(s + j, d);
                });
        }
}

/* Replaces products q k by the weights of v, and products g v, `grads`, by the derivatives by the products q k. */
template <typename H, int TEAM, int V>
static __global__ void slopes_rows(rules r, H *scores, H *grads, const H *g, lg_head_strides g_at)
{
        LG_SHARED(H, shared, LG_TEAM_WORDS);
        for (int64_t i = LG_FIRST_ROW(TEAM); i < r.rows; i += LG_ROW_STEP(TEAM)) {
                const lg_attention_args &a = r.a;
                const place<H> p(r, i);
                const int64_t b = p.at[BATCH], t = p.at[QUERY];
                const int64_t from = b * a.o_at.batch + p.head() * a.o_at.head + t * a.o_at.row;
                const H *row = g + b * g_at.batch + p.head() * g_at.head + t * g_at.row;
                const H top = ((const H *)a.stats)[p.row];
                const H inverse = r.narrow ? (H)1 : ((const H *)a.stats)[r.plane + p.row];
                H sum = 0;
                lg_each<TEAM, 0, 1>(a.v_dim,
                                    [&](int, int64_t e) { sum += row[e] * lg_load<H>(a.o, a.dtype, from + e); });
                sum = lg_team_sum<TEAM>(sum, shared);
                lg_each<TEAM, 0, V>(a.keys, [&](int, int64_t j) {
                        H *s = scores + i * a.keys + j, *ds = grads + i * a.keys + j, d[V], slope[V], factor[V], dw[V];
                        lg_read<H, V>(s, d);
                        lg_read<H, V>(ds, dw);
                        p.template score<V>(j, d, slope);
                        p.template draw<V>(j, factor);
                        for (int u = 0; u < V; u++) {
                                const bool hidden = d[u] == -INFINITY;
                                const H w = hidden ? (H)0 : lg_exp(d[u] - top) * inverse;
                                d[u] = w * factor[u];
                                dw[u] = hidden ? (H)0 : w * (dw[u] * factor[u] - sum) * slope[u];
                        }
                        lg_write<H, V>(s, d);
                        lg_write<H, V>(ds, dw);
                });
        }
}

/* Launches kernel<H, TEAM, V>: a warp for a row of up to 1024 keys, else a block; four keys at a time if rows allow. */
#define LAUNCH_ROWS(q, name, kernel, r, ...)                                                                           \
        ((r).a.keys <= 1024                                                                                            \
                 ? lg_launch(q, name, (r).a.keys % 4 == 0 ? kernel<H, 32, 4> : kernel<H, 32, 1>,                       \
                             lg_row_blocks(q, (r).rows, 32), r, __VA_ARGS__)                                           \
                 : lg_launch(q, name, (r).a.keys % 4 == 0 ? kernel<H, LG_THREADS, 4> : kernel<H, LG_THREADS, 1>,       \
                             lg_row_blocks(q, (r).rows, LG_THREADS), r, __VA_ARGS__))

#endif
