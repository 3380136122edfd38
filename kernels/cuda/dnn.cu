/* dnn.cu - cuDNN: loading the library, a queue's handle and plans, and running a convolution by them. */
#include "dnn.h"
#if LG_CUDNN
#include "conv.h"
#include "loaded.h"
#include <new>
#include <stdio.h>
#include <stdlib.h>
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

lg_dnn_answer lg_dnn_judge(lg_queue *q, const char *call, cudnnStatus_t s)
{
        if (s == CUDNN_STATUS_SUCCESS)
                return LG_DNN_DONE;
        if (CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_NOT_SUPPORTED)
                return LG_DNN_REFUSED;
        const bool memory = lg_dnn_lacked_memory(s) || s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
        lg_queue_fail(q, memory ? LG_NO_MEMORY : LG_BROKEN, "%s: %s", call, lg_dnn_find()->words(s));
        return LG_DNN_FAILED;
}

/* ---- handle and plans of a queue ---- */

#define PLANS 256 /* most plans that a queue caches; the least recently used one is replaced */

typedef struct dnn_state {
        cudnnHandle_t handle;
        lg_dnn_plan *plans[PLANS];
        int count;
        uint64_t calls;
        int64_t hits, misses;
} dnn_state;

static dnn_state *state_of(lg_queue *q)
{
        return (dnn_state *)lg_cuda(q)->dnn;
}

extern "C" void lg_cuda_dnn_close(lg_queue *q)
{
        dnn_state *d = state_of(q);
        lg_cuda(q)->dnn = NULL;
        if (!d)
                return;
        for (int i = 0; i < d->count; i++)
                delete d->plans[i];
        if (d->handle)
                lg_dnn_find()->close(d->handle);
        free(d);
}

/* Creates the handle of q for the current device and q's stream, if there is none yet. */
static lg_dnn_answer open_state(lg_queue *q)
{
        const lg_dnn_library *l = lg_dnn_find();
        if (!l->there)
                return LG_DNN_REFUSED;
        if (lg_cuda(q)->dnn)
                return state_of(q)->handle ? LG_DNN_DONE : LG_DNN_REFUSED;
        dnn_state *d = (dnn_state *)calloc(1, sizeof *d);
        if (!d) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for cuDNN's plans");
                return LG_DNN_FAILED;
        }
        lg_cuda(q)->dnn = d;
        cudnnStatus_t s;
        do
                s = l->open(&d->handle);
        while (s != CUDNN_STATUS_SUCCESS && lg_cuda_again(q, lg_dnn_lacked_memory(s)));
        lg_dnn_answer answer = lg_dnn_judge(q, "cudnnCreate", s);
        if (answer == LG_DNN_DONE)
                answer = lg_dnn_judge(q, "cudnnSetStream", l->set_stream(d->handle, lg_cuda(q)->stream));
        if (answer == LG_DNN_FAILED) /* frees the state, so that the next convolution tries again */
                lg_cuda_dnn_close(q);
        return answer;
}

extern "C" lg_dnn_counts lg_cuda_dnn_counts(lg_queue *q)
{
        const dnn_state *d = state_of(q);
        lg_dnn_counts c = {0, 0, d ? d->hits : 0, d ? d->misses : 0};
        for (int i = 0; d && i < d->count; i++)
                (d->plans[i]->works ? c.plans : c.refusals)++;
        return c;
}

static uint64_t hash_of(const lg_dnn_key *k)
{
        const unsigned char *p = (const unsigned char *)k;
        uint64_t h = 14695981039346656037u;
        for (size_t i = 0; i < sizeof *k; i++)
                h = (h ^ p[i]) * 1099511628211u;
        return h;
}

static void keep(dnn_state *d, lg_dnn_plan *p)
{
        int at = d->count;
        if (d->count < PLANS) {
                d->count++;
        } else {
                at = 0;
                for (int i = 1; i < PLANS; i++)
                        if (d->plans[i]->used < d->plans[at]->used)
                                at = i;
                delete d->plans[at];
        }
        d->plans[at] = p;
}

