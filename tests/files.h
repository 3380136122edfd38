/* files.h - what tests of file formats share: a folder of their own, and calls on files that fail when told. */
#ifndef LG_TEST_FILES_H
#define LG_TEST_FILES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "failing.h"
#include "io/files.h"

/* ---- a folder ---- */

static char folder[64];

static inline int make_folder(void **state)
{
        (void)state;
        strcpy(folder, "/tmp/lg-files-XXXXXX");
        return mkdtemp(folder) ? 0 : -1;
}

/* A path in the folder, until the fourth next call. */
static inline const char *at(const char *name)
{
        static char paths[4][512];
        static int last;
        last = (last + 1) % 4;
        snprintf(paths[last], sizeof paths[last], "%s/%s", folder, name);
        return paths[last];
}

/* How many files there are; all of them are removed if that is asked. */
static inline int count_files(bool remove_them)
{
        int n = 0;
        DIR *d = opendir(folder);
        for (struct dirent *e; (e = readdir(d));) {
                if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                        continue;
                n++;
                if (remove_them)
                        remove(at(e->d_name));
        }
        closedir(d);
        return n;
}

static inline int remove_folder(void **state)
{
        (void)state;
        count_files(true);
        return rmdir(folder);
}

static inline void put_file(const char *path, const void *data, size_t bytes)
{
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, bytes, f), bytes);
        fclose(f);
}

typedef struct contents {
        size_t bytes;
        char *data; /* to be freed */
} contents;

/* A file's bytes; data is NULL where there is none. */
static inline contents get_file(const char *path)
{
        contents all = {0, NULL};
        FILE *f = fopen(path, "rb");
        if (!f)
                return all;
        fseek(f, 0, SEEK_END);
        all.bytes = (size_t)ftell(f);
        rewind(f);
        all.data = malloc(all.bytes + 1);
        assert_int_equal(fread(all.data, 1, all.bytes, f), all.bytes);
        fclose(f);
        return all;
}

static inline bool has(const char *path, contents expected)
{
        contents got = get_file(path);
        bool same = got.data && got.bytes == expected.bytes && !memcmp(got.data, expected.data, got.bytes);
        free(got.data);
        return same;
}

static inline void assert_bytes(const char *path, const void *data, size_t bytes)
{
        assert_true(has(path, (contents){bytes, (char *)(uintptr_t)data}));
}

/* ---- calls that fail ---- */

/* What becomes of the calls on files: the n-th one since `calls` was 0 fails or ends the process; or all of them are
 * interrupted and incomplete. */
static struct {
        int calls, fail_at, kill_at;
        int error;      /* errno of the failure */
        bool torn;      /* a write that ends the process has written half */
        bool piecemeal; /* each read and write is interrupted at first, and then takes 7 bytes */
        bool interrupted;
        const char *failed; /* the name of the call that did */
        char made[1024];    /* the last file that a call was to make */
} faulty;

static inline bool fails(const char *name)
{
        faulty.calls++;
        if (faulty.calls == faulty.kill_at)
                _exit(9);
        if (faulty.calls != faulty.fail_at)
                return false;
        faulty.failed = name;
        errno = faulty.error;
        return true;
}

/* The call that failed is one that a write does without: it closes the folder when all is done, locks its temporary
 * file or looks for those that others have left. */
static inline bool is_done_without(void)
{
        static const char *const names[] = {"close", "flock", "fstat", "open"};
        for (int i = 0; i < 4; i++)
                if (!strcmp(faulty.failed, names[i]))
                        return true;
        return false;
}

static inline size_t piece_of(size_t bytes, bool *ret_interrupted)
{
        *ret_interrupted = faulty.piecemeal && (faulty.interrupted = !faulty.interrupted);
        return faulty.piecemeal && bytes > 7 ? 7 : bytes;
}

