/* group.h - groups of processes as the rooms above see them. Private to libgrad/. */
#ifndef LG_GROUP_PRIVATE_H
#define LG_GROUP_PRIVATE_H

#include "group/exchange.h"
#include "tensor/tensor.h"

/* The connections of this process, used by a group and those that were split from it. */
typedef struct lg__world lg__world;

struct lg_group {
        lg__object object;
        uint64_t id;      /* no two groups of a context have the same */
        lg__world *world; /* NULL: alone */
        lg__peer *peer;   /* NULL: alone */
        int rank, size, local_rank;
        int *members; /* ranks in the world */
        lg_device device;
        double seconds;     /* the time limit */
        lg_link *link;      /* between the ranks' devices; NULL: not yet, or there is none */
        lg__device *linked; /* whose it is */
        bool linkless;      /* joining was tried */
};

/* What an errand does of its operation. */
typedef enum lg__errand_part { LG__ALL_OF_IT, LG__AGREEMENT, LG__DATA } lg__errand_part;

/* An operation that others carry out while the context goes on; its memory stays until it was waited for. */
typedef struct lg__errand {
        struct lg__errand *next;
        lg__peer *peer;
        lg__joint joint;
        lg__errand_part part;
        const void *in;
        void *out;
        double share;  /* after it: of the sum of all weights */
        bool weighted; /* not all weights are 1 */
        bool linked;   /* all may exchange it from device to device */
        uint64_t bits;
        bool done, ok;
} lg__errand;

/* Does an operation, and waits for its end; false, with LG_ERR_COMM: the group is broken. A context with an error tells
 * the group, which is broken then. */
bool lg__group_run(lg_group *g, const char *op, const lg__joint *j, const void *in, void *out);
/* The same in two parts. The first may run it in the background, in the order of calls. */
void lg__group_begin(lg_group *g, lg__errand *e);
bool lg__group_end(lg_group *g, const char *op, lg__errand *e);
/* The same of tensors, contiguous ones, on any device. */
bool lg__group_tensors(lg_group *g, const char *op, const lg__joint *j, const lg_tensor *in, lg_tensor *out);
/* What comes before an operation on memory of d, whose joint e has. e->linked: all ranks have agreed, and e has what
 * they said; the data goes by lg__group_link(). Else e goes on, on memory of the host, by lg__group_begin(). */
bool lg__group_agree(lg_group *g, const char *op, lg__device *d, lg__errand *e);
/* Sets off an operation on memory of the device, beside what the device does; then lets what the device gets later come
 * after it. The host waits for neither. */
bool lg__group_link(lg_group *g, const char *op, const lg__joint *j, const void *in, void *out, uint64_t *ret_mark);
bool lg__group_linked(lg_group *g, const char *op, uint64_t mark);
/* The group of that id; NULL, with LG_ERR_STATE: it was freed. */
lg_group *lg__group_find(lg_ctx *c, uint64_t id, const char *op);
/* True for a group of c that is not being freed; a context with an error tells the group. */
bool lg__group_ready(lg_ctx *c, lg_group *g, const char *op);

/* The transport of the MPI whose launcher has started this process; NULL and LG_ERR_COMM, or NULL without an error:
 * this process is alone. */
const lg_transport_api *lg__transport_module(lg_ctx *c, int *ret_launched);

#endif
