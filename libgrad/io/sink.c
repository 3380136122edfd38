/* sink.c - writes a file through a temporary one: write, synchronise, rename, synchronise the folder. */
#include "sink.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "files.h"

#define BUFFER ((size_t)1 << 18)
#define MOST_TRIES 10000 /* most temporary names to try; processes that write the same file use different ones */
#define NAME_ROOM 64     /* bytes of a temporary name besides the target's */
#define MOST_NAME 180    /* bytes of the target's name in a temporary name; file systems limit names to 255 */

/* Sets the error "op: path what: why", with errno as the reason. Returns false. */
static bool failed(const lg__sink *s, const char *what)
{
        return lg__fail(s->ctx, lg__system_code(errno), "%s: %s %s: %s", s->op, s->path, what, strerror(errno));
}

/* Sets an error as failed() does, about another path than the caller's. Returns false. */
static bool failed_at(const lg__sink *s, const char *path, const char *what)
{
        return lg__fail(s->ctx, lg__system_code(errno), "%s: %s cannot be written: %s %s: %s", s->op, s->path, path,
                        what, strerror(errno));
}

/* ---- finding the target ---- */

static bool check_old(lg__sink *s, const struct stat *facts)
{
        if (!S_ISREG(facts->st_mode))
                return lg__fail(s->ctx, LG_ERR_IO, "%s: %s is %s, not a regular file", s->op, s->path,
                                lg__file_kind(facts->st_mode));
        if (lg__files_of(s->ctx)->access(s->target, W_OK)) /* rename() ignores permissions of the file */
                return failed(s, "cannot be written");
        s->replaces = true;
        s->mode = facts->st_mode & 0777;
        return true;
}

/* Sets the target to the path or, for a symbolic link, to the file that the link points to. Checks an existing file. */
static bool find_target(lg__sink *s)
{
        const lg__files *files = lg__files_of(s->ctx);
        struct stat facts;
        size_t bytes = strlen(s->path);
        if (!bytes || s->path[bytes - 1] == '/' || bytes >= PATH_MAX)
                return lg__fail(s->ctx, LG_ERR_IO, "%s: \"%s\" is not the path of a file", s->op, s->path);
        strcpy(s->target, s->path);
        if (files->lstat(s->path, &facts))
                return errno == ENOENT || failed(s, "cannot be written");
        if (!S_ISLNK(facts.st_mode))
                return check_old(s, &facts);
        if (!files->realpath(s->path, s->target))
                return failed(s, "is a symbolic link that leads nowhere");
        if (files->lstat(s->target, &facts))
                return failed(s, "cannot be written");
        return check_old(s, &facts);
}

/* ---- the temporary file ---- */

/* Opens the target's folder, which lg__sink_commit() synchronises. */
static bool open_folder(lg__sink *s)
{
        char *name = strrchr(s->target, '/');
        const char *folder = !name ? "." : name == s->target ? "/" : s->target;
        if (name && name != s->target)
                *name = '\0';
        s->folder = lg__files_of(s->ctx)->open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        bool ok = s->folder >= 0 || failed_at(s, folder, "cannot be opened");
        if (name)
                *name = '/';
        return ok;
}

static void name_temporary(lg__sink *s, int number)
{
        const char *slash = strrchr(s->target, '/'), *name = slash ? slash + 1 : s->target;
        size_t folder = (size_t)(name - s->target), bytes = strlen(name);
        if (bytes > MOST_NAME)
                for (bytes = MOST_NAME; bytes && (name[bytes] & 0xc0) == 0x80;) /* keeps UTF-8 characters whole */
                        bytes--;
        snprintf(s->temporary, s->names_bytes, "%.*s.%.*s.grad-%d.tmp", (int)folder, s->target, (int)bytes, name,
                 number);
}

/* Removes a temporary file without a lock, left by a killed process. Returns false if no file was removed. */
static bool remove_left(const lg__sink *s)
{
        const lg__files *files = lg__files_of(s->ctx);
        struct stat opened, there; /* compared: another process may have replaced the file */
        const int fd = files->open(s->temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0)
                return false;
        const bool left = !files->flock(fd, LOCK_EX | LOCK_NB) && !files->fstat(fd, &opened) &&
                          !files->lstat(s->temporary, &there) && S_ISREG(there.st_mode) &&
                          there.st_ino == opened.st_ino && there.st_dev == opened.st_dev &&
                          !files->unlink(s->temporary);
        files->close(fd);
        return left;
}

static int create(const lg__sink *s)
{
        const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode = s->replaces ? 0600 : 0666;
        const int fd = lg__files_of(s->ctx)->open(s->temporary, flags, (mode_t)mode), error = errno;
        if (fd < 0 && error == EEXIST && remove_left(s))
                return lg__files_of(s->ctx)->open(s->temporary, flags, (mode_t)mode);
        errno = error;
        return fd;
}

/* Locks the temporary file until lg__sink_close() or the end of the process. Without locks in the file system,
 * leftovers are never removed. Returns false if another process had locked or removed the file first, as a leftover. */
