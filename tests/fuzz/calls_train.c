/* calls_train.c - calls of optimisers, schedules, averages, data sets and loaders. */
#include "vm.h"

static lg_list parameters(vm *m, lg_tensor *room[4])
{
        return flag(m) ? lg_parameters(module(m)) : list(m, room);
}

static void take(vm *m, lg_optimizer *opt)
{
        m->odd = true; /* a list of nothing has no context */
        if (opt)
                PUT(m, m->now->optimizers, opt);
}

void call_sgd(vm *m)
{
        lg_tensor *room[4];
        lg_list params = parameters(m, room);
        uint8_t b = byte(m);
        double lr = b & 1 ? number(m) : 0.1, decay = b & 2 ? number(m) : 0, momentum = b & 4 ? number(m) : 0;
        bool maximize = b & 8, other = b & 16;
        lg_rmsprop_options r = *LG_OPTIONS(lg_rmsprop_options, .alpha = decay, .eps = decay, .momentum = momentum,
                                           .centered = other, .maximize = maximize);
        lg_adagrad_options a = *LG_OPTIONS(lg_adagrad_options, .lr_decay = momentum, .weight_decay = decay,
                                           .initial_accumulator_value = momentum, .maximize = maximize);
        lg_adadelta_options d =
                *LG_OPTIONS(lg_adadelta_options, .rho = momentum, .weight_decay = decay, .maximize = maximize);
        lg_sgd_options s = *LG_OPTIONS(lg_sgd_options, .momentum = momentum, .weight_decay = decay, .nesterov = other,
                                       .maximize = maximize);
        switch (byte(m) % 4) {
        case 0:
                take(m, lg_rmsprop_with(m->now->ctx, params, lr, HAND(m, r)));
                return;
        case 1:
                take(m, lg_adagrad_with(m->now->ctx, params, lr, HAND(m, a)));
                return;
        case 2:
                take(m, lg_adadelta_with(m->now->ctx, params, lr, HAND(m, d)));
                return;
        default:
                s.dampening = b & 32 ? number(m) : 0;
                take(m, lg_sgd_with(m->now->ctx, params, lr, HAND(m, s)));
        }
}

static lg_tensor *sum_of_squares(lg_ctx *c, void *user)
{
        (void)c;
        return lg_sum(lg_square(user));
}

/* Optimisers whose options are left at their defaults but for a few. */
void call_other_optimizer(vm *m)
{
        lg_tensor *room[4];
        lg_list params = parameters(m, room);
        lg_ctx *c = m->now->ctx;
        uint8_t b = byte(m);
        double lr = b & 1 ? number(m) : 0.1, decay = b & 2 ? number(m) : 0, beta = b & 4 ? number(m) : 0;
        switch (byte(m) % 9) {
        case 0:
                take(m, lg_nadam(c, params, lr, .beta1 = beta, .weight_decay = decay, .momentum_decay = decay));
                return;
        case 1:
                take(m, lg_radam(c, params, lr, .beta2 = beta, .weight_decay = decay, .maximize = b & 8));
                return;
        case 2:
                take(m, lg_asgd(c, params, lr, .lambd = decay, .alpha = beta, .t0 = b & 8 ? LG_ZERO : 1));
                return;
        case 3:
                take(m, lg_rprop(c, params, lr, .eta_minus = beta, .step_min = decay));
                return;
        case 4:
                take(m, lg_lion(c, params, lr, .beta1 = beta, .weight_decay = decay));
                return;
        case 5:
                take(m, lg_lamb(c, params, lr, .beta2 = beta, .weight_decay = decay));
                return;
        case 6:
                take(m, lg_adafactor(c, params, lr, .eps1 = beta, .weight_decay = decay));
                return;
        case 7:
                take(m, lg_muon(c, params, lr, .momentum = beta, .weight_decay = decay, .ns_steps = b % 8));
                return;
        default: {
                lg_optimizer *opt = lg_lbfgs(c, params, lr, .history_size = b % 4, .tolerance_grad = beta,
                                             .max_iter = b % 8, .strong_wolfe = b & 8);
                if (params.count > 0 && params.items)
                        lg_step_closure(opt, sum_of_squares, params.items[0], NULL);
                take(m, opt);
        }
        }
}

