/* test_onnx.c - ONNX files: node tests of the package onnx, parameters, copies, damaged files. */
#include "files.h"
#include "io/source.h"
#include "onnx/model.h"

typedef struct text {
        const char *s, *end;
} text;

/* Takes a line, without its end, into a buffer. Returns false at the end of the text. */
static bool take_line(text *t, char *line, size_t size)
{
        const char *end = t->s < t->end ? memchr(t->s, '\n', (size_t)(t->end - t->s)) : NULL;
        if (!end)
                return false;
        snprintf(line, size, "%.*s", (int)(end - t->s), t->s);
        t->s = end + 1;
        return true;
}

/* Writes the next file of the text to `path`. */
static void take_file(text *t, const char *path)
{
        char line[32];
        assert_true(take_line(t, line, sizeof line));
        const size_t bytes = (size_t)strtoul(line, NULL, 10);
        put_file(path, t->s, bytes);
        t->s += bytes;
}

static void open_nodes(lg_ctx *c, lg__whole *file, text *ret)
{
        char path[512];
        const char *data = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/onnx_nodes.gz", data ? data : "tests/data");
        *file = (lg__whole){NULL, 0, 0};
        assert_true(lg__whole_read(c, "test", path, file));
        *ret = (text){file->data, file->data + file->bytes};
}

static void assert_result(const char *name, int i, const lg_tensor *y, const lg_tensor *want)
{
        if (y->at.dtype != want->at.dtype || !lg__shape_equal(y->at.shape, want->at.shape))
                fail_msg("%s: result %d is %s, not %s", name, i, lg__tensor_text(y).s, lg__tensor_text(want).s);
        const size_t n = (size_t)lg_numel(y), bytes = n * sizeof(double);
        double *a = malloc(2 * bytes + 1), *b = a + n;
        assert_non_null(a);
        assert_true(lg_read(y, a, LG_F64, bytes) && lg_read(want, b, LG_F64, bytes));
        const bool whole = !lg__dtype_float(want->at.dtype);
        const double near =
                want->at.dtype == LG_F16 ? 2e-3 : 1e-3; /* f16: sums in another order round to a neighbour */
        for (size_t k = 0; k < n; k++) {
                const double off = fabs(a[k] - b[k]), most = whole ? 0 : 1e-6 + near * fabs(b[k]);
                if (!(off <= most) && !(isnan(a[k]) && isnan(b[k])) && a[k] != b[k])
                        fail_msg("%s: result %d, element %zu is %.9g, not %.9g", name, i, k, a[k], b[k]);
        }
        free(a);
}

/* Runs a test whose line is read: NAME INPUTS RESULTS. */
static void run_node(lg_ctx *c, text *t, char *line, bool run)
{
        lg_tensor *in[LG_MAX_OUTPUTS + 1] = {NULL};
        lg_outputs out;
        const char *name = strtok(line, " ");
        const int inputs = atoi(strtok(NULL, " ")), outputs = atoi(strtok(NULL, " "));
        take_file(t, at("model.onnx"));
        lg_module *m = run ? lg_onnx_load(c, at("model.onnx")) : NULL;
        if (run && !m)
                fail_msg("%s: %s", name, lg_error(c));
        for (int i = 0; i < inputs; i++) {
                take_file(t, at("array.npy"));
                in[i] = run ? lg_to(lg_read_npy(c, at("array.npy")), lg_default_device(c)) : NULL;
        }
        in[inputs] = LG_END;
        if (run && !lg_forward_all_list(m, &out, sizeof out, in))
                fail_msg("%s: %s", name, lg_error(c));
        for (int i = 0; i < outputs; i++) {
                take_file(t, at("array.npy"));
                if (run)
                        assert_result(name, i, out.items[i], lg_read_npy(c, at("array.npy")));
        }
        lg_module_free(m);
}

