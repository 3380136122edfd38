/* fashion_mnist.c - trains a network on Fashion-MNIST: an example of how libgrad is used. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "models.h"
#include "options.h"
#include "plot.h"
#include "progress.h"
#include "report.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
        (void)signal;
        interrupted = 1;
}

/* All that a run needs. What could not be made is NULL, and the context says why. */
typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_scheduler *schedule; /* NULL: none */
        bool each_step;         /* the schedule goes on after each step, not after each epoch */
        lg_loader *train, *test;
        FILE *csv;
        const char *csv_name;
        bool unwritten; /* a file that was open could not be written */
        report *report; /* filled by evaluate; NULL: not wanted */
        int64_t step, last_step, log_steps;
} run;

/* The figures of an epoch. */
typedef struct figures {
        double train_loss, test_loss, accuracy, time;
} figures;

static const char *const class_names[REPORT_CLASSES] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                        "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

static void make_schedule(run *r, const options *o)
{
        int64_t steps = o->epochs * lg_loader_batches(r->train);
        if (o->steps && o->steps < steps)
                steps = o->steps;
        r->last_step = steps;
        r->each_step = strcmp(o->schedule, "step");
        if (!strcmp(o->schedule, "onecycle"))
                r->schedule = lg_one_cycle_lr(r->opt, o->lr, steps);
        else if (!strcmp(o->schedule, "cosine"))
                r->schedule = lg_cosine_lr(r->opt, steps);
        else if (!strcmp(o->schedule, "step"))
                r->schedule = lg_step_lr(r->opt, (o->epochs + 2) / 3);
}

static bool goes_on(const run *r)
{
        return !interrupted && r->step < r->last_step;
}

static run make_run(lg_ctx *c, const options *o)
{
        lg_device device = o->device ? lg_parse_device(c, o->device) : lg_try_cuda(c, 0);
        run r = {.c = c, .net = lg_model(c, o->model), .log_steps = o->log_steps};
        lg_module_to(r.net, device);
        lg_list parameters = lg_parameters(r.net);
        r.opt = strcmp(o->optimizer, "sgd") ? lg_adam(c, parameters, o->lr)
                                            : lg_sgd(c, parameters, o->lr, .momentum = 0.9);
        lg_dataset *train = lg_fashion_mnist(c, "train", .folder = o->data);
        lg_dataset *test = lg_fashion_mnist(c, "test", .folder = o->data);
        r.train = lg_loader_open(c, train, o->batch, .shuffle = true, .device = device);
        r.test = lg_loader_open(c, test, 1000, .device = device);
        if (!lg_error(c))
                make_schedule(&r, o);
        return r;
}

/* Sends what was written to its file, which may be full. */
static void flush(run *r, FILE *f, const char *name)
{
        errno = 0;
        if (!fflush(f) && !ferror(f))
                return;
        r->unwritten = true;
        lg_set_error(r->c, LG_ERR_IO, "%s cannot be written%s%s", name, errno ? ": " : "",
                     errno ? strerror(errno) : "");
}

/* Reading a loss waits for the device: only where it was asked for. */
static void log_step(run *r, const lg_tensor *loss)
{
        if (!r->log_steps || r->step % r->log_steps)
                return;
        double value = lg_item(loss);
        if (!lg_error(r->c))
                printf("step %lld  loss %.9g\n", (long long)r->step, value);
        flush(r, stdout, "the standard output");
}

