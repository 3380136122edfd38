/* source.c - reads files by zlib or, if libgrad is built without zlib, by stdio. */
#include "source.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "files.h"

#define LEAST 4096 /* bytes allocated beyond 4 times the size of a gzip file */

/* Result of reading a piece of a file. `text` is zlib's message about a damaged file. */
typedef struct piece {
        enum { PIECE, END, TRUNCATED, IO_ERROR, NO_MEMORY, DAMAGED } kind;
        size_t bytes;
        const char *text;
} piece;

#if LG_ZLIB
#include <zlib.h>

static void *stream_open(lg__source *s, int fd)
{
        gzFile f = gzdopen(fd, "rb");
        if (f)
                s->plain = gzdirect(f); /* gzdirect() reads the first bytes to find out */
        return f;
}

static void stream_close(void *stream)
{
        gzclose(stream);
}

static piece stream_read(void *stream, void *data, size_t bytes)
{
        int n = gzread(stream, data, bytes > 1 << 30 ? 1 << 30 : (unsigned)bytes), error;
        const char *text = gzerror(stream, &error);
        if (n > 0)
                return (piece){PIECE, (size_t)n, NULL};
        if (error == Z_BUF_ERROR)
                return (piece){TRUNCATED, 0, NULL};
        if (n == 0 && (error == Z_OK || error == Z_STREAM_END))
                return (piece){END, 0, NULL};
        return (piece){error == Z_ERRNO ? IO_ERROR : error == Z_MEM_ERROR ? NO_MEMORY : DAMAGED, 0, text};
}
#else
#include <stdio.h>

static void *stream_open(lg__source *s, int fd)
{
        s->plain = true;
        return fdopen(fd, "rb");
}

static void stream_close(void *stream)
{
        fclose(stream);
}

static piece stream_read(void *stream, void *data, size_t bytes)
{
        size_t n = fread(data, 1, bytes, stream);
        return (piece){n ? PIECE : ferror((FILE *)stream) ? IO_ERROR : END, n, NULL};
}
#endif

static bool bad(const lg__source *s, const char *what)
{
        return lg__fail(s->ctx, LG_ERR_FORMAT, "%s: %s %s", s->who, s->path, what);
}

static bool no_memory(const lg__source *s)
{
        return lg__fail(s->ctx, LG_ERR_MEMORY, "%s: no memory to read %s", s->who, s->path);
}

static bool unreadable(const lg__source *s, piece p)
{
        if (p.kind == IO_ERROR)
                return lg__fail(s->ctx, lg__system_code(errno), "%s: %s cannot be read: %s", s->who, s->path,
                                strerror(errno));
        if (p.kind == NO_MEMORY)
                return no_memory(s);
        if (p.kind == DAMAGED)
                return lg__fail(s->ctx, LG_ERR_FORMAT, "%s: %s is damaged: %s", s->who, s->path, p.text);
        return bad(s, "is truncated");
}

bool lg__source_some(const lg__source *s, void *data, size_t room, size_t *ret_bytes)
{
        *ret_bytes = 0;
        while (*ret_bytes < room) {
                piece p = stream_read(s->stream, (char *)data + *ret_bytes, room - *ret_bytes);
                if (p.kind == END)
                        break;
                if (p.kind != PIECE)
                        return unreadable(s, p);
                *ret_bytes += p.bytes;
        }
        return true;
}

bool lg__source_get(const lg__source *s, void *data, size_t bytes)
{
        size_t got;
        return lg__source_some(s, data, bytes, &got) && (got == bytes || bad(s, "is truncated"));
}

bool lg__source_at_end(const lg__source *s)
{
        char more;
        piece p = stream_read(s->stream, &more, 1); /* at the end, zlib compares the checksum */
        if (p.kind == PIECE)
                return bad(s, "has more data than its header says");
        return p.kind == END || unreadable(s, p);
}

#if !LG_ZLIB
static bool is_gzip(int fd)
{
        uint8_t first[2];
        return pread(fd, first, 2, 0) == 2 && first[0] == 0x1f && first[1] == 0x8b;
}
#endif

bool lg__source_open(lg__source *s)
{
        int fd = lg__open_regular(s->ctx, s->who, s->path, &s->file_bytes);
        if (fd < 0)
                return false;
#if !LG_ZLIB
        if (is_gzip(fd)) {
                close(fd);
                return bad(s, "is compressed by gzip, and libgrad was built without zlib (Debian: zlib1g-dev): gunzip "
                              "it first");
        }
#endif
        s->stream = stream_open(s, fd);
        if (s->stream)
                return true;
        close(fd);
        return no_memory(s);
}

void lg__source_close(lg__source *s)
{
        stream_close(s->stream);
}

/* ---- whole files ---- */

/* Reads all bytes. The memory has one byte more than the file, to detect the end; that byte is then set to NUL. */
static bool read_all(const lg__source *s, lg__whole *w)
{
        if (s->file_bytes > PTRDIFF_MAX / 8)
                return no_memory(s);
        w->room = s->plain ? s->file_bytes + 1 : 4 * s->file_bytes + LEAST;
        w->data = lg__alloc(s->ctx, (size_t)w->room);
        bool ok = w->data, ended = false;
        while (ok && !ended) {
                size_t got;
                ok = lg__source_some(s, w->data + w->bytes, (size_t)w->room - w->bytes, &got);
                w->bytes += got;
                ended = w->bytes < (size_t)w->room;
                ok = ok && (ended || lg__grow(s->ctx, &w->data, w->room, &w->room, 1));
        }
        if (ok)
                w->data[w->bytes] = '\0';
        return ok;
}

bool lg__whole_read(lg_ctx *c, const char *who, const char *path, lg__whole *ret)
{
        lg__source s = {.ctx = c, .who = who, .path = path};
        if (!lg__ok(c) || !lg__source_open(&s))
                return false;
        const bool ok = read_all(&s, ret);
        lg__source_close(&s);
        return ok;
}
