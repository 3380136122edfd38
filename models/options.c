/* options.c - the command line of fashion-mnist. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "options.h"
#include "values.h"

static const char help[] =
        "usage: %s [options]\n"
        "Trains a network on Fashion-MNIST and reports its accuracy on the test set, or classifies an image.\n"
        "\n"
        "  --model NAME           mlp, lenet, cnn, vgg or resnet18 (lenet; with --predict, that of the weights)\n"
        "  --epochs N             times through the training set (5)\n"
        "  --batch N              images of a step (64)\n"
        "  --steps N              ends after N steps; 0 is all of the epochs (0)\n"
        "  --optimizer adam|sgd   sgd has momentum 0.9 (adam)\n"
        "  --lr X                 learning rate, its peak under onecycle (adam 0.002, sgd 0.05)\n"
        "  --find-lr              does not train: tests growing rates on 100 batches, or on as many as --steps says, "
        "and\n"
        "                         prints the losses and a suggestion for --lr; --csv and --plot get the curve\n"
        "  --schedule NAME        of the learning rate: none, onecycle or cosine (after each step), step (a tenth\n"
        "                         after each third of the epochs) (onecycle)\n"
        "  --augment              moves images by up to 2 pixels and mirrors half of them, at random in each epoch\n"
        "  --amp DTYPE            bf16 or f16: products and convolutions in 16 bits, the rest in f32 (f32)\n"
        "  --workers N            threads that make batches ahead; 0 is none, auto half as many as cores (0)\n"
        "  --seed N               of weights and order (0)\n"
        "  --threads N            most threads; 0 is all cores (0)\n"
        "  --device NAME          cpu, cuda, cuda:1, ... (the first GPU that works, else cpu)\n"
        "  --group                trains on all processes that mpirun or srun has started, each with a batch of its "
        "own:\n"
        "                         N processes with --batch B do what one does with --batch N x B, with the same --lr.\n"
        "                         The first one prints and writes files; all read them. Alone: as without it\n"
        "  --sync-batch-norm      with --group: batch norms use the statistics of the batches of all processes\n"
        "  --timeout SECONDS      with --group: how long to wait for another process, which has failed then (300)\n"
        "  --data FOLDER          where the four IDX files are (found by itself where Debian puts them)\n"
        "  --csv FILE             writes the figures of each epoch to a file\n"
        "  --plot FILE            draws loss and accuracy of each epoch as a PNG, by gnuplot\n"
        "  --profile FILE         prints where the time of 20 steps goes, and writes them as a trace for "
        "ui.perfetto.dev\n"
        "  --board FOLDER         writes losses, accuracy, learning rate and histograms of parameters for TensorBoard\n"
        "  --log-steps N          prints the loss of every Nth step; 0 is none (0)\n"
        "  --save FILE            saves the run after each epoch, and where Ctrl-C or SIGTERM ends it\n"
        "  --save-every N         saves it after every Nth step, too\n"
        "  --resume FILE          goes on from what --save wrote; begins where there is no such file yet\n"
        "  --keep-best FILE       saves the weights of the epoch with the best test accuracy\n"
        "  --onnx FILE            writes the trained network as an ONNX file, for batches of any size\n"
        "  --ema DECAY            tests and keeps a moving average of the weights, below 1: 0.999\n"
        "  --early-stop N         ends when N epochs have not had a better test accuracy\n"
        "  --predict IMAGE        does not train: says what is in a PNG picture, which is resized to 28 x 28\n"
        "  --weights FILE         for --predict, as --keep-best or --save wrote it (FILE of --keep-best, of --resume)\n"
        "  --report               confusion matrix, accuracy and precision of each class at the end\n"
        "  --quiet                no table of layers, no progress\n"
        "  --help                 this text\n"
        "\n"
        "Ctrl-C or SIGTERM ends after the current step with the result so far, on all processes; with --save, it saves "
        "the\n"
        "run and prints the command that goes on.\n";

static const char *const schedules[] = {"none", "onecycle", "cosine", "step", NULL};

const char *options_schedule(int64_t number)
{
        return number >= 0 && number < 4 ? schedules[number] : "unknown";
}

int64_t options_schedule_number(const char *name)
{
        int64_t i = 0;
        while (schedules[i] && strcmp(schedules[i], name))
                i++;
        return i;
}

enum {
        MODEL = 1,
        EPOCHS,
        BATCH,
        STEPS,
        LOG_STEPS,
        LR,
        FIND_LR,
        OPTIMIZER,
        SCHEDULE,
        AUGMENT,
        AMP,
        WORKERS,
        SEED,
        THREADS,
        DEVICE,
        GROUP,
        SYNC_BATCH_NORM,
        TIMEOUT,
        DATA,
        CSV,
        PLOT,
        PROFILE,
        BOARD,
        SAVE,
        SAVE_EVERY,
        RESUME,
        KEEP_BEST,
        ONNX,
        EMA,
        EARLY_STOP,
        PREDICT,
        WEIGHTS,
        REPORT,
        QUIET,
        HELP
};
static const struct option names[] = {{"model", required_argument, NULL, MODEL},
                                      {"epochs", required_argument, NULL, EPOCHS},
                                      {"batch", required_argument, NULL, BATCH},
                                      {"steps", required_argument, NULL, STEPS},
                                      {"log-steps", required_argument, NULL, LOG_STEPS},
                                      {"lr", required_argument, NULL, LR},
                                      {"find-lr", no_argument, NULL, FIND_LR},
                                      {"optimizer", required_argument, NULL, OPTIMIZER},
                                      {"schedule", required_argument, NULL, SCHEDULE},
                                      {"augment", no_argument, NULL, AUGMENT},
                                      {"amp", required_argument, NULL, AMP},
                                      {"workers", required_argument, NULL, WORKERS},
                                      {"seed", required_argument, NULL, SEED},
                                      {"threads", required_argument, NULL, THREADS},
                                      {"device", required_argument, NULL, DEVICE},
                                      {"group", no_argument, NULL, GROUP},
                                      {"sync-batch-norm", no_argument, NULL, SYNC_BATCH_NORM},
                                      {"timeout", required_argument, NULL, TIMEOUT},
                                      {"data", required_argument, NULL, DATA},
                                      {"csv", required_argument, NULL, CSV},
                                      {"plot", required_argument, NULL, PLOT},
                                      {"profile", required_argument, NULL, PROFILE},
                                      {"board", required_argument, NULL, BOARD},
                                      {"save", required_argument, NULL, SAVE},
                                      {"save-every", required_argument, NULL, SAVE_EVERY},
                                      {"resume", required_argument, NULL, RESUME},
                                      {"keep-best", required_argument, NULL, KEEP_BEST},
                                      {"onnx", required_argument, NULL, ONNX},
                                      {"ema", required_argument, NULL, EMA},
                                      {"early-stop", required_argument, NULL, EARLY_STOP},
                                      {"predict", required_argument, NULL, PREDICT},
                                      {"weights", required_argument, NULL, WEIGHTS},
                                      {"report", no_argument, NULL, REPORT},
                                      {"quiet", no_argument, NULL, QUIET},
                                      {"help", no_argument, NULL, HELP},
                                      {NULL, 0, NULL, 0}};

/* Handles the options for saving, resuming, early stopping and prediction. */
static bool take_saving(options *o, int option)
{
        switch (option) {
        case PROFILE:
                return value_file("profile", optarg, &o->profile);
        case SAVE:
                return value_file("save", optarg, &o->save);
        case SAVE_EVERY:
                return value_whole_number("save-every", optarg, 1, INT64_MAX, &o->save_every);
        case RESUME:
                return value_file("resume", optarg, &o->resume);
        case KEEP_BEST:
                return value_file("keep-best", optarg, &o->keep_best);
        case ONNX:
                return value_file("onnx", optarg, &o->onnx);
        case EMA:
                return value_decay("ema", optarg, &o->ema);
        case EARLY_STOP:
                return value_whole_number("early-stop", optarg, 1, INT64_MAX, &o->early_stop);
        case PREDICT:
                return value_file("predict", optarg, &o->predict);
        case WEIGHTS:
                return value_file("weights", optarg, &o->weights);
        default:
                return false; /* unknown option: getopt has printed a message */
        }
}

