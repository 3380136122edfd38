/* observer.h - observers of a context: traces, anomaly detection, memory by module. Each attaches a table of
 * callbacks. Observers change neither which kernels run nor what these compute. Private to libgrad/. */
#ifndef LG_OBSERVER_H
#define LG_OBSERVER_H

#include "core/core.h"

typedef struct lg__call lg__call;
typedef struct lg__vjp lg__vjp;

/* Frame around ops, on the stack of the function that creates it: a module's forward, or a node's derivative. */
struct lg__frame {
        const lg__frame *outer;
        const lg__node *node; /* node whose derivative runs, or NULL for a module */
        lg_module *module;    /* module whose forward runs, or NULL for a node */
        lg__device *device;   /* device of the module's first input, or NULL if it has no input */
        void (*name)(const lg_module *m, char *text, size_t size); /* writes path and type, "0.2 (Conv2d)" */
};

/* Any callback may be NULL. Begin and end, and enter and leave, are called in pairs, even if the operation between
 * them fails; an observer attached in between misses the first of a pair. A callback may set the context's error,
 * which makes the observed operation fail. Operations that a callback runs are not observed. */
struct lg__observer {
        lg__observer *next;
        /* An op, after its checks and casts; for a composite, the ops that it applies are reported in between. */
        void (*op_begin)(lg__observer *o, const lg__call *call);
        void (*op_end)(lg__observer *o, const lg__call *call, bool ok);
        void (*recorded)(lg__observer *o, lg__node *n); /* node n was created; its results do not refer to it yet */
        /* A derivative computed by a kernel instead of ops. */
        void (*fused_begin)(lg__observer *o, const lg__vjp *v);
        void (*fused_end)(lg__observer *o, const lg__vjp *v, bool ok);
        void (*enter)(lg__observer *o, const lg__frame *f);
        void (*leave)(lg__observer *o, const lg__frame *f);
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

#endif
