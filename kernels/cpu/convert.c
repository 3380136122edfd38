/* convert.c - contiguous conversion between dtypes, through the types that kernels compute in. */
#include <math.h>
#include "cpu.h"
#include "simd.h"

static inline int64_t i64_of_f64(double x)
{
        int64_t r = x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : x == x ? (int64_t)x : 0;
        return r;
}

/* Clamps to limits that f64 represents exactly, so that the conversion cannot overflow. NaN gives 0. */
static inline int32_t i32_of_f64(double x)
{
        double y = x < -2147483648.0 ? -2147483648.0 : x > 2147483647.0 ? 2147483647.0 : x;
        return (int32_t)(y == y ? y : 0.0);
}

static inline uint8_t u8_of_f64(double x)
{
        double y = x < 0.0 ? 0.0 : x > 255.0 ? 255.0 : x;
        return (uint8_t)(int32_t)(y == y ? y : 0.0);
}

/* Returns x rounded to odd: truncated to f32, with the last bit set if anything was lost. Rounding this to a shorter
 * format gives the same as rounding x (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008). */
static inline float f32_odd_of_f64(double x)
{
        float f = (float)x;
        uint32_t u = lg_bits_of_f32(f);
        uint32_t away = fabs((double)f) > fabs(x) ? 1u : 0u, inexact = (double)f != x ? 1u : 0u;
        return lg_f32_of_bits((u - away) | inexact);
}

/* Returns x rounded to odd: if x needs more than 53 bits, one bit replaces the low 11, set if any of them was. */
static inline double f64_odd_of_i64(int64_t x)
{
        int64_t folded = (x | ((x & 0x7FF) + 0x7FF)) & ~(int64_t)0x7FF;
        return (double)(x >= -((int64_t)1 << 53) && x <= (int64_t)1 << 53 ? x : folded);
}

#define CONVERT(name, to_type, from_type, formula)                                                                     \
        static void name(int64_t n, void *to, const void *from)                                                        \
        {                                                                                                              \
                to_type *t = to;                                                                                       \
                const from_type *f = from;                                                                             \
                LG_SIMD                                                                                                \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                        const from_type x = f[i];                                                                      \
                        t[i] = (to_type)(formula);                                                                     \
                }                                                                                                      \
        }
#define CONVERT_SAME(name, type)                                                                                       \
        static void name(int64_t n, void *to, const void *from)                                                        \
        {                                                                                                              \
                memmove(to, from, (size_t)n * sizeof(type));                                                           \
        }

/* Conversion of f16 to and from f32, by the processor's instructions where available. */
#if defined(__F16C__)
#define CONVERT_F16(name, to_type, to_vec, from_type, from_vec, convert)                                               \
        static void name(int64_t n, void *to, const void *from)                                                        \
        {                                                                                                              \
                to_type *t = to;                                                                                       \
                const from_type *f = from;                                                                             \
                from_vec x = {0};                                                                                      \
                to_vec y;                                                                                              \
                for (; n >= LG_LANES_f32; n -= LG_LANES_f32, t += LG_LANES_f32, f += LG_LANES_f32) {                   \
                        memcpy(&x, f, sizeof x);                                                                       \
                        y = convert(x);                                                                                \
                        memcpy(t, &y, sizeof y);                                                                       \
                }                                                                                                      \
                if (n > 0) {                                                                                           \
                        memcpy(&x, f, (size_t)n * sizeof *f);                                                          \
                        y = convert(x);                                                                                \
                        memcpy(t, &y, (size_t)n * sizeof *t);                                                          \
                }                                                                                                      \
        }
CONVERT_F16(f32_f16, float, lg_vec_f32, uint16_t, lg_halves, lg_vec_of_f16)
CONVERT_F16(f16_f32, uint16_t, lg_halves, float, lg_vec_f32, lg_f16_of_vec)
#else
CONVERT(f32_f16, float, uint16_t, lg_f32_of_f16(x))
CONVERT(f16_f32, uint16_t, float, lg_f16_of_f32(x))
#endif

CONVERT_SAME(f32_f32, float)
CONVERT_SAME(f64_f64, double)
CONVERT_SAME(i64_i64, int64_t)
CONVERT(f32_f64, float, double, x)
CONVERT(f32_bf16, float, uint16_t, lg_f32_of_bf16(x))
CONVERT(f32_i64, float, int64_t, x)
CONVERT(f32_i32, float, int32_t, x)
CONVERT(f32_u8, float, uint8_t, x)
CONVERT(f32_bool, float, uint8_t, x != 0)
CONVERT(f64_f32, double, float, x)
CONVERT(f64_f16, double, uint16_t, lg_f32_of_f16(x))
CONVERT(f64_bf16, double, uint16_t, lg_f32_of_bf16(x))
CONVERT(f64_i64, double, int64_t, x)
CONVERT(f64_i32, double, int32_t, x)
CONVERT(f64_u8, double, uint8_t, x)
CONVERT(f64_bool, double, uint8_t, x != 0)
CONVERT(i64_f32, int64_t, float, i64_of_f64(x))
CONVERT(i64_f64, int64_t, double, i64_of_f64(x))
CONVERT(i64_f16, int64_t, uint16_t, i64_of_f64(lg_f32_of_f16(x)))
CONVERT(i64_bf16, int64_t, uint16_t, i64_of_f64(lg_f32_of_bf16(x)))
CONVERT(i64_i32, int64_t, int32_t, x)
CONVERT(i64_u8, int64_t, uint8_t, x)
CONVERT(i64_bool, int64_t, uint8_t, x != 0)

