/* dnn_recurrent.cu - recurrent layers by cuDNN: one layer, forward in time. x, y and their gradients are turned around
 * for the other direction. The reserve space takes the place of gates and cells. */
#include "recurrent.h"
#include "dnn.h"

#if LG_CUDNN
#include <limits.h>
#include <new>

namespace
{
/* The descriptors of a layer, and the bytes that it needs. */
struct layer {
        cudnnRNNDescriptor_t rnn = nullptr;
        cudnnRNNDataDescriptor_t x = nullptr, y = nullptr;
        cudnnTensorDescriptor_t state = nullptr, weight = nullptr, bias = nullptr;
        size_t weights = 0, work = 0, reserve = 0;

        layer() = default;
        layer(const layer &) = delete;
        layer &operator=(const layer &) = delete;
        ~layer()
        {
                const lg_dnn_library *l = lg_dnn_find();
                for (cudnnTensorDescriptor_t t : {state, weight, bias})
                        if (t)
                                l->tensor_destroy(t);
                for (cudnnRNNDataDescriptor_t t : {x, y})
                        if (t)
                                l->sequence_destroy(t);
                if (rnn)
                        l->rnn_destroy(rnn);
        }
};

/* A copy on the device, to which the following ones are joined while they continue it. */
struct copy {
        char *to = nullptr;
        const char *from = nullptr;
        size_t bytes = 0;

        bool finish(lg_queue *q)
        {
                const size_t n = bytes;
                bytes = 0;
                return n == 0 ||
                       lg_cuda_good(q, "cudaMemcpyAsync",
                                    cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, lg_cuda(q)->stream));
        }
        bool add(lg_queue *q, void *t, const void *f, size_t n)
        {
                if (t != to + bytes || f != from + bytes) {
                        if (!finish(q))
                                return false;
                        to = (char *)t;
                        from = (const char *)f;
                }
                bytes += n;
                return true;
        }
};

bool clear(lg_queue *q, void *p, size_t bytes)
{
        return lg_cuda_good(q, "cudaMemsetAsync", cudaMemsetAsync(p, 0, bytes, lg_cuda(q)->stream));
}

size_t bytes_of(const lg_recurrent_args *a, int64_t columns)
{
        return (size_t)(a->steps * a->batch * columns) * lg_bytes_of(a->dtype);
}

/* ---- the description of a layer ---- */

/* Returns whether cuDNN may compute the layer: nothing is empty, and its counts of elements are ints. */
bool is_usual(lg_queue *q, const lg_recurrent_args *a)
{
        if (q->deterministic || a->projection || a->lengths || (a->dtype != LG_F32 && a->dtype != LG_F64) ||
            a->steps < 1 || a->batch < 1 || a->inputs < 1 || !lg_dnn_find()->there)
                return false;
        const int64_t down = lg_recurrent_gates(a) * a->hidden, widest = down > a->inputs ? down : a->inputs;
        return a->steps <= INT_MAX / a->batch && a->steps * a->batch <= INT_MAX / widest && down <= INT_MAX / widest;
}

cudnnRNNMode_t mode_of(lg_recurrent_kind kind)
{
        return kind == LG_RECURRENT_LSTM   ? CUDNN_LSTM
               : kind == LG_RECURRENT_GRU  ? CUDNN_GRU
               : kind == LG_RECURRENT_TANH ? CUDNN_RNN_TANH
                                           : CUDNN_RNN_RELU;
}

/* Sets a descriptor of x or y, (steps, batch, columns), all of whose sequences have all steps. */
cudnnStatus_t set_sequences(const lg_recurrent_args *a, cudnnDataType_t type, int64_t columns,
                            cudnnRNNDataDescriptor_t ret)
{
        int *lengths = new (std::nothrow) int[a->batch];
        if (!lengths)
                return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        for (int64_t i = 0; i < a->batch; i++)
                lengths[i] = (int)a->steps;
        const cudnnStatus_t s =
                lg_dnn_find()->sequence_set(ret, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, (int)a->steps,
                                            (int)a->batch, (int)columns, lengths, nullptr);
        delete[] lengths;
        return s;
}

