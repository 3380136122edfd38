/* test_transformed.c - data sets with transforms: chains, views, streams, own functions, ends, errors. */
#include "transforms.h"

enum { ROOM = 4096 };

/* ---- chains ---- */

static bool add(const lg_transform_call *call, void *user)
{
        const double *x = call->from, *a = user;
        double *y = call->to;
        for (int64_t i = 0; i < call->in->shape.size[0]; i++)
                y[i] = a[0] * x[i] + a[1];
        return true;
}

/* Twice the rows, or half as many. */
static bool rows(const lg_transform_call *call, void *user)
{
        const double *x = call->from;
        double *y = call->to;
        const int64_t n = call->in->shape.size[0], m = call->out->shape.size[0];
        (void)user;
        for (int64_t i = 0; i < m; i++)
                y[i] = x[i % n];
        return true;
}

TEST_CASE(chains_go_in_order)
{
        lg_ctx *c = open_ctx();
        double two[] = {2, 1}, three[] = {-3, 5}, y[ROOM];
        lg_tensor *x = lg_arange(c, 0, 12, 1, .dtype = LG_F64, .device = lg_cpu());
        lg_dataset *base = lg_dataset_tensors(c, lg_reshape(x, LG_SHAPE(3, 4)), lg_reshape(x, LG_SHAPE(3, 4)));
        lg_transform *a = lg_transform_new(c, add, two), *b = lg_transform_new(c, add, three);
        lg_transform *grow = lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(100));
        lg_transform *shrink = lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(4));
        lg_transform *chain =
                lg_transforms(c, a, lg_transforms(c, grow, b, shrink), lg_transforms(c), a, grow, shrink, b);
        lg_dataset *one = lg_dataset_transform(base, chain);
        lg_dataset *nested = lg_dataset_transform(lg_dataset_transform(lg_dataset_transform(base, a), b), a);
        nested = lg_dataset_transform(nested, b);
        assert_ok(c);
        for (int64_t i = 0; i < 3; i++) {
                assert_int_equal(sample(c, one, i, y, ROOM), 4);
                for (int64_t k = 0; k < 4; k++)
                        assert_near(y[k], -3 * (2 * (-3 * (2 * (double)(4 * i + k) + 1) + 5) + 1) + 5, 0);
                assert_int_equal(sample(c, nested, i, y, ROOM), 4);
                for (int64_t k = 0; k < 4; k++)
                        assert_near(y[k], -3 * (2 * (-3 * (2 * (double)(4 * i + k) + 1) + 5) + 1) + 5, 0);
        }
        lg_close(c);
}

/* A chain makes what its parts do as data sets of each other. */
TEST_CASE(chains_do_what_their_parts_do)
{
        lg_ctx *c = open_ctx();
        double one[ROOM], other[ROOM];
        lg_transform *parts[PARTS + 1], *chain = chain_of_all(c, parts);
        lg_dataset *base = images(c, LG_U8, (image){3, 12, 12}, 9), *d = lg_dataset_transform(base, chain);
        lg_dataset *nested = base;
        for (int k = 0; k < PARTS; k++)
                nested = lg_dataset_transform(nested, parts[k]);
        assert_ok(c);
        for (int64_t i = 0; i < 9; i++) {
                int64_t n = sample(c, d, i, one, ROOM);
                assert_int_equal(n, 3 * 8 * 20);
                assert_int_equal(sample(c, nested, i, other, ROOM), n);
                assert_memory_equal(one, other, (size_t)n * sizeof *one);
        }
        lg_close(c);
}

