/* calls_graph.c - calls of the graph: gradients, hooks, own ops, gradient checks, traces. */
#include "vm.h"

void call_requires_grad(vm *m)
{
        lg_tensor *t = tensor(m);
        switch (byte(m) % 4) {
        case 0:
                give(m, lg_retain_grad(t));
                return;
        case 1:
                check_done(m, lg_clear_grad(t));
                return;
        default:
                give(m, lg_set_requires_grad(t, flag(m)));
        }
}

void call_backward(vm *m)
{
        lg_tensor *t = tensor(m);
        if (flag(m)) {
                t = lg_sum(t);
                m->odd = m->odd || !t;
        }
        lg_backward_options o = *LG_OPTIONS(lg_backward_options, .grad = flag(m) ? maybe(m) : NULL);
        o.retain_graph = flag(m);
        o.create_graph = flag(m);
        check_done(m, lg_backward_with(t, HAND(m, o)));
}

void call_grad(vm *m)
{
        lg_tensor *outputs[4], *inputs[4], *grads[4], *result[4] = {NULL};
        lg_list of = list(m, outputs);
        lg_list by = list(m, inputs);
        lg_grad_options o = *LG_OPTIONS(lg_grad_options, .result = flag(m) ? result : NULL);
        if (flag(m)) {
                o.grads = list(m, grads);
        } else if (flag(m) && of.count) {
                outputs[0] = lg_sum(outputs[0]);
                of.count = 1;
        }
        o.retain_graph = flag(m);
        o.create_graph = flag(m);
        m->odd = true; /* no output may depend on the input */
        give(m, lg_grad_with(of, by, HAND(m, o)));
        for (int i = 0; i < by.count && o.result; i++)
                check_gradient(result[i], inputs[i]);
        for (int i = 0; i < 4; i++)
                give_read(m, result[i]);
}

static lg_tensor *sum_of_inputs(lg_ctx *c, lg_list in, void *user)
{
        lg_tensor *sum = in.count ? lg_tanh(lg_mul(in.items[0], in.items[in.count - 1])) : lg_ones(c, LG_SHAPE(2));
        return user && *(uint8_t *)user & 1 ? lg_sum(sum) : sum; /* options of an older program lack .user */
}

/* Runs of a recorder: three of the function, and then a recording. */
static void run_recorder(vm *m, lg_list in, uint8_t *b)
{
        lg_tensor *inputs[5];
        int64_t count = 0;
        lg_recorder_options o = *LG_OPTIONS(lg_recorder_options, .user = b, .verify_every = *b >> 6);
        lg_recorder *r = lg_recorder_new_with(m->now->ctx, sum_of_inputs, HAND(m, o));
        while (count < in.count && count < 4) {
                inputs[count] = in.items[count];
                count++;
        }
        inputs[count] = LG_END;
        for (int i = 0; i < 5; i++)
                give(m, lg_recorder_run_list(r, inputs));
        lg_recorder_free(r);
}

void call_derivative(vm *m)
{
        lg_tensor *room[2][4], *result[4] = {NULL};
        lg_list in = list(m, room[0]), of = list(m, room[1]);
        lg_ctx *c = m->now->ctx;
        uint8_t b = byte(m);
        lg_function_options o = *LG_OPTIONS(lg_function_options, .user = &b, .result = b & 2 ? result : NULL);
        o.create_graph = b & 4;
        m->odd = true; /* a list of nothing */
        switch (byte(m) % 6) {
        case 0:
                give(m, lg_vjp_with(c, sum_of_inputs, in, maybe(m), HAND(m, o)));
                break;
        case 1:
                give(m, lg_jvp_with(c, sum_of_inputs, in, of, HAND(m, o)));
                break;
        case 2:
                give(m, lg_jacobian_with(c, sum_of_inputs, in, HAND(m, o)));
                break;
        case 3:
                give(m, lg_hessian_with(c, sum_of_inputs, tensor(m), HAND(m, o)));
                break;
        case 4:
                give(m, lg_hvp_with(c, sum_of_inputs, in, of, HAND(m, o)));
                break;
        default:
                give(m, lg_grad_per_sample_with(c, sum_of_inputs, in, of, HAND(m, o)));
        }
        for (int i = 0; i < 4; i++)
                give_read(m, result[i]);
        if (b & 8)
                run_recorder(m, in, &b);
}

void call_grad_of(vm *m)
{
        lg_tensor *t = tensor(m);
        check_gradient(lg_grad_of(t), t);
        give_read(m, lg_grad_of(t));
}

void call_grad_mode(vm *m)
{
        lg_set_grad_mode(m->now->ctx, flag(m));
}

void call_detach(vm *m)
{
        give(m, lg_detach(tensor(m)));
}

/* What a callback returns: what is right, or something else. */
static lg_tensor *answer(vm *m, lg_tensor *right)
{
        switch (byte(m) % 8) {
        case 1:
                return NULL;
        case 2:
                return tensor(m);
        case 3:
                return lg_full(m->now->ctx, lg_shape_of(right), 2);
        case 4:
                return lg_unsqueeze(right, 0);
        case 5:
                lg_free(right);
                return right;
        default:
                return right;
        }
}

static lg_tensor *on_grad(lg_tensor *grad, void *user)
{
        vm *m = user;
        mischief(m, lg_ctx_of(grad));
        lg_tensor *right = flag(m) ? lg_mul_scalar(grad, 2) : NULL;
        return right ? answer(m, right) : NULL;
}

void call_hook(vm *m)
{
        lg_tensor *t = tensor(m);
        check_done(m, lg_hook(t, byte(m) == 0xFF ? NULL : on_grad, m));
        if (flag(m))
                lg_unhook(t, on_grad, m);
}

