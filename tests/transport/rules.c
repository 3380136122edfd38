/* rules.c - what lg_data_parallel() promises beside its sums: rules KIND, run by mpirun with LIBGRAD_MPI, or alone.
 * KIND: right; foreign, run by the launcher of the other MPI; or what goes wrong on the last rank or on all: early
 * (of 3 ranks), late (rank 0 leaves after the time limit), fork, cleared, exit, failed, open, shape, more, loader,
 * forward, create_graph, freed, within (a backward it is freed). On the device that LG_TEST_DEVICE names. Prints "held"
 * if all did, else what did not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rank.h"

static lg_tensor *forward(lg_module *m, lg_list inputs, void *user)
{
        (void)user;
        lg_tensor *y = lg_mul(inputs.items[0], lg_parameter(m, "all"));
        if (rank == 0)
                y = lg_mul(y, lg_parameter(m, "first"));
        return y;
}

/* Parameters of one element with the value 2: used by all ranks, by rank 0, by none. */
static lg_module *new_net(void)
{
        lg_module *m = lg_nn_module(c, "Branches", .forward = forward);
        static const char *const names[] = {"all", "first", "none"};
        for (int i = 0; i < 3; i++)
                CHECK(lg_module_add_parameter(m, names[i], lg_full(c, LG_SHAPE(1), 2 + rank, .requires_grad = true)));
        CHECK(lg_module_add_buffer(m, "buffer", lg_full(c, LG_SHAPE(2), rank)));
        return m;
}

static double gradient(lg_module *m, const char *name)
{
        const lg_tensor *grad = lg_grad_of(lg_parameter(m, name));
        return grad ? lg_item(grad) : -1;
}

static bool is_near(double a, double b)
{
        return fabs(a - b) <= 1e-6 * (fabs(b) + 1);
}

static bool run_backward(lg_module *m, double x)
{
        return lg_backward(lg_forward(m, lg_full(c, LG_SHAPE(1), x)));
}

/* Rank 0 multiplies its 1 by both parameters, rank r its r + 1 by one. */
static void check_unused(void)
{
        lg_module *m = new_net();
        const double others = size * (size + 1) / 2.0 - 1;
        CHECK(lg_data_parallel(m, g));
        CHECK(lg_item(lg_parameter(m, "all")) == 2 && lg_item(lg_amax(lg_buffer(m, "buffer"))) == 0);
        for (int i = 1; i <= 3; i++) {
                lg_fill_(lg_buffer(m, "buffer"), rank + i);
                CHECK(run_backward(m, rank + 1));
                CHECK(is_near(gradient(m, "all"), i * (2 + others) / size));
                CHECK(is_near(gradient(m, "first"), i * 2.0 / size) && gradient(m, "none") == -1);
                CHECK(size == 1 || lg_item(lg_amax(lg_buffer(m, "buffer"))) == i);
        }
        lg_module_free(m);
}

/* Backwards of lg_no_sync() stay apart until one is not. */
static void check_accumulation(void)
{
        lg_module *m = new_net();
        CHECK(lg_data_parallel(m, g) && lg_sync_mode(m));
        const double mine = rank ? rank + 1 : 2, others = size * (size + 1) / 2.0 - 1;
        lg_no_sync(m)
        {
                CHECK(!lg_sync_mode(m) && run_backward(m, rank + 1));
                CHECK(is_near(gradient(m, "all"), mine) && gradient(m, "first") == (rank ? -1 : 2));
        }
        lg_tensor *y = lg_forward(m, lg_ones(c, LG_SHAPE(1)));
        CHECK(is_near(lg_item(lg_grad(LG_LIST(y), LG_LIST(lg_parameter(m, "all")))), rank ? 1 : 2));
        CHECK(run_backward(m, rank + 1) && is_near(gradient(m, "all"), 2 * (2 + others) / size));
        lg_module_free(m);
}

