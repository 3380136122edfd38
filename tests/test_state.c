/* test_state.c - weights that are saved and loaded, and runs that go on bit for bit where a checkpoint stopped them. */
#include "temporary.h"

/* ---- one module ---- */

static lg_module *network(lg_ctx *c)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 2, 3), lg_nn_batch_norm2d(c, 2), lg_nn_relu(c), lg_nn_flatten(c),
                                lg_nn_linear(c, 8, 3, .dtype = LG_F32));
}

static void assert_same_state(lg_module *a, lg_module *b)
{
        lg_list p = lg_parameters(a), q = lg_parameters(b);
        assert_int_equal(p.count, q.count);
        for (int64_t i = 0; i < p.count; i++) {
                char x[4096], y[4096];
                size_t bytes = (size_t)lg_numel(p.items[i]) * lg_dtype_size(lg_dtype_of(p.items[i]));
                assert_true(bytes <= sizeof x);
                assert_true(lg_read(p.items[i], x, lg_dtype_of(p.items[i]), bytes));
                assert_true(lg_read(q.items[i], y, lg_dtype_of(p.items[i]), bytes));
                assert_memory_equal(x, y, bytes);
        }
}

TEST_CASE_WITH(weights_come_back, begin, end)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_seed(c, 1);
        lg_seed(other, 2);
        lg_module *net = network(c), *again = network(other);
        drop(lg_forward(net, lg_uniform(c, 0, 1, LG_SHAPE(4, 1, 4, 4)))); /* moves the running statistics */
        assert_true(lg_save(net, path));
        lg_tensor *w = lg_parameter(again, "0.weight");
        assert_true(lg_load(again, path));
        assert_ok(other);
        assert_ptr_equal(lg_parameter(again, "0.weight"), w); /* handles stay */
        assert_true(lg_requires_grad(w));
        assert_same_state(net, again);
        double mean[2], loaded[2];
        read_all(lg_buffer(net, "1.running_mean"), mean, 2);
        read_all(lg_buffer(again, "1.running_mean"), loaded, 2);
        assert_memory_equal(mean, loaded, sizeof mean);
        assert_true(mean[0] != 0);
        /* what only measures a forward is no batch */
        FILE *f = tmpfile();
        assert_true(lg_module_print_memory(f, again, .input = LG_SHAPE(4, 1, 4, 4)));
        fclose(f);
        assert_true(lg_save(again, path));
        lg_weights *file = lg_weights_open(c, path);
        assert_int_equal(lg_item_i64(lg_weights_read(file, "1.num_batches_tracked")), 1);
        lg_weights_close(file);
        /* and over a file that is there */
        assert_true(lg_save(again, path));
        assert_true(lg_load(net, path));
        assert_same_state(net, again);
        lg_close(other);
        lg_close(c);
}

TEST_CASE_WITH(every_dtype, begin, end)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16, LG_I64, LG_I32, LG_U8, LG_BOOL};
        lg_ctx *c = open_ctx();
        lg_module *a = lg_nn_module(c, "Holder"), *b = lg_nn_module(c, "Holder");
        lg_tensor *values = lg_from(c, ((double[]){0, 1, 2, 77}), LG_SHAPE(2, 2));
        for (int i = 0; i < 8; i++) {
                char name[8];
                snprintf(name, sizeof name, "b%d", i);
                lg_module_add_buffer(a, name, lg_copy(lg_cast(values, dtypes[i]), LG_NO_DEVICE));
                lg_module_add_buffer(b, name, lg_zeros(c, LG_SHAPE(2, 2), .dtype = dtypes[i]));
        }
        lg_module_add_buffer(a, "scalar", lg_scalar(c, 5, .dtype = LG_I64));
        lg_module_add_buffer(b, "scalar", lg_scalar(c, 0, .dtype = LG_I64));
        lg_module_add_buffer(a, "empty", lg_zeros(c, LG_SHAPE(0, 3)));
        lg_module_add_buffer(b, "empty", lg_zeros(c, LG_SHAPE(0, 3)));
        assert_true(lg_save(a, path) && lg_load(b, path));
        for (int i = 0; i < 8; i++) {
                char name[8];
                snprintf(name, sizeof name, "b%d", i);
                assert_list(lg_buffer(b, name), 0, 0, 1, dtypes[i] == LG_BOOL ? 1 : 2, dtypes[i] == LG_BOOL ? 1 : 77);
        }
        assert_int_equal(lg_item_i64(lg_buffer(b, "scalar")), 5);
        lg_close(c);
}

