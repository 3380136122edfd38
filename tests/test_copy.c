/* test_copy.c - copies to another dtype and to another device. */
#include "test.h"

static const lg_dtype all[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
#define ALL ((int)(sizeof all / sizeof *all))

/* Values that tell rounding and range apart; the references are worked out by hand from the formats. */
TEST_CASE(casts)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((double[]){1.0 / 3, -2.7, 300, 65504, 1e-7, 70000}), LG_SHAPE(6), .dtype = LG_F64);
        assert_list(lg_cast(x, LG_F32), 0, 1.0f / 3, -2.7f, 300, 65504, 1e-7f, 70000);
        /* 1/3 is 0x3555, -2.7 is 0xc166; 1e-7 is nearest to 2 units of 2^-24; 70000 overflows */
        assert_list(lg_cast(x, LG_F16), 0, 0x555p-12, -0x566p-9, 300, 65504, 0x1p-23, INFINITY);
        /* 1/3 is 0x3eab, 65504 rounds to 65536, 70000 to 137 * 512 */
        assert_list(lg_cast(x, LG_BF16), 1e-10, 0xabp-9, -0xadp-6, 300, 65536, 0xd7p-31, 70144);
        assert_list(lg_cast(x, LG_I32), 0, 0, -2, 300, 65504, 0, 70000);
        assert_list(lg_cast(x, LG_I64), 0, 0, -2, 300, 65504, 0, 70000);
        assert_list(lg_cast(x, LG_BOOL), 0, 1, 1, 1, 1, 1, 1);
        assert_ptr_equal(lg_cast(x, LG_F64), x);
        lg_tensor *small = lg_from(c, ((uint8_t[]){0, 1, 255}), LG_SHAPE(3), .dtype = LG_U8);
        for (int i = 0; i < ALL; i++)
                for (int j = 0; j < ALL; j++) {
                        bool is_bool = all[i] == LG_BOOL || all[j] == LG_BOOL;
                        lg_tensor *t = lg_cast(lg_cast(small, all[i]), all[j]);
                        assert_int_equal(lg_dtype_of(t), all[j]);
                        assert_list(t, 0, 0, 1, is_bool ? 1 : 255);
                }
        lg_tensor *strided = lg_cast(lg_slice(lg_arange(c, 0, 10, 1), 0, 1, LG_MAX, .step = 3), LG_F32);
        assert_list(strided, 0, 1, 4, 7);
        drop(lg_cast(x, (lg_dtype)50));
        assert_error(c, LG_ERR_DTYPE, "cast");
        lg_close(c);
}

TEST_CASE(moving)
{
        if (!getenv("LIBGRAD_SHADOW")) /* a program compiled by hand may run without it */
                skip();
        lg_ctx *c = open_ctx();
        lg_device here = test_device(c), cpu = lg_cpu(), shadow = lg_parse_device(c, "shadow:1");
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 6, 1, .dtype = LG_F32), LG_SHAPE(2, 3));
        assert_ptr_equal(lg_to(x, here), x);
        lg_tensor *there = lg_to(x, shadow);
        assert_true(lg_device_equal(lg_device_of(there), shadow));
        assert_list(there, 0, 0, 1, 2, 3, 4, 5);
        assert_list(lg_to(lg_transpose(there, 0, 1), cpu), 0, 0, 3, 1, 4, 2, 5);
        lg_tensor *copy = lg_copy(x, LG_NO_DEVICE);
        assert_true(lg_device_equal(lg_device_of(copy), here));
        lg_fill_(copy, 1);
        assert_list(x, 0, 0, 1, 2, 3, 4, 5);
        assert_int_equal(lg_numel(lg_to(lg_zeros(c, LG_SHAPE(0, 2)), shadow)), 0);
        drop(lg_add(there, lg_to(x, cpu)));
        assert_error(c, LG_ERR_DEVICE, "lg_to()");
        /* gradients come back to where the input was */
        lg_tensor *w = lg_ones(c, LG_SHAPE(2), .requires_grad = true);
        lg_backward(lg_sum(lg_square(lg_to(w, shadow))));
        assert_ok(c);
        assert_true(lg_device_equal(lg_device_of(lg_grad_of(w)), here));
        assert_list(lg_grad_of(w), 0, 2, 2);
        lg_close(c);
}
