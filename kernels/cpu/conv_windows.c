/* conv_windows.c - images as matrices of windows and back, and weights in the order of windows. */
#include "conv.h"
#include "simd.h"

/* Output pixel `pixel` of all: its image, the first input pixel it sees, and which columns of the kernel meet one. */
typedef struct window {
        int64_t n, row, col, lo, hi;
} window;

static window window_of(const lg_conv_geometry *at, int64_t pixel)
{
        window w;
        int64_t per_image = at->out[0] * at->out[1], in_image = pixel % per_image;
        w.n = pixel / per_image;
        w.row = in_image / at->out[1] * at->stride[0] - at->padding[0];
        w.col = in_image % at->out[1] * at->stride[1] - at->padding[1];
        w.lo = w.col < 0 ? lg_least(lg_ceil_div(-w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = w.col < at->in[1] ? lg_least(lg_ceil_div(at->in[1] - w.col, at->dilation[1]), at->kernel[1]) : 0;
        w.hi = lg_most(w.hi, w.lo);
        return w;
}

/* The element of x or dx that column `lo` of kernel row `row` meets, in a group. */
static int64_t image_offset(const lg_conv_job *j, const window *w, int64_t row, int64_t group)
{
        const lg_conv_geometry *at = &j->a->at;
        int64_t col = w->col + w->lo * at->dilation[1];
        return ((w->n * at->in[0] + row) * at->in[1] + col) * j->a->channels + group * j->channels;
}

/* A kernel row that lies in one run of the image. */
static bool joined(const lg_conv_job *j)
{
        return j->a->at.dilation[1] == 1 && j->a->at.groups == 1;
}

void lg_conv_gather(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t from, int64_t to,
                    char *windows)
{
        const lg_conv_geometry *at = &j->a->at;
        const size_t run = (size_t)(j->channels * j->size);
        const int64_t step = at->dilation[1] * j->a->channels * j->size;
        for (int64_t i = 0; i < count; i++) {
                const window w = window_of(at, first + i);
                for (int64_t k = from; k < to; k++) {
                        int64_t row = w.row + k * at->dilation[0];
                        if (row < 0 || row >= at->in[0]) {
                                memset(windows, 0, (size_t)at->kernel[1] * run);
                                windows += (size_t)at->kernel[1] * run;
                                continue;
                        }
                        const char *image = (const char *)j->a->x + image_offset(j, &w, row, group) * j->size;
                        memset(windows, 0, (size_t)w.lo * run);
                        if (joined(j))
                                memcpy(windows + (size_t)w.lo * run, image, (size_t)(w.hi - w.lo) * run);
                        for (int64_t c = w.lo; c < w.hi && !joined(j); c++, image += step)
                                memcpy(windows + (size_t)c * run, image, run);
                        memset(windows + (size_t)w.hi * run, 0, (size_t)(at->kernel[1] - w.hi) * run);
                        windows += (size_t)at->kernel[1] * run;
                }
        }
}

#define ADD(t, type)                                                                                                   \
        static void add_##t(int64_t n, type *to, const type *from)                                                     \
        {                                                                                                              \
                const lg_mask_##t some = lg_mask_first_##t(n % LG_LANES_##t);                                          \
                for (; n >= LG_LANES_##t; n -= LG_LANES_##t, to += LG_LANES_##t, from += LG_LANES_##t)                 \
                        lg_vec_store_##t(to, lg_vec_load_##t(to) + lg_vec_load_##t(from));                             \
                if (n > 0)                                                                                             \
                        lg_vec_store_some_##t(to, some,                                                                \
                                              lg_vec_load_some_##t(to, some) + lg_vec_load_some_##t(from, some));      \
        }
ADD(f32, float)
ADD(f64, double)

void lg_conv_scatter(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t top, int64_t bottom,
                     const char *windows)
{
        const lg_conv_geometry *at = &j->a->at;
        const int64_t run = joined(j) ? at->kernel[1] * j->channels : j->channels;
        const int64_t step = at->dilation[1] * j->a->channels * j->size;
        for (int64_t i = 0; i < count; i++) {
                const window w = window_of(at, first + i);
                for (int64_t k = 0; k < at->kernel[0]; k++, windows += at->kernel[1] * j->channels * j->size) {
                        int64_t row = w.row + k * at->dilation[0];
                        if (row < top || row >= bottom)
                                continue;
                        char *image = (char *)j->a->out + image_offset(j, &w, row, group) * j->size;
                        for (int64_t c = w.lo; c < w.hi; c = joined(j) ? w.hi : c + 1, image += step) {
                                const char *from = windows + c * j->channels * j->size;
                                int64_t n = joined(j) ? (w.hi - w.lo) * j->channels : run;
                                if (j->a->dtype == LG_F64)
                                        add_f64(n, (double *)image, (const double *)from);
                                else
                                        add_f32(n, (float *)image, (const float *)from);
                        }
                }
        }
}

#define ORDER(suffix, type)                                                                                            \
        static void kernel_first_##suffix(int64_t channels, int64_t taps, type *to, const type *from)                  \
        {                                                                                                              \
                for (int64_t k = 0; k < taps; k++)                                                                     \
                        for (int64_t c = 0; c < channels; c++)                                                         \
                                to[k * channels + c] = from[c * taps + k];                                             \
        }
ORDER(f32, float)
ORDER(f64, double)

void lg_conv_kernel_first(const lg_conv_job *j, void *to, const void *from)
{
        const int64_t taps = j->a->at.kernel[0] * j->a->at.kernel[1];
        if (j->a->dtype == LG_F64)
                kernel_first_f64(j->channels, taps, to, from);
        else
                kernel_first_f32(j->channels, taps, to, from);
}
