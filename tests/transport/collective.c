/* collective.c - collective functions on tensors, and their derivatives: collective [wrong], run by mpirun with
 * LIBGRAD_MPI, or alone, on the device that LG_TEST_DEVICE names. Prints "held" if all did, else what did not.
 *
 * A gradient is compared with differences of the sum of all ranks' losses, where one element of one rank moves.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rank.h"

static lg_tensor *all_reduce_sum(lg_tensor *x)
{
        return lg_all_reduce(x, g);
}
static lg_tensor *all_reduce_mean(lg_tensor *x)
{
        return lg_all_reduce(x, g, .op = LG_REDUCE_OP_MEAN);
}
static lg_tensor *all_reduce_max(lg_tensor *x)
{
        return lg_all_reduce(x, g, .op = LG_REDUCE_OP_MAX);
}
static lg_tensor *broadcast(lg_tensor *x)
{
        return lg_broadcast(x, g, size - 1);
}
static lg_tensor *all_gather(lg_tensor *x)
{
        return lg_all_gather(lg_transpose(x, 0, 1), g);
}
static lg_tensor *scatter_sum(lg_tensor *x)
{
        return lg_reduce_scatter(x, g);
}
static lg_tensor *scatter_mean(lg_tensor *x)
{
        return lg_reduce_scatter(x, g, .op = LG_REDUCE_OP_MEAN);
}
static lg_tensor *scatter_max(lg_tensor *x)
{
        return lg_reduce_scatter(x, g, .op = LG_REDUCE_OP_MAX);
}
/* From rank 0 to rank 1, which squares it; the others keep theirs. */
static lg_tensor *pass(lg_tensor *x)
{
        if (size == 1 || rank > 1)
                return x;
        return rank == 0 ? lg_send(x, g, 1) : lg_square(lg_receive(x, g, 0));
}

typedef lg_tensor *fn(lg_tensor *x);

/* The sum of all ranks' losses at x, a weighted sum of cubes, so that a second derivative is there. */
static lg_tensor *loss_of(fn *f, lg_tensor *x)
{
        lg_tensor *y = f(x), *y3 = lg_mul(lg_square(y), y);
        lg_tensor *w = lg_reshape(lg_linspace(c, 0.5 + rank, 1.5 + rank, lg_numel(y), .dtype = LG_F64), lg_shape_of(y));
        return lg_sum(lg_mul(y3, w));
}

/* The gradient, or with `second` that of a weighted sum of its squares, of every rank's elements. */
static lg_tensor *gradient(fn *f, lg_tensor *x, bool second)
{
        lg_tensor *first = lg_grad(LG_LIST(loss_of(f, x)), LG_LIST(x), .create_graph = second);
        return second ? lg_grad(LG_LIST(lg_sum(lg_square(first))), LG_LIST(x)) : first;
}

static double total(fn *f, const double *at, bool second)
{
        lg_tensor *x = lg_set_requires_grad(lg_from(c, at, LG_SHAPE(12, 2)), true);
        lg_tensor *loss = second ? lg_sum(lg_square(gradient(f, x, false))) : loss_of(f, x);
        return lg_item(lg_all_reduce(lg_detach(loss), g));
}

static void check_gradient(const char *name, fn *f, bool second)
{
        double at[24], got[24];
        lg_scope scope = lg_scope_begin(c);
        for (int i = 0; i < 24; i++)
                at[i] = sin(1.0 + 5 * rank + i);
        lg_tensor *x = lg_set_requires_grad(lg_from(c, at, LG_SHAPE(12, 2)), true);
        CHECK(lg_read(gradient(f, x, second), got, LG_F64, sizeof got));
        for (int r = 0; r < size; r++)
                for (int i = 0; i < 24; i += 5) {
                        const double was = at[i], step = 1e-5;
                        at[i] = was + (r == rank) * step;
                        const double up = total(f, at, second);
                        at[i] = was - (r == rank) * step;
                        const double slope = (up - total(f, at, second)) / (2 * step);
                        at[i] = was;
                        if (r == rank && !(fabs(slope - got[i]) <= 1e-5 * (1 + fabs(slope)))) {
                                fprintf(stderr, "%s%s, rank %d, element %d: %.9g, but differences are %.9g\n", name,
                                        second ? " twice" : "", rank, i, got[i], slope);
                                failures++;
                        }
                }
        CHECK(!lg_error(c));
        lg_scope_end(c, scope);
}

