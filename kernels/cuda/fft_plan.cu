/* fft_plan.cu - plans of Fourier transforms by cuFFT, which is loaded when it is first needed. A queue keeps its plans,
 * which work in its stream and in scratch memory. */
#include "fft_plan.h"
#if __has_include(<cufftXt.h>)
#include "graph.h"
#include "loaded.h"
#include "nccl.h"
#include <cufftXt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLANS 64 /* most plans of a queue; the least recently used one is replaced */
#define WORK_ALIGNMENT 256

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define FFT_FUNCTIONS(F)                                                                                               \
        F(make, cufftCreate)                                                                                           \
        F(destroy, cufftDestroy)                                                                                       \
        F(set_allocation, cufftSetAutoAllocation)                                                                      \
        F(set_stream, cufftSetStream)                                                                                  \
        F(plan, cufftXtMakePlanMany)                                                                                   \
        F(set_work, cufftSetWorkArea)                                                                                  \
        F(execute, cufftXtExec)

typedef struct fft_library {
        bool there;
        char reason[200]; /* message that explains why `there` is false */
#define MEMBER(name, function) decltype(&::function) name;
        FFT_FUNCTIONS(MEMBER)
#undef MEMBER
} fft_library;

typedef struct fft_plan {
        lg_fft_key key;
        uint64_t used; /* number of the last call that used the plan */
        cufftHandle handle;
        size_t work; /* bytes of scratch memory */
} fft_plan;

/* A plan that was replaced while there were graphs. */
typedef struct fft_kept {
        struct fft_kept *next;
        cufftHandle handle;
} fft_kept;

typedef struct fft_table {
        fft_kept *kept;
        int count;
        uint64_t calls;
        fft_plan plans[PLANS];
} fft_table;

static fft_library load_library(void)
{
        fft_library library = {}, *l = &library;
        const lg_loaded_function table[] = {FFT_FUNCTIONS(LG_LOADED)};
        l->there = lg_load_functions("libcufft.so." TEXT(CUFFT_VER_MAJOR), "CUDASIM_CUFFT", table,
                                     sizeof table / sizeof *table, l->reason, sizeof l->reason);
        return library;
}

static const fft_library *find_library(void)
{
        static const fft_library library = load_library();
        return &library;
}

static bool good(lg_queue *q, const char *call, cufftResult e)
{
        return e == CUFFT_SUCCESS || lg_queue_fail(q, e == CUFFT_ALLOC_FAILED ? LG_NO_MEMORY : LG_BROKEN,
                                                   "%s: cuFFT's status %d", call, (int)e);
}

static fft_table *table_of(lg_queue *q)
{
        lg_cuda_queue *c = lg_cuda(q);
        if (!c->fft)
                c->fft = calloc(1, sizeof(fft_table));
        if (!c->fft)
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for cuFFT's plans");
        return (fft_table *)c->fft;
}

static void free_kept(fft_table *t)
{
        for (fft_kept *k = t->kept, *next; k; k = next) {
                next = k->next;
                find_library()->destroy(k->handle);
                free(k);
        }
        t->kept = NULL;
}

/* Frees a plan, or keeps it while graphs may use it. Returns false, with an error, if the host is out of memory. */
static bool replace_plan(lg_queue *q, fft_table *t, cufftHandle handle)
{
        if (!lg_cuda_has_graphs()) {
                free_kept(t);
                find_library()->destroy(handle);
                return true;
        }
        fft_kept *k = (fft_kept *)malloc(sizeof *k);
        if (!k)
                return lg_queue_fail(q, LG_NO_MEMORY, "no memory for cuFFT's plans");
        *k = fft_kept{t->kept, handle};
        t->kept = k;
        return true;
}

extern "C" void lg_cuda_fft_close(lg_queue *q)
{
        fft_table *t = (fft_table *)lg_cuda(q)->fft;
        if (t)
                free_kept(t);
        for (int i = 0; t && i < t->count; i++)
                find_library()->destroy(t->plans[i].handle);
        free(t);
        lg_cuda(q)->fft = NULL;
}

