/* observer.h - observers of a context: traces, anomaly detection, memory by module. Each attaches a table of
 * callbacks. Observers change neither which kernels run nor what these compute. Private to libgrad/. */
#ifndef LG_OBSERVER_H
#define LG_OBSERVER_H

#include "core/core.h"

typedef struct lg__call lg__call;
typedef struct lg__vjp lg__vjp;

/* Frame around ops, on the stack of the function that creates it: a module's forward, a node's derivative, or a named
 * span of other work. One of node, module and label is set. */
struct lg__frame {
        const lg__frame *outer;
        const lg__node *node; /* node whose derivative runs */
        lg_module *module;    /* module whose forward runs */
        const char *label;    /* name of a span, such as "backward"; a string constant, or the name of a region */
        const char *of;       /* of a span: word before the label, such as "adam" before "step", or NULL */
        lg__device *device;   /* device of the module's first input, or on which the span works; NULL: none */
        void (*name)(const lg_module *m, char *text, size_t size); /* writes path and type, "0.2 (Conv2d)" */
        bool region;                                               /* a span that lg_region() has named */
};

/* Any callback may be NULL. Begin and end, and enter and leave, are called in pairs, even if the operation between
 * them fails; an observer attached in between misses the first of a pair. A callback may set the context's error,
 * which makes the observed operation fail. Operations that a callback runs are not observed. */
struct lg__observer {
        lg__observer *next;
        /* An op, after its checks and casts and before its outputs are created; for a composite, the ops that it
         * applies are reported in between. */
        void (*op_begin)(lg__observer *o, const lg__call *call);
        void (*op_end)(lg__observer *o, const lg__call *call, bool ok);
        void (*recorded)(lg__observer *o, lg__node *n); /* node n was created; its results do not refer to it yet */
        /* A derivative computed by a kernel instead of ops. */
        void (*fused_begin)(lg__observer *o, const lg__vjp *v);
        void (*fused_end)(lg__observer *o, const lg__vjp *v, bool ok);
        void (*enter)(lg__observer *o, const lg__frame *f);
        void (*leave)(lg__observer *o, const lg__frame *f);
        /* A leaf whose gradient is read, or freed, by others than ops; called only in a recorded run. */
        void (*leaf)(lg__observer *o, lg_tensor *t, bool read);
        void (*copied)(lg__observer *o, const lg__device *to, const lg__device *from, size_t bytes);
        void (*allocated)(lg__observer *o, const lg__device *d, int64_t bytes); /* bytes allocated; negative if freed */
};

/* Attaches o after the other observers, or detaches o. The caller owns o, which must not move while attached. */
void lg__observe(lg_ctx *c, lg__observer *o);
void lg__unobserve(lg_ctx *c, lg__observer *o);

/* LG__NOTIFY(c, op_end, call, true) calls op_end of all observers, unless a callback of an observer is running. */
#define LG__NOTIFY(c, event, ...)                                                                                      \
        do {                                                                                                           \
                lg__observer *observer_ = (c)->observers;                                                              \
                if (!observer_ || (c)->observing)                                                                      \
                        break;                                                                                         \
                (c)->observing = true;                                                                                 \
                for (; observer_; observer_ = (c)->next_observer) {                                                    \
                        (c)->next_observer = observer_->next;                                                          \
                        if (observer_->event)                                                                          \
                                observer_->event(observer_, __VA_ARGS__);                                              \
                }                                                                                                      \
                (c)->observing = false;                                                                                \
        } while (0)

/* Begins a named span in frame f, uninitialised, or ends it. Without observers there is no frame. d may be NULL. */
void lg__span_enter(lg_ctx *c, lg__frame *f, const char *label, const char *of, lg__device *d);
void lg__span_leave(lg_ctx *c, const lg__frame *f);
static inline void lg__span_begin(lg_ctx *c, lg__frame *f, const char *label, const char *of, lg__device *d)
{
        if (c->observers)
                lg__span_enter(c, f, label, of, d);
}
static inline void lg__span_end(lg_ctx *c, const lg__frame *f)
{
        if (c->frame == f)
                lg__span_leave(c, f);
}

#endif
