/* convolutions_onednn.c - one convolution by oneDNN, where this machine has it, for convolutions_bench.c. */
#include "convolutions_onednn.h"
#include "bench.h"

size_t bench_convolution_count(const lg_conv_args *a, lg_conv_kind kind)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t count = kind == LG_CONV_FORWARD ? a->n * at->out[0] * at->out[1] * a->outputs
                              : kind == LG_CONV_INPUT_GRAD
                                      ? a->n * at->in[0] * at->in[1] * a->channels
                                      : a->outputs * (a->channels / at->groups) * at->kernel[0] * at->kernel[1];
        return (size_t)count;
}

#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>

#define CALLS(X)                                                                                                       \
        X(engine_create)                                                                                               \
        X(stream_create)                                                                                               \
        X(stream_wait)                                                                                                 \
        X(memory_desc_init_by_tag)                                                                                     \
        X(memory_desc_equal)                                                                                           \
        X(memory_create)                                                                                               \
        X(memory_destroy)                                                                                              \
        X(primitive_desc_create)                                                                                       \
        X(primitive_desc_destroy)                                                                                      \
        X(primitive_desc_query_md)                                                                                     \
        X(reorder_primitive_desc_create)                                                                               \
        X(primitive_create)                                                                                            \
        X(primitive_execute)                                                                                           \
        X(primitive_destroy)                                                                                           \
        X(dilated_convolution_forward_desc_init)                                                                       \
        X(dilated_convolution_backward_data_desc_init)                                                                 \
        X(dilated_convolution_backward_weights_desc_init)

#define CALL(name) __typeof__(dnnl_##name) *name;
static struct {
        CALLS(CALL)
        dnnl_engine_t engine;
        dnnl_stream_t stream;
        bool tried, here;
} dnnl;
#undef CALL

enum { OPERANDS = 3, STEPS = 1 + OPERANDS };

struct bench_onednn {
        dnnl_primitive_t steps[STEPS]; /* reorders of what is read, the convolution, reorders of what is written */
        dnnl_exec_arg_t args[STEPS][OPERANDS];
        int args_count[STEPS], count;
        dnnl_memory_t memories[2 * OPERANDS];
        int memories_count;
};

