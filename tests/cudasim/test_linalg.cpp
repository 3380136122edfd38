/* test_linalg.cpp - Fourier transforms and factorisations of the CUDA device against their definitions, in plain sums;
 * failures, handles, and misuses that the simulated libraries catch. */
#include <cmath>
#include <complex>
#include <cufftXt.h>
#include <cusolverDn.h>
#include <functional>
#include <string>
#include <type_traits>
#include "caught.h"
#include "kernel_queue.h"
#include "sim.h"
#include "../../kernels/cuda/cuda.h"

typedef std::vector<double> numbers;

/* ---- numbers on the device ---- */

template <typename T> constexpr lg_dtype dtype_of = std::is_same_v<T, float> ? LG_F32 : LG_F64;

static uint64_t state = 1;

static double drawn()
{
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (double)(float)((double)(state >> 33) / 1073741824.0 - 1);
}

static numbers random_numbers(int64_t n)
{
        numbers v((size_t)n);
        for (double &x : v)
                x = drawn();
        return v;
}

/* v as T on the device, `off` elements behind an aligned place. */
template <typename T> T *put(kernel_queue *d, const numbers &v, int off = 0)
{
        const std::vector<T> typed(v.begin(), v.end());
        T *p = (T *)d->room((typed.size() + 8) * sizeof(T)) + off;
        assert_true(typed.empty() || d->q->api->upload(d->q, p, typed.data(), typed.size() * sizeof(T)));
        return p;
}

template <typename T> T *room_for(kernel_queue *d, int64_t n, int off = 0)
{
        return (T *)d->room((size_t)(n + 8) * sizeof(T)) + off;
}

template <typename T> numbers fetched(kernel_queue *d, const T *p, int64_t n)
{
        std::vector<T> typed((size_t)n);
        assert_true(n == 0 || d->q->api->download(d->q, typed.data(), p, typed.size() * sizeof(T)));
        return numbers(typed.begin(), typed.end());
}

template <typename T> double limit_of(double size = 1)
{
        return (sizeof(T) == 4 ? 3e-6 : 1e-13) * size;
}

/* The error that kernels left, which is cleared. */
static lg_device_error error_of(kernel_queue *d)
{
        lg_device_error e = {};
        assert_true(d->q->api->synchronize(d->q, &e));
        return e;
}

/* Runs a kernel, for which the host does not wait. */
template <typename A> void run(kernel_queue *d, bool (*kernel)(lg_queue *, const A *), const A &a)
{
        const int64_t waits = cudasim_waits();
        const bool good = kernel(d->q, &a);
        if (!good)
                fail_msg("%s", d->q->message);
        assert_int_equal(cudasim_waits(), waits);
        d->release(&d->scratch);
}

/* ---- matrices, row-major ---- */

struct matrix {
        int64_t rows, cols;
        numbers v;
        double &operator()(int64_t i, int64_t j)
        {
                return v[(size_t)(i * cols + j)];
        }
        double at(int64_t i, int64_t j) const
        {
                return v[(size_t)(i * cols + j)];
        }
};

/* Number i of matrices behind each other. */
static matrix part(const numbers &all, int64_t i, int64_t rows, int64_t cols)
{
        return {rows, cols, numbers(all.begin() + i * rows * cols, all.begin() + (i + 1) * rows * cols)};
}

static matrix transposed(const matrix &a)
{
        matrix t = {a.cols, a.rows, numbers(a.v.size())};
        for (int64_t i = 0; i < a.rows; i++)
                for (int64_t j = 0; j < a.cols; j++)
                        t(j, i) = a.at(i, j);
        return t;
}

static matrix operator*(const matrix &a, const matrix &b)
{
        matrix c = {a.rows, b.cols, numbers((size_t)(a.rows * b.cols))};
        for (int64_t i = 0; i < a.rows; i++)
                for (int64_t k = 0; k < a.cols; k++)
                        for (int64_t j = 0; j < b.cols; j++)
                                c(i, j) += a.at(i, k) * b.at(k, j);
        return c;
}

static double distance(const matrix &a, const matrix &b)
{
        double most = 0;
        assert_int_equal(a.v.size(), b.v.size());
        for (size_t i = 0; i < a.v.size(); i++)
                most = std::fabs(a.v[i] - b.v[i]) <= most ? most : std::fabs(a.v[i] - b.v[i]); /* NaN is kept */
        return most;
}

static matrix identity(int64_t n)
{
        matrix a = {n, n, numbers((size_t)(n * n))};
        for (int64_t i = 0; i < n; i++)
                a(i, i) = 1;
        return a;
}

/* Whether the columns of q are orthonormal. */
template <typename T> void assert_orthonormal(const matrix &q)
{
        assert_true(distance(transposed(q) * q, identity(q.cols)) < limit_of<T>(4));
}

