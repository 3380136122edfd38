/* transformer.c - Transformer, its encoder and decoder, and their layers: x + f(norm(x)), or norm(x + f(x)), where f is
 * attention or relu(x W1^T + b1) W2^T + b2. */
#include "attention.h"

#define MOST_LAYERS 10000

typedef struct sizes {
        int64_t dim, heads, layers;
        bool decodes;
        lg_transformer_options o; /* with all defaults filled in */
} sizes;

typedef lg_run_decoder_options masks; /* of a layer or a stack of layers */

/* Runs m by `forward` on x and the memory, which is NULL for an encoder. */
static lg_tensor *run(lg_module *m, const char *op, lg_forward_all_fn *forward, lg_tensor *x, lg_tensor *memory,
                      void *options)
{
        lg_tensor *inputs[] = {x, memory};
        lg_outputs all;
        return lg__forward_typed(m, (lg_list){2, inputs}, &(lg__typed_call){op, forward, options}, &all) ? all.items[0]
                                                                                                         : NULL;
}

/* Stores the one result of a forward in *ret, and returns whether there is one. */
static bool give(lg_outputs *ret, lg_tensor *y)
{
        *ret = (lg_outputs){.count = 1, .items = {y}};
        return y != NULL;
}

/* Runs `forward` on the inputs of lg_forward(): one, or two with these names. */
static lg_tensor *run_plain(lg_module *m, lg_list in, lg_forward_all_fn *forward, const char *two, void *options)
{
        lg_outputs all;
        if (in.count != (two ? 2 : 1))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_forward: %s takes %s, %lld inputs were given",
                                m->type, two ? two : "one input", (long long)in.count);
        lg_tensor *inputs[] = {in.items[0], two ? in.items[1] : NULL};
        return forward(m, (lg_list){2, inputs}, &all, options) ? all.items[0] : NULL;
}

/* ---- layers: children self_attn, multihead_attn of a decoder, linear1, linear2, norm1, norm2, norm3 of a decoder ----
 */

static lg_tensor *drop(const lg_module *m, lg_tensor *x)
{
        const sizes *s = m->user;
        return lg_dropout(x, s->o.dropout, .training = m->training);
}

static lg_tensor *feed_forward(lg_module *m, lg_tensor *x, int first)
{
        const sizes *s = m->user;
        lg_module *linear1 = lg_child(m, first), *linear2 = lg_child(m, first + 1);
        const bool fuses = !s->o.gelu && linear1 && linear1->epilogues & LG__EPILOGUE_RELU;
        lg_tensor *h =
                fuses ? lg__forward_with_epilogue(linear1, x, (lg__epilogue){.relu = true}) : lg_forward(linear1, x);
        h = fuses ? h : s->o.gelu ? lg_gelu(h) : lg_relu(h);
        h = drop(m, h);
        return h ? lg_forward(linear2, h) : NULL;
}

/* Attends over x itself (`over` NULL) or over the memory, which a cache holds from the first call on. */
static lg_tensor *attend(lg_module *m, int child, lg_tensor *x, lg_tensor *over, const masks *o)
{
        lg_module *attention = lg_child(m, child);
        if (!over)
                return lg_run_attention(attention, x, x, x, .mask = o->mask, .key_mask = o->key_mask,
                                        .causal = o->causal, .cache = o->cache);
        if (attention && o->cache && lg__kv_cache_holds(o->cache, attention))
                over = NULL;
        return lg_run_attention(attention, x, over, over, .mask = o->memory_mask, .key_mask = o->memory_key_mask,
                                .cache = o->cache);
}

static bool run_layer(lg_module *m, lg_list in, lg_outputs *ret, void *options)
{
        const sizes *s = m->user;
        const int parts = s->decodes ? 3 : 2; /* each with a norm */
        lg_tensor *x = in.items[0];
        for (int i = 0; i < parts && x; i++) {
                lg_module *norm = lg_child(m, parts + 1 + i);
                lg_tensor *h = s->o.norm_first ? lg_forward(norm, x) : x;
                if (h)
                        h = i == parts - 1 ? feed_forward(m, h, parts - 1)
                                           : attend(m, i, h, i ? in.items[1] : NULL, options);
                h = h ? drop(m, h) : NULL;
                x = h ? lg_add(x, h) : NULL;
                if (x && !s->o.norm_first)
                        x = lg_forward(norm, x);
        }
        return give(ret, x);
}

