/* test_lora.c - low-rank adapters: against PEFT's results and training (data/lora.py), in the life of a module, in
 * files. */
#include <math.h>
#include <sys/stat.h>
#include "files.h"

static const char *data(const char *name)
{
        static char paths[4][600];
        static int last;
        last = (last + 1) % 4;
        snprintf(paths[last], sizeof paths[last], "%s/lora/%s", getenv("LG_TEST_DATA"), name);
        return paths[last];
}

static lg_module *network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_linear(c, 6, 12), lg_nn_tanh(c),
                                lg_nn_sequential(c, lg_nn_linear(c, 12, 12, .no_bias = true), lg_nn_relu(c)),
                                lg_nn_linear(c, 12, 4));
}

static lg_module *base(lg_ctx *c)
{
        lg_module *net = network(c);
        assert_true(lg_load(net, data("base.safetensors")));
        return net;
}

static lg_tensor *value(lg_ctx *c, const char *name)
{
        return lg_weights_read(lg_weights_open(c, data("values.safetensors")), name);
}

static double most_apart(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_amax(lg_abs(lg_sub(lg_cast(a, LG_F64), lg_cast(b, LG_F64)))));
}

/* Makes B, zero at first, some other numbers. */
static void stir(lg_module *net)
{
        lg_list b = lg_parameters_matching(net, "*lora_B.weight");
        assert_true(b.count > 0);
        lg_no_grad(lg_module_ctx(net)) for (int64_t i = 0; i < b.count; i++)
        {
                lg_init_normal(b.items[i], 0, 0.1);
        }
}

static void remove_adapter_folder(void)
{
        remove(at("adapter/adapter_model.safetensors"));
        remove(at("adapter/adapter_config.json"));
        rmdir(at("adapter"));
}

/* ---- against PEFT ---- */

static void check_training(lg_ctx *c, lg_module *net)
{
        double losses[50];
        lg_tensor *x = value(c, "x"), *y = value(c, "y");
        read_all(value(c, "losses"), losses, 50);
        assert_true(most_apart(lg_forward(net, x), value(c, "out")) < 1e-5);
        lg_optimizer *opt = lg_adamw(c, lg_parameters(net), 1e-2);
        for (int step = 0; step < 50; step++) {
                lg_scope scope = lg_scope_begin(c);
                lg_tensor *loss = lg_cross_entropy(lg_forward(net, x), y);
                assert_near(lg_item(loss), losses[step], 1e-4);
                lg_zero_grad(opt);
                assert_true(lg_backward(loss) && lg_step(opt));
                lg_scope_end(c, scope);
        }
        lg_tensor *before = lg_forward(net, x);
        assert_true(losses[49] < losses[0] - 0.3);
        assert_true(lg_lora_merge(net));
        assert_int_equal(lg_parameters(net).count, 5);
        assert_true(most_apart(lg_forward(net, x), before) < 1e-5);
        assert_true(most_apart(lg_parameter(net, "3.weight"), value(c, "merged")) < 1e-3);
        assert_ok(c);
}

TEST_CASE(trains_as_in_peft)
{
        lg_ctx *c = open_ctx();
        lg_module *net = base(c);
        assert_true(lg_lora_load(net, data("")));
        assert_int_equal(lg_size_of(lg_parameter(net, "0.lora_A.weight"), 0), 3);
        assert_int_equal(lg_size_of(lg_parameter(net, "2.0.lora_B.weight"), 1), 8);
        check_training(c, net);
        lg_close(c);
}