static void assert_nan(const numbers &v)
{
        for (const double x : v)
                assert_true(std::isnan(x));
}

/* ---- Fourier transforms ---- */

typedef std::complex<double> complex;

/* What fft.h defines; x and the result are numbers, or pairs of numbers. */
static numbers defined(const lg_fft_args &a, const numbers &x)
{
        const int64_t halved = a.n / 2 + 1, in = a.kind == LG_FFT_HALF ? halved : a.n;
        const int64_t out = a.kind == LG_FFT_REAL ? halved : a.n;
        numbers y;
        for (int64_t o = 0; o < a.outer; o++)
                for (int64_t k = 0; k < out; k++)
                        for (int64_t i = 0; i < a.inner; i++) {
                                complex sum = 0;
                                for (int64_t j = 0; j < in; j++) {
                                        const size_t at = (size_t)((o * in + j) * a.inner + i);
                                        const complex value = a.kind == LG_FFT_REAL ? complex(x[at])
                                                                                    : complex(x[2 * at], x[2 * at + 1]);
                                        const double angle = 2 * M_PI * (double)(j * k % a.n) / (double)a.n;
                                        const bool once = a.adjoint || j == 0 || 2 * j == a.n;
                                        complex term = value * std::polar(1.0, a.inverse ? angle : -angle);
                                        if (a.kind == LG_FFT_HALF && (j == 0 || 2 * j == a.n))
                                                term = value.real() * std::polar(1.0, angle);
                                        sum += a.kind == LG_FFT_HALF && !once ? 2.0 * term : term;
                                }
                                if (a.kind == LG_FFT_REAL && a.adjoint && k != 0 && 2 * k != a.n)
                                        sum *= 2;
                                y.push_back(a.scale * sum.real());
                                if (a.kind != LG_FFT_HALF)
                                        y.push_back(a.scale * sum.imag());
                        }
        return y;
}

template <typename T> void transform(kernel_queue *d, lg_fft_args a, int off)
{
        const int64_t halved = a.n / 2 + 1, lines = a.outer * a.inner;
        const int64_t in = a.kind == LG_FFT_REAL ? a.n : 2 * (a.kind == LG_FFT_HALF ? halved : a.n);
        const int64_t out = a.kind == LG_FFT_HALF ? a.n : 2 * (a.kind == LG_FFT_REAL ? halved : a.n);
        const numbers x = random_numbers(in * lines);
        T *from = put<T>(d, x, off), *to = room_for<T>(d, out * lines, off);
        a.dtype = dtype_of<T>;
        a.x = from;
        a.y = to;
        run(d, lg_cuda_fft, a);
        const double error = distance({1, out * lines, defined(a, x)}, {1, out * lines, fetched(d, to, out * lines)});
        if (!(error < limit_of<T>((double)a.n)))
                fail_msg("kind %d, inverse %d, adjoint %d, (%d, %d, %d): off by %g", a.kind, a.inverse, a.adjoint,
                         (int)a.outer, (int)a.n, (int)a.inner, error);
        assert_true(fetched(d, from, in * lines) == x);
        d->release(&d->memory);
}

static void transforms(void **)
{
        const int64_t shapes[][3] = {{1, 1, 1},  {3, 1, 2},  {3, 8, 1}, {2, 5, 1},   {2, 6, 3}, {2, 5, 3},
                                     {20, 7, 2}, {1, 12, 4}, {9, 4, 2}, {1, 331, 1}, {0, 4, 1}, {2, 3, 0}};
        kernel_queue d;
        for (const auto &s : shapes)
                for (int way = 0; way < 12; way++) {
                        lg_fft_args a = {};
                        a.kind = (lg_fft_kind)(way / 4);
                        a.inverse = way & 1;
                        a.adjoint = way & 2;
                        a.outer = s[0];
                        a.n = s[1];
                        a.inner = s[2];
                        a.scale = way % 3 ? 0.3 : 1;
                        transform<float>(&d, a, 0);
                        transform<float>(&d, a, 1);
                        transform<double>(&d, a, way & 1);
                }
}

/* A queue keeps a bounded number of plans, and makes none twice. */
static void transform_plans(void **)
{
        const int64_t handles = cudasim_handles();
        {
                kernel_queue d;
                put<float>(&d, numbers(1)); /* by way of pinned memory, which counts as a handle */
                const int64_t opened = cudasim_handles();
                lg_fft_args a = {};
                a.outer = a.inner = 1;
                a.scale = 1;
                for (a.n = 1; a.n <= 100; a.n++) {
                        transform<float>(&d, a, 0);
                        transform<float>(&d, a, 0);
                        assert_int_equal(cudasim_handles() - opened, a.n < 64 ? a.n : 64);
                }
        }
        assert_int_equal(cudasim_handles(), handles);
}

/* ---- Cholesky ---- */

