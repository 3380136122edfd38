/* observer.c - attaches observers to a context and detaches them. */
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

void lg__span_enter(lg_ctx *c, lg__frame *f, const char *label, const char *of, lg__device *d)
{
        *f = (lg__frame){.outer = c->frame, .label = label, .of = of, .device = d};
        c->frame = f;
        LG__NOTIFY(c, enter, f);
}

void lg__span_leave(lg_ctx *c, const lg__frame *f)
{
        LG__NOTIFY(c, leave, f);
        c->frame = f->outer;
}
