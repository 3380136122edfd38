/* group.h - groups of processes as the rooms above see them. Private to libgrad/. */
#ifndef LG_GROUP_PRIVATE_H
#define LG_GROUP_PRIVATE_H

#include "tensor/tensor.h"

typedef enum lg__collective_kind {
        LG__BARRIER,
        LG__ALL_REDUCE,
        LG__BROADCAST,
        LG__ALL_GATHER,
        LG__REDUCE_SCATTER,
        LG__SEND,
        LG__RECEIVE,
        LG__LEAVE /* the end of a group, for messages.c */
} lg__collective_kind;

/* A collective of all ranks, or a message between two of them, which must describe it alike but for the last four
 * members. The shape is that of the tensor that a rank gives; if it only receives, that of the result. */
#define LG__COLLECTIVE_NAME 64
typedef struct lg__collective {
        lg__collective_kind kind;
        lg_dtype dtype;
        lg_reduce_op reduction;
        int root; /* of LG__BROADCAST; of LG__SEND and LG__RECEIVE the other rank */
        lg_shape shape;
        bool recorded;                  /* of LG__SEND and LG__RECEIVE: a gradient will be sent back */
        char name[LG__COLLECTIVE_NAME]; /* of a parameter, for example; may be empty */
        bool linked;                    /* this rank can use a device link for it */
        bool weighted;                  /* `weight` is this rank's in a mean; else it is 1 */
        double weight;
        uint64_t bits; /* all ranks get those that any of them sets */
} lg__collective;

struct lg_group {
        lg__object object;
        uint64_t id;             /* no two groups of a context have the same */
        struct lg__world *world; /* the transport; NULL: there is none */
        struct lg__comm *comm;   /* NULL: a group of one */
        int rank, size, local_rank;
        int *members; /* ranks in the world */
        lg_device device;
        lg_link *link;           /* between the ranks' devices; NULL: none yet, or none can be opened */
        lg__device *link_device; /* this rank's */
        bool link_tried;         /* to open */
};

/* A collective that runs while the context goes on. The caller sets `what`, in and out, and keeps the record until
 * lg__request_end(); the rest is queue.c's. */
typedef struct lg__request {
        lg__collective what;
        const lg_tensor *in; /* contiguous, as is out, on the same device, and perhaps the same tensor; NULL: none */
        lg_tensor *out;
        uint64_t bits; /* after its end: of all ranks */
        struct lg__request *next;
        struct lg__comm *comm;
        const void *from; /* in the memory of the host, as is `to` */
        void *to;
        lg_tensor *host_in, *host_out; /* owned: from and to, for tensors on a device; NULL: none */
        double share;                  /* of this rank's weight in the sum of all weights */
        uint64_t ticket;               /* of the device link; 0: none */
        bool agreed;                   /* the ranks have compared their descriptions */
        bool linked;                   /* all ranks can use a device link */
        bool weighted, done, ok;       /* weighted: not all weights are 1 */
} lg__request;

/* Run a collective and wait for its end: on memory of the host, or on tensors as in an lg__request. Return false, with
 * LG_ERR_COMM, if the group is broken. */
bool lg__group_run(lg_group *g, const char *op, const lg__collective *what, const void *in, void *out);
bool lg__group_tensors(lg_group *g, const char *op, const lg__collective *what, const lg_tensor *in, lg_tensor *out);
/* Begin a collective, in the order of calls, and wait for its end. A weighted mean needs out = in. Neither waits for a
 * device. early: the caller does not wait yet. A request that could not begin has no end; of a group that was freed
 * (NULL), the end frees the request. */
bool lg__request_begin(lg_group *g, const char *op, lg__request *r, bool early);
bool lg__request_end(lg_group *g, const char *op, lg__request *r);
/* Returns the group of that id; NULL, with LG_ERR_STATE, if it was freed. */
lg_group *lg__group_find(lg_ctx *c, uint64_t id, const char *op);
/* Returns whether g is a group of c that is not being freed; an error of c is reported to the group. */
bool lg__group_ready(lg_ctx *c, lg_group *g, const char *op);

#endif
