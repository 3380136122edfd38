/* main.c - lg-bench: measures training steps and kernels of libgrad; see --help. tools/bench compares with other
 * libraries. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"

static const char help[] =
        "lg-bench [OPTION]... - measures training steps and kernels of libgrad\n"
        "  --only NAMES   of these items alone: \"lenet,gelu/cache,softmax\"; groups: workloads, large, kernels\n"
        "  --threads N    threads of a kernel; 0: as many as there are cores (default)\n"
        "  --device D     cpu (default), cuda, cuda:1\n"
        "  --amp DTYPE    bf16 or f16: the forward and the loss of training steps inside lg_autocast()\n"
        "  --recorded     training steps are recorded by lg_recorder_run()\n"
        "  --processes    training steps are data-parallel over the processes that mpirun has started; rank 0 reports\n"
        "  --seconds S    for each item; default 1\n"
        "  --json         lines of JSON: the limits of the machine, then one line for each item\n"
        "  --list         the names of the items, and what they are\n"
        "  --serve        answers lines \"run NAME SECONDS\" from the standard input by lines of JSON, for "
        "tools/bench\n"
        "Times are medians of several samples. Shares are those of the machine's limits, which are measured first: "
        "FLOP/s of\n"
        "products and convolutions, bytes/s of what a kernel must read and write, beside those of a copy in cache or "
        "memory.\n"
        "The peak is that of libgrad's buffers.\n"
        "Exit status: 1: an item failed; 2: wrong options.\n";

typedef struct options {
        conditions how;
        const char *only;
        double seconds;
        bool json, list, serve;
} options;

/* ---- options ---- */

static bool parse_number(const char *name, const char *text, double least, double most, double *ret)
{
        char *end;
        errno = 0;
        *ret = strtod(text, &end);
        if (end != text && !*end && !errno && *ret >= least && *ret <= most)
                return true;
        fprintf(stderr, "lg-bench: --%s is \"%s\"; expected a number from %g to %g\n", name, text, least, most);
        return false;
}

static bool parse_threads(const char *text, int *ret)
{
        double n;
        if (!parse_number("threads", text, 0, 256, &n))
                return false;
        *ret = (int)n;
        if (*ret == n)
                return true;
        fprintf(stderr, "lg-bench: --threads is \"%s\"; expected a whole number\n", text);
        return false;
}

static bool parse_amp(const char *text, lg_dtype *ret)
{
        const lg_dtype dtypes[] = {LG_F32, LG_F16, LG_BF16};
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
                if (!strcmp(text, lg_dtype_name(*ret = dtypes[i])))
                        return true;
        fprintf(stderr, "lg-bench: --amp is \"%s\"; expected bf16, f16 or f32\n", text);
        return false;
}

/* Prints the items that `only` chooses: with descriptions, a line each, if `what`; else only names, in one line. */
static void print_names(FILE *f, bool what, const char *only)
{
        int count;
        const item *all = items_all(&count);
        for (int i = 0; i < count; i++) {
                if (!item_chosen(&all[i], only))
                        continue;
                if (what)
                        fprintf(f, "%-25s  %s\n", all[i].name, all[i].what);
                else
                        fprintf(f, "%s%s", all[i].name, i + 1 < count ? ", " : "\n");
        }
}

static bool check_names(const char *names)
{
        char *unknown = items_unknown(names);
        if (!unknown)
                return true;
        fprintf(stderr, "lg-bench: there is no item \"%s\"; there are: workloads, large, kernels, ", unknown);
        print_names(stderr, false, NULL);
        free(unknown);
        return false;
}

