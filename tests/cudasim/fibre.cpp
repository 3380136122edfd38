/* fibre.cpp - the threads of a block: they run one after the other on one stack until one waits; what waits keeps its
 * stack and another is begun.
 */
#include "sim.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define LG_FIBRE_ASAN 1
#endif
#if CUDASIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cudasim
{
place *here;

void die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fputs("cudasim: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
        abort();
}

/* ---- stacks and switches ---- */

namespace
{
constexpr size_t stack_bytes = 256 * 1024;

struct fibre {
        char *stack = nullptr;
#if defined(__x86_64__)
        void *sp = nullptr;
#else
        ucontext_t context;
#endif
#ifdef LG_FIBRE_ASAN
        void *fake = nullptr;
        const void *bottom = nullptr;
        size_t size = 0;
#endif
};

#if defined(__x86_64__)
extern "C" void cudasim_switch(void **from, void *to);
asm(R"(
.text
.type cudasim_switch, @function
cudasim_switch:
        pushq %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        movq %rsp, (%rdi)
        movq %rsi, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        ret
.size cudasim_switch, . - cudasim_switch
)");
#endif

fibre scheduler, *current = &scheduler;
std::vector<fibre *> &spare = *new std::vector<fibre *>; /* lives as long as the program */

void go(fibre *to, bool ends = false)
{
        fibre *from = current;
        current = to;
#ifdef LG_FIBRE_ASAN
        __sanitizer_start_switch_fiber(ends ? nullptr : &from->fake, to->bottom, to->size);
#else
        (void)ends;
#endif
#if defined(__x86_64__)
        cudasim_switch(&from->sp, to->sp);
#else
        swapcontext(&from->context, &to->context);
#endif
#ifdef LG_FIBRE_ASAN
        const void *bottom;
        size_t size;
        __sanitizer_finish_switch_fiber(from->fake, &bottom, &size);
        if (!scheduler.bottom) {
                scheduler.bottom = bottom;
                scheduler.size = size;
        }
#endif
}

void runner_main();

void entry()
{
#ifdef LG_FIBRE_ASAN
        const void *bottom;
        size_t size;
        __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
        if (!scheduler.bottom) {
                scheduler.bottom = bottom;
                scheduler.size = size;
        }
#endif
        runner_main();
        abort();
}

fibre *make_fibre()
{
        if (!spare.empty()) {
                fibre *f = spare.back();
                spare.pop_back();
                return f;
        }
        fibre *f = new fibre;
        f->stack = (char *)mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f->stack == MAP_FAILED)
                die("no memory for a stack");
        mprotect(f->stack, 4096, PROT_NONE);
#ifdef LG_FIBRE_ASAN
        f->bottom = f->stack;
        f->size = stack_bytes;
#endif
#if defined(__x86_64__)
        void **top = (void **)(f->stack + stack_bytes) - 2;
        *top = (void *)entry;
        f->sp = top - 6;
        memset(f->sp, 0, 6 * sizeof(void *));
#else
        getcontext(&f->context);
        f->context.uc_stack.ss_sp = f->stack;
        f->context.uc_stack.ss_size = stack_bytes;
        makecontext(&f->context, entry, 0);
#endif
        return f;
}

/* ---- races ----
 * Under ThreadSanitizer each CUDA thread is a thread of its own, which is ordered with others by barriers alone. The
 * simulator itself is not instrumented. Blocks take turns with two sets of threads, so that neighbours are not ordered.
 */
#if CUDASIM_TSAN
void *host;
std::vector<void *> &identities = *new std::vector<void *>;
char tokens[1 << 16]; /* what a barrier orders by; they come round again late enough */
size_t token;
char block_begins[2], grid_ends;
bool odd;

void become(unsigned i)
{
        size_t at = (size_t)i * 2 + odd;
        while (identities.size() <= at)
                identities.push_back(__tsan_create_fiber(0));
        __tsan_switch_to_fiber(identities[at], __tsan_switch_to_fiber_no_sync);
}

void become_host()
{
        __tsan_switch_to_fiber(host, __tsan_switch_to_fiber_no_sync);
}

void give(void *order)
{
        __tsan_release(order);
}

void get(void *order)
{
        __tsan_acquire(order);
}
#else
char tokens[1], block_begins[2], grid_ends;
size_t token;
bool odd;
void become(unsigned)
{
}
void become_host()
{
}
void give(void *)
{
}
void get(void *)
{
}
#endif

char *next_token()
{
        token = (token + 1) % sizeof tokens;
        return &tokens[token];
}

/* ---- a block ---- */

enum class state { fresh, ready, at_barrier, at_exchange, done };

struct warp {
        unsigned arrived = 0, mask = 0, generation = 0, bits[2] = {0, 0};
        uint64_t slot[2][32];
        char *order = nullptr;
};

struct thread {
        fibre *on;
        const char *file; /* of the barrier it waits at */
        int line;
        state now;
};

struct piece {
        const void *key;
        char *p;
        size_t bytes;
};

struct block_run {
        const std::function<void()> *body;
        const char *name;
        std::vector<thread> threads;
        std::vector<unsigned> order, ready; /* of threads; `ready` ones wait to be resumed */
        std::vector<warp> warps;
        int ordered_as = -1;
        dim3 size;
        place at; /* of the thread that runs */
        std::vector<piece> pieces;
        char *order_now = tokens; /* of the next barrier of all threads */
        char *arena = nullptr;
        size_t used = 0, dynamic = 0;
        size_t next_fresh = 0; /* in order */
        unsigned running = 0;
};
block_run &run_now = *new block_run;

constexpr size_t shared_bytes = 227 * 1024;

void be(unsigned i)
{
        const dim3 &size = run_now.size;
        run_now.running = i;
        run_now.at.thread = size.y == 1 && size.z == 1 ? uint3{i, 0, 0}
                                                       : uint3{i % size.x, i / size.x % size.y, i / size.x / size.y};
}

void run_thread(unsigned i)
{
        be(i);
        run_now.threads[i].on = current;
        become(i);
        get(&block_begins[odd]);
        (*run_now.body)();
        give(&grid_ends);
        become_host();
        run_now.threads[run_now.running].now = state::done;
}

/* A stack takes fresh threads as long as there are some, then gives itself back. */
void runner_main()
{
        for (;;) {
#if CUDASIM_TSAN
                run_thread(run_now.order[run_now.next_fresh++]);
#else
                while (run_now.next_fresh < run_now.order.size())
                        run_thread(run_now.order[run_now.next_fresh++]);
                spare.push_back(current);
#endif
                go(&scheduler);
        }
}

/* A stack for the next fresh thread. ThreadSanitizer wants one for each of its threads, whose own it stays. */
fibre *next_fibre()
{
#if CUDASIM_TSAN
        static std::vector<fibre *> &own = *new std::vector<fibre *>;
        size_t at = (size_t)run_now.order[run_now.next_fresh] * 2 + odd;
        if (own.size() <= at)
                own.resize(at + 1, nullptr);
        if (!own[at])
                own[at] = make_fibre();
        return own[at];
#else
        return make_fibre();
#endif
}

void wait(state s)
{
        unsigned me = run_now.running;
        run_now.threads[me].now = s;
        become_host();
        go(&scheduler);
        be(me);
        become(me);
}

/* True if somebody could go on. */
bool open_barrier()
{
        const thread *first = nullptr;
        for (const thread &t : run_now.threads) {
                if (t.now == state::at_exchange)
                        die("%s: thread %u of block %u waits for lanes that do not come", run_now.name,
                            (unsigned)(&t - run_now.threads.data()), run_now.at.block.x);
                if (t.now != state::at_barrier)
                        continue;
                if (!first)
                        first = &t;
                else if (first->line != t.line || first->file != t.file)
                        die("%s: threads wait at two barriers, lines %d and %d", run_now.name, first->line, t.line);
        }
        if (!first)
                return false;
        for (const thread &t : run_now.threads)
                if (t.now == state::done)
                        die("%s: thread %u ended before the barrier of line %d at which others wait", run_now.name,
                            (unsigned)(&t - run_now.threads.data()), first->line);
        for (thread &t : run_now.threads)
                t.now = state::ready;
        run_now.ready = run_now.order;
        run_now.order_now = next_token();
        return true;
}
} // namespace

