/* roster.h - a list of the named tensors and numbers that make up the state of objects. Each kind of object has a
 * `visit` that adds its items. Saving, loading, copying and moving process such a list, whatever the objects.
 *
 * A visit adds an item by a call such as lg__hold_tensor(r, "weight", &p->tensor, 0). lg__roster_enter and
 * lg__roster_leave lengthen and shorten the path before its name: "model.0.weight".
 */
#ifndef LG_STATE_ROSTER_H
#define LG_STATE_ROSTER_H

#include "tensor/tensor.h"

typedef enum lg__held_kind {
        LG__HELD_TENSOR,
        LG__HELD_I64,
        LG__HELD_U64,
        LG__HELD_F64,
        LG__HELD_BOOL,
        LG__HELD_TEXT,
        LG__HELD_COUNT
} lg__held_kind;

enum {
        LG__HELD_FIXED = 1,    /* a number or a text that must be equal in a file that is loaded */
        LG__HELD_MAY_GO = 2,   /* a tensor that may be NULL: a load of a file without the tensor removes it */
        LG__HELD_MAY_LACK = 4, /* an item that a file may lack, which leaves the item unchanged */
        LG__HELD_WIDE = 8,     /* a tensor that stays f32 or wider if its module is cast */
        LG__HELD_KERNEL = 16   /* weights of a convolution, in the layout that the device prefers */
};

typedef struct lg__held {
        char *name; /* the whole path, "model.0.weight"; owned */
        lg__held_kind kind;
        unsigned flags;
        void *at;         /* address of the value: lg_tensor **, int64_t *, ... by kind */
        int64_t most;     /* of an i64: greatest value, -1: any; of a text: bytes with the final NUL */
        lg__layout like;  /* of a tensor: dtype and shape, even if *at is NULL */
        lg_device device; /* device of the tensor, even if *at is NULL */
} lg__held;

struct lg__roster {
        lg_ctx *c;
        const char *op;
        char path[LG__PATH];
        size_t length;    /* of path, in bytes */
        bool all_numbers; /* a load fails if the file has numbers that are not items */
        lg__held *items;
        int64_t count, room;
        int64_t named; /* index after the last result of lg__roster_name(), which starts there */
};

/* Initialises an empty roster; op: the public function, for messages. */
void lg__roster_begin(lg__roster *r, lg_ctx *c, const char *op);
void lg__roster_end(lg__roster *r);
/* Adds all items of an object, under that name ("": directly). Returns false with an error. */
bool lg__roster_add(lg__roster *r, const char *name, lg__object *o);
/* Appends a part to the path. Returns the previous length, for lg__roster_leave(). */
size_t lg__roster_enter(lg__roster *r, const char *part);
static inline void lg__roster_leave(lg__roster *r, size_t length)
{
        r->path[r->length = length] = 0;
}
bool lg__hold_tensor(lg__roster *r, const char *name, lg_tensor **at, unsigned flags);
/* Adds a tensor that may be NULL; if not, it has that dtype and like's shape and device. */
bool lg__hold_tensor_like(lg__roster *r, const char *name, lg_tensor **at, lg_dtype dtype, const lg_tensor *like,
                          unsigned flags);
bool lg__hold_i64(lg__roster *r, const char *name, int64_t *at, unsigned flags);
/* Adds a count: a load fails if the file's number is not from 0 to `most`. */
bool lg__hold_whole(lg__roster *r, const char *name, int64_t *at, int64_t most);
#define LG__HELD_MOST (INT64_MAX / 4) /* `most` of a count that is still increased after a load */
/* Adds an int64_t that is stored as a 0-d tensor in files, and may be missing there. */
bool lg__hold_count(lg__roster *r, const char *name, int64_t *at);
bool lg__hold_u64(lg__roster *r, const char *name, uint64_t *at);
bool lg__hold_f64(lg__roster *r, const char *name, double *at);
bool lg__hold_bool(lg__roster *r, const char *name, bool *at);
bool lg__hold_text(lg__roster *r, const char *name, char *at, size_t size);
/* Adds the kind of object as a text: a load fails if the file has another one. type: not copied. */
bool lg__hold_type(lg__roster *r, const char *type);
/* Returns the name of the item that is tensor t; NULL: none is. */
const char *lg__roster_name(lg__roster *r, const lg_tensor *t);
/* Returns the item of that name, or NULL. Call lg__roster_sort() before. */
lg__held *lg__roster_find(const lg__roster *r, const char *name);
/* Orders the items by name. */
void lg__roster_sort(lg__roster *r);

#endif
