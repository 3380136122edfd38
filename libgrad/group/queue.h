/* queue.h - the queue of requests of all groups over one transport. Private to libgrad/group/. */
#ifndef LG_GROUP_QUEUE_H
#define LG_GROUP_QUEUE_H

#include <pthread.h>
#include <sys/types.h>
#include "group/messages.h"

/* Requests that run one after the other: on a worker thread while the caller computes, or on a caller that waits. */
typedef struct lg__queue {
        pthread_mutex_t lock;
        pthread_cond_t added, ended; /* signalled: a request that no caller waits for was added; a request ended */
        lg__request *first, *last;
        lg__request *running;         /* the request that runs, removed from the list; NULL: none */
        bool threaded, started, quit; /* a thread may be started; a thread was started; the thread must end */
        int waiting;                  /* number of callers that wait */
        pthread_t thread;
} lg__queue;

/* The transport, and the state shared by the groups that use it: the group of all processes and those split from it. */
typedef struct lg__world {
        lg_ctx *ctx;
        int groups; /* number of groups that use this transport */
        const lg_transport_api *api;
        lg_transport *t;
        lg__queue queue;
        char *hosts;  /* host names of all ranks, HOST bytes each (group.c) */
        int next_tag; /* the first message tag that this process does not use */
        bool open, broken, orphan;
        pid_t pid; /* of the process that uses the transport, to detect a fork() */
        double seconds;
        char version[256]; /* name and version of the MPI */
} lg__world;

void lg__queue_init(lg__queue *q);
/* Waits for all requests, ends the thread and destroys the queue. */
void lg__queue_finish(lg__queue *q);
/* Waits until r has run or, if r is NULL, until no request is left, running requests itself if the thread does not. */
void lg__queue_wait(lg__queue *q, const lg__request *r);
bool lg__queue_is_idle(lg__queue *q);

/* The first breaks a group in a child of fork(), because the parent uses the transport and the devices. The second
 * breaks a group whose device link was given up, and closes the link of a broken group. */
void lg__group_check_process(lg_group *g);
void lg__group_check_link(lg_group *g);
/* Gathers `bytes` bytes at `own` from every rank; name: of the collective. Returns them in the order of ranks, in
 * g->size * bytes bytes that the caller frees with lg__free(), or NULL with an error. */
void *lg__group_gather(lg_group *g, const char *op, const char *name, const void *own, size_t bytes);

/* Opens the link between the ranks' devices, which is d on this rank. All ranks must call it. Returns false with an
 * error; else g->link is set on all ranks, or is NULL on all and a message gives the reason. */
bool lg__link_open(lg_group *g, lg__device *d, const char *op);
/* Closes the link, if open. broken: other ranks may not take part. */
void lg__link_close(lg_group *g, bool broken);
/* Returns the link functions of the group's link device. */
static inline const lg_device_links *lg__links_of(const lg_group *g)
{
        return g->link_device->api->links;
}

/* Returns the transport of the MPI whose launcher has started this process, and the launcher's number of processes (1
 * without one). Returns NULL without an error if no launcher has, NULL with LG_ERR_COMM if loading failed. */
const lg_transport_api *lg__transport_module(lg_ctx *c, int *ret_launched);

#endif