/* The fields of a data set: the transform's, and the others as they were. */
TEST_CASE(fields_are_known_beforehand)
{
        lg_ctx *c = open_ctx();
        lg_dataset *d = lg_dataset_transform(images(c, LG_U8, (image){3, 12, 12}, 5), everything(c));
        assert_ok(c);
        lg_fields f = lg_dataset_fields(d);
        assert_int_equal(lg_dataset_size(d), 5);
        assert_int_equal(f.count, 2);
        assert_string_equal(f.field[0].name, "x");
        assert_int_equal(f.field[0].dtype, LG_F32);
        assert_int_equal(f.field[0].shape.ndim, 3);
        assert_int_equal(f.field[0].shape.size[1], 8);
        assert_int_equal(f.field[0].shape.size[2], 20);
        assert_int_equal(f.field[1].dtype, LG_I64);
        lg_batch b;
        assert_true(lg_dataset_get(d, 3, &b));
        assert_near(lg_item(b.y), 3, 0);
        lg_close(c);
}

/* ---- data sets of data sets ---- */

/* Parts of data sets that are transformed in different ways, and what is made of them again. */
TEST_CASE(views_and_transforms_go_together)
{
        lg_ctx *c = open_ctx();
        double plus[] = {1, 100}, twice[] = {2, 0}, y[ROOM];
        lg_tensor *x = lg_reshape(lg_arange(c, 0, 12, 1, .dtype = LG_F64, .device = lg_cpu()), LG_SHAPE(6, 2));
        lg_dataset *base = lg_dataset_tensors(c, x, x);
        lg_dataset *grown =
                lg_dataset_transform(base, lg_transforms(c, lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(500)),
                                                         lg_transform_new(c, add, plus),
                                                         lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(2))));
        lg_dataset *both = lg_dataset_concat(c, lg_dataset_subset(grown, LG_INTS(5, 0)), base);
        lg_dataset *d = lg_dataset_transform(both, lg_transform_new(c, add, twice));
        lg_loader *l = lg_loader_open(c, d, 8, .workers = 1);
        lg_batch b;
        assert_true(lg_loader_next(l, &b));
        assert_int_equal(read_all(b.x, y, ROOM), 16);
        for (int i = 0; i < 8; i++) {
                int from = i == 0 ? 5 : i == 1 ? 0 : i - 2;
                assert_near(y[2 * i], 2 * (2 * from + (i < 2 ? 100 : 0)), 0);
                assert_near(y[2 * i + 1], 2 * (2 * from + 1 + (i < 2 ? 100 : 0)), 0);
        }
        assert_int_equal(read_all(b.y, y, ROOM), 16);
        assert_near(y[0], 10, 0);
        lg_close(c);
}

static bool next(lg_sample *s, void *user)
{
        int64_t *at = user;
        if (*at == 10)
                return false;
        for (int k = 0; k < 16; k++)
                ((uint8_t *)s->data[0])[k] = (uint8_t)(16 * *at + k);
        *(int64_t *)s->data[1] = (*at)++;
        return true;
}

static bool seek(void *user, int64_t sample)
{
        *(int64_t *)user = sample;
        return true;
}

/* What d, a data set or a transform, is inside of; kind: subset, concat, transform, transforms. */
static void *around(lg_ctx *c, int kind, void *d, lg_transform *flip)
{
        return kind == 0   ? (void *)lg_dataset_subset(d, LG_INTS(1, 0))
               : kind == 1 ? (void *)lg_dataset_concat(c, d)
               : kind == 2 ? (void *)lg_dataset_transform(d, flip)
                           : (void *)lg_transforms(c, d);
}

