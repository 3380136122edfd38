/* test_recurrent.c - RNN, LSTM, GRU and their cells: PyTorch's and ONNX's numbers, states, lengths, errors. */
#include "sequences.h"

/* ---- PyTorch's numbers: tests/data/recurrent.py makes the same networks ---- */

enum { STEPS = 4, BATCH = 3, INPUTS = 3, HIDDEN = 4 };

typedef struct spec {
        enum { TANH, RELU, LSTM, GRU } kind;
        bool cell, batch_first, bidirectional, no_bias, lengths, alone, no_states;
        int64_t layers, projection;
} spec;

static lg_module *make_cell(lg_ctx *c, const spec *s, lg_dtype dtype)
{
        if (s->kind == LSTM)
                return lg_nn_lstm_cell(c, INPUTS, HIDDEN, .no_bias = s->no_bias, .dtype = dtype);
        if (s->kind == GRU)
                return lg_nn_gru_cell(c, INPUTS, HIDDEN, .no_bias = s->no_bias, .dtype = dtype);
        return lg_nn_rnn_cell(c, INPUTS, HIDDEN, .relu = s->kind == RELU, .no_bias = s->no_bias, .dtype = dtype);
}

static lg_module *make(lg_ctx *c, const spec *s, lg_dtype dtype)
{
        if (s->cell)
                return make_cell(c, s, dtype);
        if (s->kind == LSTM)
                return lg_nn_lstm(c, INPUTS, HIDDEN, .layers = s->layers, .projection = s->projection,
                                  .batch_first = s->batch_first, .bidirectional = s->bidirectional,
                                  .no_bias = s->no_bias, .dtype = dtype);
        if (s->kind == GRU)
                return lg_nn_gru(c, INPUTS, HIDDEN, .layers = s->layers, .batch_first = s->batch_first,
                                 .bidirectional = s->bidirectional, .no_bias = s->no_bias, .dtype = dtype);
        return lg_nn_rnn(c, INPUTS, HIDDEN, .relu = s->kind == RELU, .layers = s->layers, .batch_first = s->batch_first,
                         .bidirectional = s->bidirectional, .no_bias = s->no_bias, .dtype = dtype);
}

/* The forward of a module around a network: y, h and c of its x, h0 and c0 in a row. */
static lg_tensor *all_results(lg_module *m, lg_list in, void *user)
{
        const spec *s = user;
        const int64_t lengths[] = {2, 4, 1};
        lg_ctx *c = lg_module_ctx(m);
        lg_tensor *given = s->lengths ? lg_from(c, lengths, LG_SHAPE(BATCH), .dtype = LG_I64) : NULL, *h, *last = NULL;
        lg_tensor *y = lg_run_rnn(lg_child(m, 0), in.items[0], .h0 = in.count > 1 ? in.items[1] : NULL,
                                  .c0 = in.count > 2 ? in.items[2] : NULL, .lengths = given, .h = &h,
                                  .c = s->kind == LSTM ? &last : NULL);
        lg_tensor *all[] = {lg_flatten(y), lg_flatten(h), last ? lg_flatten(last) : NULL};
        return lg_cat(LG_LIST_OF(last ? 3 : 2, all), 0);
}

/* The next part of flat, in that shape. */
static lg_tensor *part(lg_tensor *flat, int64_t *at, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        *at += n;
        return lg_reshape(lg_slice(flat, 0, *at - n, *at), shape);
}