/* Describes the layer in *p. */
lg_dnn_answer describe(lg_queue *q, const lg_dnn_table *d, const lg_recurrent_args *a, bool training, layer *p)
{
        const lg_dnn_library *l = lg_dnn_find();
        const cudnnDataType_t type = a->dtype == LG_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
        const bool tf32 = a->dtype == LG_F32 && (q->tf32 || a->narrow);
        const int batch = (int)a->batch, hidden = (int)a->hidden;
        const int shape[] = {1, batch, hidden}, strides[] = {batch * hidden, hidden, 1};
        lg_dnn_answer answer = LG_DNN_DONE;
        const auto did = [&](const char *name, cudnnStatus_t s) {
                answer = lg_dnn_judge(q, name, s);
                return answer == LG_DNN_DONE;
        };
        did("cudnnCreateRNNDescriptor", l->rnn_make(&p->rnn)) &&
                did("cudnnCreateRNNDataDescriptor", l->sequence_make(&p->x)) &&
                did("cudnnCreateRNNDataDescriptor", l->sequence_make(&p->y)) &&
                did("cudnnCreateTensorDescriptor", l->tensor_make(&p->state)) &&
                did("cudnnCreateTensorDescriptor", l->tensor_make(&p->weight)) &&
                did("cudnnCreateTensorDescriptor", l->tensor_make(&p->bias)) &&
                did("cudnnSetRNNDescriptor",
                    l->rnn_set(p->rnn, CUDNN_RNN_ALGO_STANDARD, mode_of(a->kind),
                               a->b_ih || a->b_hh ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL,
                               CUDNN_LINEAR_INPUT, type, type, tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH,
                               (int)a->inputs, hidden, hidden, 1, nullptr, CUDNN_RNN_PADDED_IO_DISABLED)) &&
                did("cudnnSetRNNDataDescriptor", set_sequences(a, type, a->inputs, p->x)) &&
                did("cudnnSetRNNDataDescriptor", set_sequences(a, type, hidden, p->y)) &&
                did("cudnnSetTensorNdDescriptor", l->tensor_set(p->state, type, 3, shape, strides)) &&
                did("cudnnGetRNNWeightSpaceSize", l->rnn_weights(d->handle, p->rnn, &p->weights)) &&
                did("cudnnGetRNNTempSpaceSizes",
                    l->rnn_spaces(d->handle, p->rnn, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                                  p->x, &p->work, &p->reserve));
        return answer;
}

/* Copies the weights w_ih, w_hh, b_ih and b_hh to cuDNN's space, or from it if `back`. Those that are NULL are left
 * out. */
lg_dnn_answer copy_weights(lg_queue *q, const lg_dnn_table *d, const lg_recurrent_args *a, const layer *p, char *space,
                           void *const weights[4], bool back)
{
        const int64_t gates = lg_recurrent_gates(a), hidden = a->hidden;
        const size_t size = lg_bytes_of(a->dtype);
        const size_t bytes[] = {(size_t)(hidden * a->inputs) * size, (size_t)(hidden * hidden) * size,
                                (size_t)hidden * size, (size_t)hidden * size};
        copy c;
        for (int w = 0; w < 4; w++)
                for (int64_t k = 0; weights[w] && k < gates; k++) {
                        void *at[2] = {};
                        const lg_dnn_answer answer =
                                lg_dnn_judge(q, "cudnnGetRNNWeightParams",
                                             lg_dnn_find()->rnn_params(d->handle, p->rnn, 0, p->weights, space,
                                                                       (int32_t)(w % 2 * gates + k), p->weight, &at[0],
                                                                       p->bias, &at[1]));
                        if (answer != LG_DNN_DONE)
                                return answer;
                        char *mine = (char *)weights[w] + (size_t)k * bytes[w];
                        if (!(back ? c.add(q, mine, at[w / 2], bytes[w]) : c.add(q, at[w / 2], mine, bytes[w])))
                                return LG_DNN_FAILED;
                }
        return c.finish(q) ? LG_DNN_DONE : LG_DNN_FAILED;
}

/* ---- one call ---- */

/* A layer that runs: its description, its table under lock, its spaces. */
struct call {
        lg_queue *q;
        const lg_recurrent_args *a;
        lg_dnn_table *d = nullptr;
        std::unique_lock<std::mutex> lock;
        layer p;
        char *space = nullptr;
        void *work = nullptr;

        call(lg_queue *queue, const lg_recurrent_args *args) : q(queue), a(args)
        {
        }

        lg_dnn_answer open(bool training)
        {
                if (!is_usual(q, a))
                        return LG_DNN_REFUSED;
                if (!(d = lg_dnn_join(q)))
                        return LG_DNN_FAILED;
                lock = std::unique_lock<std::mutex>(d->lock);
                if (d->no_recurrent)
                        return LG_DNN_REFUSED;
                const lg_dnn_answer answer = lg_dnn_open(q, d);
                return answer == LG_DNN_DONE ? describe(q, d, a, training, &p) : answer;
        }

