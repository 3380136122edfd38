/* npy.h - NumPy's format of one array, read from any stream of bytes; npy files and the entries of npz archives share
 * it.
 */
#ifndef LG_IO_NPY_H
#define LG_IO_NPY_H

#include "tensor/tensor.h"

/* The bytes of one array in the format npy. */
typedef struct lg__npy_in {
        lg_ctx *ctx;
        const char *who;  /* the public function, for messages */
        const char *path; /* of the file */
        const char *name; /* of the entry in an archive; NULL: the file is the array */
        int64_t bytes;    /* of all: header and data */
        int64_t at;       /* where the next byte is read */
        /* Reads exactly so many bytes from `at`, and does not move it. False: an error. */
        bool (*get)(struct lg__npy_in *in, void *data, size_t bytes);
        void *stream; /* of get */
} lg__npy_in;

/* What a header says. */
typedef struct lg__npy {
        char kind; /* f, i, u or b */
        int width; /* bytes of an element in the stream */
        bool swapped, fortran;
        lg_dtype dtype; /* of the tensor */
        lg_shape shape;
} lg__npy;

/* The error "who: path, array "name" ...". Returns false. */
bool lg__npy_fail(const lg__npy_in *in, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);
#define lg__npy_bad(in, ...) lg__npy_fail((in), LG_ERR_FORMAT, __VA_ARGS__)
/* Puts function and file in front of the context's error, which is that memory is missing. Returns false. */
bool lg__npy_no_memory(const lg__npy_in *in);
/* Reads exactly so many bytes and moves `at`. False: an error. */
bool lg__npy_get(lg__npy_in *in, void *data, size_t bytes);
/* npy_header.c: from the magic to the first element. False: an error. */
bool lg__npy_get_header(lg__npy_in *in, lg__npy *ret);
/* False, with an error: the data that follow the header are not as long as it says. */
bool lg__npy_check_end(const lg__npy_in *in, const lg__npy *h);
/* A `get` whose stream is an int *, an open file. */
bool lg__npy_get_from_file(lg__npy_in *in, void *data, size_t bytes);
/* All of it as a row-major tensor on the CPU, in the innermost scope. NULL: an error. */
lg_tensor *lg__npy_read(lg__npy_in *in);

/* ---- writing: npy_write.c ---- */

#define LG__NPY_HEADER 320 /* bytes of the longest header that is written */
/* True if NumPy has the dtype of t; else LG_ERR_DTYPE. */
bool lg__npy_writable(const lg_tensor *t, const char *who);
/* The header of t with all that is in front of the elements; returns its bytes, a multiple of 64. */
size_t lg__npy_header(const lg_tensor *t, char out[LG__NPY_HEADER]);
/* t itself where it is row-major on the CPU, else such a copy, which the caller releases. NULL: an error. */
lg_tensor *lg__npy_on_host(const lg_tensor *t);

#endif
