/* tokenizer.c - tokenizers: opening and freeing, the vocabulary, encoding and decoding of texts. */
#include "tokenizer.h"

/* ---- memory ---- */

bool lg__buffer_reserve(lg_ctx *c, lg__buffer *b, int64_t more)
{
        if (more <= b->room - b->bytes)
                return true;
        if (more > INT64_MAX / 4 - b->bytes)
                return lg__fail(c, LG_ERR_MEMORY, "a text of %lld bytes", (long long)more);
        const int64_t room = 2 * (b->bytes + more) + 64;
        char *s = lg__alloc_unset(c, (size_t)room);
        if (!s)
                return false;
        if (b->bytes > 0)
                memcpy(s, b->s, (size_t)b->bytes);
        lg__free(c, b->s, (size_t)b->room);
        b->s = s;
        b->room = room;
        return true;
}

bool lg__buffer_put(lg_ctx *c, lg__buffer *b, const char *s, int64_t bytes)
{
        if (!lg__buffer_reserve(c, b, bytes))
                return false;
        if (bytes > 0)
                memcpy(b->s + b->bytes, s, (size_t)bytes);
        b->bytes += bytes;
        return true;
}

void lg__buffer_free(lg_ctx *c, lg__buffer *b)
{
        lg__free(c, b->s, (size_t)b->room);
        *b = (lg__buffer){0};
}

static void free_ids(lg_ctx *c, lg__ids *ids)
{
        lg__free(c, ids->items, (size_t)ids->room * sizeof *ids->items);
}

static void destroy(lg__object *o)
{
        lg_tokenizer *t = (lg_tokenizer *)o;
        lg_ctx *c = o->ctx;
        lg__buffer *const buffers[] = {&t->texts, &t->symbols, &t->heap, &t->spaced, &t->out};
        for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
                lg__buffer_free(c, buffers[i]);
        for (int i = 0; i < t->stage_count; i++)
                lg__pattern_free(c, t->stages[i].pattern);
        lg__pattern_free(c, t->letters);
        free_ids(c, &t->before);
        free_ids(c, &t->after);
        lg__free(c, t->added, (size_t)t->added_room * sizeof *t->added);
        lg__free(c, t->tokens, (size_t)t->size * sizeof *t->tokens);
        lg__free(c, t->map, (size_t)t->map_size * sizeof *t->map);
        lg__free(c, t->merges, (size_t)t->merges_size * sizeof *t->merges);
        lg__free(c, t->words, t->words ? (size_t)LG__WORDS * sizeof *t->words : 0);
}

static const lg__type type = {.destroy = destroy};

lg_tokenizer *lg_tokenizer_open(lg_ctx *c, const char *path)
{
        if (!lg__ok(c))
                return NULL;
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_tokenizer_open: the path is NULL");
        lg_tokenizer *t = lg__object_new(c, &type, sizeof *t);
        return t && lg__tokenizer_read(t, path) ? t : lg__object_destroy(t);
}

void lg_tokenizer_free(lg_tokenizer *t)
{
        if (t && lg__may_end(t->object.ctx, "lg_tokenizer_free"))
                lg__object_destroy(t);
}

/* ---- the vocabulary ---- */

int64_t lg_tokenizer_size(const lg_tokenizer *t)
{
        return t ? t->size : 0;
}

int64_t lg_tokenizer_id(const lg_tokenizer *t, const char *token)
{
        if (!t || (!token && !lg__fail(t->object.ctx, LG_ERR_ARGUMENT, "lg_tokenizer_id: the token is NULL")))
                return -1;
        const size_t bytes = strlen(token);
        for (int64_t i = 0; i < t->added_count; i++)
                if (t->added[i].bytes == bytes && !memcmp(t->added[i].s, token, bytes))
                        return t->added[i].id;
        const uint32_t id = lg__bpe_find(t, token, bytes);
        return id == LG__NO_ID ? -1 : (int64_t)id;
}

const char *lg_tokenizer_token(const lg_tokenizer *t, int64_t id)
{
        return t && id >= 0 && id < t->size ? t->tokens[id].s : NULL;
}

int64_t lg_tokenizer_bos(const lg_tokenizer *t)
{
        return t ? t->bos : -1;
}

int64_t lg_tokenizer_eos(const lg_tokenizer *t)
{
        return t ? t->eos : -1;
}

/* ---- encoding ---- */

static lg_tensor *tensor_of(lg_ctx *c, const lg__ids *ids)
{
        lg_tensor *t = lg__tensor_empty(c, lg_cpu(), LG_I64, LG_SHAPE(ids->count));
        int64_t *to = t ? lg__data(t) : NULL;
        for (int64_t i = 0; t && i < ids->count; i++)
                to[i] = ids->items[i];
        return t;
}

static bool add_all(lg_ctx *c, lg__ids *to, const lg__ids *from)
{
        for (int64_t i = 0; i < from->count; i++)
                if (!lg__ids_add(c, to, from->items[i]))
                        return false;
        return true;
}

