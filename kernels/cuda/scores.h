/* scores.h - the greatest score of a row and the sum of its exponentials, for softmax and cross-entropy. */
#ifndef LG_CUDA_SCORES_H
#define LG_CUDA_SCORES_H

#include "rows.h"

static __device__ inline float lg_exp(float x)
{
        return expf(x);
}
static __device__ inline double lg_exp(double x)
{
        return exp(x);
}

/* The greatest of some numbers and the sum of exp(x - top), updated by take(). Without numbers: -infinity and 0. */
template <typename H> struct lg_running {
        H top, sum;
        template <int V> __device__ inline void take(const H *x)
        {
                H most = top;
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        most = lg_greater(most, x[j]);
                if (most == -INFINITY)
                        return;
                sum *= lg_exp(top - most);
                LG_UNROLL
                for (int j = 0; j < V; j++)
                        sum += lg_exp(x[j] - most);
                top = most;
        }
        /* Returns the sum of exp(x - most), for `most` >= top. */
        __device__ inline H below(H most) const
        {
                return top == -INFINITY ? (H)0 : sum * lg_exp(top - most);
        }
};

/* A row minus its greatest score, in the registers of a team (if E > 0), and the sum of its exponentials. */
template <typename T, int TEAM, int E, int V> struct lg_scores {
        typedef LG_COMPUTE(T) H;
        H v[E ? E : 1];
        H top, sum;
        const T *x;

        __device__ inline void measure(const T *row, int64_t n, H *shared)
        {
                x = row;
                if (E == 0) {
                        lg_running<H> r = {-INFINITY, 0};
                        lg_each<TEAM, E, V>(n, [&](int, int64_t i) {
                                H d[V];
                                lg_read<T, V>(x + i, d);
                                r.template take<V>(d);
                        });
                        top = lg_team_max<TEAM>(r.top, shared);
                        sum = lg_team_sum<TEAM>(r.below(top), shared);
                        return;
                }
                top = -INFINITY;
                sum = 0;
                lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                        lg_read<T, V>(x + i, v + k);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                top = lg_greater(top, v[k + j]);
                });
                top = lg_team_max<TEAM>(top, shared);
                lg_each<TEAM, E, V>(n, [&](int k, int64_t) {
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                sum += lg_exp(v[k + j] -= top);
                });
                sum = lg_team_sum<TEAM>(sum, shared);
        }

        /* Calls f(i, d) for every V of this thread's scores, d, from i on, minus the greatest; f may change d. */
        template <typename F> __device__ inline void each(int64_t n, const F &f)
        {
                lg_each<TEAM, E, V>(n, [&](int k, int64_t i) {
                        H d[V];
                        if (E == 0)
                                lg_read<T, V>(x + i, d);
                        LG_UNROLL
                        for (int j = 0; j < V; j++)
                                d[j] = E == 0 ? d[j] - top : v[E ? k + j : 0];
                        f(i, d);
                });
        }
};

#endif
