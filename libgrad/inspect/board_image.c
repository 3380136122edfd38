/* board_image.c - pictures in the files that TensorBoard reads, as PNG. */
#include "board.h"
#include "graph/op.h"
#include "io/png_codec.h"

#define ROW 8 /* pictures in a row of several */

/* Returns pictures (N, C, H, W) as one of (C, rows * H, columns * W); places without a picture are black. */
static lg_tensor *in_rows(lg_tensor *x)
{
        const lg_shape s = x->at.shape;
        const int64_t n = s.size[0], columns = n < ROW ? n : ROW, rows = (n + columns - 1) / columns;
        if (rows * columns > n)
                x = lg_cat(LG_LIST(x, lg_zeros(x->ctx, LG_SHAPE(rows * columns - n, s.size[1], s.size[2], s.size[3]),
                                               .dtype = LG_U8, .device = x->storage->device->id)),
                           0);
        x = lg_reshape(x, LG_SHAPE(rows, columns, s.size[1], s.size[2], s.size[3]));
        x = lg_permute(x, LG_DIMS(2, 0, 3, 1, 4));
        return lg_reshape(x, LG_SHAPE(s.size[1], rows * s.size[2], columns * s.size[3]));
}

static bool check_picture(const lg_tensor *t)
{
        const lg_shape s = t->at.shape;
        const int64_t channels = s.ndim > 2 ? s.size[s.ndim - 3] : 1;
        if (t->at.dtype != LG_U8 && !lg__dtype_float(t->at.dtype))
                return lg__fail(t->ctx, LG_ERR_DTYPE,
                                "lg_board_image: t is %s; pictures are u8, or of a float dtype from 0 to 1",
                                lg__tensor_text(t).s);
        if (s.ndim < 2 || s.ndim > 4 || (channels != 1 && channels != 3 && channels != 4))
                return lg__fail(t->ctx, LG_ERR_SHAPE,
                                "lg_board_image: t is %s; pictures are (H, W), (C, H, W) or (N, C, H, W) with 1, 3 or "
                                "4 channels",
                                lg__tensor_text(t).s);
        const int64_t n = s.ndim == 4 ? s.size[0] : 1, height = s.size[s.ndim - 2], width = s.size[s.ndim - 1];
        const int64_t rows = n / ROW + (n % ROW != 0), most = INT32_MAX / ROW;
        return (n > 0 && height > 0 && width > 0 && width <= most && rows <= most && height <= INT32_MAX / rows) ||
               lg__fail(t->ctx, LG_ERR_SHAPE,
                        "lg_board_image: t is %s; a picture has 1 to %lld pixels in a row, and up to %d rows",
                        lg__tensor_text(t).s, (long long)most, INT32_MAX);
}

/* Returns a contiguous picture on the CPU, u8 (C, H, W) or (H, W). */
static lg_tensor *picture_of(lg_tensor *t)
{
        lg_tensor *x = t;
        if (t->at.dtype != LG_U8)
                x = lg_cast(lg_clamp(lg_mul_scalar(lg_cast(t, LG_F32), 255), 0, 255), LG_U8);
        x = x && t->at.shape.ndim == 4 ? in_rows(x) : x;
        return x ? lg__clone_values(x, lg_cpu(), LG_U8) : NULL;
}

static bool append(void *out, const void *data, size_t bytes)
{
        return lg__proto_append(out, data, bytes);
}

static bool encode(lg__proto_out *o, const lg_tensor *picture)
{
        enum { HEIGHT = 1, WIDTH = 2, COLORSPACE = 3, ENCODED = 4 };
        const lg_shape s = picture->at.shape;
        const int64_t height = s.size[s.ndim - 2], width = s.size[s.ndim - 1];
        const int channels = s.ndim == 3 ? (int)s.size[0] : 1;
        const size_t bytes = lg__png_encode_scratch(width);
        lg__png_wrong wrong;
        void *scratch = lg__alloc(o->ctx, bytes);
        if (!scratch)
                return false;
        lg__proto_put_int(o, HEIGHT, height);
        lg__proto_put_int(o, WIDTH, width);
        lg__proto_put_int(o, COLORSPACE, channels);
        const int64_t file = lg__proto_begin(o, ENCODED);
        const bool ok = lg__png_encode(lg__data(picture), channels, height, width, append, o, scratch, &wrong) ||
                        lg__fail(o->ctx, LG_ERR_IO, "lg_board_image: the picture %s", wrong.s);
        lg__proto_end(o, file);
        lg__free(o->ctx, scratch, bytes);
        return ok;
}

bool lg_board_image(lg_board *b, const char *tag, lg_tensor *t, int64_t step)
{
        lg__event e;
        if (!lg__event_begin_of(&e, b, "lg_board_image", tag, t, step))
                return false;
        const lg_scope scope = lg_scope_begin(e.out.ctx);
        const bool recording = lg_set_grad_mode(e.out.ctx, false);
        const lg_tensor *picture = check_picture(t) ? picture_of(t) : NULL;
        const int64_t image = lg__proto_begin(&e.out, LG__IMAGE);
        const bool ok = picture && encode(&e.out, picture);
        lg__proto_end(&e.out, image);
        lg_set_grad_mode(e.out.ctx, recording);
        lg_scope_end(e.out.ctx, scope);
        return lg__event_end(&e, ok);
}
