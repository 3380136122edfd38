/* dense.cpp - factorisations in plain loops: Jacobi's method for eigenvalues, his one-sided method for singular values.
 */
#include "dense.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace cudasim
{
int cholesky(dense &a)
{
        for (int64_t j = 0; j < a.cols; j++)
                for (int64_t i = 0; i <= j; i++) {
                        double sum = a(i, j);
                        for (int64_t k = 0; k < i; k++)
                                sum -= a(k, i) * a(k, j);
                        if (i == j && !(sum > 0))
                                return (int)(j + 1);
                        a(i, j) = i == j ? std::sqrt(sum) : sum / a(i, i);
                }
        return 0;
}

int lu(dense &a, std::vector<int64_t> &swaps)
{
        int first = 0;
        const int64_t steps = std::min(a.rows, a.cols);
        swaps.resize((size_t)steps);
        for (int64_t k = 0; k < steps; k++) {
                int64_t at = k;
                for (int64_t i = k + 1; i < a.rows; i++)
                        at = std::fabs(a(i, k)) > std::fabs(a(at, k)) ? i : at;
                swaps[(size_t)k] = at + 1;
                for (int64_t j = 0; j < a.cols; j++)
                        std::swap(a(k, j), a(at, j));
                if (a(k, k) == 0) {
                        first = first ? first : (int)(k + 1);
                        continue;
                }
                for (int64_t i = k + 1; i < a.rows; i++)
                        a(i, k) /= a(k, k);
                for (int64_t j = k + 1; j < a.cols; j++)
                        for (int64_t i = k + 1; i < a.rows; i++)
                                a(i, j) -= a(i, k) * a(k, j);
        }
        return first;
}

/* x - tau v v^T x for column j of x; v is column k of a below its diagonal, and 1 on it. */
static void reflect(dense &a, int64_t k, double tau, dense &x, int64_t j)
{
        double sum = x(k, j);
        for (int64_t i = k + 1; i < a.rows; i++)
                sum += a(i, k) * x(i, j);
        sum *= tau;
        x(k, j) -= sum;
        for (int64_t i = k + 1; i < a.rows; i++)
                x(i, j) -= a(i, k) * sum;
}

/* Scales a so that its largest element is about 1, where squares neither overflow nor vanish; returns by which power of
 * two. */
static int scale(dense &a)
{
        double most = 0;
        for (const double x : a.data)
                most = std::max(most, std::fabs(x));
        const int by = most > 0 && std::isfinite(most) ? -std::ilogb(most) : 0;
        for (double &x : a.data)
                x = std::ldexp(x, by);
        return by;
}

void qr(dense &a, std::vector<double> &tau)
{
        const int64_t steps = std::min(a.rows, a.cols);
        const int by = scale(a);
        tau.assign((size_t)steps, 0);
        for (int64_t k = 0; k < steps; k++) {
                double below = 0;
                for (int64_t i = k + 1; i < a.rows; i++)
                        below = std::hypot(below, a(i, k));
                if (below == 0)
                        continue;
                const double alpha = a(k, k), beta = -std::copysign(std::hypot(alpha, below), alpha);
                tau[(size_t)k] = (beta - alpha) / beta;
                for (int64_t i = k + 1; i < a.rows; i++)
                        a(i, k) /= alpha - beta;
                a(k, k) = beta;
                for (int64_t j = k + 1; j < a.cols; j++)
                        reflect(a, k, tau[(size_t)k], a, j);
        }
        for (int64_t j = 0; j < a.cols; j++)
                for (int64_t i = 0; i <= j && i < a.rows; i++)
                        a(i, j) = std::ldexp(a(i, j), -by);
}

dense q_of(dense &a, const std::vector<double> &tau, int64_t cols)
{
        dense q(a.rows, cols);
        for (int64_t j = 0; j < cols; j++) {
                q(j, j) = 1;
                for (int64_t k = (int64_t)tau.size() - 1; k >= 0; k--)
                        reflect(a, k, tau[(size_t)k], q, j);
        }
        return q;
}

/* Rotates columns p and q of x. */
static void rotate(dense &x, int64_t p, int64_t q, double c, double s)
{
        for (int64_t i = 0; i < x.rows; i++) {
                const double a = x(i, p), b = x(i, q);
                x(i, p) = c * a - s * b;
                x(i, q) = s * a + c * b;
        }
}

/* The rotation that makes (pp, pq; pq, qq) diagonal. */
static void rotation(double pp, double pq, double qq, double *c, double *s)
{
        const double theta = (qq - pp) / (2 * pq);
        const double t = std::copysign(1, theta) / (std::fabs(theta) + std::hypot(theta, 1));
        *c = 1 / std::hypot(t, 1);
        *s = t * *c;
}

static dense identity(int64_t n)
{
        dense v(n, n);
        for (int64_t i = 0; i < n; i++)
                v(i, i) = 1;
        return v;
}

/* The columns of x in that order. */
static dense sorted(dense &x, const std::vector<int64_t> &order)
{
        dense y(x.rows, x.cols);
        for (int64_t j = 0; j < x.cols; j++)
                for (int64_t i = 0; i < x.rows; i++)
                        y(i, j) = x(i, order[(size_t)j]);
        return y;
}

static std::vector<int64_t> order_of(const std::vector<double> &keys)
{
        std::vector<int64_t> order(keys.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int64_t a, int64_t b) { return keys[(size_t)a] < keys[(size_t)b]; });
        return order;
}

