/* test_transforms.c - each transform against its formula, made with the same random numbers. */
#include "transforms.h"

enum { ROOM = 4096, SAMPLES = 24, BESIDE = 1 };

/* y of an image x and of the numbers u that were drawn. */
typedef void formula(const double *x, image n, const double *u, lg_dtype dtype, double *y);

static const lg_dtype dtypes[] = {LG_U8, LG_F32, LG_F64};

/* Samples of all three dtypes; u8 may be off by that many levels. */
static void check(lg_ctx *c, lg_transform *t, image n, image out, formula *f, double levels)
{
        static double x[ROOM], y[ROOM], want[ROOM];
        double u[DRAWS];
        for (int k = 0; k < 3; k++) {
                const double limit = k == 0 ? levels : k == 1 ? 3e-6 : 1e-12;
                lg_dataset *base = images(c, dtypes[k], n, SAMPLES), *d = lg_dataset_transform(base, t);
                lg_dataset *numbers = draws_of(c, base);
                assert_ok(c);
                for (int64_t i = 0; i < SAMPLES; i++) {
                        assert_int_equal(sample(c, base, i, x, ROOM), pixels(n));
                        assert_int_equal(sample(c, numbers, i, u, DRAWS), DRAWS);
                        assert_int_equal(sample(c, d, i, y, ROOM), pixels(out));
                        f(x, n, u, dtypes[k], want);
                        for (int64_t e = 0; e < pixels(out); e++)
                                if (!(fabs(y[e] - want[e]) <= limit))
                                        fail_msg("%s, sample %lld, element %lld: %.17g is not %.17g",
                                                 lg_dtype_name(dtypes[k]), (long long)i, (long long)e, y[e], want[e]);
                }
        }
}

/* ---- values ---- */

static void floats(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)u;
        for (int64_t i = 0; i < pixels(n); i++)
                y[i] = dtype == LG_U8 ? (double)((float)x[i] / 255) : x[i];
}

static void normalized(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        const double mean[] = {0.25, 0.5, 0.125}, std[] = {0.3, 0.2, 0.7};
        (void)u;
        for (int64_t i = 0; i < pixels(n); i++)
                y[i] = (x[i] / (dtype == LG_U8 ? 255 : 1) - mean[i / (n.h * n.w)]) / std[i / (n.h * n.w)];
}

static void halved(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)u;
        for (int64_t i = 0; i < pixels(n); i++)
                y[i] = (x[i] / (dtype == LG_U8 ? 255 : 1) - 0.5) / 0.25;
}

TEST_CASE(values_are_scaled)
{
        lg_ctx *c = open_ctx();
        const image n = {3, 5, 7};
        check(c, lg_transform_to_float(c), n, n, floats, 0);
        check(c, lg_transform_normalize(c, LG_NUMBERS(0.25, 0.5, 0.125), LG_NUMBERS(0.3, 0.2, 0.7)), n, n, normalized,
              3e-6);
        check(c, lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(0.25)), n, n, halved, 3e-6);
        check(c, lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(0.25, 0.25, 0.25)), n, n, halved, 3e-6);
        lg_close(c);
}

/* ---- crops and flips ---- */

enum { CROP_H = 6, CROP_W = 9, PADDING = 3 };

static void cropped(const double *x, image n, const double *u, int mode, double *y)
{
        const int64_t top = (int64_t)(u[0] * (double)(n.h + 2 * PADDING - CROP_H + 1)) - PADDING;
        const int64_t left = (int64_t)(u[1] * (double)(n.w + 2 * PADDING - CROP_W + 1)) - PADDING;
        for (int64_t e = 0; e < n.c * CROP_H * CROP_W; e++) {
                int64_t i = top + e / CROP_W % CROP_H, j = left + e % CROP_W;
                bool outside = i < 0 || j < 0 || i >= n.h || j >= n.w;
                if (mode == LG_PAD_REFLECT) {
                        i = i < 0 ? -i : i >= n.h ? n.h - 1 - (i - (n.h - 1)) : i;
                        j = j < 0 ? -j : j >= n.w ? n.w - 1 - (j - (n.w - 1)) : j;
                } else {
                        i = (int64_t)fmin(fmax((double)i, 0), (double)n.h - 1);
                        j = (int64_t)fmin(fmax((double)j, 0), (double)n.w - 1);
                }
                y[e] = outside && mode == LG_PAD_CONSTANT ? 1 : x[(e / (CROP_H * CROP_W) * n.h + i) * n.w + j];
        }
}

