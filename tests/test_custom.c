/* test_custom.c - own ops: outputs, derivatives of any order, failures, and when their data is released. */
#include "test.h"

static int releases;
static void release(void *user)
{
        (void)user;
        releases++;
}

/* y = x^3 and z = x w, for any x and w of one shape. */
static bool cube_forward(lg_custom_call *k)
{
        k->out[0] = lg_mul(lg_square(k->in[0]), k->in[0]);
        k->out[1] = lg_mul(k->in[0], k->in[1]);
        return true;
}

static bool cube_backward(lg_custom_call *k)
{
        lg_tensor *x = k->in[0], *w = k->in[1], *gy = k->grad_out[0], *gz = k->grad_out[1];
        lg_tensor *by_y = gy ? lg_mul(gy, lg_mul_scalar(lg_square(x), 3)) : NULL, *by_z = gz ? lg_mul(gz, w) : NULL;
        if (k->needs[0])
                k->grad_in[0] = by_y && by_z ? lg_add(by_y, by_z) : by_y ? by_y : by_z;
        if (k->needs[1] && gz)
                k->grad_in[1] = lg_mul(gz, x);
        return true;
}

static lg_custom_options cube(void)
{
        return *LG_OPTIONS(lg_custom_options, .forward = cube_forward, .backward = cube_backward, .release = release,
                           .out_count = 2);
}

static lg_tensor *vector(lg_ctx *c, double a, double b)
{
        return lg_from(c, ((double[]){a, b}), LG_SHAPE(2), .dtype = LG_F64, .requires_grad = true);
}

TEST_CASE(values_and_gradients)
{
        lg_ctx *c = open_ctx();
        lg_scope s = lg_scope_begin(c);
        lg_tensor *x = vector(c, 2, 3), *w = vector(c, 5, 7), *out[2];
        lg_custom_options op = cube();
        releases = 0;
        op.out = out;
        lg_tensor *first = lg_custom_with(c, "cube", LG_LIST(x, w), &op);
        assert_ok(c);
        assert_ptr_equal(first, out[0]);
        assert_list(out[0], 0, 8, 27);
        assert_list(out[1], 0, 10, 21);
        assert_true(lg_backward(lg_sum(lg_add(out[0], out[1])), .retain_graph = true));
        assert_list(lg_grad_of(x), 0, 17, 34);
        assert_list(lg_grad_of(w), 0, 2, 3);
        lg_clear_grad(x);
        assert_true(lg_backward(lg_sum(out[0]), .retain_graph = true)); /* the other output is not used */
        assert_list(lg_grad_of(x), 0, 12, 27);
        lg_tensor *g = lg_grad(LG_LIST(lg_sum(out[0])), LG_LIST(x), .create_graph = true);
        assert_list(lg_grad(LG_LIST(lg_sum(g)), LG_LIST(x)), 0, 12, 18);
        assert_int_equal(releases, 0);
        lg_scope_end(c, s);
        assert_int_equal(releases, 1);
        assert_int_equal(lg_live_tensors(c), 0);
        lg_close(c);
        assert_int_equal(releases, 1);
}

static lg_tensor *check_cube(lg_ctx *c, lg_list in, void *user)
{
        (void)user;
        lg_custom_options op = cube();
        lg_tensor *out[2];
        op.out = out;
        return lg_custom_with(c, "cube", in, &op) ? lg_mul(out[0], out[1]) : NULL;
}

TEST_CASE(checked_by_differences)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = vector(c, 0.5, -1.5), *w = vector(c, 1.25, 0.75);
        lg_check_report r;
        if (!lg_gradcheck(c, check_cube, LG_LIST(x, w), .report = &r))
                fail_msg("%s %s", r.text, lg_error(c));
        if (!lg_gradgradcheck(c, check_cube, LG_LIST(x, w), .report = &r))
                fail_msg("%s %s", r.text, lg_error(c));
        lg_close(c);
}

static bool says_no(lg_custom_call *k)
{
        (void)k;
        return false;
}

static bool sets_error(lg_custom_call *k)
{
        return lg_set_error(k->ctx, LG_ERR_FORMAT, "my own words");
}

static bool makes_nothing(lg_custom_call *k)
{
        (void)k;
        return true;
}

static bool same(lg_custom_call *k)
{
        k->out[0] = lg_mul_scalar(k->in[0], 1);
        return true;
}

static bool wrong_shape(lg_custom_call *k)
{
        k->grad_in[0] = lg_ones(k->ctx, LG_SHAPE(5), .dtype = LG_F64);
        return true;
}

