/* test_images.c - folders of pictures as data sets: classes, sizes, threads, files that are wrong or change. */
#include <sys/stat.h>
#include "files.h"

static char root[80];

/* A picture of c x h x w whose bytes follow from `seed`. */
static void put_picture(lg_ctx *c, const char *name, int64_t channels, int64_t h, int64_t w, int seed)
{
        char path[600];
        uint8_t bytes[4 * 64 * 64];
        for (int64_t i = 0; i < channels * h * w; i++)
                bytes[i] = (uint8_t)(seed * 37 + i * 11 + i / 7);
        snprintf(path, sizeof path, "%s/%s", root, name);
        lg_scope scope = lg_scope_begin(c);
        assert_true(
                lg_write_png(lg_from(c, bytes, LG_SHAPE(channels, h, w), .dtype = LG_U8, .device = lg_cpu()), path));
        lg_scope_end(c, scope);
}

static void new_folder(const char *name)
{
        char path[600];
        snprintf(path, sizeof path, "%s/%s", root, name);
        assert_int_equal(mkdir(path, 0755), 0);
}

static const char *in_root(const char *name)
{
        static char path[600];
        snprintf(path, sizeof path, "%s/%s", root, name);
        return path;
}

static int setup(void **state)
{
        if (make_folder(state))
                return -1;
        snprintf(root, sizeof root, "%s/pets", folder);
        return 0;
}

static int clear(void **state)
{
        char command[300];
        (void)state;
        snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", root, root);
        return system(command);
}

static int teardown(void **state)
{
        char command[300];
        snprintf(command, sizeof command, "rm -rf '%s'", root);
        return system(command) || remove_folder(state);
}

static void put_pets(lg_ctx *c)
{
        new_folder("dog");
        new_folder("cat");
        new_folder("cat/young");
        new_folder(".hidden");
        put_file(in_root("README"), "no class", 8);
        put_file(in_root("cat/notes.txt"), "no picture", 10);
        put_picture(c, "cat/b.png", 3, 4, 5, 1);
        put_picture(c, "cat/a.PNG", 3, 4, 5, 2);
        put_picture(c, "cat/young/a.png", 1, 4, 5, 3);
        put_picture(c, "dog/1.png", 4, 4, 5, 4);
}

/* A sample is what lg_read_png reads, in [0, 1]. */
static void assert_picture(lg_tensor *x, const char *name, int channels)
{
        lg_ctx *c = lg_ctx_of(x);
        lg_tensor *u8 = lg_read_png(c, in_root(name), .channels = channels);
        lg_tensor *ref = lg_mul_scalar(lg_cast(u8, LG_F32), 1.0 / 255);
        assert_true(lg_item(lg_amax(lg_abs(lg_sub(lg_to(x, lg_cpu()), ref)))) < 1e-6);
}

