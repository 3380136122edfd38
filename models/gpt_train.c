/* gpt_train.c - training and evaluation of a language model. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "board.h"
#include "ranks.h"
#include "saving.h"
#include "gpt_trainer.h"

/* ---- parts ---- */

static bool read_config(trainer *t)
{
        lg_ctx *c = t->r.c;
        const char *folder = t->o->from;
        char path[1000] = "the new model";
        if (folder) {
                if ((size_t)snprintf(path, sizeof path, "%s/config.json", folder) >= sizeof path)
                        return lg_set_error(c, LG_ERR_ARGUMENT, "--from: the name is too long");
                t->config = gpt_read_text(c, path);
        } else {
                t->config = gpt_config_text(c, t->o->model ? t->o->model : "gpt2-mini",
                                            t->tokenizer ? lg_tokenizer_size(t->tokenizer) : 256);
        }
        gpt_config config;
        if (!t->config || !gpt_config_parse(c, t->config, path, &config))
                return false;
        t->g = gpt_new(c, &config);
        return t->g != NULL;
}

/* Makes or reads the adapters. */
static bool make_adapters(const trainer *t)
{
        const gpt_options *o = t->o;
        if (o->adapter)
                return lg_lora_load(t->r.net, o->adapter);
        const char *on = o->lora_on ? o->lora_on : t->g->o.llama ? "*.self_attn.*" : "*.c_attn";
        return !o->lora || lg_lora(t->r.net, on, o->lora, .alpha = o->lora_alpha) > 0;
}

bool trainer_make(trainer *t)
{
        const gpt_options *o = t->o;
        lg_ctx *c = t->r.c;
        t->r.amp = strcmp(o->run.amp, "bf16") ? LG_F32 : LG_BF16;
        const lg_device device = ranks_open(&t->r);
        if (lg_error(c) || !text_open(t) || !read_config(t) || (o->from && !gpt_load(t->g, o->from)))
                return false;
        t->g->recompute = o->recompute;
        t->r.net = t->g->net;
        t->length = o->length ? o->length : t->g->o.positions < 256 ? t->g->o.positions : 256;
        t->accumulate = o->accumulate;
        if (t->length > t->g->o.positions)
                return lg_set_error(c, LG_ERR_ARGUMENT, "--length %lld: the model has %lld positions",
                                    (long long)t->length, (long long)t->g->o.positions);
        return lg_module_to(t->r.net, device) && make_adapters(t);
}

/* Returns AdamW, with weight decay for weights but not for biases and norms. */
static lg_optimizer *make_optimizer(const trainer *t)
{
        const gpt_options *o = t->o;
        const lg_list all = lg_parameters(t->r.net);
        lg_tensor **two = malloc((size_t)(all.count * 2 + 1) * sizeof *two), **one = two + all.count;
        int64_t n = 0, m = 0;
        if (!two) {
                lg_set_error(t->r.c, LG_ERR_MEMORY, "no memory for %lld parameters", (long long)all.count);
                return NULL;
        }
        for (int64_t i = 0; i < all.count; i++)
                if (lg_requires_grad(all.items[i])) {
                        if (lg_ndim_of(all.items[i]) > 1)
                                two[n++] = all.items[i];
                        else
                                one[m++] = all.items[i];
                }
        lg_optimizer *opt = lg_adamw(t->r.c, LG_LIST_OF(n, two), o->run.lr, .beta2 = 0.95,
                                     .weight_decay = o->weight_decay > 0 ? o->weight_decay : LG_ZERO);
        if (m)
                lg_add_param_group(opt, LG_LIST_OF(m, one), .weight_decay = LG_ZERO);
        free(two);
        return opt;
}

/* Returns the factor of the learning rate: it rises to 1 in --warmup steps, and falls along a cosine to 0.1. */
static double rate(int64_t step, void *user)
{
        const gpt_options *o = user;
        if (step < o->warmup)
                return (double)(step + 1) / (double)(o->warmup + 1);
        const double part = (double)(step - o->warmup) / (double)(o->run.steps - o->warmup);
        return part >= 1 ? 0.1 : 0.1 + 0.45 * (1 + cos(3.14159265358979323846 * part));
}