/* Each level takes some of the stack of the thread that makes a sample, and of the one that frees it. */
TEST_CASE(data_sets_and_transforms_nest_to_a_limit)
{
        for (int kind = 0; kind < 4; kind++) {
                lg_ctx *c = open_ctx();
                lg_transform *flip = lg_transform_random_horizontal_flip(c, .p = 1);
                lg_tensor *x = lg_arange(c, 0, 8, 1, .device = lg_cpu(), .dtype = LG_F32);
                lg_dataset *d = lg_dataset_list(c, LG_LIST(lg_reshape(x, LG_SHAPE(2, 2, 2))));
                void *in = kind < 3 ? (void *)d : (void *)flip, *outer;
                int levels = 1;
                for (; levels < 1000000 && (outer = around(c, kind, in, flip)); levels++) {
                        if (kind < 3)
                                lg_dataset_free(in); /* it goes with the outermost one */
                        in = outer;
                }
                assert_int_equal(levels, LG_MAX_DATA_DEPTH);
                assert_error(c, LG_ERR_ARGUMENT, "nest more than 128 levels deep");
                lg_dataset *all = kind < 3 ? in : lg_dataset_transform(d, in);
                for (int workers = 0; workers < 2; workers++)
                        lg_each_batch(b, lg_loader_open(c, all, 2, .workers = workers, .device = lg_cpu()))
                        {
                                /* 127 swaps or flips are one; a chain of one flip is that flip */
                                if (kind == 0)
                                        assert_list(b.x, 0, 4, 5, 6, 7, 0, 1, 2, 3);
                                else if (kind == 1)
                                        assert_list(b.x, 0, 0, 1, 2, 3, 4, 5, 6, 7);
                                else
                                        assert_list(b.x, 0, 1, 0, 3, 2, 5, 4, 7, 6);
                        }
                assert_ok(c);
                lg_close(c);
        }
}

TEST_CASE(streams_are_transformed)
{
        lg_ctx *c = open_ctx();
        double one[2][ROOM], y[8];
        for (int workers = 0; workers < 3; workers++) {
                int64_t at = 0, n = 0, count = 0;
                lg_dataset *base = lg_dataset_stream(
                        c, LG_FIELDS(LG_FIELD("image", LG_U8, LG_SHAPE(4, 4)), LG_FIELD("y", LG_I64, LG_SHAPE_0D)),
                        next, &at, .seek = seek);
                lg_transform *t = lg_transforms(c, lg_transform_random_crop(c, 3, 2), lg_transform_to_float(c));
                lg_dataset *d = lg_dataset_transform(base, t);
                assert_string_equal(lg_dataset_fields(d).field[0].name, "image");
                assert_int_equal(lg_dataset_size(d), -1);
                lg_loader *l = lg_loader_open(c, d, 4, .workers = workers, .seed = 7);
                for (int epoch = 0; epoch < 2; epoch++)
                        lg_each_batch(b, l)
                        {
                                n += read_all(b.x, one[workers > 0] + n, ROOM - n);
                                count += read_all(b.y, y, 8);
                        }
                assert_ok(c);
                assert_int_equal(count, 20);
                assert_int_equal(n, 20 * 6);
                assert_memory_equal(one[0], one[workers > 0], (size_t)n * sizeof **one);
                for (int64_t k = 0; k < n; k++) /* in a row of its own sample */
                        assert_near(floor(one[0][k] * 255 / 16 + 1e-6), (double)(k / 6 % 10), 0);
                lg_loader_close(l);
        }
        lg_close(c);
}

/* ---- own functions, ends ---- */

static bool third(const lg_transform_call *call, void *user)
{
        (void)user;
        return call->sample->index != 2 || lg_sample_fail(call->sample, "sample two is broken");
}

static bool regretted(const lg_transform_call *call, void *user)
{
        (void)user;
        lg_sample_fail(call->sample, "sample %lld after all", (long long)call->sample->index);
        return true;
}

static bool silent(const lg_transform_call *call, void *user)
{
        (void)call, (void)user;
        return false;
}

static void count(void *user)
{
        ++*(int *)user;
}

