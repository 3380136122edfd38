/* gpt_text.c - text and tokens: data sets, prompts, printing. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "gpt_trainer.h"

static bool ends_with(const char *path, const char *end)
{
        const size_t n = strlen(path), m = strlen(end);
        return n >= m && !strcmp(path + n - m, end);
}

/* Fails, unless the tokens of the network are bytes. */
static bool has_bytes(const trainer *t, const char *what)
{
        return t->g->o.vocab == 256 || lg_set_error(t->r.c, LG_ERR_ARGUMENT,
                                                    "%s is a text, which needs a tokenizer: only models of 256 tokens "
                                                    "read bytes, and this one has %lld",
                                                    what, (long long)t->g->o.vocab);
}

lg_dataset *text_dataset(trainer *t, const char *path, int64_t length)
{
        if (ends_with(path, ".bin") || ends_with(path, ".npy"))
                return lg_dataset_tokens(t->r.c, path, length, .bits = t->g->o.vocab > 65536 ? 32 : 16,
                                         .vocabulary = t->g->o.vocab);
        return has_bytes(t, path) ? lg_dataset_text(t->r.c, path, length) : NULL;
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
        if (!*o->prompt || !has_bytes(t, "--prompt"))
                return NULL;
        return lg_cast(
                lg_from(t->r.c, (const uint8_t *)o->prompt, LG_SHAPE((int64_t)strlen(o->prompt)), .device = lg_cpu()),
                LG_I64);
}

void text_print(trainer *t, int64_t token)
{
        if (t->o->ids)
                printf("%lld ", (long long)token);
        else
                putchar((int)token);
}
