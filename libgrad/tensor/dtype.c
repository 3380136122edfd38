/* dtype.c - dtypes: names, sizes, promotion; checks of shapes; shapes and tensors as text. */
#include <math.h>
#include <string.h>
#include "tensor/tensor.h"

static const char *const names[LG_DTYPE_COUNT] = {"none", "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"};

const char *lg_dtype_name(lg_dtype dtype)
{
        return (unsigned)dtype < LG_DTYPE_COUNT ? names[dtype] : "unknown dtype";
}

size_t lg_dtype_size(lg_dtype dtype)
{
        return dtype > LG_DTYPE_NONE && dtype < LG_DTYPE_COUNT ? lg__dtype_bytes(dtype) : 0;
}

bool lg_dtype_is_float(lg_dtype dtype)
{
        return lg__dtype_float(dtype);
}

bool lg__dtype_holds(lg_ctx *c, const char *op, lg_dtype d, double value)
{
        const char *range = "-9223372036854775808 to 9223372036854775807";
        double low = -0x1p63, end = 0x1p63;
        if (d == LG_I32) {
                range = "-2147483648 to 2147483647";
                low = -0x1p31;
                end = 0x1p31;
        } else if (d == LG_U8) {
                range = "0 to 255";
                low = 0;
                end = 256;
        } else if (d != LG_I64) {
                return true;
        }
        if (trunc(value) >= low && trunc(value) < end)
                return true;
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: the value %.17g is out of the range of %s, %s", op, value,
                        lg_dtype_name(d), range);
}

/* PyTorch's rule: floats before integers before bool, then the wider dtype; f16 with bf16 gives f32. */
lg_dtype lg_promote(lg_dtype a, lg_dtype b)
{
        static const uint8_t rank[LG_DTYPE_COUNT] = {0, 6, 7, 5, 5, 4, 3, 2, 1};
        if ((unsigned)a >= LG_DTYPE_COUNT || (unsigned)b >= LG_DTYPE_COUNT)
                return LG_DTYPE_NONE;
        if (rank[a] == rank[b])
                return a == b ? a : LG_F32;
        return rank[a] > rank[b] ? a : b;
}

/* The number of elements must fit the address space at 16 bytes an element. Sizes of 0 count as 1, because strides are
 * products of sizes, too. */
bool lg__shape_valid(lg_ctx *c, const char *op, lg_shape s)
{
        int64_t n = 1;
        if (s.ndim < 0 || s.ndim > LG_MAX_DIMS)
                return lg__fail(c, LG_ERR_SHAPE, "%s: %d dimensions; at most %d are possible", op, s.ndim, LG_MAX_DIMS);
        for (int i = 0; i < s.ndim; i++) {
                if (s.size[i] < 0)
                        return lg__fail(c, LG_ERR_SHAPE, "%s: the shape %s has a negative size", op,
                                        lg__shape_text(s).s);
                if (__builtin_mul_overflow(n, s.size[i] ? s.size[i] : 1, &n) || n > PTRDIFF_MAX / 16)
                        return lg__fail(c, LG_ERR_SHAPE, "%s: the shape %s has too many elements", op,
                                        lg__shape_text(s).s);
        }
        return true;
}

lg__text lg__shape_text(lg_shape s)
{
        lg__text text;
        size_t n = (size_t)snprintf(text.s, sizeof text.s, "(");
        for (int i = 0; i < s.ndim && i < LG_MAX_DIMS; i++)
                n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s%lld", i ? ", " : "", (long long)s.size[i]);
        snprintf(text.s + n, sizeof text.s - n, s.ndim == 1 ? ",)" : ")");
        return text;
}

lg__text lg__tensor_text(const lg_tensor *t)
{
        lg__text text;
        if (!t)
                snprintf(text.s, sizeof text.s, "NULL");
        else
                snprintf(text.s, sizeof text.s, "%s %.200s on %s", lg_dtype_name(t->at.dtype),
                         lg__shape_text(t->at.shape).s, lg_device_name(t->storage->device->id));
        return text;
}
