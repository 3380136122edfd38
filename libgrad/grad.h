/* grad.h - libgrad: define-by-run automatic differentiation in C. The one header to include (C11 and C++20).
 *
 * Every function takes or finds a context. After a failure the context holds the first error and every further call
 * that computes does nothing and returns NULL or false; see lg_error(). Results belong to the innermost open scope.
 * What is optional comes by name after the positional arguments: lg_sum(x, .dims = LG_DIMS(1)). An option that is not
 * given has the default that its struct states. In C++ options come in the order of their declaration.
 *
 * A program goes on running with every later library of the same soversion: structs of options and structs that the
 * library fills only grow at their end and are known by their size; lg_shape, lg_dims, lg_pair, lg_device,
 * lg_list, lg_ints, lg_numbers, lg_names, lg_scope and lg_random_state stay as they are, enumerators keep their
 * numbers.
 */
#ifndef GRAD_H
#define GRAD_H

#define LG_VERSION_MAJOR 0
#define LG_VERSION_MINOR 1
#define LG_VERSION_PATCH 0
#define LG_VERSION "0.1.0"

#include "grad/types.h"
#include "grad/base.h"
#include "grad/context.h"
#include "grad/tensor.h"
#include "grad/pointwise.h"
#include "grad/ops.h"
#include "grad/conv.h"
#include "grad/norm.h"
#include "grad/index.h"
#include "grad/loss.h"
#include "grad/graph.h"
#include "grad/check.h"
#include "grad/nn.h"
#include "grad/layers.h"
#include "grad/init.h"
#include "grad/optim.h"
#include "grad/schedule.h"
#include "grad/trace.h"
#include "grad/data.h"
#include "grad/files.h"
#include "grad/transforms.h"
#include "grad/state.h"
#include "grad/arrays.h"

#endif