TEST_CASE(nodes)
{
        lg_ctx *c = open_ctx();
        lg__whole file;
        text t;
        char line[256];
        int count = 0;
        open_nodes(c, &file, &t);
        for (; take_line(&t, line, sizeof line); count++) {
                const lg_scope scope = lg_scope_begin(c);
                run_node(c, &t, line, count % (is_slow() ? 5 : 1) == 0);
                lg_scope_end(c, scope);
        }
        assert_true(count > 900);
        lg__free(c, file.data, (size_t)file.room);
        assert_int_equal(lg_live_tensors(c), 0);
        lg_close(c);
}

/* ---- a model made here: y = x W' + b, with W = fc.weight and b = fc.bias ---- */

static void put_info(lg__proto_out *o, int field, const char *name)
{
        const int64_t info = lg__proto_begin(o, field);
        lg__proto_put_text(o, INFO_NAME, name);
        lg__proto_end(o, info);
}

static void put_tensor(lg__proto_out *o, const char *name, lg_shape shape, const float *values)
{
        const int64_t t = lg__proto_begin(o, GRAPH_INITIALIZER);
        for (int i = 0; i < shape.ndim; i++)
                lg__proto_put_int(o, TENSOR_DIMS, shape.size[i]);
        lg__proto_put_int(o, TENSOR_DTYPE, lg__onnx_type(LG_F32));
        lg__proto_put_text(o, TENSOR_NAME, name);
        for (int64_t i = 0; i < lg__shape_numel(shape); i++)
                lg__proto_put_f32(o, TENSOR_FLOATS, values[i]);
        lg__proto_end(o, t);
}

/* Writes the model, with that operator and opset. */
static lg__proto_out linear_model(lg_ctx *c, const char *op, int64_t opset)
{
        lg__proto_out o = {.ctx = c};
        lg__proto_put_int(&o, MODEL_IR_VERSION, 8);
        const int64_t set = lg__proto_begin(&o, MODEL_OPSET);
        lg__proto_put_int(&o, OPSET_VERSION, opset);
        lg__proto_end(&o, set);
        const int64_t graph = lg__proto_begin(&o, MODEL_GRAPH), node = lg__proto_begin(&o, GRAPH_NODE);
        lg__proto_put_text(&o, NODE_INPUT, "x");
        lg__proto_put_text(&o, NODE_INPUT, "fc.weight");
        lg__proto_put_text(&o, NODE_INPUT, "fc.bias");
        lg__proto_put_text(&o, NODE_OUTPUT, "y");
        lg__proto_put_text(&o, NODE_OP, op);
        const int64_t a = lg__proto_begin(&o, NODE_ATTRIBUTE);
        lg__proto_put_text(&o, ATTRIBUTE_NAME, "transB");
        lg__proto_put_int(&o, ATTRIBUTE_I, 1);
        lg__proto_end(&o, a);
        lg__proto_end(&o, node);
        put_tensor(&o, "fc.weight", LG_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
        put_tensor(&o, "fc.bias", LG_SHAPE(2), (float[]){10, 20});
        put_info(&o, GRAPH_INPUT, "x");
        put_info(&o, GRAPH_OUTPUT, "y");
        lg__proto_end(&o, graph);
        return o;
}

static lg_module *loaded(lg_ctx *c, const char *op, int64_t opset)
{
        lg__proto_out o = linear_model(c, op, opset);
        put_file(at("model.onnx"), o.data, (size_t)o.bytes);
        lg__proto_free(&o);
        return lg_onnx_load(c, at("model.onnx"));
}

/* ---- models of one node ---- */

/* Writes an attribute from NAME=VALUE: a whole number, several (3, or 3,4), a float (0.5) or a text. */
static void put_attribute(lg__proto_out *o, const char *text)
{
        const char *value = strchr(text, '=') + 1;
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(value - 1 - text), text);
        const int64_t a = lg__proto_begin(o, NODE_ATTRIBUTE);
        lg__proto_put_text(o, ATTRIBUTE_NAME, name);
        if (value[strspn(value, "-0123456789")] == '\0')
                lg__proto_put_int(o, ATTRIBUTE_I, atoll(value));
        else if (value[strspn(value, "-.0123456789")] == '\0')
                lg__proto_put_f32(o, ATTRIBUTE_F, strtof(value, NULL));
        else if (strchr(value, ','))
                for (const char *v = value; *v; v += strcspn(v, ","), v += *v == ',')
                        lg__proto_put_int(o, ATTRIBUTE_INTS, atoll(v));
        else
                lg__proto_put_bytes(o, ATTRIBUTE_S, value, strlen(value));
        lg__proto_end(o, a);
}

