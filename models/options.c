/* options.c - the command line of the training programs. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "options.h"

static const char help[] =
        "usage: %s [options]\n"
        "Trains a network on Fashion-MNIST and tells its accuracy on the test set.\n"
        "\n"
        "  --model mlp            the network: 784-128-10 with ReLU\n"
        "  --epochs N             times through the training set (5)\n"
        "  --batch N              images of a step (64)\n"
        "  --optimizer adam|sgd   sgd has momentum 0.9 (adam)\n"
        "  --lr X                 learning rate (adam 0.001, sgd 0.05)\n"
        "  --seed N               of weights and order (0)\n"
        "  --threads N            most threads; 0 is all cores (0)\n"
        "  --device NAME          cpu, cuda, cuda:1, ... (cpu)\n"
        "  --data FOLDER          where the four IDX files are (found by itself where Debian puts them)\n"
        "  --csv FILE             writes the figures of each epoch to a file\n"
        "  --quiet                no progress bar\n"
        "  --help                 this text\n"
        "\n"
        "Ctrl-C ends after the current step with the result so far.\n";

static bool whole_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *ret)
{
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (errno || end == text || *end || value < least || value > most) {
                fprintf(stderr, "--%s %s: a whole number from %lld to %lld is needed\n", name, text, (long long)least,
                        (long long)most);
                return false;
        }
        *ret = value;
        return true;
}

static bool positive(const char *name, const char *text, double *ret)
{
        char *end;
        double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value) || value < 0) {
                fprintf(stderr, "--%s %s: a number of 0 or more is needed\n", name, text);
                return false;
        }
        *ret = value;
        return true;
}

/* One of two words. */
static bool word(const char *name, const char *text, const char *a, const char *b, const char **ret)
{
        if (strcmp(text, a) && strcmp(text, b)) {
                if (strcmp(a, b))
                        fprintf(stderr, "--%s %s: %s or %s is needed\n", name, text, a, b);
                else
                        fprintf(stderr, "--%s %s: there is only %s\n", name, text, a);
                return false;
        }
        *ret = text;
        return true;
}

enum { MODEL = 1, EPOCHS, BATCH, LR, OPTIMIZER, SEED, THREADS, DEVICE, DATA, CSV, QUIET, HELP };
static const struct option names[] = {{"model", required_argument, NULL, MODEL},
                                      {"epochs", required_argument, NULL, EPOCHS},
                                      {"batch", required_argument, NULL, BATCH},
                                      {"lr", required_argument, NULL, LR},
                                      {"optimizer", required_argument, NULL, OPTIMIZER},
                                      {"seed", required_argument, NULL, SEED},
                                      {"threads", required_argument, NULL, THREADS},
                                      {"device", required_argument, NULL, DEVICE},
                                      {"data", required_argument, NULL, DATA},
                                      {"csv", required_argument, NULL, CSV},
                                      {"quiet", no_argument, NULL, QUIET},
                                      {"help", no_argument, NULL, HELP},
                                      {NULL, 0, NULL, 0}};

static bool take(options *o, int option)
{
        switch (option) {
        case MODEL:
                return word("model", optarg, "mlp", "mlp", &o->model);
        case EPOCHS:
                return whole_number("epochs", optarg, 1, 1000000, &o->epochs);
        case BATCH:
                return whole_number("batch", optarg, 1, 1000000, &o->batch);
        case LR:
                return positive("lr", optarg, &o->lr);
        case OPTIMIZER:
                return word("optimizer", optarg, "adam", "sgd", &o->optimizer);
        case SEED:
                return whole_number("seed", optarg, 0, INT64_MAX, &o->seed);
        case THREADS:
                return whole_number("threads", optarg, 0, 4096, &o->threads);
        case DEVICE:
                o->device = optarg;
                return true;
        case DATA:
                o->data = optarg;
                return true;
        case CSV:
                o->csv = optarg;
                return true;
        case QUIET:
                return o->quiet = true;
        default:
                return false; /* getopt has told */
        }
}

parsed options_parse(int argc, char **argv, options *ret)
{
        options o = {.model = "mlp", .optimizer = "adam", .device = "cpu", .lr = -1, .epochs = 5, .batch = 64};
        for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                if (option == HELP) {
                        printf(help, argv[0]);
                        return PARSED_HELP;
                }
                if (!take(&o, option))
                        return PARSED_WRONG;
        }
        if (optind < argc) {
                fprintf(stderr, "%s: \"%s\" is not understood; see --help\n", argv[0], argv[optind]);
                return PARSED_WRONG;
        }
        if (o.lr < 0)
                o.lr = strcmp(o.optimizer, "sgd") ? 1e-3 : 0.05;
        *ret = o;
        return PARSED_OK;
}
