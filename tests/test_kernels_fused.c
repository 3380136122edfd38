/* test_kernels_fused.c - CPU softmax, cross_entropy, cumsum, logcumsumexp and the optimisers against plain loops in
 * f64. */
#include "kernels.h"

/* ---- lines: the middle dimension of (outer, n, inner) ---- */
#define SIZES 8
static const int64_t sizes[SIZES][3] = {{5, 7, 1}, {3, 5, 4},    {2, 3, 300}, {0, 3, 2},
                                        {2, 0, 3}, {40, 500, 1}, {1, 1, 1},   {3, 40, 300}};

static int64_t line_start(int64_t line, int64_t n, int64_t inner)
{
        return line / inner * n * inner + line % inner;
}

/* ---- softmax ---- */
static void softmax_reference(const lg_softmax_args *a, double *ret)
{
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                int64_t base = line_start(i, a->n, a->inner);
                double top = -INFINITY, sum = 0;
                for (int64_t j = 0; j < a->n; j++)
                        top = fmax(top, get(a->dtype, a->x, base + j * a->inner));
                for (int64_t j = 0; j < a->n; j++)
                        sum += exp(get(a->dtype, a->x, base + j * a->inner) - top);
                for (int64_t j = 0; j < a->n; j++) {
                        double x = get(a->dtype, a->x, base + j * a->inner) - top;
                        ret[base + j * a->inner] = a->log ? x - log(sum) : exp(x) / sum;
                }
        }
}

static void softmax_vjp_reference(const lg_softmax_vjp_args *a, double *ret)
{
        for (int64_t i = 0; i < a->outer * a->inner; i++) {
                int64_t base = line_start(i, a->n, a->inner);
                double sum = 0;
                for (int64_t j = 0; j < a->n; j++) {
                        double g = get(a->dtype, a->g, base + j * a->inner);
                        sum += a->log ? g : g * get(a->dtype, a->y, base + j * a->inner);
                }
                for (int64_t j = 0; j < a->n; j++) {
                        int64_t at = base + j * a->inner;
                        double g = get(a->dtype, a->g, at), y = get(a->dtype, a->y, at);
                        ret[at] = a->log ? g - exp(y) * sum : y * (g - sum);
                }
        }
}

static void check_softmax(lg_dtype t, int64_t outer, int64_t n, int64_t inner, bool logarithm)
{
        int64_t count = outer * n * inner;
        size_t bytes = (size_t)count * size_of[t];
        void *x = make_array(t, count, -5, 5), *y = make_array(t, count, 0, 1), *g = make_array(t, count, -1, 1);
        double *want = malloc((size_t)(count + 1) * sizeof *want);
        for (int64_t j = 0; j < n && count; j++)
                put(t, x, j * inner, -INFINITY);
        lg_softmax_args a = {.dtype = t, .outer = outer, .n = n, .inner = inner, .log = logarithm, .x = x, .y = y};
        softmax_reference(&a, want);
        EVERY(y, bytes, CALL(k->softmax, &q, &a), check_array("softmax", t, y, want, count, tolerance[t]));
        lg_softmax_vjp_args v = {
                .dtype = t, .outer = outer, .n = n, .inner = inner, .log = logarithm, .y = y, .g = g, .dx = x};
        softmax_vjp_reference(&v, want);
        EVERY(x, bytes, CALL(k->softmax_vjp, &q, &v), check_array("vjp", t, x, want, count, 4 * tolerance[t]));
        free(x), free(y), free(g), free(want);
}

TEST_CASE(test_softmax)
{
        for (int t = 0; t < 4; t++) {
                for (int s = 0; s < SIZES; s++) {
                        for (int logarithm = 0; logarithm < 2; logarithm++)
                                check_softmax(float_types[t], sizes[s][0], sizes[s][1], sizes[s][2], logarithm);
                }
        }
}

/* ---- cumulative sums ---- */
static double plus(double a, double b)
{
        return a + b;
}

static double log_plus(double a, double b)
{
        return fmax(a, b) + log(exp(a - fmax(a, b)) + exp(b - fmax(a, b)));
}

