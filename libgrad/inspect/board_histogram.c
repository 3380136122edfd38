/* board_histogram.c - histograms in the files that TensorBoard reads: of a tensor, of the parameters of a module.
 *
 * A tensor's numbers are computed on its device as one tensor of f64: minimum, maximum, count, sum and sum of squares
 * of its finite elements, how many of them are below the first edge, between the first and the second, ..., from the
 * last edge on, and the edges. So a histogram is one copy to the host, and those of a module are one together.
 */
#include "board.h"
#include "graph/op.h"
#include "nn/nn.h"

#define PART ((int64_t)1 << 20) /* elements that are converted to f64 at a time */
#define MOST_BINS 100000
#define EDGES 1549 /* of the default bins */
#define NUMBERS 5  /* before the counts */

/* ---- on the device ---- */

/* Returns the edges of PyTorch's bins "tensorflow". */
static lg_tensor *usual_edges(const lg_tensor *x)
{
        double edges[EDGES] = {0}, v = 1e-12;
        for (int i = 1; i <= EDGES / 2; i++, v *= 1.1) {
                edges[EDGES / 2 + i] = v;
                edges[EDGES / 2 - i] = -v;
        }
        return lg_from(x->ctx, edges, LG_SHAPE(EDGES), .device = x->storage->device->id);
}

/* Returns the lower ends of n even bins. */
static lg_tensor *even_edges(const lg_tensor *x, lg_tensor *low, lg_tensor *high, int64_t n)
{
        lg_tensor *width = lg_sub(lg_div_scalar(high, (double)n), lg_div_scalar(low, (double)n));
        lg_tensor *numbers = lg_arange(x->ctx, 0, (double)n, 1, .dtype = LG_F64, .device = x->storage->device->id);
        return lg_add(lg_mul(numbers, width), low);
}

/* Returns the first NUMBERS numbers of a part of a tensor. */
static lg_tensor *numbers_of(lg_tensor *x, lg_tensor *infinite, lg_tensor *edges)
{
        (void)edges;
        lg_tensor *low = lg_amin(lg_masked_fill(x, infinite, LG_INFINITY)),
                  *high = lg_amax(lg_masked_fill(x, infinite, -LG_INFINITY)), *rest = lg_masked_fill(x, infinite, 0);
        lg_tensor *count = lg_cast(lg_sum(lg_logical_not(infinite)), LG_F64);
        return lg_stack(LG_LIST(low, high, count, lg_sum(rest), lg_sum(lg_square(rest))), 0);
}

static lg_tensor *counts_of(lg_tensor *x, lg_tensor *infinite, lg_tensor *edges)
{
        const int64_t bins = edges->at.shape.size[0] + 1;
        lg_tensor *zeros = lg_zeros(x->ctx, LG_SHAPE(bins), .dtype = LG_I64, .device = x->storage->device->id);
        lg_tensor *bin = lg_bucketize(x, edges, .right = true), *one = lg_cast(lg_logical_not(infinite), LG_I64);
        return lg_cast(lg_scatter_add(zeros, 0, bin, one), LG_F64);
}

/* Returns the rows that f gives for the parts of x, 1-d. */
static lg_tensor *of_parts(lg_tensor *x, lg_tensor *edges, lg_tensor *(*f)(lg_tensor *, lg_tensor *, lg_tensor *))
{
        lg_ctx *c = x->ctx;
        const int64_t n = x->at.shape.size[0], count = (n + PART - 1) / PART;
        lg_tensor **rows = lg__alloc(c, (size_t)count * sizeof(lg_tensor *)), *all = NULL;
        for (int64_t i = 0; rows && i < count; i++) {
                const lg_scope scope = lg_scope_begin(c);
                lg_tensor *part = lg_cast(lg_slice(x, 0, i * PART, i + 1 < count ? (i + 1) * PART : n), LG_F64);
                lg_tensor *infinite = part ? lg_logical_not(lg_isfinite(part)) : NULL;
                rows[i] = infinite ? lg_escape(f(part, infinite, edges)) : NULL;
                lg_scope_end(c, scope);
        }
        if (rows && lg__ok(c))
                all = lg_stack((lg_list){count, rows}, 0);
        lg__free(c, rows, (size_t)count * sizeof(lg_tensor *));
        return all;
}

