/* thread_model.c - thread-model: what training steps would gain from more cores than this machine has.
 *
 * thread-model [WORKLOAD]...
 *
 * Each step is cut as for T threads, but runs on one, range by range. The model of a loop on T cores is the greater of
 * (time of all ranges) / T and its longest range, plus the hand-over; or the time on one core if that is less. Code
 * outside of loops takes as long as here. The hand-over of a loop is trip * (1.5 + (T - 1) / 2), trip being the round
 * trip of a word: the loop's word goes to all workers, which fetch the loop, and each then changes one counter in its
 * turn. Not in the model: caches and memory that cores share, and clocks that fall when more of them work. */
#include <bench.h>
#include <parallel.h>
#include <stdio.h>
#include <string.h>

enum { WARM_UP = 2, STEPS = 5, TRIPS = 2 };
static const double trips[TRIPS] = {0.1e-6, 0.45e-6};
static const int counts[] = {2, 4, 8, 16, 32, 64};

static double in_loops, modelled[TRIPS]; /* seconds of loops, measured and as the model has them */
static int64_t loops;

/* Lets contexts have more threads than this machine has processors, by the linker's --wrap. */
int __wrap_lg__threads_for(int asked);
int __wrap_lg__threads_for(int asked)
{
        return asked;
}

static bool inner; /* a loop within a loop, which its thread runs alone */

void __wrap_lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job);
void __wrap_lg_parallel(lg_queue *q, int64_t n, int64_t grain, lg_range_fn *fn, const void *job)
{
        const bool shared = !inner && q->threads > 1 && n / 2 >= grain;
        double sum = 0, longest = 0, before = shared ? bench_now() : 0;
        inner |= shared;
        for (int64_t first = 0, i = 0; first < n; first += grain, i++) {
                fn(job, first, n - first > grain ? first + grain : n, 0);
                if (!shared)
                        continue;
                const double after = bench_now(), took = after - before;
                sum += took;
                longest = took > longest ? took : longest;
                before = after;
        }
        inner &= !shared;
        in_loops += sum;
        loops += shared;
        for (int i = 0; i < TRIPS && shared; i++) {
                const double even = sum / q->threads > longest ? sum / q->threads : longest;
                const double together = even + trips[i] * (1.5 + 0.5 * (q->threads - 1));
                modelled[i] += together < sum ? together : sum;
        }
}

static void run_step(work *w, const item *it)
{
        lg_scope scope = lg_scope_begin(w->c);
        it->run(w);
        lg_scope_end(w->c, scope);
}

/* Prints the shared loops of a step and the gains with this number of threads. Returns false after an error. */
static bool print_gains(const item *it, int threads)
{
        work w = {.c = lg_open(.threads = threads, .seed = 1), .amp = LG_F32};
        double best = 0, gain[TRIPS] = {0};
        it->make(&w);
        for (int i = 0; i < WARM_UP + STEPS && !lg_error(w.c); i++) {
                in_loops = 0;
                loops = 0;
                memset(modelled, 0, sizeof modelled);
                const double start = bench_now();
                run_step(&w, it);
                const double took = bench_now() - start;
                if (i < WARM_UP || (best > 0 && took > best))
                        continue;
                best = took;
                for (int k = 0; k < TRIPS; k++)
                        gain[k] = took / (took - in_loops + modelled[k]);
        }
        printf("%-10s %7d %7lld %9.1f %9.1f\n", it->name, threads, (long long)loops, gain[0], gain[1]);
        const char *error = lg_error(w.c);
        if (error)
                fprintf(stderr, "thread-model: %s\n", error);
        lg_close(w.c);
        return !error;
}

int main(int argc, char **argv)
{
        bool good = true;
        printf("%-10s %7s %7s %9s %9s\n", "workload", "threads", "loops", "0.10 us", "0.45 us");
        for (int i = 0; i < workload_count; i++) {
                bool chosen = argc == 1;
                for (int k = 1; k < argc; k++)
                        chosen |= strcmp(argv[k], workloads[i].name) == 0;
                for (size_t t = 0; chosen && t < sizeof counts / sizeof *counts; t++)
                        good &= print_gains(&workloads[i], counts[t]);
        }
        return good ? 0 : 1;
}
