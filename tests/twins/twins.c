/* twins.c - what twins.py runs: a network of models/ beside its twin in PyTorch, and tensors of all dtypes.
 *
 * twins load MODEL DTYPE WEIGHTS IMAGES RESULT [NAME NAME]...: reads the weights that PyTorch wrote, with each first
 * name changed to the second; RESULT gets the logits of the tensor "images" in IMAGES.
 * twins train MODEL DTYPE WEIGHTS IMAGES RESULT: trains STEPS steps and writes the weights; then the same.
 * twins sequences MODULE WEIGHTS INPUTS RESULT NEW: a module on the tensors "x", "k" and "v" of INPUTS, with weights
 * that PyTorch wrote and with weights of its own, which NEW gets; RESULT gets both results. twins dtypes FROM TO: reads
 * eight tensors and writes them again, from the formula that twins.py has, too.
 */
#include <stdlib.h>
#include <string.h>
#include "../../models/models.h"

#define STEPS 20 /* after which statistics of batch norm are those of the images, mostly */
#define STEP 8   /* images of one */
#define BATCH 25 /* images that are tested at once; divides their number */

/* ---- the networks of models/, in a dtype that is chosen when they are made ---- */

static lg_dtype dtype;
#undef lg_nn_conv2d
#define lg_nn_conv2d(...)                                                                                              \
        LG_CALL4(lg_nn_conv2d_with, lg_conv2d_layer_options, lg_nn_conv2d_takes_c_in_out_kernel, V, I, I, I,           \
                 __VA_ARGS__, .dtype = dtype)
#undef lg_nn_linear
#define lg_nn_linear(...)                                                                                              \
        LG_CALL3(lg_nn_linear_with, lg_linear_options, lg_nn_linear_takes_c_in_out, V, I, I, __VA_ARGS__,              \
                 .dtype = dtype)
#undef lg_nn_batch_norm2d
#define lg_nn_batch_norm2d(...)                                                                                        \
        LG_CALL2(lg_nn_batch_norm2d_with, lg_batch_norm_layer_options, lg_nn_batch_norm2d_takes_c_channels, V, I,      \
                 __VA_ARGS__, .dtype = dtype)
#include "../../models/lenet.c"
#include "../../models/resnet.c"

static lg_module *make(lg_ctx *c, const char *model)
{
        return strcmp(model, "lenet") ? lg_model_resnet18(c, 1, 10) : lg_model_lenet(c);
}

/* ---- a network ---- */

/* A tensor of a file, in a dtype. */
static lg_tensor *get(lg_ctx *c, const char *path, const char *name, lg_dtype wanted)
{
        lg_weights *w = lg_weights_open(c, path);
        lg_tensor *t = lg_weights_read(w, name);
        lg_weights_close(w);
        return lg_cast(t, wanted);
}

static void train(lg_ctx *c, lg_module *net, const char *images)
{
        lg_tensor *x = get(c, images, "images", dtype), *y = get(c, images, "labels", LG_I64);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.01, .momentum = 0.9);
        for (int64_t i = 0; i < STEPS; i++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *part = lg_slice(x, 0, i % 3 * STEP, (i % 3 + 1) * STEP);
                lg_tensor *labels = lg_slice(y, 0, i % 3 * STEP, (i % 3 + 1) * STEP);
                lg_zero_grad(opt);
                lg_backward(lg_cross_entropy(lg_forward(net, part), labels));
                lg_step(opt);
                lg_scope_end(c, scope);
        }
}

/* Saves the logits of all images. */
static void evaluate(lg_ctx *c, lg_module *net, const char *images, const char *result)
{
        lg_tensor *x = get(c, images, "images", dtype);
        int64_t n = lg_numel(x) / (28 * 28);
        lg_tensor *logits = lg_zeros(c, LG_SHAPE(n, 10), .dtype = dtype);
        lg_train(net, false);
        lg_no_grad(c)
        {
                for (int64_t i = 0; i < n && !lg_error(c); i += BATCH) {
                        lg_scope scope = lg_scope_begin(c);
                        lg_copy_(lg_slice(logits, 0, i, i + BATCH), lg_forward(net, lg_slice(x, 0, i, i + BATCH)));
                        lg_scope_end(c, scope);
                }
        }
        lg_module *file = lg_nn_module(c, "Result");
        lg_module_add_buffer(file, "logits", logits);
        lg_save(file, result);
}

static void compare(lg_ctx *c, int argc, char **argv)
{
        dtype = strcmp(argv[3], "f64") ? LG_F32 : LG_F64;
        lg_module *net = make(c, argv[2]);
        if (strcmp(argv[1], "load")) {
                train(c, net, argv[5]);
                lg_save(net, argv[4]);
        } else {
                lg_load(net, argv[4], .rename = {argc - 7, (const char *const *)(argv + 7)});
        }
        evaluate(c, net, argv[5], argv[6]);
}

/* ---- attention and transformers ---- */

