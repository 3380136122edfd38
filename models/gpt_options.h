/* gpt_options.h - the command line of lg-gpt. */
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include "options.h"

typedef struct gpt_options {
        options run;                                /* those that it shares with fashion-mnist */
        const char *from, *model, *tokenizer, *out; /* NULL: not given, as below */
        const char *test, *prompt, *ids;
        const char *lora_on, *adapter;
        int64_t lora; /* rank of new adapters; 0: none */
        double lora_alpha;
        bool merge;
        int64_t length; /* tokens of a sample; 0: not given */
        int64_t accumulate, warmup;
        double weight_decay, clip;
        bool recompute;
        int64_t tokens, top_k;
        double temperature, top_p;
} gpt_options;

/* Parses the command line into *ret. If there is nothing to do, prints the help, or a message on stderr. */
parsed gpt_options_parse(int argc, char **argv, gpt_options *ret);

#endif
