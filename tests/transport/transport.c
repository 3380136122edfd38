/* transport.c - messages between processes: transport MODULE N, run by mpirun on N of them.
 *
 * Prints nothing and ends with 0 if all held; else one line for each thing that did not.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../transport/transport.h"

#define LIMIT 60.0 /* seconds, after which a transfer is lost */

static lg_transport *t;
static int failures;

#define CHECK(holds)                                                                                                   \
        ((holds) ? (void)0                                                                                             \
                 : (void)(failures++, fprintf(stderr, "rank %d of %d, line %d: %s: %s\n", t->rank, t->size, __LINE__,  \
                                              #holds, t->why)))

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

static lg_progress finish(lg_transfer *x, size_t *ret_bytes)
{
        lg_progress p = LG_TRANSFER_UNDER_WAY;
        for (const double start = now(); p == LG_TRANSFER_UNDER_WAY && now() < start + LIMIT;)
                p = t->api->test(t, x, ret_bytes);
        return p;
}

static unsigned char byte_of(int from, int to, int tag, size_t i)
{
        return (unsigned char)((size_t)(from * 31 + to * 17 + tag * 7) + i * 2654435761u / 65536);
}

static void fill(unsigned char *p, int from, int to, int tag, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                p[i] = byte_of(from, to, tag, i);
}

static bool is_filled(const unsigned char *p, int from, int to, int tag, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if (p[i] != byte_of(from, to, tag, i))
                        return false;
        return true;
}

/* Each to each, itself as well, all at once. */
static void test_all(size_t bytes, int tag)
{
        const size_t n = (size_t)t->size, room = bytes + 1;
        unsigned char *in = malloc(n * room), *out = malloc(n * room);
        lg_transfer *sends = calloc(n, sizeof *sends), *receives = calloc(n, sizeof *receives);
        for (int r = 0; r < t->size; r++) {
                unsigned char *p = out + (size_t)r * room;
                fill(p, t->rank, r, tag, bytes);
                CHECK(t->api->receive(t, r, tag, in + (size_t)r * room, bytes, &receives[r]));
                CHECK(t->api->send(t, r, tag, p, bytes, &sends[r]));
        }
        for (int r = 0; r < t->size; r++) {
                size_t got = bytes + 1;
                CHECK(finish(&receives[r], &got) == LG_TRANSFER_DONE);
                CHECK(got == bytes && is_filled(in + (size_t)r * room, r, t->rank, tag, bytes));
                CHECK(finish(&sends[r], NULL) == LG_TRANSFER_DONE);
        }
        free(in), free(out), free(sends), free(receives);
}

/* Many messages of one tag to the next rank, fewer bytes than there is room for, in order; tags apart from each other.
 */
static void test_order(void)
{
        enum { MANY = 40 };
        const int next = (t->rank + 1) % t->size, last = (t->rank + t->size - 1) % t->size;
        int sent[MANY], got[MANY][2];
        lg_transfer sends[MANY], receives[MANY];
        for (int i = 0; i < MANY; i++) {
                sent[i] = t->rank * 1000 + i;
                CHECK(t->api->send(t, next, i % 2 ? t->most_tag : 0, &sent[i], sizeof(int), &sends[i]));
        }
        for (int i = 1; i < MANY; i += 2) /* the tag that was sent second, first */
                CHECK(t->api->receive(t, last, t->most_tag, got[i], sizeof got[i], &receives[i]));
        for (int i = 0; i < MANY; i += 2)
                CHECK(t->api->receive(t, last, 0, got[i], sizeof got[i], &receives[i]));
        for (int i = 0; i < MANY; i++) {
                size_t bytes = 0;
                CHECK(finish(&receives[i], &bytes) == LG_TRANSFER_DONE);
                CHECK(bytes == sizeof(int) && got[i][0] == last * 1000 + i);
                CHECK(finish(&sends[i], NULL) == LG_TRANSFER_DONE);
        }
}

/* A receive that nobody answers is given up, and what comes later goes to the next one. */
static void test_cancel(void)
{
        const int next = (t->rank + 1) % t->size, last = (t->rank + t->size - 1) % t->size;
        int lost = -1, sent = t->rank, got = -1;
        lg_transfer x, y;
        CHECK(t->api->receive(t, last, 5, &lost, sizeof lost, &x));
        CHECK(t->api->test(t, &x, NULL) == LG_TRANSFER_UNDER_WAY);
        t->api->cancel(t, &x);
        CHECK(t->api->test(t, &x, NULL) == LG_TRANSFER_DONE);
        test_all(1, 6); /* all have given up */
        CHECK(t->api->send(t, next, 5, &sent, sizeof sent, &x));
        CHECK(t->api->receive(t, last, 5, &got, sizeof got, &y));
        CHECK(finish(&y, NULL) == LG_TRANSFER_DONE && got == last && lost == -1);
        CHECK(finish(&x, NULL) == LG_TRANSFER_DONE);
}

/* Two opens have nothing to do with each other. */
static void test_apart(void)
{
        lg_transport *one = t, *two = calloc(1, t->api->bytes);
        two->api = one->api;
        int first = 1, second = 2, got_first = 0, got_second = 0;
        lg_transfer x[4];
        if (!one->api->open(two, 60)) {
                failures++;
                fprintf(stderr, "open again: %s\n", two->why);
                free(two);
                return;
        }
        CHECK(two->rank == one->rank && two->size == one->size && strcmp(two->host, one->host) == 0);
        CHECK(one->api->send(one, one->rank, 3, &first, sizeof first, &x[0]));
        CHECK(one->api->send(two, one->rank, 3, &second, sizeof second, &x[1]));
        CHECK(one->api->receive(two, one->rank, 3, &got_second, sizeof got_second, &x[2]));
        CHECK(one->api->receive(one, one->rank, 3, &got_first, sizeof got_first, &x[3]));
        for (int i = 3; i >= 0; i--) {
                t = i == 1 || i == 2 ? two : one;
                CHECK(finish(&x[i], NULL) == LG_TRANSFER_DONE);
        }
        t = one;
        CHECK(got_first == 1 && got_second == 2);
        one->api->close(two, false);
        free(two);
}

/* What cannot be is told, and the process lives. */
static void test_wrong(void)
{
        char small[4] = "";
        lg_transfer x;
        t->why[0] = 0;
        CHECK(!t->api->send(t, t->size, 0, small, sizeof small, &x) && t->why[0]);
        t->why[0] = 0;
        CHECK(!t->api->receive(t, -7, 0, small, sizeof small, &x) && t->why[0]);
        t->why[0] = 0;
        CHECK(!t->api->send(t, 0, 0, small, (size_t)1 << 31, &x) && strstr(t->why, "2147483648 bytes"));
        test_all(100, 1);
}

static const lg_transport_api *module(const char *path)
{
        void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        union {
                void *symbol;
                lg_transport_module_fn *get;
        } entry = {loaded ? dlsym(loaded, "lg_transport_module") : NULL};
        if (!entry.symbol)
                fprintf(stderr, "%s: %s\n", path, dlerror());
        return entry.symbol ? entry.get() : NULL;
}

/* How Open MPI copies within a machine: as the user has asked, else through shared memory. MPICH is not asked. */
static bool copies_as(const char *asked)
{
        const char *is = getenv("OMPI_MCA_btl_vader_single_copy_mechanism");
        const char *want = asked ? asked : strcmp(t->api->name, "Open MPI") == 0 ? "none" : NULL;
        return want ? is && strcmp(is, want) == 0 : !is;
}

int main(int argc, char **argv)
{
        static const size_t sizes[] = {0, 1, 7, 4096, 65536, 1 << 20, (5 << 20) + 3};
        const lg_transport_api *api = argc == 3 ? module(argv[1]) : NULL;
        const char *copies = getenv("OMPI_MCA_btl_vader_single_copy_mechanism");
        char version[300] = "";
        if (!api || api->abi != LG_TRANSPORT_ABI)
                return 2;
        t = calloc(1, api->bytes);
        t->api = api;
        if (!api->open(t, 60)) {
                fprintf(stderr, "open: %s\n", t->why);
                return 1;
        }
        api->version(version, sizeof version);
        CHECK(t->size == atoi(argv[2]) && t->rank >= 0 && t->rank < t->size && t->host[0] && t->most_tag >= 32767);
        CHECK(copies_as(copies));
        CHECK(strncmp(version, api->name, strlen(api->name)) == 0 && !strchr(version, '\n'));
        for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++)
                test_all(sizes[i], i);
        test_order();
        test_cancel();
        test_apart();
        test_wrong();
        test_all(10, 2);
        api->close(t, false);
        free(t);
        return failures > 0;
}
