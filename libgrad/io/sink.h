/* sink.h - writes a file that replaces another one only when it is whole and on the disk. Private.
 *
 * The bytes go into a temporary file in the same folder, ".NAME.grad-NUMBER.tmp", which is synchronised and then
 * renamed. Where anything fails before that, the temporary file is removed and the old one is untouched. A process that
 * is killed leaves its temporary file, but not the lock on it (flock), by which the next write of the same file knows
 * it and removes it. The new file has the old one's permissions, or those of the umask; other hard
 * links keep the old contents. A symbolic link stays, and the file that it points to is replaced;
 * one that leads nowhere is an error. So is an old file that the process may not write, though a rename would do it.
 */
#ifndef LG_IO_SINK_H
#define LG_IO_SINK_H

#include <sys/types.h>
#include "tensor/tensor.h"

typedef struct lg__sink {
        lg_ctx *ctx;
        const char *op;   /* the public function that writes, for messages */
        const char *path; /* as the caller of that gave it */
        /* what follows is the sink's own */
        char *target, *temporary; /* where the file will be, and where it is until then */
        size_t names_bytes;       /* of each of them */
        char *buffer;
        size_t filled;
        int64_t flushed; /* bytes of the file in front of those in the buffer */
        int fd, folder;  /* -1: not open */
        int locked;      /* the temporary file again; -1: not open */
        mode_t mode;     /* of the old file */
        bool replaces;   /* there is one */
        bool made;       /* the temporary file is there */
} lg__sink;

/* Makes the temporary file; ctx, op and path are set by the caller, all else is zero. False: LG_ERR_IO: the path cannot
 * be written or is a folder, a pipe or a device; LG_ERR_ARGUMENT: it is NULL; LG_ERR_MEMORY. Whatever it returns,
 * lg__sink_close is called once. */
bool lg__sink_open(lg__sink *s);

/* Appends bytes. False: LG_ERR_IO. */
bool lg__sink_put(lg__sink *s, const void *data, size_t bytes);

/* Writes over bytes that lg__sink_put has appended, from byte `at` on. False: LG_ERR_IO. */
bool lg__sink_put_at(lg__sink *s, int64_t at, const void *data, size_t bytes);

/* Replaces the old file, after which nothing can be written. False: LG_ERR_IO. Only where the folder cannot be
 * synchronised has the file been replaced even so, and the message says that. */
bool lg__sink_commit(lg__sink *s);

/* Frees everything; without a commit that took place, the temporary file goes. */
void lg__sink_close(lg__sink *s);

#endif
