/* gpt_config.c - configurations of networks, from and to the config.json of the Hugging Face Hub. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpt.h"
#include "json.h"

#define LARGEST (16 << 20) /* bytes of a configuration or an index */
#define MOST 1e9           /* the largest size that a member may have */

/* ---- members, each with its default; a negative default: the member must be there ---- */

typedef struct reader {
        lg_ctx *c;
        const char *file;
        json all;
} reader;

static void fail(const reader *r, const char *name, const char *wanted)
{
        json v = json_member(r->all, name);
        lg_set_error(r->c, LG_ERR_FORMAT, "%s: \"%s\" is %.*s; %s", r->file, name, v.at ? (int)(v.end - v.at) : 7,
                     v.at ? v.at : "missing", wanted);
}

static double number(const reader *r, const char *name, double otherwise)
{
        json v = json_member(r->all, name);
        double x = otherwise;
        if ((v.at && !json_number(v, &x)) || !(x >= 0 && x <= MOST))
                fail(r, name, "a number of 0 or more is needed");
        return x;
}

static int64_t whole(const reader *r, const char *name, int64_t otherwise)
{
        json v = json_member(r->all, name);
        double x = (double)otherwise;
        if ((v.at && !json_number(v, &x)) || !(x >= 1 && x <= MOST) || x != floor(x)) {
                fail(r, name, "a whole number from 1 on is needed");
                return 1;
        }
        return (int64_t)x;
}

static double probability(const reader *r, const char *name, double otherwise)
{
        const double p = number(r, name, otherwise);
        if (!(p <= 1))
                fail(r, name, "a probability is needed");
        return p;
}

static bool flag(const reader *r, const char *name, bool otherwise)
{
        json v = json_member(r->all, name);
        if (v.at && !json_is(v, "true") && !json_is(v, "false"))
                fail(r, name, "true or false is needed");
        return v.at ? json_is(v, "true") : otherwise;
}

/* Fails unless a member has this value or is missing. */
static void require(const reader *r, const char *name, const char *value)
{
        json v = json_member(r->all, name);
        char words[64];
        snprintf(words, sizeof words, "lg-gpt has %s", value);
        if (v.at && !json_is(v, value))
                fail(r, name, words);
}

/* ---- the two kinds of networks ---- */

static void parse_gpt2(const reader *r, gpt_config *o)
{
        *o = (gpt_config){.vocab = whole(r, "vocab_size", 50257),
                          .positions = whole(r, "n_positions", 1024),
                          .dim = whole(r, "n_embd", 768),
                          .layers = whole(r, "n_layer", 12),
                          .heads = whole(r, "n_head", 12),
                          .eps = number(r, "layer_norm_epsilon", 1e-5),
                          .embd_dropout = probability(r, "embd_pdrop", 0.1),
                          .attn_dropout = probability(r, "attn_pdrop", 0.1),
                          .resid_dropout = probability(r, "resid_pdrop", 0.1),
                          .tied = flag(r, "tie_word_embeddings", true)};
        o->hidden = whole(r, "n_inner", 4 * o->dim);
        o->kv_heads = o->heads;
        o->head_dim = o->dim / o->heads;
        if (o->dim % o->heads)
                fail(r, "n_embd", "a multiple of \"n_head\" is needed");
        if (!json_is(json_member(r->all, "activation_function"), "\"gelu_pytorch_tanh\""))
                require(r, "activation_function", "\"gelu_new\"");
        require(r, "scale_attn_weights", "true");
        require(r, "scale_attn_by_inverse_layer_idx", "false");
        require(r, "add_cross_attention", "false");
}

/* Reads the rotary frequencies: transformers 5 writes "rope_parameters", older versions "rope_theta" and
 * "rope_scaling". */
