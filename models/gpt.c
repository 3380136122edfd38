/* gpt.c - the networks: GPT-2 (Radford et al. 2019) and Llama (Touvron et al. 2023), of public calls only.
 *
 * A network is an embedding, layers x + attention(norm(x)), x + mlp(norm(x)), a norm and a head. The modules are named
 * as in transformers, so that weights of the Hub fit by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "gpt.h"

/* A layer's attention, for its place in the cache. */
typedef struct layer {
        gpt *g;
        int64_t index;
} layer;

static lg_tensor *run_child(lg_module *m, const char *name, lg_tensor *x)
{
        return lg_forward(lg_child_named(m, name), x);
}

/* ---- attention ---- */

/* Appends k or v (N, kv_heads, T, head_dim) to a tensor of the cache, and returns all that it holds. */
static lg_tensor *append(gpt *g, lg_tensor **cache, lg_tensor *x)
{
        const lg_shape s = lg_shape_of(x);
        if (!*cache && x)
                *cache = lg_keep(lg_empty(lg_ctx_of(x), LG_SHAPE(s.size[0], s.size[1], g->capacity, s.size[3]),
                                          .dtype = lg_dtype_of(x), .device = lg_device_of(x)));
        lg_copy_(lg_slice(*cache, 2, g->past, g->past + s.size[2]), x);
        return lg_slice(*cache, 2, 0, g->past + s.size[2]);
}

/* Returns x (N, T, heads head_dim) as (N, heads, T, head_dim). */
static lg_tensor *split_heads(const gpt *g, lg_tensor *x, int64_t heads)
{
        x = lg_reshape(x, LG_SHAPE(lg_size_of(x, 0), lg_size_of(x, 1), heads, g->o.head_dim));
        return lg_permute(x, LG_DIMS(0, 2, 1, 3));
}

/* Attends by heads and joins them again: (N, T, heads head_dim). */
static lg_tensor *attend(const lg_module *m, const layer *l, lg_tensor *q, lg_tensor *k, lg_tensor *v)
{
        gpt *g = l->g;
        if (g->capacity) {
                k = append(g, &g->cache[2 * l->index], k);
                v = append(g, &g->cache[2 * l->index + 1], v);
        }
        lg_tensor *y = lg_attention(q, k, v, .causal = true, .offset = g->past,
                                    .dropout = lg_is_training(m) ? g->o.attn_dropout : 0);
        y = lg_permute(y, LG_DIMS(0, 2, 1, 3));
        return lg_reshape(y, LG_SHAPE(lg_size_of(y, 0), lg_size_of(y, 1), g->o.heads * g->o.head_dim));
}

static lg_tensor *gpt2_attention(lg_module *m, lg_list in, void *user)
{
        const layer *l = user;
        const int64_t heads = l->g->o.heads;
        lg_tensor *all = split_heads(l->g, run_child(m, "c_attn", in.items[0]), 3 * heads), *h[3] = {NULL};
        lg_split(all, heads, 1, h, 3);
        return run_child(m, "c_proj", attend(m, l, h[0], h[1], h[2]));
}

/* inputs: x, and the cosines and sines of its positions. */
static lg_tensor *llama_attention(lg_module *m, lg_list in, void *user)
{
        const layer *l = user;
        const gpt_config *o = &l->g->o;
        lg_tensor *x = in.items[0];
        lg_tensor *q = split_heads(l->g, run_child(m, "q_proj", x), o->heads);
        lg_tensor *k = split_heads(l->g, run_child(m, "k_proj", x), o->kv_heads);
        lg_tensor *v = split_heads(l->g, run_child(m, "v_proj", x), o->kv_heads);
        q = lg_rotary(q, in.items[1], in.items[2]);
        k = lg_rotary(k, in.items[1], in.items[2]);
        return run_child(m, "o_proj", attend(m, l, q, k, v));
}

/* ---- layers ---- */

static lg_tensor *gpt2_mlp(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return run_child(m, "c_proj", lg_gelu_tanh(run_child(m, "c_fc", in.items[0])));
}