TEST_CASE_WITH(classes_are_folders, clear, NULL)
{
        static const char *const names[] = {"cat/a.PNG", "cat/b.png", "cat/young/a.png", "dog/1.png"};
        lg_ctx *c = open_ctx();
        put_pets(c);
        lg_dataset *d = lg_dataset_image_folder(c, root);
        assert_ok(c);
        assert_int_equal(lg_dataset_size(d), 4);
        lg_batch b;
        for (int i = 0; i < 4; i++) {
                assert_true(lg_dataset_get(d, i, &b));
                assert_picture(b.x, names[i], 3);
                assert_int_equal(lg_item_i64(b.y), i == 3);
        }
        lg_dataset *grey = lg_dataset_image_folder(c, root, .channels = 1);
        assert_true(lg_dataset_get(grey, 1, &b));
        assert_picture(b.x, names[1], 1);
        lg_dataset *bytes = lg_dataset_image_folder(c, root, .bytes = true);
        assert_true(lg_dataset_get(bytes, 0, &b));
        assert_int_equal(lg_dtype_of(b.x), LG_U8);
        assert_picture(lg_mul_scalar(lg_cast(b.x, LG_F32), 1.0 / 255), names[0], 3);
        /* the classes, also of what is made of the data set */
        lg_dataset *part =
                lg_dataset_transform(lg_dataset_subset(d, LG_INTS(3)), lg_transform_random_horizontal_flip(c));
        lg_dataset_free(d);
        lg_names classes = lg_dataset_classes(part);
        assert_int_equal(classes.count, 2);
        assert_string_equal(classes.items[0], "cat");
        assert_string_equal(classes.items[1], "dog");
        assert_int_equal(lg_dataset_classes(NULL).count, 0);
        assert_true(lg_dataset_get(part, 0, &b));
        lg_dataset *plain = lg_dataset_tensors(c, lg_unsqueeze(b.x, 0), lg_unsqueeze(b.y, 0));
        assert_int_equal(lg_dataset_classes(lg_dataset_concat(c, part, plain)).count, 2);
        assert_int_equal(lg_dataset_classes(lg_dataset_concat(c, plain, part)).count, 0);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE_WITH(sizes_are_made_one, clear, NULL)
{
        lg_ctx *c = open_ctx();
        new_folder("x");
        put_picture(c, "x/1.png", 3, 9, 31, 1);
        put_picture(c, "x/2.png", 3, 6, 8, 2);
        put_picture(c, "x/3.png", 3, 40, 3, 3);
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_FORMAT, "2.png has 6 x 8 pixels, others 9 x 31; .height and .width resize them");
        lg_dataset *d = lg_dataset_image_folder(c, root, .height = 6, .width = 8);
        assert_ok(c);
        for (int i = 0; i < 3; i++) {
                char name[20];
                lg_batch b, ref;
                snprintf(name, sizeof name, "x/%d.png", i + 1);
                lg_tensor *u8 = lg_unsqueeze(lg_read_png(c, in_root(name)), 0);
                lg_dataset *one =
                        lg_dataset_transform(lg_dataset_list(c, LG_LIST(u8)),
                                             lg_transforms(c, lg_transform_resize(c, 6, 8), lg_transform_to_float(c)));
                assert_true(lg_dataset_get(d, i, &b) && lg_dataset_get(one, 0, &ref));
                assert_true(lg_item(lg_amax(lg_abs(lg_sub(b.x, ref.x)))) < 1e-6);
        }
        lg_close(c);
}

TEST_CASE_WITH(threads_make_the_same, clear, NULL)
{
        float first[3][24][3 * 8 * 8];
        for (int workers = 0; workers < 3; workers++) {
                lg_ctx *c = open_ctx();
                if (!workers) {
                        new_folder("a");
                        new_folder("b");
                        for (int i = 0; i < 24; i++) {
                                char name[20];
                                snprintf(name, sizeof name, "%c/%d.png", 'a' + i % 2, i);
                                put_picture(c, name, i % 3 ? 3 : 1, 5 + i, 30 - i, i);
                        }
                }
                lg_dataset *d = lg_dataset_image_folder(c, root, .height = 8, .width = 8);
                lg_loader *l = lg_loader_open(c, d, 5, .shuffle = true, .seed = 6, .workers = workers);
                lg_dataset_free(d);
                int n = 0;
                for (lg_batch b; lg_loader_next(l, &b); n += (int)lg_size_of(b.x, 0))
                        assert_true(lg_read(b.x, first[workers][n], LG_F32, (size_t)lg_numel(b.x) * sizeof(float)));
                assert_int_equal(n, 24);
                assert_ok(c);
                assert_memory_equal(first[workers], first[0], sizeof first[0]);
                lg_close(c);
        }
}