void call_adam(vm *m)
{
        lg_tensor *room[4];
        lg_list params = parameters(m, room);
        uint8_t b = byte(m);
        double lr = b & 1 ? number(m) : 0.1;
        lg_adam_options o = *LG_OPTIONS(lg_adam_options, .beta1 = b & 2 ? number(m) : 0, .beta2 = b & 4 ? number(m) : 0,
                                        .eps = b & 8 ? number(m) : 0, .weight_decay = b & 16 ? number(m) : 0,
                                        .decoupled = b & 32, .maximize = b & 64, .amsgrad = b & 128);
        lg_adamw_options w = *LG_OPTIONS(lg_adamw_options, .beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps,
                                         .weight_decay = o.weight_decay, .maximize = o.maximize, .amsgrad = o.amsgrad);
        take(m, flag(m) ? lg_adam_with(m->now->ctx, params, lr, HAND(m, o))
                        : lg_adamw_with(m->now->ctx, params, lr, HAND(m, w)));
}

void call_add_group(vm *m)
{
        lg_tensor *room[4];
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        lg_list params = parameters(m, room);
        m->odd = m->odd || !opt;
        lg_param_group_options o = *LG_OPTIONS(lg_param_group_options, .lr = number(m), .weight_decay = number(m));
        check_done(m, lg_add_param_group_with(opt, params, HAND(m, o)));
}

/* A group with all the numbers that its optimiser may have. */
void call_group_numbers(vm *m)
{
        lg_tensor *room[4];
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        lg_list params = parameters(m, room);
        uint8_t b = byte(m);
        m->odd = m->odd || !opt;
        lg_param_group_options o =
                *LG_OPTIONS(lg_param_group_options, .lr = b & 1 ? number(m) : 0, .weight_decay = b & 2 ? number(m) : 0,
                            .momentum = b & 4 ? number(m) : 0, .beta1 = b & 8 ? number(m) : 0,
                            .beta2 = b & 16 ? number(m) : 0, .eps = b & 32 ? number(m) : 0);
        check_done(m, lg_add_param_group_with(opt, params, HAND(m, o)));
}

void call_optimizer_step(vm *m)
{
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        m->odd = m->odd || !opt;
        if (flag(m)) {
                check_done(m, lg_zero_grad(opt));
                return;
        }
        uint64_t before = parameter_values(m);
        bool done = lg_step(opt);
        check_done(m, done);
        FUZZ_CHECK(done || parameter_values(m) == before || m->odd, "a step failed and changed parameters");
}

void call_learning_rate(vm *m)
{
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        m->odd = m->odd || !opt;
        int group = dim(m);
        check_done(m, flag(m) ? lg_set_lr(opt, number(m)) : lg_set_param_group_lr(opt, group, number(m)));
        lg_param_group_lr(opt, group);
        lg_lr(opt);
        FUZZ_CHECK(lg_param_group_count(opt) >= 0, "fewer than no groups");
}

void call_clip(vm *m)
{
        lg_tensor *room[4], *norm = NULL;
        lg_list params = parameters(m, room);
        double value = number(m);
        m->odd = true;
        if (flag(m)) {
                lg_clip_grad_value(params, value);
                return;
        }
        lg_clip_options o = *LG_OPTIONS(lg_clip_options, .p = flag(m) ? number(m) : 0, .norm = flag(m) ? &norm : NULL);
        lg_clip_grad_norm_with(params, value, HAND(m, o));
        give_read(m, norm);
}

void call_optimizer_free(vm *m)
{
        lg_optimizer **opt = &PICK(m, m->now->optimizers), *gone = *opt;
        for (int i = 0; gone && i < OBJECTS; i++)
                if (m->now->optimizers[i] == gone)
                        m->now->optimizers[i] = NULL;
        lg_optimizer_free(gone);
}

