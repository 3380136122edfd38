/* conv_rows.c - divides the images of a convolution into parts, and loads the rows that a part reads, with zeros around
 * the image where windows extend beyond it. */
#include "conv.h"

#define FEW_ROWS 4 /* output rows that a part of one image may always have */
#define MOST_BYTES 0x1p28

/* Returns the number of rows (d = 0) or columns (d = 1) of the input that `count` outputs read. */
static int64_t reach(const lg_conv_geometry *at, int d, int64_t count)
{
        return (count - 1) * at->stride[d] + (at->kernel[d] - 1) * at->dilation[d] + 1;
}

bool lg_conv_cut_fits(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        const double height = (double)reach(at, 0, lg_least(at->out[0], FEW_ROWS));
        const double width = (double)reach(at, 1, at->out[1]) * (double)a->channels * (double)lg_bytes_of(a->dtype);
        return height * width <= MOST_BYTES;
}

/* Returns the number of output rows of a part: all of an image, or as many as read about `bytes`. */
static int64_t rows_of(const lg_conv_args *a, int64_t line_bytes, int64_t bytes, int64_t parts)
{
        const int64_t all = a->at.out[0], share = lg_most(lg_ceil_div(all * a->n, parts), FEW_ROWS);
        const int64_t around = (a->at.kernel[0] - 1) * a->at.dilation[0] * line_bytes;
        const int64_t fit = lg_most((bytes - around) / (a->at.stride[0] * line_bytes), FEW_ROWS);
        return lg_even_part(all, lg_least(fit, share));
}

lg_conv_cut lg_conv_cut_of(const lg_conv_args *a, int64_t bytes, int64_t parts, int64_t pixels)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t size = (int64_t)lg_bytes_of(a->dtype), per_image = at->out[0] * at->out[1];
        lg_conv_cut c = {.a = a, .width = reach(at, 1, at->out[1])};
        const int64_t line_bytes = c.width * a->channels * size;
        const bool fits = lg_conv_cut_fits(a);
        c.rows = fits ? rows_of(a, line_bytes, bytes, parts) : lg_least(at->out[0], FEW_ROWS);
        c.bands = lg_ceil_div(at->out[0], c.rows);
        c.images = 1;
        if (c.bands == 1)
                c.images = lg_most(lg_least(pixels / per_image, a->n / parts), 1);
        c.parts = lg_ceil_div(a->n, c.images) * c.bands;
        c.pixels = c.images * c.rows * at->out[1];
        c.height = reach(at, 0, c.rows);
        c.reaches = at->padding[0] > 0 || at->padding[1] > 0 || reach(at, 0, at->out[0]) - at->padding[0] > at->in[0] ||
                    c.width - at->padding[1] > at->in[1];
        c.copies = c.reaches && fits;
        if (c.copies)
                c.bytes = lg_ceil_div(c.images * c.height * line_bytes, 64) * 64;
        return c;
}

/* Copies rows [row, row + height) of an image to `to`, c->width columns each, with zeros outside the image. */
static void copy_rows(const lg_conv_cut *c, const char *image, int64_t row, int64_t height, char *to)
{
        const lg_conv_geometry *at = &c->a->at;
        const int64_t pixel = c->a->channels * (int64_t)lg_bytes_of(c->a->dtype), col = -at->padding[1];
        const int64_t from = lg_least(lg_most(col, 0), at->in[1]);
        const int64_t end = lg_most(lg_least(col + c->width, at->in[1]), from);
        const size_t before = (size_t)(lg_least(from - col, c->width) * pixel), run = (size_t)((end - from) * pixel);
        const size_t line = (size_t)(c->width * pixel);
        for (int64_t i = row; i < row + height; i++, to += line) {
                if (i < 0 || i >= at->in[0] || run == 0) {
                        memset(to, 0, line);
                        continue;
                }
                memset(to, 0, before);
                memcpy(to + before, image + (i * at->in[1] + from) * pixel, run);
                memset(to + before + run, 0, line - before - run);
        }
}

lg_conv_rows lg_conv_taken(const lg_conv_cut *c, int64_t part, const char *scratch)
{
        const lg_conv_args *a = c->a;
        const lg_conv_geometry *at = &a->at;
        const int64_t n = part / c->bands * c->images, top = part % c->bands * c->rows;
        lg_conv_rows r = {.images = lg_least(c->images, a->n - n), .count = lg_least(c->rows, at->out[0] - top)};
        r.top = top;
        r.first = (n * at->out[0] + top) * at->out[1];
        r.line = (c->copies ? c->width : at->in[1]) * a->channels;
        r.image = (c->copies ? c->height : at->in[0]) * r.line;
        const int64_t above = top * at->stride[0] - at->padding[0];
        const int64_t pixel = (n * at->in[0] + above) * at->in[1] - at->padding[1];
        r.from = c->copies ? scratch : (const char *)a->x + pixel * a->channels * (int64_t)lg_bytes_of(a->dtype);
        return r;
}

lg_conv_rows lg_conv_take(const lg_conv_cut *c, int64_t part, char *scratch)
{
        const lg_conv_geometry *at = &c->a->at;
        const lg_conv_rows r = lg_conv_taken(c, part, scratch);
        const int64_t size = (int64_t)lg_bytes_of(c->a->dtype), n = part / c->bands * c->images;
        const int64_t above = part % c->bands * c->rows * at->stride[0] - at->padding[0];
        const int64_t image = at->in[0] * at->in[1] * c->a->channels * size;
        for (int64_t i = 0; i < r.images && c->copies; i++)
                copy_rows(c, (const char *)c->a->x + (n + i) * image, above, reach(at, 0, r.count),
                          scratch + i * r.image * size);
        return r;
}