/* Positive definite matrices, the lower triangle only: above is NaN, which nothing may read. */
static numbers definite(int64_t count, int64_t n)
{
        numbers all;
        for (int64_t c = 0; c < count; c++) {
                const matrix g = {n, n, random_numbers(n * n)}, a = g * transposed(g);
                for (int64_t i = 0; i < n; i++)
                        for (int64_t j = 0; j < n; j++)
                                all.push_back(j > i ? NAN : a.at(i, j) / (double)n + (i == j));
        }
        return all;
}

template <typename T> void factorise(kernel_queue *d, int64_t count, int64_t n, int off)
{
        const numbers a = definite(count, n);
        T *l = room_for<T>(d, count * n * n, off);
        run(d, lg_cuda_cholesky, lg_cholesky_args{dtype_of<T>, count, n, put<T>(d, a, off), l, 7});
        assert_int_equal(error_of(d).code, 0);
        const numbers found = fetched(d, l, count * n * n);
        for (int64_t c = 0; c < count; c++) {
                const matrix x = part(found, c, n, n), product = x * transposed(x), given = part(a, c, n, n);
                for (int64_t i = 0; i < n; i++)
                        for (int64_t j = 0; j < n; j++)
                                assert_true(j > i ? x.at(i, j) == 0
                                                  : std::fabs(product.at(i, j) - given.at(i, j)) < limit_of<T>());
        }
        d->release(&d->memory);
}

static void choleskys(void **)
{
        kernel_queue d;
        const int64_t sizes[][2] = {{1, 1}, {3, 5}, {1, 33}, {2, 70}, {2, 513}, {0, 3}, {2, 0}};
        for (const auto &s : sizes) {
                factorise<float>(&d, s[0], s[1], 0);
                factorise<double>(&d, s[0], s[1], 1);
        }
        const numbers ones(40000, 4);
        float *many = room_for<float>(&d, 40000);
        run(&d, lg_cuda_cholesky, lg_cholesky_args{LG_F32, 40000, 1, put<float>(&d, ones), many, 7});
        assert_true(fetched(&d, many, 40000) == numbers(40000, 2));
}

/* The first matrix that is not positive definite is the error, and each is NaN; likewise with a NaN. */
static void choleskys_that_fail(void **)
{
        for (const double wrong : {-9.0, 0.0, (double)NAN})
                for (const int64_t count : {1, 4}) {
                        kernel_queue d;
                        const int64_t n = 6;
                        numbers a = definite(count, n);
                        for (int64_t c = count / 2; c < count; c++)
                                a[(size_t)(c * n * n + (3 + c / 3) * (n + 1))] = wrong;
                        double *l = room_for<double>(&d, count * n * n);
                        run(&d, lg_cuda_cholesky, lg_cholesky_args{LG_F64, count, n, put<double>(&d, a), l, 7});
                        const lg_device_error e = error_of(&d);
                        assert_true(e.code == 7 && e.value == count / 2 && e.limit == 4);
                        const numbers found = fetched(&d, l, count * n * n);
                        for (int64_t c = 0; c < count; c++)
                                if (c >= count / 2)
                                        assert_nan(part(found, c, n, n).v);
                                else
                                        assert_true(std::isfinite(part(found, c, n, n).at(n - 1, n - 1)));
                }
}

/* ---- LU ---- */

struct lu_result {
        numbers lu, signs;
        std::vector<int64_t> permutation;
};

template <typename T>
lu_result factorise_lu(kernel_queue *d, int64_t count, int64_t m, int64_t n, const numbers &a, int origin)
{
        T *lu = room_for<T>(d, count * m * n), *signs = room_for<T>(d, count);
        int64_t *permutation = room_for<int64_t>(d, count * m);
        run(d, lg_cuda_lu, lg_lu_args{dtype_of<T>, count, m, n, put<T>(d, a), lu, permutation, signs, origin});
        lu_result r = {fetched(d, lu, count * m * n), fetched(d, signs, count),
                       std::vector<int64_t>((size_t)(count * m))};
        assert_true(count * m == 0 || d->q->api->download(d->q, r.permutation.data(), permutation,
                                                          r.permutation.size() * sizeof(int64_t)));
        return r;
}