/* An adapter that was saved and loaded again, in a network that has adapters already, is the same. */
TEST_CASE(files_go_both_ways)
{
        for (int plain = 0; plain < 2; plain++) {
                lg_ctx *c = open_ctx();
                lg_module *first = base(c), *second = base(c);
                assert_true(lg_lora_load(first, data("")));
                assert_true(lg_lora_save(first, at("adapter"), .prefix = "base.", .base_model = "a \"b\"\n"));
                assert_true(plain || (lg_lora(second, "0", 3) == 1 && lg_lora(second, "[23]*", 8, .alpha = 1) == 2));
                const lg_random_state random = lg_random_state_of(c);
                assert_true(lg_lora_load(second, at("adapter"), .prefix = "base."));
                const lg_random_state now = lg_random_state_of(c);
                assert_memory_equal(&random, &now, sizeof now);
                check_training(c, second);
                contents config = get_file(at("adapter/adapter_config.json"));
                config.data[config.bytes] = 0;
                assert_non_null(strstr(config.data, "\"base_model_name_or_path\": \"a \\\"b\\\"\\u000a\""));
                assert_non_null(strstr(config.data, "\"target_modules\": [\"base.0\", \"base.2.0\", \"base.3\"]"));
                assert_non_null(strstr(config.data, "\"rank_pattern\": {\"^base.2.0\": 8, \"^base.3\": 8}"));
                assert_non_null(strstr(config.data, "\"alpha_pattern\": {\"^base.2.0\": 5}"));
                free(config.data);
                lg_weights *w = lg_weights_open(c, at("adapter/adapter_model.safetensors"));
                lg_tensor *a = lg_weights_read(w, "base_model.model.base.2.0.lora_A.weight");
                assert_same_bits(a, lg_parameter(first, "2.0.lora_A.weight"));
                assert_ok(c);
                lg_close(c);
                remove_adapter_folder();
        }
}

/* ---- in the life of a module ---- */

