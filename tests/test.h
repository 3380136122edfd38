/* test.h - what every test shares: contexts on the device under test, and checks that say what they saw. */
#ifndef LG_TEST_H
#define LG_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <grad.h>

#include "tests.h"

/* $LG_TEST_DEVICE as a device, which becomes the context's default one. */
static inline lg_device test_device(lg_ctx *c)
{
        const char *name = getenv("LG_TEST_DEVICE");
        lg_device d = lg_parse_device(c, name ? name : "cpu");
        if (lg_error(c))
                fail_msg("%s", lg_error(c));
        lg_set_default_device(c, d);
        return d;
}

/* Whether a training here takes minutes: under a sanitizer, or where $LG_TEST_SLOW says that the device is slow. */
static inline bool is_slow(void)
{
        return SANITIZED || getenv("LG_TEST_SLOW");
}

static inline lg_ctx *open_ctx(void)
{
        lg_ctx *c = lg_open();
        assert_non_null(c);
        lg_set_conv_allow_tf32(c, false); /* expected values are those of f32 */
        test_device(c);
        return c;
}

/* Takes a result that a test does not look at. */
static inline void drop(const void *result)
{
        (void)result;
}

/* t is there and has this shape. */
#define assert_shape(t, shape)                                                                                         \
        do {                                                                                                           \
                const lg_tensor *shaped_ = (t);                                                                        \
                lg_shape expected_ = (shape), found_ = lg_shape_of(shaped_);                                           \
                assert_non_null(shaped_);                                                                              \
                assert_int_equal(found_.ndim, expected_.ndim);                                                         \
                for (int shape_i_ = 0; shape_i_ < expected_.ndim; shape_i_++)                                          \
                        assert_int_equal(found_.size[shape_i_], expected_.size[shape_i_]);                             \
        } while (0)

#define assert_ok(c)                                                                                                   \
        do {                                                                                                           \
                if (lg_error(c))                                                                                       \
                        fail_msg("%s", lg_error(c));                                                                   \
        } while (0)

/* An error of that code whose message holds the text is set; it is cleared. */
#define assert_error(c, code, text)                                                                                    \
        do {                                                                                                           \
                if (lg_error_code_of(c) != (code) || !strstr(lg_error(c), (text)))                                     \
                        fail_msg("expected %s with \"%s\", got %s: %s", lg_error_name(code), (text),                   \
                                 lg_error_name(lg_error_code_of(c)), lg_error(c) ? lg_error(c) : "no error");          \
                lg_clear_error(c);                                                                                     \
        } while (0)

/* The call gives nothing, and that error. */
#define assert_fails(c, call, code, text)                                                                              \
        do {                                                                                                           \
                assert_false((call) != 0);                                                                             \
                assert_error(c, code, text);                                                                           \
        } while (0)

#define assert_near(a, b, tolerance)                                                                                   \
        do {                                                                                                           \
                double a_ = (a), b_ = (b);                                                                             \
                if (!(fabs(a_ - b_) <= (tolerance)) && !(isnan(a_) && isnan(b_)))                                      \
                        fail_msg("%.17g is not %.17g within %g", a_, b_, (double)(tolerance));                         \
        } while (0)

/* All elements as doubles into `out`, which has room for `room` of them; returns how many there are. */
static inline int64_t read_all(const lg_tensor *t, double *out, int64_t room)
{
        int64_t n = lg_numel(t);
        assert_non_null(t);
        assert_true(n <= room);
        assert_true(lg_read(t, out, LG_F64, (size_t)n * sizeof *out));
        return n;
}

/* The last bit of values around 1 of that dtype, where a GPU's kernels may add up in another order; elsewhere 0. */
static inline double other_order(lg_ctx *c, lg_dtype dtype)
{
        const double last = dtype == LG_F64 ? 4e-16 : dtype == LG_F32 ? 2.4e-7 : dtype == LG_F16 ? 2e-3 : 1.6e-2;
        return lg_default_device(c).type == LG_DEVICE_CUDA ? last : 0;
}

/* Shape, dtype and every bit of two tensors. */
static inline void assert_same_bits(const lg_tensor *a, const lg_tensor *b)
{
        assert_non_null(a);
        assert_non_null(b);
        const lg_dtype dtype = lg_dtype_of(a);
        const size_t bytes = (size_t)lg_numel(a) * lg_dtype_size(dtype);
        assert_shape(a, lg_shape_of(b));
        assert_int_equal(dtype, lg_dtype_of(b));
        char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
        assert_true(x && y && lg_read(a, x, dtype, bytes) && lg_read(b, y, dtype, bytes));
        assert_memory_equal(x, y, bytes);
        free(x), free(y);
}

/* True if the call that runs a kernel reports what that finds in its data; else the next read or wait does. */
static inline bool reports_at_once(lg_ctx *c)
{
        return lg_default_device(c).type == LG_DEVICE_CPU;
}

/* max |t - ref| / max(1, max |ref|) is within the tolerance; sizes are equal. */
static inline void assert_values(const lg_tensor *t, const double *ref, int64_t n, double tolerance)
{
        double *got = calloc((size_t)n + 1, sizeof *got), scale = 1;
        if (!t)
                fail_msg("there is no tensor");
        assert_int_equal(read_all(t, got, n), n);
        for (int64_t i = 0; i < n; i++)
                scale = isfinite(ref[i]) ? fmax(scale, fabs(ref[i])) : scale;
        for (int64_t i = 0; i < n; i++)
                if (!(fabs(got[i] - ref[i]) <= tolerance * scale) && !(isnan(got[i]) && isnan(ref[i])) &&
                    got[i] != ref[i])
                        fail_msg("element %lld: %.17g is not %.17g within %g", (long long)i, got[i], ref[i],
                                 tolerance * scale);
        free(got);
}
#define assert_list(t, tolerance, ...)                                                                                 \
        assert_values((t), (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double),      \
                      tolerance)

#endif
