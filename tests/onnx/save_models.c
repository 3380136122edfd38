/* save_models.c - saves every module and op as an ONNX file, with inputs and outputs: save_models FOLDER DTYPE
 * [PATTERN]
 *
 * Of each case, FOLDER/NAME gets model.onnx and, for batches b of 2 and 5, in_b_0.npy, ... and out_b_0.npy, ... (bf16
 * as f32). A line is printed for each: "saved NAME", "refused NAME: message", or "differs NAME: message" if the file,
 * read again by lg_onnx_load(), gives other outputs. The ops are those of calls.h, with names op_X and batches of 2.
 * DTYPE is f32, f16 or bf16. */
#include <fnmatch.h>
#include <grad.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../../models/models.h"
#include "../calls.h"

typedef struct table {
        lg_ctx *c;
        const char *folder, *pattern, *name; /* name: of the case */
        const large_call *call;              /* NULL: a module */
        lg_dtype dtype;
        int wrong;
} table;

/* ---- inputs ---- */

/* Makes the inputs that a text describes, separated by ';', for a batch of that size: sizes separated by commas, in
 * which n is the batch. In front of the sizes, "i10 " means integers below 10, "a3 " 3 times the position in the last
 * dimensions after the second, "p " positive numbers, "l7 " integers from 1 to 7. */
static int make_inputs(const table *s, const char *text, int64_t batch, lg_tensor **ret)
{
        int count = 0;
        for (; s->call && count < operands_of(s->call); count++)
                ret[count] = draw_operand(s->c, s->call, count, s->dtype);
        for (const char *at = text; at && *text; at = strchr(at, ';'), at += at != NULL) {
                const char kind = *at >= 'a' && *at <= 'z' && *at != 'n' ? *at : 0;
                const int most = kind ? atoi(at + 1) : 0;
                lg_shape shape = LG_SHAPE_0D;
                at = kind ? strchr(at, ' ') + 1 : at;
                for (const char *p = at; *p && *p != ';'; p += strcspn(p, ",;"), p += *p == ',')
                        shape.size[shape.ndim++] = *p == 'n' ? batch : atoi(p);
                lg_tensor *t = kind == 'i'   ? lg_randint(s->c, 0, most, shape)
                               : kind == 'l' ? lg_randint(s->c, 1, most + 1, shape)
                               : kind == 'p' ? lg_uniform(s->c, 0.1, 1, shape)
                                             : lg_normal(s->c, 0, 1, shape);
                if (kind == 'a') {
                        int64_t rest = 1;
                        for (int i = 2; i < shape.ndim; i++)
                                rest *= shape.size[i];
                        lg_shape flat = {.ndim = 3, .size = {shape.size[0], shape.size[1], rest}};
                        t = lg_reshape(lg_expand(lg_arange(s->c, 0, (double)(most * rest), most), flat), shape);
                        t = lg_contiguous(t);
                }
                ret[count++] = !kind || kind == 'p' ? lg_cast(t, s->dtype) : t;
        }
        ret[count] = LG_END;
        return count;
}

/* Returns the dimension that is n, or -1 if there is none. */
static int64_t symbolic(const char *text)
{
        int64_t dim = 0;
        for (const char *p = strchr(text, ' ') ? strchr(text, ' ') + 1 : text; *p && *p != ';'; p++)
                if (*p == 'n')
                        return dim;
                else
                        dim += *p == ',';
        return -1;
}

/* ---- a case ---- */

static bool begin(table *s, const char *name)
{
        s->name = name;
        lg_clear_error(s->c);
        lg_seed(s->c, 1);
        return !fnmatch(s->pattern, name, 0);
}

/* Makes constants of first values, such as ones, different. */
static void shake(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path, (void)is_buffer, (void)user;
        if (lg_dtype_is_float(lg_dtype_of(t)) && lg_shape_of(t).ndim == 1)
                lg_add_(t, lg_cast(lg_uniform(lg_ctx_of(t), 0, 0.3, lg_shape_of(t)), lg_dtype_of(t)));
}

static void put(const table *s, lg_tensor *t, const char *kind, int64_t batch, int i)
{
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/%s_%d_%d.npy", s->folder, s->name, kind, (int)batch, i);
        lg_write_npy(lg_dtype_of(t) == LG_BF16 ? lg_cast(t, LG_F32) : t, path);
}

/* Runs both modules on a batch. Returns the largest difference of their outputs, relative to the largest output. */
static double compare(const table *s, lg_module *m, lg_module *again, const char *inputs, int64_t batch)
{
        lg_tensor *in[17];
        lg_outputs out = {0}, other = {0};
        const int count = make_inputs(s, inputs, batch, in);
        double far = 0;
        lg_forward_all_list(m, &out, sizeof out, in);
        lg_forward_all_list(again, &other, sizeof other, in);
        for (int i = 0; i < count; i++)
                put(s, in[i], "in", batch, i);
        for (int i = 0; i < out.count && !lg_error(s->c); i++) {
                lg_tensor *y = lg_cast(out.items[i], LG_F64), *z = lg_cast(other.items[i], LG_F64);
                put(s, out.items[i], "out", batch, i);
                if (lg_numel(y))
                        far = fmax(far,
                                   lg_item(lg_amax(lg_abs(lg_sub(y, z)))) / fmax(1e-6, lg_item(lg_amax(lg_abs(y)))));
        }
        return other.count == out.count ? far : INFINITY;
}

