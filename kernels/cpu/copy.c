/* copy.c - out = in for any strides and dtypes. */
#include "cpu.h"
#include "simd.h"

#define CHUNK 1024
#define LONG_ROW 256
#define SHORT_BYTES 16     /* least bytes of a short row that is copied as such */
#define BAND 64            /* short rows that are copied at once */
#define LINE 64            /* bytes of a cache line */
#define RUN 256            /* bytes of each run of the input that a transposition reads at once */
#define STREAMED (1 << 25) /* bytes of a result that is too large for caches to keep until it is read */

typedef struct job {
        lg_walk walk; /* operand 0 is out, operand 1 is in */
        char *out;
        const char *in;
        size_t out_size, in_size;
        lg_convert_fn load, store; /* conversion by way of a compute type; NULL: same dtype */
        bool out_dense, in_dense;
        int64_t row, chunks_per_row;
} job;

static void copy_chunk(const job *j, int64_t c)
{
        const int64_t start = c / j->chunks_per_row * j->row + c % j->chunks_per_row * CHUNK;
        const int64_t n = lg_least(CHUNK, j->row - c % j->chunks_per_row * CHUNK);
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
LG_EACH(copy_chunks, copy_chunk)

/* ---- transpositions: out[r * out_step + c] = in[r + c * in_step] ---- */

typedef struct tile {
        int64_t rows, cols, out_step, in_step;
        bool streams; /* stores bypass the caches: out is large, its rows begin at cache lines */
} tile;

#define TURN(type)                                                                                                     \
        do {                                                                                                           \
                type *o = out;                                                                                         \
                const type *v = in;                                                                                    \
                for (int64_t r = 0; r < t->rows; r++) {                                                                \
                        for (int64_t c = 0; c < t->cols; c++)                                                          \
                                o[r * t->out_step + c] = v[r + c * t->in_step];                                        \
                }                                                                                                      \
        } while (0)

static void turn_elements(size_t size, const tile *t, void *out, const void *in)
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

/* Copies a cache line; with `streams` (stores bypass the caches) `to` must be aligned. */
LG_INLINE void put_line(void *to, const void *from, bool streams)
{
        LG_UNROLL
        for (int i = 0; i < LINE / 4; i += LG_LANES_f32) {
                const lg_vec_f32 v = lg_vec_load_f32((const float *)from + i);
                if (streams)
                        lg_vec_stream_f32((float *)to + i, v);
                else
                        lg_vec_store_f32((float *)to + i, v);
        }
}

/* Transposes a tile whose rows fill cache lines of `out` and whose columns fill vectors of `in`. */
#define TURN_LINES(sfx, type)                                                                                          \
        static void turn_lines_##sfx(const tile *t, type *out, const type *in)                                         \
        {                                                                                                              \
                enum { lanes = LG_LANES_##sfx, line = LINE / sizeof(type) };                                           \
                LG_ALIGN64 type turned[lanes * line];                                                                  \
                for (int c = 0; c < line; c += lanes)                                                                  \
                        lg_vec_transpose_##sfx(in + c * t->in_step, t->in_step, turned + c, line, lanes, lanes);       \
                for (int r = 0; r < lanes; r++)                                                                        \
                        put_line(out + r * t->out_step, turned + r * line, t->streams);                                \
        }
TURN_LINES(f32, float)
TURN_LINES(f64, double)

/* Transposes a tile of 2-byte elements as pairs, then separates the pairs. */
static void turn_lines_16(const tile *t, uint16_t *out, const uint16_t *in)
{
        enum { lanes = LG_LANES_f32, line = LINE / 2 };
        LG_ALIGN64 uint32_t pairs[lanes * line];
        LG_ALIGN64 uint16_t low[line], high[line];
        for (int c = 0; c < line; c += lanes)
                lg_vec_transpose_f32((const float *)(const void *)(in + c * t->in_step), t->in_step / 2,
                                     (float *)pairs + c, line, lanes, lanes);
        for (int r = 0; r < lanes; r++) {
                for (int c = 0; c < line; c++) {
                        low[c] = (uint16_t)pairs[r * line + c];
                        high[c] = (uint16_t)(pairs[r * line + c] >> 16);
                }
                put_line(out + 2 * r * t->out_step, low, t->streams);
                put_line(out + (2 * r + 1) * t->out_step, high, t->streams);
        }
}

/* Transposes a band of rows, as many as RUN bytes of `in` hold, tile by tile. Prefetches columns two tiles ahead. */
static void turn_band(size_t size, const tile *band, char *out, const char *in)
{
        const int64_t width = (int64_t)size, line = LINE / width, run = LG_VECTOR / width;
        const bool pairs = ((uintptr_t)in | (uintptr_t)band->in_step * size) % 4 == 0;
        tile t = *band;
        t.streams = t.streams && ((uintptr_t)out | (uintptr_t)t.out_step * size) % LINE == 0;
        for (int64_t c = 0; c < band->cols; c += line) {
                t.cols = lg_least(line, band->cols - c);
                for (int64_t r = 0; r < band->rows; r += run) {
                        char *to = out + (r * t.out_step + c) * width;
                        const char *from = in + (r + c * t.in_step) * width;
                        t.rows = lg_least(run, band->rows - r);
                        for (int64_t i = 2 * line; i < lg_least(3 * line, band->cols - c); i++)
                                lg_prefetch(from, i * t.in_step * width);
                        if (t.rows < run || t.cols < line || size == 1 || (size == 2 && !pairs))
                                turn_elements(size, &t, to, from);
                        else if (size == 8)
                                turn_lines_f64(&t, (double *)to, (const double *)from);
                        else if (size == 4)
                                turn_lines_f32(&t, (float *)to, (const float *)from);
                        else
                                turn_lines_16(&t, (uint16_t *)to, (const uint16_t *)from);
                }
        }
}

/* Returns the dimension that is innermost in `in` if another one is innermost in `out`, else -1. */
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

/* Transposition in bands of each plane (dimension d by the innermost dimension); `rest` walks all other dimensions. */
typedef struct planes {
        const job *j;
        int d;
        int64_t band, bands; /* rows per band; bands per plane */
        lg_walk rest;
} planes;

static void turn_bands(const void *user, int64_t first, int64_t end, int thread)
{
        const planes *p = user;
        const job *j = p->j;
        const lg_walk *w = &j->walk;
        const int64_t size = (int64_t)j->out_size, inner = w->ndim - 1;
        tile t = {.cols = w->shape[inner],
                  .out_step = w->strides[0][p->d],
                  .in_step = w->strides[1][inner],
                  .streams = w->count >= STREAMED / size};
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                int64_t at[LG_MAX_DIMS], r = i % p->bands * p->band;
                int64_t o = lg_walk_seek(&p->rest, 0, i / p->bands, at) + r * t.out_step;
                int64_t v = lg_walk_seek(&p->rest, 1, i / p->bands, at) + r;
                t.rows = lg_least(p->band, w->shape[p->d] - r);
                turn_band(j->out_size, &t, j->out + o * size, j->in + v * size);
        }
        lg_streams_end();
}

static void copy_turned(lg_queue *q, const job *j, int d)
{
        const lg_walk *w = &j->walk;
        int inner = w->ndim - 1;
        planes p = {.j = j, .d = d, .band = RUN / (int64_t)j->out_size};
        p.bands = lg_ceil_div(w->shape[d], p.band);
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
        const int64_t band = lg_least(p.band, w->shape[d]) * w->shape[inner];
        lg_parallel(q, p.rest.count * p.bands, lg_grain(band), turn_bands, &p);
}

/* ---- rows that are contiguous in both, but short ---- */

/* Copies one of the parts into which the last but one dimension is divided: up to BAND rows. */
static void copy_band(const job *j, int64_t part)
{
        const lg_walk *w = &j->walk;
        const int64_t inner = w->ndim - 1, all = w->shape[inner - 1], bands = lg_ceil_div(all, BAND);
        const int64_t size = (int64_t)j->out_size, bytes = w->shape[inner] * size, first = part % bands * BAND;
        const int64_t start = (part / bands * all + first) * w->shape[inner], rows = lg_least(BAND, all - first);
        const int64_t out_step = w->strides[0][inner - 1] * size, in_step = w->strides[1][inner - 1] * size;
        int64_t at[LG_MAX_DIMS];
        char *out = j->out + lg_walk_seek(w, 0, start, at) * size;
        const char *in = j->in + lg_walk_seek(w, 1, start, at) * size;
        for (int64_t r = 0; r < rows; r++, out += out_step, in += in_step) {
                int64_t b = 0;
                for (; b + LINE <= bytes; b += LINE)
                        put_line(out + b, in + b, false);
                if (b < bytes)
                        memcpy(out + b, in + b, (size_t)(bytes - b));
        }
}
LG_EACH(copy_bands, copy_band)

static bool has_short_rows(const job *j)
{
        const lg_walk *w = &j->walk;
        const int inner = w->ndim - 1;
        return inner > 0 && !j->load && w->strides[0][inner] == 1 && w->strides[1][inner] == 1 &&
               w->shape[inner] < LONG_ROW && w->shape[inner] * (int64_t)j->out_size >= SHORT_BYTES;
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
        if (has_short_rows(&j)) {
                const int64_t all = w->shape[inner - 1], row = w->shape[inner];
                lg_parallel(q, w->count / (all * row) * lg_ceil_div(all, BAND), lg_grain(lg_least(all, BAND) * row),
                            copy_bands, &j);
                return true;
        }
        bool rows = w->ndim == 1 || w->shape[inner] >= LONG_ROW;
        j.out_dense = rows && (w->strides[0][inner] == 1 || w->shape[inner] == 1);
        j.in_dense = rows && (w->strides[1][inner] == 1 || w->shape[inner] == 1);
        j.row = rows ? w->shape[inner] : w->count;
        j.chunks_per_row = lg_ceil_div(j.row, CHUNK);
        lg_parallel(q, w->count / j.row * j.chunks_per_row, lg_grain(lg_least(j.row, CHUNK)), copy_chunks, &j);
        return true;
}
