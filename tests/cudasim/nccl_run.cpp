/* nccl_run.cpp - operations of the simulated NCCL: rounds of a piece each. A rank shows its piece and what it is about,
 * and goes on when all have looked at it. */
#if __has_include(<nccl.h>)
#include "nccl_sim.h"
#include <algorithm>
#include <cstdio>
#include <string>

namespace cudasim
{
std::map<stream_record *, int64_t> &busy = *new std::map<stream_record *, int64_t>;

size_t size_of(int type)
{
        return type == ncclFloat64 || type == ncclInt64 || type == ncclUint64   ? 8
               : type == ncclFloat32 || type == ncclInt32 || type == ncclUint32 ? 4
               : type == ncclFloat16 || type == ncclBfloat16                    ? 2
                                                                                : 1;
}

static std::string words(const meaning &m)
{
        static const char *const names[] = {"AllReduce", "Broadcast", "AllGather", "ReduceScatter", "Send", "Recv"};
        char text[160];
        snprintf(text, sizeof text, "nccl%s of %zu elements of type %d, reduction %d, root %d", names[m.what], m.count,
                 m.type, m.reduction, m.root);
        return text;
}

static bool same(const meaning &a, const meaning &b)
{
        return a.what == b.what && a.type == b.type && a.reduction == b.reduction && a.root == b.root &&
               a.count == b.count;
}

/* ---- sums, in an order that is not that of the ranks ---- */

template <typename S> static S together(int reduction, S a, S b)
{
        if (reduction == ncclMax) /* which takes numbers before NaN */
                return a != a ? b : b > a ? b : a;
        if constexpr (std::is_integral_v<S>)
                return (S)((uint64_t)a + (uint64_t)b);
        else
                return a + b;
}

template <typename T, typename S, S (*widen)(T), T (*round)(S)>
static void reduce(const member &l, int reduction, size_t n, T *to)
{
        const S part = (S)1 / (S)l.size;
        for (size_t i = 0; i < n; i++) {
                T sum{};
                for (int r = l.size - 1; r >= 0; r--) {
                        T x = ((const T *)l.of(r).data)[i];
                        if (reduction == ncclAvg)
                                x = round(widen(x) * part);
                        sum = r == l.size - 1 ? x : round(together<S>(reduction, widen(sum), widen(x)));
                }
                to[i] = sum;
        }
}

template <typename T> static T same_of(T x)
{
        return x;
}
static float of_f16(__half x)
{
        return __half2float(x);
}
static __half to_f16(float x)
{
        return __float2half(x);
}
static float of_bf16(__nv_bfloat16 x)
{
        return __bfloat162float(x);
}
static __nv_bfloat16 to_bf16(float x)
{
        return __float2bfloat16(x);
}

/* The reduction of what all show, n elements. */
static void reduce_shown(const member &l, const meaning &m, size_t n, char *to)
{
        switch (m.type) {
        case ncclFloat32:
                return reduce<float, float, same_of<float>, same_of<float>>(l, m.reduction, n, (float *)to);
        case ncclFloat64:
                return reduce<double, double, same_of<double>, same_of<double>>(l, m.reduction, n, (double *)to);
        case ncclFloat16:
                return reduce<__half, float, of_f16, to_f16>(l, m.reduction, n, (__half *)to);
        case ncclBfloat16:
                return reduce<__nv_bfloat16, float, of_bf16, to_bf16>(l, m.reduction, n, (__nv_bfloat16 *)to);
        case ncclInt64:
                return reduce<int64_t, int64_t, same_of<int64_t>, same_of<int64_t>>(l, m.reduction, n, (int64_t *)to);
        case ncclInt32:
                return reduce<int32_t, int32_t, same_of<int32_t>, same_of<int32_t>>(l, m.reduction, n, (int32_t *)to);
        case ncclUint8:
                return reduce<uint8_t, uint8_t, same_of<uint8_t>, same_of<uint8_t>>(l, m.reduction, n, (uint8_t *)to);
        default:
                die("NCCL: type %d is not simulated", m.type);
        }
}

/* ---- operations ---- */

/* n bytes from o.at on that all show become the result. */
static void take_shown(operation &o, size_t n)
{
        const member &l = *o.on;
        const size_t size = size_of(o.about.type);
        alignas(16) static char sums[piece];
        switch (o.about.what) {
        case ALL_REDUCE:
                reduce_shown(l, o.about, n / size, o.out + o.at);
                return;
        case BROADCAST:
                memcpy(o.out + o.at, l.of(o.about.root).data, n);
                return;
        case ALL_GATHER:
                for (int r = 0; r < l.size; r++)
                        memcpy(o.out + (size_t)r * o.total + o.at, l.of(r).data, n);
                return;
        default: /* of the sums, those of this rank */
                reduce_shown(l, o.about, n / size, sums);
                const size_t first = o.about.count * size * (size_t)l.rank, end = first + o.about.count * size;
                const size_t from = std::max(first, o.at), to = std::min(end, o.at + n);
                if (from < to)
                        memcpy(o.out + (from - first), sums + (from - o.at), to - from);
        }
}

static void compare(const operation &o, const meaning &other, int rank)
{
        if (!same(o.about, other))
                die("NCCL: operation %lld is %s on rank %d, but %s on rank %d", (long long)o.about.number,
                    words(o.about).c_str(), o.on->rank, words(other).c_str(), rank);
}

/* One round; false: others are not there yet. */
static bool round_of_all(operation &o, size_t n)
{
        member &l = *o.on;
        area &mine = l.of(l.rank);
        for (int r = 0; r < l.size && !o.shown; r++)
                if (l.of(r).seen < l.rounds)
                        return false;
        if (!o.shown) {
                if (o.about.what != BROADCAST || l.rank == o.about.root)
                        memcpy(mine.data, o.in + o.at, n);
                mine.about = o.about;
                mine.shown = ++l.rounds;
                o.shown = true;
        }
        for (int r = 0; r < l.size; r++)
                if (l.of(r).shown < l.rounds)
                        return false;
        for (int r = 0; r < l.size; r++)
                compare(o, l.of(r).about, r);
        take_shown(o, n);
        mine.seen = l.rounds;
        return true;
}

static bool round_of_pair(operation &o, size_t n)
{
        member &l = *o.on;
        const bool sends = o.about.what == SEND;
        const int other = o.about.root;
        area &a = sends ? l.pair(l.rank, other) : l.pair(other, l.rank);
        int64_t &rounds = sends ? l.sent[other] : l.received[other];
        if (sends && !o.shown) {
                memcpy(a.data, o.in + o.at, n);
                a.about = o.about;
                a.shown = ++rounds;
                o.shown = true;
        }
        if (sends)
                return a.seen >= rounds;
        if (a.shown <= rounds)
                return false;
        if (a.about.count != o.about.count || a.about.type != o.about.type)
                die("NCCL: rank %d sends as %s what rank %d receives as %s", other, words(a.about).c_str(), l.rank,
                    words(o.about).c_str());
        memcpy(o.out + o.at, a.data, n);
        a.seen = ++rounds;
        return true;
}

/* $CUDASIM_NCCL_STALL: operations of this process do not begin, as where its GPU or the way to it has failed. */
static bool stalls()
{
        return number("CUDASIM_NCCL_STALL", 0) != 0;
}

bool go_on(operation &o)
{
        if (!o.on->aborted && stalls())
                return false;
        const bool pair = o.about.what == SEND || o.about.what == RECEIVE;
        while (!o.on->aborted) {
                const size_t n = std::min(piece, o.total - o.at);
                if (!(pair ? round_of_pair(o, n) : round_of_all(o, n)))
                        return false;
                o.shown = false;
                o.at += n;
                if (o.at >= o.total)
                        break;
        }
        o.on->pending--;
        busy[o.stream]--;
        return true;
}
} // namespace cudasim
#endif
