/* optim.cu - optimiser steps, norms and scaling of many tensors by one launch: blocks process chunks of the tensors of
 * a table that is passed by value. Optimiser steps change nothing while a device-side error is set. */
#include "rows.h"
#include "../updates.h"

#define CHUNK 4096 /* elements per chunk; a block processes a chunk at a time */
#define BLOCKS 8   /* blocks of a launch per multiprocessor, at most */
#define MOST_TENSORS 62
enum { PARAM, GRAD, STATE, MASTER = STATE + LG_UPDATE_STATES, TENSORS };

/* Tensors of one dtype, whose chunks are numbered consecutively. Fits in the 4 KiB of a kernel's arguments. */
typedef struct table {
        void *at[MOST_TENSORS][TENSORS];
        int64_t *skipped[MOST_TENSORS];
        int32_t first[MOST_TENSORS + 1]; /* number of the first chunk of each tensor */
        uint16_t last[MOST_TENSORS];     /* elements of the last chunk of each tensor */
        int32_t count;
        uint64_t even; /* bit k: all pointers of tensor k are 16-byte aligned */
        const float *skip;
        const lg_device_error *error;
} table;

/* A chunk: elements [first, end) of a tensor. */
typedef struct chunk {
        int64_t first, end;
        int tensor;
} chunk;

static __device__ inline chunk chunk_of(const table &t, int32_t k)
{
        int low = 0, high = t.count - 1;
        while (low < high) {
                int middle = (low + high + 1) / 2;
                if (t.first[middle] <= k)
                        low = middle;
                else
                        high = middle - 1;
        }
        chunk c = {(int64_t)(k - t.first[low]) * CHUNK, 0, low};
        c.end = c.first + (k + 1 == t.first[low + 1] ? t.last[low] : CHUNK);
        return c;
}

/* ---- rules: for each line of updates.def a struct of its numbers; set() computes them, operator() updates an element
 * ---- */

static __device__ inline float root_of(float x)
{
        return sqrtf(x);
}
static __device__ inline double root_of(double x)
{
        return sqrt(x);
}

#define HAS(k) (has >> (k)&1)
#define SQRT(x) root_of(x)
#define N(x, formula) H x;
#define UPDATE(name, always, maybe, step_inputs, numbers, rule)                                                        \
        template <typename H> struct name##_rule {                                                                     \
                __device__ inline void set(const double *dial, int64_t skipped);                                       \
                __device__ inline void operator()(H &P, H G, H (&s)[LG_UPDATE_STATES], int has) const                  \
                {                                                                                                      \
                        H D, &S0 = s[0], &S1 = s[1], &S2 = s[2];                                                       \
                        (void)G, (void)has, (void)S0, (void)S1, (void)S2;                                              \
                        rule;                                                                                          \
                }                                                                                                      \
                numbers                                                                                                \
        };
#include "../updates.def"
#undef N

#define GROUP(x) const double x = *dial++;
#define OPTION(x) const double x = *dial++;
#define STEP const double step = *dial - (double)skipped;
#define N(x, formula) this->x = (H)(formula);
#define UPDATE(name, always, maybe, step_inputs, numbers, rule)                                                        \
        template <typename H> __device__ inline void name##_rule<H>::set(const double *dial, int64_t skipped)          \
        {                                                                                                              \
                (void)skipped;                                                                                         \
                step_inputs numbers                                                                                    \
        }
#include "../updates.def"

