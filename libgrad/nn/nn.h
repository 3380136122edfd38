/* nn.h - what a module is: a record with named parts (parameters, buffers, children) and a forward. Private to nn/. */
#ifndef LG_NN_PRIVATE_H
#define LG_NN_PRIVATE_H

#include "../core.h"

#define LG__PATH 1024 /* bytes of the longest path to a part */

typedef enum lg__part_kind { LG__PARAMETER = 1, LG__BUFFER = 2, LG__CHILD = 4 } lg__part_kind;

/* A named part of a module, in the order in which they were added. */
typedef struct lg__part {
        struct lg__part *next;
        lg__part_kind kind;
        char *name;
        lg_tensor *tensor; /* owned; of parameters and buffers */
        lg_module *child;  /* owned */
} lg__part;

struct lg_module {
        lg__object object; /* in the context's list as long as there is no parent */
        lg_module *parent;
        const char *name; /* of the part of the parent that it is */
        char *type;
        lg_forward_fn *forward;
        void *user;
        void (*release)(void *user);
        bool training, was_training; /* the latter while lg_module_print runs */
        lg__part *parts, **end;
        lg_tensor **list; /* what lg_parameters() gave; NULL after a change of structure */
        int64_t list_count;
        lg_shape shape; /* of the last forward's result, for lg_module_print */
        bool has_shape;
};

/* A module without parts; NULL while an error is set. */
lg_module *lg__module_new(lg_ctx *c, const char *type, lg_forward_fn *forward);
/* m takes the child under that name, or an error of `op`. */
bool lg__module_attach(lg_module *m, const char *name, lg_module *child, const char *op);
/* Undoes what was begun: children go back to the context, the module is destroyed. Returns NULL. */
lg_module *lg__module_give_up(lg_module *m);
/* The input of a module that takes one, or NULL and LG_ERR_ARGUMENT. */
lg_tensor *lg__module_input(const lg_module *m, lg_list inputs);
/* The part of m with that name, of one of the kinds; NULL: none. */
lg__part *lg__module_part(const lg_module *m, const char *name, size_t length, int kinds);
/* "0.2" into text, from the outermost module on; "" for that one itself. Returns text. */
const char *lg__module_path(const lg_module *m, char text[LG__PATH]);
/* The next module after m within root, depth first; NULL: none. Begin with root itself. */
lg_module *lg__module_next(const lg_module *m, const lg_module *root);

#endif
