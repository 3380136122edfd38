/* files.c - system calls on files, and opening regular files. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Wrappers, because open() is variadic and access() checks permissions of the real user, not of the effective user. */
static int open_file(const char *path, int flags, mode_t mode)
{
        return open(path, flags, mode);
}

static int access_file(const char *path, int mode)
{
        return faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

const lg__files lg__system_files = {
        .open = open_file,
        .close = close,
        .lstat = lstat,
        .fstat = fstat,
        .access = access_file,
        .realpath = realpath,
        .pread = pread,
        .pwrite = pwrite,
        .fchmod = fchmod,
        .flock = flock,
        .fsync = fsync,
        .rename = rename,
        .unlink = unlink,
        .mkdir = mkdir,
};

const char *lg__file_kind(mode_t mode)
{
        return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : "a device";
}

int lg__open_regular(lg_ctx *c, const char *who, const char *path, int64_t *ret_bytes)
{
        const lg__files *files = lg__files_of(c);
        struct stat facts;
        int fd = path ? files->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0) : -1;
        if (!path) {
                lg__fail(c, LG_ERR_ARGUMENT, "%s: the path is NULL", who);
        } else if (fd < 0 || files->fstat(fd, &facts)) {
                lg__fail(c, lg__system_code(errno), "%s: %s cannot be opened: %s", who, path, strerror(errno));
        } else if (!S_ISREG(facts.st_mode)) {
                lg__fail(c, LG_ERR_IO, "%s: %s is %s, not a regular file", who, path, lg__file_kind(facts.st_mode));
        } else {
                *ret_bytes = facts.st_size;
                return fd;
        }
        if (fd >= 0)
                files->close(fd);
        return -1;
}

int64_t lg__pread_all(const lg__files *files, int fd, int64_t at, void *to, int64_t bytes, int *ret_error)
{
        int64_t done = 0;
        while (done < bytes) {
                size_t piece = bytes - done < (int64_t)LG__MOST_BYTES ? (size_t)(bytes - done) : LG__MOST_BYTES;
                ssize_t n = files->pread(fd, (char *)to + done, piece, (off_t)(at + done));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        *ret_error = errno;
                        return -1;
                }
                if (n == 0)
                        break;
                done += n;
        }
        return done;
}

bool lg__pwrite_all(const lg__files *files, int fd, int64_t at, const void *data, size_t bytes)
{
        for (const char *from = data; bytes;) {
                const size_t piece = bytes < LG__MOST_BYTES ? bytes : LG__MOST_BYTES;
                const ssize_t n = files->pwrite(fd, from, piece, (off_t)at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        errno = EIO; /* pwrite() wrote nothing and set no error */
                if (n <= 0)
                        return false;
                from += n;
                at += n;
                bytes -= (size_t)n;
        }
        return true;
}

int64_t lg__read_at(lg_ctx *c, const char *who, const char *path, int fd, int64_t at, void *to, int64_t bytes)
{
        int error = 0;
        const int64_t done = lg__pread_all(lg__files_of(c), fd, at, to, bytes, &error);
        if (done < 0)
                lg__fail(c, lg__system_code(error), "%s: %s cannot be read at byte %" PRId64 ": %s", who, path, at,
                         strerror(error));
        return done;
}