static lg_tensor *llama_mlp(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_tensor *gate = lg_silu(run_child(m, "gate_proj", in.items[0]));
        return run_child(m, "down_proj", lg_mul(gate, run_child(m, "up_proj", in.items[0])));
}

/* Runs a layer, whose children are a norm, the attention, a norm and the MLP. */
static lg_tensor *run_layer(lg_module *m, lg_list in, void *user)
{
        const gpt *g = user;
        lg_tensor *x = in.items[0], *h = lg_forward(lg_child(m, 0), x);
        h = g->o.llama ? lg_forward(lg_child(m, 1), h, in.items[1], in.items[2]) : lg_forward(lg_child(m, 1), h);
        x = lg_add(x, lg_dropout(h, g->o.resid_dropout, .training = lg_is_training(m)));
        h = lg_forward(lg_child(m, 3), lg_forward(lg_child(m, 2), x));
        return lg_add(x, lg_dropout(h, g->o.resid_dropout, .training = lg_is_training(m)));
}

/* ---- the network ---- */

/* Returns the rotary frequency of pair i: theta^(-2 i / head_dim), or, scaled as in Llama 3.1, less for long waves. */
static double frequency(const gpt_config *o, int64_t i)
{
        const double f = pow(o->rope_theta, -2.0 * (double)i / (double)o->head_dim);
        if (!(o->rope_factor > 0))
                return f;
        const double waves = (double)o->rope_positions * f / (2 * 3.14159265358979323846);
        const double smooth = (waves - o->rope_low) / (o->rope_high - o->rope_low);
        return waves < o->rope_low    ? f / o->rope_factor
               : waves > o->rope_high ? f
                                      : (1 - smooth) * f / o->rope_factor + smooth * f;
}

/* Sets *ret_cos and *ret_sin to those of t positions behind the cached ones, (t, head_dim / 2). */
static void rotary_tables(lg_ctx *c, const gpt *g, int64_t t, lg_device device, lg_tensor **ret_cos,
                          lg_tensor **ret_sin)
{
        const int64_t n = g->o.head_dim / 2;
        double *f = malloc((size_t)n * sizeof *f);
        for (int64_t i = 0; f && i < n; i++)
                f[i] = frequency(&g->o, i);
        if (!f)
                lg_set_error(c, LG_ERR_MEMORY, "no memory for %lld frequencies", (long long)n);
        lg_tensor *at = lg_arange(c, (double)g->past, (double)(g->past + t), 1, .dtype = LG_F64, .device = lg_cpu());
        lg_tensor *angles = lg_outer(at, f ? lg_from(c, f, LG_SHAPE(n), .device = lg_cpu()) : NULL);
        *ret_cos = lg_to(lg_cast(lg_cos(angles), LG_F32), device);
        *ret_sin = lg_to(lg_cast(lg_sin(angles), LG_F32), device);
        free(f);
}

/* Runs the layers of `blocks` on x. */
static lg_tensor *run_layers(const gpt *g, lg_module *blocks, lg_tensor *x)
{
        lg_tensor *cos = NULL, *sin = NULL;
        if (g->o.llama)
                rotary_tables(lg_ctx_of(x), g, lg_size_of(x, 1), lg_device_of(x), &cos, &sin);
        for (int i = 0; x && i < lg_child_count(blocks); i++) {
                lg_module *block = lg_child(blocks, i);
                if (g->o.llama)
                        x = g->recompute ? lg_recompute(block, x, cos, sin) : lg_forward(block, x, cos, sin);
                else
                        x = g->recompute ? lg_recompute(block, x) : lg_forward(block, x);
        }
        return x;
}