/* Checks l u = p a and the sign of p. */
template <typename T> void check_lu(const lu_result &r, const numbers &a, int64_t count, int64_t m, int64_t n)
{
        const int64_t steps = m < n ? m : n;
        for (int64_t c = 0; c < count; c++) {
                const matrix x = part(r.lu, c, m, n), given = part(a, c, m, n);
                matrix l = {m, steps, numbers((size_t)(m * steps))}, u = {steps, n, numbers((size_t)(steps * n))};
                matrix permuted = {m, n, numbers((size_t)(m * n))};
                int64_t inversions = 0;
                const int64_t *p = r.permutation.data() + c * m;
                for (int64_t i = 0; i < m; i++) {
                        for (int64_t j = 0; j < n; j++) {
                                (j >= i ? u(i, j) : l(i, j)) = x.at(i, j);
                                permuted(i, j) = given.at(p[i], j);
                        }
                        if (i < steps)
                                l(i, i) = 1;
                        for (int64_t j = 0; j < i; j++)
                                inversions += p[j] > p[i];
                }
                assert_true(distance(l * u, permuted) < limit_of<T>(4));
                assert_true(r.signs[(size_t)c] == (inversions % 2 ? -1 : 1));
                for (const double below : l.v)
                        assert_true(std::fabs(below) <= 1);
        }
}

static void lus(void **)
{
        const int64_t sizes[][3] = {{1, 4, 4}, {3, 5, 5}, {2, 3, 7}, {2, 7, 3}, {1, 40, 41},
                                    {2, 1, 1}, {0, 3, 3}, {2, 0, 3}, {2, 3, 0}, {1, 0, 0}};
        kernel_queue d;
        for (const auto &s : sizes) {
                const numbers a = random_numbers(s[0] * s[1] * s[2]);
                check_lu<float>(factorise_lu<float>(&d, s[0], s[1], s[2], a, 5), a, s[0], s[1], s[2]);
                check_lu<double>(factorise_lu<double>(&d, s[0], s[1], s[2], a, 0), a, s[0], s[1], s[2]);
                assert_int_equal(error_of(&d).code, 0);
        }
}

/* A singular matrix is an error only with an origin; one with NaN has rows all the same. */
static void singular_lus(void **)
{
        for (const int64_t count : {1, 3}) {
                kernel_queue d;
                const int64_t n = 4, size = n * n;
                numbers a = random_numbers(count * size);
                for (int64_t j = 0; j < n; j++)
                        for (const int64_t row : {2, 3}) /* the last matrix has three rows alike */
                                a[(size_t)((count - 1) * size + row * n + j)] = a[(size_t)((count - 1) * size + j)];
                lu_result r = factorise_lu<double>(&d, count, n, n, a, 0);
                check_lu<double>(r, a, count, n, n);
                assert_int_equal(error_of(&d).code, 0);
                assert_true(r.lu[(size_t)(count * size - 1)] == 0);
                r = factorise_lu<double>(&d, count, n, n, a, 5);
                const lg_device_error e = error_of(&d);
                assert_true(e.code == 5 && e.value == count - 1 && e.limit == 3);
                assert_nan(part(r.lu, count - 1, n, n).v);
                a.assign(a.size(), NAN);
                r = factorise_lu<float>(&d, count, n, n, a, 5);
                assert_true(error_of(&d).limit == 1);
                for (const int64_t row : r.permutation)
                        assert_in_range(row, 0, n - 1);
        }
}

/* ---- triangular systems ---- */

template <typename T> void solve(kernel_queue *d, int64_t count, int64_t n, int64_t k, int way, int off)
{
        const bool upper = way & 1, transposes = way & 2, unit = way & 4, scatter = way & 8, permutes = way & 16;
        numbers a = random_numbers(count * n * n);
        const numbers b = random_numbers(count * n * k);
        std::vector<matrix> read; /* op(a) */
        std::vector<int64_t> permutation;
        for (int64_t c = 0; c < count; c++) {
                matrix t = {n, n, numbers((size_t)(n * n))};
                for (int64_t i = 0; i < n; i++)
                        for (int64_t j = 0; j < n; j++) {
                                double &x = a[(size_t)((c * n + i) * n + j)];
                                x = i == j ? 2 + x / 2 : x / (double)n;
                                t(i, j) = i == j && unit ? 1 : (upper ? j >= i : j <= i) ? x : 0;
                                if (t(i, j) == 0 || (i == j && unit))
                                        x = NAN; /* nothing may read it */
                        }
                read.push_back(transposes ? transposed(t) : t);
                for (int64_t i = 0; i < n; i++)
                        permutation.push_back((i * 3 + c) % n);
                if (n % 3 == 0)
                        for (int64_t i = 0; i < n; i++)
                                permutation[(size_t)(c * n + i)] = (i + c) % n;
        }
        int64_t *rows = NULL;
        if (permutes && count * n > 0) {
                rows = room_for<int64_t>(d, count * n);
                assert_true(d->q->api->upload(d->q, rows, permutation.data(), permutation.size() * sizeof *rows));
        }
        T *x = room_for<T>(d, count * n * k, off);
        run(d, lg_cuda_triangular,
            lg_triangular_args{dtype_of<T>, count, n, k, upper, transposes, unit, scatter, put<T>(d, a, off),
                               put<T>(d, b, off), rows, x});
        const numbers found = fetched(d, x, count * n * k);
        for (int64_t c = 0; c < count; c++) {
                const matrix given = part(b, c, n, k), result = part(found, c, n, k);
                matrix right = given, solved = result;
                for (int64_t i = 0; rows && i < n; i++)
                        for (int64_t j = 0; j < k; j++)
                                if (scatter)
                                        solved(i, j) = result.at(permutation[(size_t)(c * n + i)], j);
                                else
                                        right(i, j) = given.at(permutation[(size_t)(c * n + i)], j);
                assert_true(distance(read[(size_t)c] * solved, right) < limit_of<T>(4));
        }
        d->release(&d->memory);
}