/* One pass over the training set; the mean loss. The sum of losses stays on the device, and is read now and then. */
static double train_epoch(run *r, progress *p)
{
        lg_scope scope = lg_scope_begin(r->c);
        lg_tensor *sum = lg_zeros(r->c, LG_SHAPE_0D, .device = lg_device_of(lg_parameters(r->net).items[0]));
        int64_t images = 0;
        double mean = 0;
        lg_train(r->net, true);
        for (lg_batch b; goes_on(r) && lg_loader_next(r->train, &b);) {
                lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, b.x), b.y);
                lg_zero_grad(r->opt);
                lg_backward(loss);
                lg_step(r->opt);
                r->step++;
                log_step(r, loss);
                if (r->schedule && r->each_step)
                        lg_scheduler_step(r->schedule);
                lg_add_(sum, lg_mul_scalar(lg_detach(loss), (double)lg_size_of(b.x, 0)));
                images += lg_size_of(b.x, 0);
                if (progress_due(p))
                        progress_show(p, b.index + 1, b.count, images, lg_item(sum) / (double)images);
        }
        if (images)
                mean = lg_item(sum) / (double)images;
        lg_loader_restart(r->train);
        lg_scope_end(r->c, scope);
        return mean;
}

static void count(run *r, lg_tensor *labels, lg_tensor *predicted)
{
        int64_t n = lg_numel(labels), *host = malloc((size_t)n * 2 * sizeof *host);
        if (host && lg_read(labels, host, LG_I64, (size_t)n * sizeof *host) &&
            lg_read(predicted, host + n, LG_I64, (size_t)n * sizeof *host))
                report_add(r->report, host, host + n, n);
        else if (!host)
                lg_set_error(r->c, LG_ERR_MEMORY, "no memory for the report");
        free(host);
}

/* Loss and accuracy on the test set. */
static void evaluate(run *r, progress *p, figures *f)
{
        lg_scope scope = lg_scope_begin(r->c);
        lg_device device = lg_device_of(lg_parameters(r->net).items[0]);
        lg_tensor *sum = lg_zeros(r->c, LG_SHAPE_0D, .device = device);
        lg_tensor *right = lg_zeros(r->c, LG_SHAPE_0D, .dtype = LG_I64, .device = device);
        int64_t images = 0;
        lg_train(r->net, false);
        lg_no_grad(r->c)
        {
                lg_each_batch(b, r->test)
                {
                        lg_tensor *scores = lg_forward(r->net, b.x);
                        lg_add_(sum, lg_cross_entropy(scores, b.y, .reduction = LG_SUM));
                        lg_tensor *predicted = lg_argmax(scores, .dims = LG_DIMS(1));
                        lg_add_(right, lg_sum(lg_eq(predicted, b.y)));
                        if (r->report)
                                count(r, b.y, predicted);
                        images += lg_size_of(b.x, 0);
                        if (progress_due(p))
                                progress_show(p, b.index + 1, b.count, images, lg_item(sum) / (double)images);
                }
        }
        f->test_loss = lg_item(sum) / (double)images;
        f->accuracy = (double)lg_item_i64(right) / (double)images;
        lg_scope_end(r->c, scope);
}

static void tell(run *r, const options *o, int64_t epoch, const figures *f)
{
        printf("epoch %lld/%lld  train loss %.4f  test loss %.4f  test accuracy %.4f  %.2f s\n", (long long)epoch,
               (long long)o->epochs, f->train_loss, f->test_loss, f->accuracy, f->time);
        flush(r, stdout, "the standard output");
        if (r->csv) {
                fprintf(r->csv, "%lld,%.9g,%.9g,%.4f,%.3f\n", (long long)epoch, f->train_loss, f->test_loss,
                        f->accuracy, f->time);
                flush(r, r->csv, r->csv_name);
        }
}

static void train(run *r, const options *o)
{
        figures f = {0};
        progress p;
        report last = {0};
        for (int64_t epoch = 1; epoch <= o->epochs && goes_on(r) && !lg_error(r->c); epoch++) {
                if (o->report) {
                        last = (report){0};
                        r->report = &last;
                }
                progress_begin(&p, "epoch", epoch, o->epochs, o->quiet);
                f.train_loss = train_epoch(r, &p);
                f.time = seconds() - p.start;
                progress_end(&p);
                if (r->schedule && !r->each_step)
                        lg_scheduler_step(r->schedule);
                progress_begin(&p, "test", epoch, o->epochs, o->quiet);
                evaluate(r, &p, &f);
                progress_end(&p);
                if (!lg_error(r->c))
                        tell(r, o, epoch, &f);
        }
        if (!lg_error(r->c) && o->report)
                report_print(stdout, &last, class_names);
        if (!lg_error(r->c))
                printf("test accuracy %.4f\n", f.accuracy);
        flush(r, stdout, "the standard output");
}

