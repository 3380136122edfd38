/* recurrent.c - recurrent layers: TANH, RELU, LSTM, GRU.
 *
 * Weights are copied to panels once. Each step multiplies, for a panel of units, the inputs and the state by all gates,
 * and applies the cell while the sums are in the first cache. Rows of the batch are independent of each other, so
 * threads share the rows and meet only at the end. */
#include "recurrent.h"
#include "scalar.h"

/* A forward call. All arrays have elements of the arguments' dtype. */
typedef struct layer {
        const lg_recurrent_args *a;
        lg_recurrent_sizes z;
        void *w_ih, *w_hh;        /* panels by unit, then gate */
        void *b_ih, *b_hh;        /* biases by unit, then gate, a panel each; b_ih is the sum of both for most gates */
        void *w_hr;               /* panels of the projection */
        void *sums;               /* (batch, planes, panel) */
        void *states[2], *hidden; /* h after each second step (batch, state); o tanh(c) before the projection */
} layer;

#define LG_BOTH "recurrent.inc"
#include "both.inc"

/* Packs the weights and biases of all gates for one panel of units. */
static void pack_units(const void *job, int64_t i)
{
        const layer *j = job;
        const lg_recurrent_args *a = j->a;
        const lg_recurrent_sizes *z = &j->z;
        const int64_t unit = i * z->panel, cols = lg_least(z->panel, a->hidden - unit);
        for (int64_t g = 0; g < z->gates; g++) {
                const int64_t at = g * a->hidden + unit, to = i * z->gates + g;
                lg_pack_panels(a->dtype, a->inputs, cols, lg_recurrent_row(z, a->w_ih, at, a->inputs), 1, a->inputs,
                               lg_recurrent_row(z, j->w_ih, to, a->inputs * z->panel));
                lg_pack_panels(a->dtype, z->state, cols, lg_recurrent_row(z, a->w_hh, at, z->state), 1, z->state,
                               lg_recurrent_row(z, j->w_hh, to, z->state * z->panel));
                (a->dtype == LG_F64 ? pack_biases_f64 : pack_biases_f32)(j, g, at, to * z->panel, cols);
        }
}
LG_EACH(pack_unit_range, pack_units)

static bool allocate(lg_queue *q, layer *j)
{
        const lg_recurrent_args *a = j->a;
        const lg_recurrent_sizes *z = &j->z;
        const int64_t units = lg_ceil_div(a->hidden, z->panel) * z->gates * z->panel;
        const int64_t projected = a->w_hr ? lg_ceil_div(a->projection, z->panel) * z->panel * a->hidden : 0;
        const struct {
                void **p;
                int64_t n;
        } all[] = {{&j->w_ih, units * a->inputs},
                   {&j->w_hh, units * z->state},
                   {&j->b_ih, units},
                   {&j->b_hh, units},
                   {&j->w_hr, projected},
                   {&j->sums, a->batch * z->planes * z->panel},
                   {&j->states[0], a->batch * z->state},
                   {&j->states[1], a->batch * z->state},
                   {&j->hidden, a->w_hr ? a->batch * a->hidden : 0}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                if (all[i].n && !(*all[i].p = q->workspace(q, (size_t)(all[i].n * z->size))))
                        return false;
        return true;
}

static void check_lengths(lg_queue *q, const lg_recurrent_args *a)
{
        for (int64_t b = 0; a->lengths && b < a->batch; b++)
                if ((a->lengths[b] < 0 || a->lengths[b] > a->steps) && q->error.code == LG_DEVICE_OK)
                        q->error = (lg_device_error){.code = a->origin, .value = a->lengths[b], .limit = a->steps + 1};
}

bool LG_CPU(recurrent)(lg_queue *q, const lg_recurrent_args *a)
{
        layer j = {.a = a, .z = lg_recurrent_sizes_of(a)};
        const int64_t units = lg_ceil_div(a->hidden, j.z.panel), each = a->inputs + j.z.state;
        if (a->dtype != LG_F32 && a->dtype != LG_F64)
                return lg_queue_fail(q, LG_BROKEN, "recurrent: no kernel for dtype %d", (int)a->dtype);
        check_lengths(q, a);
        if (!allocate(q, &j))
                return false;
        lg_parallel(q, units, lg_grain(each * j.z.gates * j.z.panel), pack_unit_range, &j);
        if (a->w_hr)
                lg_pack_panels(a->dtype, a->hidden, a->projection, a->w_hr, 1, a->hidden, j.w_hr);
        const double work = (double)(j.z.gates * a->hidden) * (double)each * (double)a->steps;
        lg_parallel(q, a->batch, lg_recurrent_grain(q, a->batch, work),
                    a->dtype == LG_F64 ? run_rows_f64 : run_rows_f32, &j);
        return true;
}
