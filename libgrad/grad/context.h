/* context.h - contexts, errors, scopes, memory, random state, devices and dtypes.
 *
 * A context holds everything that belongs to one user of the library: the first error, the open scopes, all tensors and
 * other objects, the memory and the devices that they use, and the random state. A program opens a context, passes it
 * to the functions that create something, and closes it, which frees everything that the context still owns:
 *
 *     lg_ctx *c = lg_open(.seed = 1);
 *     lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(2, 3));
 *     printf("%g\n", lg_item(lg_sum(x)));
 *     if (lg_error(c))
 *             fprintf(stderr, "%s\n", lg_error(c));
 *     lg_close(c);
 */
#ifndef LG_CONTEXT_H
#define LG_CONTEXT_H

#include "grad/base.h"

LG_BEGIN

/* ---- contexts ---- */

/* Allocates memory for a context: on the host if device.type is LG_DEVICE_CPU, else on the device. Returns memory that
 * is aligned to 64 bytes and belongs to the context until it calls the lg_free_fn, or NULL if there is no memory; the
 * call that needed it then fails with LG_ERR_MEMORY. `user` is .user of lg_open(); c is NULL while the memory of the
 * context itself is allocated. The function may call lg_system_alloc(). */
typedef void *lg_alloc_fn(void *user, lg_ctx *c, lg_device device, size_t bytes);

/* Frees memory that the lg_alloc_fn of the same context returned for the same number of bytes. c is NULL while the
 * memory of the context itself is freed. The function may call lg_system_free(). It may run in another thread after
 * lg_close() if the program gave memory away by lg_to_dlpack(). */
typedef void lg_free_fn(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes);

typedef struct lg_open_options {
        LG_OPTIONS_HEAD
        int threads LG_DEFAULT;        /* most threads that a CPU kernel uses, see lg_set_threads(); default 0 */
        uint64_t seed LG_DEFAULT;      /* of the random state, see lg_seed(); default 0 */
        lg_alloc_fn *alloc LG_DEFAULT; /* allocates all memory of the context; default lg_system_alloc() */
        lg_free_fn *free LG_DEFAULT;   /* frees it; default lg_system_free(). One without the other is ignored. */
        void *user LG_DEFAULT;         /* passed to .alloc and .free; default NULL */
} lg_open_options;
/* Opens a context, with its outermost scope open and the CPU as its default device. The caller owns the context and
 * closes it with lg_close(). Returns NULL if there is no memory for it or if an option is set that only a newer libgrad
 * knows; lg_error(NULL) then returns a message and lg_error_code_of(NULL) returns LG_ERR_ARGUMENT.
 * Example: lg_open(.threads = 2, .seed = 7) */
#define lg_open(...) LG_CALL0(lg_open_with, lg_open_options, __VA_ARGS__)
LG_API LG_NEW lg_ctx *lg_open_with(const lg_open_options *options);

/* Closes c and frees everything that belongs to it: tensors (also those of lg_keep()), other objects and memory. Memory
 * that lg_to_dlpack() exported stays valid until it is given back. Calls that release callbacks make during lg_close()
 * behave as if an error were set that lg_clear_error() cannot clear. Fails with LG_ERR_STATE inside a callback of a
 * call that uses c (a hook, a release callback, the forward of a module or of a custom op). */
LG_API void lg_close(lg_ctx *c);

/* Returns the version of the library that the program runs with, such as "0.3.0", in static storage. */
LG_API const char *lg_version(void);

/* ---- errors ----
 *
 * The head of grad.h describes when the error of a context is set, and which functions keep working while it is.
 */

