/* dnn.h - convolution, attention and recurrent layers by cuDNN 9: the library, loaded when it is first needed, and its
 * execution plans. */
#ifndef LG_CUDA_DNN_H
#define LG_CUDA_DNN_H

#include "cuda.h"

/* The result of a step: REFUSED if another algorithm must convolve, FAILED if an error was recorded in the queue. */
typedef enum lg_dnn_answer { LG_DNN_DONE, LG_DNN_REFUSED, LG_DNN_FAILED } lg_dnn_answer;
/* Compute by cuDNN. Return REFUSED, with nothing written, if cuDNN is absent or does not support these arguments. The
 * first plane of an attention's stats is the logarithm of the sum of each row's exponentials; v: the derivative's
 * arguments, NULL for the forward. */
lg_dnn_answer lg_dnn_conv(lg_queue *q, const lg_conv_args *a);
lg_dnn_answer lg_dnn_attention(lg_queue *q, const lg_attention_args *a, const lg_attention_vjp_args *v);
/* The same for a recurrent layer. The first returns lg_device_api.recurrent_reserve's number; the derivative is for
 * forwards with that reserve. If a forward with a reserve is refused, so are all later calls on the device. */
int64_t lg_dnn_recurrent_reserve(lg_queue *q, const lg_recurrent_args *a);
lg_dnn_answer lg_dnn_recurrent(lg_queue *q, const lg_recurrent_args *a);
lg_dnn_answer lg_dnn_recurrent_vjp(lg_queue *q, const lg_recurrent_vjp_args *v);

/* Counts of a device's table of plans. */
typedef struct lg_dnn_counts {
        int64_t plans, refusals; /* in the table: keys with a plan, keys that cuDNN refuses */
        int64_t hits, misses;    /* look-ups so far that found the key, that did not */
        int64_t failures;        /* engines so far that failed when they ran, and were replaced */
} lg_dnn_counts;

extern "C" {
/* Return the version (91900 for 9.19.0, 0 without a library), and the reason why cuDNN is not used ("" if it is). */
size_t lg_cuda_dnn_version(void);
const char *lg_cuda_dnn_reason(void);
lg_dnn_counts lg_cuda_dnn_counts(lg_queue *q);
/* Ends q's use of its device's handle and plans, which stay for other queues; q's work must be finished. */
void lg_cuda_dnn_close(lg_queue *q);
/* Frees the handles and plans of all devices that no queue uses. */
__attribute__((visibility("default"))) void lg_cuda_dnn_forget(void);
}

#if __has_include(<cudnn.h>)
#define LG_CUDNN 1
#include <mutex>
#include <cudnn.h>

#define LG_DNN_FUNCTIONS(F)                                                                                            \
        F(version, cudnnGetVersion)                                                                                    \
        F(words, cudnnGetErrorString)                                                                                  \
        F(last_words, cudnnGetLastErrorString)                                                                         \
        F(open, cudnnCreate)                                                                                           \
        F(close, cudnnDestroy)                                                                                         \
        F(set_stream, cudnnSetStream)                                                                                  \
        F(make, cudnnBackendCreateDescriptor)                                                                          \
        F(destroy, cudnnBackendDestroyDescriptor)                                                                      \
        F(set, cudnnBackendSetAttribute)                                                                               \
        F(get, cudnnBackendGetAttribute)                                                                               \
        F(finish, cudnnBackendFinalize)                                                                                \
        F(execute, cudnnBackendExecute)                                                                                \
        F(tensor_make, cudnnCreateTensorDescriptor)                                                                    \
        F(tensor_set, cudnnSetTensorNdDescriptor)                                                                      \
        F(tensor_destroy, cudnnDestroyTensorDescriptor)                                                                \
        F(sequence_make, cudnnCreateRNNDataDescriptor)                                                                 \
        F(sequence_set, cudnnSetRNNDataDescriptor)                                                                     \
        F(sequence_destroy, cudnnDestroyRNNDataDescriptor)                                                             \
        F(rnn_make, cudnnCreateRNNDescriptor)                                                                          \
        F(rnn_set, cudnnSetRNNDescriptor_v8)                                                                           \
        F(rnn_destroy, cudnnDestroyRNNDescriptor)                                                                      \
        F(rnn_weights, cudnnGetRNNWeightSpaceSize)                                                                     \
        F(rnn_spaces, cudnnGetRNNTempSpaceSizes)                                                                       \
        F(rnn_params, cudnnGetRNNWeightParams)                                                                         \
        F(rnn_forward, cudnnRNNForward)                                                                                \
        F(rnn_derive, cudnnRNNBackwardData_v8)                                                                         \
        F(rnn_derive_weights, cudnnRNNBackwardWeights_v8)

typedef struct lg_dnn_library {
        bool there;
        char reason[200]; /* message that explains why `there` is false */
        size_t number;    /* cuDNN's version, 91900 for 9.19.0; 0 without a library */
#define MEMBER(name, function) decltype(&::function) name;
        LG_DNN_FUNCTIONS(MEMBER)
#undef MEMBER
} lg_dnn_library;

const lg_dnn_library *lg_dnn_find(void);

/* cuDNN's description of the last error of this thread. */
typedef struct lg_dnn_words {
        char text[140];
} lg_dnn_words;
lg_dnn_words lg_dnn_last_words(void);
/* Converts a status: not supported to REFUSED, another error to FAILED, with call and cuDNN's messages in q. words: the
 * description of the error; NULL: the last one. */
