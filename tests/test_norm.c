/* test_norm.c - normalisations against PyTorch's numbers (data/norm.txt) and, where they are big, against plain loops.
 */
#include "golden.h"

/* 2 sin(1.3 i + phase) of n numbers, of x's dtype. */
static lg_tensor *vector(lg_tensor *x, int64_t n, double phase)
{
        return lg_cast(golden_tensor(lg_ctx_of(x), LG_SHAPE(n), phase), lg_dtype_of(x));
}

static lg_tensor *fixed(lg_tensor *like)
{
        return lg_cast(golden_tensor(lg_ctx_of(like), LG_SHAPE(2, 3, 2, 2), 1), lg_dtype_of(like));
}

/* Both running statistics after three steps; x has a gradient of zero. */
static lg_tensor *running(lg_tensor *x, double momentum)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_tensor *mean = lg_zeros(c, LG_SHAPE(3), .dtype = lg_dtype_of(x));
        lg_tensor *var = lg_ones(c, LG_SHAPE(3), .dtype = lg_dtype_of(x));
        for (int i = 0; i < 3; i++)
                drop(lg_batch_norm(lg_add_scalar(lg_mul_scalar(x, i + 1), i), NULL, NULL, .running_mean = mean,
                                   .running_var = var, .training = true, .momentum = momentum));
        return lg_add(lg_cat(LG_LIST(mean, var), 0), lg_mul_scalar(lg_sum(x), 0));
}

#define ROW(name, expression, ...) GOLDEN_RUN(name, expression)
#define V(n, phase) vector(x, n, phase)
#define ROWS                                                                                                           \
        ROW(batch_norm, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true), 4, 3)                                  \
        ROW(batch_norm_1d, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true), 2, 3, 4)                            \
        ROW(batch_norm_2d, lg_batch_norm(x, V(3, 0.5), V(3, 2), .training = true, .eps = 0.1), 2, 3, 2, 2)             \
        ROW(batch_norm_3d, lg_batch_norm(x, NULL, NULL, .training = true), 2, 2, 2, 1, 2)                              \
        ROW(batch_norm_w, lg_batch_norm(fixed(x), x, V(3, 2), .training = true), 3)                                    \
        ROW(batch_norm_b, lg_batch_norm(fixed(x), V(3, 0.5), x, .training = true), 3)                                  \
        ROW(batch_norm_eval,                                                                                           \
            lg_batch_norm(x, V(3, 0.5), V(3, 2), .running_mean = V(3, 1), .running_var = lg_square(V(3, 0.3))), 2, 3,  \
            2)                                                                                                         \
        ROW(batch_norm_eval_plain,                                                                                     \
            lg_batch_norm(x, NULL, NULL, .running_mean = V(3, 1), .running_var = lg_square(V(3, 0.3)), .eps = 0.1), 4, \
            3)                                                                                                         \
        ROW(running, running(x, 0), 4, 3)                                                                              \
        ROW(running_slow, running(x, 0.01), 2, 3, 2)                                                                   \
        ROW(layer_norm, lg_layer_norm(x, 1, V(4, 0.5), V(4, 2)), 3, 4)                                                 \
        ROW(layer_norm_2, lg_layer_norm(x, 2, lg_reshape(V(6, 0.5), LG_SHAPE(3, 2)), NULL, .eps = 0.1), 2, 3, 2)       \
        ROW(layer_norm_plain, lg_layer_norm(x, 1, NULL, NULL), 2, 2, 3)                                                \
        ROW(layer_norm_all, lg_layer_norm(x, 1, NULL, NULL), 5)                                                        \
        ROW(layer_norm_w, lg_layer_norm(fixed(x), 2, x, lg_reshape(V(4, 2), LG_SHAPE(2, 2))), 2, 2)                    \
        ROW(layer_norm_b, lg_layer_norm(fixed(x), 2, NULL, x), 2, 2)                                                   \
        ROW(rms_norm, lg_rms_norm(x, 1, V(4, 0.5), .eps = 1e-3), 3, 4)                                                 \
        ROW(rms_norm_w, lg_rms_norm(fixed(x), 1, x), 2)                                                                \
        ROW(group_norm, lg_group_norm(x, 2, V(4, 0.5), V(4, 2)), 2, 4, 3)                                              \
        ROW(group_norm_plain, lg_group_norm(x, 2, NULL, NULL), 2, 6)                                                   \
        ROW(group_norm_w, lg_group_norm(fixed(x), 1, x, V(3, 2), .eps = 0.1), 3)                                       \
        ROW(group_norm_b, lg_group_norm(fixed(x), 3, V(3, 0.5), x), 3)                                                 \
        ROW(instance_norm, lg_instance_norm(x, V(3, 0.5), V(3, 2)), 2, 3, 4)                                           \
        ROW(normalize, lg_normalize(x, 1), 2, 3, 2)                                                                    \
        ROW(normalize_last, lg_normalize(x, -1, .eps = 3), 4, 3)