/* Makes the plan for p's key in p->handle, which exists. */
static cufftResult fill_plan(lg_queue *q, fft_plan *p, const char **call)
{
        const fft_library *l = find_library();
        const lg_fft_key *k = &p->key;
        long long n = k->n;
        const cudaDataType real = k->dtype == LG_F64 ? CUDA_R_64F : CUDA_R_32F;
        const cudaDataType complex = k->dtype == LG_F64 ? CUDA_C_64F : CUDA_C_32F;
        *call = "cufftSetAutoAllocation";
        cufftResult e = l->set_allocation(p->handle, 0);
        if (e != CUFFT_SUCCESS)
                return e;
        *call = "cufftXtMakePlanMany";
        e = l->plan(p->handle, 1, &n, &n, k->stride, k->in_distance, k->kind == LG_FFT_REAL ? real : complex, &n,
                    k->stride, k->out_distance, k->kind == LG_FFT_HALF ? real : complex, k->batch, &p->work, complex);
        if (e != CUFFT_SUCCESS)
                return e;
        *call = "cufftSetStream";
        return l->set_stream(p->handle, lg_cuda(q)->stream);
}

/* Makes a plan for p's key. A plan that failed is not used again. */
static bool make_plan(lg_queue *q, fft_plan *p)
{
        const fft_library *l = find_library();
        for (;;) {
                const char *call = "cufftCreate";
                cufftResult e = l->make(&p->handle);
                if (e == CUFFT_SUCCESS) {
                        e = fill_plan(q, p, &call);
                        if (e == CUFFT_SUCCESS)
                                return true;
                        l->destroy(p->handle);
                }
                if (!lg_cuda_again(q, e == CUFFT_ALLOC_FAILED))
                        return good(q, call, e);
        }
}

static fft_plan *find_plan(lg_queue *q, fft_table *t, const lg_fft_key *key)
{
        int at = 0;
        t->calls++;
        for (int i = 0; i < t->count; i++) {
                fft_plan *p = &t->plans[i];
                if (memcmp(&p->key, key, sizeof *key) == 0) {
                        p->used = t->calls;
                        return p;
                }
                at = p->used < t->plans[at].used ? i : at;
        }
        fft_plan made = {*key, t->calls, 0, 0};
        if (!lg_cuda_links_before(q) || !make_plan(q, &made)) /* a new plan takes memory: CUDA may wait */
                return NULL;
        if (t->count < PLANS) {
                at = t->count++;
        } else if (!replace_plan(q, t, t->plans[at].handle)) {
                find_library()->destroy(made.handle);
                return NULL;
        }
        t->plans[at] = made;
        return &t->plans[at];
}

extern "C" bool lg_cuda_fft_run(lg_queue *q, const lg_fft_key *key, bool inverse, char *in, int64_t in_step, char *out,
                                int64_t out_step, int64_t times)
{
        const fft_library *l = find_library();
        if (!l->there)
                return lg_queue_fail(q, LG_BROKEN, "cuFFT: %s", l->reason);
        fft_table *t = table_of(q);
        const fft_plan *p = t ? find_plan(q, t, key) : NULL;
        if (!p)
                return false;
        char *work = (char *)q->workspace(q, p->work + WORK_ALIGNMENT);
        if (!work || !good(q, "cufftSetWorkArea", l->set_work(p->handle, work + -(uintptr_t)work % WORK_ALIGNMENT)))
                return false;
        for (int64_t i = 0; i < times; i++) {
                cufftResult e;
                lg_cuda_count_launch();
                do
                        e = l->execute(p->handle, in + i * in_step, out + i * out_step,
                                       inverse ? CUFFT_INVERSE : CUFFT_FORWARD);
                while (e != CUFFT_SUCCESS && lg_cuda_again(q, e == CUFFT_ALLOC_FAILED));
                if (!good(q, "cufftXtExec", e))
                        return false;
        }
        return true;
}

#else /* built without cuFFT's headers */

extern "C" bool lg_cuda_fft_run(lg_queue *q, const lg_fft_key *, bool, char *, int64_t, char *, int64_t, int64_t)
{
        return lg_queue_fail(q, LG_BROKEN, "fft: this build knows nothing of cuFFT");
}

extern "C" void lg_cuda_fft_close(lg_queue *)
{
}
#endif
