/* conv_onednn.c - convolution by oneDNN's C API. */
#include "onednn_plan.h"
#include <omp.h>

/* Below that, gradients by the images of a first layer are faster by products. */
#define INPUT_GRAD_CHANNELS 8
/* In 2mnk; below that a second thread costs more than it brings. */
#define PARALLEL_WORK 4e6

static bool set(lg_queue *q, dnnl_memory_t memory, const void *p)
{
        return lg__onednn_good(q, "memory", dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)p));
}

static bool set_scratch(lg_queue *q, dnnl_memory_t memory, size_t bytes)
{
        void *p = bytes ? q->workspace(q, bytes) : NULL;
        return (p || !bytes) && set(q, memory, p);
}

static bool execute(lg_queue *q, memo *m, dnnl_primitive_t primitive, int count, const dnnl_exec_arg_t *arguments)
{
        return lg__onednn_good(q, "execution", dnnl_primitive_execute(primitive, m->stream, count, arguments));
}

static bool reorder(lg_queue *q, memo *m, const operand *o, bool back)
{
        const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, back ? o->inside : o->outside},
                                             {DNNL_ARG_TO, back ? o->outside : o->inside}};
        return !o->reorder || execute(q, m, o->reorder, 2, arguments);
}

/* The primitive on images [first, first + p->images). The weights are in place; of the images, the arguments are
 * handed over here. */
static bool run_images(lg_queue *q, memo *m, const plan *p, const lg_conv_args *a, int64_t first)
{
        const lg_conv_geometry *at = &a->at;
        const int result = lg__onednn_result_of(p->key.kind);
        const char *src = result == SRC ? a->out : a->x, *dst = result == DST ? a->out : a->g;
        const int64_t in = at->in[0] * at->in[1] * a->channels, out = at->out[0] * at->out[1] * a->outputs;
        dnnl_exec_arg_t arguments[OPERANDS + 2] = {{DNNL_ARG_SCRATCHPAD, p->scratch}, {DNNL_ARG_BIAS, p->bias}};
        int count = p->bias ? 2 : 1;
        if (!set(q, p->operand[SRC].outside, src + first * in * (int64_t)sizeof(float)) ||
            !set(q, p->operand[DST].outside, dst + first * out * (int64_t)sizeof(float)))
                return false;
        for (int i = 0; i < OPERANDS; i++) {
                const operand *o = &p->operand[i];
                if (i != result && i != WEIGHTS && !reorder(q, m, o, false))
                        return false;
                arguments[count++] = (dnnl_exec_arg_t){lg__onednn_argument_of(p->key.kind, i), o->inside};
        }
        return execute(q, m, p->conv, count, arguments) && reorder(q, m, &p->operand[result], true);
}

static bool run(lg_queue *q, memo *m, const plan *p, const lg_conv_args *a)
{
        const operand *w = &p->operand[WEIGHTS];
        const bool weights_in = p->key.kind != LG_CONV_WEIGHT_GRAD;
        if (!set_scratch(q, p->scratch, p->scratch_bytes))
                return false;
        for (int i = 0; i < OPERANDS; i++)
                if (p->operand[i].reorder && !set_scratch(q, p->operand[i].inside, p->operand[i].bytes))
                        return false;
        if (!set(q, w->outside, weights_in ? a->w : a->out) || (weights_in && !reorder(q, m, w, false)) ||
            (p->bias && !set(q, p->bias, a->b)))
                return false;
        for (int64_t first = 0; first < a->n; first += p->images)
                if (!run_images(q, m, p, a, first))
                        return false;
        return true;
}

static lg_onednn_result conv(lg_queue *q, const lg_conv_args *a, int threads)
{
        memo *m = lg__onednn_memo(q);
        plan *p = m ? lg__onednn_plan(q, m, a, threads) : NULL;
        if (!p)
                return LG_ONEDNN_FAILED;
        if (p->refused)
                return LG_ONEDNN_REFUSED;
        return run(q, m, p, a) ? LG_ONEDNN_DONE : LG_ONEDNN_FAILED;
}

static double work_of(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        return 2.0 * (double)a->n * (double)at->out[0] * (double)at->out[1] * (double)a->outputs *
               (double)(a->channels / at->groups) * (double)at->kernel[0] * (double)at->kernel[1];
}

/* oneDNN takes the number of threads from OpenMP, where it is a setting of the calling thread, and relies on getting
 * that many. */
static int threads_of(const lg_queue *q, const lg_conv_args *a)
{
        const int limit = omp_in_parallel() || work_of(a) < PARALLEL_WORK ? 1 : omp_get_thread_limit();
        return q->threads < limit ? q->threads : limit;
}

lg_onednn_result lg__onednn_conv(lg_queue *q, const lg_conv_args *a)
{
        const int setting = omp_get_max_threads(), threads = threads_of(q, a);
        const bool first_layer = a->at.groups == 1 && a->channels < INPUT_GRAD_CHANNELS;
        if (!q->memo || (a->kind == LG_CONV_INPUT_GRAD && first_layer))
                return LG_ONEDNN_REFUSED;
        if (a->n == 0 || a->channels == 0 || a->outputs == 0 || a->at.in[0] * a->at.in[1] == 0)
                return LG_ONEDNN_REFUSED;
        omp_set_num_threads(threads);
        lg_onednn_result r = conv(q, a, threads);
        omp_set_num_threads(setting);
        return r;
}
