/* attention.cu - attention by matrix products: the scores of a part of the queries, a kernel that makes weights of
 * their rows, and the product with v. The derivative computes the scores again.
 *
 * A chunk is a part of the rows (batch, head of k, head of q among those that share it, query), whose scores fit a
 * bounded amount of scratch memory. Scores are f32, or f64 for f64; 16-bit operands are converted. cuDNN computes what
 * it can. Stats are two planes, of rows: the largest scores and the inverse sums; for 16-bit floats, as cuDNN has them,
 * the logarithms of the sums of exponentials alone.
 */
#include "dnn.h"
#include "attention_rows.h"

#if defined LG_CUDASIM || defined PTX_NARROW_H /* small chunks on the CPU, so that small tests have several */
#define CHUNK_BYTES ((int64_t)16 << 10)
#else
#define CHUNK_BYTES ((int64_t)256 << 20)
#endif

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

/* A tensor (batch, head, position, element), or its copy in scratch memory with elements of the work dtype. */
typedef struct operand {
        char *p;
        lg_head_strides at;
        int64_t heads, rows, n;
} operand;

static bool copy_heads(const job *j, const operand &from, lg_dtype from_dtype, const operand &to, lg_dtype to_dtype)
{
        const lg_copy_args c = {4,        {j->a->batch, from.heads, from.rows, from.n},
                                to_dtype, from_dtype,
                                to.p,     {to.at.batch, to.at.head, to.at.row, 1},
                                from.p,   {from.at.batch, from.at.head, from.at.row, 1}};
        return lg_cuda_copy(j->q, &c);
}

/* Replaces a tensor's memory by contiguous scratch memory. */
static bool replace_memory(const job *j, operand *x)
{
        x->p = (char *)scratch(j, j->a->batch * x->heads * x->rows * x->n);
        x->at = {x->heads * x->rows * x->n, x->rows * x->n, x->n};
        return x->p != NULL;
}

/* Replaces a tensor by a copy unless products can read it. */
static bool make_readable(const job *j, operand *x)
{
        const operand given = *x;
        if (j->a->dtype == j->work && x->at.batch >= 0 && x->at.head >= 0 && (x->rows <= 1 || x->at.row >= x->n))
                return true;
        return replace_memory(j, x) && copy_heads(j, given, j->a->dtype, *x, j->work);
}

/* Replaces a result by scratch memory unless products can write it; round_to() then fills the result. */
static bool make_writable(const job *j, operand *x)
{
        return j->a->dtype == j->work || replace_memory(j, x);
}

static bool round_to(const job *j, const operand &from, const operand &result)
{
        return from.p == result.p || copy_heads(j, from, j->work, result, j->a->dtype);
}

/* The product to compute, with S for scores, X for rows of queries and Y for rows of keys: S = X Y^T, X = S Y, or
 * Y = S^T X, added to Y for all but the first queries of a head of k. */
typedef enum form { SCORES, ROWS, KEYS } form;

/* A matrix of a product with contiguous rows, and its distances over (batch, head of k, head of q of that). */
typedef struct matrix {
        char *p;
        int64_t row, batch[3];
} matrix;

/* Returns p + bytes, or p if there is no memory, as of a tensor without elements. */
static char *moved(char *p, int64_t bytes)
{
        return p ? p + bytes : p;
}

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

/* Computes a product of a chunk, whose rows of queries are of x, and whose rows of keys of y. */
static bool multiply(const job *j, const chunk *c, form f, void *scores, const operand &x, const operand &y)
{
        const int64_t size = (int64_t)lg_bytes_of(j->work), queries = c->count[QUERY], keys = j->a->keys;
        const int64_t *first = c->first, row = j->a->queries == 1 ? x.at.head : x.at.row;
        /* Heads of q that share a head of k are one matrix if the distances of their rows are equal. */
        const bool joined = queries == j->a->queries && x.at.head == queries * row && x.at.head >= x.n;
        int64_t sharers = joined ? 1 : c->count[SHARER];
        const int64_t rows = joined || c->count[SHARER] == 0 ? c->count[SHARER] * queries : queries;
        matrix s = {(char *)scores,
                    keys,
                    {c->count[KV_HEAD] * c->count[SHARER] * queries * keys, c->count[SHARER] * queries * keys,
                     queries * keys}};
        matrix xs = {moved(x.p, (first[BATCH] * x.at.batch + (first[KV_HEAD] * j->sharers + first[SHARER]) * x.at.head +
                                 first[QUERY] * x.at.row) *
                                        size),
                     joined ? row : x.at.row,
                     {x.at.batch, x.at.head * j->sharers, x.at.head}};
        const matrix ys = {moved(y.p, (first[BATCH] * y.at.batch + first[KV_HEAD] * y.at.head) * size),
                           y.at.row,
                           {y.at.batch, y.at.head, 0}};
        if (f != KEYS)
                return run(j, f, &s, &xs, &ys, {c->count[BATCH], c->count[KV_HEAD], sharers}, rows, x.n, false);
        bool add = first[SHARER] > 0 || first[QUERY] > 0;
        do {
                if (!run(j, f, &s, &xs, &ys, {c->count[BATCH], c->count[KV_HEAD], 1}, rows, x.n, add))
                        return false;
                add = true;
                s.p = moved(s.p, s.batch[2] * size);
                xs.p = moved(xs.p, xs.batch[2] * size);
        } while (--sharers > 0);
        return true;
}

