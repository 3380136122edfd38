/* test_rotary.c - rotary position embedding: PyTorch's and ONNX's values, shapes of the tables, layouts, errors. */
#include "golden.h"
#include "nodes.h"

#define COS golden_like(x, LG_SHAPE(3, 2), 0.3)
#define SIN golden_like(x, LG_SHAPE(3, 2), 0.9)
#define EACH_COS golden_like(x, LG_SHAPE(2, 3, 2), 0.3)
#define EACH_SIN golden_like(x, LG_SHAPE(2, 3, 2), 0.9)
#define Q golden_like(x, LG_SHAPE(2, 2, 3, 4), 0)
#define ROWS(ROW)                                                                                                      \
        ROW(rotary, lg_rotary(x, COS, SIN), 2, 2, 3, 4)                                                                \
        ROW(rotary_interleaved, lg_rotary(x, COS, SIN, .interleaved = true), 2, 2, 3, 4)                               \
        ROW(rotary_of_samples, lg_rotary(x, EACH_COS, EACH_SIN), 2, 2, 3, 4)                                           \
        ROW(rotary_before_heads,                                                                                       \
            lg_rotary(x, lg_reshape(COS, LG_SHAPE(1, 3, 1, 2)), lg_reshape(SIN, LG_SHAPE(1, 3, 1, 2))), 2, 3, 2, 4)    \
        ROW(rotary_dims, lg_rotary(x, COS, SIN, .dims = 4), 2, 3, 7)                                                   \
        ROW(rotary_dims_interleaved, lg_rotary(x, EACH_COS, EACH_SIN, .interleaved = true, .dims = 4), 2, 3, 7)        \
        ROW(rotary_cos, lg_rotary(Q, x, SIN), 3, 2)                                                                    \
        ROW(rotary_sin, lg_rotary(Q, EACH_COS, x), 2, 3, 2)                                                            \
        ROW(rotary_sin_interleaved, lg_rotary(Q, COS, x, .interleaved = true), 3, 2)

GOLDEN_TEST(as_pytorch_computes_it, "sequence.txt", golden_input, ROWS);

/* ONNX's tables are looked up by position_ids, if there are any; (N, T, heads D) is (N, heads, T, D) in another order.
 */
static lg_tensor *run_node(lg_ctx *c, const node *n)
{
        lg_tensor *x = node_input(c, n, "input"), *cos = node_input(c, n, "cos_cache");
        lg_tensor *sin = node_input(c, n, "sin_cache"), *ids = node_input(c, n, "position_ids");
        const lg_shape s = lg_shape_of(x);
        const int64_t heads = (int64_t)node_attribute(n, "num_heads", 0);
        if (ids) {
                cos = lg_embedding(ids, cos);
                sin = lg_embedding(ids, sin);
        }
        if (s.ndim == 3)
                x = lg_transpose(lg_reshape(x, LG_SHAPE(s.size[0], s.size[1], heads, s.size[2] / heads)), 1, 2);
        lg_tensor *y = lg_rotary(x, cos, sin, .interleaved = node_attribute(n, "interleaved", 0) != 0,
                                 .dims = (int64_t)node_attribute(n, "rotary_embedding_dim", 0));
        return s.ndim == 3 ? lg_reshape(lg_transpose(y, 1, 2), s) : y;
}

TEST_CASE(onnx_node_tests)
{
        nodes all;
        node n;
        int count = 0;
        for (open_nodes(&all, "rotary.txt"); next_node(&all, &n); count++) {
                lg_ctx *c = open_ctx();
                assert_node(&n, "output", run_node(c, &n), 1e-5);
                assert_ok(c);
                lg_close(c);
        }
        close_nodes(&all);
        assert_int_equal(count, 8);
}

/* Sizes that fill vectors and leave rests, in every dtype, beside f64; x of heads within packed rows, and transposed.
 */