ROWS

TEST_CASE(as_pytorch_computes_it)
{
#undef ROW
#define ROW(...) GOLDEN_ROW(__VA_ARGS__)
        static const golden rows[] = {ROWS};
        golden_check("norm.txt", golden_input, rows, sizeof rows / sizeof *rows);
}

/* ---- plain loops ---- */

/* How elements fall into sets (of one mean and variance) and onto weights, by row-major index of (N, C, L). */
typedef struct split {
        int64_t n, channels, length, groups; /* groups 0: batch norm; -1: layer norm over the last dimension */
} split;

static int64_t set_of(const split *s, int64_t i)
{
        int64_t channel = i / s->length % s->channels;
        if (s->groups < 0)
                return i / s->length;
        if (s->groups == 0)
                return channel;
        return i / s->length / s->channels * s->groups + channel / (s->channels / s->groups);
}

static int64_t weight_of(const split *s, int64_t i)
{
        return s->groups < 0 ? i % s->length : i / s->length % s->channels;
}

typedef struct results {
        double *y, *dx, *dw, *db;
} results;

/* What has one mean and variance. */
typedef struct set {
        long double size, mean, var, sum, product;
} set;

static double *numbers(int64_t n)
{
        return calloc((size_t)n + 1, sizeof(double));
}

static void reference(const split *s, const double *x, const double *w, const double *b, const double *g, results r)
{
        int64_t count = s->n * s->channels * s->length, sets = s->n * s->channels + s->channels;
        set *all = calloc((size_t)sets, sizeof *all);
        for (int64_t i = 0; i < count; i++) {
                all[set_of(s, i)].size++;
                all[set_of(s, i)].mean += x[i];
        }
        for (int64_t i = 0; i < sets; i++)
                all[i].mean /= all[i].size ? all[i].size : 1;
        for (int64_t i = 0; i < count; i++) {
                set *k = &all[set_of(s, i)];
                k->var += (x[i] - k->mean) * (x[i] - k->mean) / k->size;
        }
        for (int64_t i = 0; i < count; i++) {
                set *k = &all[set_of(s, i)];
                int64_t c = weight_of(s, i);
                long double t = (x[i] - k->mean) / sqrtl(k->var + 1e-5L);
                r.y[i] = (double)(t * w[c] + b[c]);
                r.dw[c] += (double)(g[i] * t);
                r.db[c] += g[i];
                k->sum += g[i] * w[c];
                k->product += g[i] * w[c] * t;
        }
        for (int64_t i = 0; i < count; i++) {
                const set *k = &all[set_of(s, i)];
                long double sd = sqrtl(k->var + 1e-5L), t = (x[i] - k->mean) / sd;
                r.dx[i] = (double)((g[i] * w[weight_of(s, i)] - k->sum / k->size - t * k->product / k->size) / sd);
        }
        free(all);
}

static lg_tensor *normalise(const split *s, lg_tensor *x, lg_tensor *w, lg_tensor *b)
{
        return s->groups < 0    ? lg_layer_norm(x, 1, w, b)
               : s->groups == 0 ? lg_batch_norm(x, w, b, .training = true)
                                : lg_group_norm(x, s->groups, w, b);
}

