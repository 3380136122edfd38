/* complaints.h - all that is wrong between a file and what it is loaded into, in one message. Private to state/. */
#ifndef LG_STATE_COMPLAINTS_H
#define LG_STATE_COMPLAINTS_H

#include "tensor/tensor.h"

typedef enum lg__complaint {
        LG__DIFFERENT, /* first: the others may follow from it */
        LG__MISSING,
        LG__UNEXPECTED,
        LG__MISSHAPEN,
        LG__MISTYPED,
        LG__COMPLAINTS
} lg__complaint;

/* The first ten of each kind, and how many there are. */
typedef struct lg__complaints {
        int64_t count[LG__COMPLAINTS];
        size_t used[LG__COMPLAINTS];
        char text[LG__COMPLAINTS][LG__MESSAGE / 2];
} lg__complaints;

void lg__complain(lg__complaints *c, lg__complaint kind, const char *format, ...) LG_PRINTF(3, 4);
/* True if there are none; else the error "op: path does not fit: ...", with a hint before the colon. */
bool lg__complaints_end(const lg__complaints *all, lg_ctx *c, const char *op, const char *path, const char *hint);

#endif
