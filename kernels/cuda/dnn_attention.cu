/* dnn_attention.cu - attention of 16-bit floats by cuDNN, which keeps the scores on the chip: the graphs that its
 * engines know, forward and derivative. Engines compile their kernels when a plan is made, which takes a second or
 * more.
 */
#include "dnn_graph.h"
#if LG_CUDNN
#include <string.h>

#define MOST_KEYS 64 /* shapes of a device, forward and derivative, for which kernels are compiled */
#ifdef LG_CUDASIM    /* for small tests */
#define LEAST_QUERIES 2
#define TILE 4
#else
#define LEAST_QUERIES 32 /* fewer, as in a generation whose keys grow with each step, are not worth a compilation */
#define TILE 128         /* queries, and keys, of which kernels of the derivative compute a multiple */
#endif

/* Numbers of the operands. SCALE, HIDDEN, KEYS, QUERIES and ONE are by value; SUM and ACCUMULATOR are scratch memory.
 */
enum { Q = 1, K, V, O, G, DQ, DK, DV, STATS, SCALE, HIDDEN, KEYS, QUERIES, ONE, SUM, ACCUMULATOR, VIRTUAL };

typedef cudnnBackendDescriptor_t part;

/* A graph while it is described. Functions that compute return their result: a tensor of the given one's shape. */
struct graph {
        lg_dnn_builder *b;
        const lg_dnn_key *k;
        const lg_dnn_heads *h;
        part *operations;
        int64_t count = 0, tensors = VIRTUAL;
        cudnnDataType_t narrow, wide = CUDNN_DATA_FLOAT;

