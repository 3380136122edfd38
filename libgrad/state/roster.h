/* roster.h - what objects hold that outlives a step, by name: tensors and numbers. Saving, loading, copying and
 * comparing go over such a list, which the objects' visits make, and know nothing of the objects.
 *
 * A visit names what it holds: lg__hold_tensor(r, "weight", &p->tensor). Names within it are in a path that
 * lg__roster_enter and lg__roster_leave lengthen and shorten: "model.0.weight".
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
        LG__HELD_FIXED = 1,    /* a number or a text that a load must find as it is */
        LG__HELD_MAY_GO = 2,   /* a tensor that may not be there: a load that finds none removes it */
        LG__HELD_MAY_LACK = 4, /* a load that does not find it leaves it as it is */
        LG__HELD_WIDE = 8,     /* a tensor that is at least f32 */
        LG__HELD_KERNEL = 16   /* weights of a convolution, which lie as its device wants them */
};

typedef struct lg__held {
        char *name; /* the whole path */
        lg__held_kind kind;
        unsigned flags;
        void *at;         /* lg_tensor **, int64_t *, ... */
        int64_t most;     /* of a count, -1: any number; of a text: bytes, its end included */
        lg__layout like;  /* of a tensor: dtype and shape, there or not */
        lg_device device; /* where it is, or would be */
} lg__held;

struct lg__roster {
        lg_ctx *c;
        const char *op;
        char path[LG__PATH];
        size_t length;    /* of the path */
        bool all_numbers; /* a load reports numbers of the file that are not among the items */
        lg__held *items;
        int64_t count, room;
        int64_t named; /* where lg__roster_name found one last: the next is most often behind it */
};

/* Begins an empty roster for a function. */
void lg__roster_begin(lg__roster *r, lg_ctx *c, const char *op);
void lg__roster_end(lg__roster *r);
/* All that an object holds, under that name ("" for none). */
bool lg__roster_add(lg__roster *r, const char *name, lg__object *o);
/* Goes into a part: returns what lg__roster_leave takes. */
size_t lg__roster_enter(lg__roster *r, const char *part);
static inline void lg__roster_leave(lg__roster *r, size_t length)
{
        r->path[r->length = length] = 0;
}
bool lg__hold_tensor(lg__roster *r, const char *name, lg_tensor **at, unsigned flags);
/* A tensor that may be NULL, and is of that dtype and of like's shape and device if not. */
bool lg__hold_tensor_like(lg__roster *r, const char *name, lg_tensor **at, lg_dtype dtype, const lg_tensor *like,
                          unsigned flags);
bool lg__hold_i64(lg__roster *r, const char *name, int64_t *at, unsigned flags);
/* A count: a load refuses one that is not from 0 to `most`. */
bool lg__hold_whole(lg__roster *r, const char *name, int64_t *at, int64_t most);
#define LG__HELD_MOST (INT64_MAX / 4) /* of a count that goes on */
/* An int64_t that is a 0-d tensor in files, which may lack it. */
bool lg__hold_count(lg__roster *r, const char *name, int64_t *at);
bool lg__hold_u64(lg__roster *r, const char *name, uint64_t *at);
bool lg__hold_f64(lg__roster *r, const char *name, double *at);
bool lg__hold_bool(lg__roster *r, const char *name, bool *at);
bool lg__hold_text(lg__roster *r, const char *name, char *at, size_t size);
/* The kind of object, in words that last: a load must find the same, unless the file does not say. */
bool lg__hold_type(lg__roster *r, const char *type);
/* The name under which a tensor is held already; NULL: it is not. */
const char *lg__roster_name(lg__roster *r, const lg_tensor *t);
/* The item of that name, or NULL. After lg__roster_sort. */
lg__held *lg__roster_find(const lg__roster *r, const char *name);
/* Orders the items by name. */
void lg__roster_sort(lg__roster *r);

#endif