static bool take(options *o, int option)
{
        switch (option) {
        case MODEL:
                return value_word("model", optarg, WORDS("mlp", "lenet", "cnn", "vgg", "resnet18"), &o->model);
        case EPOCHS:
                return value_whole_number("epochs", optarg, 1, 1000000, &o->epochs);
        case BATCH:
                return value_whole_number("batch", optarg, 1, 1000000, &o->batch);
        case STEPS:
                return value_whole_number("steps", optarg, 0, INT64_MAX, &o->steps);
        case LOG_STEPS:
                return value_whole_number("log-steps", optarg, 0, INT64_MAX, &o->log_steps);
        case LR:
                return value_positive("lr", optarg, &o->lr);
        case FIND_LR:
                return o->find_lr = true;
        case OPTIMIZER:
                return value_word("optimizer", optarg, WORDS("adam", "sgd"), &o->optimizer);
        case SCHEDULE:
                return value_word("schedule", optarg, schedules, &o->schedule);
        case AUGMENT:
                return o->augment = true;
        case AMP:
                return value_word("amp", optarg, WORDS("f32", "bf16", "f16"), &o->amp);
        case WORKERS:
                return value_thread_count("workers", optarg, &o->workers);
        case SEED:
                return value_whole_number("seed", optarg, 0, INT64_MAX, &o->seed);
        case THREADS:
                return value_whole_number("threads", optarg, 0, 4096, &o->threads);
        case DEVICE:
                o->device = optarg;
                return true;
        case GROUP:
                return o->group = true;
        case SYNC_BATCH_NORM:
                return o->sync_batch_norm = true;
        case TIMEOUT:
                return value_whole_number("timeout", optarg, 1, 1000000, &o->timeout);
        case DATA:
                o->data = optarg;
                return true;
        case CSV:
                o->csv = optarg;
                return true;
        case PLOT:
                o->plot = optarg;
                return true;
        case BOARD:
                return value_file("board", optarg, &o->board);
        case REPORT:
                return o->report = true;
        case QUIET:
                return o->quiet = true;
        default:
                return take_saving(o, option);
        }
}

