/* test_sequence.c - positions, padding and masks of sequences. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(pad_sequence,                                                                                              \
            lg_pad_sequence(LG_LIST(lg_slice(x, 0, 0, 2), lg_square(x), lg_slice(x, 0, 1, 2)), .value = 0.5), 4, 5)    \
        ROW(pad_sequence_batch_first,                                                                                  \
            lg_pad_sequence(LG_LIST(lg_slice(x, 0, 0, 0), lg_slice(x, 0, 0, 1), x), .batch_first = true), 4, 5)

GOLDEN_TEST(as_pytorch_computes_it, "sequence.txt", golden_input, ROWS);

TEST_CASE(rotary_tables)
{
        enum { LENGTH = 5, DIMS = 6 };
        lg_ctx *c = open_ctx();
        double cosines[LENGTH * DIMS / 2], sines[LENGTH * DIMS / 2];
        for (int i = 0; i < LENGTH * DIMS / 2; i++) {
                const double angle = (i / (DIMS / 2) + 1000) * 0.25 * pow(500000, -2.0 * (i % (DIMS / 2)) / DIMS);
                cosines[i] = cos(angle);
                sines[i] = sin(angle);
        }
        for (int d = 0; d < 2; d++) {
                lg_tensor *s = NULL, *t = lg_rotary_table(c, LENGTH, DIMS, &s, .base = 500000, .offset = 1000,
                                                          .scale = 0.25, .dtype = d ? LG_F64 : 0);
                assert_int_equal(lg_dtype_of(t), d ? LG_F64 : LG_F32);
                assert_shape(t, LG_SHAPE(LENGTH, DIMS / 2));
                assert_values(t, cosines, LENGTH * DIMS / 2, d ? 1e-13 : 6e-8);
                assert_values(s, sines, LENGTH * DIMS / 2, d ? 1e-13 : 6e-8);
        }
        lg_tensor *s = NULL;
        assert_list(lg_rotary_table(c, 2, 2, &s), 1e-7, 1, cos(1));
        assert_list(s, 1e-7, 0, sin(1));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(sinusoidal_positions)
{
        lg_ctx *c = open_ctx();
        const double slow = pow(10000, -2.0 / 5), slower = pow(10000, -4.0 / 5);
        assert_list(lg_sinusoidal_positions(c, 2, 5, .dtype = LG_F64), 1e-14, 0, 1, 0, 1, 0, sin(1), cos(1), sin(slow),
                    cos(slow), sin(slower));
        assert_list(lg_sinusoidal_positions(c, 1, 4, .offset = 7, .base = 100), 1e-7, sin(7), cos(7), sin(0.7),
                    cos(0.7));
        lg_tensor *half = lg_sinusoidal_positions(c, 3, 2, .dtype = LG_BF16);
        assert_int_equal(lg_dtype_of(half), LG_BF16);
        assert_shape(lg_sinusoidal_positions(c, 0, 3), LG_SHAPE(0, 3));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_positions)
{
        lg_ctx *c = open_ctx();
        lg_tensor *s = NULL;
        assert_fails(c, lg_rotary_table(c, 3, 5, &s), LG_ERR_ARGUMENT, "dims is 5, which is not even");
        assert_fails(c, lg_rotary_table(c, -1, 4, &s), LG_ERR_ARGUMENT, "length is -1");
        assert_fails(c, lg_rotary_table(c, 3, 0, &s), LG_ERR_ARGUMENT, "dims is 0");
        assert_fails(c, lg_rotary_table(c, 3, 4, NULL), LG_ERR_ARGUMENT, "ret_sin is NULL");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .base = -1), LG_ERR_ARGUMENT, "base is -1");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .base = LG_INFINITY), LG_ERR_ARGUMENT, "base is inf");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .scale = NAN), LG_ERR_ARGUMENT, "scale is nan");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .scale = LG_ZERO), LG_ERR_ARGUMENT, "scale is 0");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .offset = INT64_MAX), LG_ERR_ARGUMENT, "beyond 2^53");
        assert_fails(c, lg_rotary_table(c, 3, 4, &s, .dtype = LG_I64), LG_ERR_DTYPE, "dtype i64");
        assert_fails(c, lg_sinusoidal_positions(c, 3, 4, .dtype = (lg_dtype)77), LG_ERR_DTYPE,
                     "lg_sinusoidal_positions");
        assert_fails(c, lg_sinusoidal_positions(c, -3, 4), LG_ERR_ARGUMENT, "lg_sinusoidal_positions: length is -3");
        assert_null(s);
        lg_close(c);
}

TEST_CASE(padded_sequences)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_arange(c, 1, 4, 1), *y = lg_full(c, LG_SHAPE(1), 9, .dtype = LG_F64), *lengths = NULL;
        lg_tensor *p = lg_pad_sequence(LG_LIST(x, y), .batch_first = true, .value = -1, .lengths = &lengths);
        assert_int_equal(lg_dtype_of(p), LG_F64);
        assert_shape(p, LG_SHAPE(2, 3));
        assert_list(p, 0, 1, 2, 3, 9, -1, -1);
        assert_int_equal(lg_dtype_of(lengths), LG_I64);
        assert_list(lengths, 0, 3, 1);
        assert_list(lg_pad_sequence(LG_LIST(x, x)), 0, 1, 1, 2, 2, 3, 3);
        assert_shape(lg_pad_sequence(LG_LIST(lg_zeros(c, LG_SHAPE(0, 2)))), LG_SHAPE(0, 1, 2));
        assert_null(lg_pad_sequence(LG_LIST_OF(0, NULL)));
        assert_ok(c);
        lengths = NULL;
        assert_fails(c, lg_pad_sequence(LG_LIST(x, lg_scalar(c, 1)), .lengths = &lengths), LG_ERR_SHAPE,
                     "pad_sequence: tensor 1 is f32 ()");
        assert_fails(c, lg_pad_sequence(LG_LIST(lg_scalar(c, 1))), LG_ERR_SHAPE, "(length, ...)");
        assert_fails(c, lg_pad_sequence(LG_LIST(lg_ones(c, LG_SHAPE(2, 3)), lg_ones(c, LG_SHAPE(2, 4)))), LG_ERR_SHAPE,
                     "only their lengths may differ");
        assert_fails(c, lg_pad_sequence(LG_LIST(x, x, lg_arange(c, 0, 5, 1)), .value = NAN, .lengths = &lengths),
                     LG_ERR_ARGUMENT, "pad_sequence: ");
        assert_null(lengths);
        lg_close(c);
}

TEST_CASE(masks)
{
        lg_ctx *c = open_ctx();
        lg_tensor *m = lg_sequence_mask(LIST64(2, 0, 5, 3), 3);
        assert_int_equal(lg_dtype_of(m), LG_BOOL);
        assert_shape(m, LG_SHAPE(4, 3));
        assert_list(m, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1);
        assert_shape(lg_sequence_mask(LIST64(1), 0), LG_SHAPE(1, 0));
        assert_list(lg_sequence_mask(lg_scalar(c, 1, .dtype = LG_I64), 2), 0, 1, 0);
        assert_ok(c);
        assert_fails(c, lg_sequence_mask(LIST64(1), -1), LG_ERR_ARGUMENT, "sequence_mask: length is -1");
        assert_fails(c, lg_sequence_mask(lg_ones(c, LG_SHAPE(2)), 3), LG_ERR_DTYPE, "lengths is f32");
        lg_close(c);
}