/* Finds the plan for a key, which the first call makes. *ret is NULL unless the answer is DONE. */
static lg_dnn_answer plan_for(lg_queue *q, const lg_dnn_key *key, const lg_dnn_plan **ret)
{
        dnn_state *d = state_of(q);
        const uint64_t hash = hash_of(key);
        *ret = NULL;
        d->calls++;
        for (int i = 0; i < d->count; i++) {
                lg_dnn_plan *p = d->plans[i];
                if (p->hash != hash || memcmp(&p->key, key, sizeof *key) != 0)
                        continue;
                p->used = d->calls;
                d->hits++;
                *ret = p->works ? p : NULL;
                return p->works ? LG_DNN_DONE : LG_DNN_REFUSED;
        }
        d->misses++;
        lg_dnn_plan *p = new (std::nothrow) lg_dnn_plan;
        if (!p) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for a plan of cuDNN");
                return LG_DNN_FAILED;
        }
        p->key = *key;
        p->hash = hash;
        p->used = d->calls;
        lg_dnn_answer answer = lg_dnn_build(q, d->handle, p);
        if (answer == LG_DNN_FAILED) {
                delete p;
                return answer;
        }
        keep(d, p);
        *ret = answer == LG_DNN_DONE ? p : NULL;
        return answer;
}

/* ---- a convolution ---- */

/* The addresses of a graph's operands. own_weights: w needs a copy in scratch memory, because cuDNN's order differs. */
typedef struct operands {
        void *x, *w, *y, *b;
        bool own_weights;
} operands;

static operands operands_of(const lg_conv_args *a)
{
        operands o = {(void *)a->x, (void *)a->w, (void *)a->g, (void *)a->b, false};
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

static lg_dnn_answer execute(lg_queue *q, const lg_dnn_plan *p, const operands *o)
{
        const lg_dnn_library *l = lg_dnn_find();
        void *workspace = p->workspace ? q->workspace(q, (size_t)p->workspace) : NULL;
        if (p->workspace && !workspace)
                return LG_DNN_FAILED;
        const int64_t names[] = {LG_DNN_X, LG_DNN_W, LG_DNN_Y, LG_DNN_B}, count = p->key.bias ? 4 : 3;
        void *const places[] = {o->x, o->w, o->y, o->b};
        lg_dnn_parts pack;
        lg_dnn_answer answer = lg_dnn_judge(q, "cudnnBackendCreateDescriptor",
                                            l->make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack.part[0]));
        if (answer == LG_DNN_DONE) {
                pack.count = 1;
                cudnnStatus_t s =
                        l->set(pack.part[0], CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
                if (s == CUDNN_STATUS_SUCCESS)
                        s = l->set(pack.part[0], CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                                   places);
                if (s == CUDNN_STATUS_SUCCESS)
                        s = l->set(pack.part[0], CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
                answer = lg_dnn_judge(q, "cudnnBackendSetAttribute", s);
        }
        if (answer == LG_DNN_DONE)
                answer = lg_dnn_judge(q, "cudnnBackendFinalize", l->finish(pack.part[0]));
        if (answer != LG_DNN_DONE)
                return answer;
        cudnnStatus_t s;
        lg_cuda_count_launch();
        do
                s = l->execute(state_of(q)->handle, p->plan, pack.part[0]);
        while (s != CUDNN_STATUS_SUCCESS && lg_cuda_again(q, lg_dnn_lacked_memory(s)));
        return lg_dnn_judge(q, "cudnnBackendExecute", s);
}

/* Sets o->w to scratch memory if cuDNN's order of weights differs; fills it unless the weights are the result. */
static bool weights_in(lg_queue *q, const lg_conv_args *a, operands *o)
{
        if (!o->own_weights)
                return true;
        o->w = q->workspace(q, (size_t)lg_conv_weights(a) * lg_bytes_of(a->dtype));
        return o->w && (a->kind == LG_CONV_WEIGHT_GRAD || lg_conv_weights_last(q, a, o->w, a->dtype));
}

lg_dnn_answer lg_dnn_conv(lg_queue *q, const lg_conv_args *a)
{
        const lg_dnn_plan *plan = NULL;
        lg_dnn_answer answer = is_usual(a) ? open_state(q) : LG_DNN_REFUSED;
        if (answer != LG_DNN_DONE)
                return answer;
        operands o = operands_of(a);
        lg_dnn_key key = key_of(q, a, &o);
        const bool bias = key.bias != 0;
        answer = plan_for(q, &key, &plan);
        if (answer == LG_DNN_REFUSED && bias) {
                key.bias = 0;
                answer = plan_for(q, &key, &plan);
        }
        if (answer != LG_DNN_DONE)
                return answer;
        if (!weights_in(q, a, &o))
                return LG_DNN_FAILED;
        answer = execute(q, plan, &o);
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

extern "C" {
size_t lg_cuda_dnn_version(void)
{
        return 0;
}

const char *lg_cuda_dnn_reason(void)
{
        return "this build knows nothing of cuDNN";
}

lg_dnn_counts lg_cuda_dnn_counts(lg_queue *)
{
        return lg_dnn_counts{0, 0, 0, 0};
}

void lg_cuda_dnn_close(lg_queue *)
{
}
}
#endif
