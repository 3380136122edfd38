/* test_kernels_layers.c - CPU dropout, rotary embedding, the derivative of layer norm, max pooling and its derivative
 * against plain loops. */
#include "kernels.h"

/* ---- dropout ---- */

static void check_dropout(lg_dtype t, int64_t rows, int64_t cols, bool turned, uint64_t offset)
{
        const int64_t n = rows * cols;
        void *x = make_array(t, n, -3, 3), *y = malloc((size_t)n * 8 + 1);
        double *want = malloc((size_t)n * sizeof *want + 1);
        lg_dropout_args a = {.ndim = 2,
                             .shape = {rows, cols},
                             .dtype = t,
                             .x = x,
                             .y = y,
                             .p = 0.3,
                             .seed = 0x9876543210ABCDEFu,
                             .offset = offset};
        for (int d = 0; d < 2; d++) {
                a.y_strides[d] = d ? 1 : cols;
                a.x_strides[d] = turned ? (d ? rows : 1) : a.y_strides[d];
        }
        for (int64_t i = 0; i < n; i++) {
                const lg_philox_words w = lg_philox_block(a.seed, offset + (uint64_t)i / 4);
                const double u = lg_philox_uniform24(w.w[i % 4]), v = get(t, x, offset_of(2, a.shape, a.x_strides, i));
                want[i] = u >= a.p ? v / (1 - a.p) : 0;
        }
        EVERY(y, (size_t)n * size_of[t], CALL(k->dropout, &q, &a), {
                check_array("dropout", t, y, want, n, tolerance[t]);
                for (int64_t i = 0; i < n; i++)
                        assert_true((get(t, y, i) == 0) == (want[i] == 0) || get(t, x, i) == 0);
        });
        free(x), free(y), free(want);
}

TEST_CASE(test_dropout)
{
        for (int t = 0; t < 4; t++) {
                check_dropout(float_types[t], 1, 1, false, 0);
                check_dropout(float_types[t], 3, 341, false, 0xFFFFFFF0u); /* the counter's upper word changes */
                check_dropout(float_types[t], 150, 251, false, UINT64_MAX - 40);
                check_dropout(float_types[t], 150, 251, true, 5);
        }
}

/* ---- rotary ---- */

static void check_rotary(lg_dtype t, int64_t rows, int64_t width, int64_t dims, bool interleaved, bool back)
{
        const int64_t samples = 3, n = samples * rows * width, pairs = dims / 2;
        const lg_dtype table = t == LG_F64 ? LG_F64 : LG_F32;
        void *x = make_array(t, 2 * n, -3, 3), *y = malloc((size_t)n * 8 + 1);
        void *cos = make_array(table, rows * pairs, -1, 1), *sin = make_array(table, rows * pairs, -1, 1);
        double *want = malloc((size_t)n * sizeof *want + 1);
        const lg_rotary_args a = {.dtype = t,
                                  .ndim = 2,
                                  .shape = {samples, rows},
                                  .x_strides = {2 * width, 2 * width * samples},
                                  .table_strides = {0, pairs},
                                  .width = width,
                                  .dims = dims,
                                  .interleaved = interleaved,
                                  .back = back,
                                  .x = x,
                                  .cos = cos,
                                  .sin = sin,
                                  .y = y};
        for (int64_t i = 0; i < n; i++) {
                const int64_t row = i / width % rows, k = i % width,
                              from = 2 * width * (i / width / rows + samples * row);
                const int64_t pair = interleaved ? k / 2 : k % (pairs ? pairs : 1);
                const bool second = interleaved ? k % 2 : k >= pairs;
                want[i] = get(t, x, from + k);
                if (k >= dims)
                        continue;
                const int64_t other = interleaved ? k ^ 1 : second ? k - pairs : k + pairs;
                const double sign = second != back ? 1 : -1;
                want[i] = want[i] * get(table, cos, row * pairs + pair) +
                          sign * get(t, x, from + other) * get(table, sin, row * pairs + pair);
        }
        EVERY(y, (size_t)n * size_of[t], CALL(k->rotary, &q, &a), check_array("rotary", t, y, want, n, tolerance[t]));
        free(x), free(y), free(cos), free(sin), free(want);
}

