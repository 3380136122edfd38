/* test_gradients.c - gradcheck and gradgradcheck of every row of ops.def, in every layout; fused against ops.
 *
 * The table is made from ops.def and pointwise.def, and the cases of structural ops are in gradients.def: a row that
 * has none there is an error.
 */
#include "rows.h"

/* ---- inputs ---- */

typedef enum layout { CONTIGUOUS, TRANSPOSED, SLICED, FLIPPED, LAYOUTS } layout;
static const char *const layout_names[] = {"contiguous", "transposed", "sliced", "flipped"};

/* A leaf of that shape whose elements lie as the layout says. */
static lg_tensor *input(lg_ctx *c, const row *r, int which, lg_shape shape, layout how)
{
        lg_shape under = shape;
        lg_dims reversed = {.count = shape.ndim};
        for (int i = 0; i < shape.ndim; i++) {
                reversed.dim[i] = shape.ndim - 1 - i;
                if (how == TRANSPOSED)
                        under.size[i] = shape.size[shape.ndim - 1 - i];
                if (how == SLICED)
                        under.size[i] = 2 * shape.size[i] + 1;
        }
        int64_t n = 1;
        for (int i = 0; i < under.ndim; i++)
                n *= under.size[i];
        double *v = calloc((size_t)n + 1, sizeof *v);
        for (int64_t i = 0; i < n; i++)
                v[i] = value(r, which, i);
        lg_tensor *t = lg_from(c, v, under, .dtype = LG_F64);
        free(v);
        if (how == TRANSPOSED && shape.ndim)
                t = lg_permute(t, reversed);
        for (int i = 0; how == SLICED && i < shape.ndim; i++)
                t = lg_slice(t, i, 1, LG_MAX, .step = 2);
        if (how == FLIPPED)
                t = lg_flip(t, LG_ALL_DIMS);
        return lg_set_requires_grad(t, true);
}

typedef struct job {
        const row *row;
        int k;
} job;

static lg_tensor *run(lg_ctx *c, lg_list inputs, void *user)
{
        const job *j = user;
        shapes s;
        return run_case(j->row, c, inputs.items, j->k, &s);
}

/* The first derivative by fused kernels is the one by ops; of the second of two calls it is added to what has arrived.
 */
static void check_fused(lg_ctx *c, lg_list in, job *j, layout how)
{
        lg_tensor *fused[MAX_INPUTS] = {NULL}, *ops[MAX_INPUTS] = {NULL};
        lg_tensor *y = run(c, in, j), *z = run(c, in, j);
        lg_tensor *g = y ? lg_uniform(c, -1, 1, lg_shape_of(y), .dtype = LG_F64) : NULL;
        lg_grad(LG_LIST(y, z), in, .grads = LG_LIST(g, g), .result = ops, .create_graph = true);
        lg_grad(LG_LIST(y, z), in, .grads = LG_LIST(g, g), .result = fused);
        assert_ok(c);
        for (int64_t i = 0; i < in.count; i++) {
                double a[256], b[256];
                int64_t n = ops[i] ? read_all(ops[i], a, 256) : 0;
                assert_true(!ops[i] == !fused[i]);
                if (fused[i])
                        read_all(fused[i], b, 256);
                for (int64_t e = 0; e < n; e++)
                        if (!(fabs(a[e] - b[e]) <= 1e-12 * fmax(1, fabs(a[e]))))
                                fail_msg("%s, case %d, %s: input %lld, element %lld: fused %.17g, ops %.17g",
                                         j->row->name, j->k, layout_names[how], (long long)i, (long long)e, b[e], a[e]);
        }
}

/* First derivatives of <y, g> by some inputs, by fused kernels and by ops; second[i][k]: by input k of <first[i], v>.
 */
typedef struct derivatives {
        lg_tensor *fused[MAX_INPUTS], *first[MAX_INPUTS], *second[MAX_INPUTS][MAX_INPUTS];
} derivatives;

/* By the inputs in the mask; what needs no gradient is NULL. */
static void by_some(lg_tensor *y, lg_tensor *g, lg_list in, unsigned mask, bool create, lg_tensor **ret)
{
        lg_tensor *x[MAX_INPUTS], *grads[MAX_INPUTS] = {NULL};
        int n = 0;
        for (int i = 0; i < in.count; i++)
                if (mask >> i & 1)
                        x[n++] = in.items[i];
        if (y && lg_requires_grad(y))
                lg_grad(LG_LIST(y), ((lg_list){n, x}), .grads = LG_LIST(g), .result = grads, .create_graph = create,
                        .retain_graph = true);
        n = 0;
        for (int i = 0; i < in.count; i++)
                ret[i] = mask >> i & 1 ? grads[n++] : NULL;
}