TEST_CASE(own_functions_fail_with_their_words)
{
        lg_ctx *c = open_ctx();
        lg_dataset *base = images(c, LG_U8, (image){1, 2, 2}, 4);
        lg_dataset *d = lg_dataset_transform(base, lg_transforms(c, lg_transform_new(c, third, NULL)));
        lg_batch b;
        assert_false(lg_dataset_get(d, 2, &b));
        assert_error(c, LG_ERR_IO, "sample two is broken");
        assert_true(lg_dataset_get(d, 1, &b));
        for (int workers = 0; workers < 3; workers++) {
                lg_loader *l = lg_loader_open(c, d, 2, .workers = workers);
                assert_true(lg_loader_next(l, &b));
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_IO, "sample two is broken");
                lg_loader_close(l);
        }
        assert_false(lg_dataset_get(lg_dataset_transform(base, lg_transform_new(c, silent, NULL)), 1, &b));
        assert_error(c, LG_ERR_IO, "lg_transform_new: its function gives false for sample 1");
        assert_false(lg_dataset_get(lg_dataset_transform(base, lg_transform_new(c, regretted, NULL)), 3, &b));
        assert_error(c, LG_ERR_IO, "lg_dataset_get: sample 3 after all");
        lg_close(c);
}

typedef struct meddler {
        lg_ctx *c;
        lg_loader *l;
        lg_dataset *d;
        lg_transform *t;
        lg_scope outer;
} meddler;

static bool meddle(const lg_transform_call *call, void *user)
{
        meddler *m = user;
        memcpy(call->to, call->from, 4);
        lg_dataset_free(m->d);
        lg_transform_free(m->t);
        if (call->sample->index == 0)
                lg_loader_close(m->l);
        if (call->sample->index == 1)
                lg_scope_end(m->c, m->outer);
        return true;
}

/* They may free what is in use, and are stopped where they pull away the ground under the call. */
TEST_CASE(functions_that_meddle_are_stopped)
{
        static const char *const texts[] = {"making a batch", "has not returned", NULL};
        for (int64_t i = 0; i < 3; i++) {
                lg_ctx *c = open_ctx();
                meddler m = {.c = c, .outer = lg_scope_begin(c)};
                lg_batch b;
                m.t = lg_transforms(c, lg_transform_new(c, meddle, &m));
                m.d = lg_dataset_transform(images(c, LG_U8, (image){1, 2, 2}, 3), m.t);
                m.l = lg_loader_open(c, lg_dataset_subset(m.d, LG_INTS(i)), 1);
                assert_int_equal(lg_loader_next(m.l, &b), !texts[i]);
                if (texts[i])
                        assert_error(c, LG_ERR_STATE, texts[i]);
                assert_ok(c);
                lg_close(c);
        }
}

/* The user's function is released once, with the last use of the transform, or where there is none. */
TEST_CASE(transforms_end_with_their_last_use)
{
        lg_ctx *c = open_ctx();
        int released = 0;
        double y[ROOM];
        lg_dataset *base = images(c, LG_U8, (image){1, 2, 2}, 4);
        lg_transform *t = lg_transform_new(c, third, &released, .release = count);
        lg_transform *chain = lg_transforms(c, t);
        lg_dataset *d = lg_dataset_transform(base, chain);
        lg_transform_free(t);
        lg_transform_free(chain);
        lg_dataset_free(base);
        assert_int_equal(sample(c, d, 1, y, ROOM), 4);
        assert_int_equal(released, 0);
        lg_dataset_free(d);
        assert_int_equal(released, 1);
        t = lg_transform_new(c, third, &released, .release = count);
        chain = lg_transforms(c, t);
        lg_transform_free(chain);
        assert_int_equal(released, 1);
        lg_transform_free(t);
        assert_int_equal(released, 2);
        assert_null(lg_transform_new(c, NULL, &released, .release = count));
        assert_error(c, LG_ERR_ARGUMENT, "lg_transform_new: the function is NULL");
        assert_int_equal(released, 3);
        t = lg_transform_new(c, third, &released, .release = count);
        lg_transform_free(NULL);
        assert_null(lg_transforms(c, t, lg_transform_center_crop(c, 0, 1)));
        assert_error(c, LG_ERR_ARGUMENT, "lg_transform_center_crop: height is 0 and width 1");
        lg_close(c);
        assert_int_equal(released, 4);
}

/* A transform that does not fit the samples, by what it says of them. */
static void misfit(lg_ctx *c, lg_dataset *d, lg_transform *t, lg_error_code code, const char *text)
{
        assert_ok(c);
        assert_null(lg_dataset_transform(d, t));
        assert_error(c, code, text);
}