/* The results of a network whose inputs and parameters are 0.4 flat. */
static lg_tensor *network(lg_ctx *c, lg_tensor *flat, spec s)
{
        enum { most = 20 };
        lg_tensor *in[3], *params[most];
        lg_module *m = make(c, &s, lg_dtype_of(flat)),
                  *around = lg_nn_module(c, "Around", .forward = all_results, .user = &s);
        lg_module_add(around, "network", m);
        const int64_t rows = (s.layers ? s.layers : 1) * (s.bidirectional ? 2 : 1),
                      state = s.projection ? s.projection : HIDDEN;
        int64_t at = 0, count = s.no_states ? 1 : s.kind == LSTM ? 3 : 2;
        flat = lg_mul_scalar(flat, 0.4);
        in[0] = part(flat, &at,
                     s.cell          ? s.alone ? LG_SHAPE(INPUTS) : LG_SHAPE(BATCH, INPUTS)
                              : s.alone ? LG_SHAPE(STEPS, INPUTS)
                     : s.batch_first ? LG_SHAPE(BATCH, STEPS, INPUTS)
                                     : LG_SHAPE(STEPS, BATCH, INPUTS));
        for (int i = 1; i < count; i++) {
                const int64_t size = i == 1 ? state : HIDDEN;
                in[i] = part(flat, &at,
                             s.cell    ? s.alone ? LG_SHAPE(size) : LG_SHAPE(BATCH, size)
                                : s.alone ? LG_SHAPE(rows, size)
                                       : LG_SHAPE(rows, BATCH, size));
        }
        const lg_list own = lg_parameters(m);
        assert_true(own.count <= most);
        for (int64_t i = 0; i < own.count; i++)
                params[i] = part(flat, &at, lg_shape_of(own.items[i]));
        assert_int_equal(at, lg_numel(flat));
        lg_tensor *inputs[] = {in[0], count > 1 ? in[1] : LG_END, count > 2 ? in[2] : LG_END, LG_END};
        return lg_forward_params_list(around, LG_LIST_OF(own.count, params), inputs);
}

#define NETWORK(...) network(c, x, (spec){__VA_ARGS__})
#define NETWORKS(ROW)                                                                                                  \
        ROW(lstm, NETWORK(.kind = LSTM), 204)                                                                          \
        ROW(lstm_layers, NETWORK(.kind = LSTM, .layers = 2, .bidirectional = true), 868)                               \
        ROW(lstm_first, NETWORK(.kind = LSTM, .batch_first = true, .no_states = true), 180)                            \
        ROW(lstm_projected, NETWORK(.kind = LSTM, .layers = 2, .projection = 2, .bidirectional = true), 620)           \
        ROW(lstm_plain, NETWORK(.kind = LSTM, .no_bias = true, .alone = true), 132)                                    \
        ROW(lstm_lengths, NETWORK(.kind = LSTM, .layers = 2, .bidirectional = true, .lengths = true), 868)             \
        ROW(lstm_first_lengths, NETWORK(.kind = LSTM, .batch_first = true, .lengths = true, .projection = 3), 197)     \
        ROW(gru, NETWORK(.kind = GRU), 156)                                                                            \
        ROW(gru_layers, NETWORK(.kind = GRU, .layers = 2, .bidirectional = true), 636)                                 \
        ROW(gru_first, NETWORK(.kind = GRU, .batch_first = true, .no_states = true, .no_bias = true), 120)             \
        ROW(gru_lengths, NETWORK(.kind = GRU, .bidirectional = true, .lengths = true), 276)                            \
        ROW(tanh, NETWORK(.kind = TANH, .bidirectional = true), 132)                                                   \
        ROW(tanh_lengths, NETWORK(.kind = TANH, .layers = 2, .lengths = true), 136)                                    \
        ROW(relu, NETWORK(.kind = RELU, .layers = 2), 136)                                                             \
        ROW(relu_lengths, NETWORK(.kind = RELU, .bidirectional = true, .lengths = true), 132)                          \
        ROW(lstm_cell, NETWORK(.kind = LSTM, .cell = true), 177)                                                       \
        ROW(gru_cell, NETWORK(.kind = GRU, .cell = true), 129)                                                         \
        ROW(tanh_cell, NETWORK(.kind = TANH, .cell = true, .alone = true), 43)                                         \
        ROW(relu_cell, NETWORK(.kind = RELU, .cell = true, .no_states = true, .no_bias = true), 37)
GOLDEN_TEST(networks, "recurrent.txt", golden_input, NETWORKS);

/* ---- ONNX's node tests: tests/data/recurrent_onnx.py says which are left out ---- */

typedef struct onnx_case {
        int kind; /* 0 RNN, 1 LSTM, 2 GRU */
        int steps, batch, inputs, hidden, directions, reverse, first, results;
} onnx_case;

/* The next values of a line. */
static lg_tensor *next(FILE *f, lg_ctx *c, lg_shape shape)
{
        double v[2048];
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        assert_true(n <= 2048);
        for (int64_t i = 0; i < n; i++)
                assert_int_equal(fscanf(f, "%lf", &v[i]), 1);
        return lg_from(c, v, shape, .dtype = LG_F64);
}

/* ONNX's GRU with linear_before_reset = 0, which is its default: the reset gate is applied to the state before the
 * product. The modules have PyTorch's order, so this one is made of ops. Returns h after each step. */
