/* hidden.c - how much of the communication of data-parallel training hides behind the backward:
 * hidden cnn|resnet18 BATCH ROUNDS SHARE LEAST, run by mpirun with LIBGRAD_MPI naming slow.c's module, whose
 * rate it sets so that communication takes SHARE of a backward, and its latency 50 us unless LIBGRAD_SLOW_LATENCY says
 * otherwise.
 *
 *     hidden = 1 - (step with the network - step without it) / communication alone
 *
 * Alone are the same buckets without computing. Each round measures all of them, and rank 0 prints the best and the
 * median of each. Ends with "held" if LEAST is hidden by either, after ROUNDS rounds or three times as many.
 *
 * hidden waiter measures nothing: between its two gradients its backward waits for the exchange of the first, which
 * ends only if it goes on meanwhile.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "grad.h"
#include "group/queue.h"
#include "models.h"
#include "nn/parallel.h"

enum { MOST_ROUNDS = 300, WARM = 3 };

/* A network in training; without delays, or with. */
typedef struct side {
        lg_ctx *c;
        lg_group *g;
        lg_module *net;
        lg_optimizer *opt;
        lg_tensor *x, *y;
} side;

/* Seconds of each round. */
typedef struct times {
        double round[MOST_ROUNDS];
} times;
enum { STEP, STEP_SLOW, ALONE, ALONE_SLOW, BACKWARD, KINDS };
static const char *const names[KINDS] = {"step without the network", "step with the network",
                                         "communication without the network", "communication alone", "backward"};

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* ---- networks ---- */

static bool same(lg_custom_call *k)
{
        k->out[0] = k->in[0];
        return true;
}

static side waiting;
static int exchanges; /* that were waited for */

static bool wait_backward(lg_custom_call *k)
{
        const lg__parallel *p = (const lg__parallel *)waiting.net->parallel;
        k->grad_in[0] = k->grad_out[0];
        exchanges += p->plan->bucket[0].begun;
        while (!lg__queue_is_idle(&waiting.g->world->queue))
                sched_yield();
        return true;
}

static lg_tensor *wait_forward(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return lg_custom(lg_module_ctx(m), "wait", in, .forward = same, .backward = wait_backward);
}

static lg_module *waiter(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 16, 1024), lg_nn_module(c, "Wait", .forward = wait_forward),
                                lg_nn_linear(c, 1024, 1024));
}

static side open_side(const char *model, int64_t batch)
{
        side s = {.c = lg_open(.threads = 1, .seed = 1)};
        s.g = lg_group_open(s.c, .timeout = 60);
        const bool large = strcmp(model, "resnet18") == 0, waits = strcmp(model, "waiter") == 0;
        s.net = large ? lg_model_resnet18(s.c, 3, 10) : waits ? waiter(s.c) : lg_model_cnn(s.c);
        s.opt = lg_sgd(s.c, lg_parameters(s.net), 1e-3, .momentum = 0.9);
        s.x = lg_normal(s.c, 0, 1,
                        large   ? LG_SHAPE(batch, 3, 32, 32)
                        : waits ? LG_SHAPE(batch, 16)
                                : LG_SHAPE(batch, 1, 28, 28));
        s.y = lg_randint(s.c, 0, 10, LG_SHAPE(batch));
        lg_data_parallel(s.net, s.g);
        return s;
}

/* ---- what is measured ---- */

static double step(side *s)
{
        lg_barrier(s->g);
        const double start = now();
        lg_scope scope = lg_scope_begin(s->c);
        lg_zero_grad(s->opt);
        lg_backward(lg_cross_entropy(lg_forward(s->net, s->x), s->y));
        lg_step(s->opt);
        lg_scope_end(s->c, scope);
        return now() - start;
}

/* Leaves the gradients to communicate(). */
static double backward(side *s)
{
        double took = 0;
        lg_zero_grad(s->opt);
        lg_scope scope = lg_scope_begin(s->c);
        lg_tensor *loss = lg_cross_entropy(lg_forward(s->net, s->x), s->y);
        lg_barrier(s->g);
        lg_no_sync(s->net)
        {
                const double start = now();
                lg_backward(loss);
                took = now() - start;
        }
        lg_scope_end(s->c, scope);
        return took;
}

static lg__parallel *parallel_of(const side *s)
{
        return (lg__parallel *)s->net->parallel;
}

static double communicate(side *s)
{
        lg__parallel *p = parallel_of(s);
        bool ok = lg_barrier(s->g);
        const double start = now();
        lg_scope scope = lg_scope_begin(s->c);
        for (int64_t i = 0; ok && i < p->plan->buckets; i++)
                ok = lg__bucket_begin(p, s->g, &p->plan->bucket[i]);
        for (int64_t i = 0; i < p->plan->buckets; i++)
                ok = lg__bucket_end(p, s->g, &p->plan->bucket[i], ok);
        lg_scope_end(s->c, scope);
        return now() - start;
}