static void triangular_systems(void **)
{
        const int64_t sizes[][3] = {{1, 1, 1},   {1, 5, 3}, {3, 4, 2}, {2, 65, 1},
                                    {10, 65, 2}, {0, 2, 2}, {2, 0, 2}, {2, 2, 0}};
        kernel_queue d;
        for (const auto &s : sizes)
                for (int way = 0; way < 32; way++) {
                        solve<float>(&d, s[0], s[1], s[2], way, way & 1);
                        solve<double>(&d, s[0], s[1], s[2], way, 0);
                }
}

/* ---- QR ---- */

template <typename T>
void factorise_qr(kernel_queue *d, int64_t count, int64_t m, int64_t n, bool complete, bool with_q)
{
        const int64_t rank = complete || m < n ? m : n;
        const numbers a = random_numbers(count * m * n);
        T *q = with_q ? room_for<T>(d, count * m * rank) : NULL, *r = room_for<T>(d, count * rank * n);
        run(d, lg_cuda_qr, lg_qr_args{dtype_of<T>, count, m, n, rank, put<T>(d, a), q, r});
        const numbers found_r = fetched(d, r, count * rank * n);
        const numbers found_q = with_q ? fetched(d, q, count * m * rank) : numbers();
        for (int64_t c = 0; c < count; c++) {
                const matrix right = part(found_r, c, rank, n), given = part(a, c, m, n);
                for (int64_t i = 0; i < rank; i++)
                        for (int64_t j = 0; j < i && j < n; j++)
                                assert_true(right.at(i, j) == 0);
                if (with_q) {
                        const matrix left = part(found_q, c, m, rank);
                        assert_orthonormal<T>(left);
                        assert_true(distance(left * right, given) < limit_of<T>(8));
                } else {
                        assert_true(distance(transposed(right) * right, transposed(given) * given) < limit_of<T>(40));
                }
        }
        d->release(&d->memory);
}

static void qrs(void **)
{
        const int64_t sizes[][3] = {{1, 1, 1},   {2, 4, 4}, {3, 7, 3}, {2, 3, 7},
                                    {1, 40, 20}, {0, 2, 2}, {2, 0, 3}, {2, 3, 0}};
        kernel_queue d;
        for (const auto &s : sizes)
                for (int way = 0; way < 4; way++) {
                        factorise_qr<float>(&d, s[0], s[1], s[2], way & 1, way & 2);
                        factorise_qr<double>(&d, s[0], s[1], s[2], way & 1, way & 2);
                }
}

/* ---- eigenvalues and singular values ---- */

template <typename T> void decompose(kernel_queue *d, int64_t count, int64_t n, bool with_vectors)
{
        numbers a = definite(count, n);
        T *values = room_for<T>(d, count * n), *vectors = with_vectors ? room_for<T>(d, count * n * n) : NULL;
        if (count == 4) /* which has no eigenvalues */
                a[(size_t)(2 * n * n)] = INFINITY;
        run(d, lg_cuda_eigh, lg_eigh_args{dtype_of<T>, count, n, put<T>(d, a), values, vectors, 9});
        assert_int_equal(error_of(d).code, 0);
        const numbers found = fetched(d, values, count * n);
        const numbers columns = with_vectors ? fetched(d, vectors, count * n * n) : numbers();
        for (int64_t c = 0; c < count; c++) {
                const matrix w = part(found, c, 1, n);
                matrix given = part(a, c, n, n), scaled = identity(n);
                double trace = 0, sum = 0;
                if (count == 4 && c == 2) {
                        assert_nan(w.v);
                        assert_nan(with_vectors ? part(columns, c, n, n).v : numbers());
                        continue;
                }
                for (int64_t i = 0; i < n; i++) {
                        for (int64_t j = i + 1; j < n; j++)
                                given(i, j) = given(j, i);
                        trace += given(i, i);
                        sum += w.at(0, i);
                        scaled(i, i) = w.at(0, i);
                        assert_true(i == 0 || w.at(0, i) >= w.at(0, i - 1));
                }
                assert_true(std::fabs(trace - sum) <= limit_of<T>(3 * (double)n));
                if (with_vectors) {
                        const matrix v = part(columns, c, n, n);
                        assert_orthonormal<T>(v);
                        assert_true(distance(v * scaled * transposed(v), given) < limit_of<T>(8));
                }
        }
        d->release(&d->memory);
}