static lg_tensor *gru_of_onnx(lg_tensor *x, lg_tensor *const *p, const onnx_case *o, bool reverse)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_tensor *h = lg_zeros(c, LG_SHAPE(o->batch, o->hidden), .dtype = LG_F64), *ys[8], *w[3], *r[3], *b[3], *d[3];
        lg_chunk(p[0], 3, 0, w, 3);
        lg_chunk(p[1], 3, 0, r, 3);
        lg_chunk(p[2], 3, 0, b, 3);
        lg_chunk(p[3], 3, 0, d, 3);
        for (int i = 0; i < o->steps; i++) {
                const int t = reverse ? o->steps - 1 - i : i;
                lg_tensor *now = lg_select(x, 0, t), *gate[2];
                for (int g = 0; g < 2; g++)
                        gate[g] = lg_sigmoid(lg_add(lg_linear(now, w[g], b[g]), lg_linear(h, r[g], d[g])));
                lg_tensor *n = lg_tanh(lg_add(lg_linear(now, w[2], b[2]), lg_linear(lg_mul(gate[0], h), r[2], d[2])));
                h = ys[t] = lg_add(n, lg_mul(gate[1], lg_sub(h, n)));
        }
        return lg_stack(LG_LIST_OF(o->steps, ys), 0);
}

/* Y (T, N, D H) and Y_h of such GRUs. */
static void run_gru_of_onnx(lg_tensor *x, lg_tensor *const *p, const onnx_case *o, lg_tensor **ret_y, lg_tensor **ret_h)
{
        lg_tensor *ys[2], *hs[2];
        x = o->first ? lg_transpose(x, 0, 1) : x;
        for (int d = 0; d < o->directions; d++) {
                const bool reverse = d || o->reverse;
                ys[d] = gru_of_onnx(x, p + 4 * d, o, reverse);
                hs[d] = lg_select(ys[d], 0, reverse ? 0 : -1);
        }
        *ret_y = lg_cat(LG_LIST_OF(o->directions, ys), 2);
        *ret_y = o->first ? lg_transpose(*ret_y, 0, 1) : *ret_y;
        *ret_h = lg_stack(LG_LIST_OF(o->directions, hs), 0);
}

/* Y, Y_h and Y_c by a module whose parameters are p. */
static void run_module(lg_tensor *x, lg_tensor *const *p, const onnx_case *o, lg_tensor **ret_y, lg_tensor **ret_h,
                       lg_tensor **ret_c)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_module *m = o->kind == 1 ? lg_nn_lstm(c, o->inputs, o->hidden, .bidirectional = o->directions == 2,
                                                 .batch_first = o->first, .dtype = LG_F64)
                                    : lg_nn_rnn(c, o->inputs, o->hidden, .bidirectional = o->directions == 2,
                                                .batch_first = o->first, .dtype = LG_F64);
        const lg_list own = lg_parameters(m);
        assert_int_equal(own.count, 4 * o->directions);
        lg_no_grad(c) for (int64_t i = 0; i < own.count; i++) lg_copy_(own.items[i], p[i]);
        const int time = o->first ? 1 : 0;
        *ret_y =
                lg_run_rnn(m, o->reverse ? lg_flip(x, LG_DIMS(time)) : x, .h = ret_h, .c = o->kind == 1 ? ret_c : NULL);
        *ret_y = o->reverse ? lg_flip(*ret_y, LG_DIMS(time)) : *ret_y;
}

static void check_onnx(FILE *f, const onnx_case *o)
{
        const int gates[] = {1, 4, 3}, down = gates[o->kind] * o->hidden;
        lg_ctx *c = open_ctx();
        lg_tensor *x = next(
                f, c, o->first ? LG_SHAPE(o->batch, o->steps, o->inputs) : LG_SHAPE(o->steps, o->batch, o->inputs));
        lg_tensor *p[8], *got[3] = {NULL};
        for (int d = 0; d < o->directions; d++) {
                p[4 * d] = next(f, c, LG_SHAPE(down, o->inputs));
                p[4 * d + 1] = next(f, c, LG_SHAPE(down, o->hidden));
                p[4 * d + 2] = next(f, c, LG_SHAPE(down));
                p[4 * d + 3] = next(f, c, LG_SHAPE(down));
        }
        if (o->kind == 2)
                run_gru_of_onnx(x, p, o, &got[0], &got[1]);
        else
                run_module(x, p, o, &got[0], &got[1], &got[2]);
        assert_ok(c);
        for (int i = 0; i < 3; i++) {
                double wanted[512];
                if (!(o->results >> i & 1))
                        continue;
                const int64_t n = read_all(next(f, c, LG_SHAPE(lg_numel(got[i]))), wanted, 512);
                assert_values(got[i], wanted, n, 1e-6);
        }
        lg_close(c);
}