TEST_CASE(begins_with_the_same_results)
{
        lg_ctx *c = open_ctx();
        lg_module *net = base(c);
        lg_tensor *x = value(c, "x"), *y = lg_forward(net, x);
        assert_int_equal(lg_lora(net, "*", 4), 3);
        assert_same_bits(lg_forward(net, x), y);
        assert_shape(lg_parameter(net, "2.0.lora_A.weight"), LG_SHAPE(4, 12));
        assert_shape(lg_parameter(net, "3.lora_B.weight"), LG_SHAPE(4, 4));
        const double most = lg_item(lg_amax(lg_abs(lg_parameter(net, "2.0.lora_A.weight"))));
        assert_true(most <= 1 / sqrt(12) && most > 0.8 / sqrt(12));
        lg_list all = lg_parameters(net);
        int trained = 0;
        for (int64_t i = 0; i < all.count; i++)
                trained += lg_requires_grad(all.items[i]);
        assert_true(all.count == 11 && trained == 6);
        assert_false(lg_requires_grad(lg_parameter(net, "0.bias")));
        assert_true(lg_load(net, data("base.safetensors"), .partial = true));
        assert_same_bits(lg_forward(net, x), y);
        assert_true(lg_backward(lg_sum(lg_forward(net, x))));
        assert_non_null(lg_grad_of(lg_parameter(net, "3.lora_B.weight")));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(scales_and_dropout)
{
        lg_ctx *c = open_ctx();
        lg_module *m = lg_nn_sequential(c, lg_nn_linear(c, 400, 3));
        lg_tensor *x = lg_ones(c, LG_SHAPE(2, 400)), *y = lg_forward(m, x);
        assert_int_equal(lg_lora(m, "0", 4, .alpha = 6, .dropout = 0.5, .use_rslora = true), 1);
        stir(m);
        lg_tensor *delta = lg_matmul(lg_matmul(x, lg_transpose(lg_parameter(m, "0.lora_A.weight"), 0, 1)),
                                     lg_transpose(lg_parameter(m, "0.lora_B.weight"), 0, 1));
        lg_train(m, false);
        lg_tensor *out = lg_forward(m, x);
        assert_true(most_apart(out, lg_add(y, lg_mul_scalar(delta, 3))) < 1e-5); /* 6 / sqrt(4) */
        assert_same_bits(lg_forward(m, x), out);
        lg_train(m, true);
        assert_true(most_apart(lg_forward(m, x), out) > 1e-3);
        assert_true(most_apart(lg_forward(m, x), lg_forward(m, x)) > 1e-3);
        assert_true(lg_lora_save(m, at("adapter"), .fan_in_fan_out = true));
        contents config = get_file(at("adapter/adapter_config.json"));
        config.data[config.bytes] = 0;
        assert_non_null(strstr(config.data, "\"lora_dropout\": 0.5"));
        assert_non_null(strstr(config.data, "\"use_rslora\": true"));
        assert_non_null(strstr(config.data, "\"fan_in_fan_out\": true"));
        free(config.data);
        assert_true(lg_lora_merge(m));
        assert_true(most_apart(lg_forward(m, x), out) < 1e-5);
        assert_false(lg_requires_grad(lg_parameter(m, "0.weight")));
        assert_int_equal(lg_lora(m, "0", 1), 1); /* once more */
        assert_ok(c);
        lg_close(c);
        remove_adapter_folder();
}

/* Copies, casts, mixed precision, 16-bit weights, recomputation, replaced parameters. */
TEST_CASE(as_any_module)
{
        lg_ctx *c = open_ctx();
        lg_module *net = base(c);
        lg_tensor *x = value(c, "x");
        lg_lora(net, "*", 4);
        stir(net);
        lg_tensor *y = lg_forward(net, x);
        lg_module *copy = lg_module_clone(net);
        assert_same_bits(lg_forward(copy, x), y);
        assert_false(lg_requires_grad(lg_parameter(copy, "0.weight")));
        assert_true(lg_module_to(copy, lg_cpu()) && lg_module_to(copy, lg_default_device(c)));
        assert_same_bits(lg_forward(copy, x), y);
        assert_true(most_apart(lg_forward_params(copy, lg_parameters(net), x), y) == 0);
        lg_autocast(c, LG_BF16)
        {
                lg_tensor *half = lg_forward(copy, x);
                assert_int_equal(lg_dtype_of(half), LG_BF16);
                assert_true(most_apart(half, y) < 3e-2 && lg_backward(lg_sum(half)));
        }
        assert_true(lg_recompute_every(copy, 1) && lg_backward(lg_sum(lg_forward(copy, x))));
        assert_true(lg_module_cast(copy, LG_F64));
        assert_true(most_apart(lg_forward(copy, lg_cast(x, LG_F64)), y) < 1e-5);
        assert_true(lg_lora_merge(copy) && most_apart(lg_forward(copy, lg_cast(x, LG_F64)), y) < 1e-5);
        lg_module *low = base(c);
        assert_true(lg_module_cast(low, LG_BF16) && lg_lora(low, "*", 4) == 3);
        stir(low);
        assert_int_equal(lg_dtype_of(lg_parameter(low, "0.lora_A.weight")), LG_F32);
        lg_tensor *z = lg_forward(low, lg_cast(x, LG_BF16));
        assert_int_equal(lg_dtype_of(z), LG_BF16);
        assert_true(lg_backward(lg_sum(z)) && lg_grad_of(lg_parameter(low, "3.lora_A.weight")));
        assert_true(lg_lora_merge(low));
        assert_int_equal(lg_dtype_of(lg_parameter(low, "0.weight")), LG_BF16);
        assert_true(most_apart(lg_forward(low, lg_cast(x, LG_BF16)), z) < 3e-2);
        assert_ok(c);
        lg_close(c);
}

/* Layers that run their Linear modules in ways of their own. */
TEST_CASE(in_a_transformer)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_transformer_encoder(c, 8, 2, 2, .dropout = LG_ZERO, .feedforward = 16);
        lg_tensor *x = lg_normal(c, 0, 1, LG_SHAPE(5, 3, 8));
        assert_int_equal(lg_lora(net, "*self_attn", 2), 0);
        assert_error(c, LG_ERR_ARGUMENT,
                     "\"*self_attn\" matches \"layers.0.self_attn\", a MultiheadAttention, but no ");
        assert_int_equal(lg_lora(net, "*.linear?", 2), 4);
        assert_int_equal(lg_lora(net, "*.out_proj", 2), 2);
        lg_tensor *y = lg_forward(net, x);
        lg_list b = lg_parameters_matching(net, "*lora_B.weight");
        assert_int_equal(b.count, 6);
        for (int64_t i = 0; i < b.count; i++) { /* each counts */
                lg_no_grad(c) lg_init_normal(b.items[i], 0, 0.5);
                lg_tensor *now = lg_forward(net, x);
                assert_true(most_apart(now, y) > 1e-3);
                y = now;
        }
        assert_true(lg_lora_merge(net));
        assert_true(most_apart(lg_forward(net, x), y) < 2e-5);
        assert_ok(c);
        lg_close(c);
}

/* ---- errors ---- */

