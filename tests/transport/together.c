/* together.c - operations of all processes of a group on memory: together MODULE CASE, run by mpirun.
 *
 * CASE is right, a mistake that one rank makes (see `mistakes`), failed, late or left. Prints "held" if all did, else
 * what did not. A process whose group is broken ends without MPI_Finalize, which launchers call an error.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "group/messages.h"
#include "../../kernels/half.h"

static lg_ctx *c;
static lg_transport *t;
static lg__comm *p;
static int failures, rank, size;

static const char *why(void)
{
        return p && p->broken ? p->why : NULL;
}

static bool run(const lg__collective *what, const void *in, void *out)
{
        return lg__comm_agree(p, what) && lg__comm_exchange(p, in, out);
}

#define CHECK(holds)                                                                                                   \
        ((holds) ? (void)0                                                                                             \
                 : (void)(failures++, fprintf(stderr, "rank %d of %d, line %d: %s: %s\n", rank, size, __LINE__,        \
                                              #holds, why() ? why() : "")))

static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
static const int64_t counts[] = {0, 1, 2, 5, 1000, 4097, 600001};

static double seconds(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* ---- elements ---- */

static double value_of(lg_dtype d, int r, int64_t i)
{
        const uint32_t h = (uint32_t)(i * 2654435761u + (uint32_t)r * 40503u) >> 8;
        if (d == LG_BOOL)
                return h % 3 == 0;
        if (!lg_dtype_is_float(d))
                return h % 50;
        return d == LG_F16 || d == LG_BF16 ? h % 32 * 0.25 : h % 100000 / 3.0;
}

static void put(lg_dtype d, void *to, int64_t i, double v)
{
        switch (d) {
        case LG_F32:
                ((float *)to)[i] = (float)v;
                break;
        case LG_F64:
                ((double *)to)[i] = v;
                break;
        case LG_F16:
                ((uint16_t *)to)[i] = lg_f16_of_f32((float)v);
                break;
        case LG_BF16:
                ((uint16_t *)to)[i] = lg_bf16_of_f32((float)v);
                break;
        case LG_I64:
                ((int64_t *)to)[i] = (int64_t)v;
                break;
        case LG_I32:
                ((int32_t *)to)[i] = (int32_t)v;
                break;
        default:
                ((uint8_t *)to)[i] = (uint8_t)v;
                break;
        }
}

static void *make(lg_dtype d, int r, int64_t count)
{
        void *m = malloc((size_t)count * lg_dtype_size(d) + 1);
        for (int64_t i = 0; i < count; i++)
                put(d, m, i, value_of(d, r, i));
        return m;
}

/* What rank r's element i of a reduction must be, by plain loops in the dtype's type of sums. */
static void put_reduced(lg_dtype d, lg_reduce_op how, void *to, int64_t at, int64_t i)
{
        double f = 0;
        float s = 0;
        for (int r = 0; r < size; r++) {
                const double v = value_of(d, r, i);
                if (how == LG_REDUCE_OP_MAX || d == LG_BOOL) {
                        f = r == 0 ? v : fmax(f, v);
                        s = (float)f;
                } else {
                        f += v;
                        s += (float)v;
                }
        }
        if (how == LG_REDUCE_OP_MEAN) {
                f /= size;
                s /= (float)size;
        }
        put(d, to, at, d == LG_F32 || d == LG_F16 || d == LG_BF16 ? (double)s : f);
}

static lg__collective collective(lg__collective_kind what, lg_dtype d, int64_t count)
{
        return (lg__collective){.kind = what, .dtype = d, .shape = {.ndim = 1, .size = {count}}};
}

/* ---- what must hold ---- */

static void test_all_reduce(lg_dtype d, int64_t count, lg_reduce_op how, bool in_place)
{
        const size_t bytes = (size_t)count * lg_dtype_size(d);
        void *in = make(d, rank, count), *want = malloc(bytes + 1), *out = in_place ? in : malloc(bytes + 1);
        lg__collective j = collective(LG__ALL_REDUCE, d, count);
        j.reduction = how;
        for (int64_t i = 0; i < count; i++)
                put_reduced(d, how, want, i, i);
        CHECK(run(&j, in, out));
        CHECK(memcmp(out, want, bytes) == 0);
        if (!in_place)
                free(out);
        free(in), free(want);
}

/* Weights 0, 1, 2, ...; what has the weight 0 is NaN. Bits of all ranks come together. */
static void test_weights(void)
{
        float x[3] = {1, 2, (float)rank + 4}, y[3];
        double sum = 0, weights = 0;
        lg__collective j = collective(LG__ALL_REDUCE, LG_F32, 3);
        j.reduction = LG_REDUCE_OP_MEAN;
        j.weighted = true;
        j.weight = size == 1 ? 2 : rank;
        j.bits = (uint64_t)1 << (60 + rank);
        for (int r = 0; r < size; r++) {
                sum += (size == 1 ? 2 : r) * (r + 4.0);
                weights += size == 1 ? 2 : r;
        }
        for (int i = 0; i < 3 && j.weight == 0; i++)
                x[i] = NAN;
        CHECK(run(&j, x, y));
        CHECK(y[0] == 1 && y[1] == 2 && fabs(y[2] - sum / weights) < 1e-6);
        CHECK(lg__comm_share(p) == j.weight / weights);
        CHECK(p->bits == (((uint64_t)1 << size) - 1) << 60);
}

