/* searchsorted.cu - places of values in sorted lines, by bisection: a thread for each value. */
#include "cuda.h"

/* Returns whether a is less than b, where NaN is the greatest. */
template <typename H> static __device__ inline bool less(H a, H b)
{
        return a < b || (b != b && a == a);
}

template <typename H> static __global__ void search_loop(lg_searchsorted_args a)
{
        for (int64_t i = LG_FIRST; i < a.lines * a.count; i += LG_STEP) {
                const int64_t line = i / a.count * a.n;
                const H v = lg_load<H>(a.values, a.dtype, i);
                int64_t first = 0, n = a.n;
                while (n > 0) {
                        const int64_t half = n / 2;
                        const H middle = lg_load<H>(a.sorted, a.dtype, line + first + half);
                        const bool after = a.right ? less(v, middle) : !less(middle, v);
                        first += after ? 0 : half + 1;
                        n = after ? half : n - half - 1;
                }
                a.places[i] = first;
        }
}

extern "C" bool lg_cuda_searchsorted(lg_queue *q, const lg_searchsorted_args *a)
{
        const int64_t n = a->lines * a->count;
        return n == 0 || LG_WITH_COMPUTE(a->dtype, lg_launch(q, "searchsorted", search_loop<H>, lg_blocks(q, n), *a));
}
