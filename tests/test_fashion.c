/* test_fashion.c - the data set Fashion-MNIST from small files of its format: where it is looked for, what is refused.
 */
#include <sys/stat.h>
#include <unistd.h>
#include "test.h"

static char folder[] = "/tmp/libgrad-fashion-XXXXXX";

static void write_idx(const char *name, const uint8_t *header, size_t header_bytes, const uint8_t *data, size_t bytes)
{
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(header, 1, header_bytes, f), header_bytes);
        assert_int_equal(fwrite(data, 1, bytes, f), bytes);
        assert_int_equal(fclose(f), 0);
}

static void write_images(uint8_t count, uint8_t width)
{
        uint8_t header[] = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, width};
        uint8_t data[4 * 28 * 28];
        for (size_t i = 0; i < sizeof data; i++)
                data[i] = (uint8_t)(i % 256);
        write_idx("train-images-idx3-ubyte", header, sizeof header, data, (size_t)count * 28 * width);
}

static void write_labels(uint8_t count, uint8_t last)
{
        uint8_t header[] = {0, 0, 8, 1, 0, 0, 0, count}, data[4] = {3, 1, 4, 1};
        data[count - 1] = last;
        write_idx("train-labels-idx1-ubyte", header, sizeof header, data, count);
}

TEST_CASE(a_folder_is_read)
{
        lg_ctx *c = open_ctx();
        write_images(3, 28);
        write_labels(3, 9);
        lg_dataset *d = lg_dataset_fashion_mnist(c, "train", .folder = folder);
        assert_ok(c);
        assert_int_equal(lg_dataset_size(d), 3);
        assert_int_equal(lg_dataset_classes(d).count, 10);
        assert_string_equal(lg_dataset_classes(d).items[9], "Ankle boot");
        lg_loader *l = lg_loader_open(c, d, 3);
        lg_batch b;
        assert_true(lg_loader_next(l, &b));
        assert_int_equal(lg_ndim_of(b.x), 4);
        assert_near(lg_item(lg_select(lg_flatten(b.x), 0, 51)), 0.2, 1e-6); /* 51 / 255 */
        assert_list(b.y, 0, 3, 1, 9);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(bytes_stay_bytes)
{
        lg_ctx *c = open_ctx();
        write_images(3, 28);
        write_labels(3, 9);
        lg_dataset *d = lg_dataset_fashion_mnist(c, "train", .folder = folder, .bytes = true);
        lg_batch b;
        assert_true(lg_dataset_get(d, 1, &b));
        assert_int_equal(lg_dtype_of(b.x), LG_U8);
        assert_int_equal(lg_item_i64(lg_select(lg_flatten(b.x), 0, 5)), (784 + 5) % 256);
        assert_int_equal(lg_item_i64(b.y), 1);
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(the_environment_names_a_folder)
{
        lg_ctx *c = open_ctx();
        write_images(2, 28);
        write_labels(2, 0);
        assert_int_equal(setenv("LIBGRAD_DATA", folder, 1), 0);
        assert_int_equal(lg_dataset_size(lg_dataset_fashion_mnist(c, "train")), 2);
        assert_ok(c);
        unsetenv("LIBGRAD_DATA");
        lg_close(c);
}

TEST_CASE(what_is_wrong_is_told)
{
        lg_ctx *c = open_ctx();
        write_images(2, 28);
        write_labels(3, 0);
        assert_null(lg_dataset_fashion_mnist(c, "train", .folder = folder));
        assert_error(c, LG_ERR_FORMAT, "labels");
        write_labels(2, 10);
        assert_null(lg_dataset_fashion_mnist(c, "train", .folder = folder));
        assert_error(c, LG_ERR_FORMAT, "10");
        write_images(2, 27);
        write_labels(2, 0);
        assert_null(lg_dataset_fashion_mnist(c, "train", .folder = folder));
        assert_error(c, LG_ERR_FORMAT, "28");
        assert_null(lg_dataset_fashion_mnist(c, "test", .folder = folder));
        assert_error(c, LG_ERR_IO, folder);
        assert_null(lg_dataset_fashion_mnist(c, "validation", .folder = folder));
        assert_error(c, LG_ERR_ARGUMENT, "validation");
        lg_close(c);
}

static int make_folder(void **state)
{
        (void)state;
        return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
        (void)state;
        char path[128];
        snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
        unlink(path);
        snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", folder);
        unlink(path);
        return rmdir(folder);
}

AROUND_TESTS(make_folder, remove_folder);