TEST_CASE(onnx_node_tests)
{
        const char *folder = getenv("LG_TEST_DATA");
        char path[4096], name[64];
        snprintf(path, sizeof path, "%s/recurrent_onnx.txt", folder ? folder : "tests/data");
        FILE *f = fopen(path, "r");
        int count = 0;
        onnx_case o;
        assert_non_null(f);
        while (fscanf(f, "%63s %d %d %d %d %d %d %d %d %d", name, &o.kind, &o.steps, &o.batch, &o.inputs, &o.hidden,
                      &o.directions, &o.reverse, &o.first, &o.results) == 10) {
                check_onnx(f, &o);
                count++;
        }
        fclose(f);
        assert_int_equal(count, 17);
}

/* ---- parameters ---- */

TEST_CASE(parameters_are_pytorchs)
{
        static const char *const names[] = {"weight_ih_l0",         "weight_hh_l0",       "bias_ih_l0",
                                            "bias_hh_l0",           "weight_hr_l0",       "weight_ih_l0_reverse",
                                            "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
                                            "weight_hr_l0_reverse", "weight_ih_l1",       "weight_hh_l1",
                                            "bias_ih_l1",           "bias_hh_l1",         "weight_hr_l1"};
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_lstm(c, 5, 64, .layers = 2, .projection = 3, .bidirectional = true);
        assert_int_equal(lg_parameters(m).count, 20);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                assert_ptr_equal(lg_parameter(m, names[i]), lg_parameters(m).items[i]);
        assert_shape(lg_parameter(m, "weight_ih_l0"), LG_SHAPE(256, 5));
        assert_shape(lg_parameter(m, "weight_ih_l1"), LG_SHAPE(256, 6));
        assert_shape(lg_parameter(m, "weight_hh_l1"), LG_SHAPE(256, 3));
        assert_shape(lg_parameter(m, "weight_hr_l1_reverse"), LG_SHAPE(3, 64));
        lg_tensor *w = lg_parameter(m, "weight_ih_l1");
        assert_near(lg_item(lg_max(lg_flatten(w), 0)), 0.125, 2e-3);
        assert_near(lg_item(lg_min(lg_flatten(w), 0)), -0.125, 2e-3);
        m = lg_nn_gru_cell(c, 5, 2, .no_bias = true);
        assert_int_equal(lg_parameters(m).count, 2);
        assert_shape(lg_parameter(m, "weight_ih"), LG_SHAPE(6, 5));
        assert_ok(c);
        lg_close(c);
}

/* ---- states, lengths, sizes ---- */

/* A sequence in two parts, with the states between, is the whole. */
TEST_CASE(states_continue)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_lstm(c, 3, 5, .layers = 2, .dtype = LG_F64),
                  *cell = lg_nn_lstm_cell(c, 3, 5, .dtype = LG_F64);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 2, 3), .dtype = LG_F64), *h, *s, *whole, *all;
        lg_tensor *y = lg_run_rnn(m, x, .h = &whole, .c = &all);
        lg_tensor *first = lg_run_rnn(m, lg_slice(x, 0, 0, 2), .h = &h, .c = &s);
        lg_tensor *rest = lg_run_rnn(m, lg_slice(x, 0, 2, 6), .h0 = h, .c0 = s, .h = &h, .c = &s);
        assert_same_bits(lg_cat(LG_LIST(first, rest), 0), y);
        assert_same_bits(h, whole);
        assert_same_bits(s, all);
        assert_same_bits(lg_forward(m, x), y);
        lg_tensor *by_cell = lg_run_rnn(cell, lg_select(x, 0, 0), .c = &s);
        assert_same_bits(lg_run_rnn(cell, lg_select(x, 0, 0), .h = &h), by_cell);
        assert_same_bits(h, by_cell);
        assert_ok(c);
        lg_close(c);
}

