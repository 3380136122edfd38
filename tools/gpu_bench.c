/* gpu_bench.c - times kernels, small ops and training steps on a device; each figure is a line of JSON.
 *
 * gpu_bench [--device NAME] [--small] [--tf32] [--seconds S] [--batch N] PART...; a part is "device" (only whether it
 * is there), "kernels", "ops" or a model's name. --small: sizes for a simulation. Figures are microseconds of a call,
 * bytes and operations of a call. Exit status 1 if something failed, told in a line of its own.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../models/models.h"
#include "gpu_bench.h"

enum { REPEATS = 7, MOST_CALLS = 5000, CHAIN = 100 };
#define WARM_UP 0.03 /* seconds, so that clocks are up and caches of the device's libraries are filled */
#define REPEAT 0.02  /* seconds that a repeat shall take */

double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of `calls` calls and a wait. */
static double spend(work *w, void (*run)(work *w), int64_t calls)
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
        double seconds[REPEATS], once = spend(w, run, 1), warm = now() + WARM_UP;
        int repeats = 0;
        while (!b->small && now() < warm && !lg_error(w->c))
                once = spend(w, run, 2) / 2;
        double calls = REPEAT / (once > 1e-7 ? once : 1e-7);
        int64_t n = calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int64_t)calls;
        do
                seconds[repeats++] = spend(w, run, n) / (double)n;
        while (repeats < (b->small ? 3 : REPEATS) && now() < b->end);
        qsort(seconds, (size_t)repeats, sizeof *seconds, compare);
        return lg_error(w->c) ? -1 : seconds[repeats / 2] * 1e6;
}

/* Text as it may stand between the quotes of JSON. */
static void print_text(const char *text)
{
        for (; *text; text++)
                putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text);
}

/* Ends the line that tells of one figure, with the error instead if there is one, which is then forgotten. */
static bool end_line(lg_ctx *c, double us)
{
        bool good = !lg_error(c);
        if (good)
                printf(", \"us\": %.3f}\n", us);
        else {
                printf(", \"failed\": \"");
                print_text(lg_error(c));
                printf("\"}\n");
                lg_clear_error(c);
        }
        fflush(stdout);
        return good;
}

static void print_size(const int64_t *size)
{
        for (int i = 0; i < 4 && size[i]; i++)
                printf("%s%lld", i ? " x " : "", (long long)size[i]);
}

static bool measure_row(bench *b, const row *r)
{
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .dtype = r->dtype};
        memcpy(w.size, b->small ? r->small : r->size, sizeof w.size);
        r->make(&w);
        double us = time_calls(b, &w, r->run);
        printf("{\"part\": \"kernels\", \"name\": \"%s\", \"dtype\": \"%s\", \"size\": \"", r->name,
               b->tf32 ? "tf32" : lg_dtype_name(r->dtype));
        print_size(w.size);
        printf("\", \"bytes\": %.0f, \"flops\": %.0f", w.bytes, w.flops);
        bool good = end_line(b->c, us);
        lg_optimizer_free(w.opt);
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
        return good;
}

/* In small sizes some rows are the same. */
static bool seen(const bench *b, int i)
{
        const row *r = &kernel_rows[i];
        for (const row *a = kernel_rows; b->small && a < r; a++)
                if (a->dtype == r->dtype && !strcmp(a->name, r->name) && !memcmp(a->small, r->small, sizeof a->small))
                        return true;
        return false;
}

static bool measure_kernels(bench *b)
{
        bool good = true;
        int left_out = 0;
        for (int i = 0; i < kernel_row_count; i++) {
                if ((b->tf32 && !kernel_rows[i].float32_product) || seen(b, i))
                        continue;
                if (now() >= b->end)
                        left_out++;
                else
                        good &= measure_row(b, &kernel_rows[i]);
        }
        if (left_out)
                printf("{\"part\": \"kernels\", \"left_out\": %d}\n", left_out);
        return good;
}

/* ---- small ops ---- */

static void add_once(work *w)
{
        lg_add(w->x, w->y);
}