static void test_reduce_scatter(lg_dtype d, int64_t part)
{
        const int64_t count = part * size;
        const size_t bytes = (size_t)part * lg_dtype_size(d);
        void *in = make(d, rank, count), *out = malloc(bytes + 1), *want = malloc(bytes + 1);
        const lg__collective j = collective(LG__REDUCE_SCATTER, d, count);
        for (int64_t i = 0; i < part; i++)
                put_reduced(d, LG_REDUCE_OP_SUM, want, i, rank * part + i);
        CHECK(run(&j, in, out));
        CHECK(memcmp(out, want, bytes) == 0);
        free(in), free(out), free(want);
}

static void test_all_gather(lg_dtype d, int64_t count)
{
        const size_t bytes = (size_t)count * lg_dtype_size(d);
        char *in = make(d, rank, count), *out = malloc(bytes * (size_t)size + 1);
        const lg__collective j = collective(LG__ALL_GATHER, d, count);
        CHECK(run(&j, in, out));
        for (int r = 0; r < size; r++) {
                void *want = make(d, r, count);
                CHECK(memcmp(out + (size_t)r * bytes, want, bytes) == 0);
                free(want);
        }
        free(in), free(out);
}

static void test_broadcast(lg_dtype d, int64_t count)
{
        const size_t bytes = (size_t)count * lg_dtype_size(d);
        for (int root = 0; root < size; root++) {
                void *want = make(d, root, count), *own = make(d, rank, count);
                lg__collective j = collective(LG__BROADCAST, d, count);
                j.root = root;
                CHECK(run(&j, own, own));
                CHECK(memcmp(own, want, bytes) == 0);
                free(want), free(own);
        }
}

/* Even ranks to odd ones and back; a last rank without a partner does nothing. */
static void test_pairs(lg_dtype d, int64_t count)
{
        const size_t bytes = (size_t)count * lg_dtype_size(d);
        const int other = rank ^ 1;
        void *own = make(d, rank, count), *want = make(d, other, count), *got = malloc(bytes + 1);
        lg__collective send = collective(LG__SEND, d, count), receive = collective(LG__RECEIVE, d, count);
        send.root = receive.root = other;
        for (int turn = 0; turn < 2 && other < size; turn++)
                if (turn == rank % 2)
                        CHECK(run(&send, own, NULL));
                else
                        CHECK(run(&receive, NULL, got));
        CHECK(other >= size || memcmp(got, want, bytes) == 0);
        free(own), free(want), free(got);
}

static void run_right(void)
{
        test_weights();
        const lg__collective barrier = {.kind = LG__BARRIER};
        for (int n = 0; n < (int)(sizeof counts / sizeof *counts); n++)
                for (int d = 0; d < (int)(sizeof dtypes / sizeof *dtypes); d++) {
                        test_all_reduce(dtypes[d], counts[n], LG_REDUCE_OP_SUM, n % 2);
                        test_all_reduce(dtypes[d], counts[n], LG_REDUCE_OP_MAX, false);
                        if (lg_dtype_is_float(dtypes[d]))
                                test_all_reduce(dtypes[d], counts[n], LG_REDUCE_OP_MEAN, true);
                        test_reduce_scatter(dtypes[d], counts[n] / 4);
                        test_all_gather(dtypes[d], counts[n] / 2);
                        test_broadcast(dtypes[d], counts[n]);
                        test_pairs(dtypes[d], counts[n]);
                        CHECK(run(&barrier, NULL, NULL));
                }
        test_all_reduce(LG_F32, 4000003, LG_REDUCE_OP_SUM, true); /* more pieces than are on their way at once */
        test_all_reduce(LG_F32, 4000003, LG_REDUCE_OP_SUM, false);
        float nan[2] = {rank == 0 ? NAN : 1, rank == size - 1 ? NAN : -INFINITY};
        lg__collective j = collective(LG__ALL_REDUCE, LG_F32, 2);
        j.reduction = LG_REDUCE_OP_MAX;
        CHECK(run(&j, nan, nan) && isnan(nan[0]) && isnan(nan[1]));
        CHECK(!why());
}

/* ---- what one rank does otherwise, the second or the last ---- */

static const struct mistake {
        const char *name;
        lg__collective all, one;
        const char *says; /* on every rank */
} mistakes[] = {
#define COLLECTIVE(operation, type, how, from, dims, ...)                                                              \
        {                                                                                                              \
                .kind = LG__##operation, .dtype = LG_##type, .reduction = LG_REDUCE_OP_##how, .root = from, .shape = { \
                        .ndim = dims,                                                                                  \
                        .size = {__VA_ARGS__}                                                                          \
                }                                                                                                      \
        }
