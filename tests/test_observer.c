/* test_observer.c - what observers are told, and that nothing runs or comes out otherwise where somebody looks on. */
#include "../libgrad/inspect/place.h"
#include "test.h"

/* ---- what is told ---- */

typedef struct record {
        lg__observer observer;
        int begun, ended, failed, composites, nodes, fused, entered, left, open, deepest;
        int64_t copied, allocated;
        bool wrong; /* a pair that does not match */
} record;

static void begin(record *r)
{
        r->deepest = ++r->open > r->deepest ? r->open : r->deepest;
}

static void op_begin(lg__observer *o, const lg__call *call)
{
        record *r = (record *)o;
        r->begun++;
        r->composites += call->op->compose != NULL;
        begin(r);
}

static void op_end(lg__observer *o, const lg__call *call, bool ok)
{
        record *r = (record *)o;
        r->ended++;
        r->failed += !ok;
        r->open--;
        r->wrong = r->wrong || (ok && !call->out[0]);
}

static void recorded(lg__observer *o, lg__node *n)
{
        ((record *)o)->nodes++;
        lg__note_place(o, n);
}

static void fused_begin(lg__observer *o, const lg__vjp *v)
{
        (void)v;
        begin((record *)o);
}

static void fused_end(lg__observer *o, const lg__vjp *v, bool ok)
{
        record *r = (record *)o;
        r->fused++;
        r->open--;
        r->wrong = r->wrong || !ok || v->op != lg__derived_now(v->ctx);
}

static void enter(lg__observer *o, const lg__frame *f)
{
        record *r = (record *)o;
        r->entered++;
        begin(r);
        r->wrong = r->wrong || !!f->module + !!f->node + !!f->label != 1;
}

static void leave(lg__observer *o, const lg__frame *f)
{
        (void)f;
        ((record *)o)->left++;
        ((record *)o)->open--;
}

static void copied(lg__observer *o, const lg__device *to, const lg__device *from, size_t bytes)
{
        (void)to, (void)from;
        ((record *)o)->copied += (int64_t)bytes;
}

static void allocated(lg__observer *o, const lg__device *d, int64_t bytes)
{
        (void)d;
        ((record *)o)->allocated += bytes;
}

static record everything(void)
{
        return (record){.observer = {NULL, op_begin, op_end, recorded, fused_begin, fused_end, enter, leave, NULL,
                                     copied, allocated}};
}

static lg_tensor *loss_of(lg_module *net, lg_tensor *x, lg_tensor *y)
{
        return lg_cross_entropy(lg_forward(net, x), y);
}

TEST_CASE(pairs)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 6, 8), lg_nn_relu(c), lg_nn_linear(c, 8, 3));
        record r = everything();
        lg__observe(c, &r.observer);
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = lg_from(c, ((float[24]){1, -2, 3}), LG_SHAPE(4, 6));
        lg_tensor *y = lg_from(c, ((int64_t[]){0, 1, 2, 1}), LG_SHAPE(4));
        lg_backward(loss_of(net, x, y));
        drop(lg_cumprod(x, 1));
        assert_ok(c);
        assert_int_equal(r.copied, 24 * 4 + 4 * 8);
        assert_true(r.begun > 10 && r.begun == r.ended && r.failed == 0);
        assert_true(r.composites >= 1);
        assert_int_equal(r.nodes, 4); /* two products, the loss, and a view between them */
        assert_true(r.fused >= 1);    /* of the loss */
        /* Sequential and the two Linears; four derivatives; backward and two copies from the host */
        assert_int_equal(r.entered, 3 + 4 + 3);
        assert_int_equal(r.left, r.entered);
        assert_true(r.open == 0 && r.deepest >= 3 && !r.wrong);
        assert_true(r.allocated > 0);
        lg_zero_grad(lg_sgd(c, lg_parameters(net), 0.1));
        lg_scope_end(c, scope);
        for (int64_t i = 0; i < lg_parameters(net).count; i++)
                assert_true(lg_clear_grad(lg_parameters(net).items[i]));
        assert_int_equal(r.allocated, 0);
        lg__unobserve(c, &r.observer);
        int before = r.begun;
        drop(lg_relu(lg_ones(c, LG_SHAPE(2))));
        assert_int_equal(r.begun, before);
        lg_close(c);
}