/* Why a call failed. */
typedef enum lg_error_code {
        LG_ERR_NONE = 0,     /* no error */
        LG_ERR_SHAPE = 1,    /* sizes that do not fit each other or the op */
        LG_ERR_DTYPE = 2,    /* a dtype that the op does not support */
        LG_ERR_DEVICE = 3,   /* inputs on different devices, or a device that is absent or does not work */
        LG_ERR_MEMORY = 4,   /* out of memory, on the host or on a device */
        LG_ERR_ARGUMENT = 5, /* a value out of range, NULL in place of a tensor, tensors of different contexts */
        /* a call at the wrong time: on a freed tensor, a second backward through one graph, a backward after a saved
         * value was changed in place, or a call that a callback must not make */
        LG_ERR_STATE = 6,
        LG_ERR_IO = 7,     /* the system failed to read or write */
        LG_ERR_FORMAT = 8, /* the content of a file is invalid */
        LG_ERR_CUDA = 9,   /* CUDA, cuBLAS or cuDNN failed */
        LG_ERR_COMM = 10,  /* another process of a group has failed, differs, or cannot be reached; see grad/group.h */
} lg_error_code;

/* Returns the message of the first error since lg_open() or lg_clear_error(), or NULL if there was none. If c is NULL,
 * returns a message saying so, in static storage. The text is valid until lg_clear_error() or lg_close(). */
LG_API const char *lg_error(const lg_ctx *c);

/* Returns the code of the error of c, or LG_ERR_NONE if no error is set. Returns LG_ERR_ARGUMENT if c is NULL. */
LG_API lg_error_code lg_error_code_of(const lg_ctx *c);

/* Returns the name of a code, such as "LG_ERR_SHAPE", or "LG_ERR_?" for a value that is no code, in static storage. */
LG_API const char *lg_error_name(lg_error_code code);

/* Clears the error, and any device-side error that no call has reported yet (see lg_synchronize()), so that optimisers
 * update parameters again. Does not wait for the devices. If a GPU no longer works, sets LG_ERR_CUDA. */
LG_API void lg_clear_error(lg_ctx *c);

/* Sets the error of c as the library does, for callbacks: custom ops, modules, hooks. The message is formatted as by
 * printf and cut to 1023 bytes. An earlier error stays. LG_ERR_NONE becomes LG_ERR_STATE. Returns false.
 * Example: return lg_set_error(call->ctx, LG_ERR_ARGUMENT, "cube: order is %d, below 1", order); */