static void check_cumsum(lg_dtype t, const int64_t *size, bool reverse, bool logarithm)
{
        const int64_t n = size[1], inner = size[2], count = size[0] * n * inner;
        void *x = make_array(t, count, -4, 5), *y = make_array(t, count, 0, 1);
        double *want = malloc((size_t)(count + 1) * sizeof *want);
        for (int64_t i = 0; i < size[0] * inner; i++) {
                double sum = logarithm ? -INFINITY : 0;
                for (int64_t j = 0; j < n; j++) {
                        int64_t at = line_start(i, n, inner) + (reverse ? n - 1 - j : j) * inner;
                        want[at] = sum = (logarithm ? log_plus : plus)(sum, get(t, x, at));
                }
        }
        lg_cumsum_args a = {.dtype = t, .outer = size[0], .n = n, .inner = inner, .reverse = reverse, .x = x, .y = y};
        EVERY(y, (size_t)count * size_of[t], CALL(logarithm ? k->logcumsumexp : k->cumsum, &q, &a),
              check_array(logarithm ? "logcumsumexp" : "cumsum", t, y, want, count, tolerance[t]));
        free(x), free(y), free(want);
}

TEST_CASE(test_cumsum)
{
        for (int s = 0; s < SIZES; s++) {
                for (int reverse = 0; reverse < 2; reverse++) {
                        for (int t = 0; t < 8; t++)
                                check_cumsum(float_types[t / 2], sizes[s], reverse, t % 2);
                        check_cumsum(LG_I64, sizes[s], reverse, false);
                }
        }
}

/* ---- cross entropy ---- */
#define WIDE(dtype) ((dtype) == LG_F64 ? LG_F64 : LG_F32)

/* q of each row and class; the loss and its derivative follow from it by the header's formulas. */
static void weights_reference(const lg_cross_entropy_args *a, double *ret)
{
        int64_t counted = 0;
        for (int64_t i = 0; i < a->rows; i++)
                counted += a->labels[i] != a->ignore_index && a->labels[i] >= 0 && a->labels[i] < a->classes;
        for (int64_t i = 0; i < a->rows * a->classes; i++) {
                int64_t label = a->labels[i / a->classes];
                bool ignored = label == a->ignore_index || label < 0 || label >= a->classes;
                double w = a->reduction == LG_MEAN ? 1.0 / (double)counted : 1, e = a->label_smoothing;
                ret[i] = ignored ? 0 : w * ((1 - e) * (label == i % a->classes) + e / (double)a->classes);
        }
}

static void cross_entropy_reference(const lg_cross_entropy_args *a, double *weights, double *ret_loss, double *ret_dx)
{
        int64_t c = a->classes, count = a->rows * c;
        double *lp = malloc((size_t)(count + 1) * sizeof *lp);
        lg_softmax_args s = {.dtype = a->dtype, .outer = a->rows, .n = c, .inner = 1, .log = true, .x = a->x};
        softmax_reference(&s, lp);
        ret_loss[0] = a->reduction == LG_MEAN && a->rows == 0 ? NAN : 0;
        for (int64_t i = 0; i < a->rows; i++) {
                double total = 0, loss = 0, g = get(WIDE(a->dtype), a->g, a->reduction == LG_NONE ? i : 0);
                for (int64_t j = 0; j < c; j++) {
                        total += weights[i * c + j];
                        loss -= weights[i * c + j] * lp[i * c + j];
                }
                for (int64_t j = 0; j < c; j++)
                        ret_dx[i * c + j] = g * (exp(lp[i * c + j]) * total - weights[i * c + j]);
                if (a->reduction == LG_NONE)
                        ret_loss[i] = loss;
                else
                        ret_loss[0] += loss;
        }
        free(lp);
}