/* Mixed precision: the region, modules of another dtype, and the scaler of the loss. */
void call_mixed(vm *m)
{
        uint8_t i = byte(m) % 8;
        if (i == 0) {
                lg_set_autocast_mode(m->now->ctx, flag(m) ? float_dtype(m) : LG_DTYPE_NONE);
                return;
        }
        if (i == 1) {
                lg_module *a = module(m);
                check_done(m, lg_module_cast(a, float_dtype(m)));
                return;
        }
        lg_scaler **slot = &PICK(m, m->now->scalers), *s = *slot;
        lg_optimizer *opt = i == 5 || i == 6 ? PICK(m, m->now->optimizers) : NULL;
        m->odd = m->odd || !s;
        lg_scaler_options o = *LG_OPTIONS(lg_scaler_options, .init_scale = 0);
        lg_backward_options b = *LG_OPTIONS(lg_backward_options, .grad = NULL);
        lg_tensor *loss = i == 3 || i == 4 ? tensor(m) : NULL;
        if (i == 2 && flag(m)) {
                o.init_scale = number(m);
                o.growth_factor = number(m);
                o.backoff_factor = number(m);
                o.growth_interval = size(m);
        }
        switch (i) {
        case 2:
                lg_scaler_free(s);
                *slot = lg_scaler_new_with(m->now->ctx, HAND(m, o));
                check_done(m, *slot != NULL);
                return;
        case 3:
                give(m, lg_scaler_scale(s, loss));
                return;
        case 4:
                b.grad = flag(m) ? maybe(m) : NULL;
                b.retain_graph = flag(m);
                check_done(m, lg_scaler_backward_with(s, loss, HAND(m, b)));
                return;
        case 5:
                check_done(m, lg_scaler_unscale(s, opt));
                return;
        case 6:
                check_done(m, lg_scaler_step(s, opt));
                return;
        default:
                check_done(m, lg_scaler_update(s));
                lg_scaler_scale_of(s);
        }
}

static double on_step(int64_t epoch, void *user)
{
        vm *m = user;
        FUZZ_CHECK(epoch >= 0, "step %lld", (long long)epoch);
        mischief(m, m->now->ctx);
        return number(m);
}

static void take_schedule(vm *m, lg_scheduler *s)
{
        check_done(m, s != NULL);
        if (s)
                PUT(m, m->now->schedulers, s);
}

/* None, one or both of two numbers, or a list of nothing that claims to be longer. */
static lg_ints few(vm *m, const int64_t two[2])
{
        uint8_t b = byte(m);
        int64_t count = b % 4 - 1 > 2 ? 2 : byte(m) % 3;
        return LG_INTS_OF(count, b >= 0xF8 ? NULL : two);
}

/* Finds the rate for a parameter; it sets an error if there is no descent, or if it cannot. */
static void find_rate(vm *m, lg_optimizer *opt, double from, double to)
{
        lg_tensor *room[4];
        const lg_list params = parameters(m, room);
        m->odd = true;
        if (params.count > 0 && params.items)
                lg_find_lr(module(m), opt, sum_of_squares, params.items[0], .from = from, .to = to, .steps = 10);
}

static void make_one_cycle(vm *m, lg_optimizer *opt, double max_lr, int64_t total, double pct_start)
{
        lg_one_cycle_options o = *LG_OPTIONS(lg_one_cycle_options, .pct_start = pct_start, .div_factor = number(m),
                                             .final_div_factor = number(m), .base_momentum = number(m),
                                             .no_cycle_momentum = flag(m), .linear = flag(m), .three_phase = flag(m));
        take_schedule(m, lg_one_cycle_lr_with(opt, max_lr, total, HAND(m, o)));
}

static void make_plateau(vm *m, lg_optimizer *opt, double factor, int64_t patience, double threshold, int64_t cooldown)
{
        lg_plateau_options o =
                *LG_OPTIONS(lg_plateau_options, .patience = patience, .threshold = threshold, .cooldown = cooldown,
                            .min_lr = number(m), .max_mode = flag(m), .absolute_threshold = flag(m));
        o.patience = flag(m) ? LG_ZERO_INT : patience;
        take_schedule(m, lg_reduce_on_plateau_with(opt, factor, HAND(m, o)));
}

