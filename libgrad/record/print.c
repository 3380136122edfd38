/* print.c - lg_recorder_print(): the kernel calls of recordings, with the shapes, bytes and times of the recorded run.
 */
#include <string.h>
#include "recorder.h"

static const char *const kernels[] = {
#define KERNEL(name, args) #name,
#include "../../kernels/kernels.def"
#define POINTWISE(name) #name,
#include "../../kernels/pointwise.def"
};

/* Adds the count of tensors and elements of a pass, and the bytes of parameters, gradients and states. */
static void describe_pass(const lg_pass *pass, char *text, size_t size, int64_t *bytes)
{
        int64_t n = 0;
        for (int64_t i = 0; i < pass->count; i++) {
                const lg_update *u = &pass->updates[i];
                const int64_t full = u->dtype == LG_F64 ? 8 : 4, own = (int64_t)lg_dtype_size(u->dtype);
                n += u->n;
                *bytes += u->n * ((u->param != NULL) * own + (u->grad != NULL) * own + (u->master != NULL) * full);
                for (size_t k = 0; k < sizeof u->state / sizeof *u->state; k++)
                        *bytes += u->state[k] ? u->n * full : 0;
        }
        snprintf(text, size, "%lld elements of %lld tensor%s", (long long)n, (long long)pass->count,
                 pass->count == 1 ? "" : "s");
}

/* Writes what a call computes, and sets the bytes that it reads and writes. */
static void describe(const lg__tape *t, const lg__tape_call *call, char *text, size_t size, int64_t *bytes)
{
        const void *args = t->data.p + call->args;
        const lg__tape_note *n = &t->notes[call - t->calls];
        const bool by_op = strncmp(call->op, "lg_", 3) != 0; /* else what is noted is the next op's */
        lg_dtype dtype = by_op ? n->dtype : 0;
        lg_shape shape = n->shape;
        int64_t words = 0;
        *bytes = by_op ? n->bytes : 0;
        if (call->link) {
                const lg_link_args *a = args;
                *bytes = a->count * (int64_t)lg_dtype_size(a->dtype);
                snprintf(text, size, "%s (%lld,)", lg_dtype_name(a->dtype), (long long)a->count);
                return;
        }
        if (call->updates >= 0) {
                describe_pass(args, text, size, bytes);
                return;
        }
        if (call->kernel == LG__KERNEL_fill || call->kernel == LG__KERNEL_copy) {
                const lg_copy_args *a = args; /* as lg_fill_args, it begins with ndim, shape and dtype of the result */
                shape = (lg_shape){.ndim = a->ndim};
                memcpy(shape.size, a->shape, sizeof shape.size);
                dtype = a->out_dtype;
                words = call->kernel == LG__KERNEL_copy ? (int64_t)lg_dtype_size(a->in_dtype) : 0;
                *bytes = lg__shape_numel(shape) * ((int64_t)lg_dtype_size(dtype) + words);
        } else if (call->kernel >= LG__KERNEL_POINTWISE) {
                const lg_pointwise_args *a = args;
                shape = (lg_shape){.ndim = a->ndim};
                memcpy(shape.size, a->shape, sizeof shape.size);
                dtype = a->dtype;
                for (int i = 0; i < LG_PW_INPUTS; i++)
                        words += a->in[i] != NULL;
                *bytes = lg__shape_numel(shape) * (int64_t)lg_dtype_size(dtype) * (1 + words + a->accumulate);
        }
        if (dtype)
                snprintf(text, size, "%s %s", lg_dtype_name(dtype), lg__shape_text(shape).s);
        else
                snprintf(text, size, "-");
}

/* Writes the time of a call in microseconds, or "-". */
static void time_of(const lg__tape *t, const lg__tape_note *n, char *text, size_t size)
{
        double seconds = n->seconds;
        const bool known =
                seconds > 0 || (n->to && t->device->api->time_between(t->device->queue, n->from, n->to, &seconds));
        snprintf(text, size, known ? "%.1f" : "-", seconds * 1e6);
}

/* Writes how many calls there are, and how they run. */
static void print_calls(FILE *f, const lg__tape *t)
{
        int64_t calls = 0, graphs = t->graph != NULL, exchanges = 0;
        for (int64_t i = 0; i < t->count; i++) {
                const lg__tape_call *call = &t->calls[i];
                calls += !call->fn && !call->link;
                graphs += call->graph != NULL;
                exchanges += call->link && call->bytes;
        }
        fprintf(f, ", %lld kernel calls", (long long)calls);
        if (graphs == 1)
                fputs(" captured as a graph", f);
        else if (graphs)
                fprintf(f, " captured as %lld graphs", (long long)graphs);
        if (exchanges)
                fprintf(f, ", %lld exchange%s between processes", (long long)exchanges, exchanges == 1 ? "" : "s");
        fprintf(f, ", %lld dial%s, %lld bytes of arguments, %lld bytes of memory\n", (long long)t->dial_count,
                t->dial_count == 1 ? "" : "s", (long long)t->data.used,
                (long long)(t->arena->stats.used + t->arena->stats.cached));
}

static void print_tape(FILE *f, const lg__tape *t)
{
        print_calls(f, t);
        fprintf(f, "  %-28s %-20s %-32s %12s %10s\n", "function", "kernel", "result", "bytes", "us");
        for (int64_t i = 0; i < t->count; i++) {
                const lg__tape_call *call = &t->calls[i];
                char result[320], time[32];
                int64_t bytes = 0;
                if (call->fn || (call->link && !call->bytes))
                        continue;
                describe(t, call, result, sizeof result, &bytes);
                time_of(t, &t->notes[i], time, sizeof time);
                fprintf(f, "  %-28s %-20s %-32s %12lld %10s\n", call->op,
                        call->link ? "exchange" : kernels[call->kernel], result, (long long)bytes, time);
        }
}

bool lg_recorder_print(FILE *f, const lg_recorder *r)
{
        if (!f || !r)
                return false;
        fprintf(f, "recorder: %lld runs, %lld of recordings\n", (long long)r->runs, (long long)r->replays);
        for (const recording *k = r->recordings; k; k = k->next) {
                fputs("inputs", f);
                for (int i = 0; i < k->input_count; i++)
                        fprintf(f, "%s %s %s", i ? "," : "", lg_dtype_name(k->given[i].dtype),
                                lg__shape_text(k->given[i].shape).s);
                fprintf(f, ": %lld runs", (long long)k->runs);
                if (k->tape.ctx)
                        print_tape(f, &k->tape);
                else
                        fputs(", not recorded yet\n", f);
        }
        return !ferror(f);
}