/* The file of figures: the one asked for, or one beside the picture while the program runs. */
typedef struct csv_file {
        char name[4096];
        bool temporary;
} csv_file;

static bool open_csv(run *r, const options *o, csv_file *file)
{
        if (!o->csv && !o->plot)
                return true;
        file->temporary = !o->csv;
        snprintf(file->name, sizeof file->name, "%s%s", o->csv ? o->csv : o->plot, o->csv ? "" : ".csv");
        r->csv_name = file->name;
        r->csv = fopen(file->name, "w");
        if (!r->csv)
                return lg_set_error(r->c, LG_ERR_IO, "%s cannot be written", file->name);
        fputs("epoch,train_loss,test_loss,test_accuracy,seconds\n", r->csv);
        return true;
}

static void close_csv(run *r, const options *o, const csv_file *file)
{
        if (!r->csv)
                return;
        flush(r, r->csv, file->name);
        if (fclose(r->csv)) {
                r->unwritten = true;
                lg_set_error(r->c, LG_ERR_IO, "%s cannot be written: %s", file->name, strerror(errno));
        }
        if (!lg_error(r->c) && o->plot && !plot_write(file->name, o->plot))
                lg_set_error(r->c, LG_ERR_IO, "gnuplot could not draw %s", o->plot);
        if (file->temporary)
                unlink(file->name);
}

/* 0; 2: something that was given is wrong; 1: all other failures, such as a full disk. */
static int exit_code(const run *r)
{
        if (r->unwritten)
                return 1;
        switch (lg_error_code_of(r->c)) {
        case LG_ERR_NONE:
                return 0;
        case LG_ERR_IO:
        case LG_ERR_FORMAT:
        case LG_ERR_DEVICE:
        case LG_ERR_ARGUMENT:
                return 2;
        default:
                return 1;
        }
}

static int run_all(lg_ctx *c, const options *o)
{
        csv_file file = {"", false};
        run r = {.c = c};
        if (o->plot && !plot_possible())
                lg_set_error(c, LG_ERR_ARGUMENT, "--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)");
        else
                r = make_run(c, o);
        if (!lg_error(c))
                open_csv(&r, o, &file);
        if (!lg_error(c) && !o->quiet && !lg_module_print(stdout, r.net, .input = LG_SHAPE(o->batch, 1, 28, 28)))
                r.unwritten = ferror(stdout);
        if (!lg_error(c))
                train(&r, o);
        close_csv(&r, o, &file);
        if (lg_error(c))
                fprintf(stderr, "fashion-mnist: %s\n", lg_error(c));
        return exit_code(&r);
}

int main(int argc, char **argv)
{
        options o;
        parsed p = options_parse(argc, argv, &o);
        if (p == PARSED_HELP && (fflush(stdout) || ferror(stdout))) {
                fputs("fashion-mnist: the standard output cannot be written\n", stderr);
                return 1;
        }
        if (p != PARSED_OK)
                return p == PARSED_HELP ? 0 : 2;
        setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, also into a pipe */
        signal(SIGPIPE, SIG_IGN);         /* a gnuplot that fails is told as an error */
        /* A second Ctrl-C ends at once. */
        sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND}, NULL);
        lg_ctx *c = lg_open(.threads = (int)o.threads, .seed = (uint64_t)o.seed);
        if (!c) {
                fprintf(stderr, "fashion-mnist: %s\n", lg_error(c));
                return 1;
        }
        int code = run_all(c, &o);
        lg_close(c);
        return code;
}
