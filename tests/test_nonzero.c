/* test_nonzero.c - the places and the elements that are not zero, whose number is known only on the device. */
#include "failing.h"
#include "golden.h"

/* Places and elements against plain loops: in every layout, of dtypes that count, with few, half and all true. */
static void check_picked(lg_ctx *c, lg_tensor *x)
{
        enum { ROOM = 8192 };
        int64_t n = lg_numel(x), count = 0;
        int ndim = lg_ndim_of(x);
        double *v = calloc(ROOM, sizeof *v), *picked = calloc(ROOM, sizeof *v);
        double *where = calloc(ROOM * LG_MAX_DIMS, sizeof *v);
        read_all(x, v, ROOM);
        for (int64_t i = 0; i < n; i++) {
                if (v[i] == 0)
                        continue;
                for (int64_t d = ndim - 1, rest = i; d >= 0; rest /= lg_size_of(x, (int)d), d--)
                        where[count * ndim + d] = (double)(rest % lg_size_of(x, (int)d));
                picked[count++] = v[i];
        }
        lg_tensor *places = lg_nonzero(x), *y = lg_masked_select(x, lg_ne_scalar(x, 0));
        assert_ok(c);
        assert_shape(places, LG_SHAPE(count, ndim));
        assert_int_equal(lg_dtype_of(places), LG_I64);
        assert_values(places, where, count * ndim, 0);
        assert_shape(y, LG_SHAPE(count));
        assert_int_equal(lg_dtype_of(y), lg_dtype_of(x));
        assert_values(y, picked, count, 0);
        free(v);
        free(picked);
        free(where);
}

TEST_CASE(places_and_elements)
{
        lg_ctx *c = open_ctx();
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                lg_tensor *x = lg_cast(lg_randint(c, 0, 3, LG_SHAPE(2, 3, 4)), dtypes[d]);
                check_picked(c, x);
                check_picked(c, lg_transpose(x, 0, 2));
                check_picked(c, lg_flip(x, LG_DIMS(1)));
                check_picked(c, lg_slice(x, 2, 1, LG_MAX, .step = 2));
                check_picked(c, lg_expand(lg_slice(x, 1, 0, 1), LG_SHAPE(5, 2, 3, 4)));
        }
        lg_tensor *many = lg_uniform(c, -1, 1, LG_SHAPE(40, 200));
        for (int k = -1; k < 2; k++)
                check_picked(c, lg_mul(many, lg_gt_scalar(many, k * 0.99)));
        check_picked(c, lg_zeros(c, LG_SHAPE(3, 2)));
        check_picked(c, lg_zeros(c, LG_SHAPE(0)));
        check_picked(c, lg_zeros(c, LG_SHAPE(2, 0, 3)));
        check_picked(c, lg_ones(c, LG_SHAPE(1, 1, 1, 2, 1, 1, 1, 1)));
        assert_shape(lg_nonzero(lg_scalar(c, 5)), LG_SHAPE(1, 0));
        assert_shape(lg_nonzero(lg_scalar(c, 0)), LG_SHAPE(0, 0));
        assert_list(lg_nonzero(lg_from(c, ((float[]){0, NAN, -0.0f, INFINITY}), LG_SHAPE(4))), 0, 1, 3);
        lg_tensor *yes = lg_full(c, LG_SHAPE_0D, 1, .dtype = LG_BOOL), *no = lg_logical_not(yes);
        assert_list(lg_masked_select(lg_scalar(c, 5), yes), 0, 5);
        assert_shape(lg_masked_select(lg_scalar(c, 5), no), LG_SHAPE(0));
        assert_list(lg_masked_select(lg_from(c, ((int64_t[]){4, 5}), LG_SHAPE(2)), yes), 0, 4, 5);
        assert_list(lg_masked_select(lg_scalar(c, 5), lg_gt_scalar(lg_from(c, ((int64_t[]){1, 2, 3}), LG_SHAPE(3)), 1)),
                    0, 5, 5);
        assert_ok(c);
        lg_close(c);
}

/* The gradient goes where the elements were, once for each time; nothing stays behind but the result. */
TEST_CASE(picked_gradients)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, NAN, 3, 4}), LG_SHAPE(2, 2), .requires_grad = true);
        lg_backward(lg_sum(lg_square(lg_masked_select(x, lg_eq(x, x)))));
        assert_list(lg_grad_of(x), 0, 2, 0, 6, 8);
        lg_tensor *row = lg_from(c, ((float[]){1, 2}), LG_SHAPE(2), .requires_grad = true);
        lg_backward(lg_sum(lg_masked_select(row, lg_ne_scalar(lg_detach(x), 3)))); /* NaN is not 3 */
        assert_list(lg_grad_of(row), 0, 1, 2);
        lg_tensor *none = lg_masked_select(row, lg_zeros(c, LG_SHAPE(2), .dtype = LG_BOOL)), *g;
        lg_grad(LG_LIST(lg_sum(none)), LG_LIST(row), .result = &g);
        assert_list(g, 0, 0, 0);
        assert_ok(c);
        lg_tensor *mask = lg_eq(x, x);
        int64_t before = lg_live_tensors(c);
        drop(lg_nonzero(x));
        assert_int_equal(lg_live_tensors(c), before + 1);
        drop(lg_masked_select(row, mask));
        assert_int_equal(lg_live_tensors(c), before + 2);
        lg_close(c);
}

