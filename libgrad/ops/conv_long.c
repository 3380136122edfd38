/* conv_long.c - convolutions of signals with long kernels, as products of spectra.
 *
 * y[n, o, t] = sum over c and k of x[n, c, t + k - padding] w[o, c, k] is a correlation: its spectrum is that of x
 * times the conjugate of that of w, summed over c. With a length of at least L + padding nothing wraps around into y.
 */
#include "graph/op.h"
#include "images.h"

/* Returns the shortest length 2^a or 3 2^a of at least n. */
static int64_t length_from(int64_t n)
{
        int64_t length = 1;
        while (length < n)
                length *= 2;
        return length % 4 == 0 && length / 4 * 3 >= n ? length / 4 * 3 : length;
}

/* Times in ns were measured with AVX-512: of a product by kernels for windows, where there are few channels and many,
 * and of an element of a spectrum, with a margin. cuDNN chooses by itself; an exporter needs the op. */
bool lg__conv_is_long(const lg_tensor *x, const lg_tensor *w, int64_t padding)
{
        const lg_shape s = x->at.shape, k = w->at.shape;
        const double n = (double)s.size[0], c = (double)s.size[1], o = (double)k.size[0], taps = (double)k.size[3];
        const double outputs = (double)s.size[3] + 2 * (double)padding - taps + 1;
        const double product = c * o < 64 ? 0.06 : 0.014, element = 27;
        return taps >= 128 && n * c * o >= 32 && k.size[3] <= s.size[3] + padding && x->at.dtype == w->at.dtype &&
               (x->at.dtype == LG_F32 || x->at.dtype == LG_F64) && (!x->ctx->unread || x->ctx->run) &&
               x->storage->device->id.type != LG_DEVICE_CUDA &&
               product * n * o * c * outputs * taps >
                       element * (n * c + o * c + n * o) * (double)length_from(s.size[3] + padding);
}

/* Returns the real or imaginary part of a spectrum (A, B, F, 2) as matrices (F, A, B), or (F, B, A). */
static lg_tensor *part(lg_tensor *spectrum, int i, bool transposed)
{
        return lg_permute(lg_select(spectrum, -1, i), transposed ? LG_DIMS(2, 1, 0) : LG_DIMS(2, 0, 1));
}

/* Returns matrices (F, N, O) as (N, O, F). */
static lg_tensor *back(lg_tensor *y)
{
        return lg_permute(y, LG_DIMS(1, 2, 0));
}

lg_tensor *lg__conv_long(lg_tensor *x, lg_tensor *w, lg_tensor *b, int64_t padding)
{
        const int64_t size = x->at.shape.size[3], taps = w->at.shape.size[3], n = length_from(size + padding);
        const int64_t after = size + padding - taps + 1;
        lg_tensor *fx = lg_rfft(lg_squeeze(x, LG_DIMS(2)), .n = n), *fw = lg_rfft(lg_squeeze(w, LG_DIMS(2)), .n = n);
        if (!fx || !fw)
                return NULL;
        lg_tensor *xr = part(fx, 0, false), *xi = part(fx, 1, false), *wr = part(fw, 0, true), *wi = part(fw, 1, true);
        lg_tensor *re = lg_add(lg_matmul(xr, wr), lg_matmul(xi, wi));
        lg_tensor *im = lg_sub(lg_matmul(xi, wr), lg_matmul(xr, wi));
        lg_tensor *y = lg_irfft(lg_complex(back(re), back(im)), .n = n);
        y = padding ? lg_cat(LG_LIST(lg_slice(y, 2, n - padding, n), lg_slice(y, 2, 0, after)), 2)
                    : lg_slice(y, 2, 0, after);
        y = y && b ? lg_add(y, lg_reshape(b, LG_SHAPE(-1, 1))) : y;
        return y ? lg_unsqueeze(y, 2) : NULL;
}
