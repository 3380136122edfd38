/* gpt_options.c - the command line of lg-gpt. */
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "values.h"
#include "gpt_options.h"

typedef enum kind { TEXT, FILE_NAME, DTYPE, WHOLE, NUMBER, FLAG } kind;

/* An option: where its value is stored, its least and greatest value, its line of the help. */
typedef struct row {
        const char *name;
        kind kind;
        size_t offset;
        int64_t least, most;
        const char *argument, *help;
} row;

#define AT(member) offsetof(gpt_options, member)
#define MOST INT64_MAX

static const row rows[] = {
        {"from", FILE_NAME, AT(from), 0, 0, "FOLDER",
         "a model: config.json and model.safetensors, as on the Hugging Face Hub"},
        {"model", TEXT, AT(model), 0, 0, "NAME",
         "a new model: gpt2-mini, gpt2, gpt2-medium, gpt2-large, gpt2-xl,\nllama-mini or llama-20m (gpt2-mini)"},
        {"data", FILE_NAME, AT(run.data), 0, 0, "FILE", "trains on a text, or on tokens in a file .bin or .npy"},
        {"eval", FILE_NAME, AT(test), 0, 0, "FILE", "prints loss and perplexity of such a file, after training"},
        {"prompt", TEXT, AT(prompt), 0, 0, "TEXT", "continues the text"},
        {"prompt-ids", TEXT, AT(ids), 0, 0, "NUMBERS", "continues these tokens, and prints tokens: \"15 4 1024\""},
        {"out", FILE_NAME, AT(out), 0, 0, "FOLDER",
         "writes config.json and model.safetensors of the trained model;\nwith adapters, these alone, as PEFT does"},
        {"lora", WHOLE, AT(lora), 1, 1 << 20, "RANK", "trains adapters of this rank alone, LoRA"},
        {"lora-on", TEXT, AT(lora_on), 0, 0, "PATTERN",
         "the linear layers that get adapters (GPT-2: *.c_attn, Llama:\n*.self_attn.*)"},
        {"lora-alpha", NUMBER, AT(lora_alpha), 0, 0, "X", "the scale of adapters is X / RANK (16)"},
        {"adapter", FILE_NAME, AT(adapter), 0, 0, "FOLDER", "reads adapters, in files of PEFT"},
        {"merge", FLAG, AT(merge), 0, 0, NULL, "adds adapters to the weights before --out and --eval"},
        {"tokenizer", FILE_NAME, AT(tokenizer), 0, 0, "FILE",
         "tokenizer.json, vocab.json or a folder that has one of them (that\nof --from); a new model without it reads "
         "bytes"},
        {"length", WHOLE, AT(length), 1, 1 << 24, "N", "tokens of a sample (256, or fewer if the model has fewer)"},
        {"batch", WHOLE, AT(run.batch), 1, 1000000, "N", "samples of a batch (8)"},
        {"accumulate", WHOLE, AT(accumulate), 1, 1000000, "N", "batches of a step, whose gradients are added (1)"},
        {"steps", WHOLE, AT(run.steps), 1, MOST, "N", "steps (100)"},
        {"lr", NUMBER, AT(run.lr), 0, 0, "X", "highest learning rate of AdamW (0.0003)"},
        {"warmup", WHOLE, AT(warmup), 0, MOST, "N",
         "steps in which the learning rate rises; along a cosine, it falls\nto a tenth then (a tenth of --steps)"},
        {"weight-decay", NUMBER, AT(weight_decay), 0, 0, "X", "of weights, not of biases and norms (0.1)"},
        {"clip", NUMBER, AT(clip), 0, 0, "X", "greatest norm of all gradients; 0 is none (1)"},
        {"amp", DTYPE, AT(run.amp), 0, 0, "DTYPE", "bf16: products and attention in 16 bits, the rest in f32 (f32)"},
        {"recompute", FLAG, AT(recompute), 0, 0, NULL, "keeps the input of each layer only, and runs layers twice"},
        {"tokens", WHOLE, AT(tokens), 1, 1 << 24, "N", "tokens to generate (100)"},
        {"temperature", NUMBER, AT(temperature), 0, 0, "X", "divides the logits; 0 takes the greatest (1)"},
        {"top-k", WHOLE, AT(top_k), 0, MOST, "N", "draws from the N most probable tokens; 0 is all (0)"},
        {"top-p", NUMBER, AT(top_p), 0, 1, "X", "draws from the most probable tokens that have X together (1)"},
        {"seed", WHOLE, AT(run.seed), 0, MOST, "N", "of weights, order and drawn tokens (0)"},
        {"threads", WHOLE, AT(run.threads), 0, 4096, "N", "most threads; 0 is all cores (0)"},
        {"device", TEXT, AT(run.device), 0, 0, "NAME", "cpu, cuda, cuda:1, ... (the first GPU that works, else cpu)"},
        {"group", FLAG, AT(run.group), 0, 0, NULL,
         "trains on all processes that mpirun or srun has started, each\nwith batches of its own"},
        {"timeout", WHOLE, AT(run.timeout), 1, 1000000, "SECONDS",
         "with --group: how long to wait for another process (300)"},
        {"log-steps", WHOLE, AT(run.log_steps), 0, MOST, "N", "prints the loss of every Nth step; 0 is none (0)"},
        {"profile", FILE_NAME, AT(run.profile), 0, 0, "FILE",
         "prints where the time of 20 steps goes, and writes them as a trace\nfor ui.perfetto.dev"},
        {"board", FILE_NAME, AT(run.board), 0, 0, "FOLDER",
         "writes loss, learning rate and histograms of parameters for\nTensorBoard"},
        {"save", FILE_NAME, AT(run.save), 0, 0, "FILE",
         "saves the run at its end, and where Ctrl-C or SIGTERM ends it"},
        {"save-every", WHOLE, AT(run.save_every), 1, MOST, "N", "saves it after every Nth step, too"},
        {"resume", FILE_NAME, AT(run.resume), 0, 0, "FILE",
         "goes on from what --save wrote; begins where there is no such\nfile yet"},
        {"quiet", FLAG, AT(run.quiet), 0, 0, NULL, "no progress"},
        {"help", FLAG, 0, 0, 0, NULL, "this text"},
};
#define COUNT ((int)(sizeof rows / sizeof *rows))
#define HELP (COUNT - 1)