static void end(table *s, lg_module *m, const char *inputs)
{
        char path[4096];
        lg_tensor *in[17];
        lg_scope scope = lg_scope_begin(s->c);
        const int count = make_inputs(s, inputs, 2, in);
        const int64_t dim = symbolic(inputs);
        snprintf(path, sizeof path, "%s/%s", s->folder, s->name);
        mkdir(path, 0777);
        strcat(path, "/model.onnx");
        lg_module_cast(m, s->dtype);
        lg_train(m, false);
        lg_no_grad(s->c) lg_each_tensor(m, shake, NULL);
        if (lg_error(s->c) || !lg_onnx_save(m, path, ((lg_list_in){count, in}), .symbolic = (lg_ints){dim >= 0, &dim},
                                            .fixed = dim < 0)) {
                printf("refused %s: %s\n", s->name, lg_error(s->c));
        } else {
                const double near = s->dtype == LG_F32 ? 1e-5 : s->dtype == LG_F16 ? 4e-3 : 3e-2;
                lg_module *again = lg_onnx_load(s->c, path);
                lg_train(again, false);
                double far = 0;
                lg_no_grad(s->c) far = compare(s, m, again, inputs, 2);
                lg_no_grad(s->c) far = dim < 0 ? far : fmax(far, compare(s, m, again, inputs, 5));
                if (lg_error(s->c))
                        printf("differs %s: %s\n", s->name, lg_error(s->c));
                else
                        printf(far <= near ? "saved %s\n" : "differs %s: by %.2g\n", s->name, far);
                s->wrong += lg_error(s->c) || !(far <= near);
                lg_module_free(again);
        }
        lg_module_free(m);
        lg_clear_error(s->c);
        lg_scope_end(s->c, scope);
        fflush(stdout);
}

#define CASE(name, inputs, module)                                                                                     \
        if (begin(s, name))                                                                                            \
        end(s, module, inputs)

/* ---- layers.h ---- */

static void linear_layers(table *s)
{
        lg_ctx *c = s->c;
        CASE("linear", "n,6", lg_nn_linear(c, 6, 5));
        CASE("linear_no_bias", "n,6", lg_nn_linear(c, 6, 5, .no_bias = true));
        CASE("linear_3d", "n,4,6", lg_nn_linear(c, 6, 5));
        CASE("linear_middle", "4,n,6", lg_nn_linear(c, 6, 5));
        CASE("linear_one", "6", lg_nn_linear(c, 6, 5));
        CASE("sequential_relu", "n,6",
             lg_nn_sequential(c, lg_nn_linear(c, 6, 5), lg_nn_relu(c), lg_nn_linear(c, 5, 3)));
        CASE("sequential_empty", "n,6", lg_nn_sequential(c));
        CASE("residual", "n,6", lg_nn_residual(c, lg_nn_linear(c, 6, 6)));
        CASE("residual_shortcut", "n,6", lg_nn_residual(c, lg_nn_linear(c, 6, 5), .shortcut = lg_nn_linear(c, 6, 5)));
        CASE("bilinear", "n,4;n,3", lg_nn_bilinear(c, 4, 3, 5));
        CASE("bilinear_no_bias", "n,4;n,3", lg_nn_bilinear(c, 4, 3, 5, .no_bias = true));
        CASE("adaptive_log_softmax", "n,16", lg_nn_adaptive_log_softmax(c, 16, 20, LG_INTS(5, 10), .head_bias = true));
        CASE("adaptive_log_softmax_target", "n,16;i20 n", lg_nn_adaptive_log_softmax(c, 16, 20, LG_INTS(5, 10)));
        CASE("dropout", "n,6", lg_nn_dropout(c, 0.5));
        CASE("dropout2d", "n,6,2,2", lg_nn_dropout2d(c, 0.5));
        CASE("dropout3d", "n,6,2,2,2", lg_nn_dropout3d(c, 0.5));
        CASE("alpha_dropout", "n,6", lg_nn_alpha_dropout(c, 0.5));
        CASE("feature_alpha_dropout", "n,6,2", lg_nn_feature_alpha_dropout(c, 0.5));
        CASE("flatten", "n,3,2,2", lg_nn_flatten(c));
        CASE("unflatten", "n,12", lg_nn_unflatten(c, 1, LG_SHAPE(3, 4)));
        CASE("unflatten_last", "n,2,12", lg_nn_unflatten(c, -1, LG_SHAPE(3, 4)));
        CASE("identity", "n,6", lg_nn_identity(c));
        CASE("embedding", "i10 n,4", lg_nn_embedding(c, 10, 6));
        CASE("embedding_padding", "i10 n,4", lg_nn_embedding(c, 10, 6, .padding_idx = LG_ZERO_INT));
        CASE("embedding_max_norm", "i10 n,4", lg_nn_embedding(c, 10, 6, .max_norm = 1));
        CASE("embedding_bag", "i10 n,4", lg_nn_embedding_bag(c, 10, 6));
        CASE("embedding_bag_sum", "i10 n,4", lg_nn_embedding_bag(c, 10, 6, .mode = LG_BAG_SUM));
        CASE("embedding_bag_max", "i10 n,4", lg_nn_embedding_bag(c, 10, 6, .mode = LG_BAG_MAX));
        CASE("embedding_bag_weights", "i10 n,4;n,4", lg_nn_embedding_bag(c, 10, 6, .mode = LG_BAG_SUM));
        CASE("embedding_bag_padding", "i10 n,4", lg_nn_embedding_bag(c, 10, 6, .padding_idx = 3));
}