#define FAULTY(name, type, parameters, arguments)                                                                      \
        static inline type faulty_##name parameters                                                                    \
        {                                                                                                              \
                return fails(#name) ? (type)-1 : lg__system_files.name arguments;                                      \
        }
FAULTY(lstat, int, (const char *path, struct stat *facts), (path, facts))
FAULTY(fstat, int, (int fd, struct stat *facts), (fd, facts))
FAULTY(access, int, (const char *path, int mode), (path, mode))
FAULTY(fchmod, int, (int fd, mode_t mode), (fd, mode))
FAULTY(flock, int, (int fd, int operation), (fd, operation))
FAULTY(fsync, int, (int fd), (fd))
FAULTY(rename, int, (const char *from, const char *to), (from, to))
FAULTY(unlink, int, (const char *path), (path))
FAULTY(mkdir, int, (const char *path, mode_t mode), (path, mode))

static inline int faulty_open(const char *path, int flags, mode_t mode)
{
        if (flags & O_CREAT)
                snprintf(faulty.made, sizeof faulty.made, "%s", path);
        return fails("open") ? -1 : lg__system_files.open(path, flags, mode);
}

static inline int faulty_close(int fd)
{
        bool fail = fails("close"); /* it is closed even so */
        int error = errno;
        int rc = lg__system_files.close(fd);
        errno = fail ? error : errno;
        return fail ? -1 : rc;
}

static inline char *faulty_realpath(const char *path, char *ret)
{
        return fails("realpath") ? NULL : lg__system_files.realpath(path, ret);
}

static inline ssize_t faulty_pread(int fd, void *data, size_t bytes, off_t from)
{
        bool interrupted;
        bytes = piece_of(bytes, &interrupted);
        if (fails("pread") || interrupted) {
                errno = interrupted ? EINTR : errno;
                return -1;
        }
        return lg__system_files.pread(fd, data, bytes, from);
}

static inline ssize_t faulty_pwrite(int fd, const void *data, size_t bytes, off_t to)
{
        bool interrupted;
        bytes = piece_of(bytes, &interrupted);
        if (faulty.torn && faulty.calls + 1 == faulty.kill_at)
                bytes = lg__system_files.pwrite(fd, data, bytes / 2, to) < 0 ? 0 : bytes;
        if (fails("pwrite") || interrupted) {
                errno = interrupted ? EINTR : errno;
                return -1;
        }
        return lg__system_files.pwrite(fd, data, bytes, to);
}

static const lg__files faulty_files = {.open = faulty_open,
                                       .close = faulty_close,
                                       .lstat = faulty_lstat,
                                       .fstat = faulty_fstat,
                                       .access = faulty_access,
                                       .realpath = faulty_realpath,
                                       .pread = faulty_pread,
                                       .pwrite = faulty_pwrite,
                                       .fchmod = faulty_fchmod,
                                       .flock = faulty_flock,
                                       .fsync = faulty_fsync,
                                       .rename = faulty_rename,
                                       .unlink = faulty_unlink,
                                       .mkdir = faulty_mkdir};

/* Each of the calls fails once while `write` replaces a file of other contents: the old or the new one is there then,
 * and no other. */
static inline void write_while_calls_fail(lg_ctx *c, bool (*write)(lg_ctx *c, const char *path), const char *who)
{
        const char *path = at("old");
        put_file(path, "old", 3);
        assert_true(write(c, path));
        contents whole = get_file(path);
        const int files = count_files(false);
        bool done = false;
        c->files = &faulty_files;
        for (int i = 1; !done; i++) {
                put_file(path, "old", 3);
                memset(&faulty, 0, sizeof faulty);
                faulty.fail_at = i;
                faulty.error = EIO;
                const bool ok = write(c, path);
                done = faulty.calls < i;
                assert_int_equal(count_files(false), files);
                if (has(path, (contents){3, "old"}))
                        assert_false(ok);
                else
                        assert_true(has(path, whole) && (ok || !strcmp(faulty.failed, "fsync")));
                if (!ok)
                        assert_error(c, LG_ERR_IO, who);
                assert_true(!done || (ok && i > 8));
        }
        c->files = NULL;
        free(whole.data);
}

#endif