static lg_module *make_sequences(lg_ctx *c, const char *module)
{
        if (!strcmp(module, "attention"))
                return lg_nn_multihead_attention(c, 16, 4);
        if (!strcmp(module, "attention-shared"))
                return lg_nn_multihead_attention(c, 16, 4, .add_bias_kv = true, .add_zero_attn = true);
        if (!strcmp(module, "volumes"))
                return lg_nn_sequential(c,
                                        lg_nn_conv3d(c, 2, 4, 0, .kernels = LG_TRIPLE(3, 1, 2),
                                                     .padding_mode = LG_PAD_REPLICATE, .paddings = LG_TRIPLE(1, 2, 1)),
                                        lg_nn_batch_norm3d(c, 4),
                                        lg_nn_instance_norm3d(c, 4, .affine = true, .running = true),
                                        lg_nn_conv_transpose3d(c, 4, 2, 2, .stride = 2), lg_nn_dropout3d(c, 0.5),
                                        lg_nn_max_pool3d(c, 2), lg_nn_adaptive_avg_pool3d(c, 3));
        if (!strcmp(module, "signals"))
                return lg_nn_sequential(c, lg_nn_conv_transpose1d(c, 2, 4, 3, .stride = 2),
                                        lg_nn_instance_norm1d(c, 4, .affine = true, .running = true),
                                        lg_nn_pad(c, LG_INTS(2, 1), .mode = LG_PAD_REFLECT), lg_nn_max_pool1d(c, 2));
        if (!strcmp(module, "attention-sizes"))
                return lg_nn_multihead_attention(c, 16, 4, .kdim = 12, .vdim = 20);
        return lg_nn_transformer(c, 16, 4, .encoder_layers = 2, .decoder_layers = 1, .feedforward = 24,
                                 .norm_first = !strcmp(module, "transformer-pre"));
}

static lg_tensor *run_sequences(lg_ctx *c, lg_module *m, const char *inputs)
{
        lg_tensor *x = get(c, inputs, "x", LG_F32), *k = get(c, inputs, "k", LG_F32);
        lg_train(m, false);
        if (lg_ndim_of(k) == 1) /* a module of one input */
                return lg_forward(m, x);
        return lg_has_child(m, "decoder") ? lg_forward(m, x, k) : lg_forward(m, x, k, get(c, inputs, "v", LG_F32));
}

static void sequences(lg_ctx *c, char **argv)
{
        lg_module *theirs = make_sequences(c, argv[2]), *ours = make_sequences(c, argv[2]);
        lg_module *file = lg_nn_module(c, "Result");
        lg_load(theirs, argv[3]);
        lg_save(ours, argv[6]);
        lg_no_grad(c)
        {
                lg_module_add_buffer(file, "theirs", lg_contiguous(run_sequences(c, theirs, argv[4])));
                lg_module_add_buffer(file, "ours", lg_contiguous(run_sequences(c, ours, argv[4])));
        }
        lg_save(file, argv[5]);
}

/* ---- dtypes ---- */

#define NUMBERS 40
static const lg_dtype dtypes[] = {LG_F64, LG_F32, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};

/* All sorts of bits, NaNs among them. */
static size_t fill(lg_dtype d, uint8_t *bytes)
{
        size_t n = NUMBERS * lg_dtype_size(d);
        for (size_t k = 0; k < n; k++)
                bytes[k] = (uint8_t)(d == LG_BOOL ? k % 3 == 0 : k * 37 + 11);
        return n;
}

/* A container of eight tensors; NULL: of zeros. */
static lg_module *container(lg_ctx *c, bool zeros)
{
        lg_module *m = lg_nn_module(c, "All");
        _Alignas(8) uint8_t bytes[NUMBERS * 8] = {0};
        for (int i = 0; i < 8; i++) {
                if (!zeros)
                        fill(dtypes[i], bytes);
                lg_module_add_buffer(m, lg_dtype_name(dtypes[i]),
                                     lg_from(c, (void *)bytes, LG_SHAPE(5, 8), .dtype = dtypes[i]));
        }
        return m;
}

static void exchange(lg_ctx *c, const char *from, const char *to)
{
        _Alignas(8) uint8_t wanted[NUMBERS * 8], got[NUMBERS * 8];
        lg_module *m = container(c, true);
        lg_load(m, from);
        for (int i = 0; i < 8 && !lg_error(c); i++) {
                size_t bytes = fill(dtypes[i], wanted);
                const char *name = lg_dtype_name(dtypes[i]);
                if (lg_read(lg_buffer(m, name), got, dtypes[i], bytes) && memcmp(got, wanted, bytes))
                        lg_set_error(c, LG_ERR_FORMAT, "%s: the bits of %s are others than PyTorch wrote", from, name);
        }
        lg_save(container(c, false), to);
}

int main(int argc, char **argv)
{
        lg_ctx *c = lg_open(.seed = 5);
        const char *device = getenv("LG_TEST_DEVICE");
        lg_set_default_device(c, lg_parse_device(c, device ? device : "cpu"));
        if (argc == 4 && !strcmp(argv[1], "dtypes"))
                exchange(c, argv[2], argv[3]);
        else if (argc == 7 && !strcmp(argv[1], "sequences"))
                sequences(c, argv);
        else if (argc >= 7)
                compare(c, argc, argv);
        else
                lg_set_error(c, LG_ERR_ARGUMENT, "the arguments are wrong");
        int failed = lg_error(c) != NULL;
        if (failed)
                fprintf(stderr, "%s\n", lg_error(c));
        lg_close(c);
        return failed;
}
