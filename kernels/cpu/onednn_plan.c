/* onednn_plan.c - how a convolution is described to oneDNN, and the table of what was made for it.
 *
 * Images go to oneDNN as they are, channels last: measured, its own layouts win nowhere once the copies are counted (1
 * to 32 channels, 28x28, batch 64: 0.24 ms against 0.33). Winograd's algorithm is taken where it wins (64 to 64
 * channels, 32x32, batch 32, two threads, in GFLOP/s: 459 against 228), a few images at a time so that its scratch
 * stays small.
 */
#include "onednn_plan.h"
#include "engine.h"
#include <stdlib.h>
#include <string.h>

/* Where Winograd's algorithm wins over the direct one. */
#define WINOGRAD_CHANNELS 32
#define WINOGRAD_PIXELS 1024
#define WINOGRAD_SCRATCH ((size_t)32 << 20)

/* ---- what a queue remembers ---- */

bool lg__onednn_good(lg_queue *q, const char *what, dnnl_status_t status)
{
        return status == dnnl_success || lg_queue_fail(q, status == dnnl_out_of_memory ? LG_NO_MEMORY : LG_BROKEN,
                                                       "oneDNN: %s: %s", what, dnnl_status2str(status));
}

static void plan_finish(plan *p)
{
        for (int i = 0; i < OPERANDS; i++) {
                operand *o = &p->operand[i];
                if (o->reorder)
                        dnnl_primitive_destroy(o->reorder);
                if (o->inside && o->inside != o->outside)
                        dnnl_memory_destroy(o->inside);
                if (o->outside)
                        dnnl_memory_destroy(o->outside);
        }
        if (p->bias)
                dnnl_memory_destroy(p->bias);
        if (p->scratch)
                dnnl_memory_destroy(p->scratch);
        if (p->conv)
                dnnl_primitive_destroy(p->conv);
        memset(p, 0, sizeof *p);
}

void lg__onednn_close(lg_queue *q)
{
        lg_engine *e = q->memo;
        memo *m = e ? e->plans : NULL;
        if (!m)
                return;
        for (int i = 0; i < SETS * WAYS; i++)
                plan_finish(&m->plans[i / WAYS][i % WAYS]);
        if (m->stream)
                dnnl_stream_destroy(m->stream);
        if (m->engine)
                dnnl_engine_destroy(m->engine);
        free(m);
        e->plans = NULL;
}

memo *lg__onednn_memo(lg_queue *q)
{
        lg_engine *e = q->memo;
        if (e->plans)
                return e->plans;
        memo *m = e->plans = calloc(1, sizeof *m);
        if (!m) {
                lg__onednn_good(q, "the table of primitives", dnnl_out_of_memory);
                return NULL;
        }
        dnnl_status_t s = dnnl_engine_create(&m->engine, dnnl_cpu, 0);
        if (s == dnnl_success)
                s = dnnl_stream_create(&m->stream, m->engine, dnnl_stream_default_flags);
        if (lg__onednn_good(q, "engine", s))
                return m;
        lg__onednn_close(q);
        return NULL;
}

/* The plan of this key, or an empty place for it. */
static plan *find(memo *m, const key *k)
{
        uint64_t hash = 0xcbf29ce484222325;
        for (size_t i = 0; i < sizeof *k; i++)
                hash = (hash ^ ((const unsigned char *)k)[i]) * 0x100000001b3;
        plan *set = m->plans[hash >> 32 & (SETS - 1)], *oldest = set;
        for (int i = 0; i < WAYS; i++) {
                if (set[i].used && memcmp(&set[i].key, k, sizeof *k) == 0)
                        return &set[i];
                if (set[i].used < oldest->used)
                        oldest = &set[i];
        }
        plan_finish(oldest);
        return oldest;
}

/* ---- making a plan ---- */

/* The arrays as the kernel's arguments tell them (plain), and as the primitive may want them. */
typedef struct wish {
        dnnl_memory_desc_t plain[OPERANDS], wanted[OPERANDS], bias;
        dnnl_dims_t stride, dilation, before, after;
        dnnl_alg_kind_t algorithm;
        int64_t images;
} wish;

/* oneDNN checks the output size against a padding, which is what it takes after the image. */
static void set_windows(wish *w, const lg_conv_geometry *at)
{
        for (int d = 0; d < 2; d++) {
                const int64_t span = (at->kernel[d] - 1) * at->dilation[d] + 1;
                w->stride[d] = at->stride[d];
                w->dilation[d] = at->dilation[d] - 1;
                w->before[d] = at->padding[d];
                w->after[d] = (at->out[d] - 1) * at->stride[d] + span - at->in[d] - at->padding[d];
        }
}

