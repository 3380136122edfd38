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
        switch (byte(m) % 3) {
        case 0:
                take(m, lg_rmsprop(m->now->ctx, params, lr, .alpha = decay, .momentum = momentum, .centered = other,
                                   .maximize = maximize, .eps = decay));
                return;
        case 1:
                take(m, lg_adagrad(m->now->ctx, params, lr, .lr_decay = momentum, .weight_decay = decay,
                                   .initial_accumulator_value = momentum, .maximize = maximize));
                return;
        default:
                take(m, lg_sgd(m->now->ctx, params, lr, .momentum = momentum, .dampening = b & 32 ? number(m) : 0,
                               .weight_decay = decay, .nesterov = other, .maximize = maximize));
        }
}

void call_adam(vm *m)
{
        lg_tensor *room[4];
        lg_list params = parameters(m, room);
        uint8_t b = byte(m);
        lg_adam_options o = {.lr = b & 1 ? number(m) : 0.1,
                             .beta1 = b & 2 ? number(m) : 0,
                             .beta2 = b & 4 ? number(m) : 0,
                             .eps = b & 8 ? number(m) : 0,
                             .weight_decay = b & 16 ? number(m) : 0,
                             .decoupled = b & 32,
                             .maximize = b & 64,
                             .amsgrad = b & 128};
        take(m, flag(m) ? lg_adam_(m->now->ctx, params, o) : lg_adamw_(m->now->ctx, params, o));
}

void call_add_group(vm *m)
{
        lg_tensor *room[4];
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        lg_list params = parameters(m, room);
        m->odd = m->odd || !opt;
        check_done(m, lg_add_group(opt, params, .lr = number(m), .weight_decay = number(m)));
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
        check_done(m, flag(m) ? lg_set_lr(opt, number(m)) : lg_set_group_lr(opt, group, number(m)));
        lg_get_group_lr(opt, group);
        lg_get_lr(opt);
        FUZZ_CHECK(lg_group_count(opt) >= 0, "fewer than no groups");
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
        lg_clip_grad_norm(params, value, .p = flag(m) ? number(m) : 0, .norm = flag(m) ? &norm : NULL);
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

void call_schedule(vm *m)
{
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        uint8_t i = byte(m) % 9;
        int64_t n = size(m);
        const int64_t milestones[] = {size(m), size(m)};
        double a = flag(m) ? number(m) : 0, b = flag(m) ? number(m) : 0;
        m->odd = m->odd || !opt;
        switch (i) {
        case 0:
                take_schedule(m, lg_step_lr(opt, n, .gamma = a));
                return;
        case 1:
                take_schedule(m, lg_multi_step_lr(opt, milestones, byte(m) % 4 - 1 > 2 ? 2 : byte(m) % 3, .gamma = a));
                return;
        case 2:
                take_schedule(m, lg_exponential_lr(opt, a));
                return;
        case 3:
                take_schedule(m, lg_cosine_lr(opt, n, .eta_min = a));
                return;
        case 4:
                take_schedule(m, lg_linear_lr(opt, n, .start_factor = a, .end_factor = b));
                return;
        case 5:
                take_schedule(m, lg_constant_lr(opt, n, .factor = a));
                return;
        case 6:
                take_schedule(m, lg_lambda_lr(opt, flag(m) ? on_step : NULL, m));
                return;
        case 7:
                take_schedule(m,
                              lg_one_cycle_lr(opt, a, n, .pct_start = b, .div_factor = number(m),
                                              .final_div_factor = number(m), .base_momentum = number(m),
                                              .no_cycle_momentum = flag(m), .linear = flag(m), .three_phase = flag(m)));
                return;
        default:
                take_schedule(m, lg_reduce_on_plateau(opt, a, .patience = n, .threshold = b, .cooldown = milestones[0],
                                                      .min_lr = number(m), .max_mode = flag(m),
                                                      .absolute_threshold = flag(m), .no_patience = flag(m)));
        }
}

void call_schedules(vm *m)
{
        lg_scheduler *all[3];
        const int64_t milestones[] = {size(m), size(m)};
        int count = byte(m) % 4;
        for (int i = 0; i < count; i++)
                all[i] = PICK(m, m->now->schedulers);
        m->odd = true;
        lg_scheduler *s = flag(m) ? lg_sequential_lr(all, count, milestones) : lg_chained_lr(all, count);
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
        lg_dataset *d = lg_dataset_tensors(m->now->ctx, x, flag(m) ? x : tensor(m), .scale = flag(m) ? number(m) : 0,
                                           .shift = flag(m) ? number(m) : 0);
        check_done(m, d != NULL);
        FUZZ_CHECK(lg_dataset_size(d) >= 0, "%lld rows", (long long)lg_dataset_size(d));
        if (d)
                PUT(m, m->now->datasets, d);
        if (byte(m) > 0xF8)
                lg_read_idx(m->now->ctx, flag(m) ? "/dev/null" : NULL);
        else if (byte(m) > 0xF8)
                lg_fashion_mnist(m->now->ctx, flag(m) ? "train" : NULL, .folder = "/nowhere");
}

void call_loader(vm *m)
{
        lg_dataset *d = PICK(m, m->now->datasets);
        lg_loader *l =
                lg_loader_open(m->now->ctx, d, size(m), .shuffle = flag(m), .drop_last = flag(m),
                               .workers = byte(m) > 0xE0 ? byte(m) % 4 - 1 : 0, .device = device(m), .seed = byte(m));
        check_done(m, l != NULL);
        FUZZ_CHECK(lg_loader_batches(l) >= 0, "%lld batches", (long long)lg_loader_batches(l));
        lg_loader **slot = &PICK(m, m->now->loaders), *gone = *slot;
        *slot = l;
        lg_loader_free(gone);
}

void call_loader_next(vm *m)
{
        lg_loader *l = PICK(m, m->now->loaders);
        lg_batch b = {NULL, NULL, 0, 0};
        if (byte(m) > 0xE0)
                lg_loader_restart(l);
        if (lg_loader_next(l, &b)) {
                FUZZ_CHECK(b.x && b.y && b.index >= 0 && b.index < b.count, "batch %lld", (long long)b.index);
                give_read(m, b.x);
                give_read(m, b.y);
        }
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
                lg_loader_free(gone);
        }
}
