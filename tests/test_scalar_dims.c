/* test_scalar_dims.c - ops along dimension 0 or -1 of a 0-d tensor, which PyTorch takes as one of size 1. */
#include "test.h"

/* An op along dim of a 0-d tensor x, 1.5 in the test; its value and dimensions as PyTorch gives them. */
typedef struct along {
        const char *name;
        lg_tensor *(*op)(lg_tensor *x, int dim);
        double value;
        int ndim;
} along;

static lg_tensor *zero(const lg_tensor *x, int ndim)
{
        return lg_zeros(lg_ctx_of(x), ndim ? LG_SHAPE(1) : LG_SHAPE_0D, .dtype = LG_I64);
}

#define AS_DIMS .dims = LG_DIMS(dim)
#define ALONG(ROW)                                                                                                     \
        ROW(sum, lg_sum(x, AS_DIMS), 1.5, 0)                                                                           \
        ROW(sum_kept, lg_sum(x, AS_DIMS, .keep_dim = true), 1.5, 0)                                                    \
        ROW(mean, lg_mean(x, AS_DIMS), 1.5, 0)                                                                         \
        ROW(nansum, lg_nansum(x, AS_DIMS), 1.5, 0)                                                                     \
        ROW(nanmean, lg_nanmean(x, AS_DIMS), 1.5, 0)                                                                   \
        ROW(amax, lg_amax(x, AS_DIMS), 1.5, 0)                                                                         \
        ROW(amin, lg_amin(x, AS_DIMS), 1.5, 0)                                                                         \
        ROW(argmax, lg_argmax(x, AS_DIMS), 0, 0)                                                                       \
        ROW(argmin, lg_argmin(x, AS_DIMS), 0, 0)                                                                       \
        ROW(prod, lg_prod(x, AS_DIMS), 1.5, 0)                                                                         \
        ROW(any, lg_any(x, AS_DIMS), 1, 0)                                                                             \
        ROW(all, lg_all(x, AS_DIMS), 1, 0)                                                                             \
        ROW(var, lg_var(x, AS_DIMS, .correction = LG_ZERO), 0, 0)                                                      \
        ROW(std, lg_std(x, AS_DIMS, .correction = LG_ZERO), 0, 0)                                                      \
        ROW(norm, lg_norm(x, AS_DIMS), 1.5, 0)                                                                         \
        ROW(norm_of_order_3, lg_norm(x, AS_DIMS, .p = 3), 1.5, 0)                                                      \
        ROW(logsumexp, lg_logsumexp(x, AS_DIMS), 1.5, 0)                                                               \
        ROW(count_nonzero, lg_count_nonzero(x, AS_DIMS), 1, 0)                                                         \
        ROW(aminmax, lg_aminmax(x, &(lg_tensor *){NULL}, AS_DIMS), 1.5, 0)                                             \
        ROW(var_mean, lg_var_mean(x, &(lg_tensor *){NULL}, AS_DIMS, .correction = LG_ZERO), 0, 0)                      \
        ROW(nanquantile, lg_nanquantile(x, LG_NUMBERS(0.5), AS_DIMS), 1.5, 0)                                          \
        ROW(median, lg_median(x, AS_DIMS), 1.5, 0)                                                                     \
        ROW(nanmedian, lg_nanmedian(x, AS_DIMS), 1.5, 0)                                                               \
        ROW(quantile, lg_quantile(x, LG_NUMBERS(0.5), AS_DIMS), 1.5, 0)                                                \
        ROW(kthvalue, lg_kthvalue(x, 1, dim), 1.5, 0)                                                                  \
        ROW(mode, lg_mode(x, dim), 1.5, 0)                                                                             \
        ROW(max, lg_max(x, dim), 1.5, 0)                                                                               \
        ROW(min, lg_min(x, dim, .keep_dim = true), 1.5, 0)                                                             \
        ROW(sort, lg_sort(x, dim), 1.5, 0)                                                                             \
        ROW(argsort, lg_argsort(x, dim), 0, 0)                                                                         \
        ROW(topk, lg_topk(x, 1, dim), 1.5, 0)                                                                          \
        ROW(softmax, lg_softmax(x, dim), 1, 0)                                                                         \
        ROW(softmin, lg_softmin(x, dim), 1, 0)                                                                         \
        ROW(log_softmax, lg_log_softmax(x, dim), 0, 0)                                                                 \
        ROW(gumbel_softmax, lg_gumbel_softmax(x, dim), 1, 0)                                                           \
        ROW(cumsum, lg_cumsum(x, dim), 1.5, 0)                                                                         \
        ROW(cumprod, lg_cumprod(x, dim), 1.5, 0)                                                                       \
        ROW(cummax, lg_cummax(x, dim), 1.5, 0)                                                                         \
        ROW(cummin, lg_cummin(x, dim), 1.5, 0)                                                                         \
        ROW(logcumsumexp, lg_logcumsumexp(x, dim), 1.5, 0)                                                             \
        ROW(flip, lg_flip(x, LG_DIMS(dim)), 1.5, 0)                                                                    \
        ROW(transpose, lg_transpose(x, 0, dim), 1.5, 0)                                                                \
        ROW(movedim, lg_movedim(x, LG_DIMS(dim), LG_DIMS(0)), 1.5, 0)                                                  \
        ROW(squeeze, lg_squeeze(x, LG_DIMS(dim)), 1.5, 0)                                                              \
        ROW(unsqueeze, lg_unsqueeze(x, dim), 1.5, 1)                                                                   \
        ROW(flatten, lg_flatten(x, .end_dim = dim ? dim : LG_ZERO_INT), 1.5, 1)                                        \
        ROW(stack, lg_stack(LG_LIST(x), dim), 1.5, 1)                                                                  \
        ROW(normalize, lg_normalize(x, dim), 1, 0)                                                                     \
        ROW(cosine_similarity, lg_cosine_similarity(x, x, dim), 1, 0)                                                  \
        ROW(gather, lg_gather(x, dim, zero(x, 0)), 1.5, 0)                                                             \
        ROW(scatter, lg_scatter(x, dim, zero(x, 0), x), 1.5, 0)                                                        \
        ROW(scatter_add, lg_scatter_add(x, dim, zero(x, 0), x), 3, 0)                                                  \
        ROW(scatter_scalar, lg_scatter_scalar(x, dim, zero(x, 0), 7), 7, 0)                                            \
        ROW(scatter_reduce, lg_scatter_reduce(x, dim, zero(x, 0), x, LG_SCATTER_PROD), 2.25, 0)                        \
        ROW(index_select, lg_index_select(x, dim, zero(x, 1)), 1.5, 0)                                                 \
        ROW(index_select_by_scalar, lg_index_select(x, dim, zero(x, 0)), 1.5, 0)                                       \
        ROW(index_add, lg_index_add(x, dim, zero(x, 1), x), 3, 0)                                                      \
        ROW(index_copy, lg_index_copy(x, dim, zero(x, 1), x), 1.5, 0)                                                  \
        ROW(index_fill, lg_index_fill(x, dim, zero(x, 1), 7), 7, 0)                                                    \
        ROW(index_reduce, lg_index_reduce(x, dim, zero(x, 1), x, LG_SCATTER_PROD), 2.25, 0)

