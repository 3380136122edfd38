/* test_transforms_random.c - what transforms draw: how often, of which stream, the same for any number of threads. */
#include "transforms.h"

enum { ROOM = 4096 };

/* ---- frequencies ---- */

enum { MANY = 4000 };

/* That many of MANY, give or take five standard deviations. */
static void about(int64_t count, double p)
{
        assert_near((double)count, p * MANY, 5 * sqrt(p * (1 - p) * MANY));
}

TEST_CASE(every_place_is_as_likely)
{
        lg_ctx *c = open_ctx();
        int64_t places[6] = {0}, flips = 0, erasings = 0;
        double x[24], y[24];
        lg_tensor *all = lg_add(lg_zeros(c, LG_SHAPE(MANY, 1, 4, 6), .device = lg_cpu()),
                                lg_reshape(lg_arange(c, 1, 25, 1, .device = lg_cpu()), LG_SHAPE(4, 6)));
        lg_dataset *base = lg_dataset_tensors(c, all, all);
        lg_dataset *crops = lg_dataset_transform(base, lg_transform_random_crop(c, 2, 5));
        lg_dataset *flipped = lg_dataset_transform(base, lg_transform_random_vertical_flip(c, .p = 0.2));
        lg_dataset *holes = lg_dataset_transform(base, lg_transform_random_erasing(c, .p = 0.3, .scale_max = 0.1));
        for (int64_t i = 0; i < MANY; i++) {
                sample(c, base, i, x, 24);
                sample(c, crops, i, y, 24);
                int64_t at = (int64_t)y[0] - 1;
                assert_true(at / 6 < 3 && at % 6 < 2);
                places[at / 6 * 2 + at % 6]++;
                sample(c, flipped, i, y, 24);
                flips += y[0] != 1;
                sample(c, holes, i, y, 24);
                erasings += memcmp(x, y, sizeof x) != 0;
        }
        for (int k = 0; k < 6; k++)
                about(places[k], 1.0 / 6);
        about(flips, 0.2);
        assert_true(erasings > 0 && erasings < MANY * 3 / 10 + 150); /* some rectangles have no pixel */
        lg_close(c);
}

TEST_CASE(noise_of_bytes_is_uniform)
{
        lg_ctx *c = open_ctx();
        static double y[64 * 64];
        int64_t count = 0, seen[256] = {0};
        double sum = 0;
        lg_tensor *x = lg_full(c, LG_SHAPE(1, 64, 64), 7, .dtype = LG_U8, .device = lg_cpu());
        lg_transform *t = lg_transform_random_erasing(c, .p = 1, .scale_min = 0.9, .scale_max = 0.95, .ratio_min = 1,
                                                      .ratio_max = 1, .random = true);
        int64_t n = sample(c, lg_dataset_transform(lg_dataset_tensors(c, x, x), t), 0, y, 64 * 64);
        for (int64_t i = 0; i < n; i++) {
                seen[(int)y[i]]++;
                count += y[i] != 7;
                sum += y[i] != 7 ? y[i] : 0;
        }
        assert_true(count > n * 85 / 100);
        assert_near(sum / (double)count, 128, 5 * 74 / sqrt((double)count)); /* 74: the standard deviation */
        assert_true(seen[0] && seen[255]);
        lg_close(c);
}

TEST_CASE(noise_is_normal)
{
        lg_ctx *c = open_ctx();
        static double y[64 * 64];
        lg_tensor *x = lg_full(c, LG_SHAPE(1, 64, 64), 1000, .device = lg_cpu());
        lg_transform *t = lg_transform_random_erasing(c, .p = 1, .scale_min = 0.5, .scale_max = 0.6, .ratio_min = 1,
                                                      .ratio_max = 1, .random = true);
        int64_t n = sample(c, lg_dataset_transform(lg_dataset_tensors(c, x, x), t), 0, y, 64 * 64), count = 0;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
                if (y[i] < 500) {
                        count++;
                        sum += y[i];
                        squares += y[i] * y[i];
                }
        }
        assert_true(count >= n / 2 && count < n * 62 / 100);
        assert_near(sum / (double)count, 0, 5 / sqrt((double)count));
        assert_near(squares / (double)count, 1, 5 * sqrt(2 / (double)count));
        lg_close(c);
}

/* ---- streams of numbers ---- */

/* A chain draws as its parts do one after the other: of one stream. */
TEST_CASE(chains_draw_from_one_stream)
{
        lg_ctx *c = open_ctx();
        double u[DRAWS], y[DRAWS];
        lg_dataset *base = images(c, LG_U8, (image){1, 5, 5}, 8), *numbers = draws_of(c, base);
        lg_dataset *later = lg_dataset_transform(
                base, lg_transforms(c, lg_transform_random_horizontal_flip(c), lg_transform_random_crop(c, 3, 3)));
        lg_dataset *after = draws_of(c, later);
        for (int64_t i = 0; i < 8; i++) {
                sample(c, numbers, i, u, DRAWS);
                assert_int_equal(sample(c, after, i, y, DRAWS), DRAWS);
                assert_memory_equal(u + 3, y, (DRAWS - 3) * sizeof *u); /* one of the flip, two of the crop */
        }
        lg_close(c);
}

