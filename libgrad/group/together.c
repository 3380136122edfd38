/* together.c - operations of all processes of a group, in pieces.
 *
 * A reduction goes two ways: each rank receives its slice from all, adds them up in the order of ranks, and sends the
 * sum to all. So an element is summed once, by one process, in one order.
 */
#include <string.h>
#include "group/peer.h"
#include "tensor/tensor.h"

/* Part r of `count` elements that are cut into as many parts as there are ranks. */
static int64_t part_at(const lg__peer *p, int64_t count, int r)
{
        return count * r / p->size;
}

/* Receives `count` elements of dtype from every rank, and reduces them to `to`; mine are in `own`. */
static bool reduce_part(lg__peer *p, const char *own, int64_t count, char *to)
{
        const size_t bytes = (size_t)count * lg__dtype_bytes(p->joint.dtype);
        for (int r = 0; r < p->size; r++) {
                p->parts[r] = r == p->rank ? own : p->staging + (size_t)r * p->piece;
                if (r != p->rank && bytes && !lg__peer_receives(p, r, p->staging + (size_t)r * p->piece, bytes))
                        return lg__peer_waits(p);
        }
        if (!lg__peer_waits(p))
                return false;
        if (count)
                lg__reduce_ranks(p->joint.dtype, p->joint.reduction, p->size, p->parts, p->weighted ? p->weights : NULL,
                                 count, to);
        return true;
}

/* Up to `size` pieces at once: a part for each rank, the sums of which come back. */
static bool all_reduce(lg__peer *p, const char *in, char *out, int64_t count)
{
        const int64_t size = (int64_t)lg__dtype_bytes(p->joint.dtype);
        const int64_t most = (int64_t)p->piece / size * p->size;
        for (int64_t done = 0; done < count; done += most) {
                const int64_t some = count - done < most ? count - done : most;
                const int64_t mine = part_at(p, some, p->rank), end = part_at(p, some, p->rank + 1);
                for (int r = 0; r < p->size; r++) {
                        const int64_t from = part_at(p, some, r), n = part_at(p, some, r + 1) - from;
                        if (r != p->rank && n && !lg__peer_sends(p, r, in + (done + from) * size, (size_t)(n * size)))
                                return lg__peer_waits(p);
                }
                if (!reduce_part(p, in + (done + mine) * size, end - mine, out + (done + mine) * size))
                        return false;
                for (int r = 0; r < p->size; r++) {
                        const int64_t from = part_at(p, some, r), n = part_at(p, some, r + 1) - from;
                        if (r == p->rank)
                                continue;
                        if ((n && !lg__peer_receives(p, r, out + (done + from) * size, (size_t)(n * size))) ||
                            (end > mine &&
                             !lg__peer_sends(p, r, out + (done + mine) * size, (size_t)((end - mine) * size))))
                                return lg__peer_waits(p);
                }
                if (!lg__peer_waits(p))
                        return false;
        }
        return true;
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
                if (!reduce_part(p, in + (p->rank * count + done) * size, n, out + done * size))
                        return false;
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
