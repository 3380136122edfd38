/* gpu_bench.c - times kernels, small ops, transfers and training steps on a device; compares results with f64 on the
 * CPU.
 *
 * gpu_bench [--device NAME] [--small] [--tf32] [--seconds S] [--batch N] PART...; a part is "device" (as the only part:
 * checks that the device works), "kernels", "ops", "transfers", "errors" or a model's name. --small: sizes for a
 * simulation; --tf32: f32 products and convolutions may use TF32, and only these are measured by kernels and errors.
 * Each figure is a line of JSON: microseconds, bytes and operations per call. The first line lists the parts, the last
 * one counts figures, failures and figures left out when the seconds were over. Exit status 1: a figure failed, as its
 * line says; 2: wrong options; 3: figures were left out.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../models/models.h"
#include "gpu_bench.h"

enum { REPEATS = 7, MOST_CALLS = 5000, CHAIN = 100 };
#define WARM_UP 0.03 /* seconds in which clocks rise and the device's libraries fill their caches */
#define REPEAT 0.02  /* seconds that a repeat should take */
#define LONGEST 1.0  /* seconds after which no further repeat begins */
/* The same for parts with many rows (bench.quick). */
enum { QUICK_REPEATS = 5 };
#define QUICK_WARM_UP 0.015
#define QUICK_REPEAT 0.01

double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the seconds that `calls` calls and a wait for the device take. */
static double seconds_of(work *w, void (*run)(work *w), int64_t calls)
{
        double start = now();
        for (int64_t i = 0; i < calls && !lg_error(w->c); i++) {
                lg_scope scope = lg_scope_begin(w->c);
                run(w);
                lg_scope_end(w->c, scope);
        }
        lg_synchronize(w->c);
        return now() - start;
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

double time_calls(bench *b, work *w, void (*run)(work *w))
{
        const int most = b->small ? 1 : b->quick ? QUICK_REPEATS : REPEATS;
        double seconds[REPEATS], start = now(), once = seconds_of(w, run, 1);
        double warm = now() + (b->small ? 0 : b->quick ? QUICK_WARM_UP : WARM_UP);
        while (now() < warm && !lg_error(w->c))
                once = seconds_of(w, run, 2) / 2;
        double calls = (b->small ? 0 : b->quick ? QUICK_REPEAT : REPEAT) / (once > 1e-7 ? once : 1e-7);
        int64_t n = calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int64_t)calls;
        int repeats = 0;
        do
                seconds[repeats++] = seconds_of(w, run, n) / (double)n;
        while (repeats < most && now() < b->end && now() < start + LONGEST);
        qsort(seconds, (size_t)repeats, sizeof *seconds, compare);
        return lg_error(w->c) ? -1 : seconds[repeats / 2] * 1e6;
}

/* ---- figures ---- */

/* Prints text inside a JSON string; quotes, backslashes and control characters are replaced by '. */
static void print_text(const char *text)
{
        for (; *text; text++)
                putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text);
}

void end_failed(bench *b, const char *why)
{
        printf(", \"failed\": \"");
        print_text(why);
        printf("\"}\n");
        fflush(stdout);
        b->figures++;
        b->failed++;
}

void end_figure(bench *b, const char *key, double value)
{
        if (lg_error(b->c)) {
                end_failed(b, lg_error(b->c));
                lg_clear_error(b->c);
                return;
        }
        printf(", \"%s\": %.6g}\n", key, value);
        fflush(stdout);
        b->figures++;
}

bool time_is_over(bench *b)
{
        if (now() < b->end)
                return false;
        b->left_out++;
        return true;
}

/* ---- small ops ---- */

static void add_once(work *w)
{
        drop(lg_add(w->x, w->y));
}

static void add_chain(work *w)
{
        lg_tensor *x = w->x;
        for (int i = 0; i < CHAIN; i++)
                x = lg_add(x, w->y);
}

/* Computes a chain of products and its gradient, as in training. */
static void chain_backward(work *w)
{
        lg_tensor *x = w->x;
        for (int i = 0; i < CHAIN; i++)
                x = lg_mul(x, w->z);
        lg_grad(LG_LIST(x), LG_LIST(w->z), .grads = LG_LIST(w->y));
}

static void measure_ops(bench *b)
{
        static const struct {
                const char *name;
                void (*run)(work *w);
                double ops;
        } table[] = {{"add of 32 elements", add_once, 1},
                     {"chain of 100 adds of 32 elements", add_chain, CHAIN},
                     {"chain of 100 products, forward and backward", chain_backward, CHAIN}};
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                if (time_is_over(b))
                        continue;
                lg_scope scope = lg_scope_begin(b->c);
                work w = {.c = b->c, .device = b->device};
                w.x = lg_uniform(b->c, 0, 1, LG_SHAPE(32), .device = b->device);
                w.y = lg_uniform(b->c, 0, 1, LG_SHAPE(32), .device = b->device);
                w.z = lg_uniform(b->c, 0.9, 1, LG_SHAPE(32), .device = b->device, .requires_grad = true);
                double us = time_calls(b, &w, table[i].run) / table[i].ops;
                printf("{\"part\": \"ops\", \"name\": \"%s\"", table[i].name);
                end_figure(b, "us", us);
                lg_scope_end(b->c, scope);
        }
}

