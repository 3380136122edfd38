/* statistics.h - order statistics, counting, distinct values, and searching in sorted values.
 *
 * Unless their comments say otherwise, these functions take tensors of every dtype and return values of x's dtype on
 * x's device. NaN is greater than every number. Functions that work along one dimension count a 0-d tensor as one
 * element along dimension 0; where the dimension is the option .dims, it lists at most one, by default none: then they
 * take all elements in row-major order. Gradients, of any order, flow to the selected elements. Options such as
 * .indices receive i64 tensors without a gradient; a call that fails leaves them alone.
 */
#ifndef LG_STATISTICS_H
#define LG_STATISTICS_H

#include "grad/ops.h"

LG_BEGIN

/* ---- order statistics ---- */

/* Options of lg_kthvalue() and lg_mode(). */
typedef struct lg_kthvalue_options {
        LG_OPTIONS_HEAD
        bool keep_dim LG_DEFAULT;       /* keep the dimension, with size 1; default false, it is removed */
        lg_tensor **indices LG_DEFAULT; /* receives the indices of the values in x; default: not wanted */
} lg_kthvalue_options;
/* Returns the k-th smallest elements along a dimension; k counts from 1. Of equal elements, the index of the one that
 * lg_sort() puts there is given.
 * Example: lg_kthvalue(x, 2, -1, .indices = &i) */
#define lg_kthvalue(...)                                                                                               \
        LG_CALL3(lg_kthvalue_with, lg_kthvalue_options, lg_kthvalue_takes_x_k_dim, V, I, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_kthvalue_with(lg_tensor *x, int64_t k, int dim, const lg_kthvalue_options *options);

/* Returns the most frequent elements along a dimension that is not empty: of equally frequent ones the smallest, with
 * the index of its last occurrence. Each NaN counts as a value of its own.
 * Example: lg_mode(x, -1, .indices = &i) */
#define lg_mode(...) LG_CALL2(lg_mode_with, lg_kthvalue_options, lg_mode_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_mode_with(lg_tensor *x, int dim, const lg_kthvalue_options *options);

/* Options of lg_median() and lg_nanmedian(). */
typedef struct lg_median_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;  /* the dimension; default: all elements */
        bool keep_dim LG_DEFAULT; /* keep the dimension, with size 1; default false, it is removed */
        lg_tensor **indices
                LG_DEFAULT; /* receives the indices of the values along the dimension; default: not wanted */
} lg_median_options;
/* Returns the median, the lower one of two. lg_median() gives NaN if there is one, lg_nanmedian() leaves NaN out and
 * gives NaN only if there is nothing else. The median of an empty float tensor is NaN; an empty dimension is
 * LG_ERR_SHAPE.
 * Examples: lg_median(x), lg_median(x, .dims = LG_DIMS(1), .indices = &i), lg_nanmedian(x) */
#define lg_median(...) LG_CALL1(lg_median_with, lg_median_options, lg_median_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_median_with(lg_tensor *x, const lg_median_options *options);
#define lg_nanmedian(...) LG_CALL1(lg_nanmedian_with, lg_median_options, lg_nanmedian_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nanmedian_with(lg_tensor *x, const lg_median_options *options);

/* How a quantile between two elements a <= b is computed from them. */
typedef enum lg_interpolation {
        LG_QUANTILE_LINEAR = 0,   /* a + (b - a) times the fraction of the way from a to b */
        LG_QUANTILE_LOWER = 1,    /* a */
        LG_QUANTILE_HIGHER = 2,   /* b */
        LG_QUANTILE_MIDPOINT = 3, /* (a + b) / 2 */
        LG_QUANTILE_NEAREST = 4,  /* the nearer one; halfway, the one at an even rank */
} lg_interpolation;
/* Options of lg_quantile() and lg_nanquantile(). */
typedef struct lg_quantile_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT;                   /* the dimension; default: all elements */
        bool keep_dim LG_DEFAULT;                  /* keep the dimension, with size 1; default false, it is removed */
        lg_interpolation interpolation LG_DEFAULT; /* default LG_QUANTILE_LINEAR */
} lg_quantile_options;
/* Returns quantiles of a tensor of a float dtype that is not empty: the element at rank q (n - 1) of the n sorted ones,
 * for each q of the list, from 0 to 1. One q gives a result of that shape; several are along a new first dimension. The
 * result is NaN where an element is NaN; lg_nanquantile() leaves NaN out. As in PyTorch, interpolation at an infinite
 * element gives NaN.
 * Examples: lg_quantile(x, LG_NUMBERS(0.5)), lg_quantile(x, LG_NUMBERS(0.25, 0.75), .dims = LG_DIMS(0)),
 * lg_nanquantile(x, LG_NUMBERS(0.9), .interpolation = LG_QUANTILE_LOWER) */