static void parse_rope(const reader *r, gpt_config *o)
{
        reader in = *r;
        char kind[64] = "default";
        in.all = json_member(r->all, "rope_parameters");
        o->rope_theta = number(in.all.at ? &in : r, "rope_theta", 10000);
        if (!in.all.at)
                in.all = json_member(r->all, "rope_scaling");
        json type = json_member(in.all, "rope_type");
        type = type.at ? type : json_member(in.all, "type");
        if (type.at && !json_string(type, kind, sizeof kind))
                fail(&in, "rope_type", "a text is needed");
        if (!(o->rope_theta > 0))
                fail(r, "rope_theta", "it must be above 0");
        if (!strcmp(kind, "default"))
                return;
        if (strcmp(kind, "llama3")) {
                fail(&in, "rope_type", "lg-gpt has \"default\" and \"llama3\"");
                return;
        }
        o->rope_factor = number(&in, "factor", -1);
        o->rope_low = number(&in, "low_freq_factor", -1);
        o->rope_high = number(&in, "high_freq_factor", -1);
        o->rope_positions = whole(&in, "original_max_position_embeddings", -1);
        if (!lg_error(r->c) && !(o->rope_factor >= 1 && o->rope_high > o->rope_low))
                fail(&in, "high_freq_factor", "it must be above \"low_freq_factor\", and \"factor\" 1 or more");
}

static void parse_llama(const reader *r, gpt_config *o)
{
        *o = (gpt_config){.llama = true,
                          .vocab = whole(r, "vocab_size", 32000),
                          .positions = whole(r, "max_position_embeddings", 2048),
                          .dim = whole(r, "hidden_size", 4096),
                          .hidden = whole(r, "intermediate_size", 11008),
                          .layers = whole(r, "num_hidden_layers", 32),
                          .heads = whole(r, "num_attention_heads", 32),
                          .eps = number(r, "rms_norm_eps", 1e-6),
                          .attn_dropout = probability(r, "attention_dropout", 0),
                          .attn_bias = flag(r, "attention_bias", false),
                          .mlp_bias = flag(r, "mlp_bias", false),
                          .tied = flag(r, "tie_word_embeddings", false)};
        o->kv_heads = whole(r, "num_key_value_heads", o->heads);
        o->head_dim = whole(r, "head_dim", o->dim / o->heads ? o->dim / o->heads : -1);
        if (o->heads % o->kv_heads)
                fail(r, "num_key_value_heads", "a divisor of \"num_attention_heads\" is needed");
        if (o->head_dim % 2)
                fail(r, "head_dim", "an even number is needed");
        require(r, "hidden_act", "\"silu\"");
        parse_rope(r, o);
}

bool gpt_config_parse(lg_ctx *c, const char *text, const char *name, gpt_config *ret)
{
        const reader r = {c, name, text ? json_parse(text) : (json){NULL, NULL}};
        gpt_config o = {0};
        if (lg_error(c))
                return false;
        json type = json_member(r.all, "model_type");
        if (!r.all.at || *r.all.at != '{')
                lg_set_error(c, LG_ERR_FORMAT, "%s: it is no JSON object", name);
        else if (json_is(type, "\"gpt2\""))
                parse_gpt2(&r, &o);
        else if (json_is(type, "\"llama\""))
                parse_llama(&r, &o);
        else
                fail(&r, "model_type", "lg-gpt has \"gpt2\" and \"llama\"");
        if (!lg_error(c) &&
            (o.layers > 10000 || o.dim > 1 << 20 || o.hidden > 1 << 24 || o.head_dim > 1 << 16 || o.heads > 1 << 16))
                lg_set_error(c, LG_ERR_FORMAT, "%s: %lld layers of size %lld and %lld are too large", name,
                             (long long)o.layers, (long long)o.dim, (long long)o.hidden);
        if (!lg_error(c))
                *ret = o;
        return !lg_error(c);
}

/* ---- new models ---- */

