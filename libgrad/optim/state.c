/* state.c - the state of optimisers and schedules that is saved and loaded, under PyTorch's names. */
#include "state/roster.h"
#include "schedule.h"

static bool visit_group(lg__roster *r, lg__group *g, int i)
{
        char name[32];
        snprintf(name, sizeof name, "group.%d", i);
        size_t was = lg__roster_enter(r, name);
        bool ok = lg__hold_f64(r, "lr", &g->lr) && lg__hold_f64(r, "initial_lr", &g->initial_lr) &&
                  lg__hold_f64(r, "weight_decay", &g->weight_decay) && lg__hold_f64(r, "momentum", &g->momentum) &&
                  lg__hold_f64(r, "beta2", &g->beta2) && lg__hold_f64(r, "eps", &g->eps);
        lg__roster_leave(r, was);
        return ok;
}

/* Subtracts the number of skipped steps, read from the device, from s->step, and frees the tensor of that number. */
static bool settle(lg__slot *s)
{
        const int64_t skipped = s->skipped ? lg_item_i64(s->skipped) : 0;
        if (s->param->ctx->error)
                return false;
        s->step -= skipped;
        lg__tensor_hold(&s->skipped, NULL);
        return true;
}

/* Names the states of parameter i under the path that the roster has for the parameter (in its module), or under i. */
static bool visit_slot(lg__roster *r, const lg_optimizer *opt, int64_t i)
{
        lg__slot *s = &opt->slots[i];
        char number[32];
        if (!lg__slot_lives(opt, i, r->op) || !settle(s))
                return false;
        snprintf(number, sizeof number, "%lld", (long long)i);
        const char *path = lg__roster_name(r, s->param);
        size_t was = lg__roster_enter(r, path ? path : number);
        bool ok = lg__hold_whole(r, "step", &s->step, LG__HELD_MOST);
        for (int k = 0; k < LG__STATES && ok; k++)
                if (opt->groups[s->group].states >> k & 1)
                        ok = lg__hold_tensor_like(r, opt->rule->states[k], &s->state[k], lg__state_dtype(s->param),
                                                  s->param, LG__HELD_MAY_GO);
        if (ok && lg__slot_has_master(opt, s))
                ok = lg__hold_tensor_like(r, "master", &s->master, LG_F32, s->param, LG__HELD_MAY_GO);
        lg__roster_leave(r, was);
        return ok;
}

bool lg__optimizer_visit(lg__object *o, lg__roster *r)
{
        lg_optimizer *opt = (lg_optimizer *)o;
        bool ok = lg__hold_type(r, opt->rule->name);
        for (int i = 0; i < opt->group_count && ok; i++)
                ok = visit_group(r, &opt->groups[i], i);
        size_t was = lg__roster_enter(r, "state");
        for (int64_t i = 0; i < opt->count && ok; i++)
                ok = visit_slot(r, opt, i);
        lg__roster_leave(r, was);
        return ok;
}

bool lg__scheduler_visit(lg__object *o, lg__roster *r)
{
        lg_scheduler *s = (lg_scheduler *)o;
        bool ok = lg__hold_type(r, s->name) && lg__hold_whole(r, "epoch", &s->epoch, LG__HELD_MOST) &&
                  lg__hold_f64(r, "best", &s->best) && lg__hold_whole(r, "bad", &s->bad, LG__HELD_MOST) &&
                  lg__hold_whole(r, "cooling", &s->cooling, LG__HELD_MOST);
        for (int i = 0; i < s->child_count && ok; i++) {
                char name[16];
                snprintf(name, sizeof name, "%d", i);
                ok = lg__roster_add(r, name, &s->children[i]->object);
        }
        return ok;
}