/* A mask and what it picks from; without x: the places. */
static lg_tensor *pick(lg_ctx *c, void *user)
{
        (void)c;
        lg_tensor *const *in = user;
        return in[1] ? lg_masked_select(in[1], in[0]) : lg_nonzero(in[0]);
}

/* A call that finds no memory leaves nothing behind. */
TEST_CASE(picked_without_memory)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(30, 900), .requires_grad = true), *mask = lg_gt_scalar(x, 0);
        assert_true(fail_each(c, &f, true, pick, (lg_tensor *[]){x, NULL}) > 2);
        assert_true(fail_each(c, &f, true, pick, (lg_tensor *[]){mask, x}) > 3);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

/* Bytes taken beside what was there, at most, by a call on n elements of which few are not 0. */
static double bytes_for(lg_ctx *c, lg_dtype dtype, bool select, int64_t n)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_cast(lg_eq_scalar(lg_arange(c, 0, (double)n, 1, .dtype = LG_I64), 7), dtype);
        lg_tensor *mask = lg_cast(x, LG_BOOL);
        assert_true(lg_synchronize(c));
        const lg_device device = lg_default_device(c);
        const double used = (double)lg_memory_stats(c, device).used;
        lg_reset_peak_memory(c, device);
        lg_tensor *y = select ? lg_masked_select(x, mask) : lg_nonzero(x);
        assert_list(y, 0, select ? 1 : 7);
        const double bytes = (double)lg_memory_stats(c, device).peak - used;
        lg_scope_end(c, scope);
        return bytes;
}

/* What is found is all that takes memory, but for a number for each chunk; of any dtype. */
TEST_CASE(little_memory)
{
        enum { MANY = 1 << 20 };
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < 2 * sizeof dtypes / sizeof *dtypes; i++)
                assert_true(bytes_for(c, dtypes[i / 2], i & 1, MANY) < 0.01 * MANY);
        assert_ok(c);
        lg_close(c);
}

/* Around the ends of chunks, and subnormal numbers. */
TEST_CASE(chunks_and_small_numbers)
{
        lg_ctx *c = open_ctx();
        for (int64_t n = 4095; n < 8200; n += n == 4097 ? 4094 : 1) {
                lg_tensor *x = lg_sub_scalar(lg_remainder(lg_arange(c, 0, (double)n, 1, .dtype = LG_I64),
                                                          lg_full(c, LG_SHAPE_0D, 3, .dtype = LG_I64)),
                                             1);
                double at[8200];
                int64_t count = 0;
                for (int64_t i = 0; i < n; i++)
                        if (i % 3 != 1)
                                at[count++] = (double)i;
                assert_values(lg_nonzero(x), at, count, 0);
        }
        assert_list(lg_nonzero(lg_from(c, ((double[]){5e-324, -0.0, -5e-324, -INFINITY}), LG_SHAPE(4))), 0, 0, 2, 3);
        assert_list(lg_nonzero(lg_from(c, ((float[]){1e-45f, 0, -1e-45f, NAN}), LG_SHAPE(4))), 0, 0, 2, 3);
        lg_tensor *small = lg_from(c, ((float[]){0x1p-24f, -0.0f, -0x1p-24f, 1}), LG_SHAPE(4));
        assert_list(lg_nonzero(lg_cast(small, LG_F16)), 0, 0, 2, 3);
        assert_list(lg_nonzero(lg_cast(small, LG_BF16)), 0, 0, 2, 3);
        assert_ok(c);
        lg_close(c);
}

#define ROWS(ROW)                                                                                                      \
        ROW(masked_select, lg_masked_select(x, lg_eq_scalar(I64(3, 2, 3, 4), 1)), 2, 3, 4)                             \
        ROW(masked_select_wide, lg_masked_select(x, lg_eq_scalar(I64(3, 2, 1, 5), 1)), 4, 5)                           \
        ROW(masked_select_narrow, lg_masked_select(x, lg_eq_scalar(I64(2, 3, 1), 1)), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "index.txt", golden_input, ROWS);

TEST_CASE(wrong_masks)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3, 2));
        assert_fails(c, lg_masked_select(x, x), LG_ERR_DTYPE, "masked_select: mask is f32 (3, 2)");
        assert_fails(c, lg_masked_select(x, NULL), LG_ERR_ARGUMENT, "masked_select: mask is NULL");
        assert_fails(c, lg_masked_select(x, lg_ones(c, LG_SHAPE(4), .dtype = LG_BOOL)), LG_ERR_SHAPE,
                     "masked_select: the shapes");
        assert_null(lg_nonzero(NULL));
        assert_null(lg_masked_select(NULL, NULL));
        lg_close(c);
}
