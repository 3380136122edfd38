/* test_misuse.c - data sets, loaders and modules as nobody should use them: sizes that no memory holds, functions that
 * turn against what calls them, values of other kinds.
 */
#include "test.h"

static bool make(lg_sample *s, void *user)
{
        (void)user;
        *(float *)s->data[0] = (float)s->index;
        return true;
}

static lg_fields one_field(void)
{
        return LG_FIELDS(LG_FIELD("x", LG_F32, LG_SHAPE_0D));
}

/* ---- sizes ---- */

/* What an order of so many samples takes would overflow. */
TEST_CASE(orders_that_are_too_long)
{
        const int64_t sizes[] = {INT64_MAX, (int64_t)1 << 61, ((int64_t)1 << 61) + 1, (int64_t)1 << 31};
        for (int i = 0; i < 4; i++) {
                lg_ctx *c = open_ctx();
                lg_dataset *first, *second, *d = lg_dataset_new(c, sizes[i], one_field(), make, NULL);
                assert_ok(c);
                drop(lg_loader_open(c, d, 4, .shuffle = true));
                assert_error(c, LG_ERR_ARGUMENT, "cannot be shuffled; at most 2147483647 can");
                assert_false(lg_dataset_split(d, 0.5, &first, &second, .seed = 1));
                assert_null(first);
                assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_split: an epoch of ");
                lg_each_batch(b, lg_loader_open(c, d, 4, .device = lg_cpu()))
                {
                        assert_int_equal(b.count, sizes[i] / 4 + (sizes[i] % 4 != 0));
                        break;
                }
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(too_many_samples_by_weights)
{
        const int64_t samples[] = {INT64_MAX, (int64_t)1 << 61, ((int64_t)1 << 61) + 1};
        lg_ctx *c = open_ctx();
        lg_dataset *d = lg_dataset_new(c, 2, one_field(), make, NULL);
        lg_tensor *w = lg_ones(c, LG_SHAPE(2), .device = lg_cpu());
        for (int i = 0; i < 3; i++) {
                drop(lg_loader_open(c, d, 4, .weights = w, .samples = samples[i]));
                assert_error(c, LG_ERR_ARGUMENT, "cannot be drawn");
        }
        drop(lg_loader_open(c, d, 4, .weights = w, .samples = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".samples is -1; it must be 1 or more");
        lg_close(c);
}

TEST_CASE(weights_without_a_sum)
{
        lg_ctx *c = open_ctx();
        lg_dataset *d = lg_dataset_new(c, 2, one_field(), make, NULL);
        lg_tensor *w = lg_full(c, LG_SHAPE(2), 1e308, .dtype = LG_F64, .device = lg_cpu());
        drop(lg_loader_open(c, d, 1, .weights = w));
        assert_error(c, LG_ERR_ARGUMENT, "the sum of the weights is inf");
        lg_close(c);
}

TEST_CASE(too_many_samples_together)
{
        lg_ctx *c = open_ctx();
        lg_dataset *d = lg_dataset_new(c, INT64_MAX, one_field(), make, NULL);
        lg_dataset *one = lg_dataset_new(c, 1, one_field(), make, NULL);
        assert_int_equal(lg_dataset_size(lg_dataset_concat(c, d)), INT64_MAX);
        drop(lg_dataset_concat(c, one, d));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_concat: there are more than 2^63 samples");
        lg_close(c);
}

TEST_CASE(lists_that_are_null)
{
        lg_ctx *c = open_ctx();
        drop(lg_dataset_list(c, LG_LIST_OF(2, NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_list: the list is NULL");
        drop(lg_dataset_npy(c, LG_NAMES_OF(2, NULL)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_npy: the list is NULL");
        drop(lg_transform_normalize(c, LG_NUMBERS(1e39), LG_NUMBERS(1)));
        assert_error(c, LG_ERR_ARGUMENT, "mean of channel 0 is 1e+39; it must be finite in f32");
        lg_close(c);
}

TEST_CASE(one_place_for_two_parts)
{
        lg_ctx *c = open_ctx();
        lg_dataset *part, *d = lg_dataset_new(c, 4, one_field(), make, NULL);
        assert_false(lg_dataset_split(d, 0.5, &part, &part));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_split: first and second are one pointer");
        assert_null(part);
        lg_close(c);
}

/* ---- functions ---- */

/* Writes all over what it was given; the next sample gets it whole again. */
static bool spoil(lg_sample *s, void *user)
{
        bool ok = s->fields == 1 && s->data[0] && lg_rng_uniform(s->rng) < 1 && make(s, user);
        s->fields = 99;
        s->index = -1;
        s->rng = NULL;
        for (int f = 0; f < LG_MAX_FIELDS; f++) {
                s->data[f] = NULL;
                s->length[f] = INT64_MIN;
        }
        return ok;
}

TEST_CASE(a_function_that_spoils_its_sample)
{
        for (int workers = 0; workers < 2; workers++) {
                lg_ctx *c = open_ctx();
                lg_batch one;
                lg_dataset *d = lg_dataset_new(c, 5, one_field(), spoil, NULL);
                lg_each_batch(b, lg_loader_open(c, d, 2, .workers = workers))
                        assert_values(b.x, (const double[]){2.0 * (double)b.index, 2.0 * (double)b.index + 1},
                                      b.index < 2 ? 2 : 1, 0);
                assert_true(lg_dataset_get(d, 3, &one));
                assert_near(lg_item(one.x), 3, 0);
                assert_ok(c);
                lg_close(c);
        }
}

typedef struct stream {
        lg_loader *loader;
        int64_t at, seeks;
        int how;
        bool turned; /* against its loader */
} stream;

static bool next(lg_sample *s, void *user)
{
        stream *from = user;
        *(float *)s->data[0] = (float)from->at;
        return from->at++ < 6;
}

static bool seek(void *user, int64_t sample)
{
        stream *from = user;
        lg_batch b;
        from->at = sample;
        from->seeks++;
        if (from->turned)
                return true;
        from->turned = true;
        if (from->how == 0)
                assert_false(lg_loader_next(from->loader, &b));
        else if (from->how == 1)
                lg_loader_close(from->loader);
        else
                lg_loader_restart(from->loader);
        return true;
}

TEST_CASE(a_loader_is_not_used_while_its_stream_seeks)
{
        for (int i = 0; i < 6; i++) {
                lg_ctx *c = open_ctx();
                stream from = {.how = i % 3};
                lg_dataset *d = lg_dataset_stream(c, one_field(), next, &from, .seek = seek);
                lg_loader *l = from.loader = lg_loader_open(c, d, 4, .workers = i / 3);
                int batches = 0;
                for (int epoch = 0; epoch < 3; epoch++) {
                        lg_each_batch(b, l)
                        {
                                const double first = 4.0 * (double)b.index;
                                assert_values(b.x, (const double[]){first, first + 1, first + 2, first + 3},
                                              b.index ? 2 : 4, 0);
                                batches++;
                        }
                        if (epoch == 1)
                                assert_error(c, LG_ERR_STATE, "this loader is making a batch");
                        assert_ok(c);
                }
                assert_int_equal(batches, 4);
                assert_int_equal(from.seeks, 1);
                lg_close(c);
        }
}

/* ---- modules ---- */

/* With the names of a batch norm, whose count is no tensor. */
static lg_module *like_a_batch_norm(lg_ctx *c)
{
        static const char *const names[] = {"running_mean", "running_var"};
        lg_module *m = lg_nn_module(c, "Own");
        assert_non_null(lg_module_add_parameter(m, "weight", lg_ones(c, LG_SHAPE(3))));
        assert_non_null(lg_module_add_parameter(m, "bias", lg_ones(c, LG_SHAPE(3))));
        for (int i = 0; i < 2; i++)
                assert_non_null(lg_module_add_buffer(m, names[i], lg_ones(c, LG_SHAPE(3))));
        assert_non_null(lg_module_add_buffer(m, "num_batches_tracked", lg_full(c, LG_SHAPE_0D, 7, .dtype = LG_I64)));
        return m;
}

TEST_CASE(a_count_is_no_tensor)
{
        lg_ctx *c = open_ctx();
        lg_module *norm = lg_nn_batch_norm1d(c, 3), *own = like_a_batch_norm(c);
        assert_false(lg_copy_state(own, norm));
        assert_error(c, LG_ERR_ARGUMENT, "is a tensor in `to`, but the count of a batch norm in `from`");
        assert_false(lg_copy_state(norm, own));
        assert_error(c, LG_ERR_ARGUMENT, "is a tensor in `from`, but the count of a batch norm in `to`");
        assert_near(lg_item(lg_sum(lg_buffer(norm, "running_mean"))), 0, 0);
        lg_close(c);
}

static lg_module *adopter;

static void *give_away(lg_module *copy, void *user)
{
        assert_false(lg_module_append(adopter, copy));
        return user;
}

TEST_CASE(a_copy_gets_no_parent_while_it_is_made)
{
        for (int deep = 0; deep < 2; deep++) {
                lg_ctx *c = open_ctx();
                adopter = lg_nn_sequential(c, lg_nn_relu(c));
                lg_module *own = lg_nn_module(c, "Own", .user = &deep, .clone = give_away);
                lg_module *net = deep ? lg_nn_sequential(c, own) : own;
                assert_null(lg_module_clone(net));
                assert_error(c, LG_ERR_STATE, "(Own) is a copy that its .clone is making");
                assert_int_equal(lg_child_count(adopter), 1);
                lg_close(c);
        }
}

/* The optimiser and the average are there, what they were made for is not. */
TEST_CASE(a_run_without_its_module)
{
        lg_ctx *c = open_ctx();
        lg_module *net = lg_nn_linear(c, 3, 2);
        lg_optimizer *opt = lg_sgd(c, lg_parameters(net), 0.1, .momentum = 0.9);
        lg_checkpoint *run = lg_checkpoint_new(c);
        assert_true(lg_checkpoint_add(run, "optimizer", opt));
        assert_true(lg_backward(lg_sum(lg_forward(net, lg_ones(c, LG_SHAPE(2, 3))))) && lg_step(opt));
        lg_module_free(net);
        assert_false(lg_checkpoint_save(run, "misuse.safetensors"));
        assert_error(c, LG_ERR_STATE, "lg_checkpoint_save: parameter 0 of lg_sgd was freed");
        drop(lg_nn_linear(c, 3, 2)); /* may take the places */
        assert_false(lg_checkpoint_load(run, "misuse.safetensors"));
        assert_error(c, LG_ERR_STATE, "lg_checkpoint_load: parameter 0 of lg_sgd was freed");
        lg_close(c);
}

typedef struct borrower {
        lg_module *net;
        lg_checkpoint *run;
        int how;
} borrower;

static lg_tensor *use_what_is_lent(lg_module *m, lg_list in, void *user)
{
        const borrower *b = user;
        bool ok = b->how == 0   ? lg_save(b->net, "misuse.safetensors")
                  : b->how == 1 ? lg_load(b->net, "misuse.safetensors")
                  : b->how == 2 ? lg_copy_state(b->net, b->net)
                  : b->how == 3 ? lg_checkpoint_save(b->run, "misuse.safetensors")
                                : lg_checkpoint_load(b->run, "misuse.safetensors");
        assert_false(ok);
        return lg_mul(in.items[0], lg_parameter(m, "w"));
}

/* Values of a step are no weights: they are neither saved nor written. */
TEST_CASE(lent_parameters_are_not_saved)
{
        for (int how = 0; how < 5; how++) {
                lg_ctx *c = open_ctx();
                borrower b = {.how = how};
                lg_module *own = lg_nn_module(c, "Own", .forward = use_what_is_lent, .user = &b);
                lg_tensor *w = lg_module_add_parameter(own, "w", lg_ones(c, LG_SHAPE(2)));
                b.net = lg_nn_sequential(c, own);
                b.run = lg_checkpoint_new(c);
                assert_true(lg_checkpoint_add(b.run, "net", b.net));
                assert_null(lg_forward_params(b.net, LG_LIST(lg_mul_scalar(w, 2)), lg_ones(c, LG_SHAPE(2))));
                assert_error(c, LG_ERR_STATE, "lg_forward_params runs the Sequential; call it when that has returned");
                lg_close(c);
        }
}