static lg_tensor *forward_layer(lg_module *m, lg_list in, void *user)
{
        return run_plain(m, in, run_layer, ((const sizes *)user)->decodes ? "x and memory" : NULL,
                         &(masks){.size_ = 0});
}

/* ---- stacks: children layers, norm ---- */

static bool run_stack(lg_module *m, lg_list in, lg_outputs *ret, void *options)
{
        lg_module *layers = lg_child(m, 0), *norm = lg_child_count(m) > 1 ? lg_child(m, 1) : NULL;
        lg_tensor *x = in.items[0];
        for (int i = 0; i < lg_child_count(layers) && x; i++) {
                lg_module *layer = lg_child(layers, i);
                lg_tensor *before = x;
                if (layer->forward != forward_layer)
                        return lg__fail(m->object.ctx, LG_ERR_STATE, "lg_forward: layer %d of the %s is a %s", i,
                                        m->type, layer->type);
                x = run(layer, "lg_forward", run_layer, x, in.items[1], options);
                if (before != in.items[0] && before != x)
                        lg__tensor_release(before);
        }
        return give(ret, norm && x ? lg_forward(norm, x) : x);
}

static lg_tensor *forward_stack(lg_module *m, lg_list in, void *user)
{
        return run_plain(m, in, run_stack, ((const sizes *)user)->decodes ? "x and memory" : NULL,
                         &(masks){.size_ = 0});
}

/* ---- the transformer: children encoder, decoder ---- */

static bool run_whole(lg_module *m, lg_list in, lg_outputs *ret, void *options)
{
        const lg_run_transformer_options *o = options;
        masks of_source = {.mask = o->source_mask, .key_mask = o->source_key_mask};
        masks of_target = {.mask = o->mask,
                           .key_mask = o->key_mask,
                           .causal = o->causal,
                           .memory_mask = o->memory_mask,
                           .memory_key_mask = o->memory_key_mask};
        lg_tensor *memory = run(lg_child(m, 0), "lg_forward", run_stack, in.items[0], NULL, &of_source);
        return give(ret, memory ? run(lg_child(m, 1), "lg_forward", run_stack, in.items[1], memory, &of_target) : NULL);
}

static lg_tensor *forward_whole(lg_module *m, lg_list in, void *user)
{
        (void)user;
        return run_plain(m, in, run_whole, "source and target", &(lg_run_transformer_options){.size_ = 0});
}

/* ---- calls with options ---- */

/* Copies the options. x is a tensor that m runs on, `other`, if it has a name, another one. */
static bool may_run(lg_module *m, const char *op, const void *options, void *ret, size_t size, const lg_tensor *x,
                    const lg_tensor *other, const char *name)
{
        lg_ctx *c = m ? m->object.ctx : lg__ctx_of(x ? x : other);
        if (!lg__take(c, op, options, ret, size) || (m && !lg__object_lasts(&m->object, op)))
                return false;
        return !m || !name || other || lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", op, name);
}

/* Runs an encoder or decoder, or a layer of one. */
static lg_tensor *run_any(lg_module *m, const char *op, bool decodes, lg_tensor *x, lg_tensor *memory, masks *o)
{
        const bool stack = m && m->forward == forward_stack;
        if (m && ((!stack && m->forward != forward_layer) || ((const sizes *)m->user)->decodes != decodes))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                "%s: m is a %s; it takes a Transformer%s or a layer of one", op, m->type,
                                decodes ? "Decoder" : "Encoder");
        return run(m, op, stack ? run_stack : run_layer, x, memory, o);
}

lg_tensor *lg_run_encoder_with(lg_module *m, lg_tensor *x, const lg_run_encoder_options *options)
{
        static const char op[] = "lg_run_encoder";
        lg_run_encoder_options o;
        if (!may_run(m, op, options, &o, sizeof o, x, NULL, NULL))
                return NULL;
        masks all = {.mask = o.mask, .key_mask = o.key_mask, .causal = o.causal, .cache = o.cache};
        return run_any(m, op, false, x, NULL, &all);
}