static void make_cyclic(vm *m, lg_optimizer *opt, double base_lr, double max_lr, int64_t up)
{
        lg_cyclic_options o = *LG_OPTIONS(lg_cyclic_options, .step_size_up = up, .step_size_down = size(m),
                                          .gamma = number(m), .base_momentum = number(m), .no_cycle_momentum = flag(m));
        o.mode = (lg_cyclic_mode)(byte(m) % 4);
        take_schedule(m, lg_cyclic_lr_with(opt, base_lr, max_lr, HAND(m, o)));
}

void call_schedule(vm *m)
{
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        const uint8_t drawn = byte(m), i = drawn % 13;
        int64_t n = size(m);
        const int64_t milestones[] = {size(m), size(m)};
        double a = flag(m) ? number(m) : 0, b = flag(m) ? number(m) : 0;
        lg_step_lr_options step = *LG_OPTIONS(lg_step_lr_options, .gamma = a);
        lg_multi_step_lr_options steps = *LG_OPTIONS(lg_multi_step_lr_options, .gamma = a);
        lg_cosine_lr_options cosine = *LG_OPTIONS(lg_cosine_lr_options, .eta_min = a);
        lg_linear_lr_options linear = *LG_OPTIONS(lg_linear_lr_options, .start_factor = a, .end_factor = b);
        lg_constant_lr_options constant = *LG_OPTIONS(lg_constant_lr_options, .factor = a);
        lg_cosine_restarts_options restarts =
                *LG_OPTIONS(lg_cosine_restarts_options, .t_mult = milestones[0], .eta_min = a);
        lg_polynomial_lr_options polynomial = *LG_OPTIONS(lg_polynomial_lr_options, .power = a);
        m->odd = m->odd || !opt;
        if (drawn >= 247) {
                find_rate(m, opt, a, b);
                return;
        }
        switch (i) {
        case 8:
                take_schedule(m, lg_cosine_restarts_lr_with(opt, n, HAND(m, restarts)));
                return;
        case 9:
                take_schedule(m, lg_polynomial_lr_with(opt, n, HAND(m, polynomial)));
                return;
        case 10:
                take_schedule(m, lg_multiplicative_lr(opt, flag(m) ? on_step : NULL, m));
                return;
        case 11:
                make_cyclic(m, opt, a, b, n);
                return;
        case 0:
                take_schedule(m, lg_step_lr_with(opt, n, HAND(m, step)));
                return;
        case 1:
                take_schedule(m, lg_multi_step_lr_with(opt, few(m, milestones), HAND(m, steps)));
                return;
        case 2:
                take_schedule(m, lg_exponential_lr(opt, a));
                return;
        case 3:
                take_schedule(m, lg_cosine_lr_with(opt, n, HAND(m, cosine)));
                return;
        case 4:
                take_schedule(m, lg_linear_lr_with(opt, n, HAND(m, linear)));
                return;
        case 5:
                take_schedule(m, lg_constant_lr_with(opt, n, HAND(m, constant)));
                return;
        case 6:
                take_schedule(m, lg_lambda_lr(opt, flag(m) ? on_step : NULL, m));
                return;
        case 7:
                make_one_cycle(m, opt, a, n, b);
                return;
        default:
                make_plateau(m, opt, a, n, b, milestones[0]);
        }
}

void call_schedules(vm *m)
{
        lg_scheduler *all[4];
        const int64_t milestones[] = {size(m), size(m)};
        int count = byte(m) % 4;
        for (int i = 0; i < count; i++)
                all[i] = PICK(m, m->now->schedulers);
        all[count] = LG_END;
        m->odd = true;
        lg_scheduler *s = flag(m) ? lg_sequential_lr_list(LG_INTS_OF(count > 1 ? count - 1 : 0, milestones), all)
                                  : lg_chained_lr_list(all);
        for (int i = 0; s && i < count; i++)
                for (int k = 0; k < OBJECTS; k++)
                        if (m->now->schedulers[k] == all[i])
                                m->now->schedulers[k] = NULL;
        if (s && flag(m))
                lg_scheduler_free(all[0]); /* an error: it belongs to s */
        take_schedule(m, s);
}

void call_scheduler_step(vm *m)
{
        lg_scheduler *s = PICK(m, m->now->schedulers);
        m->odd = m->odd || !s;
        check_done(m, flag(m) ? lg_scheduler_step_metric(s, number(m)) : lg_scheduler_step(s));
}

