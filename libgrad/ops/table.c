/* table.c - the table of structural ops, made from ops.def. */
#include "../op.h"
#include "skip_pointwise.h"

#define COMPOSITE(name)
#define VJP(name) bool lg__vjp_##name(lg__vjp *v);
#define FUSED(name) VJP(name) bool lg__fused_##name(lg__vjp *v);
#define NO_VJP(name)
#define OP(name, in, out, flags, saves, derivative, names)                                                             \
        bool lg__infer_##name(lg__call *call);                                                                         \
        bool lg__forward_##name(lg__call *call);                                                                       \
        derivative(name)
#include "ops.def"
#undef OP
#undef VJP
#undef FUSED
#undef NO_VJP

#define VJP(name) .vjp = lg__vjp_##name
#define FUSED(name) .vjp = lg__vjp_##name, .fused = lg__fused_##name
#define NO_VJP(name) .vjp = NULL
#define SAVES(...)                                                                                                     \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }
#define NAMES(...)                                                                                                     \
        {                                                                                                              \
                __VA_ARGS__                                                                                            \
        }
#define OP(name_, in, out, flags_, saves_, derivative, names)                                                          \
        [LG__OP_##name_] = {.name = #name_,                                                                            \
                            .in_count = in,                                                                            \
                            .out_count = out,                                                                          \
                            .flags = flags_,                                                                           \
                            .saves = saves_,                                                                           \
                            .infer = lg__infer_##name_,                                                                \
                            .forward = lg__forward_##name_,                                                            \
                            .arguments = names,                                                                        \
                            derivative(name_)},
const lg__op lg__ops[LG__OP_COUNT] = {
#include "ops.def"
};
#include "skip_end.h"
