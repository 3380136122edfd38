/* shadow.c - a device for tests: the CPU's kernels over memory whose pages are closed to the host outside kernels.
 *
 * Each queue owns one reserved range of addresses. Its pages are opened while a kernel or a copy of that queue runs, so
 * whatever above the kernels touches device memory dies at once. Fresh memory is full of 0xFF (NaN).
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "../../kernels/cpu/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES ((size_t)4 << 30)
#define ALIGN ((size_t)64)
#define PAGE ((size_t)4096)

/* A stretch of the arena, in order of address; the list lies in the host's memory. */
typedef struct stretch {
        struct stretch *next;
        size_t at, bytes;
        bool used;
} stretch;

typedef struct shadow_queue {
        lg_queue base;
        lg_engine engine; /* of the CPU's kernels */
        char *arena;
        size_t touched; /* the bytes from the start that were ever given out: only these are opened */
        int open;       /* depth: a kernel may ask for workspace */
        stretch *stretches;
} shadow_queue;

static bool arena_protect(shadow_queue *s, int access)
{
        size_t bytes = (s->touched + PAGE - 1) / PAGE * PAGE;
        return bytes == 0 || mprotect(s->arena, bytes, access) == 0;
}

static bool arena_enter(lg_queue *q)
{
        shadow_queue *s = (shadow_queue *)q;
        if (s->open++ == 0 && !arena_protect(s, PROT_READ | PROT_WRITE)) {
                s->open--;
                return lg_queue_fail(q, LG_BROKEN, "shadow: mprotect failed");
        }
        return true;
}

static bool arena_leave(lg_queue *q, bool ok)
{
        shadow_queue *s = (shadow_queue *)q;
        if (--s->open == 0 && !arena_protect(s, PROT_NONE))
                return lg_queue_fail(q, LG_BROKEN, "shadow: mprotect failed");
        return ok;
}

static int shadow_count(char *reason, size_t size)
{
        (void)reason, (void)size;
        return 2;
}

static bool shadow_open(lg_queue *q, char *reason, size_t size)
{
        shadow_queue *s = (shadow_queue *)q;
        void *p = mmap(NULL, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
                snprintf(reason, size, "shadow: no address range of 4 GiB");
                return false;
        }
        s->arena = p;
        q->memo = &s->engine;
        s->stretches = calloc(1, sizeof *s->stretches);
        if (!s->stretches) {
                snprintf(reason, size, "shadow: no memory");
                return false;
        }
        s->stretches->bytes = ARENA_BYTES;
        return true;
}

static void shadow_close(lg_queue *q)
{
        shadow_queue *s = (shadow_queue *)q;
        lg_cpu_device()->close(q); /* its kernels' threads, and what they remember */
        for (stretch *x = s->stretches, *next; x; x = next) {
                next = x->next;
                free(x);
        }
        if (s->arena)
                munmap(s->arena, ARENA_BYTES);
        s->stretches = NULL;
        s->arena = NULL;
}

/* The first free stretch that is long enough, cut to `bytes`. */
static stretch *take_stretch(shadow_queue *s, size_t bytes)
{
        for (stretch *x = s->stretches; x; x = x->next) {
                if (x->used || x->bytes < bytes)
                        continue;
                if (x->bytes > bytes) {
                        stretch *rest = malloc(sizeof *rest);
                        if (!rest)
                                return NULL;
                        *rest = (stretch){.next = x->next, .at = x->at + bytes, .bytes = x->bytes - bytes};
                        x->next = rest;
                        x->bytes = bytes;
                }
                x->used = true;
                return x;
        }
        return NULL;
}

static void *shadow_allocate(lg_queue *q, size_t bytes)
{
        shadow_queue *s = (shadow_queue *)q;
        if (bytes > ARENA_BYTES)
                return NULL;
        stretch *x = take_stretch(s, (bytes + ALIGN - 1) / ALIGN * ALIGN);
        if (!x)
                return NULL;
        bool was_open = s->open > 0;
        if (x->at + x->bytes > s->touched)
                s->touched = x->at + x->bytes;
        /* Within a kernel the pages that are new must open too. */
        if (!arena_protect(s, PROT_READ | PROT_WRITE)) {
                x->used = false;
                return NULL;
        }
        memset(s->arena + x->at, 0xFF, x->bytes);
        if (!was_open && !arena_protect(s, PROT_NONE)) {
                x->used = false;
                return NULL;
        }
        return s->arena + x->at;
}