/* Updates V elements from i on. States and the master copy have the compute type of T. */
template <typename T, int V, typename R>
static __device__ inline void step_at(const R &rule, void *const *at, int has, int64_t i)
{
        typedef LG_COMPUTE(T) H;
        H p[V], g[V], s[LG_UPDATE_STATES][V];
        if (at[MASTER])
                lg_read<H, V>((const H *)at[MASTER] + i, p);
        else
                lg_read<T, V>((const T *)at[PARAM] + i, p);
        lg_read<T, V>((const T *)at[GRAD] + i, g);
        LG_UNROLL
        for (int k = 0; k < LG_UPDATE_STATES; k++)
                if (has >> k & 1)
                        lg_read<H, V>((const H *)at[STATE + k] + i, s[k]);
        LG_UNROLL
        for (int j = 0; j < V; j++) {
                H one[LG_UPDATE_STATES] = {0};
                LG_UNROLL
                for (int k = 0; k < LG_UPDATE_STATES; k++)
                        one[k] = has >> k & 1 ? s[k][j] : (H)0;
                rule(p[j], g[j], one, has);
                LG_UNROLL
                for (int k = 0; k < LG_UPDATE_STATES; k++)
                        s[k][j] = one[k];
        }
        lg_write<T, V>((T *)at[PARAM] + i, p);
        if (at[MASTER])
                lg_write<H, V>((H *)at[MASTER] + i, p);
        LG_UNROLL
        for (int k = 0; k < LG_UPDATE_STATES; k++)
                if (has >> k & 1)
                        lg_write<H, V>((H *)at[STATE + k] + i, s[k]);
}

/* Calls begin(tensor) for each chunk of this block, then f(V, tensor's pointers, i) for every V elements from i on,
 * with V as a type: a whole pack, or 1 if a pack is not possible. */
template <typename T, typename B, typename F>
static __device__ inline void walk(const table &t, const B &begin, const F &f)
{
        constexpr int V = LG_PACK(T);
        for (int32_t k = (int32_t)blockIdx.x; k < t.first[t.count]; k += (int32_t)gridDim.x) {
                const chunk c = chunk_of(t, k);
                void *const *at = t.at[c.tensor];
                int64_t rest = c.first + threadIdx.x;
                begin(c.tensor);
                if (t.even >> c.tensor & 1) {
                        const int64_t packs = c.first + (c.end - c.first) / V * V;
                        for (int64_t i = c.first + (int64_t)threadIdx.x * V; i < packs; i += LG_THREADS * V)
                                f(std::integral_constant<int, V>(), at, i);
                        rest = packs + threadIdx.x;
                }
                for (int64_t i = rest; i < c.end; i += LG_THREADS)
                        f(std::integral_constant<int, 1>(), at, i);
        }
}

template <typename T, typename F> static __device__ inline void walk(const table &t, const F &f)
{
        walk<T>(
                t, [](int) {}, f);
}

/* Makes a step. One thread per block computes the numbers of a rule, again for another counter of skipped steps. */
template <typename T, typename R> static __global__ void step(const double *step_inputs, table t)
{
        LG_SHARED(R, shared, 1);
        if (t.error->code != LG_DEVICE_OK)
                return;
        if (t.skip && *t.skip != 0) {
                for (int32_t k = (int32_t)threadIdx.x; blockIdx.x == 0 && k < t.count; k += LG_THREADS)
                        ++*t.skipped[k];
                return;
        }
        R rule = {};
        int last = -1;
        const auto begin = [&](int k) {
                if (last >= 0 && t.skipped[k] == t.skipped[last])
                        return;
                last = k;
                __syncthreads();
                if (threadIdx.x == 0)
                        shared->set(step_inputs, t.skipped[k] ? *t.skipped[k] : 0);
                __syncthreads();
                rule = *shared;
        };
        walk<T>(t, begin, [&](auto pack, void *const *at, int64_t i) {
                const int has = (at[STATE] ? 1 : 0) | (at[STATE + 1] ? 2 : 0) | (at[STATE + 2] ? 4 : 0);
                step_at<T, decltype(pack)::value>(rule, at, has, i);
        });
}

/* ---- tables ---- */

