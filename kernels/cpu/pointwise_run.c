/* pointwise_run.c - runs a pointwise loop over operands with any strides and dtypes, in chunks, on several threads. */
#include "pointwise.h"

#define CHUNK 512         /* elements that pass through buffers at once; they stay in the L1 cache */
#define DIRECT_CHUNK 4096 /* elements per chunk if no operand needs a buffer */
#define LONG_ROW 256      /* least size of innermost dimensions that are walked row by row, not several rows at once */

typedef struct operand {
        char *base;
        lg_dtype dtype;
        size_t size;
        bool direct; /* elements of a chunk are contiguous and need no conversion */
        bool dense;  /* elements of a chunk are contiguous, but may need conversion */
        bool constant;
} operand;

typedef struct job {
        lg_walk walk; /* operand 0: the output; then the inputs that are not NULL */
        operand of[LG_WALK_MAX];
        int slot[LG_WALK_MAX]; /* for each operand: its slot among the loop's inputs */
        lg_compute compute;
        lg_loop_fn loop;
        bool compare, accumulate;
        double p0, p1;
        int64_t row, chunk, chunks_per_row;
} job;

typedef struct buffers {
        LG_ALIGN64 char compute[LG_WALK_MAX][CHUNK * 8];
        LG_ALIGN64 char raw[CHUNK * 8];
        LG_ALIGN64 char old[CHUNK * 8];
        LG_ALIGN64 char tail[LG_WALK_MAX][LG_LOOP_STEP * 8];
} buffers;

static lg_compute compute_for(const lg_pointwise_args *a, const lg_loops *loops)
{
        lg_compute compute = lg_compute_of(a->dtype);
        return compute == LG_COMPUTE_I64 && loops->scalar_compare ? LG_COMPUTE_F64 : compute;
}

static void add_operand(job *j, const int64_t **strides, int slot, const void *base, lg_dtype dtype, const int64_t *s)
{
        int i = j->walk.operands++;
        j->of[i] = (operand){.base = (char *)(uintptr_t)base, .dtype = dtype, .size = lg_bytes_of(dtype)};
        j->slot[i] = slot;
        strides[i] = s;
}

static void plan_operands(job *j)
{
        bool all_direct = true;
        const lg_walk *w = &j->walk;
        int inner = w->ndim - 1;
        bool rows = w->shape[inner] >= LONG_ROW || w->ndim == 1;
        for (int i = 0; i < w->operands; i++) {
                operand *o = &j->of[i];
                bool native = o->dtype == (i == 0 && j->compare ? LG_BOOL : lg_dtype_of_compute(j->compute));
                o->dense = rows && (w->strides[i][inner] == 1 || w->shape[inner] == 1);
                o->direct = o->dense && native && !(i == 0 && j->accumulate);
                o->constant = i > 0;
                for (int d = 0; d < w->ndim; d++)
                        o->constant = o->constant && (w->strides[i][d] == 0 || w->shape[d] == 1);
                o->direct = o->direct && !o->constant;
                all_direct = all_direct && (o->direct || o->constant);
        }
        j->row = rows ? w->shape[inner] : w->count;
        j->chunk = CHUNK;
        for (int i = 1; all_direct && i < w->operands; i++)
                all_direct = !j->of[i].constant;
        if (all_direct)
                j->chunk = DIRECT_CHUNK;
        j->chunks_per_row = lg_ceil_div(j->row, j->chunk);
}

static bool is_native(const job *j, int i)
{
        return j->of[i].dtype == lg_dtype_of_compute(j->compute);
}

/* Gathers elements [start, start + n) of operand i to ret, in the compute type; `raw` is a buffer for conversion. */
static void gather_values(const job *j, int i, int64_t start, int64_t n, char *ret, char *raw)
{
        const operand *o = &j->of[i];
        lg_walk_gather(&j->walk, i, o->size, is_native(j, i) ? ret : raw, o->base, start, n);
        if (!is_native(j, i))
                lg_load[j->compute][o->dtype](n, ret, raw);
}

/* Returns elements [start, start + n) of input i in the compute type, in their own memory or in a buffer. */
static const char *read_operand(const job *j, int i, buffers *b, int64_t start, int64_t n)
{
        const operand *o = &j->of[i];
        int64_t at[LG_MAX_DIMS];
        if (!o->constant && o->dense) {
                const char *raw = o->base + lg_walk_seek(&j->walk, i, start, at) * (int64_t)o->size;
                if (o->direct)
                        return raw;
                lg_load[j->compute][o->dtype](n, b->compute[i], raw);
        } else if (!o->constant) {
                gather_values(j, i, start, n, b->compute[i], b->raw);
        }
        return b->compute[i];
}

