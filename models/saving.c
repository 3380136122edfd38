/* saving.c - checkpoints of a run, its best weights, and the command that resumes it. */
#include <string.h>
#include <unistd.h>
#include "models.h"
#include "ranks.h"
#include "saving.h"

void saving_begin(run *r)
{
        if ((!r->o->save && !r->o->resume) || lg_error(r->c))
                return;
        lg_checkpoint *k = r->saved = lg_checkpoint_new(r->c);
        lg_checkpoint_add(k, "model", r->net);
        lg_checkpoint_add(k, "optimizer", r->opt);
        if (r->schedule)
                lg_checkpoint_add(k, "rate", r->schedule);
        if (r->average)
                lg_checkpoint_add(k, "average", r->average);
        lg_checkpoint_add(k, "scaler", r->scaler);
        lg_checkpoint_add(k, "batches", r->train);
        lg_checkpoint_add_i64(k, "augment", &r->augment);
        lg_checkpoint_add_i64(k, "amp", &r->amp);
        lg_checkpoint_add_i64(k, "schedule", &r->schedule_number);
        lg_checkpoint_add_i64(k, "epoch", &r->epoch);
        lg_checkpoint_add_i64(k, "step", &r->step);
        lg_checkpoint_add_i64(k, "images", &r->images);
        lg_checkpoint_add_number(k, "loss_sum", &r->loss_sum);
        lg_checkpoint_add_number(k, "seconds", &r->spent);
        lg_checkpoint_add_number(k, "best", &r->best);
        lg_checkpoint_add_i64(k, "best_epoch", &r->best_epoch);
}

/* ---- resuming ---- */

const char *saving_model_in(lg_ctx *c, const char *path, const char *prefix)
{
        const char *found = NULL;
        for (int i = 0; !found && lg_model_name(i); i++) {
                lg_module *net = lg_model(c, lg_model_name(i));
                found = lg_load(net, path, .prefix = prefix, .cast = true) ? lg_model_name(i) : NULL;
                lg_clear_error(c);
                lg_module_free(net);
        }
        return found;
}

/* Replaces the error of a failed load by one that names the options that do not fit. Returns false. */
static bool refuse(run *r)
{
        lg_ctx *c = r->c;
        char text[1500];
        if (lg_error_code_of(c) != LG_ERR_ARGUMENT && lg_error_code_of(c) != LG_ERR_DTYPE)
                return false;
        snprintf(text, sizeof text, "%s", lg_error(c));
        lg_clear_error(c);
        const char *model = saving_model_in(c, r->o->resume, "model.");
        if (model && strcmp(model, r->o->model))
                return lg_set_error(c, LG_ERR_ARGUMENT, "--resume %s: it is a run of --model %s, not %s", r->o->resume,
                                    model, r->o->model);
        return lg_set_error(c, LG_ERR_ARGUMENT,
                            "--resume %s: it %s; a run goes on with the --model, --optimizer, --schedule, --batch%s "
                            "and --ema that it began with (%s)",
                            r->o->resume, model ? "was begun with other options" : "is no run of this program",
                            r->group ? " (times the number of processes)" : "", text);
}

bool saving_resume(run *r)
{
        const char *path = r->o->resume;
        int64_t schedule = r->schedule_number, augment = r->augment, amp = r->amp;
        if (!path || lg_error(r->c))
                return !lg_error(r->c);
        if (!ranks_have(r, "--resume", path)) {
                if (!lg_error(r->c) && ranks_first(r))
                        fprintf(stderr, "%s is not there yet: this run begins\n", path);
                return !lg_error(r->c);
        }
        if (!lg_checkpoint_load(r->saved, path))
                return refuse(r);
        if (schedule != r->schedule_number)
                return lg_set_error(r->c, LG_ERR_ARGUMENT, "--resume %s: its --schedule is %s, not %s", path,
                                    options_schedule(r->schedule_number), r->o->schedule);
        if (augment != r->augment)
                return lg_set_error(r->c, LG_ERR_ARGUMENT, "--resume %s: it was begun with%s --augment", path,
                                    augment ? "out" : "");
        if (amp != r->amp)
                return lg_set_error(r->c, LG_ERR_ARGUMENT, "--resume %s: it was begun with --amp %s, not %s", path,
                                    lg_dtype_name((lg_dtype)r->amp), r->o->amp);
        if (ranks_first(r))
                fprintf(stderr, "%s: the run goes on after step %lld of %lld\n", path, (long long)r->step,
                        (long long)r->last_step);
        return true;
}

/* ---- writing ---- */

void saving_keep_best(run *r, double accuracy)
{
        if (lg_error(r->c) || (r->best_epoch && accuracy <= r->best))
                return;
        r->best = accuracy;
        r->best_epoch = r->epoch;
        if (r->o->keep_best && ranks_first(r) && !lg_save(r->net, r->o->keep_best))
                r->unwritten = true;
}

static bool write_onnx(run *r)
{
        lg_scope scope = lg_scope_begin(r->c);
        lg_tensor *x = lg_zeros(r->c, LG_SHAPE(2, 1, 28, 28), .device = lg_device_of(lg_parameters(r->net).items[0]));
        bool ok = lg_onnx_save(r->net, r->o->onnx, LG_LIST(x), .inputs = LG_NAMES("image"),
                               .outputs = LG_NAMES("scores"));
        lg_scope_end(r->c, scope);
        return ok;
}

/* An untrained network is no result and is removed again. */
bool saving_onnx_possible(run *r)
{
        bool is_new = false;
        if (r->o->onnx && ranks_first(r) && !lg_error(r->c) && saving_replaceable(r, "--onnx", r->o->onnx, &is_new) &&
            is_new && write_onnx(r))
                unlink(r->o->onnx);
        return !lg_error(r->c);
}

void saving_onnx(run *r)
{
        if (!r->o->onnx || lg_error(r->c) || !ranks_first(r))
                return;
        run_swap(r);
        r->unwritten = !write_onnx(r) || r->unwritten;
        run_swap(r);
}