/* ---- sizes ---- */

TEST_CASE(empty_images_stay_empty)
{
        lg_ctx *c = open_ctx();
        const image sizes[] = {{1, 0, 5}, {3, 5, 0}, {0, 12, 12}};
        double y[ROOM];
        for (int k = 0; k < 3; k++) {
                lg_dataset *base = images(c, LG_U8, sizes[k], 2);
                lg_transform *t = lg_transforms(
                        c, lg_transform_random_horizontal_flip(c, .p = 1), lg_transform_random_vertical_flip(c, .p = 1),
                        lg_transform_random_rotation(c, 20), lg_transform_random_erasing(c, .p = 1),
                        lg_transform_to_float(c), lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(1)));
                assert_int_equal(sample(c, lg_dataset_transform(base, t), 1, y, ROOM), 0);
                t = lg_transforms(c, t, lg_transform_random_crop(c, 3, 2, .padding = 2, .value = 7));
                int64_t n = sample(c, lg_dataset_transform(base, t), 1, y, ROOM);
                assert_int_equal(n, sizes[k].c * 6);
                for (int64_t i = 0; i < n; i++)
                        assert_near(y[i], 7, 0);
        }
        assert_null(lg_dataset_transform(images(c, LG_U8, sizes[0], 2), lg_transform_resize(c, 2, 2)));
        assert_error(c, LG_ERR_SHAPE, "lg_transform_resize: x is u8 (1, 0, 5)");
        assert_null(lg_dataset_transform(images(c, LG_U8, sizes[0], 2),
                                         lg_transform_random_crop(c, 2, 2, .padding = 2, .mode = LG_PAD_REPLICATE)));
        assert_error(c, LG_ERR_SHAPE, "too small for padding 2 by replication");
        lg_close(c);
}

/* (H, W) is one channel. */
TEST_CASE(images_may_have_no_channels)
{
        lg_ctx *c = open_ctx();
        double one[ROOM], two[ROOM];
        lg_tensor *x = lg_cast(lg_mul_scalar(lg_arange(c, 0, 120, 1, .device = lg_cpu()), 2), LG_U8);
        lg_tensor *with = lg_reshape(x, LG_SHAPE(2, 1, 10, 6)), *without = lg_reshape(x, LG_SHAPE(2, 10, 6));
        lg_transform *t = lg_transforms(
                c, lg_transform_random_crop(c, 8, 8, .padding = 2), lg_transform_random_affine(c, .degrees = 40),
                lg_transform_color_jitter(c, .contrast = 0.5), lg_transform_resize(c, 5, 6), lg_transform_to_float(c));
        int64_t n = sample(c, lg_dataset_transform(lg_dataset_tensors(c, with, with), t), 1, one, ROOM);
        assert_int_equal(n, 30);
        assert_int_equal(sample(c, lg_dataset_transform(lg_dataset_tensors(c, without, without), t), 1, two, ROOM), n);
        assert_memory_equal(one, two, (size_t)n * sizeof *one);
        lg_close(c);
}

/* Each of them fits into some memory, but not all at once. */
TEST_CASE(samples_beyond_any_memory_are_refused)
{
        enum { MANY = 4 };
        lg_ctx *c = open_ctx();
        lg_dataset *d = images(c, LG_U8, (image){1, 2, 2}, 2);
        lg_transform *t[MANY + 2], *chain = NULL;
        for (int i = 0; i < MANY; i++) /* almost 2^62 bytes, each larger than the one before */
                t[i] = lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(((int64_t)1 << 59) - 4096 + 64 * i),
                                        .dtype = LG_F64);
        t[MANY] = lg_transform_new(c, rows, NULL, .shape = LG_SHAPE(1), .dtype = LG_F64);
        t[MANY + 1] = LG_END;
        chain = lg_transforms_list(c, t);
        misfit(c, d, chain, LG_ERR_MEMORY,
               "lg_transforms: what part 2 makes of x, and those before it, fits into no memory");
        for (int i = 0; i < 3; i++)
                d = lg_dataset_transform(d, t[i]);
        misfit(c, d, t[3], LG_ERR_MEMORY,
               "lg_dataset_transform: x, with what its data sets make it of, fits into no memory");
        lg_close(c);
}