/* The last rank has no samples, and so no number. */
static void check_weight(void)
{
        lg_module *m = new_net();
        CHECK(lg_data_parallel(m, g));
        const bool empty = size > 1 && rank == size - 1;
        const double weights = size > 1 ? size * (size - 1) / 2.0 : 1;
        CHECK(lg_set_data_parallel_weight(m, empty ? 0 : rank + 1));
        CHECK(run_backward(m, empty ? NAN : 1));
        CHECK(is_near(gradient(m, "all"), (weights + 1) / weights));
        CHECK(!lg_set_data_parallel_weight(m, -1) && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        lg_module_free(m);
}

/* Equal weights whose sum, or which, f32 does not hold; the last rank has the weight 0. */
static void check_extreme_weights(void)
{
        lg_module *m = new_net();
        const double weights[] = {1e38, 2e38, 1e39, 1e308, 1e-45, 1e-46, 5e-324};
        const int others = size > 1 ? size - 1 : 1;
        CHECK(lg_data_parallel(m, g));
        for (int i = 0; i < 7; i++) {
                const bool empty = rank == others;
                lg_clear_grad(lg_parameter(m, "all"));
                CHECK(lg_set_data_parallel_weight(m, empty ? 0 : weights[i]));
                CHECK(run_backward(m, empty ? NAN : 1));
                CHECK(is_near(gradient(m, "all"), (others + 1.0) / others));
        }
        CHECK(lg_set_data_parallel_weight(m, rank ? 5e-324 : 1e308) && lg_clear_grad(lg_parameter(m, "all")));
        CHECK(run_backward(m, 1) && is_near(gradient(m, "all"), 2));
        lg_module_free(m);
}

/* What changes between two backwards changes the plan, on all ranks alike. */
static void check_changes(void)
{
        lg_module *m = new_net();
        CHECK(lg_data_parallel(m, g, .keep_buffers = true));
        CHECK(run_backward(m, 1) && lg_item(lg_amax(lg_buffer(m, "buffer"))) == 0);
        lg_fill_(lg_buffer(m, "buffer"), rank);
        CHECK(lg_set_requires_grad(lg_parameter(m, "first"), false));
        CHECK(lg_clear_grad(lg_parameter(m, "all")) && run_backward(m, 1));
        CHECK(is_near(gradient(m, "all"), (size + 1.0) / size) && gradient(m, "first") == -1);
        CHECK(lg_item(lg_amax(lg_buffer(m, "buffer"))) == rank);
        CHECK(lg_module_cast(m, LG_F64) && lg_clear_grad(lg_parameter(m, "all")) && run_backward(m, 1));
        CHECK(is_near(gradient(m, "all"), (size + 1.0) / size));
        CHECK(!lg_data_parallel(m, g) && lg_error_code_of(c) == LG_ERR_STATE);
        lg_clear_error(c);
        lg_module *other = new_net(); /* no backward reaches it: it waits for nobody */
        CHECK(lg_data_parallel(other, g) &&
              (rank == 0 || lg_backward(lg_sum(lg_ones(c, LG_SHAPE(2), .requires_grad = true)))));
        lg_module_free(other);
        lg_module_free(m);
        CHECK(!lg_set_sync_mode(NULL, true) && !lg_data_parallel(NULL, g) && !lg_error(c));
}

static void check_random(void)
{
        lg_seed(c, 7);
        lg_tensor *x = lg_uniform(c, 0, 1, LG_SHAPE(8)), *ones = lg_ones(c, LG_SHAPE(4096)),
                  *y = lg_dropout(ones, 0.5, .training = true);
        lg_tensor *order = lg_permutation(c, 100), *same = lg_broadcast(order, g, 0);
        CHECK(lg_item(lg_sum(lg_cast(lg_ne(order, same), LG_F32))) == 0);
        lg_tensor *far = lg_add(lg_sum(lg_abs(lg_sub(x, lg_broadcast(x, g, 0)))),
                                lg_sum(lg_abs(lg_sub(y, lg_broadcast(y, g, 0)))));
        CHECK((lg_item(far) > 0) == (rank > 0));
}

/* Which of n samples a batch has: 1 for each, summed over the ranks. */
static lg_tensor *members(const lg_batch *b, int64_t n, bool all)
{
        lg_tensor *sum = lg_sum(lg_one_hot(b->x, n), .dims = LG_DIMS(0));
        return all ? lg_all_reduce(sum, g) : sum;
}

static bool are_equal(lg_tensor *a, lg_tensor *b)
{
        return lg_item(lg_sum(lg_cast(lg_ne(a, b), LG_F32))) == 0;
}

static lg_dataset *numbers(int64_t n)
{
        return lg_dataset_list(c, LG_LIST(lg_arange(c, 0, (double)n, 1, .dtype = LG_I64, .device = lg_cpu())));
}

/* The ranks' batches together are those of one process; what is less than a sample for each goes with the last. */
static void check_share(int64_t n, bool shuffle, bool drop_last, int workers)
{
        enum { BATCH = 3 };
        lg_dataset *data = numbers(n);
        lg_loader *own = lg_loader_open(c, data, BATCH, .shuffle = shuffle, .drop_last = drop_last, .workers = workers,
                                        .seed = (uint64_t)rank + 5, .group = g);
        lg_loader *whole = lg_loader_open(c, data, BATCH * size, .shuffle = shuffle, .drop_last = drop_last, .seed = 5);
        const int64_t left = n % (BATCH * size), batches = n / (BATCH * size);
        const bool merged = left && left < size && batches && !drop_last;
        CHECK(lg_loader_batches(own) == batches + (left && !merged && !drop_last));
        for (int epoch = 0; epoch < 2; epoch++) {
                int64_t count = 0;
                lg_batch a, b;
                while (lg_loader_next(own, &a)) {
                        CHECK(lg_loader_next(whole, &b));
                        const bool last = a.index == lg_loader_batches(own) - 1;
                        const int64_t mine = lg_size_of(a.x, 0);
                        CHECK(mine == BATCH || (last && mine <= BATCH + merged && mine >= 1));
                        if (!(last && merged))
                                CHECK(are_equal(members(&a, n, true), members(&b, n, false)));
                        count += mine;
                }
                lg_loader_restart(whole);
                lg_tensor *all = lg_all_reduce(lg_full(c, LG_SHAPE_0D, (double)count, .dtype = LG_I64), g);
                CHECK(lg_item(all) == (double)(drop_last ? n - left : n));
        }
        lg_loader_close(own);
        lg_loader_close(whole);
}

static void check_loader(void)
{
        for (int64_t n = 3 * size; n < 10 * size; n++)
                check_share(n, n % 2, n % 3 == 0, n % 5 == 0 ? 2 : 0);
        lg_loader *l = lg_loader_open(c, numbers(1), 1, .group = g);
        CHECK(size == 1 ? l != NULL : !l && lg_error_code_of(c) == LG_ERR_ARGUMENT);
        lg_clear_error(c);
        lg_loader_close(l);
}

/* A checkpoint of rank 0 in the middle of an epoch, read by one process. */
static void check_resume(void)
{
        const int each = 12 / size;
        lg_loader *own = lg_loader_open(c, numbers(97), each, .shuffle = true, .seed = 3, .group = g);
        lg_loader *whole = lg_loader_open(c, numbers(97), each * size, .shuffle = true);
        char file[64];
        snprintf(file, sizeof file, "/tmp/rules-%d-%d.safetensors", (int)getppid(), size);
        lg_batch a, b;
        CHECK(lg_loader_next(own, &a) && lg_loader_next(own, &a));
        lg_checkpoint *saved = lg_checkpoint_new(c), *loaded = lg_checkpoint_new(c);
        CHECK(lg_checkpoint_add(saved, "loader", own) && lg_checkpoint_add(loaded, "loader", whole));
        CHECK(rank || (lg_checkpoint_save(saved, file) && lg_checkpoint_load(loaded, file)));
        if (rank == 0)
                remove(file);
        CHECK(lg_loader_next(own, &a) && (rank || lg_loader_next(whole, &b)));
        lg_tensor *all = members(&a, 97, true);
        CHECK(rank || (a.index == 2 && b.index == 2 && are_equal(all, members(&b, 97, false))));
        lg_loader_close(own);
        lg_loader_close(whole);
}

/* Whose mpirun has started the processes is in the environment. */
static void check_transport(void)
{
        const char *name = size == 1 ? "none" : getenv("OMPI_COMM_WORLD_SIZE") ? "Open MPI v" : "MPICH Version: ";
        CHECK(!strncmp(lg_group_transport(g), name, strlen(name)) && !strcmp(lg_group_transport(NULL), "none"));
        lg_group *pair = lg_group_split(g, rank / 2), *own = lg_group_split(g, rank);
        CHECK(pair && own && !strcmp(lg_group_transport(pair), lg_group_transport(g)));
        CHECK(size == 1 || !strncmp(lg_group_transport(own), name, strlen(name)));
        lg_group_close(pair);
        lg_group_close(own);
}

static void check_right(void)
{
        check_transport();
        check_loader();
        check_resume();
        check_unused();
        check_accumulation();
        check_weight();
        check_extreme_weights();
        check_changes();
        check_random();
}

/* The error that all ranks get, with these words on ranks that did nothing wrong. */
static void expect(bool ok, lg_error_code mine, const char *words)
{
        const bool me = rank == size - 1;
        CHECK(!ok && lg_error_code_of(c) == (me ? mine : LG_ERR_COMM));
        CHECK(me || (lg_error(c) && strstr(lg_error(c), words)));
        lg_clear_error(c);
}

static lg_tensor *free_group(lg_tensor *grad, void *user)
{
        (void)user;
        lg_group_close(g);
        return grad;
}

static void check_wrong(const char *kind)
{
        const bool me = rank == size - 1;
        if (!strcmp(kind, "loader")) {
                lg_loader *l = lg_loader_open(c, numbers(40), me ? 4 : 3, .group = g);
                expect(l != NULL, LG_ERR_COMM, "40 rows, 4");
                return;
        }
        lg_module *m = new_net();
        if (me && !strcmp(kind, "more"))
                CHECK(lg_module_add_parameter(m, "late", lg_ones(c, LG_SHAPE(1))));
        if (!strcmp(kind, "shape"))
                CHECK(lg_module_add_parameter(m, "late", lg_ones(c, LG_SHAPE(me ? 2 : 1))));
        const bool ok = lg_data_parallel(m, g, .bucket_bytes = strcmp(kind, "within") ? 0 : 4);
        if (!strcmp(kind, "shape") || !strcmp(kind, "more")) {
                expect(ok, LG_ERR_COMM, "late");
                return;
        }
        CHECK(ok);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(m), 0.1);
        if (!strcmp(kind, "forward")) {
                lg_tensor *loss = lg_forward(m, lg_ones(c, LG_SHAPE(1)));
                if (me)
                        loss = lg_matmul(loss, lg_ones(c, LG_SHAPE(4)));
                const bool done = lg_backward(loss);
                CHECK(lg_step(opt) == false);
                expect(done, LG_ERR_SHAPE, "matmul");
                CHECK(run_backward(m, 1) == false && lg_error_code_of(c) == LG_ERR_COMM); /* from now on */
                lg_clear_error(c);
                lg_no_sync(m) CHECK(run_backward(m, 1) && lg_step(opt));
                return;
        }
        lg_tensor *loss = lg_forward(m, lg_ones(c, LG_SHAPE(1)));
        if (!strcmp(kind, "freed"))
                lg_group_close(g);
        if (!strcmp(kind, "within"))
                lg_hook(loss, free_group, NULL); /* behind the exchange of what gets no gradient */
        CHECK(!lg_backward(loss, .create_graph = !strcmp(kind, "create_graph")));
        CHECK(lg_error_code_of(c) == LG_ERR_STATE);
        lg_clear_error(c);
}