void barrier(const char *file, int line)
{
        thread &t = run_now.threads[run_now.running];
        char *order = run_now.order_now;
        t.file = file;
        t.line = line;
        give(order);
        wait(state::at_barrier);
        get(order);
}

int lane()
{
        return (int)(run_now.running & 31);
}

/* Both words and bits go through here; returns the generation whose slots are good. */
static unsigned meet(unsigned mask, uint64_t value, bool bit)
{
        unsigned me = run_now.running, l = me & 31;
        warp &w = run_now.warps[me / 32];
        if (!(mask >> l & 1))
                die("%s: lane %u takes part in an exchange whose mask %#x does not name it", run_now.name, l, mask);
        if (w.arrived && w.mask != mask)
                die("%s: lanes of a warp exchange with masks %#x and %#x", run_now.name, w.mask, mask);
        unsigned g = w.generation, side = g & 1;
        if (!w.arrived)
                w.bits[side] = 0;
        w.mask = mask;
        w.slot[side][l] = value;
        w.bits[side] |= (unsigned)bit << l;
        w.arrived |= 1u << l;
        if (w.arrived != mask) {
                wait(state::at_exchange);
                return side;
        }
        w.arrived = 0;
        w.generation++;
        unsigned turn = shuffling() == 1 ? 31 : shuffling() == 2 ? (unsigned)next_random() & 31 : 0;
        for (unsigned i = 0; i < 32; i++) {
                unsigned lane = i ^ turn;
                size_t other = (size_t)(me & ~31u) + lane;
                if ((mask >> lane & 1) && other < run_now.threads.size() &&
                    run_now.threads[other].now == state::at_exchange) {
                        run_now.threads[other].now = state::ready;
                        run_now.ready.push_back((unsigned)other);
                }
        }
        return side;
}

