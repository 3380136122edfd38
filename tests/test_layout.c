/* test_layout.c - elementwise results lie as their inputs do, and nobody notices; every op takes inputs of every
 * layout.
 */
#include "rows.h"

/* (2, 3, 4, 5) whose elements lie as (2, 4, 5, 3): 0 ... 119 in row-major order of the shape. */
static lg_tensor *channels_last(lg_ctx *c, lg_tensor **ret_plain)
{
        *ret_plain = lg_reshape(lg_arange(c, 0, 120, 1, .dtype = LG_F64), LG_SHAPE(2, 3, 4, 5));
        return lg_permute(lg_contiguous(lg_permute(*ret_plain, LG_DIMS(0, 2, 3, 1))), LG_DIMS(0, 3, 1, 2));
}

static void assert_laid(const lg_tensor *t, int64_t a, int64_t b, int64_t x, int64_t y)
{
        const int64_t wanted[] = {a, b, x, y};
        for (int i = 0; i < 4; i++)
                assert_int_equal(lg_stride_of(t, i), wanted[i]);
}

static void same_values(lg_tensor *a, lg_tensor *b)
{
        double v[120];
        int64_t n = read_all(b, v, 120);
        assert_values(a, v, n, 0);
}

TEST_CASE(results_lie_as_their_inputs)
{
        lg_ctx *c = open_ctx();
        lg_tensor *plain, *x = channels_last(c, &plain);
        assert_laid(x, 60, 1, 15, 3);
        assert_false(lg_is_contiguous(x));
        lg_tensor *y = lg_mul_scalar(x, 2);
        assert_laid(y, 60, 1, 15, 3);
        same_values(y, lg_mul_scalar(plain, 2));
        assert_laid(lg_add(x, plain), 60, 1, 15, 3); /* the first input decides */
        assert_laid(lg_add(plain, x), 60, 20, 5, 1);
        same_values(lg_sub(plain, x), lg_zeros(c, LG_SHAPE(2, 3, 4, 5), .dtype = LG_F64));
        lg_tensor *bias = lg_reshape(lg_arange(c, 0, 3, 1, .dtype = LG_F64), LG_SHAPE(3, 1, 1));
        assert_laid(lg_add(bias, x), 60, 1, 15, 3);
        same_values(lg_add(bias, x), lg_add(bias, plain));
        assert_laid(lg_where(lg_gt_scalar(plain, 50), x, bias), 60, 20, 5, 1);
        same_values(lg_where(lg_gt_scalar(x, 50), x, bias), lg_where(lg_gt_scalar(plain, 50), plain, bias));
        assert_true(lg_is_contiguous(lg_contiguous(y)));
        same_values(lg_reshape(y, LG_SHAPE(6, 20)), lg_reshape(lg_mul_scalar(plain, 2), LG_SHAPE(6, 20)));
        assert_ok(c);
        lg_close(c);
}

