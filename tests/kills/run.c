/* run.c - a training that saves itself every few steps and goes on where its file stopped it: what kills.c kills.
 *
 * run MODEL FILE CALL trains a network of models/ on drawn images, with everything that has a state: a shuffled loader
 * with threads that augment, Adam, a schedule, an average of the weights and noise from the context's generator. The
 * process ends before the CALLth call on files of its saves, counted from 1; where that is a write, half of the bytes
 * are written. 0: none.
 *
 * It prints "begins" before its first step, "saved" and the file's hash after each save if CALL is 0, and at the end
 * "ends", the seconds between two saves, the calls on files of one save, and a hash of the bits of all that was
 * trained.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <grad.h>
#include "../../models/models.h"
#include "hash.h"
#include "io/files.h"

#define IMAGES 192
#define BATCH 16
#define EPOCHS 3
#define STEPS (EPOCHS * IMAGES / BATCH)
#define SAVE_EVERY 4

/* ---- calls on files that kill ---- */

static struct {
        bool on; /* only saves are counted */
        int64_t calls, kill_at;
} counted;

static bool is_last(void)
{
        return counted.on && ++counted.calls == counted.kill_at;
}

static void end_here(void)
{
        kill(getpid(), SIGKILL);
        pause();
}

#define COUNTED(name, type, parameters, arguments)                                                                     \
        static type counted_##name parameters                                                                          \
        {                                                                                                              \
                if (is_last())                                                                                         \
                        end_here();                                                                                    \
                return lg__system_files.name arguments;                                                                \
        }
COUNTED(open, int, (const char *path, int flags, mode_t mode), (path, flags, mode))
COUNTED(close, int, (int fd), (fd))
COUNTED(lstat, int, (const char *path, struct stat *facts), (path, facts))
COUNTED(access, int, (const char *path, int mode), (path, mode))
COUNTED(fchmod, int, (int fd, mode_t mode), (fd, mode))
COUNTED(flock, int, (int fd, int operation), (fd, operation))
COUNTED(fsync, int, (int fd), (fd))
COUNTED(rename, int, (const char *from, const char *to), (from, to))

static ssize_t counted_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
        if (is_last() && lg__system_files.pwrite(fd, data, bytes / 2, at) >= 0)
                end_here();
        return lg__system_files.pwrite(fd, data, bytes, at);
}

static lg__files counting_files(void)
{
        lg__files f = lg__system_files;
        f.open = counted_open;
        f.close = counted_close;
        f.lstat = counted_lstat;
        f.access = counted_access;
        f.fchmod = counted_fchmod;
        f.flock = counted_flock;
        f.fsync = counted_fsync;
        f.rename = counted_rename;
        f.pwrite = counted_pwrite;
        return f;
}

/* ---- the training ---- */

typedef struct run {
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_scheduler *rate;
        lg_ema *average;
        lg_loader *batches;
        lg_checkpoint *k;
        const char *path;
        int64_t epoch, step, saves;
        double last_loss, saving_since;
} run;

static double seconds(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Images whose mean says what they show, cropped and flipped by chance. */
static lg_dataset *drawn_images(lg_ctx *c)
{
        lg_tensor *y = lg_randint(c, 0, 10, LG_SHAPE(IMAGES), .device = lg_cpu());
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(IMAGES, 1, 28, 28), .device = lg_cpu());
        x = lg_add(x, lg_reshape(lg_cast(y, LG_F32), LG_SHAPE(IMAGES, 1, 1, 1)));
        lg_transform *crop = lg_transform_random_crop(c, 28, 28, .padding = 2),
                     *flip = lg_transform_random_horizontal_flip(c);
        return lg_dataset_transform(lg_dataset_tensors(c, x, y, .scale = 0.1), lg_transforms(c, crop, flip));
}

