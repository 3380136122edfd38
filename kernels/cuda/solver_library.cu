/* solver_library.cu - cuSOLVER and cuBLAS: loading them, a queue's handles, and the words of their errors. */
#include "solver.h"
#if LG_CUSOLVER
#include "graph.h"
#include "loaded.h"
#include "nccl.h"
#include <stdio.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static lg_solver_library load_solver(void)
{
        lg_solver_library library = {}, *l = &library;
        const lg_loaded_function table[] = {LG_SOLVER_FUNCTIONS(LG_LOADED)};
        l->there = lg_load_functions("libcusolver.so." TEXT(CUSOLVER_VER_MAJOR), "CUDASIM_CUSOLVER", table,
                                     sizeof table / sizeof *table, l->reason, sizeof l->reason);
        return library;
}

static lg_cublas_library load_blas(void)
{
        lg_cublas_library library = {}, *l = &library;
        const lg_loaded_function table[] = {LG_CUBLAS_FUNCTIONS(LG_LOADED)};
        l->there = lg_load_functions("libcublas.so." TEXT(CUBLAS_VER_MAJOR), "CUDASIM_CUBLAS", table,
                                     sizeof table / sizeof *table, l->reason, sizeof l->reason);
        return library;
}

bool lg_solver_good(lg_queue *q, const char *call, cusolverStatus_t s)
{
        return s == CUSOLVER_STATUS_SUCCESS || lg_queue_fail(q, lg_solver_lacks_memory(s) ? LG_NO_MEMORY : LG_BROKEN,
                                                             "%s: cuSOLVER's status %d", call, (int)s);
}

bool lg_solver_good(lg_queue *q, const char *call, cublasStatus_t s)
{
        return s == CUBLAS_STATUS_SUCCESS || lg_queue_fail(q, lg_solver_lacks_memory(s) ? LG_NO_MEMORY : LG_BROKEN,
                                                           "%s: cuBLAS's status %d", call, (int)s);
}

/* Returns q's handles, of which none may be opened yet. */
static lg_solver *solver_of(lg_queue *q)
{
        static const lg_solver_library solver = load_solver();
        static const lg_cublas_library blas = load_blas();
        lg_cuda_queue *c = lg_cuda(q);
        if (!lg_cuda_links_before(q))
                return NULL;
        if (!c->solver) {
                lg_solver *s = (lg_solver *)calloc(1, sizeof *s);
                if (!s) {
                        lg_queue_fail(q, LG_NO_MEMORY, "no memory for the handles of cuSOLVER");
                        return NULL;
                }
                s->l = &solver;
                s->b = &blas;
                c->solver = s;
        }
        return (lg_solver *)c->solver;
}

static void close_solver(lg_solver *s)
{
        if (s->params)
                s->l->end_params(s->params);
        if (s->syevj)
                s->l->end_syevj(s->syevj);
        if (s->gesvdj)
                s->l->end_gesvdj(s->gesvdj);
        if (s->handle)
                s->l->close(s->handle);
        s->handle = NULL;
        s->params = NULL;
        s->syevj = NULL;
        s->gesvdj = NULL;
}

/* Returns whether s is worth another try of opening a handle. */
static bool again(lg_queue *q, cusolverStatus_t s)
{
        return lg_cuda_again(q, lg_solver_lacks_memory(s) || s == CUSOLVER_STATUS_NOT_INITIALIZED);
}

static bool make_handles(lg_queue *q, lg_solver *s)
{
        cusolverStatus_t e;
#define TRY(member, to, ...)                                                                                           \
        do                                                                                                             \
                e = s->l->member(__VA_ARGS__);                                                                         \
        while (e != CUSOLVER_STATUS_SUCCESS && again(q, e));                                                           \
        if (!lg_solver_good(q, to, e))                                                                                 \
                return false;
        TRY(open, "cusolverDnCreate", &s->handle)
        TRY(set_stream, "cusolverDnSetStream", s->handle, lg_cuda(q)->stream)
        TRY(make_params, "cusolverDnCreateParams", &s->params)
        TRY(make_syevj, "cusolverDnCreateSyevjInfo", &s->syevj)
        TRY(make_gesvdj, "cusolverDnCreateGesvdjInfo", &s->gesvdj)
#undef TRY
        return true;
}

lg_solver *lg_solver_open(lg_queue *q)
{
        lg_solver *s = solver_of(q);
        if (!s || s->handle)
                return s;
        if (!s->l->there) {
                lg_queue_fail(q, LG_BROKEN, "cuSOLVER: %s", s->l->reason);
                return NULL;
        }
        if (make_handles(q, s))
                return s;
        close_solver(s);
        return NULL;
}

static void close_blas(lg_solver *s)
{
        if (s->blas)
                s->b->close(s->blas);
        s->blas = NULL;
}

lg_solver *lg_solver_open_blas(lg_queue *q)
{
        lg_solver *s = solver_of(q);
        if (!s || s->blas)
                return s;
        if (!s->b->there) {
                lg_queue_fail(q, LG_BROKEN, "cuBLAS: %s", s->b->reason);
                return NULL;
        }
        cublasStatus_t e;
        do
                e = s->b->open(&s->blas);
        while (e != CUBLAS_STATUS_SUCCESS &&
               lg_cuda_again(q, lg_solver_lacks_memory(e) || e == CUBLAS_STATUS_NOT_INITIALIZED));
        if (!lg_solver_good(q, "cublasCreate", e)) {
                s->blas = NULL;
                return NULL;
        }
        if (lg_solver_good(q, "cublasSetStream", s->b->set_stream(s->blas, lg_cuda(q)->stream)))
                return s;
        close_blas(s);
        return NULL;
}

extern "C" void lg_cuda_solver_close(lg_queue *q)
{
        lg_solver *s = (lg_solver *)lg_cuda(q)->solver;
        if (!s)
                return;
        close_solver(s);
        close_blas(s);
        free(s);
        lg_cuda(q)->solver = NULL;
}

void *lg_solver_scratch(lg_queue *q, size_t bytes)
{
        char *p = (char *)q->workspace(q, bytes + 256);
        return p ? p + -(uintptr_t)p % 256 : NULL;
}

bool lg_solver_room::make(lg_queue *q)
{
        device = lg_solver_scratch(q, bytes);
        if (!device)
                return false;
        if (host_bytes && lg_cuda_captures(q)) /* a graph would use this memory after the call */
                return lg_queue_fail(q, LG_BROKEN, "cuSOLVER works in memory of the host");
        if (host_bytes && !(host = malloc(host_bytes)))
                return lg_queue_fail(q, LG_NO_MEMORY, "no memory for cuSOLVER to work in");
        return true;
}

#else

extern "C" void lg_cuda_solver_close(lg_queue *)
{
}
#endif
