/* copy.c - out = in, between any strides and dtypes. */
#include "cpu.h"

#define CHUNK 1024
#define LONG_ROW 256
#define TILE 32 /* rows and columns that a transposition moves at once */

typedef struct job {
        lg_walk walk; /* out, in */
        char *out;
        const char *in;
        size_t out_size, in_size;
        lg_convert_fn load, store; /* NULL: the values keep their type */
        bool out_dense, in_dense;
        int64_t row, chunks_per_row;
} job;

static void copy_chunk(const job *j, int64_t start, int64_t n)
{
        LG_ALIGN64 char raw[CHUNK * 8], compute[CHUNK * 8];
        int64_t at[LG_MAX_DIMS];
        char *out = j->out_dense ? j->out + lg_walk_seek(&j->walk, 0, start, at) * (int64_t)j->out_size : NULL;
        const char *from = raw;
        if (j->in_dense) {
                from = j->in + lg_walk_seek(&j->walk, 1, start, at) * (int64_t)j->in_size;
        } else if (!j->load && out) {
                lg_walk_gather(&j->walk, 1, j->in_size, out, j->in, start, n);
                return;
        } else {
                lg_walk_gather(&j->walk, 1, j->in_size, raw, j->in, start, n);
        }
        if (j->load) {
                j->load(n, compute, from);
                j->store(n, out ? out : raw, compute);
                from = raw;
        } else if (out) {
                memcpy(out, from, (size_t)n * j->out_size);
        }
        if (!out)
                lg_walk_scatter(&j->walk, 0, j->out_size, j->out, from, start, n);
}

static void copy_chunks(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        (void)thread;
        for (int64_t c = first; c < end; c++) {
                int64_t row = c / j->chunks_per_row, start = c % j->chunks_per_row * CHUNK;
                copy_chunk(j, row * j->row + start, lg_least(CHUNK, j->row - start));
        }
}

/* out[r * out_step + c] = in[r + c * in_step]; a tile of both fits the first cache. */
#define TURN(type)                                                                                                     \
        do {                                                                                                           \
                type *o = out;                                                                                         \
                const type *v = in;                                                                                    \
                for (int64_t r = 0; r < rows; r++) {                                                                   \
                        for (int64_t c = 0; c < cols; c++)                                                             \
                                o[r * out_step + c] = v[r + c * in_step];                                              \
                }                                                                                                      \
        } while (0)

static void turn_tile(size_t size, int64_t rows, int64_t cols, void *out, int64_t out_step, const void *in,
                      int64_t in_step)
{
        if (size == 8)
                TURN(uint64_t);
        else if (size == 4)
                TURN(uint32_t);
        else if (size == 2)
                TURN(uint16_t);
        else
                TURN(uint8_t);
}

/* The dimension that is innermost in `in` where another one is in `out`, or -1. */
static int turned_dimension(const lg_walk *w)
{
        int inner = w->ndim - 1;
        if (w->strides[0][inner] != 1 || w->strides[1][inner] == 1 || w->shape[inner] < 4)
                return -1;
        for (int d = 0; d < inner; d++) {
                if (w->strides[1][d] == 1 && w->shape[d] >= 4)
                        return d;
        }
        return -1;
}

/* Tiles of the planes (turned dimension d, innermost dimension); `rest` walks the other dimensions. */
typedef struct planes {
        const job *j;
        int d;
        int64_t bands; /* of each plane */
        lg_walk rest;
} planes;

static void turn_bands(const void *user, int64_t first, int64_t end, int thread)
{
        const planes *p = user;
        const job *j = p->j;
        const lg_walk *w = &j->walk;
        int inner = w->ndim - 1;
        int64_t rows = w->shape[p->d], cols = w->shape[inner], out_step = w->strides[0][p->d];
        (void)thread;
        for (int64_t band = first; band < end; band++) {
                int64_t at[LG_MAX_DIMS], r = band % p->bands * TILE;
                int64_t o = lg_walk_seek(&p->rest, 0, band / p->bands, at) + r * out_step;
                int64_t v = lg_walk_seek(&p->rest, 1, band / p->bands, at) + r;
                for (int64_t c = 0; c < cols; c += TILE)
                        turn_tile(j->out_size, lg_least(TILE, rows - r), lg_least(TILE, cols - c),
                                  j->out + (o + c) * (int64_t)j->out_size, out_step,
                                  j->in + (v + c * w->strides[1][inner]) * (int64_t)j->in_size, w->strides[1][inner]);
        }
}

static void copy_turned(lg_queue *q, const job *j, int d)
{
        const lg_walk *w = &j->walk;
        int inner = w->ndim - 1;
        planes p = {.j = j, .d = d, .bands = lg_ceil_div(w->shape[d], TILE)};
        p.rest = (lg_walk){.ndim = 1, .operands = 2, .count = 1, .shape = {1}};
        for (int i = 0, n = 0; i < inner; i++) {
                if (i == d)
                        continue;
                p.rest.shape[n] = w->shape[i];
                p.rest.strides[0][n] = w->strides[0][i];
                p.rest.strides[1][n] = w->strides[1][i];
                p.rest.count *= w->shape[i];
                p.rest.ndim = ++n;
        }
        const int64_t band = lg_least(TILE, w->shape[d]) * w->shape[inner];
        lg_parallel(q, p.rest.count * p.bands, lg_grain(band), turn_bands, &p);
}

bool LG_CPU(copy)(lg_queue *q, const lg_copy_args *a)
{
        job j = {
                .out = a->out, .in = a->in, .out_size = lg_bytes_of(a->out_dtype), .in_size = lg_bytes_of(a->in_dtype)};
        lg_walk_init(&j.walk, a->ndim, a->shape, 2, (const int64_t *[]){a->out_strides, a->in_strides}, true);
        const lg_walk *w = &j.walk;
        if (w->count == 0)
                return true;
        if (a->out_dtype != a->in_dtype) {
                j.load = lg_load[lg_compute_of(a->in_dtype)][a->in_dtype];
                j.store = lg_store[lg_compute_of(a->in_dtype)][a->out_dtype];
        }
        int turned = j.load ? -1 : turned_dimension(w);
        if (turned >= 0) {
                copy_turned(q, &j, turned);
                return true;
        }
        int inner = w->ndim - 1;
        bool rows = w->ndim == 1 || w->shape[inner] >= LONG_ROW;
        j.out_dense = rows && (w->strides[0][inner] == 1 || w->shape[inner] == 1);
        j.in_dense = rows && (w->strides[1][inner] == 1 || w->shape[inner] == 1);
        j.row = rows ? w->shape[inner] : w->count;
        j.chunks_per_row = lg_ceil_div(j.row, CHUNK);
        lg_parallel(q, w->count / j.row * j.chunks_per_row, lg_grain(lg_least(j.row, CHUNK)), copy_chunks, &j);
        return true;
}