TEST_CASE_WITH(what_does_not_fit, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *saved = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_linear(c, 4, 2), lg_nn_linear(c, 2, 2));
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 3, 4), lg_nn_linear(c, 4, 3), lg_nn_relu(c),
                                          lg_nn_linear(c, 3, 1, .dtype = LG_F64));
        lg_tensor *before = lg_copy(lg_parameter(net, "0.weight"), LG_NO_DEVICE);
        assert_true(lg_save(saved, path));
        assert_false(lg_load(net, path));
        assert_error(
                c, LG_ERR_ARGUMENT,
                "does not fit: missing: \"3.bias\", \"3.weight\"; unexpected: \"2.bias\", \"2.weight\"; of another "
                "shape: \"1.bias\" (2,), not (3,), \"1.weight\" (2, 4), not (3, 4)");
        double a[12], b[12];
        read_all(before, a, 12);
        read_all(lg_parameter(net, "0.weight"), b, 12);
        assert_memory_equal(a, b, sizeof a);               /* nothing was changed */
        assert_false(lg_load(net, path, .partial = true)); /* shapes must fit even so */
        assert_error(c, LG_ERR_ARGUMENT,
                     ".skip_mismatched leaves tensors of another shape as they are): of another shape");
        assert_false(lg_load(net, path, .skip_mismatched = true));
        assert_error(c, LG_ERR_ARGUMENT, "give .partial");
        lg_tensor *unlike = lg_copy(lg_parameter(net, "1.weight"), LG_NO_DEVICE);
        assert_true(lg_load(net, path, .partial = true, .skip_mismatched = true));
        read_all(lg_parameter(saved, "0.weight"), a, 12);
        read_all(lg_parameter(net, "0.weight"), b, 12);
        assert_memory_equal(a, b, sizeof a); /* what fits was read */
        read_all(unlike, a, 12);
        read_all(lg_parameter(net, "1.weight"), b, 12);
        assert_memory_equal(a, b, sizeof a); /* the other shape was left */
        lg_module *wide = lg_nn_sequential(c, lg_nn_linear(c, 3, 4, .dtype = LG_F64));
        assert_false(lg_load(wide, path, .partial = true));
        assert_error(c, LG_ERR_DTYPE, "of another dtype: \"0.bias\" F32, not f64, \"0.weight\" F32, not f64");
        assert_true(lg_load(wide, path, .partial = true, .cast = true));
        assert_int_equal(lg_dtype_of(lg_parameter(wide, "0.weight")), LG_F64);
        read_all(lg_parameter(saved, "0.weight"), a, 12);
        read_all(lg_parameter(wide, "0.weight"), b, 12);
        assert_memory_equal(a, b, sizeof a);
        /* more than ten of a kind */
        lg_module *many = lg_nn_sequential(c);
        for (int i = 0; i < 20; i++)
                lg_module_append(many, lg_nn_linear(c, 1, 1));
        assert_false(lg_load(many, path));
        assert_error(c, LG_ERR_ARGUMENT, " and 24 more");
        lg_close(c);
}

TEST_CASE_WITH(parts_of_files, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *saved = lg_nn_module(c, "Saved"), *backbone = lg_nn_sequential(c, lg_nn_linear(c, 2, 3));
        lg_module_add(saved, "backbone", backbone);
        lg_module_add(saved, "fc", lg_nn_linear(c, 3, 2));
        assert_true(lg_save(saved, path));
        lg_module *alone = lg_nn_sequential(c, lg_nn_linear(c, 2, 3));
        assert_true(lg_load(alone, path, .prefix = "backbone."));
        assert_same_state(backbone, alone);
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 3), lg_nn_linear(c, 3, 2));
        assert_true(lg_load(net, path, .rename = LG_NAMES("backbone.0", "0", "fc", "1")));
        assert_same_state(saved, net);
        assert_false(lg_load(net, path, .rename = LG_NAMES("fc")));
        assert_error(c, LG_ERR_ARGUMENT, ".rename has 1 names; they are pairs");
        assert_false(lg_load(net, path, .rename = LG_NAMES("backbone.0", "0", "fc", "0")));
        assert_error(c, LG_ERR_ARGUMENT, "a second time");
        assert_false(lg_load(alone, path, .prefix = "nothing."));
        assert_error(c, LG_ERR_ARGUMENT, "missing: \"0.bias\", \"0.weight\"");
        assert_true(lg_copy_state(net, saved) == false);
        assert_error(c, LG_ERR_ARGUMENT, "lg_copy_state: \"0.bias\" is in `to`, but not in `from`");
        lg_module *twin = lg_nn_sequential(c, lg_nn_linear(c, 2, 3), lg_nn_linear(c, 3, 2));
        assert_true(lg_copy_state(twin, net));
        assert_same_state(twin, net);
        lg_close(c);
}

