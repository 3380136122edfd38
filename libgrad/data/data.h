/* data.h - data sets as rows in host memory, and the batches made of them. Private to data/. */
#ifndef LG_DATA_PRIVATE_H
#define LG_DATA_PRIVATE_H

#include "../core.h"

/* The rows of a tensor in host memory, and what batches get of them: `out_dtype`, x * scale + shift where convert is
 * set. Worker threads read it: it holds no handle. */
typedef struct lg__rows {
        const char *data;
        lg_dtype dtype, out_dtype;
        lg_shape shape; /* with the number of rows in front */
        int64_t width;  /* elements of a row */
        bool convert;
        double scale, shift;
        float bytes[256]; /* what each u8 becomes */
} lg__rows;
void lg__rows_init(lg__rows *r, const lg_tensor *t, bool convert, double scale, double shift);
/* out[i] = row first + i, or row order[first + i] if order is not NULL, for i < n. */
void lg__rows_gather(const lg__rows *r, const int64_t *order, int64_t first, int64_t n, void *out);

struct lg_dataset {
        lg__object object;
        lg_tensor *x, *y; /* owned handles, contiguous, on the CPU */
        bool convert;
        double scale, shift;
};

/* Threads that make the batches of an epoch ahead, in order, in a ring of buffers. They never touch the context. */
typedef struct lg__team lg__team;
typedef struct lg__job {
        const lg__rows *x, *y;
        const int64_t *order; /* NULL: as they come */
        int64_t rows, batch, batches;
} lg__job;
/* Rows in batch b of the job. */
static inline int64_t lg__job_rows(const lg__job *j, int64_t b)
{
        return j->rows - b * j->batch < j->batch ? j->rows - b * j->batch : j->batch;
}
/* The job must stay where it is; its order may change only while the team rests. */
lg__team *lg__team_new(lg_ctx *c, const lg__job *job, int workers, lg__device *device);
void lg__team_free(lg_ctx *c, lg__team *t);      /* NULL: nothing */
void lg__team_start(lg__team *t, int64_t first); /* from batch `first` on */
void lg__team_rest(lg__team *t);                 /* returns when no thread works */
/* True if lg__team_wait would not wait for a thread. */
bool lg__team_ready(lg__team *t, int64_t b);
/* Waits for batch b, the next one; it stays until it is done with. */
void lg__team_wait(lg__team *t, int64_t b, const void **ret_x, const void **ret_y);
void lg__team_done(lg__team *t, int64_t b); /* and all before it */
size_t lg__batch_bytes(const lg__rows *r, int64_t n);

#endif