static rules rules_of(const job *j, const chunk *c)
{
        const lg_attention_args *a = j->a;
        rules r = {};
        r.a = *a;
        r.at = *c;
        r.rows = lg_count(DIMS, c->count);
        r.sharers = j->sharers;
        r.plane = a->batch * a->heads * a->queries;
        r.narrow = a->dtype != j->work;
        r.limit = (uint32_t)ceil(a->p * 16777216);
        r.kept = a->p < 1 ? 1 / (1 - a->p) : 0;
        r.error = lg_cuda(j->q)->error;
        return r;
}

extern "C" bool lg_cuda_attention(lg_queue *q, const lg_attention_args *a)
{
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "attention: no kernel for dtype %d", (int)a->dtype);
        const lg_dnn_answer answer = lg_dnn_attention(q, a, NULL);
        if (answer != LG_DNN_REFUSED)
                return answer == LG_DNN_DONE;
        const job j = job_of(q, a, 1);
        const operand result = {(char *)a->o, a->o_at, a->heads, a->queries, a->v_dim};
        operand x = {(char *)a->q, a->q_at, a->heads, a->queries, a->dim}, o = result;
        operand k = {(char *)a->k, a->k_at, a->kv_heads, a->keys, a->dim};
        operand v = {(char *)a->v, a->v_at, a->kv_heads, a->keys, a->v_dim};
        void *s = scratch(&j, j.chunk_rows * a->keys);
        if (!s || !make_readable(&j, &x) || !make_readable(&j, &k) || !make_readable(&j, &v) || !make_writable(&j, &o))
                return false;
        chunk c = first_chunk(&j);
        do {
                const rules r = rules_of(&j, &c);
                if (!multiply(&j, &c, SCORES, s, x, k) ||
                    !LG_WITH_FLOAT(j.work, LAUNCH_ROWS(q, "attention", weights_rows, r, (H *)s)) ||
                    !multiply(&j, &c, ROWS, s, o, v))
                        return false;
        } while (next_chunk(&j, &c));
        return round_to(&j, o, result);
}

extern "C" bool lg_cuda_attention_vjp(lg_queue *q, const lg_attention_vjp_args *v)
{
        const lg_attention_args *a = &v->of;
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "attention: no kernel for dtype %d", (int)a->dtype);
        const lg_dnn_answer answer = lg_dnn_attention(q, a, v);
        if (answer != LG_DNN_REFUSED)
                return answer == LG_DNN_DONE;
        const job j = job_of(q, a, 2);
        enum { Q, G, K, V, INPUTS };
        operand in[INPUTS] = {{(char *)a->q, a->q_at, a->heads, a->queries, a->dim},
                              {(char *)v->g, v->g_at, a->heads, a->queries, a->v_dim},
                              {(char *)a->k, a->k_at, a->kv_heads, a->keys, a->dim},
                              {(char *)a->v, a->v_at, a->kv_heads, a->keys, a->v_dim}};
        const operand results[] = {{(char *)v->dq, v->dq_at, a->heads, a->queries, a->dim},
                                   {(char *)v->dk, v->dk_at, a->kv_heads, a->keys, a->dim},
                                   {(char *)v->dv, v->dv_at, a->kv_heads, a->keys, a->v_dim}};
        operand out[] = {results[0], results[1], results[2]};
        void *s = scratch(&j, j.chunk_rows * a->keys), *ds = scratch(&j, j.chunk_rows * a->keys);
        bool good = s && ds;
        for (operand &x : in)
                good = good && make_readable(&j, &x);
        for (operand &x : out)
                good = good && make_writable(&j, &x);
        chunk c = first_chunk(&j);
        do {
                const rules r = rules_of(&j, &c);
                good = good && multiply(&j, &c, SCORES, s, in[Q], in[K]) &&
                       multiply(&j, &c, SCORES, ds, in[G], in[V]) &&
                       LG_WITH_FLOAT(j.work, LAUNCH_ROWS(q, "attention_vjp", slopes_rows, r, (H *)s, (H *)ds,
                                                         (const H *)in[G].p, in[G].at)) &&
                       multiply(&j, &c, ROWS, ds, out[0], in[K]) && multiply(&j, &c, KEYS, ds, in[Q], out[1]) &&
                       multiply(&j, &c, KEYS, s, in[G], out[2]);
        } while (good && next_chunk(&j, &c));
        for (int i = 0; i < 3; i++)
                good = good && round_to(&j, out[i], results[i]);
        return good;
}