static lg_tensor *forward_that_merges(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_lora_merge(m);
        return lg_forward(lg_child(m, 0), inputs.items[0]);
}

TEST_CASE(wrong_uses)
{
        lg_ctx *c = open_ctx();
        lg_module *net = base(c);
        assert_fails(c, lg_lora(net, "*.attn", 4), LG_ERR_ARGUMENT,
                     "\"*.attn\" matches no Linear module; Linear modules are \"0\", \"2.0\", \"3\"");
        assert_fails(c, lg_lora(lg_nn_relu(c), "*", 4), LG_ERR_ARGUMENT, "there are no Linear modules");
        assert_fails(c, lg_lora(net, NULL, 4), LG_ERR_ARGUMENT, "the pattern is NULL");
        assert_fails(c, lg_lora(net, "*", 0), LG_ERR_ARGUMENT, "the rank is 0");
        assert_fails(c, lg_lora(net, "*", INT64_MAX), LG_ERR_SHAPE, "");
        assert_fails(c, lg_lora(net, "*", 4, .alpha = NAN), LG_ERR_ARGUMENT, ".alpha is nan");
        assert_fails(c, lg_lora(net, "*", 4, .dropout = 1), LG_ERR_ARGUMENT, ".dropout is 1");
        assert_fails(c, lg_lora_merge(net), LG_ERR_ARGUMENT, "no module has an adapter; Linear modules are \"0\"");
        assert_fails(c, lg_lora_save(net, at("adapter")), LG_ERR_ARGUMENT, "no module has an adapter");
        assert_int_equal(lg_parameters(net).count, 5);
        assert_true(lg_requires_grad(lg_parameter(net, "0.weight")));
        assert_int_equal(lg_lora(net, "3", 4), 1);
        assert_fails(c, lg_lora(net, "*", 4), LG_ERR_STATE, "\"3\" has an adapter already");
        assert_int_equal(lg_parameters(net).count, 7);
        lg_weight_norm(lg_child_named(net, "2.0"), "weight");
        assert_fails(c, lg_lora(net, "2*", 4), LG_ERR_STATE, "the weight of \"2.0\" has parametrizations");
        assert_int_equal(lg_lora(net, "0", 4, .dropout = 0.1), 1);
        assert_fails(c, lg_lora_save(net, at("adapter")), LG_ERR_ARGUMENT, "\"3\" has another .dropout or .use_rslora");
        lg_module *m = lg_nn_module(c, "Merging", .forward = forward_that_merges);
        lg_module_add(m, "fc", lg_nn_linear(c, 3, 3));
        assert_int_equal(lg_lora(m, "fc", 1), 1);
        assert_null(lg_forward(m, lg_ones(c, LG_SHAPE(1, 3))));
        assert_error(c, LG_ERR_STATE, "\"fc\" is running");
        lg_module_free(m);
        lg_module_free(net);
        assert_fails(c, lg_lora_load(base(c), at("none")), LG_ERR_IO, "adapter_config.json cannot be opened");
        assert_fails(c, lg_lora_load(base(c), NULL), LG_ERR_ARGUMENT, "the folder is NULL");
        lg_close(c);
}

/* Saves the adapter of a network and loads it with that text in place of another one in its configuration. */
static bool load_changed(lg_ctx *c, const char *from, const char *to)
{
        lg_module *net = base(c);
        assert_true(lg_lora(net, "*", 2) && lg_lora_save(net, at("adapter")));
        contents config = get_file(at("adapter/adapter_config.json"));
        config.data[config.bytes] = 0;
        char text[4096], *found = strstr(config.data, from);
        assert_non_null(found);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(found - config.data), config.data, to, found + strlen(from));
        put_file(at("adapter/adapter_config.json"), text, strlen(text));
        free(config.data);
        lg_module *other = base(c);
        const bool ok = lg_lora_load(other, at("adapter"));
        assert_int_equal(lg_parameters(other).count, ok ? 11 : 5);
        lg_module_free(net);
        lg_module_free(other);
        return ok;
}

