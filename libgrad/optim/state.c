/* state.c - the state of optimisers and schedules that is saved and loaded, under PyTorch's names. */
#include "state/entries.h"
#include "schedule.h"

static bool visit_group(lg__state_entries *list, lg__group *g, int i)
{
        char name[32];
        snprintf(name, sizeof name, "group.%d", i);
        size_t was = lg__state_entries_enter(list, name);
        bool ok = lg__state_add_f64(list, "lr", &g->lr) && lg__state_add_f64(list, "initial_lr", &g->initial_lr) &&
                  lg__state_add_f64(list, "weight_decay", &g->weight_decay) &&
                  lg__state_add_f64(list, "momentum", &g->momentum) && lg__state_add_f64(list, "beta2", &g->beta2) &&
                  lg__state_add_f64(list, "eps", &g->eps);
        lg__state_entries_leave(list, was);
        return ok;
}

/* Subtracts the number of skipped steps, read from the device, from s->step, and frees the tensor of that number. */
static bool subtract_skipped(lg__slot *s)
{
        const int64_t skipped = s->skipped ? lg_item_i64(s->skipped) : 0;
        if (s->param->ctx->error)
                return false;
        s->step -= skipped;
        lg__tensor_hold(&s->skipped, NULL);
        return true;
}

/* Names the states of parameter i under the path that the list has for the parameter (in its module), or under i. */
static bool visit_slot(lg__state_entries *list, const lg_optimizer *opt, int64_t i)
{
        lg__slot *s = &opt->slots[i];
        char number[32];
        if (!lg__slot_lives(opt, i, list->op) || !subtract_skipped(s))
                return false;
        snprintf(number, sizeof number, "%lld", (long long)i);
        const char *path = lg__state_entries_name(list, s->param);
        size_t was = lg__state_entries_enter(list, path ? path : number);
        bool ok = lg__state_add_whole(list, "step", &s->step, LG__COUNT_MOST);
        for (int k = 0; k < LG__STATES && ok; k++)
                if (lg__slot_states(opt, s) >> k & 1)
                        ok = lg__state_add_tensor_shaped(list, opt->rule->states[k], &s->state[k],
                                                         lg__state_dtype(s->param), lg__slot_shape(opt, s, k),
                                                         s->param->storage->device->id, LG__ENTRY_REMOVABLE);
        if (ok && lg__slot_has_master(opt, s))
                ok = lg__state_add_tensor_like(list, "master", &s->master, LG_F32, s->param, LG__ENTRY_REMOVABLE);
        lg__state_entries_leave(list, was);
        return ok;
}

bool lg__optimizer_visit(lg__object *o, lg__state_entries *list)
{
        lg_optimizer *opt = (lg_optimizer *)o;
        bool ok = lg__state_add_type(list, opt->rule->name);
        for (int i = 0; i < opt->group_count && ok; i++)
                ok = visit_group(list, &opt->groups[i], i);
        size_t was = lg__state_entries_enter(list, "state");
        for (int64_t i = 0; i < opt->count && ok; i++)
                ok = visit_slot(list, opt, i);
        ok = ok && (!opt->rule->visit || opt->rule->visit(opt, list));
        lg__state_entries_leave(list, was);
        return ok;
}

bool lg__scheduler_visit(lg__object *o, lg__state_entries *list)
{
        lg_scheduler *s = (lg_scheduler *)o;
        bool ok = lg__state_add_type(list, s->name) && lg__state_add_whole(list, "epoch", &s->epoch, LG__COUNT_MOST) &&
                  lg__state_add_f64(list, "best", &s->best) &&
                  lg__state_add_whole(list, "bad", &s->bad, LG__COUNT_MOST) &&
                  lg__state_add_whole(list, "cooling", &s->cooling, LG__COUNT_MOST);
        for (int i = 0; i < s->child_count && ok; i++) {
                char name[16];
                snprintf(name, sizeof name, "%d", i);
                ok = lg__state_add_object(list, name, &s->children[i]->object);
        }
        return ok;
}
