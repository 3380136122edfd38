/* run.c - training and testing on Fashion-MNIST. */
#include <stdlib.h>
#include <string.h>
#include "board.h"
#include "models.h"
#include "ranks.h"
#include "run.h"
#include "saving.h"

static void make_schedule(run *r, const options *o)
{
        int64_t steps = o->epochs * lg_loader_batches(r->train);
        if (o->steps && o->steps < steps)
                steps = o->steps;
        r->last_step = steps;
        r->schedule_number = options_schedule_number(o->schedule);
        r->each_step = strcmp(o->schedule, "step");
        if (!strcmp(o->schedule, "onecycle"))
                r->schedule = lg_one_cycle_lr(r->opt, o->lr, steps);
        else if (!strcmp(o->schedule, "cosine"))
                r->schedule = lg_cosine_lr(r->opt, steps);
        else if (!strcmp(o->schedule, "step"))
                r->schedule = lg_step_lr(r->opt, (o->epochs + 2) / 3);
}

/* Shifts and mirrors images at random, and converts them to floats in [0, 1], as the test images are. */
static lg_dataset *augmented(lg_ctx *c, lg_dataset *images)
{
        return lg_dataset_transform(
                images, lg_transforms(c, lg_transform_random_crop(c, 28, 28, .padding = 2, .mode = LG_PAD_REFLECT),
                                      lg_transform_random_horizontal_flip(c), lg_transform_to_float(c)));
}

static void make_loaders(run *r, const options *o, lg_device device)
{
        lg_dataset *train = lg_dataset_fashion_mnist(r->c, "train", .folder = o->data, .bytes = o->augment);
        lg_dataset *test = lg_dataset_fashion_mnist(r->c, "test", .folder = o->data);
        if (o->augment)
                train = augmented(r->c, train);
        r->train_images = lg_dataset_size(train);
        r->train = lg_loader_open(r->c, train, o->batch, .shuffle = true, .device = device, .group = r->group,
                                  .workers = o->workers < 0 ? LG_AUTO : (int)o->workers);
        r->test = lg_loader_open(r->c, test, 1000, .device = device, .group = r->group);
}

void run_make(run *r, lg_ctx *c, const options *o)
{
        *r = (run){.c = c, .o = o, .program = "fashion-mnist", .epoch = 1, .saved_step = -1, .augment = o->augment};
        lg_device device = ranks_open(r);
        r->net = lg_model(c, o->model);
        r->amp = !strcmp(o->amp, "f16") ? LG_F16 : !strcmp(o->amp, "bf16") ? LG_BF16 : LG_F32;
        lg_module_to(r->net, device);
        lg_list parameters = lg_parameters(r->net);
        r->opt = strcmp(o->optimizer, "sgd") ? lg_adam(c, parameters, o->lr)
                                             : lg_sgd(c, parameters, o->lr, .momentum = 0.9);
        r->scaler = lg_scaler_new(c);
        make_loaders(r, o, device);
        if (!lg_error(c))
                make_schedule(r, o);
        if (o->ema >= 0)
                r->average = lg_ema_new(r->net, o->ema > 0 ? o->ema : LG_ZERO);
        saving_begin(r);
}

/* ---- training ---- */

/* Returns the number of images in this batch on all processes together. */
static int64_t images_of(const run *r, const lg_batch *b)
{
        const int64_t each = r->o->batch * ranks_count(r);
        return b->index + 1 < b->count ? each : r->train_images - b->index * each;
}

/* Prints the loss over all processes every --log-steps steps, and writes it for --board; only then, as reading a loss
 * waits for the device. */
static void log_step(run *r, const lg_batch *b, const lg_tensor *loss)
{
        const bool prints = r->o->log_steps && r->step % r->o->log_steps == 0;
        if (!prints && !board_is_due(r))
                return;
        double value = lg_item(loss) * (double)lg_size_of(b->x, 0) / (double)images_of(r, b);
        ranks_sum(r, &value, 1);
        board_number(r, "loss/step", value);
        if (!prints || lg_error(r->c) || !ranks_first(r))
                return;
        printf("step %lld  loss %.9g\n", (long long)r->step, value);
        run_flush(r, stdout, "the standard output");
}

/* Returns the loss times this process's share of the batch, relative to an equal share: the mean of all processes'
 * gradients is then that of all images. */
static lg_tensor *weighted(run *r, const lg_batch *b, lg_tensor *loss)
{
        const int64_t share = lg_size_of(b->x, 0) * ranks_count(r), all = images_of(r, b);
        return share == all ? loss : lg_mul_scalar(loss, (double)share / (double)all);
}

