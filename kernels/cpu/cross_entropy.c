/* cross_entropy.c - the cross entropy of logits and class indices, its derivative, and the weights of the classes. */
#include "cpu.h"
#include "scalar.h"

#define SPAN 1024 /* elements that are added up in their own type before they are joined in f64 */

typedef struct job {
        const lg_cross_entropy_args *a;
        const void *x; /* in f32 where the dtype has 16 bits, as all that is written by rows */
        void *out;
        double weight;            /* w_i of a row that counts */
        double on_label, on_each; /* q = weight * (on_label [c = t] + on_each) */
        int64_t counted;          /* rows that count */
} job;

#define LG_BOTH "cross_entropy.inc"
#include "both.inc"

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

static double row_loss(const job *j, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        if (!counts(a, row))
                return 0;
        if (a->dtype == LG_F64)
                return row_loss_f64(j, (const double *)j->x + row * a->classes, a->labels[row]);
        return row_loss_f32(j, (const float *)j->x + row * a->classes, a->labels[row]);
}

static void row_losses(const void *user, int64_t first, int64_t end, int thread)
{
        const job *j = user;
        double *losses = j->out;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                losses[i] = row_loss(j, i);
}

bool LG_CPU(cross_entropy)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        if (!job_init(&j, q, "cross_entropy", a))
                return false;
        j.x = logits(q, a);
        double *losses = j.out = q->workspace(q, (size_t)lg_most(a->rows, 1) * sizeof *losses);
        if (!losses || (!j.x && a->rows > 0 && a->classes > 0))
                return false;
        lg_parallel(q, a->rows, lg_grain(4 * a->classes), row_losses, &j);
        const lg_dtype dtype = a->dtype == LG_F64 ? LG_F64 : LG_F32;
        if (a->reduction == LG_NONE) {
                lg_store[LG_COMPUTE_F64][dtype](a->rows, a->out, losses);
                return true;
        }
        double sum = a->reduction == LG_MEAN && j.counted == 0 ? NAN : 0;
        for (int64_t i = 0; i < a->rows; i++)
                sum += losses[i];
        lg_store[LG_COMPUTE_F64][dtype](1, a->out, &sum);
        return true;
}

static void row_vjp(const job *j, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        int64_t at = row * a->classes;
        size_t size = a->dtype == LG_F64 ? 8 : 4;
        if (!counts(a, row)) {
                memset((char *)j->out + at * (int64_t)size, 0, (size_t)a->classes * size);
                return;
        }
        int64_t which = a->reduction == LG_NONE ? row : 0;
        if (a->dtype == LG_F64)
                row_vjp_f64(j, (const double *)j->x + at, a->labels[row], ((const double *)a->g)[which],
                            (double *)j->out + at);
        else
                row_vjp_f32(j, (const float *)j->x + at, a->labels[row], ((const float *)a->g)[which],
                            (float *)j->out + at);
}

static void row_vjps(const void *user, int64_t first, int64_t end, int thread)
{
        (void)thread;
        for (int64_t i = first; i < end; i++)
                row_vjp(user, i);
}

bool LG_CPU(cross_entropy_vjp)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        int64_t count = a->rows * a->classes;
        if (!job_init(&j, q, "cross_entropy_vjp", a))
                return false;
        j.x = logits(q, a);
        j.out = lg_is_half(a->dtype) ? lg_widen(q, a->dtype, count, NULL) : a->out;
        if (count == 0)
                return true;
        if (!j.x || !j.out)
                return false;
        lg_parallel(q, a->rows, lg_grain(4 * a->classes), row_vjps, &j);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->out, j.out);
        return true;
}

static void row_weights(const job *j, int64_t row)
{
        const lg_cross_entropy_args *a = j->a;
        int64_t at = row * a->classes;
        size_t size = a->dtype == LG_F64 ? 8 : 4;
        if (!counts(a, row))
                memset((char *)j->out + at * (int64_t)size, 0, (size_t)a->classes * size);
        else if (a->dtype == LG_F64)
                row_weights_f64(j, a->labels[row], (double *)j->out + at);
        else
                row_weights_f32(j, a->labels[row], (float *)j->out + at);
}

static void weights_of_rows(const void *user, int64_t first, int64_t end, int thread)
{
        (void)thread;
        for (int64_t i = first; i < end; i++)
                row_weights(user, i);
}

bool LG_CPU(class_weights)(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j;
        int64_t count = a->rows * a->classes;
        if (!job_init(&j, q, "class_weights", a))
                return false;
        j.out = lg_is_half(a->dtype) ? lg_widen(q, a->dtype, count, NULL) : a->out;
        if (count == 0)
                return true;
        if (!j.out)
                return false;
        lg_parallel(q, a->rows, lg_grain(a->classes), weights_of_rows, &j);
        if (lg_is_half(a->dtype))
                lg_narrow(q, a->dtype, count, a->out, j.out);
        return true;
}