static derivatives derive(lg_ctx *c, lg_list in, job *j, lg_tensor *g, unsigned mask)
{
        derivatives d;
        lg_seed(c, 1); /* for dropout */
        lg_tensor *y = run(c, in, j);
        by_some(y, g, in, mask, true, d.first);
        by_some(y, g, in, mask, false, d.fused);
        for (int i = 0; i < in.count; i++)
                by_some(d.first[i], d.first[i] ? lg_cos(lg_detach(d.first[i])) : NULL, in, mask, false, d.second[i]);
        return d;
}

/* Equal, where NULL is 0. */
static bool is_near(lg_tensor *a, lg_tensor *b)
{
        double u[256] = {0}, v[256] = {0};
        const int64_t n = a ? read_all(a, u, 256) : 0, m = b ? read_all(b, v, 256) : 0;
        bool near = true;
        for (int64_t e = 0; e < (n > m ? n : m); e++)
                near = near && fabs(u[e] - v[e]) <= 1e-12 * fmax(1, fabs(v[e]));
        return near;
}

/* Which input's derivatives differ; -1: none. */
static int differs(const derivatives *some, const derivatives *all, int count, unsigned mask)
{
        for (int i = 0; i < count; i++) {
                if (!(mask >> i & 1))
                        continue;
                bool near = is_near(some->fused[i], all->first[i]) && is_near(some->first[i], all->first[i]);
                for (int k = 0; k < count && near; k++)
                        near = !(mask >> k & 1) || is_near(some->second[i][k], all->second[i][k]);
                if (!near)
                        return i;
        }
        return -1;
}

/* Derivatives by one input do not depend on which others need some, or on whether g does. */
static void check_subsets(lg_ctx *c, lg_list in, job *j, layout how)
{
        const unsigned all = (1u << in.count) - 1;
        const lg_tensor *y = run(c, in, j);
        lg_tensor *g = lg_uniform(c, -1, 1, lg_shape_of(y), .dtype = LG_F64, .requires_grad = true);
        const derivatives whole = derive(c, in, j, g, all);
        lg_set_requires_grad(g, false);
        for (unsigned mask = 1; mask <= all; mask++) {
                for (int i = 0; i < in.count; i++)
                        lg_set_requires_grad(in.items[i], mask >> i & 1);
                const derivatives part = derive(c, in, j, g, mask);
                const int wrong = differs(&part, &whole, (int)in.count, mask);
                if (lg_error(c) || wrong >= 0)
                        fail_msg("%s, case %d, %s, inputs of mask %#x need derivatives: those of input %d: %s",
                                 j->row->name, j->k, layout_names[how], mask, wrong, lg_error(c) ? lg_error(c) : "");
        }
}

/* Numeric derivatives are slow on a simulated device: it has them in one layout of each case, the CPU in all. */
static bool is_numeric(const lg_ctx *c, const job *j, layout how)
{
        return lg_default_device(c).type != LG_DEVICE_CUDA || (layout)((j->row - rows + j->k) % LAYOUTS) == how;
}

static void check_case(lg_ctx *c, job *j, const shapes *s, layout how)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x[MAX_INPUTS];
        for (int i = 0; i < s->count; i++)
                x[i] = input(c, j->row, i, s->shape[i], how);
        assert_ok(c);
        lg_list in = {s->count, x};
        lg_check_report first, second;
        const bool numeric = is_numeric(c, j, how);
        if (numeric && !lg_gradcheck(c, run, in, .user = j, .report = &first))
                fail_msg("gradcheck of %s, case %d, %s: %s", j->row->name, j->k, layout_names[how],
                         lg_error(c) ? lg_error(c) : first.text);
        if (numeric && !lg_gradgradcheck(c, run, in, .user = j, .report = &second))
                fail_msg("gradgradcheck of %s, case %d, %s: %s", j->row->name, j->k, layout_names[how],
                         lg_error(c) ? lg_error(c) : second.text);
        check_fused(c, in, j, how);
        check_subsets(c, in, j, how);
        lg_scope_end(c, scope);
}

TEST_CASE(every_row)
{
        lg_ctx *c = open_ctx();
        int ops = 0, cases = 0;
        int64_t before = lg_live_tensors(c);
        for (int r = 0; r < ROWS; r++) {
                shapes s;
                int k = 0;
                for (run_case(&rows[r], c, NULL, 0, &s); s.count >= 0; run_case(&rows[r], c, NULL, ++k, &s))
                        for (int how = 0; how < LAYOUTS; how++, cases++)
                                check_case(c, &(job){&rows[r], k}, &s, (layout)how);
                ops += k > 0;
        }
        assert_int_equal(lg_live_tensors(c), before);
        print_message("%d differentiable ops, %d cases\n", ops, cases);
        lg_close(c);
}

/* ---- the list of cases ---- */

/* True if what is behind that node was made by an op of that name. */
static bool reaches(const lg__node *n, const char *op)
{
        bool found = n && n->op && n->op->name && !strcmp(n->op->name, op);
        for (int i = 0; n && !found && i < n->in_count; i++)
                found = reaches(n->edges[i].node, op);
        return found;
}

