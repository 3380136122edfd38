/* collectives.c - exchange of the data of collectives, in pieces: copies from rank to rank, reductions in rank order.
 *
 * In a reduction each rank receives its part from all ranks, reduces it in the order of ranks, and sends the result to
 * all. So each element is reduced once, by one rank, in one order. Several pieces are in transit at once, because a
 * thread that exchanges them is scheduled late while others compute.
 */
#include <string.h>
#include "group/messages.h"
#include "../../kernels/half.h"

/* ---- reductions of received data ---- */

#define BLOCK 1024 /* elements: their sums stay in the L1 cache */

#define SAME(x) (x)
#define ADD(a, x) ((a) + (x))
#define WRAP(a, x) (int64_t)((uint64_t)(a) + (uint64_t)(x))
#define ANY(a, x) ((a) | (x))
#define GREATEST(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))

/* acc = from[0], then acc = op(acc, from[r]) for the others. */
#define PASS(sum, op, get)                                                                                             \
        for (int r = 0; r < n; r++) {                                                                                  \
                const element *x = (const element *)from[r] + at;                                                      \
                for (int64_t i = 0; i < some; i++)                                                                     \
                        acc[i] = r == 0 ? (sum)get(x[i]) : op(acc[i], (sum)get(x[i]));                                 \
        }

/* acc = sum of weights[r] * from[r]. Elements of weight 0 count as 0, although they may be NaN. */
#define PASS_WEIGHTED(sum, add, get)                                                                                   \
        for (int r = 0; r < n; r++) {                                                                                  \
                const element *x = (const element *)from[r] + at;                                                      \
                for (int64_t i = 0; i < some; i++) {                                                                   \
                        const sum own = weights[r] == 0 ? 0 : (sum)((sum)get(x[i]) * (sum)weights[r]);                 \
                        acc[i] = r == 0 ? own : (sum)add(acc[i], own);                                                 \
                }                                                                                                      \
        }

static double sum_of(const double *weights, int n)
{
        double sum = 0;
        for (int r = 0; r < n; r++)
                sum += weights ? weights[r] : 1;
        return sum;
}

/* Defines the reduction of one dtype. sum: the type of sums; add: adds two; get and put: element to sum and back. */
#define REDUCE(name, type, sum, add, get, put)                                                                         \
        static void name(lg_reduce_op reduction, int n, const void *const *from, const double *weights, int64_t count, \
                         void *to)                                                                                     \
        {                                                                                                              \
                typedef type element;                                                                                  \
                sum acc[BLOCK];                                                                                        \
                const sum all = (sum)sum_of(weights, n);                                                               \
                for (int64_t at = 0; at < count; at += BLOCK) {                                                        \
                        const int64_t some = count - at < BLOCK ? count - at : BLOCK;                                  \
                        if (reduction == LG_REDUCE_OP_MAX)                                                             \
                                PASS(sum, GREATEST, get)                                                               \
                        else if (reduction == LG_REDUCE_OP_MEAN && weights)                                            \
                                PASS_WEIGHTED(sum, add, get)                                                           \
                        else                                                                                           \
                                PASS(sum, add, get)                                                                    \
                        if (reduction == LG_REDUCE_OP_MEAN)                                                            \
                                for (int64_t i = 0; i < some; i++)                                                     \
                                        acc[i] /= all;                                                                 \
                        for (int64_t i = 0; i < some; i++)                                                             \
                                ((element *)to)[at + i] = put(acc[i]);                                                 \
                }                                                                                                      \
        }