        /* Fills in the weights, and takes the memory that cuDNN works in. */
        lg_dnn_answer prepare()
        {
                void *const weights[] = {(void *)a->w_ih, (void *)a->w_hh, (void *)a->b_ih, (void *)a->b_hh};
                space = (char *)q->workspace(q, p.weights);
                work = q->workspace(q, p.work + 1);
                if (!space || !work || (!a->b_ih != !a->b_hh && !clear(q, space, p.weights)))
                        return LG_DNN_FAILED;
                return copy_weights(q, d, a, &p, space, weights, false);
        }

        /* Returns x (steps, batch, columns), or a copy with its steps in the order in which the layer takes them. */
        const void *in_order(const void *x, int64_t columns)
        {
                if (!a->reverse || !x)
                        return x;
                void *to = q->workspace(q, bytes_of(a, columns));
                return to && turn(to, x, columns) ? to : NULL;
        }

        /* Returns memory for a result that belongs at `to`; put() brings it there. */
        void *room(void *to, int64_t columns)
        {
                return to && !a->reverse ? to : q->workspace(q, bytes_of(a, columns));
        }
        bool put(void *to, const void *made, int64_t columns)
        {
                return !to || to == made || turn(to, made, columns);
        }

        /* Copies `from` (steps, batch, columns) to `to` with the last step first. */
        bool turn(void *to, const void *from, int64_t columns)
        {
                const int64_t row = a->batch * columns;
                lg_copy_args c = {};
                c.ndim = 2;
                c.shape[0] = a->steps;
                c.shape[1] = row;
                c.out_dtype = c.in_dtype = a->dtype;
                c.out = to;
                c.in = (const char *)from + (size_t)((a->steps - 1) * row) * lg_bytes_of(a->dtype);
                c.out_strides[0] = row;
                c.in_strides[0] = -row;
                c.out_strides[1] = c.in_strides[1] = 1;
                return lg_cuda_copy(q, &c);
        }

        /* Runs f, a function of cuDNN, again while memory can be released for it. */
        template <typename F> lg_dnn_answer run(const char *name, F f)
        {
                const int64_t sizes[] = {a->kind, a->dtype, a->steps, a->batch, a->inputs, a->hidden};
                uint64_t hash = (uint64_t)(uintptr_t)name;
                for (const int64_t n : sizes)
                        hash = (hash ^ (uint64_t)n) * 1099511628211u;
                if (!lg_cuda_before_first(q, (const void *)(uintptr_t)hash))
                        return LG_DNN_FAILED;
                cudnnStatus_t s;
                lg_cuda_count_launch();
                do
                        s = f();
                while (s != CUDNN_STATUS_SUCCESS && lg_cuda_again(q, lg_dnn_lacked_memory(s)));
                return lg_dnn_judge(q, name, s);
        }
};

lg_dnn_answer forward(call *c)
{
        const lg_recurrent_args *a = c->a;
        const layer *p = &c->p;
        const void *x = c->in_order(a->x, a->inputs);
        void *y = c->room(a->y, a->hidden), *last = a->kind == LG_RECURRENT_LSTM ? a->c : nullptr;
        if (!x || !y)
                return LG_DNN_FAILED;
        const lg_dnn_answer answer = c->run("cudnnRNNForward", [&] {
                return lg_dnn_find()->rnn_forward(
                        c->d->handle, p->rnn, a->reserve ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, nullptr,
                        p->x, x, p->y, y, p->state, a->h0, a->h, p->state, a->c0, last, p->weights, c->space, p->work,
                        c->work, p->reserve, a->reserve ? a->gates : nullptr);
        });
        return answer != LG_DNN_DONE || c->put(a->y, y, a->hidden) ? answer : LG_DNN_FAILED;
}

/* The operands of a derivative in the layer's order of steps. cuDNN writes to the reserve space, which other
 * derivatives of the same forward may read: `reserve` is a copy. */
struct operands {
        const void *x, *y, *dy;
        void *dx, *reserve;
};