static bool wrong(const char *program, const char *words)
{
        fprintf(stderr, "%s: %s\n", program, words);
        return false;
}

static bool same(const char *path, const char *other)
{
        return other && !strcmp(path, other);
}

/* Checks the options beside --find-lr. */
static bool may_find_lr(const options *o, const char *program)
{
        if (o->predict || o->group || o->save || o->keep_best || o->onnx || o->board)
                return wrong(program, "--find-lr does not train, so that it needs no --predict, --group, --save, "
                                      "--keep-best, --onnx or --board");
        if (!strcmp(o->amp, "f16"))
                return wrong(program,
                             "--find-lr does not scale losses, as f16 needs it; find the rate with --amp bf16");
        return !o->steps || (o->steps >= 10 && o->steps <= 1000000) ||
               wrong(program, "--find-lr needs --steps from 10 to 1000000, or none for 100");
}

/* Checks options that need or exclude each other, and sets defaults that depend on other options. */
static bool complete(options *o, const char *program)
{
        if (o->save_every && !o->save)
                return wrong(program, "--save-every needs --save FILE");
        if (o->save && same(o->save, o->keep_best))
                return wrong(program, "--save and --keep-best need two files");
        if (o->onnx && (same(o->onnx, o->save) || same(o->onnx, o->keep_best)))
                return wrong(program, "--onnx needs a file of its own");
        if (o->sync_batch_norm && !o->group)
                return wrong(program, "--sync-batch-norm needs --group");
        if (o->predict && o->group)
                return wrong(program, "--predict does not train, so that it needs no --group");
        if (o->weights && !o->predict)
                return wrong(program, "--weights needs --predict IMAGE; a training goes on with --resume FILE");
        if (o->predict && !o->weights)
                o->weights = o->keep_best ? o->keep_best : o->resume;
        if (o->predict && !o->weights)
                return wrong(program,
                             "--predict does not train; it needs --weights FILE, which --keep-best or --save wrote");
        if (o->find_lr && !may_find_lr(o, program))
                return false;
        if (!o->model && !o->predict)
                o->model = "lenet";
        if (o->lr < 0)
                o->lr = strcmp(o->optimizer, "sgd") ? 2e-3 : 0.05;
        return true;
}

parsed options_parse(int argc, char **argv, options *ret)
{
        options o = {.amp = "f32", .optimizer = "adam", .schedule = "onecycle", .lr = -1, .ema = -1};
        o.epochs = 5;
        o.batch = 64;
        o.timeout = 300;
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
        if (!complete(&o, argv[0]))
                return PARSED_WRONG;
        *ret = o;
        return PARSED_OK;
}