/* How many cases a row has, and in how many of them its op is applied. */
static int count_cases(lg_ctx *c, const row *r, int *ret_applied)
{
        int k = 0;
        shapes s;
        *ret_applied = 0;
        for (run_case(r, c, NULL, 0, &s); s.count >= 0; run_case(r, c, NULL, ++k, &s)) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *x[MAX_INPUTS];
                for (int i = 0; i < s.count; i++)
                        x[i] = input(c, r, i, s.shape[i], CONTIGUOUS);
                const lg_tensor *y = run_case(r, c, x, k, &s);
                assert_ok(c);
                *ret_applied += reaches(y->node, r->name);
                lg_scope_end(c, scope);
        }
        return k;
}

/* What is wrong with the cases of a row; NULL: nothing. */
static const char *complaint(lg_ctx *c, const row *r)
{
        int applied, k = count_cases(c, r, &applied);
        bool listed = r->run || cases_of(r->name);
        bool composite = !r->op || r->op->compose, differentiable = r->op && r->op->vjp;
        if (!listed)
                return differentiable || composite ? "is not in gradients.def" : NULL;
        if (!differentiable && !composite)
                return "is in gradients.def, but has no derivative";
        if (composite)
                return NULL;
        return !k ? "has a derivative, but no case" : !applied ? "is applied in none of its cases" : NULL;
}

TEST_CASE(the_list_is_complete)
{
        lg_ctx *c = open_ctx();
        int wrong = 0;
        for (int r = 0; r < ROWS; r++) {
                const char *what = complaint(c, &rows[r]);
                if (what)
                        print_error("%s %s\n", rows[r].name, what);
                wrong += what != NULL;
        }
        for (int i = 0; i < BLOCKS; i++) {
                int r = 0;
                while (r < ROWS && (rows[r].run || strcmp(rows[r].name, blocks[i].name)))
                        r++;
                if (r == ROWS)
                        print_error("%s is in gradients.def, but not in ops.def\n", blocks[i].name);
                wrong += r == ROWS;
        }
        lg_close(c);
        assert_int_equal(wrong, 0);
}

/* A derivative that is wrong on purpose is found, with its element. */
static lg_tensor *wrong(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *x = in.items[0];
        return lg_add(lg_square(x), lg_mul(lg_detach(x), lg_from(lg_ctx_of(x), ((double[]){0, 0, 1e-3}), LG_SHAPE(3),
                                                                 .dtype = LG_F64)));
}

TEST_CASE(wrong_derivative_is_found)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_from(c, ((double[]){1, 2, 3}), LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        lg_check_report r;
        assert_false(lg_gradcheck(c, wrong, LG_LIST(x), .report = &r));
        assert_ok(c);
        assert_int_equal(r.input, 0);
        assert_int_equal(r.element, 2);
        assert_non_null(strstr(r.text, "element 2"));
        lg_close(c);
}

/* As a penalty on gradients does. */
static lg_tensor *square_of_gradient(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *y = lg_sum(lg_mul(lg_sin(in.items[0]), in.items[1]));
        return lg_sum(lg_square(lg_grad(LG_LIST(y), LG_LIST(in.items[0]), .create_graph = true)));
}

TEST_CASE(functions_of_gradients)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        lg_tensor *w = lg_uniform(c, 0, 1, LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
        assert_true(lg_gradcheck(c, square_of_gradient, LG_LIST(x, w)));
        assert_true(lg_gradgradcheck(c, square_of_gradient, LG_LIST(x, w)));
        assert_ok(c);
        lg_close(c);
}

static lg_tensor *frees_its_input(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *y = lg_sum(in.items[0]);
        lg_free(in.items[0]);
        return y;
}

static lg_tensor *turns_its_input_off(lg_ctx *c, lg_list in, void *user)
{
        (void)c, (void)user;
        lg_tensor *y = lg_sum(in.items[0]);
        lg_set_requires_grad(in.items[0], false);
        return y;
}

/* A check that has nothing left to check does not pass. */
TEST_CASE(inputs_that_change_are_told)
{
        lg_ctx *c = open_ctx();
        lg_function *const fns[] = {frees_its_input, turns_its_input_off};
        const char *const texts[] = {"was freed", "fn changed whether input 0 requires grad"};
        for (int i = 0; i < 4; i++) {
                lg_tensor *x = lg_ones(c, LG_SHAPE(3), .dtype = LG_F64, .requires_grad = true);
                assert_false(i & 2 ? lg_gradgradcheck(c, fns[i & 1], LG_LIST(x))
                                   : lg_gradcheck(c, fns[i & 1], LG_LIST(x)));
                assert_error(c, LG_ERR_STATE, texts[i & 1]);
        }
        lg_close(c);
}