#define lg_quantile(...) LG_CALL2(lg_quantile_with, lg_quantile_options, lg_quantile_takes_x_q, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_quantile_with(lg_tensor *x, lg_numbers_in q, const lg_quantile_options *options);
#define lg_nanquantile(...)                                                                                            \
        LG_CALL2(lg_nanquantile_with, lg_quantile_options, lg_nanquantile_takes_x_q, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nanquantile_with(lg_tensor *x, lg_numbers_in q, const lg_quantile_options *options);

/* Options of lg_cummax() and lg_cummin(). */
typedef struct lg_cummax_options {
        LG_OPTIONS_HEAD
        lg_tensor **indices LG_DEFAULT; /* receives the indices of the values in x; default: not wanted */
} lg_cummax_options;
/* Returns running maxima or minima along a dimension: y[i] = max(x[0] ... x[i]). Of equal elements the last one is
 * chosen, and from the first NaN on the results are NaN.
 * Examples: lg_cummax(x, 0, .indices = &i), lg_cummin(x, -1) */
#define lg_cummax(...) LG_CALL2(lg_cummax_with, lg_cummax_options, lg_cummax_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cummax_with(lg_tensor *x, int dim, const lg_cummax_options *options);
#define lg_cummin(...) LG_CALL2(lg_cummin_with, lg_cummax_options, lg_cummin_takes_x_dim, V, I, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_cummin_with(lg_tensor *x, int dim, const lg_cummax_options *options);

/* ---- distinct values and counts ---- */

/* Options of lg_unique() and lg_unique_consecutive(). */
typedef struct lg_unique_options {
        LG_OPTIONS_HEAD
        lg_dims dims LG_DEFAULT; /* the dimension whose slices are compared; default: elements are compared */
        lg_tensor **inverse
                LG_DEFAULT; /* receives the place of each element or slice in the result; default: not wanted */
        lg_tensor **counts LG_DEFAULT; /* receives how often each value of the result occurs; default: not wanted */
} lg_unique_options;
/* Returns the distinct elements of x, sorted, as a 1-d tensor, or its distinct slices along a dimension, sorted by
 * their elements in row-major order. .inverse has x's shape, or is 1-d for slices. NaN is distinct from every NaN. Has
 * no gradient. Waits for the device, because the number of values is the size of the result.
 * Examples: lg_unique(x, .inverse = &i, .counts = &n), lg_unique(x, .dims = LG_DIMS(0)) */
#define lg_unique(...) LG_CALL1(lg_unique_with, lg_unique_options, lg_unique_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_unique_with(lg_tensor *x, const lg_unique_options *options);

/* Returns x, flattened, or its slices along a dimension, without those that equal the one before. Options are those of
 * lg_unique(), and it waits as that does.
 * Example: lg_unique_consecutive(x, .counts = &n) */
#define lg_unique_consecutive(...)                                                                                     \
        LG_CALL1(lg_unique_consecutive_with, lg_unique_options, lg_unique_consecutive_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_unique_consecutive_with(lg_tensor *x, const lg_unique_options *options);

typedef struct lg_bincount_options {
        LG_OPTIONS_HEAD
        lg_tensor *weights LG_DEFAULT; /* added instead of 1 for each element of x; of x's shape; default: none */
        int64_t minlength LG_DEFAULT;  /* the least size of the result; default 0 */
} lg_bincount_options;
/* Counts how often each whole number occurs in x, a 1-d tensor of integers that are not negative: the result y has size
 * max(x) + 1, and y[k] is the number of elements equal to k, as i64, or the sum of their weights, as f32 if these are
 * f32 and else f64. Gradients flow to the weights. Waits for the device, because max(x) determines the size.
 * Example: lg_bincount(x, .weights = w, .minlength = 10) */
#define lg_bincount(...) LG_CALL1(lg_bincount_with, lg_bincount_options, lg_bincount_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bincount_with(lg_tensor *x, const lg_bincount_options *options);

typedef struct lg_histc_options {
        LG_OPTIONS_HEAD
        int64_t bins LG_DEFAULT; /* the number of bins; default 100 */
        double min LG_DEFAULT;   /* the lower end of the first bin; default 0 */
        double max LG_DEFAULT;   /* the upper end of the last bin, which includes it; default 0 */
} lg_histc_options;
/* Counts the elements of x, of a float dtype, in bins of equal width, as x's dtype; elements outside and NaN are not
 * counted. If .min and .max are equal, as by default, the bins range from the least to the greatest element, and the
 * call waits for the device to read them; if these are equal, too, from 1 below to 1 above. Has no gradient.
 * Example: lg_histc(x, .bins = 10, .min = -1, .max = 1) */
#define lg_histc(...) LG_CALL1(lg_histc_with, lg_histc_options, lg_histc_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_histc_with(lg_tensor *x, const lg_histc_options *options);

/* Counts the elements that are not 0, as i64; a reduction as those of ops.h. NaN counts.
 * Example: lg_count_nonzero(x, .dims = LG_DIMS(1)) */
#define lg_count_nonzero(...)                                                                                          \
        LG_CALL1(lg_count_nonzero_with, lg_reduce_options, lg_count_nonzero_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_count_nonzero_with(lg_tensor *x, const lg_reduce_options *options);

/* ---- searching ---- */

/* Options of lg_searchsorted() and lg_bucketize(). */
typedef struct lg_searchsorted_options {
        LG_OPTIONS_HEAD
        bool right LG_DEFAULT; /* places after equal elements instead of before them; default false */
} lg_searchsorted_options;
/* Returns where values would be inserted in sorted ones to keep the order: i64 numbers of elements that are less than
 * the value or, with .right, not greater. `sorted` is 1-d, or has the shape of `values` except in the last dimension,
 * along which its lines are ascending. The two are promoted to one dtype. Has no gradient.
 * Example: lg_searchsorted(sorted, values, .right = true) */
#define lg_searchsorted(...)                                                                                           \
        LG_CALL2(lg_searchsorted_with, lg_searchsorted_options, lg_searchsorted_takes_sorted_values, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_searchsorted_with(lg_tensor *sorted, lg_tensor *values,
                                              const lg_searchsorted_options *options);

/* Returns lg_searchsorted(boundaries, x) for 1-d boundaries: the bucket of each element of x.
 * Example: lg_bucketize(x, boundaries) */
#define lg_bucketize(...)                                                                                              \
        LG_CALL2(lg_bucketize_with, lg_searchsorted_options, lg_bucketize_takes_x_boundaries, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_bucketize_with(lg_tensor *x, lg_tensor *boundaries, const lg_searchsorted_options *options);

typedef struct lg_isin_options {
        LG_OPTIONS_HEAD
        bool invert LG_DEFAULT; /* whether an element is missing instead; default false */
} lg_isin_options;
/* Returns a bool tensor of x's shape: whether each element equals one of `test`, of any shape. NaN equals none.
 * Example: lg_isin(x, test, .invert = true) */
#define lg_isin(...) LG_CALL2(lg_isin_with, lg_isin_options, lg_isin_takes_x_test, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_isin_with(lg_tensor *x, lg_tensor *test, const lg_isin_options *options);

/* ---- reductions that leave NaN out, and pairs of reductions ----
 *
 * Options are those of ops.h.
 */

/* Computes the sum, or the mean for float dtypes, of the elements that are not NaN: lg_sum() and lg_mean() otherwise.
 * Examples: lg_nansum(x, .dims = LG_DIMS(0)), lg_nanmean(x) */
#define lg_nansum(...) LG_CALL1(lg_nansum_with, lg_reduce_options, lg_nansum_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nansum_with(lg_tensor *x, const lg_reduce_options *options);
#define lg_nanmean(...) LG_CALL1(lg_nanmean_with, lg_reduce_options, lg_nanmean_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_nanmean_with(lg_tensor *x, const lg_reduce_options *options);

/* Returns lg_amin() and stores lg_amax() in *ret_max. Example: lg_aminmax(x, &max, .dims = LG_DIMS(1)) */
#define lg_aminmax(...) LG_CALL2(lg_aminmax_with, lg_reduce_options, lg_aminmax_takes_x_ret_max, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_aminmax_with(lg_tensor *x, lg_tensor **ret_max, const lg_reduce_options *options);

/* Returns lg_var() or lg_std() and stores lg_mean() in *ret_mean.
 * Examples: lg_var_mean(x, &mean, .dims = LG_DIMS(1)), lg_std_mean(x, &mean) */
#define lg_var_mean(...) LG_CALL2(lg_var_mean_with, lg_var_options, lg_var_mean_takes_x_ret_mean, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_var_mean_with(lg_tensor *x, lg_tensor **ret_mean, const lg_var_options *options);
#define lg_std_mean(...) LG_CALL2(lg_std_mean_with, lg_var_options, lg_std_mean_takes_x_ret_mean, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_std_mean_with(lg_tensor *x, lg_tensor **ret_mean, const lg_var_options *options);

/* ---- differences ---- */

typedef struct lg_diff_options {
        LG_OPTIONS_HEAD
        int64_t n LG_DEFAULT;          /* how often differences are taken; default 1; LG_ZERO_INT for 0 */
        int64_t dim LG_DEFAULT;        /* the dimension; default -1; LG_ZERO_INT for 0 */
        lg_tensor *prepend LG_DEFAULT; /* joined to x before its first elements along the dimension; default: none */
        lg_tensor *append LG_DEFAULT;  /* joined to x after its last elements along the dimension; default: none */
} lg_diff_options;
/* Computes differences along a dimension: y[i] = x[i + 1] - x[i]; of bool, whether the two differ. The dimension
 * becomes shorter by n, down to 0.
 * Example: lg_diff(x, .n = 2, .dim = LG_ZERO_INT) */
#define lg_diff(...) LG_CALL1(lg_diff_with, lg_diff_options, lg_diff_takes_x, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_diff_with(lg_tensor *x, const lg_diff_options *options);

LG_END_C
#endif
