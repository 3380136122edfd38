/* data.h - data sets, and the batches made of their samples. Private to data/. */
#ifndef LG_DATA_PRIVATE_H
#define LG_DATA_PRIVATE_H

#include "tensor/tensor.h"

/* ---- samples: sample.c ----
 *
 * A hand makes samples: one of each thread. It knows no context.
 */

/* Words of the stream (seed, epoch, id): drawn four at a time. */
struct lg_rng {
        uint64_t seed;
        uint32_t epoch, id[2], block, words[4];
        int used; /* of the words */
};
/* Streams of samples, of batches and of the order of an epoch do not meet. */
typedef enum lg__rng_kind { LG__RNG_SAMPLE = 1, LG__RNG_BATCH = 2, LG__RNG_ORDER = 3 } lg__rng_kind;
void lg__rng_begin(lg_rng *r, uint64_t seed, int64_t epoch, lg__rng_kind kind, int64_t id);

typedef struct lg__hand {
        lg_sample sample; /* first: lg_sample_fail finds the hand by it */
        lg_rng rng;
        char *scratch; /* of data sets that make samples in steps */
        size_t scratch_bytes, scratch_used;
        lg_error_code code; /* 0: nothing has failed */
        char message[LG__MESSAGE / 2];
} lg__hand;
/* With memory for the samples of a data set. False: LG_ERR_MEMORY. */
bool lg__hand_begin(lg__hand *h, lg_ctx *c, const lg_dataset *d);
void lg__hand_end(lg__hand *h, lg_ctx *c);
/* lg_sample_fail with another code. */
bool lg__sample_fail(lg_sample *s, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

/* Bytes of a field of one sample. */
static inline size_t lg__field_bytes(const lg_field *f)
{
        return (size_t)lg__shape_numel(f->shape) * lg__dtype_bytes(f->dtype);
}
/* Samples in memory begin at multiples of this. */
#define LG__SAMPLE_ALIGN 64
static inline size_t lg__aligned(size_t bytes)
{
        return (bytes + LG__SAMPLE_ALIGN - 1) / LG__SAMPLE_ALIGN * LG__SAMPLE_ALIGN;
}

/* ---- data sets: dataset.c, tensors.c, stored.c, own.c, views.c ---- */

typedef struct lg__set_kind {
        /* Writes sample s->index, which is in range. False: lg_sample_fail, or the end of a stream. */
        bool (*get)(const lg_dataset *d, lg_sample *s);
        void (*destroy)(lg_dataset *d); /* what it has beside the record; NULL: nothing */
        size_t bytes;                   /* of the record */
} lg__set_kind;

/* The head of the record of every kind. */
struct lg_dataset {
        lg__object object;
        const lg__set_kind *kind;
        int64_t size; /* -1: a stream */
        lg_fields fields;
        lg_names classes;     /* what the numbers of "y" mean; they last as long as the data set */
        bool random;          /* it draws random numbers */
        bool own;             /* code of the user's makes its samples */
        lg_dataset *stream;   /* what the samples come from, if that is one */
        size_t scratch_bytes; /* that a hand needs for it */
        int depth;            /* of data sets below it: at most LG_MAX_DATA_DEPTH, since samples and ends recurse */
};
/* A registered record without fields. */
lg_dataset *lg__dataset_new(lg_ctx *c, const lg__set_kind *kind, int64_t size);
extern const char *const lg__field_names[LG_MAX_FIELDS]; /* of those that nobody names */
/* Fields with copies of their names. False, with an error: they are no good, or there is no memory; what was copied by
 * then is in `to`, which is empty at first. */
bool lg__fields_take(lg_ctx *c, const char *op, lg_fields *to, const lg_fields *fields);
void lg__fields_free(lg_ctx *c, lg_fields *fields);
/* What a function that makes a data set returns: d, or NULL after destroying it. */
lg_dataset *lg__dataset_made(lg_dataset *d, bool ok);
/* False, with an error "op: name is ...": d is NULL, of another context (unless c is NULL) or ends just now. */
bool lg__dataset_check(lg_ctx *c, const lg_dataset *d, const char *op);
/* Puts a data set or transform of that depth below another one, of *depth. False, with LG_ERR_ARGUMENT: there are too
 * many levels. */
bool lg__data_nests(lg_ctx *c, const char *op, int *depth, int below);
/* Sample i by a hand that has begun; `data` of h->sample is set. */
bool lg__dataset_sample(const lg_dataset *d, lg__hand *h, uint64_t seed, int64_t epoch, int64_t i, int64_t id);
/* Of a stream: that sample comes next. False: LG_ERR_STATE. */
bool lg__stream_seek(lg_dataset *stream, lg_ctx *c, int64_t sample);
/* One loader at a time: false if it is taken. */
bool lg__stream_take(lg_dataset *stream);
void lg__stream_give(lg_dataset *stream);

/* ---- the rows of a tensor: rows.c ---- */

/* Rows in host memory, and what samples get of them: `out_dtype`, x * scale + shift where convert is set. */
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
void lg__rows_get(const lg__rows *r, int64_t row, void *out);

/* ---- batches: batch.c ---- */

/* What the batches of a loader are made of; the epoch's part changes only while no thread works. */
#define LG__PARTS (2 * LG_MAX_FIELDS) /* fields, then the lengths of the ragged ones */
typedef struct lg__job {
        const lg_dataset *set;
        const lg_collate *collate; /* NULL: samples become rows, padded where they are ragged */
        int64_t rows, batch;       /* samples of an epoch (-1: not known) and of a batch */
        int64_t batches;           /* of an epoch; of a stream INT64_MAX */
        int rank, ranks;           /* of a group whose ranks share each batch, which has `batch` samples for each */
        bool drop_last;
        bool by_place;     /* the random stream of a sample is that of its place, since it may come twice */
        lg_fields in, out; /* of a sample, of what the batch has of it */
        int parts;
        lg_field part[LG__PARTS];    /* out, then lengths */
        int lengths_of[LG__PARTS];   /* the field that they are of; -1: none */
        uint64_t pad[LG_MAX_FIELDS]; /* bits of an element of the padding */
        /* of the epoch */
        uint64_t seed;
        int64_t epoch;
        const int64_t *order; /* NULL: as they come */
} lg__job;
/* The parts of a job whose set, collate and rows are there. False: an error. */
bool lg__job_init(lg__job *j, lg_ctx *c);
/* True if samples can be written to where they stay. */
bool lg__job_is_direct(const lg__job *j);

/* Who makes batches: a hand, and memory for the samples of one where they are not written to where they stay. */
typedef struct lg__maker {
        lg__hand hand;
        char *slots[LG_MAX_FIELDS];
        int64_t *lengths[LG_MAX_FIELDS];
} lg__maker;
bool lg__maker_begin(lg__maker *m, lg_ctx *c, const lg__job *j);
void lg__maker_end(lg__maker *m, lg_ctx *c, const lg__job *j);

/* A batch in memory. */
typedef struct lg__made {
        void *data[LG__PARTS];
        int64_t count;              /* samples; 0: the end of a stream */
        int64_t longest[LG__PARTS]; /* of a ragged part: its rows in this batch */
        lg_error_code code;         /* 0: it was made */
        char message[LG__MESSAGE / 2];
} lg__made;
/* Makes batch b of the job; what failed is in `made`. */
void lg__batch_make(const lg__job *j, lg__maker *m, int64_t b, lg__made *made);
/* Places of the epoch, one after the other. */
typedef struct lg__places {
        int64_t first, count;
} lg__places;
/* Those that this rank makes of batch b; of a stream at most. The last batch has what is left: less than the others, or
 * some more where that is less than one for each rank. */
static inline lg__places lg__job_places(const lg__job *j, int64_t b)
{
        const int64_t all = j->batch * j->ranks, from = b * all;
        const bool last = b >= j->batches - 1 && (!j->drop_last || j->rows - from < all);
        const int64_t n = j->rows < 0 || !last ? all : j->rows - from;
        const int64_t first = n * j->rank / j->ranks;
        return (lg__places){from + first, n * (j->rank + 1) / j->ranks - first};
}
/* Bytes of a part of a full batch. */
size_t lg__part_bytes(const lg__job *j, int part);
/* The shape of a part of that batch. */
lg_shape lg__part_shape(const lg__job *j, int part, const lg__made *made);

/* ---- ways to make batches: collate.c ---- */

struct lg_collate {
        lg__object object;
        lg_fields fields;
        lg_collate_fn *fn;
        void *user;
        void (*release)(void *user);
        /* What it makes of samples; false: an error of the context. NULL: `fields`, of any. */
        bool (*plan)(const lg_collate *m, lg_ctx *c, const lg_fields *in, lg_fields *ret);
        /* In place of fn, with the library's own errors: lg__sample_fail of the hand. NULL: fn. */
        bool (*run)(const lg_collate *m, const lg_collation *b, lg__hand *h);
};
/* A registered record; the user is released with it, or where it cannot be made. */
lg_collate *lg__collate_new(lg_ctx *c, lg_collate_fn *fn, void *user, void (*release)(void *user));

/* ---- orders: order.c ---- */

/* How samples are drawn in place of one after the other. */
typedef struct lg__draw {
        bool shuffle, no_replacement;
        int64_t size, samples; /* of the data set, of an epoch */
        double *weights;       /* owned; NULL: none */
} lg__draw;
uint64_t lg__draw_seed(lg_ctx *c); /* the next of the context's random state */
/* From the options of a loader. */
bool lg__draw_init(lg__draw *d, lg_ctx *c, int64_t size, const lg_loader_options *o);
/* False: LG_ERR_ARGUMENT: so many samples cannot be put into an order. */
bool lg__draw_fits(const lg__draw *d, lg_ctx *c, const char *op);
void lg__draw_end(lg__draw *d, lg_ctx *c);
/* The order of an epoch. */
bool lg__draw_order(const lg__draw *d, lg_ctx *c, uint64_t seed, int64_t epoch, int64_t *order);

/* ---- threads: pool.c ----
 *
 * Threads that make the batches of an epoch ahead, in order, in a ring of buffers. They never touch the context.
 */
#define LG__MAX_WORKERS 64
#define LG__MAX_PREFETCH 65536
typedef struct lg__worker_pool lg__worker_pool;
/* The job must stay where it is. */
lg__worker_pool *lg__worker_pool_new(lg_ctx *c, const lg__job *job, int workers, int ahead, lg__device *device);
void lg__worker_pool_free(lg_ctx *c, lg__worker_pool *t);      /* NULL: nothing */
void lg__worker_pool_start(lg__worker_pool *t, int64_t first); /* from batch `first` on */
void lg__worker_pool_rest(lg__worker_pool *t);                 /* returns when no thread works */
/* True in a child of the process that has the threads: before anything else it must rest. */
bool lg__worker_pool_lost(const lg__worker_pool *t);
/* True if lg__worker_pool_wait would not wait for a thread. */
bool lg__worker_pool_ready(lg__worker_pool *t, int64_t b);
/* Waits for batch b, the next one; it stays until it is done with. Behind the end of a stream: an empty one. */
const lg__made *lg__worker_pool_wait(lg__worker_pool *t, int64_t b);
void lg__worker_pool_done(lg__worker_pool *t, int64_t b); /* and all before it */

#endif