static int64_t edges_of(int64_t bins)
{
        return bins ? bins : EDGES;
}

/* Returns how many numbers measure() gives. */
static int64_t room_of(int64_t bins)
{
        return NUMBERS + 2 * edges_of(bins) + 1;
}

/* Returns the numbers of a tensor with elements; bins: even ones, or 0 for the usual ones. */
static lg_tensor *measure(lg_tensor *t, int64_t bins)
{
        lg_tensor *x = lg_reshape(lg_detach(t), LG_SHAPE(-1)), *rows = x ? of_parts(x, NULL, numbers_of) : NULL;
        lg_tensor *low = lg_amin(lg_select(rows, 1, 0)), *high = lg_amax(lg_select(rows, 1, 1)),
                  *sums = lg_sum(lg_slice(rows, 1, 2, NUMBERS), .dims = LG_DIMS(0));
        lg_tensor *edges = !high ? NULL : bins ? even_edges(x, low, high, bins) : usual_edges(x);
        lg_tensor *counts = edges ? lg_sum(of_parts(x, edges, counts_of), .dims = LG_DIMS(0)) : NULL;
        return counts ? lg_cat(LG_LIST(lg_stack(LG_LIST(low, high), 0), sums, counts, edges), 0) : NULL;
}

/* ---- on the host ---- */

static void put_double(lg__proto_out *o, double v)
{
        lg__proto_append(o, &v, sizeof v);
}

/* Adds the bins that are not empty. The first has no lower end in the file, so an empty one comes before it. */
static void put_bins(lg__proto_out *o, const double *numbers, int64_t edge_count)
{
        enum { BUCKET_LIMIT = 6, BUCKET = 7 };
        const double *counts = numbers + NUMBERS, *edges = counts + edge_count + 1;
        int64_t first = 0, last = edge_count;
        while (first < last && counts[first] == 0)
                first++;
        while (last > first && counts[last] == 0)
                last--;
        const int64_t limits = lg__proto_begin(o, BUCKET_LIMIT);
        put_double(o, first ? edges[first - 1] : numbers[0]);
        for (int64_t i = first; i <= last; i++)
                put_double(o, i < edge_count ? edges[i] : numbers[1]);
        lg__proto_end(o, limits);
        const int64_t bins = lg__proto_begin(o, BUCKET);
        put_double(o, 0);
        for (int64_t i = first; i <= last; i++)
                put_double(o, counts[i]);
        lg__proto_end(o, bins);
}

/* Adds a histogram to a record; an empty one if numbers is NULL or nothing was counted. */
static void put_histogram(lg__proto_out *o, const double *numbers, int64_t bins)
{
        const bool some = numbers && numbers[2] > 0;
        const int64_t histogram = lg__proto_begin(o, LG__HISTOGRAM);
        for (int i = 0; i < NUMBERS; i++) /* min, max, num, sum, sum_squares are fields 1 to 5 */
                lg__proto_put_f64(o, i + 1, some ? numbers[i] : 0);
        if (some)
                put_bins(o, numbers, edges_of(bins));
        lg__proto_end(o, histogram);
}

/* Reads the numbers of measured tensors, one after the other. The caller frees them, of count * room_of(bins). */
static double *read_numbers(lg_ctx *c, lg_tensor **measured, int64_t count, int64_t bins)
{
        const size_t bytes = (size_t)count * (size_t)room_of(bins) * sizeof(double);
        for (int64_t i = 0; i < count; i++)
                measured[i] = lg_to(measured[i], measured[0]->storage->device->id);
        lg_tensor *all = lg_cat((lg_list){count, measured}, 0);
        double *numbers = all ? lg__alloc_unset(c, bytes) : NULL;
        if (numbers && lg_read(all, numbers, LG_F64, bytes))
                return numbers;
        lg__free(c, numbers, bytes);
        return NULL;
}

/* ---- a tensor ---- */

