/* dnn.cu - cuDNN: loading the library, running plans, and convolutions by plans. */
#include "dnn.h"
#if LG_CUDNN
#include "conv.h"
#include "loaded.h"
#include <stdio.h>
#include <string.h>

/* ---- the library ---- */

static lg_dnn_library load_library(void)
{
        lg_dnn_library library = {}, *l = &library;
        const lg_loaded_function table[] = {LG_DNN_FUNCTIONS(LG_LOADED)};
        if (!lg_load_functions("libcudnn.so.9", "CUDASIM_CUDNN", table, sizeof table / sizeof *table, l->reason,
                               sizeof l->reason))
                return library;
        l->number = l->version();
        l->there = l->number >= 90000;
        if (!l->there)
                snprintf(l->reason, sizeof l->reason, "cuDNN %zu is older than 9", l->number);
        return library;
}

/* Returns the cuDNN library, which is loaded once per process. Never NULL: `there` is false if it cannot be used. */
const lg_dnn_library *lg_dnn_find(void)
{
        static const lg_dnn_library library = load_library();
        return &library;
}

extern "C" size_t lg_cuda_dnn_version(void)
{
        return lg_dnn_find()->number;
}

extern "C" const char *lg_cuda_dnn_reason(void)
{
        return lg_dnn_find()->reason;
}

lg_dnn_words lg_dnn_last_words(void)
{
        lg_dnn_words words = {};
        lg_dnn_find()->last_words(words.text, sizeof words.text);
        return words;
}

lg_dnn_answer lg_dnn_judge(lg_queue *q, const char *call, cudnnStatus_t s, const lg_dnn_words *words)
{
        if (s == CUDNN_STATUS_SUCCESS)
                return LG_DNN_DONE;
        if (CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_NOT_SUPPORTED)
                return LG_DNN_REFUSED;
        const lg_dnn_words more = words ? *words : lg_dnn_last_words();
        const bool memory = lg_dnn_lacked_memory(s) || s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        lg_queue_fail(q, memory ? LG_NO_MEMORY : LG_BROKEN, "%s: %s%s%s", call, lg_dnn_find()->words(s),
                      *more.text ? "; " : "", more.text);
        return LG_DNN_FAILED;
}

/* ---- running a plan ---- */

/* Describes the operands and the workspace of plan p in *pack. */
static lg_dnn_answer make_pack(lg_queue *q, const lg_dnn_plan *p, void *const *operands, int count, lg_dnn_parts *pack)
{
        const lg_dnn_library *l = lg_dnn_find();
        void *workspace = p->workspace ? q->workspace(q, (size_t)p->workspace) : NULL, *places[LG_DNN_OPERANDS];
        if (p->workspace && !workspace)
                return LG_DNN_FAILED;
        int64_t numbers[LG_DNN_OPERANDS], n = 0;
        for (int i = 0; i < count; i++) {
                if (!operands[i])
                        continue;
                places[n] = operands[i];
                numbers[n++] = i + 1;
        }
        lg_dnn_answer answer = lg_dnn_judge(q, "cudnnBackendCreateDescriptor",
                                            l->make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack->part[0]));
        if (answer != LG_DNN_DONE)
                return answer;
        pack->count = 1;
        cudnnStatus_t s = l->set(pack->part[0], CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, numbers);
        if (s == CUDNN_STATUS_SUCCESS)
                s = l->set(pack->part[0], CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, places);
        if (s == CUDNN_STATUS_SUCCESS)
                s = l->set(pack->part[0], CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
        answer = lg_dnn_judge(q, "cudnnBackendSetAttribute", s);
        return answer == LG_DNN_DONE ? lg_dnn_judge(q, "cudnnBackendFinalize", l->finish(pack->part[0])) : answer;
}

/* Returns whether s says that the engine cannot run here: neither was memory short, nor is the stream broken. */
static bool engine_failed(lg_queue *q, cudnnStatus_t s)
{
        const int category = CUDNN_STATUS_CATEGORY(s);
        if ((category != CUDNN_STATUS_NOT_SUPPORTED && category != CUDNN_STATUS_INTERNAL_ERROR &&
             category != CUDNN_STATUS_EXECUTION_FAILED) ||
            lg_dnn_lacked_memory(s) || s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED || lg_cuda_scarce())
                return false;
        const cudaError_t e = cudaStreamQuery(lg_cuda(q)->stream);
        cudaGetLastError();
        return e == cudaSuccess || e == cudaErrorNotReady;
}

/* Runs plan p. Returns REFUSED if its engine cannot run. */
static lg_dnn_answer execute(lg_queue *q, const lg_dnn_table *d, const lg_dnn_plan *p, void *const *operands, int count)
{
        lg_dnn_parts pack;
        const lg_dnn_answer answer = make_pack(q, p, operands, count, &pack);
        if (answer != LG_DNN_DONE)
                return answer;
        cudnnStatus_t s;
        lg_cuda_count_launch();
        do
                s = lg_dnn_find()->execute(d->handle, p->plan, pack.part[0]);
        while (s != CUDNN_STATUS_SUCCESS && lg_cuda_again(q, lg_dnn_lacked_memory(s)));
        return s != CUDNN_STATUS_SUCCESS && engine_failed(q, s) ? LG_DNN_REFUSED
                                                                : lg_dnn_judge(q, "cudnnBackendExecute", s);
}