static void cropped_zeros(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        cropped(x, n, u, LG_PAD_CONSTANT, y);
}

static void cropped_reflect(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        cropped(x, n, u, LG_PAD_REFLECT, y);
}

static void cropped_replicate(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        cropped(x, n, u, LG_PAD_REPLICATE, y);
}

TEST_CASE(images_are_cropped)
{
        lg_ctx *c = open_ctx();
        const image n = {2, 5, 7}, out = {2, CROP_H, CROP_W};
        check(c, lg_transform_random_crop(c, CROP_H, CROP_W, .padding = PADDING, .value = 1), n, out, cropped_zeros, 0);
        check(c, lg_transform_random_crop(c, CROP_H, CROP_W, .padding = PADDING, .mode = LG_PAD_REFLECT), n, out,
              cropped_reflect, 0);
        check(c, lg_transform_random_crop(c, CROP_H, CROP_W, .padding = PADDING, .mode = LG_PAD_REPLICATE), n, out,
              cropped_replicate, 0);
        lg_close(c);
}

/* The rows that are cut off or added above, of images of every height: those of torchvision 0.29.2. */
TEST_CASE(the_middle_is_cropped)
{
        const int64_t rows[][3] = {{1, 1, 0}, {2, 1, 0}, {3, 1, 1}, {4, 1, 2},  {5, 1, 2},  {6, 1, 2}, {8, 1, 4},
                                   {5, 4, 0}, {9, 4, 2}, {7, 4, 2}, {1, 4, -1}, {2, 4, -1}, {3, 4, 0}, {1, 6, -2}};
        lg_ctx *c = open_ctx();
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
                const int64_t h = rows[k][0], to = rows[k][1], top = rows[k][2];
                double x[ROOM], y[ROOM];
                lg_dataset *base = images(c, LG_U8, (image){1, h, 2}, 1);
                sample(c, base, 0, x, ROOM);
                assert_int_equal(sample(c, lg_dataset_transform(base, lg_transform_center_crop(c, to, 2)), 0, y, ROOM),
                                 to * 2);
                for (int64_t i = 0; i < to * 2; i++) {
                        int64_t row = top + i / 2;
                        assert_near(y[i], row < 0 || row >= h ? 0 : x[row * 2 + i % 2], 0);
                }
        }
        lg_close(c);
}

static void mirrored(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        for (int64_t i = 0; i < pixels(n); i++)
                y[i] = x[u[0] < 0.4 ? i - i % n.w + n.w - 1 - i % n.w : i];
}

static void upside_down(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        for (int64_t i = 0; i < pixels(n); i++) {
                int64_t row = i / n.w % n.h, plane = i / (n.h * n.w);
                y[i] = x[(plane * n.h + (u[0] < 0.5 ? n.h - 1 - row : row)) * n.w + i % n.w];
        }
}

TEST_CASE(images_are_flipped)
{
        lg_ctx *c = open_ctx();
        for (int64_t w = 1; w < 20; w += 6)
                check(c, lg_transform_random_horizontal_flip(c, .p = 0.4), (image){2, 3, w}, (image){2, 3, w}, mirrored,
                      0);
        check(c, lg_transform_random_vertical_flip(c), (image){2, 4, 5}, (image){2, 4, 5}, upside_down, 0);
        lg_close(c);
}

/* ---- geometry ---- */

static double tap(const double *x, image n, int64_t plane, double i, double j, double beside)
{
        bool outside = i < 0 || j < 0 || i > (double)n.h - 1 || j > (double)n.w - 1;
        return outside ? beside : x[(plane * n.h + (int64_t)i) * n.w + (int64_t)j];
}

/* Where (x, y) from the centre comes from, if the point p goes to A p + t: by Cramer's rule. */
static void moved(const double *x, image n, const double a[4], const double t[2], double *y)
{
        const double det = a[0] * a[3] - a[1] * a[2];
        for (int64_t e = 0; e < pixels(n); e++) {
                const double px = (double)(e % n.w) + 0.5 - (double)n.w / 2 - t[0];
                const double py = (double)(e / n.w % n.h) + 0.5 - (double)n.h / 2 - t[1];
                const double j = (px * a[3] - a[1] * py) / det + (double)n.w / 2 - 0.5;
                const double i = (a[0] * py - px * a[2]) / det + (double)n.h / 2 - 0.5;
                const double fi = i - floor(i), fj = j - floor(j);
                const int64_t plane = e / (n.h * n.w);
                double v = 0;
                for (int k = 0; k < 4; k++)
                        v += (k & 2 ? fi : 1 - fi) * (k & 1 ? fj : 1 - fj) *
                             tap(x, n, plane, floor(i) + (k >> 1), floor(j) + (k & 1), BESIDE);
                y[e] = v;
        }
}

