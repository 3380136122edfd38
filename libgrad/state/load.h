/* load.h - rosters from files and into files. Private to state/. */
#ifndef LG_STATE_LOAD_H
#define LG_STATE_LOAD_H

#include "io/safetensors.h"
#include "roster.h"

/* The new value of an item of a roster: a tensor of its dtype and shape on its device, or a number; or its removal. */
typedef struct lg__staged {
        lg__held *to;
        lg_tensor *tensor;
        const struct lg__weight *late; /* its values are put there by others */
        bool goes;
        union {
                int64_t i64;
                uint64_t u64;
                double f64;
                bool flag;
                const char *text; /* of the file that is open */
        } number;
} lg__staged;

/* Puts everything in its place: tensors that are there keep their handles. Only a device that does not work any more
 * can make it fail. */
bool lg__stage_commit(lg__roster *r, lg__staged *all, int64_t count);

/* Puts what a file holds into what the roster names. */
bool lg__state_load(lg__roster *r, const char *path, const lg_load_options *o);
/* Writes what the roster names to a file. */
bool lg__state_save(lg__roster *r, const char *path);
/* read.c. The values of a tensor of a file, in a new tensor; NULL: an error. */
lg_tensor *lg__weight_tensor(lg__weights *w, const lg__weight *e, lg_dtype dtype, lg_device device);
/* The same into t, contiguous and of that shape, in pieces, converted to its dtype. t may be NULL: they are read, to
 * see that they can be. */
bool lg__weight_put(lg__weights *w, const lg__weight *e, lg_tensor *t);

#endif