TEST_CASE(configurations)
{
        static const struct {
                const char *from, *to;
                lg_error_code code;
                const char *message;
        } cases[] = {
                {"\"LORA\"", "\"IA3\"", LG_ERR_STATE, "libgrad has no adapters with this peft_type"},
                {"\"LORA\"", "null", LG_ERR_FORMAT, "peft_type is missing"},
                {"\"use_dora\": false", "\"use_dora\": true", LG_ERR_STATE, "this use_dora"},
                {"\"bias\": \"none\"", "\"bias\": \"all\"", LG_ERR_STATE, "this bias"},
                {"\"modules_to_save\": null", "\"modules_to_save\": [\"head\"]", LG_ERR_STATE, "this modules_to_save"},
                {"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa_niter_4\"", LG_ERR_STATE,
                 "init_lora_w"},
                {"\"use_dora\": false", "\"layer_replication\": [[0, 4]]", LG_ERR_STATE, "this layer_replication"},
                {"\"lora_alpha\": 8", "\"lora_alpha\": \"8\"", LG_ERR_FORMAT, "must be numbers"},
                {"\"lora_alpha\": 8", "\"lora_alpha\": 1e999", LG_ERR_FORMAT, "finite"},
                {"\"lora_dropout\": 0", "\"lora_dropout\": 1", LG_ERR_FORMAT, "in [0, 1)"},
                {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"2.*\": 3}", LG_ERR_STATE, "regular expressions"},
                {"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"2.0\": true}", LG_ERR_FORMAT, "must have numbers"},
                {"\"bias\"", "bias", LG_ERR_FORMAT, "is not JSON: byte"},
                {"{", "[", LG_ERR_FORMAT, "is not JSON: byte 0"},
        };
        lg_ctx *c = open_ctx();
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                assert_false(load_changed(c, cases[i].from, cases[i].to));
                assert_error(c, cases[i].code, cases[i].message);
        }
        assert_true(load_changed(c, "\"init_lora_weights\": true", "\"init_lora_weights\": \"gaussian\""));
        assert_true(load_changed(c, "\"modules_to_save\": null", "\"modules_to_save\": []"));
        assert_true(load_changed(c, "\"lora_alpha\": 8", "\"lora_alpha\": 8.5e0"));
        assert_true(load_changed(c, "  \"lora_alpha\": 8,\n", ""));
        assert_ok(c);
        lg_close(c);
        remove_adapter_folder();
}

/* Loads tensors of these names into the network, beside a right configuration. */
static bool load_named(lg_ctx *c, lg_names names, lg_list tensors)
{
        lg_module *holder = lg_nn_module(c, "Holder"), *net = base(c);
        for (int64_t i = 0; i < names.count; i++) { /* a path for each name */
                lg_module *at_module = holder;
                char text[200], *rest = text, *dot;
                snprintf(text, sizeof text, "%s", names.items[i]);
                for (; (dot = strchr(rest, '.')); rest = dot + 1) {
                        *dot = 0;
                        at_module = lg_has_child(at_module, rest)
                                            ? lg_child_named(at_module, rest)
                                            : lg_module_add(at_module, rest, lg_nn_module(c, "Part"));
                }
                assert_non_null(lg_module_add_parameter(at_module, rest, tensors.items[i]));
        }
        assert_true(lg_save(holder, at("adapter/adapter_model.safetensors")));
        const bool ok = lg_lora_load(net, at("adapter"));
        assert_int_equal(lg_parameters(net).count, 5 + (ok ? names.count : 0));
        lg_module_free(holder);
        lg_module_free(net);
        return ok;
}
#define Z(...) lg_zeros(c, LG_SHAPE(__VA_ARGS__))
#define P "base_model.model."

