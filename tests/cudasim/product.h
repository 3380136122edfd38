/* product.h - column-major products in plain loops, as cuBLASLt describes them. */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "runtime.h"
#include <cublasLt.h>
#include <vector>

namespace cudasim
{
inline size_t size_of(cudaDataType_t t)
{
        return t == CUDA_R_64F ? 8 : t == CUDA_R_32F ? 4 : t == CUDA_R_16F || t == CUDA_R_16BF ? 2 : 0;
}

/* D = op(A) op(B): D is (m, n); ld and stride of A, B and D. */
struct problem {
        int64_t m, n, k, ld[3], stride[3];
        int32_t batch, type, compute, ta, tb;
        uint32_t epilogue, listed; /* listed: operands are arrays of addresses, one for each matrix */
        uint32_t unused;
};

inline double get(const void *p, int32_t type, int64_t i)
{
        return type == CUDA_R_64F   ? ((const double *)p)[i]
               : type == CUDA_R_32F ? ((const float *)p)[i]
               : type == CUDA_R_16F ? __half2float(((const __half *)p)[i])
                                    : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

inline void put_value(void *p, int32_t type, int64_t i, double v)
{
        if (type == CUDA_R_64F)
                ((double *)p)[i] = v;
        else if (type == CUDA_R_32F)
                ((float *)p)[i] = (float)v;
        else if (type == CUDA_R_16F)
                ((__half *)p)[i] = __float2half((float)v);
        else
                ((__nv_bfloat16 *)p)[i] = __float2bfloat16((float)v);
}

/* op(X), (rows, cols), column by column. */
template <typename H>
void pack(std::vector<H> &to, const void *x, int32_t type, int64_t rows, int64_t cols, int64_t ld, bool transposed)
{
        to.resize((size_t)(rows * cols));
        for (int64_t j = 0; j < cols; j++)
                for (int64_t i = 0; i < rows; i++)
                        to[(size_t)(j * rows + i)] = (H)get(x, type, transposed ? i * ld + j : j * ld + i);
}

struct operands {
        const char *a, *b;
        char *d;
        const void *bias;
        double alpha, beta;
};

/* The matrix of that number in the batch. */
template <typename P> P matrix(const problem &p, P of, int operand, int64_t batch)
{
        return p.listed ? ((P const *)(const void *)of)[batch]
                        : of + batch * p.stride[operand] * (int64_t)size_of((cudaDataType_t)p.type);
}

/* $CUDASIM_BACKWARDS: sums are added from the other end, as a library may. */
template <typename H> void multiply(const problem &p, const operands &o)
{
        static const bool backwards = number("CUDASIM_BACKWARDS", 0);
        const int64_t size = (int64_t)size_of((cudaDataType_t)p.type);
        std::vector<H> a, b, sum((size_t)p.m);
        for (int64_t batch = 0; batch < p.batch; batch++) {
                if (batch == 0 || p.stride[0] || p.listed)
                        pack(a, matrix(p, o.a, 0, batch), p.type, p.m, p.k, p.ld[0], p.ta);
                if (batch == 0 || p.stride[1] || p.listed)
                        pack(b, matrix(p, o.b, 1, batch), p.type, p.k, p.n, p.ld[1], p.tb);
                for (int64_t j = 0; j < p.n; j++) {
                        H *s = sum.data();
                        memset((void *)s, 0, (size_t)p.m * sizeof *s);
                        for (int64_t step = 0; step < p.k; step++) {
                                const int64_t k = backwards ? p.k - 1 - step : step;
                                const H *column = a.data() + k * p.m, by = b[(size_t)(j * p.k + k)];
                                for (int64_t i = 0; i < p.m; i++)
                                        s[i] += column[i] * by;
                        }
                        char *d = matrix(p, o.d, 2, batch) + j * p.ld[2] * size;
                        for (int64_t i = 0; i < p.m; i++) {
                                H v = (H)o.alpha * s[i];
                                v += o.beta != 0 ? (H)o.beta * (H)get(d, p.type, i) : (H)0;
                                v += o.bias ? (H)get(o.bias, p.type, i) : (H)0;
                                put_value(d, p.type, i, v);
                        }
                }
        }
}
} // namespace cudasim

#endif
