/* norms.c - lg_sync_batch_norm() beside batch norm of the whole batch in each process: norms, run by mpirun with
 * LIBGRAD_MPI, or alone. Ranks have from 0 to 4 of 7 samples. On the device that LG_TEST_DEVICE names. Prints "held" if
 * all did, else what did not.
 */
#include <math.h>
#include "rank.h"

enum { ROWS = 7, CHANNELS = 3 };

typedef struct norms {
        lg_module *own, *whole; /* of the ranks together, of this process alone */
        lg_dtype dtype;
        double tolerance;
        int64_t from, to; /* the rows of this rank */
} norms;

static lg_tensor *rows(const norms *n, lg_tensor *whole)
{
        return lg_slice(whole, 0, n->from, n->to);
}

static bool is_near(const norms *n, lg_tensor *a, lg_tensor *b)
{
        if (!a || !b || !lg_numel(a))
                return a && b;
        const double most = lg_item(lg_amax(lg_abs(b)));
        return lg_item(lg_amax(lg_abs(lg_sub(a, b)))) <= n->tolerance * (most + 1) && isfinite(most);
}

static lg_tensor *numbers(const norms *n, lg_shape s, double step)
{
        const double count = (double)lg_numel(lg_zeros(c, s));
        return lg_cast(lg_reshape(lg_sin(lg_mul_scalar(lg_arange(c, 1, count + 1, 1), step)), s), n->dtype);
}

/* From the loss of some rows: their derivatives, and those of a function of these derivatives. */
typedef struct derivatives {
        lg_tensor *x, *weight, *bias, *twice_x, *twice_weight;
} derivatives;

static derivatives derive(lg_module *m, lg_tensor *y, lg_tensor *x, lg_tensor *slope, lg_tensor *bend)
{
        lg_tensor *w = lg_parameter(m, "0.weight"), *b = lg_parameter(m, "0.bias");
        lg_tensor *loss = lg_sum(lg_mul(y, slope));
        lg_tensor *once[3] = {NULL}, *twice[2] = {NULL};
        lg_grad(LG_LIST(loss), LG_LIST(x, w, b), .create_graph = true, .result = once);
        lg_grad(LG_LIST(lg_sum(lg_mul(lg_square(once[0]), bend))), LG_LIST(x, w), .result = twice);
        return (derivatives){once[0], once[1], once[2], twice[0], twice[1]};
}

static void check_derivatives(const norms *n, const derivatives *own, const derivatives *whole)
{
        CHECK(is_near(n, own->x, rows(n, whole->x)));
        CHECK(is_near(n, lg_all_reduce(lg_detach(own->weight), g), whole->weight));
        CHECK(is_near(n, lg_all_reduce(lg_detach(own->bias), g), whole->bias));
        CHECK(is_near(n, own->twice_x, rows(n, whole->twice_x)));
        CHECK(is_near(n, lg_all_reduce(lg_detach(own->twice_weight), g), whole->twice_weight));
}

static void check_running(const norms *n)
{
        static const char *const names[] = {"0.running_mean", "0.running_var"};
        for (int i = 0; i < 2; i++)
                CHECK(is_near(n, lg_buffer(n->own, names[i]), lg_buffer(n->whole, names[i])));
}

static void check_steps(const norms *n, lg_shape s)
{
        for (int i = 1; i <= 2; i++) {
                lg_tensor *x = numbers(n, s, 0.7 * i), *slope = numbers(n, s, 1.1), *bend = numbers(n, s, 0.3);
                lg_tensor *mine = lg_detach(rows(n, x));
                lg_set_requires_grad(x, true);
                lg_set_requires_grad(mine, true);
                lg_tensor *own = lg_forward(n->own, mine), *whole = lg_forward(n->whole, x);
                CHECK(is_near(n, own, rows(n, whole)));
                check_running(n);
                const derivatives a = derive(n->own, own, mine, rows(n, slope), rows(n, bend));
                const derivatives b = derive(n->whole, whole, x, slope, bend);
                check_derivatives(n, &a, &b);
        }
        lg_train(n->own, false);
        lg_train(n->whole, false);
        lg_tensor *x = numbers(n, s, 0.9);
        CHECK(is_near(n, lg_forward(n->own, rows(n, x)), rows(n, lg_forward(n->whole, x))));
}

static void check_norm(lg_module *norm, lg_shape s, lg_dtype dtype, double tolerance)
{
        lg_scope scope = lg_scope_begin(c);
        norms n = {.own = lg_nn_sequential(c, norm, lg_nn_relu(c)), .dtype = dtype, .tolerance = tolerance};
        n.from = (int64_t)ROWS * rank * rank / (size * size);
        n.to = (int64_t)ROWS * (rank + 1) * (rank + 1) / (size * size);
        lg_no_grad(c) lg_copy_(lg_parameter(n.own, "0.weight"), lg_arange(c, 1, CHANNELS + 1, 1));
        n.whole = lg_module_clone(n.own);
        CHECK(lg_sync_batch_norm(n.own, g));
        check_steps(&n, s);
        lg_scope_end(c, scope);
        lg_module_free(n.own);
        lg_module_free(n.whole);
}

/* All ranks are wrong alike, so that none waits for another. */
static void check_mistakes(void)
{
        lg_group *part = lg_group_split(g, 0);
        lg_module *m = lg_nn_batch_norm1d(c, CHANNELS);
        CHECK(part && lg_sync_batch_norm(m, part));
        CHECK(!lg_forward(m, lg_ones(c, LG_SHAPE(2, CHANNELS + 1))) && lg_error_code_of(c) == LG_ERR_SHAPE);
        lg_clear_error(c);
        lg_group_close(part);
        lg_tensor *y = lg_forward(m, lg_ones(c, LG_SHAPE(2, CHANNELS)));
        CHECK(size == 1 ? y != NULL : !y && lg_error_code_of(c) == LG_ERR_STATE);
        lg_clear_error(c);
        lg_module_free(m);
        CHECK(!lg_sync_batch_norm(NULL, g) && !lg_error(c));
}

int main(void)
{
        CHECK(join(30));
        if (g) {
                const lg_shape images = LG_SHAPE(ROWS, CHANNELS, 2, 3), lines = LG_SHAPE(ROWS, CHANNELS);
                check_norm(lg_nn_batch_norm2d(c, CHANNELS, .dtype = LG_F64), images, LG_F64, 1e-10);
                check_norm(lg_nn_batch_norm1d(c, CHANNELS, .momentum = 0.3), lines, LG_F32, 1e-4);
                check_mistakes();
        }
        CHECK(!lg_error(c));
        lg_close(c);
        return verdict(0);
}
