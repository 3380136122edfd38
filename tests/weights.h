/* weights.h - what the tests of safetensors files share. */
#ifndef LG_TEST_WEIGHTS_H
#define LG_TEST_WEIGHTS_H

#include "files.h"
#include "io/safetensors.h"

#endif