TEST_CASE_WITH(files_that_are_refused, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = network(c);
        assert_true(lg_save(net, path));
        lg_set_error(c, LG_ERR_STATE, "before");
        assert_false(lg_save(net, path));
        assert_error(c, LG_ERR_STATE, "before");
        assert_true(lg_load(net, path)); /* the good file is still there */
        assert_false(lg_load(net, "no-such-folder/x.safetensors"));
        assert_error(c, LG_ERR_IO, "no-such-folder/x.safetensors");
        assert_false(lg_save(net, "no-such-folder/x.safetensors"));
        assert_error(c, LG_ERR_IO, "no-such-folder");
        assert_false(lg_save(net, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_save: the path is NULL");
        assert_false(lg_load(net, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_load: the path is NULL");
        assert_false(lg_save(NULL, path) || lg_load(NULL, path) || lg_copy_state(NULL, net));
        assert_false(lg_copy_state(net, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_copy_state: `from` is NULL");
        FILE *f = fopen(path, "w");
        fputs("not a file of weights", f);
        fclose(f);
        assert_false(lg_load(net, path));
        assert_int_equal(lg_error_code_of(c), LG_ERR_FORMAT);
        lg_close(c);
}

/* ---- a whole run ---- */

#define ROWS 22

/* Everything that a run has. */
typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_scheduler *rate;
        lg_ema *average;
        lg_loader *batches;
        lg_checkpoint *k;
        int64_t epoch;
        double best;
} run;

static lg_optimizer *optimizer_of(lg_ctx *c, lg_module *net, int kind)
{
        lg_list p = lg_parameters(net);
        return kind == 0    ? lg_sgd(c, p, 0.05, .momentum = 0.9)
               : kind == 1  ? lg_adam(c, p, 0.01, .amsgrad = true)
               : kind == 2  ? lg_rmsprop(c, p, 0.01, .centered = true, .momentum = 0.5)
               : kind == 3  ? lg_adagrad(c, p, 0.05, .lr_decay = 0.01)
               : kind == 4  ? lg_adadelta(c, p, 1)
               : kind == 5  ? lg_nadam(c, p, 0.01)
               : kind == 6  ? lg_radam(c, p, 0.01)
               : kind == 7  ? lg_asgd(c, p, 0.05, .t0 = 3)
               : kind == 8  ? lg_rprop(c, p, 0.01)
               : kind == 9  ? lg_lion(c, p, 0.01)
               : kind == 10 ? lg_lamb(c, p, 0.01)
               : kind == 11 ? lg_adafactor(c, p, 0.01)
                            : lg_muon(c, p, 0.01);
}

static lg_scheduler *rate_of(lg_optimizer *opt, int kind)
{
        return kind == 0   ? lg_one_cycle_lr(opt, 0.1, 100)
               : kind == 1 ? lg_sequential_lr(LG_INTS(5), lg_linear_lr(opt, 5), lg_cosine_lr(opt, 40))
               : kind == 2 ? lg_reduce_on_plateau(opt, 0.5, .patience = 1)
               : kind == 5 ? lg_cyclic_lr(opt, 0.001, 0.01, .step_size_up = 3)
               : kind == 6 ? lg_cosine_restarts_lr(opt, 2, .t_mult = 2)
               : kind == 7 ? lg_polynomial_lr(opt, 30)
                           : lg_chained_lr(lg_exponential_lr(opt, 0.98), lg_step_lr(opt, 7));
}

/* The checkpoint knows where r is. */
static void run_begin(run *r, int kind, uint64_t seed, int workers)
{
        *r = (run){.c = open_ctx(), .best = 1e9};
        lg_ctx *c = r->c;
        lg_seed(c, 100);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(ROWS, 1, 4, 4), .device = lg_cpu());
        lg_tensor *y = lg_argmax(lg_slice(lg_flatten(x, .start_dim = 1), 1, 0, 3), .dims = LG_DIMS(1));
        lg_seed(c, seed);
        r->net = lg_nn_sequential(c, lg_nn_conv2d(c, 1, 2, 3), lg_nn_batch_norm2d(c, 2), lg_nn_relu(c),
                                  lg_nn_flatten(c), lg_nn_dropout(c, 0.2), lg_nn_linear(c, 8, 3));
        r->opt = optimizer_of(c, r->net, kind);
        r->rate = rate_of(r->opt, kind);
        r->average = lg_ema_new(r->net, 0.9);
        r->batches = lg_loader_open(c, lg_dataset_tensors(c, x, y), 4, .shuffle = true, .workers = workers);
        r->k = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(r->k, "model", r->net) && lg_checkpoint_add(r->k, "optimizer", r->opt) &&
                    lg_checkpoint_add(r->k, "rate", r->rate) && lg_checkpoint_add(r->k, "average", r->average) &&
                    lg_checkpoint_add(r->k, "batches", r->batches) &&
                    lg_checkpoint_add_number(r->k, "best", &r->best) &&
                    lg_checkpoint_add_i64(r->k, "epoch", &r->epoch));
}

/* Trains to the end of epoch 3; saves after the step `save_at` (counted over all), and stops there if told to. */
static void train(run *r, int kind, int *step, int save_at, bool stop)
{
        for (; r->epoch < 3; r->epoch++)
                lg_each_batch(b, r->batches)
                {
                        lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, b.x), b.y);
                        lg_zero_grad(r->opt);
                        lg_backward(loss);
                        lg_step(r->opt);
                        lg_ema_update(r->average);
                        if (kind == 2)
                                lg_scheduler_step_metric(r->rate, lg_item(loss));
                        else
                                lg_scheduler_step(r->rate);
                        r->best = fmin(r->best, lg_item(loss));
                        assert_ok(r->c);
                        if (++*step != save_at)
                                continue;
                        assert_true(lg_checkpoint_save(r->k, path));
                        if (stop)
                                return;
                }
}

static void assert_equal_modules(lg_module *a, lg_module *b)
{
        assert_same_state(a, b);
        double x[2], y[2];
        read_all(lg_buffer(a, "1.running_var"), x, 2);
        read_all(lg_buffer(b, "1.running_var"), y, 2);
        assert_memory_equal(x, y, sizeof x);
}

TEST_CASE_WITH(a_run_goes_on, begin, end)
{
        /* in the middle of an epoch, at its last batch (22 rows: 6 batches), at the first of the next one */
        static const int stops[] = {1, 4, 6, 7, 11, 12, 17};
        for (int kind = 0; kind < 13; kind++)
                for (int i = 0; i < 7; i++) {
                        int workers = (kind + i) % 3, steps[2] = {0, 0};
                        run whole, first, again;
                        run_begin(&whole, kind, 1, workers);
                        run_begin(&first, kind, 1, 2 - workers);
                        train(&whole, kind, &steps[0], 0, false);
                        train(&first, kind, &steps[1], stops[i], true);
                        lg_close(first.c);
                        run_begin(&again, kind, 77, workers); /* with other weights and another order */
                        assert_true(lg_checkpoint_load(again.k, path));
                        assert_ok(again.c);
                        train(&again, kind, &steps[1], 0, false);
                        assert_int_equal(steps[0], steps[1]);
                        assert_equal_modules(whole.net, again.net);
                        assert_true(whole.best == again.best && whole.epoch == again.epoch);
                        assert_true(lg_lr(whole.opt) == lg_lr(again.opt));
                        assert_true(lg_random_state_of(whole.c).counter == lg_random_state_of(again.c).counter);
                        lg_ema_swap(whole.average);
                        lg_ema_swap(again.average);
                        assert_equal_modules(whole.net, again.net);
                        lg_close(whole.c);
                        lg_close(again.c);
                }
}

/* Back to an earlier state in the same program, also to one before the first step. */
TEST_CASE_WITH(a_run_goes_back, begin, end)
{
        int steps = 0;
        run r, fresh;
        run_begin(&r, 1, 1, 0);
        run_begin(&fresh, 1, 1, 0);
        assert_true(lg_checkpoint_save(r.k, path));
        train(&r, 1, &steps, 0, false);
        assert_true(lg_checkpoint_load(r.k, path));
        assert_equal_modules(r.net, fresh.net);
        assert_int_equal(r.epoch, 0);
        train(&r, 1, &steps, 0, false);
        train(&fresh, 1, &steps, 0, false);
        assert_equal_modules(r.net, fresh.net);
        lg_close(r.c);
        lg_close(fresh.c);
}

/* The rest of an epoch without lg_each_batch; then a restart begins a new one. */
TEST_CASE_WITH(a_restart_after_the_rest, begin, end)
{
        lg_batch b;
        int steps = 0;
        run first, again;
        run_begin(&first, 1, 1, 1);
        train(&first, 1, &steps, 2, true);
        lg_close(first.c);
        run_begin(&again, 1, 77, 1);
        assert_true(lg_checkpoint_load(again.k, path) && lg_loader_next(again.batches, &b));
        assert_int_equal(b.index, 2);
        assert_true(lg_loader_next(lg_loader_restart(again.batches), &b));
        assert_int_equal(b.index, 0);
        assert_true(lg_checkpoint_load(again.k, path) && lg_loader_next(lg_loader_restart(again.batches), &b));
        assert_int_equal(b.index, 2);
        assert_ok(again.c);
        lg_close(again.c);
}

TEST_CASE_WITH(checkpoints_that_do_not_fit, begin, end)
{
        int steps = 0;
        run r, sgd;
        run_begin(&r, 1, 1, 0);
        run_begin(&sgd, 0, 1, 0);
        lg_ctx *c = sgd.c;
        train(&r, 1, &steps, 3, true);
        assert_false(lg_checkpoint_load(sgd.k, path));
        assert_error(c, LG_ERR_ARGUMENT, "\"optimizer.state.model.0.bias.exp_avg\"");
        assert_false(lg_checkpoint_add(sgd.k, "model", sgd.net));
        assert_error(c, LG_ERR_ARGUMENT, "there is a \"model\" already");
        assert_false(lg_checkpoint_add(sgd.k, "a.b", sgd.net));
        assert_error(c, LG_ERR_ARGUMENT, "\"a.b\" has a dot in it");
        assert_false(lg_checkpoint_add(sgd.k, "random", sgd.net));
        assert_error(c, LG_ERR_ARGUMENT, "random state");
        assert_false(lg_checkpoint_add(sgd.k, "other", r.net));
        assert_error(c, LG_ERR_ARGUMENT, "\"other\" is of another context");
        assert_false(lg_checkpoint_add_i64(sgd.k, "n", NULL));
        assert_error(c, LG_ERR_ARGUMENT, "the number \"n\" is NULL");
        assert_false(lg_checkpoint_add_with(sgd.k, "x", (lg_state_kind)9, sgd.net));
        assert_error(c, LG_ERR_ARGUMENT, "9 is no kind of object");
        lg_close(r.c);
        lg_close(c);
}

/* Before the first step, too, and where no state tells them apart. */
TEST_CASE_WITH(objects_of_another_type, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 2));
        lg_optimizer *opts[] = {lg_sgd(c, lg_parameters(net), 0.1), lg_adam(c, lg_parameters(net), 0.1),
                                lg_adamw(c, lg_parameters(net), 0.1)};
        lg_scheduler *rates[] = {lg_step_lr(opts[0], 3), lg_cosine_lr(opts[0], 3)};
        const char *const names[] = {"lg_sgd", "lg_adam", "lg_adamw"};
        lg_checkpoint *k[5];
        for (int i = 0; i < 5; i++) {
                k[i] = lg_checkpoint_new(c);
                assert_true(lg_checkpoint_add(k[i], "model", net));
                assert_true(i < 3 ? lg_checkpoint_add(k[i], "opt", opts[i])
                                  : lg_checkpoint_add(k[i], "rate", rates[i - 3]));
        }
        for (int from = 0; from < 3; from++) {
                assert_true(lg_checkpoint_save(k[from], path));
                for (int to = 0; to < 3; to++) {
                        char text[80];
                        snprintf(text, sizeof text, "does not fit: different: \"opt.type\" %s, but here %s",
                                 names[from], names[to]);
                        assert_int_equal(lg_checkpoint_load(k[to], path), from == to);
                        if (from != to)
                                assert_error(c, LG_ERR_ARGUMENT, text);
                }
        }
        assert_true(lg_checkpoint_save(k[3], path));
        assert_false(lg_checkpoint_load(k[4], path));
        assert_error(c, LG_ERR_ARGUMENT, "\"rate.type\" lg_step_lr, but here lg_cosine_lr");
        lg_close(c);
}

