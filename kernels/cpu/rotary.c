/* rotary.c - rotates pairs of elements in rows by tables of cosines and sines: rotary position embedding. */
#include "cpu.h"

typedef void row_fn(int64_t pairs, const void *x, const void *cos, const void *sin, bool back, void *y);

/* Defines a function for one row, whose pairs are `step` elements apart and whose members `apart`. */
#define ROW(name, type, table, step, apart, LOAD, STORE)                                                               \
        static void name(int64_t pairs, const void *x_, const void *cos_, const void *sin_, bool back, void *y_)       \
        {                                                                                                              \
                const type *restrict x = x_;                                                                           \
                const table *restrict cos = cos_, *restrict sin = sin_;                                                \
                type *restrict y = y_;                                                                                 \
                const table sign = back ? -1 : 1;                                                                      \
                LG_SIMD                                                                                                \
                for (int64_t i = 0; i < pairs; i++) {                                                                  \
                        const table a = LOAD(x[step * i]), b = LOAD(x[step * i + (apart)]), s = sign * sin[i];         \
                        y[step * i] = STORE(a * cos[i] - b * s);                                                       \
                        y[step * i + (apart)] = STORE(b * cos[i] + a * s);                                             \
                }                                                                                                      \
        }
#define AS_IT_IS(v) (v)
#define ROWS(dtype, type, table, LOAD, STORE)                                                                          \
        ROW(halves_##dtype, type, table, 1, pairs, LOAD, STORE)                                                        \
        ROW(neighbours_##dtype, type, table, 2, 1, LOAD, STORE)
ROWS(f32, float, float, AS_IT_IS, AS_IT_IS)
ROWS(f64, double, double, AS_IT_IS, AS_IT_IS)
ROWS(f16, uint16_t, float, lg_f32_of_f16, lg_f16_of_f32)
ROWS(bf16, uint16_t, float, lg_f32_of_bf16, lg_bf16_of_f32)

typedef struct job {
        const lg_rotary_args *a;
        lg_walk walk; /* of rows: operand 0 is x, operand 1 the tables */
        int64_t size, table_size;
        row_fn *row;
} job;

static void rotate_rows(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        const lg_rotary_args *a = j->a;
        const lg_walk *w = &j->walk;
        const int64_t rest = (a->width - a->dims) * j->size, turned = a->dims * j->size;
        (void)thread;
        for (int64_t i = first, run; i < end; i += run) {
                int64_t at[LG_MAX_DIMS];
                const int last = w->ndim - 1;
                int64_t from = lg_walk_seek(w, 0, i, at) * j->size, table = lg_walk_seek(w, 1, i, at) * j->table_size;
                run = lg_least(end - i, w->shape[last] - at[last]);
                for (int64_t r = 0; r < run; r++) {
                        const char *x = (const char *)a->x + from;
                        char *y = (char *)a->y + (i + r) * a->width * j->size;
                        j->row(a->dims / 2, x, (const char *)a->cos + table, (const char *)a->sin + table, a->back, y);
                        if (rest)
                                memcpy(y + turned, x + turned, (size_t)rest);
                        from += w->strides[0][last] * j->size;
                        table += w->strides[1][last] * j->table_size;
                }
        }
}

bool LG_CPU(rotary)(lg_queue *q, const lg_rotary_args *a)
{
        static row_fn *const rows[][2] = {[LG_F32] = {halves_f32, neighbours_f32},
                                          [LG_F64] = {halves_f64, neighbours_f64},
                                          [LG_F16] = {halves_f16, neighbours_f16},
                                          [LG_BF16] = {halves_bf16, neighbours_bf16}};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "rotary: no kernel for dtype %d", (int)a->dtype);
        job j = {.a = a, .size = (int64_t)lg_bytes_of(a->dtype), .row = rows[a->dtype][a->interleaved]};
        j.table_size = a->dtype == LG_F64 ? 8 : 4;
        lg_walk_init(&j.walk, a->ndim, a->shape, 2, (const int64_t *[]){a->x_strides, a->table_strides}, false);
        lg_parallel(q, j.walk.count, lg_grain(2 * a->width), rotate_rows, &j);
        return true;
}