TEST_CASE(dtypes_and_layouts)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F16, LG_BF16};
        const double limits[] = {1e-6, 2e-3, 1.6e-2};
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 4; k++) {
                const bool interleaved = k & 1;
                lg_tensor *packed = lg_normal(c, 0, 1, LG_SHAPE(2, 7, 3, 3, 70), .dtype = LG_F64);
                lg_tensor *x = lg_transpose(lg_select(packed, 2, 1), 1, 2), *sin; /* (2, 3, 7, 70) */
                lg_tensor *cos = lg_rotary_table(c, 7, 66, &sin, .dtype = LG_F64), *y;
                double wanted[2 * 3 * 7 * 70];
                x = k & 2 ? lg_transpose(lg_contiguous(lg_transpose(x, 2, 3)), 2, 3) : x;
                y = lg_rotary(x, cos, sin, .interleaved = interleaved, .dims = 66);
                read_all(y, wanted, 2 * 3 * 7 * 70);
                assert_values(lg_rotary(lg_contiguous(x), cos, sin, .interleaved = interleaved, .dims = 66), wanted,
                              2 * 3 * 7 * 70, 0);
                /* a rotation keeps the length of each pair */
                assert_near(lg_item(lg_norm(y)), lg_item(lg_norm(x)), 1e-10);
                for (int d = 0; d < 3; d++) {
                        y = lg_rotary(lg_cast(x, dtypes[d]), cos, sin, .interleaved = interleaved, .dims = 66);
                        assert_int_equal(lg_dtype_of(y), dtypes[d]);
                        assert_values(y, wanted, 2 * 3 * 7 * 70, limits[d]);
                }
        }
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(without_elements)
{
        lg_ctx *c = open_ctx();
        lg_tensor *sin, *cos = lg_rotary_table(c, 0, 4, &sin);
        assert_shape(lg_rotary(lg_zeros(c, LG_SHAPE(2, 0, 4)), cos, sin), LG_SHAPE(2, 0, 4));
        cos = lg_rotary_table(c, 3, 4, &sin);
        assert_shape(lg_rotary(lg_zeros(c, LG_SHAPE(0, 3, 4)), cos, sin), LG_SHAPE(0, 3, 4));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 2, 3, 4)), *t = lg_ones(c, LG_SHAPE(3, 2)),
                  *line = lg_ones(c, LG_SHAPE(4));
        assert_fails(c, lg_rotary(line, t, t), LG_ERR_SHAPE, "rotary: x is f32 (4,)");
        assert_fails(c, lg_rotary(x, t, lg_ones(c, LG_SHAPE(1, 2))), LG_ERR_SHAPE, "sin is f32 (1, 2)");
        assert_fails(c, lg_rotary(x, line, line), LG_ERR_SHAPE, "for 2 pairs");
        assert_fails(c, lg_rotary(x, lg_ones(c, LG_SHAPE(4, 2)), lg_ones(c, LG_SHAPE(4, 2))), LG_ERR_SHAPE, "(4, 2)");
        assert_fails(c, lg_rotary(x, lg_ones(c, LG_SHAPE(3, 3, 2)), lg_ones(c, LG_SHAPE(3, 3, 2))), LG_ERR_SHAPE,
                     "(3, 3, 2)");
        assert_fails(c, lg_rotary(x, t, t, .dims = 3), LG_ERR_SHAPE, "3 elements");
        assert_fails(c, lg_rotary(x, t, t, .dims = 6), LG_ERR_ARGUMENT, "dims is 6");
        assert_fails(c, lg_rotary(x, t, t, .dims = -2), LG_ERR_ARGUMENT, "dims is -2");
        assert_fails(c, lg_rotary(x, t, t, .dims = 2), LG_ERR_SHAPE, "for 1 pairs");
        assert_fails(c, lg_rotary(lg_cast(x, LG_I64), t, t), LG_ERR_DTYPE, "rotary: x is i64");
        assert_fails(c, lg_rotary(NULL, t, t), LG_ERR_ARGUMENT, "rotary: x is NULL");
        lg_close(c);
}