static void norms(table *s)
{
        lg_ctx *c = s->c;
        CASE("batch_norm1d", "n,4", lg_nn_batch_norm1d(c, 4));
        CASE("batch_norm1d_3d", "n,4,5", lg_nn_batch_norm1d(c, 4, .eps = 1e-3));
        CASE("batch_norm2d", "n,4,3,2", lg_nn_batch_norm2d(c, 4));
        CASE("batch_norm2d_no_affine", "n,4,3,2", lg_nn_batch_norm2d(c, 4, .no_affine = true));
        CASE("batch_norm2d_no_running", "n,4,3,2", lg_nn_batch_norm2d(c, 4, .no_running = true));
        CASE("batch_norm2d_neither", "n,4,3,2", lg_nn_batch_norm2d(c, 4, .no_running = true, .no_affine = true));
        CASE("batch_norm3d", "n,4,3,2,2", lg_nn_batch_norm3d(c, 4));
        CASE("batch_norm_relu", "n,4,3,2", lg_nn_sequential(c, lg_nn_batch_norm2d(c, 4), lg_nn_relu(c)));
        CASE("conv_batch_norm", "n,3,5,5", lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3), lg_nn_batch_norm2d(c, 4)));
        CASE("conv_batch_norm_relu", "n,3,5,5",
             lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3, .no_bias = true), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c)));
        CASE("instance_norm1d", "n,4,5", lg_nn_instance_norm1d(c, 4));
        CASE("instance_norm2d", "n,4,5,3", lg_nn_instance_norm2d(c, 4, .affine = true));
        CASE("instance_norm2d_running", "n,4,5,3", lg_nn_instance_norm2d(c, 4, .affine = true, .running = true));
        CASE("instance_norm3d", "n,4,3,2,2", lg_nn_instance_norm3d(c, 4, .eps = 1e-3));
        CASE("instance_norm_sample", "4,5,3", lg_nn_instance_norm2d(c, 4));
        CASE("layer_norm", "n,3,6", lg_nn_layer_norm(c, LG_SHAPE(6)));
        CASE("layer_norm_2d", "n,3,6", lg_nn_layer_norm(c, LG_SHAPE(3, 6), .eps = 1e-3));
        CASE("layer_norm_no_bias", "n,3,6", lg_nn_layer_norm(c, LG_SHAPE(6), .no_bias = true));
        CASE("layer_norm_no_affine", "n,3,6", lg_nn_layer_norm(c, LG_SHAPE(6), .no_affine = true));
        CASE("rms_norm", "n,3,6", lg_nn_rms_norm(c, LG_SHAPE(6)));
        CASE("rms_norm_no_affine", "n,3,6", lg_nn_rms_norm(c, LG_SHAPE(3, 6), .no_affine = true, .eps = 1e-5));
        CASE("group_norm", "n,6,3,2", lg_nn_group_norm(c, 3, 6));
        CASE("group_norm_no_affine", "n,6,3", lg_nn_group_norm(c, 2, 6, .no_affine = true));
        CASE("local_response_norm", "n,6,3,2", lg_nn_local_response_norm(c, 3));
        CASE("local_response_norm_even", "n,6,3,2", lg_nn_local_response_norm(c, 4, .alpha = 0.1, .k = 2));
}

