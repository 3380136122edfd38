/* cpu.h - helpers shared by the CPU's kernels: conversion to compute types, walks over strided operands, products. */
#ifndef LG_CPU_H
#define LG_CPU_H

#include "isa.h"
#include "../half.h"
#include "parallel.h"

#define LG_PRAGMA_(x) _Pragma(#x)
#define LG_SIMD LG_PRAGMA_(omp simd)

#define LG_ALIGN64 __attribute__((aligned(64)))

/* Types in which kernels compute; other dtypes are converted on load and store. */
typedef enum lg_compute { LG_COMPUTE_F32, LG_COMPUTE_F64, LG_COMPUTE_I64, LG_COMPUTE_COUNT } lg_compute;

/* Returns p + bytes, or NULL if p is NULL (a tensor without elements). */
static inline char *lg_byte_at(const void *p, int64_t bytes)
{
        return p ? (char *)(uintptr_t)p + bytes : NULL;
}

static inline int64_t lg_least(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

static inline int64_t lg_most(int64_t a, int64_t b)
{
        return a > b ? a : b;
}

static inline int64_t lg_ceil_div(int64_t a, int64_t b)
{
        return (a + b - 1) / b;
}

/* Returns the size of the first part of `left` items when these are split into as few parts of at most `most` items as
 * possible, all of about equal size. */
static inline int64_t lg_even_part(int64_t left, int64_t most)
{
        return left <= most ? left : lg_ceil_div(left, lg_ceil_div(left, most));
}

static inline size_t lg_bytes_of(lg_dtype t)
{
        static const uint8_t size[LG_DTYPE_COUNT] = {0, 4, 8, 2, 2, 8, 4, 1, 1};
        return size[t];
}

static inline bool lg_is_float(lg_dtype t)
{
        return t >= LG_F32 && t <= LG_BF16;
}

static inline bool lg_is_half(lg_dtype t)
{
        return t == LG_F16 || t == LG_BF16;
}

/* Returns the smallest compute type that holds all values of t. */
static inline lg_compute lg_compute_of(lg_dtype t)
{
        return t == LG_F64 ? LG_COMPUTE_F64 : lg_is_float(t) ? LG_COMPUTE_F32 : LG_COMPUTE_I64;
}

static inline lg_dtype lg_dtype_of_compute(lg_compute h)
{
        return h == LG_COMPUTE_F32 ? LG_F32 : h == LG_COMPUTE_F64 ? LG_F64 : LG_I64;
}

#define LG_WALK_MAX 5
/* Common shape of several operands with the strides of each. Dimensions of size 1 are dropped and neighbouring
 * dimensions joined where the strides of all operands allow. Has at least one dimension. */
typedef struct lg_walk {
        int ndim, operands;
        int64_t count;
        int64_t shape[LG_MAX_DIMS];
        int64_t strides[LG_WALK_MAX][LG_MAX_DIMS];
} lg_walk;

/* Makes a walk. With `sort`, orders dimensions by decreasing stride of operand 0, which changes the element order. */
#define lg_walk_init LG_CPU(walk_init)
void lg_walk_init(lg_walk *w, int ndim, const int64_t *shape, int operands, const int64_t *const *strides, bool sort);

/* Returns the offset in elements of element number `index` in row-major order and writes its coordinates to ret_at. */
#define lg_walk_seek LG_CPU(walk_seek)
int64_t lg_walk_seek(const lg_walk *w, int operand, int64_t index, int64_t *ret_at);

/* Copies elements [start, start + n) of an operand to (gather) or from (scatter) contiguous memory. `size`: bytes of an
 * element; `base`: address of the operand's element 0. */
#define lg_walk_gather LG_CPU(walk_gather)
void lg_walk_gather(const lg_walk *w, int operand, size_t size, void *to, const void *base, int64_t start, int64_t n);
#define lg_walk_scatter LG_CPU(walk_scatter)
void lg_walk_scatter(const lg_walk *w, int operand, size_t size, void *base, const void *from, int64_t start,
                     int64_t n);

static inline bool lg_walk_contiguous(const lg_walk *w, int operand)
{
        return w->ndim == 1 && (w->strides[operand][0] == 1 || w->shape[0] == 1);
}

/* Converts n contiguous elements. lg_load[c][t] converts from dtype t to compute type c, lg_store[c][t] from c to t.
 * Floats are truncated and saturated to integers; narrower integers get the low bits; bool is "not zero". */
typedef void (*lg_convert_fn)(int64_t n, void *to, const void *from);
#define lg_load LG_CPU(load)
extern const lg_convert_fn lg_load[LG_COMPUTE_COUNT][LG_DTYPE_COUNT];
#define lg_store LG_CPU(store)
extern const lg_convert_fn lg_store[LG_COMPUTE_COUNT][LG_DTYPE_COUNT];

/* Converts n contiguous elements with f on the queue's threads. to_size, from_size: bytes of an element. */
#define lg_convert_all LG_CPU(convert_all)
void lg_convert_all(lg_queue *q, lg_convert_fn f, int64_t n, void *to, size_t to_size, const void *from,
                    size_t from_size);

/* lg_widen allocates n floats of scratch and, unless `from` is NULL, fills them with n elements of dtype t; it returns
 * NULL if memory is exhausted. lg_narrow rounds n floats to dtype t. */
#define lg_widen LG_CPU(widen)
float *lg_widen(lg_queue *q, lg_dtype t, int64_t n, const void *from);
#define lg_narrow LG_CPU(narrow)
void lg_narrow(lg_queue *q, lg_dtype t, int64_t n, void *to, const float *from);

typedef enum lg_operand_use { LG_READ, LG_WRITTEN, LG_IN_PLACE } lg_operand_use;
/* Operand of a kernel for lg_widen_operands: n elements of the arguments' dtype. LG_IN_PLACE marks a result that may be
 * stored in the f32 copy of the preceding operand. */
typedef struct lg_operand {
        void *pointer; /* address of the operand's pointer, which may be NULL, in a copy of the arguments */
        int64_t n;
        lg_operand_use use;
        void *given;
} lg_operand;

/* Fails if *dtype is not a float dtype. For 16-bit dtypes, points the operands to f32 copies and sets *dtype to LG_F32;
 * lg_narrow_operands then rounds the results to the original memory. */
#define lg_widen_operands LG_CPU(widen_operands)
bool lg_widen_operands(lg_queue *q, const char *name, lg_dtype *dtype, int count, lg_operand *operands);
#define lg_narrow_operands LG_CPU(narrow_operands)
bool lg_narrow_operands(lg_queue *q, lg_dtype dtype, int count, const lg_operand *operands);

/* Defines the kernel LG_CPU(name) for all float dtypes by the static function `name` for f32 and f64. Operands have n
 * elements each; the macros below refer to them as members of `wide`, a copy of the arguments. */
#define LG_FLOAT_KERNEL(name, args, n, ...)                                                                            \
        bool LG_CPU(name)(lg_queue * q, const args *a)                                                                 \
        {                                                                                                              \
                args wide = *a;                                                                                        \
                const int64_t each = n;                                                                                \
                (void)each;                                                                                            \
                lg_operand operands[] = {__VA_ARGS__};                                                                 \
                const int count = sizeof operands / sizeof *operands;                                                  \
                return lg_widen_operands(q, #name, &wide.dtype, count, operands) && name(q, &wide) &&                  \
                       lg_narrow_operands(q, a->dtype, count, operands);                                               \
        }
#define LG_READS(x)                                                                                                    \
        {                                                                                                              \
                &wide.x, each, LG_READ, NULL                                                                           \
        }
#define LG_WRITES(y)                                                                                                   \
        {                                                                                                              \
                &wide.y, each, LG_WRITTEN, NULL                                                                        \
        }
#define LG_WRITES_IN_PLACE(y)                                                                                          \
        {                                                                                                              \
                &wide.y, each, LG_IN_PLACE, NULL                                                                       \
        }

/* Algorithms for a product: DOTS sums along k by rows of A and columns of B; ROWS keeps each block of sums in registers
 * over all of k; STRIPS and SHORT_STRIPS split k into strips and keep partial sums in C. The algorithm fixes the order
 * of additions, so tiles of a product must use the algorithm of the whole. */
typedef enum lg_product_algorithm { LG_BY_DOTS, LG_BY_ROWS, LG_BY_STRIPS, LG_BY_SHORT_STRIPS } lg_product_algorithm;
#define lg_product_algorithm_of LG_CPU(product_algorithm_of)
lg_product_algorithm lg_product_algorithm_of(const lg_gemm_args *g);

/* Computes one product, ignoring the batch, on the calling thread; any float dtype. scratch must have
 * lg_multiply_bytes() bytes, aligned to 64. */
#define lg_multiply LG_CPU(multiply)
void lg_multiply(const lg_gemm_args *g, lg_product_algorithm algorithm, void *scratch);
#define lg_multiply_bytes LG_CPU(multiply_bytes)
size_t lg_multiply_bytes(const lg_gemm_args *g, lg_product_algorithm algorithm);
/* Equivalents for f16 and bf16, called by the functions above. */
#define lg_half_algorithm_of LG_CPU(half_algorithm_of)
lg_product_algorithm lg_half_algorithm_of(const lg_gemm_args *g);
#define lg_multiply_half LG_CPU(multiply_half)
void lg_multiply_half(const lg_gemm_args *g, lg_product_algorithm algorithm, void *scratch);
#define lg_multiply_half_bytes LG_CPU(multiply_half_bytes)
size_t lg_multiply_half_bytes(const lg_gemm_args *g, lg_product_algorithm algorithm);

/* f32 product C = A B, or C += A B if `adds`, for one panel of B: k rows of LG_BLOCK_VECTORS vectors. C has the panel's
 * row stride; its first `cols` columns are computed. */
typedef struct lg_panel_product {
        const float *a, *panel;
        ptrdiff_t a_row, a_col;
        float *c;
        int64_t rows, cols, k;
        bool adds;
} lg_panel_product;
#define lg_multiply_panel LG_CPU(multiply_panel)
void lg_multiply_panel(const lg_panel_product *p);

/* lg_pack_panels copies B, k rows by n columns of f32 or f64, to panels of LG_BLOCK_VECTORS vectors of columns, k rows
 * each, for repeated use by lg_multiply_packed: C = A B + bias, or C += A B if `adds`. bias may be NULL. A panel begins
 * panel_step elements after the one before it. No sum depends on the number of rows. */
#define lg_pack_panels LG_CPU(pack_panels)
void lg_pack_panels(lg_dtype t, int64_t k, int64_t n, const void *b, ptrdiff_t b_row, ptrdiff_t b_col, void *to);
typedef struct lg_packed_product {
        lg_dtype dtype;
        bool adds;
        const void *a, *panels, *bias;
        ptrdiff_t a_row, a_col, panel_step, c_row;
        void *c;
        int64_t rows, cols, k;
} lg_packed_product;
#define lg_multiply_packed LG_CPU(multiply_packed)
void lg_multiply_packed(const lg_packed_product *p);

#define KERNEL(name, args) bool LG_CPU(name)(lg_queue * q, const args *a);
#include "../kernels.def"

#endif
