/* gpu_errors.c - compares results on a device with those in f64 on the CPU, for every op, as a part of gpu_bench.
 *
 * Both get the same inputs, rounded to the dtype. The error is max|x - ref| / max(1, max|ref|), of the result and of
 * its gradients with respect to the inputs, for an incoming gradient in [-1, 1). Limits: for f32 a hundred roundings
 * (2^-24); for f16 (2^-11) and bf16 (2^-8) four, since they are computed in f32 and rounded when they are stored, once
 * for each op of a composite or a derivative. A product of TF32 rounds each factor by up to 2^-11; over k terms the
 * error grows as sqrt(k), and so does the result with which it is compared: four roundings for any k.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../tests/calls.h"
#include "gpu_bench.h"

/* ---- runs ---- */

typedef struct result {
        lg_tensor *y, *gradient[MOST_OPERANDS];
} result;

/* Computes a call and its gradients on a device in a dtype, from inputs on the CPU. Draws the same random numbers each
 * time. */
static result compute(lg_ctx *c, const large_call *r, lg_tensor *const *rounded, lg_device device, lg_dtype dtype)
{
        lg_tensor *x[MOST_OPERANDS] = {NULL};
        result ret = {.y = NULL};
        for (int i = 0; i < operands_of(r); i++)
                x[i] = lg_set_requires_grad(lg_to(lg_cast(rounded[i], dtype), device), r->input[i].gradient);
        lg_set_random_state(c, (lg_random_state){7, 0});
        ret.y = r->run(c, x);
        if (!lg_requires_grad(ret.y))
                return ret;
        lg_set_random_state(c, (lg_random_state){8, 0});
        lg_tensor *g = lg_uniform(c, -1, 1, lg_shape_of(ret.y), .dtype = LG_BF16, .device = device);
        g = lg_cast(g, lg_dtype_of(ret.y)); /* g has the same values in every dtype */
        lg_grad(LG_LIST(ret.y), LG_LIST_OF(gradients_of(r), x), .grads = LG_LIST(g), .result = ret.gradient);
        return ret;
}

/* Returns the error of x, or INFINITY if sizes differ, if only one of two values is finite, or if infinities differ. */
static double error_of(lg_tensor *x, lg_tensor *reference)
{
        const int64_t n = lg_numel(reference);
        const size_t bytes = (size_t)n * sizeof(double);
        double *a = malloc(bytes + 1), *b = malloc(bytes + 1), worst = 0, greatest = 1;
        bool good = a && b && n == lg_numel(x) && lg_read(x, a, LG_F64, bytes) && lg_read(reference, b, LG_F64, bytes);
        for (int64_t i = 0; good && i < n; i++) {
                if (isfinite(a[i]) && isfinite(b[i])) {
                        worst = fmax(worst, fabs(a[i] - b[i]));
                        greatest = fmax(greatest, fabs(b[i]));
                } else if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
                        worst = INFINITY;
        }
        free(a);
        free(b);
        return good ? worst / greatest : INFINITY;
}

static double limit_of(const bench *b, lg_dtype dtype)
{
        return b->tf32 ? 2e-3 : dtype == LG_F32 ? 1e-5 : dtype == LG_F16 ? 2e-3 : 1.6e-2;
}

static void report(bench *b, const large_call *r, const char *what, lg_dtype dtype, double error, double limit)
{
        printf("{\"part\": \"errors\", \"name\": \"%s%s\", \"dtype\": \"%s\", \"limit\": %g", r->name, what,
               b->tf32 ? "tf32" : lg_dtype_name(dtype), limit);
        if (lg_error(b->c) || error <= limit) {
                end_figure(b, "error", error);
                return;
        }
        if (isfinite(error))
                printf(", \"error\": %.6g", error);
        end_failed(b,
                   isfinite(error) ? "the error is above its limit" : "values that are not finite, or of another size");
}

static void measure_row(bench *b, const large_call *r, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(b->c);
        lg_tensor *rounded[MOST_OPERANDS] = {NULL};
        for (int i = 0; i < operands_of(r); i++)
                rounded[i] = draw_operand(b->c, r, i, dtype);
        result reference = compute(b->c, r, rounded, lg_cpu(), LG_F64);
        result found = compute(b->c, r, rounded, b->device, dtype);
        /* Results of dtypes other than floats must be exact. */
        const double limit = lg_dtype_is_float(lg_dtype_of(found.y)) ? limit_of(b, dtype) : 0;
        double error = lg_error(b->c) ? INFINITY : error_of(found.y, reference.y), slope = 0;
        report(b, r, "", dtype, error, limit);
        for (int i = 0; i < MOST_OPERANDS; i++)
                if (reference.gradient[i])
                        slope = fmax(slope, error_of(found.gradient[i], reference.gradient[i]));
        if (reference.gradient[0])
                report(b, r, " backward", dtype, slope, limit_of(b, dtype));
        lg_scope_end(b->c, scope);
}

static void measure_calls(bench *b, const large_call *calls, size_t count)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F16, LG_BF16};
        for (const large_call *r = calls; r < calls + count; r++)
                for (int k = 0; k < (b->tf32 ? 1 : 3); k++)
                        if ((r->is == CAST_LOW || !b->tf32) && !time_is_over(b))
                                measure_row(b, r, dtypes[k]);
}

void measure_errors(bench *b)
{
        measure_calls(b, elementwise_calls, sizeof elementwise_calls / sizeof *elementwise_calls);
        measure_calls(b, large_calls, sizeof large_calls / sizeof *large_calls);
}