/* What is drawn depends on seed, epoch and sample, not on the order, the batches or the threads. */
TEST_CASE(numbers_belong_to_samples)
{
        enum { samples = 13 };
        lg_ctx *c = open_ctx();
        double first[samples * DRAWS], u[samples * DRAWS], ids[samples];
        lg_dataset *d = draws_of(c, images(c, LG_U8, (image){1, 2, 2}, samples));
        for (int batch = 1; batch < 14; batch += 4) {
                lg_loader *l = lg_loader_open(c, d, batch, .shuffle = batch > 1, .workers = batch / 5, .seed = 2);
                lg_each_batch(b, l)
                {
                        read_all(b.x, u, samples * DRAWS);
                        int64_t n = read_all(b.y, ids, samples);
                        for (int64_t k = 0; k < n; k++) {
                                double *of = first + (int64_t)ids[k] * DRAWS;
                                if (batch == 1)
                                        memcpy(of, u + k * DRAWS, DRAWS * sizeof *u);
                                assert_memory_equal(of, u + k * DRAWS, DRAWS * sizeof *u);
                        }
                }
                assert_ok(c);
        }
        for (int i = 0; i < samples * DRAWS; i++)
                for (int k = 0; k < i; k++)
                        assert_true(first[i] != first[k]);
        lg_close(c);
}

/* ---- threads ---- */

/* All batches of two epochs, one after the other. */
static int64_t two_epochs(lg_ctx *c, lg_dataset *d, int workers, uint64_t seed, lg_collate *collate, double *out,
                          int64_t room)
{
        int64_t n = 0;
        lg_loader *l = lg_loader_open(c, d, 8, .shuffle = true, .workers = workers, .seed = seed, .collate = collate);
        for (int epoch = 0; epoch < 2; epoch++) {
                lg_each_batch(b, l)
                {
                        n += read_all(b.x, out + n, room - n);
                        n += read_all(b.y, out + n, room - n);
                }
        }
        assert_ok(c);
        lg_loader_close(l);
        return n;
}

TEST_CASE(threads_change_nothing)
{
        enum { room = 2 * 44 * (3 * 8 * 20 + 10) };
        lg_ctx *c = open_ctx();
        double *one = calloc(2 * room, sizeof *one), *many = calloc(2 * room, sizeof *many);
        const int workers[] = {1, 2, 4};
        lg_dataset *d = lg_dataset_transform(images(c, LG_U8, (image){3, 12, 12}, 44), everything(c));
        for (int mix = 0; mix < 2; mix++) {
                lg_collate *collate = mix ? lg_mixup(c, .classes = 44) : NULL;
                const int64_t n = two_epochs(c, d, 0, 5, collate, one, 2 * room);
                for (int k = 0; k < 3; k++) {
                        assert_int_equal(two_epochs(c, d, workers[k], 5, collate, many, 2 * room), n);
                        assert_memory_equal(one, many, (size_t)n * sizeof *one);
                }
                two_epochs(c, d, 0, 6, collate, many, 2 * room);
                assert_true(memcmp(one, many, (size_t)n * sizeof *one) != 0);
        }
        free(one);
        free(many);
        lg_close(c);
}

/* The same sample in two epochs. */
TEST_CASE(epochs_differ)
{
        lg_ctx *c = open_ctx();
        double u[2 * DRAWS];
        lg_dataset *d = draws_of(c, images(c, LG_U8, (image){1, 2, 2}, 1));
        lg_loader *l = lg_loader_open(c, d, 1, .seed = 9);
        for (int epoch = 0; epoch < 2; epoch++) {
                lg_each_batch(b, l)
                {
                        read_all(b.x, u + epoch * DRAWS, DRAWS);
                }
        }
        assert_ok(c);
        for (int i = 0; i < DRAWS; i++)
                assert_true(u[i] != u[DRAWS + i]);
        lg_close(c);
}

/* A loader without a seed takes one from the context's random state, if there is something to draw. */
TEST_CASE(seeds_are_drawn_where_something_is_random)
{
        const bool random[PARTS] = {[0] = true, [1] = true, [2] = true, [4] = true, [5] = true, [7] = true, [8] = true};
        lg_ctx *c = open_ctx();
        lg_transform *parts[PARTS + 1], *all = chain_of_all(c, parts);
        lg_dataset *base = images(c, LG_U8, (image){3, 12, 12}, 2);
        for (int k = 0; k <= PARTS; k++) {
                lg_transform *t = lg_transforms(c, lg_transform_center_crop(c, 12, 12), k < PARTS ? parts[k] : all);
                const lg_random_state before = lg_random_state_of(c);
                drop(lg_loader_open(c, lg_dataset_subset(lg_dataset_transform(base, t), LG_INTS(1)), 1));
                const lg_random_state after = lg_random_state_of(c);
                assert_ok(c);
                assert_true((before.counter != after.counter) == (k == PARTS || random[k]));
        }
        lg_close(c);
}