/* Begins a model; returns its graph. */
static int64_t begin_model(lg__proto_out *o)
{
        lg__proto_put_int(o, MODEL_IR_VERSION, 10);
        const int64_t set = lg__proto_begin(o, MODEL_OPSET);
        lg__proto_put_int(o, OPSET_VERSION, LG__ONNX_OPSET);
        lg__proto_end(o, set);
        return lg__proto_begin(o, MODEL_GRAPH);
}

/* Writes a node, such as "Conv pads=1,1,". Operands and results have a letter each, or '-' where one is left out. */
static void put_node(lg__proto_out *o, const char *node, const char *operands, const char *results)
{
        char text[256];
        const int64_t n = lg__proto_begin(o, GRAPH_NODE);
        for (const char *s = operands; *s; s++)
                lg__proto_put_text(o, NODE_INPUT, (char[]){*s == '-' ? '\0' : *s, '\0'});
        for (const char *s = results; *s; s++)
                lg__proto_put_text(o, NODE_OUTPUT, (char[]){*s, '\0'});
        snprintf(text, sizeof text, "%s", node);
        lg__proto_put_text(o, NODE_OP, strtok(text, " "));
        for (const char *a; (a = strtok(NULL, " "));)
                put_attribute(o, a);
        lg__proto_end(o, n);
}

/* Ends a model, which has an input or output for each letter, and loads it. */
static lg_module *end_model(lg__proto_out *o, int64_t graph, const char *inputs, const char *outputs)
{
        for (const char *s = inputs; *s; s++)
                if (*s != '-')
                        put_info(o, GRAPH_INPUT, (char[]){*s, '\0'});
        for (const char *s = outputs; *s; s++)
                put_info(o, GRAPH_OUTPUT, (char[]){*s, '\0'});
        lg__proto_end(o, graph);
        put_file(at("model.onnx"), o->data, (size_t)o->bytes);
        lg__proto_free(o);
        return lg_onnx_load(o->ctx, at("model.onnx"));
}

static lg_module *node_module(lg_ctx *c, const char *node, const char *operands)
{
        lg__proto_out o = {.ctx = c};
        const int64_t graph = begin_model(&o);
        put_node(&o, node, operands, "0");
        return end_model(&o, graph, operands, "0");
}

/* Runs a node on operands, of which those left out are not in the list. Returns its first result, or NULL. */
static lg_tensor *run_of(lg_ctx *c, const char *node, const char *operands, lg_list inputs)
{
        lg_module *m = node_module(c, node, operands);
        lg_outputs out;
        lg_tensor *in[9] = {NULL};
        for (int64_t i = 0; i < inputs.count; i++)
                in[i] = inputs.items[i];
        in[inputs.count] = LG_END;
        const bool good = m && lg_forward_all_list(m, &out, sizeof out, in);
        lg_module_free(m);
        return good ? out.items[0] : NULL;
}

/* A node, and its operands; user of a function to check. */
typedef struct checked {
        const char *node, *operands;
        lg_list rest; /* operands after those that are checked */
} checked;

static lg_tensor *run_checked(lg_ctx *c, lg_list in, void *user)
{
        const checked *k = user;
        lg_tensor *all[9];
        int64_t n = 0;
        for (int64_t i = 0; i < in.count; i++)
                all[n++] = in.items[i];
        for (int64_t i = 0; i < k->rest.count; i++)
                all[n++] = k->rest.items[i];
        return run_of(c, k->node, k->operands, (lg_list){n, all});
}

