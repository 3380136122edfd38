/* npy_write.c - writes arrays in NumPy's npy format: version 1.0, C order, the machine's byte order. */
#include "npy.h"
#include <string.h>
#include "sink.h"

#define NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "<" : ">")

/* Returns NumPy's code of a dtype without the byte order, or NULL if NumPy has no such dtype. */
static const char *type_of(lg_dtype dtype)
{
        switch (dtype) {
        case LG_F32:
                return "f4";
        case LG_F64:
                return "f8";
        case LG_F16:
                return "f2";
        case LG_I64:
                return "i8";
        case LG_I32:
                return "i4";
        case LG_U8:
                return "u1";
        case LG_BOOL:
                return "b1";
        default:
                return NULL;
        }
}

bool lg__npy_writable(const lg_tensor *t, const char *who)
{
        return type_of(t->at.dtype) ||
               lg__fail(t->ctx, LG_ERR_DTYPE, "%s: x is %s; NumPy has no bfloat16; lg_cast() it", who,
                        lg__tensor_text(t).s);
}

size_t lg__npy_header(const lg_tensor *t, char out[LG__NPY_HEADER])
{
        const int front = 10;
        const lg_shape s = t->at.shape;
        char *dict = out + front;
        int n = sprintf(dict, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                        lg__dtype_bytes(t->at.dtype) == 1 ? "|" : NATIVE, type_of(t->at.dtype));
        for (int i = 0; i < s.ndim; i++)
                n += sprintf(dict + n, "%s%lld%s", i ? ", " : "", (long long)s.size[i], s.ndim == 1 ? "," : "");
        n += sprintf(dict + n, "), }");
        const int all = (front + n + 1 + 63) / 64 * 64;
        memset(dict + n, ' ', (size_t)(all - front - n - 1));
        out[all - 1] = '\n';
        memcpy(out, "\x93NUMPY\x01\x00", 8);
        out[8] = (char)((all - front) & 255);
        out[9] = (char)((all - front) >> 8);
        return (size_t)all;
}

lg_tensor *lg__npy_on_host(const lg_tensor *t)
{
        lg_tensor *host = (lg_tensor *)(uintptr_t)t;
        if (t->storage->device != t->ctx->cpu || !lg__layout_is_contiguous(&t->at))
                host = lg__clone_values(t, lg_cpu(), t->at.dtype);
        if (!host || lg__device_wait(t->storage->device))
                return host;
        if (host != t)
                lg__tensor_release(host);
        return NULL;
}

static bool write_file(const lg_tensor *t, const char *path)
{
        char header[LG__NPY_HEADER];
        lg__sink s = {.ctx = t->ctx, .op = "lg_write_npy", .path = path};
        const size_t front = lg__npy_header(t, header);
        const size_t bytes = (size_t)lg__shape_numel(t->at.shape) * lg__dtype_bytes(t->at.dtype);
        bool ok = lg__sink_open(&s) && lg__sink_put(&s, header, front) && lg__sink_put(&s, lg__data(t), bytes) &&
                  lg__sink_commit(&s);
        lg__sink_close(&s);
        return ok;
}

bool lg_write_npy(const lg_tensor *t, const char *path)
{
        if (!lg__check(t, "lg_write_npy", "x") || !lg__npy_writable(t, "lg_write_npy"))
                return false;
        lg_tensor *host = lg__npy_on_host(t);
        const bool ok = host && write_file(host, path);
        if (host != t)
                lg__tensor_release(host);
        return ok;
}
