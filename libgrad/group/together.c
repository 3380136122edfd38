/* together.c - operations of all processes of a group, in pieces.
 *
 * A reduction goes two ways: each rank receives its slice from all, adds them up in the order of ranks, and sends the
 * sum to all. So an element is summed once, by one process, in one order. Several pieces are on their way at once: a
 * thread beside one that computes gets a processor late, and the network goes on meanwhile.
 */
#include <string.h>
#include "group/peer.h"
#include "tensor/tensor.h"

/* Part r of `count` elements that are cut into as many parts as there are ranks. */
static int64_t part_at(const lg__peer *p, int64_t count, int r)
{
        return count * r / p->size;
}

/* Where the piece of rank r lies of those that are received together. */
static char *staging_of(const lg__peer *p, int slot, int r)
{
        return p->staging + ((size_t)slot * (size_t)p->size + (size_t)r) * p->piece;
}

/* Begins to receive `bytes` from every rank. */
static bool receive_parts(lg__peer *p, int slot, size_t bytes)
{
        for (int r = 0; r < p->size; r++)
                if (r != p->rank && bytes && !lg__peer_receives(p, r, staging_of(p, slot, r), bytes))
                        return false;
        return true;
}

/* Reduces `count` elements of dtype, which have been received, to `to`; mine are in `own`. */
static void reduce_parts(lg__peer *p, int slot, const char *own, int64_t count, char *to)
{
        for (int r = 0; r < p->size; r++)
                p->parts[r] = r == p->rank ? own : staging_of(p, slot, r);
        if (count)
                lg__reduce_ranks(p->joint.dtype, p->joint.reduction, p->size, p->parts, p->weighted ? p->weights : NULL,
                                 count, to);
}

/* An all_reduce, of which each turn takes `most` elements: a part for each rank, the sums of which come back. */
typedef struct turns {
        const char *in;
        char *out;
        int64_t count, most, size; /* elements; bytes of one */
} turns;

/* Part r of turn k: where it begins; and behind it. */
static int64_t turn_at(const lg__peer *p, const turns *t, int64_t k, int r)
{
        const int64_t done = k * t->most, some = t->count - done < t->most ? t->count - done : t->most;
        return (done + part_at(p, some, r)) * t->size;
}

/* Messages of a turn have one of two keys: this for parts, and LG__WINDOW more for sums, which may have the memory of
 * parts that are being sent. */
static int slot_of(int64_t k)
{
        return (int)(k % LG__WINDOW);
}

static bool send_parts(lg__peer *p, const turns *t, int64_t k)
{
        const int64_t mine = turn_at(p, t, k, p->rank), end = turn_at(p, t, k, p->rank + 1);
        p->key = slot_of(k);
        for (int r = 0; r < p->size; r++) {
                const int64_t from = turn_at(p, t, k, r), bytes = turn_at(p, t, k, r + 1) - from;
                if (r != p->rank && bytes && !lg__peer_sends(p, r, t->in + from, (size_t)bytes))
                        return false;
        }
        return receive_parts(p, slot_of(k), (size_t)(end - mine));
}

static bool exchange_sums(lg__peer *p, const turns *t, int64_t k)
{
        const int64_t mine = turn_at(p, t, k, p->rank), end = turn_at(p, t, k, p->rank + 1);
        if (!lg__peer_waits_for(p, slot_of(k)))
                return false;
        reduce_parts(p, slot_of(k), t->in + mine, (end - mine) / t->size, t->out + mine);
        p->key = slot_of(k) + LG__WINDOW;
        for (int r = 0; r < p->size; r++) {
                const int64_t from = turn_at(p, t, k, r), bytes = turn_at(p, t, k, r + 1) - from;
                if (r == p->rank)
                        continue;
                if ((bytes && !lg__peer_receives(p, r, t->out + from, (size_t)bytes)) ||
                    (end > mine && !lg__peer_sends(p, r, t->out + mine, (size_t)(end - mine))))
                        return false;
        }
        return true;
}

