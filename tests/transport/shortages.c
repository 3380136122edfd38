/* shortages.c - what groups do where one rank has no memory: shortages, run by mpirun with LIBGRAD_MPI on 2 ranks or
 * more.
 *
 * In each round all ranks open a group, split it, and train a step; on the last rank one allocation of the round
 * and the next fail, others each time until none is left. Small records come out of slabs: in further rounds a slab is
 * full when the record of a group is made. That rank must say LG_ERR_MEMORY; the others say LG_ERR_COMM,
 * with its words, or have not noticed. Nothing may be leaked. Prints "held" if all did, else what did not.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rank.h"

/* c, g: of all rounds; their memory never fails. */
static int round_now, failed_rounds;

/* ---- memory that fails ---- */

#define SLAB 65536

static int64_t calls, fail_at, bytes_out, slabs;
static bool no_slabs; /* more */

static void *alloc(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        (void)user;
        slabs += bytes == SLAB;
        const bool chosen = ++calls == fail_at || (fail_at && calls == fail_at + 1) || (no_slabs && bytes == SLAB);
        void *p = chosen ? NULL : lg_system_alloc(c, device, bytes);
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

static lg_ctx *open_counted(void)
{
        fail_at = 0;
        no_slabs = false;
        bytes_out = 0;
        return lg_open(.threads = 1, .alloc = alloc, .free = release);
}

static void close_counted(lg_ctx *d)
{
        fail_at = 0;
        no_slabs = false;
        lg_close(d);
        CHECK(bytes_out == 0);
}

/* ---- a slab that is full ---- */

/* How many records of a checkpoint, 64 bytes, fit into the slab, before a group is opened or behind that. */
static int free_places(bool behind)
{
        lg_ctx *d = open_counted();
        CHECK(!behind || lg_group_open(d, .timeout = 20));
        int n = -1;
        for (const int64_t before = slabs; slabs == before && !failures; n++)
                CHECK(lg_checkpoint_new(d));
        close_counted(d);
        return n;
}

/* Where so many of these places are left on the last rank, when a group is opened, or split. */
static void run_full(int places, int left, bool behind)
{
        const bool me = rank == size - 1;
        lg_ctx *d = open_counted();
        lg_group *all = behind ? lg_group_open(d, .timeout = 20) : NULL;
        for (int i = 0; me && i < places - left; i++)
                CHECK(lg_checkpoint_new(d));
        no_slabs = me;
        all = behind ? all : lg_group_open(d, .timeout = 20);
        lg_group *part = lg_group_split(all, 0);
        CHECK(!me || (!part && !all == !behind));
        CHECK(!lg_barrier(part ? part : all) && is_expected(d, false, me));
        close_counted(d);
}

/* The last records of an opening are a group, its members, and 256 bytes for the name of each host. */
static void run_full_slabs(void)
{
        const int before = free_places(false), behind = free_places(true), hosts = size * 256 / 64;
        CHECK(size <= 4);
        for (round_now = 1; round_now <= hosts + 1; round_now += hosts)
                run_full(before, before - behind - round_now, false);
        for (int left = 0; left < 3; left++)
                run_full(behind, left, true);
}

/* ---- all allocations ---- */

/* Whether nothing is left to fail. */
static bool run_round(int64_t n)
{
        const bool me = rank == size - 1;
        lg_ctx *d = open_counted();
        calls = 0;
        fail_at = me ? n : 0;
        const bool ok = train(d), failed = me && calls >= n;
        failed_rounds += !ok;
        CHECK(is_expected(d, ok, me));
        close_counted(d);
        lg_tensor *flag = lg_full(c, LG_SHAPE_0D, failed);
        return !lg_all_reduce_(flag, g, LG_REDUCE_OP_MAX) || lg_item(flag) == 0;
}

int main(void)
{
        CHECK(join(60) && size > 1);
        /* The first three are before a rank knows of the others: they give up after the time limit. */
        for (round_now = 4; !failures && !run_round(round_now); round_now++)
                lg_empty_cache(c);
        CHECK(failed_rounds > 30 && !lg_error(c));
        run_full_slabs();
        CHECK(!lg_error(c));
        lg_close(c);
        c = NULL;
        return verdict(1);
}