        graph(lg_dnn_builder *builder, const lg_dnn_key *key, part *ret)
            : b(builder), k(key), h(&key->heads), operations(ret), narrow(lg_dnn_type_of(key->dtype))
        {
        }
        part tensor(int64_t number, cudnnDataType_t type, int64_t rows, int64_t columns, const lg_head_strides &at,
                    int64_t column)
        {
                const int64_t dims[] = {h->batch, h->heads, rows, columns};
                const int64_t strides[] = {at.batch, at.head, at.row, column};
                return lg_dnn_tensor(b, type, number < VIRTUAL ? number : tensors++, dims, strides, 16,
                                     number < VIRTUAL ? LG_DNN_IN_MEMORY : LG_DNN_VIRTUAL);
        }
        part contiguous(int64_t number, cudnnDataType_t type, int64_t rows, int64_t columns)
        {
                return tensor(number, type, rows, columns, {h->heads * rows * columns, rows * columns, columns}, 1);
        }
        /* An operand as it is, or with positions and elements exchanged. */
        part operand(int64_t number)
        {
                const bool by_query = number == Q || number == O || number == G || number == DQ;
                const bool of_v = number == V || number == O || number == G || number == DV;
                return tensor(number, narrow, by_query ? h->queries : h->keys, of_v ? h->v_dim : h->dim,
                              h->at[number - Q], 1);
        }
        part transposed(int64_t number)
        {
                const lg_head_strides &at = h->at[number - Q];
                return tensor(number, narrow, number == V ? h->v_dim : h->dim, h->keys, {at.batch, at.head, 1}, at.row);
        }
        part scores(cudnnDataType_t type)
        {
                return contiguous(VIRTUAL, type, h->queries, h->keys);
        }
        /* A number for each query. */
        part rows(int64_t number)
        {
                return contiguous(number, wide, h->queries, 1);
        }
        part value(int64_t number, cudnnDataType_t type)
        {
                const int64_t ones[] = {1, 1, 1, 1};
                return lg_dnn_tensor(b, type, number, ones, ones, 16, LG_DNN_BY_VALUE);
        }
        part pointwise(cudnnPointwiseMode_t mode, part x, part y, part to)
        {
                operations[count++] = lg_dnn_pointwise(b, mode, wide, x, y, nullptr, to);
                return to;
        }
        part matmul(part x, part y, part to)
        {
                part m = b->make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
                b->set(m, CUDNN_ATTR_MATMUL_COMP_TYPE, wide);
                b->finish(m);
                part o = operations[count++] = b->make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
                b->set(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
                b->set(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC, y);
                b->set(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to);
                b->set(o, CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
                b->finish(o);
                return to;
        }
        part reduce(cudnnReduceTensorOp_t operation, part x)
        {
                part r = b->make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR), to = rows(VIRTUAL);
                b->set(r, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operation);
                b->set(r, CUDNN_ATTR_REDUCTION_COMP_TYPE, wide);
                b->finish(r);
                part o = operations[count++] = b->make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
                b->set(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
                b->set(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to);
                b->set(o, CUDNN_ATTR_OPERATION_REDUCTION_DESC, r);
                b->finish(o);
                return to;
        }
        part reshape(part x, part to)
        {
                part o = operations[count++] = b->make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
                b->set(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
                b->set(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to);
                b->finish(o);
                return to;
        }
        part transpose(part x)
        {
                const int64_t all = h->queries * h->keys;
                return reshape(x, tensor(VIRTUAL, narrow, h->keys, h->queries, {h->heads * all, all, 1}, h->keys));
        }
        part index(int64_t axis, part like)
        {
                part to = scores(CUDNN_DATA_INT32);
                operations[count++] =
                        lg_dnn_pointwise(b, CUDNN_POINTWISE_GEN_INDEX, wide, like, nullptr, nullptr, to, axis);
                return to;
        }
        part add_index(cudnnPointwiseMode_t mode, part x, int64_t number)
        {
                part to = scores(CUDNN_DATA_INT32);
                operations[count++] =
                        lg_dnn_pointwise(b, mode, CUDNN_DATA_INT32, x, value(number, CUDNN_DATA_INT32), nullptr, to);
                return to;
        }
        /* Replaces the scores of hidden keys by HIDDEN. */
        part visible(part x)
        {
                if (h->visible == LG_DNN_ALL)
                        return x;
                part row = index(2, x);
                if (h->visible == LG_DNN_FROM_LAST)
                        row = add_index(CUDNN_POINTWISE_SUB, add_index(CUDNN_POINTWISE_ADD, row, KEYS), QUERIES);
                part column = index(3, x), seen = scores(CUDNN_DATA_BOOLEAN), to = scores(wide);
                operations[count++] =
                        lg_dnn_pointwise(b, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, row, column, nullptr, seen);
                operations[count++] =
                        lg_dnn_pointwise(b, CUDNN_POINTWISE_BINARY_SELECT, wide, x, value(HIDDEN, wide), seen, to);
                return to;
        }
        void forward()
        {
                part s = matmul(operand(Q), transposed(K), scores(wide));
                s = visible(pointwise(CUDNN_POINTWISE_MUL, s, value(SCALE, wide), scores(wide)));
                part top = reduce(CUDNN_REDUCE_TENSOR_MAX, s);
                part e = pointwise(CUDNN_POINTWISE_SUB, s, top, scores(wide));
                e = pointwise(CUDNN_POINTWISE_EXP, e, nullptr, scores(wide));
                part sum = reduce(CUDNN_REDUCE_TENSOR_ADD, e);
                part logarithm = pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, rows(VIRTUAL));
                pointwise(CUDNN_POINTWISE_ADD, top, logarithm, rows(STATS));
                matmul(pointwise(CUDNN_POINTWISE_DIV, e, sum, scores(narrow)), operand(V), operand(O));
        }
        void derivative()
        {
                part q = operand(Q), kt = transposed(K), g = operand(G), scale = value(SCALE, wide);
                part products =
                        pointwise(CUDNN_POINTWISE_MUL, g, operand(O), contiguous(VIRTUAL, wide, h->queries, h->v_dim));
                part sum = pointwise(CUDNN_POINTWISE_MUL, reduce(CUDNN_REDUCE_TENSOR_ADD, products), value(ONE, wide),
                                     rows(SUM));
                part s = matmul(q, kt, scores(wide));
                s = pointwise(CUDNN_POINTWISE_MUL, s, scale, scores(wide));
                s = visible(pointwise(CUDNN_POINTWISE_SUB, s, rows(STATS), scores(wide)));
                part w = pointwise(CUDNN_POINTWISE_EXP, s, nullptr, scores(wide));
                matmul(transpose(w), g, operand(DV));
                part dw = matmul(g, transposed(V), scores(wide));
                dw = pointwise(CUDNN_POINTWISE_SUB, dw, sum, scores(wide));
                dw = pointwise(CUDNN_POINTWISE_MUL, dw, w, scores(wide));
                part ds = pointwise(CUDNN_POINTWISE_MUL, dw, scale, scores(narrow));
                matmul(transpose(ds), q, operand(DK));
                part keys = reshape(kt, tensor(VIRTUAL, narrow, h->keys, h->dim, h->at[K - Q], 1));
                if (k->deterministic)
                        matmul(ds, keys, operand(DQ));
                else
                        pointwise(CUDNN_POINTWISE_IDENTITY,
                                  matmul(ds, keys, contiguous(ACCUMULATOR, wide, h->queries, h->dim)), nullptr,
                                  operand(DQ));
        }
};

int64_t lg_dnn_attention_operations(lg_dnn_builder *b, const lg_dnn_key *k, part *ret)
{
        graph g(b, k, ret);
        if (k->kind == LG_DNN_ATTENTION)
                g.forward();
        else
                g.derivative();
        return g.count;
}

/* ---- running it ---- */

/* Sets *ret to the strides of an operand, those of dimensions of size 1 as if it were contiguous. Returns false if rows
 * overlap or are not aligned. */
static bool set_strides(const lg_dnn_heads *h, const void *p, const lg_head_strides &at, int64_t rows, int64_t n,
                        lg_head_strides *ret)
{
        const int64_t row = rows > 1 ? at.row : n, head = h->heads > 1 ? at.head : rows * row;
        *ret = {h->batch > 1 ? at.batch : h->heads * head, head, row};
        return (uintptr_t)p % 16 == 0 && ret->row >= n && ret->head >= n && ret->batch >= n && ret->row % 8 == 0 &&
               ret->head % 8 == 0 && ret->batch % 8 == 0;
}

/* Returns whether graphs describe the attention, and whether that is worth a compilation. */
static bool is_usual(const lg_attention_args *a)
{
        const bool all = a->right < 0, own = a->right == 0 && a->offset == 0,
                   last = a->right == 0 && a->offset > 0 && a->offset == a->keys - a->queries;
        return (a->dtype == LG_F16 || a->dtype == LG_BF16) && a->batch > 0 && a->heads > 0 && a->heads == a->kv_heads &&
               a->queries >= LEAST_QUERIES && a->keys > 0 && a->dim > 0 && a->dim <= 128 && a->dim % 8 == 0 &&
               a->v_dim > 0 && a->v_dim <= 128 && a->v_dim % 8 == 0 && a->p == 0 && a->softcap == 0 && !a->mask &&
               !a->kv_lengths && a->left < 0 && (all || own || last);
}

/* Returns whether a derivative is right for all values. Where no mask hides the keys that fill up a tile, kernels on
 * Hopper give NaN for scores below -88. */
static bool is_sound(const lg_attention_args *a)
{
        return a->right == 0 || (a->keys % TILE == 0 && a->queries % TILE == 0);
}

/* Sets *k to the key. Returns false if strides or addresses do not fit. */
static bool set_key(lg_queue *q, const lg_attention_args *a, const lg_attention_vjp_args *v, lg_dnn_key *k)
{
        memset(k, 0, sizeof *k);
        k->kind = v ? LG_DNN_ATTENTION_VJP : LG_DNN_ATTENTION;
        k->dtype = a->dtype;
        k->deterministic = v && q->deterministic;
        k->alignment = 16;
        lg_dnn_heads *h = &k->heads;
        *h = {a->batch, a->heads, a->queries, a->keys, a->dim, a->v_dim, LG_DNN_ALL, {}};
        if (a->right == 0)
                h->visible = a->offset ? LG_DNN_FROM_LAST : LG_DNN_FROM_FIRST;
        return set_strides(h, a->q, a->q_at, a->queries, a->dim, &h->at[Q - Q]) &&
               set_strides(h, a->k, a->k_at, a->keys, a->dim, &h->at[K - Q]) &&
               set_strides(h, a->v, a->v_at, a->keys, a->v_dim, &h->at[V - Q]) &&
               set_strides(h, a->o, a->o_at, a->queries, a->v_dim, &h->at[O - Q]) &&
               (!v || (set_strides(h, v->g, v->g_at, a->queries, a->v_dim, &h->at[G - Q]) &&
                       set_strides(h, v->dq, v->dq_at, a->queries, a->dim, &h->at[DQ - Q]) &&
                       set_strides(h, v->dk, v->dk_at, a->keys, a->dim, &h->at[DK - Q]) &&
                       set_strides(h, v->dv, v->dv_at, a->keys, a->v_dim, &h->at[DV - Q])));
}

/* Runs plan p. */
static lg_dnn_answer run(lg_queue *q, lg_dnn_table *d, lg_dnn_plan *p, const lg_attention_args *a,
                         const lg_attention_vjp_args *v)
{
        const lg_dnn_heads *h = &p->key.heads;
        float scale = (float)a->scale, hidden = -INFINITY, one = 1;
        int32_t keys = (int32_t)a->keys, queries = (int32_t)a->queries;
        void *operands[VIRTUAL - 1] = {(void *)a->q, (void *)a->k, (void *)a->v, a->o};
        operands[STATS - 1] = a->stats;
        operands[SCALE - 1] = &scale;
        if (h->visible != LG_DNN_ALL)
                operands[HIDDEN - 1] = &hidden;
        if (h->visible == LG_DNN_FROM_LAST) {
                operands[KEYS - 1] = &keys;
                operands[QUERIES - 1] = &queries;
        }
        if (v) {
                const size_t rows = (size_t)(h->batch * h->heads * h->queries),
                             bytes = rows * (size_t)h->dim * sizeof one;
                operands[G - 1] = (void *)v->g;
                operands[DQ - 1] = v->dq;
                operands[DK - 1] = v->dk;
                operands[DV - 1] = v->dv;
                operands[ONE - 1] = &one;
                if (!(operands[SUM - 1] = q->workspace(q, rows * sizeof one)) ||
                    (!p->key.deterministic && !(operands[ACCUMULATOR - 1] = q->workspace(q, bytes))))
                        return LG_DNN_FAILED;
                if (!p->key.deterministic &&
                    !lg_cuda_good(q, "cudaMemsetAsync",
                                  cudaMemsetAsync(operands[ACCUMULATOR - 1], 0, bytes, lg_cuda(q)->stream)))
                        return LG_DNN_FAILED;
        }
        return lg_dnn_run(q, d, p, operands, VIRTUAL - 1);
}

lg_dnn_answer lg_dnn_attention(lg_queue *q, const lg_attention_args *a, const lg_attention_vjp_args *v)
{
        lg_dnn_key key;
        if (!is_usual(a) || (v && !is_sound(a)) || !lg_dnn_find()->there || !set_key(q, a, v, &key))
                return LG_DNN_REFUSED;
        lg_dnn_table *d = lg_dnn_join(q);
        if (!d)
                return LG_DNN_FAILED;
        const std::lock_guard<std::mutex> guard(d->lock);
        lg_dnn_plan *p;
        lg_dnn_answer answer = lg_dnn_open(q, d);
        const int64_t misses = d->misses;
        if (answer == LG_DNN_DONE)
                answer = lg_dnn_plan_for(q, d, &key, d->attentions < MOST_KEYS, &p);
        d->attentions += d->misses - misses;
        return answer == LG_DNN_DONE ? run(q, d, p, a, v) : answer;
}
#endif