/* ---- mistakes ---- */

#define REFUSED(call, text)                                                                                            \
        do {                                                                                                           \
                assert_null(call);                                                                                     \
                assert_error(c, LG_ERR_ARGUMENT, text);                                                                \
        } while (0)

TEST_CASE(options_out_of_range_are_refused)
{
        lg_ctx *c = open_ctx();
        REFUSED(lg_transform_random_crop(c, 0, 5), "lg_transform_random_crop: height is 0 and width 5");
        REFUSED(lg_transform_random_crop(c, 5, 1 << 25), "width 33554432");
        REFUSED(lg_transform_random_crop(c, 5, 5, .padding = -1), "padding is -1");
        REFUSED(lg_transform_random_crop(c, 5, 5, .mode = (lg_pad_mode)3), "mode is 3");
        REFUSED(lg_transform_random_crop(c, 5, 5, .value = NAN), "value is nan");
        REFUSED(lg_transform_center_crop(c, 5, -5), "lg_transform_center_crop: height is 5 and width -5");
        REFUSED(lg_transform_resize(c, 0, 5), "lg_transform_resize: height is 0");
        REFUSED(lg_transform_random_horizontal_flip(c, .p = 1.5),
                "lg_transform_random_horizontal_flip: p is 1.5; it must be from 0 to 1");
        REFUSED(lg_transform_random_vertical_flip(c, .p = -0.5), "lg_transform_random_vertical_flip: p is -0.5");
        REFUSED(lg_transform_random_vertical_flip(c, .p = NAN), "p is nan");
        REFUSED(lg_transform_random_rotation(c, -5), "lg_transform_random_rotation: degrees is -5");
        REFUSED(lg_transform_random_rotation(c, 5, .value = NAN), "value is nan");
        REFUSED(lg_transform_random_affine(c, .degrees = 400), "lg_transform_random_affine: degrees is 400");
        REFUSED(lg_transform_random_affine(c, .translate_x = 2), "translate_x is 2");
        REFUSED(lg_transform_random_affine(c, .translate_y = -1), "translate_y is -1");
        REFUSED(lg_transform_random_affine(c, .scale_min = -1), "scale_min is -1");
        REFUSED(lg_transform_random_affine(c, .scale_min = 1.5), "scale_max is 1; it must be from 1.5 to 1000");
        REFUSED(lg_transform_random_affine(c, .shear = 90), "shear is 90");
        REFUSED(lg_transform_color_jitter(c, .brightness = -1), "lg_transform_color_jitter: brightness is -1");
        REFUSED(lg_transform_color_jitter(c, .contrast = LG_INFINITY), "contrast is inf");
        REFUSED(lg_transform_random_erasing(c, .p = 2), "lg_transform_random_erasing: p is 2");
        REFUSED(lg_transform_random_erasing(c, .scale_max = 2), "scale_max is 2");
        REFUSED(lg_transform_random_erasing(c, .ratio_min = -1), "ratio_min is -1");
        REFUSED(lg_transform_random_erasing(c, .ratio_max = 0.1), "ratio_max is 0.1; it must be from 0.3");
        REFUSED(lg_transform_normalize(c, LG_NUMBERS(0.5, 1), LG_NUMBERS(1, 1, 1)), "mean has 2 numbers but std 3");
        REFUSED(lg_transform_normalize(c, LG_NUMBERS(0.5), LG_NUMBERS(1, 0)), "std of channel 1 is 0");
        REFUSED(lg_transform_normalize(c, LG_NUMBERS(LG_INFINITY), LG_NUMBERS(1)), "mean of channel 0 is inf");
        REFUSED(lg_transform_normalize(c, LG_NUMBERS_OF(0, NULL), LG_NUMBERS(1)), "mean has 0 numbers");
        lg_close(c);
}