static void turned(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        const double angle = (-40 + 80 * u[0]) * acos(-1) / 180; /* counterclockwise, where y points down */
        const double a[4] = {cos(angle), sin(angle), -sin(angle), cos(angle)}, t[2] = {0, 0};
        (void)dtype;
        moved(x, n, a, t, y);
}

static void affine(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        const double degree = acos(-1) / 180, angle = (-30 + 60 * u[0]) * degree, scale = 0.7 + 0.8 * u[3];
        const double t[2] = {nearbyint((-0.2 + 0.4 * u[1]) * (double)n.w),
                             nearbyint((-0.3 + 0.6 * u[2]) * (double)n.h)};
        const double lean = tan((-25 + 50 * u[4]) * degree), co = scale * cos(angle), si = scale * sin(angle);
        const double a[4] = {co, -si - co * lean, si, co - si * lean}; /* rotation times (1, -lean; 0, 1) */
        (void)dtype;
        moved(x, n, a, t, y);
}

TEST_CASE(images_are_turned)
{
        lg_ctx *c = open_ctx();
        const image sizes[] = {{2, 9, 12}, {1, 1, 1}, {1, 8, 1}, {3, 4, 4}};
        for (int k = 0; k < 4; k++) {
                check(c, lg_transform_random_rotation(c, 40, .value = BESIDE), sizes[k], sizes[k], turned, 0.5001);
                check(c,
                      lg_transform_random_affine(c, .degrees = 30, .translate_x = 0.2, .translate_y = 0.3,
                                                 .scale_min = 0.7, .scale_max = 1.5, .shear = 25, .value = BESIDE),
                      sizes[k], sizes[k], affine, 0.5001);
        }
        lg_close(c);
}

/* A transform that has nothing to choose leaves images as they are. */
TEST_CASE(nothing_moves_without_a_reason)
{
        lg_ctx *c = open_ctx();
        double x[ROOM], y[ROOM];
        lg_dataset *base = images(c, LG_U8, (image){3, 6, 5}, 4);
        lg_transform *all[] = {lg_transform_random_rotation(c, LG_ZERO),
                               lg_transform_random_affine(c),
                               lg_transform_color_jitter(c),
                               lg_transform_random_erasing(c, .p = LG_ZERO),
                               lg_transform_random_crop(c, 6, 5),
                               lg_transform_center_crop(c, 6, 5),
                               lg_transform_resize(c, 6, 5),
                               lg_transform_random_horizontal_flip(c, .p = LG_ZERO),
                               lg_transforms(c)};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
                lg_dataset *d = lg_dataset_transform(base, all[k]);
                assert_ok(c);
                for (int64_t i = 0; i < 4; i++) {
                        int64_t n = sample(c, base, i, x, ROOM);
                        assert_int_equal(sample(c, d, i, y, ROOM), n);
                        assert_memory_equal(x, y, (size_t)n * sizeof *x);
                }
        }
        lg_close(c);
}

/* What Pillow makes of images: tests/data/resize.py. */
TEST_CASE(resized_images_are_those_of_pillow)
{
        const char *folder = getenv("LG_TEST_DATA");
        char path[4096], kind[8];
        long long h, w, to_h, to_w;
        int lines = 0, all = 0, unlike = 0;
        snprintf(path, sizeof path, "%s/resize.txt", folder ? folder : "tests/data");
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "Pillow %7s", kind), 1);
        lg_ctx *c = open_ctx();
        for (; fscanf(f, "%7s %lld %lld %lld %lld", kind, &h, &w, &to_h, &to_w) == 5; lines++) {
                const bool bytes = !strcmp(kind, "u8");
                double x[ROOM], y[ROOM], want;
                for (int64_t i = 0; i < h * w; i++)
                        x[i] = bytes ? pixel(LG_U8, i) : sin(pixel(LG_U8, i));
                for (int wide = 0; wide < (bytes ? 1 : 2); wide++) {
                        lg_tensor *t = lg_from(c, x, LG_SHAPE(1, h, w),
                                               .dtype = bytes  ? LG_U8
                                                        : wide ? LG_F64
                                                               : LG_F32,
                                               .device = lg_cpu());
                        lg_dataset *d =
                                lg_dataset_transform(lg_dataset_tensors(c, t, t), lg_transform_resize(c, to_h, to_w));
                        assert_ok(c);
                        assert_int_equal(sample(c, d, 0, y + wide * ROOM / 2, ROOM / 2), to_h * to_w);
                }
                for (int64_t i = 0; i < to_h * to_w; i++) {
                        assert_int_equal(fscanf(f, "%lf", &want), 1);
                        assert_near(y[i], want, bytes ? 1 : 1e-6);
                        if (!bytes)
                                assert_near(y[ROOM / 2 + i], want, 1e-6);
                        all += bytes;
                        unlike += bytes && y[i] != want;
                }
        }
        fclose(f);
        assert_int_equal(lines, 28);
        assert_true(unlike <= all / 100); /* another machine may round the weights in another way */
        lg_close(c);
}

