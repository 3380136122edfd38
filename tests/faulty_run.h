/* faulty_run.h - a run with everything that has a state, what is saved and loaded of it, and what must hold after a
 * failure: an error, nothing leaked, no file damaged, every object as it was.
 */
#ifndef LG_TEST_FAULTY_RUN_H
#define LG_TEST_FAULTY_RUN_H

#include "files.h"

/* ---- a run ---- */

typedef struct run {
        failing f;
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

static lg__files quick_files; /* those that fail, but nothing waits for the disk */

static inline int no_fsync(int fd)
{
        (void)fd;
        return fails("fsync") ? -1 : 0;
}

static inline lg_module *network(lg_ctx *c, lg_dtype dtype)
{
        return lg_nn_sequential(c, lg_nn_conv2d(c, 1, 2, 3, .no_bias = true, .dtype = dtype),
                                lg_nn_batch_norm2d(c, 2, .dtype = dtype), lg_nn_relu(c), lg_nn_flatten(c),
                                lg_nn_linear(c, 8, 3, .no_bias = true, .dtype = dtype));
}

static inline void steps(run *r, int n)
{
        lg_batch b;
        for (int i = 0; i < n; i++) {
                if (!lg_loader_next(r->batches, &b)) { /* the end of an epoch */
                        r->epoch++;
                        i--;
                        assert_ok(r->c);
                        continue;
                }
                lg_tensor *noisy = lg_add(b.x, lg_normal(r->c, 0, 0.1, lg_shape_of(b.x)));
                lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, noisy), b.y);
                lg_zero_grad(r->opt);
                lg_backward(loss);
                lg_step(r->opt);
                lg_ema_update(r->average);
                lg_scheduler_step(r->rate);
                r->best += lg_item(loss);
                assert_ok(r->c);
        }
}

/* The same images each time, other weights and another order for each seed. */
static inline void begin(run *r, uint64_t seed, int trained)
{
        memset(r, 0, sizeof *r);
        memset(&faulty, 0, sizeof faulty);
        lg_ctx *c = r->c = lg_open(.threads = 1, .seed = 3, FAILING(&r->f));
        assert_non_null(c);
        c->files = &quick_files;
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(10, 1, 4, 4), .device = lg_cpu());
        lg_tensor *y = lg_from(c, ((int64_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2, 0}), LG_SHAPE(10), .device = lg_cpu());
        lg_seed(c, seed);
        lg_device device = test_device(c);
        r->net = network(c, LG_F32);
        r->opt = lg_adam(c, lg_parameters(r->net), 0.01);
        r->rate = lg_one_cycle_lr(r->opt, 0.1, 100);
        r->average = lg_ema_new(r->net, 0.9);
        r->batches = lg_loader_open(c, lg_dataset_tensors(c, x, y), 4, .shuffle = true, .workers = 1, .device = device);
        r->k = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(r->k, "model", r->net) && lg_checkpoint_add(r->k, "optimizer", r->opt) &&
                    lg_checkpoint_add(r->k, "rate", r->rate) && lg_checkpoint_add(r->k, "average", r->average) &&
                    lg_checkpoint_add(r->k, "batches", r->batches) && lg_checkpoint_add_i64(r->k, "epoch", &r->epoch) &&
                    lg_checkpoint_add_number(r->k, "best", &r->best));
        steps(r, trained);
}

static inline void end(run *r)
{
        lg_close(r->c);
        assert_int_equal(r->f.bytes, 0);
        assert_int_equal(r->f.allocs, r->f.frees);
}

/* All that a run holds, as the bytes of its file. */
static inline contents state_of(run *r)
{
        arm(&r->f, 0, false);
        faulty.fail_at = 0;
        if (!lg_checkpoint_save(r->k, at("probe")))
                fail_msg("%s", lg_error(r->c));
        contents all = get_file(at("probe"));
        unlink(at("probe"));
        return all;
}

static inline void assert_state(run *r, contents expected, const char *what, int64_t n)
{
        contents now = state_of(r);
        if (now.bytes != expected.bytes || memcmp(now.data, expected.data, now.bytes))
                fail_msg("%s, fault %lld: the run holds something else than it should", what, (long long)n);
        free(now.data);
}

