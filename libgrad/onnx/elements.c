/* elements.c - the elements of a tensor in an ONNX file: raw, as numbers in fields, or in a file beside it. */
#include <unistd.h>
#include "io/files.h"
#include "model.h"

/* Stores number `bits` of the message as element i of dtype. */
static void store(void *to, int64_t i, lg_dtype dtype, uint64_t bits)
{
        const size_t size = lg_dtype_size(dtype);
        const uint8_t one = bits != 0;
        if (dtype == LG_BOOL)
                memcpy((char *)to + i, &one, 1);
        else /* the lowest bytes come first */
                memcpy((char *)to + (size_t)i * size, &bits, size);
}

static bool fill_numbers(const lg__onnx_tensor *t, lg_dtype dtype, void *to)
{
        const int wire = dtype == LG_F32 ? LG__FIXED32 : dtype == LG_F64 ? LG__FIXED64 : LG__VARINT;
        lg__proto p = {.rest = t->message};
        int64_t i = 0;
        while (lg__proto_next(&p)) {
                lg__span left = p.bytes;
                for (uint64_t v; p.field == t->field && lg__proto_number(&p, wire, &left, &v); i++)
                        store(to, i, dtype, v);
        }
        return !p.wrong;
}

/* Writes the path of a file beside the model. Returns false if `location` leads out of the model's folder. */
static bool place_beside(const lg__onnx_model *m, const char *location, char *path, size_t size)
{
        const char *slash = strrchr(m->path, '/');
        const int folder = slash ? (int)(slash - m->path) + 1 : 0;
        for (const char *s = location; s; s = strchr(s, '/')) {
                s += *s == '/';
                if (!strncmp(s, "..", 2) && (s[2] == '/' || !s[2]))
                        return false;
        }
        return *location && *location != '/' &&
               (size_t)snprintf(path, size, "%.*s%s", folder, m->path, location) < size;
}

static bool fill_from_file(const lg__onnx_model *m, const lg__onnx_tensor *t, int64_t bytes, void *to)
{
        char path[4096];
        int64_t size = 0;
        if (!place_beside(m, t->location, path, sizeof path))
                return lg__fail(m->ctx, LG_ERR_FORMAT,
                                "%s: %s: the elements of %s are in %s; they must be in the model's folder or below it",
                                m->op, lg__quoted(m->path).s, lg__quoted(t->name).s, lg__quoted(t->location).s);
        const int fd = lg__open_regular(m->ctx, m->op, path, &size);
        if (fd < 0)
                return false;
        bool good = size - bytes >= t->offset;
        if (!good)
                lg__fail(m->ctx, LG_ERR_FORMAT, "%s: %s has %lld bytes; %s needs %lld from byte %lld on", m->op,
                         lg__quoted(path).s, (long long)size, lg__quoted(t->name).s, (long long)bytes,
                         (long long)t->offset);
        good = good && lg__read_at(m->ctx, m->op, path, fd, t->offset, to, bytes) == bytes;
        lg__files_of(m->ctx)->close(fd);
        return good;
}

bool lg__onnx_fill(const lg__onnx_model *m, const lg__onnx_tensor *t, void *to)
{
        const lg_dtype dtype = lg__onnx_dtype(t->type);
        const int64_t n = lg__shape_numel(t->shape), bytes = n * (int64_t)lg_dtype_size(dtype);
        if (!dtype)
                return lg__fail(m->ctx, LG_ERR_DTYPE, "%s: %s: tensor %s is %s, which libgrad lacks", m->op,
                                lg__quoted(m->path).s, lg__quoted(t->name).s, lg__onnx_type_name(t->type));
        if (n == 0)
                return true;
        if (t->location) {
                if (!fill_from_file(m, t, bytes, to))
                        return false;
        } else if (t->raw.s)
                memcpy(to, t->raw.s, (size_t)bytes);
        else if (!fill_numbers(t, dtype, to))
                return lg__fail(m->ctx, LG_ERR_FORMAT, "%s: %s: tensor %s is damaged", m->op, lg__quoted(m->path).s,
                                lg__quoted(t->name).s);
        for (int64_t i = 0; dtype == LG_BOOL && i < n; i++)
                if (((const unsigned char *)to)[i] > 1)
                        return lg__fail(m->ctx, LG_ERR_FORMAT, "%s: %s: tensor %s: a bool is neither 0 nor 1", m->op,
                                        lg__quoted(m->path).s, lg__quoted(t->name).s);
        return true;
}

lg_tensor *lg__onnx_tensor_of(const lg__onnx_model *m, const lg__onnx_tensor *t)
{
        const lg_dtype dtype = lg__onnx_dtype(t->type);
        lg_tensor *y = lg__tensor_empty(m->ctx, lg_cpu(), dtype ? dtype : LG_U8, t->shape);
        return y && lg__onnx_fill(m, t, lg__data(y)) ? y : NULL;
}
