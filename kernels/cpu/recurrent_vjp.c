/* recurrent_vjp.c - the derivative of recurrent layers.
 *
 * Steps are processed from the last to the first, in chunks of about CHUNK rows (steps by samples). Within a chunk,
 * threads share the samples: the derivative of the cell gives the gradients of the gates, and a product those of the
 * state before. Then they share the gradients of inputs and of weights, which are products over the rows of the chunk;
 * the gradients of gates do not leave the caches. Chunks depend on the sizes alone, and their sums are added in order.
 */
#include "recurrent.h"
#include "scalar.h"

#define CHUNK 128
#define BLOCK (8 * LG_BLOCK_ROWS) /* rows of inputs, or units, whose gradients are one item of a loop */

/* A call of the derivative. Arrays have elements of the arguments' dtype. Rows of a chunk are (step, sample). */
typedef struct job {
        const lg_recurrent_vjp_args *v;
        const lg_recurrent_args *a;
        lg_recurrent_sizes z;
        int64_t edge;             /* elements of a row of `gates` */
        int64_t low, count, rows; /* first time of the chunk, number of times, rows */
        bool state_first;         /* the gradient of the state before the chunk's first step is needed */
        void *w_ih, *w_hh, *w_hr; /* panels of the weights */
        void *gates;              /* gradients of the gates: rows of planes */
        void *dh, *dc, *dm;       /* gradients of h, c (batch, ...), of o tanh(c) (batch, hidden) */
        void *dp;                 /* with a projection: gradients of h, by row */
        void *xs, *hs, *ms;       /* inputs, states before the step, o tanh(c): panels of their columns, by row */
        void *sums;               /* sums of the gradients of gates over all rows so far (planes, hidden) */
} job;

#define LG_BOTH "recurrent_vjp.inc"
#include "both.inc"

static bool allocate(lg_queue *q, job *j, int64_t steps)
{
        const lg_recurrent_args *a = j->a;
        const lg_recurrent_sizes *z = &j->z;
        const int64_t rows = steps * a->batch, down = z->gates * a->hidden,
                      hidden = lg_ceil_div(a->hidden, z->panel) * z->panel;
        const int64_t inputs = lg_ceil_div(a->inputs, z->panel) * z->panel;
        const int64_t state = lg_ceil_div(z->state, z->panel) * z->panel;
        const struct {
                void **p;
                int64_t n;
        } all[] = {{&j->w_ih, down * inputs},
                   {&j->w_hh, down * state},
                   {&j->w_hr, a->w_hr ? a->projection * hidden : 0},
                   {&j->gates, rows * j->edge},
                   {&j->dh, a->batch * z->state},
                   {&j->dc, a->batch * a->hidden},
                   {&j->dm, a->w_hr ? a->batch * a->hidden : 0},
                   {&j->dp, a->w_hr ? rows * z->state : 0},
                   {&j->xs, rows * inputs},
                   {&j->hs, rows * state},
                   {&j->ms, a->w_hr ? rows * hidden : 0},
                   {&j->sums, z->planes * a->hidden}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                if (all[i].n && !(*all[i].p = q->workspace(q, (size_t)(all[i].n * z->size))))
                        return false;
        return true;
}

/* Copies n elements of the dtype, or zeros if `from` is NULL, to `to` unless that is NULL. */
static void copy(const job *j, void *to, const void *from, int64_t n)
{
        if (to && from && n)
                memcpy(to, from, (size_t)(n * j->z.size));
        else if (to && n)
                memset(to, 0, (size_t)(n * j->z.size));
}

static void begin(const job *j)
{
        const lg_recurrent_args *a = j->a;
        const int64_t down = j->z.gates * a->hidden;
        lg_pack_panels(a->dtype, down, a->inputs, a->w_ih, a->inputs, 1, j->w_ih);
        lg_pack_panels(a->dtype, down, j->z.state, a->w_hh, j->z.state, 1, j->w_hh);
        if (a->w_hr)
                lg_pack_panels(a->dtype, a->projection, a->hidden, a->w_hr, a->hidden, 1, j->w_hr);
        copy(j, j->dh, j->v->dh, a->batch * j->z.state);
        copy(j, j->dc, j->v->dc, a->batch * a->hidden);
        copy(j, j->sums, NULL, j->z.planes * a->hidden);
        copy(j, j->v->dw_ih, NULL, down * a->inputs);
        copy(j, j->v->dw_hh, NULL, down * j->z.state);
        copy(j, j->v->dw_hr, NULL, a->projection * a->hidden);
}

static void end(const job *j)
{
        const lg_recurrent_args *a = j->a;
        for (int64_t g = 0; g < j->z.gates; g++) {
                const int64_t own = lg_recurrent_plane(a, g);
                copy(j, lg_recurrent_row(&j->z, j->v->db_ih, g, a->hidden),
                     lg_recurrent_row(&j->z, j->sums, g, a->hidden), a->hidden);
                copy(j, lg_recurrent_row(&j->z, j->v->db_hh, g, a->hidden),
                     lg_recurrent_row(&j->z, j->sums, own, a->hidden), a->hidden);
        }
        copy(j, j->v->dh0, j->dh, a->batch * j->z.state);
        copy(j, j->v->dc0, j->dc, a->batch * a->hidden);
}

bool LG_CPU(recurrent_vjp)(lg_queue *q, const lg_recurrent_vjp_args *v)
{
        const lg_recurrent_args *a = &v->layer;
        const int64_t most = lg_most(1, CHUNK / lg_most(a->batch, 1));
        job j = {.v = v, .a = a, .z = lg_recurrent_sizes_of(a)};
        j.edge = j.z.planes * a->hidden + j.z.panel / LG_BLOCK_VECTORS;
        if (a->dtype != LG_F32 && a->dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "recurrent_vjp: no kernel for dtype %d", (int)a->dtype);
        if (!allocate(q, &j, lg_least(most, a->steps)))
                return false;
        begin(&j);
        const double each = (double)(j.z.gates * a->hidden) * (double)j.z.state;
        const bool wide = a->dtype == LG_F64;
        for (int64_t last = a->steps; last > 0 && a->batch > 0; last -= j.count) {
                j.count = lg_least(most, last);
                j.low = a->reverse ? a->steps - last : last - j.count;
                j.rows = j.count * a->batch;
                j.state_first = last > j.count || v->dh0;
                lg_parallel(q, a->batch, lg_recurrent_grain(q, a->batch, each * (double)j.count),
                            wide ? derive_rows_f64 : derive_rows_f32, &j);
                const int64_t items = (wide ? items_f64 : items_f32)(&j);
                const bool small = 2 * each * (double)j.rows < LG_PARALLEL_WORK;
                lg_parallel(q, items, small ? items : 1, wide ? derive_items_f64 : derive_items_f32, &j);
        }
        end(&j);
        return true;
}