static bool lock(const lg__sink *s)
{
        struct stat facts;
        const lg__files *files = lg__files_of(s->ctx);
        return (!files->flock(s->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) &&
               (files->fstat(s->fd, &facts) || facts.st_nlink);
}

static bool make_temporary(lg__sink *s)
{
        const lg__files *files = lg__files_of(s->ctx);
        int number = 0;
        for (; number < MOST_TRIES && s->fd < 0; number++) {
                name_temporary(s, number);
                s->fd = create(s);
                if (s->fd < 0 && errno != EEXIST && errno != EINTR)
                        break;
                if (s->fd >= 0 && !lock(s)) {
                        files->close(s->fd);
                        s->fd = -1;
                }
        }
        if (s->fd < 0)
                return failed_at(s, s->temporary, "cannot be made");
        s->made = true;
        const int own = number - 1;
        do /* removes further leftovers, which have the next numbers */
                name_temporary(s, number++);
        while (remove_left(s));
        name_temporary(s, own);
        return !s->replaces || !files->fchmod(s->fd, s->mode) || failed_at(s, s->temporary, "cannot be given its mode");
}

bool lg__sink_open(lg__sink *s)
{
        s->fd = s->folder = s->locked = -1;
        if (!lg__ok(s->ctx))
                return false;
        if (!s->path)
                return lg__fail(s->ctx, LG_ERR_ARGUMENT, "%s: the path is NULL", s->op);
        s->names_bytes = PATH_MAX + NAME_ROOM;
        s->target = lg__alloc(s->ctx, s->names_bytes);
        s->temporary = s->target ? lg__alloc(s->ctx, s->names_bytes) : NULL;
        s->buffer = s->temporary ? lg__alloc(s->ctx, BUFFER) : NULL;
        return s->buffer && find_target(s) && open_folder(s) && make_temporary(s);
}

/* ---- writing ---- */

static bool write_at(const lg__sink *s, int64_t at, const char *data, size_t bytes)
{
        return lg__pwrite_all(lg__files_of(s->ctx), s->fd, at, data, bytes) ||
               failed_at(s, s->temporary, "cannot be written");
}

static bool append(lg__sink *s, const char *data, size_t bytes)
{
        int64_t at = s->flushed;
        s->flushed += (int64_t)bytes;
        return write_at(s, at, data, bytes);
}

static bool flush(lg__sink *s)
{
        size_t bytes = s->filled;
        s->filled = 0;
        return append(s, s->buffer, bytes);
}

bool lg__sink_put(lg__sink *s, const void *data, size_t bytes)
{
        if (!lg__ok(s->ctx))
                return false;
        if (bytes > BUFFER - s->filled && !flush(s))
                return false;
        if (bytes >= BUFFER)
                return append(s, data, bytes);
        if (bytes)
                memcpy(s->buffer + s->filled, data, bytes);
        s->filled += bytes;
        return true;
}

bool lg__sink_put_at(lg__sink *s, int64_t at, const void *data, size_t bytes)
{
        return lg__ok(s->ctx) && flush(s) && write_at(s, at, data, bytes);
}

/* ---- commit and close ---- */

static bool synchronise(const lg__sink *s, int fd)
{
        int rc;
        do
                rc = lg__files_of(s->ctx)->fsync(fd);
        while (rc && errno == EINTR);
        return !rc;
}

bool lg__sink_commit(lg__sink *s)
{
        const lg__files *files = lg__files_of(s->ctx);
        if (!lg__ok(s->ctx) || !flush(s))
                return false;
        if (!synchronise(s, s->fd))
                return failed_at(s, s->temporary, "cannot be synchronised");
        s->locked = fcntl(s->fd, F_DUPFD_CLOEXEC, 0); /* keeps the lock until rename() */
        int rc = files->close(s->fd);
        s->fd = -1;
        if (rc && errno != EINTR) /* after EINTR the file is closed, too */
                return failed_at(s, s->temporary, "cannot be closed");
        if (files->rename(s->temporary, s->target))
                return failed_at(s, s->temporary, "cannot be renamed");
        s->made = false;
        if (!synchronise(s, s->folder) && errno != EINVAL) /* EINVAL: the file system cannot synchronise folders */
                return failed(s, "is written, but its folder cannot be synchronised: a power cut could undo it");
        return true;
}

void lg__sink_close(lg__sink *s)
{
        const lg__files *files = lg__files_of(s->ctx);
        if (s->fd >= 0)
                files->close(s->fd);
        if (s->made)
                files->unlink(s->temporary);
        if (s->locked >= 0)
                close(s->locked);
        if (s->folder >= 0)
                files->close(s->folder);
        lg__free(s->ctx, s->buffer, BUFFER);
        lg__free(s->ctx, s->temporary, s->names_bytes);
        lg__free(s->ctx, s->target, s->names_bytes);
        s->buffer = s->temporary = s->target = NULL;
        s->fd = s->folder = s->locked = -1;
        s->made = false;
}