static bool load(void)
{
        static const char *const files[] = {"libdnnl.so.2", NULL};
        if (dnnl.tried)
                return dnnl.here;
        dnnl.tried = dnnl.here = true;
#define CALL(name)                                                                                                     \
        *(void **)&dnnl.name = bench_find(files, "dnnl_" #name);                                                       \
        dnnl.here = dnnl.here && dnnl.name;
        CALLS(CALL)
#undef CALL
        return dnnl.here = dnnl.here && !dnnl.engine_create(&dnnl.engine, dnnl_cpu, 0) &&
                           !dnnl.stream_create(&dnnl.stream, dnnl.engine, dnnl_stream_default_flags);
}

/* x, w, y as the program has them, or in any layout. */
typedef struct layouts {
        dnnl_memory_desc_t x, w, y;
} layouts;

static dnnl_memory_desc_t layout(int ndim, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
        dnnl_memory_desc_t md;
        dnnl.memory_desc_init_by_tag(&md, ndim, dims, dnnl_f32, tag);
        return md;
}

static layouts layouts_of(const lg_conv_args *a, bool any_images, bool any_weights)
{
        const lg_conv_geometry *at = &a->at;
        const int64_t g = at->groups;
        const dnnl_dims_t x = {a->n, a->channels, at->in[0], at->in[1]};
        const dnnl_dims_t y = {a->n, a->outputs, at->out[0], at->out[1]};
        const dnnl_dims_t w = {g, a->outputs / g, a->channels / g, at->kernel[0], at->kernel[1]};
        const dnnl_format_tag_t images = any_images ? dnnl_format_tag_any : dnnl_nhwc;
        const dnnl_format_tag_t weights = any_weights ? dnnl_format_tag_any : g > 1 ? dnnl_goihw : dnnl_oihw;
        return (layouts){layout(4, x, images), layout(4 + (g > 1), w + (g == 1), weights), layout(4, y, images)};
}

static dnnl_primitive_desc_t describe(const lg_conv_args *a, lg_conv_kind kind, int algorithm,
                                      dnnl_primitive_desc_t hint)
{
        const layouts l = layouts_of(a, algorithm == 1, true);
        const dnnl_alg_kind_t alg = algorithm == 1 ? dnnl_convolution_winograd : dnnl_convolution_direct;
        dnnl_dims_t stride = {0}, padding = {0}, dilation = {0}, after = {0};
        dnnl_convolution_desc_t d;
        dnnl_primitive_desc_t pd = NULL;
        for (int i = 0; i < 2; i++) {
                const lg_conv_geometry *at = &a->at;
                const int64_t reach = (at->kernel[i] - 1) * at->dilation[i];
                stride[i] = at->stride[i];
                padding[i] = at->padding[i];
                dilation[i] = at->dilation[i] - 1;
                after[i] = (at->out[i] - 1) * at->stride[i] + reach - at->padding[i] - at->in[i] + 1;
        }
        dnnl_status_t s =
                kind == LG_CONV_FORWARD
                        ? dnnl.dilated_convolution_forward_desc_init(&d, dnnl_forward_training, alg, &l.x, &l.w, NULL,
                                                                     &l.y, stride, dilation, padding, after)
                : kind == LG_CONV_INPUT_GRAD
                        ? dnnl.dilated_convolution_backward_data_desc_init(&d, alg, &l.x, &l.w, &l.y, stride, dilation,
                                                                           padding, after)
                        : dnnl.dilated_convolution_backward_weights_desc_init(&d, alg, &l.x, &l.w, NULL, &l.y, stride,
                                                                              dilation, padding, after);
        if (s || dnnl.primitive_desc_create(&pd, &d, NULL, dnnl.engine, hint))
                return NULL;
        return pd;
}

static dnnl_memory_t add_memory(bench_onednn *x, const dnnl_memory_desc_t *md, void *data)
{
        dnnl_memory_t m = NULL;
        if (!dnnl.memory_create(&m, md, dnnl.engine, data))
                x->memories[x->memories_count++] = m;
        return m;
}

static bool add_step(bench_onednn *x, dnnl_primitive_desc_t pd, int count, const dnnl_exec_arg_t *args)
{
        memcpy(x->args[x->count], args, (size_t)count * sizeof *args);
        x->args_count[x->count] = count;
        return !dnnl.primitive_create(&x->steps[x->count], pd) && ++x->count;
}

static bool add_reorder(bench_onednn *x, dnnl_memory_t from, const dnnl_memory_desc_t *a, dnnl_memory_t to,
                        const dnnl_memory_desc_t *b)
{
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        dnnl_primitive_desc_t pd = NULL;
        if (dnnl.reorder_primitive_desc_create(&pd, a, dnnl.engine, b, dnnl.engine, NULL))
                return false;
        const bool good = add_step(x, pd, 2, args);
        dnnl.primitive_desc_destroy(pd);
        return good;
}

typedef struct operand {
        int arg;
        dnnl_memory_desc_t md;
        const void *data;
} operand;

/* The last operand is written. */
static bool add_all(bench_onednn *x, dnnl_primitive_desc_t pd, const operand *o)
{
        dnnl_exec_arg_t args[OPERANDS];
        const dnnl_memory_desc_t *wanted[OPERANDS];
        dnnl_memory_t given[OPERANDS];
        for (int i = 0; i < OPERANDS; i++) {
                wanted[i] = dnnl.primitive_desc_query_md(pd, dnnl_query_exec_arg_md, o[i].arg);
                args[i].arg = o[i].arg;
                args[i].memory = given[i] = add_memory(x, &o[i].md, (void *)(uintptr_t)o[i].data);
                if (!dnnl.memory_desc_equal(wanted[i], &o[i].md))
                        args[i].memory = add_memory(x, wanted[i], DNNL_MEMORY_ALLOCATE);
                if (i < OPERANDS - 1 && args[i].memory != given[i] &&
                    !add_reorder(x, given[i], &o[i].md, args[i].memory, wanted[i]))
                        return false;
        }
        enum { out = OPERANDS - 1 };
        return add_step(x, pd, OPERANDS, args) &&
               (args[out].memory == given[out] ||
                add_reorder(x, args[out].memory, wanted[out], given[out], &o[out].md));
}

bench_onednn *bench_onednn_open(const lg_conv_args *a, int algorithm)
{
        if (!load())
                return NULL;
        const layouts l = layouts_of(a, false, false);
        const operand all[][OPERANDS] = {
                {{DNNL_ARG_SRC, l.x, a->x}, {DNNL_ARG_WEIGHTS, l.w, a->w}, {DNNL_ARG_DST, l.y, a->out}},
                {{DNNL_ARG_DIFF_DST, l.y, a->g}, {DNNL_ARG_WEIGHTS, l.w, a->w}, {DNNL_ARG_DIFF_SRC, l.x, a->out}},
                {{DNNL_ARG_DIFF_DST, l.y, a->g}, {DNNL_ARG_SRC, l.x, a->x}, {DNNL_ARG_DIFF_WEIGHTS, l.w, a->out}},
        };
        const bool forward = a->kind == LG_CONV_FORWARD;
        const dnnl_primitive_desc_t hint = forward ? NULL : describe(a, LG_CONV_FORWARD, algorithm, NULL);
        const dnnl_primitive_desc_t pd = forward || hint ? describe(a, a->kind, algorithm, hint) : NULL;
        bench_onednn *x = pd ? calloc(1, sizeof *x) : NULL;
        if (x && !add_all(x, pd, all[a->kind])) {
                bench_onednn_close(x);
                x = NULL;
        }
        if (pd)
                dnnl.primitive_desc_destroy(pd);
        if (hint)
                dnnl.primitive_desc_destroy(hint);
        return x;
}

void bench_onednn_run(bench_onednn *x)
{
        for (int i = 0; i < x->count; i++)
                dnnl.primitive_execute(x->steps[i], dnnl.stream, x->args_count[i], x->args[i]);
        dnnl.stream_wait(dnnl.stream);
}

void bench_onednn_close(bench_onednn *x)
{
        for (int i = 0; x && i < x->count; i++)
                dnnl.primitive_destroy(x->steps[i]);
        for (int i = 0; x && i < x->memories_count; i++)
                dnnl.memory_destroy(x->memories[i]);
        free(x);
}
#else
bench_onednn *bench_onednn_open(const lg_conv_args *a, int algorithm)
{
        (void)a, (void)algorithm;
        return NULL;
}
void bench_onednn_run(bench_onednn *x)
{
        (void)x;
}
void bench_onednn_close(bench_onednn *x)
{
        (void)x;
}
#endif
