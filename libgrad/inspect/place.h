/* place.h - the module and the derivative that run now, for messages and traces. Private to libgrad/inspect/. */
#ifndef LG_INSPECT_PLACE_H
#define LG_INSPECT_PLACE_H

#include "core/observer.h"
#include "graph/op.h"

/* Returns the module that runs now or recorded the node whose derivative runs, as in "0.2 (Conv2d)"; "": none. */
#define LG__PLACE 1104
typedef struct lg__place {
        char s[LG__PLACE];
} lg__place;
lg__place lg__place_now(const lg_ctx *c);
/* Returns the op whose derivative runs now; NULL: none. */
const lg__op *lg__derived_now(const lg_ctx *c);
/* Stores the current module in n->where; an observer's callback `recorded`. */
void lg__note_place(lg__observer *o, lg__node *n);

#endif