#define GPT2(dim, layers, heads)                                                                                       \
        "{\n  \"architectures\": [\"GPT2LMHeadModel\"],\n  \"model_type\": \"gpt2\",\n  \"vocab_size\": %lld,\n"       \
        "  \"n_positions\": 1024,\n  \"n_embd\": " #dim ",\n  \"n_layer\": " #layers ",\n  \"n_head\": " #heads        \
        ",\n  \"embd_pdrop\": 0.0,\n  \"attn_pdrop\": 0.0,\n  \"resid_pdrop\": 0.0,\n  \"dtype\": \"float32\"\n}\n"
#define LLAMA(dim, hidden, layers, heads, kv_heads)                                                                    \
        "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n  \"vocab_size\": %lld,\n"     \
        "  \"max_position_embeddings\": 2048,\n  \"hidden_size\": " #dim ",\n  \"intermediate_size\": " #hidden        \
        ",\n  \"num_hidden_layers\": " #layers ",\n  \"num_attention_heads\": " #heads                                 \
        ",\n  \"num_key_value_heads\": " #kv_heads ",\n  \"rms_norm_eps\": 1e-05,\n  \"dtype\": \"float32\"\n}\n"

static const struct {
        const char *name, *text;
} models[] = {
        {"gpt2-mini", GPT2(128, 4, 4)},           {"gpt2", GPT2(768, 12, 12)},
        {"gpt2-medium", GPT2(1024, 24, 16)},      {"gpt2-large", GPT2(1280, 36, 20)},
        {"gpt2-xl", GPT2(1600, 48, 25)},          {"llama-mini", LLAMA(128, 384, 4, 4, 2)},
        {"llama-20m", LLAMA(384, 1024, 8, 6, 2)},
};

char *gpt_config_text(lg_ctx *c, const char *model, int64_t vocab)
{
        const size_t size = 1000;
        size_t i = 0;
        while (i < sizeof models / sizeof *models && strcmp(models[i].name, model))
                i++;
        if (i == sizeof models / sizeof *models) {
                lg_set_error(c, LG_ERR_ARGUMENT,
                             "--model %s: there are gpt2-mini, gpt2, gpt2-medium, gpt2-large, gpt2-xl, llama-mini and "
                             "llama-20m",
                             model);
                return NULL;
        }
        char *text = malloc(size);
        if (text)
                snprintf(text, size, models[i].text, (long long)vocab);
        else
                lg_set_error(c, LG_ERR_MEMORY, "no memory for a configuration");
        return text;
}

/* ---- files ---- */

char *gpt_read_text(lg_ctx *c, const char *path)
{
        char *text = malloc(LARGEST + 1);
        errno = 0;
        FILE *f = text ? fopen(path, "rb") : NULL;
        const size_t n = f ? fread(text, 1, LARGEST + 1, f) : 0;
        const bool whole_file = f && !ferror(f) && n <= LARGEST;
        const int code = errno;
        if (f)
                fclose(f);
        if (whole_file && !memchr(text, 0, n)) {
                text[n] = 0;
                return text;
        }
        free(text);
        if (!text)
                lg_set_error(c, LG_ERR_MEMORY, "no memory for %s", path);
        else if (f && !code)
                lg_set_error(c, LG_ERR_FORMAT, "%s: it is no text of up to 16 MB", path);
        else
                lg_set_error(c, LG_ERR_IO, "%s: %s", path, strerror(code));
        return NULL;
}

/* Writes the text but for the dtype, since weights are written in f32. */
bool gpt_config_write(lg_ctx *c, const char *text, const char *path)
{
        json all = json_parse(text), dtype = json_member(all, "dtype");
        FILE *f = fopen(path, "wb");
        dtype = dtype.at ? dtype : json_member(all, "torch_dtype");
        if (f && dtype.at)
                fprintf(f, "%.*s\"float32\"%s", (int)(dtype.at - text), text, dtype.end);
        else if (f)
                fputs(text, f);
        const bool ok = f && !ferror(f);
        if ((f && fclose(f)) || !ok)
                return lg_set_error(c, LG_ERR_IO, "%s cannot be written: %s", path, strerror(errno));
        return true;
}