static void activations(table *s)
{
        lg_ctx *c = s->c;
        const struct {
                const char *name;
                lg_module *(*make)(lg_ctx *c);
        } plain[] = {{"relu", lg_nn_relu},           {"relu6", lg_nn_relu6},
                     {"selu", lg_nn_selu},           {"gelu", lg_nn_gelu},
                     {"gelu_tanh", lg_nn_gelu_tanh}, {"silu", lg_nn_silu},
                     {"mish", lg_nn_mish},           {"sigmoid", lg_nn_sigmoid},
                     {"tanh", lg_nn_tanh},           {"log_sigmoid", lg_nn_log_sigmoid},
                     {"softsign", lg_nn_softsign},   {"tanhshrink", lg_nn_tanhshrink},
                     {"hardswish", lg_nn_hardswish}, {"hardsigmoid", lg_nn_hardsigmoid}};
        for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
                CASE(plain[i].name, "n,3,7", plain[i].make(c));
        CASE("leaky_relu", "n,7", lg_nn_leaky_relu(c, 0.1));
        CASE("elu", "n,7", lg_nn_elu(c, 0.5));
        CASE("celu", "n,7", lg_nn_celu(c, 0.5));
        CASE("hardshrink", "n,7", lg_nn_hardshrink(c, 0.5));
        CASE("softshrink", "n,7", lg_nn_softshrink(c, 0.5));
        CASE("hardtanh", "n,7", lg_nn_hardtanh(c, -0.5, 0.7));
        CASE("softplus", "n,7", lg_nn_softplus(c, 1, 20));
        CASE("softplus_beta", "n,7", lg_nn_softplus(c, 2, 1));
        CASE("threshold", "n,7", lg_nn_threshold(c, 0.1, 20));
        CASE("rrelu", "n,7", lg_nn_rrelu(c, 1.0 / 8, 1.0 / 3));
        CASE("softmax", "n,7", lg_nn_softmax(c, 1));
        CASE("softmax_first", "n,3,7", lg_nn_softmax(c, -2));
        CASE("softmax_batch", "n,7", lg_nn_softmax(c, 0));
        CASE("softmax2d", "n,3,2,2", lg_nn_softmax2d(c));
        CASE("softmin", "n,7", lg_nn_softmin(c, 1));
        CASE("log_softmax", "n,7", lg_nn_log_softmax(c, -1));
        CASE("glu", "n,3,8", lg_nn_glu(c, -1));
        CASE("glu_first", "n,4,8", lg_nn_glu(c, 1));
        CASE("prelu", "n,3,7", lg_nn_prelu(c, 3));
        CASE("prelu_one", "n,3,7", lg_nn_prelu(c, 1));
}

/* ---- conv_layers.h ---- */

static void convolutions(table *s)
{
        lg_ctx *c = s->c;
        CASE("conv1d", "n,3,9", lg_nn_conv1d(c, 3, 4, 3));
        CASE("conv1d_options", "n,4,9",
             lg_nn_conv1d(c, 4, 6, 3, .stride = 2, .padding = 2, .dilation = 2, .groups = 2));
        CASE("conv1d_reflect", "n,3,9", lg_nn_conv1d(c, 3, 4, 3, .padding = 2, .padding_mode = LG_PAD_REFLECT));
        CASE("conv2d", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 3));
        CASE("conv2d_no_bias", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 3, .no_bias = true));
        CASE("conv2d_options", "n,4,9,8",
             lg_nn_conv2d(c, 4, 6, 3, .stride = 2, .padding = 1, .dilation = 2, .groups = 2));
        CASE("conv2d_pairs", "n,3,9,8",
             lg_nn_conv2d(c, 3, 4, 0, .kernels = LG_PAIR(3, 2), .strides = LG_PAIR(1, 2), .paddings = LG_PAIR(2, 1)));
        CASE("conv2d_depthwise", "n,4,7,6", lg_nn_conv2d(c, 4, 4, 3, .padding = 1, .groups = 4));
        CASE("conv2d_1x1", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 1));
        CASE("conv2d_reflect", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 3, .padding = 1, .padding_mode = LG_PAD_REFLECT));
        CASE("conv2d_replicate", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 3, .padding = 1, .padding_mode = LG_PAD_REPLICATE));
        CASE("conv2d_circular", "n,3,7,6", lg_nn_conv2d(c, 3, 4, 3, .padding = 1, .padding_mode = LG_PAD_CIRCULAR));
        CASE("conv2d_relu", "n,3,7,6", lg_nn_sequential(c, lg_nn_conv2d(c, 3, 4, 3), lg_nn_relu(c)));
        CASE("conv2d_sample", "3,7,6", lg_nn_conv2d(c, 3, 4, 3));
        CASE("conv3d", "n,2,4,5,4", lg_nn_conv3d(c, 2, 3, 3));
        CASE("conv3d_options", "n,2,6,5,6", lg_nn_conv3d(c, 2, 4, 3, .stride = 2, .padding = 1, .groups = 2));
        CASE("conv3d_circular", "n,2,4,5,4", lg_nn_conv3d(c, 2, 3, 3, .padding = 1, .padding_mode = LG_PAD_CIRCULAR));
        CASE("conv_transpose1d", "n,4,5", lg_nn_conv_transpose1d(c, 4, 3, 4, .stride = 2, .padding = 1));
        CASE("conv_transpose2d", "n,4,5,4", lg_nn_conv_transpose2d(c, 4, 3, 2, .stride = 2));
        CASE("conv_transpose2d_options", "n,4,5,4",
             lg_nn_conv_transpose2d(c, 4, 6, 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2));
        CASE("conv_transpose2d_pairs", "n,4,5,4",
             lg_nn_conv_transpose2d(c, 4, 6, 0, .kernels = LG_PAIR(2, 3), .strides = LG_PAIR(2, 1),
                                    .dilations = LG_PAIR(1, 2), .no_bias = true));
        CASE("conv_transpose2d_sample", "4,5,4", lg_nn_conv_transpose2d(c, 4, 3, 2, .stride = 2));
        CASE("conv_transpose3d", "n,2,3,2,3", lg_nn_conv_transpose3d(c, 2, 3, 2, .stride = 2));
}

