/* test_gpt.c - the language models of models/gpt.c compute, load and save as transformers does: data/gpt.py. */
#include <sys/stat.h>
#include <unistd.h>
#include "test.h"
#include "../models/gpt.h"
#include "../models/json.h"

static char folder[64];

static int make_folder(void **state)
{
        (void)state;
        strcpy(folder, "grad-gpt-XXXXXX");
        return mkdtemp(folder) ? 0 : -1;
}

static const char *inside(const char *name)
{
        static char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        return path;
}

static int remove_folder(void **state)
{
        (void)state;
        unlink(inside("model.safetensors"));
        unlink(inside("model.safetensors.index.json"));
        unlink(inside("config.json"));
        return rmdir(folder);
}

static const char *data(const char *kind, const char *name)
{
        static char path[4096];
        const char *all = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/%s%s", all ? all : "tests/data", kind, name);
        return path;
}

/* Makes the network of a folder and loads its weights. */
static gpt *open_gpt(lg_ctx *c, const char *path)
{
        char file[4200];
        gpt_config config;
        snprintf(file, sizeof file, "%s/config.json", path);
        char *text = gpt_read_text(c, file);
        gpt *g = gpt_config_parse(c, text, file, &config) ? gpt_new(c, &config) : NULL;
        free(text);
        return g && gpt_load(g, path) && lg_module_to(g->net, test_device(c)) ? g : NULL;
}

/* ---- beside transformers ---- */

static void near_golden(lg_weights *golden, const char *name, lg_tensor *got)
{
        lg_tensor *wanted = lg_cast(lg_to(lg_weights_read(golden, name), lg_cpu()), LG_F64);
        lg_tensor *wide = lg_cast(lg_to(got, lg_cpu()), LG_F64);
        const double size = lg_item(lg_amax(lg_abs(wanted)));
        const double wrong = lg_item(lg_amax(lg_abs(lg_sub(lg_reshape(wide, lg_shape_of(wanted)), wanted))));
        if (!(wrong <= 1e-5 * size))
                fail_msg("%s differs by %g; the largest is %g", name, wrong, size);
}

typedef struct gradients {
        lg_weights *golden;
        int count;
} gradients;

static void check_gradient(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        char name[200];
        gradients *g = user;
        snprintf(name, sizeof name, "grad.%s", path);
        near_golden(g->golden, name, lg_grad_of(t));
        g->count++;
        assert_false(is_buffer);
}

static void keep_gradient(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        lg_tensor ***next = user;
        *(*next)++ = lg_copy(lg_grad_of(t), lg_cpu());
        (void)path, (void)is_buffer;
}

/* Gradients by a forward that keeps the inputs of layers only. */
static void check_recompute(gpt *g, lg_tensor *x, lg_tensor *y)
{
        lg_tensor *was[64], *is[64], **next = was;
        lg_each_tensor(g->net, keep_gradient, &next);
        const int64_t count = next - was;
        const lg_list all = lg_parameters(g->net);
        for (int64_t i = 0; i < all.count; i++)
                lg_clear_grad(all.items[i]);
        g->recompute = true;
        assert_true(lg_backward(gpt_loss(g, x, y)));
        g->recompute = false;
        next = is;
        lg_each_tensor(g->net, keep_gradient, &next);
        assert_int_equal(next - is, count);
        for (int64_t i = 0; i < count; i++)
                assert_same_bits(is[i], was[i]);
}

/* Logits of the last position, by a cache that gets the tokens in three parts. */
static void check_cache(gpt *g, lg_tensor *x, lg_tensor *logits)
{
        const int64_t t = lg_size_of(x, 1);
        lg_tensor *got = NULL;
        gpt_set_cache(g, t);
        lg_no_grad(lg_module_ctx(g->net))
        {
                drop(lg_forward(g->net, lg_slice(x, 1, 0, 3)));
                drop(lg_forward(g->net, lg_slice(x, 1, 3, 4)));
                got = lg_forward(g->net, lg_slice(x, 1, 4, t));
        }
        assert_int_equal(g->past, t);
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(got, lg_select(logits, 1, -1))))) < 1e-5);
        assert_null(lg_forward(g->net, x));
        assert_error(lg_module_ctx(g->net), LG_ERR_SHAPE, "positions are cached");
        gpt_set_cache(g, 0);
}