/* Gaps, overlaps and broadcast inputs give row-major results. */
TEST_CASE(only_dense_layouts_are_kept)
{
        lg_ctx *c = open_ctx();
        lg_tensor *plain, *x = channels_last(c, &plain);
        assert_true(lg_is_contiguous(lg_neg(lg_slice(x, 1, 0, 2))));
        assert_true(lg_is_contiguous(lg_neg(lg_expand(lg_slice(x, 0, 0, 1), LG_SHAPE(2, 3, 4, 5)))));
        same_values(lg_neg(lg_slice(x, 1, 0, 2)), lg_neg(lg_slice(plain, 1, 0, 2)));
        assert_true(lg_is_contiguous(lg_neg(lg_transpose(lg_ones(c, LG_SHAPE(0, 3)), 0, 1))));
        lg_tensor *one = lg_transpose(lg_ones(c, LG_SHAPE(1, 3)), 0, 1);
        assert_true(lg_is_contiguous(lg_neg(one)));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(gradients_do_not_see_it)
{
        lg_ctx *c = open_ctx();
        for (int create_graph = 0; create_graph < 2; create_graph++) {
                lg_tensor *plain, *x = channels_last(c, &plain);
                x = lg_set_requires_grad(lg_detach(x), true);
                plain = lg_set_requires_grad(lg_detach(plain), true);
                lg_tensor *a = lg_mul_scalar(x, 0.01), *b = lg_mul_scalar(plain, 0.01);
                lg_backward(lg_sum(lg_mul(lg_tanh(a), lg_add(a, plain))), .create_graph = create_graph);
                lg_tensor *gx = lg_mul_scalar(lg_grad_of(x), 1);
                lg_clear_grad(plain);
                lg_clear_grad(x);
                lg_backward(lg_sum(lg_mul(lg_tanh(b), lg_add(b, x))), .create_graph = create_graph);
                double v[120];
                read_all(lg_grad_of(plain), v, 120);
                assert_values(gx, v, 120, 1e-15);
        }
        assert_ok(c);
        lg_close(c);
}

/* ---- every row on inputs that are views ---- */

enum { FLIPPED_FIRST, FLIPPED_LAST, FLIPPED_ALL, EXPANDED_FIRST, EXPANDED_LAST, STEPS, VIEWS };
static const char *const views[] = {"first dimension flipped",  "last dimension flipped",  "all dimensions flipped",
                                    "first dimension expanded", "last dimension expanded", "every second element"};

/* A view of that shape in memory of its own; NULL if there is none of this kind. */
static lg_tensor *view_of(lg_ctx *c, const row *r, int which, lg_shape shape, int view, lg_dtype dtype)
{
        const bool last = view == FLIPPED_LAST || view == EXPANDED_LAST;
        const bool expanded = view == EXPANDED_FIRST || view == EXPANDED_LAST;
        const int dim = last ? shape.ndim - 1 : 0;
        lg_shape under = shape;
        int64_t n = 1;
        if (shape.ndim == 0)
                return NULL;
        if (expanded)
                under.size[dim] = 1;
        if (view == STEPS)
                under.size[shape.ndim - 1] *= 2;
        for (int i = 0; i < shape.ndim; i++)
                n *= under.size[i];
        double *v = calloc((size_t)n + 1, sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = value(r, which, i);
        lg_tensor *t = lg_from(c, v, under, .dtype = dtype);
        free(v);
        return expanded              ? lg_expand(t, shape)
               : view == STEPS       ? lg_slice(t, -1, 0, LG_MAX, .step = 2)
               : view == FLIPPED_ALL ? lg_flip(t, LG_ALL_DIMS)
                                     : lg_flip(t, LG_DIMS(dim));
}

/* Whether an expanded view, whose rows are equal, was a matrix that the op refuses; clears that error. */
static bool was_singular(lg_ctx *c)
{
        const bool was = lg_error(c) && (strstr(lg_error(c), "singular") || strstr(lg_error(c), "positive definite"));
        if (was)
                lg_clear_error(c);
        return was;
}

/* The result of a case and its gradients, one after the other; -1: its matrix is singular. */
static int64_t run_on(lg_ctx *c, const row *r, int k, lg_tensor **x, int count, double *out, int64_t room)
{
        shapes s;
        lg_tensor *g[MAX_INPUTS] = {NULL};
        lg_seed(c, 1);
        lg_tensor *y = run_case(r, c, x, k, &s);
        lg_synchronize(c);
        if (was_singular(c))
                return -1;
        int64_t n = y ? read_all(y, out, room) : 0;
        assert_ok(c);
        if (!lg_requires_grad(y))
                return n;
        lg_grad(LG_LIST(y), LG_LIST_OF(count, x), .grads = LG_LIST(lg_ones(c, lg_shape_of(y), .dtype = lg_dtype_of(y))),
                .result = g);
        for (int i = 0; i < count; i++)
                n += g[i] ? read_all(g[i], out + n, room - n) : 0;
        assert_ok(c);
        return n;
}

static void check_view(lg_ctx *c, const row *r, int k, const shapes *s, int view, lg_dtype dtype)
{
        enum { ROOM = 4096 };
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x[MAX_INPUTS] = {NULL}, *plain[MAX_INPUTS] = {NULL};
        bool any = false;
        for (int i = 0; i < s->count; i++) {
                lg_tensor *t = view_of(c, r, i, s->shape[i], view, dtype);
                any = any || t;
                t = t ? t : lg_full(c, s->shape[i], value(r, i, 0), .dtype = dtype);
                x[i] = lg_set_requires_grad(t, true);
                plain[i] = lg_set_requires_grad(lg_copy(lg_contiguous(lg_detach(t)), lg_device_of(t)), true);
        }
        double *got = calloc(2 * ROOM, sizeof *got), *want = got + ROOM;
        const int64_t n = any ? run_on(c, r, k, x, s->count, got, ROOM) : 0;
        if (any)
                assert_int_equal(run_on(c, r, k, plain, s->count, want, ROOM), n);
        for (int64_t i = 0; i < n; i++)
                if (!(fabs(got[i] - want[i]) <= (dtype == LG_F64 ? 1e-12 : 1e-4) * fmax(1, fabs(want[i]))) &&
                    got[i] != want[i] && !(isnan(got[i]) && isnan(want[i])))
                        fail_msg("%s, case %d of %s, %s: number %lld is %.9g, not %.9g", r->name, k,
                                 lg_dtype_name(dtype), views[view], (long long)i, got[i], want[i]);
        free(got);
        lg_scope_end(c, scope);
}

TEST_CASE(every_row_takes_views)
{
        lg_ctx *c = open_ctx();
        for (int i = 0; i < ROWS; i++) {
                shapes s;
                int k = 0;
                for (run_case(&rows[i], c, NULL, 0, &s); s.count >= 0; run_case(&rows[i], c, NULL, ++k, &s))
                        for (int view = 0; view < 2 * VIEWS; view++)
                                check_view(c, &rows[i], k, &s, view / 2, view % 2 ? LG_F64 : LG_F32);
        }
        lg_close(c);
}
