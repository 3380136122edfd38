/* cpu.h - what the CPU's kernels share: conversion to a type to compute in, walks over strided operands. */
#ifndef LG_CPU_H
#define LG_CPU_H

#include "isa.h"
#include "../half.h"
#include "parallel.h"

#define LG_PRAGMA_(x) _Pragma(#x)
#define LG_SIMD LG_PRAGMA_(omp simd)

#define LG_ALIGN64 __attribute__((aligned(64)))

/* Types that kernels compute in. */
typedef enum lg_compute { LG_COMPUTE_F32, LG_COMPUTE_F64, LG_COMPUTE_I64, LG_COMPUTE_COUNT } lg_compute;

/* p + bytes; NULL, of a tensor without elements, stays NULL. */
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

/* The first part of `left` where that is cut into as few parts of at most `most` as there can be, all about equal. */
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

/* The smallest of the compute types that holds all values of t. */
static inline lg_compute lg_compute_of(lg_dtype t)
{
        return t == LG_F64 ? LG_COMPUTE_F64 : lg_is_float(t) ? LG_COMPUTE_F32 : LG_COMPUTE_I64;
}

static inline lg_dtype lg_dtype_of_compute(lg_compute h)
{
        return h == LG_COMPUTE_F32 ? LG_F32 : h == LG_COMPUTE_F64 ? LG_F64 : LG_I64;
}

#define LG_WALK_MAX 5
/* A common shape with the strides of several operands, dimensions of size 1 dropped and neighbours joined where all
 * operands allow. At least one dimension. */
typedef struct lg_walk {
        int ndim, operands;
        int64_t count;
        int64_t shape[LG_MAX_DIMS];
        int64_t strides[LG_WALK_MAX][LG_MAX_DIMS];
} lg_walk;

/* Makes a walk; with `sort`, dimensions are ordered by the strides of operand 0, which changes the order of elements.
 */
#define lg_walk_init LG_CPU(walk_init)
void lg_walk_init(lg_walk *w, int ndim, const int64_t *shape, int operands, const int64_t *const *strides, bool sort);

/* The offset in elements of element `index` in row-major order; its coordinates in ret_at. */
#define lg_walk_seek LG_CPU(walk_seek)
int64_t lg_walk_seek(const lg_walk *w, int operand, int64_t index, int64_t *ret_at);

/* Copies elements [start, start + n) of an operand to or from contiguous memory. */
#define lg_walk_gather LG_CPU(walk_gather)
void lg_walk_gather(const lg_walk *w, int operand, size_t size, void *to, const void *base, int64_t start, int64_t n);
#define lg_walk_scatter LG_CPU(walk_scatter)
void lg_walk_scatter(const lg_walk *w, int operand, size_t size, void *base, const void *from, int64_t start,
                     int64_t n);

static inline bool lg_walk_contiguous(const lg_walk *w, int operand)
{
        return w->ndim == 1 && (w->strides[operand][0] == 1 || w->shape[0] == 1);
}

/* Contiguous conversion. `load` goes from a dtype to a compute type, `store` from a compute type to a dtype: floats
 * become integers towards zero, saturating; integers become narrower integers by their low bits; bool is "not zero". */
typedef void (*lg_convert_fn)(int64_t n, void *to, const void *from);
#define lg_load LG_CPU(load)
extern const lg_convert_fn lg_load[LG_COMPUTE_COUNT][LG_DTYPE_COUNT];
#define lg_store LG_CPU(store)
extern const lg_convert_fn lg_store[LG_COMPUTE_COUNT][LG_DTYPE_COUNT];

/* The same over the queue's threads. */
#define lg_convert_all LG_CPU(convert_all)
void lg_convert_all(lg_queue *q, lg_convert_fn f, int64_t n, void *to, size_t to_size, const void *from,
                    size_t from_size);

/* f32 copies of 16-bit tensors, for kernels that have no loops of their own for them: `n` elements of scratch, and
 * with `from` their values. NULL: no memory. */
#define lg_widen LG_CPU(widen)
float *lg_widen(lg_queue *q, lg_dtype t, int64_t n, const void *from);
#define lg_narrow LG_CPU(narrow)
void lg_narrow(lg_queue *q, lg_dtype t, int64_t n, void *to, const float *from);

typedef enum lg_operand_use { LG_READ, LG_WRITTEN, LG_IN_PLACE } lg_operand_use;
/* An operand in a copy of a kernel's arguments: the pointer (or NULL) to n elements of the arguments' dtype.
 * LG_IN_PLACE: a result that may overwrite the operand before it. */
typedef struct lg_operand {
        void *pointer; /* its address */
        int64_t n;
        lg_operand_use use;
        void *given;
} lg_operand;

/* Refuses dtypes that are not floats. Of 16-bit ones the operands become f32 copies and *dtype LG_F32; the results are
 * rounded to where they belong by the other. */
#define lg_widen_operands LG_CPU(widen_operands)
bool lg_widen_operands(lg_queue *q, const char *name, lg_dtype *dtype, int count, lg_operand *operands);
#define lg_narrow_operands LG_CPU(narrow_operands)
bool lg_narrow_operands(lg_queue *q, lg_dtype dtype, int count, const lg_operand *operands);

/* A kernel of float dtypes by the function `name` of f32 and f64. The operands have n elements each, in a copy of the
 * arguments that is called `wide`. */
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

/* How a product is computed: by sums along k of rows of A and columns of B; over all of k at once; or strip by strip of
 * it, the sums waiting in C. It decides the order of additions: parts of a product go the way of the whole. */
typedef enum lg_product_way { LG_BY_DOTS, LG_BY_ROWS, LG_BY_STRIPS, LG_BY_SHORT_STRIPS } lg_product_way;
#define lg_way_of LG_CPU(way_of)
lg_product_way lg_way_of(const lg_gemm_args *g);

/* One product (without a batch; f32 and f64 of any strides) on the calling thread. scratch: as many bytes as the other
 * says, 64-byte aligned. */
#define lg_multiply LG_CPU(multiply)
void lg_multiply(const lg_gemm_args *g, lg_product_way way, void *scratch);
#define lg_multiply_bytes LG_CPU(multiply_bytes)
size_t lg_multiply_bytes(const lg_gemm_args *g, lg_product_way way);
/* The same of f16 and bf16. */
#define lg_half_way_of LG_CPU(half_way_of)
lg_product_way lg_half_way_of(const lg_gemm_args *g);
#define lg_multiply_half LG_CPU(multiply_half)
void lg_multiply_half(const lg_gemm_args *g, lg_product_way way, void *scratch);
#define lg_multiply_half_bytes LG_CPU(multiply_half_bytes)
size_t lg_multiply_half_bytes(const lg_gemm_args *g, lg_product_way way);

/* f32: C = A B, or C += A B, for one panel of B: k rows of LG_BLOCK_VECTORS vectors, of which C has the first `cols`
 * columns in rows as far apart as those of the panel. */
typedef struct lg_panel_product {
        const float *a, *panel;
        ptrdiff_t a_row, a_col;
        float *c;
        int64_t rows, cols, k;
        bool adds;
} lg_panel_product;
#define lg_multiply_panel LG_CPU(multiply_panel)
void lg_multiply_panel(const lg_panel_product *p);

#define KERNEL(name, args) bool LG_CPU(name)(lg_queue * q, const args *a);
#include "../kernels.def"

#endif