static void train_step(run *r, const lg_batch *b, lg_tensor *sum)
{
        lg_tensor *loss = NULL;
        lg_autocast(r->c, (lg_dtype)r->amp) loss = lg_cross_entropy(lg_forward(r->net, b->x), b->y);
        lg_zero_grad(r->opt);
        if (r->amp == LG_F16) {
                lg_scaler_backward(r->scaler, weighted(r, b, loss));
                lg_scaler_step(r->scaler, r->opt);
                lg_scaler_update(r->scaler);
        } else {
                lg_backward(weighted(r, b, loss));
                lg_step(r->opt);
        }
        if (r->average)
                lg_ema_update(r->average);
        r->step++;
        log_step(r, b, loss);
        if (r->schedule && r->each_step)
                lg_scheduler_step(r->schedule);
        lg_add_(sum, lg_mul_scalar(lg_detach(loss), (double)lg_size_of(b->x, 0)));
        r->images += images_of(r, b);
        r->midway = b->index + 1 < b->count;
}

/* Returns the sum of losses of the epoch so far, over all processes. */
static double read_sum(run *r, const lg_tensor *sum)
{
        double value = lg_item(sum);
        ranks_sum(r, &value, 1);
        return value;
}

/* Saves the run if --save is given and the run stops here or --save-every is due. */
static void save_step(run *r, const lg_tensor *sum, bool stops)
{
        bool is_due = r->o->save_every && r->step % r->o->save_every == 0;
        if (!r->o->save || !(is_due || stops))
                return;
        r->loss_sum = read_sum(r, sum);
        saving_write(r);
        r->stopped = stops;
}

/* Keeps the sum of losses on the device, and reads it only now and then. */
double run_train_epoch(run *r, progress *p)
{
        lg_scope scope = lg_scope_begin(r->c);
        lg_device device = lg_device_of(lg_parameters(r->net).items[0]);
        lg_tensor *sum = lg_full(r->c, LG_SHAPE_0D, ranks_first(r) ? r->loss_sum : 0, .device = device);
        double before = r->spent;
        bool stops = false;
        p->images_before = r->images;
        p->steps_before = r->images / (r->o->batch * ranks_count(r));
        lg_train(r->net, true);
        for (lg_batch b; !stops && r->step < r->last_step && lg_loader_next(r->train, &b);) {
                train_step(r, &b, sum);
                r->spent = before + seconds() - p->start;
                const bool shows = ranks_agree(r, p);
                run_profile_step(r);
                stops = r->interrupted;
                save_step(r, sum, stops || (r->midway && r->step == r->last_step));
                if (shows)
                        progress_show(p, b.index + 1, b.count, r->images, read_sum(r, sum) / (double)r->images);
        }
        r->loss_sum = read_sum(r, sum);
        lg_loader_restart(r->train);
        lg_scope_end(r->c, scope);
        return r->images ? r->loss_sum / (double)r->images : 0;
}

/* ---- testing ---- */

static void count_classes(run *r, lg_tensor *labels, lg_tensor *predicted)
{
        int64_t n = lg_numel(labels), *host = malloc((size_t)n * 2 * sizeof *host);
        if (host && lg_read(labels, host, LG_I64, (size_t)n * sizeof *host) &&
            lg_read(predicted, host + n, LG_I64, (size_t)n * sizeof *host))
                report_add(r->report, host, host + n, n);
        else if (!host)
                lg_set_error(r->c, LG_ERR_MEMORY, "no memory for the report");
        free(host);
}

/* Adds up the reports of all processes. */
static void join_report(run *r)
{
        double all[REPORT_CLASSES * REPORT_CLASSES];
        int64_t *counts = r->report->count[0];
        for (int i = 0; i < REPORT_CLASSES * REPORT_CLASSES; i++)
                all[i] = (double)counts[i];
        if (ranks_sum(r, all, REPORT_CLASSES * REPORT_CLASSES))
                for (int i = 0; i < REPORT_CLASSES * REPORT_CLASSES; i++)
                        counts[i] = (int64_t)all[i];
}

/* Computes the figures of the whole test set from those of each process's share. */
static void join_figures(run *r, const lg_tensor *sum, const lg_tensor *right, int64_t images, figures *f)
{
        double all[] = {lg_item(sum), (double)lg_item_i64(right), (double)images};
        ranks_sum(r, all, 3);
        f->test_loss = all[0] / all[2];
        f->accuracy = all[1] / all[2];
}

void run_evaluate(run *r, progress *p, figures *f)
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
                        lg_tensor *scores = NULL;
                        lg_autocast(r->c, (lg_dtype)r->amp) scores = lg_forward(r->net, b.x);
                        lg_add_(sum, lg_cross_entropy(scores, b.y, .reduction = LG_SUM));
                        lg_tensor *predicted = lg_argmax(scores, .dims = LG_DIMS(1));
                        lg_add_(right, lg_sum(lg_eq(predicted, b.y)));
                        if (r->report)
                                count_classes(r, b.y, predicted);
                        images += lg_size_of(b.x, 0);
                        if (ranks_agree(r, p)) {
                                join_figures(r, sum, right, images, f);
                                progress_show(p, b.index + 1, b.count, images * ranks_count(r), f->test_loss);
                        }
                }
        }
        join_figures(r, sum, right, images, f);
        if (r->report)
                join_report(r);
        lg_scope_end(r->c, scope);
}

void run_swap(run *r)
{
        if (r->average)
                lg_ema_swap(r->average);
}
