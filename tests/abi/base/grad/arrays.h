/* arrays.h - arrays of other programs: NumPy's files, and memory shared with PyTorch, NumPy, JAX or CuPy by DLPack.
 *
 * Use NumPy's files, npy with one array and npz with several, to exchange data with Python through the file system. Use
 * DLPack to exchange tensors within one process without copying them.
 *
 *     lg_tensor *x = lg_read_npy(c, "x.npy");
 *     lg_write_npz(c, "two.npz", LG_NAMES("x", "y"), LG_LIST(x, lg_square(x)));
 */
#ifndef LG_ARRAYS_H
#define LG_ARRAYS_H

#include "grad/base.h"

LG_BEGIN

/* ---- NumPy's files ----
 *
 * Tensors are read to the CPU, row-major whatever the order of elements and bytes in the file. float64, float32,
 * float16, int64, int32, uint8 and bool keep their dtype; int8, int16 and uint16 become i32, uint32 and uint64 i64.
 *
 * Functions fail with LG_ERR_IO if the file cannot be opened, read or written, or is not a regular one (symbolic links
 * are followed). Functions for npz archives fail with LG_ERR_STATE if libgrad was built without libzip.
 */

/* Reads the array in an npy file, as np.save writes it, of format version 1.0 to 3.0. An array in Fortran order takes
 * its memory twice while it is read. Fails with LG_ERR_FORMAT if the header is wrong, the file is truncated or has
 * trailing bytes, the array has more than LG_MAX_DIMS dimensions, a value does not fit i64, or its dtype has no
 * counterpart in libgrad (complex numbers, strings, records, Python objects). */
LG_API LG_NEW lg_tensor *lg_read_npy(lg_ctx *c, const char *path);

/* Writes t, on any device and in any layout, as an npy file of version 1.0 in C order. The data are written to a
 * temporary file, which replaces an existing file only when it is complete, as in lg_save(). Waits for t's device and
 * reports its device-side errors. Fails with LG_ERR_DTYPE for bf16, which NumPy does not have. */
LG_API bool lg_write_npy(const lg_tensor *t, const char *path);

/* Reads the array `name`, given with or without ".npy", from an npz archive, as np.savez and np.savez_compressed write
 * it. The memory that libzip takes in addition to the context's is bounded by the size of the archive's directory, not
 * by the sizes declared there. Fails with LG_ERR_ARGUMENT if there is no such array, and with LG_ERR_FORMAT in the
 * cases of lg_read_npy() and if the archive is damaged, has two entries of that name, or the entry is encrypted, has a
 * wrong checksum, is compressed by another method than deflate, or declares a size that no compression can reach. */
LG_API LG_NEW lg_tensor *lg_read_npz(lg_ctx *c, const char *path, const char *name);

/* Returns the names of the arrays in an npz archive, without ".npy", in the archive's order; other entries are left
 * out. The list belongs to the context and is valid until lg_names_free() or lg_close(). It is empty on failure:
 * LG_ERR_FORMAT if the archive is damaged or has a name twice. */
LG_API LG_NEW lg_names lg_npz_names(lg_ctx *c, const char *path);

/* Frees a list that lg_npz_names() returned. Does nothing if the list comes from another function. */
LG_API void lg_names_free(lg_ctx *c, lg_names names);

/* Writes one or more arrays to an npz archive, uncompressed, as np.savez does; the same tensors always give the same
 * bytes. The file is replaced as by lg_write_npy(). Each array has a name of its own, UTF-8 of 1 to 65,000 bytes.
 * Example: lg_write_npz(c, "batch.npz", LG_NAMES("x", "y"), LG_LIST(x, y)) */
LG_API bool lg_write_npz(lg_ctx *c, const char *path, lg_names_in names, lg_list_in arrays);

/* ---- DLPack ----
 *
 * Both sides use the same memory, and each sees what the other writes. libgrad does not notice writes of the other
 * side, which must therefore not write while a graph that was computed from the memory is still to be differentiated.
 * Both functions fail with LG_ERR_STATE if libgrad was built without DLPack.
 *
 * Exported memory is valid until the consumer calls m->deleter(m), exactly once, in any thread, even after lg_close().
 * While the context is open, the deleter only records that the memory was given back; the thread that uses the context
 * frees it in lg_to_dlpack(), lg_from_dlpack(), lg_free() and lg_close(), and, unless it is borrowed memory, also in
 * lg_scope_end() and lg_empty_cache() and before an allocation fails. lg_close() frees everything except memory that is
 * still exported; the deleters called after it free that memory, and the last one frees the rest of the context. They
 * call the .free function of lg_open() and the release functions of borrowed memory, which must work until then.
 */

/* The struct of DLPack 0.6 that a Python capsule named "dltensor" holds; <dlpack/dlpack.h> defines it. */
struct DLManagedTensor;

/* Exports t without a copy: the data, dtype, shape, strides and device of the struct are t's (kDLCUDA for GPUs, kDLCPU
 * for host memory, also if it is pinned), and byte_offset is 0. Waits for t's device. The struct is owned by the
 * consumer, who calls its deleter. Fails with LG_ERR_STATE if t needs a gradient (export lg_detach(t)), LG_ERR_DTYPE
 * for bool, which DLPack 0.6 does not have, and LG_ERR_DEVICE if t is on another device than the CPU or a GPU. */
LG_API LG_NEW struct DLManagedTensor *lg_to_dlpack(lg_tensor *t);

/* Returns a tensor over the memory of m, on the CPU (for kDLCPU and kDLCUDAHost) or on the CUDA device with m's
 * device_id; it belongs to the innermost open scope. Elements are f16, bf16, f32, f64, i32, i64 or u8; strides are NULL
 * (row-major) or not negative. Only data that is not aligned for its dtype is copied, to row-major order. The producer
 * must have finished its work on the memory before the call.
 *
 * On success m belongs to c, which calls m->deleter(m), if it is not NULL, exactly once: when no tensor, graph or
 * export uses the memory any more and the device has finished with it, or at once if the data was copied. On failure m
 * still belongs to the caller and its deleter is not called.
 *
 * Fails with LG_ERR_ARGUMENT if m, its shape or its data is NULL, a stride is negative, or data extends beyond the
 * address space; LG_ERR_SHAPE if there are more than LG_MAX_DIMS dimensions, negative sizes, too many elements or too
 * large strides; LG_ERR_DTYPE for other dtypes and more than one lane; LG_ERR_DEVICE for other or absent devices. */
LG_API LG_NEW lg_tensor *lg_from_dlpack(lg_ctx *c, struct DLManagedTensor *m);

LG_END_C
#endif
