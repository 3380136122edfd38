/* test_kernels_conv.c - CPU convolution and its derivatives against the plain sums of kernels/conv.h in f64. */
#include "kernels_conv.h"

static const row rows[] = {
        {2, 3, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 3, 4, AT(5, 7, 3, 2, 2, 3, 0, 1, 1, 1, 1)},
        {3, 4, 6, AT(7, 6, 2, 3, 1, 2, 2, 3, 2, 1, 2)},
        {1, 6, 6, AT(6, 9, 3, 3, 1, 1, 1, 2, 1, 3, 6)},
        {2, 5, 7, AT(4, 4, 1, 1, 1, 1, 0, 0, 1, 1, 1)},
        {2, 4, 8, AT(5, 5, 1, 1, 1, 1, 0, 0, 1, 1, 4)},
        {2, 5, 7, AT(5, 5, 1, 1, 2, 2, 0, 0, 1, 1, 1)},
        {2, 5, 7, AT(3, 4, 1, 1, 1, 1, 2, 1, 1, 1, 1)},
        {2, 1, 3, AT(1, 9, 1, 4, 1, 2, 0, 1, 1, 2, 1)},
        {4, 1, 6, AT(12, 12, 5, 5, 1, 1, 2, 2, 1, 1, 1)},
        {2, 2, 3, AT(3, 3, 3, 3, 1, 1, 4, 4, 1, 1, 1)},
        {2, 2, 2, AT(9, 9, 2, 2, 4, 4, 0, 0, 1, 1, 1)},
        {0, 3, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 0, 4, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 3, 0, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {1, 2, 2, AT(0, 3, 2, 1, 1, 1, 1, 0, 1, 1, 1)},
        {20, 16, 16, AT(7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {3, 16, 32, AT(30, 31, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {1, 16, 16, AT(40, 33, 5, 3, 2, 1, 2, 1, 1, 1, 1)},
        {40, 1, 32, AT(14, 14, 3, 3, 1, 1, 0, 0, 1, 1, 1)},
        {2, 64, 64, AT(14, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {17, 3, 16, AT(32, 32, 7, 7, 2, 2, 3, 3, 1, 1, 1)},
        {8, 32, 48, AT(14, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {8, 34, 32, AT(16, 15, 3, 3, 1, 1, 0, 0, 1, 1, 1)},
        {2, 160, 96, AT(6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {33, 32, 32, AT(9, 9, 3, 3, 1, 1, 1, 1, 1, 1, 32)},
        {3, 64, 96, AT(15, 15, 1, 1, 1, 1, 0, 0, 1, 1, 1)},
        {3, 64, 96, AT(15, 15, 1, 1, 2, 2, 0, 0, 1, 1, 1)},
        /* few outputs of one channel, and the gradient by few channels of one output */
        {2, 1, 2, AT(7, 39, 3, 4, 2, 1, 1, 2, 1, 2, 1)},
        {3, 1, 4, AT(20, 16, 5, 3, 1, 1, 2, 0, 2, 1, 1)},
        {2, 1, 8, AT(11, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {2, 3, 1, AT(9, 21, 2, 3, 1, 1, 0, 1, 1, 1, 1)},
        {2, 1, 4, AT(12, 11, 9, 8, 1, 1, 4, 3, 1, 1, 1)},
        /* weights that Winograd's algorithm transforms panel by panel, once and for several runs of tiles */
        {2, 256, 256, AT(5, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {260, 128, 1040, AT(1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        {20, 32, 32, AT(20, 20, 3, 3, 1, 1, 1, 1, 1, 1, 1)},
        /* strides: the input gradient phase by phase */
        {2, 24, 40, AT(17, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1)},
        {3, 32, 16, AT(10, 11, 4, 5, 2, 3, 1, 2, 1, 1, 2)},
        {1, 48, 33, AT(2, 7, 3, 4, 3, 4, 1, 1, 1, 1, 1)},
        {20, 32, 64, AT(8, 8, 4, 4, 2, 2, 1, 1, 1, 1, 1)},
        {2, 20, 16, {{9, 8}, {4, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1}},
        /* lines and columns of long windows that are not in the image, some windows of none */
        {2, 32, 20, AT(14, 13, 3, 3, 1, 1, 4, 3, 4, 3, 1)},
        {3, 16, 40, AT(3, 5, 5, 3, 2, 1, 7, 1, 1, 1, 1)},
        {1, 24, 24, AT(40, 6, 3, 5, 3, 1, 2, 2, 2, 1, 2)},
        {33, 40, 24, AT(8, 8, 3, 3, 2, 2, 1, 1, 1, 1, 1)},
        {3, 16, 24, AT(5, 9, 3, 7, 1, 2, 1, 5, 2, 1, 1)},
        {2, 16, 16, AT(4, 3, 3, 3, 1, 1, 6, 7, 1, 1, 1)},
        /* dilated and padded so much that zeros around a few rows are more than memory: phases of strides, too */
        {2, 8, 12, AT(3, 4, 3, 3, 1, 1, 3000, 3000, 3000, 3000, 1)},
        {2, 20, 12, AT(5, 4, 3, 2, 1, 2, 2999, 2998, 3000, 2999, 2)},
        {2, 1, 4, AT(6, 5, 3, 2, 1, 1, 9000, 9001, 9000, 9000, 1)},
        {1, 12, 8, AT(4, 5, 3, 3, 2, 2, 4000, 4000, 4000, 4000, 1)},
        /* groups narrower than a vector: all of them full, more of what is seen, or of outputs, vectors not full,
           strides */
        {4, 64, 64, AT(9, 10, 3, 3, 1, 1, 1, 1, 1, 1, 16)},
        {3, 40, 80, AT(8, 7, 3, 2, 2, 1, 1, 1, 1, 2, 40)},
        {2, 70, 35, AT(6, 9, 3, 3, 1, 2, 1, 1, 2, 1, 35)},
        {5, 33, 55, AT(7, 7, 5, 5, 2, 2, 2, 2, 1, 1, 11)},
        {2, 27, 27, AT(8, 8, 1, 1, 1, 1, 0, 0, 1, 1, 9)},
        {1, 128, 128, AT(20, 20, 3, 3, 1, 1, 1, 1, 1, 1, 64)},
        /* fewer outputs than fit: the derivative of a transposed convolution with output_padding */
        {2, 2, 3, {{6, 6}, {2, 2}, {1, 2}, {1, 1}, {0, 0}, {3, 3}, 1}},
};
#define ROWS ((int)(sizeof rows / sizeof *rows))

/* Sums of many terms that cancel: the error is measured by the greatest of them. */
static void check(int which, const lg_conv_args *a, const double *want, int64_t count)
{
        double most = 1;
        for (int64_t i = 0; i < count; i++)
                most = fmax(most, fabs(want[i]));
        for (int64_t i = 0; i < count; i++)
                if (!(fabs(get(a->dtype, a->out, i) - want[i]) <= tolerance[a->dtype] * most))
                        fail_msg("row %d kind %d dtype %d at %lld: %g, not %g", which, a->kind, a->dtype, (long long)i,
                                 get(a->dtype, a->out, i), want[i]);
}

/* Twice, since scratch is not what it was at first. */
#define RUN(kernel)                                                                                                    \
        CALL(kernel, &q, &a);                                                                                          \
        CALL(kernel, &q, &a)

static void check_row(int which, const row *r, lg_dtype t, lg_conv_kind kind, bool bias)
{
        lg_conv_args a = {.dtype = t, .n = r->n, .channels = r->channels, .outputs = r->outputs, .at = r->at};
        set_outputs(&a.at);
        const int64_t x = a.n * a.at.in[0] * a.at.in[1] * a.channels, y = a.n * a.at.out[0] * a.at.out[1] * a.outputs;
        const int64_t w = a.outputs * (a.channels / a.at.groups) * a.at.kernel[0] * a.at.kernel[1];
        const int64_t count = kind == LG_CONV_FORWARD ? y : kind == LG_CONV_INPUT_GRAD ? x : w;
        lg_conv_args d = a;
        d.kind = a.kind = kind;
        a.x = make_array(t, x, -1, 1);
        a.g = make_array(t, y, -1, 1);
        a.w = make_array(t, w, -1, 1);
        a.b = bias ? make_array(t, a.outputs, -1, 1) : NULL;
        d.x = doubles(t, a.x, x);
        d.g = doubles(t, a.g, y);
        d.w = doubles(t, a.w, w);
        d.b = bias ? doubles(t, a.b, a.outputs) : NULL;
        double *want = malloc((size_t)(count + 1) * sizeof *want);
        reference(&d, count, want);
        a.out = malloc((size_t)(count + 1) * size_of[t]);
        const size_t bytes = (size_t)count * size_of[t];
        EVERY(a.out, bytes, RUN(k->conv), check(which, &a, want, count));
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                conv_fn *fn = another(algorithm, &a);
                if (!fn)
                        continue;
                lg_queue q = make_queue(2);
                RUN(fn);
                check(which, &a, want, count);
                q.api->close(&q);
        }
        const void *all[] = {a.x, a.g, a.w, a.b, a.out, d.x, d.g, d.w, d.b, want};
        for (int i = 0; i < 10; i++)
                free((void *)(uintptr_t)all[i]);
}

/* All dtypes where they may differ in more than their loops, as where Winograd's algorithm reads them itself; f32 alone
 * where the sums of many are long. */
static int types_of(int r)
{
        const lg_conv_args a = {.dtype = LG_F16, .at = rows[r].at};
        const bool winograd = LG_ISA_NAME(conv_winograd_fits, portable)(&a);
        if (rows[r].n * rows[r].channels * rows[r].outputs > 100000)
                return 1;
        return r < 5 || r == ROWS - 1 || winograd ? 4 : 2;
}

TEST_CASE(test_rows)
{
        for (int r = 0; r < ROWS; r++)
                for (int kind = LG_CONV_FORWARD; kind <= LG_CONV_WEIGHT_GRAD; kind++)
                        for (int t = SANITIZED ? (r + kind) % types_of(r) : 0; t < types_of(r);
                             t += SANITIZED ? 4 : 1) {
                                check_row(r, &rows[r], float_types[t], (lg_conv_kind)kind, false);
                                if (kind == LG_CONV_FORWARD)
                                        check_row(r, &rows[r], float_types[t], LG_CONV_FORWARD, true);
                        }
}

/* ---- many random geometries ---- */

static int64_t random_channels(void)
{
        static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 64, 65};
        return sizes[random_int(0, (int64_t)(sizeof sizes / sizeof *sizes) - 1)];
}

/* Every second one suits Winograd's algorithm, and every fifth of the others is depthwise; some have narrow groups. */
static row random_row(int i)
{
        row r = {.n = random_int(1, 5), .channels = random_channels(), .outputs = random_channels(), .at.groups = 1};
        lg_conv_geometry *at = &r.at;
        for (int d = 0; d < 2; d++) {
                at->kernel[d] = i % 2 ? 3 : random_int(1, 5);
                at->stride[d] = i % 2 || random_int(0, 1) ? 1 : random_int(1, 3);
                at->dilation[d] = i % 2 || random_int(0, 1) ? 1 : random_int(1, 3);
                at->padding[d] = i % 2 ? random_int(0, 3) : random_int(0, 5);
                const int64_t least = (at->kernel[d] - 1) * at->dilation[d] + 1 - 2 * at->padding[d];
                at->in[d] = random_int(least > 1 ? least : 1, 40);
        }
        if (i % 10 == 0)
                r.outputs = at->groups = r.channels;
        else if (i % 4 == 2) {
                at->groups = random_int(2, 4);
                r.channels *= at->groups;
                r.outputs *= at->groups;
        } else if (i % 8 == 4) {
                at->groups = random_int(2, 24);
                r.channels = at->groups * random_int(1, 8);
                r.outputs = at->groups * random_int(1, 8);
        }
        return r;
}

static double work_of(const row *r)
{
        double work = (double)r->n * (double)r->outputs * (double)(r->channels / r->at.groups);
        for (int d = 0; d < 2; d++)
                work *= (double)(r->at.in[d] * r->at.kernel[d]);
        return work;
}

/* The sums of the absolute values of what is added. */
PLAIN static double *magnitudes(const lg_conv_args *a, int64_t x, int64_t y, int64_t w, int64_t count)
{
        lg_conv_args m = *a;
        double *ret = malloc((size_t)(count + 1) * sizeof *ret);
        const int64_t size[] = {x, y, w, a->b ? a->outputs : 0};
        double *part[] = {doubles(LG_F64, a->x, x), doubles(LG_F64, a->g, y), doubles(LG_F64, a->w, w),
                          doubles(LG_F64, a->b, size[3])};
        for (int p = 0; p < 4; p++)
                for (int64_t i = 0; i < size[p]; i++)
                        part[p][i] = fabs(part[p][i]);
        m.x = part[0], m.g = part[1], m.w = part[2], m.b = a->b ? part[3] : NULL;
        reference(&m, count, ret);
        free(part[0]), free(part[1]), free(part[2]), free(part[3]);
        return ret;
}

/* By the sum of the terms' absolute values; Winograd's algorithm, which adds terms that cancel, by the largest result,
 * which is small where there are few. */
static void check_bound(int which, const lg_conv_args *a, const double *want, const double *magnitude, int64_t count)
{
        double most = 0;
        const bool winograd = LG_ISA_NAME(conv_winograd_fits, portable)(a);
        for (int64_t i = 0; i < count; i++)
                most = fmax(most, fabs(want[i]));
        for (int64_t i = 0; i < count; i++) {
                const double error = fabs(get(a->dtype, a->out, i) - want[i]);
                const double bound = a->dtype == LG_F64 ? 1e-15 * (magnitude[i] + 1)
                                     : winograd         ? (a->kind == LG_CONV_WEIGHT_GRAD ? 6e-6 : 4e-6) * most
                                                        : 1e-6 * magnitude[i] + 1e-7;
                if (!(error <= bound))
                        fail_msg("geometry %d kind %d dtype %d at %lld: %g, not %g; error %g, at most %g", which,
                                 a->kind, a->dtype, (long long)i, get(a->dtype, a->out, i), want[i], error, bound);
        }
}

static void check_random(int which, const row *r, lg_dtype t, lg_conv_kind kind)
{
        lg_conv_args a = {.kind = kind, .dtype = t, .n = r->n, .channels = r->channels, .outputs = r->outputs};
        a.at = r->at;
        set_outputs(&a.at);
        const int64_t x = a.n * a.at.in[0] * a.at.in[1] * a.channels, y = a.n * a.at.out[0] * a.at.out[1] * a.outputs;
        const int64_t w = a.outputs * (a.channels / a.at.groups) * a.at.kernel[0] * a.at.kernel[1];
        const int64_t count = kind == LG_CONV_FORWARD ? y : kind == LG_CONV_INPUT_GRAD ? x : w;
        lg_conv_args d = a;
        a.x = make_array(t, x, -1, 1), a.g = make_array(t, y, -1, 1), a.w = make_array(t, w, -1, 1);
        a.b = kind == LG_CONV_FORWARD ? make_array(t, a.outputs, -1, 1) : NULL;
        d.x = doubles(t, a.x, x), d.g = doubles(t, a.g, y), d.w = doubles(t, a.w, w);
        d.b = a.b ? doubles(t, a.b, a.outputs) : NULL;
        double *want = malloc((size_t)(count + 1) * sizeof *want), *magnitude = magnitudes(&d, x, y, w, count);
        reference(&d, count, want);
        a.out = malloc((size_t)(count + 1) * size_of[t]);
        EVERY(a.out, (size_t)count * size_of[t], CALL(k->conv, &q, &a), check_bound(which, &a, want, magnitude, count));
        for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
                conv_fn *fn = another(algorithm, &a);
                if (!fn)
                        continue;
                lg_queue q = make_queue(1);
                CALL(fn, &q, &a);
                check_bound(which, &a, want, magnitude, count);
                q.api->close(&q);
        }
        const void *all[] = {a.x, a.g, a.w, a.b, a.out, d.x, d.g, d.w, d.b, want, magnitude};
        for (int i = 0; i < 11; i++)
                free((void *)(uintptr_t)all[i]);
}

TEST_CASE(test_random)
{
        for (int i = 0; i < SOME(120); i++) {
                row r;
                do
                        r = random_row(i);
                while (work_of(&r) > 5e6);
                for (int kind = LG_CONV_FORWARD; kind <= LG_CONV_WEIGHT_GRAD; kind++)
                        check_random(i, &r, i % 3 ? LG_F32 : LG_F64, (lg_conv_kind)kind);
        }
}

/* So many images that they may be worked on in parts, an even and an odd number of them, against the direct algorithm.
 */
TEST_CASE(test_large_batches)
{
        enum { C = 32, SIDE = 32, IMAGE = C * SIDE * SIDE, MOST = 64 };
        float *x = make_array(LG_F32, MOST * IMAGE, -1, 1), *w = make_array(LG_F32, C * C * 9, -1, 1);
        float *b = make_array(LG_F32, C, -1, 1);
        float *got = malloc(MOST * IMAGE * sizeof *got), *want = malloc(MOST * IMAGE * sizeof *want);
        for (int kind = LG_CONV_FORWARD; kind <= LG_CONV_INPUT_GRAD; kind++)
                for (int n = MOST - 1; n <= MOST; n++) {
                        lg_queue q = make_queue(2);
                        lg_conv_args a = {
                                .kind = (lg_conv_kind)kind, .dtype = LG_F32, .n = n, .channels = C, .outputs = C};
                        a.at = (lg_conv_geometry){{SIDE, SIDE}, {3, 3}, {SIDE, SIDE}, {1, 1}, {1, 1}, {1, 1}, 1};
                        a.x = a.g = x;
                        a.w = w;
                        a.b = kind == LG_CONV_FORWARD ? b : NULL;
                        a.out = want;
                        CALL(LG_ISA_NAME(conv_direct, portable), &q, &a);
                        a.out = got;
                        CALL(lg_cpu_device()->kernels->conv, &q, &a);
                        for (int64_t i = 0; i < n * (int64_t)IMAGE; i++)
                                if (!(fabsf(got[i] - want[i]) <= 1e-3F))
                                        fail_msg("kind %d, %d images, at %lld: %g, not %g", kind, n, (long long)i,
                                                 (double)got[i], (double)want[i]);
                        q.api->close(&q);
                }
        free(x), free(w), free(b), free(got), free(want);
}

/* What is not a number in one group leaves the others alone, though they share vectors with it. */
TEST_CASE(test_groups_apart)
{
        enum { GROUPS = 11, SEEN = 3, MADE = 5, SIDE = 6, PIXELS = SIDE * SIDE, MOST = PIXELS * GROUPS * MADE };
        for (int sick = 0; sick < GROUPS; sick += 5)
                for (int kind = LG_CONV_FORWARD; kind <= LG_CONV_WEIGHT_GRAD; kind++) {
                        float *x = make_array(LG_F32, MOST, -1, 1), *g = make_array(LG_F32, MOST, -1, 1);
                        float *w = make_array(LG_F32, MOST, -1, 1), *out = malloc(MOST * sizeof *out);
                        lg_queue q = make_queue(1);
                        lg_conv_args a = {.kind = (lg_conv_kind)kind, .dtype = LG_F32, .n = 1, .x = x, .g = g, .w = w};
                        a.channels = GROUPS * SEEN, a.outputs = GROUPS * MADE, a.out = out;
                        a.at = (lg_conv_geometry){{SIDE, SIDE}, {3, 3}, {SIDE, SIDE}, {1, 1}, {1, 1}, {1, 1}, GROUPS};
                        for (int i = 0; i < MOST; i++) {
                                x[i] = i % a.channels / SEEN == sick ? NAN : x[i];
                                g[i] = i % a.outputs / MADE == sick ? NAN : g[i];
                        }
                        CALL(lg_cpu_device()->kernels->conv, &q, &a);
                        const bool back = kind == LG_CONV_INPUT_GRAD, sums = kind == LG_CONV_WEIGHT_GRAD;
                        const int64_t all = back ? a.channels : a.outputs;
                        const int count = (int)(sums ? a.outputs * SEEN * 9 : PIXELS * all);
                        for (int i = 0; i < count; i++) {
                                const int64_t group = sums ? i / (MADE * SEEN * 9) : i % all / (all / GROUPS);
                                if (isnan(out[i]) != (group == sick))
                                        fail_msg("kind %d, element %d is %g", kind, i, (double)out[i]);
                        }
                        q.api->close(&q);
                        free(x), free(g), free(w), free(out);
                }
}

/* Many geometries on one queue, and again with another number of threads. */
TEST_CASE(test_many)
{
        lg_queue q = make_queue(1);
        void *x = make_array(LG_F32, 4000, 0, 1), *w = make_array(LG_F32, 4000, 0, 1), *y = malloc(16000);
        for (int turn = 0; turn < 4; turn++)
                for (int i = 1; i <= 400; i++) {
                        q.threads = turn < 2 ? 1 : 2;
                        lg_conv_args a = {LG_CONV_FORWARD, LG_F32, 1,       1, 1, AT(1, i, 1, 1, 1, 1, 0, 0, 1, 1, 1),
                                          .x = x,          .w = w, .out = y};
                        a.at.out[0] = 1, a.at.out[1] = i;
                        CALL(lg_cpu_device()->kernels->conv, &q, &a);
                        for (int j = 0; j < i; j++)
                                assert_true(close_to(get(LG_F32, y, j), get(LG_F32, x, j) * get(LG_F32, w, 0), 1e-6));
                }
        q.api->close(&q);
        free(x), free(w), free(y);
}

static int pieces_left;
static void *(*real_workspace)(lg_queue *q, size_t bytes);

static void *some_workspace(lg_queue *q, size_t bytes)
{
        if (pieces_left-- > 0)
                return real_workspace(q, bytes);
        lg_queue_fail(q, LG_NO_MEMORY, "none");
        return NULL;
}

/* Each piece of scratch that a call asks for is refused once. */
static void refuse_each(const lg_conv_args *a)
{
        bool ok = false;
        for (int n = 0; !ok; n++) {
                lg_queue q = make_queue(2);
                real_workspace = q.workspace;
                q.workspace = some_workspace;
                pieces_left = n;
                ok = lg_cpu_device()->kernels->conv(&q, a);
                assert_int_equal(q.status, ok ? LG_OK : LG_NO_MEMORY);
                assert_true(ok ? n > 0 : n < 20);
                drop_workspace();
                q.api->close(&q);
        }
}

TEST_CASE(test_no_memory)
{
        static const lg_conv_geometry at[] = {
                {{5, 6}, {3, 3}, {3, 4}, {1, 1}, {0, 0}, {1, 1}, 1},
                {{5, 6}, {3, 3}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 1},
        };
        for (int kind = LG_CONV_FORWARD; kind <= LG_CONV_WEIGHT_GRAD; kind++)
                for (int t = 0; t < 4; t++)
                        for (int i = 0; i < 4; i++) {
                                const int64_t channels = i / 2 ? 16 : 3;
                                void *x = make_array(float_types[t], 4000, 0, 1);
                                void *out = malloc(4000 * size_of[float_types[t]]);
                                lg_conv_args a = {.kind = (lg_conv_kind)kind, .dtype = float_types[t], .n = 2};
                                a.channels = a.outputs = channels;
                                a.at = at[i % 2];
                                a.x = a.g = a.w = x;
                                a.z = kind == LG_CONV_FORWARD ? x : NULL;
                                a.out = out;
                                refuse_each(&a);
                                free(x), free(out);
                        }
}
