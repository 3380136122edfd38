/* kernels.c - queues, random operands and values for the tests of the CPU kernels. */
#include "kernels.h"
#include "../kernels/cpu/engine.h"

const char *const isas[ISAS] = {"portable", "avx2", "avx512"};
const lg_dtype float_types[4] = {LG_F32, LG_F64, LG_F16, LG_BF16};
const double tolerance[LG_DTYPE_COUNT] = {0, 1e-5, 1e-12, 2e-3, 1.6e-2, 0, 0, 0, 0};
const size_t size_of[LG_DTYPE_COUNT] = {0, 4, 8, 2, 2, 8, 4, 1, 1};

/* ---- a queue with scratch memory ---- */
#define PIECES 64
static void *pieces[PIECES];
static int piece_count;

static void *workspace(lg_queue *q, size_t bytes)
{
        void *p = piece_count < PIECES ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
        if (!p) {
                lg_queue_fail(q, LG_NO_MEMORY, "no scratch");
                return NULL;
        }
        memset(p, 0xFF, bytes);
        return pieces[piece_count++] = p;
}

static lg_engine engine; /* one for all queues, which come one after the other */

lg_queue make_queue(int threads)
{
        return (lg_queue){.threads = threads, .workspace = workspace, .api = lg_cpu_device(), .memo = &engine};
}

void drop_workspace(void)
{
        while (piece_count > 0)
                free(pieces[--piece_count]);
}

/* ---- random numbers, values of dtypes ---- */
static uint64_t seed = 1;

PLAIN static uint64_t next_random(void)
{
        uint64_t x = seed += 0x9E3779B97F4A7C15; /* splitmix64 */
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
        x = (x ^ x >> 27) * 0x94D049BB133111EB;
        return x ^ x >> 31;
}

PLAIN int64_t random_int(int64_t lo, int64_t hi)
{
        return lo + (int64_t)(next_random() % (uint64_t)(hi - lo + 1));
}

PLAIN double random_real(double lo, double hi)
{
        return lo + (hi - lo) * ((double)(next_random() >> 11) * 0x1p-53);
}

PLAIN double get(lg_dtype t, const void *p, int64_t i)
{
        switch (t) {
        case LG_F32:
                return ((const float *)p)[i];
        case LG_F64:
                return ((const double *)p)[i];
        case LG_F16:
                return (double)lg_f32_of_f16(((const uint16_t *)p)[i]);
        case LG_BF16:
                return (double)lg_f32_of_bf16(((const uint16_t *)p)[i]);
        case LG_I64:
                return (double)((const int64_t *)p)[i];
        case LG_I32:
                return ((const int32_t *)p)[i];
        default:
                return ((const uint8_t *)p)[i];
        }
}

/* v to so many bits, ties to even; below 2^lowest the bits get fewer. */
PLAIN static float rounded(double v, int bits, int lowest)
{
        if (v == 0 || !isfinite(v))
                return (float)v;
        int e = ilogb(v) > lowest ? ilogb(v) : lowest;
        return (float)ldexp(nearbyint(ldexp(v, bits - 1 - e)), e - bits + 1);
}

PLAIN void put(lg_dtype t, void *p, int64_t i, double v)
{
        switch (t) {
        case LG_F32:
                ((float *)p)[i] = (float)v;
                break;
        case LG_F64:
                ((double *)p)[i] = v;
                break;
        case LG_F16:
                ((uint16_t *)p)[i] = lg_f16_of_f32(rounded(v, 11, -14));
                break;
        case LG_BF16:
                ((uint16_t *)p)[i] = lg_bf16_of_f32(rounded(v, 8, -126));
                break;
        case LG_I64:
                ((int64_t *)p)[i] = (int64_t)v;
                break;
        case LG_I32:
                ((int32_t *)p)[i] = (int32_t)(uint32_t)(int64_t)v;
                break;
        case LG_U8:
                ((uint8_t *)p)[i] = (uint8_t)(int64_t)v;
                break;
        default:
                ((uint8_t *)p)[i] = v != 0;
        }
}