#define FUNCTION(name, call, value, ndim)                                                                              \
        static lg_tensor *along_##name(lg_tensor *x, int dim)                                                          \
        {                                                                                                              \
                return call;                                                                                           \
        }
ALONG(FUNCTION)
#define ENTRY(name, call, value, ndim) {#name, along_##name, value, ndim},
static const along table[] = {ALONG(ENTRY)};
enum { ROWS = sizeof table / sizeof *table };

static lg_tensor *run_row(lg_ctx *c, lg_list in, void *user)
{
        const along *row = user;
        (void)c;
        return row->op(in.items[0], -1);
}

TEST_CASE(values)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ROWS; i++)
                for (int dim = -1; dim <= 0; dim++) {
                        lg_tensor *y = table[i].op(lg_scalar(c, 1.5), dim);
                        if (!y || lg_ndim_of(y) != table[i].ndim || fabs(lg_item(y) - table[i].value) > 1e-6)
                                fail_msg("%s, dim %d: %g, %d dimensions, %s", table[i].name, dim, y ? lg_item(y) : 0,
                                         lg_ndim_of(y), lg_error(c) ? lg_error(c) : "no error");
                }
        lg_close(c);
}

TEST_CASE(derivatives)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ROWS; i++) {
                along row = table[i];
                lg_tensor *x = lg_full(c, LG_SHAPE_0D, 1.5, .dtype = LG_F64, .requires_grad = true);
                lg_dtype dtype;
                lg_no_grad(c) dtype = lg_dtype_of(row.op(x, -1));
                const bool random = !strcmp(row.name, "gumbel_softmax"), flat = !strcmp(row.name, "std");
                if (dtype != LG_F64 || random || flat)
                        continue;
                if (!lg_gradcheck(c, run_row, LG_LIST(x), .user = &row) ||
                    !lg_gradgradcheck(c, run_row, LG_LIST(x), .user = &row))
                        fail_msg("%s: %s", row.name, lg_error(c));
        }
        lg_close(c);
}