static void check_values(void)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8};
        for (int i = 0; i < 7; i++) {
                lg_tensor *x = lg_full(c, LG_SHAPE(size, 3), rank + 1, .dtype = dtypes[i]);
                CHECK(lg_item(lg_amax(lg_all_reduce(x, g))) == size * (size + 1) / 2);
                CHECK(lg_item(lg_amin(lg_all_reduce(x, g, .op = LG_REDUCE_OP_MAX))) == size);
                CHECK(lg_item(lg_amin(lg_broadcast(x, g, size - 1))) == size);
                CHECK(lg_shape_of(lg_all_gather(x, g)).size[0] == (int64_t)size * size);
                CHECK(lg_all_reduce_(x, g, LG_REDUCE_OP_SUM) && lg_item(lg_amin(x)) == size * (size + 1) / 2);
        }
        lg_tensor *t = lg_transpose(lg_full(c, LG_SHAPE(2, 3), rank), 0, 1);
        CHECK(lg_broadcast_(t, g, 0) && lg_item(lg_amax(t)) == 0);
        lg_tensor *none = lg_zeros(c, LG_SHAPE(0, 3));
        CHECK(lg_numel(lg_all_reduce(none, g)) == 0 && lg_shape_of(lg_all_gather(none, g)).size[1] == 3);
        CHECK(lg_group_rank(g) < lg_group_size(g) && lg_group_host(g, size) == NULL && *lg_group_host(g, 0));
        int before = 0;
        for (int r = 0; r < rank; r++)
                before += !strcmp(lg_group_host(g, r), lg_group_host(g, rank));
        CHECK(lg_group_local_rank(g) == before);
        CHECK(lg_barrier(g));
}

/* Even and odd ranks; the last rank is in no group. */
static void check_split(void)
{
        const bool out = size > 1 && rank == size - 1;
        lg_group *part = lg_group_split(g, out ? -1 : rank % 2);
        CHECK(!lg_error(c) && (part == NULL) == out);
        if (part) {
                const int all = size - (size > 1), members = (all + 1 - rank % 2) / 2;
                CHECK(lg_group_size(part) == members && lg_group_rank(part) == rank / 2);
                CHECK(lg_item(lg_all_reduce(lg_ones(c, LG_SHAPE_0D), part)) == members);
                lg_group_close(part);
        }
        CHECK(lg_item(lg_all_reduce(lg_ones(c, LG_SHAPE_0D), g)) == size);
}

static void check_errors(void)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(size, 2), .dtype = LG_I64);
        CHECK(!lg_broadcast(x, g, size) && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        CHECK(!lg_all_reduce(x, NULL) && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        CHECK(!lg_send(x, g, rank) && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        CHECK(!lg_all_reduce(x, g, .op = LG_REDUCE_OP_MEAN) && lg_error_code_of(c) == LG_ERR_DTYPE);
        lg_clear_error(c);
        CHECK(!lg_all_gather(lg_ones(c, LG_SHAPE_0D), g) && lg_error_code_of(c) == LG_ERR_SHAPE);
        lg_clear_error(c);
}

/* One rank's error becomes LG_ERR_COMM with its words on the others. */
static void check_failure(void)
{
        lg_tensor *x = lg_ones(c, LG_SHAPE(3));
        if (rank == size - 1) {
                lg_tensor *bad = lg_matmul(x, lg_ones(c, LG_SHAPE(4)));
                CHECK(!bad && lg_error_code_of(c) == LG_ERR_SHAPE);
                CHECK(!lg_all_reduce(x, g) && lg_error_code_of(c) == LG_ERR_SHAPE);
                return;
        }
        CHECK(!lg_all_reduce(x, g) && lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), "matmul"));
        lg_clear_error(c);
        CHECK(!lg_barrier(g) && lg_error_code_of(c) == LG_ERR_COMM);
        lg_clear_error(c);
        CHECK(lg_item(lg_sum(x)) == 3);
}

int main(int count, char **words)
{
        static const struct {
                const char *name;
                fn *f;
        } cases[] = {
                {"all_reduce", all_reduce_sum},   {"its mean", all_reduce_mean},      {"its maximum", all_reduce_max},
                {"broadcast", broadcast},         {"all_gather", all_gather},         {"reduce_scatter", scatter_sum},
                {"scattered mean", scatter_mean}, {"scattered maximum", scatter_max}, {"send", pass}};
        (void)words;
        CHECK(join(30));
        CHECK(lg_device_equal(lg_group_device(g), lg_device_of(lg_ones(c, LG_SHAPE(1)))));
        if (count > 1 && g)
                check_failure();
        for (int i = 0; count == 1 && g && i < (int)(sizeof cases / sizeof *cases); i++)
                for (int second = 0; second < 2; second++)
                        check_gradient(cases[i].name, cases[i].f, second);
        if (count == 1 && g) {
                check_values();
                check_split();
                check_errors();
        }
        CHECK(count > 1 || !lg_error(c));
        lg_close(c);
        return verdict(count > 1 ? 2 : 0);
}