/* The last rank comes with an error that it had before. */
static int fail_early(void)
{
        const char *mine = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
        const bool me = mine && atoi(mine) == 2;
        c = lg_open(.threads = 1);
        if (me)
                lg_set_error(c, LG_ERR_IO, "the disk is gone");
        g = lg_group_open(c, .timeout = 30);
        CHECK(!g && lg_error_code_of(c) == (me ? LG_ERR_IO : LG_ERR_COMM) && strstr(lg_error(c), "the disk is gone"));
        lg_close(c);
        return verdict(2);
}

/* What the last rank has left the group for, although it says nothing: an error that it has cleared (cleared), the end
 * of the process (exit), that with an error (failed). The others hear it long before their time limit.
 */
static int leave_silently(const char *kind)
{
        const char *const words = strcmp(kind, "exit") != 0 ? "matmul" : "exits without lg_close()";
        CHECK(join(3600) && lg_barrier(g));
        if (rank == size - 1) {
                if (strcmp(kind, "exit") != 0)
                        CHECK(!lg_matmul(lg_ones(c, LG_SHAPE(2, 3)), lg_ones(c, LG_SHAPE(2))));
                if (!strcmp(kind, "cleared")) {
                        lg_clear_error(c);
                        lg_close(c);
                }
                return verdict(!strcmp(kind, "cleared"));
        }
        CHECK(!lg_barrier(g) && lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), words));
        lg_close(c);
        c = NULL;
        return verdict(1);
}

