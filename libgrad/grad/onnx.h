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

LG_END_C
#endif
