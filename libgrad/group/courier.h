/* courier.h - who carries out the operations of groups: in their order, by a thread while the context computes, or by
 * the caller. Private to libgrad/group/. */
#ifndef LG_COURIER_H
#define LG_COURIER_H

#include "group/group.h"

typedef struct lg__courier lg__courier;

/* NULL and LG_ERR_MEMORY: no memory. */
lg__courier *lg__courier_new(lg_ctx *c);
/* It may have a thread, from the first early errand on. */
void lg__courier_allow_thread(lg__courier *q);
/* After all errands; NULL: nothing. */
void lg__courier_free(lg_ctx *c, lg__courier *q);
/* In a child of fork(), which has no thread: what is left to do has failed. */
void lg__courier_orphan(lg__courier *q);
/* Takes an errand, which stays the caller's. `early`: the caller does not wait for it yet. */
void lg__courier_take(lg__courier *q, lg__errand *e, bool early);
/* Until that errand is done. */
void lg__courier_wait(lg__courier *q, const lg__errand *e);
/* Until nothing is left to do: then the caller may use the peers. */
void lg__courier_rest(lg__courier *q);
/* Nothing is left to do, and nobody is at it. */
bool lg__courier_is_idle(lg__courier *q);

#endif
