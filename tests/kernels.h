/* kernels.h - what the tests of the CPU kernels share: queues, random operands of all layouts, values of dtypes. */
#ifndef LG_TEST_KERNELS_H
#define LG_TEST_KERNELS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/half.h"
#include "../kernels/cpu/isa.h"
#include "../kernels/philox.h"
#include "tests.h"

/* Of loops that only compute what is wanted: sanitizers would make them ten times as slow. */
#if defined(__clang__)
#define PLAIN __attribute__((no_sanitize("address", "undefined")))
#else
#define PLAIN
#endif

#define ISAS 3
extern const char *const isas[ISAS];
extern const lg_dtype float_types[4];
extern const double tolerance[LG_DTYPE_COUNT]; /* 0 for integers */
extern const size_t size_of[LG_DTYPE_COUNT];

/* ---- a queue with scratch memory, which drop_workspace frees ---- */
lg_queue make_queue(int threads);
void drop_workspace(void);

#define CALL(kernel, q, args)                                                                                          \
        do {                                                                                                           \
                bool ok_ = (kernel)(q, args);                                                                          \
                drop_workspace();                                                                                      \
                if (!ok_)                                                                                              \
                        fail_msg("kernel: %s", (q)->message);                                                          \
        } while (0)

/* Runs `call` (of k and q) for every instruction set on 1 and 2 threads; `out` must come out the same for both, and
 * `check` is run on it once; by EVERY_AND_MORE, which is for checks of other memory, after each call. */
#define EVERY(out, bytes, call, ...) EVERY_CHECKED(false, out, bytes, call, __VA_ARGS__)
#define EVERY_AND_MORE(out, bytes, call, ...) EVERY_CHECKED(true, out, bytes, call, __VA_ARGS__)
#define EVERY_CHECKED(often, out, bytes, call, ...)                                                                    \
        for (int isa_ = 0; isa_ < ISAS; isa_++) {                                                                      \
                const lg_kernels *k = lg__cpu_kernels(isas[isa_]);                                                     \
                void *first_ = malloc((bytes) + 1);                                                                    \
                for (int threads_ = 1; k && threads_ <= 2; threads_++) {                                               \
                        lg_queue q = make_queue(threads_);                                                             \
                        memset(out, 0x77, bytes);                                                                      \
                        call;                                                                                          \
                        if (threads_ == 1)                                                                             \
                                memcpy(first_, out, bytes);                                                            \
                        assert_memory_equal(first_, out, bytes);                                                       \
                        if (threads_ == 1 || often) {                                                                  \
                                __VA_ARGS__;                                                                           \
                        }                                                                                              \
                        q.api->close(&q);                                                                              \
                }                                                                                                      \
                free(first_);                                                                                          \
        }

/* ---- random numbers, values of dtypes ---- */
int64_t random_int(int64_t lo, int64_t hi); /* both included */
double random_real(double lo, double hi);
double get(lg_dtype t, const void *p, int64_t i);
void put(lg_dtype t, void *p, int64_t i, double v);
bool is_float(lg_dtype t);
bool close_to(double got, double want, double tol);

/* ---- strided operands ---- */
typedef struct operand {
        lg_dtype dtype;
        void *memory; /* all of it */
        size_t bytes;
        int64_t start; /* element 0 within it */
        int64_t strides[LG_MAX_DIMS];
} operand;

void *operand_at(const operand *o);

/* Dimensions in random order of memory, with gaps, backwards or repeated. `layout` 0: plain. */
operand make_operand(lg_dtype t, int ndim, const int64_t *shape, int layout, bool may_repeat, double lo, double hi);
double operand_get(const operand *o, int ndim, const int64_t *shape, int64_t index);
int64_t count_of(int ndim, const int64_t *shape);
int64_t offset_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t index);

/* Small, empty, long-rowed and large shapes; returns the number of dimensions. */
int make_shape(int which, int64_t *shape);
#define SHAPES 9

/* ---- contiguous arrays ---- */
void *make_array(lg_dtype t, int64_t n, double lo, double hi);
void check_array(const char *what, lg_dtype t, const void *got, const double *want, int64_t n, double tol);

#endif
