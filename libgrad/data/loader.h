/* loader.h - the record of a loader, and batches that fly ahead. Private to data/. */
#ifndef LG_DATA_LOADER_H
#define LG_DATA_LOADER_H

#include "data.h"

/* A batch on its way to a device that copies on its own. */
typedef struct lg__prefetch {
        int64_t index; /* the batch; -1: none */
        lg__made made; /* without data and text */
        lg__storage *parts[LG__PARTS];
        uint64_t mark;
} lg__prefetch;

struct lg_loader {
        lg__object object;
        lg_dataset *set;     /* a use of it: the user may free it before the loader */
        lg_collate *collate; /* the same */
        lg__job job;
        lg__device *device;
        lg__worker_pool *pool; /* NULL: batches are made in their tensors */
        lg__maker maker;       /* for that, if maker_begun */
        bool maker_begun;
        lg__draw draw;
        int64_t *order; /* NULL: samples come one after the other */
        uint64_t seed;
        int64_t all_ranks;          /* samples of a full batch of all ranks together */
        int64_t epoch, position;    /* the batch that comes next */
        bool running;               /* between the first batch of an epoch and its end */
        bool begun;                 /* its order is drawn; not yet in one that a checkpoint stopped and that goes on */
        bool halted;                /* a batch has failed, and is to be made again */
        int64_t loops;              /* lg_each_batch() so far */
        uint64_t scope;             /* of the last step; 0: none */
        bool ending;                /* that scope, or the loader itself, just now */
        bool making;                /* code of the user's makes samples just now */
        lg__prefetch prefetched[2]; /* batch b in prefetched[b % 2] */
        uint64_t last_mark;         /* of the batch that was handed out last; 0: none */
};

/* The layout of a part of a batch. */
lg__layout lg__loader_layout(const lg_loader *l, int part, const lg__made *made);
/* Puts part p of a batch, by the number of parts of the job, where it belongs. */
void lg__loader_put(const lg_loader *l, lg_batch *b, int part, lg_tensor *t);
/* Batch b of the pool, waited for or made, which may have failed; NULL: an error. */
const lg__made *lg__loader_wait(lg_loader *l, int64_t b);
/* Reports a batch that failed. Returns NULL. */
void *lg__loader_failed(lg_loader *l, const lg__made *made);

/* prefetch.c. True if batches are copied ahead, from pinned memory. */
bool lg__loader_prefetches(const lg_loader *l);
/* Ends the copies that are under way: afterwards nothing reads the pool's buffers. */
void lg__loader_finish_copies(lg_loader *l);
/* Takes batch b off its prefetch and starts the next one, if that can be done without waiting for a thread. False: an
 * error, or, with ret_count 0, the end of a stream. */
bool lg__loader_take_prefetched(lg_loader *l, int64_t b, lg_batch *ret, int64_t *ret_count);

#endif