CONVERT(bf16_f32, uint16_t, float, lg_bf16_of_f32(x))
CONVERT(i32_f32, int32_t, float, i32_of_f64(x))
CONVERT(u8_f32, uint8_t, float, u8_of_f64(x))
CONVERT(bool_f32, uint8_t, float, x != 0)
CONVERT(f16_f64, uint16_t, double, lg_f16_of_f32(f32_odd_of_f64(x)))
CONVERT(bf16_f64, uint16_t, double, lg_bf16_of_f32(f32_odd_of_f64(x)))
CONVERT(i32_f64, int32_t, double, i32_of_f64(x))
CONVERT(u8_f64, uint8_t, double, u8_of_f64(x))
CONVERT(bool_f64, uint8_t, double, x != 0)
CONVERT(f16_i64, uint16_t, int64_t, lg_f16_of_f32((float)x)) /* exact up to 2^24; larger values are infinite in f16 */
CONVERT(bf16_i64, uint16_t, int64_t, lg_bf16_of_f32(f32_odd_of_f64(f64_odd_of_i64(x))))
CONVERT(i32_i64, int32_t, int64_t, (uint32_t)x)
CONVERT(u8_i64, uint8_t, int64_t, x)
CONVERT(bool_i64, uint8_t, int64_t, x != 0)

const lg_convert_fn lg_load[LG_COMPUTE_COUNT][LG_DTYPE_COUNT] = {
        {NULL, f32_f32, f32_f64, f32_f16, f32_bf16, f32_i64, f32_i32, f32_u8, f32_bool},
        {NULL, f64_f32, f64_f64, f64_f16, f64_bf16, f64_i64, f64_i32, f64_u8, f64_bool},
        {NULL, i64_f32, i64_f64, i64_f16, i64_bf16, i64_i64, i64_i32, i64_u8, i64_bool},
};
const lg_convert_fn lg_store[LG_COMPUTE_COUNT][LG_DTYPE_COUNT] = {
        {NULL, f32_f32, f64_f32, f16_f32, bf16_f32, i64_f32, i32_f32, u8_f32, bool_f32},
        {NULL, f32_f64, f64_f64, f16_f64, bf16_f64, i64_f64, i32_f64, u8_f64, bool_f64},
        {NULL, f32_i64, f64_i64, f16_i64, bf16_i64, i64_i64, i32_i64, u8_i64, bool_i64},
};

#define CHUNK 8192

typedef struct job {
        lg_convert_fn f;
        char *to;
        const char *from;
        int64_t n, to_size, from_size;
} job;

static void convert_chunk(const job *j, int64_t first, int64_t n)
{
        j->f(n, j->to + first * j->to_size, j->from + first * j->from_size);
}
LG_EACH_CHUNK(convert_chunks, convert_chunk, job, CHUNK, j->n)

void lg_convert_all(lg_queue *q, lg_convert_fn f, int64_t n, void *to, size_t to_size, const void *from,
                    size_t from_size)
{
        const job j = {f, to, from, n, (int64_t)to_size, (int64_t)from_size};
        lg_parallel(q, lg_ceil_div(n, CHUNK), lg_grain(CHUNK), convert_chunks, &j);
}

float *lg_widen(lg_queue *q, lg_dtype t, int64_t n, const void *from)
{
        float *to = q->workspace(q, (size_t)lg_most(n, 1) * sizeof *to);
        if (to && from)
                lg_convert_all(q, lg_load[LG_COMPUTE_F32][t], n, to, sizeof *to, from, lg_bytes_of(t));
        return to;
}

void lg_narrow(lg_queue *q, lg_dtype t, int64_t n, void *to, const float *from)
{
        lg_convert_all(q, lg_store[LG_COMPUTE_F32][t], n, to, lg_bytes_of(t), from, sizeof *from);
}

bool lg_widen_operands(lg_queue *q, const char *name, lg_dtype *dtype, int count, lg_operand *operands)
{
        if (!lg_is_float(*dtype))
                return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)*dtype);
        float *wide = NULL;
        for (lg_operand *o = operands; lg_is_half(*dtype) && o < operands + count; o++) {
                memcpy(&o->given, o->pointer, sizeof o->given);
                if (!o->given || o->n == 0)
                        continue;
                if (o->use != LG_IN_PLACE && !(wide = lg_widen(q, *dtype, o->n, o->use == LG_READ ? o->given : NULL)))
                        return false;
                memcpy(o->pointer, &wide, sizeof wide);
        }
        *dtype = *dtype == LG_F64 ? LG_F64 : LG_F32;
        return true;
}

bool lg_narrow_operands(lg_queue *q, lg_dtype dtype, int count, const lg_operand *operands)
{
        for (const lg_operand *o = operands; lg_is_half(dtype) && o < operands + count; o++) {
                float *wide;
                memcpy(&wide, o->pointer, sizeof wide);
                if (o->given && o->use != LG_READ)
                        lg_narrow(q, dtype, o->n, o->given, wide);
        }
        return true;
}