REDUCE(reduce_f32, float, float, ADD, SAME, (float))
REDUCE(reduce_f64, double, double, ADD, SAME, (double))
REDUCE(reduce_f16, uint16_t, float, ADD, lg_f32_of_f16, lg_f16_of_f32)
REDUCE(reduce_bf16, uint16_t, float, ADD, lg_f32_of_bf16, lg_bf16_of_f32)
REDUCE(reduce_i64, int64_t, int64_t, WRAP, SAME, (int64_t))
REDUCE(reduce_i32, int32_t, int64_t, WRAP, SAME, (int32_t)(uint32_t))
REDUCE(reduce_u8, uint8_t, int64_t, WRAP, SAME, (uint8_t))
REDUCE(reduce_bool, uint8_t, int64_t, ANY, SAME, (uint8_t))

/* Reduces from[0] to from[n - 1], element by element in this order, into `to`, which may be one of them. weights: of a
 * weighted mean, else NULL. */
static void reduce_ranks(lg_dtype dtype, lg_reduce_op reduction, int n, const void *const *from, const double *weights,
                         int64_t count, void *to)
{
        typedef void fn(lg_reduce_op, int, const void *const *, const double *, int64_t, void *);
        static fn *const reduce[LG_DTYPE_COUNT] = {
                [LG_F32] = reduce_f32, [LG_F64] = reduce_f64, [LG_F16] = reduce_f16, [LG_BF16] = reduce_bf16,
                [LG_I64] = reduce_i64, [LG_I32] = reduce_i32, [LG_U8] = reduce_u8,   [LG_BOOL] = reduce_bool,
        };
        reduce[dtype](reduction, n, from, weights, count, to);
}

/* ---- all_reduce, reduce_scatter ---- */

/* A reduction, done in turns of `most` elements; in each turn every rank reduces one part. */
typedef struct reduction {
        const char *in;
        char *out;
        int64_t count, most, size; /* count: elements of `in`; most: of a turn; size: bytes of an element */
        bool scattered;            /* out receives this rank's sums only; false: the sums of all ranks */
} reduction;

/* A range of elements of a reduction. */
typedef struct span {
        int64_t at, count; /* position of the first element; number of elements */
        size_t bytes;
} span;

/* Returns the part of turn k that rank r reduces. */
static span part_of(const lg__comm *m, const reduction *x, int64_t k, int r)
{
        const int64_t done = k * x->most, some = x->count - done < x->most ? x->count - done : x->most;
        const int64_t from = some * r / m->size, count = some * (r + 1) / m->size - from;
        const int64_t at = x->scattered ? r * (x->count / m->size) + done / m->size : done + from;
        return (span){at, count, (size_t)(count * x->size)};
}

/* Returns the key of turn k's messages with parts. Messages with sums have a key greater by LG__WINDOW: a rank waits
 * for the parts alone before it receives sums, which may overwrite the parts. */
static int slot_of(int64_t k)
{
        return (int)(k % LG__WINDOW);
}

/* Address of rank r's piece in the receive buffer. */
static char *staging_of(const lg__comm *m, int slot, int r)
{
        return m->staging + ((size_t)slot * (size_t)m->size + (size_t)r) * m->piece_bytes;
}

static bool exchange_parts(lg__comm *m, const reduction *x, int64_t k)
{
        const span mine = part_of(m, x, k, m->rank);
        m->key = slot_of(k);
        for (int r = 0; r < m->size; r++) {
                const span theirs = part_of(m, x, k, r);
                if (r == m->rank)
                        continue;
                if ((theirs.bytes && !lg__piece_send(m, r, x->in + theirs.at * x->size, theirs.bytes)) ||
                    (mine.bytes && !lg__piece_receive(m, r, staging_of(m, slot_of(k), r), mine.bytes)))
                        return false;
        }
        return true;
}

