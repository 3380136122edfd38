/* test_faults.c - every single allocation fails once, and from there on: an error, no leak, nothing changed, no bit
 * lost.
 *
 * A training step is tried in three states: cold (its first step), emptied (a step, then lg_empty_cache) and warm. Each
 * try has a context of its own and is compared with one that was left undisturbed.
 */
#include "failing.h"

typedef enum start { COLD, EMPTIED, WARM, STARTS } start;
static const char *const start_names[] = {"cold", "emptied", "warm"};

static lg_ctx *open_faulty(failing *f)
{
        lg_ctx *c = lg_open(.threads = 1, .seed = 11, FAILING(f));
        lg_set_deterministic(c, true); /* runs are compared bit by bit */
        const char *name = getenv("LG_TEST_DEVICE");
        lg_set_default_device(c, lg_parse_device(c, name ? name : "cpu"));
        return c;
}

/* ---- a small training ---- */

typedef enum kind { MLP, CNN, KINDS } kind;
static const char *const kind_names[] = {"mlp", "cnn"};
#define PARAMETERS 512 /* at most */

typedef struct training {
        failing f;
        kind kind;
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_tensor *x, *y;
        int64_t in_step; /* allocations of the last step */
} training;

static lg_module *network(lg_ctx *c, kind k)
{
        if (k == MLP)
                return lg_nn_sequential(c, lg_nn_flatten(c), lg_nn_linear(c, 36, 8), lg_nn_relu(c),
                                        lg_nn_linear(c, 8, 3));
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 4, 3, .padding = 1), lg_nn_batch_norm2d(c, 4), lg_nn_relu(c),
                                lg_nn_max_pool2d(c, 2), lg_nn_residual(c, lg_nn_conv2d(c, 4, 4, 3, .padding = 1)),
                                lg_nn_avg_pool2d(c, 3), lg_nn_flatten(c), lg_nn_dropout(c, 0.3), lg_nn_linear(c, 4, 3));
}

static void begin(training *t, kind k)
{
        *t = (training){.kind = k};
        lg_ctx *c = t->c = open_faulty(&t->f);
        assert_non_null(c);
        t->net = network(c, k);
        lg_module_to(t->net, lg_default_device(c));
        t->opt = lg_adam(c, lg_parameters(t->net), 0.01);
        t->x = lg_normal(c, 0, 1, LG_SHAPE(5, 1, 6, 6));
        t->y = lg_from(c, ((int64_t[]){0, 1, 2, 1, 0}), LG_SHAPE(5), .dtype = LG_I64);
        assert_ok(c);
}

static bool step(training *t)
{
        lg_ctx *c = t->c;
        lg_scope s = lg_scope_begin(c);
        lg_tensor *noisy = lg_add(t->x, lg_normal(c, 0, 0.1, LG_SHAPE(5, 1, 6, 6)));
        lg_tensor *loss = lg_cross_entropy(lg_forward(t->net, noisy), t->y);
        lg_zero_grad(t->opt);
        lg_backward(loss);
        lg_item(loss); /* waits: what fails must fail before the parameters change */
        bool ok = lg_step(t->opt);
        t->in_step = t->f.calls;
        t->f.fail_at = 0;
        lg_scope_end(c, s);
        return ok && !lg_error(c);
}

static void read_parameters(training *t, float out[PARAMETERS])
{
        lg_list p = lg_parameters(t->net);
        size_t at = 0;
        memset(out, 0, PARAMETERS * sizeof *out);
        for (int64_t i = 0; i < p.count; i++) {
                size_t n = (size_t)lg_numel(p.items[i]);
                assert_true(at + n <= PARAMETERS);
                assert_true(lg_read(p.items[i], out + at, LG_F32, n * sizeof *out));
                at += n;
        }
        assert_int_equal(at, lg_parameter_numel(t->net));
}

static int64_t used(const training *t)
{
        lg_device d = lg_set_default_device(t->c, LG_NO_DEVICE);
        int64_t n = lg_memory_stats(t->c, lg_cpu()).used;
        return d.type == LG_DEVICE_CPU ? n : n + lg_memory_stats(t->c, d).used;
}

static void end(training *t)
{
        lg_close(t->c);
        assert_int_equal(t->f.bytes, 0);
        assert_int_equal(t->f.allocs, t->f.frees);
}

static void prepare(training *t, kind k, start from)
{
        begin(t, k);
        if (from != COLD)
                assert_true(step(t));
        if (from == EMPTIED)
                lg_empty_cache(t->c);
        for (int i = 0; i < 60 && from == WARM; i++) /* records are used again only after a while */
                assert_true(step(t));
}

/* What a run without faults gives: after the step in question, and after two more. */
typedef struct outcome {
        float after[PARAMETERS], later[PARAMETERS];
        int64_t live, used, allocs;
} outcome;

