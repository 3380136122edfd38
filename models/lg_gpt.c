/* lg_gpt.c - a program that trains, tests and runs language models, as an example of how libgrad is used. */
#include <signal.h>
#include <stdlib.h>
#include "board.h"
#include "ranks.h"
#include "gpt_trainer.h"

/* Writes the model, or its adapters alone. */
static bool write_model(trainer *t)
{
        const gpt_options *o = t->o;
        const bool ok =
                (o->lora || o->adapter) && !o->merge
                        ? lg_lora_save(t->g->net, o->out, .base_model = o->from, .fan_in_fan_out = !t->g->o.llama)
                        : gpt_save(t->g, t->config, o->out) && text_copy_tokenizer(t, o->out);
        t->r.unwritten = !ok;
        return ok;
}

static void run_all(trainer *t, char *const *argv)
{
        const gpt_options *o = t->o;
        if (!trainer_make(t) || (o->run.data && !trainer_train(t, argv)))
                return;
        if ((o->merge && !lg_lora_merge(t->g->net)) || (o->out && ranks_first(&t->r) && !write_model(t)))
                return;
        if (o->test && !trainer_test(t))
                return;
        if (o->prompt || o->ids)
                trainer_generate(t);
}

int main(int argc, char **argv)
{
        gpt_options o;
        const parsed p = gpt_options_parse(argc, argv, &o);
        if (p == PARSED_HELP && (fflush(stdout) || ferror(stdout))) {
                fputs("lg-gpt: the standard output cannot be written\n", stderr);
                return 1;
        }
        if (p != PARSED_OK)
                return p == PARSED_HELP ? 0 : 2;
        setvbuf(stdout, NULL, _IOLBF, 0); /* writes each line at once, also into a pipe */
        signal(SIGPIPE, SIG_IGN);
        run_catch_interrupt();
        lg_ctx *c = lg_open(.threads = (int)o.run.threads, .seed = (uint64_t)o.run.seed);
        if (!c) {
                fprintf(stderr, "lg-gpt: %s\n", lg_error(c));
                return 1;
        }
        trainer t = {.r = {.c = c, .o = &o.run, .program = "lg-gpt", .saved_step = -1}, .o = &o};
        run_all(&t, argv);
        board_close(&t.r);
        ranks_end(&t.r);
        const int code = exit_code(&t.r);
        lg_close(c);
        free(t.config);
        return code;
}