/* Adds to[i] += from[i] in a floating compute type. */
static void add_values(lg_compute compute, int64_t n, void *to, const void *from)
{
        float *f = to;
        double *d = to;
        const float *g = from;
        const double *e = from;
        for (int64_t i = 0; i < n && compute == LG_COMPUTE_F32; i++)
                f[i] += g[i];
        for (int64_t i = 0; i < n && compute == LG_COMPUTE_F64; i++)
                d[i] += e[i];
}

static void call_loop(const job *j, int64_t n, char *out, const char *const *in)
{
        j->loop(n, out, in[0], in[1], in[2], in[3], j->p0, j->p1);
}

/* Runs the loop over n values of the compute type; the last n % LG_LOOP_STEP values pass through a padded buffer. */
static void run_loop(const job *j, buffers *b, int64_t n, char *out, const char *const *in)
{
        int64_t whole = n / LG_LOOP_STEP * LG_LOOP_STEP, rest = n - whole;
        if (whole)
                call_loop(j, whole, out, in);
        if (!rest)
                return;
        int64_t size = j->compute == LG_COMPUTE_F32 ? 4 : 8, out_size = j->compare ? 1 : size;
        const char *tail[LG_PW_INPUTS] = {0};
        for (int i = 0; i < LG_PW_INPUTS; i++) {
                if (!in[i])
                        continue;
                memset(b->tail[i + 1], 0, sizeof b->tail[i + 1]);
                memcpy(b->tail[i + 1], in[i] + whole * size, (size_t)(rest * size));
                tail[i] = b->tail[i + 1];
        }
        call_loop(j, LG_LOOP_STEP, b->tail[0], tail);
        memcpy(out + whole * out_size, b->tail[0], (size_t)(rest * out_size));
}

/* Adds the previous output to `out`, in the compute type. `dense`: the previous output if contiguous, else NULL. */
static void add_old(const job *j, buffers *b, int64_t start, int64_t n, const char *dense, char *out)
{
        if (!dense)
                gather_values(j, 0, start, n, b->old, b->raw);
        else if (!is_native(j, 0))
                lg_load[j->compute][j->of[0].dtype](n, b->old, dense);
        add_values(j->compute, n, out, dense && is_native(j, 0) ? dense : b->old);
}

static void run_chunk(const job *j, buffers *b, int64_t start, int64_t n)
{
        const char *in[LG_PW_INPUTS] = {0};
        const operand *o = &j->of[0];
        for (int i = 1; i < j->walk.operands; i++)
                in[j->slot[i]] = read_operand(j, i, b, start, n);
        int64_t at[LG_MAX_DIMS];
        char *dense = o->dense ? o->base + lg_walk_seek(&j->walk, 0, start, at) * (int64_t)o->size : NULL;
        char *out = o->direct ? dense : b->compute[0];
        run_loop(j, b, n, out, in);
        if (o->direct)
                return;
        if (j->accumulate)
                add_old(j, b, start, n, dense, out);
        if (o->dtype != (j->compare ? LG_BOOL : lg_dtype_of_compute(j->compute))) {
                lg_store[j->compute][o->dtype](n, dense ? dense : b->raw, out);
                out = b->raw;
        } else if (dense) {
                memcpy(dense, out, (size_t)n * o->size);
        }
        if (!dense)
                lg_walk_scatter(&j->walk, 0, o->size, o->base, out, start, n);
}

static void fill_constants(const job *j, buffers *b)
{
        const int64_t n = lg_least(j->walk.count, CHUNK);
        for (int i = 1; i < j->walk.operands; i++) {
                if (!j->of[i].constant)
                        continue;
                lg_load[j->compute][j->of[i].dtype](1, b->compute[i], j->of[i].base);
                float *f = (float *)b->compute[i];
                int64_t *wide = (int64_t *)b->compute[i]; /* an i64, or the bits of an f64 */
                const float narrow_value = *f;
                const int64_t wide_value = *wide;
                for (int64_t k = 1; k < n && j->compute == LG_COMPUTE_F32; k++)
                        f[k] = narrow_value;
                for (int64_t k = 1; k < n && j->compute != LG_COMPUTE_F32; k++)
                        wide[k] = wide_value;
        }
}

static void run_chunks(const job *j, buffers *b, int64_t first, int64_t end)
{
        for (int64_t c = first; c < end; c++) {
                int64_t row = c / j->chunks_per_row, start = c % j->chunks_per_row * j->chunk;
                run_chunk(j, b, row * j->row + start, lg_least(j->chunk, j->row - start));
        }
}

static bool is_one(const lg_pointwise_args *a)
{
        for (int d = 0; d < a->ndim; d++)
                if (a->shape[d] != 1)
                        return false;
        return true;
}

/* load_one converts one element to the compute type, store_one from it. */
static void load_one(lg_compute compute, lg_dtype dtype, char *value, const char *from)
{
        if (dtype != lg_dtype_of_compute(compute))
                lg_load[compute][dtype](1, value, from);
        else if (compute == LG_COMPUTE_F32)
                memcpy(value, from, 4);
        else
                memcpy(value, from, 8);
}