static void pools(table *s)
{
        lg_ctx *c = s->c;
        CASE("max_pool1d", "n,3,9", lg_nn_max_pool1d(c, 2));
        CASE("max_pool1d_ceil", "n,3,9", lg_nn_max_pool1d(c, 2, .ceil_mode = true));
        CASE("max_pool2d", "n,3,7,6", lg_nn_max_pool2d(c, 3, .stride = 2, .padding = 1));
        CASE("max_pool2d_options", "n,3,9,8", lg_nn_max_pool2d(c, 2, .stride = 3, .dilation = 2, .ceil_mode = true));
        CASE("max_pool2d_pairs", "n,3,9,8",
             lg_nn_max_pool2d(c, 0, .kernels = LG_PAIR(2, 3), .paddings = LG_PAIR(1, 0)));
        CASE("max_pool2d_sample", "3,9,8", lg_nn_max_pool2d(c, 2));
        CASE("max_pool3d", "n,2,4,5,4", lg_nn_max_pool3d(c, 2));
        CASE("avg_pool1d", "n,3,9", lg_nn_avg_pool1d(c, 2, .padding = 1));
        CASE("avg_pool2d", "n,3,7,6", lg_nn_avg_pool2d(c, 3, .stride = 2, .padding = 1));
        CASE("avg_pool2d_no_pad", "n,3,7,6", lg_nn_avg_pool2d(c, 3, .padding = 1, .no_count_padding = true));
        CASE("avg_pool2d_ceil", "n,3,8,8", lg_nn_avg_pool2d(c, 3, .stride = 2, .ceil_mode = true));
        CASE("avg_pool2d_ceil_pad", "n,3,8,8", lg_nn_avg_pool2d(c, 3, .stride = 2, .padding = 1, .ceil_mode = true));
        CASE("avg_pool2d_divisor", "n,3,8,8", lg_nn_avg_pool2d(c, 2, .divisor = 3));
        CASE("avg_pool3d", "n,2,4,5,4", lg_nn_avg_pool3d(c, 2));
        CASE("adaptive_avg_pool1d", "n,3,8", lg_nn_adaptive_avg_pool1d(c, 4));
        CASE("adaptive_avg_pool2d", "n,3,8,6", lg_nn_adaptive_avg_pool2d(c, 1));
        CASE("adaptive_avg_pool2d_2", "n,3,8,6", lg_nn_adaptive_avg_pool2d(c, 2));
        CASE("adaptive_avg_pool2d_uneven", "n,3,7,5", lg_nn_adaptive_avg_pool2d(c, 3));
        CASE("adaptive_avg_pool3d", "n,2,4,5,4", lg_nn_adaptive_avg_pool3d(c, 1));
        CASE("adaptive_max_pool1d", "n,3,8", lg_nn_adaptive_max_pool1d(c, 4));
        CASE("adaptive_max_pool2d", "n,3,8,6", lg_nn_adaptive_max_pool2d(c, 2));
        CASE("adaptive_max_pool2d_uneven", "n,3,7,5", lg_nn_adaptive_max_pool2d(c, 0, .sizes = LG_PAIR(2, 3)));
        CASE("adaptive_max_pool3d", "n,2,4,5,4", lg_nn_adaptive_max_pool3d(c, 1));
        CASE("pad", "n,3,5", lg_nn_pad(c, LG_INTS(1, 2)));
        CASE("pad_value", "n,3,5", lg_nn_pad(c, LG_INTS(1, 2, 0, 1), .value = 3));
        CASE("pad_crop", "n,3,5", lg_nn_pad(c, LG_INTS(-1, 2)));
        CASE("pad_reflect", "n,3,5,4", lg_nn_pad(c, LG_INTS(1, 2, 2, 0), .mode = LG_PAD_REFLECT));
        CASE("pad_replicate", "n,3,5,4", lg_nn_pad(c, LG_INTS(1, 2, 2, 0), .mode = LG_PAD_REPLICATE));
        CASE("pad_circular", "n,3,5,4", lg_nn_pad(c, LG_INTS(1, 2, 2, 0), .mode = LG_PAD_CIRCULAR));
}

/* ---- windows.h, image.h ---- */