static void check_node(lg_ctx *c, const char *node, const char *operands, lg_list in, lg_list rest)
{
        lg_check_report r;
        checked k = {node, operands, rest};
        if (!lg_gradcheck(c, run_checked, in, .user = &k, .report = &r))
                fail_msg("%s: %s", node, lg_error(c) ? lg_error(c) : r.text);
}

static lg_tensor *drawn(lg_ctx *c, lg_shape shape)
{
        return lg_uniform(c, -0.9, 0.9, shape, .dtype = LG_F64, .requires_grad = true);
}

TEST_CASE(gradients_of_nodes)
{
        lg_ctx *c = open_ctx();
        const lg_list none = {0, NULL};
        lg_tensor *at = lg_from(c, ((int64_t[]){1, 2}), LG_SHAPE(2));
        lg_tensor *x = drawn(c, LG_SHAPE(2, 2, 5, 4)), *w = drawn(c, LG_SHAPE(3, 2, 2, 2));
        check_node(c, "DeformConv pads=1,0,0,1", "abcde",
                   LG_LIST(x, w, drawn(c, LG_SHAPE(2, 8, 5, 4)), drawn(c, LG_SHAPE(3)), drawn(c, LG_SHAPE(2, 4, 5, 4))),
                   none);
        lg_tensor *rois = lg_from(c, ((double[]){0.3, 0.4, 2.9, 3.7, 1.1, 0.2, 3.4, 4.8}), LG_SHAPE(2, 4));
        lg_tensor *images = lg_from(c, ((int64_t[]){1, 0}), LG_SHAPE(2));
        check_node(c, "RoiAlign output_height=2 output_width=3", "abc", LG_LIST(x), LG_LIST(rois, images));
        check_node(c, "RoiAlign output_height=2 output_width=2 sampling_ratio=2 mode=max", "abc", LG_LIST(x),
                   LG_LIST(rois, images));
        check_node(c, "TensorScatter axis=1 mode=circular", "abc",
                   LG_LIST(drawn(c, LG_SHAPE(2, 3, 2)), drawn(c, LG_SHAPE(2, 2, 2))), LG_LIST(at));
        check_node(c, "CausalConvWithState activation=silu", "abcd",
                   LG_LIST(drawn(c, LG_SHAPE(2, 3, 4)), drawn(c, LG_SHAPE(3, 1, 3)), drawn(c, LG_SHAPE(3)),
                           drawn(c, LG_SHAPE(2, 3, 2))),
                   none);
        check_node(c, "LinearAttention q_num_heads=4 kv_num_heads=2", "abcdef",
                   LG_LIST(drawn(c, LG_SHAPE(2, 3, 8)), drawn(c, LG_SHAPE(2, 3, 4)), drawn(c, LG_SHAPE(2, 3, 6)),
                           drawn(c, LG_SHAPE(2, 2, 2, 3)), drawn(c, LG_SHAPE(2, 3, 4)), drawn(c, LG_SHAPE(2, 3, 1))),
                   none);
        lg_tensor *image = lg_from(c, ((int64_t[]){2, 3, 4}), LG_SHAPE(3));
        check_node(c, "Col2Im strides=1,2,1 pads=0,0,0,1,0,0,", "abc", LG_LIST(drawn(c, LG_SHAPE(1, 16, 6))),
                   LG_LIST(image, lg_from(c, ((int64_t[]){2, 2, 2}), LG_SHAPE(3))));
        lg_close(c);
}

/* Values that the package's tests do not have. */
TEST_CASE(values_of_nodes)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((float[]){1, 2, 3, 4}), LG_SHAPE(1, 1, 4));
        lg_tensor *y = run_of(c, "AveragePool kernel_shape=2, strides=2, dilations=2, ceil_mode=1", "a", LG_LIST(x));
        assert_list(y, 1e-6, 2, 3); /* the last window has one element of x */
        lg_close(c);
}

