/* cross_entropy.c - cross entropy of logits and class indices, its derivative, and the weights of the classes. */
#include "cpu.h"
#include "scalar.h"

#define SPAN 1024 /* elements that are summed in their own type before their sum is added to one in f64 */

typedef struct job {
        const lg_cross_entropy_args *a;
        double *losses;
        double weight;            /* w_i of kernels.h, for rows that are not ignored */
        double on_label, on_each; /* for each row: q[c] = weight * (on_label [c = t] + on_each) */
        int64_t counted;          /* number of rows that are not ignored */
} job;

static bool counts(const lg_cross_entropy_args *a, int64_t row)
{
        int64_t label = a->labels[row];
        return label != a->ignore_index && label >= 0 && label < a->classes;
}

#define LG_BOTH "cross_entropy.inc"
#include "both.inc"

/* Sets the constants of a call, counts the rows that are not ignored, and records the first invalid label. */
static job job_of(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j = {.a = a, .weight = 1, .on_label = 1 - a->label_smoothing};
        for (int64_t i = 0; i < a->rows; i++) {
                if (counts(a, i))
                        j.counted++;
                else if (a->labels[i] != a->ignore_index && q->error.code == LG_DEVICE_OK)
                        q->error = (lg_device_error){.code = a->origin, .value = a->labels[i], .limit = a->classes};
        }
        j.on_each = a->classes ? a->label_smoothing / (double)a->classes : 0;
        if (a->reduction == LG_MEAN && j.counted)
                j.weight = 1 / (double)j.counted;
        return j;
}

static bool cross_entropy(lg_queue *q, const lg_cross_entropy_args *a)
{
        job j = job_of(q, a);
        j.losses = q->workspace(q, (size_t)lg_most(a->rows, 1) * sizeof *j.losses);
        if (!j.losses)
                return false;
        lg_parallel(q, a->rows, lg_grain(4 * a->classes), a->dtype == LG_F64 ? row_losses_f64 : row_losses_f32, &j);
        if (a->reduction == LG_NONE) {
                lg_store[LG_COMPUTE_F64][a->dtype](a->rows, a->out, j.losses);
                return true;
        }
        double sum = a->reduction == LG_MEAN && j.counted == 0 ? NAN : 0;
        for (int64_t i = 0; i < a->rows; i++)
                sum += j.losses[i];
        lg_store[LG_COMPUTE_F64][a->dtype](1, a->out, &sum);
        return true;
}
LG_FLOAT_KERNEL(cross_entropy, lg_cross_entropy_args, a->rows * a->classes, LG_READS(x))

static bool cross_entropy_vjp(lg_queue *q, const lg_cross_entropy_args *a)
{
        const job j = job_of(q, a);
        lg_parallel(q, a->rows, lg_grain(4 * a->classes), a->dtype == LG_F64 ? row_vjps_f64 : row_vjps_f32, &j);
        return true;
}
LG_FLOAT_KERNEL(cross_entropy_vjp, lg_cross_entropy_args, a->rows * a->classes, LG_READS(x), LG_WRITES_IN_PLACE(out))

static bool class_weights(lg_queue *q, const lg_cross_entropy_args *a)
{
        const job j = job_of(q, a);
        lg_parallel(q, a->rows, lg_grain(a->classes), a->dtype == LG_F64 ? row_weights_f64 : row_weights_f32, &j);
        return true;
}
LG_FLOAT_KERNEL(class_weights, lg_cross_entropy_args, a->rows * a->classes, LG_WRITES(out))
