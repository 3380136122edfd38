/* test_onnx_save.c - what lg_onnx_save() refuses, and what it leaves as it was; failing memory and files. */
#include "files.h"

/* ---- forwards that cannot be written, or only just ---- */

static lg_tensor *reads(lg_tensor *x)
{
        return lg_add_scalar(x, lg_item(lg_sum(x)));
}

static lg_tensor *lacks_a_form(lg_tensor *x)
{
        return lg_erfinv(lg_lgamma(x));
}

static lg_tensor *changes_in_place(lg_tensor *x)
{
        lg_tensor *y = lg_zeros_like(x);
        lg_add_(y, x);
        return lg_add(y, x);
}

static lg_tensor *takes_a_half(lg_tensor *x)
{
        return lg_slice(x, 0, 0, lg_size_of(x, 0) / 2);
}

static lg_tensor *divides_by_the_size(lg_tensor *x)
{
        return lg_mul_scalar(x, 1 / (double)lg_size_of(x, 0));
}

static lg_tensor *draws(lg_tensor *x)
{
        return lg_mul(x, lg_uniform_like(x, 0, 1));
}

static lg_tensor *branches(lg_tensor *x)
{
        return lg_size_of(x, 0) % 2 ? lg_exp(x) : lg_sin(x);
}

static lg_tensor *adds_an_op(lg_tensor *x)
{
        return lg_size_of(x, 0) > 4 ? lg_exp(lg_sin(x)) : lg_sin(x);
}

typedef lg_tensor *function(lg_tensor *x);

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)m;
        return (*(function **)user)(inputs.items[0]);
}

TEST_CASE(forwards_that_depend_on_more_than_ops)
{
        static const struct {
                function *fn;
                const char *message;
        } all[] = {{reads, "lg_item: reads values on the host, which lg_onnx_save cannot record"},
                   {lacks_a_form, "no form in ONNX: lgamma (in \"Own\"), erfinv (in \"Own\")"},
                   {changes_in_place, "add in \"Own\" uses a tensor that is no result of an op"},
                   {takes_a_half, "slice in \"Own\" has numbers that change"},
                   {divides_by_the_size, "mul_scalar in \"Own\" has numbers that change"},
                   {draws, "mul in \"Own\" uses a tensor"},
                   {branches, "in \"Own\" is another op"},
                   {adds_an_op, "applies other ops"}};
        lg_ctx *c = lg_open(.threads = 1);
        function *fn = NULL;
        lg_module *m = lg_nn_module(c, "Own", .forward = forward, .user = &fn);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(4, 3));
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
                fn = all[i].fn;
                assert_false(lg_onnx_save(m, at("own.onnx"), LG_LIST(x)));
                if (!strstr(lg_error(c), all[i].message) || lg_error_code_of(c) != LG_ERR_STATE)
                        fail_msg("\"%s\", not \"%s\"", lg_error(c), all[i].message);
                lg_clear_error(c);
                assert_int_equal(count_files(false), 0);
        }
        lg_close(c);
}

TEST_CASE(wrong_uses)
{
        lg_ctx *c = lg_open(.threads = 1), *other = lg_open();
        lg_module *m = lg_nn_linear(c, 3, 4), *gelu = lg_nn_gelu(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3)), *none = lg_ones(c, LG_SHAPE(0, 3));
        const char *path = at("wrong.onnx");
#define REFUSED(code, message, ...)                                                                                    \
        do {                                                                                                           \
                assert_false(lg_onnx_save(__VA_ARGS__));                                                               \
                assert_error(c, code, message);                                                                        \
        } while (0)
        REFUSED(LG_ERR_ARGUMENT, "m is NULL", NULL, path, LG_LIST(x));
        REFUSED(LG_ERR_ARGUMENT, "path is NULL", m, NULL, LG_LIST(x));
        REFUSED(LG_ERR_IO, "cannot be written", m, at("no/folder.onnx"), LG_LIST(x));
        REFUSED(LG_ERR_ARGUMENT, "takes one input, 2 were given", m, path, LG_LIST(x, x));
        REFUSED(LG_ERR_ARGUMENT, "0 inputs", m, path, LG_LIST_OF(0, NULL));
        REFUSED(LG_ERR_ARGUMENT, "input 0 is NULL", m, path, LG_LIST((lg_tensor *)NULL));
        REFUSED(LG_ERR_ARGUMENT, "context", m, path, LG_LIST(lg_ones(other, LG_SHAPE(2, 3))));
        REFUSED(LG_ERR_ARGUMENT, "opset 12; 13 to 28", m, path, LG_LIST(x), .opset = 12);
        REFUSED(LG_ERR_ARGUMENT, "opset 99", m, path, LG_LIST(x), .opset = 99);
        REFUSED(LG_ERR_ARGUMENT, "opset 17: Gelu needs opset 20", gelu, path, LG_LIST(x), .opset = 17);
        REFUSED(LG_ERR_ARGUMENT, "no input has the symbolic dimension 7", m, path, LG_LIST(x), .symbolic = LG_INTS(7));
        REFUSED(LG_ERR_ARGUMENT, "symbolic dimension -1", m, path, LG_LIST(x), .symbolic = LG_INTS(-1));
        REFUSED(LG_ERR_ARGUMENT, "exclude each other", m, path, LG_LIST(x), .symbolic = LG_INTS(0), .fixed = true);
        REFUSED(LG_ERR_SHAPE, "changed the symbolic dimension 1 from 3 to 7", m, path, LG_LIST(x),
                .symbolic = LG_INTS(0, 1));
        REFUSED(LG_ERR_ARGUMENT, "dimension 0 is empty", m, path, LG_LIST(none));
        REFUSED(LG_ERR_ARGUMENT, "2 names of inputs", m, path, LG_LIST(x), .inputs = LG_NAMES("a", "b"));
        REFUSED(LG_ERR_ARGUMENT, "\"weight\" is the name of a parameter", m, path, LG_LIST(x),
                .outputs = LG_NAMES("weight"));
        REFUSED(LG_ERR_ARGUMENT, "are called \"a\"", m, path, LG_LIST(x), .inputs = LG_NAMES("a"),
                .outputs = LG_NAMES("a"));
        REFUSED(LG_ERR_ARGUMENT, "is empty", m, path, LG_LIST(x), .inputs = LG_NAMES(""));
        REFUSED(LG_ERR_ARGUMENT, "is not UTF-8", m, path, LG_LIST(x), .inputs = LG_NAMES("a\xff"));
        assert_int_equal(count_files(false), 0);
        assert_true(lg_onnx_save(m, path, LG_LIST(none), .fixed = true));
        lg_close(other);
        lg_close(c);
}