/* Runs a node that must fail with a message that begins with the operator's name and has this text. */
static void refuse(lg_ctx *c, const char *text, const char *node, const char *operands, lg_list in)
{
        const lg_scope scope = lg_scope_begin(c);
        assert_null(run_of(c, node, operands, in));
        if (!lg_error(c) || strncmp(lg_error(c), node, strcspn(node, " ")) != 0 || !strstr(lg_error(c), text))
                fail_msg("%s: %s", node, lg_error(c) ? lg_error(c) : "no error");
        lg_clear_error(c);
        lg_scope_end(c, scope);
}

TEST_CASE(operands_that_do_not_fit)
{
        lg_ctx *c = open_ctx();
        lg_tensor *a = lg_ones(c, LG_SHAPE(2, 3, 4)), *b = lg_ones(c, LG_SHAPE(2, 5, 4)),
                  *one = lg_ones(c, LG_SHAPE(1));
        lg_tensor *image = lg_ones(c, LG_SHAPE(2, 2, 3, 3)), *w = lg_ones(c, LG_SHAPE(1, 2, 2, 2));
        lg_tensor *rois = lg_ones(c, LG_SHAPE(1, 4)), *two = lg_full(c, LG_SHAPE(1), 2, .dtype = LG_I64);
        lg_tensor *minus = lg_full(c, LG_SHAPE(1), -1, .dtype = LG_I64);
        refuse(c, "an update", "TensorScatter axis=1", "ab", LG_LIST(a, b));
        refuse(c, "an update", "TensorScatter axis=0", "ab", LG_LIST(a, a));
        refuse(c, "an update", "TensorScatter axis=1", "abc", LG_LIST(a, a, two));
        refuse(c, "image 2 of 2", "RoiAlign", "abc", LG_LIST(image, rois, two));
        refuse(c, "image -1 of 2", "RoiAlign", "abc", LG_LIST(image, rois, minus));
        refuse(c, "an image", "RoiAlign", "abc", LG_LIST(a, rois, two));
        refuse(c, "a result of 1 x 0", "RoiAlign output_width=0", "abc", LG_LIST(image, rois, two));
        refuse(c, "a region", "RoiAlign", "abc",
               LG_LIST(image, lg_full(c, LG_SHAPE(1, 4), INFINITY), lg_zeros(c, LG_SHAPE(1), .dtype = LG_I64)));
        refuse(c, "boxes", "NonMaxSuppression", "ab", LG_LIST(a, b));
        refuse(c, "update_rule", "LinearAttention kv_num_heads=1 q_num_heads=1", "abc", LG_LIST(a, a, a));
        refuse(c, "update_rule", "LinearAttention kv_num_heads=1 q_num_heads=1 update_rule=linear", "abc-d",
               LG_LIST(a, a, a, a));
        refuse(c, "heads", "LinearAttention kv_num_heads=3 q_num_heads=3 update_rule=linear", "abc", LG_LIST(a, a, a));
        refuse(c, "heads", "LinearAttention kv_num_heads=2 q_num_heads=1 update_rule=linear", "abc", LG_LIST(a, a, a));
        refuse(c, "state", "LinearAttention kv_num_heads=1 q_num_heads=1 update_rule=linear", "abcd",
               LG_LIST(a, a, a, image));
        refuse(c, "state", "CausalConvWithState", "ab-c", LG_LIST(a, lg_ones(c, LG_SHAPE(3, 1, 2)), b));
        refuse(c, "operands", "DeformConv", "abc", LG_LIST(image, w, lg_ones(c, LG_SHAPE(2, 7, 2, 2))));
        refuse(c, "operands", "DeformConv group=2", "abc", LG_LIST(image, w, lg_ones(c, LG_SHAPE(2, 8, 2, 2))));
        refuse(c, "sides", "Col2Im", "abc", LG_LIST(a, two, two));
        refuse(c, "band 0", "MelWeightMatrix", "abcde",
               LG_LIST(two, two, lg_full(c, LG_SHAPE_0D, 100), lg_zeros(c, LG_SHAPE_0D), lg_full(c, LG_SHAPE_0D, 900)));
        refuse(c, "its size", "HannWindow", "a", LG_LIST(minus));
        refuse(c, "its list", "TfIdfVectorizer ngram_counts=0, ngram_indexes=0, pool_int64s=1,2,", "a", LG_LIST(two));
        refuse(c, "its list", "TfIdfVectorizer ngram_counts=0,3, ngram_indexes=0, pool_int64s=1,", "a", LG_LIST(two));
        refuse(c, "as int64", "BitCast to=7", "a", LG_LIST(one));
        refuse(c, "300 sizes", "Reshape", "ab", LG_LIST(a, lg_ones(c, LG_SHAPE(300), .dtype = LG_I64)));
        refuse(c, "lacks the dtype", "Bernoulli dtype=3", "a", LG_LIST(one));
        refuse(c, "shape", "RandomUniform", "", (lg_list){0, NULL});
        lg_close(c);
}