static void check_cross_entropy(lg_dtype t, int64_t rows, int64_t classes, lg_reduction reduction, double smoothing)
{
        int64_t count = rows * classes, *labels = malloc((size_t)(rows + 1) * sizeof *labels);
        void *x = make_array(t, count, -3, 3), *g = make_array(WIDE(t), rows + 1, 0.5, 1),
             *out = malloc((size_t)(count + rows + 1) * 8);
        double *weights = calloc((size_t)count + 1, 8), *loss = calloc((size_t)rows + 1, 8),
               *dx = calloc((size_t)count + 1, 8);
        for (int64_t i = 0; i < rows; i++)
                labels[i] = i % 5 == 4 ? -100 : random_int(0, classes - 1);
        if (rows > 2)
                labels[2] = classes + 6, labels[3] = -7;
        lg_cross_entropy_args a = {.dtype = t,
                                   .rows = rows,
                                   .classes = classes,
                                   .reduction = reduction,
                                   .x = x,
                                   .g = g,
                                   .ignore_index = -100,
                                   .label_smoothing = smoothing,
                                   .labels = labels,
                                   .out = out,
                                   .origin = 7};
        weights_reference(&a, weights);
        cross_entropy_reference(&a, weights, loss, dx);
        int64_t losses = reduction == LG_NONE ? rows : 1;
        EVERY_AND_MORE(out, (size_t)losses * size_of[WIDE(t)], CALL(k->cross_entropy, &q, &a), {
                check_array("cross_entropy", WIDE(t), out, loss, losses, tolerance[WIDE(t)]);
                assert_int_equal(q.error.code, rows > 2 ? 7 : LG_DEVICE_OK);
                assert_true(q.error.value == (rows > 2 ? classes + 6 : 0) && q.error.limit == (rows > 2 ? classes : 0));
        });
        EVERY(out, (size_t)count * size_of[t], CALL(k->cross_entropy_vjp, &q, &a),
              check_array("cross_entropy_vjp", t, out, dx, count, tolerance[t]));
        EVERY(out, (size_t)count * size_of[t], CALL(k->class_weights, &q, &a),
              check_array("class_weights", t, out, weights, count, tolerance[t]));
        free(labels), free(x), free(g), free(out), free(weights), free(loss), free(dx);
}

TEST_CASE(test_cross_entropy)
{
        for (int t = 0; t < 4; t++) {
                for (int r = LG_MEAN; r <= LG_NONE; r++) {
                        for (int e = 0; e < 2; e++) {
                                check_cross_entropy(float_types[t], 7, 5, (lg_reduction)r, 0.1 * e);
                                check_cross_entropy(float_types[t], 0, 5, (lg_reduction)r, 0.1 * e);
                                check_cross_entropy(float_types[t], 500, 70, (lg_reduction)r, 0.1 * e);
                                check_cross_entropy(float_types[t], 4, 2500, (lg_reduction)r, 0.1 * e);
                        }
                }
        }
}

/* ---- what a layer with bias and ReLU passes on ---- */

static void check_relu_sums(lg_dtype t, int64_t rows, int64_t columns, bool in_place)
{
        const int64_t count = rows * columns;
        void *y = make_array(t, count, -1, 1), *g = make_array(t, count, -1, 1);
        void *out = malloc((size_t)count * 8 + 8), *sums = malloc((size_t)columns * 8 + 8);
        double *want = calloc((size_t)count + 1, 8), *want_sums = calloc((size_t)columns + 1, 8);
        for (int64_t i = 0; i < count; i++) {
                want[i] = get(t, y, i) > 0 ? get(t, g, i) : 0;
                want_sums[i % columns] += want[i];
        }
        lg_relu_sums_args a = {t, rows, columns, y, in_place ? out : g, out, sums};
        EVERY_AND_MORE(
                sums, (size_t)columns * size_of[t],
                {
                        memcpy(out, g, (size_t)count * size_of[t]);
                        CALL(k->relu_sums, &q, &a);
                },
                {
                        check_array("relu_sums", t, out, want, count, 0);
                        check_array("relu_sums (sums)", t, sums, want_sums, columns, 4 * tolerance[t]);
                });
        free(y), free(g), free(out), free(sums), free(want), free(want_sums);
}

TEST_CASE(test_relu_sums)
{
        const int64_t sizes[][2] = {{1, 1}, {64, 128}, {5000, 6}, {33, 1000}, {7, 3}, {1, 70}, {700, 64}};
        for (int t = 0; t < 4; t++)
                for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                        check_relu_sums(float_types[t], sizes[i][0], sizes[i][1], i % 2);
}

/* ---- optimisers: PyTorch's formulas, step by step ---- */

static void sgd_reference(const lg_sgd_step_inputs *a, double *p, double g, double *b)
{
        double d = (a->maximize ? -g : g) + a->weight_decay * *p;
        if (a->momentum != 0) {
                *b = a->step == 1 ? d : a->momentum * *b + (1 - a->dampening) * d;
                d = a->nesterov ? d + a->momentum * *b : *b;
        }
        *p -= a->lr * d;
}

