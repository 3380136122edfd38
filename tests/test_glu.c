/* test_glu.c - the gated linear unit against PyTorch's numbers. */
#include "golden.h"

#define ROWS(ROW)                                                                                                      \
        ROW(glu_1, lg_glu(x, -1), 3, 4)                                                                                \
        ROW(glu_image, lg_glu(x, 2), 2, 3, 4)

GOLDEN_TEST(as_pytorch_computes_it, "ops.txt", golden_ops_input, ROWS);
