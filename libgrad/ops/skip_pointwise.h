/* skip_pointwise.h - before ops.def, when only the structural ops are wanted. */
#define UNARY(...)
#define BINARY(...)
#define TERNARY(...)
#define COMPARE(...)
#define COMPARE_SCALAR(...)
#define TEST(...)