static void check_as_transformers(const char *kind, int count)
{
        lg_ctx *c = open_ctx();
        gpt *g = open_gpt(c, data(kind, ""));
        assert_ok(c);
        gradients all = {lg_weights_open(c, data(kind, "/golden.safetensors")), 0};
        lg_tensor *tokens = lg_to(lg_weights_read(all.golden, "tokens"), test_device(c));
        lg_tensor *x = lg_slice(tokens, 1, 0, 7), *y = lg_slice(tokens, 1, 1, 8);
        lg_train(g->net, false);
        lg_tensor *logits = lg_forward(g->net, x), *loss = gpt_loss(g, x, y);
        near_golden(all.golden, "logits", logits);
        near_golden(all.golden, "loss", loss);
        assert_true(lg_backward(loss));
        lg_each_tensor(g->net, check_gradient, &all);
        assert_int_equal(all.count, count);
        check_recompute(g, x, y);
        check_cache(g, x, lg_detach(logits));
        lg_weights_close(all.golden);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(gpt2_as_transformers)
{
        check_as_transformers("gpt2", 28);
}

TEST_CASE(llama_as_transformers)
{
        check_as_transformers("llama", 21);
}

/* ---- files ---- */

static void check_saved(const char *kind, const char *name, int64_t rows, int64_t columns)
{
        lg_ctx *c = open_ctx();
        gpt *g = open_gpt(c, data(kind, ""));
        char *text = gpt_read_text(c, data(kind, "/config.json"));
        assert_true(gpt_save(g, text, folder));
        gpt *again = open_gpt(c, folder);
        const lg_list was = lg_parameters(g->net), is = lg_parameters(again->net);
        assert_int_equal(was.count, is.count);
        for (int64_t i = 0; i < was.count; i++)
                assert_same_bits(was.items[i], is.items[i]);
        lg_weights *file = lg_weights_open(c, inside("model.safetensors"));
        assert_shape(lg_weights_read(file, name), LG_SHAPE(rows, columns)); /* as in the file of transformers */
        lg_weights_close(file);
        free(text);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE_WITH(saved_gpt2, make_folder, remove_folder)
{
        check_saved("gpt2", "transformer.h.1.attn.c_attn.weight", 12, 36);
}

TEST_CASE_WITH(saved_llama, make_folder, remove_folder)
{
        check_saved("llama", "model.layers.1.mlp.up_proj.weight", 20, 12);
}

/* Loads the weights of GPT-2 into a network of another configuration. */
static void check_refused(const char *config, const char *words)
{
        lg_ctx *c = open_ctx();
        gpt_config o;
        assert_true(gpt_config_parse(c, config, "config", &o));
        assert_false(gpt_load(gpt_new(c, &o), data("gpt2", "")));
        assert_error(c, LG_ERR_ARGUMENT, words);
        lg_close(c);
}

#define TINY "\"vocab_size\": 21, \"n_positions\": 16, \"n_embd\": 12, \"n_head\": 3, "
TEST_CASE(other_weights)
{
        check_refused("{\"model_type\": \"gpt2\", " TINY "\"n_layer\": 3}",
                      "12 tensors of the network are missing: transformer.h.2.ln_1.weight");
        check_refused("{\"model_type\": \"gpt2\", " TINY "\"n_layer\": 1}",
                      "12 tensors are not in the network of config.json: h.1.attn.c_attn.bias");
        check_refused("{\"model_type\": \"gpt2\", " TINY "\"n_layer\": 2, \"n_inner\": 40}",
                      "6 tensors have another shape than config.json says");
        check_refused("{\"model_type\": \"gpt2\", " TINY "\"n_layer\": 2, \"tie_word_embeddings\": false}",
                      "1 tensors of the network are missing: lm_head.weight");
}

static void put(const char *name, const char *text)
{
        FILE *f = fopen(inside(name), "wb");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

TEST_CASE_WITH(missing_files, make_folder, remove_folder)
{
        lg_ctx *c = open_ctx();
        gpt_config o;
        assert_true(gpt_config_parse(c, "{\"model_type\": \"gpt2\", " TINY "\"n_layer\": 1}", "config", &o));
        gpt *g = gpt_new(c, &o);
        assert_fails(c, gpt_load(g, folder), LG_ERR_IO, "neither model.safetensors nor");
        put("model.safetensors.index.json", "{\"weight_map\": {\"wte.weight\": \"part-1.safetensors\"}}");
        assert_fails(c, gpt_load(g, folder), LG_ERR_IO, "part-1.safetensors");
        put("model.safetensors.index.json", "{\"weight_map\": {\"wte.weight\": \"../part-1.safetensors\"}}");
        assert_fails(c, gpt_load(g, folder), LG_ERR_FORMAT, "files of the same folder");
        put("model.safetensors.index.json", "{\"weight_map\": {\"wte.weight\": 3}}");
        assert_fails(c, gpt_load(g, folder), LG_ERR_FORMAT, "is no text");
        put("model.safetensors.index.json", "{\"weight_map\": ");
        assert_fails(c, gpt_load(g, folder), LG_ERR_FORMAT, "names no file");
        lg_close(c);
}

/* ---- configurations ---- */

TEST_CASE(wrong_configurations)
{
        static const char *const rows[][2] = {
                {"", "no JSON object"},
                {"[]", "no JSON object"},
                {"{\"model_type\": \"gpt2\"", "no JSON object"},
                {"{\"model_type\": \"gpt2\",}", "no JSON object"},
                {"{}", "\"model_type\" is missing; lg-gpt has \"gpt2\" and \"llama\""},
                {"{\"model_type\": \"mamba\"}", "\"model_type\" is \"mamba\""},
                {"{\"model_type\": \"gpt2\", \"n_layer\": 0}", "\"n_layer\" is 0; a whole number"},
                {"{\"model_type\": \"gpt2\", \"n_layer\": 1e9}", "too large"},
                {"{\"model_type\": \"gpt2\", \"n_layer\": 2.5}", "\"n_layer\" is 2.5"},
                {"{\"model_type\": \"gpt2\", \"n_layer\": \"2\"}", "\"n_layer\" is \"2\""},
                {"{\"model_type\": \"gpt2\", \"n_head\": 7}", "\"n_embd\" is missing; a multiple"},
                {"{\"model_type\": \"gpt2\", \"activation_function\": \"relu\"}",
                 "\"activation_function\" is \"relu\""},
                {"{\"model_type\": \"gpt2\", \"attn_pdrop\": 1.5}", "\"attn_pdrop\" is 1.5; a probability"},
                {"{\"model_type\": \"gpt2\", \"scale_attn_weights\": false}", "\"scale_attn_weights\" is false"},
                {"{\"model_type\": \"llama\", \"num_key_value_heads\": 5}", "\"num_key_value_heads\" is 5; a divisor"},
                {"{\"model_type\": \"llama\", \"head_dim\": 5}", "\"head_dim\" is 5; an even"},
                {"{\"model_type\": \"llama\", \"attention_bias\": 1}", "\"attention_bias\" is 1; true or false"},
                {"{\"model_type\": \"llama\", \"hidden_act\": \"gelu\"}", "\"hidden_act\" is \"gelu\""},
                {"{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"yarn\"}}", "lg-gpt has \"default\" and"},
                {"{\"model_type\": \"llama\", \"rope_theta\": 0}", "\"rope_theta\" is 0; it must be above 0"},
                {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8}}",
                 "\"low_freq_factor\" is missing"},
        };
        lg_ctx *c = open_ctx();
        gpt_config o;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                assert_false(gpt_config_parse(c, rows[i][0], "config", &o));
                assert_error(c, LG_ERR_FORMAT, rows[i][1]);
        }
        assert_null(gpt_config_text(c, "gpt5", 256));
        assert_error(c, LG_ERR_ARGUMENT, "there are gpt2-mini");
        lg_close(c);
}