static bool own_forward(lg_custom_call *k)
{
        vm *m = ((debt *)k->user)->m;
        mischief(m, k->ctx);
        for (int i = 0; i < k->out_count; i++)
                k->out[i] = answer(m, lg_mul_scalar(k->in[i % k->in_count], 2));
        uint8_t b = byte(m);
        if (b > 0xF0)
                lg_set_error(k->ctx, LG_ERR_STATE, "own forward");
        return b <= 0xF4;
}

static bool own_backward(lg_custom_call *k)
{
        vm *m = ((debt *)k->user)->m;
        mischief(m, k->ctx);
        for (int i = 0; i < k->in_count; i++)
                if (k->needs[i] && k->grad_out[i % k->out_count])
                        k->grad_in[i] = answer(m, lg_mul_scalar(k->grad_out[i % k->out_count], 2));
        uint8_t b = byte(m);
        if (b > 0xF0)
                lg_set_error(k->ctx, LG_ERR_STATE, "own backward");
        return b <= 0xF4;
}

void call_custom(vm *m)
{
        lg_tensor *inputs[4], *out[LG_CUSTOM_MAX] = {NULL};
        lg_list in = list(m, inputs);
        uint8_t b = byte(m);
        char *name = strdup("own"); /* a copy is kept */
        debt *d = owe(m, 0);
        lg_custom_options o = *LG_OPTIONS(lg_custom_options, .forward = own_forward, .backward = own_backward,
                                          .user = d, .release = release, .out = out);
        o.out_count = b < 0xF0 ? 1 + b % 3 : b % 10;
        lg_tensor *y = lg_custom_with(m->now->ctx, name, in, HAND_WITH(m, o, release));
        if (m->unread)
                forgive(d);
        free(name);
        FUZZ_CHECK(y == out[0] || m->odd || !y, "the first output is another");
        give(m, y);
        for (int i = 1; y && i < LG_CUSTOM_MAX; i++)
                give_read(m, out[i]);
}

void call_graph_dot(vm *m)
{
        lg_tensor *t = tensor(m);
        lg_graph_dot_options o = *LG_OPTIONS(lg_graph_dot_options, .module = flag(m) ? module(m) : NULL);
        check_done(m, lg_graph_dot_with(m->nowhere, t, HAND(m, o)));
}

static lg_tensor *checked(lg_ctx *c, lg_list in, void *user)
{
        vm *m = user;
        lg_tensor *x = in.items[0];
        mischief(m, c);
        switch (byte(m) % 5) {
        case 0:
                return lg_sum(lg_square(x));
        case 1:
                return lg_exp(x);
        case 2:
                return lg_mul(x, in.items[in.count - 1]);
        case 3:
                return tensor(m);
        default:
                return NULL;
        }
}

void call_gradcheck(vm *m)
{
        lg_check_report report;
        lg_tensor *room[4];
        lg_list in;
        lg_check_options o =
                *LG_OPTIONS(lg_check_options, .user = m, .max_elements = 2, .report = flag(m) ? &report : NULL);
        if (flag(m)) {
                room[0] = lg_uniform(m->now->ctx, 1, 2, LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true);
                in = LG_LIST_OF(1, room);
        } else {
                in = list(m, room);
        }
        if (flag(m)) {
                o.eps = number(m);
                o.tolerance = number(m);
        }
        if (flag(m))
                lg_gradcheck_with(m->now->ctx, checked, in, sizeof report, HAND_WITH(m, o, max_elements));
        else
                lg_gradgradcheck_with(m->now->ctx, checked, in, sizeof report, HAND_WITH(m, o, max_elements));
}

static void on_op(const lg_trace_record *r, void *user)
{
        vm *m = user;
        FUZZ_CHECK(r->op && *r->op && r->module && r->in_count >= 0 && r->in_count <= LG_TRACE_MAX &&
                           r->out_count >= 0 && r->out_count <= LG_TRACE_MAX && r->bytes_used >= 0,
                   "a trace record");
        mischief(m, NULL);
        lg_trace_print(r, m->nowhere);
}

void call_trace(vm *m)
{
        lg_trace_fn *fn = flag(m) ? on_op : NULL;
        lg_trace_options o = *LG_OPTIONS(lg_trace_options, .user = m, .synchronize = flag(m));
        check_done(m, lg_set_trace_with(m->now->ctx, fn, HAND_WITH(m, o, user)));
}

void call_anomaly(vm *m)
{
        bool on = flag(m);
        lg_anomaly_options o = *LG_OPTIONS(lg_anomaly_options, .nan_only = flag(m));
        check_done(m, lg_set_anomaly_with(m->now->ctx, on, HAND(m, o)));
}

void call_profile(vm *m)
{
        side *s = m->now;
        lg_profiler_options o = *LG_OPTIONS(lg_profiler_options, .skip = small(m) - 1, .steps = small(m) - 1);
        lg_profiler_print_options few = *LG_OPTIONS(lg_profiler_print_options, .rows = dim(m));
        switch (byte(m) % 6) {
        case 0: {
                lg_profiler *p = lg_profiler_open_with(s->ctx, HAND(m, o));
                check_done(m, p != NULL);
                s->profiler = p ? p : s->profiler;
                break;
        }
        case 1:
                s->region = lg_region_begin(s->ctx, flag(m) ? "one" : "another");
                break;
        case 2:
                lg_region_end(s->ctx, s->region - flag(m));
                break;
        case 3:
                check_done(m, !s->profiler || lg_profiler_print_with(m->nowhere, s->profiler, HAND(m, few)));
                break;
        case 4:
                check_done(m, !s->profiler || lg_profiler_close(s->profiler));
                s->profiler = NULL;
                break;
        default:
                check_done(m, !s->profiler || lg_profiler_step(s->profiler));
        }
}