#define USUAL COLLECTIVE(ALL_REDUCE, F32, SUM, 0, 1, 4)
        {"operation", USUAL, COLLECTIVE(BROADCAST, F32, SUM, 0, 1, 4), "broadcast of f32 (4,) from rank 0"},
        {"dtype", USUAL, COLLECTIVE(ALL_REDUCE, F64, SUM, 0, 1, 4), "all_reduce of f64 (4,), sum"},
        {"shape", COLLECTIVE(ALL_GATHER, I64, SUM, 0, 2, 2, 3), COLLECTIVE(ALL_GATHER, I64, SUM, 0, 2, 3, 2),
         "all_gather of i64 (3, 2)"},
        {"size", USUAL, COLLECTIVE(ALL_REDUCE, F32, SUM, 0, 1, 5), "all_reduce of f32 (5,), sum"},
        {"reduction", USUAL, COLLECTIVE(ALL_REDUCE, F32, MEAN, 0, 1, 4), "all_reduce of f32 (4,), mean"},
        {"root", COLLECTIVE(BROADCAST, F32, SUM, 0, 1, 4), COLLECTIVE(BROADCAST, F32, SUM, 1, 1, 4),
         "broadcast of f32 (4,) from rank 1"},
        {"barrier", USUAL, {.kind = LG__BARRIER}, "barrier"},
        {"name", {.kind = LG__BARRIER, .name = "weights"}, {.kind = LG__BARRIER, .name = "biases"}, "biases"},
        {"gradient",
         COLLECTIVE(RECEIVE, F32, SUM, 2, 1, 4),
         {.kind = LG__SEND, .dtype = LG_F32, .shape = {.ndim = 1, .size = {4}}, .recorded = true},
         "send of f32 (4,) to rank 0 with a gradient"},
        {"pair", {.kind = LG__BARRIER}, COLLECTIVE(SEND, F32, SUM, 0, 1, 4), "send of f32 (4,) to rank 0"},
#undef USUAL
#undef COLLECTIVE
};

/* Every rank has an error that says what the others hear. */
static void run_mistake(const struct mistake *m)
{
        float in[64] = {0}, out[256];
        const lg__collective barrier = {.kind = LG__BARRIER};
        CHECK(run(&barrier, NULL, NULL));
        CHECK(!run(rank == size - 1 ? &m->one : &m->all, in, out));
        CHECK(why() && strstr(why(), m->says) && strstr(why(), "operation 3"));
        CHECK(!run(&barrier, NULL, NULL)); /* broken for good */
}

/* The last rank fails, leaves, or says nothing for longer than the limit; the others hear of it. */
static void run_fault(const char *name, double limit)
{
        float x[4] = {0};
        const lg__collective all = collective(LG__ALL_REDUCE, LG_F32, 4);
        CHECK(run(&all, x, x));
        if (rank == size - 1) {
                if (strcmp(name, "failed") == 0)
                        lg__comm_fail(p, "the disk is full");
                else if (strcmp(name, "late") == 0)
                        usleep((useconds_t)(limit * 2.5e6));
                else
                        return; /* to leave */
                CHECK(!run(&all, x, x) && why());
                return;
        }
        CHECK(!run(&all, x, x) && why());
        const char *want = strcmp(name, "failed") == 0 ? "the disk is full"
                           : strcmp(name, "late") == 0 ? "has not answered rank"
                                                       : "has left the group";
        CHECK(strstr(why(), want));
}

int main(int argc, char **argv)
{
        void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
        union {
                void *symbol;
                lg_transport_module_fn *get;
        } entry = {module ? dlsym(module, "lg_transport_module") : NULL};
        const double limit = strcmp(argv[2], "late") == 0 ? 1 : 60;
        int world[64];
        if (!entry.symbol)
                return 2;
        const lg_transport_api *api = entry.get();
        c = lg_open();
        t = calloc(1, api->bytes);
        t->api = api;
        if (!c || !api->open(t, 60))
                return 2;
        rank = t->rank, size = t->size;
        for (int r = 0; r < size; r++)
                world[r] = r;
        p = lg__comm_new(c, t, rank, size, world, 0, limit);
        CHECK(p && run(&(lg__collective){.kind = LG__BARRIER}, NULL, NULL));
        const double start = seconds(); /* of all */
        bool found = false;
        for (int i = 0; i < (int)(sizeof mistakes / sizeof *mistakes); i++)
                if (strcmp(argv[2], mistakes[i].name) == 0) {
                        run_mistake(&mistakes[i]);
                        found = true;
                }
        if (strcmp(argv[2], "right") == 0)
                run_right();
        else if (!found)
                run_fault(argv[2], limit);
        const bool whole = lg__comm_free(p);
        p = NULL;
        CHECK(whole == (strcmp(argv[2], "right") == 0));
        if (failures == 0)
                printf("held\n");
        fflush(stdout);
        while (!whole && seconds() < start + 4) /* launchers end all when one ends so: all have said it by then */
                usleep(10000);
        api->close(t, !whole);
        free(t);
        lg_close(c);
        return failures > 0;
}
