/* watch.h - who looks on while ops run: traces and the search for the first NaN. Private to libgrad/. */
#ifndef LG_WATCH_H
#define LG_WATCH_H

#include "op.h"

typedef struct lg__watch {
        lg_trace_fn *trace_fn; /* NULL: nothing is traced */
        lg_trace_options trace;
        bool anomaly_on;
        lg_anomaly_options anomaly;
        bool busy;          /* its own ops are not watched */
        const lg__node *of; /* the node whose derivative runs */
} lg__watch;

/* Before a kernel: the time, if somebody watches. */
double lg__watch_start(lg_ctx *c);
/* After an op: tells it; false and an error if it made a NaN. */
bool lg__watch_op(const lg__call *call, double start);
/* After a fused derivative: the same. */
bool lg__watch_fused(const lg__vjp *v, double start);
/* A derivative begins and ends: ops that run meanwhile are of that node. */
static inline const lg__node *lg__watch_enter(lg_ctx *c, const lg__node *n)
{
        const lg__node *outer = c->watch ? c->watch->of : NULL;
        if (c->watch)
                c->watch->of = n;
        return outer;
}
static inline void lg__watch_leave(lg_ctx *c, const lg__node *outer)
{
        if (c->watch)
                c->watch->of = outer;
}
/* The end of a context. */
void lg__watch_finish(lg_ctx *c);
/* "0.2 (Conv2d)" of the module that runs, for a node; NULL: none, or no memory. */
char *lg__watch_where(lg_ctx *c);

#endif