/* Results that are drawn: their dtypes, shapes and means. */
TEST_CASE(random_nodes)
{
        static const struct {
                const char *node;
                lg_dtype dtype;
                double low, high, mean, off;
        } nodes[] = {
                {"RandomUniformLike low=2.0 high=4.0 dtype=1", LG_F32, 2, 4, 3, 0.05},
                {"RandomNormalLike mean=1.0 scale=0.1", LG_F64, 0, 2, 1, 0.01},
                {"Bernoulli dtype=9", LG_BOOL, 0, 1, 0.25, 0.03},
                {"Bernoulli", LG_F64, 0, 1, 0.25, 0.03},
        };
        lg_ctx *c = open_ctx();
        lg_tensor *quarter = lg_full(c, LG_SHAPE(100, 50), 0.25, .dtype = LG_F64);
        for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
                lg_tensor *y = run_of(c, nodes[i].node, "a", LG_LIST(quarter));
                assert_ok(c);
                assert_int_equal(lg_dtype_of(y), nodes[i].dtype);
                assert_shape(y, LG_SHAPE(100, 50));
                y = lg_cast(y, LG_F64);
                assert_near(lg_item(lg_mean(y)), nodes[i].mean, nodes[i].off);
                assert_true(lg_item(lg_amin(y)) >= nodes[i].low && lg_item(lg_amax(y)) <= nodes[i].high);
                assert_true(lg_item(lg_var(y)) > 1e-4);
        }
        lg_tensor *y = run_of(c, "RandomUniform shape=30,40, dtype=11", "", (lg_list){0, NULL});
        assert_shape(y, LG_SHAPE(30, 40));
        assert_near(lg_item(lg_mean(y)), 0.5, 0.05);
        y = run_of(c, "RandomNormal shape=30,40, mean=3.0 scale=2.0", "", (lg_list){0, NULL});
        assert_near(lg_item(lg_mean(y)), 3, 0.3);
        assert_near(lg_item(lg_var(y)), 4, 0.6);
        lg_tensor *logs = lg_from(c, ((float[]){0, 1.0986123f, -100}), LG_SHAPE(1, 3)); /* 1 to 3 to 0 */
        y = run_of(c, "Multinomial sample_size=2000", "a", LG_LIST(logs));
        assert_int_equal(lg_dtype_of(y), LG_I32);
        assert_near(lg_item(lg_mean(lg_cast(y, LG_F64))), 0.75, 0.05);
        lg_tensor *half = lg_full(c, LG_SHAPE_0D, 0.5), *on = lg_full(c, LG_SHAPE_0D, 1, .dtype = LG_BOOL);
        y = run_of(c, "Dropout", "abc", LG_LIST(quarter, half, on));
        assert_near(lg_item(lg_mean(y)), 0.25, 0.03);
        assert_near(lg_item(lg_amax(y)), 0.5, 1e-6);
        assert_near(lg_item(lg_amin(y)), 0, 1e-9);
        lg_close(c);
}