/* After its end a sample has no influence, not even NaN, and gives 0; of length 0 it keeps its state. */
TEST_CASE(lengths_end_samples)
{
        const int64_t lengths[] = {3, 0, 5};
        for (int kind = 0; kind < 3; kind++) {
                lg_ctx *c = open_ctx();
                lg_module *m = kind == 0   ? lg_nn_lstm(c, 2, 4, .bidirectional = true)
                               : kind == 1 ? lg_nn_gru(c, 2, 4, .bidirectional = true)
                                           : lg_nn_rnn(c, 2, 4, .bidirectional = true);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 3, 2)), *h0 = lg_normal(c, 0, 1, LG_SHAPE(2, 3, 4)), *h,
                          *alone;
                lg_tensor *n = lg_from(c, lengths, LG_SHAPE(3), .dtype = LG_I64);
                lg_fill_(lg_slice(lg_select(x, 1, 0), 0, 3, 5), NAN);
                lg_fill_(lg_select(x, 1, 1), NAN);
                lg_set_requires_grad(x, true);
                lg_tensor *y = lg_run_rnn(m, x, .h0 = h0, .lengths = n, .h = &h);
                lg_tensor *whole = lg_run_rnn(m, lg_slice(lg_slice(x, 1, 0, 1), 0, 0, 3), .h0 = lg_slice(h0, 1, 0, 1),
                                              .h = &alone);
                const double last = other_order(c, LG_F32);
                assert_near(largest_difference(lg_slice(lg_slice(y, 1, 0, 1), 0, 0, 3), whole), 0, last);
                assert_near(largest_difference(lg_slice(h, 1, 0, 1), alone), 0, last);
                assert_near(lg_item(lg_sum(lg_abs(lg_slice(lg_select(y, 1, 0), 0, 3, 5)))), 0, 0);
                assert_near(lg_item(lg_sum(lg_abs(lg_select(y, 1, 1)))), 0, 0);
                assert_same_bits(lg_select(h, 1, 1), lg_select(h0, 1, 1));
                lg_backward(lg_add(lg_sum(y), lg_sum(h)));
                for (int64_t i = 0; i < lg_parameters(m).count; i++)
                        assert_true(isfinite(lg_item(lg_sum(lg_grad_of(lg_parameters(m).items[i])))));
                assert_near(lg_item(lg_sum(lg_abs(lg_select(lg_grad_of(x), 1, 1)))), 0, 0);
                assert_ok(c);
                lg_close(c);
        }
}

static lg_module *wide_layer(lg_ctx *c, int kind, lg_dtype dtype)
{
        if (kind < 2)
                return lg_nn_lstm(c, 35, 37, .projection = kind ? 34 : 0, .bidirectional = true, .dtype = dtype);
        return kind == 2 ? lg_nn_gru(c, 35, 37, .bidirectional = true, .dtype = dtype)
                         : lg_nn_rnn(c, 35, 37, .bidirectional = true, .relu = true, .dtype = dtype);
}

/* More units than a vector has lanes, more rows than a chunk of the derivative: gradients by kernels are those by ops.
 */
TEST_CASE(wide_layers_by_kernels_and_by_ops)
{
        for (int kind = 0; kind < 8; kind++) {
                lg_ctx *c = open_ctx();
                const lg_dtype dtype = kind & 1 ? LG_F32 : LG_F64;
                lg_module *m = wide_layer(c, kind / 2, dtype);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(9, 20, 35), .dtype = dtype, .requires_grad = true), *h;
                lg_tensor *n = lg_randint(c, 0, 10, LG_SHAPE(20)), *y = lg_run_rnn(m, x, .lengths = n, .h = &h);
                lg_tensor *g = lg_normal(c, 0, 1, lg_shape_of(y), .dtype = dtype), *by[11], *fused[11], *ops[11];
                lg_tensor *loss = lg_add(lg_sum(lg_mul(y, g)), lg_sum(h));
                const lg_list own = lg_parameters(m);
                assert_true(own.count <= 10);
                by[0] = x;
                for (int64_t i = 0; i < own.count; i++)
                        by[i + 1] = own.items[i];
                const lg_list in = LG_LIST_OF(own.count + 1, by);
                lg_grad(LG_LIST(loss), in, .result = ops, .create_graph = true);
                lg_grad(LG_LIST(loss), in, .result = fused);
                assert_ok(c);
                for (int64_t i = 0; i < in.count; i++) {
                        double v[9 * 20 * 37];
                        const int64_t count = read_all(ops[i], v, 9 * 20 * 37);
                        assert_values(fused[i], v, count, dtype == LG_F64 ? 1e-12 : 1e-5);
                }
                lg_close(c);
        }
}