/* ---- colours ---- */

static void blend(double *y, int64_t n, double ratio, double other, lg_dtype dtype)
{
        const double most = dtype == LG_U8 ? 255 : 1;
        for (int64_t i = 0; i < n; i++) {
                y[i] = fmin(fmax(ratio * y[i] + (1 - ratio) * other, 0), most);
                y[i] = dtype == LG_U8 ? floor(y[i] + 1e-4) : y[i];
        }
}

static void jittered(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        const double bright = 0.6 + 0.8 * u[0], contrast = 2.5 * u[1];
        const int64_t plane = n.h * n.w;
        memcpy(y, x, (size_t)pixels(n) * sizeof *y);
        for (int k = 0; k < 2; k++) {
                if ((u[2] < 0.5) == (k == 0)) {
                        blend(y, pixels(n), bright, 0, dtype);
                        continue;
                }
                double mean = 0;
                for (int64_t i = 0; i < plane; i++) {
                        double grey = n.c == 1 ? y[i] : 0.2989 * y[i] + 0.587 * y[plane + i] + 0.114 * y[2 * plane + i];
                        mean += (dtype == LG_U8 ? floor(grey + 1e-4) : grey) / (double)plane;
                }
                blend(y, pixels(n), contrast, mean, dtype);
        }
}

static void bright_only(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        memcpy(y, x, (size_t)pixels(n) * sizeof *y);
        blend(y, pixels(n), 0.5 + u[0], 0, dtype);
}

TEST_CASE(colours_change)
{
        lg_ctx *c = open_ctx();
        const image grey = {1, 6, 7}, coloured = {3, 5, 5};
        check(c, lg_transform_color_jitter(c, .brightness = 0.4, .contrast = 1.5), grey, grey, jittered, 1);
        check(c, lg_transform_color_jitter(c, .brightness = 0.4, .contrast = 1.5), coloured, coloured, jittered, 1);
        check(c, lg_transform_color_jitter(c, .brightness = 0.5), coloured, coloured, bright_only, 1);
        lg_close(c);
}

static void erased(const double *x, image n, const double *u, lg_dtype dtype, double *y)
{
        (void)dtype;
        memcpy(y, x, (size_t)pixels(n) * sizeof *y);
        for (int at = 1; u[0] < 0.7 && at + 3 < DRAWS; at += 2) {
                const double area = (double)(n.h * n.w) * (0.02 + (0.33 - 0.02) * u[at]);
                const double ratio = 0.3 * pow(3.3 / 0.3, u[at + 1]);
                const double h = nearbyint(sqrt(area * ratio)), w = nearbyint(sqrt(area / ratio));
                if (h >= (double)n.h || w >= (double)n.w)
                        continue;
                const double top = floor(u[at + 2] * ((double)n.h - h + 1)),
                             left = floor(u[at + 3] * ((double)n.w - w + 1));
                for (int64_t e = 0; e < pixels(n); e++) {
                        const double i = (double)(e / n.w % n.h), j = (double)(e % n.w);
                        y[e] = i >= top && i < top + h && j >= left && j < left + w ? BESIDE : y[e];
                }
                return;
        }
}

TEST_CASE(rectangles_are_erased)
{
        lg_ctx *c = open_ctx();
        const image n = {2, 12, 17}, narrow = {1, 20, 4};
        check(c, lg_transform_random_erasing(c, .p = 0.7, .value = BESIDE), n, n, erased, 0);
        check(c, lg_transform_random_erasing(c, .p = 0.7, .value = BESIDE), narrow, narrow, erased, 0);
        lg_close(c);
}