uint64_t exchange(unsigned mask, uint64_t value, int source)
{
        if (source < 0 || source > 31 || !(mask >> source & 1))
                die("%s: a shuffle from lane %d, which the mask %#x does not name", run_now.name, source, mask);
        warp &w = run_now.warps[run_now.running / 32];
        unsigned side = meet(mask, value, false);
        return w.slot[side][source];
}

unsigned ballot(unsigned mask, bool bit)
{
        warp &w = run_now.warps[run_now.running / 32];
        unsigned side = meet(mask, 0, bit);
        return w.bits[side];
}

void warp_barrier(unsigned mask)
{
        warp &w = run_now.warps[run_now.running / 32];
        if (!w.arrived)
                w.order = next_token();
        char *order = w.order;
        give(order);
        meet(mask, 0, false);
        get(order);
}

void *shared(const void *key, size_t bytes)
{
        for (const piece &p : run_now.pieces)
                if (p.key == key)
                        return p.p;
        size_t at = (run_now.used + 63) / 64 * 64 + 64;
        if (at + bytes > shared_bytes)
                die("%s: %zu bytes of shared memory are more than there are", run_now.name, at + bytes);
        run_now.used = at + bytes;
        char *p = run_now.arena + at;
        open_memory(p, bytes);
        for (volatile char *x = p; x < p + bytes; x++) /* not memset, which ThreadSanitizer would notice */
                *x = (char)0xff;
        run_now.pieces.push_back({key, p, bytes});
        return p;
}

void *dynamic_shared()
{
        return shared(&run_now, run_now.dynamic);
}

/* Orders of threads that a program must not depend on. */
static void put_in_order(std::vector<unsigned> &order, size_t n)
{
        order.resize(n);
        for (size_t i = 0; i < n; i++)
                order[i] = (unsigned)(shuffling() == 1 ? n - 1 - i : i);
        if (shuffling() == 2)
                for (size_t i = n; i > 1; i--)
                        std::swap(order[i - 1], order[next_random() % i]);
}

static void run_block(uint3 block, dim3 grid, dim3 size)
{
        size_t n = (size_t)size.x * size.y * size.z;
        run_now.threads.assign(n, thread{nullptr, nullptr, 0, state::fresh});
        run_now.warps.resize((n + 31) / 32);
        for (warp &w : run_now.warps)
                w.arrived = w.generation = 0;
        run_now.pieces.clear();
        run_now.ready.clear();
#if CUDASIM_TSAN
        if (run_now.used) /* forgets who touched it */
                mmap(run_now.arena, shared_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                     0);
#endif
        odd = !odd;
        give(&block_begins[odd]); /* of what the host did; other blocks are not in it before the grid has ended */
        run_now.order_now = next_token();
        run_now.used = run_now.next_fresh = 0;
        run_now.size = size;
        run_now.at = place{{0, 0, 0}, block, size, grid};
        here = &run_now.at;
        close_memory(run_now.arena, shared_bytes);
        if (n != run_now.order.size() || shuffling() != run_now.ordered_as || shuffling() == 2)
                put_in_order(run_now.order, n);
        run_now.ordered_as = shuffling();
        static std::vector<unsigned> &turn = *new std::vector<unsigned>;
        turn.reserve(1024); /* no thread makes a list grow: its memory is the host's */
        run_now.ready.reserve(1024);
        run_now.pieces.reserve(64);
        do {
                while (run_now.next_fresh < n)
                        go(next_fibre());
                while (!run_now.ready.empty()) {
                        turn.swap(run_now.ready);
                        run_now.ready.clear();
                        for (unsigned t : turn)
                                go(run_now.threads[t].on);
                }
        } while (run_now.next_fresh < n || open_barrier());
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t dynamic, const std::function<void()> &body)
{
#ifdef LG_FIBRE_ASAN
        scheduler.bottom = nullptr; /* another thread of the host may run this one */
#endif
        if (!run_now.arena)
                run_now.arena =
                        (char *)mmap(nullptr, shared_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#if CUDASIM_TSAN
        host = __tsan_get_current_fiber();
#endif
        run_now.body = &body;
        run_now.name = name;
        run_now.dynamic = dynamic;
        size_t blocks = (size_t)grid.x * grid.y * grid.z;
        std::vector<unsigned> order;
        put_in_order(order, blocks);
        for (size_t k = 0; k < blocks; k++) {
                size_t i = order[k];
                uint3 b = {(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y), (unsigned)(i / grid.x / grid.y)};
                run_block(b, grid, block);
        }
        get(&grid_ends);
}
} // namespace cudasim
