/* group.h - groups of processes and their collectives, for the other folders of libgrad. Private to libgrad/. */
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
        LG__LEAVE /* a rank leaves the group; used within group/ only */
} lg__collective_kind;

/* Describes a collective of all ranks, or a message between two of them. The ranks that take part must give equal
 * descriptions, but for the last four members. shape: of the rank's input tensor or, without an input, of its output.
 */
#define LG__COLLECTIVE_NAME 64
typedef struct lg__collective {
        lg__collective_kind kind;
        lg_dtype dtype;
        lg_reduce_op reduction;
        int root; /* the root of LG__BROADCAST; the other rank of LG__SEND and LG__RECEIVE */
        lg_shape shape;
        bool recorded;                  /* of LG__SEND and LG__RECEIVE: a gradient will be sent back */
        char name[LG__COLLECTIVE_NAME]; /* of a parameter, for example, for error messages; may be empty */
        bool linked;                    /* this rank can use a device link for the collective */
        bool weighted;                  /* `weight` is this rank's weight in a mean; false: the weight is 1 */
        double weight;
        uint64_t bits; /* this rank's bits; all ranks get the OR of all ranks' bits */
} lg__collective;

struct lg_group {
        lg__object object;
        uint64_t id;             /* unique among the groups of a context */
        struct lg__world *world; /* the transport and what groups share; NULL: this process is alone */
        struct lg__comm *comm;   /* exchanges messages; NULL: a group of one */
        int rank, size, local_rank;
        int *members; /* the members' ranks in the transport */
        lg_device device;
        lg_link *link;           /* between the ranks' devices; NULL: not opened yet, or not possible */
        lg__device *link_device; /* the device of this rank that the link connects */
        bool link_tried;         /* lg__link_open() was called, with or without success */
};

/* An asynchronous collective. The caller sets `what`, in and out, and keeps the record until lg__request_end(); queue.c
 * sets the other members. */
typedef struct lg__request {
        lg__collective what;
        const lg_tensor *in; /* in and out are contiguous, on one device, and may be the same tensor; NULL: none */
        lg_tensor *out;
        uint64_t bits; /* after the end: the OR of what.bits of all ranks */
        struct lg__request *next;
        struct lg__comm *comm;
        const void *from; /* the input and output in host memory */
        void *to;
        lg_tensor *host_in, *host_out; /* owned host copies, if in and out are on a device; NULL: none */
        double share;                  /* this rank's weight over the sum of all weights */
        uint64_t ticket;               /* names the operation of the device link; 0: none */
        bool agreed;                   /* the ranks have compared their descriptions */
        bool linked;                   /* all ranks can use a device link */
        bool weighted, done, ok;       /* weighted: not all weights are 1 */
} lg__request;

/* Run a collective and wait for its end: on host memory, or on tensors (in and out as in lg__request). Return false,
 * with LG_ERR_COMM, if the group is broken. */
bool lg__group_run(lg_group *g, const char *op, const lg__collective *what, const void *in, void *out);
bool lg__group_tensors(lg_group *g, const char *op, const lg__collective *what, const lg_tensor *in, lg_tensor *out);
/* Start a collective, in the order of calls, and wait for its end. On a device link, neither waits for the device. A
 * weighted mean needs out = in. early: the caller does not wait yet. Call the end only after a begin that returned
 * true; if the group was freed, with g = NULL, to free the request's copies. */
bool lg__request_begin(lg_group *g, const char *op, lg__request *r, bool early);
bool lg__request_end(lg_group *g, const char *op, lg__request *r);
/* Returns the group of c with that id; NULL, with LG_ERR_STATE, if the group was freed. */
lg_group *lg__group_find(lg_ctx *c, uint64_t id, const char *op);
/* Returns whether g is a group of c (NULL: of any context) that is not being freed, and no error is set. An error that
 * is set is reported to the other ranks. */
bool lg__group_ready(lg_ctx *c, lg_group *g, const char *op);

#endif