static bool add_tensor(lg__event *e, lg_tensor *t, int64_t bins)
{
        lg_tensor *measured = lg_numel(t) ? measure(t, bins) : NULL;
        double *numbers = measured ? read_numbers(t->ctx, &measured, 1, bins) : NULL;
        if (lg__ok(t->ctx))
                put_histogram(&e->out, numbers, bins);
        lg__free(t->ctx, numbers, (size_t)room_of(bins) * sizeof *numbers);
        return lg__ok(t->ctx);
}

bool lg_board_histogram_with(lg_board *b, const char *tag, lg_tensor *t, int64_t step,
                             const lg_board_histogram_options *options)
{
        lg_board_histogram_options o;
        lg__event e;
        if (!lg__event_begin_of(&e, b, "lg_board_histogram", tag, t, step))
                return false;
        lg_ctx *c = e.out.ctx;
        const lg_scope scope = lg_scope_begin(c);
        const bool recording = lg_set_grad_mode(c, false);
        bool ok = lg__take(c, e.op, options, &o, sizeof o);
        if (ok && (o.bins < 0 || o.bins > MOST_BINS))
                ok = lg__fail(c, LG_ERR_ARGUMENT, "lg_board_histogram: .bins is %lld; it is from 1 to %d",
                              (long long)o.bins, MOST_BINS);
        ok = ok && add_tensor(&e, t, o.bins);
        lg_set_grad_mode(c, recording);
        lg_scope_end(c, scope);
        return lg__event_end(&e, ok);
}

/* ---- the parameters of a module ---- */

/* The values and gradients of a module's parameters that have elements, as measured and then as numbers. */
typedef struct parameters {
        lg_board *board;
        lg_ctx *c;
        int64_t step, count, room;
        lg_tensor **measured;
        double *numbers;    /* of `count` tensors */
        const double *next; /* of the next tensor */
} parameters;

static void measure_one(parameters *p, lg_tensor *t)
{
        if (!t || !lg_numel(t) || !lg__ok(p->c) ||
            !lg__grow(p->c, &p->measured, p->count, &p->room, sizeof(lg_tensor *)))
                return;
        p->measured[p->count] = measure(t, 0);
        p->count += p->measured[p->count] != NULL;
}

static void measure_parameter(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path;
        if (is_buffer)
                return;
        measure_one(user, t);
        measure_one(user, lg_grad_of(t));
}

static void write_one(parameters *p, const char *group, const char *path, const lg_tensor *t)
{
        char tag[LG__PATH + 16];
        lg__event e;
        snprintf(tag, sizeof tag, "%s/%s", group, path);
        if (!t || !lg__event_begin(&e, p->board, "lg_board_parameters", tag, p->step))
                return;
        put_histogram(&e.out, lg_numel(t) ? p->next : NULL, 0);
        p->next += lg_numel(t) ? room_of(0) : 0;
        lg__event_end(&e, true);
}

static void write_parameter(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        if (is_buffer)
                return;
        write_one(user, "values", path, t);
        write_one(user, "gradients", path, lg_grad_of(t));
}

bool lg_board_parameters(lg_board *b, lg_module *m, int64_t step)
{
        lg_ctx *c = b ? ((lg__object *)b)->ctx : m ? m->object.ctx : NULL;
        parameters p = {.board = b, .c = c, .step = step};
        if (!lg__ok(c))
                return false;
        if (!b || !m || m->object.ctx != c)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_board_parameters: %s",
                                !b   ? "b is NULL"
                                : !m ? "m is NULL"
                                     : "m belongs to another context");
        const lg_scope scope = lg_scope_begin(c);
        const bool recording = lg_set_grad_mode(c, false);
        lg_each_tensor(m, measure_parameter, &p);
        if (p.count && lg__ok(c))
                p.next = p.numbers = read_numbers(c, p.measured, p.count, 0);
        if (lg__ok(c))
                lg_each_tensor(m, write_parameter, &p);
        lg__free(c, p.numbers, (size_t)p.count * (size_t)room_of(0) * sizeof *p.numbers);
        lg__free(c, p.measured, (size_t)p.room * sizeof(lg_tensor *));
        lg_set_grad_mode(c, recording);
        lg_scope_end(c, scope);
        return lg__ok(c);
}