static outcome undisturbed(kind k, start from)
{
        training t;
        outcome o;
        prepare(&t, k, from);
        arm(&t.f, 0, false);
        assert_true(step(&t));
        o.allocs = t.in_step;
        read_parameters(&t, o.after);
        o.live = lg_live_tensors(t.c);
        o.used = used(&t);
        assert_true(step(&t) && step(&t));
        read_parameters(&t, o.later);
        end(&t);
        return o;
}

static void assert_same(const float *a, const float *b, const char *what, start from, int64_t n, bool only)
{
        if (memcmp(a, b, PARAMETERS * sizeof *a))
                fail_msg("%s, %s allocation %lld%s: parameters are not those of the undisturbed run", what,
                         start_names[from], (long long)n, only ? " only" : "");
}

/* Whether the n-th allocation was reached. */
static bool try_fault(kind k, start from, const outcome *o, int64_t n, bool only)
{
        training t;
        float before[PARAMETERS], now[PARAMETERS];
        prepare(&t, k, from);
        read_parameters(&t, before);
        lg_random_state random = lg_random_state_of(t.c);
        arm(&t.f, n, only);
        bool ok = step(&t), reached = t.in_step >= n;
        if (!ok) {
                assert_true(reached);
                assert_int_equal(lg_error_code_of(t.c), LG_ERR_MEMORY);
                lg_clear_error(t.c);
                read_parameters(&t, now);
                assert_same(before, now, "after the failure", from, n, only);
                assert_true(lg_live_tensors(t.c) <= o->live);
                assert_true(used(&t) <= o->used);
                lg_set_random_state(t.c, random);
                if (!step(&t))
                        fail_msg("the replay after allocation %lld: %s", (long long)n, lg_error(t.c));
        }
        read_parameters(&t, now);
        assert_same(o->after, now, "the step", from, n, only);
        assert_int_equal(lg_live_tensors(t.c), o->live);
        assert_int_equal(used(&t), o->used);
        assert_true(step(&t) && step(&t)); /* the optimiser's state was right, too */
        read_parameters(&t, now);
        assert_same(o->later, now, "two steps later", from, n, only);
        end(&t);
        return reached;
}

static void every_allocation_of_a_step_of(kind k)
{
        for (int from = 0; from < STARTS; from++) {
                outcome o = undisturbed(k, (start)from);
                for (int only = 0; only < 2; only++) {
                        int64_t n = 1;
                        while (try_fault(k, (start)from, &o, n, only))
                                n++;
                        assert_true(n > o.allocs);
                }
                print_message("%s, %s: %lld allocations\n", kind_names[k], start_names[from], (long long)o.allocs);
                assert_true(from == WARM ? o.allocs == 0 : o.allocs > 0);
        }
}

TEST_CASE(every_allocation_of_a_step)
{
        for (int k = 0; k < KINDS; k++)
                every_allocation_of_a_step_of((kind)k);
}

/* ---- everything else ---- */

static bool twice_forward(lg_custom_call *k)
{
        return (k->out[0] = lg_mul_scalar(k->in[0], 2)) != NULL;
}

static bool twice_backward(lg_custom_call *k)
{
        return (k->grad_in[0] = lg_mul_scalar(k->grad_out[0], 2)) != NULL;
}

static int custom_open;
static void custom_release(void *user)
{
        (void)user;
        custom_open--;
}

static lg_tensor *square_of_sum(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        return lg_square(lg_sum(in.items[0]));
}

static void graphs(lg_ctx *c, lg_tensor *x)
{
        lg_tensor *y = lg_softmax(lg_matmul(x, lg_transpose(x, 0, 1)), 1), *many[20];
        for (int i = 0; i < 20; i++)
                many[i] = lg_select(y, 0, i % 3);
        y = lg_cat((lg_list){20, many}, 0);
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = twice_forward, .backward = twice_backward,
                                           .release = custom_release);
        custom_open++;
        y = lg_sum(lg_custom_with(c, "twice", LG_LIST(y), &op));
        lg_retain_grad(y);
        lg_tensor *g = lg_grad(LG_LIST(y), LG_LIST(x), .create_graph = true);
        lg_backward(lg_var(lg_log_softmax(lg_add(g, x), 0)));
        lg_check_report r;
        lg_tensor *v = lg_uniform(c, 1, 2, LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true);
        lg_gradgradcheck(c, square_of_sum, LG_LIST(v), .report = &r);
}

/* With few channels and with many, in row-major order and channels-last. */
static void convolutions(lg_ctx *c)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(4, 3, 16, 16), .requires_grad = true);
        lg_tensor *w = lg_ones(c, LG_SHAPE(32, 3, 3, 3), .requires_grad = true);
        lg_tensor *v = lg_ones(c, LG_SHAPE(32, 32, 3, 3), .requires_grad = true), *b = lg_ones(c, LG_SHAPE(32));
        lg_tensor *y = lg_conv2d(lg_conv2d(x, w, b, .padding = 1), v, NULL, .padding = 1);
        lg_backward(lg_sum(lg_conv_transpose2d(y, w, NULL, .stride = 2)));
        drop(lg_conv1d(lg_ones(c, LG_SHAPE(2, 5), .dtype = LG_F16), lg_ones(c, LG_SHAPE(1, 2, 3), .dtype = LG_F64),
                       NULL));
}

