/* png.c - reads PNG files as tensors and writes tensors as PNG files. */
#include "files.h"
#include "png_codec.h"
#include "sink.h"

/* ---- reading ---- */

static lg_tensor *bad(lg_ctx *c, const char *path, const lg__png_wrong *wrong)
{
        return lg__fail(c, LG_ERR_FORMAT, "lg_read_png: %s %s", path, wrong->s);
}

static lg_tensor *decode(lg_ctx *c, const char *path, const lg__png_facts *facts, const void *file, size_t bytes,
                         int channels)
{
        lg__png_wrong wrong;
        lg_tensor *t = lg__tensor_empty(c, lg_cpu(), LG_U8, LG_SHAPE(channels, facts->height, facts->width));
        void *scratch = t ? lg__alloc(c, facts->scratch) : NULL;
        bool ok = scratch &&
                  (lg__png_decode(facts, file, bytes, channels, lg__data(t), scratch, &wrong) || bad(c, path, &wrong));
        lg__free(c, scratch, facts->scratch);
        return lg__created(t, ok, false);
}

/* Reads the header first, so that nothing is allocated for a file that is not a PNG file. */
static lg_tensor *read_file(lg_ctx *c, const char *path, int fd, int64_t bytes, int channels)
{
        char head[LG__PNG_HEAD];
        lg__png_facts facts;
        lg__png_wrong wrong;
        int64_t n = lg__read_at(c, "lg_read_png", path, fd, 0, head, LG__PNG_HEAD);
        if (n < 0)
                return NULL;
        if (!lg__png_look(head, (size_t)n, bytes, &facts, &wrong))
                return bad(c, path, &wrong);
        if (bytes > PTRDIFF_MAX / 8)
                return lg__fail(c, LG_ERR_MEMORY, "lg_read_png: no memory to read %s", path);
        char *file = lg__alloc_unset(c, (size_t)bytes);
        n = file ? lg__read_at(c, "lg_read_png", path, fd, 0, file, bytes) : -1;
        lg_tensor *t = n < 0 ? NULL : decode(c, path, &facts, file, (size_t)n, channels ? channels : facts.channels);
        lg__free(c, file, (size_t)bytes);
        return t;
}

lg_tensor *lg_read_png_with(lg_ctx *c, const char *path, const lg_read_png_options *options)
{
        lg_read_png_options o;
        int64_t bytes;
        if (!lg__take(c, "lg_read_png", options, &o, sizeof o) || !lg__unrecorded(c, "lg_read_png"))
                return NULL;
        if (o.channels && o.channels != 1 && o.channels != 3 && o.channels != 4)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "lg_read_png: .channels is %d; it is 1 (grey), 3 (RGB), 4 (RGB and alpha), or 0 for what "
                        "the file has",
                        o.channels);
        const int fd = lg__open_regular(c, "lg_read_png", path, &bytes);
        if (fd < 0)
                return NULL;
        lg_tensor *t = read_file(c, path, fd, bytes, o.channels);
        lg__files_of(c)->close(fd);
        return t;
}

/* ---- writing ---- */

static bool check_picture(const lg_tensor *t)
{
        const lg_shape s = t->at.shape;
        const int64_t channels = s.ndim == 3 ? s.size[0] : 1;
        if (t->at.dtype != LG_U8)
                return lg__fail(t->ctx, LG_ERR_DTYPE, "lg_write_png: t is %s; pictures are u8: lg_cast() it",
                                lg__tensor_text(t).s);
        if ((s.ndim != 2 && s.ndim != 3) || (channels != 1 && channels != 3 && channels != 4))
                return lg__fail(t->ctx, LG_ERR_SHAPE,
                                "lg_write_png: t is %s; pictures are (H, W), (1, H, W), (3, H, W) or (4, H, W)",
                                lg__tensor_text(t).s);
        const int64_t height = s.size[s.ndim - 2], width = s.size[s.ndim - 1];
        if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
                return lg__fail(t->ctx, LG_ERR_SHAPE, "lg_write_png: t is %s; sides are of 1 to %d pixels",
                                lg__tensor_text(t).s, INT32_MAX);
        return true;
}

static bool put_to_sink(void *sink, const void *data, size_t bytes)
{
        return lg__sink_put(sink, data, bytes);
}

/* Writes a contiguous tensor on the CPU. */
static bool encode(const lg_tensor *t, const char *path)
{
        const lg_shape s = t->at.shape;
        const int64_t height = s.size[s.ndim - 2], width = s.size[s.ndim - 1];
        const size_t bytes = lg__png_encode_scratch(width);
        lg__png_wrong wrong;
        lg__sink sink = {.ctx = t->ctx, .op = "lg_write_png", .path = path};
        void *scratch = lg__alloc(t->ctx, bytes);
        if (!scratch)
                return false;
        bool ok = lg__sink_open(&sink);
        if (ok && !lg__png_encode(lg__data(t), s.ndim == 3 ? (int)s.size[0] : 1, height, width, put_to_sink, &sink,
                                  scratch, &wrong))
                ok = lg__fail(t->ctx, LG_ERR_IO, "lg_write_png: %s %s", path, wrong.s);
        ok = ok && lg__sink_commit(&sink);
        lg__sink_close(&sink);
        lg__free(t->ctx, scratch, bytes);
        return ok;
}

bool lg_write_png(const lg_tensor *t, const char *path)
{
        if (!lg__check(t, "lg_write_png", "t") || !check_picture(t))
                return false;
        if (t->storage->device->id.type == LG_DEVICE_CPU && lg__layout_is_contiguous(&t->at))
                return encode(t, path);
        lg_tensor *copy = lg__clone_values(t, lg_cpu(), LG_U8);
        bool ok = copy && encode(copy, path);
        lg__tensor_release(copy);
        return ok;
}