/* ---- training ---- */

static void train_step(work *w)
{
        lg_tensor *loss = lg_cross_entropy(lg_forward(w->net, w->x), w->y);
        lg_zero_grad(w->opt);
        lg_backward(loss);
        lg_step(w->opt);
}

/* Returns the launches of one training step, or a negative number if they are unknown. The step must be warmed up. */
static int64_t launches_of_step(work *w)
{
        int64_t before = count_launches();
        lg_scope scope = lg_scope_begin(w->c);
        train_step(w);
        lg_scope_end(w->c, scope);
        return before < 0 ? before : count_launches() - before;
}

static void measure_model(bench *b, const char *name, int64_t batch)
{
        if (time_is_over(b))
                return;
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .net = lg_model(b->c, name)};
        lg_module_to(w.net, b->device);
        w.opt = lg_adam(b->c, lg_parameters(w.net), 1e-3);
        w.x = lg_uniform(b->c, 0, 1, LG_SHAPE(batch, 1, 28, 28), .device = b->device);
        w.y = lg_zeros(b->c, LG_SHAPE(batch), .dtype = LG_I64, .device = b->device);
        lg_reset_peak_memory(b->c, b->device);
        double us = time_calls(b, &w, train_step);
        int64_t launches = launches_of_step(&w);
        printf("{\"part\": \"steps\", \"name\": \"%s\", \"batch\": %lld, \"tf32\": %s, \"peak\": %lld", name,
               (long long)batch, b->tf32 ? "true" : "false", (long long)lg_memory_stats(b->c, b->device).peak);
        if (launches >= 0)
                printf(", \"launches\": %lld", (long long)launches);
        end_figure(b, "us", us);
        lg_optimizer_free(w.opt);
        lg_module_free(w.net);
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
}

static void measure_part(bench *b, const char *part, int64_t batch)
{
        if (!strcmp(part, "kernels"))
                measure_kernels(b);
        else if (!strcmp(part, "ops"))
                measure_ops(b);
        else if (!strcmp(part, "transfers"))
                measure_transfers(b);
        else if (!strcmp(part, "errors"))
                measure_errors(b);
        else
                measure_model(b, part, batch);
}

/* Measures all parts and returns the exit status. The first and last lines allow a reader to check that nothing is
 * missing. */
static int measure_all(bench *b, const char *device, char **parts, int count, int64_t batch)
{
        b->device = lg_parse_device(b->c, device);
        if (lg_error(b->c)) {
                fprintf(stderr, "gpu_bench: %s\n", lg_error(b->c));
                return 1;
        }
        if (count == 1 && !strcmp(parts[0], "device"))
                return 0;
        printf("{\"part\": \"begin\", \"tf32\": %s, \"parts\": [", b->tf32 ? "true" : "false");
        for (int i = 0; i < count; i++) {
                printf("%s\"", i ? ", " : "");
                print_text(parts[i]);
                putchar('"');
        }
        printf("]}\n");
        fflush(stdout);
        for (int i = 0; i < count; i++)
                measure_part(b, parts[i], batch);
        printf("{\"part\": \"end\", \"figures\": %d, \"failed_figures\": %d, \"left_out\": %d}\n", b->figures,
               b->failed, b->left_out);
        return b->failed ? 1 : b->left_out ? 3 : 0;
}

int main(int argc, char **argv)
{
        static const struct option names[] = {
                {"device", required_argument, NULL, 'd'}, {"small", no_argument, NULL, 's'},
                {"tf32", no_argument, NULL, 't'},         {"seconds", required_argument, NULL, 'e'},
                {"batch", required_argument, NULL, 'b'},  {NULL, 0, NULL, 0}};
        const char *device = "cuda:0";
        double seconds = 60;
        int64_t batch = 64;
        bench b = {0};
        for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                switch (option) {
                case 'd':
                        device = optarg;
                        break;
                case 's':
                        b.small = true;
                        break;
                case 't':
                        b.tf32 = true;
                        break;
                case 'e':
                        seconds = atof(optarg);
                        break;
                case 'b':
                        batch = atoll(optarg);
                        break;
                default:
                        return 2;
                }
        }
        /* NVIDIA's libraries read this variable once, when they start; it overrides what a program requests. */
        if (!b.tf32)
                setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
        b.c = lg_open();
        lg_set_allow_tf32(b.c, b.tf32);
        lg_set_conv_allow_tf32(b.c, b.tf32);
        b.end = now() + seconds;
        int status = b.c ? measure_all(&b, device, argv + optind, argc - optind, batch) : 1;
        lg_close(b.c);
        return status;
}