static bool barrier(lg_module *m)
{
        (void)m;
        return lg_barrier(g);
}

static bool backward(lg_module *m)
{
        return run_backward(m, 1);
}

static bool open_again(lg_module *m)
{
        (void)m;
        return lg_group_open(c) != NULL;
}

static bool leave(lg_module *m)
{
        (void)m;
        lg_group_close(g);
        return lg_set_error(c, LG_ERR_COMM, "not in a child");
}

/* Children of fork() are in no group, and what they do there does not disturb it. */
static int fork_children(void)
{
        static bool (*const uses[])(lg_module *) = {barrier, backward, open_again, leave};
        CHECK(join(30));
        lg_module *m = new_net();
        CHECK(lg_data_parallel(m, g) && run_backward(m, 1));
        for (int i = 0; i < (int)(sizeof uses / sizeof *uses); i++) {
                int status = -1;
                const pid_t child = fork();
                if (!child) {
                        alarm(20);
                        CHECK(!uses[i](m) && lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), "child"));
                        lg_close(c);
                        exit(failures > 0); /* MPI is not finalised */
                }
                CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
                CHECK(lg_barrier(g) && run_backward(m, 1));
        }
        lg_close(c);
        c = NULL;
        return verdict(0);
}

static pid_t late;

static void take_message(lg_ctx *d, const char *text, void *messages)
{
        const bool waits = strstr(text, "rank 0 has not left the group for 5 s");
        *(int *)messages += waits;
        if (waits)
                kill(late, SIGUSR1);
        (void)d;
}