void call_scheduler_free(vm *m)
{
        lg_scheduler **s = &PICK(m, m->now->schedulers), *gone = *s;
        *s = NULL;
        lg_scheduler_free(gone);
}

void call_ema(vm *m)
{
        lg_module *a = module(m);
        lg_ema *e = lg_ema_new(a, number(m)), **slot = &PICK(m, m->now->emas), *gone = *slot;
        check_done(m, e != NULL);
        *slot = e;
        lg_ema_free(gone);
}

void call_ema_step(vm *m)
{
        lg_ema *e = PICK(m, m->now->emas);
        m->odd = m->odd || !e;
        check_done(m, flag(m) ? lg_ema_update(e) : lg_ema_swap(e));
}

void call_dataset(vm *m)
{
        lg_tensor *x = tensor(m);
        lg_tensor *y = flag(m) ? x : tensor(m);
        lg_dataset_options o =
                *LG_OPTIONS(lg_dataset_options, .scale = flag(m) ? number(m) : 0, .shift = flag(m) ? number(m) : 0);
        lg_dataset *d = lg_dataset_tensors_with(m->now->ctx, x, y, HAND(m, o));
        check_done(m, d != NULL);
        FUZZ_CHECK(lg_dataset_size(d) >= 0, "%lld rows", (long long)lg_dataset_size(d));
        if (d)
                PUT(m, m->now->datasets, d);
        if (byte(m) > 0xF8)
                drop(lg_read_idx(m->now->ctx, flag(m) ? "/dev/null" : NULL));
        else if (byte(m) > 0xF8)
                drop(lg_dataset_fashion_mnist(m->now->ctx, flag(m) ? "train" : NULL, .folder = "/nowhere"));
}

void call_loader(vm *m)
{
        lg_dataset *d = PICK(m, m->now->datasets);
        int64_t batch = size(m);
        lg_loader_options o =
                *LG_OPTIONS(lg_loader_options, .shuffle = flag(m), .drop_last = flag(m),
                            .workers = byte(m) > 0xE0 ? byte(m) % 4 - 1 : 0, .device = device(m), .seed = byte(m));
        lg_loader *l = lg_loader_open_with(m->now->ctx, d, batch, HAND(m, o));
        check_done(m, l != NULL);
        FUZZ_CHECK(lg_loader_batches(l) >= -1, "%lld batches", (long long)lg_loader_batches(l));
        lg_loader **slot = &PICK(m, m->now->loaders), *gone = *slot;
        *slot = l;
        lg_loader_close(gone);
}

void call_loader_next(vm *m)
{
        lg_loader *l = PICK(m, m->now->loaders);
        lg_batch b = LG_FIRST_BATCH(NULL);
        if (byte(m) > 0xE0)
                lg_loader_restart(l);
        if (lg_loader_next(l, &b)) {
                FUZZ_CHECK(b.x && b.index >= 0 && (b.count < 0 || b.index < b.count), "batch %lld", (long long)b.index);
                give_read(m, b.x);
                give_read(m, b.y);
        }
}

/* An epoch, or the part of one that a break leaves, and one batch of a program with another header. */
void call_each_batch(vm *m)
{
        lg_loader *l = PICK(m, m->now->loaders);
        uint8_t most = byte(m) % 4;
        lg_each_batch(b, l)
        {
                FUZZ_CHECK(b.x && b.loader == l, "batch %lld", (long long)b.index);
                give_read(m, b.x);
                if (most-- == 0)
                        break;
        }
        const size_t known = (size_t)(byte(m) % 12) * sizeof(void *);
        lg_batch *cut = calloc(1, known + 1);
        FUZZ_CHECK(cut, "no memory");
        lg_loader_next_with(l, cut, known);
        free(cut);
}

void call_data_free(vm *m)
{
        if (flag(m)) {
                lg_dataset **d = &PICK(m, m->now->datasets), *gone = *d;
                *d = NULL;
                lg_dataset_free(gone);
        } else {
                lg_loader **l = &PICK(m, m->now->loaders), *gone = *l;
                *l = NULL;
                lg_loader_close(gone);
        }
}