/* A run where weights are wanted, weights where a run is wanted, and a run under another name. */
TEST_CASE_WITH(names_with_another_beginning, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = network(c), *one = lg_nn_sequential(c, lg_nn_linear(c, 2, 2)),
                  *wrapped = lg_nn_sequential(c, one);
        lg_optimizer *opt = lg_adam(c, lg_parameters(net), 0.1);
        lg_checkpoint *run = lg_checkpoint_new(c), *other = lg_checkpoint_new(c), *small = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(run, "model", net) && lg_checkpoint_add(run, "optimizer", opt));
        assert_true(lg_checkpoint_add(other, "net", net) && lg_checkpoint_add(small, "net", one));
        assert_true(lg_checkpoint_save(run, path));
        for (int partial = 0; partial < 2; partial++) {
                assert_false(lg_load(net, path, .partial = partial));
                assert_error(c, LG_ERR_ARGUMENT,
                             "its names begin with \"model.\", which .prefix = \"model.\" of lg_load() removes");
                assert_false(lg_load(net, path, .prefix = "mode.", .partial = partial));
                assert_error(c, LG_ERR_ARGUMENT, "its names begin with \"model.\"");
        }
        assert_true(lg_load(net, path, .prefix = "model."));
        assert_false(lg_checkpoint_load(other, path));
        assert_error(c, LG_ERR_ARGUMENT, "its names begin with \"model.\", not with \"net.\"");
        /* another network: its names are not the reason */
        assert_false(lg_load(one, path));
        assert_null(strstr(lg_error(c), "its names"));
        lg_clear_error(c);
        assert_true(lg_save(net, path));
        assert_false(lg_checkpoint_load(run, path));
        assert_error(c, LG_ERR_ARGUMENT, "its names lack \"model.\": lg_load() reads them into that module");
        assert_true(lg_load(net, path));
        assert_true(lg_save(one, path));
        assert_false(lg_load(wrapped, path));
        assert_error(c, LG_ERR_ARGUMENT, "its names lack \"0.\"");
        assert_true(lg_load(lg_child(wrapped, 0), path));
        assert_ok(c);
        lg_close(c);
}

