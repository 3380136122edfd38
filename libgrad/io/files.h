/* files.h - the system's calls on files, in a table of each context, which a test replaces to make any of them fail. */
#ifndef LG_IO_FILES_H
#define LG_IO_FILES_H

#include <sys/stat.h>
#include <sys/types.h>
#include "tensor/tensor.h"

typedef struct lg__files {
        int (*open)(const char *path, int flags, mode_t mode);
        int (*close)(int fd);
        int (*lstat)(const char *path, struct stat *facts);
        int (*fstat)(int fd, struct stat *facts);
        int (*access)(const char *path, int mode); /* with the effective user and group */
        char *(*realpath)(const char *path, char *ret);
        ssize_t (*pread)(int fd, void *data, size_t bytes, off_t at);
        ssize_t (*pwrite)(int fd, const void *data, size_t bytes, off_t at);
        int (*fchmod)(int fd, mode_t mode);
        int (*flock)(int fd, int operation);
        int (*fsync)(int fd);
        int (*rename)(const char *from, const char *to);
        int (*unlink)(const char *path);
} lg__files;
extern const lg__files lg__system_files;

/* The table that calls of this context go through. */
static inline const lg__files *lg__files_of(const lg_ctx *c)
{
        return c->files ? c->files : &lg__system_files;
}

/* Reads and writes take at most so many bytes at once, as Linux does. */
#define LG__MOST_BYTES ((size_t)1 << 30)

/* "a folder", "a pipe" or "a device", which is not a regular file. */
const char *lg__file_kind(mode_t mode);

/* Opens the regular file `path` for reading and gives its size; -1: LG_ERR_IO, LG_ERR_ARGUMENT for NULL. A pipe or a
 * device, where a read may wait for ever and the size says nothing, is refused, and not waited for when it is opened.
 */
int lg__open_regular(lg_ctx *c, const char *who, const char *path, int64_t *ret_bytes);

/* Reads `bytes` bytes from byte `at` on, or fewer where the file ends before; for any thread. Returns how many; -1,
 * with errno in *ret_error: it cannot be read. */
int64_t lg__pread_all(const lg__files *files, int fd, int64_t at, void *to, int64_t bytes, int *ret_error);
/* The same in a context; -1: LG_ERR_IO. */
int64_t lg__read_at(lg_ctx *c, const char *who, const char *path, int fd, int64_t at, void *to, int64_t bytes);

#endif
