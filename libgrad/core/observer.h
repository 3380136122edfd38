/* observer.h - those who look on while a context works: traces, anomaly detection, memory by module. Each attaches a
 * table of callbacks; nobody is looked for by name. What they do changes neither which kernels run nor what these
 * compute. Private to libgrad/. */
#ifndef LG_OBSERVER_H
#define LG_OBSERVER_H

#include "core/core.h"

typedef struct lg__call lg__call;
typedef struct lg__vjp lg__vjp;

/* What runs around ops, on the stack of the function that runs it: the forward of a module, or the derivative of a node
 * in a backward. */
struct lg__frame {
        const lg__frame *outer;
        const lg__node *node;                                      /* whose derivative runs; NULL: a module */
        lg_module *module;                                         /* whose forward runs; NULL: a node */
        lg__device *device;                                        /* of a module's first input; NULL: it has none */
        void (*name)(const lg_module *m, char *text, size_t size); /* "0.2 (Conv2d)", for other rooms than nn/ */
};

/* Any callback may be NULL. Those of begin and end, enter and leave come in pairs, also where what they enclose fails;
 * an observer that attaches within misses the first of a pair. A callback may set the context's error: what it was told
 * of then fails. What a callback does itself is not observed. */
struct lg__observer {
        lg__observer *next;
        /* An op, after its checks and casts; a composite, with the ops that it is made of in between. */
        void (*op_begin)(lg__observer *o, const lg__call *call);
        void (*op_end)(lg__observer *o, const lg__call *call, bool ok);
        void (*recorded)(lg__observer *o, lg__node *n); /* before its results know it */
        /* A derivative that is a kernel, and not ops. */
        void (*fused_begin)(lg__observer *o, const lg__vjp *v);
        void (*fused_end)(lg__observer *o, const lg__vjp *v, bool ok);
        void (*enter)(lg__observer *o, const lg__frame *f);
        void (*leave)(lg__observer *o, const lg__frame *f);
        void (*copied)(lg__observer *o, const lg__device *to, const lg__device *from, size_t bytes);
        void (*allocated)(lg__observer *o, const lg__device *d, int64_t bytes); /* negative: freed */
};

/* Attaches o, which stays where it is, behind the others; detaches it if it is attached. */
void lg__observe(lg_ctx *c, lg__observer *o);
void lg__unobserve(lg_ctx *c, lg__observer *o);

/* LG__TELL(c, op_end, call, true) calls that callback of all observers, unless it is one of them that calls. */
#define LG__TELL(c, event, ...)                                                                                        \
        do {                                                                                                           \
                lg__observer *told_ = (c)->observers;                                                                  \
                if (!told_ || (c)->observing)                                                                          \
                        break;                                                                                         \
                (c)->observing = true;                                                                                 \
                for (; told_; told_ = (c)->next_observer) {                                                            \
                        (c)->next_observer = told_->next;                                                              \
                        if (told_->event)                                                                              \
                                told_->event(told_, __VA_ARGS__);                                                      \
                }                                                                                                      \
                (c)->observing = false;                                                                                \
        } while (0)

#endif