/* Calls launch(table, blocks) for tables that together hold all tensors of dtype t. */
template <typename F> static bool tables_of(lg_queue *q, lg_dtype t, const lg_update *updates, int64_t count, F launch)
{
        table now;
        now.count = now.first[0] = 0;
        now.even = 0;
        now.error = lg_cuda(q)->error;
        now.skip = NULL;
        for (int64_t i = 0; i <= count; i++) {
                const lg_update *u = &updates[i];
                const bool more = i < count && u->dtype == t && u->n > 0;
                const int64_t chunks = more ? (u->n + CHUNK - 1) / CHUNK : 0;
                if (now.count && (i == count || (more && (now.count == MOST_TENSORS ||
                                                          chunks > INT32_MAX / 2 - now.first[now.count])))) {
                        if (!launch(now, lg_few_blocks(q, now.first[now.count], BLOCKS)))
                                return false;
                        now.count = 0;
                        now.even = 0;
                }
                if (!more)
                        continue;
                const int k = now.count++;
                void *const at[TENSORS] = {u->param, (void *)(uintptr_t)u->grad, u->state[0], u->state[1], u->state[2],
                                           u->master};
                bool even = true;
                for (int j = 0; j < TENSORS; j++) {
                        now.at[k][j] = at[j];
                        even = even && (uintptr_t)at[j] % 16 == 0;
                }
                now.skipped[k] = u->skipped;
                now.last[k] = (uint16_t)(u->n - (chunks - 1) * CHUNK);
                now.even |= (uint64_t)even << k;
                now.first[k + 1] = now.first[k] + (int32_t)chunks;
        }
        return true;
}

static const lg_dtype float_dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};

/* Calls launch((T *)NULL, table, blocks) for the tables of each dtype, with T the type of their elements. */
template <typename F>
static bool over(lg_queue *q, const char *name, const lg_update *updates, int64_t count, const F &launch)
{
        for (int64_t i = 0; i < count; i++)
                if (!lg_is_float(updates[i].dtype))
                        return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)updates[i].dtype);
        for (lg_dtype t : float_dtypes) {
                const bool ok = LG_WITH_STORED(t, tables_of(q, t, updates, count, [&](table &now, int64_t blocks) {
                                                       return launch((T *)NULL, now, blocks);
                                               }));
                if (!ok)
                        return false;
        }
        return true;
}
#define ELEMENT(type) std::remove_pointer_t<decltype(type)>

template <template <typename> class R> static bool each(lg_queue *q, const char *name, const lg_pass *p)
{
        return over(q, name, p->updates, p->count, [&](auto *type, table &now, int64_t blocks) {
                typedef ELEMENT(type) T;
                static_assert(sizeof p->step_inputs + sizeof now <= 4096, "more than a launch takes");
                now.skip = p->skip;
                return lg_launch(q, name, step<T, R<LG_COMPUTE(T)>>, blocks, p->step_inputs, now);
        });
}

#define UPDATE(name, ...)                                                                                              \
        extern "C" bool lg_cuda_##name(lg_queue *q, const lg_pass *p)                                                  \
        {                                                                                                              \
                return each<name##_rule>(q, #name, p);                                                                 \
        }
#include "../updates.def"

/* Dials that one launch sets. */
template <int N> struct dials {
        int count;
        lg_dial dial[N];
};

template <int N> static __global__ void set_dials(dials<N> d)
{
        for (int i = (int)threadIdx.x; i < d.count * LG_STEP_INPUTS; i += LG_THREADS)
                d.dial[i / LG_STEP_INPUTS].to[i % LG_STEP_INPUTS] =
                        d.dial[i / LG_STEP_INPUTS].value[i % LG_STEP_INPUTS];
}

template <int N> static bool launch_dials(lg_queue *q, const lg_dial *dial, int64_t count)
{
        dials<N> d = {(int)count, {}};
        static_assert(sizeof d <= 4096, "more than a launch takes");
        memcpy(d.dial, dial, (size_t)count * sizeof *dial);
        return lg_launch(q, "dials", set_dials<N>, 1, d);
}

extern "C" bool lg_cuda_dials(lg_queue *q, const lg_dials_args *a)
{
        const int64_t most = 48;
        for (int64_t i = 0; i < a->count; i += most) {
                const int64_t left = a->count - i, n = left < most ? left : most;
                if (!(n == 1 ? launch_dials<1>(q, a->dials + i, n) : launch_dials<48>(q, a->dials + i, n)))
                        return false;
        }
        return true;
}

/* ---- the norm of all gradients, and their scaling ---- */

template <typename T> static __global__ void squares(table t, double *parts)
{
        LG_SHARED(double, shared, LG_THREADS / 32);
        double sum = 0;
        walk<T>(t, [&](auto pack, void *const *at, int64_t i) {
                constexpr int V = decltype(pack)::value;
                LG_COMPUTE(T) g[V];
                lg_read<T, V>((const T *)at[GRAD] + i, g);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        sum += (double)g[j] * (double)g[j];
        });
        sum = lg_block_sum(sum, shared);
        if (threadIdx.x == 0)
                parts[blockIdx.x] = sum;
}

