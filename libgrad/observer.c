/* observer.c - who looks on, and where in the program. */
#include <string.h>
#include "observer.h"

void lg__observe(lg_ctx *c, lg__observer *o)
{
        lg__observer **end = &c->observers;
        while (*end)
                end = &(*end)->next;
        o->next = NULL;
        *end = o;
}

void lg__unobserve(lg_ctx *c, lg__observer *o)
{
        lg__observer **at = &c->observers;
        while (*at && *at != o)
                at = &(*at)->next;
        if (*at)
                *at = o->next;
        if (c->next_observer == o)
                c->next_observer = o->next;
}

lg__place lg__place_now(const lg_ctx *c)
{
        lg__place p = {""};
        const lg__frame *f = c->frame;
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