static void windows(table *s)
{
        lg_ctx *c = s->c;
        CASE("unfold", "n,2,5,4", lg_nn_unfold(c, 2, .stride = 2, .padding = 1));
        CASE("unfold_dilation", "n,2,7,6", lg_nn_unfold(c, 0, .kernels = LG_PAIR(2, 3), .dilation = 2));
        CASE("fold", "n,8,9", lg_nn_fold(c, 4, 2));
        CASE("fold_options", "n,8,9", lg_nn_fold(c, 4, 2, .stride = 2, .padding = 1));
        CASE("lp_pool1d", "n,2,9", lg_nn_lp_pool1d(c, 2, 3));
        CASE("lp_pool2d", "p n,2,6,7", lg_nn_lp_pool2d(c, 3, 2, .stride = 1));
        CASE("lp_pool2d_ceil", "n,2,7,7", lg_nn_lp_pool2d(c, 2, 2, .ceil_mode = true));
        CASE("lp_pool3d", "n,2,4,4,4", lg_nn_lp_pool3d(c, 2, 2));
        CASE("max_unpool1d", "n,2,4;a2 n,2,4", lg_nn_max_unpool1d(c, 2));
        CASE("max_unpool2d", "n,2,3,2;a4 n,2,3,2", lg_nn_max_unpool2d(c, 2));
        CASE("max_unpool3d", "n,2,2,2,2;a8 n,2,2,2,2", lg_nn_max_unpool3d(c, 2));
        CASE("fractional_max_pool2d", "n,2,7,7", lg_nn_fractional_max_pool2d(c, 2, .size = 4));
        CASE("fractional_max_pool3d", "n,2,5,5,5", lg_nn_fractional_max_pool3d(c, 2, .size = 3));
        CASE("pixel_shuffle", "n,8,2,3", lg_nn_pixel_shuffle(c, 2));
        CASE("pixel_unshuffle", "n,2,4,6", lg_nn_pixel_unshuffle(c, 2));
        CASE("channel_shuffle", "n,6,2,2", lg_nn_channel_shuffle(c, 3));
        const struct {
                const char *name, *inputs;
                lg_interpolate_mode mode;
        } modes[] = {{"nearest", "n,2,3,4", LG_NEAREST}, {"nearest_exact", "n,2,3,4", LG_NEAREST_EXACT},
                     {"linear", "n,2,5", LG_LINEAR},     {"bilinear", "n,2,3,4", LG_BILINEAR},
                     {"bicubic", "n,2,4,5", LG_BICUBIC}, {"trilinear", "n,2,2,3,2", LG_TRILINEAR},
                     {"area", "n,2,4,4", LG_AREA}};
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                char name[64];
                snprintf(name, sizeof name, "upsample_%s", modes[i].name);
                CASE(name, modes[i].inputs, lg_nn_upsample(c, .scale = 2, .mode = modes[i].mode));
                snprintf(name, sizeof name, "upsample_%s_size", modes[i].name);
                CASE(name, modes[i].inputs, lg_nn_upsample(c, .size = LG_INTS(7), .mode = modes[i].mode));
        }
        CASE("upsample_scales", "n,2,4,4", lg_nn_upsample(c, .scales = LG_NUMBERS(1.6, 2.3), .mode = LG_BILINEAR));
        CASE("upsample_corners", "n,2,4,4", lg_nn_upsample(c, .scale = 2, .mode = LG_BILINEAR, .align_corners = true));
        CASE("upsample_cubic_corners", "n,2,4,4",
             lg_nn_upsample(c, .scale = 2, .mode = LG_BICUBIC, .align_corners = true));
        CASE("upsample_antialias", "n,2,8,8", lg_nn_upsample(c, .scale = 0.5, .mode = LG_BILINEAR, .antialias = true));
        CASE("upsample_cubic_antialias", "n,2,8,8",
             lg_nn_upsample(c, .scale = 0.5, .mode = LG_BICUBIC, .antialias = true));
}

/* ---- recurrent.h, attention.h ---- */

/* Runs the child "rnn" on x, with first states if they are given, and gives all states. user: LSTM's name, or NULL. */
static bool run_states(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        lg_tensor *h = NULL, *state = NULL;
        lg_tensor *y = user ? lg_run_rnn(lg_child(m, 0), in.items[0], .h0 = in.count > 1 ? in.items[1] : NULL,
                                         .c0 = in.count > 2 ? in.items[2] : NULL, .h = &h, .c = &state)
                            : lg_run_rnn(lg_child(m, 0), in.items[0], .h0 = in.count > 1 ? in.items[1] : NULL, .h = &h);
        *out = (lg_outputs){user ? 3 : 2, {y, h, state}};
        return y != NULL;
}

static bool run_lengths(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        (void)user;
        out->items[0] = lg_run_rnn(lg_child(m, 0), in.items[0], .lengths = in.items[1], .h = &out->items[1]);
        out->count = 2;
        return out->items[0] != NULL;
}

static lg_module *states_of(lg_module *rnn, bool lstm)
{
        lg_module *m = lg_nn_module(lg_module_ctx(rnn), "States", .forward_all = run_states, .user = lstm ? "" : NULL);
        lg_module_add(m, "rnn", rnn);
        return m;
}

static lg_module *lengths_of(lg_module *rnn)
{
        lg_module *m = lg_nn_module(lg_module_ctx(rnn), "Lengths", .forward_all = run_lengths);
        lg_module_add(m, "rnn", rnn);
        return m;
}