/* y, dx, dw, db in the dtype of x; of weights, f64 for f64 and f32 otherwise. */
static void compute(const split *s, const lg_tensor *const in[4], lg_tensor *ret[4])
{
        lg_tensor *x = lg_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[0]), true);
        lg_tensor *w = lg_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[1]), true);
        lg_tensor *b = lg_requires_grad(lg_detach((lg_tensor *)(uintptr_t)in[2]), true);
        ret[0] = normalise(s, x, w, b);
        lg_grad(LG_LIST(ret[0]), LG_LIST(x, w, b), .grads = LG_LIST((lg_tensor *)(uintptr_t)in[3]), .result = ret + 1);
}

/* Values of mean `mean` and deviation 1 in one dtype against loops in f64; 1 and 2 threads. */
static void check_big(split s, lg_dtype dtype, double mean, double limit)
{
        lg_ctx *c = open_ctx();
        lg_dtype wide = dtype == LG_F64 ? LG_F64 : LG_F32;
        lg_shape shape = LG_SHAPE(s.n, s.channels, s.length);
        int64_t count = lg_numel(lg_zeros(c, shape)), weights = s.groups < 0 ? s.length : s.channels;
        const lg_tensor *in[4] = {
                lg_normal(c, mean, 1, shape, .dtype = dtype), lg_uniform(c, 0.5, 1.5, LG_SHAPE(weights), .dtype = wide),
                lg_normal(c, 0, 1, LG_SHAPE(weights), .dtype = wide), lg_normal(c, 0.3, 1, shape, .dtype = dtype)};
        lg_tensor *one[4], *two[4];
        double *host[4];
        results r = {numbers(count), numbers(count), numbers(weights), numbers(weights)};
        double *const wanted[] = {r.y, r.dx, r.dw, r.db};
        for (int i = 0; i < 4; i++) {
                host[i] = numbers(lg_numel(in[i]));
                read_all(in[i], host[i], lg_numel(in[i]));
        }
        reference(&s, host[0], host[1], host[2], host[3], r);
        lg_set_threads(c, 1);
        compute(&s, in, one);
        lg_set_threads(c, 2);
        compute(&s, in, two);
        assert_ok(c);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(lg_dtype_of(one[i]), i < 2 ? dtype : wide);
                /* Halves were rounded before: sums of many of them are held to the same limit. */
                assert_values(one[i], wanted[i], lg_numel(one[i]), limit);
                assert_same_bits(one[i], two[i]);
                free(host[i]);
                free(wanted[i]);
        }
        lg_close(c);
}

TEST_CASE(big_batches)
{
        const int64_t channels[] = {1, 3, 8, 63, 64, 700};
        for (int i = 0; i < 6; i++) {
                split s = {.n = 7, .channels = channels[i], .length = 70000 / channels[i] / 7};
                check_big(s, LG_F32, 0.5, 1e-5);
                check_big(s, LG_F32, 1000, 1e-5);
                check_big(s, LG_F64, 1000, 1e-10);
                check_big(s, LG_F16, 0.5, 2e-3);
                check_big(s, LG_BF16, 0.5, 1.6e-2);
        }
        check_big((split){.n = 3000, .channels = 1200, .length = 1}, LG_F32, 1000, 1e-5);
        check_big((split){.n = 90000, .channels = 5, .length = 1}, LG_F32, 1000, 1e-5);
}

TEST_CASE(big_rows)
{
        const split splits[] = {{3, 2, 9000, -1}, {300, 20, 17, -1}, {5, 16, 501, 4},
                                {40, 64, 49, 64}, {90, 12, 70, 1},   {900, 96, 1, 8}};
        check_big((split){1, 2, 9001, -1}, LG_F32, 1000, 1e-5);
        check_big((split){2, 2, 5000, 1}, LG_F32, 1000, 1e-5);
        check_big((split){2, 2, 5001, 2}, LG_F16, 0.5, 2e-3);
        check_big((split){30, 6, 3, 2}, LG_F64, 1000, 1e-10);
        check_big((split){40, 1, 1500, -1}, LG_F32, 1000, 1e-5);
        for (int i = 0; i < 6; i++) {
                check_big(splits[i], LG_F32, 0.5, 1e-5);
                check_big(splits[i], LG_F32, 1000, 1e-5);
                check_big(splits[i], LG_F64, 1000, 1e-10);
                check_big(splits[i], LG_F16, 0.5, 2e-3);
                check_big(splits[i], LG_BF16, 0.5, 1.6e-2);
        }
}