static void add_chain(work *w)
{
        lg_tensor *x = w->x;
        for (int i = 0; i < CHAIN; i++)
                x = lg_add(x, w->y);
}

/* Forward and backward of a chain, as training has them. */
static void chain_backward(work *w)
{
        lg_tensor *x = w->x;
        for (int i = 0; i < CHAIN; i++)
                x = lg_mul(x, w->z);
        lg_grad(LG_LIST(x), LG_LIST(w->z), .grads = LG_LIST(w->y));
}

static bool measure_ops(bench *b)
{
        static const struct {
                const char *name;
                void (*run)(work *w);
                double ops;
        } rows[] = {{"add of 32 elements", add_once, 1},
                    {"chain of 100 adds of 32 elements", add_chain, CHAIN},
                    {"chain of 100 products, forward and backward", chain_backward, CHAIN}};
        bool good = true;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                lg_scope scope = lg_scope_begin(b->c);
                work w = {.c = b->c, .device = b->device};
                w.x = lg_uniform(b->c, 0, 1, LG_SHAPE(32), .device = b->device);
                w.y = lg_uniform(b->c, 0, 1, LG_SHAPE(32), .device = b->device);
                w.z = lg_uniform(b->c, 0.9, 1, LG_SHAPE(32), .device = b->device, .requires_grad = true);
                double us = time_calls(b, &w, rows[i].run) / rows[i].ops;
                printf("{\"part\": \"ops\", \"name\": \"%s\"", rows[i].name);
                good &= end_line(b->c, us);
                lg_scope_end(b->c, scope);
        }
        return good;
}

/* ---- training ---- */

static void train_step(work *w)
{
        lg_tensor *loss = lg_cross_entropy(lg_forward(w->net, w->x), w->y);
        lg_zero_grad(w->opt);
        lg_backward(loss);
        lg_step(w->opt);
}

static bool measure_model(bench *b, const char *name, int64_t batch)
{
        lg_scope scope = lg_scope_begin(b->c);
        work w = {.c = b->c, .device = b->device, .net = lg_model(b->c, name)};
        lg_module_to(w.net, b->device);
        w.opt = lg_adam(b->c, lg_parameters(w.net), 1e-3);
        w.x = lg_uniform(b->c, 0, 1, LG_SHAPE(batch, 1, 28, 28), .device = b->device);
        w.y = lg_zeros(b->c, LG_SHAPE(batch), .dtype = LG_I64, .device = b->device);
        lg_reset_peak_memory(b->c, b->device);
        double us = time_calls(b, &w, train_step);
        printf("{\"part\": \"steps\", \"name\": \"%s\", \"batch\": %lld, \"tf32\": %s, \"peak\": %lld", name,
               (long long)batch, b->tf32 ? "true" : "false", (long long)lg_memory_stats(b->c, b->device).peak);
        bool good = end_line(b->c, us);
        lg_optimizer_free(w.opt);
        lg_module_free(w.net);
        lg_scope_end(b->c, scope);
        lg_empty_cache(b->c);
        return good;
}

static bool measure_part(bench *b, const char *part, int64_t batch)
{
        if (!strcmp(part, "device"))
                return true;
        if (!strcmp(part, "kernels"))
                return measure_kernels(b);
        if (!strcmp(part, "ops"))
                return measure_ops(b);
        return measure_model(b, part, batch);
}

static bool measure_all(bench *b, const char *device, char **parts, int count, int64_t batch)
{
        bool good = true;
        b->device = lg_parse_device(b->c, device);
        if (lg_error(b->c)) {
                fprintf(stderr, "gpu_bench: %s\n", lg_error(b->c));
                return false;
        }
        for (int i = 0; i < count; i++)
                good &= measure_part(b, parts[i], batch);
        return good;
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
        /* NVIDIA's libraries read this once, when they begin; it overrules what a program asks of them. */
        if (!b.tf32)
                setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
        b.c = lg_open();
        lg_allow_tf32(b.c, b.tf32);
        b.end = now() + seconds;
        bool good = b.c && measure_all(&b, device, argv + optind, argc - optind, batch);
        lg_close(b.c);
        return !good;
}
