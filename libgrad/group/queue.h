/* queue.h - the queue of requests of all groups over one transport. Private to libgrad/group/. */
#ifndef LG_GROUP_QUEUE_H
#define LG_GROUP_QUEUE_H

#include <pthread.h>
#include <sys/types.h>
#include "group/messages.h"

/* Requests run one after the other: on a thread while the context computes, or on the caller that waits. */
typedef struct lg__queue {
        pthread_mutex_t lock;
        pthread_cond_t added, ended; /* a request that the caller does not wait for yet; any request */
        lg__request *first, *last;
        lg__request *running;         /* not in the list any more */
        bool threaded, started, quit; /* threaded: it may start a thread */
        int waiting;                  /* callers */
        pthread_t thread;
} lg__queue;

/* The transport, and what the groups over it share: the group of all processes and those that were split from it. */
typedef struct lg__world {
        lg_ctx *ctx;
        int groups; /* that use it */
        const lg_transport_api *api;
        lg_transport *t;
        lg__queue queue;
        char *hosts;  /* a fixed number of bytes for each rank */
        int next_tag; /* the first one that this process does not use */
        bool open, broken, orphan;
        pid_t pid; /* of the process that uses it */
        double seconds;
        char version[256]; /* of the MPI */
} lg__world;

void lg__queue_init(lg__queue *q);
/* Ends it, after all requests. */
void lg__queue_finish(lg__queue *q);
/* Waits for a request; NULL: until none is left, so that the caller may use the communicators. */
void lg__queue_wait(lg__queue *q, const lg__request *r);
bool lg__queue_is_idle(lg__queue *q);

/* Bring a group up to date: breaks it in a child of fork(), whose transport and devices its parent uses; breaks it if
 * its device link was given up, and gives the link up if the group is broken. */
void lg__group_check_process(lg_group *g);
void lg__group_check_link(lg_group *g);
/* Gathers `bytes` of every rank under a name. Returns size times as many, which the caller frees with lg__free(), or
 * NULL with an error. */
void *lg__group_gather(lg_group *g, const char *op, const char *name, const void *own, size_t bytes);

/* Opens the link between the group's devices, this rank's being d; called by all ranks. Returns false with an error;
 * else g->link is there on all ranks, or on none, and a message says why. */
bool lg__link_open(lg_group *g, lg__device *d, const char *op);
/* Closes the link, if there is one. broken: not all ranks may be there. */
void lg__link_close(lg_group *g, bool broken);
/* Returns the functions of links of the group's device. */
static inline const lg_device_links *lg__links_of(const lg_group *g)
{
        return g->link_device->api->links;
}

/* Returns the transport of the MPI whose launcher has started this process. NULL, with LG_ERR_COMM or without an error:
 * this process is alone. */
const lg_transport_api *lg__transport_module(lg_ctx *c, int *ret_launched);

#endif
