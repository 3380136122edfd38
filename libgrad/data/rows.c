/* rows.c - rows of host memory, scaled where asked. */
#include <string.h>
#include "data.h"

void lg__rows_init(lg__rows *r, const lg_tensor *t, bool convert, double scale, double shift)
{
        *r = (lg__rows){.data = lg__data(t), .dtype = t->at.dtype, .shape = t->at.shape, .width = 1};
        for (int i = 1; i < t->at.shape.ndim; i++)
                r->width *= t->at.shape.size[i];
        r->convert = convert;
        r->scale = scale;
        r->shift = shift;
        r->out_dtype = !convert ? r->dtype : r->dtype == LG_F64 ? LG_F64 : LG_F32;
        for (int i = 0; i < 256; i++)
                r->bytes[i] = (float)(i * scale + shift);
}

#define CONVERT(from, to)                                                                                              \
        do {                                                                                                           \
                const from *in = row;                                                                                  \
                to *y = out;                                                                                           \
                for (int64_t k = 0; k < n; k++)                                                                        \
                        y[k] = (to)((double)in[k] * r->scale + r->shift);                                              \
        } while (0)

static void convert_row(const lg__rows *r, const void *row, void *out)
{
        int64_t n = r->width;
        switch (r->dtype) {
        case LG_U8:
        case LG_BOOL: {
                const uint8_t *in = row;
                float *y = out;
                for (int64_t k = 0; k < n; k++)
                        y[k] = r->bytes[in[k]];
                break;
        }
        case LG_F64:
                CONVERT(double, double);
                break;
        case LG_I64:
                CONVERT(int64_t, float);
                break;
        case LG_I32:
                CONVERT(int32_t, float);
                break;
        default:
                CONVERT(float, float);
        }
}

void lg__rows_get(const lg__rows *r, int64_t row, void *out)
{
        const size_t bytes = (size_t)r->width * lg__dtype_bytes(r->dtype);
        if (!bytes)
                return;
        if (r->convert)
                convert_row(r, r->data + (size_t)row * bytes, out);
        else
                memcpy(out, r->data + (size_t)row * bytes, bytes);
}