static void store_one(lg_compute compute, lg_dtype dtype, char *to, const char *value)
{
        if (dtype != lg_dtype_of_compute(compute))
                lg_store[compute][dtype](1, to, value);
        else if (compute == LG_COMPUTE_F32)
                memcpy(to, value, 4);
        else
                memcpy(to, value, 8);
}

/* Computes a single element, without a walk. */
static void run_one(const lg_pointwise_args *a, const lg_loops *loops, lg_compute compute)
{
        LG_ALIGN64 char values[LG_WALK_MAX][LG_LOOP_STEP * 8];
        const char *in[LG_PW_INPUTS];
        for (int i = 0; i < LG_PW_INPUTS; i++) {
                in[i] = NULL;
                if (!a->in[i])
                        continue;
                memset(values[i + 1], 0, sizeof values[i + 1]);
                load_one(compute, i == loops->condition ? LG_BOOL : a->dtype, values[i + 1], a->in[i]);
                in[i] = values[i + 1];
        }
        loops->of_compute[compute](LG_LOOP_STEP, values[0], in[0], in[1], in[2], in[3], a->p0, a->p1);
        if (a->accumulate) {
                LG_ALIGN64 char old[8];
                load_one(compute, a->dtype, old, a->out);
                add_values(compute, 1, values[0], old);
        }
        if (loops->compare)
                memcpy(a->out, values[0], 1);
        else
                store_one(compute, a->dtype, a->out, values[0]);
}

/* Computes at most LG_LOOP_STEP elements, of any strides, by one call of the loop. */
static void run_few(const job *j)
{
        LG_ALIGN64 char raw[LG_LOOP_STEP * 8], values[LG_WALK_MAX][LG_LOOP_STEP * 8];
        const char *in[LG_PW_INPUTS] = {0}, *from = values[0];
        const operand *o = &j->of[0];
        int64_t n = j->walk.count;
        for (int i = 1; i < j->walk.operands; i++) {
                memset(values[i], 0, sizeof values[i]);
                gather_values(j, i, 0, n, values[i], raw);
                in[j->slot[i]] = values[i];
        }
        call_loop(j, LG_LOOP_STEP, values[0], in);
        if (j->accumulate) {
                LG_ALIGN64 char old[LG_LOOP_STEP * 8];
                gather_values(j, 0, 0, n, old, raw);
                add_values(j->compute, n, values[0], old);
        }
        if (o->dtype != (j->compare ? LG_BOOL : lg_dtype_of_compute(j->compute))) {
                lg_store[j->compute][o->dtype](n, raw, values[0]);
                from = raw;
        }
        lg_walk_scatter(&j->walk, 0, o->size, o->base, from, 0, n);
}

static void run_part(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        buffers b;
        (void)thread;
        fill_constants(j, &b);
        run_chunks(j, &b, first, end);
}

static void run_job(lg_queue *q, const job *j)
{
        const int64_t chunks = j->walk.count / j->row * j->chunks_per_row;
        lg_parallel(q, chunks, lg_grain(lg_least(j->row, j->chunk)), run_part, j);
}

/* Not inlined, since its stack frame is large. */
static __attribute__((noinline)) void run_many(lg_queue *q, const lg_pointwise_args *a, const lg_loops *loops,
                                               lg_compute compute)
{
        job j; /* left uninitialised to save time for small tensors */
        const int64_t *strides[LG_WALK_MAX];
        j.compute = compute;
        j.compare = loops->compare;
        j.accumulate = a->accumulate;
        j.p0 = a->p0;
        j.p1 = a->p1;
        j.walk.operands = 0;
        j.loop = loops->of_compute[compute];
        add_operand(&j, strides, -1, a->out, loops->compare ? LG_BOOL : a->dtype, a->out_strides);
        for (int i = 0; i < LG_PW_INPUTS; i++)
                if (a->in[i])
                        add_operand(&j, strides, i, a->in[i], i == loops->condition ? LG_BOOL : a->dtype,
                                    a->in_strides[i]);
        lg_walk_init(&j.walk, a->ndim, a->shape, j.walk.operands, strides, true);
        if (j.walk.count == 0)
                return;
        if (j.walk.count <= LG_LOOP_STEP) {
                run_few(&j);
                return;
        }
        plan_operands(&j);
        run_job(q, &j);
}

bool lg_pointwise_run(lg_queue *q, const lg_pointwise_args *a, const lg_loops *loops)
{
        const lg_compute compute = compute_for(a, loops);
        if (!loops->of_compute[compute])
                return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", loops->name, (int)a->dtype);
        if (is_one(a))
                run_one(a, loops, compute);
        else
                run_many(q, a, loops, compute);
        return true;
}
