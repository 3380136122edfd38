/* arrays.h - arrays of other programs: NumPy's files, and memory shared with PyTorch, NumPy, JAX or CuPy by DLPack. */
#ifndef LG_ARRAYS_H
#define LG_ARRAYS_H

#include "grad/base.h"

/* DLPack's struct (version 0.6), which a Python capsule named "dltensor" holds. <dlpack/dlpack.h> defines it. */
struct DLManagedTensor;

LG_BEGIN

/* ---- NumPy's files ---- */

/* A tensor from NumPy's file of one array (np.save; format versions 1.0 to 3.0), row-major on the CPU, whatever the
 * order of the file's elements and bytes. float64, 32, 16, int64, int32, uint8 and bool keep their dtype; int16, int8
 * and uint16 become i32, uint32 and uint64 become i64 (LG_ERR_FORMAT where a value does not fit). The file is a regular
 * one, as for lg_read_idx. An array in Fortran order takes its memory twice while it is read. LG_ERR_IO: cannot be
 * opened or read; LG_ERR_FORMAT: a wrong header, truncation, trailing bytes, more than LG_MAX_DIMS dimensions, a dtype
 * that libgrad does not have (complex numbers, strings, records, Python objects); LG_ERR_MEMORY. */
LG_API LG_NEW lg_tensor *lg_read_npy(lg_ctx *c, const char *path);
/* Writes t, on any device and in any layout, as such a file: version 1.0, C order. A file is written beside the old one
 * and takes its place only when it is whole, as in lg_save. LG_ERR_DTYPE: bf16, which NumPy does not have; LG_ERR_IO: a
 * full disk, or `path` is no regular file or may not be written; LG_ERR_MEMORY. */
LG_API bool lg_write_npy(const lg_tensor *t, const char *path);

/* The array `name` of NumPy's archive of arrays (np.savez, np.savez_compressed), as lg_read_npy reads a file. The name
 * may end in ".npy" or not. It needs libzip, else LG_ERR_STATE. What libzip takes beside the memory of the context is
 * bounded by the archive's directory, not by the sizes that it declares. LG_ERR_ARGUMENT: there is no such array;
 * LG_ERR_FORMAT: also two entries of that name, an encrypted one, a wrong checksum, a size that no compression gives.
 */
LG_API LG_NEW lg_tensor *lg_read_npz(lg_ctx *c, const char *path, const char *name);
/* The names of an archive's arrays, without ".npy", in the archive's order; entries that are no arrays are left out.
 * They belong to the context until lg_names_free. Empty on failure; the errors are those of lg_read_npz. */
LG_API LG_NEW lg_names lg_npz_names(lg_ctx *c, const char *path);
/* Of empty names, and of others than lg_npz_names gave: does nothing. */
LG_API void lg_names_free(lg_ctx *c, lg_names names);
/* Writes an archive of arrays, each under its name, as np.savez does, uncompressed; the same tensors give the same
 * bytes. It needs libzip, else LG_ERR_STATE. LG_ERR_ARGUMENT: as many names as arrays are needed, at least one; a name
 * twice, empty, of more than 65,000 bytes or not UTF-8. The other errors are those of lg_write_npy.
 * lg_write_npz(c, "batch.npz", LG_NAMES("x", "y"), LG_LIST(x, y)) */
LG_API bool lg_write_npz(lg_ctx *c, const char *path, lg_names_in names, lg_list_in arrays);

/* ---- DLPack ----
 *
 * Exported memory stays valid until the consumer calls m->deleter(m), exactly once, in any thread, also after lg_close.
 * While the context is open, a deleter only records that the memory came back, and the context's own thread frees it:
 * in lg_to_dlpack, lg_from_dlpack, lg_free and lg_close, and, unless it was borrowed, in lg_scope_end, in
 * lg_empty_cache and before an allocation fails. lg_close frees everything but the memory that is still exported; later
 * deleters free that, and the last one the rest of the context. They call .free of lg_open and the release functions of
 * borrowed memory, which must work until then.
 *
 * Each side sees what the other one writes, but libgrad does not notice the other's writes: while a graph that was
 * computed from the memory is still to be differentiated, the other side must not write.
 */

/* Exports t's memory without a copy: data, dtype, shape, strides and device (kDLCUDA, or kDLCPU, also for pinned
 * memory) are t's, byte_offset is 0. Waits for t's device. LG_ERR_STATE: t requires grad or is inside the graph (export
 * lg_detach(t)), or libgrad was built without DLPack; LG_ERR_DTYPE: bool, which DLPack 0.6 does not have;
 * LG_ERR_DEVICE: neither the CPU nor CUDA; LG_ERR_MEMORY. */
LG_API LG_NEW struct DLManagedTensor *lg_to_dlpack(lg_tensor *t);
/* A tensor over m's memory, without a copy: on the CPU (kDLCPU, kDLCUDAHost) or on the CUDA device with m's device_id;
 * f16, bf16, f32, f64, i32, i64 or u8; strides NULL (row-major) or not negative. Only data that is not aligned for its
 * dtype is copied, row-major. The producer's work on the memory must be finished before the call.
 * On success m belongs to c, which calls m->deleter(m), if it is not NULL, exactly once: when no tensor, graph or
 * export needs the memory any more and the device has finished with it (after a copy: at once). On failure m still
 * belongs to the caller, and its deleter is not called.
 * LG_ERR_ARGUMENT: m, its shape or its data is NULL, a negative stride, data beyond the address space; LG_ERR_SHAPE:
 * more than LG_MAX_DIMS dimensions, negative sizes, too many elements or strides too large; LG_ERR_DTYPE: another dtype
 * or more than one lane; LG_ERR_DEVICE: another kind of device, or a CUDA device that is not there; LG_ERR_STATE:
 * libgrad was built without DLPack; LG_ERR_MEMORY. */
LG_API LG_NEW lg_tensor *lg_from_dlpack(lg_ctx *c, struct DLManagedTensor *m);

LG_END_C
#endif