TEST_CASE(failures)
{
        lg_ctx *c = open_ctx();
        lg_tensor *x = vector(c, 1, 2);
        const struct {
                bool (*forward)(lg_custom_call *), (*backward)(lg_custom_call *);
                lg_error_code code;
                const char *text;
        } rows[] = {
                {says_no, same, LG_ERR_STATE, "mine"},       {sets_error, same, LG_ERR_FORMAT, "my own words"},
                {makes_nothing, same, LG_ERR_STATE, "mine"}, {same, says_no, LG_ERR_STATE, "mine"},
                {same, sets_error, LG_ERR_FORMAT, "my own"}, {same, wrong_shape, LG_ERR_SHAPE, "(5"},
        };
        for (int i = 0; i < 6; i++) {
                lg_scope s = lg_scope_begin(c);
                lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = rows[i].forward,
                                                   .backward = rows[i].backward, .release = release);
                releases = 0;
                lg_tensor *y = lg_custom_with(c, "mine", LG_LIST(x), &op);
                if (i < 3)
                        assert_null(y);
                else
                        assert_false(lg_backward(lg_sum(y)));
                assert_error(c, rows[i].code, rows[i].text);
                lg_scope_end(c, s);
                assert_int_equal(releases, 1);
                assert_true(lg_set_grad_mode(c, true)); /* as it was */
        }
        releases = 0;
        lg_custom_options op =
                *LG_OPTIONS(lg_custom_options, .forward = same, .backward = same, .release = release, .out_count = 99);
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_error(c, LG_ERR_ARGUMENT, "mine");
        assert_int_equal(releases, 1);
        assert_null(lg_custom_with(c, NULL, LG_LIST(x), &op));
        assert_error(c, LG_ERR_ARGUMENT, "lg_custom: the name is NULL");
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_custom: .forward is NULL");
        assert_null(lg_custom(c, "mine", LG_LIST(x), .forward = same));
        assert_error(c, LG_ERR_ARGUMENT, "lg_custom: .backward is NULL");
        assert_null(lg_custom_with(NULL, "mine", LG_LIST(x), &op));
        lg_no_grad(c)
        {
                op.out_count = 1;
                releases = 0;
                assert_non_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
                assert_int_equal(releases, 1); /* nothing is recorded, nothing will need it */
        }
        lg_close(c);
}

static bool give_theirs(lg_custom_call *k)
{
        k->out[0] = k->user;
        return true;
}

static bool give_their_gradient(lg_custom_call *k)
{
        k->grad_in[0] = k->user;
        return true;
}

TEST_CASE(lists_contexts_and_devices)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_tensor *x = vector(c, 1, 2), *theirs = vector(other, 1, 2);
        lg_custom_options op =
                *LG_OPTIONS(lg_custom_options, .forward = same, .backward = same, .user = theirs, .release = release);
        lg_list none = {1, NULL}, fewer = {-1, LG_LIST(x).items};
        releases = 0;
        assert_null(lg_custom_with(c, "mine", none, &op));
        assert_error(c, LG_ERR_ARGUMENT, "mine: the list of inputs is NULL");
        assert_null(lg_custom_with(c, "mine", fewer, &op));
        assert_error(c, LG_ERR_ARGUMENT, "mine: -1 inputs");
        assert_null(lg_custom_with(c, "mine", LG_LIST(x, NULL), &op));
        assert_error(c, LG_ERR_ARGUMENT, "mine: input 1 is NULL");
        assert_null(lg_custom_with(c, "mine", LG_LIST(theirs), &op));
        assert_error(c, LG_ERR_ARGUMENT, "an input belongs to another context");
        op.forward = give_theirs;
        assert_null(lg_custom_with(c, "mine", LG_LIST(x), &op));
        assert_error(c, LG_ERR_ARGUMENT, "an output belongs to another context");
        assert_int_equal(releases, 5);
        op.forward = same;
        op.backward = give_their_gradient;
        assert_false(lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(x), &op))));
        assert_error(c, LG_ERR_ARGUMENT, "a gradient that its backward made belongs to another context");
        op.user = lg_ones(c, LG_SHAPE(2), .device = lg_parse_device(c, "shadow:1"));
        assert_false(lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(x), &op))));
        assert_error(c, LG_ERR_DEVICE, "shadow:1");
        assert_null(lg_grad_of(x));
        assert_ok(other);
        lg_close(other);
        lg_close(c);
}

TEST_CASE(shapes_of_gradients)
{
        lg_ctx *c = open_ctx();
        const lg_shape wrong[] = {LG_SHAPE_0D,    LG_SHAPE(3),       LG_SHAPE(3, 2),
                                  LG_SHAPE(2, 1), LG_SHAPE(2, 2, 1), LG_SHAPE(6)};
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *flat = lg_ones(c, LG_SHAPE(2, 1));
        lg_set_requires_grad(x, true);
        lg_set_requires_grad(flat, true);
        lg_custom_options op = *LG_OPTIONS(lg_custom_options, .forward = same, .backward = give_their_gradient);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                op.user = lg_ones(c, wrong[i]);
                assert_false(lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(x), &op))));
                assert_error(c, LG_ERR_SHAPE, "mine: the gradient of input 0 that its backward made is f32 (");
                assert_null(lg_grad_of(x));
        }
        op.user = lg_ones(c, LG_SHAPE(4, 2, 3), .dtype = LG_F64);
        assert_true(lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(flat), &op))));
        assert_list(lg_grad_of(flat), 0, 12, 12);
        assert_true(lg_backward(lg_sum(lg_custom_with(c, "mine", LG_LIST(x), &op))));
        assert_list(lg_grad_of(x), 0, 4, 4, 4, 4, 4, 4);
        assert_ok(c);
        lg_close(c);
}