/* What a rank sends: of two ranks each sends half of a bucket, and the sum of the other half. */
static double bytes_of(const side *s)
{
        const lg__plan *plan = parallel_of(s)->plan;
        double sum = 0;
        for (int64_t i = 0; i < plan->buckets; i++)
                sum += (double)plan->bucket[i].elements * (double)lg__dtype_bytes(plan->bucket[i].dtype);
        return sum;
}

static int compare(const void *a, const void *b)
{
        const double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Of the first n: the least, or the median. */
static double of(const times *t, int n, bool least)
{
        double sorted[MOST_ROUNDS];
        memcpy(sorted, t->round, (size_t)n * sizeof *sorted);
        qsort(sorted, (size_t)n, sizeof *sorted, compare);
        return sorted[least ? 0 : n / 2];
}

static double hidden(const times *t, int n, bool least)
{
        return 1 - (of(&t[STEP_SLOW], n, least) - of(&t[STEP], n, least)) / of(&t[ALONE_SLOW], n, least);
}

/* Rank 0's value, on all. */
static double agree(const side *s, double value)
{
        lg_scope scope = lg_scope_begin(s->c);
        value = lg_item(lg_broadcast(lg_full(s->c, LG_SHAPE_0D, value, .dtype = LG_F64), s->g, 0));
        lg_scope_end(s->c, scope);
        return value;
}

static void measure(side *fast, side *slow, times *t, int i)
{
        t[STEP].round[i] = step(fast);
        t[STEP_SLOW].round[i] = step(slow);
        t[BACKWARD].round[i] = backward(fast);
        t[ALONE].round[i] = communicate(fast);
        backward(slow);
        t[ALONE_SLOW].round[i] = communicate(slow);
}

/* Bytes per second at which the network takes that share of a backward. */
static double choose_rate(side *s, double share)
{
        times t;
        for (int i = 0; i < WARM; i++)
                step(s);
        for (int i = 0; i < WARM; i++)
                t.round[i] = backward(s);
        return bytes_of(s) / (agree(s, of(&t, WARM, true)) * share);
}

static void report(const char *model, const side *s, const times *t, int n, double rate)
{
        printf("%s, %.2f MB in %d buckets, %.3g MB/s, %d rounds: ms, best and median\n", model, bytes_of(s) * 1e-6,
               (int)parallel_of(s)->plan->buckets, rate * 1e-6, n);
        for (int k = 0; k < KINDS; k++)
                printf("%-34s %9.2f %9.2f\n", names[k], of(&t[k], n, true) * 1e3, of(&t[k], n, false) * 1e3);
        printf("%-34s %8.1f%% %8.1f%%\n", "hidden", 100 * hidden(t, n, true), 100 * hidden(t, n, false));
}

static int wait_for_exchanges(void)
{
        waiting = open_side("waiter", 8);
        for (int i = 0; i < WARM; i++)
                step(&waiting);
        if (lg_error(waiting.c))
                fprintf(stderr, "%s\n", lg_error(waiting.c));
        else if (exchanges >= WARM - 1) /* in the first step the order of gradients is not known */
                printf("held\n");
        lg_close(waiting.c);
        return 0;
}

int main(int count, char **words)
{
        if (count == 2 && strcmp(words[1], "waiter") == 0)
                return wait_for_exchanges();
        static times t[KINDS];
        char text[40];
        if (count != 6 || !strstr("cnn resnet18", words[1]))
                return 2;
        const int64_t batch = atoll(words[2]);
        const int rounds = atoi(words[3]) < MOST_ROUNDS / 3 ? atoi(words[3]) : MOST_ROUNDS / 3;
        const double least = atof(words[5]);
        const char *latency = getenv("LIBGRAD_SLOW_LATENCY");
        snprintf(text, sizeof text, "%.20s", latency ? latency : "50e-6");
        unsetenv("LIBGRAD_SLOW_LATENCY");
        unsetenv("LIBGRAD_SLOW_RATE");
        side fast = open_side(words[1], batch);
        const double rate = choose_rate(&fast, atof(words[4]));
        setenv("LIBGRAD_SLOW_LATENCY", text, true);
        snprintf(text, sizeof text, "%.17g", rate);
        setenv("LIBGRAD_SLOW_RATE", text, true);
        side slow = open_side(words[1], batch);
        for (int i = 0; i < WARM; i++)
                step(&slow);
        int n = 0;
        bool held = false;
        while (!held && n < 3 * rounds && !lg_error(fast.c) && !lg_error(slow.c)) {
                measure(&fast, &slow, t, n++);
                held = n % rounds == 0 && agree(&fast, hidden(t, n, true) >= least || hidden(t, n, false) >= least) > 0;
        }
        /* Nothing arrives before its time. */
        held = held && of(&t[ALONE_SLOW], n, true) >= bytes_of(&slow) / rate;
        if (lg_group_rank(fast.g) == 0)
                report(words[1], &slow, t, n, rate);
        if (lg_error(fast.c) || lg_error(slow.c))
                fprintf(stderr, "%s\n", lg_error(fast.c) ? lg_error(fast.c) : lg_error(slow.c));
        else if (held)
                printf("held\n");
        lg_close(slow.c);
        lg_close(fast.c);
        return 0;
}
