/* cross_entropy.c - the cross entropy of logits and class indices, its derivative, and the weights of the classes. */
#include "cpu.h"
#include "scalar.h"

typedef struct job {
        const lg_cross_entropy_args *a;
        double weight;            /* w_i of a row that counts */
        double on_label, on_each; /* q = weight * (on_label [c = t] + on_each) */
        int64_t counted;          /* rows that count */
} job;

#define LG_T float
#define LG_SCALAR f32
#include "cross_entropy.inc"
#undef LG_T
#undef LG_SCALAR
#define LG_T double
#define LG_SCALAR f64
#include "cross_entropy.inc"

static bool counts(const lg_cross_entropy_args *a, int64_t row)
{
        int64_t label = a->labels[row];
        return label != a->ignore_index && label >= 0 && label < a->classes;
}

/* Counts the rows and notes the first label that is none. */
static bool job_init(job *j, lg_queue *q, const char *name, const lg_cross_entropy_args *a)
{
        *j = (job){.a = a, .weight = 1};
        if (!lg_is_float(a->dtype))
                return lg_queue_fail(q, LG_BROKEN, "%s: no kernel for dtype %d", name, (int)a->dtype);
        for (int64_t i = 0; i < a->rows; i++) {
                if (counts(a, i))
                        j->counted++;
                else if (a->labels[i] != a->ignore_index && q->error.code == LG_DEVICE_OK)
                        q->error = (lg_device_error){.code = a->origin, .value = a->labels[i], .limit = a->classes};
        }
        j->on_label = 1 - a->label_smoothing;
        j->on_each = a->classes ? a->label_smoothing / (double)a->classes : 0;
        if (a->reduction == LG_MEAN && j->counted)
                j->weight = 1 / (double)j->counted;
        return true;
}

/* x, in f32 where the dtype has 16 bits. */
static const void *logits(lg_queue *q, const lg_cross_entropy_args *a)
{
        return lg_is_half(a->dtype) ? lg_widen(q, a->dtype, a->rows * a->classes, a->x) : a->x;
}

static double row_loss(const job *j, const void *x, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        if (!counts(a, row))
                return 0;
        if (a->dtype == LG_F64)
                return row_loss_f64(j, (const double *)x + row * a->classes, a->labels[row]);
        return row_loss_f32(j, (const float *)x + row * a->classes, a->labels[row]);
}

bool LG_CPU(cross_entropy)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        if (!job_init(&j, q, "cross_entropy", a))
                return false;
        const void *x = logits(q, a);
        double *losses = q->workspace(q, (size_t)lg_most(a->rows, 1) * sizeof *losses);
        if (!losses || (!x && a->rows > 0 && a->classes > 0))
                return false;
        LG_PARALLEL_FOR(q, a->rows * a->classes >= LG_PARALLEL_MIN / 4)
        for (int64_t i = 0; i < a->rows; i++)
                losses[i] = row_loss(&j, x, i);
        if (a->reduction == LG_NONE) {
                lg_store[LG_COMPUTE_F64][a->dtype](a->rows, a->out, losses);
                return true;
        }
        double sum = a->reduction == LG_MEAN && j.counted == 0 ? NAN : 0;
        for (int64_t i = 0; i < a->rows; i++)
                sum += losses[i];
        lg_store[LG_COMPUTE_F64][a->dtype](1, a->out, &sum);
        return true;
}

static void row_vjp(const job *j, const void *x, void *dx, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        int64_t at = row * a->classes;
        size_t size = a->dtype == LG_F64 ? 8 : 4;
        if (!counts(a, row)) {
                memset((char *)dx + at * (int64_t)size, 0, (size_t)a->classes * size);
                return;
        }
        double g;
        int64_t which = a->reduction == LG_NONE ? row : 0;
        lg_load[LG_COMPUTE_F64][a->dtype](1, &g, (const char *)a->g + which * (int64_t)lg_bytes_of(a->dtype));
        if (a->dtype == LG_F64)
                row_vjp_f64(j, (const double *)x + at, a->labels[row], g, (double *)dx + at);
        else
                row_vjp_f32(j, (const float *)x + at, a->labels[row], (float)g, (float *)dx + at);
}

bool LG_CPU(cross_entropy_vjp)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        int64_t count = a->rows * a->classes;
        if (!job_init(&j, q, "cross_entropy_vjp", a))
                return false;
        const void *x = logits(q, a);
        void *dx = lg_is_half(a->dtype) ? lg_widen(q, a->dtype, count, NULL) : a->out;
        if (count == 0)
                return true;
        if (!x || !dx)
                return false;
        LG_PARALLEL_FOR(q, count >= LG_PARALLEL_MIN / 4)
        for (int64_t i = 0; i < a->rows; i++)
                row_vjp(&j, x, dx, i);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->out, dx);
        return true;
}

static void row_weights(const job *j, void *out, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        int64_t at = row * a->classes;
        size_t size = a->dtype == LG_F64 ? 8 : 4;
        if (!counts(a, row))
                memset((char *)out + at * (int64_t)size, 0, (size_t)a->classes * size);
        else if (a->dtype == LG_F64)
                row_weights_f64(j, a->labels[row], (double *)out + at);
        else
                row_weights_f32(j, a->labels[row], (float *)out + at);
}

bool LG_CPU(class_weights)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        int64_t count = a->rows * a->classes;
        if (!job_init(&j, q, "class_weights", a))
                return false;
        void *out = lg_is_half(a->dtype) ? lg_widen(q, a->dtype, count, NULL) : a->out;
        if (count == 0)
                return true;
        if (!out)
                return false;
        LG_PARALLEL_FOR(q, count >= LG_PARALLEL_MIN)
        for (int64_t i = 0; i < a->rows; i++)
                row_weights(&j, out, i);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->out, out);
        return true;
}
