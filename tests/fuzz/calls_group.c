/* calls_group.c - calls of groups of one process: collective functions, modules that train in parallel. */
#include "vm.h"

static void give_group(vm *m, lg_group *g)
{
        check_done(m, g != NULL);
        lg_group **slot = &PICK(m, m->now->groups), *gone = *slot;
        *slot = g;
        lg_group_close(gone);
        FUZZ_CHECK(lg_group_rank(g) == 0 && lg_group_size(g) == 1, "a group of more than one process");
}

static void call_parallel(vm *m, lg_group *g)
{
        lg_module *a = module(m);
        lg_data_parallel_options o = *LG_OPTIONS(lg_data_parallel_options, .bucket_bytes = 0);
        switch (byte(m) % 4) {
        case 0:
                o.bucket_bytes = flag(m) ? size(m) : 0;
                o.keep_buffers = flag(m);
                check_done(m, lg_data_parallel_with(a, g, HAND(m, o)));
                return;
        case 1:
                check_done(m, lg_sync_batch_norm(a, g));
                return;
        case 2:
                check_done(m, lg_set_data_parallel_weight(a, number(m)));
                return;
        default:
                lg_set_sync_mode(a, flag(m));
        }
}

void call_group(vm *m)
{
        lg_group *g = PICK(m, m->now->groups);
        uint8_t i = byte(m) % 12, b;
        lg_group_open_options open = *LG_OPTIONS(lg_group_open_options, .timeout = 0);
        lg_all_reduce_options o = *LG_OPTIONS(lg_all_reduce_options, .op = LG_REDUCE_OP_SUM);
        lg_tensor *x = i < 8 ? tensor(m) : NULL;
        m->odd = m->odd || !g;
        b = i < 8 ? byte(m) : 0;
        int rank = b < 0xE0 ? 0 : b % 4 - 1;
        o.op = (lg_reduce_op)(b < 0xF0 ? b % 3 : b);
        switch (i) {
        case 0:
                give(m, lg_all_reduce_with(x, g, HAND(m, o)));
                return;
        case 1:
                check_done(m, lg_all_reduce_(x, g, o.op));
                return;
        case 2:
                give(m, lg_broadcast(x, g, rank));
                return;
        case 3:
                check_done(m, lg_broadcast_(x, g, rank));
                return;
        case 4:
                give(m, lg_all_gather(x, g));
                return;
        case 5:
                give(m, lg_reduce_scatter_with(x, g, HAND(m, o)));
                return;
        case 6:
                give(m, lg_send(x, g, rank));
                return;
        case 7:
                give(m, lg_receive(x, g, rank));
                return;
        case 8:
                call_parallel(m, g);
                return;
        case 9:
                m->odd = true; /* a rank whose color is negative gets no group */
                give_group(m, lg_group_split(g, dim(m)));
                return;
        case 10:
                check_done(m, lg_barrier(g));
                return;
        default:
                open.timeout = flag(m) ? number(m) : 0;
                open.device = flag(m) ? device(m) : LG_NO_DEVICE;
                m->odd = failed(m);
                give_group(m, lg_group_open_with(m->now->ctx, HAND(m, open)));
        }
}
