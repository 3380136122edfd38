/* refuse.c - malloc and its kin and pthread_create in front of the C library's, for all libraries of a process. */
#include "refuse.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

refusals refused;

static struct {
        refusal kind;
        long n;
        bool only;
} armed;

void refuse_from(refusal kind, long n, bool only)
{
        armed.n = 0;
        for (int i = 0; i < REFUSALS; i++)
                refused.calls[i] = 0;
        refused.refused = 0;
        armed.kind = kind;
        armed.only = only;
        armed.n = n;
}

static bool refuses(refusal kind)
{
        const long call = ++refused.calls[kind];
        if (armed.n == 0 || kind != armed.kind || (armed.only ? call != armed.n : call < armed.n))
                return false;
        refused.refused++;
        return true;
}

/* The next definition of the function, by its address's own type. */
#define NEXT(name)                                                                                                     \
        static __typeof__(name) *next;                                                                                 \
        if (!next)                                                                                                     \
        *(void **)&next = dlsym(RTLD_NEXT, #name)

/* Whether this thread makes another: the C library keeps stacks, and what belongs to them, for threads to come. */
static _Thread_local bool makes_thread;

static void count(long allocations)
{
        if (!makes_thread)
                refused.live += allocations;
}

static void *counted(void *p)
{
        count(p != NULL);
        return p;
}

#define ALLOCATES(name, parameters, arguments)                                                                         \
        void *name parameters                                                                                          \
        {                                                                                                              \
                NEXT(name);                                                                                            \
                if (!refuses(MEMORY))                                                                                  \
                        return counted(next arguments);                                                                \
                errno = ENOMEM;                                                                                        \
                return NULL;                                                                                           \
        }
ALLOCATES(malloc, (size_t bytes), (bytes))
ALLOCATES(calloc, (size_t n, size_t bytes), (n, bytes))
ALLOCATES(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes))

void *realloc(void *p, size_t bytes)
{
        NEXT(realloc);
        if (refuses(MEMORY)) {
                errno = ENOMEM;
                return NULL;
        }
        void *q = next(p, bytes);
        count((q && !p) - (p && !q && !bytes));
        return q;
}

int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
        NEXT(posix_memalign);
        const int error = refuses(MEMORY) ? ENOMEM : next(ret, alignment, bytes);
        count(!error);
        return error;
}

void free(void *p)
{
        NEXT(free);
        count(-(p != NULL));
        next(p);
}

int pthread_create(pthread_t *id, const pthread_attr_t *a, void *(*f)(void *), void *user)
{
        NEXT(pthread_create);
        makes_thread = true;
        const int error = refuses(THREADS) ? EAGAIN : next(id, a, f, user);
        makes_thread = false;
        return error;
}