/* A layer is its cell in a loop, which for a few samples reads the weights in another way. */
TEST_CASE(layers_are_cells_in_a_loop)
{
        for (int kind = 0; kind < 3; kind++) {
                lg_ctx *c = open_ctx();
                lg_module *m = kind == 0   ? lg_nn_lstm(c, 70, 37, .dtype = LG_F64)
                               : kind == 1 ? lg_nn_gru(c, 70, 37, .dtype = LG_F64)
                                           : lg_nn_rnn(c, 70, 37, .dtype = LG_F64);
                lg_module *cell = kind == 0   ? lg_nn_lstm_cell(c, 70, 37, .dtype = LG_F64)
                                  : kind == 1 ? lg_nn_gru_cell(c, 70, 37, .dtype = LG_F64)
                                              : lg_nn_rnn_cell(c, 70, 37, .dtype = LG_F64);
                lg_no_grad(c) for (int64_t i = 0; i < 4; i++)
                        lg_copy_(lg_parameters(cell).items[i], lg_parameters(m).items[i]);
                for (int64_t batch = 1; batch < 12; batch += 5) {
                        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, batch, 70), .dtype = LG_F64), *h = NULL,
                                  *s = NULL;
                        lg_tensor *ys[6];
                        for (int t = 0; t < 6; t++)
                                ys[t] = h =
                                        lg_run_rnn(cell, lg_select(x, 0, t), .h0 = h, .c0 = s, .c = kind ? NULL : &s);
                        double v[6 * 11 * 37];
                        const int64_t count = read_all(lg_stack(LG_LIST_OF(6, ys), 0), v, 6 * 11 * 37);
                        assert_values(lg_forward(m, x), v, count, 1e-13);
                }
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(empty_sizes)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_gru(c, 2, 3, .layers = 2), *none = lg_nn_lstm(c, 0, 3);
        lg_tensor *h0 = lg_normal(c, 0, 1, LG_SHAPE(2, 4, 3), .requires_grad = true), *h;
        assert_shape(lg_run_rnn(m, lg_zeros(c, LG_SHAPE(0, 4, 2)), .h0 = h0, .h = &h), LG_SHAPE(0, 4, 3));
        assert_same_bits(h, h0);
        lg_backward(lg_sum(h));
        assert_near(lg_item(lg_mean(lg_grad_of(h0))), 1, 0);
        assert_near(lg_item(lg_sum(lg_abs(lg_grad_of(lg_parameter(m, "weight_hh_l1"))))), 0, 0);
        assert_shape(lg_forward(m, lg_zeros(c, LG_SHAPE(5, 0, 2))), LG_SHAPE(5, 0, 3));
        lg_tensor *y = lg_forward(none, lg_zeros(c, LG_SHAPE(5, 1, 0)));
        assert_shape(y, LG_SHAPE(5, 1, 3));
        lg_backward(lg_sum(y));
        assert_ok(c);
        lg_close(c);
}

/* ---- as a module ---- */

TEST_CASE(dropout_is_between_layers)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_gru(c, 3, 8, .layers = 2, .dropout = 1), *one = lg_nn_gru(c, 3, 8, .dropout = 1);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(4, 2, 3)), *other = lg_normal(c, 0, 1, LG_SHAPE(4, 2, 3));
        assert_same_bits(lg_forward(m, x), lg_forward(m, other)); /* the second layer sees zeros */
        lg_train(m, false);
        assert_true(lg_item(lg_sum(lg_ne(lg_forward(m, x), lg_forward(m, other)))) > 0);
        lg_tensor *y = lg_forward(one, x);
        lg_train(one, false);
        assert_same_bits(lg_forward(one, x), y);
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *last_state(lg_module *m, lg_list in, void *user)
{
        lg_tensor *h;
        (void)user;
        return lg_run_rnn(lg_child(m, 0), in.items[0], .h = &h) ? h : NULL;
}