TEST_CASE_WITH(what_was_freed, begin, end)
{
        const char *const names[] = {"average", "batches", "rate", "optimizer", "model"};
        for (int i = 0; i < 5; i++) {
                run r;
                char text[40];
                int steps = 0;
                run_begin(&r, 1, 1, 0);
                train(&r, 1, &steps, 3, true);
                i == 0   ? lg_ema_free(r.average)
                : i == 1 ? lg_loader_close(r.batches)
                : i == 2 ? lg_scheduler_free(r.rate)
                : i == 3 ? lg_optimizer_free(r.opt)
                         : lg_module_free(r.net);
                snprintf(text, sizeof text, "lg_checkpoint_save: \"%s\" was freed", names[i]);
                assert_false(lg_checkpoint_save(r.k, path));
                assert_error(r.c, LG_ERR_STATE, text);
                assert_false(lg_checkpoint_load(r.k, path));
                assert_error(r.c, LG_ERR_STATE, "was freed");
                if (i % 2)
                        lg_checkpoint_free(r.k);
                lg_close(r.c);
        }
}

/* The size is what is wrong, not the place in the epoch, which it makes too large. */
TEST_CASE_WITH(another_batch_size, begin, end)
{
        int steps = 0;
        run r;
        run_begin(&r, 1, 1, 0);
        train(&r, 1, &steps, 5, true);
        lg_checkpoint *k = lg_checkpoint_new(r.c);
        lg_tensor *rows = lg_zeros(r.c, LG_SHAPE(ROWS), .device = lg_cpu());
        lg_loader *large = lg_loader_open(r.c, lg_dataset_tensors(r.c, rows, rows), ROWS);
        assert_true(lg_checkpoint_add(k, "batches", large));
        assert_false(lg_checkpoint_load(k, path));
        assert_error(r.c, LG_ERR_ARGUMENT, "\"batches.batch_size\" 4, but here");
        lg_close(r.c);
}

