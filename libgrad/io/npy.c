/* npy.c - reads arrays in NumPy's npy format: the elements after the header, and lg_read_npy(). */
#include "npy.h"
#include <string.h>
#include "files.h"
#include "text.h"

/* ---- messages and bytes ---- */

bool lg__npy_fail(const lg__npy_in *in, lg_error_code code, const char *format, ...)
{
        char text[LG__MESSAGE];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        return lg__fail(in->ctx, code, "%s: %.300s%s%s %s", in->who, in->path, in->name ? ", array " : "",
                        in->name ? lg__quoted(in->name).s : "", text);
}

bool lg__npy_no_memory(const lg__npy_in *in)
{
        char was[LG__MESSAGE];
        memcpy(was, in->ctx->message, sizeof was);
        lg__forget_error(in->ctx);
        return lg__npy_fail(in, LG_ERR_MEMORY, "cannot be read: %s", was);
}

bool lg__npy_get(lg__npy_in *in, void *data, size_t bytes)
{
        if (in->bytes - in->at < (int64_t)bytes)
                return lg__npy_bad(in, "is truncated: it ends at byte %lld; %zu bytes are expected from byte %lld on",
                                   (long long)in->bytes, bytes, (long long)in->at);
        if (!in->get(in, data, bytes))
                return false;
        in->at += (int64_t)bytes;
        return true;
}

/* ---- elements ---- */

static uint64_t load(const uint8_t *b, int width, bool swapped)
{
        uint16_t v2;
        uint32_t v4;
        uint64_t v8;
        switch (width) {
        case 1:
                return *b;
        case 2:
                memcpy(&v2, b, 2);
                return swapped ? __builtin_bswap16(v2) : v2;
        case 4:
                memcpy(&v4, b, 4);
                return swapped ? __builtin_bswap32(v4) : v4;
        }
        memcpy(&v8, b, 8);
        return swapped ? __builtin_bswap64(v8) : v8;
}

static void store(char *out, uint64_t v, size_t width)
{
        const uint16_t v2 = (uint16_t)v;
        const uint32_t v4 = (uint32_t)v;
        if (width == 2)
                memcpy(out, &v2, 2);
        else if (width == 4)
                memcpy(out, &v4, 4);
        else
                memcpy(out, &v, 8);
}

/* Extends the sign of v, read from h->width bytes, to 64 bits if the elements are signed integers. */
static uint64_t widen(const lg__npy *h, uint64_t v)
{
        const int bits = 64 - 8 * h->width;
        return h->kind == 'i' ? (uint64_t)((int64_t)(v << bits) >> bits) : v;
}

/* Reads `count` elements that have fewer bytes in the file than in the tensor. Returns false with an error. */
static bool get_wider(lg__npy_in *in, const lg__npy *h, char *out, int64_t count)
{
        uint8_t chunk[8192];
        const int64_t most = (int64_t)sizeof chunk / h->width;
        const size_t width = lg__dtype_bytes(h->dtype);
        while (count) {
                const int64_t n = count < most ? count : most;
                if (!lg__npy_get(in, chunk, (size_t)(n * h->width)))
                        return false;
                for (int64_t i = 0; i < n; i++, out += width)
                        store(out, widen(h, load(chunk + i * h->width, h->width, h->swapped)), width);
                count -= n;
        }
        return true;
}

/* Converts elements in place: to the machine's byte order, and bools to 0 or 1. Fails if a u64 value exceeds i64. */
static bool convert_in_place(const lg__npy_in *in, const lg__npy *h, char *data, int64_t count)
{
        const bool wide = h->kind == 'u' && h->width == 8;
        if (h->kind == 'b')
                for (int64_t i = 0; i < count; i++)
                        data[i] = data[i] != 0;
        if (h->width == 1 || !(h->swapped || wide))
                return true;
        for (int64_t i = 0; i < count; i++, data += h->width) {
                const uint64_t v = load((const uint8_t *)data, h->width, h->swapped);
                if (wide && v > INT64_MAX)
                        return lg__npy_bad(
                                in, "has a value that i64 does not hold: byte %lld: %llu; at most 2^63 - 1 is expected",
                                (long long)(in->at - (count - i) * h->width), (unsigned long long)v);
                store(data, v, (size_t)h->width);
        }
        return true;
}

