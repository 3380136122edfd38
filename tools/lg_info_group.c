/* lg_info_group.c - lg-info --group: lists the processes of a group and times lg_all_reduce_() by size. */
#include <stdlib.h>
#include <string.h>
#include "lg_info.h"

enum { NAME = 32, SIZES = 9, ROUNDS = 25 };
#define SECONDS 5.0 /* seconds after which no further round begins */

/* ---- the processes ---- */

static void print_ranks(lg_ctx *c, lg_group *g)
{
        const int size = lg_group_size(g);
        unsigned char mine[NAME] = "";
        memcpy(mine, lg_device_name(lg_group_device(g)), strnlen(lg_device_name(lg_group_device(g)), NAME - 1));
        lg_tensor *all = lg_all_gather(lg_from(c, mine, LG_SHAPE(1, NAME), .device = lg_cpu()), g);
        unsigned char *names = malloc((size_t)size * NAME);
        if (!names)
                lg_set_error(c, LG_ERR_MEMORY, "no memory for %d names", size);
        if (names && lg_read(all, names, LG_U8, (size_t)size * NAME) && lg_group_rank(g) == 0) {
                printf("%-5s  %-9s  %s\n", "rank", "device", "host");
                for (int r = 0; r < size; r++)
                        printf("%-5d  %-9s  %s\n", r, (const char *)names + (size_t)r * NAME, lg_group_host(g, r));
        }
        free(names);
}

/* ---- measuring ---- */

/* Returns the seconds per call of the slowest rank, the same number on all ranks. Small tensors need several calls. */
static double seconds(lg_ctx *c, lg_group *g, lg_tensor *x, int calls)
{
        lg_barrier(g);
        const double start = now();
        for (int i = 0; i < calls; i++)
                lg_all_reduce_(x, g, LG_REDUCE_OP_SUM);
        lg_synchronize(c);
        lg_scope s = lg_scope_begin(c);
        lg_tensor *took = lg_full(c, LG_SHAPE_0D, (now() - start) / calls, .dtype = LG_F64, .device = lg_cpu());
        lg_all_reduce_(took, g, LG_REDUCE_OP_MAX);
        const double value = lg_item(took);
        lg_scope_end(c, s);
        return value;
}

static int compare(const void *a, const void *b)
{
        const double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

static void print_line(int64_t bytes, double *took, int rounds)
{
        qsort(took, (size_t)rounds, sizeof *took, compare);
        const double median = took[rounds / 2];
        printf("%6lld %s  %11.1f us  %8.3f GB/s\n", (long long)(bytes < 1 << 20 ? bytes >> 10 : bytes >> 20),
               bytes < 1 << 20 ? "KiB" : "MiB", median * 1e6, (double)bytes / median * 1e-9);
}

/* Measures the sizes by turns, so that other load on the machines affects all of them. All ranks know the same times
 * and therefore end together. If the network is slow, the largest sizes are left out. */
static void measure(lg_ctx *c, lg_group *g)
{
        double took[SIZES][ROUNDS], total = 0;
        lg_tensor *x[SIZES];
        int rounds = 0, sizes = SIZES;
        for (int i = 0; i < SIZES; i++)
                x[i] = lg_zeros(c, LG_SHAPE((int64_t)256 << 2 * i), .device = lg_group_device(g));
        for (int i = 0; i < 3; i++) /* the first calls allocate memory and open connections */
                seconds(c, g, x[i], 1);
        for (; rounds < ROUNDS && (!rounds || total < SECONDS) && !lg_error(c); rounds++)
                for (int i = 0; i < sizes; i++) {
                        const int calls = i < 4 ? 20 : i < 6 ? 4 : 1;
                        took[i][rounds] = seconds(c, g, x[i], calls);
                        total += took[i][rounds] * calls;
                        if (rounds == 0 && total + 4 * took[i][rounds] > SECONDS / 2)
                                sizes = i + 1;
                }
        if (lg_error(c) || lg_group_rank(g) != 0)
                return;
        printf("\nlg_all_reduce_ of f32 tensors, median of %d; bytes of the tensor per second\n", rounds);
        for (int i = 0; i < sizes; i++)
                print_line((int64_t)1024 << 2 * i, took[i], rounds);
}

void print_group(lg_ctx *c)
{
        lg_set_default_device(c, lg_try_cuda(c, 0)); /* the group then gives each rank a GPU, if there are any */
        lg_group *g = lg_group_open(c, .timeout = 60);
        const int rank = lg_group_rank(g), size = lg_group_size(g);
        if (g && size == 1 && !strcmp(lg_group_transport(g), "none"))
                printf("libgrad %s\n1 process: no launcher has started it, so that it is a group of one.\n"
                       "mpirun -n 4 lg-info --group starts four processes.\n",
                       lg_version());
        else if (g) {
                if (rank == 0)
                        printf("libgrad %s\n%d processes, by %s\n", lg_version(), size, lg_group_transport(g));
                print_ranks(c, g);
                measure(c, g);
                lg_barrier(g);
        }
        if (lg_error(c) && size > 1)
                fprintf(stderr, "lg-info: rank %d: %s\n", rank, lg_error(c));
        else if (lg_error(c))
                fprintf(stderr, "lg-info: %s\n", lg_error(c));
}