static void join_next(stretch *x)
{
        stretch *next = x->next;
        if (x->used || !next || next->used)
                return;
        x->bytes += next->bytes;
        x->next = next->next;
        free(next);
}

static void shadow_free(lg_queue *q, void *p, size_t bytes)
{
        shadow_queue *s = (shadow_queue *)q;
        (void)bytes;
        if (!p)
                return;
        size_t at = (size_t)((char *)p - s->arena);
        for (stretch *x = s->stretches, *before = NULL; x; before = x, x = x->next) {
                if (x->at != at)
                        continue;
                x->used = false;
                join_next(x);
                if (before)
                        join_next(before);
                return;
        }
}

static bool shadow_copy(lg_queue *q, void *to, const void *from, size_t bytes)
{
        if (!arena_enter(q))
                return false;
        if (bytes)
                memmove(to, from, bytes);
        return arena_leave(q, true);
}

static bool shadow_synchronize(lg_queue *q, lg_device_error *ret)
{
        *ret = q->error;
        q->error = (lg_device_error){0};
        return true;
}

static bool shadow_clear_fault(lg_queue *q)
{
        q->error = (lg_device_error){0};
        return true;
}

static bool shadow_facts(int index, lg_device_facts *ret)
{
        if (index < 0 || index > 1)
                return false;
        snprintf(ret->name, sizeof ret->name, "shadow %d", index);
        ret->total_bytes = (int64_t)ARENA_BYTES;
        ret->free_bytes = -1;
        return true;
}

/* A wrapper for every kernel of the lists. */
#define WRAP(name, member, args)                                                                                       \
        static bool shadow_##name(lg_queue *q, const args *a)                                                          \
        {                                                                                                              \
                return arena_enter(q) && arena_leave(q, lg_cpu_device()->kernels->member(q, a));                       \
        }
#define POINTWISE(name) WRAP(name, pointwise[LG_PW_##name], lg_pointwise_args)
#define UNARY(name, ...) POINTWISE(name) POINTWISE(name##_da)
#define BINARY(name, ...) POINTWISE(name) POINTWISE(name##_da) POINTWISE(name##_db)
#define TERNARY(name, ...) POINTWISE(name) POINTWISE(name##_da) POINTWISE(name##_db)
#define COMPARE(name, ...) POINTWISE(name)
#define COMPARE_SCALAR(name, ...) POINTWISE(name)
#define TEST(name, ...) POINTWISE(name)
#define PLAIN(name, ...) POINTWISE(name)
#define PLAIN_SCALAR(name, ...) POINTWISE(name)
#include "../../kernels/pointwise.def"
#undef POINTWISE
#define KERNEL(name, args) WRAP(kernel_##name, name, args)
#include "../../kernels/kernels.def"
#undef KERNEL

static const lg_kernels shadow_kernels = {
        .pointwise =
                {
#define POINTWISE(name) [LG_PW_##name] = shadow_##name,
#include "../../kernels/pointwise.def"
                },
#define KERNEL(name, args) .name = shadow_kernel_##name,
#include "../../kernels/kernels.def"
#undef KERNEL
};

static const lg_device_api shadow_api = {
        .abi = LG_DEVICE_ABI,
        .name = "shadow",
        .queue_size = sizeof(shadow_queue),
        .count = shadow_count,
        .open = shadow_open,
        .close = shadow_close,
        .allocate = shadow_allocate,
        .free = shadow_free,
        .upload = shadow_copy,
        .download = shadow_copy,
        .copy = shadow_copy,
        .synchronize = shadow_synchronize,
        .clear_error = shadow_clear_fault,
        .facts = shadow_facts,
        .kernels = &shadow_kernels,
};

__attribute__((visibility("default"))) const lg_device_api *lg_device_module(void);

const lg_device_api *lg_device_module(void)
{
        if (getenv("LIBGRAD_SHADOW_TINY")) /* small inputs show what threads do */
                lg__parallel_min = 4;
        return &shadow_api;
}