bool is_float(lg_dtype t)
{
        return t >= LG_F32 && t <= LG_BF16;
}

bool close_to(double got, double want, double tol)
{
        if (isnan(want) || isnan(got))
                return isnan(want) && isnan(got);
        return got == want || fabs(got - want) <= tol * fmax(1, fabs(want));
}

/* ---- strided operands ---- */
void *operand_at(const operand *o)
{
        return (char *)o->memory + o->start * (int64_t)size_of[o->dtype];
}

PLAIN operand make_operand(lg_dtype t, int ndim, const int64_t *shape, int layout, bool may_repeat, double lo,
                           double hi)
{
        operand o = {.dtype = t};
        int order[LG_MAX_DIMS];
        int64_t step = 1, total = 0;
        for (int d = 0; d < ndim; d++)
                order[d] = ndim - 1 - d;
        for (int d = ndim - 1; layout && d > 0; d--) {
                int e = (int)random_int(0, d), swap = order[d];
                order[d] = order[e];
                order[e] = swap;
        }
        for (int i = 0; i < ndim; i++) {
                int d = order[i];
                bool repeat = layout && may_repeat && random_int(0, 3) == 0;
                bool back = layout && random_int(0, 5) == 0;
                if (layout && random_int(0, 3) == 0)
                        step *= 2;
                o.strides[d] = repeat ? 0 : back ? -step : step;
                if (back && !repeat && shape[d] > 0)
                        o.start += step * (shape[d] - 1);
                if (!repeat && shape[d] > 0) {
                        total += step * (shape[d] - 1);
                        step *= shape[d];
                }
        }
        o.bytes = (size_t)(total + 1) * size_of[t];
        o.memory = malloc(o.bytes);
        for (int64_t i = 0; i <= total; i++) {
                double v = random_real(lo, hi);
                put(t, o.memory, i, is_float(t) ? v : floor(t == LG_BOOL ? v - lo > (hi - lo) / 2 : v));
        }
        return o;
}

int64_t count_of(int ndim, const int64_t *shape)
{
        int64_t n = 1;
        for (int d = 0; d < ndim; d++)
                n *= shape[d];
        return n;
}

PLAIN int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t index)
{
        int64_t offset = 0;
        for (int d = ndim - 1; d >= 0; d--) {
                offset += index % shape[d] * strides[d];
                index /= shape[d];
        }
        return offset;
}

PLAIN double operand_get(const operand *o, int ndim, const int64_t *shape, int64_t index)
{
        return get(o->dtype, operand_at(o), offset_of(ndim, shape, o->strides, index));
}

int make_shape(int which, int64_t *shape)
{
        static const int64_t fixed[][4] = {{1, 1, 1, 1}, {3, 0, 2, 1}, {1, 1, 1, 700}, {2, 3, 1, 301}, {40, 2, 5, 110}};
        if (which < 5) {
                memcpy(shape, fixed[which], sizeof fixed[0]);
                return which == 0 ? 0 : 4;
        }
        int ndim = (int)random_int(1, 5);
        for (int d = 0; d < ndim; d++)
                shape[d] = random_int(1, 6);
        return ndim;
}

/* ---- contiguous arrays ---- */
PLAIN void *make_array(lg_dtype t, int64_t n, double lo, double hi)
{
        return make_operand(t, 1, &n, 0, false, lo, hi).memory;
}

void check_array(const char *what, lg_dtype t, const void *got, const double *want, int64_t n, double tol)
{
        for (int64_t i = 0; i < n; i++) {
                /* Beyond f16's range there is only infinity. */
                double limited = t == LG_F16 && fabs(want[i]) >= 65520 ? copysign(INFINITY, want[i]) : want[i];
                if (!close_to(get(t, got, i), limited, tol))
                        fail_msg("%s dtype %d at %lld: %g, not %g", what, t, (long long)i, get(t, got, i), want[i]);
        }
}
