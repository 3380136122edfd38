/* sink.h - writes a file that replaces another file only when complete and stored on disk. Private.
 *
 * Bytes are written to a temporary file in the same folder, ".NAME.grad-NUMBER.tmp", which is synchronised and then
 * renamed. If anything fails before the rename, the temporary file is removed and the old file is unchanged. A killed
 * process leaves its temporary file, but no lock (flock) on it; the next write of the same target removes such files.
 * The new file has the old file's permissions, or those of the umask; other hard links keep the old contents. A
 * symbolic link stays, and the file that it points to is replaced; a link to no file is an error. An old file that the
 * process may not write is an error, too, although rename() would replace the file.
 */
#ifndef LG_IO_SINK_H
#define LG_IO_SINK_H

#include <sys/types.h>
#include "tensor/tensor.h"

typedef struct lg__sink {
        lg_ctx *ctx;
        const char *op;   /* name of the public function, for messages */
        const char *path; /* as given by the caller of that function */
        /* set and used by the sink only: */
        char *target, *temporary; /* paths of the final and of the temporary file */
        size_t names_bytes;       /* memory of each of these two paths */
        char *buffer;
        size_t filled;
        int64_t flushed; /* bytes written to the file, without those in `buffer` */
        int fd, folder;  /* descriptors of the temporary file and its folder; -1: not open */
        int locked;      /* duplicate of fd that keeps the lock; -1: not open */
        mode_t mode;     /* permissions of the old file */
        bool replaces;   /* an old file exists and will be replaced */
        bool made;       /* the temporary file exists */
} lg__sink;

/* Creates the temporary file. The caller sets ctx, op and path, and all else to zero, and calls lg__sink_close() once
 * in any case. Returns false with an error: LG_ERR_IO if path cannot be written or is a folder, pipe or device;
 * LG_ERR_ARGUMENT if path is NULL; LG_ERR_MEMORY. */
bool lg__sink_open(lg__sink *s);

/* Appends bytes. Returns false and sets LG_ERR_IO on failure. */
bool lg__sink_put(lg__sink *s, const void *data, size_t bytes);

/* Overwrites bytes that lg__sink_put() has appended, from byte `at` on. Returns false and sets LG_ERR_IO on failure. */
bool lg__sink_put_at(lg__sink *s, int64_t at, const void *data, size_t bytes);

/* Replaces the old file; afterwards nothing can be written. Returns false and sets LG_ERR_IO on failure. The old file
 * is then unchanged, except if the folder could not be synchronised, which the message says. */
bool lg__sink_commit(lg__sink *s);

/* Frees everything, and removes the temporary file unless a commit has renamed it. */
void lg__sink_close(lg__sink *s);

#endif