lg_dnn_answer lg_dnn_run(lg_queue *q, lg_dnn_table *d, lg_dnn_plan *p, void *const *operands, int count)
{
        lg_dnn_answer answer = LG_DNN_DONE;
        while (answer == LG_DNN_DONE) {
                answer = execute(q, d, p, operands, count);
                if (answer != LG_DNN_REFUSED)
                        return answer;
                d->failures++;
                answer = lg_dnn_build(q, d->handle, p);
        }
        return answer;
}

/* ---- a convolution ---- */

/* The addresses of a graph's operands. own_weights: w needs a copy in scratch memory, because cuDNN's order differs;
 * copied: there is one. */
typedef struct operands {
        void *x, *w, *y, *b;
        bool own_weights, copied;
} operands;

static operands operands_of(const lg_conv_args *a)
{
        operands o = {(void *)a->x, (void *)a->w, (void *)a->g, (void *)a->b, false, false};
        (a->kind == LG_CONV_FORWARD ? o.y : a->kind == LG_CONV_INPUT_GRAD ? o.x : o.w) = a->out;
        o.own_weights = !a->weights_last && a->channels != a->at.groups && a->at.kernel[0] * a->at.kernel[1] != 1;
        return o;
}

static lg_dnn_key key_of(lg_queue *q, const lg_conv_args *a, const operands *o)
{
        uintptr_t bits = 16 | (uintptr_t)o->x | (uintptr_t)o->y | (uintptr_t)o->b;
        if (!o->own_weights)
                bits |= (uintptr_t)o->w;
        lg_dnn_key k;
        memset(&k, 0, sizeof k);
        k.n = a->n;
        k.channels = a->channels;
        k.outputs = a->outputs;
        k.at = a->at;
        k.kind = a->kind;
        k.dtype = a->dtype;
        k.bias = a->b != NULL && a->kind == LG_CONV_FORWARD;
        k.deterministic = q->deterministic;
        k.tf32 = q->conv_tf32 && a->dtype == LG_F32;
        k.alignment = (int32_t)(bits & (~bits + 1));
        return k;
}

/* Returns whether cuDNN supports the shapes: nothing is empty, and there are as many outputs as fit. */
static bool is_usual(const lg_conv_args *a)
{
        bool usual = a->n > 0 && a->channels > 0 && a->outputs > 0;
        for (int i = 0; i < 2; i++) {
                int64_t room = a->at.in[i] + 2 * a->at.padding[i] - a->at.dilation[i] * (a->at.kernel[i] - 1) - 1;
                usual = usual && a->at.in[i] > 0 && a->at.kernel[i] > 0 && a->at.out[i] > 0 && room >= 0 &&
                        a->at.out[i] == room / a->at.stride[i] + 1;
        }
        return usual;
}

/* Sets o->w to scratch memory if cuDNN's order of weights differs; fills it unless the weights are the result. */
static bool weights_in(lg_queue *q, const lg_conv_args *a, operands *o)
{
        if (!o->own_weights || o->copied)
                return true;
        o->copied = true;
        o->w = q->workspace(q, (size_t)lg_conv_weights(a) * lg_bytes_of(a->dtype));
        return o->w && (a->kind == LG_CONV_WEIGHT_GRAD || lg_conv_weights_last(q, a, o->w, a->dtype));
}

/* Runs the plan for a key. Returns REFUSED if there is none. */
static lg_dnn_answer run_plan(lg_queue *q, lg_dnn_table *d, const lg_dnn_key *key, const lg_conv_args *a, operands *o)
{
        lg_dnn_plan *p;
        const lg_dnn_answer answer = lg_dnn_plan_for(q, d, key, true, &p);
        if (answer != LG_DNN_DONE)
                return answer;
        if (!weights_in(q, a, o))
                return LG_DNN_FAILED;
        void *const places[] = {o->x, o->w, o->y, key->bias ? o->b : NULL};
        return lg_dnn_run(q, d, p, places, 4);
}

lg_dnn_answer lg_dnn_conv(lg_queue *q, const lg_conv_args *a)
{
        if (!lg_dnn_find()->there || !is_usual(a))
                return LG_DNN_REFUSED;
        lg_dnn_table *d = lg_dnn_join(q);
        if (!d)
                return LG_DNN_FAILED;
        const std::lock_guard<std::mutex> guard(d->lock);
        lg_dnn_answer answer = lg_dnn_open(q, d);
        if (answer != LG_DNN_DONE)
                return answer;
        operands o = operands_of(a);
        lg_dnn_key key = key_of(q, a, &o);
        const bool bias = key.bias != 0;
        answer = run_plan(q, d, &key, a, &o);
        if (answer == LG_DNN_REFUSED && bias) {
                key.bias = 0;
                answer = run_plan(q, d, &key, a, &o);
        }
        if (answer != LG_DNN_DONE)
                return answer;
        if (bias && !key.bias && !lg_conv_bias(q, a, true))
                return LG_DNN_FAILED;
        if (o.own_weights && a->kind == LG_CONV_WEIGHT_GRAD && !lg_conv_weights_back(q, a, o.w, a->dtype))
                return LG_DNN_FAILED;
        return LG_DNN_DONE;
}

#else /* built without cuDNN's headers */

lg_dnn_answer lg_dnn_conv(lg_queue *, const lg_conv_args *)
{
        return LG_DNN_REFUSED;
}

lg_dnn_answer lg_dnn_attention(lg_queue *, const lg_attention_args *, const lg_attention_vjp_args *)
{
        return LG_DNN_REFUSED;
}

extern "C" {
size_t lg_cuda_dnn_version(void)
{
        return 0;
}

const char *lg_cuda_dnn_reason(void)
{
        return "this build knows nothing of cuDNN";
}
}
#endif
