/* onnx.h - networks in ONNX files: https://onnx.ai/onnx. */
#ifndef LG_ONNX_H
#define LG_ONNX_H

#include "grad/nn.h"

LG_BEGIN

typedef struct lg_onnx_load_options {
        LG_OPTIONS_HEAD
        lg_device device LG_DEFAULT; /* of the parameters and buffers; default: the default device */
        bool frozen LG_DEFAULT;      /* parameters do not require grad, as after lg_freeze(); default false */
} lg_onnx_load_options;
/* Reads a network from an ONNX file and returns it as a module. Its forward takes the graph's inputs and gives its
 * results, in the file's order. Tensors of float dtypes that the file holds (initialisers) are parameters at the path
 * that is their name, with modules for its parts ("layer1.0.conv1.weight"); single numbers and the running statistics
 * of batch norm are buffers. A name that fits no path becomes "initializer_N".
 *
 * Shapes, axes and sizes that the graph computes are computed on the CPU, without waiting for the device. An operator
 * that needs the values of an input of the graph in this way waits for the device.
 *
 * Fails with LG_ERR_IO, with LG_ERR_FORMAT if the file is damaged, needs an opset above 28, has local functions, or has
 * operators that libgrad lacks, all of which the message lists, and with LG_ERR_DTYPE if a tensor is of a dtype that
 * libgrad lacks. Data beside the file must be in the file's folder or below it.
 * Example: lg_onnx_load(c, "resnet18.onnx", .device = lg_cpu()) */
#define lg_onnx_load(...)                                                                                              \
        LG_CALL2(lg_onnx_load_with, lg_onnx_load_options, lg_onnx_load_takes_c_path, V, V, __VA_ARGS__)
LG_API LG_NEW lg_module *lg_onnx_load_with(lg_ctx *c, const char *path, const lg_onnx_load_options *options);

typedef struct lg_onnx_save_options {
        LG_OPTIONS_HEAD
        lg_ints_in symbolic LG_DEFAULT; /* dimensions of each input that may have any size; default LG_INTS(0) */
        bool fixed LG_DEFAULT;          /* all sizes are those of the examples; default false */
        lg_names_in inputs LG_DEFAULT;  /* names, one for each input; default "input", or "input_0", "input_1", ... */
        lg_names_in outputs LG_DEFAULT; /* names, one for each result; default "output", or "output_0", ... */
        int opset LG_DEFAULT;           /* version of the operators; default: the lowest that has those in use */
        bool external LG_DEFAULT;       /* puts the tensors in the file path.data; default: only above 2 GB */
} lg_onnx_save_options;
/* Writes module m to an ONNX file, as what its forward computes in evaluation mode. Runs m on the example tensors
 * `inputs`, which must be valid inputs and give the dtypes and fixed sizes, and again with other sizes of the symbolic
 * dimensions. Of an input that lacks a symbolic dimension, all sizes are fixed; equal sizes of the same dimension of
 * several inputs stay equal. Parameters and buffers have their names in the state of m; tensors that are neither inputs
 * nor results of ops, such as masks, are constants in the file. The file is replaced only when it is complete.
 *
 * Fails with LG_ERR_STATE if m uses ops that have no form in ONNX, of which the message lists all, or reads values on
 * the host, or computes numbers from a symbolic size in a way that is not a multiple of it; with LG_ERR_ARGUMENT if an
 * operator in use is newer than .opset; with LG_ERR_IO if the file cannot be written. m is unchanged.
 * Example: lg_onnx_save(net, "net.onnx", LG_LIST(x), .inputs = LG_NAMES("image")) */
#define lg_onnx_save(...)                                                                                              \
        LG_CALL3(lg_onnx_save_with, lg_onnx_save_options, lg_onnx_save_takes_m_path_inputs, V, V, V, __VA_ARGS__)
LG_API bool lg_onnx_save_with(lg_module *m, const char *path, lg_list_in inputs, const lg_onnx_save_options *options);

LG_END_C
#endif