/* ---- failures ---- */

TEST_CASE(pairs_where_something_fails)
{
        lg_ctx *c = open_ctx();
        record r = everything();
        lg__observe(c, &r.observer);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 6, 8), lg_nn_linear(c, 7, 3));
        assert_null(lg_forward(net, lg_ones(c, LG_SHAPE(4, 6))));
        assert_int_equal(r.begun, r.ended);
        assert_int_equal(r.entered, r.left);
        assert_true(r.open == 0 && !r.wrong);
        lg_clear_error(c);
        lg__unobserve(c, &r.observer);
        lg_close(c);
}

/* An observer's error is that of the op, and nothing of its results stays. */
static void refuse(lg__observer *o, const lg__call *call, bool ok)
{
        (void)o, (void)ok;
        lg__fail(call->ctx, LG_ERR_STATE, "the observer does not like %s", call->op->name);
}

TEST_CASE(an_error_of_an_observer)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_ones(c, LG_SHAPE(3), .requires_grad = true);
        lg__observer o = {.op_end = refuse};
        int64_t live = lg_live_tensors(c);
        lg__observe(c, &o);
        assert_null(lg_exp(x));
        assert_non_null(strstr(lg_error(c), "does not like exp"));
        assert_int_equal(lg_live_tensors(c), live);
        lg__unobserve(c, &o);
        lg_clear_error(c);
        assert_non_null(lg_exp(x));
        lg_close(c);
}

/* ---- the same kernels and the same bits ---- */

/* How often each kernel ran, in the table's order. */
#define ELEMENTWISE 64 /* counted together */
static int counts[ELEMENTWISE + 1];
static const lg_kernels *real;
enum {
#define KERNEL(name, args) KERNEL_##name,
#include "../kernels/kernels.def"
#undef KERNEL
        KERNEL_COUNT
};
_Static_assert(KERNEL_COUNT <= ELEMENTWISE, "more kernels than counters");
#define KERNEL(name, args)                                                                                             \
        static bool count_##name(lg_queue *q, const args *a)                                                           \
        {                                                                                                              \
                counts[KERNEL_##name]++;                                                                               \
                return real->name(q, a);                                                                               \
        }
#include "../kernels/kernels.def"
#undef KERNEL

#define COUNT_ONE(id)                                                                                                  \
        static bool count_pointwise_##id(lg_queue *q, const lg_pointwise_args *a)                                      \
        {                                                                                                              \
                counts[ELEMENTWISE]++;                                                                                 \
                return real->pointwise[id](q, a);                                                                      \
        }
COUNT_ONE(LG_PW_add)
COUNT_ONE(LG_PW_mul)
COUNT_ONE(LG_PW_relu)
COUNT_ONE(LG_PW_relu_da)
COUNT_ONE(LG_PW_tanh)
COUNT_ONE(LG_PW_tanh_da)

/* Gives the device of a context a table that counts. */
static void count_kernels(lg_ctx *c, lg_device_api *api, lg_kernels *table)
{
        lg__device *d = lg__device_get(c, test_device(c));
        real = d->api->kernels;
        *api = *d->api;
        *table = *real;
#define KERNEL(name, args) table->name = count_##name;
#include "../kernels/kernels.def"
#undef KERNEL
#define USE(id) table->pointwise[id] = count_pointwise_##id;
        USE(LG_PW_add)
        USE(LG_PW_mul)
        USE(LG_PW_relu)
        USE(LG_PW_relu_da)
        USE(LG_PW_tanh)
        USE(LG_PW_tanh_da)
        api->kernels = table;
        d->api = api;
        memset(counts, 0, sizeof counts);
}

static void ignore(const lg_trace_record *r, void *user)
{
        (void)r, (void)user;
}

typedef struct outcome {
        int counts[ELEMENTWISE + 1];
        float losses[4], weight[24];
} outcome;

/* Four steps of a network with what libgrad fuses, and what each kernel was called. */
static void train(outcome *ret, bool with_observer, bool with_trace, bool with_profiler)
{
        lg_ctx *c = open_ctx();
        lg_device_api api;
        lg_kernels table;
        const lg_device_api *was = lg__device_get(c, test_device(c))->api;
        lg_seed(c, 7);
        lg_module *net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                                          lg_nn_max_pool2d(c, 2), lg_nn_flatten(c), lg_nn_linear(c, 16, 6),
                                          lg_nn_relu(c), lg_nn_dropout(c, 0.3), lg_nn_linear(c, 6, 4), lg_nn_tanh(c));
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.01);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 1, 6, 6));
        lg_tensor *y = lg_from(c, ((int64_t[]){0, 1, 2, 3, 1}), LG_SHAPE(5));
        record r = everything();
        if (with_observer)
                lg__observe(c, &r.observer);
        if (with_trace)
                assert_true(lg_set_trace(c, ignore));
        lg_profiler *p = with_profiler ? lg_profiler_open(c) : NULL;
        assert_true(p || !with_profiler);
        count_kernels(c, &api, &table);
        for (int i = 0; i < 4; i++) {
                lg_tensor *loss = loss_of(net, x, y);
                lg_zero_grad(opt);
                lg_backward(loss);
                lg_step(opt);
                ret->losses[i] = (float)lg_item(loss);
        }
        memcpy(ret->counts, counts, sizeof counts);
        assert_true(lg_read(lg_parameter(net, "8.weight"), ret->weight, LG_F32, sizeof ret->weight));
        assert_ok(c);
        assert_true(!with_observer || (r.begun > 40 && r.begun == r.ended && !r.wrong));
        lg__device_get(c, test_device(c))->api = was;
        assert_true(!p || lg_profiler_close(p));
        if (with_observer)
                lg__unobserve(c, &r.observer);
        lg_close(c);
}

