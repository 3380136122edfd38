/* dense.h - factorisations of column-major matrices in double, by the shortest methods. */
#ifndef DENSE_H
#define DENSE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudasim
{
/* A matrix of `rows` rows, column by column. */
struct dense {
        int64_t rows, cols;
        std::vector<double> data;
        dense(int64_t m, int64_t n) : rows(m), cols(n), data((std::size_t)(m * n))
        {
        }
        double &operator()(int64_t i, int64_t j)
        {
                return data[(std::size_t)(j * rows + i)];
        }
};

/* Replaces the upper triangle of a by u of a = u^T u; returns the order of the first minor that is not positive, or 0.
 */
int cholesky(dense &a);
/* LU with partial pivoting; swaps from 1, as LAPACK's. Returns the number of the first pivot that is 0, or 0. */
int lu(dense &a, std::vector<int64_t> &swaps);
/* Householder's QR in a, as LAPACK's; and the first `cols` columns of q from the reflections. */
void qr(dense &a, std::vector<double> &tau);
dense q_of(dense &a, const std::vector<double> &tau, int64_t cols);
/* Eigenvalues of a, ascending, of which the upper triangle is read; vectors are the columns of the result. */
dense eigh(dense &a, std::vector<double> &values);
/* a = u diag(s) v^T, rows >= cols, s descending; u is (rows, rows). */
void svd(dense &a, dense &u, std::vector<double> &s, dense &v);
} // namespace cudasim

#endif