static bool exchange_sums(lg__comm *m, const reduction *x, int64_t k)
{
        const span mine = part_of(m, x, k, m->rank);
        char *sum = x->out + (x->scattered ? k * x->most / m->size : mine.at) * x->size;
        if (!lg__pieces_wait(m, slot_of(k)))
                return false;
        for (int r = 0; r < m->size; r++)
                m->parts[r] = r == m->rank ? x->in + mine.at * x->size : staging_of(m, slot_of(k), r);
        if (mine.count)
                reduce_ranks(m->collective.dtype, m->collective.reduction, m->size, m->parts,
                             m->weighted ? m->weights : NULL, mine.count, sum);
        m->key = slot_of(k) + LG__WINDOW;
        for (int r = 0; r < m->size && !x->scattered; r++) {
                const span theirs = part_of(m, x, k, r);
                if (r == m->rank)
                        continue;
                if ((theirs.bytes && !lg__piece_receive(m, r, x->out + theirs.at * x->size, theirs.bytes)) ||
                    (mine.bytes && !lg__piece_send(m, r, sum, mine.bytes)))
                        return false;
        }
        return true;
}

/* Exchanges the parts of each turn LG__WINDOW - 1 turns before the sums, in the same order on all ranks. */
static bool run_reduction(lg__comm *m, const char *in, char *out)
{
        const lg__collective *c = &m->collective;
        reduction x = {.in = in, .out = out, .count = lg__shape_numel(c->shape)};
        x.size = (int64_t)lg__dtype_bytes(c->dtype);
        x.most = (int64_t)m->piece_bytes / x.size * m->size;
        x.scattered = c->kind == LG__REDUCE_SCATTER;
        const int64_t turns = (x.count + x.most - 1) / x.most;
        bool ok = true;
        for (int64_t k = 0; ok && k < turns + LG__WINDOW - 1; k++) {
                if (k < turns)
                        ok = lg__pieces_wait(m, slot_of(k) + LG__WINDOW) && exchange_parts(m, &x, k);
                if (ok && k >= LG__WINDOW - 1)
                        ok = exchange_sums(m, &x, k - (LG__WINDOW - 1));
        }
        return lg__pieces_wait(m, -1) && ok;
}

/* ---- copies ---- */

/* Returns whether rank `from` sends data to rank `to` (which may be the same) in a collective without a reduction. */
static bool is_sent(const lg__comm *m, int from, int to)
{
        const lg__collective *c = &m->collective;
        switch (c->kind) {
        case LG__ALL_GATHER:
                return true;
        case LG__BROADCAST:
        case LG__RECEIVE:
                return from == c->root && (c->kind == LG__BROADCAST || to == m->rank);
        case LG__SEND:
                return from == m->rank && to == c->root;
        default:
                return false;
        }
}

static bool run_copies(lg__comm *m, const char *in, char *out)
{
        const lg__collective *c = &m->collective;
        const size_t bytes = (size_t)lg__shape_numel(c->shape) * lg__dtype_bytes(c->dtype);
        const size_t stride = c->kind == LG__ALL_GATHER ? bytes : 0; /* bytes between the data of two ranks in out */
        for (size_t done = 0; done < bytes; done += m->piece_bytes) {
                const size_t n = bytes - done < m->piece_bytes ? bytes - done : m->piece_bytes;
                bool ok = true;
                for (int r = 0; r < m->size && ok; r++)
                        if (r != m->rank)
                                ok = (!is_sent(m, r, m->rank) ||
                                      lg__piece_receive(m, r, out + (size_t)r * stride + done, n)) &&
                                     (!is_sent(m, m->rank, r) || lg__piece_send(m, r, in + done, n));
                if (!lg__pieces_wait(m, -1))
                        return false;
        }
        if (bytes && out && is_sent(m, m->rank, m->rank))
                memmove(out + (size_t)m->rank * stride, in, bytes);
        return true;
}

bool lg__comm_exchange(lg__comm *m, const void *in, void *out)
{
        const lg__collective_kind kind = m->collective.kind;
        m->active = true;
        bool ok = !m->broken;
        if (kind == LG__ALL_REDUCE || kind == LG__REDUCE_SCATTER)
                ok = ok && run_reduction(m, in, out);
        else if (kind != LG__BARRIER)
                ok = ok && run_copies(m, in, out);
        m->active = false;
        return ok;
}