static void print_help(const char *program)
{
        printf("usage: %s [options]\n"
               "Trains a language model, GPT-2 or Llama, computes its perplexity, or continues a text.\n\n",
               program);
        for (int i = 0; i < COUNT; i++) {
                char left[40];
                snprintf(left, sizeof left, "--%s %s", rows[i].name, rows[i].argument ? rows[i].argument : "");
                printf("  %-22s ", left);
                for (const char *s = rows[i].help; *s; s++)
                        if (*s == '\n')
                                printf("\n%25s", "");
                        else
                                putchar(*s);
                putchar('\n');
        }
        printf("\nCtrl-C or SIGTERM ends after the current step; with --save, it saves the run and prints the command "
               "that goes on.\n");
}

static bool take(gpt_options *o, const row *r, const char *text)
{
        void *to = (char *)o + r->offset;
        switch (r->kind) {
        case TEXT:
                *(const char **)to = text;
                return true;
        case FILE_NAME:
                return value_file(r->name, text, to);
        case DTYPE:
                return value_word(r->name, text, WORDS("f32", "bf16"), to);
        case WHOLE:
                return value_whole_number(r->name, text, r->least, r->most, to);
        case NUMBER:
                if (!value_positive(r->name, text, to))
                        return false;
                if (r->most && !(*(double *)to > 0 && *(double *)to <= (double)r->most)) {
                        fprintf(stderr, "--%s %s: a number above 0, up to %lld, is needed\n", r->name, text,
                                (long long)r->most);
                        return false;
                }
                return true;
        default:
                return *(bool *)to = true;
        }
}

static bool wrong(const char *program, const char *words)
{
        fprintf(stderr, "%s: %s\n", program, words);
        return false;
}

/* Checks options that need or exclude each other, and sets defaults that depend on other options. */
static bool complete(gpt_options *o, const char *program)
{
        if (!o->run.data && !o->test && !o->prompt && !o->ids && !o->out)
                return wrong(program, "--data trains, --eval tests, --prompt generates; see --help");
        if (o->from && o->model)
                return wrong(program, "--from reads a model, --model makes a new one: one of them is possible");
        if (o->lora && o->adapter)
                return wrong(program, "--lora makes adapters, --adapter reads them: one of them is possible");
        if ((o->lora_on && !o->lora) || (o->merge && !o->lora && !o->adapter))
                return wrong(program, "--lora-on needs --lora RANK, and --merge needs --lora RANK or --adapter FOLDER");
        if (o->prompt && o->ids)
                return wrong(program, "--prompt and --prompt-ids exclude each other");
        if (o->run.group && (o->prompt || o->ids))
                return wrong(program, "--prompt needs no --group");
        if (o->run.save_every && !o->run.save)
                return wrong(program, "--save-every needs --save FILE");
        if (o->run.save && !o->run.data)
                return wrong(program, "--save needs --data FILE to train on");
        if (o->warmup < 0)
                o->warmup = o->run.steps / 10;
        return true;
}

parsed gpt_options_parse(int argc, char **argv, gpt_options *ret)
{
        struct option names[COUNT + 1] = {{NULL, 0, NULL, 0}};
        gpt_options o = {
                .accumulate = 1, .warmup = -1, .weight_decay = 0.1, .clip = 1, .tokens = 100, .temperature = 1};
        o.lora_alpha = 16;
        o.run = (options){.amp = "f32", .batch = 8, .steps = 100, .lr = 3e-4, .timeout = 300};
        o.top_p = 1;
        for (int i = 0; i < COUNT; i++)
                names[i] = (struct option){rows[i].name, rows[i].kind == FLAG ? no_argument : required_argument, NULL,
                                           i + 1};
        for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                if (option - 1 == HELP) {
                        print_help(argv[0]);
                        return PARSED_HELP;
                }
                if (option == '?' || !take(&o, &rows[option - 1], optarg))
                        return PARSED_WRONG;
        }
        if (optind < argc) {
                fprintf(stderr, "%s: %s is no option; see --help\n", argv[0], argv[optind]);
                return PARSED_WRONG;
        }
        if (!complete(&o, argv[0]))
                return PARSED_WRONG;
        *ret = o;
        return PARSED_OK;
}
