/* test_remake.c - large results of activations that only derivatives wait for: their memory is given back, and a
 * backward makes them again, with the same bits.
 */
#include "failing.h"

enum { ROWS = 512, WIDTH = 256 }; /* 512 KiB of f32 */

typedef lg_tensor *activation(lg_tensor *x);

static lg_tensor *leaky(lg_tensor *x)
{
        return lg_elu(x, 0.7);
}

static activation *const activations[] = {lg_gelu, lg_silu, lg_sin, leaky};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static lg_tensor *make(lg_ctx *c, lg_dtype dtype)
{
        return lg_set_requires_grad(lg_cast(lg_normal(c, 0, 1, LG_SHAPE(ROWS, WIDTH)), dtype), true);
}

static int64_t used(lg_ctx *c)
{
        return lg_memory_stats(c, lg_default_device(c)).used;
}

/* The sum of (f(2 x)^T w)^2, of which nothing but the result is held, or all. */
static lg_tensor *loss_of(activation *f, lg_tensor *x, lg_tensor *w, bool holds)
{
        lg_tensor *h = lg_mul_scalar(x, 2), *y = f(h), *turned = lg_transpose(y, 0, 1), *z = lg_matmul(turned, w);
        lg_tensor *loss = lg_sum(lg_square(z));
        lg_tensor *const all[] = {h, y, turned, z};
        for (size_t i = 0; i < sizeof all / sizeof *all && !holds; i++)
                lg_free(all[i]);
        return loss;
}

/* Both gradients of the loss; of a second order, those of the sum of the first ones' squares. */
static void gradients(lg_ctx *c, activation *f, lg_dtype dtype, bool second, bool holds, double *out)
{
        lg_scope scope = lg_scope_begin(c);
        lg_seed(c, 7);
        lg_tensor *x = make(c, dtype), *w = lg_cast(lg_normal(c, 0, 1, LG_SHAPE(ROWS, 3)), dtype), *g[2];
        lg_set_requires_grad(w, true);
        lg_tensor *loss = loss_of(f, x, w, holds);
        drop(lg_grad(LG_LIST(loss), LG_LIST(x, w), .create_graph = second, .result = g));
        if (second) {
                loss = lg_add(lg_sum(lg_square(g[0])), lg_sum(lg_square(g[1])));
                drop(lg_grad(LG_LIST(loss), LG_LIST(x, w), .result = g));
        }
        assert_ok(c);
        read_all(g[0], out, ROWS * WIDTH);
        read_all(g[1], out + ROWS * WIDTH, ROWS * 3);
        lg_scope_end(c, scope);
}

TEST_CASE(the_gradients_are_the_same_bits)
{
        enum { COUNT = ROWS * (WIDTH + 3), CASES = 3 };
        static const struct {
                lg_dtype dtype;
                bool second;
        } cases[CASES] = {{LG_F32, false}, {LG_BF16, false}, {LG_F64, true}};
        lg_ctx *c = open_ctx();
        double *held = malloc(COUNT * sizeof *held), *remade = malloc(COUNT * sizeof *remade);
        assert_true(held && remade);
        for (int i = 0; i < ACTIVATIONS * CASES; i++) {
                activation *f = activations[i / CASES];
                gradients(c, f, cases[i % CASES].dtype, cases[i % CASES].second, true, held);
                gradients(c, f, cases[i % CASES].dtype, cases[i % CASES].second, false, remade);
                assert_memory_equal(held, remade, COUNT * sizeof *held);
        }
        free(held);
        free(remade);
        lg_close(c);
}

static const int64_t bytes = (int64_t)ROWS * WIDTH * 4, little = (int64_t)ROWS * WIDTH * 4 / 8;

/* f(x) w, which nothing but a derivative waits for, or less; and what it uses. */
static lg_tensor *product(activation *f, lg_tensor *x, lg_tensor *w, int64_t *ret_used)
{
        lg_ctx *c = lg_ctx_of(x);
        const int64_t before = used(c);
        lg_tensor *y = f(x), *z = lg_matmul(y, w);
        lg_free(y);
        *ret_used = used(c) - before;
        assert_ok(c);
        return z;
}

TEST_CASE(their_memory_is_given_back)
{
        int64_t more;
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *ones = lg_ones(c, LG_SHAPE(WIDTH, 1));
        lg_tensor *w = lg_set_requires_grad(lg_copy(ones, LG_NO_DEVICE), true);
        drop(product(lg_gelu, x, w, &more));
        assert_true(more < little);
        drop(product(lg_tanh, x, w, &more)); /* whose own derivative reads the result */
        assert_true(more >= bytes);
        drop(product(lg_gelu, lg_detach(x), w, &more)); /* not recorded: its input is not kept */
        assert_true(more >= bytes);
        lg_tensor *few = lg_set_requires_grad(lg_ones(c, LG_SHAPE(16, WIDTH)), true);
        drop(product(lg_gelu, few, w, &more)); /* not worth a pass */
        assert_true(more >= 16 * WIDTH * 4);
        lg_close(c);
}

