/* exports.h - storages that other programs use, and give back in any thread, even after lg_close. Private to libgrad/.
 */
#ifndef LG_EXPORTS_H
#define LG_EXPORTS_H

#include "core/core.h"

/* The first member of a record, from lg__alloc, that is an export. */
typedef struct lg__export {
        struct lg__export *next; /* among those that were given back */
        lg__storage *storage;
        size_t bytes; /* of the whole record */
} lg__export;

/* A new record of so many bytes with a reference to the storage. NULL and an error: no memory. */
lg__export *lg__export_new(lg__storage *s, size_t bytes);
/* Gives it back, in any thread. The record and its storage end when the context collects them; after lg_close, here. */
void lg__export_end(lg__export *e);
/* Ends what was given back. Unless `all`, only what calls no release function: that may be done anywhere. */
void lg__exports_collect(lg_ctx *c, bool all);
/* The end of lg_close: the context is freed, here or by the last of its exports. */
void lg__exports_close(lg_ctx *c);

#endif