lg_dnn_answer lg_dnn_judge(lg_queue *q, const char *call, cudnnStatus_t status, const lg_dnn_words *words = NULL);

static inline bool lg_dnn_lacked_memory(cudnnStatus_t s)
{
        return s == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

/* An attention: sizes, strides of q, k, v, o, and for the derivative of g, dq, dk, dv, and which keys are visible: all,
 * those up to the query's own position, or up to the one as far from the last key as the query from the last query. */
enum { LG_DNN_ALL, LG_DNN_FROM_FIRST, LG_DNN_FROM_LAST };
typedef struct lg_dnn_heads {
        int64_t batch, heads, queries, keys, dim, v_dim, visible;
        lg_head_strides at[8];
} lg_dnn_heads;

/* Kinds of graphs beside those of lg_conv_kind. */
enum { LG_DNN_ATTENTION = LG_CONV_WEIGHT_GRAD + 1, LG_DNN_ATTENTION_VJP };

/* Everything that a plan depends on, without padding, so that keys compare by bytes. */
typedef struct lg_dnn_key {
        int64_t n, channels, outputs; /* of a convolution, as `at` */
        lg_conv_geometry at;
        int32_t kind, dtype;
        int32_t bias, deterministic, tf32;
        int32_t alignment;  /* common alignment of all operands, in bytes, at most 16 */
        lg_dnn_heads heads; /* of an attention */
} lg_dnn_key;

/* Descriptors that are destroyed together, the last one first. */
#define LG_DNN_PARTS 192
struct lg_dnn_parts {
        int count = 0;
        cudnnBackendDescriptor_t part[LG_DNN_PARTS];
        void drop(int from);
        void remove(cudnnBackendDescriptor_t d);
        ~lg_dnn_parts();
};

/* The numbers of a convolution's operands in its graph. Y is the output of a forward convolution, g for both gradients.
 */
enum { LG_DNN_X = 1, LG_DNN_W, LG_DNN_Y, LG_DNN_B, LG_DNN_SUM };

struct lg_dnn_plan {
        lg_dnn_key key;
        uint64_t hash = 0, used = 0; /* used: number of the last call that used the plan */
        bool works = false;          /* false if cuDNN does not support this key */
        int64_t workspace = 0;
        int tried = 0; /* number of engines that a plan was made with, or tried; the next search begins after them */
        cudnnBackendDescriptor_t plan = nullptr; /* the execution plan, one of the descriptors in parts */
        lg_dnn_parts parts;
        lg_dnn_plan *next = nullptr; /* the next one that is kept for graphs */
};

/* Makes the plan for p->key and fills in the rest of *p; if called again, by the next engine that works. Returns
 * REFUSED if cuDNN has no plan. */
lg_dnn_answer lg_dnn_build(lg_queue *q, cudnnHandle_t handle, lg_dnn_plan *p);

#define LG_DNN_PLANS 256 /* most plans of a device; the least recently used one is replaced */

/* The handle and plans of a device, for all queues of the process. They are used under `lock`: cuDNN lets one thread at
 * a time use a handle, and not all engines let several threads run one plan. */
struct lg_dnn_table {
        lg_dnn_table *next = NULL;
        int device, users = 0; /* users: number of queues that hold the table; guarded by tables_lock */
        std::mutex lock;
        bool opened = false;
        cudnnHandle_t handle = NULL; /* NULL, if opened: cuDNN does not support the device */
        cudaStream_t stream = NULL;  /* the handle's stream */
        lg_dnn_plan *plans[LG_DNN_PLANS];
        lg_dnn_plan *kept = NULL; /* list of those that were replaced while there were graphs, which may use them */
        int count = 0;
        bool no_recurrent = false; /* cuDNN has refused to run a recurrent layer that it had described */
        uint64_t calls = 0;
        int64_t hits = 0, misses = 0, failures = 0, attentions = 0; /* attentions: keys planned so far */

        explicit lg_dnn_table(int index) : device(index)
        {
        }
        ~lg_dnn_table();
        lg_dnn_table(const lg_dnn_table &) = delete;
        lg_dnn_table &operator=(const lg_dnn_table &) = delete;
};

/* Makes q a user of its device's table. Returns NULL if the host is out of memory. */
lg_dnn_table *lg_dnn_join(lg_queue *q);
/* To be called under d->lock. Creates the handle for the current device, if needed, and lets it work in q's stream. */
lg_dnn_answer lg_dnn_open(lg_queue *q, lg_dnn_table *d);
/* Finds the plan for a key, which the first call makes if `make`; under d->lock. *ret is NULL unless the answer is
 * DONE. */
lg_dnn_answer lg_dnn_plan_for(lg_queue *q, lg_dnn_table *d, const lg_dnn_key *key, bool make, lg_dnn_plan **ret);
#define LG_DNN_OPERANDS 16 /* most operands of a graph in memory or by value */
/* Runs plan p; if its engine fails, plans again with the next one. operands: their addresses, that of number i + 1 at
 * index i, NULL for those that the graph does not have. Returns REFUSED if no engine is left. */
lg_dnn_answer lg_dnn_run(lg_queue *q, lg_dnn_table *d, lg_dnn_plan *p, void *const *operands, int count);
#endif

#endif
