/* place.h - where in the program something runs. Private to libgrad/inspect/. */
#ifndef LG_INSPECT_PLACE_H
#define LG_INSPECT_PLACE_H

#include "core/observer.h"
#include "graph/op.h"

/* The module that ran or recorded what runs now, "0.2 (Conv2d)"; "" outside of modules. */
#define LG__PLACE 1104
typedef struct lg__place {
        char s[LG__PLACE];
} lg__place;
lg__place lg__place_now(const lg_ctx *c);
/* The op whose derivative runs now; NULL: none does. */
const lg__op *lg__derived_now(const lg_ctx *c);
/* A callback for `recorded`: the node remembers the module. */
void lg__note_place(lg__observer *o, lg__node *n);

#endif