TEST_CASE(sizes_of_models)
{
        lg_ctx *c = open_ctx();
        char *text = gpt_config_text(c, "gpt2", 50257);
        gpt_config o;
        assert_true(gpt_config_parse(c, text, "config", &o));
        assert_true(!o.llama && o.tied && o.layers == 12 && o.hidden == 3072 && o.positions == 1024);
        free(text);
        text = gpt_config_text(c, "llama-mini", 256);
        assert_true(gpt_config_parse(c, text, "config", &o));
        assert_true(o.llama && !o.tied && o.kv_heads == 2 && o.head_dim == 32);
        free(text);
        /* vocab dim (embedding, head), 4 layers of q, o, k, v, an MLP, two norms; a norm */
        assert_int_equal(lg_parameter_numel(gpt_new(c, &o)->net),
                         2 * 256 * 128 + 4 * (128 * (2 * 128 + 2 * 64 + 3 * 384) + 2 * 128) + 128);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(json_values)
{
        static const char *const wrong[] = {"",     "{",       "{\"a\"}", "{\"a\" 1}", "[1 2]", "[1,]",  "\"a",
                                            "\"\\", "nothing", "{a: 1}",  "1 2",       "[",     "\"\n\""};
        char deep[300] = "", text[16];
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                assert_null(json_parse(wrong[i]).at);
        memset(deep, '[', 200);
        assert_null(json_parse(deep).at);
        json all = json_parse(
                " {\"a\": [1, {\"b\": \"]}\"}], \"c\" : \"x\\\"y\", \"d\":-2.5e1, \"e\": null, \"f\": true} ");
        double x = 0;
        assert_non_null(all.at);
        assert_true(json_is(json_member(all, "f"), "true") && json_number(json_member(all, "d"), &x) && x == -25);
        assert_null(json_member(all, "b").at);
        assert_null(json_member(all, "e").at);
        assert_false(json_string(json_member(all, "c"), text, sizeof text));
        assert_false(json_number(json_member(all, "c"), &x));
        int count = 0;
        for (json name = {NULL, NULL}, value; json_next(all, &name, &value);)
                count++;
        assert_int_equal(count, 5);
}