/* ---- what is tried ---- */

typedef enum act { SAVE_RUN, LOAD_RUN, SAVE_MODULE, LOAD_MODULE, LOAD_CAST, READ, ACTS } act;
static const char *const act_names[] = {"lg_checkpoint_save",       "lg_checkpoint_load", "lg_save", "lg_load",
                                        "lg_load of another dtype", "lg_weights_read"};

static inline bool is_save(act a)
{
        return a == SAVE_RUN || a == SAVE_MODULE;
}

static inline bool read_one(lg_ctx *c, const char *file)
{
        lg_scope scope = lg_scope_begin(c);
        lg_weights *w = lg_weights_open(c, file);
        bool ok = lg_weights_read(w, "4.weight") != NULL;
        lg_weights_close(w);
        lg_scope_end(c, scope);
        return ok;
}

static inline bool perform(run *r, act a)
{
        const char *file = at("w");
        return a == SAVE_RUN      ? lg_checkpoint_save(r->k, file)
               : a == LOAD_RUN    ? lg_checkpoint_load(r->k, file)
               : a == SAVE_MODULE ? lg_save(r->net, file)
               : a == LOAD_MODULE ? lg_load(r->net, file)
               : a == LOAD_CAST   ? lg_load(r->net, file, .cast = true)
                                  : read_one(r->c, file);
}

/* Of an action on a run that has made `trained` steps: the file before and after it, the run's state before and after
 * it, and each of these two steps later. */
typedef struct expected {
        act a;
        int trained;
        contents file, file_after, state, state_after, later, later_after;
} expected;

/* The file that an action finds. */
static inline contents file_for(act a)
{
        run r;
        contents text = {12, strdup("the old file")};
        if (is_save(a))
                return text;
        free(text.data);
        begin(&r, 1, 5);
        assert_true(a == LOAD_RUN    ? lg_checkpoint_save(r.k, at("w"))
                    : a == LOAD_CAST ? lg_save(network(r.c, LG_F64), at("w"))
                                     : lg_save(r.net, at("w")));
        end(&r);
        return get_file(at("w"));
}

static inline expected undisturbed(act a, int trained)
{
        expected e = {.a = a, .trained = trained, .file = file_for(a)};
        run r;
        begin(&r, 2, trained);
        e.state = state_of(&r);
        steps(&r, 2);
        e.later = state_of(&r);
        end(&r);
        begin(&r, 2, trained);
        put_file(at("w"), e.file.data, e.file.bytes);
        assert_true(perform(&r, a));
        e.file_after = get_file(at("w"));
        e.state_after = state_of(&r);
        steps(&r, 2);
        e.later_after = state_of(&r);
        end(&r);
        return e;
}

static inline void forget(expected *e)
{
        contents all[] = {e->file, e->file_after, e->state, e->state_after, e->later, e->later_after};
        for (int i = 0; i < 6; i++)
                free(all[i].data);
}

static inline int64_t used(const run *r)
{
        lg_device d = lg_default_device(r->c);
        int64_t n = lg_memory_stats(r->c, lg_cpu()).used;
        return d.type == LG_DEVICE_CPU ? n : n + lg_memory_stats(r->c, d).used;
}

/* After a failure: nothing has changed, and either the run goes on, or the action is repeated. */
static inline void check_failed(run *r, const expected *e, int64_t n)
{
        const char *name = act_names[e->a];
        if (!has(at("w"), e->file))
                fail_msg("%s, fault %lld: the file has changed", name, (long long)n);
        assert_int_equal(count_files(false), 1);
        assert_state(r, e->state, name, n);
        if (n % 2) {
                steps(r, 2);
                assert_state(r, e->later, name, n);
                return;
        }
        assert_true(perform(r, e->a));
        assert_true(has(at("w"), e->file_after));
        assert_state(r, e->state_after, name, n);
        steps(r, 2);
        assert_state(r, e->later_after, name, n);
}

static inline int prepare(void **state)
{
        quick_files = faulty_files;
        quick_files.fsync = no_fsync;
        return make_folder(state);
}

static inline int clean(void **state)
{
        (void)state;
        count_files(true);
        return 0;
}

#endif
