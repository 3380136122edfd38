/* recurrent.h - parts of a recurrent layer that the forward pass and its derivative share. */
#ifndef LG_CPU_RECURRENT_H
#define LG_CPU_RECURRENT_H

#include "cpu.h"
#include "simd.h"

/* Sizes of a layer. */
typedef struct lg_recurrent_sizes {
        int64_t gates;  /* of the weights: 4, 3 or 1 */
        int64_t planes; /* sums of a step that are kept apart: `gates`, and one more for the GRU */
        int64_t state;  /* elements of a state h */
        int64_t panel;  /* columns of a panel */
        int64_t size;   /* bytes of an element */
} lg_recurrent_sizes;

static inline lg_recurrent_sizes lg_recurrent_sizes_of(const lg_recurrent_args *a)
{
        const bool gru = a->kind == LG_RECURRENT_GRU;
        return (lg_recurrent_sizes){.gates = gru                            ? 3
                                             : a->kind == LG_RECURRENT_LSTM ? 4
                                                                            : 1,
                                    .planes = gru || a->kind == LG_RECURRENT_LSTM ? 4 : 1,
                                    .state = a->projection ? a->projection : a->hidden,
                                    .panel = (a->dtype == LG_F64 ? LG_LANES_f64 : LG_LANES_f32) * LG_BLOCK_VECTORS,
                                    .size = (int64_t)lg_bytes_of(a->dtype)};
}

/* Returns the plane of the state's part of gate g: the GRU's last gate has one of its own. */
static inline int64_t lg_recurrent_plane(const lg_recurrent_args *a, int64_t g)
{
        return a->kind == LG_RECURRENT_GRU && g == 2 ? 3 : g;
}

static inline int64_t lg_recurrent_length(const lg_recurrent_args *a, int64_t b)
{
        return a->lengths ? lg_most(0, lg_least(a->lengths[b], a->steps)) : a->steps;
}

/* Returns the time of step s. */
static inline int64_t lg_recurrent_time(const lg_recurrent_args *a, int64_t s)
{
        return a->reverse ? a->steps - 1 - s : s;
}

/* Returns elements [n, n + 1) of an array of `row` elements a row, number `i`, or NULL for a NULL array. */
static inline void *lg_recurrent_row(const lg_recurrent_sizes *z, const void *p, int64_t i, int64_t row)
{
        return lg_byte_at(p, i * row * z->size);
}

/* Returns the row of `states` (steps, batch, row) of sample b before time t, that of `initial` if t is the sample's
 * first, or NULL if that is NULL. */
static inline const void *lg_recurrent_before(const lg_recurrent_args *a, const lg_recurrent_sizes *z,
                                              const void *states, const void *initial, int64_t row, int64_t t,
                                              int64_t b)
{
        const int64_t first = a->reverse ? lg_recurrent_length(a, b) - 1 : 0;
        if (t == first)
                return lg_recurrent_row(z, initial, b, row);
        return lg_recurrent_row(z, states, (t + (a->reverse ? 1 : -1)) * a->batch + b, row);
}

/* Returns the number of rows of the batch that are a range of a loop over threads: `work` multiply-adds each. */
static inline int64_t lg_recurrent_grain(const lg_queue *q, int64_t batch, double work)
{
        const double least = LG_PARALLEL_WORK / 2;
        const int64_t share = lg_most(1, lg_ceil_div(batch, q->threads));
        return lg_most(share, work >= least ? 1 : lg_least(batch, 1 + (int64_t)(least / (work < 1 ? 1 : work))));
}

#endif
