/* shortage.c - a training whose memory runs short: every allocation of the process fails, every thread is refused, and
 * the address space ends early. Nothing ends the process, nothing is leaked, and no bit is lost.
 *
 * Each try opens a context, builds a model with its optimiser and loader, and takes a step. After a failure it goes on
 * where it stopped, with all the memory there is, and ends with the bits of a run that never failed. Tries run in a
 * child, so that one that crashes, exits or hangs is seen. shortage [--all]: every n-th call in place of some.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../models/models.h"
#include "../kills/hash.h"
#include "../status.h"
#include "../test.h"
#include "refuse.h"

#define PATIENCE 300 /* seconds for one try */

/* How a child ends; anything else is an end that nobody wanted. */
enum { SUCCEEDED = 40, FAILED, WRONG };

typedef struct work {
        const char *model;
        int64_t batch;
        long stride; /* of the calls that fail, where not all do */
        long more;   /* address space, in KiB: so much more for each try; 0: not tried */
} work;

static const work works[] = {
        {"mlp", 8, 1, 512}, {"lenet", 8, 1, 0}, {"cnn", 2, 5, 0}, {"resnet18", 1, 61, 5120}, {"sequence", 2, 7, 0}};
#define WORKS ((int)(sizeof works / sizeof *works))

static bool all;

/* ---- a run ---- */

typedef struct run {
        const work *w;
        lg_ctx *c;
        lg_module *net;
        lg_optimizer *opt;
        lg_batch b;
        lg_random_state random;
        bool built;
} run;

/* Classifies an image as a sequence of its rows. */
static lg_tensor *over_rows(lg_module *m, lg_list in, void *user)
{
        (void)user;
        lg_tensor *x = lg_squeeze(in.items[0], LG_DIMS(1));
        for (int i = 0; i < 2 && x; i++)
                x = lg_forward(lg_child(m, i), x);
        return lg_forward(lg_child(m, 2), lg_mean(x, .dims = LG_DIMS(1)));
}

static lg_module *sequence(lg_ctx *c)
{
        lg_module *m = lg_nn_module(c, "Sequence", .forward = over_rows);
        lg_module_add(m, "lstm", lg_nn_lstm(c, 28, 16, .batch_first = true));
        lg_module_add(m, "encoder", lg_nn_transformer_encoder_layer(c, 16, 2, .feedforward = 32, .batch_first = true));
        lg_module_add(m, "linear", lg_nn_linear(c, 16, 10));
        return m;
}

static bool build(run *r)
{
        lg_ctx *c = r->c;
        const int64_t n = r->w->batch;
        lg_seed(c, 7);
        r->net = strcmp(r->w->model, "sequence") == 0 ? sequence(c) : lg_model(c, r->w->model);
        r->opt = lg_adam(c, lg_parameters(r->net), 1e-3);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(n, 1, 28, 28)), *y = lg_randint(c, 0, 10, LG_SHAPE(n));
        r->random = lg_random_state_of(c);
        return r->built = lg_loader_next(lg_loader_open(c, lg_dataset_tensors(c, x, y), n, .workers = 2), &r->b);
}

static bool step(run *r)
{
        lg_scope s = lg_scope_begin(r->c);
        lg_set_random_state(r->c, r->random);
        lg_tensor *noisy = lg_add(r->b.x, lg_normal(r->c, 0, 0.1, lg_shape_of(r->b.x)));
        lg_tensor *loss = lg_cross_entropy(lg_forward(r->net, noisy), r->b.y);
        lg_zero_grad(r->opt);
        lg_backward(loss);
        const bool ok = lg_step(r->opt);
        lg_scope_end(r->c, s);
        return ok && !lg_error(r->c);
}

/* Goes on where the run has come to. */
static bool train(run *r)
{
        if (!r->c)
                r->c = lg_open(.threads = 2);
        return r->c && (r->built || build(r)) && step(r);
}

/* ---- in a child ---- */

static struct {
        long n, of; /* the call that fails, and how many there are; of the address space, the try */
        bool only;
        int tries, failures;
} * seen; /* by the parent, too */

static void check(bool ok, const char *what)
{
        if (ok)
                return;
        fprintf(stderr, "%s\n", what);
        _exit(WRONG);
}

/* Of all parameters, in memory that is always there. */
static uint64_t hash_of(run *r)
{
        static float values[512 * 512 * 9];
        uint64_t hash = HASH_BEGIN;
        lg_list p = lg_parameters(r->net);
        for (int64_t i = 0; i < p.count; i++) {
                const size_t bytes = (size_t)lg_numel(p.items[i]) * sizeof *values;
                check(bytes <= sizeof values && lg_read(p.items[i], values, LG_F32, bytes), "no parameter");
                hash_bytes(&hash, values, bytes);
        }
        return hash;
}