TEST_CASE_WITH(what_only_the_file_has, begin, end)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_sequential(c, lg_nn_linear(c, 2, 2));
        double best = 1, worst = 2;
        /* numbers, and the groups of an optimiser */
        lg_checkpoint *k = lg_checkpoint_new(c), *fewer = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add_number(k, "best", &best) && lg_checkpoint_add_number(k, "worst", &worst));
        assert_true(lg_checkpoint_save(k, path) && lg_checkpoint_add_number(fewer, "best", &best));
        assert_false(lg_checkpoint_load(fewer, path));
        assert_error(c, LG_ERR_ARGUMENT, "does not fit: unexpected: \"worst\"");
        lg_optimizer *two = lg_sgd(c, lg_parameters_matching(net, "*.weight"), 0.1),
                     *one = lg_sgd(c, lg_parameters(net), 0.1);
        lg_add_param_group(two, lg_parameters_matching(net, "*.bias"), .lr = 0.2);
        lg_checkpoint *groups = lg_checkpoint_new(c), *group = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(groups, "model", net) && lg_checkpoint_add(groups, "opt", two));
        assert_true(lg_checkpoint_add(group, "model", net) && lg_checkpoint_add(group, "opt", one));
        assert_true(lg_checkpoint_save(groups, path));
        assert_false(lg_checkpoint_load(group, path));
        assert_error(c, LG_ERR_ARGUMENT, "unexpected: \"opt.");
        /* a module of a run, and one that is not in it */
        assert_true(lg_load(net, path, .prefix = "model."));
        assert_false(lg_load(net, path, .prefix = "mode.", .partial = true));
        assert_error(c, LG_ERR_ARGUMENT, "has no tensor of this module under \"mode.\", whose first is \"0.bias\"");
        assert_true(lg_load(net, path, .rename = LG_NAMES("model", "")));
        lg_close(c);
}