TEST_CASE(nothing_changes)
{
        outcome alone, seen, traced, profiled;
        train(&alone, false, false, false);
        train(&seen, true, false, false);
        train(&traced, false, true, false);
        train(&profiled, false, false, true);
        int kernels = 0;
        for (int i = 0; i <= ELEMENTWISE; i++) {
                kernels += alone.counts[i];
                assert_int_equal(seen.counts[i], alone.counts[i]);
                assert_int_equal(traced.counts[i], alone.counts[i]);
                assert_int_equal(profiled.counts[i], alone.counts[i]);
        }
        assert_true(kernels > 80 && alone.counts[KERNEL_gemm] > 0 && alone.counts[ELEMENTWISE] > 0);
        assert_memory_equal(seen.losses, alone.losses, sizeof alone.losses);
        assert_memory_equal(seen.weight, alone.weight, sizeof alone.weight);
        assert_memory_equal(traced.losses, alone.losses, sizeof alone.losses);
        assert_memory_equal(traced.weight, alone.weight, sizeof alone.weight);
        assert_memory_equal(profiled.losses, alone.losses, sizeof alone.losses);
        assert_memory_equal(profiled.weight, alone.weight, sizeof alone.weight);
}

/* ---- a trace that changes itself ---- */

static void end_both(const lg_trace_record *r, void *user)
{
        lg_ctx *c = user;
        (void)r;
        lg_set_anomaly(c, false);
        lg_set_trace(c, NULL);
}

TEST_CASE(observers_that_go_while_they_are_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_zeros(c, LG_SHAPE(2));
        assert_true(lg_set_trace(c, end_both, .user = c));
        assert_true(lg_set_anomaly(c, true));
        drop(lg_log(x)); /* nobody is left to complain */
        assert_ok(c);
        assert_false(lg_anomaly(c));
        assert_null(c->observers);
        lg_close(c);
}

/* ---- attributes as text ---- */

static void keep_text(const lg_trace_record *r, void *user)
{
        snprintf(user, 200, "%s: %s", r->op, r->attributes);
}

TEST_CASE(attributes_are_told)
{
        lg_ctx *c = open_ctx();
        char text[200] = "";
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        assert_true(lg_set_trace(c, keep_text, .user = text));
        drop(lg_softmax(x, -1));
        assert_string_equal(text, "softmax: dim 1");
        drop(lg_leaky_relu(x, 0.25));
        assert_string_equal(text, "leaky_relu: p0 0.25");
        drop(lg_relu(x));
        assert_string_equal(text, "relu: ");
        lg_close(c);
}