/* The run's outcome without failures. */
static uint64_t undisturbed(const work *w)
{
        run r = {.w = w};
        check(train(&r), "a run without failures fails");
        const uint64_t hash = hash_of(&r);
        lg_close(r.c);
        return hash;
}

/* Whether the n-th call was reached. */
static bool refuse_one(const work *w, refusal kind, long n, bool only, uint64_t expected)
{
        const long live = refused.live;
        run r = {.w = w};
        alarm(PATIENCE);
        refuse_from(kind, n, only);
        const bool ok = train(&r);
        seen->of = refused.calls[kind] > seen->of ? refused.calls[kind] : seen->of;
        const bool reached = refused.refused > 0;
        refuse_from(kind, 0, false);
        seen->tries++;
        seen->failures += !ok;
        check(ok || reached, "a failure without a cause");
        check(ok || *lg_error(r.c), "a failure without a message");
        check(ok || !r.c || lg_error_code_of(r.c) == LG_ERR_MEMORY, "the error is not LG_ERR_MEMORY");
        lg_clear_error(r.c);
        check(ok || train(&r), "the replay fails");
        check(hash_of(&r) == expected, "other bits than those of a run without failures");
        lg_close(r.c);
        check(refused.live == live, "something is leaked");
        return reached;
}

static void refuse_each(const work *w, refusal kind)
{
        const uint64_t expected = undisturbed(w);
        const long stride = all || kind == THREADS ? 1 : w->stride;
        do {
                for (seen->n = 1; refuse_one(w, kind, seen->n, seen->only, expected); seen->n += stride)
                        ;
                seen->only = !seen->only;
        } while (seen->only);
        _exit(SUCCEEDED);
}

/* A run in so much more address space than the process has now. */
static void run_within(const work *w, long kib)
{
        const rlim_t bytes = (rlim_t)(status_of("VmSize:") + kib) * 1024;
        const long live = refused.live;
        run r = {.w = w};
        alarm(PATIENCE);
        check(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0, "no limit");
        const bool ok = train(&r);
        check(ok || (*lg_error(r.c) && (!r.c || lg_error_code_of(r.c) == LG_ERR_MEMORY)), "not an error");
        lg_close(r.c);
        check(refused.live == live, "something is leaked");
        _exit(ok ? SUCCEEDED : FAILED);
}

/* ---- the tests ---- */

/* What a child comes to; it must be one of the two. */
static int outcome(pid_t child, const work *w)
{
        int status;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        const int end = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        if (end != SUCCEEDED && end != FAILED)
                fail_msg("%s, try %ld%s: the process ended with status %#x", w->model, seen->n,
                         seen->only ? " only" : "", (unsigned)status);
        return end;
}

static void refuse_kind(refusal kind, const char *name)
{
        for (const work *w = works; w < works + WORKS; w++) {
                memset(seen, 0, sizeof *seen);
                const pid_t child = fork();
                if (child == 0)
                        refuse_each(w, kind);
                assert_int_equal(outcome(child, w), SUCCEEDED);
                print_message("%s: %d tries over %ld %s, %d failures\n", w->model, seen->tries, seen->of, name,
                              seen->failures);
                assert_true(seen->tries > 2 && seen->failures > 0);
        }
}

static void allocations_fail(void **state)
{
        (void)state;
        refuse_kind(MEMORY, "allocations");
}

static void threads_are_refused(void **state)
{
        (void)state;
        refuse_kind(THREADS, "threads");
}

static void the_address_space_ends(void **state)
{
        (void)state;
        for (const work *w = works; w < works + WORKS; w++) {
                int end = w->more ? FAILED : SUCCEEDED;
                for (seen->n = 0; end == FAILED; seen->n++) {
                        const pid_t child = fork();
                        if (child == 0)
                                run_within(w, seen->n * w->more);
                        end = outcome(child, w);
                }
                if (w->more)
                        print_message("%s: %ld times too little, then %ld KiB\n", w->model, seen->n - 1,
                                      (seen->n - 1) * w->more);
                assert_true(!w->more || seen->n > 10);
        }
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(allocations_fail), cmocka_unit_test(threads_are_refused),
                                           cmocka_unit_test(the_address_space_ends)};
        all = argc > 1 && strcmp(argv[1], "--all") == 0;
        seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return seen == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