static dnnl_status_t describe(const key *k, wish *w, int64_t images, dnnl_alg_kind_t algorithm)
{
        const lg_conv_geometry *at = &k->at;
        const int64_t g = at->groups;
        const dnnl_dims_t src = {images, k->channels, at->in[0], at->in[1]}, bias = {k->outputs};
        const dnnl_dims_t dst = {images, k->outputs, at->out[0], at->out[1]};
        const dnnl_dims_t weights = {k->outputs, k->channels, at->kernel[0], at->kernel[1]};
        const dnnl_dims_t grouped = {g, k->outputs / g, k->channels / g, at->kernel[0], at->kernel[1]};
        dnnl_status_t s = dnnl_memory_desc_init_by_tag(&w->plain[SRC], 4, src, dnnl_f32, dnnl_nhwc);
        if (s == dnnl_success)
                s = dnnl_memory_desc_init_by_tag(&w->plain[DST], 4, dst, dnnl_f32, dnnl_nhwc);
        if (s == dnnl_success)
                s = g > 1 ? dnnl_memory_desc_init_by_tag(&w->plain[WEIGHTS], 5, grouped, dnnl_f32, dnnl_goihw)
                          : dnnl_memory_desc_init_by_tag(&w->plain[WEIGHTS], 4, weights, dnnl_f32, dnnl_oihw);
        if (s == dnnl_success)
                s = dnnl_memory_desc_init_by_tag(&w->bias, 1, bias, dnnl_f32, dnnl_x);
        for (int i = 0; i < OPERANDS; i++) {
                w->wanted[i] = w->plain[i];
                if (i == WEIGHTS || algorithm == dnnl_convolution_winograd)
                        w->wanted[i].format_kind = dnnl_format_kind_any;
        }
        set_windows(w, at);
        w->algorithm = algorithm;
        w->images = images;
        return s;
}

static dnnl_status_t forward_descriptor(const key *k, const wish *w, dnnl_convolution_desc_t *ret)
{
        return dnnl_dilated_convolution_forward_desc_init(ret, dnnl_forward_training, w->algorithm, &w->wanted[SRC],
                                                          &w->wanted[WEIGHTS], k->bias ? &w->bias : NULL,
                                                          &w->wanted[DST], w->stride, w->dilation, w->before, w->after);
}

/* The description of the primitive; the derivatives' are made after one of the forward kernel. */
static dnnl_status_t describe_primitive(memo *m, const key *k, const wish *w, dnnl_primitive_desc_t *ret)
{
        dnnl_convolution_desc_t d;
        dnnl_primitive_attr_t attributes;
        dnnl_primitive_desc_t hint = NULL;
        dnnl_status_t s = dnnl_primitive_attr_create(&attributes);
        if (s != dnnl_success)
                return s;
        s = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
        if (s == dnnl_success)
                s = forward_descriptor(k, w, &d);
        if (s == dnnl_success)
                s = dnnl_primitive_desc_create(k->kind == LG_CONV_FORWARD ? ret : &hint, &d, attributes, m->engine,
                                               NULL);
        if (s == dnnl_success && k->kind != LG_CONV_FORWARD) {
                s = k->kind == LG_CONV_INPUT_GRAD
                            ? dnnl_dilated_convolution_backward_data_desc_init(
                                      &d, w->algorithm, &w->wanted[SRC], &w->wanted[WEIGHTS], &w->wanted[DST],
                                      w->stride, w->dilation, w->before, w->after)
                            : dnnl_dilated_convolution_backward_weights_desc_init(
                                      &d, w->algorithm, &w->wanted[SRC], &w->wanted[WEIGHTS], NULL, &w->wanted[DST],
                                      w->stride, w->dilation, w->before, w->after);
                if (s == dnnl_success)
                        s = dnnl_primitive_desc_create(ret, &d, attributes, m->engine, hint);
                dnnl_primitive_desc_destroy(hint);
        }
        dnnl_primitive_attr_destroy(attributes);
        return s;
}

int lg__onednn_result_of(lg_conv_kind kind)
{
        return kind == LG_CONV_FORWARD ? DST : kind == LG_CONV_INPUT_GRAD ? SRC : WEIGHTS;
}

int lg__onednn_argument_of(lg_conv_kind kind, int i)
{
        static const int arguments[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
        static const int gradients[OPERANDS] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
        const bool gradient = kind != LG_CONV_FORWARD && (i == DST || i == lg__onednn_result_of(kind));
        return gradient ? gradients[i] : arguments[i];
}

static const dnnl_memory_desc_t *inside_of(const key *k, const_dnnl_primitive_desc_t d, int i)
{
        return dnnl_primitive_desc_query_md(d, dnnl_query_exec_arg_md, lg__onednn_argument_of(k->kind, i));
}

static dnnl_status_t make_operand(memo *m, operand *o, const dnnl_memory_desc_t *outside,
                                  const dnnl_memory_desc_t *inside, bool is_result)
{
        dnnl_primitive_desc_t d;
        dnnl_status_t s = dnnl_memory_create(&o->outside, outside, m->engine, DNNL_MEMORY_NONE);
        o->inside = o->outside;
        if (s != dnnl_success || dnnl_memory_desc_equal(outside, inside))
                return s;
        o->bytes = dnnl_memory_desc_get_size(inside);
        s = dnnl_memory_create(&o->inside, inside, m->engine, DNNL_MEMORY_NONE);
        if (s == dnnl_success)
                s = dnnl_reorder_primitive_desc_create(&d, is_result ? inside : outside, m->engine,
                                                       is_result ? outside : inside, m->engine, NULL);
        if (s == dnnl_success) {
                s = dnnl_primitive_create(&o->reorder, d);
                dnnl_primitive_desc_destroy(d);
        }
        return s;
}

/* The memory that a description needs beside its arguments. */
static size_t scratch_of(const key *k, const wish *w, const_dnnl_primitive_desc_t d)
{
        size_t bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0));
        for (int i = 0; i < OPERANDS; i++) {
                const dnnl_memory_desc_t *inside = inside_of(k, d, i);
                bytes += dnnl_memory_desc_equal(inside, &w->plain[i]) ? 0 : dnnl_memory_desc_get_size(inside);
        }
        return bytes;
}