TEST_CASE(test_rotary)
{
        for (int t = 0; t < 4; t++)
                for (int way = 0; way < 4; way++) {
                        check_rotary(float_types[t], 1, 2, 2, way & 1, way & 2);
                        check_rotary(float_types[t], 5, 77, 70, way & 1, way & 2);
                        check_rotary(float_types[t], 300, 64, 64, way & 1, way & 2);
                        check_rotary(float_types[t], 4, 3, 0, way & 1, way & 2);
                }
}

/* ---- layer norm's derivative ---- */

typedef struct sums {
        double *dx, *dw, *db;
} sums;

static void layer_norm_row(const lg_layer_norm_vjp_args *a, int64_t row, const sums *s)
{
        const int64_t n = a->channels * a->inner, at = row * n, group = row % a->groups * a->channels;
        const lg_dtype weights = a->dtype == LG_F64 ? LG_F64 : LG_F32;
        double mean = 0, slope = 0;
        for (int pass = 0; pass < 2; pass++)
                for (int64_t i = 0; i < n; i++) {
                        const int64_t c = group + i / a->inner;
                        const double g = get(a->dtype, a->g, at + i), gw = g * (a->w ? get(weights, a->w, c) : 1);
                        const double x = (get(a->dtype, a->x, at + i) - a->mean[row]) * a->rstd[row];
                        if (pass) {
                                s->dx[at + i] = a->rstd[row] * (gw - (a->rms ? 0 : mean) - x * slope);
                                continue;
                        }
                        mean += gw / (double)n;
                        slope += gw * x / (double)n;
                        s->dw[c] += g * x;
                        s->db[c] += g;
                }
}

static void check_layer_norm(lg_dtype t, int64_t outer, int64_t groups, int64_t channels, int64_t inner, bool rms)
{
        const lg_dtype weight = t == LG_F64 ? LG_F64 : LG_F32;
        const int64_t rows = outer * groups, n = rows * channels * inner, weights = groups * channels;
        void *x = make_array(t, n, -1, 1), *g = make_array(t, n, -1, 1), *w = make_array(weight, weights, 0.5, 2);
        double *mean = malloc((size_t)(2 * rows + 1) * 8), *rstd = mean + rows;
        char *out = malloc((size_t)(n + 2 * weights) * 8), *dw = out + n * 8, *db = dw + weights * 8;
        sums want = {calloc((size_t)n + 1, 8), calloc((size_t)weights, 8), calloc((size_t)weights, 8)};
        lg_layer_norm_vjp_args a = {.dtype = t,
                                    .outer = outer,
                                    .groups = groups,
                                    .channels = channels,
                                    .inner = inner,
                                    .rms = rms,
                                    .x = x,
                                    .w = rms ? NULL : w,
                                    .g = g,
                                    .mean = mean,
                                    .rstd = rstd,
                                    .dx = out,
                                    .dw = dw,
                                    .db = db};
        for (int64_t i = 0; i < rows; i++) {
                mean[i] = rms ? 0 : random_real(-0.1, 0.1);
                rstd[i] = random_real(1, 2);
                layer_norm_row(&a, i, &want);
        }
        EVERY(out, (size_t)(n + 2 * weights) * 8, CALL(k->layer_norm_vjp, &q, &a), {
                check_array("dx", t, out, want.dx, n, tolerance[t]);
                check_array("dw", weight, dw, want.dw, weights, tolerance[weight]);
                check_array("db", weight, db, want.db, weights, tolerance[weight]);
        });
        a.dw = a.db = NULL;
        EVERY(out, (size_t)n * 8, CALL(k->layer_norm_vjp, &q, &a), check_array("dx", t, out, want.dx, n, tolerance[t]));
        a.dx = NULL;
        a.db = db;
        EVERY(db, (size_t)weights * 8, CALL(k->layer_norm_vjp, &q, &a),
              check_array("db", weight, db, want.db, weights, tolerance[weight]));
        free(x), free(g), free(w), free(mean), free(out), free(want.dx), free(want.dw), free(want.db);
}

TEST_CASE(test_layer_norm)
{
        for (int t = 0; t < 4; t++) {
                for (int rms = 0; rms < 2; rms++) {
                        check_layer_norm(float_types[t], 0, 1, 5, 1, rms);
                        check_layer_norm(float_types[t], 1, 1, 1, 1, rms);
                        check_layer_norm(float_types[t], 100, 1, 601, 1, rms);
                        check_layer_norm(float_types[t], 2100, 2, 7, 1, rms);
                        check_layer_norm(float_types[t], 9, 2, 5, 33, rms);
                }
        }
}