TEST_CASE_WITH(folders_that_are_wrong, clear, NULL)
{
        lg_ctx *c = open_ctx();
        assert_null(lg_dataset_image_folder(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "the path is NULL");
        assert_null(lg_dataset_image_folder(c, in_root("none")));
        assert_error(c, LG_ERR_IO, "none cannot be read: No such file");
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_FORMAT, "has no folders; each class has one of its name");
        assert_null(lg_dataset_image_folder(c, root, .height = 5));
        assert_error(c, LG_ERR_ARGUMENT, ".height is 5 and .width 0; give both, or neither");
        assert_null(lg_dataset_image_folder(c, root, .height = -5, .width = 3));
        assert_error(c, LG_ERR_ARGUMENT, "-5");
        assert_null(lg_dataset_image_folder(c, root, .channels = 2));
        assert_error(c, LG_ERR_ARGUMENT, ".channels is 2");
        put_pets(c);
        new_folder("horse");
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_FORMAT, "horse has no PNG files; each folder there is a class");
        put_file(in_root("horse/1.png"), "no picture", 10);
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_FORMAT, "horse/1.png is no PNG file");
        assert_int_equal(unlink(in_root("horse/1.png")) || symlink("..", in_root("horse/up")), 0);
        put_picture(c, "horse/1.png", 3, 4, 5, 9);
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_FORMAT, "is more than 32 folders deep");
        assert_int_equal(unlink(in_root("horse/up")) || symlink("nowhere", in_root("horse/2.png")), 0);
        assert_null(lg_dataset_image_folder(c, root));
        assert_error(c, LG_ERR_IO, "horse/2.png cannot be read: No such file");
        lg_close(c);
}

TEST_CASE_WITH(pictures_that_change, clear, NULL)
{
        for (int workers = 0; workers < 3; workers++) {
                clear(state);
                lg_ctx *c = open_ctx();
                put_pets(c);
                lg_dataset *d = lg_dataset_image_folder(c, root);
                lg_loader *l = lg_loader_open(c, d, 2, .workers = workers);
                lg_batch b;
                put_picture(c, "cat/young/a.png", 3, 6, 5, 1);
                assert_true(lg_loader_next(l, &b));
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_FORMAT, "young/a.png is another picture than when the data set was made");
                put_file(in_root("cat/young/a.png"), "short", 5);
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_FORMAT, "young/a.png is no PNG file");
                unlink(in_root("cat/young/a.png"));
                assert_false(lg_loader_next(l, &b));
                assert_error(c, LG_ERR_IO, "young/a.png cannot be opened: No such file");
                put_picture(c, "cat/young/a.png", 1, 4, 5, 3);
                assert_true(lg_loader_next(l, &b));
                assert_int_equal(b.index, 1);
                lg_close(c);
        }
}

/* Of no more pixels, but it takes more memory to resize it; then one that fits. */
TEST_CASE_WITH(flat_pictures_that_become_tall, clear, NULL)
{
        lg_ctx *c = open_ctx();
        lg_batch b;
        new_folder("cat");
        put_picture(c, "cat/1.png", 1, 1, 2000, 1);
        put_picture(c, "cat/2.png", 1, 1, 16000, 2);
        lg_dataset *d = lg_dataset_image_folder(c, root, .height = 2, .width = 1000, .channels = 1);
        assert_ok(c);
        lg_tensor *tall = lg_full(c, LG_SHAPE(1, 2000, 1), 9, .dtype = LG_U8, .device = lg_cpu());
        assert_true(lg_write_png(tall, in_root("cat/1.png")));
        assert_false(lg_dataset_get(d, 0, &b));
        assert_error(c, LG_ERR_FORMAT, "cat/1.png is another picture than when the data set was made");
        put_picture(c, "cat/1.png", 1, 1, 1900, 1);
        assert_true(lg_dataset_get(d, 0, &b));
        lg_close(c);
}

TEST_CASE_WITH(every_allocation_may_fail, clear, NULL)
{
        failing f = {0};
        lg_ctx *c = open_ctx();
        put_pets(c);
        lg_close(c);
        bool done = false;
        int64_t n = 1;
        for (; !done && n < 1000; n++) {
                c = lg_open(.threads = 1, FAILING(&f));
                arm(&f, n, false);
                lg_dataset *d = lg_dataset_image_folder(c, root, .height = 3, .width = 3);
                lg_batch b;
                done = d && lg_dataset_get(d, 3, &b);
                arm(&f, 0, false);
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
        assert_in_range(n, 4, 999);
}

AROUND_TESTS(setup, teardown);