/* The others wait for what rank 0 does alone; if they did not, their end would be its end, before it says "held". */
static int leave_late(void)
{
        int messages = 0;
        keep_wake_up();
        CHECK(join(5) && (late = process_of(0)) > 0 && lg_barrier(g));
        lg_on_message(c, take_message, &messages);
        if (rank == 0)
                await_wake_up();
        lg_close(c);
        c = NULL;
        CHECK(messages == (rank > 0));
        return verdict(0);
}

int main(int count, char **words)
{
        if (count == 2 && !strcmp(words[1], "fork"))
                return fork_children();
        if (count == 2 && !strcmp(words[1], "late"))
                return leave_late();
        if (count == 2 && !strcmp(words[1], "early"))
                return fail_early();
        if (count == 2 && (!strcmp(words[1], "cleared") || !strcmp(words[1], "exit") || !strcmp(words[1], "failed")))
                return leave_silently(words[1]);
        if (count == 2 && !strcmp(words[1], "open")) { /* all ranks exit without lg_close() */
                CHECK(join(30) && lg_barrier(g));
                return verdict(0);
        }
        const bool joined = join(30);
        if (count == 2 && !strcmp(words[1], "foreign")) {
                CHECK(!joined && lg_error_code_of(c) == LG_ERR_COMM && strstr(lg_error(c), "libgrad-openmpi.so.1") &&
                      strstr(lg_error(c), "libgrad-mpich.so.1"));
                lg_close(c);
                return verdict(0);
        }
        CHECK(joined && count == 2);
        const bool wrong = count == 2 && strcmp(words[1], "right") != 0;
        if (g && wrong)
                check_wrong(words[1]);
        else if (g)
                check_right();
        CHECK(!lg_error(c));
        lg_close(c);
        return verdict(wrong ? 2 : 0);
}
