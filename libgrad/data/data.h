/* data.h - private declarations for data sets and for the batches made of their samples, used only in data/. */
#ifndef LG_DATA_PRIVATE_H
#define LG_DATA_PRIVATE_H

#include "tensor/tensor.h"

/* ---- samplers: sampler.c ---- */

/* Random number generator: Philox blocks of four words, each given by seed, epoch, id and the block's number. */
struct lg_rng {
        uint64_t seed;
        uint32_t epoch, id[2], block, words[4];
        int used; /* how many of `words` have been used up */
};
/* Purposes of random numbers: a sample, a batch, the order of an epoch. Each purpose has streams of its own. */
typedef enum lg__rng_kind { LG__RNG_SAMPLE = 1, LG__RNG_BATCH = 2, LG__RNG_ORDER = 3 } lg__rng_kind;
void lg__rng_begin(lg_rng *r, uint64_t seed, int64_t epoch, lg__rng_kind kind, int64_t id);

/* State of one thread that makes samples. Errors are stored here, as only the caller's thread may use the context. */
typedef struct lg__sampler {
        lg_sample sample; /* must stay first: a pointer to `sample` is cast to lg__sampler */
        lg_rng rng;
        char *scratch; /* memory for intermediate results, such as the input of a transform */
        size_t scratch_bytes, scratch_used;
        lg_error_code code; /* error of the sample; 0: no error */
        char message[LG__MESSAGE / 2];
} lg__sampler;
/* Sets up a sampler and allocates the scratch memory that d needs. Returns false and sets LG_ERR_MEMORY on failure. */
bool lg__sampler_init(lg__sampler *sampler, lg_ctx *c, const lg_dataset *d);
void lg__sampler_free(lg__sampler *sampler, lg_ctx *c);
/* Records an error of sample s as lg_sample_fail() does, with the given code. Returns false. */
bool lg__sample_fail(lg_sample *s, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

/* Returns the size in bytes of field f in one sample; for a ragged field, of the most rows that a sample may have. */
static inline size_t lg__field_bytes(const lg_field *f)
{
        return (size_t)lg__shape_numel(f->shape) * lg__dtype_bytes(f->dtype);
}
/* Alignment in bytes of arrays in scratch memory. */
#define LG__SAMPLE_ALIGN 64
static inline size_t lg__aligned(size_t bytes)
{
        return (bytes + LG__SAMPLE_ALIGN - 1) / LG__SAMPLE_ALIGN * LG__SAMPLE_ALIGN;
}

/* ---- data sets: dataset.c; their kinds: *_dataset.c, subset.c, stored.c, images.c, transform.c ---- */

typedef struct lg__set_kind {
        /* Writes sample s->index, in range, to s->data. Returns false after lg_sample_fail() or at the end of a
         * stream. */
        bool (*get)(const lg_dataset *d, lg_sample *s);
        void (*destroy)(lg_dataset *d); /* frees what the record refers to; may be NULL */
        size_t bytes;                   /* size of the record of this kind */
} lg__set_kind;

/* A data set: the first member of the records of all kinds. */
struct lg_dataset {
        lg__object object;
        const lg__set_kind *kind;
        int64_t size; /* number of samples; -1 for a stream */
        lg_fields fields;
        lg_names classes;     /* names of the classes that labels in "y" are numbers of */
        bool random;          /* making a sample draws random numbers */
        bool calls_user_code; /* making a sample calls a function of the program */
        lg_dataset *stream;   /* the stream that samples are read from; NULL: none */
        size_t scratch_bytes; /* scratch memory that a sampler needs, in bytes */
        int depth;            /* nested levels of data sets inside; limited because get() recurses */
};
/* Returns a registered record of the kind, with no fields yet, or NULL with an error. size is -1 for a stream. */
lg_dataset *lg__dataset_new(lg_ctx *c, const lg__set_kind *kind, int64_t size);
extern const char *const lg__field_names[LG_MAX_FIELDS]; /* default names: "x", "y", "field2", ... */
/* Checks `fields` and copies them with their names to `to`, which is empty. Returns false and sets an error if a field
 * is not valid or memory is lacking; `to` then has the fields copied so far, to be freed by lg__fields_free(). */
bool lg__fields_take(lg_ctx *c, const char *op, lg_fields *to, const lg_fields *fields);
void lg__fields_free(lg_ctx *c, lg_fields *fields);
/* Returns false and sets an error "op: the data set is ..." if d is NULL, belongs to another context than c (any
 * context is accepted if c is NULL) or is being destroyed. Also returns false if the context already has an error. */
bool lg__dataset_check(lg_ctx *c, const lg_dataset *d, const char *op);
/* Raises *depth to below + 1 if smaller: the depth of a data set or transform that contains one of depth `below`.
 * Returns false and sets LG_ERR_ARGUMENT if there are too many levels. */
bool lg__data_nests(lg_ctx *c, const char *op, int *depth, int below);
/* Makes sample i of d in the memory at sampler->sample.data, with random numbers that depend on seed, epoch and `id`.
 * Returns false with an error in the sampler, or without an error at the end of a stream. */
bool lg__dataset_sample(const lg_dataset *d, lg__sampler *sampler, uint64_t seed, int64_t epoch, int64_t i, int64_t id);
/* Seeks a stream so that number `sample` is its next sample. Returns false and sets LG_ERR_STATE if seeking fails. */
bool lg__stream_seek(lg_dataset *stream, lg_ctx *c, int64_t sample);
/* Reserves a stream for one loader. Returns false if the stream is reserved. lg__stream_give() ends a reservation. */
bool lg__stream_take(lg_dataset *stream);
void lg__stream_give(lg_dataset *stream);

/* ---- batches: batch.c ---- */

/* Options and fields of a loader's batches. Members from `seed` on change with the epoch, when all threads are idle. */
#define LG__PARTS (2 * LG_MAX_FIELDS) /* most arrays in a batch: the fields, and lengths of ragged fields */
typedef struct lg__batch_plan {
        lg_dataset *set;
        lg_collate *collate; /* makes the batches; NULL: samples are stacked and padded */
        int64_t rows, batch; /* samples in an epoch (-1: unknown); of one rank in a batch */
        int64_t batches;     /* number of batches in an epoch; INT64_MAX for a stream */
        int rank, ranks;     /* this process's rank, and number of ranks, in a group that shares batches */
        bool drop_last;
        /* Random numbers depend on a sample's position in the epoch instead of its index, which may occur twice. */
        bool by_position;
        lg_fields in, out; /* fields of a sample; fields of a batch */
        int parts;
        lg_field part[LG__PARTS];    /* the fields of `out`, then i64 lengths of each ragged field */
        int lengths_of[LG__PARTS];   /* index of the field whose lengths part p has; -1: part p is a field */
        uint64_t pad[LG_MAX_FIELDS]; /* bits of one element of padding, for each ragged field */
        /* members that change with each epoch: */
        uint64_t seed;
        int64_t epoch;
        const int64_t *order; /* sample index at each position of the epoch; NULL: index is position */
} lg__batch_plan;
/* Sets the fields and parts of a plan whose set, collate, rows and batch are set. Returns false with an error. */
bool lg__batch_plan_init(lg__batch_plan *plan, lg_ctx *c);
/* Returns true if samples can be written directly into a batch's memory: no collate function and no ragged fields. */
bool lg__batch_plan_is_direct(const lg__batch_plan *plan);

/* A range of positions in the order of an epoch. */
typedef struct lg__places {
        int64_t first, count;
} lg__places;
/* Returns the positions of this rank's samples of batch b; a stream may end earlier. The last batch takes the remaining
 * samples: fewer than a full batch or, if fewer samples than ranks would remain, a full batch and those samples. */
static inline lg__places lg__batch_places(const lg__batch_plan *plan, int64_t b)
{
        const int64_t all = plan->batch * plan->ranks, from = b * all;
        const bool last = b >= plan->batches - 1 && (!plan->drop_last || plan->rows - from < all);
        const int64_t n = plan->rows < 0 || !last ? all : plan->rows - from;
        const int64_t first = n * plan->rank / plan->ranks;
        return (lg__places){from + first, n * (plan->rank + 1) / plan->ranks - first};
}

/* A batch in host memory: an array for each part of the plan. */
typedef struct lg__host_batch {
        void *data[LG__PARTS];
        int64_t count;              /* number of samples; 0: the stream has ended */
        int64_t longest[LG__PARTS]; /* for each ragged part, the most rows of a sample */
        lg_error_code code;         /* error that occurred while the batch was made; 0: none */
        char message[LG__MESSAGE / 2];
} lg__host_batch;
/* Returns the bytes that a part needs in the largest batch, with ragged fields at their maximum length. */
size_t lg__part_bytes(const lg__batch_plan *plan, int part);
/* Returns the shape of a part: (count, ...), where dimension 1 of a ragged part is batch->longest[part]. */
lg_shape lg__part_shape(const lg__batch_plan *plan, int part, const lg__host_batch *batch);

/* State of one thread that makes batches: its sampler and, for ragged fields and collate functions, memory for the
 * samples of a batch and their row counts. */
typedef struct lg__batch_builder {
        lg__sampler sampler;
        char *samples[LG_MAX_FIELDS];
        int64_t *lengths[LG_MAX_FIELDS];
} lg__batch_builder;
bool lg__batch_builder_init(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan);
void lg__batch_builder_free(lg__batch_builder *builder, lg_ctx *c, const lg__batch_plan *plan);
/* Makes batch b in the memory of `batch`. An error is stored in `batch`. */
void lg__batch_build(const lg__batch_plan *plan, lg__batch_builder *builder, int64_t b, lg__host_batch *batch);

struct lg_collate {
        lg__object object;
        lg_fields fields;
        lg_collate_fn *fn;
        void *user;
        void (*release)(void *user);
        /* Sets *ret to the fields of batches made of samples with fields `in`, or returns false with an error of the
         * context. NULL: batches have `fields`. */
        bool (*infer)(const lg_collate *collate, lg_ctx *c, const lg_fields *in, lg_fields *ret);
        /* Replaces fn in collate functions of the library; reports errors by lg__sample_fail(). NULL: fn is called. */
        bool (*run)(const lg_collate *collate, const lg_collation *b, lg__sampler *sampler);
};
/* Returns a registered record, which calls release(user) when destroyed, or NULL with an error after release(user). */
lg_collate *lg__collate_new(lg_ctx *c, lg_collate_fn *fn, void *user, void (*release)(void *user));

/* ---- the order of an epoch: sample_order.c ---- */

/* Options for an epoch whose samples are shuffled or drawn by weights. */
typedef struct lg__sample_order {
        bool shuffle, no_replacement;
        int64_t size, samples; /* number of samples in the data set; in an epoch */
        double *weights;       /* owned copy, one for each sample; NULL: not weighted */
} lg__sample_order;
uint64_t lg__next_seed(lg_ctx *c); /* draws a seed from the context's random state */
/* Initialises *o by the options of a loader of `size` samples, -1 for a stream. Returns false with an error. */
bool lg__sample_order_init(lg__sample_order *o, lg_ctx *c, int64_t size, const lg_loader_options *options);
/* Returns false and sets LG_ERR_ARGUMENT if an epoch has too many samples to be shuffled or drawn. */
bool lg__sample_order_fits(const lg__sample_order *o, lg_ctx *c, const char *op);
void lg__sample_order_free(lg__sample_order *o, lg_ctx *c);
/* Writes the indices of an epoch's o->samples samples to `order`. Returns false with an error. */
bool lg__sample_order_draw(const lg__sample_order *o, lg_ctx *c, uint64_t seed, int64_t epoch, int64_t *order);

/* ---- the ring of batches: batch_ring.c ----
 *
 * Batch b of an epoch is made in slot b % depth: ahead of time by worker threads or, without threads, when the caller
 * waits for it. Threads use host memory only; the caller's thread copies batches to the device.
 */
#define LG__MAX_WORKERS 64
#define LG__MAX_PREFETCH 65536
typedef struct lg__batch_slot {
        lg__host_batch batch;
        int64_t ready;                 /* number of the batch in the slot; -1: none */
        lg__storage *parts[LG__PARTS]; /* device memory of the parts, until tensors own it */
        bool copied;                   /* `parts` are filled, or will be when the copy `mark` ends */
        uint64_t mark;                 /* number of a pending copy from host memory to `parts`; 0: none */
} lg__batch_slot;
typedef struct lg__batch_ring lg__batch_ring;
/* Makes a ring for up to `ahead` batches made ahead by `threads` threads (0: none). The plan must outlive the ring. */
lg__batch_ring *lg__batch_ring_new(lg_ctx *c, const lg__batch_plan *plan, int threads, int ahead, lg__device *device);
void lg__batch_ring_free(lg_ctx *c, lg__batch_ring *r); /* does nothing if r is NULL */
/* Begins an epoch at batch number `first`. */
void lg__batch_ring_start(lg__batch_ring *r, int64_t first);
/* Stops making batches and discards batches and copies. Afterwards no thread makes a batch until the next start. */
void lg__batch_ring_stop(lg__batch_ring *r);
/* Returns true in a child of fork() that has not stopped the ring yet: the ring's threads exist in the parent only. */
bool lg__batch_ring_lost(const lg__batch_ring *r);
/* Returns true if lg__batch_ring_wait() would return without waiting for a thread. */
bool lg__batch_ring_ready(lg__batch_ring *r, int64_t b);
/* Returns the number of threads that make batches. */
int lg__batch_ring_threads(const lg__batch_ring *r);
/* Waits for batch b or, without threads, makes it. Returns its slot, reserved for the caller until
 * lg__batch_ring_release(), or NULL with an error. After the end of a stream the batch's count is 0. */
lg__batch_slot *lg__batch_ring_wait(lg__batch_ring *r, int64_t b);
/* Copies the batch of slot s to the device, or starts to (see `mark`), if not yet done. Returns false with an error. */
bool lg__batch_ring_copy(const lg__batch_ring *r, lg__batch_slot *s);
/* Waits for all copies and frees the device memory that no tensor owns yet. */
void lg__batch_ring_drop_copies(lg__batch_ring *r);
/* Makes the slots of batch b and of batches before it free for new ones, after the copy of b has read its host memory.
 * Returns false with an error. */
bool lg__batch_ring_release(lg__batch_ring *r, int64_t b);

#endif
