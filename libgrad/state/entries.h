/* entries.h - a list of the named tensors and numbers that make up the state of objects. Each kind of object has a
 * `visit` that adds its entries. Saving, loading, copying and moving process such a list, whatever the objects.
 *
 * A visit adds an entry by a call such as lg__state_add_tensor(list, "weight", &p->tensor, 0). lg__state_entries_enter
 * and lg__state_entries_leave lengthen and shorten the path before its name: "model.0.weight".
 */
#ifndef LG_STATE_ENTRIES_H
#define LG_STATE_ENTRIES_H

#include "tensor/tensor.h"

typedef enum lg__entry_kind {
        LG__ENTRY_TENSOR,
        LG__ENTRY_I64,
        LG__ENTRY_U64,
        LG__ENTRY_F64,
        LG__ENTRY_BOOL,
        LG__ENTRY_TEXT,
        LG__ENTRY_COUNT
} lg__entry_kind;

enum {
        LG__ENTRY_FIXED = 1,     /* a number or a text that must be equal in a file that is loaded */
        LG__ENTRY_REMOVABLE = 2, /* a tensor that may be NULL: a load of a file without the tensor removes it */
        LG__ENTRY_OPTIONAL = 4,  /* an entry that a file may lack, which leaves it unchanged */
        LG__ENTRY_WIDE = 8,      /* a tensor that stays f32 or wider if its module is cast */
        LG__ENTRY_KERNEL = 16    /* weights of a convolution, in the layout that the device prefers */
};

typedef struct lg__state_entry {
        char *name; /* the whole path, "model.0.weight"; owned */
        lg__entry_kind kind;
        unsigned flags;
        void *at;         /* address of the value: lg_tensor **, int64_t *, ... by kind */
        int64_t most;     /* of an i64: greatest value, -1: any; of a text: bytes with the final NUL */
        lg__layout like;  /* of a tensor: dtype and shape, even if *at is NULL */
        lg_device device; /* device of the tensor, even if *at is NULL */
} lg__state_entry;

struct lg__state_entries {
        lg_ctx *c;
        const char *op;
        char path[LG__PATH];
        size_t length;    /* of path, in bytes */
        bool all_numbers; /* a load fails if the file has numbers that are not entries */
        lg__state_entry *items;
        int64_t count, room;
        int64_t named; /* index after the last result of lg__state_entries_name(), which starts there */
};

/* Initialises an empty list; op: the public function, for messages. */
void lg__state_entries_begin(lg__state_entries *list, lg_ctx *c, const char *op);
void lg__state_entries_end(lg__state_entries *list);
/* Adds all entries of an object, under that name ("": directly). Returns false with an error. */
bool lg__state_add_object(lg__state_entries *list, const char *name, lg__object *o);
/* Appends a part to the path. Returns the previous length, for lg__state_entries_leave(). */
size_t lg__state_entries_enter(lg__state_entries *list, const char *part);
static inline void lg__state_entries_leave(lg__state_entries *list, size_t length)
{
        list->path[list->length = length] = 0;
}
bool lg__state_add_tensor(lg__state_entries *list, const char *name, lg_tensor **at, unsigned flags);
/* Adds a tensor that may be NULL; if not, it has that dtype and like's shape and device. */
bool lg__state_add_tensor_like(lg__state_entries *list, const char *name, lg_tensor **at, lg_dtype dtype,
                               const lg_tensor *like, unsigned flags);
/* Adds a tensor that may be NULL; if not, it has that dtype, shape and device. */
bool lg__state_add_tensor_shaped(lg__state_entries *list, const char *name, lg_tensor **at, lg_dtype dtype,
                                 lg_shape shape, lg_device device, unsigned flags);
bool lg__state_add_i64(lg__state_entries *list, const char *name, int64_t *at, unsigned flags);
/* Adds a count: a load fails if the file's number is not from 0 to `most`. */
bool lg__state_add_whole(lg__state_entries *list, const char *name, int64_t *at, int64_t most);
#define LG__COUNT_MOST (INT64_MAX / 4) /* `most` of a count that is still increased after a load */
/* Adds an int64_t that is stored as a 0-d tensor in files, and may be missing there. */
bool lg__state_add_count(lg__state_entries *list, const char *name, int64_t *at);
bool lg__state_add_u64(lg__state_entries *list, const char *name, uint64_t *at);
bool lg__state_add_f64(lg__state_entries *list, const char *name, double *at);
bool lg__state_add_bool(lg__state_entries *list, const char *name, bool *at);
bool lg__state_add_text(lg__state_entries *list, const char *name, char *at, size_t size);
/* Adds the kind of object as a text: a load fails if the file has another one. type: not copied. */
bool lg__state_add_type(lg__state_entries *list, const char *type);
/* Returns the name of the entry that is tensor t; NULL: none is. */
const char *lg__state_entries_name(lg__state_entries *list, const lg_tensor *t);
/* Returns the entry of that name, or NULL. Call lg__state_entries_sort() before. */
lg__state_entry *lg__state_entries_find(const lg__state_entries *list, const char *name);
/* Orders the entries by name. */
void lg__state_entries_sort(lg__state_entries *list);

#endif