lg_tensor *lg_run_decoder_with(lg_module *m, lg_tensor *x, lg_tensor *memory, const lg_run_decoder_options *options)
{
        static const char op[] = "lg_run_decoder";
        masks o;
        return may_run(m, op, options, &o, sizeof o, x, memory, "memory") ? run_any(m, op, true, x, memory, &o) : NULL;
}

lg_tensor *lg_run_transformer_with(lg_module *m, lg_tensor *source, lg_tensor *target,
                                   const lg_run_transformer_options *options)
{
        static const char op[] = "lg_run_transformer";
        lg_run_transformer_options o;
        if (!may_run(m, op, options, &o, sizeof o, source, target, "target"))
                return NULL;
        if (m && m->forward != forward_whole)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: m is a %s; it takes a Transformer", op, m->type);
        return run(m, op, run_whole, source, target, &o);
}

/* ---- construction ---- */

/* Makes `child`, which may be NULL, a child of m, or frees it. */
static bool add(lg_module *m, const char *name, lg_module *child)
{
        if (child && lg__module_attach(m, name, child, "lg_nn_transformer"))
                return true;
        lg__object_destroy(child);
        return false;
}

static lg_module *make_norm(const lg_module *m)
{
        const sizes *s = m->user;
        return lg_nn_layer_norm(m->object.ctx, LG_SHAPE(s->dim), .eps = s->o.eps, .no_bias = s->o.no_bias,
                                .dtype = s->o.dtype, .device = s->o.device);
}

static lg_module *make_attention(const lg_module *m)
{
        const sizes *s = m->user;
        return lg_nn_multihead_attention(m->object.ctx, s->dim, s->heads, .dropout = s->o.dropout,
                                         .no_bias = s->o.no_bias, .batch_first = s->o.batch_first, .dtype = s->o.dtype,
                                         .device = s->o.device);
}

static lg_module *make_linear(const lg_module *m, int64_t in, int64_t out)
{
        const sizes *s = m->user;
        return lg_nn_linear(m->object.ctx, in, out, .no_bias = s->o.no_bias, .dtype = s->o.dtype,
                            .device = s->o.device);
}

static bool fill_layer(lg_module *m, const void *options)
{
        const sizes *s = options;
        return add(m, "self_attn", make_attention(m)) && (!s->decodes || add(m, "multihead_attn", make_attention(m))) &&
               add(m, "linear1", make_linear(m, s->dim, s->o.feedforward)) &&
               add(m, "linear2", make_linear(m, s->o.feedforward, s->dim)) && add(m, "norm1", make_norm(m)) &&
               add(m, "norm2", make_norm(m)) && (!s->decodes || add(m, "norm3", make_norm(m)));
}

static lg_module *make_layer(lg_ctx *c, const sizes *s)
{
        return lg__module_build(c, s->decodes ? "TransformerDecoderLayer" : "TransformerEncoderLayer", forward_layer, s,
                                sizeof *s, fill_layer, s);
}

static bool fill_stack(lg_module *m, const void *options)
{
        const sizes *s = options;
        lg_ctx *c = m->object.ctx;
        if (!add(m, "layers", lg_nn_module_list(c)))
                return false;
        for (int64_t i = 0; i < s->layers; i++) {
                char name[24];
                snprintf(name, sizeof name, "%lld", (long long)i);
                if (!add(lg_child(m, 0), name, make_layer(c, s)))
                        return false;
        }
        return !s->o.final_norm || add(m, "norm", make_norm(m));
}

static lg_module *make_stack(lg_ctx *c, const sizes *s)
{
        return lg__module_build(c, s->decodes ? "TransformerDecoder" : "TransformerEncoder", forward_stack, s,
                                sizeof *s, fill_stack, s);
}

