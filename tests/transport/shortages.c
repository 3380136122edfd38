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
#include "rank.h"

/* c, g: of all rounds; their memory never fails. */
static int round_now, failed_rounds;

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

static bool train(lg_ctx *d)
{
        lg_group *all = lg_group_open(d, .timeout = 20), *part = lg_group_split(all, lg_group_rank(all) % 2);
        lg_module *net = lg_nn_sequential(d, lg_nn_linear(d, 3, 5), lg_nn_batch_norm1d(d, 5), lg_nn_linear(d, 5, 2));
        lg_optimizer *opt = lg_sgd(d, lg_parameters(net), 0.1);
        lg_data_parallel(net, all);
        lg_sync_batch_norm(net, all);
        lg_tensor *x = lg_sin(lg_reshape(lg_arange(d, 0, 12, 1), LG_SHAPE(4, 3)));
        lg_tensor *loss = lg_mean(lg_square(lg_forward(net, x)));
        lg_backward(loss);
        lg_step(opt);
        lg_tensor *sum = lg_all_reduce(lg_all_gather(lg_detach(x), part), part);
        return sum && lg_barrier(all);
}

static bool is_expected(lg_ctx *d, bool ok, bool me)
{
        const lg_error_code code = lg_error_code_of(d);
        if (ok || me ? ok == !lg_error(d) && (ok || code == LG_ERR_MEMORY)
                     : code == LG_ERR_COMM && strstr(lg_error(d), "memory"))
                return true;
        return lg_set_error(c, LG_ERR_STATE, "round %d: %s", round_now, lg_error(d) ? lg_error(d) : "no error");
}

/* Whether nothing is left to fail. */
static bool run_round(int64_t n)
{
        const bool me = rank == size - 1;
        fail_at = 0;
        bytes_out = 0;
        lg_ctx *d = lg_open(.threads = 1, .alloc = alloc, .free = release);
        calls = 0;
        fail_at = me ? n : 0;
        const bool ok = train(d), failed = me && calls >= n;
        failed_rounds += !ok;
        CHECK(is_expected(d, ok, me));
        fail_at = 0;
        lg_close(d);
        CHECK(bytes_out == 0);
        lg_tensor *flag = lg_full(c, failed, LG_SHAPE_0D);
        return !lg_all_reduce_(flag, g, LG_RANKS_MAX) || lg_item(flag) == 0;
}

int main(void)
{
        c = lg_open(.threads = 1);
        g = lg_group_open(c, .timeout = 60);
        rank = lg_group_rank(g);
        size = lg_group_size(g);
        CHECK(size > 1);
        /* The first three are before a rank knows of the others: they give up after the time limit. */
        for (round_now = 4; !failures && !run_round(round_now); round_now++)
                lg_empty_cache(c);
        CHECK(failed_rounds > 30 && !lg_error(c));
        lg_close(c);
        c = NULL;
        return verdict(1);
}
