/* lg_info.c - lg-info: prints the devices that libgrad finds on this machine, or with --bench their speeds.
 *
 * lg-info [--bench | --group]
 */
#include <string.h>
#include "lg_info.h"
#include "round_trip.h"

/* Discards a result that a benchmark does not need. */
static void drop(const void *result)
{
        (void)result;
}

static void print_bytes(int64_t bytes)
{
        if (bytes < 0)
                printf("  %9s", "?");
        else
                printf("  %5.1f GiB", (double)bytes / (double)(1 << 30));
}

static void print_device(lg_ctx *c, lg_device d)
{
        lg_device_info_t i;
        if (!lg_device_info(c, d, &i))
                return;
        printf("%-9s  %-36.36s", lg_device_name(d), i.name);
        print_bytes(i.total_bytes);
        print_bytes(i.total_bytes < 0 || i.free_bytes < 0 ? -1 : i.total_bytes - i.free_bytes);
        print_bytes(i.free_bytes);
        printf("  %5d", i.processors);
        if (i.major)
                printf("  %d.%d", i.major, i.minor);
        putchar('\n');
}

/* Prints versions of libraries, which are the same for all GPUs of a process. */
static void print_cuda(lg_ctx *c, lg_device d)
{
        lg_device_info_t i;
        if (lg_device_info(c, d, &i))
                printf("CUDA: driver for up to %s, runtime %s, cuBLAS: %s, cuDNN: %s, NCCL: %s\n", i.driver, i.runtime,
                       i.blas, i.dnn, i.nccl);
}

/* ---- measuring ---- */

typedef struct bench {
        lg_ctx *c;
        lg_device device;
        lg_tensor *a, *b;
} bench;

/* Returns the seconds per call: the best of three repeats, each of as many calls as take 0.1 s, and one wait. */
static double seconds(bench *b, void (*run)(bench *b))
{
        double best = -1;
        int calls = 1;
        for (int repeat = 0; repeat < 3 && !lg_error(b->c);) {
                lg_synchronize(b->c);
                double start = now();
                for (int i = 0; i < calls; i++) {
                        lg_scope s = lg_scope_begin(b->c);
                        run(b);
                        lg_scope_end(b->c, s);
                }
                lg_synchronize(b->c);
                double took = now() - start;
                if (took < 0.1 && calls < 1 << 20) {
                        calls *= took < 0.01 ? 8 : 2;
                        continue;
                }
                best = best < 0 || took / calls < best ? took / calls : best;
                repeat++;
        }
        return best;
}

static void copy_there(bench *b)
{
        drop(lg_copy(b->b, b->device));
}
static void copy_back(bench *b)
{
        drop(lg_copy(b->a, lg_cpu()));
}
static void multiply(bench *b)
{
        drop(lg_matmul(b->a, b->b));
}

#define MIB ((int64_t)1 << 20)

static void print_speed(double per_second, double unit, const char *name)
{
        if (per_second > 0)
                printf("  %8.2f %s", per_second / unit, name);
        else
                printf("  %13s", "-");
}

/* Returns the operations per second of square products, whose size grows until one takes 2 ms. */
static double product_speed(bench *b, lg_dtype dtype)
{
        double took = 0, n = 64;
        do {
                n *= 2;
                b->a = lg_ones(b->c, LG_SHAPE((int64_t)n, (int64_t)n), .dtype = dtype, .device = b->device);
                b->b = lg_ones(b->c, LG_SHAPE((int64_t)n, (int64_t)n), .dtype = dtype, .device = b->device);
                multiply(b); /* the first product may search for an algorithm */
                lg_synchronize(b->c);
                double start = now();
                multiply(b);
                lg_synchronize(b->c);
                took = now() - start;
        } while (took < 2e-3 && n < 8192 && !lg_error(b->c));
        return 2 * n * n * n / seconds(b, multiply);
}