static void make_checkpoint(trainer *t)
{
        run *r = &t->r;
        if ((!r->o->save && !r->o->resume) || lg_error(r->c))
                return;
        lg_checkpoint *k = r->saved = lg_checkpoint_new(r->c);
        lg_checkpoint_add(k, "model", r->net);
        lg_checkpoint_add(k, "optimizer", r->opt);
        lg_checkpoint_add(k, "rate", r->schedule);
        lg_checkpoint_add(k, "batches", r->train);
        lg_checkpoint_add_i64(k, "step", &r->step);
        lg_checkpoint_add_i64(k, "amp", &r->amp);
        lg_checkpoint_add_i64(k, "length", &t->length);
        lg_checkpoint_add_i64(k, "accumulate", &t->accumulate);
}

static bool make_training(trainer *t)
{
        run *r = &t->r;
        lg_dataset *data = text_dataset(t, r->o->data, t->length);
        r->train = lg_loader_open(r->c, data, r->o->batch, .shuffle = true, .drop_last = true,
                                  .device = lg_device_of(lg_parameters(r->net).items[0]), .group = r->group);
        r->opt = make_optimizer(t);
        r->schedule = lg_lambda_lr(r->opt, rate, (void *)t->o);
        r->last_step = r->o->steps;
        make_checkpoint(t);
        return !lg_error(r->c);
}

/* Loads the file of --resume, unless there is none yet. */
static bool resume(trainer *t)
{
        run *r = &t->r;
        const char *path = r->o->resume;
        const int64_t amp = r->amp, length = t->length, accumulate = t->accumulate;
        if (!path || !ranks_have(r, "--resume", path)) {
                if (path && !lg_error(r->c) && ranks_first(r))
                        fprintf(stderr, "%s is not there yet: this run begins\n", path);
                return !lg_error(r->c);
        }
        if (!lg_checkpoint_load(r->saved, path))
                return false;
        if (amp != r->amp || length != t->length || accumulate != t->accumulate)
                return lg_set_error(r->c, LG_ERR_ARGUMENT,
                                    "--resume %s: it was begun with --amp %s --length %lld --accumulate %lld", path,
                                    lg_dtype_name((lg_dtype)r->amp), (long long)t->length, (long long)t->accumulate);
        if (ranks_first(r))
                fprintf(stderr, "%s: the run goes on after step %lld of %lld\n", path, (long long)r->step,
                        (long long)r->last_step);
        return true;
}

/* ---- training ---- */

/* Takes the next batch, in a new epoch if this one is at its end. */
static bool next_batch(run *r, lg_batch *ret)
{
        return lg_loader_next(r->train, ret) || (!lg_error(r->c) && lg_loader_next(r->train, ret));
}

/* Runs a step of --accumulate batches, whose mean loss it adds to *sum. */
static void train_step(trainer *t, lg_tensor *sum)
{
        run *r = &t->r;
        lg_batch b;
        lg_zero_grad(r->opt);
        for (int64_t i = 0; i < t->accumulate && next_batch(r, &b); i++) {
                const bool waits = r->group && i + 1 < t->accumulate;
                lg_tensor *loss = NULL;
                lg_autocast(r->c, (lg_dtype)r->amp) loss = gpt_loss(t->g, b.x, b.y);
                if (t->accumulate > 1)
                        loss = lg_mul_scalar(loss, 1 / (double)t->accumulate);
                if (waits)
                        lg_set_sync_mode(r->net, false);
                lg_backward(loss);
                if (waits)
                        lg_set_sync_mode(r->net, true);
                lg_add_(sum, lg_detach(loss));
        }
        if (t->o->clip > 0)
                lg_clip_grad_norm(lg_parameters(r->net), t->o->clip);
        lg_step(r->opt);
        r->step++;
        if (board_is_due(r))
                board_number(r, "learning rate", lg_lr(r->opt));
        lg_scheduler_step(r->schedule);
}

/* Returns the mean, over all processes, of the losses of n steps, and sets their sum to 0. Waits for the device. */
static double take_mean(run *r, lg_tensor *sum, int64_t n)
{
        double value = lg_item(sum);
        ranks_sum(r, &value, 1);
        lg_fill_(sum, 0);
        return value / (double)(n * ranks_count(r));
}