static void eigenvalues(void **)
{
        const int64_t sizes[][2] = {{1, 1}, {1, 6}, {3, 5}, {4, 3}, {4, 33}, {0, 3}, {2, 0}};
        kernel_queue d;
        for (const auto &s : sizes)
                for (const bool with_vectors : {false, true}) {
                        decompose<float>(&d, s[0], s[1], with_vectors);
                        decompose<double>(&d, s[0], s[1], with_vectors);
                }
}

template <typename T> void decompose_svd(kernel_queue *d, int64_t count, int64_t m, int64_t n, bool full, bool vectors)
{
        const int64_t least = m < n ? m : n, u_cols = full ? m : least, vt_rows = full ? n : least;
        numbers a = random_numbers(count * m * n);
        if (count == 4)
                a[(size_t)(2 * m * n)] = NAN;
        T *s = room_for<T>(d, count * least), *u = vectors ? room_for<T>(d, count * m * u_cols) : NULL;
        T *vt = vectors ? room_for<T>(d, count * vt_rows * n) : NULL;
        run(d, lg_cuda_svd, lg_svd_args{dtype_of<T>, count, m, n, full, put<T>(d, a), u, s, vt, 9});
        assert_int_equal(error_of(d).code, 0);
        const numbers found = fetched(d, s, count * least);
        const numbers left = vectors ? fetched(d, u, count * m * u_cols) : numbers();
        const numbers right = vectors ? fetched(d, vt, count * vt_rows * n) : numbers();
        for (int64_t c = 0; c < count; c++) {
                const matrix values = part(found, c, 1, least), given = part(a, c, m, n);
                matrix middle = {u_cols, vt_rows, numbers((size_t)(u_cols * vt_rows))};
                double squares = 0, sum = 0;
                if (count == 4 && c == 2) {
                        assert_nan(values.v);
                        assert_nan(vectors ? part(left, c, m, u_cols).v : numbers());
                        assert_nan(vectors ? part(right, c, vt_rows, n).v : numbers());
                        continue;
                }
                for (const double x : given.v)
                        squares += x * x;
                for (int64_t i = 0; i < least; i++) {
                        middle(i, i) = values.at(0, i);
                        sum += values.at(0, i) * values.at(0, i);
                        assert_true(values.at(0, i) >= 0 && (i == 0 || values.at(0, i) <= values.at(0, i - 1)));
                }
                assert_true(std::fabs(squares - sum) < limit_of<T>(1 + squares));
                if (vectors) {
                        const matrix x = part(left, c, m, u_cols), y = part(right, c, vt_rows, n);
                        assert_orthonormal<T>(x);
                        assert_orthonormal<T>(transposed(y));
                        assert_true(distance(x * middle * y, given) < limit_of<T>(8));
                }
        }
        d->release(&d->memory);
}

static void singular_values(void **)
{
        const int64_t sizes[][3] = {{1, 1, 1}, {1, 4, 4},  {1, 6, 3},  {1, 3, 6}, {4, 5, 3}, {4, 3, 5},
                                    {4, 5, 5}, {4, 33, 2}, {4, 2, 33}, {0, 2, 2}, {2, 0, 3}, {2, 3, 0}};
        kernel_queue d;
        for (const auto &s : sizes)
                for (int way = 0; way < 4; way++) {
                        decompose_svd<float>(&d, s[0], s[1], s[2], way & 1, way & 2);
                        decompose_svd<double>(&d, s[0], s[1], s[2], way & 1, way & 2);
                }
}

/* Without columns or rows, what is complete is the identity, and what is empty is NULL. */
static void empty_matrices(void **)
{
        kernel_queue d;
        float *x = room_for<float>(&d, 18);
        const numbers one = {1, 0, 0, 0, 1, 0, 0, 0, 1};
        run(&d, lg_cuda_svd, lg_svd_args{LG_F32, 1, 0, 3, true, NULL, NULL, NULL, x, 9});
        assert_true(fetched(&d, x, 9) == one);
        run(&d, lg_cuda_svd, lg_svd_args{LG_F32, 1, 3, 0, true, NULL, x + 9, NULL, NULL, 9});
        assert_true(fetched(&d, x + 9, 9) == one);
        run(&d, lg_cuda_qr, lg_qr_args{LG_F32, 1, 3, 0, 3, NULL, x, NULL});
        assert_true(fetched(&d, x, 9) == one);
        assert_int_equal(error_of(&d).code, 0);
}

/* ---- failures ---- */

enum { KERNELS = 7 };

/* Calls kernel number i on `count` matrices of n rows, the same each time; *ret_y is a result of `count` * n numbers.
 */
