/* memory.c - a runtime for -fsanitize=thread, in place of ThreadSanitizer's, that keeps the last writer of each line.
 *
 * Only one thread at a time runs instrumented code (locality.c), so nothing here is atomic. */
#include "memory.h"
#include <pthread.h>
#include <sys/mman.h>

/* State of a line. All zero: never accessed. */
typedef struct line {
        uint32_t readers; /* a bit for each thread that has read the line in this loop */
        uint32_t loop : 23, activation : 1;
        uint32_t writer : 8; /* 1 + number of the thread that wrote last */
} line;

enum { LEAF_BITS = 24, LEAVES = 1 << (47 - 6 - LEAF_BITS) };

int64_t lines_read[KINDS], activations_read[KINDS], bytes_accessed;
static int running = -1;
static uint32_t loop;
static uintptr_t stack_from[MOST_THREADS], stack_to[MOST_THREADS]; /* numbers of lines */
static uintptr_t last[2]; /* lines last read and written, of which further accesses change nothing */

void memory_exclude_stack(int thread)
{
        pthread_attr_t a;
        void *low;
        size_t size;
        pthread_getattr_np(pthread_self(), &a);
        pthread_attr_getstack(&a, &low, &size);
        pthread_attr_destroy(&a);
        stack_from[thread] = (uintptr_t)low / LINE;
        stack_to[thread] = ((uintptr_t)low + size) / LINE;
}

/* Returns whether a line belongs to the stack of the running thread, or to that of the caller, which has the jobs. */
static bool in_stack(uintptr_t number)
{
        return (number >= stack_from[running] && number < stack_to[running]) ||
               (number >= stack_from[0] && number < stack_to[0]);
}

void memory_begin_loop(void)
{
        loop = (loop + 1) % (1 << 23);
        last[0] = last[1] = 0;
}

void memory_run(int thread)
{
        running = thread;
        last[0] = last[1] = 0;
}

static line *line_at(uintptr_t number)
{
        static line *leaves[LEAVES];
        line **leaf = &leaves[number >> LEAF_BITS];
        if (!*leaf)
                *leaf = mmap(NULL, sizeof(line) << LEAF_BITS, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return *leaf + number % (1 << LEAF_BITS);
}

static void count(const line *l, int kind, int n)
{
        lines_read[kind] += n;
        if (l->activation)
                activations_read[kind] += n;
}

static void read_line(line *l)
{
        const uint32_t me = 1u << running, writer = l->writer ? 1u << (l->writer - 1) : 0;
        const uint32_t others = l->loop == loop ? l->readers : 0;
        if (others & me)
                return;
        l->loop = loop & 0x7FFFFF;
        l->readers = others | me;
        count(l, !writer ? UNWRITTEN : writer == me ? OWN : others ? SHARED : FOREIGN, 1);
        if (writer && others && !(others & (others - 1)) &&
            others != writer) { /* the first reader is no longer alone */
                count(l, FOREIGN, -1);
                count(l, SHARED, 1);
        }
}

static void use(const void *p, size_t size, bool write)
{
        if (running < 0 || size == 0)
                return;
        bytes_accessed += (int64_t)size;
        for (uintptr_t i = (uintptr_t)p / LINE; i <= ((uintptr_t)p + size - 1) / LINE; i++) {
                if (i == last[write] || in_stack(i))
                        continue;
                last[write] = i;
                if (write)
                        line_at(i)->writer = (unsigned)(running + 1) & 0xFF;
                else
                        read_line(line_at(i));
        }
}

void memory_mark(const void *p, size_t bytes, bool activations)
{
        for (uintptr_t i = (uintptr_t)p / LINE; bytes && i <= ((uintptr_t)p + bytes - 1) / LINE; i++)
                line_at(i)->activation = activations;
}

/* ---- calls that the compiler inserts ---- */

#define DEFINE_USE(size)                                                                                               \
        void __tsan_read##size(const void *p)                                                                          \
        {                                                                                                              \
                use(p, size, false);                                                                                   \
        }                                                                                                              \
        void __tsan_write##size(void *p)                                                                               \
        {                                                                                                              \
                use(p, size, true);                                                                                    \
        }
DEFINE_USE(1)
DEFINE_USE(2)
DEFINE_USE(4)
DEFINE_USE(8)
DEFINE_USE(16)

void __tsan_read_range(const void *p, size_t size)
{
        use(p, size, false);
}

void __tsan_write_range(void *p, size_t size)
{
        use(p, size, true);
}

/* The only atomic access of kernels: the flag of the loss scaler. */
void __tsan_atomic32_store(int *p, int value, int order)
{
        (void)order;
        use(p, sizeof *p, true);
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

void __tsan_init(void)
{
}

/* ---- functions of the C library, by the linker's --wrap ---- */

#define DEFINE_COPY(name)                                                                                              \
        void *__real_##name(void *to, const void *from, size_t n);                                                     \
        void *__wrap_##name(void *to, const void *from, size_t n)                                                      \
        {                                                                                                              \
                use(from, n, false);                                                                                   \
                use(to, n, true);                                                                                      \
                return __real_##name(to, from, n);                                                                     \
        }
DEFINE_COPY(memcpy)
DEFINE_COPY(memmove)

void *__real_memset(void *to, int value, size_t n);
void *__wrap_memset(void *to, int value, size_t n)
{
        use(to, n, true);
        return __real_memset(to, value, n);
}