/* Prints the speeds of a device. Copies count the bytes moved; within the device, reads plus writes. */
static void measure(lg_ctx *c, lg_device d)
{
        bool cpu = d.type == LG_DEVICE_CPU;
        int64_t mib = cpu ? 64 : 256;
        bench b = {.c = c, .device = d};
        printf("%-9s", lg_device_name(d));
        lg_tensor *host = lg_zeros(c, LG_SHAPE(64 * MIB / 4), .dtype = LG_F32, .device = lg_cpu());
        b.b = host;
        print_speed(cpu ? 0 : 64.0 * MIB / seconds(&b, copy_there), 1e9, "GB/s ");
        b.b = lg_pin(host, d);
        print_speed(cpu ? 0 : 64.0 * MIB / seconds(&b, copy_there), 1e9, "GB/s ");
        b.a = lg_zeros(c, LG_SHAPE(64 * MIB / 4), .dtype = LG_F32, .device = d);
        print_speed(cpu ? 0 : 64.0 * MIB / seconds(&b, copy_back), 1e9, "GB/s ");
        b.b = lg_zeros(c, LG_SHAPE(mib * MIB / 4), .dtype = LG_F32, .device = d);
        print_speed(2.0 * (double)mib * MIB / seconds(&b, copy_there), 1e9, "GB/s ");
        const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_BF16};
        for (int i = 0; i < 3; i++)
                print_speed(cpu && dtypes[i] == LG_BF16 ? 0 : product_speed(&b, dtypes[i]), 1e12, "TF/s ");
        putchar('\n');
}

static void measure_all(lg_ctx *c, const lg_device *all, int count)
{
        printf("\n%-9s  %-14s  %-13s  %-13s  %-13s  %-13s  %-13s  %s\n", "", "to it", "to it, pinned", "from it",
               "within", "product f64", "product f32", "product bf16");
        for (int i = 0; i < count && !lg_error(c); i++) {
                lg_scope s = lg_scope_begin(c);
                measure(c, all[i]);
                lg_scope_end(c, s);
                lg_empty_cache(c);
        }
}

/* Flushes the output and returns the exit status: 0, or 1 if not everything was written. */
static int finish(void)
{
        if (!fflush(stdout) && !ferror(stdout))
                return 0;
        fputs("lg-info: the standard output cannot be written\n", stderr);
        return 1;
}

static void print_devices(lg_ctx *c, bool bench)
{
        lg_device all[17];
        all[0] = lg_cpu();
        int count = 1 + lg_try_all_cuda(c, 16, all + 1);
        if (all[1].type == LG_DEVICE_CPU)
                count = 1;
        printf("libgrad %s\n%-9s  %-36s  %9s  %9s  %9s  %5s  %s\n", lg_version(), "device", "name", "memory", "used",
               "free", "cores", "capability");
        for (int i = 0; i < count; i++)
                print_device(c, all[i]);
        if (count > 1)
                print_cuda(c, all[1]);
        else {
                lg_parse_device(c, "cuda");
                printf("no CUDA: %s\n", lg_error(c));
                lg_clear_error(c);
        }
        if (bench) {
                measure_all(c, all, count);
                putchar('\n');
                print_round_trips();
        }
        if (lg_error(c))
                fprintf(stderr, "lg-info: %s\n", lg_error(c));
}

int main(int argc, char **argv)
{
        const char *option = argc == 2 ? argv[1] : "";
        const bool bench = !strcmp(option, "--bench"), group = !strcmp(option, "--group");
        if (argc > 1 && !bench && !group) {
                bool help = !strcmp(option, "--help");
                fprintf(help ? stdout : stderr, "usage: lg-info [--bench | --group]\n");
                return help ? finish() : 2;
        }
        lg_ctx *c = lg_open();
        if (!c) {
                fprintf(stderr, "lg-info: no memory for a context\n");
                return 1;
        }
        if (group)
                print_group(c);
        else
                print_devices(c, bench);
        int status = finish() || lg_error(c);
        lg_close(c);
        return status;
}
