/* files.h - system calls on files, in a table for each context, which tests replace to make any call fail. Private. */
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
        int (*access)(const char *path, int mode); /* for the effective user and group */
        char *(*realpath)(const char *path, char *ret);
        ssize_t (*pread)(int fd, void *data, size_t bytes, off_t at);
        ssize_t (*pwrite)(int fd, const void *data, size_t bytes, off_t at);
        int (*fchmod)(int fd, mode_t mode);
        int (*flock)(int fd, int operation);
        int (*fsync)(int fd);
        int (*rename)(const char *from, const char *to);
        int (*unlink)(const char *path);
        int (*mkdir)(const char *path, mode_t mode);
} lg__files;
extern const lg__files lg__system_files;

/* Returns the table of system calls that the context uses. */
static inline const lg__files *lg__files_of(const lg_ctx *c)
{
        return c->files ? c->files : &lg__system_files;
}

/* Most bytes in one read or write; Linux transfers at most 2^31 - 4096. */
#define LG__MOST_BYTES ((size_t)1 << 30)

/* Returns "a folder", "a pipe" or "a device" for the mode of a file that is not a regular file. */
const char *lg__file_kind(mode_t mode);

/* Opens the regular file `path` for reading and stores its size in bytes. Returns a file descriptor, or -1 with an
 * error: LG_ERR_IO, also for a pipe or a device, without waiting for the other end; LG_ERR_ARGUMENT if path is NULL. */
int lg__open_regular(lg_ctx *c, const char *who, const char *path, int64_t *ret_bytes);

/* Reads `bytes` bytes from byte `at` on, in any thread. Returns the number of bytes, which is smaller only at the end
 * of the file, or -1 with errno in *ret_error. */
int64_t lg__pread_all(const lg__files *files, int fd, int64_t at, void *to, int64_t bytes, int *ret_error);
/* Writes `bytes` bytes from byte `at` on, in one system call if that takes them all. Returns false with errno set. */
bool lg__pwrite_all(const lg__files *files, int fd, int64_t at, const void *data, size_t bytes);
/* Reads as lg__pread_all() does. Returns -1 and sets LG_ERR_IO or LG_ERR_MEMORY on failure. */
int64_t lg__read_at(lg_ctx *c, const char *who, const char *path, int fd, int64_t at, void *to, int64_t bytes);

#endif