static __global__ void add_parts(const double *parts, int64_t count, double *total)
{
        LG_SHARED(double, shared, LG_THREADS / 32);
        double sum = 0;
        for (int64_t i = threadIdx.x; i < count; i += LG_THREADS)
                sum += parts[i];
        sum = lg_block_sum(sum, shared);
        if (threadIdx.x == 0)
                *total = sum;
}

extern "C" bool lg_cuda_norms(lg_queue *q, const lg_norms_args *a)
{
        const int64_t launches = a->count / MOST_TENSORS + (int64_t)(sizeof float_dtypes / sizeof *float_dtypes);
        const size_t room = (size_t)launches * (size_t)lg_cuda(q)->processors * BLOCKS;
        double *parts = (double *)q->workspace(q, room * sizeof *parts);
        int64_t used = 0;
        return parts &&
               over(q, "norms", a->updates, a->count,
                    [&](auto *type, const table &now, int64_t blocks) {
                            double *to = parts + used;
                            used += blocks;
                            return lg_launch(q, "norms", squares<ELEMENT(type)>, blocks, now, to);
                    }) &&
               lg_launch(q, "norms (sum)", add_parts, 1, (const double *)parts, used, a->total);
}

template <typename T> static __global__ void scale(table t, const double *factor)
{
        typedef LG_COMPUTE(T) H;
        const H by = (H)*factor;
        walk<T>(t, [&](auto pack, void *const *at, int64_t i) {
                constexpr int V = decltype(pack)::value;
                H x[V];
                lg_read<T, V>((const T *)at[PARAM] + i, x);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        x[j] *= by;
                lg_write<T, V>((T *)at[PARAM] + i, x);
        });
}

extern "C" bool lg_cuda_scale(lg_queue *q, const lg_scale_args *a)
{
        return over(q, "scale", a->updates, a->count, [&](auto *type, const table &now, int64_t blocks) {
                return lg_launch(q, "scale", scale<ELEMENT(type)>, blocks, now, a->factor);
        });
}

/* ---- the loss scale ---- */

template <typename T> static __global__ void unscale(table t, const float *scale, float *found)
{
        typedef LG_COMPUTE(T) H;
        const H by = (H)(float)(1 / (double)*scale);
        bool finite = true;
        walk<T>(t, [&](auto pack, void *const *at, int64_t i) {
                constexpr int V = decltype(pack)::value;
                H x[V];
                lg_read<T, V>((const T *)at[PARAM] + i, x);
                LG_UNROLL
                for (int j = 0; j < V; j++) {
                        x[j] *= by;
                        finite = finite && x[j] - x[j] == 0;
                }
                lg_write<T, V>((T *)at[PARAM] + i, x);
        });
        if (!finite)
                *found = 1;
}

extern "C" bool lg_cuda_unscale(lg_queue *q, const lg_unscale_args *a)
{
        return over(q, "unscale", a->updates, a->count, [&](auto *type, const table &now, int64_t blocks) {
                if constexpr (std::is_same<ELEMENT(type), __half>::value) /* scalers refuse gradients in f16 */
                        return lg_queue_fail(q, LG_BROKEN, "unscale: no kernel for f16");
                else
                        return lg_launch(q, "unscale", unscale<ELEMENT(type)>, blocks, now, a->scale, a->found);
        });
}

static __global__ void rescale(lg_rescale_args a, const lg_device_error *error)
{
        if (threadIdx.x != 0 || error->code != LG_DEVICE_OK)
                return;
        const bool found = *a.found != 0, grows = !found && *a.steps + 1 >= a.interval;
        const float scale = (float)(*a.scale * (found ? a.backoff : a.growth));
        if (found || (grows && scale - scale == 0))
                *a.scale = scale;
        *a.steps = found || grows ? 0 : *a.steps + 1;
}

extern "C" bool lg_cuda_rescale(lg_queue *q, const lg_rescale_args *a)
{
        return lg_launch(q, "rescale", rescale, 1, *a, (const lg_device_error *)lg_cuda(q)->error);
}