static void begin(run *r, const char *model)
{
        lg_ctx *c = r->c;
        const char *name = getenv("LG_TEST_DEVICE");
        lg_device d = lg_parse_device(c, name ? name : "cpu");
        bool goes_on = access(r->path, F_OK) == 0;
        lg_set_deterministic(c, true);
        lg_dataset *images = drawn_images(c);
        if (goes_on) /* nothing that is in the file is right by chance */
                lg_seed(c, (uint64_t)getpid());
        r->batches = lg_loader_open(c, images, BATCH, .shuffle = true, .workers = 2, .device = d);
        lg_set_default_device(c, d);
        r->net = lg_model(c, model);
        lg_module_to(r->net, d);
        r->opt = lg_adam(c, lg_parameters(r->net), 1e-3);
        r->rate = lg_one_cycle_lr(r->opt, 2e-3, STEPS);
        r->average = lg_ema_new(r->net, 0.9);
        r->k = lg_checkpoint_new(c);
        lg_checkpoint_add(r->k, "model", r->net);
        lg_checkpoint_add(r->k, "optimizer", r->opt);
        lg_checkpoint_add(r->k, "rate", r->rate);
        lg_checkpoint_add(r->k, "average", r->average);
        lg_checkpoint_add(r->k, "batches", r->batches);
        lg_checkpoint_add_i64(r->k, "epoch", &r->epoch);
        lg_checkpoint_add_i64(r->k, "step", &r->step);
        lg_checkpoint_add_number(r->k, "loss", &r->last_loss);
        if (goes_on)
                lg_checkpoint_load(r->k, r->path);
}

static void save(run *r)
{
        counted.on = true;
        lg_checkpoint_save(r->k, r->path);
        counted.on = false;
        r->saves++;
        if (!counted.kill_at)
                printf("saved %016llx\n", (unsigned long long)hash_file(r->path));
}

static void step(run *r, const lg_batch *b)
{
        lg_tensor *noise = lg_normal(r->c, 0, 0.05, lg_shape_of(b->x));
        lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, lg_add(b->x, noise)), b->y);
        lg_zero_grad(r->opt);
        lg_backward(loss);
        lg_step(r->opt);
        lg_ema_update(r->average);
        lg_scheduler_step(r->rate);
        r->last_loss = lg_item(loss);
        if (++r->step % SAVE_EVERY == 0)
                save(r);
}

static void train(run *r)
{
        for (; r->epoch < EPOCHS && !lg_error(r->c); r->epoch++)
                lg_each_batch(b, r->batches) step(r, &b);
}

static void hash_parameters(run *r, uint64_t *hash)
{
        static float values[1 << 21];
        lg_list p = lg_parameters(r->net);
        for (int64_t i = 0; i < p.count; i++) {
                size_t bytes = (size_t)lg_numel(p.items[i]) * sizeof *values;
                if (bytes > sizeof values)
                        lg_set_error(r->c, LG_ERR_ARGUMENT, "parameter %lld is too large for this test", (long long)i);
                else if (lg_read(p.items[i], values, LG_F32, bytes))
                        hash_bytes(hash, values, bytes);
        }
}

static uint64_t hash_of(run *r)
{
        uint64_t hash = HASH_BEGIN;
        lg_random_state random = lg_random_state_of(r->c);
        double rate = lg_lr(r->opt);
        hash_parameters(r, &hash);
        lg_ema_swap(r->average);
        hash_parameters(r, &hash);
        hash_bytes(&hash, &random, sizeof random);
        hash_bytes(&hash, &rate, sizeof rate);
        hash_bytes(&hash, &r->last_loss, sizeof r->last_loss);
        return hash;
}

int main(int argc, char **argv)
{
        if (argc < 4)
                return 2;
        lg__files files = counting_files();
        run r = {.c = lg_open(.seed = 5), .path = argv[2]};
        if (!r.c)
                return 1;
        counted.kill_at = atoll(argv[3]);
        begin(&r, argv[1]);
        r.c->files = &files;
        puts("begins");
        fflush(stdout);
        double start = seconds();
        train(&r);
        double spent = seconds() - start;
        uint64_t hash = hash_of(&r);
        if (lg_error(r.c))
                fprintf(stderr, "run: %s\n", lg_error(r.c));
        else
                printf("ends %.9f %lld %016llx\n", r.saves ? spent / (double)r.saves : 0,
                       (long long)(r.saves ? counted.calls / r.saves : 0), (unsigned long long)hash);
        int code = lg_error(r.c) != NULL;
        lg_close(r.c);
        return code;
}
