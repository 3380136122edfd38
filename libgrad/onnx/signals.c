/* signals.c - ONNX's windows of signals and its mel scale, computed on the CPU. */
#include <math.h>
#include "import.h"

/* Returns y in the dtype that attribute "output_datatype" names. */
static lg_tensor *as_wanted(const lg__onnx_call *c, lg_tensor *y)
{
        const int64_t to = lg__onnx_int(c, "output_datatype", 1);
        const lg_dtype dtype = lg__onnx_dtype(to);
        return dtype ? lg_cast(y, dtype)
                     : lg__onnx_fail(c, LG_ERR_DTYPE, "libgrad lacks the dtype %s", lg__onnx_type_name(to));
}

/* Returns a - b cos(t) + d cos(2 t) at the steps t of one turn. A window of one element that is not periodic is its
 * first element. */
static lg_tensor *window(const lg__onnx_call *c, double a, double b, double d)
{
        const int64_t n = lg__onnx_whole(c, 0, 0), turn = lg__onnx_int(c, "periodic", 1) ? n : n - 1;
        if (n < 0)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "its size is %lld", (long long)n);
        lg_tensor *y = lg__ok(c->ctx) ? lg__tensor_empty(c->ctx, lg_cpu(), LG_F64, LG_SHAPE(n)) : NULL;
        for (int64_t i = 0; y && i < n; i++) {
                const double t = turn > 0 ? 2 * 3.14159265358979323846 * (double)i / (double)turn : 0;
                ((double *)lg__data(y))[i] = a - b * cos(t) + d * cos(2 * t);
        }
        return y ? as_wanted(c, y) : NULL;
}

LG__ONNX(HannWindow)
{
        return window(c, 0.5, 0.5, 0);
}

LG__ONNX(HammingWindow)
{
        return window(c, 25.0 / 46, 21.0 / 46, 0);
}

LG__ONNX(BlackmanWindow)
{
        return window(c, 0.42, 0.5, 0.08);
}

/* A triangle for each band, over bands of equal width in mel: 2595 log10(1 + f / 700). Its corners are bins of the
 * spectrum. */
LG__ONNX(MelWeightMatrix)
{
        const int32_t bands = lg__onnx_whole(c, 0, 0), length = lg__onnx_whole(c, 1, 0);
        const double rate = lg__onnx_number(c, 2, 0);
        const double low = 2595 * log10(1 + lg__onnx_number(c, 3, 0) / 700);
        const double high = 2595 * log10(1 + lg__onnx_number(c, 4, 0) / 700);
        if (!lg__ok(c->ctx) || bands < 0 || length < 0)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%d bands of %d elements", bands, length);
        const int64_t rows = length / 2 + 1;
        lg_tensor *y = lg_zeros(c->ctx, LG_SHAPE(rows, bands), .dtype = LG_F64, .device = lg_cpu());
        double *to = y ? lg__data(y) : NULL;
        for (int64_t i = 0; y && i < bands; i++) {
                double corner[3];
                for (int k = 0; k < 3; k++) {
                        const double mel = low + (double)(i + k) * ((high - low) / (double)(bands + 2));
                        corner[k] = floor((length + 1.0) * 700 * (pow(10, mel / 2595) - 1) / rate);
                        if (!(corner[k] >= 0 && corner[k] < (double)rows + (k == 2)))
                                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "band %lld is outside of the spectrum",
                                                     (long long)i);
                }
                const double rise = corner[1] - corner[0], fall = corner[2] - corner[1];
                for (double j = corner[0]; j <= corner[1]; j++)
                        to[(int64_t)j * bands + i] = rise > 0 ? (j - corner[0]) / rise : 1;
                for (double j = corner[1]; j < corner[2]; j++)
                        to[(int64_t)j * bands + i] = (corner[2] - j) / fall;
        }
        return y ? as_wanted(c, y) : NULL;
}
