/* load.h - loading state entries from a file, and saving them. Private to state/. */
#ifndef LG_STATE_LOAD_H
#define LG_STATE_LOAD_H

#include "io/safetensors.h"
#include "entries.h"

/* The new value of an entry: a tensor with the entry's dtype, shape and device, or a number; or its removal. */
typedef struct lg__staged {
        lg__state_entry *to;
        lg_tensor *tensor;
        const struct lg__weight *reread; /* put_reread() reads the values from the file; NULL: see `tensor` */
        bool removed;                    /* the entry's tensor is removed */
        union {
                int64_t i64;
                uint64_t u64;
                double f64;
                bool flag;
                const char *text; /* in memory of the open file */
        } number;
} lg__staged;

/* Stores all new values in their entries. Existing tensors keep their handles. Fails only if a device fails. */
bool lg__stage_commit(lg__state_entries *list, lg__staged *all, int64_t count);

/* Loads the entries of list from a safetensors file. Returns false with an error. */
bool lg__state_load(lg__state_entries *list, const char *path, const lg_load_options *o);
/* Saves the entries of list to a safetensors file. Returns false with an error. */
bool lg__state_save(lg__state_entries *list, const char *path);
/* Returns a new tensor with the values of a file's tensor e, converted to dtype. NULL: an error. (read.c) */
lg_tensor *lg__weight_tensor(lg__weights *w, const lg__weight *e, lg_dtype dtype, lg_device device);
/* Reads the values of e in pieces into t, of e's shape and any layout, converted to t's dtype. If t is NULL, reads and
 * discards them, to check that they can be read. */
bool lg__weight_put(lg__weights *w, const lg__weight *e, lg_tensor *t);

#endif
