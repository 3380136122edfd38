/* idx.c - reads IDX files (Y. LeCun's format of MNIST), plain or compressed by gzip.
 *
 * A file has two zero bytes, a byte for the type of the elements, a byte for the number of dimensions, each size in 32
 * bits, and then the elements. Numbers are big-endian.
 */
#include <string.h>
#include "source.h"

typedef struct idx {
        lg__source source;
        int type;  /* element type code in the file */
        int width; /* bytes of an element in the file */
        lg_dtype dtype;
        lg_shape shape;
} idx;

static bool bad(const idx *f, const char *what)
{
        return lg__fail(f->source.ctx, LG_ERR_FORMAT, "lg_read_idx: %s %s", f->source.path, what);
}

static bool find_type(idx *f)
{
        static const struct {
                int type, width;
                lg_dtype dtype;
        } types[] = {{0x08, 1, LG_U8},  {0x09, 1, LG_I32}, {0x0B, 2, LG_I32},
                     {0x0C, 4, LG_I32}, {0x0D, 4, LG_F32}, {0x0E, 8, LG_F64}};
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                if (types[i].type == f->type) {
                        f->width = types[i].width;
                        f->dtype = types[i].dtype;
                        return true;
                }
        }
        return bad(f, "is no IDX file: its element type is unknown");
}

static bool get_header(idx *f)
{
        uint8_t b[4];
        int64_t most = 1; /* product of nonzero sizes, limited as by lg__shape_valid() */
        if (!lg__source_get(&f->source, b, sizeof b))
                return false;
        f->type = b[2];
        if (b[0] || b[1])
                return bad(f, "is no IDX file: it does not begin with two zero bytes");
        if (!find_type(f))
                return false;
        if (b[3] < 1 || b[3] > LG_MAX_DIMS)
                return lg__fail(f->source.ctx, LG_ERR_FORMAT, "lg_read_idx: %s has %d dimensions; 1 to %d can be read",
                                f->source.path, b[3], LG_MAX_DIMS);
        f->shape.ndim = b[3];
        for (int i = 0; i < f->shape.ndim; i++) {
                if (!lg__source_get(&f->source, b, sizeof b))
                        return false;
                f->shape.size[i] = (int64_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
                if (__builtin_mul_overflow(most, f->shape.size[i] ? f->shape.size[i] : 1, &most) ||
                    most > PTRDIFF_MAX / 16)
                        return bad(f, "is no IDX file: its sizes are beyond all memory");
        }
        int64_t bytes = lg__shape_numel(f->shape) * f->width;
        if (bytes / (f->source.plain ? 1 : LG__MOST_INFLATED) > f->source.file_bytes)
                return lg__fail(f->source.ctx, LG_ERR_FORMAT,
                                "lg_read_idx: %s is truncated: its header tells of %lld bytes of data", f->source.path,
                                (long long)bytes);
        return true;
}

static uint64_t big_endian(const uint8_t *b, int width)
{
        uint64_t v = 0;
        for (int i = 0; i < width; i++)
                v = v << 8 | b[i];
        return v;
}

/* Converts one element from f->width bytes b in the file to the tensor's dtype. */
static void convert(const idx *f, const uint8_t *b, char *out)
{
        uint64_t v = big_endian(b, f->width);
        uint32_t v32 = (uint32_t)v;
        if (f->type == 0x09)
                v32 = (uint32_t)(int32_t)(int8_t)v;
        else if (f->type == 0x0B)
                v32 = (uint32_t)(int32_t)(int16_t)v;
        if (f->width == 8)
                memcpy(out, &v, 8);
        else
                memcpy(out, &v32, 4);
}

static bool get_elements(const idx *f, char *out)
{
        uint8_t chunk[8192];
        int64_t left = lg__shape_numel(f->shape), most = (int64_t)sizeof chunk / f->width;
        if (f->dtype == LG_U8)
                return lg__source_get(&f->source, out, (size_t)left);
        while (left) {
                int64_t n = left < most ? left : most;
                if (!lg__source_get(&f->source, chunk, (size_t)(n * f->width)))
                        return false;
                for (int64_t i = 0; i < n; i++, out += lg__dtype_bytes(f->dtype))
                        convert(f, chunk + i * f->width, out);
                left -= n;
        }
        return true;
}

static lg_tensor *read_file(idx *f)
{
        if (!get_header(f))
                return NULL;
        lg_tensor *t = lg__tensor_empty(f->source.ctx, lg_cpu(), f->dtype, f->shape);
        return lg__created(t, t && get_elements(f, lg__data(t)) && lg__source_at_end(&f->source), false);
}

lg_tensor *lg_read_idx(lg_ctx *c, const char *path)
{
        idx f = {.source = {.ctx = c, .who = "lg_read_idx", .path = path}};
        if (!lg__ok(c) || !lg__unrecorded(c, f.source.who) || !lg__source_open(&f.source))
                return NULL;
        lg_tensor *t = read_file(&f);
        lg__source_close(&f.source);
        return t;
}
