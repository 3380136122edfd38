/* shortages.c - what groups do where one rank has no memory: shortages, run by mpirun with LIBGRAD_MPI on 2 ranks or
 * more.
 *
 * In each round all ranks open a group, split it, and train a step; on the last rank one allocation of the round
 * and the next fail, others each time until none is left. That rank must say LG_ERR_MEMORY; the others say LG_ERR_COMM,
 * with its words, or have not noticed. Nothing may be leaked. Prints "held" if all did, else what did not.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "grad.h"
#include "leaks.h"

static lg_ctx *steady; /* of rounds: its memory never fails */
static lg_group *everyone;
static int failures, rank, size;

static int round_now, failed_rounds;
static char said[600]; /* the error of the round */

#define CHECK(holds)                                                                                                   \
        ((holds) ? (void)0                                                                                             \
                 : (void)(failures++, fprintf(stderr, "rank %d of %d, round %d, line %d: %s: %s\n", rank, size,        \
                                              round_now, __LINE__, #holds, said)))

/* ---- memory that fails ---- */

static int64_t calls, fail_at, bytes_out;

static void *alloc(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        (void)user;
        void *p = ++calls == fail_at || (fail_at && calls == fail_at + 1) ? NULL : lg_system_alloc(c, device, bytes);
        bytes_out += p ? (int64_t)bytes : 0;
        return p;
}

static void release(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        (void)user;
        bytes_out -= (int64_t)bytes;
        lg_system_free(c, device, p, bytes);
}

/* ---- a round ---- */

static bool train(lg_ctx *c)
{
        lg_group *g = lg_group_open(c, .timeout = 20);
        lg_group *part = lg_group_split(g, lg_group_rank(g) % 2);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 5), lg_nn_batch_norm1d(c, 5), lg_nn_linear(c, 5, 2));
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1);
        lg_data_parallel(net, g);
        lg_sync_batch_norm(net, g);
        lg_tensor *x = lg_sin(lg_reshape(lg_arange(c, 0, 12, 1), LG_SHAPE(4, 3)));
        lg_tensor *loss = lg_mean(lg_square(lg_forward(net, x)));
        lg_backward(loss);
        lg_step(opt);
        lg_tensor *sum = lg_all_reduce(lg_all_gather(lg_detach(x), part), part);
        return sum && lg_barrier(g);
}

/* Whether it ended well on all ranks. */
static bool run_round(int64_t n)
{
        const bool me = rank == size - 1;
        fail_at = 0;
        bytes_out = 0;
        lg_ctx *c = lg_open(.threads = 1, .alloc = alloc, .free = release);
        calls = 0;
        fail_at = me ? n : 0;
        const bool ok = train(c), failed = me && calls >= n;
        const lg_error_code code = lg_error_code_of(c);
        snprintf(said, sizeof said, "%s", lg_error(c) ? lg_error(c) : "");
        CHECK(ok == !lg_error(c) && (ok || !me || code == LG_ERR_MEMORY));
        CHECK(ok || me || (code == LG_ERR_COMM && strstr(lg_error(c), "memory")));
        fail_at = 0;
        lg_close(c);
        failed_rounds += !ok;
        CHECK(bytes_out == 0);
        lg_tensor *flag = lg_full(steady, failed, LG_SHAPE_0D);
        CHECK(lg_all_reduce_(flag, everyone, LG_RANKS_MAX));
        return lg_item(flag) == 0 || failures || lg_error(steady);
}

int main(void)
{
        steady = lg_open(.threads = 1);
        everyone = lg_group_open(steady, .timeout = 60);
        rank = lg_group_rank(everyone);
        size = lg_group_size(everyone);
        CHECK(size > 1);
        /* The first three are before a rank knows of the others: they give up after the time limit. */
        for (round_now = 4; !failures && !run_round(round_now); round_now++)
                lg_empty_cache(steady);
        CHECK(failed_rounds > 30);
        lg_close(steady);
        failures += leaks();
        if (!failures)
                printf("held\n");
        fflush(stdout);
        sleep(1); /* launchers end the others with the first process of a broken group */
        return failures > 0;
}