/* Maps tokens (N, T) to states (N, T, dim). */
static lg_tensor *run_body(lg_module *m, lg_list in, void *user)
{
        const gpt *g = user;
        lg_tensor *tokens = in.items[0], *x;
        const int64_t t = lg_size_of(tokens, 1);
        if (lg_ndim_of(tokens) != 2 || t < 1 || g->past + t > (g->capacity ? g->capacity : g->o.positions)) {
                lg_set_error(lg_module_ctx(m), LG_ERR_SHAPE,
                             "%s: tokens are (N, T) with T from 1 to %lld; %lld positions are cached",
                             lg_module_type(m), (long long)(g->capacity ? g->capacity : g->o.positions),
                             (long long)g->past);
                return NULL;
        }
        if (g->o.llama)
                return run_child(m, "norm",
                                 run_layers(g, lg_child_named(m, "layers"), run_child(m, "embed_tokens", tokens)));
        x = lg_add(run_child(m, "wte", tokens), lg_slice(lg_parameter(m, "wpe.weight"), 0, g->past, g->past + t));
        x = lg_dropout(x, g->o.embd_dropout, .training = lg_is_training(m));
        return run_child(m, "ln_f", run_layers(g, lg_child_named(m, "h"), x));
}

static lg_tensor *run_gpt(lg_module *m, lg_list in, void *user)
{
        gpt *g = user;
        lg_tensor *x = lg_forward(lg_child(m, 0), in.items[0]);
        if (g->capacity) {
                g->past += lg_size_of(x, 1);
                x = lg_select(x, 1, -1);
        }
        if (!g->o.tied)
                return run_child(m, "lm_head", x);
        return lg_linear(x, lg_parameter(m, g->o.llama ? "model.embed_tokens.weight" : "transformer.wte.weight"), NULL);
}

lg_tensor *gpt_loss(gpt *g, lg_tensor *x, lg_tensor *y)
{
        return lg_cross_entropy(lg_flatten(lg_forward(g->net, x), .end_dim = 1), lg_flatten(y, .end_dim = 1));
}

void gpt_set_cache(gpt *g, int64_t capacity)
{
        for (int64_t i = 0; i < 2 * g->o.layers; i++) {
                lg_free(g->cache[i]);
                g->cache[i] = NULL;
        }
        g->capacity = capacity;
        g->past = 0;
}

/* ---- construction ---- */

static lg_module *make_attention(gpt *g, lg_ctx *c, int64_t index)
{
        const gpt_config *o = &g->o;
        const int64_t q = o->heads * o->head_dim, kv = o->kv_heads * o->head_dim;
        layer *l = malloc(sizeof *l);
        if (!l) {
                lg_set_error(c, LG_ERR_MEMORY, "no memory for a layer");
                return NULL;
        }
        *l = (layer){g, index};
        lg_module *m = lg_nn_module(c, o->llama ? "LlamaAttention" : "GPT2Attention",
                                    .forward = o->llama ? llama_attention : gpt2_attention, .user = l, .release = free);
        if (!o->llama) {
                lg_module_add(m, "c_attn", lg_nn_linear(c, o->dim, 3 * q));
                lg_module_add(m, "c_proj", lg_nn_linear(c, q, o->dim));
                return m;
        }
        lg_module_add(m, "q_proj", lg_nn_linear(c, o->dim, q, .no_bias = !o->attn_bias));
        lg_module_add(m, "k_proj", lg_nn_linear(c, o->dim, kv, .no_bias = !o->attn_bias));
        lg_module_add(m, "v_proj", lg_nn_linear(c, o->dim, kv, .no_bias = !o->attn_bias));
        lg_module_add(m, "o_proj", lg_nn_linear(c, q, o->dim, .no_bias = !o->attn_bias));
        return m;
}

static lg_module *make_mlp(const gpt_config *o, lg_ctx *c)
{
        lg_module *m = lg_nn_module(c, o->llama ? "LlamaMLP" : "GPT2MLP", .forward = o->llama ? llama_mlp : gpt2_mlp);
        if (!o->llama) {
                lg_module_add(m, "c_fc", lg_nn_linear(c, o->dim, o->hidden));
                lg_module_add(m, "c_proj", lg_nn_linear(c, o->hidden, o->dim));
                return m;
        }
        lg_module_add(m, "gate_proj", lg_nn_linear(c, o->dim, o->hidden, .no_bias = !o->mlp_bias));
        lg_module_add(m, "up_proj", lg_nn_linear(c, o->dim, o->hidden, .no_bias = !o->mlp_bias));
        lg_module_add(m, "down_proj", lg_nn_linear(c, o->hidden, o->dim, .no_bias = !o->mlp_bias));
        return m;
}