/* ---- max pooling ---- */

/* Output `at` (image, row, column, channel in order) as PyTorch defines it: the place and the value of the greatest. */
static void pool_reference(const lg_pool_args *a, int64_t at, int32_t *ret_place, double *ret_value)
{
        const lg_conv_geometry *g = &a->at;
        const int64_t k = at % a->channels, pixel = at / a->channels, image = pixel / (g->out[0] * g->out[1]);
        const int64_t i0 = pixel / g->out[1] % g->out[0] * g->stride[0] - g->padding[0];
        const int64_t j0 = pixel % g->out[1] * g->stride[1] - g->padding[1];
        *ret_place = -1;
        for (int64_t i = i0; i < i0 + g->kernel[0] * g->dilation[0]; i += g->dilation[0])
                for (int64_t j = j0; j < j0 + g->kernel[1] * g->dilation[1]; j += g->dilation[1]) {
                        if (i < 0 || j < 0 || i >= g->in[0] || j >= g->in[1])
                                continue;
                        const int64_t place = i * g->in[1] + j;
                        double v = get(a->dtype, a->from, (image * g->in[0] * g->in[1] + place) * a->channels + k);
                        if (*ret_place < 0 || v > *ret_value || (isnan(v) && !isnan(*ret_value))) {
                                *ret_place = (int32_t)place;
                                *ret_value = v;
                        }
                }
}

static void check_pool(lg_dtype t, int64_t channels, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
{
        enum { IMAGES = 2, ROWS = 11, COLUMNS = 13 };
        lg_pool_args a = {.kind = LG_POOL_MAX,
                          .dtype = t,
                          .n = IMAGES,
                          .channels = channels,
                          .at = {.in = {ROWS, COLUMNS},
                                 .kernel = {kernel, kernel},
                                 .stride = {stride, stride},
                                 .padding = {padding, padding},
                                 .dilation = {dilation, dilation}}};
        for (int d = 0; d < 2; d++)
                a.at.out[d] = (a.at.in[d] + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
        const int64_t image = ROWS * COLUMNS * channels, in = IMAGES * image;
        const int64_t each = a.at.out[0] * a.at.out[1] * channels, out = IMAGES * each;
        void *x = make_array(t, in, 0, 0), *y = malloc((size_t)out * 8), *g = make_array(t, out, 0, 0),
             *dx = malloc((size_t)in * 8);
        int32_t *index = malloc((size_t)out * 4), *places = malloc((size_t)out * 4);
        double *want = calloc((size_t)out, 8), *want_dx = calloc((size_t)in, 8);
        /* Few different values, so that there are equals; in the first rows nothing is greater than -infinity. */
        for (int64_t i = 0; i < in; i++)
                put(t, x, i, i < image / 2 ? -INFINITY : i % 37 == 0 ? NAN : (double)random_int(-3, 3));
        a.from = x;
        for (int64_t i = 0; i < out; i++) {
                put(t, g, i, (double)random_int(-4, 4));
                pool_reference(&a, i, &places[i], &want[i]);
                want_dx[i / each * image + places[i] * channels + i % channels] += get(t, g, i);
        }
        a.to = y;
        a.index = index;
        EVERY_AND_MORE(y, (size_t)out * size_of[t], CALL(k->pool, &q, &a), {
                check_array("max_pool", t, y, want, out, 0);
                assert_memory_equal(index, places, (size_t)out * 4);
        });
        a.kind = LG_POOL_MAX_GRAD;
        a.from = g;
        a.to = dx;
        EVERY(dx, (size_t)in * size_of[t], CALL(k->pool, &q, &a), check_array("its gradient", t, dx, want_dx, in, 0));
        free(x), free(y), free(g), free(dx), free(index), free(places), free(want), free(want_dx);
}

TEST_CASE(test_max_pool)
{
        static const int64_t channels[] = {1, 6, 16, 41};
        for (int t = 0; t < 4; t++)
                for (int c = 0; c < 4; c++) {
                        check_pool(float_types[t], channels[c], 2, 2, 0, 1);
                        check_pool(float_types[t], channels[c], 3, 2, 1, 1);
                        check_pool(float_types[t], channels[c], 3, 1, 1, 2);
                        check_pool(float_types[t], channels[c], 9, 2, 4, 1);
                }
}