static std::function<bool()> call_of(kernel_queue *d, int i, int64_t count, int64_t n, float **ret_y)
{
        state = 1;
        const numbers zeros((size_t)(2 * count * n * n)), a = definite(count, n),
                                                          other = random_numbers(2 * count * n * n);
        float *x = put<float>(d, a), *b = put<float>(d, other), *y = put<float>(d, zeros), *z = put<float>(d, zeros);
        int64_t *rows = room_for<int64_t>(d, count * n);
        std::vector<int64_t> order;
        for (int64_t r = 0; r < count * n; r++)
                order.push_back(r % n);
        assert_true(d->q->api->upload(d->q, rows, order.data(), order.size() * sizeof *rows));
        lg_queue *q = d->q;
        *ret_y = y;
        switch (i) {
        case 0:
                return [=] {
                        const lg_fft_args fft = {LG_F32, LG_FFT_HALF, false, false, 1, n, count, 0.5, b, y};
                        return lg_cuda_fft(q, &fft);
                };
        case 1:
                return [=] {
                        const lg_cholesky_args cholesky = {LG_F32, count, n, x, y, 7};
                        return lg_cuda_cholesky(q, &cholesky);
                };
        case 2:
                return [=] {
                        const lg_lu_args lu = {LG_F32, count, n, n, b, y, rows, z, 0};
                        return lg_cuda_lu(q, &lu);
                };
        case 3:
                return [=] {
                        const lg_triangular_args triangular = {LG_F32, count, n, n, false, false,
                                                               true,   true,  x, b, rows,  y};
                        return lg_cuda_triangular(q, &triangular);
                };
        case 4:
                return [=] {
                        const lg_qr_args qr = {LG_F32, count, n, n, n, b, z, y};
                        return lg_cuda_qr(q, &qr);
                };
        case 5:
                return [=] {
                        const lg_eigh_args eigh = {LG_F32, count, n, x, y, z, 7};
                        return lg_cuda_eigh(q, &eigh);
                };
        default:
                return [=] {
                        const lg_svd_args svd = {LG_F32, count, n, n, true, b, z, y, z + count * n * n, 7};
                        return lg_cuda_svd(q, &svd);
                };
        }
}

/* Each call in turn fails, or all from one on: it is reported, nothing leaks, and the kernel works again. */
static void failures(void **)
{
        const int64_t handles = cudasim_handles(), bytes = cudasim_bytes();
        for (int kernel = 0; kernel < KERNELS; kernel++)
                for (int all = 0; all < 12; all++)
                        for (int n = 1;; n++) {
                                kernel_queue d;
                                float *y;
                                const int way = all % 6 / 2;
                                const std::function<bool()> call = call_of(&d, kernel, 1 + all / 6, 4, &y);
                                int64_t calls = cudasim_calls(way);
                                cudasim_fail_at(n, all % 2, way);
                                const bool good = call();
                                calls = cudasim_calls(way) - calls;
                                cudasim_fail_at(0, false, way);
                                d.release(&d.scratch);
                                if (calls < n) {
                                        assert_true(good);
                                        break;
                                }
                                assert_false(good);
                                assert_true(d.q->status == LG_NO_MEMORY || (d.q->status == LG_BROKEN && way != 1));
                                assert_true(d.q->message[0] != '\0');
                                d.q->message[0] = '\0';
                                d.q->status = LG_OK;
                                assert_true(call());
                                error_of(&d);
                                assert_true(std::isfinite(fetched(&d, y, 1)[0]));
                                d.release(&d.scratch);
                        }
        assert_int_equal(cudasim_handles(), handles);
        assert_int_equal(cudasim_bytes(), bytes);
}

/* Where a library lacks memory, cached memory is released, and the kernel begins again with its operands. */
static void short_memory(void **)
{
        for (int kernel = 0; kernel < KERNELS; kernel++)
                for (const int64_t count : {1, 3}) {
                        numbers expected;
                        for (int n = 0;; n++) {
                                kernel_queue d;
                                float *y;
                                d.q->release_cached = [](lg_queue *) { return true; };
                                const std::function<bool()> call = call_of(&d, kernel, count, 4, &y);
                                int64_t calls = cudasim_calls(cudasim::LOAD);
                                cudasim_fail_at(n, false, cudasim::LOAD);
                                assert_true(call());
                                calls = cudasim_calls(cudasim::LOAD) - calls;
                                cudasim_fail_at(0, false, cudasim::LOAD);
                                error_of(&d);
                                d.release(&d.scratch);
                                const numbers found = fetched(&d, y, count * 4);
                                if (n == 0)
                                        expected = found;
                                assert_true(found == expected);
                                if (calls < n)
                                        break;
                        }
                }
}