TEST_CASE(samples_that_do_not_fit_are_refused)
{
        lg_ctx *c = open_ctx(), *other = open_ctx();
        lg_dataset *d = images(c, LG_U8, (image){3, 5, 4}, 2);
        lg_tensor *flat = lg_zeros(c, LG_SHAPE(2, 9), .device = lg_cpu());
        lg_tensor *whole = lg_zeros(c, LG_SHAPE(2, 1, 3, 3), .dtype = LG_I64, .device = lg_cpu());
        lg_dataset *rows_ = lg_dataset_tensors(c, flat, flat), *longs = lg_dataset_tensors(c, whole, whole);
        lg_transform *flip = lg_transform_random_horizontal_flip(c);
        misfit(c, d, NULL, LG_ERR_ARGUMENT, "lg_dataset_transform: the transform is NULL");
        misfit(c, d, lg_transform_to_float(other), LG_ERR_ARGUMENT, "of another context");
        misfit(c, rows_, flip, LG_ERR_SHAPE,
               "lg_transform_random_horizontal_flip: x is f32 (9,); an image is (C, H, W)");
        misfit(c, longs, flip, LG_ERR_DTYPE, "x is i64 (1, 3, 3); images are u8, f32 or f64");
        misfit(c, longs, lg_transform_to_float(c), LG_ERR_DTYPE, "lg_transform_to_float: x is i64");
        misfit(c, d, lg_transform_random_crop(c, 8, 4, .padding = 1), LG_ERR_SHAPE,
               "x is u8 (3, 5, 4); with padding 1 it is smaller than 8 by 4");
        misfit(c, d, lg_transform_random_crop(c, 4, 4, .padding = 4, .mode = LG_PAD_REFLECT), LG_ERR_SHAPE,
               "too small for padding 4 by reflection");
        misfit(c, images(c, LG_U8, (image){1, 4, 9}, 2),
               lg_transform_random_crop(c, 4, 4, .padding = 4, .mode = LG_PAD_REFLECT), LG_ERR_SHAPE,
               "x is u8 (1, 4, 9), too small for padding 4 by reflection");
        misfit(c, d, lg_transform_random_crop(c, 4, 4, .value = 256), LG_ERR_ARGUMENT, "256 is out of the range of u8");
        misfit(c, d, lg_transform_normalize(c, LG_NUMBERS(1, 2), LG_NUMBERS(1)), LG_ERR_SHAPE,
               "x is u8 (3, 5, 4), but there are means of 2 channels");
        misfit(c, images(c, LG_U8, (image){2, 5, 4}, 2), lg_transform_color_jitter(c), LG_ERR_SHAPE,
               "x is u8 (2, 5, 4); images have 1 channel or 3");
        misfit(c, d, lg_transforms(c, lg_transform_center_crop(c, 2, 2), lg_transform_random_crop(c, 3, 3)),
               LG_ERR_SHAPE, "x is u8 (3, 2, 2); with padding 0");
        lg_dataset *ragged =
                lg_dataset_new(c, 2, LG_FIELDS(LG_RAGGED_FIELD("t", LG_F32, LG_SHAPE(4, 4), 0)), next, NULL);
        misfit(c, ragged, flip, LG_ERR_SHAPE, "lg_dataset_transform: t is ragged; transforms take fields of one size");
        lg_shape long_ = LG_SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
        misfit(c, d, lg_transform_new(c, rows, NULL, .shape = long_), LG_ERR_SHAPE, "x has 8 dimensions");
        assert_null(lg_transforms(c, flip, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_transforms: the transform is NULL");
        assert_null(lg_dataset_transform(NULL, flip));
        assert_null(lg_transform_to_float(NULL));
        lg_close(other);
        lg_close(c);
}