TEST_CASE_WITH(texts_of_a_run, begin, end)
{
        lg_ctx *c = open_ctx();
        char name[8] = "b\xc3\xa9", empty[1] = "", full[4] = {'a', 'b', 'c', 'd'};
        lg_checkpoint *k = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add_text(k, "name", name, sizeof name));
        assert_true(lg_checkpoint_add_text(k, "empty", empty, sizeof empty));
        assert_true(lg_checkpoint_save(k, path));
        strcpy(name, "other");
        assert_true(lg_checkpoint_load(k, path));
        assert_string_equal(name, "b\xc3\xa9");
        /* too long for the place; nothing is changed */
        char small[3] = "yz";
        lg_checkpoint *l = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add_text(l, "name", small, sizeof small));
        assert_true(lg_checkpoint_add_text(l, "empty", empty, sizeof empty));
        assert_false(lg_checkpoint_load(l, path));
        assert_error(c, LG_ERR_FORMAT, "\"name\" is \"b\xc3\xa9\", which is too long for its place");
        assert_string_equal(small, "yz");
        /* no text at all */
        name[1] = '\x80';
        assert_false(lg_checkpoint_save(k, path));
        assert_error(c, LG_ERR_ARGUMENT, "is not UTF-8");
        assert_true(lg_checkpoint_add_text(k, "full", full, sizeof full));
        assert_false(lg_checkpoint_save(k, path));
        assert_error(c, LG_ERR_ARGUMENT, "the text \"full\" has no end within its 4 bytes");
        assert_false(lg_checkpoint_add_text(k, "more", NULL, 3));
        assert_error(c, LG_ERR_ARGUMENT, "\"more\" is NULL");
        assert_false(lg_checkpoint_add_text(k, "more", full, 0));
        assert_error(c, LG_ERR_ARGUMENT, "\"more\" has no bytes");
        lg_close(c);
}