LG_API bool lg_set_error(lg_ctx *c, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

/* Receives a message about something that is not an error. text is valid until the callback returns. The callback must
 * not call functions that use c, except lg_error() and other queries. */
typedef void lg_message_fn(lg_ctx *c, const char *text, void *user);

/* Sets the callback that receives messages which are not errors; fn = NULL, the initial state, discards them. At
 * present there are three. At most once for each context: 10,000 tensors were created in the outermost scope, which
 * frees none of them before lg_close(). On rank 0, once for each group: its CUDA devices exchange tensors through the
 * memory of the host, and why. When a rank leaves a group: another has not left it for the group's time limit. */
LG_API void lg_on_message(lg_ctx *c, lg_message_fn *fn, void *user);

/* ---- scopes ----
 *
 * lg_open() begins the outermost scope and lg_each_batch() one for each batch; other loops begin a scope for each step:
 *
 *     lg_scope step = lg_scope_begin(c);
 *     lg_tensor *loss = lg_mse(lg_forward(net, x), y);
 *     ...
 *     lg_scope_end(c, step);
 *
 * A tensor that is needed longer leaves its scope by lg_escape() or lg_keep(). Parameters and buffers of modules belong
 * to their module, not to a scope. Freeing a tensor ends its handle; the values stay in memory as long as a view or the
 * recorded graph needs them. Functions that receive a freed tensor fail with LG_ERR_STATE, but only for about a
 * thousand tensors: then the handle is used again. lg_escape() and lg_keep() work while an error is set.
 */

/* An open scope, as lg_scope_begin() returned it. */
typedef struct lg_scope {
        uint64_t id; /* 0: lg_scope_begin() failed */
} lg_scope;

/* Begins a scope inside the innermost open one. */
LG_API LG_NEW lg_scope lg_scope_begin(lg_ctx *c);

/* Ends a scope and the scopes that were begun inside it, and frees the tensors that belong to them. Fails with
 * LG_ERR_STATE if the scope is not open, is the outermost one, which only lg_close() ends, or was begun outside a call
 * that has not returned (hooks and other callbacks can only end scopes that they began). */
LG_API bool lg_scope_end(lg_ctx *c, lg_scope scope);

/* Moves t from its scope to the next outer one, to which it then belongs, and returns t. Returns t unchanged if it is
 * in the outermost scope, belongs to the caller or belongs to a module or another object. */
LG_API lg_tensor *lg_escape(lg_tensor *t);

/* Takes t out of its scope and returns t, which the caller then owns and frees with lg_free(), or leaves to lg_close().
 * Returns t unchanged if it belongs to the caller already, or to a module or another object. */
LG_API lg_tensor *lg_keep(lg_tensor *t);

/* Frees a tensor before its scope ends, or one that the caller owns. Does nothing if t was freed or belongs to a module
 * or another object. Fails with LG_ERR_STATE inside a callback of lg_set_trace(). */
LG_API void lg_free(lg_tensor *t);

/* Returns how many tensors of c are not freed, those of modules and objects included, to find scopes that grow. */
LG_API int64_t lg_live_tensors(const lg_ctx *c);

/* ---- memory ----
 *
 * Each device of a context has a cache: the memory of freed tensors is kept there and used again for the next ones. A
 * request that the cache cannot serve takes memory from the system through .alloc of lg_open(). If the system has none,
 * the cached memory of all devices is released and the request is tried again before it fails with LG_ERR_MEMORY.
 * LG_NO_DEVICE means the default device. A device that c has not used yet has statistics and a limit of 0.
 */

/* Allocates or frees memory as contexts do by default: by the C library on the CPU, by the device's own functions
 * elsewhere. Intended for lg_alloc_fn and lg_free_fn callbacks. lg_system_alloc() returns NULL if there is no memory;
 * the caller owns the memory and frees it with lg_system_free() and the same context, device and size. Both fail with
 * LG_ERR_DEVICE if the device is absent. c may be NULL for the CPU. */
LG_API void *lg_system_alloc(lg_ctx *c, lg_device device, size_t bytes);
LG_API void lg_system_free(lg_ctx *c, lg_device device, void *p, size_t bytes);

/* Memory of one device of a context, in bytes, and calls to the memory functions of lg_open(). Buffers are rounded up
 * to size classes. The numbers of the CPU include what the library needs for itself. */
typedef struct lg_memory_stats_t {
        int64_t used;          /* by live buffers */
        int64_t cached;        /* in the cache, free */
        int64_t peak;          /* the maximum of .used since lg_open() or lg_reset_peak_memory() */
        int64_t system_allocs; /* calls to .alloc that succeeded */
        int64_t system_frees;  /* calls to .free */
} lg_memory_stats_t;
/* Returns the memory statistics of a device as an lg_memory_stats_t.
 * Example: lg_memory_stats(c, lg_cpu()).peak */
#ifdef __cplusplus
#define lg_memory_stats(c, device)                                                                                     \
        (*lg_memory_stats_with((c), (device), const_cast<lg_memory_stats_t *>(lg_address(lg_memory_stats_t{})),        \
                               sizeof(lg_memory_stats_t)))
#else
#define lg_memory_stats(c, device)                                                                                     \
        (*lg_memory_stats_with((c), (device), &(lg_memory_stats_t){.used = 0}, sizeof(lg_memory_stats_t)))
#endif
/* Fills the first `size` bytes of ret, which belongs to the caller and may be NULL, and returns ret. */
LG_API lg_memory_stats_t *lg_memory_stats_with(const lg_ctx *c, lg_device device, lg_memory_stats_t *ret, size_t size);

/* Sets .peak of a device to its current .used. Works while an error is set. */
LG_API void lg_reset_peak_memory(lg_ctx *c, lg_device device);

/* Sets or returns the most memory, used and cached together, that tensors on a device may take from the system; 0: no
 * limit. A request beyond it fails as if the device had no memory left; memory already taken stays. */
LG_API bool lg_set_memory_limit(lg_ctx *c, lg_device device, int64_t bytes);
LG_API int64_t lg_memory_limit(const lg_ctx *c, lg_device device);

/* Gives the cached memory of all devices back to the system. Works while an error is set. */
LG_API void lg_empty_cache(lg_ctx *c);

/* ---- random state ----
 *
 * Random tensors, initialisation and dropout draw from a counter-based generator (Philox) whose whole state is a seed
 * and a counter. The same state gives the same numbers on every device, except for normally distributed ones, which may
 * differ by one unit in the last place (f64: by a few).
 */

/* The state of the random number generator. */
typedef struct lg_random_state {
        uint64_t seed;    /* as given to lg_seed() */
        uint64_t counter; /* how many blocks of numbers have been drawn */
} lg_random_state;

/* Sets or returns the random state. While an error is set, it cannot be changed. */
LG_API void lg_seed(lg_ctx *c, uint64_t seed);                     /* sets the seed and resets the counter to 0 */
LG_API lg_random_state lg_random_state_of(const lg_ctx *c);        /* zeros if c is NULL */
LG_API void lg_set_random_state(lg_ctx *c, lg_random_state state); /* restores it: the same numbers follow */

/* ---- threads and precision ---- */

/* Sets the maximum number of threads that a CPU kernel uses. 0 means $OMP_NUM_THREADS or, if that is not set, the
 * number of cores that the process may use by its affinity mask and the limits of its cgroup (cpu.max); two hardware
 * threads of a core count once. Larger numbers are reduced to 16 or four times that, whichever is greater. lg_threads()
 * returns the maximum. */
LG_API bool lg_set_threads(lg_ctx *c, int threads);
LG_API int lg_threads(const lg_ctx *c);

/* Restricts all devices to algorithms that give bit-for-bit the same results in each run, at some cost in speed; off at
 * first. lg_deterministic() returns whether that is on. */
LG_API void lg_set_deterministic(lg_ctx *c, bool on);
LG_API bool lg_deterministic(const lg_ctx *c);

/* Sets whether matrix products of f32 tensors may round their inputs to TF32 (10 bits of mantissa) on GPUs that support
 * it, which is several times faster; off at first, as in PyTorch. lg_allow_tf32() returns whether that is on. */
LG_API void lg_set_allow_tf32(lg_ctx *c, bool on);
LG_API bool lg_allow_tf32(const lg_ctx *c);
/* The same for convolutions, transposed ones, and their derivatives; on at first, as in PyTorch. */
LG_API void lg_set_conv_allow_tf32(lg_ctx *c, bool on);
LG_API bool lg_conv_allow_tf32(const lg_ctx *c);

/* ---- devices ----
 *
 * A context opens a device when the device is first used. Calls hand work to a GPU and return before it is done;
 * reading a value and lg_synchronize() wait. LG_NO_DEVICE means the default device.
 */

/* Returns the CPU as a device. */
LG_API lg_device lg_cpu(void);

/* Returns cuda:index if that GPU is present and works, else the CPU. A missing GPU is not an error here; to find out
 * why it is missing, call lg_parse_device() and read the message. Returns the CPU while an error is set. */
LG_API lg_device lg_try_cuda(lg_ctx *c, int index);

/* Stores the CUDA devices that work, at most `max`, in ret, or the CPU alone if there is none, and returns how many
 * entries it stored: 0 if ret is NULL or max is below 1. The array belongs to the caller. */
LG_API int lg_try_all_cuda(lg_ctx *c, int max, lg_device *ret);

/* Returns the device that text names: "cpu", "cuda" (which means cuda:0) or "cuda:1". Use it where a missing device is
 * an error. Returns LG_NO_DEVICE on failure: LG_ERR_ARGUMENT if text is not the name of a device, LG_ERR_DEVICE if the
 * device is absent or cannot be used, and the message says why. */
LG_API lg_device lg_parse_device(lg_ctx *c, const char *text);

/* Returns the name of a device, such as "cpu" or "cuda:0", in static storage. From index 16 on, the name is "cuda"
 * without an index; the name of LG_NO_DEVICE is "none". */
LG_API const char *lg_device_name(lg_device device);

/* Returns whether type and index of two devices are equal. */
LG_API bool lg_device_equal(lg_device a, lg_device b);

/* Returns how many devices of a type the system has, working or not; 0 without support for the type. */
LG_API int lg_device_count(lg_ctx *c, lg_device_type type);

/* Properties of a device. Texts that do not apply are empty. */
typedef struct lg_device_info_t {
        char name[96];       /* of the model */
        int64_t total_bytes; /* memory of the device; -1: unknown */
        int64_t free_bytes;  /* memory that no program uses; -1: unknown */
        int processors;      /* cores, or multiprocessors of a GPU; 0: unknown */
        int major, minor;    /* compute capability of a GPU, 0.0 for other devices */
        char driver[32];     /* the newest version of CUDA that the driver supports */
        char runtime[32];    /* version of the CUDA runtime */
        char blas[64];       /* version of cuBLAS, or why it is not available */
        char dnn[128];       /* version of cuDNN, or why it is not available */
        int64_t nccl_number; /* version of NCCL: 22809 is 2.28.9; 0: it is not available */
        char nccl[128];      /* the same in words, or why it is not available */
} lg_device_info_t;
/* Fills the lg_device_info_t *ret of the caller. Fails with LG_ERR_DEVICE also if the device does not answer.
 * Example: lg_device_info(c, lg_cpu(), &info) */
#define lg_device_info(c, device, ret) lg_device_info_with((c), (device), (ret), sizeof(lg_device_info_t))
LG_API bool lg_device_info_with(lg_ctx *c, lg_device device, lg_device_info_t *ret, size_t size);

/* Sets the device on which functions without .device create tensors; the CPU at first. Returns the previous one, also
 * on failure. lg_default_device() returns it, as LG_NO_DEVICE does in place of a device. Both return LG_NO_DEVICE
 * if c is NULL. */
LG_API lg_device lg_set_default_device(lg_ctx *c, lg_device device);
LG_API lg_device lg_default_device(const lg_ctx *c);

/* Waits until all devices of c have finished their work and fails with the device-side error that is pending, if any:
 * LG_ERR_ARGUMENT for a label or an index out of range that a kernel found in its data, LG_ERR_CUDA if the GPU failed.
 * lg_item() and lg_read() do the same for the device of their tensor. While a device-side error is pending, optimisers
 * leave their parameters unchanged. On the CPU none is ever pending: the call that ran the kernel fails. */
LG_API bool lg_synchronize(lg_ctx *c);

/* ---- dtypes ---- */

/* Returns a property of a dtype; texts are in static storage: */
LG_API const char *lg_dtype_name(lg_dtype dtype); /* its name, such as "f32"; "none" for LG_DTYPE_NONE */
LG_API size_t lg_dtype_size(lg_dtype dtype);      /* bytes of an element; 0 for values that are no dtype */
LG_API bool lg_dtype_is_float(lg_dtype dtype);    /* whether it is f32, f64, f16 or bf16 */

/* Returns the dtype in which an op of both dtypes computes, by PyTorch's rules for tensors that are not 0-d: a float
 * before an integer before bool, then the wider one; f16 with bf16 gives f32. LG_DTYPE_NONE gives the other one. */
LG_API lg_dtype lg_promote(lg_dtype a, lg_dtype b);

LG_END_C
#endif