TEST_CASE(other_dimensions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_scalar(c, 1.5), *two = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64);
        for (int i = 0; i < ROWS; i++)
                for (int dim = -2; dim <= 1; dim += 3) {
                        if (table[i].op(x, dim))
                                fail_msg("%s takes dimension %d", table[i].name, dim);
                        assert_error(c, LG_ERR_ARGUMENT, "there is no dimension");
                }
        assert_fails(c, lg_sum(x, .dims = LG_DIMS(1)), LG_ERR_ARGUMENT, "1 in a tensor of 0 dimensions");
        assert_fails(c, lg_sum(x, .dims = LG_DIMS(0, -1)), LG_ERR_ARGUMENT, "given twice");
        assert_fails(c, lg_topk(x, 2, 0), LG_ERR_ARGUMENT, "topk");
        assert_fails(c, lg_index_select(x, 0, two), LG_ERR_SHAPE, "not one index, for x is 0-d");
        assert_fails(c, lg_index_add(x, 0, two, lg_ones(c, LG_SHAPE(2))), LG_ERR_SHAPE, "not one index");
        lg_close(c);
}

TEST_CASE(refused)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_scalar(c, 1.5), *parts[2];
        assert_fails(c, lg_roll(x, 1, 0), LG_ERR_ARGUMENT, "roll");
        assert_fails(c, lg_select(x, 0, 0), LG_ERR_ARGUMENT, "select");
        assert_fails(c, lg_slice(x, 0, 0, 1), LG_ERR_ARGUMENT, "slice");
        assert_fails(c, lg_narrow(x, 0, 0, 1), LG_ERR_ARGUMENT, "narrow");
        assert_fails(c, lg_cat(LG_LIST(x, x), 0), LG_ERR_ARGUMENT, "cat");
        assert_fails(c, lg_split(x, 1, 0, parts, 2) > 0, LG_ERR_ARGUMENT, "split");
        assert_fails(c, lg_unbind(x, 0, parts, 2) > 0, LG_ERR_ARGUMENT, "unbind");
        assert_fails(c, lg_unflatten(x, 0, LG_SHAPE(1)), LG_ERR_ARGUMENT, "unflatten");
        assert_fails(c, lg_rot90(x, 1, LG_DIMS(0, -1)), LG_ERR_SHAPE, "two dimensions at least");
        assert_fails(c, lg_renorm(x, 2, 0, 1), LG_ERR_SHAPE, "renorm");
        assert_fails(c, lg_glu(x, 0), LG_ERR_SHAPE, "glu");
        assert_fails(c, lg_diff(x), LG_ERR_ARGUMENT, "diff");
        assert_fails(c, lg_unique(x, .dims = LG_DIMS(0)), LG_ERR_ARGUMENT, "unique");
        assert_fails(c, lg_cross(x, x, 0), LG_ERR_ARGUMENT, "cross");
        assert_fails(c, lg_tensordot(x, x, .dims_a = LG_DIMS(0), .dims_b = LG_DIMS(0)), LG_ERR_ARGUMENT, "tensordot");
        assert_fails(c, lg_permute(x, LG_DIMS(0)), LG_ERR_ARGUMENT, "permute");
        lg_close(c);
}