static void log_step(run *r, double loss, double start, int64_t tokens)
{
        if (lg_error(r->c) || !ranks_first(r))
                return;
        printf("step %lld/%lld  loss %.6g  rate %.3g  %.0f tokens/s\n", (long long)r->step, (long long)r->last_step,
               loss, lg_lr(r->opt), (double)tokens / (seconds() - start));
        run_flush(r, stdout, "the standard output");
}

/* Trains, keeps the sum of losses on the device, and reads it only where a loss is printed. */
static void train_steps(trainer *t)
{
        run *r = &t->r;
        const int64_t each = r->o->batch * t->length * t->accumulate * ranks_count(r);
        lg_tensor *sum = lg_zeros(r->c, LG_SHAPE_0D, .device = lg_device_of(lg_parameters(r->net).items[0]));
        progress p;
        progress_begin(&p, "step", r->step, r->last_step, r->o->quiet || !ranks_first(r));
        p.unit = "tokens";
        p.steps_before = r->step;
        p.images_before = r->step * each;
        lg_train(r->net, true);
        run_profile_begin(r);
        for (int64_t since = 0; r->step < r->last_step && !r->interrupted && !lg_error(r->c);) {
                train_step(t, sum);
                since++;
                const bool shows = ranks_agree(r, &p);
                const bool logs = r->o->log_steps && r->step % r->o->log_steps == 0;
                const bool draws = board_is_due(r);
                if (shows || logs || draws) {
                        const double loss = take_mean(r, sum, since);
                        since = 0;
                        p.epoch = r->step;
                        if (shows)
                                progress_show(&p, r->step, r->last_step, r->step * each, loss);
                        if (logs)
                                log_step(r, loss, p.start, r->step * each - p.images_before);
                        if (draws)
                                board_number(r, "loss/train", loss);
                }
                if (r->step % ((r->last_step + 9) / 10) == 0)
                        board_parameters(r);
                if (r->interrupted || r->step == r->last_step || (r->o->save_every && r->step % r->o->save_every == 0))
                        saving_write(r);
                run_profile_step(r);
        }
        progress_end(&p);
        run_profile_end(r);
        lg_loader_restart(r->train);
}

bool trainer_train(trainer *t, char *const *argv)
{
        run *r = &t->r;
        if (!make_training(t) || !resume(t) || !ranks_share(r) || !saving_possible(r) || !board_open(r))
                return false;
        train_steps(t);
        if (lg_error(r->c) || r->step >= r->last_step || !r->o->save)
                return !lg_error(r->c) && r->step >= r->last_step;
        if (ranks_first(r)) {
                printf("step %lld of %lld is saved; this goes on%s:\n", (long long)r->step, (long long)r->last_step,
                       ranks_count(r) > 1 ? ", by mpirun as before" : "");
                saving_print_command(stdout, r, argv);
                run_flush(r, stdout, "the standard output");
        }
        return false;
}

/* ---- evaluation ---- */

bool trainer_test(trainer *t)
{
        run *r = &t->r;
        double sums[2] = {0, 0}; /* of losses, of tokens */
        progress p;
        lg_loader *batches = lg_loader_open(r->c, text_dataset(t, t->o->test, t->length), r->o->batch,
                                            .device = lg_device_of(lg_parameters(r->net).items[0]), .group = r->group);
        progress_begin(&p, "test", 1, 1, r->o->quiet || !ranks_first(r));
        p.unit = "tokens";
        lg_train(r->net, false);
        lg_no_grad(r->c) lg_each_batch(b, batches)
        {
                const double tokens = (double)lg_numel(b.y);
                lg_tensor *loss = NULL;
                lg_autocast(r->c, (lg_dtype)r->amp) loss = gpt_loss(t->g, b.x, b.y);
                sums[0] += lg_item(loss) * tokens;
                sums[1] += tokens;
                if (progress_due(&p))
                        progress_show(&p, b.index + 1, b.count, (int64_t)sums[1], sums[0] / sums[1]);
        }
        progress_end(&p);
        if (!ranks_sum(r, sums, 2) || lg_error(r->c))
                return false;
        board_number(r, "loss/test", sums[0] / sums[1]);
        if (ranks_first(r))
                printf("test loss %.6f  perplexity %.4f  %.0f tokens\n", sums[0] / sums[1], exp(sums[0] / sums[1]),
                       sums[1]);
        run_flush(r, stdout, "the standard output");
        return !lg_error(r->c);
}
