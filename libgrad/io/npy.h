/* npy.h - reads and writes NumPy's npy format of one array, for npy files and entries of npz archives. Private. */
#ifndef LG_IO_NPY_H
#define LG_IO_NPY_H

#include "tensor/tensor.h"

/* A stream with one array in the npy format. */
typedef struct lg__npy_in {
        lg_ctx *ctx;
        const char *who;  /* name of the public function, for messages */
        const char *path; /* path of the file */
        const char *name; /* name of the entry in an npz archive; NULL: an npy file */
        int64_t bytes;    /* bytes of header and data together */
        int64_t at;       /* position of the next byte */
        /* Reads exactly `bytes` bytes from position `at`, without moving `at`. Returns false with an error. */
        bool (*get)(struct lg__npy_in *in, void *data, size_t bytes);
        void *stream; /* the stream that `get` reads, for instance an int * to a file descriptor */
} lg__npy_in;

/* Contents of a header. */
typedef struct lg__npy {
        char kind; /* type of the elements in the file: f, i, u or b */
        int width; /* bytes of an element in the file */
        bool swapped, fortran;
        lg_dtype dtype; /* dtype of the tensor */
        lg_shape shape;
} lg__npy;

/* Sets the error "who: path, array "name" ...". Returns false. */
bool lg__npy_fail(const lg__npy_in *in, lg_error_code code, const char *format, ...) LG_PRINTF(3, 4);
#define lg__npy_bad(in, ...) lg__npy_fail((in), LG_ERR_FORMAT, __VA_ARGS__)
/* Adds the function and path to the context's error, which must be a lack of memory. Returns false. */
bool lg__npy_no_memory(const lg__npy_in *in);
/* Reads exactly `bytes` bytes and advances `at`. Returns false with an error. */
bool lg__npy_get(lg__npy_in *in, void *data, size_t bytes);
/* Reads from the magic to the first element. Returns false with an error. In npy_header.c. */
bool lg__npy_get_header(lg__npy_in *in, lg__npy *ret);
/* Returns false and sets LG_ERR_FORMAT if the length of the data after the header is not as the header requires. */
bool lg__npy_check_end(const lg__npy_in *in, const lg__npy *h);
/* Reads from a file: a `get` whose `stream` points to an int, the file descriptor. */
bool lg__npy_get_from_file(lg__npy_in *in, void *data, size_t bytes);
/* Reads the array as a row-major tensor on the CPU, in the innermost scope. Returns NULL with an error. */
lg_tensor *lg__npy_read(lg__npy_in *in);

/* ---- writing: npy_write.c ---- */

#define LG__NPY_HEADER 320 /* bytes of the longest header that is written */
/* Returns true if NumPy has the dtype of t; otherwise returns false and sets LG_ERR_DTYPE. */
bool lg__npy_writable(const lg_tensor *t, const char *who);
/* Writes the magic and the header for t to `out`. Returns the number of bytes, a multiple of 64. */
size_t lg__npy_header(const lg_tensor *t, char out[LG__NPY_HEADER]);
/* Returns t itself if row-major on the CPU, or a row-major CPU copy that the caller releases, or NULL with an error. */
lg_tensor *lg__npy_on_host(const lg_tensor *t);

#endif
