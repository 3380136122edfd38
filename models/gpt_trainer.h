/* gpt_trainer.h - a run of lg-gpt: its parts, training, evaluation, generation. */
#ifndef GPT_TRAINER_H
#define GPT_TRAINER_H

#include "run.h"
#include "gpt.h"
#include "gpt_options.h"

typedef struct trainer {
        run r; /* parts that it shares with fashion-mnist; NULL and 0 where it has none */
        const gpt_options *o;
        gpt *g;
        char *config;               /* text of config.json; freed with the trainer */
        lg_tokenizer *tokenizer;    /* NULL: tokens are bytes */
        lg_text_stream printed;     /* of the text that text_print() prints */
        int64_t length, accumulate; /* saved in a checkpoint, as is r.amp: a resumed run must have the same */
} trainer;

/* Makes the network, on its device. */
bool trainer_make(trainer *t);
/* Trains to the last step or until Ctrl-C. */
bool trainer_train(trainer *t, char *const *argv);
/* Prints loss and perplexity of --eval. */
bool trainer_test(trainer *t);
/* Prints the continuation of --prompt or --prompt-ids. */
bool trainer_generate(trainer *t);

/* ---- text ---- */

/* Opens the tokenizer of --tokenizer, or that of the folder of --from if it has one. */
bool text_open(trainer *t);
/* Copies the files of the tokenizer to a folder. */
bool text_copy_tokenizer(trainer *t, const char *folder);
/* Opens a data set of samples of a file: tokens, or a text. */
lg_dataset *text_dataset(trainer *t, const char *path, int64_t length);
/* Returns the tokens (n), i64, of --prompt or --prompt-ids. */
lg_tensor *text_prompt(trainer *t);
/* Prints a token, or, if it is -1, the end of the text. */
void text_print(trainer *t, int64_t token);
/* Returns whether a token ends the text. */
bool text_ends(const trainer *t, int64_t token);

#endif