TEST_CASE(a_view_holds_them)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *w = lg_set_requires_grad(lg_ones(c, LG_SHAPE(WIDTH, 1)), true);
        const int64_t before = used(c);
        lg_tensor *y = lg_gelu(x), *view = lg_detach(lg_select(y, 0, ROWS - 1)), *z = lg_matmul(y, w);
        lg_free(y);
        assert_true(used(c) - before >= bytes);
        const double last = lg_item(lg_select(view, 0, WIDTH - 1));
        lg_free(view);
        assert_true(used(c) - before >= bytes); /* the one that was selected first */
        drop(z);
        assert_near(last, lg_item(lg_select(lg_select(lg_gelu(x), 0, ROWS - 1), 0, WIDTH - 1)), 0);
        lg_close(c);
}

static double furthest(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_amax(lg_abs(lg_sub(a, b))));
}

/* A result that the program keeps does not keep what it was made of. */
TEST_CASE(results_that_are_kept)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *h = lg_mul_scalar(x, 2), *y = lg_gelu(h), *loss = lg_sum(lg_square(y));
        const int64_t both = used(c);
        lg_free(h);
        assert_true(used(c) == both);
        lg_backward(loss);
        lg_clear_grad(x);
        assert_true(used(c) < both - bytes / 2);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(a_graph_is_used_twice)
{
        int64_t more;
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *w = lg_set_requires_grad(lg_ones(c, LG_SHAPE(WIDTH, 1)), true);
        lg_tensor *sum = lg_sum(product(lg_gelu, x, w, &more));
        lg_backward(sum, .retain_graph = true);
        lg_tensor *once = lg_copy(lg_grad_of(w), LG_NO_DEVICE);
        lg_backward(sum);
        assert_ok(c);
        assert_near(furthest(lg_grad_of(w), lg_mul_scalar(once, 2)), 0, 0);
        lg_tensor *columns = lg_sum(lg_gelu(x), .dims = LG_DIMS(0));
        assert_near(furthest(lg_reshape(once, LG_SHAPE(WIDTH)), columns), 0, 1e-3);
        lg_close(c);
}

/* Of activations on each other, only the inputs of the others are kept. */
TEST_CASE(chains_end)
{
        enum { LONG = 40 };
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *y = x, *first = NULL;
        const int64_t before = used(c);
        for (int i = 0; i < LONG; i++) {
                lg_tensor *next = lg_silu(y);
                if (y != x)
                        lg_free(y);
                y = next;
        }
        lg_tensor *squares = lg_square(y), *loss = lg_sum(squares);
        lg_free(y);
        lg_free(squares);
        assert_true(used(c) - before >= (LONG - 1) * bytes);
        first = lg_grad(LG_LIST(loss), LG_LIST(x));
        assert_ok(c);
        assert_true(isfinite(lg_item(lg_sum(first))));
        lg_free(first);
        lg_free(loss);
        assert_true(used(c) - before < little);
        lg_close(c);
}

TEST_CASE(changes_in_place_are_seen)
{
        int64_t more;
        lg_ctx *c = open_ctx();
        lg_tensor *x = make(c, LG_F32), *w = lg_set_requires_grad(lg_ones(c, LG_SHAPE(WIDTH, 1)), true);
        lg_tensor *h = lg_mul_scalar(x, 2), *z = product(lg_gelu, h, w, &more);
        lg_fill_(lg_detach(h), 1);
        drop(lg_grad(LG_LIST(lg_sum(z)), LG_LIST(w)));
        assert_error(c, LG_ERR_STATE,
                     "gelu saved x, a f32 tensor of shape (512, 256), from which its result is made again");
        /* What was changed before it was saved is not what the recipe makes. */
        h = lg_mul_scalar(x, 2);
        lg_tensor *y = lg_gelu(h), *same = lg_detach(y);
        lg_fill_(same, 3);
        z = lg_matmul(y, w);
        lg_free(y);
        lg_free(same);
        assert_near(lg_item(lg_amax(lg_grad(LG_LIST(lg_sum(z)), LG_LIST(w)))), 3 * ROWS, 0);
        lg_close(c);
}

TEST_CASE(without_memory_there_is_an_error)
{
        int64_t more;
        lg_ctx *c = open_ctx();
        const lg_device d = lg_default_device(c);
        lg_tensor *x = make(c, LG_F32), *w = lg_set_requires_grad(lg_ones(c, LG_SHAPE(WIDTH, 1)), true);
        lg_tensor *sum = lg_sum(product(lg_gelu, x, w, &more));
        lg_empty_cache(c);
        lg_set_memory_limit(c, d, lg_memory_stats(c, d).used + little);
        lg_backward(sum, .retain_graph = true);
        assert_int_equal(lg_error_code_of(c), LG_ERR_MEMORY);
        lg_clear_error(c);
        lg_set_memory_limit(c, d, 0);
        lg_backward(sum);
        assert_ok(c);
        lg_close(c);
}

static lg_module *network(lg_ctx *c)
{
        lg_module *m =
                lg_nn_sequential(c, lg_nn_linear(c, 8, WIDTH), lg_nn_gelu(c), lg_nn_silu(c), lg_nn_linear(c, WIDTH, 1));
        lg_module_to(m, lg_default_device(c));
        return m;
}

static lg_tensor *step(lg_ctx *c, void *net)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(ROWS, 8)), *y = lg_forward(net, x), *loss = lg_sum(y);
        bool ok = lg_backward(loss);
        lg_free(x);
        lg_free(y);
        if (ok)
                return loss;
        lg_free(loss);
        return NULL;
}

TEST_CASE(every_allocation_fails)
{
        fail_each_of_step(step, network);
}
