/* place.c - finds the module and the derivative that run now. */
#include "place.h"

lg__place lg__place_now(const lg_ctx *c)
{
        lg__place p = {""};
        const lg__frame *f = c->frame;
        while (f && f->label)
                f = f->outer;
        if (f && f->module)
                f->name(f->module, p.s, sizeof p.s);
        else if (f && f->node->where)
                snprintf(p.s, sizeof p.s, "%s", f->node->where);
        return p;
}

const lg__op *lg__derived_now(const lg_ctx *c)
{
        const lg__frame *f = c->frame;
        while (f && !f->node)
                f = f->outer;
        return f ? f->node->op : NULL;
}

void lg__note_place(lg__observer *o, lg__node *n)
{
        (void)o;
        lg__place place = lg__place_now(n->ctx);
        if (*place.s && !n->where)
                n->where = lg__strdup(n->ctx, place.s);
}
