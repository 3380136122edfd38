/* context.h - contexts, errors, scopes, memory, devices, random state. */
#ifndef LG_CONTEXT_H
#define LG_CONTEXT_H

#include "grad/base.h"

LG_BEGIN

/* alloc and free: the pair of functions through which the context takes all memory, on the host (device.type is
 * LG_DEVICE_CPU) and on devices. alloc returns 64-byte aligned memory or NULL; free gets the size that alloc got. They
 * may call the standard ones, lg_system_alloc and lg_system_free, which are the default. Give both or neither. */
typedef void *lg_alloc_fn(void *user, lg_ctx *c, lg_device device, size_t bytes);
typedef void lg_free_fn(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes);
LG_API void *lg_system_alloc(lg_ctx *c, lg_device device, size_t bytes);
LG_API void lg_system_free(lg_ctx *c, lg_device device, void *p, size_t bytes);

typedef struct lg_open_options {
        LG_OPTIONS_HEAD
        int threads LG_DEFAULT;   /* most threads a CPU kernel uses; see lg_set_threads */
        uint64_t seed LG_DEFAULT; /* of the random state */
        lg_alloc_fn *alloc LG_DEFAULT;
        lg_free_fn *free LG_DEFAULT;
        void *user LG_DEFAULT; /* of alloc and free */
} lg_open_options;
/* A new context with its outermost scope open; NULL only if there is no memory for it. One thread at a time may use it.
 * lg_open(), lg_open(.threads = 2, .seed = 7) */
#define lg_open(...) LG_CALL0(lg_open_with, lg_open_options, __VA_ARGS__)
LG_API LG_NEW lg_ctx *lg_open_with(const lg_open_options *options);
/* Frees all that belongs to c: tensors, modules, optimisers, loaders, memory; what lg_to_dlpack exported stays until it
 * is given back. c may be NULL. What release functions call meanwhile behaves as if an error were set that cannot be
 * cleared. Inside a call that uses c (a hook, a release function, an own forward), LG_ERR_STATE, and nothing is freed.
 */
LG_API void lg_close(lg_ctx *c);
/* The version of the library that runs, "0.1.0"; LG_VERSION is that of the header. */
LG_API const char *lg_version(void);

typedef enum lg_error_code {
        LG_ERR_NONE = 0,
        LG_ERR_SHAPE = 1,    /* sizes that do not fit each other or the op */
        LG_ERR_DTYPE = 2,    /* an element type that the op does not take */
        LG_ERR_DEVICE = 3,   /* inputs on two devices, or a device that is not there */
        LG_ERR_MEMORY = 4,   /* no memory left, on the host or a device */
        LG_ERR_ARGUMENT = 5, /* a value out of range, NULL where a tensor is needed, tensors of two contexts */
        LG_ERR_STATE = 6,    /* right call, wrong moment: used after its scope, backward twice, saved value changed */
        LG_ERR_IO = 7,       /* the system could not read or write */
        LG_ERR_FORMAT = 8,   /* a file is not what it should be */
        LG_ERR_CUDA = 9,     /* CUDA, cuBLAS or cuDNN failed */
} lg_error_code;
/* While an error is set, calls that compute or change something do nothing and return NULL, false or nothing; reading,
 * printing, the grad mode, and what ends or frees things work. */
/* The first failure since lg_open or lg_clear_error, in full, or NULL. Of a NULL context: that it is NULL. */
LG_API const char *lg_error(const lg_ctx *c);
LG_API lg_error_code lg_error_code_of(const lg_ctx *c);
/* "LG_ERR_SHAPE" and so on. */
LG_API const char *lg_error_name(lg_error_code code);
/* Forgets the error, and what kernels found in data and no call has reported yet, so that optimisers go on. Does not
 * wait. */
LG_API void lg_clear_error(lg_ctx *c);
/* Sets an error as the library would (an earlier one stays), for own ops, modules and data sets. Returns false. */
LG_API bool lg_set_error(lg_ctx *c, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);

/* From now on fn gets what the library noticed and is no error; at first, and with NULL, nobody does. There is one such
 * message: 10,000 tensors were made in the outermost scope, which frees none before lg_close. fn must not call
 * functions of c but lg_error and the like; text lasts as long as the call. */
typedef void lg_message_fn(lg_ctx *c, const char *text, void *user);
LG_API void lg_on_message(lg_ctx *c, lg_message_fn *fn, void *user);

/* A scope owns the results made while it is the innermost; ending it frees them and ends the scopes inside it. */
typedef struct lg_scope {
        uint64_t id;
} lg_scope;
LG_API LG_NEW lg_scope lg_scope_begin(lg_ctx *c);
/* False, with LG_ERR_STATE, if that scope is not open, is the context's outermost one, which only lg_close ends, or
 * holds a call that has not returned: hooks and own functions cannot end it. Works while an error is set. */
LG_API bool lg_scope_end(lg_ctx *c, lg_scope scope);
/* Hands t to the scope that encloses its own, and returns it. */
LG_API lg_tensor *lg_escape(lg_tensor *t);
/* Hands t to the caller, who frees it with lg_free(); returns it. */
LG_API lg_tensor *lg_keep(lg_tensor *t);
/* Frees a tensor before its scope would. NULL and tensors of modules and optimisers are left alone. */
LG_API void lg_free(lg_tensor *t);
/* Tensor handles alive in c, those of modules and optimisers included. */
LG_API int64_t lg_live_tensors(const lg_ctx *c);

