/* ptx.h - what the C++ that translate.py makes of PTX needs: types, checked memory, instructions without a C++
 * operator.
 *
 * A kernel is a function that cudasim runs once for each thread. Compile with -mfma -mf16c -ffp-contract=off
 * -fno-strict-aliasing -fwrapv.
 */
#ifndef PTX_H
#define PTX_H

#include "cudasim.h"
#include <cfenv>
#include <immintrin.h>
#include <limits>

namespace ptx
{
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* A kernel of a file; a list of them ends with one without a name. */
struct kernel {
        const char *file, *name;
        void (*run)(char *const *params);
        const size_t *params; /* bytes of each */
        size_t count, most_threads, shared;
};

/* ---- memory ---- */

extern const char *running; /* the kernel */
[[noreturn]] void bad_address(const char *space, u64 at, size_t bytes, const char *file, int line);
/* Dies unless bytes at `at` are memory of a device or a table of constants of this module, and a multiple of bytes. */
void look_up(const char *space, u64 at, size_t bytes, const char *file, int line);
extern u64 known_low, known_size; /* a device's memory */
/* The block's shared memory; its addresses in PTX are offsets in it. */
extern char *shared_low;
extern u64 shared_bytes;

#define AT_global(bytes, address)                                                                                      \
        ({                                                                                                             \
                const u64 a_ = address;                                                                                \
                if (__builtin_expect((a_ & (bytes - 1)) != 0 || a_ - known_low > known_size - bytes, 0))               \
                        look_up("global", a_, bytes, __FILE__, __LINE__);                                              \
                (char *)a_;                                                                                            \
        })
#define AT_shared(bytes, address)                                                                                      \
        ({                                                                                                             \
                const u64 a_ = address;                                                                                \
                if (__builtin_expect((a_ & (bytes - 1)) != 0 || a_ + bytes > shared_bytes, 0))                         \
                        bad_address("shared", a_, bytes, __FILE__, __LINE__);                                          \
                shared_low + a_;                                                                                       \
        })
/* Parameters, the thread's own memory, and addresses of either that are passed on. */
#define AT_param(bytes, address)                                                                                       \
        ({                                                                                                             \
                const u64 a_ = address;                                                                                \
                if (__builtin_expect((a_ & (bytes - 1)) != 0, 0))                                                      \
                        bad_address("own", a_, bytes, __FILE__, __LINE__);                                             \
                (char *)a_;                                                                                            \
        })
#define AT_local AT_param
#define AT_const AT_param
#define AT_generic(bytes, address)                                                                                     \
        ({                                                                                                             \
                const u64 a_ = address, frame_ = (u64)__builtin_frame_address(0);                                      \
                if (__builtin_expect((a_ & (bytes - 1)) != 0, 0) ||                                                    \
                    (a_ - known_low > known_size - bytes && a_ - (u64)shared_low >= shared_bytes &&                    \
                     a_ - frame_ + 65536 > 256 * 1024))                                                                \
                        look_up("generic", a_, bytes, __FILE__, __LINE__);                                             \
                (char *)a_;                                                                                            \
        })

/* ---- integers ---- */

/* Shifts by as much as a register has bits or more leave zeros or copies of the sign. */
template <typename T> static inline T shift_left(T a, u32 by)
{
        return by < sizeof(T) * 8 ? (T)(a << by) : 0;
}
template <typename T> static inline T shift_right(T a, u32 by)
{
        return by < sizeof(T) * 8 ? (T)(a >> by) : (T)(std::is_signed_v<T> && a < 0 ? -1 : 0);
}
template <typename T> static inline T high(T a, T b)
{
        __extension__ typedef std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128> wide;
        return (T)((wide)a * b >> (sizeof(T) * 8));
}
/* A GPU does not trap: a quotient by zero has all bits set, and the least integer by -1 stays. */
template <typename T> static inline T divide(T a, T b)
{
        if (b == 0)
                return (T)-1;
        return std::is_signed_v<T> && b == (T)-1 ? (T)(0 - a) : (T)(a / b);
}
template <typename T> static inline T remainder(T a, T b)
{
        if (b == 0)
                return a;
        return std::is_signed_v<T> && b == (T)-1 ? 0 : (T)(a % b);
}
template <typename T> static inline T insert(T a, T b, u32 from, u32 count)
{
        from &= 255;
        count &= 255;
        const T ones = count >= sizeof(T) * 8 ? (T)-1 : (T)(((T)1 << count) - 1), mask = shift_left(ones, from);
        return (T)((b & ~mask) | (shift_left(a, from) & mask));
}
template <typename T> static inline T extract(T a, u32 from, u32 count)
{
        typedef std::make_unsigned_t<T> U;
        const u32 width = sizeof(T) * 8;
        from &= 255;
        count &= 255;
        if (!count)
                return 0;
        const U x = shift_right((U)a, from), mask = count >= width ? (U)-1 : (U)(((U)1 << count) - 1);
        const u32 last = from + count - 1 < width - 1 ? from + count - 1 : width - 1;
        const bool fill = std::is_signed_v<T> && ((U)a >> last & 1);
        return (T)(fill ? x | (from + count > width ? ~shift_right((U)-1, from) : (U)~mask) : x & mask);
}
static inline u32 permute(u32 a, u32 b, u32 selector)
{
        const u64 all = (u64)b << 32 | a;
        u32 r = 0;
        for (int i = 0; i < 4; i++) {
                const u32 s = selector >> 4 * i & 15, byte = (u32)(all >> 8 * (s & 7)) & 255;
                r |= (s & 8 ? (byte & 128 ? 255u : 0) : byte) << 8 * i;
        }
        return r;
}
template <typename T> static inline u32 leading_zeros(T a)
{
        return a ? (u32)__builtin_clzll(a) - (64 - sizeof(T) * 8) : sizeof(T) * 8;
}
template <typename T> static inline T reversed(T a)
{
        T r = 0;
        for (size_t i = 0; i < sizeof(T) * 8; i++)
                r = (T)(r << 1 | (a >> i & 1));
        return r;
}
static inline u32 sum(u32 a, u32 b, u32 in, u32 &carry)
{
        const u64 s = (u64)a + b + in;
        carry = (u32)(s >> 32);
        return (u32)s;
}
static inline u32 difference(u32 a, u32 b, u32 in, u32 &borrow)
{
        const u64 s = (u64)a - b - in;
        borrow = (u32)(s >> 32) & 1;
        return (u32)s;
}

/* ---- floating point ---- */

static inline f32 fused(f32 a, f32 b, f32 c)
{
        return __builtin_fmaf(a, b, c);
}
static inline f64 fused(f64 a, f64 b, f64 c)
{
        return __builtin_fma(a, b, c);
}
enum { R_rz = FE_TOWARDZERO, R_rm = FE_DOWNWARD, R_rp = FE_UPWARD, M_rni, M_rzi, M_rmi, M_rpi };
f32 fused_towards(int mode, f32 a, f32 b, f32 c);
f64 fused_towards(int mode, f64 a, f64 b, f64 c);
template <typename T> static inline T flush(T x)
{
        return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign((T)0, x) : x;
}
template <typename T> static inline T least(T a, T b)
{
        return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
template <typename T> static inline T most(T a, T b)
{
        return a != a ? b : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
/* As many bits as a GPU's approximation in f64 has. */
static inline f64 coarse(f64 x)
{
        return __builtin_bit_cast(f64, __builtin_bit_cast(u64, x) & 0xffffffff00000000ull);
}
static inline u16 to_half(f32 x)
{
        return (u16)_cvtss_sh(x, 0);
}
static inline f32 of_half(u16 x)
{
        return _cvtsh_ss(x);
}
static inline u16 to_bf16(f32 x)
{
        const u32 u = __builtin_bit_cast(u32, x);
        return x != x ? 0x7fff : (u16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline f32 of_bf16(u16 x)
{
        return __builtin_bit_cast(f32, (u32)x << 16);
}
template <int mode, typename F> static inline F whole(F x)
{
        return mode == M_rni   ? std::nearbyint(x)
               : mode == M_rzi ? std::trunc(x)
               : mode == M_rmi ? std::floor(x)
                               : std::ceil(x);
}
/* To an integer, saturating. NaN gives 0, but the highest bit alone from f64 or to 64 bits (PTX ISA, cvt). */
template <typename I, int mode, typename F> static inline I to_whole(F x)
{
        if (x != x)
                return sizeof(F) == 8 || sizeof(I) == 8 ? (I)((std::make_unsigned_t<I>)1 << (sizeof(I) * 8 - 1)) : 0;
        const f64 y = whole<mode>((f64)x), top = std::ldexp(1.0, (int)sizeof(I) * 8 - std::is_signed_v<I>);
        return y >= top                               ? std::numeric_limits<I>::max()
               : y < (std::is_signed_v<I> ? -top : 0) ? std::numeric_limits<I>::min()
                                                      : (I)y;
}
template <typename F> static inline F saturated(F x)
{
        return x > 0 ? x < 1 ? x : 1 : 0;
}

/* ---- threads ---- */

enum way { K_up, K_down, K_bfly, K_idx };
template <way w> static inline u32 shuffle(u32 a, u32 b, u32 c, u32 mask, bool &inside)
{
        const int lane = cudasim::lane(), segment = (int)(c >> 8 & 31), by = (int)(b & 31);
        const int edge = (lane & segment) | ((int)(c & 31) & ~segment);
        const int from = w == K_up     ? lane - by
                         : w == K_down ? lane + by
                         : w == K_bfly ? lane ^ by
                                       : (lane & segment) | (by & ~segment);
        inside = w == K_up ? from >= edge : from <= edge;
        return (u32)cudasim::exchange(mask, a, inside ? from : lane);
}
} // namespace ptx
#endif