/* ---- the rest ---- */

/* x with channels last, expanded and sliced gives what its row-major copy gives. */
TEST_CASE(layouts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *plain = lg_normal(c, 1, 2, LG_SHAPE(2, 4, 3, 5));
        lg_tensor *w = lg_slice(lg_normal(c, 1, 2, LG_SHAPE(8)), 0, 0, LG_MAX, .step = 2);
        lg_tensor *const x[] = {lg_permute(lg_contiguous(lg_permute(plain, LG_DIMS(0, 2, 3, 1))), LG_DIMS(0, 3, 1, 2)),
                                lg_slice(plain, 3, 0, LG_MAX, .step = 2), lg_transpose(plain, 2, 3),
                                lg_expand(lg_slice(plain, 0, 1, LG_MAX), LG_SHAPE(3, 4, 3, 5))};
        for (int i = 0; i < 4; i++) {
                lg_tensor *copy = lg_contiguous(x[i]);
                assert_same_bits(lg_batch_norm(x[i], w, w, .training = true),
                                 lg_batch_norm(copy, w, w, .training = true));
                assert_same_bits(lg_group_norm(x[i], 2, w, w), lg_group_norm(copy, 2, w, w));
                assert_same_bits(lg_layer_norm(x[i], 1, NULL, NULL), lg_layer_norm(copy, 1, NULL, NULL));
                assert_same_bits(lg_rms_norm(x[i], 3, NULL), lg_rms_norm(copy, 3, NULL));
        }
        lg_tensor *y = lg_batch_norm(x[0], w, w, .training = true); /* lies as x does */
        for (int i = 0; i < 4; i++)
                assert_int_equal(lg_stride_of(y, i), lg_stride_of(x[0], i));
        assert_ok(c);
        lg_close(c);
}

/* Half-precision x with f32 weights and running statistics, and with statistics of its own dtype. */
TEST_CASE(mixed_dtypes)
{
        lg_ctx *c = open_ctx();
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        const double limits[] = {2e-3, 1.6e-2};
        for (int d = 0; d < 2; d++) {
                double ref[120], r[3];
                lg_tensor *x = lg_normal(c, 1, 2, LG_SHAPE(4, 3, 10), .dtype = dtypes[d]), *exact = lg_cast(x, LG_F64);
                lg_tensor *w = lg_uniform(c, 0.5, 1.5, LG_SHAPE(3));
                for (int same = 0; same < 2; same++) {
                        lg_dtype of = same ? dtypes[d] : LG_F32;
                        lg_tensor *mean = lg_zeros(c, LG_SHAPE(3), .dtype = of), *m64 = lg_cast(mean, LG_F64);
                        lg_tensor *var = lg_ones(c, LG_SHAPE(3), .dtype = of), *v64 = lg_cast(var, LG_F64);
                        for (int training = 1; training >= 0; training--) {
                                lg_tensor *y = lg_batch_norm(x, w, w, .running_mean = mean, .running_var = var,
                                                             .training = training);
                                read_all(lg_batch_norm(exact, w, w, .running_mean = m64, .running_var = v64,
                                                       .training = training),
                                         ref, 120);
                                assert_values(y, ref, 120, limits[d]);
                                assert_int_equal(lg_dtype_of(y), dtypes[d]);
                        }
                        assert_int_equal(lg_dtype_of(mean), of);
                        read_all(v64, r, 3);
                        assert_values(var, r, 3, same ? limits[d] : 1e-6);
                }
                read_all(lg_rms_norm(exact, 2, NULL, .eps = d ? 0x1p-7 : 0x1p-10), ref, 120);
                assert_values(lg_rms_norm(x, 2, NULL), ref, 120, limits[d]);
                read_all(lg_normalize(exact, 1), ref, 120);
                assert_values(lg_normalize(x, 1), ref, 120, limits[d]);
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(running_statistics_change_in_place)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3, 6}), LG_SHAPE(4, 1));
        lg_tensor *mean = lg_zeros(c, LG_SHAPE(1)), *var = lg_zeros(c, LG_SHAPE(1));
        lg_tensor *p = lg_ones(c, LG_SHAPE(1), .requires_grad = true);
        lg_tensor *product = lg_mul(p, mean); /* saves the mean */
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .training = true, .momentum = 0.5));
        assert_list(mean, 0, 1.5);
        lg_backward(product);
        assert_error(c, LG_ERR_STATE, "changed in place");
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var, .training = true, .momentum = 1));
        assert_list(mean, 0, 3);
        assert_list(var, 1e-6, 14 / 3.0);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var, .training = true,
                           .momentum = LG_ZERO));
        assert_list(mean, 0, 3);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = mean, .running_var = var));
        drop(lg_batch_norm(lg_zeros(c, LG_SHAPE(0, 1)), NULL, NULL, .running_mean = mean, .running_var = var,
                           .training = true)); /* nothing to learn from */
        assert_list(mean, 0, 3);
        lg_tensor *strided = lg_slice(lg_zeros(c, LG_SHAPE(4)), 0, 1, LG_MAX, .step = 2);
        drop(lg_batch_norm(lg_reshape(x, LG_SHAPE(2, 2)), NULL, NULL, .running_mean = strided, .training = true,
                           .momentum = 1));
        assert_list(strided, 0, 2, 4);
        assert_ok(c);
        drop(lg_batch_norm(x, NULL, NULL, .running_mean = p, .training = true));
        assert_error(c, LG_ERR_STATE, "running_mean requires grad");
        drop(lg_batch_norm(x, NULL, NULL, .running_var = lg_mul_scalar(p, 2), .training = true));
        assert_error(c, LG_ERR_STATE, "running_var is a result of mul_scalar");
        drop(lg_batch_norm(lg_reshape(x, LG_SHAPE(2, 2)), NULL, NULL, .running_mean = lg_expand(mean, LG_SHAPE(2)),
                           .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "expanded");
        lg_close(c);
}