TEST_CASE(parameters_have_the_files_names)
{
        lg_ctx *c = open_ctx();
        lg_module *m = loaded(c, "Gemm", 13);
        assert_ok(c);
        lg_tensor *w = lg_parameter(m, "fc.weight"), *x = lg_ones(c, LG_SHAPE(4, 3));
        assert_true(w && lg_parameter(m, "fc.bias") && lg_requires_grad(w));
        lg_tensor *y = lg_forward(m, x);
        assert_list(y, 1e-6, 16, 35, 16, 35, 16, 35, 16, 35);
        assert_true(lg_backward(lg_sum(y)));
        assert_list(lg_grad_of(w), 1e-6, 4, 4, 4, 4, 4, 4);
        lg_module *copy = lg_module_clone(m);
        lg_module_free(m);
        assert_list(lg_forward(copy, x), 1e-6, 16, 35, 16, 35, 16, 35, 16, 35);
        assert_true(lg_module_cast(copy, LG_F64));
        assert_int_equal(lg_dtype_of(lg_forward(copy, lg_cast(x, LG_F64))), LG_F64);
        lg_module *frozen = lg_onnx_load(c, at("model.onnx"), .frozen = true);
        assert_false(lg_requires_grad(lg_parameter(frozen, "fc.weight")));
        lg_close(c);
}

TEST_CASE(wrong_uses_are_errors)
{
        lg_ctx *c = open_ctx();
        assert_null(loaded(c, "Gemmm", 13));
        assert_error(c, LG_ERR_FORMAT, "Gemmm");
        assert_null(loaded(c, "Gemm", LG__ONNX_OPSET + 1));
        assert_error(c, LG_ERR_FORMAT, "opset");
        assert_null(lg_onnx_load(c, at("none.onnx")));
        assert_error(c, LG_ERR_IO, "none.onnx");
        assert_null(lg_onnx_load(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "path");
        lg_module *m = loaded(c, "Gemm", 13);
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 3));
        assert_null(lg_forward(m, x, x));
        assert_error(c, LG_ERR_ARGUMENT, "2 inputs");
        assert_non_null(lg_module_replace(m, "fc", lg_nn_linear(c, 3, 2, .no_bias = true)));
        assert_null(lg_forward(m, x));
        assert_error(c, LG_ERR_STATE, "parts");
        lg_close(c);
}

TEST_CASE(tensors_without_a_module)
{
        lg_ctx *c = open_ctx();
        lg_weight t;
        const char *key, *value;
        lg_module_free(loaded(c, "Gemm", 13));
        lg_weights *w = lg_weights_open(c, at("model.onnx"));
        assert_ok(c);
        assert_true(lg_weights_at(w, 0, &t) && !lg_weights_at(w, 2, &t));
        assert_string_equal(t.name, "fc.weight");
        assert_string_equal(t.dtype_name, "F32");
        assert_true(t.bytes == 24 && t.shape.ndim == 2);
        assert_list(lg_weights_read(w, "fc.bias"), 0, 10, 20);
        assert_true(lg_weights_metadata(w, 1, &key, &value) && !lg_weights_metadata(w, 3, &key, &value));
        assert_string_equal(key, "opset");
        assert_string_equal(value, "13");
        assert_true(lg_weights_metadata(w, 2, &key, &value));
        assert_string_equal(key, "output y");
        assert_string_equal(value, "no tensor");
        assert_null(lg_weights_read(w, "fc.bia"));
        assert_error(c, LG_ERR_ARGUMENT, "fc.bias");
        lg_weights_close(w);
        put_file(at("model.onnx"), "\x08\x0a", 2);
        assert_null(lg_weights_open(c, at("model.onnx")));
        assert_error(c, LG_ERR_FORMAT, "this is no ONNX file");
        lg_close(c);
}

/* Ends a model of an initialiser "t" of that type, whose raw bytes are written, and of a node that reads it. */
static lg_module *tensor_module(lg__proto_out *o, int64_t graph, int64_t t, lg_dtype dtype, const void *raw,
                                size_t bytes)
{
        lg__proto_put_int(o, TENSOR_DIMS, (int64_t)(bytes / lg_dtype_size(dtype)));
        lg__proto_put_int(o, TENSOR_DTYPE, lg__onnx_type(dtype));
        lg__proto_put_text(o, TENSOR_NAME, "t");
        if (raw)
                lg__proto_put_bytes(o, TENSOR_RAW, raw, bytes);
        lg__proto_end(o, t);
        put_node(o, "Identity", "t", "y");
        return end_model(o, graph, "x", "y");
}