static bool suits_winograd(const key *k)
{
        const lg_conv_geometry *at = &k->at;
        return k->kind != LG_CONV_WEIGHT_GRAD && at->groups == 1 && k->channels >= WINOGRAD_CHANNELS &&
               k->outputs >= WINOGRAD_CHANNELS && at->kernel[0] == 3 && at->kernel[1] == 3 && at->stride[0] == 1 &&
               at->stride[1] == 1 && at->dilation[0] == 1 && at->dilation[1] == 1;
}

/* Halves the images at a time until the scratch is small; too few of them do not pay for the weights' transform. */
static dnnl_status_t describe_winograd(memo *m, const key *k, wish *w, dnnl_primitive_desc_t *ret)
{
        for (int64_t images = k->n;; images /= 2) {
                if (images * k->at.out[0] * k->at.out[1] < WINOGRAD_PIXELS)
                        return dnnl_unimplemented;
                dnnl_status_t s = describe(k, w, images, dnnl_convolution_winograd);
                if (s == dnnl_success)
                        s = describe_primitive(m, k, w, ret);
                if (s != dnnl_success || scratch_of(k, w, *ret) <= WINOGRAD_SCRATCH)
                        return s;
                dnnl_primitive_desc_destroy(*ret);
                *ret = NULL;
                if (images % 2)
                        return dnnl_unimplemented;
        }
}

static dnnl_status_t describe_direct(memo *m, const key *k, wish *w, dnnl_primitive_desc_t *ret)
{
        const char *name = "";
        dnnl_status_t s = describe(k, w, k->n, dnnl_convolution_direct);
        if (s == dnnl_success)
                s = describe_primitive(m, k, w, ret);
        if (s == dnnl_success)
                s = dnnl_primitive_desc_query(*ret, dnnl_query_impl_info_str, 0, &name);
        /* What has no fast kernel has one of plain loops. */
        return s == dnnl_success && strncmp(name, "ref", 3) == 0 ? dnnl_unimplemented : s;
}

static dnnl_status_t make_plan(memo *m, plan *p)
{
        wish w;
        dnnl_primitive_desc_t d = NULL;
        const key *k = &p->key;
        dnnl_status_t s = suits_winograd(k) ? describe_winograd(m, k, &w, &d) : dnnl_unimplemented;
        if (s == dnnl_unimplemented || s == dnnl_invalid_arguments)
                s = describe_direct(m, k, &w, &d);
        if (s == dnnl_success)
                s = dnnl_primitive_create(&p->conv, d);
        for (int i = 0; i < OPERANDS && s == dnnl_success; i++)
                s = make_operand(m, &p->operand[i], &w.plain[i], inside_of(k, d, i),
                                 i == lg__onednn_result_of(k->kind));
        if (s == dnnl_success && k->bias)
                s = dnnl_memory_create(&p->bias, &w.bias, m->engine, DNNL_MEMORY_NONE);
        if (s == dnnl_success) {
                const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
                p->scratch_bytes = dnnl_memory_desc_get_size(scratch);
                p->images = w.images;
                s = dnnl_memory_create(&p->scratch, scratch, m->engine, DNNL_MEMORY_NONE);
        }
        if (d)
                dnnl_primitive_desc_destroy(d);
        return s;
}

plan *lg__onednn_plan(lg_queue *q, memo *m, const lg_conv_args *a, int threads)
{
        key k;
        memset(&k, 0, sizeof k);
        k.kind = a->kind;
        k.threads = threads;
        k.bias = a->b != NULL;
        k.n = a->n;
        k.channels = a->channels;
        k.outputs = a->outputs;
        k.at = a->at;
        plan *p = find(m, &k);
        if (!p->used) {
                p->key = k;
                dnnl_status_t s = make_plan(m, p);
                p->refused = s == dnnl_unimplemented || s == dnnl_invalid_arguments;
                if (!p->refused && !lg__onednn_good(q, "convolution", s)) {
                        plan_finish(p);
                        return NULL;
                }
        }
        p->used = ++m->calls;
        return p;
}
