/* walk.c - walks over the strides of several operands: joins dimensions, gathers and scatters elements. */
#include "cpu.h"

static void walk_order(lg_walk *w)
{
        for (int i = 1; i < w->ndim; i++) {
                for (int j = i; j > 0; j--) {
                        int64_t left = w->strides[0][j - 1], right = w->strides[0][j];
                        if ((left < 0 ? -left : left) >= (right < 0 ? -right : right))
                                break;
                        int64_t size = w->shape[j];
                        w->shape[j] = w->shape[j - 1];
                        w->shape[j - 1] = size;
                        for (int o = 0; o < w->operands; o++) {
                                int64_t s = w->strides[o][j];
                                w->strides[o][j] = w->strides[o][j - 1];
                                w->strides[o][j - 1] = s;
                        }
                }
        }
}

static bool walk_joins(const lg_walk *w, int left, int right)
{
        for (int o = 0; o < w->operands; o++) {
                if (w->strides[o][left] != w->strides[o][right] * w->shape[right])
                        return false;
        }
        return true;
}

static void walk_join(lg_walk *w)
{
        int last = 0;
        for (int d = 1; d < w->ndim; d++) {
                int64_t left = w->shape[last];
                bool join = walk_joins(w, last, d);
                if (!join)
                        last++;
                w->shape[last] = join ? left * w->shape[d] : w->shape[d];
                for (int o = 0; o < w->operands; o++)
                        w->strides[o][last] = w->strides[o][d];
        }
        w->ndim = last + 1;
}

void lg_walk_init(lg_walk *w, int ndim, const int64_t *shape, int operands, const int64_t *const *strides, bool sort)
{
        w->ndim = 0;
        w->operands = operands;
        w->count = 1;
        for (int d = 0; d < ndim; d++) {
                w->count *= shape[d];
                if (shape[d] == 1)
                        continue;
                w->shape[w->ndim] = shape[d];
                for (int o = 0; o < operands; o++)
                        w->strides[o][w->ndim] = strides[o][d];
                w->ndim++;
        }
        if (w->ndim == 0) {
                w->ndim = 1;
                w->shape[0] = 1;
                for (int o = 0; o < operands; o++)
                        w->strides[o][0] = 0;
                return;
        }
        if (sort)
                walk_order(w);
        walk_join(w);
}

int64_t lg_walk_seek(const lg_walk *w, int operand, int64_t index, int64_t *ret_at)
{
        int64_t offset = 0;
        for (int d = w->ndim - 1; d > 0; d--) {
                ret_at[d] = index % w->shape[d];
                index /= w->shape[d];
                offset += ret_at[d] * w->strides[operand][d];
        }
        ret_at[0] = index;
        return offset + index * w->strides[operand][0];
}

/* Copies n elements of one type; from and to advance by their own strides, one of which is 1. */
#define MOVE(type)                                                                                                     \
        do {                                                                                                           \
                type *t = to;                                                                                          \
                const type *f = from;                                                                                  \
                for (int64_t i = 0; i < n; i++)                                                                        \
                        t[i * to_step] = f[i * from_step];                                                             \
        } while (0)

static void move_run(size_t size, int64_t n, void *to, int64_t to_step, const void *from, int64_t from_step)
{
        if (to_step == 1 && from_step == 1 && n > 8)
                memcpy(to, from, (size_t)n * size);
        else if (size == 8)
                MOVE(uint64_t);
        else if (size == 4)
                MOVE(uint32_t);
        else if (size == 2)
                MOVE(uint16_t);
        else
                MOVE(uint8_t);
}

/* Advances the coordinates `at` by a run in the innermost dimension and returns the offset of the next element. */
static int64_t walk_step(const lg_walk *w, int operand, int64_t *at, int64_t offset, int64_t run)
{
        const int64_t *strides = w->strides[operand];
        int d = w->ndim - 1;
        at[d] += run;
        offset += run * strides[d];
        while (d > 0 && at[d] == w->shape[d]) {
                offset += strides[d - 1] - at[d] * strides[d];
                at[d] = 0;
                at[--d]++;
        }
        return offset;
}

void lg_walk_gather(const lg_walk *w, int operand, size_t size, void *to, const void *base, int64_t start, int64_t n)
{
        if (w->ndim == 1) {
                int64_t stride = w->strides[operand][0];
                move_run(size, n, to, 1, (const char *)base + start * stride * (int64_t)size, stride);
                return;
        }
        int64_t at[LG_MAX_DIMS];
        int64_t offset = lg_walk_seek(w, operand, start, at);
        int inner = w->ndim - 1;
        for (char *p = to; n > 0;) {
                int64_t run = lg_least(n, w->shape[inner] - at[inner]);
                move_run(size, run, p, 1, (const char *)base + offset * (int64_t)size, w->strides[operand][inner]);
                p += run * (int64_t)size;
                n -= run;
                offset = walk_step(w, operand, at, offset, run);
        }
}

void lg_walk_scatter(const lg_walk *w, int operand, size_t size, void *base, const void *from, int64_t start, int64_t n)
{
        if (w->ndim == 1) {
                int64_t stride = w->strides[operand][0];
                move_run(size, n, (char *)base + start * stride * (int64_t)size, stride, from, 1);
                return;
        }
        int64_t at[LG_MAX_DIMS];
        int64_t offset = lg_walk_seek(w, operand, start, at);
        int inner = w->ndim - 1;
        for (const char *p = from; n > 0;) {
                int64_t run = lg_least(n, w->shape[inner] - at[inner]);
                move_run(size, run, (char *)base + offset * (int64_t)size, w->strides[operand][inner], p, 1);
                p += run * (int64_t)size;
                n -= run;
                offset = walk_step(w, operand, at, offset, run);
        }
}