TEST_CASE(works_as_other_modules_do)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_lstm(c, 3, 4, .layers = 2, .bidirectional = true, .dropout = 0.3),
                  *copy = lg_module_clone(m);
        lg_module *around = lg_nn_module(c, "Around", .forward = last_state);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 2, 3), .requires_grad = true);
        lg_train(m, false);
        lg_train(copy, false);
        assert_same_bits(lg_forward(m, x), lg_forward(copy, x));
        lg_module_cast(copy, LG_BF16);
        assert_int_equal(lg_dtype_of(lg_forward(copy, lg_cast(x, LG_BF16))), LG_BF16);
        lg_module_add(around, "lstm", m);
        lg_train(around, true);
        lg_seed(c, 3);
        lg_backward(lg_sum(lg_forward(around, x)));
        lg_tensor *g = lg_copy(lg_grad_of(x), LG_NO_DEVICE);
        lg_clear_grad(x);
        lg_seed(c, 3);
        lg_backward(lg_sum(lg_recompute(around, x)));
        assert_same_bits(lg_grad_of(x), g);
        assert_ok(c);
        lg_close(c);
}

static void count_records(const lg_trace_record *r, void *user)
{
        int *counts = user;
        counts[0] += !strcmp(r->op, "recurrent");
        counts[1] += !strcmp(r->op, "recurrent") && strstr(r->module, "lstm (LSTM)");
}

/* A typed call is a forward of its module to traces, and an error in it names the module. */
TEST_CASE(typed_calls_are_forwards)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_lstm(c, 3, 4, .layers = 2), *around = lg_nn_module(c, "Around", .forward = last_state);
        lg_module_add(around, "lstm", m);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 2, 3)), *low = NULL;
        int counts[2] = {0};
        lg_set_trace(c, count_records, .user = counts);
        assert_shape(lg_forward(around, x), LG_SHAPE(2, 2, 4));
        lg_set_trace(c, NULL);
        assert_int_equal(counts[0], 2);
        assert_int_equal(counts[1], 2);
        assert_fails(c, lg_forward(around, lg_select(x, 2, 0)), LG_ERR_SHAPE, "(in module \"lstm\", LSTM)");
        lg_autocast(c, LG_BF16) low = lg_forward(m, x);
        assert_int_equal(lg_dtype_of(low), LG_BF16);
        assert_ok(c);
        lg_close(c);
}

/* Nothing that is kept for the derivative is left unset, which anomaly detection would report. */
TEST_CASE(anomalies_are_told_from_ended_samples)
{
        const int64_t lengths[] = {0, 3};
        lg_ctx *c = open_ctx();
        lg_tensor *n = lg_from(c, lengths, LG_SHAPE(2), .dtype = LG_I64);
        for (int i = 0; i < 8; i++) /* memory to be used again */
                lg_free(lg_full(c, LG_SHAPE(5, 2, 4, 16), NAN));
        lg_set_anomaly(c, true);
        lg_module *m = lg_nn_lstm(c, 3, 16), *gru = lg_nn_gru(c, 3, 16);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 2, 3));
        lg_backward(lg_sum(lg_run_rnn(m, x, .lengths = n)));
        lg_backward(lg_sum(lg_run_rnn(gru, x, .lengths = n)));
        assert_ok(c);
        lg_close(c);
}

/* 16-bit results are those of f32, rounded once; on a GPU, with states rounded to TF32. */
TEST_CASE(half_precision)
{
        const lg_dtype dtypes[] = {LG_F16, LG_BF16};
        for (int k = 0; k < 2; k++) {
                lg_ctx *c = open_ctx();
                lg_module *m = lg_nn_gru(c, 3, 5, .dtype = dtypes[k]), *wide = lg_nn_gru(c, 3, 5);
                lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(6, 2, 3), .dtype = dtypes[k]), *h, *same;
                lg_no_grad(c) for (int64_t i = 0; i < 4; i++)
                        lg_copy_(lg_parameters(wide).items[i], lg_cast(lg_parameters(m).items[i], LG_F32));
                lg_tensor *y = lg_run_rnn(m, x, .h = &h);
                lg_tensor *other = lg_cast(lg_run_rnn(wide, lg_cast(x, LG_F32), .h = &same), dtypes[k]);
                const double last = other_order(c, dtypes[k]);
                assert_near(largest_difference(y, other), 0, last);
                assert_near(largest_difference(h, lg_cast(same, dtypes[k])), 0, last);
                lg_backward(lg_sum(y));
                assert_int_equal(lg_dtype_of(lg_grad_of(lg_parameter(m, "bias_hh_l0"))), dtypes[k]);
                assert_ok(c);
                lg_close(c);
        }
}

/* ---- errors ---- */