static void recurrent(table *s)
{
        lg_ctx *c = s->c;
        CASE("lstm", "4,n,3", lg_nn_lstm(c, 3, 5));
        CASE("lstm_batch_first", "n,4,3", lg_nn_lstm(c, 3, 5, .batch_first = true));
        CASE("lstm_both", "n,4,3", lg_nn_lstm(c, 3, 5, .batch_first = true, .bidirectional = true, .layers = 2));
        CASE("lstm_no_bias", "n,4,3", lg_nn_lstm(c, 3, 5, .batch_first = true, .no_bias = true));
        CASE("lstm_projection", "n,4,3", lg_nn_lstm(c, 3, 5, .batch_first = true, .projection = 2));
        CASE("lstm_sample", "4,3", lg_nn_lstm(c, 3, 5));
        CASE("lstm_states", "4,n,3;2,n,5;2,n,5", states_of(lg_nn_lstm(c, 3, 5, .layers = 2), true));
        CASE("lstm_lengths", "n,4,3;l4 n", lengths_of(lg_nn_lstm(c, 3, 5, .batch_first = true, .bidirectional = true)));
        CASE("gru", "4,n,3", lg_nn_gru(c, 3, 5));
        CASE("gru_both", "n,4,3", lg_nn_gru(c, 3, 5, .batch_first = true, .bidirectional = true, .layers = 2));
        CASE("gru_no_bias", "4,n,3", lg_nn_gru(c, 3, 5, .no_bias = true));
        CASE("gru_states", "4,n,3;2,n,5", states_of(lg_nn_gru(c, 3, 5, .bidirectional = true), false));
        CASE("rnn", "4,n,3", lg_nn_rnn(c, 3, 5));
        CASE("rnn_relu", "n,4,3", lg_nn_rnn(c, 3, 5, .relu = true, .batch_first = true, .layers = 2));
        CASE("rnn_both", "4,n,3", lg_nn_rnn(c, 3, 5, .bidirectional = true));
        CASE("lstm_cell", "n,3", states_of(lg_nn_lstm_cell(c, 3, 5), true));
        CASE("lstm_cell_states", "n,3;n,5;n,5", states_of(lg_nn_lstm_cell(c, 3, 5), true));
        CASE("gru_cell", "n,3", lg_nn_gru_cell(c, 3, 5));
        CASE("gru_cell_state", "n,3;n,5", states_of(lg_nn_gru_cell(c, 3, 5, .no_bias = true), false));
        CASE("rnn_cell", "n,3", lg_nn_rnn_cell(c, 3, 5));
        CASE("rnn_cell_relu", "n,3;n,5", states_of(lg_nn_rnn_cell(c, 3, 5, .relu = true), false));
}

/* Runs the child on x with a causal mask; user "keys": the second input is a mask of keys, an integer. */
static lg_tensor *run_causal(lg_module *m, lg_list in, void *user)
{
        lg_tensor *keys = user ? lg_gt_scalar(in.items[1], 0) : NULL;
        return lg_run_encoder(lg_child(m, 0), in.items[0], .causal = true, .key_mask = keys);
}

static lg_tensor *run_weights(lg_module *m, lg_list in, void *user)
{
        lg_tensor *weights = NULL, *x = in.items[0];
        lg_tensor *y = lg_run_attention(lg_child(m, 0), x, x, x, .causal = true, .weights = &weights);
        (void)user;
        return y ? lg_add(y, lg_sum(weights, .dims = LG_DIMS(-1), .keep_dim = true)) : NULL;
}

static lg_tensor *run_gpt(lg_module *m, lg_list in, void *user)
{
        const int64_t t = lg_size_of(in.items[0], 1);
        lg_tensor *x = lg_forward(lg_child_named(m, "bytes"), in.items[0]);
        x = lg_add(x, lg_slice(lg_parameter(m, "positions"), 0, 0, t));
        x = lg_run_encoder(lg_child_named(m, "blocks"), x, .causal = true);
        (void)user;
        return lg_forward(lg_child_named(m, "head"), x);
}

static lg_module *wrapped(lg_module *child, lg_forward_fn *forward, void *user)
{
        lg_module *m = lg_nn_module(lg_module_ctx(child), "Own", .forward = forward, .user = user);
        lg_module_add(m, "child", child);
        return m;
}

static lg_module *make_gpt(lg_ctx *c)
{
        lg_module *gpt = lg_nn_module(c, "GPT", .forward = run_gpt);
        lg_module_add(gpt, "bytes", lg_nn_embedding(c, 32, 16));
        lg_module_add_parameter(gpt, "positions", lg_normal(c, 0, 1, LG_SHAPE(12, 16)));
        lg_module_add(gpt, "blocks",
                      lg_nn_transformer_encoder(c, 16, 4, 2, .feedforward = 32, .gelu = true, .norm_first = true,
                                                .final_norm = true, .batch_first = true));
        lg_module_add(gpt, "head", lg_nn_linear(c, 16, 32));
        return gpt;
}