/* Creates a tensor with the strides of the file: in Fortran order, the first dimension has stride 1. */
static lg_tensor *new_tensor(const lg__npy_in *in, const lg__npy *h)
{
        lg__layout at = {.dtype = h->dtype, .shape = h->shape};
        lg__layout_contiguous(&at);
        for (int i = 0; h->fortran && i < at.shape.ndim; i++)
                at.strides[i] = i ? at.strides[i - 1] * at.shape.size[i - 1] : 1;
        lg_tensor *t = lg__tensor_laid(in->ctx, lg_cpu(), &at);
        if (!t)
                lg__npy_no_memory(in);
        return t;
}

static bool get_elements(lg__npy_in *in, const lg__npy *h, lg_tensor *t)
{
        const int64_t count = lg__shape_numel(h->shape);
        char *data = lg__data(t);
        if (!count)
                return true;
        if ((size_t)h->width < lg__dtype_bytes(h->dtype))
                return get_wider(in, h, data, count);
        return lg__npy_get(in, data, (size_t)(count * h->width)) && convert_in_place(in, h, data, count);
}

/* Replaces t, if not contiguous, by a row-major copy, and releases t. Returns NULL with an error. */
static lg_tensor *row_major(const lg__npy_in *in, lg_tensor *t)
{
        if (lg__layout_is_contiguous(&t->at))
                return t;
        lg_tensor *copy = lg__tensor_like(t);
        if (!copy)
                lg__npy_no_memory(in);
        copy = lg__created(copy, copy && lg__copy_values(copy, t, in->who), false);
        lg__tensor_release(t);
        return copy;
}

bool lg__npy_check_end(const lg__npy_in *in, const lg__npy *h)
{
        const int64_t end = in->at + lg__shape_numel(h->shape) * h->width;
        return in->bytes == end ||
               lg__npy_bad(in, "%s: it ends at byte %lld; by its header, %s of %d bytes each, byte %lld is expected",
                           in->bytes < end ? "is truncated" : "has more data than its header says",
                           (long long)in->bytes, lg__shape_text(h->shape).s, h->width, (long long)end);
}

lg_tensor *lg__npy_read(lg__npy_in *in)
{
        lg__npy h = {0};
        if (!lg__npy_get_header(in, &h) || !lg__npy_check_end(in, &h))
                return NULL;
        h.fortran = h.fortran && lg__shape_numel(h.shape);
        lg_tensor *t = new_tensor(in, &h);
        t = lg__created(t, t && get_elements(in, &h, t), false);
        return t ? row_major(in, t) : NULL;
}

/* ---- files ---- */

bool lg__npy_get_from_file(lg__npy_in *in, void *data, size_t bytes)
{
        int64_t n = lg__read_at(in->ctx, in->who, in->path, *(const int *)in->stream, in->at, data, (int64_t)bytes);
        return n == (int64_t)bytes ||
               (n >= 0 &&
                lg__npy_bad(in, "is truncated: it ends at byte %lld; it became shorter", (long long)(in->at + n)));
}

lg_tensor *lg_read_npy(lg_ctx *c, const char *path)
{
        lg__npy_in in = {.ctx = c, .who = "lg_read_npy", .path = path, .get = lg__npy_get_from_file};
        int fd = lg__ok(c) && lg__unrecorded(c, in.who) ? lg__open_regular(c, in.who, path, &in.bytes) : -1;
        if (fd < 0)
                return NULL;
        in.stream = &fd;
        lg_tensor *t = lg__npy_read(&in);
        lg__files_of(c)->close(fd);
        return t;
}