static lg_module *make_norm(const gpt_config *o, lg_ctx *c)
{
        return o->llama ? lg_nn_rms_norm(c, LG_SHAPE(o->dim), .eps = o->eps)
                        : lg_nn_layer_norm(c, LG_SHAPE(o->dim), .eps = o->eps);
}

static lg_module *make_layer(gpt *g, lg_ctx *c, int64_t index)
{
        const gpt_config *o = &g->o;
        lg_module *m = lg_nn_module(c, o->llama ? "LlamaDecoderLayer" : "GPT2Block", .forward = run_layer, .user = g);
        lg_module_add(m, o->llama ? "input_layernorm" : "ln_1", make_norm(o, c));
        lg_module_add(m, o->llama ? "self_attn" : "attn", make_attention(g, c, index));
        lg_module_add(m, o->llama ? "post_attention_layernorm" : "ln_2", make_norm(o, c));
        lg_module_add(m, "mlp", make_mlp(o, c));
        return m;
}

static lg_module *make_body(gpt *g, lg_ctx *c)
{
        const gpt_config *o = &g->o;
        lg_module *m = lg_nn_module(c, o->llama ? "LlamaModel" : "GPT2Model", .forward = run_body, .user = g);
        lg_module_add(m, o->llama ? "embed_tokens" : "wte", lg_nn_embedding(c, o->vocab, o->dim));
        if (!o->llama)
                lg_module_add(m, "wpe", lg_nn_embedding(c, o->positions, o->dim));
        lg_module *layers = lg_module_add(m, o->llama ? "layers" : "h", lg_nn_module_list(c));
        for (int64_t i = 0; i < o->layers && !lg_error(c); i++)
                lg_module_append(layers, make_layer(g, c, i));
        lg_module_add(m, o->llama ? "norm" : "ln_f", make_norm(o, c));
        return m;
}

/* Sets weights and biases as transformers does: normal with deviation 0.02, GPT-2's projections into the sum of the
 * layers with 0.02 / sqrt(2 layers); biases 0. */
static void init(lg_module *net, const gpt_config *o)
{
        const lg_list all = lg_parameters(net), biases = lg_parameters_matching(net, "*.bias");
        for (int64_t i = 0; i < all.count; i++)
                if (lg_ndim_of(all.items[i]) == 2)
                        lg_init_normal(all.items[i], 0, 0.02);
        for (int64_t i = 0; i < biases.count; i++)
                lg_init_constant(biases.items[i], 0);
        const lg_list last = lg_parameters_matching(net, "*.c_proj.weight");
        for (int64_t i = 0; i < last.count; i++)
                lg_init_normal(last.items[i], 0, 0.02 / sqrt(2.0 * (double)o->layers));
}

static void release(void *user)
{
        gpt *g = user;
        gpt_set_cache(g, 0);
        free(g->cache);
        free(g);
}

gpt *gpt_new(lg_ctx *c, const gpt_config *config)
{
        gpt *g = calloc(1, sizeof *g);
        lg_tensor **cache = calloc((size_t)(2 * config->layers + 1), sizeof *cache);
        if (!g || !cache) {
                lg_set_error(c, LG_ERR_MEMORY, "no memory for a network");
                free(g);
                free(cache);
                return NULL;
        }
        *g = (gpt){.o = *config, .cache = cache};
        lg_module *net = lg_nn_module(c, config->llama ? "LlamaForCausalLM" : "GPT2LMHeadModel", .forward = run_gpt,
                                      .user = g, .release = release);
        if (!net)
                return NULL;
        g->net = net;
        lg_module_add(net, config->llama ? "model" : "transformer", make_body(g, c));
        if (!config->tied)
                lg_module_add(net, "lm_head", lg_nn_linear(c, config->dim, config->vocab, .no_bias = true));
        init(net, config);
        if (!lg_error(c))
                return g;
        lg_module_free(net);
        return NULL;
}
