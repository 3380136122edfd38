/* fashion_mnist.c - a program that trains a network on Fashion-MNIST, as an example of how libgrad is used. */
#include <signal.h>
#include "board.h"
#include "csv.h"
#include "find_lr.h"
#include "plot.h"
#include "predict.h"
#include "ranks.h"
#include "saving.h"

static void tell(run *r, const figures *f)
{
        if (!ranks_first(r))
                return;
        printf("epoch %lld/%lld  train loss %.4f  test loss %.4f  test accuracy %.4f  %.2f s\n", (long long)r->epoch,
               (long long)r->o->epochs, f->train_loss, f->test_loss, f->accuracy, f->time);
        run_flush(r, stdout, "the standard output");
}

/* Computes the figures of the test set in *f, with the moving averages of the weights if there are any. If keep_best
 * and this epoch is the best one, saves its weights. */
static void test(run *r, figures *f, report *filled, bool keep_best)
{
        progress p;
        if (r->o->report) {
                *filled = (report){0};
                r->report = filled;
        }
        progress_begin(&p, "test", r->epoch, r->o->epochs, r->o->quiet || !ranks_first(r));
        run_swap(r);
        run_evaluate(r, &p, f);
        if (keep_best)
                saving_keep_best(r, f->accuracy);
        run_swap(r);
        progress_end(&p);
}

static bool has_stopped_early(const run *r)
{
        return r->o->early_stop && r->best_epoch && r->epoch - 1 - r->best_epoch >= r->o->early_stop;
}

static bool is_done(const run *r)
{
        return r->epoch > r->o->epochs || r->step >= r->last_step || has_stopped_early(r);
}

static void write_board(run *r, const figures *f)
{
        board_number(r, "loss/train", f->train_loss);
        board_number(r, "loss/test", f->test_loss);
        board_number(r, "accuracy/test", f->accuracy);
        board_number(r, "learning rate", lg_lr(r->opt));
        board_parameters(r);
}

/* Moves on to the next epoch, unless --steps has cut this one off, and saves the run. */
static void end_epoch(run *r)
{
        if (r->midway)
                return;
        r->epoch++;
        r->images = 0;
        r->loss_sum = r->spent = 0;
        saving_write(r);
}

/* Trains to the end, or until Ctrl-C. Returns false if there is no result to print: after an error, or if the run was
 * interrupted and can be resumed. */
static bool train(run *r, csv *file, figures *f, report *last)
{
        progress p;
        bool tested = false;
        ranks_agree(r, NULL);
        while (!is_done(r) && !r->interrupted && !lg_error(r->c)) {
                progress_begin(&p, "epoch", r->epoch, r->o->epochs, r->o->quiet || !ranks_first(r));
                f->train_loss = run_train_epoch(r, &p);
                f->time = r->spent;
                progress_end(&p);
                if (r->stopped && !is_done(r))
                        return false;
                if (r->schedule && !r->each_step)
                        lg_scheduler_step(r->schedule);
                test(r, f, last, true);
                tested = true;
                if (lg_error(r->c))
                        return false;
                tell(r, f);
                csv_write(file, r, f);
                write_board(r, f);
                end_epoch(r);
        }
        if (lg_error(r->c) || (r->interrupted && r->o->save && !is_done(r)))
                return false;
        if (!tested)
                test(r, f, last, false);
        return !lg_error(r->c);
}

static void tell_result(run *r, const figures *f, const report *last)
{
        if (r->o->report)
                report_print(stdout, last);
        if (has_stopped_early(r))
                printf("%lld epochs were not better than epoch %lld with test accuracy %.4f\n",
                       (long long)r->o->early_stop, (long long)r->best_epoch, r->best);
        printf("test accuracy %.4f\n", f->accuracy);
        run_flush(r, stdout, "the standard output");
}

/* Saves an interrupted run, unless that is done, and prints the command that resumes it. */
static void tell_command(run *r, char *const *argv)
{
        if (r->saved_step != r->step && !saving_write(r))
                return;
        printf("step %lld of %lld is saved; this goes on%s:\n", (long long)r->step, (long long)r->last_step,
               ranks_count(r) > 1 ? ", by mpirun as before" : "");
        saving_print_command(stdout, r, argv);
        run_flush(r, stdout, "the standard output");
}

static void run_to_end(run *r, csv *file, char *const *argv)
{
        figures f = {0};
        report last = {0};
        const bool to_end = train(r, file, &f, &last);
        if (to_end)
                saving_onnx(r);
        if (lg_error(r->c) || !ranks_first(r))
                return;
        if (to_end)
                tell_result(r, &f, &last);
        else
                tell_command(r, argv);
}

static void train_all(run *r, char *const *argv)
{
        lg_ctx *c = r->c;
        const options *o = r->o;
        csv file = {NULL, "", false};
        run_make(r, c, o);
        if (o->plot && ranks_first(r) && !plot_possible())
                lg_set_error(c, LG_ERR_ARGUMENT, "--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)");
        if (saving_resume(r) && ranks_share(r) && saving_possible(r) && saving_onnx_possible(r) && !o->find_lr &&
            board_open(r))
                csv_open(&file, r);
        if (!lg_error(c) && !o->quiet && ranks_first(r) &&
            !lg_module_print(stdout, r->net, .input = LG_SHAPE(o->batch, 1, 28, 28)))
                r->unwritten = ferror(stdout);
        run_profile_begin(r);
        if (!lg_error(c) && o->find_lr)
                find_lr(r);
        else if (!lg_error(c))
                run_to_end(r, &file, argv);
        run_profile_end(r);
        csv_close(&file, r);
        board_close(r);
}

static int run_all(lg_ctx *c, const options *o, char *const *argv)
{
        run r = {.c = c, .o = o, .program = "fashion-mnist"};
        if (!o->predict)
                train_all(&r, argv);
        else if (predict(stdout, c, o))
                run_flush(&r, stdout, "the standard output");
        ranks_end(&r);
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
        setvbuf(stdout, NULL, _IOLBF, 0); /* writes each line at once, also into a pipe */
        signal(SIGPIPE, SIG_IGN);         /* a failure of gnuplot is reported as an error */
        run_catch_interrupt();
        lg_ctx *c = lg_open(.threads = (int)o.threads, .seed = (uint64_t)o.seed);
        if (!c) {
                fprintf(stderr, "fashion-mnist: %s\n", lg_error(c));
                return 1;
        }
        int code = run_all(c, &o, argv);
        lg_close(c);
        return code;
}