enum { SWEEPS = 60 };

dense eigh(dense &a, std::vector<double> &values)
{
        const int64_t n = a.cols;
        dense v = identity(n);
        double size = 0;
        for (int64_t j = 0; j < n; j++)
                for (int64_t i = 0; i <= j; i++) {
                        a(j, i) = a(i, j);
                        size = std::max(size, std::fabs(a(i, j)));
                }
        bool moved = true;
        for (int sweep = 0; moved && sweep < SWEEPS; sweep++) {
                moved = false;
                for (int64_t p = 0; p < n; p++)
                        for (int64_t q = p + 1; q < n; q++) {
                                if (std::fabs(a(p, q)) <= 1e-18 * size)
                                        continue;
                                double c, s;
                                moved = true;
                                rotation(a(p, p), a(p, q), a(q, q), &c, &s);
                                rotate(a, p, q, c, s);
                                for (int64_t i = 0; i < n; i++) {
                                        const double x = a(p, i), y = a(q, i);
                                        a(p, i) = c * x - s * y;
                                        a(q, i) = s * x + c * y;
                                }
                                a(p, q) = a(q, p) = 0;
                                rotate(v, p, q, c, s);
                        }
        }
        std::vector<double> found((size_t)n);
        for (int64_t i = 0; i < n; i++)
                found[(size_t)i] = a(i, i);
        const std::vector<int64_t> order = order_of(found);
        values.clear();
        for (const int64_t i : order)
                values.push_back(found[(size_t)i]);
        return sorted(v, order);
}

static double dot(dense &x, int64_t p, dense &y, int64_t q)
{
        double sum = 0;
        for (int64_t i = 0; i < x.rows; i++)
                sum += x(i, p) * y(i, q);
        return sum;
}

/* Makes columns from `first` on orthonormal to those before them. */
static void complete(dense &u, int64_t first)
{
        for (int64_t j = first, unit = 0; j < u.cols; unit++) {
                for (int64_t i = 0; i < u.rows; i++)
                        u(i, j) = i == unit;
                for (int turn = 0; turn < 2; turn++)
                        for (int64_t k = 0; k < j; k++) {
                                const double by = dot(u, k, u, j);
                                for (int64_t i = 0; i < u.rows; i++)
                                        u(i, j) -= by * u(i, k);
                        }
                const double length = std::sqrt(dot(u, j, u, j));
                for (int64_t i = 0; i < u.rows; i++)
                        u(i, j) /= length;
                j += length > 0.5 / std::sqrt((double)u.rows) || unit + 1 == u.rows;
        }
}

void svd(dense &a, dense &u, std::vector<double> &s, dense &v)
{
        const int64_t n = a.cols;
        const int by = scale(a);
        dense turned = identity(n);
        bool moved = true;
        for (int sweep = 0; moved && sweep < SWEEPS; sweep++) {
                moved = false;
                for (int64_t p = 0; p < n; p++)
                        for (int64_t q = p + 1; q < n; q++) {
                                const double pp = dot(a, p, a, p), qq = dot(a, q, a, q), pq = dot(a, p, a, q);
                                if (std::fabs(pq) <= 1e-16 * std::sqrt(pp * qq) || pq == 0)
                                        continue;
                                double c, t;
                                moved = true;
                                rotation(pp, pq, qq, &c, &t);
                                rotate(a, p, q, c, t);
                                rotate(turned, p, q, c, t);
                        }
        }
        std::vector<double> lengths;
        for (int64_t j = 0; j < n; j++)
                lengths.push_back(-std::sqrt(dot(a, j, a, j)));
        const std::vector<int64_t> order = order_of(lengths);
        v = sorted(turned, order);
        s.clear();
        int64_t sound = 0; /* columns that are longer than rounding makes them */
        for (int64_t j = 0; j < n; j++) {
                const double length = -lengths[(size_t)order[(size_t)j]];
                s.push_back(std::ldexp(length, -by));
                if (length > 1e-15 * -lengths[(size_t)order[0]] * (double)n) {
                        for (int64_t i = 0; i < a.rows; i++)
                                u(i, j) = a(i, order[(size_t)j]) / length;
                        sound = j + 1;
                }
        }
        complete(u, sound);
}
} // namespace cudasim
