/* test_attention_golden.c - attention beside the node tests of ONNX's Attention, and beside PyTorch with gradients. */
#include "nodes.h"

/* What a node gives lg_attention(); heads: those of q if the node's tensors have three dimensions, else 0. */
typedef struct arguments {
        lg_tensor *q, *k, *v;
        lg_attention_options o;
        int64_t heads;
        bool offsets_by_length; /* the offset of each sample is its length less the number of queries */
} arguments;

/* (N, T, heads D) as (N, heads, T, D). */
static lg_tensor *split_heads(lg_tensor *x, int64_t heads)
{
        const lg_shape s = lg_shape_of(x);
        return heads ? lg_transpose(lg_reshape(x, LG_SHAPE(s.size[0], s.size[1], heads, s.size[2] / heads)), 1, 2) : x;
}

static lg_tensor *join_heads(lg_tensor *y)
{
        const lg_shape s = lg_shape_of(y);
        return lg_reshape(lg_transpose(y, 1, 2), LG_SHAPE(s.size[0], s.size[2], s.size[1] * s.size[3]));
}

/* ONNX pads masks for fewer keys: these keys are not seen. */
static lg_tensor *padded_mask(lg_tensor *mask, int64_t keys)
{
        const int64_t missing = mask ? keys - lg_size_of(mask, -1) : 0;
        return missing <= 0
                       ? mask
                       : lg_pad(mask, LG_INTS(0, missing), .value = lg_dtype_of(mask) == LG_BOOL ? 0 : -LG_INFINITY);
}

static int64_t window_of(const node *n, const char *name)
{
        const int64_t given = (int64_t)node_attribute(n, name, -1);
        return given < 0 ? 0 : given == 0 ? LG_ZERO_INT : given;
}

static arguments arguments_of(lg_ctx *c, const node *n)
{
        arguments a = {.heads = (int64_t)node_attribute(n, "q_num_heads", 0), .o = {.size_ = sizeof a.o}};
        const int64_t kv_heads = (int64_t)node_attribute(n, "kv_num_heads", 0);
        a.q = split_heads(node_input(c, n, "Q"), a.heads);
        a.k = split_heads(node_input(c, n, "K"), kv_heads);
        a.v = split_heads(node_input(c, n, "V"), kv_heads);
        lg_tensor *past = node_input(c, n, "past_key");
        if (past) {
                a.o.offset = lg_size_of(past, 2);
                a.k = lg_cat(LG_LIST(past, a.k), 2);
                a.v = lg_cat(LG_LIST(node_input(c, n, "past_value"), a.v), 2);
        }
        a.o.mask = padded_mask(node_input(c, n, "attn_mask"), lg_size_of(a.k, -2));
        a.o.kv_lengths = node_input(c, n, "nonpad_kv_seqlen");
        a.o.causal = node_attribute(n, "is_causal", 0) != 0;
        a.o.scale = node_attribute(n, "scale", 0);
        a.o.softcap = node_attribute(n, "softcap", 0);
        a.o.window_left = window_of(n, "left_window_size");
        a.o.window_right = window_of(n, "right_window_size");
        a.offsets_by_length = a.o.kv_lengths && (a.o.causal || a.o.window_left || a.o.window_right);
        return a;
}

/* Attention of one sample, whose queries are the last before the end of its keys. */
static lg_tensor *one_sample(const arguments *a, int64_t i)
{
        lg_attention_options o = a->o;
        o.kv_lengths = lg_slice(a->o.kv_lengths, 0, i, i + 1);
        o.offset = (int64_t)lg_item(o.kv_lengths) - lg_size_of(a->q, 2);
        if (o.mask && lg_ndim_of(o.mask) == 4 && lg_size_of(o.mask, 0) > 1)
                o.mask = lg_slice(o.mask, 0, i, i + 1);
        return lg_attention_with(lg_slice(a->q, 0, i, i + 1), lg_slice(a->k, 0, i, i + 1), lg_slice(a->v, 0, i, i + 1),
                                 &o);
}

static lg_tensor *attention_of(const arguments *a)
{
        lg_tensor *samples[8];
        if (!a->offsets_by_length)
                return lg_attention_with(a->q, a->k, a->v, &a->o);
        const int64_t count = lg_size_of(a->q, 0);
        assert_true(count <= 8);
        for (int64_t i = 0; i < count; i++)
                samples[i] = one_sample(a, i);
        return lg_cat(LG_LIST_OF(count, samples), 0);
}

/* Results of 16 bits differ from those of numpy, which rounds each step. */
static void check_onnx(const node *n)
{
        lg_ctx *c = open_ctx();
        const arguments a = arguments_of(c, n);
        const lg_dtype dtype = lg_dtype_of(a.q);
        lg_tensor *y = attention_of(&a);
        if (lg_error(c))
                fail_msg("%s: %s", n->name, lg_error(c));
        assert_int_equal(lg_dtype_of(y), dtype);
        assert_node(n, "Y", a.heads ? join_heads(y) : y, dtype == LG_F16 ? 4e-3 : dtype == LG_BF16 ? 3e-2 : 1e-5);
        assert_ok(c);
        lg_close(c);
}

/* Results and gradients in f64 and f32, by the fused derivative and by the one in ops. */
static void check_torch(const node *n)
{
        for (int way = 0; way < 4; way++) {
                lg_ctx *c = open_ctx();
                const lg_dtype dtype = way & 1 ? LG_F32 : LG_F64;
                const double limit = way & 1 ? 1e-5 : 1e-12;
                arguments a = arguments_of(c, n);
                lg_tensor **leaves[] = {&a.q, &a.k, &a.v, &a.o.mask};
                const char *const gradients[] = {"dQ", "dK", "dV", "dattn_mask"};
                for (int i = 0; i < 4; i++)
                        if (*leaves[i] && lg_dtype_of(*leaves[i]) != LG_BOOL)
                                *leaves[i] = lg_set_requires_grad(lg_detach(lg_cast(*leaves[i], dtype)), true);
                lg_tensor *y = attention_of(&a);
                if (lg_error(c))
                        fail_msg("%s: %s", n->name, lg_error(c));
                assert_node(n, "Y", y, limit);
                const double count = (double)lg_numel(y);
                lg_tensor *g = lg_div_scalar(lg_arange(c, 1, count + 1, 1, .dtype = LG_F64), count);
                lg_backward(y, .grad = lg_cast(lg_reshape(g, lg_shape_of(y)), dtype), .create_graph = way & 2);
                for (int i = 0; i < 4; i++)
                        if (node_part(n, gradients[i]))
                                assert_node(n, gradients[i], lg_grad_of(*leaves[i]), limit);
                assert_ok(c);
                lg_close(c);
        }
}

/* 75 nodes are here as a whole; of 18 with qk_matmul_output, which lg_attention() does not keep, Y is. */
TEST_CASE(onnx_node_tests)
{
        nodes all;
        node n;
        int count = 0;
        for (open_nodes(&all, "attention.txt"); next_node(&all, &n);)
                if (strncmp(n.name, "torch_", 6) != 0) {
                        check_onnx(&n);
                        count++;
                }
        close_nodes(&all);
        assert_int_equal(count, 93);
}

TEST_CASE(as_pytorch_computes_it)
{
        nodes all;
        node n;
        int count = 0;
        for (open_nodes(&all, "attention.txt"); next_node(&all, &n);)
                if (strncmp(n.name, "torch_", 6) == 0) {
                        check_torch(&n);
                        count++;
                }
        close_nodes(&all);
        assert_int_equal(count, 14);
}