lg_tensor *lg_tokenizer_encode_with(lg_tokenizer *t, const char *text, const lg_tokenizer_encode_options *options)
{
        static const char op[] = "lg_tokenizer_encode";
        lg_tokenizer_encode_options o;
        lg_ctx *c = t ? t->object.ctx : NULL;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (!text)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the text is NULL", op);
        const int64_t bytes = o.bytes ? lg__whole_option(o.bytes, 0) : (int64_t)strlen(text);
        if (bytes < 0 || bytes >= (int64_t)1 << 47) /* more than addresses reach */
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .bytes is %lld, which no text has", op, (long long)bytes);
        lg__ids ids = {0};
        lg__call call = {.t = t, .op = op, .ids = &ids, .plain = o.plain};
        const bool ok = (!o.add_special || add_all(c, &ids, &t->before)) &&
                        lg__stages_run(&call, 0, text, bytes, true) >= 0 &&
                        (!o.add_special || add_all(c, &ids, &t->after));
        lg_tensor *result = ok ? tensor_of(c, &ids) : NULL;
        free_ids(c, &ids);
        return result;
}

/* ---- decoding ---- */

/* Returns the token of an id, or NULL with an error. */
static const lg__token *token_at(lg_tokenizer *t, const char *op, int64_t id)
{
        if (id >= 0 && id < t->size && t->tokens[id].s)
                return &t->tokens[id];
        return lg__fail(t->object.ctx, LG_ERR_ARGUMENT, "%s: there is no token with the id %lld; the largest is %lld",
                        op, (long long)id, (long long)t->size - 1);
}

static bool put_tokens(lg_tokenizer *t, const char *op, const int64_t *ids, int64_t count, bool skip_special)
{
        t->out.bytes = 0;
        for (int64_t i = 0; i < count; i++) {
                const lg__token *token = token_at(t, op, ids[i]);
                if (!token)
                        return false;
                if (!(skip_special && token->special) &&
                    !lg__buffer_put(t->object.ctx, &t->out, token->s, token->bytes))
                        return false;
        }
        return lg__buffer_put(t->object.ctx, &t->out, "", 1);
}

const char *lg_tokenizer_decode_with(lg_tokenizer *t, lg_tensor *ids, const lg_tokenizer_decode_options *options)
{
        static const char op[] = "lg_tokenizer_decode";
        lg_tokenizer_decode_options o;
        lg_ctx *c = t ? t->object.ctx : lg__ctx_of(ids);
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (!t)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the tokenizer is NULL", op);
        if (!ids)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the ids are NULL", op);
        if (!lg__in_context(c, ids, op, "ids") || !lg__check(ids, op, "ids"))
                return NULL;
        if (ids->at.dtype != LG_I64 && ids->at.dtype != LG_I32)
                return lg__fail(c, LG_ERR_DTYPE, "%s: the ids are %s; they must be i64 or i32", op,
                                lg__tensor_text(ids).s);
        lg_scope scope = lg_scope_begin(c);
        const lg_tensor *host = lg__clone_values(ids, lg_cpu(), LG_I64);
        const bool ok = host && put_tokens(t, op, lg__data(host), lg__layout_numel(&host->at), o.skip_special);
        lg_scope_end(c, scope);
        if (!ok)
                return NULL;
        if (o.bytes)
                *o.bytes = t->out.bytes - 1;
        return t->out.s;
}

/* Appends the characters of a text to t->out, and keeps the incomplete one at its end, unless `final`. */
static bool put_characters(lg_tokenizer *t, lg_text_stream *stream, const char *s, int64_t bytes, bool final)
{
        bool ok = true, incomplete = false;
        stream->count = 0;
        for (int64_t at = 0; at < bytes && ok;) {
                int n = lg__utf8_length((lg__span){s + at, (size_t)(bytes - at)});
                if (n > 0) {
                        ok = lg__buffer_put(t->object.ctx, &t->out, s + at, n);
                } else {
                        n = lg__utf8_broken(s + at, bytes - at, &incomplete);
                        if (incomplete && !final) {
                                memcpy(stream->held, s + at, (size_t)n);
                                stream->count = n;
                        } else
                                ok = lg__buffer_put(t->object.ctx, &t->out, "\xef\xbf\xbd", 3);
                }
                at += n;
        }
        return ok;
}

const char *lg_tokenizer_next(lg_tokenizer *t, lg_text_stream *stream, int64_t id)
{
        static const char op[] = "lg_tokenizer_next";
        if (!t || !lg__ok(t->object.ctx))
                return NULL;
        lg_ctx *c = t->object.ctx;
        if (!stream || stream->count < 0 || stream->count > 3)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the stream is %s", op, stream ? "not {0} at first" : "NULL");
        const lg__token *token = id == -1 ? NULL : token_at(t, op, id);
        if (id != -1 && !token)
                return NULL;
        lg__buffer text = {0};
        const int32_t held = stream->count;
        t->out.bytes = 0;
        bool ok = lg__buffer_put(c, &text, (const char *)stream->held, held) &&
                  (!token || lg__buffer_put(c, &text, token->s, token->bytes)) &&
                  put_characters(t, stream, text.s, text.bytes, !token) && lg__buffer_put(c, &t->out, "", 1);
        lg__buffer_free(c, &text);
        stream->bytes = ok ? t->out.bytes - 1 : 0;
        return ok ? t->out.s : NULL;
}
