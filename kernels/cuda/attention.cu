/* attention.cu - attention by matrix products: the scores of a part of the queries, a kernel that makes weights of
 * their rows, and the product with v. The derivative computes the scores again.
 *
 * A chunk is a part of the rows (batch, head of k, head of q among those that share it, query), whose scores fit a
 * bounded amount of scratch memory. Scores are f32, or f64 for f64; 16-bit operands are converted.
 */
#include "scores.h"
#include "scalar.h"
#include "../philox.h"

#if defined LG_CUDASIM || defined PTX_NARROW_H /* small chunks on the CPU, so that small tests have several */
#define CHUNK_BYTES ((int64_t)16 << 10)
#else
#define CHUNK_BYTES ((int64_t)256 << 20)
#endif

enum { BATCH, KV_HEAD, SHARER, QUERY, DIMS };

typedef struct chunk {
        int64_t first[DIMS], count[DIMS];
} chunk;

/* Arguments of the kernels of rows. limit: draws of 24 bits below it drop a weight; kept: factor of the others. */
typedef struct rules {
        lg_attention_args a;
        chunk at;
        int64_t rows, sharers;
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
                                words = lg_philox_block(r.a.seed,
                                                        r.a.counter + (uint64_t)row * (uint64_t)((r.a.keys + 3) / 4) +
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
                        ((H *)r.a.stats)[2 * p.row] = top;
                        ((H *)r.a.stats)[2 * p.row + 1] = inverse;
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
                const H top = ((const H *)a.stats)[2 * p.row], inverse = ((const H *)a.stats)[2 * p.row + 1];
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

/* ---- on the host ---- */

/* An attention in chunks. work: the dtype of scores; step: the most rows of a chunk along each dimension. */
typedef struct job {
        lg_queue *q;
        const lg_attention_args *a;
        lg_dtype work;
        int64_t sharers, size[DIMS], step[DIMS], chunk_rows;
} job;

static void count_rows(const job *j, chunk *c)
{
        for (int d = 0; d < DIMS; d++) {
                const int64_t rest = j->size[d] - c->first[d];
                c->count[d] = rest < j->step[d] ? rest : j->step[d];
        }
}

/* Divides the rows into chunks with `matrices` matrices of scores: whole batches, else heads, else queries. */
static job job_of(lg_queue *q, const lg_attention_args *a, int matrices)
{
        job j = {q, a, a->dtype == LG_F64 ? LG_F64 : LG_F32, a->kv_heads ? a->heads / a->kv_heads : 0, {}, {}, 1};
        const int64_t row = (a->keys ? a->keys : 1) * (int64_t)lg_bytes_of(j.work) * matrices;
        const int64_t size[DIMS] = {a->batch, a->kv_heads, j.sharers, a->queries};
        int64_t rest = CHUNK_BYTES / row;
        for (int d = DIMS - 1; d >= 0; d--) {
                j.size[d] = size[d];
                j.step[d] = size[d] < rest ? size[d] : rest;
                j.step[d] = j.step[d] < 1 ? 1 : j.step[d];
                rest /= j.step[d];
                j.chunk_rows *= j.step[d];
        }
        return j;
}

static chunk first_chunk(const job *j)
{
        chunk c = {};
        count_rows(j, &c);
        return c;
}

/* Moves on to the next chunk; all queries of a head of k come one after the other. Returns false after the last. */
static bool next_chunk(const job *j, chunk *c)
{
        for (int d = DIMS - 1; d >= 0; d--) {
                c->first[d] += j->step[d];
                if (c->first[d] < j->size[d]) {
                        count_rows(j, c);
                        return true;
                }
                c->first[d] = 0;
        }
        return false;
}

static void *scratch(const job *j, int64_t elements)
{
        return j->q->workspace(j->q, (size_t)(elements ? elements : 1) * lg_bytes_of(j->work));
}

/* A tensor (batch, head, position, element): its own memory, or scratch memory with elements of the work dtype. */
typedef struct operand {
        char *p;
        lg_head_strides at;
} operand;

/* Copies a tensor of `heads` heads and `rows` positions of n elements. */
static bool copy_heads(const job *j, int64_t heads, int64_t rows, int64_t n, const operand &from, lg_dtype from_dtype,
                       const operand &to, lg_dtype to_dtype)
{
        const lg_copy_args c = {
                4,    {j->a->batch, heads, rows, n},           to_dtype, from_dtype,
                to.p, {to.at.batch, to.at.head, to.at.row, 1}, from.p,   {from.at.batch, from.at.head, from.at.row, 1}};
        return lg_cuda_copy(j->q, &c);
}

/* Sets *ret to contiguous scratch memory for a tensor. */
static bool scratch_heads(const job *j, int64_t heads, int64_t rows, int64_t n, operand *ret)
{
        *ret = {(char *)scratch(j, j->a->batch * heads * rows * n), {heads * rows * n, rows * n, n}};
        return ret->p != NULL;
}

/* Sets *ret to the tensor itself if products can read it, else to a copy. */
static bool readable(const job *j, const void *p, const lg_head_strides &at, int64_t heads, int64_t rows, int64_t n,
                     operand *ret)
{
        *ret = {(char *)p, at};
        if (j->a->dtype == j->work && at.batch >= 0 && at.head >= 0 && (rows <= 1 || at.row >= n))
                return true;
        const operand given = *ret;
        return scratch_heads(j, heads, rows, n, ret) &&
               copy_heads(j, heads, rows, n, given, j->a->dtype, *ret, j->work);
}

/* Sets *ret to the tensor itself if products can write it, else to scratch memory; see round_to(). */
static bool writable(const job *j, void *p, const lg_head_strides &at, int64_t heads, int64_t rows, int64_t n,
                     operand *ret)
{
        *ret = {(char *)p, at};
        return j->a->dtype == j->work || scratch_heads(j, heads, rows, n, ret);
}

/* Rounds what writable() gave to the tensor. */
static bool round_to(const job *j, void *p, const lg_head_strides &at, int64_t heads, int64_t rows, int64_t n,
                     const operand &from)
{
        const operand to = {(char *)p, at};
        return from.p == to.p || copy_heads(j, heads, rows, n, from, j->work, to, j->a->dtype);
}

/* The product to compute, with S for scores, X for rows of queries and Y for rows of keys: S = X Y^T, X = S Y, or
 * Y = S^T X, added to Y for all but the first queries of a head of k. */
typedef enum form { SCORES, ROWS, KEYS } form;

/* A matrix of a product with contiguous rows, and its distances over (batch, head of k, head of q of that). */
typedef struct matrix {
        char *p;
        int64_t row, batch[3];
} matrix;

static bool run(const job *j, form f, const matrix *s, const matrix *x, const matrix *y, const int64_t (&batch)[3],
                int64_t rows, int64_t n, bool add)
{
        const matrix *const operands[3][3] = {{x, y, s}, {s, y, x}, {s, x, y}}, *const *o = operands[f];
        lg_gemm_args p = {};
        p.dtype = j->work;
        p.m = f == KEYS ? j->a->keys : rows;
        p.n = f == SCORES ? j->a->keys : n;
        p.k = f == SCORES ? n : f == ROWS ? j->a->keys : rows;
        p.a = o[0]->p;
        p.b = o[1]->p;
        p.c = o[2]->p;
        p.a_row = f == KEYS ? 1 : o[0]->row;
        p.a_col = f == KEYS ? o[0]->row : 1;
        p.b_row = f == SCORES ? 1 : o[1]->row;
        p.b_col = f == SCORES ? o[1]->row : 1;
        p.ldc = o[2]->row;
        p.beta = add;
        p.batch_ndim = 3;
        for (int d = 0; d < 3; d++) {
                p.batch[d] = batch[d];
                p.a_batch[d] = o[0]->batch[d];
                p.b_batch[d] = o[1]->batch[d];
                p.c_batch[d] = o[2]->batch[d];
        }
        const bool tf32 = j->q->tf32;
        j->q->tf32 = tf32 || j->a->dtype != j->work; /* which holds 16-bit operands exactly */
        const bool done = lg_cuda_gemm(j->q, &p);
        j->q->tf32 = tf32;
        return done;
}

/* Computes a product of a chunk. n: elements of a row of x and y. */
static bool multiply(const job *j, const chunk *c, form f, void *scores, const operand &x, const operand &y, int64_t n)
{
        const int64_t size = (int64_t)lg_bytes_of(j->work), queries = c->count[QUERY], keys = j->a->keys;
        const int64_t *first = c->first, row = j->a->queries == 1 ? x.at.head : x.at.row;
        /* Heads of q that share a head of k are one matrix if the distances of their rows are equal. */
        const bool joined = queries == j->a->queries && x.at.head == queries * row && x.at.head >= n;
        int64_t sharers = joined ? 1 : c->count[SHARER];
        const int64_t rows = joined || c->count[SHARER] == 0 ? c->count[SHARER] * queries : queries;
        matrix s = {(char *)scores,
                    keys,
                    {c->count[KV_HEAD] * c->count[SHARER] * queries * keys, c->count[SHARER] * queries * keys,
                     queries * keys}};
        matrix xs = {x.p + (first[BATCH] * x.at.batch + (first[KV_HEAD] * j->sharers + first[SHARER]) * x.at.head +
                            first[QUERY] * x.at.row) *
                                     size,
                     joined ? row : x.at.row,
                     {x.at.batch, x.at.head * j->sharers, x.at.head}};
        const matrix ys = {y.p + (first[BATCH] * y.at.batch + first[KV_HEAD] * y.at.head) * size,
                           y.at.row,
                           {y.at.batch, y.at.head, 0}};
        if (f != KEYS)
                return run(j, f, &s, &xs, &ys, {c->count[BATCH], c->count[KV_HEAD], sharers}, rows, n, false);
        bool add = first[SHARER] > 0 || first[QUERY] > 0;
        do {
                if (!run(j, f, &s, &xs, &ys, {c->count[BATCH], c->count[KV_HEAD], 1}, rows, n, add))
                        return false;
                add = true;
                s.p += s.batch[2] * size;
                xs.p += xs.batch[2] * size;
        } while (--sharers > 0);
        return true;
}

static rules rules_of(const job *j, const chunk *c)
{
        const lg_attention_args *a = j->a;
        rules r = {*a,
                   *c,
                   lg_count(DIMS, c->count),
                   j->sharers,
                   (uint32_t)ceil(a->p * 16777216),
                   a->p < 1 ? 1 / (1 - a->p) : 0,
                   lg_cuda(j->q)->error};
        return r;
}

extern "C" bool lg_cuda_attention(lg_queue *q, const lg_attention_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "attention: no kernel for dtype %d", (int)a->dtype);
        const job j = job_of(q, a, 1);
        operand x, k, v, o;
        void *s = scratch(&j, j.chunk_rows * a->keys);
        if (!s || !readable(&j, a->q, a->q_at, a->heads, a->queries, a->dim, &x) ||
            !readable(&j, a->k, a->k_at, a->kv_heads, a->keys, a->dim, &k) ||
            !readable(&j, a->v, a->v_at, a->kv_heads, a->keys, a->v_dim, &v) ||
            !writable(&j, a->o, a->o_at, a->heads, a->queries, a->v_dim, &o))
                return false;
        chunk c = first_chunk(&j);
        do {
                const rules r = rules_of(&j, &c);
                if (!multiply(&j, &c, SCORES, s, x, k, a->dim) ||
                    !LG_WITH_FLOAT(j.work, LAUNCH_ROWS(q, "attention", weights_rows, r, (H *)s)) ||
                    !multiply(&j, &c, ROWS, s, o, v, a->v_dim))
                        return false;
        } while (next_chunk(&j, &c));
        return round_to(&j, a->o, a->o_at, a->heads, a->queries, a->v_dim, o);
}

extern "C" bool lg_cuda_attention_vjp(lg_queue *q, const lg_attention_vjp_args *v)
{
        const lg_attention_args *a = &v->of;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "attention: no kernel for dtype %d", (int)a->dtype);
        const job j = job_of(q, a, 2);
        operand x, k, y, g, dq, dk, dv;
        void *s = scratch(&j, j.chunk_rows * a->keys), *ds = scratch(&j, j.chunk_rows * a->keys);
        if (!s || !ds || !readable(&j, a->q, a->q_at, a->heads, a->queries, a->dim, &x) ||
            !readable(&j, a->k, a->k_at, a->kv_heads, a->keys, a->dim, &k) ||
            !readable(&j, a->v, a->v_at, a->kv_heads, a->keys, a->v_dim, &y) ||
            !readable(&j, v->g, v->g_at, a->heads, a->queries, a->v_dim, &g) ||
            !writable(&j, v->dq, v->dq_at, a->heads, a->queries, a->dim, &dq) ||
            !writable(&j, v->dk, v->dk_at, a->kv_heads, a->keys, a->dim, &dk) ||
            !writable(&j, v->dv, v->dv_at, a->kv_heads, a->keys, a->v_dim, &dv))
                return false;
        chunk c = first_chunk(&j);
        do {
                const rules r = rules_of(&j, &c);
                if (!multiply(&j, &c, SCORES, s, x, k, a->dim) || !multiply(&j, &c, SCORES, ds, g, y, a->v_dim) ||
                    !LG_WITH_FLOAT(j.work, LAUNCH_ROWS(q, "attention_vjp", slopes_rows, r, (H *)s, (H *)ds,
                                                       (const H *)g.p, g.at)) ||
                    !multiply(&j, &c, KEYS, s, g, dv, a->v_dim) || !multiply(&j, &c, ROWS, ds, dq, k, a->dim) ||
                    !multiply(&j, &c, KEYS, ds, x, dk, a->dim))
                        return false;
        } while (next_chunk(&j, &c));
        return round_to(&j, v->dq, v->dq_at, a->heads, a->queries, a->dim, dq) &&
               round_to(&j, v->dk, v->dk_at, a->kv_heads, a->keys, a->dim, dk) &&
               round_to(&j, v->dv, v->dv_at, a->kv_heads, a->keys, a->v_dim, dv);
}
