/* ranks.c - a run on several processes: devices, sums, and agreement about signals and files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ranks.h"

bool ranks_first(const run *r)
{
        return lg_group_rank(r->group) == 0;
}

int64_t ranks_count(const run *r)
{
        return lg_group_size(r->group);
}

/* Divides the cores of a machine among its processes, unless the launcher or the user has chosen the number of threads.
 */
static void divide_cores(run *r)
{
        const lg_group *g = r->group;
        const char *here = lg_group_host(g, lg_group_rank(g));
        int count = 0;
        for (int i = 0; i < lg_group_size(g); i++)
                count += !strcmp(lg_group_host(g, i), here);
        const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
        if (count > 1 && !r->o->threads && !getenv("OMP_NUM_THREADS") && lg_threads(r->c) == cores)
                lg_set_threads(r->c, cores > count ? cores / count : 1);
}

lg_device ranks_open(run *r)
{
        lg_ctx *c = r->c;
        if (!r->o->group)
                return r->o->device ? lg_parse_device(c, r->o->device) : lg_try_cuda(c, 0);
        if (!r->o->device)
                lg_set_default_device(c, lg_try_cuda(c, 0)); /* the device of the group follows from it */
        r->group = lg_group_open(c, .timeout = (double)r->o->timeout);
        lg_set_default_device(c, lg_cpu());
        if (!r->group)
                return lg_cpu();
        divide_cores(r);
        return r->o->device ? lg_parse_device(c, r->o->device) : lg_group_device(r->group);
}

bool ranks_sum(run *r, double *numbers, int n)
{
        if (ranks_count(r) == 1)
                return !lg_error(r->c);
        lg_scope scope = lg_scope_begin(r->c);
        lg_tensor *all = lg_from(r->c, numbers, LG_SHAPE(n), .device = lg_cpu());
        const bool ok = lg_all_reduce_(all, r->group, LG_REDUCE_OP_SUM) &&
                        lg_read(all, numbers, LG_F64, (size_t)n * sizeof *numbers);
        lg_scope_end(r->c, scope);
        return ok;
}

bool ranks_share(run *r)
{
        double steps[] = {(double)r->step, (double)r->step * (double)r->step};
        const double size = (double)ranks_count(r), mine = (double)r->step;
        if (!r->group)
                return !lg_error(r->c);
        if (ranks_sum(r, steps, 2) && (steps[0] != mine * size || steps[1] != mine * mine * size))
                lg_set_error(r->c, LG_ERR_ARGUMENT,
                             "--resume %s: the processes have read different files: this one is "
                             "at step %lld",
                             r->o->resume ? r->o->resume : "", (long long)r->step);
        lg_data_parallel(r->net, r->group);
        if (r->o->sync_batch_norm)
                lg_sync_batch_norm(r->net, r->group);
        return !lg_error(r->c);
}

bool ranks_agree(run *r, const progress *p)
{
        double wishes[] = {run_interrupted(), ranks_first(r) && p && progress_due(p)};
        ranks_sum(r, wishes, 2);
        r->interrupted = r->interrupted || wishes[0] > 0;
        return wishes[1] > 0;
}

bool ranks_have(run *r, const char *option, const char *path)
{
        const bool here = !access(path, F_OK) || errno != ENOENT;
        double count = here;
        if (!ranks_sum(r, &count, 1))
                return false;
        if (count > 0 && count < (double)ranks_count(r))
                return lg_set_error(r->c, LG_ERR_IO, "%s %s: it is %s %s, but not everywhere: all processes read it",
                                    option, path, here ? "on" : "missing on",
                                    lg_group_host(r->group, lg_group_rank(r->group)));
        return here;
}

void ranks_end(run *r)
{
        if (r->group)
                lg_barrier(r->group); /* passes an error of this process on to the others */
        if (!lg_error(r->c))
                return;
        if (ranks_count(r) > 1)
                fprintf(stderr, "%s: rank %d: %s\n", r->program, lg_group_rank(r->group), lg_error(r->c));
        else
                fprintf(stderr, "%s: %s\n", r->program, lg_error(r->c));
}