/* Parses the options. Returns the exit status, or -1 to continue. */
static int parse(options *o, int argc, char **argv)
{
        static const struct option names[] = {
                {"only", required_argument, NULL, 'o'},    {"threads", required_argument, NULL, 't'},
                {"device", required_argument, NULL, 'd'},  {"amp", required_argument, NULL, 'a'},
                {"seconds", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'},
                {"list", no_argument, NULL, 'l'},          {"serve", no_argument, NULL, 'v'},
                {"recorded", no_argument, NULL, 'r'},      {"processes", no_argument, NULL, 'p'},
                {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
        for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
                bool good = true;
                if (option == 'o')
                        good = check_names(o->only = optarg);
                else if (option == 't')
                        good = parse_threads(optarg, &o->how.threads);
                else if (option == 'd')
                        o->how.device = optarg;
                else if (option == 'a')
                        good = parse_amp(optarg, &o->how.amp);
                else if (option == 's')
                        good = parse_number("seconds", optarg, 0, 3600, &o->seconds);
                else if (option == 'r')
                        o->how.recorded = true;
                else if (option == 'p')
                        o->how.processes = true;
                else if (option == 'j')
                        o->json = true;
                else if (option == 'l')
                        o->list = true;
                else if (option == 'v')
                        o->serve = o->json = true;
                else if (option == 'h')
                        return fputs(help, stdout), 0;
                else
                        good = false;
                if (!good)
                        return 2;
        }
        if (optind == argc)
                return -1;
        fprintf(stderr, "lg-bench: \"%s\" is not an option; for items: --only NAMES\n", argv[optind]);
        return 2;
}

/* ---- running ---- */

/* Measures an item and reports its result, or its failure, for which it returns false. */
static bool measure(live *l, double seconds, const limits *limits, bool json)
{
        result r;
        if (live_measure(l, seconds, &r)) {
                report_item(l->it, &r, limits, json);
                return true;
        }
        report_error(l->it->name, lg_error(l->w.c), json);
        return false;
}

static int run_all(const options *o, const limits *limits)
{
        int count, failed = 0;
        const item *all = items_all(&count);
        for (int i = 0; i < count; i++) {
                if (!item_chosen(&all[i], o->only))
                        continue;
                live l;
                live_make(&l, &all[i], &o->how);
                failed += !measure(&l, o->seconds, limits, o->json);
                live_free(&l);
        }
        return failed > 0;
}

/* Answers requests from stdin. An item is kept until another one is requested, so that only the first round prepares
 * it. */
static int serve(const options *o, const limits *limits)
{
        char line[256], name[64];
        double seconds;
        int count;
        const item *all = items_all(&count);
        live l = {0};
        while (fgets(line, sizeof line, stdin)) {
                int i = 0;
                if (sscanf(line, "run %63s %lf", name, &seconds) != 2 || !(seconds >= 0 && seconds <= 3600)) {
                        report_error("", "expected: run NAME SECONDS", true);
                        continue;
                }
                while (i < count && strcmp(all[i].name, name))
                        i++;
                if (i == count) {
                        report_error(name, "there is no such item", true);
                        continue;
                }
                if (l.it != &all[i]) {
                        live_free(&l);
                        live_make(&l, &all[i], &o->how);
                }
                if (!measure(&l, seconds, limits, true))
                        live_free(&l);
        }
        live_free(&l);
        return 0;
}

/* Measures the limits and prints them. Of several processes only rank 0 prints. */
static bool begin(const options *o, limits *ret)
{
        lg_ctx *c = lg_open(.threads = o->how.threads);
        lg_device device = lg_parse_device(c, o->how.device);
        double seconds = o->seconds < 2 ? o->seconds : 2;
        lg_group *g = o->how.processes ? lg_group_open(c) : NULL;
        bool good = !lg_error(c) && (lg_group_rank(g) == 0 || freopen("/dev/null", "w", stdout)) &&
                    limits_measure(ret, c, device, seconds);
        if (good)
                report_head(ret, c, device, o->json);
        else
                fprintf(stderr, "lg-bench: %s\n", lg_error(c));
        lg_close(c);
        return good;
}

int main(int argc, char **argv)
{
        options o = {.how = {.device = "cpu", .amp = LG_F32}, .seconds = 1};
        limits l;
        int status = parse(&o, argc, argv);
        if (status >= 0)
                return status;
        if (o.list)
                return print_names(stdout, true, o.only), 0;
        if (!begin(&o, &l))
                return 1;
        return o.serve ? serve(&o, &l) : run_all(&o, &l);
}