TEST_CASE(wrong_graphs_are_errors)
{
        lg_ctx *c = open_ctx();
        lg__proto_out o = {.ctx = c};
        int64_t graph = begin_model(&o);
        put_node(&o, "Abs", "x", "y");
        put_node(&o, "Neg", "x", "y");
        assert_null(end_model(&o, graph, "x", "y"));
        assert_error(c, LG_ERR_FORMAT, "computed twice");
        o = (lg__proto_out){.ctx = c};
        graph = begin_model(&o);
        put_node(&o, "Abs", "z", "y");
        put_node(&o, "Neg", "y", "z");
        assert_null(end_model(&o, graph, "x", "y"));
        assert_error(c, LG_ERR_FORMAT, "before a node computes it");
        o = (lg__proto_out){.ctx = c};
        graph = begin_model(&o);
        assert_null(tensor_module(&o, graph, lg__proto_begin(&o, GRAPH_INITIALIZER), LG_BOOL, "\1\2", 2));
        assert_error(c, LG_ERR_FORMAT, "neither 0 nor 1");
        lg_close(c);
}

/* Elements beside the model are read from its folder and those below it alone. */
TEST_CASE(external_data)
{
        static const char *const places[] = {"weights", "../weights", "a/../../weights", "..", "/etc/hosts", "none"};
        lg_ctx *c = open_ctx();
        put_file(at("weights"), (float[]){5, 6, 7}, 3 * sizeof(float));
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                lg__proto_out o = {.ctx = c};
                const int64_t graph = begin_model(&o), t = lg__proto_begin(&o, GRAPH_INITIALIZER);
                static const char *const keys[] = {"location", "offset"};
                const char *values[] = {places[i], "4"};
                for (int k = 0; k < 2; k++) {
                        const int64_t entry = lg__proto_begin(&o, TENSOR_EXTERNAL);
                        lg__proto_put_text(&o, ENTRY_KEY, keys[k]);
                        lg__proto_put_text(&o, ENTRY_VALUE, values[k]);
                        lg__proto_end(&o, entry);
                }
                lg__proto_put_int(&o, TENSOR_LOCATION, 1);
                lg_module *m = tensor_module(&o, graph, t, LG_F32, NULL, 2 * sizeof(float));
                if (i == 0)
                        assert_list(lg_forward(m, lg_ones(c, LG_SHAPE(1))), 0, 6, 7);
                else if (i == 5)
                        assert_error(c, LG_ERR_IO, "none");
                else
                        assert_error(c, LG_ERR_FORMAT, "must be in the model's folder");
        }
        lg_close(c);
}

/* Every beginning of a file, and every file with one other byte, is read or is an error, and nothing is left. */
TEST_CASE(damaged_files)
{
        lg_ctx *c = open_ctx();
        lg__proto_out o = linear_model(c, "Gemm", 13);
        for (int64_t i = 0; i < 3 * o.bytes; i++) {
                const int64_t at_byte = i % o.bytes;
                char was = o.data[at_byte];
                o.data[at_byte] = (char)(i < o.bytes ? was : i < 2 * o.bytes ? ~was : was + 1);
                put_file(at("model.onnx"), o.data, (size_t)(i < o.bytes ? at_byte : o.bytes));
                o.data[at_byte] = was;
                const lg_scope scope = lg_scope_begin(c);
                lg_module *m = lg_onnx_load(c, at("model.onnx"));
                assert_true(m || lg_error(c));
                if (m)
                        drop(lg_forward(m, lg_ones(c, LG_SHAPE(4, 3))));
                lg_clear_error(c);
                lg_scope_end(c, scope);
                lg_module_free(m);
                lg_clear_error(c);
                assert_int_equal(lg_live_tensors(c), 0);
        }
        lg__proto_free(&o);
        lg_close(c);
}

AROUND_TESTS(make_folder, remove_folder);
