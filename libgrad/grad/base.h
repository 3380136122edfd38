/* base.h - the macros behind shapes, lists and optional arguments. */
#ifndef LG_BASE_H
#define LG_BASE_H

#include <stdio.h>
#include "grad/types.h"

#if defined(__GNUC__)
#define LG_API __attribute__((visibility("default")))
#define LG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define LG_API
#define LG_PRINTF(f, a)
#endif

#ifdef __cplusplus
#include <initializer_list>
#define LG_BEGIN extern "C" {
#define LG_END_C }
#define LG_DEFAULT = {}
#define LG_INIT(type) type
#else
#define LG_BEGIN
#define LG_END_C
#define LG_DEFAULT
#define LG_INIT(type) (type)
#endif

typedef struct lg_ctx lg_ctx;
typedef struct lg_tensor lg_tensor;
typedef struct lg_module lg_module;
typedef struct lg_optimizer lg_optimizer;
typedef struct lg_dataset lg_dataset;
typedef struct lg_loader lg_loader;

/* A device is a small value. {0, 0} is "not given". Text: "cpu", "cuda" (is "cuda:0"), "cuda:1". */
typedef struct lg_device {
        lg_device_type type;
        int index;
} lg_device;

/* A shape: ndim sizes, ndim <= LG_MAX_DIMS. LG_SHAPE(2, 3), LG_SHAPE_0D. */
typedef struct lg_shape {
        int ndim;
        int64_t size[LG_MAX_DIMS];
} lg_shape;

/* A set of dimensions; negative ones count from the end; an unset one ({0}) is all dimensions. LG_DIMS(0, -1). */
typedef struct lg_dims {
        int count;
        int dim[LG_MAX_DIMS];
} lg_dims;

/* Pairs (before, after) of a dimension, from the last one backwards; negative: cut off. LG_PADS(1, 1, 0, 2). */
typedef struct lg_pads {
        int count; /* of numbers */
        int64_t pad[2 * LG_MAX_DIMS];
} lg_pads;

/* A list of tensors; the array belongs to the caller, or is told where it comes from. LG_LIST(a, b). */
typedef struct lg_list {
        int64_t count;
        lg_tensor *const *items;
} lg_list;

/* Ends a list of modules or tensors in a variable argument list; the macros add it. */
#define LG_END ((void *)lg_end_mark)
LG_BEGIN
extern LG_API char lg_end_mark[1];
LG_END_C

/* Where zero is a valid value but not the default, LG_ZERO says zero: .eps = LG_ZERO. */
#define LG_ZERO (-0x1p-1000)

#ifdef __cplusplus
template <typename... N> constexpr lg_shape lg_make_shape(N... n)
{
        return lg_shape{(int)sizeof...(N), {static_cast<int64_t>(n)...}};
}
template <typename... N> constexpr lg_dims lg_make_dims(N... n)
{
        return lg_dims{(int)sizeof...(N), {static_cast<int>(n)...}};
}
template <typename... N> constexpr lg_pads lg_make_pads(N... n)
{
        return lg_pads{(int)sizeof...(N), {static_cast<int64_t>(n)...}};
}
/* Owns the array of a list until the end of the full expression. */
template <int count> struct lg_list_owner {
        lg_tensor *items[count];
        operator lg_list() const
        {
                return lg_list{count, items};
        }
};
template <typename... T> constexpr lg_list_owner<(int)sizeof...(T)> lg_make_list(T... t)
{
        return lg_list_owner<(int)sizeof...(T)>{{t...}};
}
#define LG_SHAPE(...) lg_make_shape(__VA_ARGS__)
#define LG_SHAPE_0D (lg_shape{0, {}})
#define LG_DIMS(...) lg_make_dims(__VA_ARGS__)
#define LG_PADS(...) lg_make_pads(__VA_ARGS__)
#define LG_LIST(...) lg_make_list(__VA_ARGS__)
#else
#define LG_SHAPE(...) ((lg_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define LG_SHAPE_0D ((lg_shape){0, {0}})
#define LG_DIMS(...) ((lg_dims){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})
#define LG_PADS(...) ((lg_pads){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define LG_LIST(...)                                                                                                   \
        ((lg_list){(int64_t)(sizeof((lg_tensor *[]){__VA_ARGS__}) / sizeof(lg_tensor *)), (lg_tensor *[]){__VA_ARGS__}})
#endif

#endif