static bool fill_whole(lg_module *m, const void *options)
{
        sizes s = *(const sizes *)options;
        s.o.final_norm = true;
        s.layers = s.o.encoder_layers;
        bool ok = add(m, "encoder", make_stack(m->object.ctx, &s));
        s.layers = s.o.decoder_layers;
        s.decodes = true;
        ok = ok && add(m, "decoder", make_stack(m->object.ctx, &s));
        const lg_list all = ok ? lg_parameters(m) : (lg_list){0, NULL};
        for (int64_t i = 0; i < all.count && ok; i++)
                ok = all.items[i]->at.shape.ndim < 2 || lg_init_xavier_uniform(all.items[i]);
        return ok;
}

/* Fills s->o in from the options and checks all. stack: s->layers is an argument; whole: the options have two. */
static bool take(lg_ctx *c, const char *op, const lg_transformer_options *options, bool stack, bool whole, sizes *s)
{
        lg_transformer_options *o = &s->o;
        if (!lg__take(c, op, options, o, sizeof *o))
                return false;
        if (!whole && (o->encoder_layers || o->decoder_layers))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: encoder_layers and decoder_layers are options of lg_nn_transformer", op);
        if (!stack && o->final_norm)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: final_norm is an option of encoders and decoders", op);
        o->feedforward = lg__whole_option(o->feedforward, 2048);
        o->encoder_layers = lg__whole_option(o->encoder_layers, 6);
        o->decoder_layers = lg__whole_option(o->decoder_layers, 6);
        o->dropout = lg__option(o->dropout, 0.1);
        const int64_t layers[] = {s->layers, o->encoder_layers, o->decoder_layers};
        for (int i = 0; i < 3; i++)
                if (layers[i] < 0 || layers[i] > MOST_LAYERS)
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld layers; 0 to %d are possible", op,
                                        (long long)layers[i], MOST_LAYERS);
        if (s->dim < 1 || s->heads < 1 || s->dim % s->heads)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: dim %lld is not a positive multiple of %lld heads", op,
                                (long long)s->dim, (long long)s->heads);
        if (o->feedforward < 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: feedforward is %lld; it must be 1 or more", op,
                                (long long)o->feedforward);
        if (!(o->dropout >= 0 && o->dropout <= 1))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: dropout is %g, not in [0, 1]", op, o->dropout);
        return lg__module_dtype(c, op, o->dtype);
}

lg_module *lg_nn_transformer_encoder_layer_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                const lg_transformer_options *options)
{
        sizes s = {.dim = dim, .heads = heads};
        return take(c, "lg_nn_transformer_encoder_layer", options, false, false, &s) ? make_layer(c, &s) : NULL;
}

lg_module *lg_nn_transformer_decoder_layer_with(lg_ctx *c, int64_t dim, int64_t heads,
                                                const lg_transformer_options *options)
{
        sizes s = {.dim = dim, .heads = heads, .decodes = true};
        return take(c, "lg_nn_transformer_decoder_layer", options, false, false, &s) ? make_layer(c, &s) : NULL;
}

lg_module *lg_nn_transformer_encoder_with(lg_ctx *c, int64_t dim, int64_t heads, int64_t layers,
                                          const lg_transformer_options *options)
{
        sizes s = {.dim = dim, .heads = heads, .layers = layers};
        return take(c, "lg_nn_transformer_encoder", options, true, false, &s) ? make_stack(c, &s) : NULL;
}

lg_module *lg_nn_transformer_decoder_with(lg_ctx *c, int64_t dim, int64_t heads, int64_t layers,
                                          const lg_transformer_options *options)
{
        sizes s = {.dim = dim, .heads = heads, .layers = layers, .decodes = true};
        return take(c, "lg_nn_transformer_decoder", options, true, false, &s) ? make_stack(c, &s) : NULL;
}

lg_module *lg_nn_transformer_with(lg_ctx *c, int64_t dim, int64_t heads, const lg_transformer_options *options)
{
        sizes s = {.dim = dim, .heads = heads};
        return take(c, "lg_nn_transformer", options, true, true, &s)
                       ? lg__module_build(c, "Transformer", forward_whole, &s, sizeof s, fill_whole, &s)
                       : NULL;
}