/* Turns begin LG__WINDOW - 1 before their sums are due, in the same order on all ranks. */
static bool all_reduce(lg__peer *p, const char *in, char *out, int64_t count)
{
        turns t = {.in = in, .out = out, .count = count, .size = (int64_t)lg__dtype_bytes(p->joint.dtype)};
        t.most = (int64_t)p->piece / t.size * p->size;
        const int64_t n = (count + t.most - 1) / t.most;
        bool ok = true;
        for (int64_t k = 0; ok && k < n + LG__WINDOW - 1; k++) {
                if (k < n)
                        ok = lg__peer_waits_for(p, slot_of(k) + LG__WINDOW) && send_parts(p, &t, k);
                if (ok && k >= LG__WINDOW - 1)
                        ok = exchange_sums(p, &t, k - (LG__WINDOW - 1));
        }
        return lg__peer_waits(p) && ok;
}

/* `count` elements for each rank. */
static bool reduce_scatter(lg__peer *p, const char *in, char *out, int64_t count)
{
        const int64_t size = (int64_t)lg__dtype_bytes(p->joint.dtype), most = (int64_t)p->piece / size;
        for (int64_t done = 0; done < count; done += most) {
                const int64_t n = count - done < most ? count - done : most;
                for (int r = 0; r < p->size; r++)
                        if (r != p->rank && !lg__peer_sends(p, r, in + (r * count + done) * size, (size_t)(n * size)))
                                return lg__peer_waits(p);
                if (!receive_parts(p, 0, (size_t)(n * size)) || !lg__peer_waits(p))
                        return lg__peer_waits(p);
                reduce_parts(p, 0, in + (p->rank * count + done) * size, n, out + done * size);
        }
        return true;
}

static bool all_gather(lg__peer *p, const char *in, char *out, size_t bytes)
{
        for (size_t done = 0; done < bytes; done += p->piece) {
                const size_t n = bytes - done < p->piece ? bytes - done : p->piece;
                for (int r = 0; r < p->size; r++)
                        if (r != p->rank && (!lg__peer_receives(p, r, out + (size_t)r * bytes + done, n) ||
                                             !lg__peer_sends(p, r, in + done, n)))
                                return lg__peer_waits(p);
                if (!lg__peer_waits(p))
                        return false;
        }
        if (bytes)
                memmove(out + (size_t)p->rank * bytes, in, bytes);
        return true;
}

/* From rank `root` to rank `to`, or to all where that is -1. */
static bool pass_on(lg__peer *p, int root, int to, const char *in, char *out, size_t bytes)
{
        for (size_t done = 0; done < bytes; done += p->piece) {
                const size_t n = bytes - done < p->piece ? bytes - done : p->piece;
                if (p->rank != root && !lg__peer_receives(p, root, out + done, n))
                        return lg__peer_waits(p);
                for (int r = 0; p->rank == root && r < p->size; r++)
                        if (r != root && (to == -1 || r == to) && !lg__peer_sends(p, r, in + done, n))
                                return lg__peer_waits(p);
                if (!lg__peer_waits(p))
                        return false;
        }
        if (p->rank == root && out && bytes)
                memmove(out, in, bytes);
        return true;
}

bool lg__peer_agree(lg__peer *p, const lg__joint *j)
{
        p->under_way = true;
        const bool ok = lg__peer_agrees(p, j);
        p->under_way = ok && !p->linked; /* what goes from device to device is not for the peers to finish */
        return ok;
}

static bool move(lg__peer *p, const lg__joint *j, const void *in, void *out)
{
        const int64_t count = lg__shape_numel(j->shape);
        const size_t bytes = j->what == LG__BARRIER ? 0 : (size_t)count * lg__dtype_bytes(j->dtype);
        switch (j->what) {
        case LG__BARRIER:
                return true;
        case LG__ALL_REDUCE:
                return all_reduce(p, in, out, count);
        case LG__BROADCAST:
                return pass_on(p, j->root, -1, in, out, bytes);
        case LG__ALL_GATHER:
                return all_gather(p, in, out, bytes);
        case LG__REDUCE_SCATTER:
                return reduce_scatter(p, in, out, count / p->size);
        case LG__SEND:
                return pass_on(p, p->rank, j->root, in, NULL, bytes);
        case LG__RECEIVE:
                return pass_on(p, j->root, p->rank, NULL, out, bytes);
        }
        return false;
}

bool lg__peer_move(lg__peer *p, const void *in, void *out)
{
        p->under_way = true;
        const bool ok = !lg__peer_why(p) && move(p, &p->joint, in, out);
        p->under_way = false;
        return ok;
}

bool lg__peer_run(lg__peer *p, const lg__joint *j, const void *in, void *out)
{
        return lg__peer_agree(p, j) && lg__peer_move(p, in, out);
}
