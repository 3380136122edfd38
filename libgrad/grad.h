/* grad.h - libgrad: define-by-run automatic differentiation in C. The one header to include.
 *
 * Programs compute with tensors; the library records a graph of what they compute; lg_backward() differentiates it, and
 * an optimiser changes the parameters:
 *
 *     lg_ctx *c = lg_open();
 *     lg_dataset *train = lg_dataset_fashion_mnist(c, "train");
 *     lg_module *net = lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 784, 10));
 *     lg_optimizer *opt = lg_adam(c, lg_parameters(net), 1e-3);
 *     lg_loader *batches = lg_loader_open(c, train, 64, .shuffle = true);
 *     lg_each_batch(b, batches) {
 *             lg_tensor *loss = lg_cross_entropy(lg_forward(net, b.x), b.y);
 *             lg_zero_grad(opt);
 *             lg_backward(loss);
 *             lg_step(opt);
 *     }
 *     if (lg_error(c))
 *             fprintf(stderr, "%s\n", lg_error(c));
 *     lg_close(c);
 *
 * The rules below hold for all functions, unless the comment of a function says otherwise.
 *
 * Errors. The library never exits or aborts, and prints only where a program asks it to. A function that fails returns
 * NULL, false or another empty value and sets the error of its context: a code, such as LG_ERR_SHAPE, and a message
 * that names the function, the arguments, and what was expected. The first error stays. While it is set, functions that
 * create, compute or change something do nothing and return NULL or false; reading, printing, queries, and ending
 * scopes and freeing objects work. So calls can be nested, and a program may check lg_error() once, after a loop, and
 * continue after lg_clear_error(). A function that fails changes nothing.
 *
 * A comment says what its function takes, and names the errors that are special to it. It does not repeat these:
 * - LG_ERR_ARGUMENT: a required argument is NULL, an object belongs to another context, or a number, an option or a
 *   dimension is outside the range that it may have;
 * - LG_ERR_SHAPE: a tensor has other dimensions or sizes than the comment says, shapes do not broadcast, or the result
 *   would have more than LG_MAX_DIMS dimensions or too many elements;
 * - LG_ERR_DTYPE: a tensor or an option has a dtype that the comment does not allow;
 * - LG_ERR_DEVICE: tensors are on different devices, one is not on the device that the comment says, or a device does
 *   not exist;
 * - LG_ERR_STATE: a tensor was freed;
 * - LG_ERR_MEMORY or LG_ERR_CUDA: there is no memory left, or a GPU fails.
 *
 * If all tensors and objects of a call are NULL, there is no context to hold an error, and the call only returns NULL,
 * false or 0: this is how a failure passes through nested calls. Functions that return void or a property cannot fail.
 *
 * Scopes and ownership. A new tensor belongs to the innermost open scope, which frees it when it ends; lg_escape()
 * hands it to the next outer scope and lg_keep() to the caller. Modules, optimisers, data sets and other objects belong
 * to the context until a function such as lg_module_free() or lg_close() frees them; a pointer to a freed object must
 * not be used. Texts and arrays that a function returns belong to the library and last as long as its comment says. A
 * function copies what it needs of the texts and arrays that it receives.
 *
 * Options. What is optional follows the positional arguments, by name: lg_sum(x, .dims = LG_DIMS(1)). An option that is
 * not given has the default that the comment of its member states. In C (from C11 on) options may have any order; in
 * C++ they must have the order of the members of their struct, and before C++20 they are an extension of the compiler.
 * See grad/base.h. A dimension counts from 0, or from the end if it is negative: -1 is the last one.
 *
 * Threads. Only one thread at a time may use a context and what belongs to it. Threads that work at the same time have
 * a context each.
 *
 * Compatibility. A program runs with every later library of the same soversion without being compiled again: structs of
 * options and structs that the library fills grow only at their end and are passed with their size; lg_shape, lg_dims,
 * lg_pair, lg_triple, lg_device, lg_list, lg_ints, lg_numbers, lg_names, lg_scope and lg_random_state never change;
 * enumerators keep their numbers.
 */
#ifndef GRAD_H
#define GRAD_H

/* The version of this header; lg_version() is that of the library that the program runs with. */
#define LG_VERSION_MAJOR 0
#define LG_VERSION_MINOR 3
#define LG_VERSION_PATCH 0
#define LG_VERSION "0.3.0"

#include "grad/types.h"
#include "grad/base.h"
#include "grad/context.h"
#include "grad/tensor.h"
#include "grad/pointwise.h"
#include "grad/ops.h"
#include "grad/conv.h"
#include "grad/norm.h"
#include "grad/attention.h"
#include "grad/index.h"
#include "grad/products.h"
#include "grad/linalg.h"
#include "grad/arrange.h"
#include "grad/fft.h"
#include "grad/loss.h"
#include "grad/image.h"
#include "grad/windows.h"
#include "grad/sequence.h"
#include "grad/dist.h"
#include "grad/statistics.h"
#include "grad/graph.h"
#include "grad/functional.h"
#include "grad/record.h"
#include "grad/check.h"
#include "grad/nn.h"
#include "grad/conv_layers.h"
#include "grad/layers.h"
#include "grad/recurrent.h"
#include "grad/init.h"
#include "grad/optim.h"
#include "grad/schedule.h"
#include "grad/scaler.h"
#include "grad/trace.h"
#include "grad/profile.h"
#include "grad/board.h"
#include "grad/data.h"
#include "grad/files.h"
#include "grad/transforms.h"
#include "grad/tokenizer.h"
#include "grad/onnx.h"
#include "grad/state.h"
#include "grad/arrays.h"
#include "grad/group.h"
#include "grad/parallel.h"
#include "grad/parametrize.h"
#include "grad/lora.h"

/* Editors that know C, such as those with clangd, show each call with its arguments and options if this is defined. */
#ifdef LG_DOCUMENTATION
#include "grad/editor.h"
#endif

#endif