/* ---- what is written ---- */

static lg_module *small_net(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 3, 20), lg_nn_batch_norm1d(c, 20), lg_nn_dropout(c, 0.5),
                                lg_nn_gelu(c), lg_nn_linear(c, 20, 2));
}

TEST_CASE(modes_and_random_numbers_stay)
{
        lg_ctx *c = lg_open(.threads = 1, .seed = 5);
        lg_module *m = small_net(c);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(4, 3));
        lg_train(lg_child(m, 1), false);
        const lg_random_state before = lg_random_state_of(c);
        const int64_t live = lg_live_tensors(c);
        assert_true(lg_onnx_save(m, at("m.onnx"), LG_LIST(x), .symbolic = LG_INTS(0)));
        const lg_random_state after = lg_random_state_of(c);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true(lg_is_training(m) && lg_is_training(lg_child(m, 2)) && !lg_is_training(lg_child(m, 1)));
        assert_int_equal(lg_live_tensors(c), live);
        lg_module *read = lg_onnx_load(c, at("m.onnx"));
        lg_train(m, false);
        x = lg_uniform(c, 0, 1, LG_SHAPE(7, 3));
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_forward(read, x), lg_forward(m, x))))) < 1e-6);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(tensors_beside_the_file)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_module *m = lg_nn_linear(c, 30, 40);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(2, 5, 30));
        count_files(true);
        assert_true(lg_onnx_save(m, at("big.onnx"), LG_LIST(x), .symbolic = LG_INTS(0, 1), .external = true));
        contents data = get_file(at("big.onnx.data"));
        assert_int_equal(data.bytes, 30 * 40 * 4); /* the bias is inside */
        free(data.data);
        lg_module *read = lg_onnx_load(c, at("big.onnx"));
        x = lg_uniform(c, 0, 1, LG_SHAPE(3, 1, 30));
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_forward(read, x), lg_forward(m, x))))) == 0);
        assert_ok(c);
        count_files(true);
        lg_close(c);
}

/* ---- faults ---- */

TEST_CASE(every_allocation_fails)
{
        bool ended = false;
        for (int n = 1; !ended; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                lg_module *m = small_net(c);
                lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
                count_files(true);
                lg_empty_cache(c);
                arm(&f, n, false);
                const bool saved = lg_onnx_save(m, at("m.onnx"), LG_LIST(x));
                ended = f.calls < n;
                arm(&f, 0, false);
                if (!saved)
                        assert_error(c, LG_ERR_MEMORY, "memory");
                assert_int_equal(count_files(false), saved);
                assert_true(lg_is_training(m));
                assert_true(lg_onnx_save(m, at("m.onnx"), LG_LIST(x)));
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
}

TEST_CASE(every_call_on_files_fails)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_module *m = small_net(c);
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 3));
        count_files(true);
        assert_true(lg_onnx_save(m, at("m.onnx"), LG_LIST(x)));
        contents before = get_file(at("m.onnx"));
        c->files = &faulty_files;
        for (int n = 1; n < 1000; n++) {
                memset(&faulty, 0, sizeof faulty);
                faulty.fail_at = n;
                faulty.error = ENOSPC;
                const bool saved = lg_onnx_save(m, at("m.onnx"), LG_LIST(x));
                if (!saved)
                        assert_error(c, LG_ERR_IO, "m.onnx");
                faulty.fail_at = 0;
                assert_true(has(at("m.onnx"), before));
                if (faulty.calls < n)
                        break;
        }
        c->files = NULL;
        free(before.data);
        count_files(true);
        lg_close(c);
}

AROUND_TESTS(make_folder, remove_folder);