static void attention(table *s)
{
        lg_ctx *c = s->c;
        CASE("attention", "n,4,8", lg_nn_multihead_attention(c, 8, 2, .batch_first = true));
        CASE("attention_time_first", "4,n,8", lg_nn_multihead_attention(c, 8, 2));
        CASE("attention_sample", "4,8", lg_nn_multihead_attention(c, 8, 2));
        CASE("attention_cross", "n,4,8;n,3,8;n,3,8", lg_nn_multihead_attention(c, 8, 2, .batch_first = true));
        CASE("attention_sizes", "n,4,8;n,3,5;n,3,6",
             lg_nn_multihead_attention(c, 8, 2, .batch_first = true, .kdim = 5, .vdim = 6, .no_bias = true));
        CASE("attention_groups", "n,4,8", lg_nn_multihead_attention(c, 8, 4, .batch_first = true, .kv_heads = 2));
        CASE("attention_extra", "n,4,8",
             lg_nn_multihead_attention(c, 8, 2, .batch_first = true, .add_bias_kv = true, .add_zero_attn = true));
        CASE("attention_weights", "n,4,8",
             wrapped(lg_nn_multihead_attention(c, 8, 2, .batch_first = true), run_weights, NULL));
        CASE("encoder_layer", "n,4,8",
             lg_nn_transformer_encoder_layer(c, 8, 2, .feedforward = 12, .batch_first = true));
        CASE("encoder_layer_first", "4,n,8",
             lg_nn_transformer_encoder_layer(c, 8, 2, .feedforward = 12, .norm_first = true, .gelu = true,
                                             .no_bias = true));
        CASE("decoder_layer", "n,4,8;n,3,8",
             lg_nn_transformer_decoder_layer(c, 8, 2, .feedforward = 12, .batch_first = true));
        CASE("encoder", "4,n,8", lg_nn_transformer_encoder(c, 8, 2, 2, .feedforward = 12, .final_norm = true));
        CASE("decoder", "4,n,8;3,n,8", lg_nn_transformer_decoder(c, 8, 2, 2, .feedforward = 12, .final_norm = true));
        CASE("encoder_causal", "n,4,8",
             wrapped(lg_nn_transformer_encoder(c, 8, 2, 2, .feedforward = 12, .batch_first = true), run_causal, NULL));
        CASE("encoder_keys", "n,4,8;i2 n,4",
             wrapped(lg_nn_transformer_encoder(c, 8, 2, 1, .feedforward = 12, .batch_first = true), run_causal, ""));
        CASE("transformer", "n,4,8;n,3,8",
             lg_nn_transformer(c, 8, 2, .encoder_layers = 2, .decoder_layers = 2, .feedforward = 12,
                               .batch_first = true));
        CASE("gpt", "i32 n,12", make_gpt(c));
}

/* ---- networks ---- */

static lg_module *parametrized(lg_module *m, lg_module *how)
{
        lg_parametrize(m, "weight", how);
        return m;
}

static void networks(table *s)
{
        lg_ctx *c = s->c;
        for (int i = 0; lg_model_name(i); i++)
                CASE(lg_model_name(i), "n,1,28,28", lg_model(c, lg_model_name(i)));
        CASE("resnet18_rgb", "n,3,32,32", lg_model_resnet18(c, 3, 10));
        CASE("parametrized", "n,6", parametrized(lg_nn_linear(c, 6, 5), lg_nn_tanh(c)));
}

/* ---- ops ---- */

static lg_tensor *run_call(lg_module *m, lg_list in, void *user)
{
        lg_seed(lg_module_ctx(m), 1); /* of indices that the call draws */
        return (*(const large_call **)user)->run(lg_module_ctx(m), in.items);
}

static void ops(table *s, const large_call *calls, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                char name[80];
                snprintf(name, sizeof name, "op_%s", calls[i].name);
                s->call = &calls[i];
                CASE(name, "", lg_nn_module(s->c, "Call", .forward = run_call, .user = &s->call));
        }
        s->call = NULL;
}

int main(int argc, char **argv)
{
        if (argc < 3 || argc > 4)
                return fprintf(stderr, "usage: %s FOLDER DTYPE [PATTERN]\n", argv[0]), 2;
        table s = {.c = lg_open(.threads = 1), .folder = argv[1], .pattern = argc > 3 ? argv[3] : "*"};
        s.dtype = !strcmp(argv[2], "f16") ? LG_F16 : !strcmp(argv[2], "bf16") ? LG_BF16 : LG_F32;
        lg_set_default_device(s.c, lg_cpu());
        linear_layers(&s);
        norms(&s);
        activations(&s);
        convolutions(&s);
        pools(&s);
        windows(&s);
        recurrent(&s);
        attention(&s);
        networks(&s);
        ops(&s, elementwise_calls, sizeof elementwise_calls / sizeof *elementwise_calls);
        ops(&s, large_calls, sizeof large_calls / sizeof *large_calls);
        lg_close(s.c);
        return s.wrong != 0;
}