/* Bytes of buffers on one device, and calls to the memory hooks. */
typedef struct lg_memory_stats_t {
        int64_t used, cached, peak; /* by live buffers; in the cache; most ever used at once */
        int64_t system_allocs, system_frees;
} lg_memory_stats_t;
/* lg_memory_stats(c, device).peak */
#ifdef __cplusplus
#define lg_memory_stats(c, device)                                                                                     \
        (*lg_memory_stats_with((c), (device), const_cast<lg_memory_stats_t *>(lg_address(lg_memory_stats_t{})),        \
                               sizeof(lg_memory_stats_t)))
#else
#define lg_memory_stats(c, device)                                                                                     \
        (*lg_memory_stats_with((c), (device), &(lg_memory_stats_t){.used = 0}, sizeof(lg_memory_stats_t)))
#endif
/* Fills `size` bytes of ret and returns ret. */
LG_API lg_memory_stats_t *lg_memory_stats_with(const lg_ctx *c, lg_device device, lg_memory_stats_t *ret, size_t size);
LG_API void lg_reset_peak_memory(lg_ctx *c, lg_device device);
/* From now on buffers of that device, used and cached together, may take no more than that from the system; 0: no
 * limit. What is there already stays. A request beyond it fails as if the device had no memory left. */
LG_API bool lg_set_memory_limit(lg_ctx *c, lg_device device, int64_t bytes);
LG_API int64_t lg_get_memory_limit(const lg_ctx *c, lg_device device);
/* Gives cached buffers of all devices back to the system. */
LG_API void lg_empty_cache(lg_ctx *c);

/* The random state: a seed and a counter. The same state gives the same numbers on every device, but for normals, which
 * may differ by a unit in the last place (of f64: a few). */
typedef struct lg_random_state {
        uint64_t seed, counter;
} lg_random_state;
LG_API void lg_seed(lg_ctx *c, uint64_t seed);
LG_API lg_random_state lg_get_random_state(const lg_ctx *c);
LG_API void lg_set_random_state(lg_ctx *c, lg_random_state state);
/* The most threads a CPU kernel uses. 0: as many as $OMP_NUM_THREADS says or, without it, as the process has cores.
 * Never more than 16, or four for each core. */
LG_API bool lg_set_threads(lg_ctx *c, int threads);
LG_API int lg_get_threads(const lg_ctx *c);
/* From now on every device repeats itself bit for bit, at some cost in speed. */
LG_API void lg_set_deterministic(lg_ctx *c, bool on);
LG_API bool lg_get_deterministic(const lg_ctx *c);
/* Whether products and convolutions of f32 may round their inputs to TF32 (a mantissa of 10 bits) on devices that have
 * it, which is several times faster; off at first. */
LG_API void lg_set_allow_tf32(lg_ctx *c, bool on);
LG_API bool lg_get_allow_tf32(const lg_ctx *c);

LG_API lg_device lg_cpu(void);
/* cuda:index if there is one that works, else the CPU; never an error. The error of lg_parse_device says why there is
 * none. */
LG_API lg_device lg_try_cuda(lg_ctx *c, int index);
/* Up to `max` CUDA devices that work into ret, or the CPU alone if there is none; returns how many. */
LG_API int lg_try_all_cuda(lg_ctx *c, int max, lg_device *ret);
/* "cpu", "cuda", "cuda:1"; a device that is not there is LG_ERR_DEVICE with what is. Gives LG_NO_DEVICE on failure. */
LG_API lg_device lg_parse_device(lg_ctx *c, const char *text);
/* "cpu" or "cuda:0", in storage that lasts. */
LG_API const char *lg_device_name(lg_device device);
LG_API bool lg_device_equal(lg_device a, lg_device b);
/* How many devices of a type there are. */
LG_API int lg_device_count(lg_ctx *c, lg_device_type type);
typedef struct lg_device_info_t {
        char name[96];
        int64_t total_bytes, free_bytes; /* of all programs together; -1: not known */
        int processors;                  /* cores, or multiprocessors of a GPU; 0: not known */
        int major, minor;                /* compute capability; 0.0: it has none */
        /* Versions of the newest CUDA that the driver knows, of the CUDA runtime, of cuBLAS and of cuDNN, or why one is
         * not there; empty for other devices. */
        char driver[32], runtime[32], blas[64], dnn[128];
} lg_device_info_t;
#define lg_device_info(c, device, ret) lg_device_info_with((c), (device), (ret), sizeof(lg_device_info_t))
LG_API bool lg_device_info_with(lg_ctx *c, lg_device device, lg_device_info_t *ret, size_t size);
/* Where creations without .device go; the CPU at first. Setting it returns the previous one. */
LG_API lg_device lg_default_device(lg_ctx *c, lg_device device);
LG_API lg_device lg_get_default_device(const lg_ctx *c);
/* Waits for all devices; tells what kernels found meanwhile. */
LG_API bool lg_synchronize(lg_ctx *c);

/* "f32", ...; bytes of an element; the dtype that an op of both computes in, as in PyTorch. */
LG_API const char *lg_dtype_name(lg_dtype dtype);
LG_API size_t lg_dtype_size(lg_dtype dtype);
LG_API bool lg_dtype_is_float(lg_dtype dtype);
LG_API lg_dtype lg_promote(lg_dtype a, lg_dtype b);

LG_END_C
#endif