TEST_CASE(weights_that_are_wrong)
{
        lg_ctx *c = open_ctx();
        lg_module *net = base(c);
        assert_true(lg_lora(net, "0", 2) && lg_lora_save(net, at("adapter")));
        assert_true(load_named(c, LG_NAMES(P "0.lora_A.weight", P "0.lora_B.weight"), LG_LIST(Z(2, 6), Z(12, 2))));
        assert_false(load_named(c, LG_NAMES(P "0.lora_A.weight"), LG_LIST(Z(2, 6))));
        assert_error(c, LG_ERR_FORMAT, "has no lora_B.weight beside it");
        assert_false(load_named(c, LG_NAMES(P "0.lora_B.weight"), LG_LIST(Z(12, 2))));
        assert_error(c, LG_ERR_FORMAT, "has 1 tensors, but 0 pairs");
        assert_false(load_named(c, LG_NAMES(P "0.lora_A.weight", P "0.lora_B.weight"), LG_LIST(Z(2, 7), Z(12, 2))));
        assert_error(c, LG_ERR_SHAPE, "the adapter of \"0\" is (2, 7) and (12, 2); its weight is (12, 6)");
        assert_false(load_named(c, LG_NAMES(P "0.lora_A.weight", P "0.lora_B.weight"), LG_LIST(Z(0, 6), Z(12, 0))));
        assert_error(c, LG_ERR_SHAPE, "");
        assert_false(load_named(c, LG_NAMES(P "5.lora_A.weight", P "5.lora_B.weight"), LG_LIST(Z(2, 6), Z(12, 2))));
        assert_error(c, LG_ERR_ARGUMENT, "\"5\", which is missing here; Linear modules are \"0\", \"2.0\", \"3\"");
        assert_false(load_named(c, LG_NAMES(P "1.lora_A.weight", P "1.lora_B.weight"), LG_LIST(Z(2, 6), Z(12, 2))));
        assert_error(c, LG_ERR_ARGUMENT, "\"1\", which is no Linear module");
        assert_false(load_named(c, LG_NAMES(P "0.lora_embedding_A"), LG_LIST(Z(2, 6))));
        assert_error(c, LG_ERR_STATE, "lora_embedding_A\" is not \"base_model.model.PATH.lora_A.weight\"");
        assert_false(load_named(c, LG_NAMES("lora_A.weight"), LG_LIST(Z(2, 6))));
        assert_error(c, LG_ERR_STATE, "\"lora_A.weight\" is not");
        assert_false(load_named(c, LG_NAMES("x"), LG_LIST(Z(2, 6))));
        assert_error(c, LG_ERR_STATE, "\"x\" is not");
        assert_false(lg_lora_load(net, at("adapter"), .prefix = "model."));
        assert_error(c, LG_ERR_STATE, "");
        assert_true(lg_lora_save(net, at("adapter")));
        assert_false(lg_lora_load(net, at("adapter"), .prefix = "model."));
        assert_error(c, LG_ERR_ARGUMENT, "does not have .prefix behind");
        assert_int_equal(lg_lora(net, "3", 5), 1);
        assert_fails(c, lg_lora_load(net, at("adapter")), LG_ERR_ARGUMENT, "lacks an adapter for \"3\", which has one");
        lg_module *other = base(c);
        assert_int_equal(lg_lora(other, "0", 5), 1);
        assert_fails(c, lg_lora_load(other, at("adapter")), LG_ERR_SHAPE, "and it has an adapter of another rank");
        lg_close(c);
        remove_adapter_folder();
}

TEST_CASE(allocations_that_fail)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        lg_module *net = base(c);
        assert_true(lg_lora(net, "*", 2) && lg_lora_save(net, at("adapter")));
        lg_close(c);
        for (int call = 0; call < 3; call++) {
                bool done = false;
                for (int64_t n = 1; !done; n++) {
                        c = lg_open(.threads = 1, .seed = 4, FAILING(&f));
                        net = base(c);
                        if (call == 2)
                                lg_lora(net, "*", 2);
                        const int64_t count = lg_parameters(net).count;
                        assert_ok(c);
                        lg_empty_cache(c);
                        arm(&f, n, false);
                        done = call == 0   ? lg_lora(net, "*", 2) != 0
                               : call == 1 ? lg_lora_load(net, at("adapter"))
                                           : lg_lora_merge(net);
                        arm(&f, 0, false);
                        if (!done) {
                                assert_error(c, LG_ERR_MEMORY, "");
                                assert_true(call == 2 || lg_parameters(net).count == count);
                                assert_true(call == 2 || lg_requires_grad(lg_parameter(net, "3.weight")));
                        }
                        assert_non_null(lg_forward(
                                net, lg_ones(c, LG_SHAPE(1, 6), .device = lg_device_of(lg_parameter(net, "3.bias")))));
                        lg_close(c);
                        assert_int_equal(f.bytes, 0);
                        assert_true(n < 1000);
                }
        }
        remove_adapter_folder();
}

AROUND_TESTS(make_folder, remove_folder);