static void values(lg_ctx *c, lg_tensor *x)
{
        float host[12], lent[4] = {1, 2, 3, 4};
        lg_tensor *p = lg_permutation(c, 500), *pieces[3];
        int64_t n = lg_split(p, 200, 0, pieces, 3);
        p = lg_flatten(lg_stack((lg_list){n ? 2 : 0, pieces}, 1), .end_dim = 1);
        drop(lg_index_add(lg_zeros(c, LG_SHAPE(500), .dtype = LG_F16), 0, p, lg_cast(p, LG_F16)));
        drop(lg_sum(lg_cast(lg_slice(p, 0, 0, LG_MAX, .step = 3), LG_F16)));
        drop(lg_neg(lg_to(lg_borrow(c, lent, NULL, NULL, LG_SHAPE(2, 2)), lg_device_of(x))));
        lg_read(lg_transpose(x, 0, 1), host, LG_F32, sizeof host);
        lg_tensor *d = lg_detach(x);
        lg_copy_(d, lg_argmax(d, .dims = LG_DIMS(0), .keep_dim = true));
        lg_write(lg_select(d, 1, 0), (double[]){1, 2, 3}, LG_F64, 24);
        FILE *f = tmpfile();
        if (f) {
                lg_print(f, p);
                lg_graph_dot(f, lg_exp(x));
                fclose(f);
        }
}

static void matrices(lg_ctx *c, lg_tensor *x)
{
        lg_tensor *a = lg_add(lg_matmul(x, lg_transpose(x, 0, 1)), lg_eye(c, 3, 3)), *p = NULL, *log = NULL;
        lg_tensor *l = lg_cholesky(a), *lu = lg_lu(a, .permutation = &p), *sign = lg_slogdet(a, &log);
        lg_tensor *y = lg_sum(lg_solve(a, lg_ones(c, LG_SHAPE(2, 3, 1))));
        y = lg_add(lg_add(y, lg_sum(lg_lu_solve(lu, p, l))), lg_add(lg_det(a), lg_sum(lg_inverse(a))));
        lg_backward(sign ? lg_add(y, log) : NULL);
        drop(lg_dist_rsample(lg_dist_multivariate_normal(lg_ones(c, LG_SHAPE(3)), .precision = a), LG_SHAPE(2)));
}

static void loaders(lg_ctx *c)
{
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(9, 4), .device = lg_cpu()),
                  *y = lg_arange(c, 0, 9, 1, .device = lg_cpu());
        lg_loader *l = lg_loader_open(c, lg_dataset_tensors(c, x, y, .scale = 2), 4, .shuffle = true);
        lg_module *net =
                lg_nn_sequential(c, lg_nn_linear(c, 4, 3), lg_nn_sequential(c, lg_nn_relu(c), lg_nn_flatten(c)));
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1, .momentum = 0.9);
        lg_module_to(net, lg_default_device(c));
        for (lg_batch b; lg_loader_next(l, &b);) {
                lg_backward(lg_sum(lg_forward(net, b.x)));
                lg_step(opt);
                lg_zero_grad(opt);
        }
        lg_parameter(net, "0.weight");
}

static bool everything(failing *f)
{
        lg_ctx *c = open_faulty(f);
        if (!c)
                return false;
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(3, 4), .requires_grad = true);
        graphs(c, x);
        convolutions(c);
        values(c, x);
        matrices(c, x);
        loaders(c);
        lg_empty_cache(c);
        drop(lg_sum(lg_exp(x)));
        bool ok = !lg_error(c);
        if (!ok && lg_error_code_of(c) != LG_ERR_MEMORY)
                fail_msg("allocation %lld: %s: %s", (long long)f->fail_at, lg_error_name(lg_error_code_of(c)),
                         lg_error(c));
        lg_close(c);
        return ok;
}

TEST_CASE(every_allocation_of_everything)
{
        failing f = {0};
        custom_open = 0;
        assert_true(everything(&f));
        int64_t all = f.calls;
        assert_int_equal(custom_open, 0);
        for (int only = 0; only < 2; only++)
                for (int64_t n = 1; n <= all; n++) {
                        f = (failing){0};
                        arm(&f, n, only);
                        bool ok = everything(&f);
                        if (f.bytes || f.allocs != f.frees || custom_open)
                                fail_msg("allocation %lld of %lld: %lld bytes are left, %d custom ops", (long long)n,
                                         (long long)all, (long long)f.bytes, custom_open);
                        if (ok && !only)
                                fail_msg("allocation %lld and all later ones failed, and nobody noticed", (long long)n);
                }
        print_message("%lld allocations\n", (long long)all);
}