TEST_CASE(wrong_arguments)
{
        lg_ctx *c = open_ctx(), *elsewhere = open_ctx();
        lg_module *m = lg_nn_lstm(c, 3, 4), *gru = lg_nn_gru(c, 3, 4), *cell = lg_nn_rnn_cell(c, 3, 4);
        lg_tensor *x = lg_zeros(c, LG_SHAPE(5, 2, 3)), *h = x, *s = x;
        lg_tensor *lengths = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64);
        assert_fails(c, lg_nn_lstm(c, 3, 0), LG_ERR_ARGUMENT, "3 inputs, 0 hidden, 1 layers");
        assert_fails(c, lg_nn_gru(c, -1, 4), LG_ERR_ARGUMENT, "lg_nn_gru: -1 inputs");
        assert_fails(c, lg_nn_rnn(c, 3, 4, .layers = -1), LG_ERR_ARGUMENT, "-1 layers");
        assert_fails(c, lg_nn_lstm(c, 3, 4, .projection = 4), LG_ERR_ARGUMENT, "projection 4 is not in [0, 4)");
        assert_fails(c, lg_nn_gru(c, 3, 4, .dropout = 1.5), LG_ERR_ARGUMENT, "dropout 1.5");
        assert_fails(c, lg_nn_gru(c, 3, 4, .dtype = LG_I64), LG_ERR_DTYPE, "parameters are floats");
        assert_fails(c, lg_run_rnn(m, lg_zeros(c, LG_SHAPE(5, 2, 4)), .h = &h, .c = &s), LG_ERR_SHAPE,
                     "it is (T, N, 3)");
        assert_true(!h && !s);
        assert_fails(c, lg_forward(m, lg_zeros(c, LG_SHAPE(3))), LG_ERR_SHAPE, "LSTM: x is f32 (3,)");
        assert_fails(c, lg_forward(m, lengths), LG_ERR_SHAPE, "LSTM: x is i64 (2,)");
        assert_fails(c, lg_forward(m, lg_zeros(c, LG_SHAPE(5, 2, 3), .dtype = LG_I64)), LG_ERR_DTYPE, "lstm: x is i64");
        assert_fails(c, lg_forward(m, x, x), LG_ERR_ARGUMENT, "takes one input, 2 were given");
        assert_fails(c, lg_run_rnn(m, x, .h0 = x), LG_ERR_SHAPE, "h0 is f32 (5, 2, 3)");
        assert_fails(c, lg_run_rnn(m, x, .c0 = lg_zeros(c, LG_SHAPE(1, 3, 4))), LG_ERR_SHAPE,
                     "it needs shape (1, 2, 4)");
        assert_fails(c, lg_run_rnn(gru, x, .c = &s), LG_ERR_ARGUMENT, "GRU: it has no state c");
        assert_fails(c, lg_run_rnn(gru, x, .lengths = lg_zeros(c, LG_SHAPE(3), .dtype = LG_I64)), LG_ERR_SHAPE,
                     "lengths");
        assert_fails(c, lg_run_rnn(gru, x, .lengths = lg_zeros(c, LG_SHAPE(2))), LG_ERR_DTYPE, "lengths");
        assert_fails(c, lg_run_rnn(cell, lg_select(x, 0, 0), .lengths = lengths), LG_ERR_ARGUMENT, "x has no steps");
        assert_fails(c, lg_run_rnn(gru, lg_select(x, 1, 0), .lengths = lengths), LG_ERR_ARGUMENT, "x has no batch");
        assert_fails(c, lg_run_rnn(NULL, x), LG_ERR_ARGUMENT, "lg_run_rnn: the module is NULL");
        assert_fails(c, lg_run_rnn(m, NULL), LG_ERR_ARGUMENT, "input 0 of LSTM is NULL");
        assert_fails(c, lg_run_rnn(lg_nn_relu(c), x), LG_ERR_ARGUMENT, "ReLU is not an RNN");
        assert_fails(c, lg_run_rnn(m, x, .h0 = lg_zeros(elsewhere, LG_SHAPE(1, 2, 4))), LG_ERR_ARGUMENT,
                     "another context");
        assert_no_index(lg_run_rnn(gru, x, .lengths = lg_add_scalar(lengths, 6)), "lengths holds 6, but x has 5 steps");
        assert_no_index(lg_run_rnn(gru, x, .lengths = lg_add_scalar(lengths, -1)), "lengths holds -1");
        lg_close(elsewhere);
        lg_close(c);
}
