/* test_faults.c - memory that runs out at every possible place of a training step: an error or a recovery, nothing lost. */
#include "test.h"

/* Counts allocations; from the `fail_at`-th on (or only that one) it gives none. */
typedef struct memory {
        int64_t calls, fail_at, blocks;
        bool only_one;
} memory;

static void *hook_alloc(void *user, lg_ctx *c, lg_device d, size_t bytes)
{
        memory *m = user;
        m->calls++;
        if (m->fail_at && (m->only_one ? m->calls == m->fail_at : m->calls >= m->fail_at))
                return NULL;
        void *p = lg_system_alloc(c, d, bytes);
        m->blocks += p != NULL;
        return p;
}

static void hook_free(void *user, lg_ctx *c, lg_device d, void *p, size_t bytes)
{
        ((memory *)user)->blocks--;
        lg_system_free(c, d, p, bytes);
}

static lg_ctx *open_with(memory *m)
{
        return lg_open_with(.memory = {.alloc = hook_alloc, .free = hook_free, .user = m});
}

typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_loader *loader;
} run;

#define PARAMETERS (5 * 7 + 7 + 7 * 3 + 3)

static bool build(run *r)
{
        lg_ctx *c = r->c;
        r->net = lg_nn_sequential(c, lg_nn_linear(c, 5, 7), lg_nn_relu(c), lg_nn_linear(c, 7, 3));
        r->opt = lg_adam(c, lg_parameters(r->net), 0.05);
        lg_tensor *x = lg_uniform(c, -1, 1, LG_SHAPE(12, 5), .device = lg_cpu());
        lg_tensor *y = lg_from(c, ((int64_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}), LG_SHAPE(12), .dtype = LG_I64,
                               .device = lg_cpu());
        r->loader = lg_loader_open(c, lg_dataset_tensors(c, x, y), 4, .shuffle = true, .seed = 5);
        return !lg_error(c);
}

/* What a user does with a batch; the noise stands for all that draws random numbers. */
static bool train_on(run *r, lg_batch b)
{
        lg_tensor *noise = lg_uniform(r->c, 0.5, 1, lg_shape_of(b.x));
        lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, lg_mul(b.x, noise)), b.y);
        return lg_zero_grad(r->opt) && lg_backward(loss) && lg_step(r->opt);
}

static bool step(run *r)
{
        lg_batch b;
        return lg_loader_next(r->loader, &b) && train_on(r, b);
}

static void read_parameters(const run *r, float *out)
{
        lg_list p = lg_parameters(r->net);
        for (int64_t i = 0; i < p.count; i++) {
                size_t bytes = (size_t)lg_numel(p.items[i]) * sizeof *out;
                assert_true(lg_read(p.items[i], out, LG_F32, bytes));
                out += lg_numel(p.items[i]);
        }
}

/* A new run after one good step, so that the optimiser has its state. */
static void begin(run *r, memory *m, bool empty_cache)
{
        *m = (memory){0};
        r->c = open_with(m);
        assert_non_null(r->c);
        test_device(r->c);
        assert_true(build(r));
        if (empty_cache) {
                assert_true(step(r));
                lg_zero_grad(r->opt);
                lg_loader_restart(r->loader);
                lg_empty_cache(r->c);
        }
}

static void undisturbed(bool warm, float *out)
{
        run r;
        memory m;
        begin(&r, &m, warm);
        assert_true(step(&r));
        read_parameters(&r, out);
        lg_close(r.c);
        assert_int_equal(m.blocks, 0);
}

/* After a failure: nothing has changed, and the context is good again. */
static void recover(run *r, memory *m, const float *before, lg_random_state state)
{
        float after[PARAMETERS];
        m->fail_at = 0;
        assert_error(r->c, LG_ERR_MEMORY, "out of memory");
        read_parameters(r, after);
        assert_memory_equal(before, after, sizeof after);
        lg_set_random_state(r->c, state);
}

/* The n-th allocation of a step fails; what failed is done again, and the bits are those of the undisturbed run. Returns
 * whether the step asked so often. */
static bool disturbed(int64_t n, bool only_one, bool warm, const float *expected)
{
        float before[PARAMETERS], after[PARAMETERS];
        run r;
        memory m;
        lg_batch b;
        begin(&r, &m, warm);
        read_parameters(&r, before);
        int64_t live = lg_live_tensors(r.c);
        m = (memory){.blocks = m.blocks, .only_one = only_one, .fail_at = n};
        lg_random_state state = lg_get_random_state(r.c);
        bool next = lg_loader_next(r.loader, &b), ok = next && train_on(&r, b), reached = m.calls >= n;
        if (!next) {
                recover(&r, &m, before, state);
                assert_true(lg_loader_next(r.loader, &b));
        }
        if (!ok) {
                assert_true(reached);
                if (next)
                        recover(&r, &m, before, state);
                assert_true(train_on(&r, b));
        }
        m.fail_at = 0;
        assert_ok(r.c);
        read_parameters(&r, after);
        assert_memory_equal(expected, after, sizeof after);
        lg_zero_grad(r.opt);
        lg_loader_restart(r.loader);
        /* Cold, the optimiser's state is new: two tensors for each of four parameters. */
        assert_int_equal(lg_live_tensors(r.c), warm ? live : live + 8);
        lg_close(r.c);
        assert_int_equal(m.blocks, 0);
        return reached;
}

static void every_allocation_of_a_step(void **state)
{
        (void)state;
        for (int warm = 0; warm < 2; warm++) {
                float expected[PARAMETERS];
                undisturbed(warm, expected);
                for (int only_one = 0; only_one < 2; only_one++) {
                        int64_t n = 1;
                        while (disturbed(n, only_one, warm, expected))
                                n++;
                        print_message("%s cache, %s: %lld allocations\n", warm ? "emptied" : "cold",
                                      only_one ? "only the n-th fails" : "the n-th and all later fail", (long long)n - 1);
                        assert_true(n > 5);
                }
        }
}

/* Opening, building and closing, with the same faults. */
static void every_allocation_of_the_setup(void **state)
{
        (void)state;
        for (int only_one = 0; only_one < 2; only_one++) {
                bool reached = true;
                for (int64_t n = 1; reached; n++) {
                        memory m = {.fail_at = n, .only_one = only_one};
                        run r = {.c = open_with(&m)};
                        if (r.c && !build(&r) && lg_error_code_of(r.c) != LG_ERR_MEMORY)
                                fail_msg("allocation %lld: %s", (long long)n, lg_error(r.c));
                        reached = m.calls >= n;
                        lg_close(r.c);
                        assert_int_equal(m.blocks, 0);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_allocation_of_a_step),
                cmocka_unit_test(every_allocation_of_the_setup),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
