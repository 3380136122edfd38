/* gpt_text.c - text and tokens: tokenizers, data sets, prompts, printing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gpt_trainer.h"

static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"};
#define FILES ((int)(sizeof files / sizeof *files))

/* Returns the path of the tokenizer, or NULL if there is none. */
static const char *tokenizer_path(const gpt_options *o)
{
        char path[1200];
        for (int i = 0; !o->tokenizer && o->from && i < FILES; i++) {
                snprintf(path, sizeof path, "%s/%s", o->from, files[i]);
                if (i != 1 && !access(path, F_OK))
                        return o->from;
        }
        return o->tokenizer;
}

bool text_open(trainer *t)
{
        const char *path = tokenizer_path(t->o);
        if (path && (t->o->run.data || t->o->test || t->o->prompt))
                t->tokenizer = lg_tokenizer_open(t->r.c, path);
        return !lg_error(t->r.c);
}

/* Copies a file, if there is one of that name. */
static bool copy_file(lg_ctx *c, const char *from, const char *to)
{
        char part[4096];
        FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
        bool ok = !in || out;
        for (size_t n; ok && in && (n = fread(part, 1, sizeof part, in)) > 0;)
                ok = fwrite(part, 1, n, out) == n;
        ok = (!in || !ferror(in)) && ok;
        if (in)
                fclose(in);
        if (out && fclose(out))
                ok = false;
        return ok || lg_set_error(c, LG_ERR_IO, "%s cannot be copied to %s: %s", from, to, strerror(errno));
}

bool text_copy_tokenizer(trainer *t, const char *folder)
{
        const char *path = tokenizer_path(t->o);
        char from[1200], to[1200];
        const char *last = path ? strrchr(path, '/') : NULL;
        const size_t n = path ? strlen(path) : 0;
        const bool is_file = n > 5 && !strcmp(path + n - 5, ".json");
        for (int i = 0; path && i < FILES && !lg_error(t->r.c); i++) {
                if (is_file)
                        snprintf(from, sizeof from, "%.*s%s", last ? (int)(last + 1 - path) : 0, path, files[i]);
                else
                        snprintf(from, sizeof from, "%s/%s", path, files[i]);
                snprintf(to, sizeof to, "%s/%s", folder, files[i]);
                copy_file(t->r.c, from, to);
        }
        return !lg_error(t->r.c);
}

static bool ends_with(const char *path, const char *end)
{
        const size_t n = strlen(path), m = strlen(end);
        return n >= m && !strcmp(path + n - m, end);
}

/* Fails, unless the tokens of the network are those of the tokenizer, or bytes. */
static bool has_text(const trainer *t, const char *what)
{
        const long long vocab = t->g->o.vocab;
        if (t->tokenizer)
                return lg_tokenizer_size(t->tokenizer) <= vocab ||
                       lg_set_error(t->r.c, LG_ERR_ARGUMENT, "the tokenizer has %lld tokens, the model only %lld",
                                    (long long)lg_tokenizer_size(t->tokenizer), vocab);
        return vocab == 256 || lg_set_error(t->r.c, LG_ERR_ARGUMENT,
                                            "%s is a text, which needs a tokenizer: only models of 256 tokens read "
                                            "bytes, and this one has %lld",
                                            what, vocab);
}

static lg_dataset *open_tokens(const trainer *t, const char *path, int64_t length)
{
        return lg_dataset_tokens(t->r.c, path, length, .bits = t->g->o.vocab > 65536 ? 32 : 16,
                                 .vocabulary = t->g->o.vocab);
}

/* Writes the tokens of a text to a temporary file, which the data set then has open. */
static lg_dataset *encode_text(const trainer *t, const char *path, int64_t length)
{
        const char *folder = getenv("TMPDIR");
        char name[1200];
        snprintf(name, sizeof name, "%.1000s/lg-gpt-XXXXXX", folder && *folder ? folder : "/tmp");
        const int fd = mkstemp(name);
        if (fd < 0) {
                lg_set_error(t->r.c, LG_ERR_IO, "%s: %s", name, strerror(errno));
                return NULL;
        }
        close(fd);
        lg_dataset *d = NULL;
        if (lg_tokenizer_encode_file(t->tokenizer, path, name, .bits = t->g->o.vocab > 65536 ? 32 : 16))
                d = open_tokens(t, name, length);
        unlink(name);
        return d;
}

lg_dataset *text_dataset(trainer *t, const char *path, int64_t length)
{
        if (ends_with(path, ".bin") || ends_with(path, ".npy"))
                return open_tokens(t, path, length);
        if (!has_text(t, path))
                return NULL;
        return t->tokenizer ? encode_text(t, path, length) : lg_dataset_text(t->r.c, path, length);
}

/* Reads numbers of tokens, between spaces or commas. */
static lg_tensor *read_ids(trainer *t, const char *text)
{
        int64_t *ids = malloc((strlen(text) + 1) * sizeof *ids), n = 0;
        const char *s = text;
        char *end;
        for (; ids && *(s += strspn(s, " ,\n")); s = end) {
                const long long id = strtoll(s, &end, 10);
                if (end == s || id < 0 || id >= t->g->o.vocab)
                        break;
                ids[n++] = id;
        }
        lg_tensor *x = ids && n && !*s ? lg_from(t->r.c, ids, LG_SHAPE(n), .device = lg_cpu()) : NULL;
        if (!x)
                lg_set_error(t->r.c, LG_ERR_ARGUMENT, "--prompt-ids %.100s: numbers from 0 to %lld are needed", text,
                             (long long)t->g->o.vocab - 1);
        free(ids);
        return x;
}

lg_tensor *text_prompt(trainer *t)
{
        const gpt_options *o = t->o;
        if (o->ids)
                return read_ids(t, o->ids);
        if (!*o->prompt)
                lg_set_error(t->r.c, LG_ERR_ARGUMENT, "--prompt: it is empty");
        if (!*o->prompt || !has_text(t, "--prompt"))
                return NULL;
        if (t->tokenizer)
                return lg_tokenizer_encode(t->tokenizer, o->prompt, .add_special = true);
        return lg_cast(
                lg_from(t->r.c, (const uint8_t *)o->prompt, LG_SHAPE((int64_t)strlen(o->prompt)), .device = lg_cpu()),
                LG_I64);
}

void text_print(trainer *t, int64_t token)
{
        const char *text = t->tokenizer && !t->o->ids ? lg_tokenizer_next(t->tokenizer, &t->printed, token) : NULL;
        if (text)
                fwrite(text, 1, (size_t)t->printed.bytes, stdout);
        else if (t->o->ids && token >= 0)
                printf("%lld ", (long long)token);
        else if (!t->tokenizer && token >= 0)
                putchar((int)token);
}

bool text_ends(const trainer *t, int64_t token)
{
        return t->tokenizer && token == lg_tokenizer_eos(t->tokenizer);
}