bool take_operands(call *c, const lg_recurrent_vjp_args *v, operands *o)
{
        const lg_recurrent_args *a = c->a;
        lg_queue *q = c->q;
        o->x = c->in_order(a->x, a->inputs);
        o->y = c->in_order(a->y, a->hidden);
        o->dx = c->room(v->dx, a->inputs);
        o->reserve = q->workspace(q, c->p.reserve);
        void *zero = v->dy ? NULL : q->workspace(q, bytes_of(a, a->hidden));
        if (zero && !clear(q, zero, bytes_of(a, a->hidden)))
                return false;
        o->dy = v->dy ? c->in_order(v->dy, a->hidden) : zero;
        copy whole;
        return o->x && o->y && o->dx && o->reserve && o->dy && whole.add(q, o->reserve, a->gates, c->p.reserve) &&
               whole.finish(q);
}

/* Computes the gradients of the weights, after those of the data. */
lg_dnn_answer derive_weights(call *c, const lg_recurrent_vjp_args *v, const operands *o)
{
        const layer *p = &c->p;
        void *const weights[] = {v->dw_ih, v->dw_hh, v->db_ih, v->db_hh};
        if (!v->dw_ih && !v->dw_hh && !v->db_ih && !v->db_hh)
                return LG_DNN_DONE;
        char *sums = (char *)c->q->workspace(c->q, p->weights);
        if (!sums || !clear(c->q, sums, p->weights))
                return LG_DNN_FAILED;
        const lg_dnn_answer answer = c->run("cudnnRNNBackwardWeights", [&] {
                return lg_dnn_find()->rnn_derive_weights(c->d->handle, p->rnn, CUDNN_WGRAD_MODE_ADD, nullptr, p->x,
                                                         o->x, p->state, c->a->h0, p->y, o->y, p->weights, sums,
                                                         p->work, c->work, p->reserve, o->reserve);
        });
        return answer == LG_DNN_DONE ? copy_weights(c->q, c->d, c->a, p, sums, weights, true) : answer;
}

lg_dnn_answer derive(call *c, const lg_recurrent_vjp_args *v)
{
        const lg_recurrent_args *a = c->a;
        const layer *p = &c->p;
        operands o;
        if (!take_operands(c, v, &o))
                return LG_DNN_FAILED;
        const lg_dnn_answer answer = c->run("cudnnRNNBackwardData", [&] {
                return lg_dnn_find()->rnn_derive(c->d->handle, p->rnn, nullptr, p->y, o.y, o.dy, p->x, o.dx, p->state,
                                                 a->h0, v->dh, v->dh0, p->state, a->c0, v->dc, v->dc0, p->weights,
                                                 c->space, p->work, c->work, p->reserve, o.reserve);
        });
        if (answer != LG_DNN_DONE)
                return answer;
        return c->put(v->dx, o.dx, a->inputs) ? derive_weights(c, v, &o) : LG_DNN_FAILED;
}
} // namespace

int64_t lg_dnn_recurrent_reserve(lg_queue *q, const lg_recurrent_args *a)
{
        call c(q, a);
        return c.open(true) == LG_DNN_DONE ? (int64_t)c.p.reserve : 0;
}

lg_dnn_answer lg_dnn_recurrent(lg_queue *q, const lg_recurrent_args *a)
{
        if (a->gates && !a->reserve) /* which only own kernels fill */
                return LG_DNN_REFUSED;
        call c(q, a);
        lg_dnn_answer answer = c.open(a->reserve != 0);
        if (answer == LG_DNN_DONE)
                answer = c.prepare();
        if (answer == LG_DNN_DONE)
                answer = forward(&c);
        if (answer == LG_DNN_REFUSED && a->reserve && c.d) /* the reserve space stays empty: no derivative may use it */
                c.d->no_recurrent = true;
        return answer;
}

lg_dnn_answer lg_dnn_recurrent_vjp(lg_queue *q, const lg_recurrent_vjp_args *v)
{
        call c(q, &v->layer);
        lg_dnn_answer answer = c.open(true);
        if (answer == LG_DNN_DONE)
                answer = c.prepare();
        return answer == LG_DNN_DONE ? derive(&c, v) : answer;
}

#else /* built without cuDNN's headers */

int64_t lg_dnn_recurrent_reserve(lg_queue *, const lg_recurrent_args *)
{
        return 0;
}

lg_dnn_answer lg_dnn_recurrent(lg_queue *, const lg_recurrent_args *)
{
        return LG_DNN_REFUSED;
}

lg_dnn_answer lg_dnn_recurrent_vjp(lg_queue *, const lg_recurrent_vjp_args *)
{
        return LG_DNN_REFUSED;
}
#endif
