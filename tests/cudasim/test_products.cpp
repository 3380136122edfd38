/* test_products.cpp - the simulated cuBLASLt reads lists of matrices late, and catches wrong lists and biases. */
#include "sim.h"
#include "caught.h"
#include <cublasLt.h>

#if CUBLAS_VER_MAJOR >= 13
static float *device_floats(int n)
{
        void *p = nullptr;
        assert_int_equal(cudaMalloc(&p, (size_t)n * sizeof(float)), cudaSuccess);
        return (float *)p;
}

/* ---- products of cuBLASLt: D = A B of column-major 4 x 4 matrices ---- */

enum { SIDE = 4 };

struct small_product {
        cublasLtHandle_t handle = nullptr;
        cublasLtMatmulDesc_t desc = nullptr;
        cublasLtMatrixLayout_t layout = nullptr;
        cublasLtMatmulHeuristicResult_t chosen;

        /* Of matrices whose addresses are listed, or of one with a bias. */
        explicit small_product(int32_t listed, const float *bias = nullptr)
        {
                const uint32_t mode = CUBLASLT_BATCH_MODE_POINTER_ARRAY, with_bias = CUBLASLT_EPILOGUE_BIAS, all = 4;
                cublasLtMatmulPreference_t like;
                int count = 0;
                cublasLtCreate(&handle);
                cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
                cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, SIDE, SIDE, SIDE);
                if (listed) {
                        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &listed, 4);
                        cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode, 4);
                }
                if (bias) {
                        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias, 4);
                        set_bias(bias);
                }
                cublasLtMatmulPreferenceCreate(&like);
                for (int i = 0; i < 4; i++)
                        cublasLtMatmulPreferenceSetAttribute(
                                like,
                                (cublasLtMatmulPreferenceAttributes_t)(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i),
                                &all, 4);
                assert_int_equal(cublasLtMatmulAlgoGetHeuristic(handle, desc, layout, layout, layout, layout, like, 1,
                                                                &chosen, &count),
                                 CUBLAS_STATUS_SUCCESS);
                cublasLtMatmulPreferenceDestroy(like);
        }
        void set_bias(const float *bias)
        {
                cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        }
        void run(const void *a, const void *b, void *d)
        {
                const float one = 1, none = 0;
                assert_int_equal(cublasLtMatmul(handle, desc, &one, a, layout, b, layout, &none, d, layout, d, layout,
                                                &chosen.algo, nullptr, 0, nullptr),
                                 CUBLAS_STATUS_SUCCESS);
        }
        ~small_product()
        {
                cublasLtMatrixLayoutDestroy(layout);
                cublasLtMatmulDescDestroy(desc);
                cublasLtDestroy(handle);
        }
};

/* A list of two matrices, which begin `step` elements apart, on the device. */
static void **list_of(float *first, int64_t step)
{
        void **list, *host[2] = {first, first + step};
        cudaMalloc((void **)&list, sizeof host);
        cudaMemcpy(list, host, sizeof host, cudaMemcpyHostToDevice);
        return list;
}

/* A list is read when the product runs, not when it is asked for. */
static void lists_are_read_late(void **)
{
        const int n = SIDE * SIDE;
        float host[2 * SIDE * SIDE], *x = device_floats(2 * n), *y = device_floats(2 * n), *pinned;
        for (int i = 0; i < 2 * n; i++)
                host[i] = i % n % (SIDE + 1) ? 0 : (float)(1 + i / n); /* 1 and 2 on the diagonals */
        cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
        void **a = list_of(x, n), **d = list_of(y, n), **swapped = list_of(x + n, -n);
        small_product p(2);
        cudaHostAlloc((void **)&pinned, sizeof host, 0);
        p.run(a, a, d);
        cudaMemcpyAsync(pinned, y, sizeof host, cudaMemcpyDeviceToHost, nullptr);
        cudaMemcpyAsync(a, swapped, 2 * sizeof *a, cudaMemcpyDeviceToDevice, nullptr);
        p.run(a, a, d);
        cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost);
        assert_true(pinned[0] == 1 && pinned[n] == 4 && pinned[1] == 0);
        assert_true(host[0] == 4 && host[n] == 1 && host[1] == 0);
        cudaFreeHost(pinned);
        for (void *one : {(void *)x, (void *)y, (void *)a, (void *)d, (void *)swapped})
                cudaFree(one);
}

static void wrong_products_are_caught(void **)
{
        caught(
                [] { /* the second matrix ends beyond its allocation */
                     float *x = device_floats(2 * SIDE * SIDE);
                     void **good = list_of(x, SIDE * SIDE), **bad = list_of(x, SIDE * SIDE + 1);
                     small_product(2).run(good, bad, good);
                     cudaDeviceSynchronize();
                },
                "reach beyond their allocation");
        caught(
                [] { /* matrices where a list is wanted */
                     float *x = device_floats(2 * SIDE * SIDE);
                     small_product(2).run(x, x, x);
                     cudaDeviceSynchronize();
                },
                "operand 0 at 0xffffffffffffffff is not aligned");
        caught(
                [] { /* the algorithm was chosen for a bias with more alignment */
                     float *x = device_floats(2 * SIDE * SIDE);
                     small_product p(0, x);
                     p.set_bias(x + 1);
                     p.run(x, x, x);
                },
                "no bias, or one that is not aligned");
}

int main()
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_are_read_late),
                cmocka_unit_test(wrong_products_are_caught),
        };
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
#else /* which has no lists */
int main()
{
        return 77;
}
#endif