/* A loss that no x reaches: only weights have gradients. */
TEST_CASE(gradients_of_weights_alone)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){-1, 1, -1, 1}), LG_SHAPE(2, 1, 2));
        for (int frozen = 0; frozen < 2; frozen++) {
                lg_tensor *w = lg_ones(c, LG_SHAPE(1), .requires_grad = !frozen);
                lg_tensor *b = lg_zeros(c, LG_SHAPE(1), .requires_grad = true);
                lg_tensor *g = lg_from(c, ((float[]){0, 1, 2, 4}), LG_SHAPE(2, 1, 2));
                for (int i = 0; i < 2; i++) {
                        lg_tensor *y = i ? lg_group_norm(x, 1, w, b) : lg_batch_norm(x, w, b, .training = true);
                        lg_backward(y, .grad = g);
                        assert_list(lg_grad_of(b), 1e-6, i ? 14 : 7);
                        if (!frozen)
                                assert_list(lg_grad_of(w), 1e-4, i ? 6 : 3);
                }
        }
        lg_tensor *w = lg_ones(c, LG_SHAPE(3), .requires_grad = true), *none = lg_zeros(c, LG_SHAPE(0, 3));
        lg_backward(lg_sum(lg_batch_norm(none, w, w, .training = true)));
        lg_backward(lg_sum(lg_layer_norm(none, 1, w, w)));
        assert_list(lg_grad_of(w), 0, 0, 0, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(edges)
{
        lg_ctx *c = open_ctx();
        lg_tensor *flat = lg_full(c, 7, LG_SHAPE(2, 3));
        assert_list(lg_layer_norm(flat, 1, NULL, NULL), 0, 0, 0, 0, 0, 0, 0); /* no deviation */
        assert_list(lg_batch_norm(flat, NULL, NULL, .training = true), 0, 0, 0, 0, 0, 0, 0);
        assert_list(lg_layer_norm(lg_full(c, 7, LG_SHAPE(2, 1)), 1, NULL, NULL), 0, 0, 0);
        assert_list(lg_rms_norm(lg_from(c, ((float[]){3, 4}), LG_SHAPE(2)), 1, NULL, .eps = LG_ZERO), 1e-6,
                    0.8485281374, 1.1313708499);
        const lg_shape empty[] = {LG_SHAPE(0, 4, 2), LG_SHAPE(2, 4, 0), LG_SHAPE(3, 0, 2)};
        for (int i = 0; i < 3; i++) {
                lg_tensor *x = lg_ones(c, empty[i]);
                assert_int_equal(lg_numel(lg_batch_norm(x, NULL, NULL, .training = true)), 0);
                assert_int_equal(lg_numel(lg_layer_norm(x, 2, NULL, NULL)), 0);
                if (i == 0)
                        assert_int_equal(lg_numel(lg_group_norm(x, 2, NULL, NULL)), 0);
                assert_int_equal(lg_numel(lg_instance_norm(x, NULL, NULL)), 0);
                assert_int_equal(lg_numel(lg_normalize(x, 1)), 0);
        }
        /* A row of zeros stays, and so does its gradient a number. */
        lg_tensor *zero = lg_zeros(c, LG_SHAPE(1, 2), .requires_grad = true), *y = lg_normalize(zero, 1);
        assert_list(y, 0, 0, 0);
        lg_backward(lg_sum(y));
        assert_list(lg_grad_of(zero), 1, 1e12, 1e12);
        /* One NaN or infinity takes its own channel along and no other. */
        lg_tensor *odd = lg_from(c, ((float[]){1, NAN, INFINITY, 3, 2, 5}), LG_SHAPE(2, 3));
        assert_list(lg_batch_norm(odd, NULL, NULL, .training = true), 1e-4, -1, NAN, NAN, 1, NAN, NAN);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(batch_norm_errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *w = lg_ones(c, LG_SHAPE(3)), *two = lg_ones(c, LG_SHAPE(2));
        drop(lg_batch_norm(lg_slice(x, 0, 0, 1), w, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "Expected more than 1 value per channel when training");
        drop(lg_batch_norm(w, w, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "(N, C)");
        drop(lg_batch_norm(x, two, w, .training = true));
        assert_error(c, LG_ERR_SHAPE, "w is f32 (2,)");
        drop(lg_batch_norm(x, w, w, .training = true, .running_var = two));
        assert_error(c, LG_ERR_SHAPE, "running_var");
        drop(lg_batch_norm(x, w, NULL, .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "b is NULL");
        drop(lg_batch_norm(x, NULL, w, .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "w is NULL");
        drop(lg_batch_norm(x, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "running_mean is NULL");
        drop(lg_batch_norm(x, w, w, .running_mean = w));
        assert_error(c, LG_ERR_ARGUMENT, "running_var is NULL");
        drop(lg_batch_norm(x, w, w, .training = true, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps");
        drop(lg_batch_norm(lg_cast(x, LG_I64), w, w, .training = true));
        assert_error(c, LG_ERR_DTYPE, "batch_norm: x");
        drop(lg_batch_norm(x, lg_cast(w, LG_I64), w, .training = true));
        assert_error(c, LG_ERR_DTYPE, "batch_norm: w");
        lg_tensor *far = lg_ones(c, LG_SHAPE(3), .device = lg_parse_device(c, "shadow:1"));
        drop(lg_batch_norm(x, w, far, .training = true));
        assert_error(c, LG_ERR_DEVICE, "shadow:1");
        lg_ctx *other = open_ctx();
        drop(lg_batch_norm(x, w, lg_ones(other, LG_SHAPE(3)), .training = true));
        assert_error(c, LG_ERR_ARGUMENT, "another context");
        lg_close(other);
        assert_null(lg_batch_norm(NULL, NULL, NULL));
        lg_close(c);
}

TEST_CASE(layer_norm_errors)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 4, 3)), *w = lg_ones(c, LG_SHAPE(3)), *i = lg_cast(x, LG_I64);
        drop(lg_layer_norm(x, 0, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "last 0 dimensions");
        drop(lg_layer_norm(x, 4, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "last 4 dimensions");
        drop(lg_layer_norm(x, 2, w, w));
        assert_error(c, LG_ERR_SHAPE, "it needs shape (4, 3)");
        drop(lg_layer_norm(x, 1, w, lg_ones(c, LG_SHAPE(4))));
        assert_error(c, LG_ERR_SHAPE, "b is");
        drop(lg_layer_norm(i, 1, w, w));
        assert_error(c, LG_ERR_DTYPE, "layer_norm: x");
        drop(lg_layer_norm(x, 1, w, w, .eps = -1));
        assert_error(c, LG_ERR_ARGUMENT, "eps is -1");
        drop(lg_rms_norm(x, 5, w));
        assert_error(c, LG_ERR_ARGUMENT, "rms_norm");
        drop(lg_rms_norm(i, 1, w));
        assert_error(c, LG_ERR_DTYPE, "rms_norm");
        drop(lg_group_norm(x, 3, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "3 groups");
        drop(lg_group_norm(x, 0, NULL, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "0 groups");
        drop(lg_group_norm(w, 1, NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "group_norm");
        const lg_shape few[] = {LG_SHAPE(2, 0, 3), LG_SHAPE(2, 0), LG_SHAPE(2, 4, 0),
                                LG_SHAPE(0, 4, 0), LG_SHAPE(1, 4), LG_SHAPE(1, 4, 1)};
        for (int k = 0; k < 6; k++) {
                drop(lg_group_norm(lg_ones(c, few[k]), 4, NULL, NULL));
                assert_error(c, LG_ERR_SHAPE, "it needs channels");
        }
        assert_shape(lg_group_norm(lg_ones(c, LG_SHAPE(2, 4)), 4, NULL, NULL), LG_SHAPE(2, 4));
        drop(lg_group_norm(x, 2, w, NULL));
        assert_error(c, LG_ERR_SHAPE, "it needs shape (4,)");
        drop(lg_instance_norm(lg_ones(c, LG_SHAPE(2, 4)), NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "instance_norm");
        drop(lg_instance_norm(lg_ones(c, LG_SHAPE(2, 4, 1)), NULL, NULL));
        assert_error(c, LG_ERR_SHAPE, "more than 1 element");
        drop(lg_normalize(x, 3));
        assert_error(c, LG_ERR_ARGUMENT, "normalize");
        drop(lg_normalize(i, 1));
        assert_error(c, LG_ERR_DTYPE, "normalize");
        assert_null(lg_layer_norm(NULL, 1, NULL, NULL));
        assert_null(lg_layer_norm(NULL, 1, w, w));
        assert_error(c, LG_ERR_ARGUMENT, "layer_norm: x is NULL");
        lg_close(c);
}

/* The root mean square of rows of any length: y and dx against loops in f64. */
TEST_CASE(rms_of_any_length)
{
        lg_ctx *c = open_ctx();
        const int64_t lengths[] = {3, 16, 33, 1024, 1025, 9000, 9001};
        for (int k = 0; k < 7; k++) {
                const int64_t n = lengths[k];
                double *x = numbers(n), *g = numbers(n), *y = numbers(n), *slope = numbers(n), sum = 0, product = 0;
                lg_tensor *a = lg_requires_grad(lg_detach(lg_normal(c, 3, 1, LG_SHAPE(1, n))), true), *dx;
                lg_tensor *b = lg_normal(c, 0, 1, LG_SHAPE(1, n)), *r = lg_rms_norm(a, 1, NULL, .eps = 1e-5);
                lg_grad(LG_LIST(r), LG_LIST(a), .grads = LG_LIST(b), .result = &dx);
                assert_ok(c);
                read_all(a, x, n);
                read_all(b, g, n);
                for (int64_t i = 0; i < n; i++)
                        sum += x[i] * x[i];
                const double root = sqrt(sum / (double)n + 1e-5);
                for (int64_t i = 0; i < n; i++)
                        product += g[i] * x[i] / root;
                for (int64_t i = 0; i < n; i++) {
                        y[i] = x[i] / root;
                        slope[i] = (g[i] - y[i] * product / (double)n) / root;
                }
                assert_values(r, y, n, 1e-5);
                assert_values(dx, slope, n, 1e-5);
                free(x), free(g), free(y), free(slope);
        }
        lg_close(c);
}