static void adam_reference(const lg_adam_step_inputs *a, double *p, double g, double *m, double *v)
{
        double d = a->maximize ? -g : g;
        if (a->decoupled)
                *p *= 1 - a->lr * a->weight_decay;
        else
                d += a->weight_decay * *p;
        *m = a->beta1 * *m + (1 - a->beta1) * d;
        *v = a->beta2 * *v + (1 - a->beta2) * d * d;
        double step = a->lr / (1 - pow(a->beta1, a->step));
        *p -= step * *m / (sqrt(*v) / sqrt(1 - pow(a->beta2, a->step)) + a->eps);
}

/* 100 steps in f64, fewer where each one rounds, on two tensors; flags choose the variant. */
static void check_optimiser(lg_dtype t, bool adam, int flags)
{
        enum { N = 33001 };
        const int64_t n[2] = {N, 3};
        const bool half = t == LG_F16 || t == LG_BF16;
        const int steps = half ? 3 : t == LG_F64 ? 100 : 10;
        for (int i = 0; i < 2; i++) {
                /* Squares of small gradients would vanish in f16. */
                void *p0 = make_array(t, n[i], -1, 1), *g = make_array(t, n[i], half ? 0.5 : -1, 1);
                void *p = malloc(N * 8), *s0 = malloc(N * 8), *s1 = malloc(N * 8);
                lg_update u[2] = {{.dtype = t, .n = 0},
                                  {.dtype = t, .n = n[i], .param = p, .grad = g, .state = {s0, s1}}};
                lg_sgd_step_inputs sgd = {.lr = 0.01,
                                          .momentum = flags & 1 ? 0.9 : 0,
                                          .dampening = flags & 2 ? 0.1 : 0,
                                          .weight_decay = flags & 4 ? 0.02 : 0,
                                          .nesterov = (flags & 9) == 9,
                                          .maximize = flags & 2};
                lg_adam_step_inputs ad = {.lr = 0.01,
                                          .beta1 = 0.9,
                                          .beta2 = 0.999,
                                          .eps = 1e-8,
                                          .weight_decay = flags & 4 ? 0.02 : 0,
                                          .decoupled = flags & 1,
                                          .maximize = flags & 2};
                const lg_pass sgd_pass = {.count = 2, .updates = u, .step_inputs = &sgd.lr};
                const lg_pass adam_pass = {.count = 2, .updates = u, .step_inputs = &ad.lr};
                if (!adam && !(flags & 1))
                        u[1].state[0] = NULL;
                double *want = malloc(N * sizeof *want);
                for (int64_t j = 0; j < n[i]; j++) {
                        double m = 0, v = 0, x = get(t, p0, j);
                        for (int s = 0; s < steps; s++) {
                                sgd.step = s + 1;
                                ad.step = s + 1;
                                if (adam)
                                        adam_reference(&ad, &x, get(t, g, j), &m, &v);
                                else
                                        sgd_reference(&sgd, &x, get(t, g, j), &m);
                        }
                        want[j] = x;
                }
                EVERY_AND_MORE(
                        p, (size_t)n[i] * size_of[t],
                        {
                                memcpy(p, p0, (size_t)n[i] * size_of[t]);
                                memset(s0, adam ? 0 : 0xFF, N * 8);
                                memset(s1, 0, N * 8);
                                for (int s = 0; s < steps; s++) {
                                        sgd.step = s + 1;
                                        ad.step = s + 1;
                                        if (adam)
                                                CALL(k->adam, &q, &adam_pass);
                                        else
                                                CALL(k->sgd, &q, &sgd_pass);
                                }
                                q.error.code = 7; /* now nothing may change */
                                CALL(k->sgd, &q, &sgd_pass);
                                CALL(k->adam, &q, &adam_pass);
                        },
                        check_array(adam ? "adam" : "sgd", t, p, want, n[i],
                                    t == LG_F64 ? 1e-12
                                    : half      ? 4 * tolerance[t]
                                                : 2e-5));
                free(p0), free(g), free(p), free(s0), free(s1), free(want);
        }
}

TEST_CASE(test_optimisers)
{
        for (int t = 0; t < 4; t++) {
                for (int flags = 0; flags < 16; flags++)
                        check_optimiser(float_types[t], false, flags);
                for (int flags = 0; flags < 8; flags++)
                        check_optimiser(float_types[t], true, flags);
        }
}
