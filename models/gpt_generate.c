/* gpt_generate.c - generation of text: each new token costs one position, by a cache of the others. */
#include "gpt_trainer.h"

/* Fills the cache with tokens (n) and returns the logits of the last one, (1, vocab). */
static lg_tensor *restart(trainer *t, lg_tensor *tokens)
{
        gpt_set_cache(t->g, t->length);
        return lg_forward(t->g->net, lg_to(lg_unsqueeze(tokens, 0), lg_device_of(lg_parameters(t->g->net).items[0])));
}

/* Draws the next token from logits (1, vocab). */
static int64_t draw(const trainer *t, lg_tensor *logits)
{
        const gpt_options *o = t->o;
        return lg_item_i64(lg_sample_logits(logits, .temperature = o->temperature > 0 ? o->temperature : LG_ZERO,
                                            .top_k = o->top_k < t->g->o.vocab ? o->top_k : 0, .top_p = o->top_p));
}

bool trainer_generate(trainer *t)
{
        lg_ctx *c = t->r.c;
        lg_scope all = lg_scope_begin(c);
        lg_tensor *text = text_prompt(t), *logits = NULL;
        const int64_t prompt = text ? lg_numel(text) : 0, count = prompt + t->o->tokens;
        const double start = seconds();
        /* The text so far. Where the cache is full, it begins again with the last half. */
        lg_tensor *tokens = lg_zeros(c, LG_SHAPE(count), .dtype = LG_I64, .device = lg_cpu());
        lg_copy_(lg_slice(tokens, 0, 0, prompt), text);
        t->length = t->g->o.positions < count ? t->g->o.positions : count;
        if (t->o->prompt && !lg_error(c))
                fputs(t->o->prompt, stdout);
        lg_train(t->g->net, false);
        lg_no_grad(c) for (int64_t n = prompt; n < count && !lg_error(c) && !run_interrupted(); n++)
        {
                lg_scope scope = lg_scope_begin(c);
                if (n == prompt || t->g->past == t->length) {
                        const int64_t first = n < t->length ? 0 : n - (t->length + 1) / 2;
                        logits = restart(t, lg_slice(tokens, 0, first, n));
                } else {
                        logits = lg_forward(t->g->net, lg_to(lg_unsqueeze(lg_slice(tokens, 0, n - 1, n), 0),
                                                             lg_device_of(lg_parameters(t->g->net).items[0])));
                }
                const int64_t token = draw(t, logits);
                lg_fill_(lg_slice(tokens, 0, n, n + 1), (double)token);
                lg_scope_end(c, scope);
                if (!lg_error(c) && text_ends(t, token))
                        break;
                if (!lg_error(c))
                        text_print(t, token);
                fflush(stdout);
        }
        gpt_set_cache(t->g, 0);
        lg_scope_end(c, all);
        if (!lg_error(c)) {
                text_print(t, -1);
                putchar('\n');
        }
        run_flush(&t->r, stdout, "the standard output");
        if (!lg_error(c) && !t->o->run.quiet)
                fprintf(stderr, "%.1f tokens/s\n", (double)t->o->tokens / (seconds() - start));
        return !lg_error(c);
}
