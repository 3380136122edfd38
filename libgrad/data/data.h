/* data.h - data sets, and the batches made of their samples. Private to data/. */
#ifndef LG_DATA_PRIVATE_H
#define LG_DATA_PRIVATE_H

#include "tensor/tensor.h"

/* ---- samples: sampler.c ---- */

/* Philox words of the stream (seed, epoch, id), drawn four at a time. */
struct lg_rng {
        uint64_t seed;
        uint32_t epoch, id[2], block, words[4];
        int used; /* number of `words` that were handed out */
};
/* Kinds of random streams, which never overlap: of a sample, of a batch, of the order of an epoch. */
typedef enum lg__rng_kind { LG__RNG_SAMPLE = 1, LG__RNG_BATCH = 2, LG__RNG_ORDER = 3 } lg__rng_kind;
void lg__rng_begin(lg_rng *r, uint64_t seed, int64_t epoch, lg__rng_kind kind, int64_t id);

/* State of one thread that makes samples. It has no context, which only one thread may use. */
typedef struct lg__sampler {
        lg_sample sample; /* first: lg_sample_fail() finds the sampler by it */
        lg_rng rng;
        char *scratch; /* memory for data sets that make samples in steps */
        size_t scratch_bytes, scratch_used;
        lg_error_code code; /* 0: no error */
        char message[LG__MESSAGE / 2];
} lg__sampler;
/* Allocates the scratch memory that d asks for. Returns false and sets LG_ERR_MEMORY if there is none. */
bool lg__sampler_init(lg__sampler *sampler, lg_ctx *c, const lg_dataset *d);
void lg__sampler_free(lg__sampler *sampler, lg_ctx *c);
/* Does what lg_sample_fail() does, with another code. */
bool lg__sample_fail(lg_sample *s, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

/* Returns the size of a field of one sample in bytes. */
static inline size_t lg__field_bytes(const lg_field *f)
{
        return (size_t)lg__shape_numel(f->shape) * lg__dtype_bytes(f->dtype);
}
/* Alignment of arrays in scratch memory. */
#define LG__SAMPLE_ALIGN 64
static inline size_t lg__aligned(size_t bytes)
{
        return (bytes + LG__SAMPLE_ALIGN - 1) / LG__SAMPLE_ALIGN * LG__SAMPLE_ALIGN;
}

/* ---- data sets: dataset.c; the kinds: *_dataset.c, subset.c, stored.c, images.c, transformed.c ---- */

typedef struct lg__set_kind {
        /* Writes sample s->index, which is in range. Returns false after lg_sample_fail(), or at the end of a stream.
         */
        bool (*get)(const lg_dataset *d, lg_sample *s);
        void (*destroy)(lg_dataset *d); /* frees what the record refers to; NULL: nothing */
        size_t bytes;                   /* size of the record */
} lg__set_kind;

/* First member of the record of every kind. */
struct lg_dataset {
        lg__object object;
        const lg__set_kind *kind;
        int64_t size; /* number of samples; -1: a stream */
        lg_fields fields;
        lg_names classes;     /* names of the labels in "y", which last as long as the data set */
        bool random;          /* draws random numbers */
        bool own;             /* runs code of the program */
        lg_dataset *stream;   /* the stream that its samples come from; NULL: none */
        size_t scratch_bytes; /* scratch memory that a sampler needs for it */
        int depth;            /* levels of data sets below it: at most LG_MAX_DATA_DEPTH, because get() recurses */
};
/* Returns a registered record without fields, or NULL with an error. */
lg_dataset *lg__dataset_new(lg_ctx *c, const lg__set_kind *kind, int64_t size);
extern const char *const lg__field_names[LG_MAX_FIELDS]; /* names of fields that the program does not name */
/* Copies fields and their names to `to`, which is empty. Returns false and sets an error if they are not valid or there
 * is no memory; `to` then has the fields copied so far. */
bool lg__fields_take(lg_ctx *c, const char *op, lg_fields *to, const lg_fields *fields);
void lg__fields_free(lg_ctx *c, lg_fields *fields);
/* Returns false and sets an error "op: the data set is ..." if d is NULL, of another context (unless c is NULL) or
 * being destroyed. */
bool lg__dataset_check(lg_ctx *c, const lg_dataset *d, const char *op);
/* Raises *depth to that of a data set or transform above one of depth `below`. Returns false and sets LG_ERR_ARGUMENT
 * if there are too many levels. */
bool lg__data_nests(lg_ctx *c, const char *op, int *depth, int below);
/* Makes sample i in sampler->sample.data, with the random stream `id`. Returns false with an error in the sampler, or
 * at the end of a stream. */
bool lg__dataset_sample(const lg_dataset *d, lg__sampler *sampler, uint64_t seed, int64_t epoch, int64_t i, int64_t id);
/* Moves a stream to a sample. Returns false and sets LG_ERR_STATE if it cannot. */
bool lg__stream_seek(lg_dataset *stream, lg_ctx *c, int64_t sample);
/* Reserves a stream for one loader. Returns false if another has it. */
bool lg__stream_take(lg_dataset *stream);
void lg__stream_give(lg_dataset *stream);

/* ---- batches: batch.c ---- */

/* The plan by which a loader makes its batches. The part of an epoch changes only while no thread works. */
#define LG__PARTS (2 * LG_MAX_FIELDS) /* fields, then the lengths of the ragged ones */
typedef struct lg__batch_plan {
        lg_dataset *set;
        lg_collate *collate; /* NULL: samples are stacked, and padded where they are ragged */
        int64_t rows, batch; /* samples of an epoch (-1: unknown) and of a batch */
        int64_t batches;     /* batches of an epoch; INT64_MAX for a stream */
        int rank, ranks;     /* place in a group whose ranks share each batch: `batch` samples for each */
        bool drop_last;
        bool by_place;     /* the place of a sample chooses its random stream, because samples may occur twice */
        lg_fields in, out; /* fields of a sample, and of a batch */
        int parts;
        lg_field part[LG__PARTS];    /* `out`, then lengths */
        int lengths_of[LG__PARTS];   /* the field whose lengths a part has; -1: none */
        uint64_t pad[LG_MAX_FIELDS]; /* bits of an element of the padding */
        /* of the epoch */
        uint64_t seed;
        int64_t epoch;
        const int64_t *order; /* samples by place; NULL: one after the other */
} lg__batch_plan;
/* Fills in the fields and parts of a plan whose set, collate, rows and batch are set. Returns false with an error. */
bool lg__batch_plan_init(lg__batch_plan *plan, lg_ctx *c);
/* Returns true if samples can be written directly into the batch. */
bool lg__batch_plan_is_direct(const lg__batch_plan *plan);

/* A range of places in the order of an epoch. */
typedef struct lg__places {
        int64_t first, count;
} lg__places;
/* Returns this rank's places of batch b; a stream may end before. The last batch has the rest: fewer places than the
 * others, or a few more if a batch of its own would have less than one for each rank. */
static inline lg__places lg__batch_places(const lg__batch_plan *plan, int64_t b)
{
        const int64_t all = plan->batch * plan->ranks, from = b * all;
        const bool last = b >= plan->batches - 1 && (!plan->drop_last || plan->rows - from < all);
        const int64_t n = plan->rows < 0 || !last ? all : plan->rows - from;
        const int64_t first = n * plan->rank / plan->ranks;
        return (lg__places){from + first, n * (plan->rank + 1) / plan->ranks - first};
}

/* A batch in host memory. */
typedef struct lg__host_batch {
        void *data[LG__PARTS];
        int64_t count;              /* samples; 0: the end of a stream */
        int64_t longest[LG__PARTS]; /* rows of a ragged part in this batch */
        lg_error_code code;         /* 0: no error */
        char message[LG__MESSAGE / 2];
} lg__host_batch;
/* Returns the size of a part of a full batch in bytes. */
size_t lg__part_bytes(const lg__batch_plan *plan, int part);
/* Returns the shape of a part of a batch with that count and longest. */
lg_shape lg__part_shape(const lg__batch_plan *plan, int part, const lg__host_batch *batch);

/* State of one thread that makes batches: a sampler, and memory for samples that are not written directly. */
typedef struct lg__batch_builder {
        lg__sampler sampler;
        char *samples[LG_MAX_FIELDS];
        int64_t *lengths[LG_MAX_FIELDS];
} lg__batch_builder;
bool lg__batch_builder_init(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan);
void lg__batch_builder_free(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan);
/* Makes batch b in the memory of `batch`, which also receives an error. */
void lg__batch_build(const lg__batch_plan *plan, lg__batch_builder *builder, int64_t b, lg__host_batch *batch);

struct lg_collate {
        lg__object object;
        lg_fields fields;
        lg_collate_fn *fn;
        void *user;
        void (*release)(void *user);
        /* Finds the fields of a batch; returns false with an error of the context. NULL: they are `fields`. */
        bool (*infer)(const lg_collate *collate, lg_ctx *c, const lg_fields *in, lg_fields *ret);
        /* Replaces fn where the library makes the batch; reports errors by lg__sample_fail(). NULL: fn. */
        bool (*run)(const lg_collate *collate, const lg_collation *b, lg__sampler *sampler);
};
/* Returns a registered record, which releases `user` with it; if there is no memory, releases `user` and returns NULL.
 */
lg_collate *lg__collate_new(lg_ctx *c, lg_collate_fn *fn, void *user, void (*release)(void *user));

/* ---- the order of an epoch: sample_order.c ---- */

/* How an epoch is ordered if not by sample number: shuffled, or drawn by weights. */
typedef struct lg__sample_order {
        bool shuffle, no_replacement;
        int64_t size, samples; /* of the data set, of an epoch */
        double *weights;       /* owned; NULL: none */
} lg__sample_order;
uint64_t lg__next_seed(lg_ctx *c); /* draws a seed from the context's random state */
/* Takes over the options of a loader. Returns false with an error. */
bool lg__sample_order_init(lg__sample_order *o, lg_ctx *c, int64_t size, const lg_loader_options *options);
/* Returns false and sets LG_ERR_ARGUMENT if an epoch has too many samples to be ordered. */
bool lg__sample_order_fits(const lg__sample_order *o, lg_ctx *c, const char *op);
void lg__sample_order_free(lg__sample_order *o, lg_ctx *c);
/* Writes the samples of an epoch in order. */
bool lg__sample_order_draw(const lg__sample_order *o, lg_ctx *c, uint64_t seed, int64_t epoch, int64_t *order);

/* ---- the ring of batches: batch_ring.c ----
 *
 * Batch b of an epoch is made in slot b % depth: by threads ahead of time, in order, or, without threads, when it is
 * waited for. Threads use host memory only; the caller's thread copies batches to the device.
 */
#define LG__MAX_WORKERS 64
#define LG__MAX_PREFETCH 65536
typedef struct lg__batch_slot {
        lg__host_batch batch;
        int64_t ready;                 /* number of the batch in it; -1: none */
        lg__storage *parts[LG__PARTS]; /* copies on the device, until they are handed out */
        bool copied;                   /* `parts` are complete, or will be at `mark` */
        uint64_t mark;                 /* end of an asynchronous copy that reads the host memory; 0: none */
} lg__batch_slot;
typedef struct lg__batch_ring lg__batch_ring;
/* Makes a ring for `ahead` batches made ahead by `threads` threads (0: none). The plan must outlive it. */
lg__batch_ring *lg__batch_ring_new(lg_ctx *c, const lg__batch_plan *plan, int threads, int ahead, lg__device *device);
void lg__batch_ring_free(lg_ctx *c, lg__batch_ring *r); /* NULL: nothing */
/* Begins an epoch with batch `first`. */
void lg__batch_ring_start(lg__batch_ring *r, int64_t first);
/* Stops making batches and drops copies. No thread works afterwards. */
void lg__batch_ring_stop(lg__batch_ring *r);
/* Returns true in a child of fork(), which has no threads until it stops the ring. */
bool lg__batch_ring_lost(const lg__batch_ring *r);
/* Returns true if lg__batch_ring_wait() would not wait for a thread. */
bool lg__batch_ring_ready(lg__batch_ring *r, int64_t b);
/* Waits for batch b or makes it; behind the end of a stream its count is 0. Returns its slot, which is the caller's
 * until it is released, or NULL with an error. */
lg__batch_slot *lg__batch_ring_wait(lg__batch_ring *r, int64_t b);
/* Copies a batch to the device, unless that was done, or starts to: see `mark`. Returns false with an error. */
bool lg__batch_ring_copy(const lg__batch_ring *r, lg__batch_slot *s);
/* Ends all copies and frees those that were not handed out. */
void lg__batch_ring_drop_copies(lg__batch_ring *r);
/* Gives the slots of batch b and those before it back to the ring, when its copy has ended. Returns false with an
 * error.
 */
bool lg__batch_ring_release(lg__batch_ring *r, int64_t b);

#endif