/* Queues on their own streams keep their own handles. */
static void two_queues(void **)
{
        kernel_queue one, two;
        float *y[2];
        for (int kernel = 0; kernel < KERNELS; kernel++) {
                const std::function<bool()> first = call_of(&one, kernel, 2, 5, &y[0]);
                const std::function<bool()> second = call_of(&two, kernel, 2, 5, &y[1]);
                assert_true(first() && second());
                assert_true(error_of(&two).code == 0 && error_of(&one).code == 0);
                assert_true(std::isfinite(fetched(&one, y[0], 1)[0]) && std::isfinite(fetched(&two, y[1], 1)[0]));
                one.release(&one.scratch);
                two.release(&two.scratch);
        }
}

/* Without a library the reason is told. */
static void absence(void **)
{
        const char *missing = getenv("LG_MISSING");
        for (int kernel = 0; kernel < KERNELS; kernel++) {
                kernel_queue d;
                float *y;
                const std::string name = kernel == 0 ? "CUFFT" : kernel == 3 ? "CUBLAS" : "CUSOLVER";
                const bool is_there = "CUDASIM_" + name != missing;
                assert_int_equal(call_of(&d, kernel, 1, 3, &y)(), is_there);
                d.release(&d.scratch);
                if (is_there)
                        continue;
                assert_int_equal(d.q->status, LG_BROKEN);
                assert_non_null(strstr(d.q->message, ("$" + std::string(missing) + " is 0").c_str()));
        }
}

/* ---- deliberate bugs ---- */

static void bug_nan(void)
{
        kernel_queue d;
        cusolverDnHandle_t h;
        cusolverDnParams_t p;
        size_t bytes, host_bytes;
        char host[64];
        float *x = put<float>(&d, numbers(4, NAN)), *w = room_for<float>(&d, 64);
        cusolverDnCreate(&h);
        cusolverDnCreateParams(&p);
        cusolverDnXsyevd_bufferSize(h, p, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, 2, CUDA_R_32F, x, 2,
                                    CUDA_R_32F, w, CUDA_R_32F, &bytes, &host_bytes);
        cusolverDnXsyevd(h, p, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, 2, CUDA_R_32F, x, 2, CUDA_R_32F, w,
                         CUDA_R_32F, w + 8, bytes, host, host_bytes, (int *)(w + 4));
        cudaDeviceSynchronize();
}

/* A plan with work area `work`, which is used for a transform at x. */
static void run_plan(void *x, void *work, bool own_memory)
{
        cufftHandle h;
        long long n = 6;
        size_t bytes;
        cufftCreate(&h);
        if (!own_memory)
                cufftSetAutoAllocation(h, 0);
        cufftXtMakePlanMany(h, 1, &n, &n, 1, 6, CUDA_C_32F, &n, 1, 6, CUDA_C_32F, 1, &bytes, CUDA_C_32F);
        cufftSetWorkArea(h, work);
        cufftXtExec(h, x, x, CUFFT_FORWARD);
}
static void bug_plan_with_memory(void)
{
        kernel_queue d;
        float *x = room_for<float>(&d, 400);
        run_plan(x, x + 64, true);
}
static void bug_work_area(void)
{
        kernel_queue d;
        run_plan(room_for<float>(&d, 12), NULL, false);
}
static void bug_misaligned(void)
{
        kernel_queue d;
        float *x = room_for<float>(&d, 400);
        run_plan(x + 1, x + 64, false);
}
static void bug_too_far(void)
{
        kernel_queue d;
        float *x = room_for<float>(&d, 400);
        run_plan(x + 400, x, false);
}

static void bugs(void **)
{
        caught(bug_nan, "a matrix with a NaN or infinity");
        caught(bug_plan_with_memory, "not a batch of transforms, in memory of the caller");
        caught(bug_work_area, "is not device memory");
        caught(bug_misaligned, "is not aligned to a complex element");
        caught(bug_too_far, "reach beyond their allocation");
}

int main()
{
        const struct CMUnitTest all[] = {
                cmocka_unit_test(transforms),
                cmocka_unit_test(transform_plans),
                cmocka_unit_test(choleskys),
                cmocka_unit_test(choleskys_that_fail),
                cmocka_unit_test(lus),
                cmocka_unit_test(singular_lus),
                cmocka_unit_test(triangular_systems),
                cmocka_unit_test(qrs),
                cmocka_unit_test(eigenvalues),
                cmocka_unit_test(singular_values),
                cmocka_unit_test(empty_matrices),
                cmocka_unit_test(failures),
                cmocka_unit_test(short_memory),
                cmocka_unit_test(two_queues),
                cmocka_unit_test(bugs),
        };
        const struct CMUnitTest without[] = {cmocka_unit_test(absence)};
        return getenv("LG_MISSING") ? cmocka_run_group_tests(without, nullptr, nullptr)
                                    : cmocka_run_group_tests(all, nullptr, nullptr);
}
