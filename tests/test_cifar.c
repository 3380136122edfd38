/* test_cifar.c - CIFAR-10 and CIFAR-100 from small files of their formats: where they are looked for, what is refused.
 */
#include <sys/stat.h>
#include "files.h"

#define PIXELS 3072

/* Pixel p of record r in file f. */
static uint8_t pixel(int f, int r, int p)
{
        return (uint8_t)(f * 50 + r * 7 + p + p / 1024);
}

/* `count` records whose last label is first + their number, behind a coarse one of it modulo 20 if that is asked. */
static void write_batch(const char *path, int f, int count, int first, bool coarse)
{
        size_t bytes = (size_t)count * (PIXELS + 1 + coarse), n = 0;
        uint8_t *data = malloc(bytes + 1);
        for (int r = 0; r < count; r++) {
                if (coarse)
                        data[n++] = (uint8_t)((first + r) % 20);
                data[n++] = (uint8_t)(first + r);
                for (int p = 0; p < PIXELS; p++)
                        data[n++] = pixel(f, r, p);
        }
        assert_int_equal(n, bytes);
        put_file(path, data, bytes);
        free(data);
}

/* The five files of the training part with 1, 2, 3, 2 and 1 records, of labels 0 to 8. */
static const int counts[] = {1, 2, 3, 2, 1};
static void write_ten(const char *sub)
{
        for (int f = 0, first = 0; f < 5; first += counts[f++]) {
                char name[80];
                snprintf(name, sizeof name, "%sdata_batch_%d.bin", sub, f + 1);
                write_batch(at(name), f, counts[f], first, false);
        }
}

static void remove_ten(const char *sub)
{
        for (int f = 0; f < 5; f++) {
                char name[80];
                snprintf(name, sizeof name, "%sdata_batch_%d.bin", sub, f + 1);
                assert_int_equal(remove(at(name)), 0);
        }
}

TEST_CASE(the_files_are_read_in_order)
{
        lg_ctx *c = open_ctx();
        write_ten("");
        lg_dataset *d = lg_dataset_cifar10(c, "train", .folder = folder);
        assert_ok(c);
        assert_int_equal(lg_dataset_size(d), 9);
        assert_string_equal(lg_dataset_classes(d).items[3], "cat");
        lg_batch b;
        assert_true(lg_loader_next(lg_loader_open(c, d, 9), &b));
        const int64_t sizes[] = {9, 3, 32, 32};
        for (int i = 0; i < 4; i++)
                assert_int_equal(lg_size_of(b.x, i), sizes[i]);
        assert_int_equal(lg_dtype_of(b.x), LG_F32);
        assert_int_equal(lg_dtype_of(b.y), LG_I64);
        assert_list(b.y, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
        float *x = malloc(9 * PIXELS * sizeof *x);
        assert_true(lg_read(b.x, x, LG_F32, 9 * PIXELS * sizeof *x));
        for (int f = 0, i = 0; f < 5; f++)
                for (int r = 0; r < counts[f]; r++, i++)
                        for (int p = 0; p < PIXELS; p++)
                                assert_near(x[i * PIXELS + p], pixel(f, r, p) / 255.0, 1e-6);
        free(x);
        assert_ok(c);
        lg_close(c);
        remove_ten("");
}

TEST_CASE(bytes_stay_bytes)
{
        lg_ctx *c = open_ctx();
        write_ten("");
        lg_batch b;
        assert_true(lg_dataset_get(lg_dataset_cifar10(c, "train", .folder = folder, .bytes = true), 2, &b));
        assert_int_equal(lg_dtype_of(b.x), LG_U8);
        assert_int_equal(lg_item_i64(lg_select(lg_flatten(b.x), 0, 1030)), pixel(1, 1, 1030));
        assert_ok(c);
        lg_close(c);
        remove_ten("");
}

TEST_CASE(a_hundred_classes_are_fine_and_coarse)
{
        lg_ctx *c = open_ctx();
        write_batch(at("test.bin"), 1, 4, 96, true);
        lg_batch b;
        assert_true(lg_loader_next(lg_loader_open(c, lg_dataset_cifar100(c, "test", .folder = folder), 4), &b));
        assert_list(b.y, 0, 96, 97, 98, 99);
        assert_near(lg_item(lg_select(lg_flatten(b.x), 0, 2 * PIXELS + 5)), pixel(1, 2, 5) / 255.0, 1e-6);
        assert_true(lg_loader_next(
                lg_loader_open(c, lg_dataset_cifar100(c, "test", .folder = folder, .coarse = true), 4), &b));
        assert_list(b.y, 0, 16, 17, 18, 19);
        assert_near(lg_item(lg_select(lg_flatten(b.x), 0, 2 * PIXELS + 5)), pixel(1, 2, 5) / 255.0, 1e-6);
        assert_true(lg_loader_next(
                lg_loader_open(c, lg_dataset_cifar100(c, "test", .folder = folder, .bytes = true), 4), &b));
        assert_int_equal(lg_dtype_of(b.x), LG_U8);
        assert_int_equal(lg_item_i64(lg_select(lg_flatten(b.x), 0, 2 * PIXELS + 5)), pixel(1, 2, 5));
        assert_ok(c);
        lg_close(c);
        assert_int_equal(remove(at("test.bin")), 0);
}

TEST_CASE(folders_have_the_archives_name)
{
        lg_ctx *c = open_ctx();
        assert_int_equal(mkdir(at("cifar-10-batches-bin"), 0777), 0);
        assert_int_equal(mkdir(at("cifar-100-binary"), 0777), 0);
        write_ten("cifar-10-batches-bin/");
        write_batch(at("cifar-100-binary/train.bin"), 0, 2, 0, true);
        assert_int_equal(lg_dataset_size(lg_dataset_cifar10(c, "train", .folder = folder)), 9);
        assert_int_equal(lg_dataset_size(lg_dataset_cifar10(c, "train", .folder = at("cifar-10-batches-bin"))), 9);
        assert_int_equal(setenv("LIBGRAD_DATA", folder, 1), 0);
        assert_int_equal(lg_dataset_size(lg_dataset_cifar10(c, "train")), 9);
        assert_int_equal(lg_dataset_size(lg_dataset_cifar100(c, "train")), 2);
        assert_int_equal(setenv("LIBGRAD_DATA", at("cifar-100-binary"), 1), 0);
        assert_int_equal(lg_dataset_size(lg_dataset_cifar100(c, "train")), 2);
        assert_ok(c);
        drop(lg_dataset_cifar10(c, "train"));
        assert_error(c, LG_ERR_IO, "there is no data_batch_1.bin in $LIBGRAD_DATA (/tmp/");
        unsetenv("LIBGRAD_DATA");
        drop(lg_dataset_cifar100(c, "test"));
        assert_error(c, LG_ERR_IO,
                     "there is no test.bin in $LIBGRAD_DATA (not set); unpack cifar-100-binary.tar.gz there");
        assert_int_equal(remove(at("cifar-10-batches-bin/data_batch_4.bin")), 0);
        drop(lg_dataset_cifar10(c, "train", .folder = folder));
        assert_error(c, LG_ERR_IO, "there is no data_batch_4.bin in /tmp/");
        write_ten("cifar-10-batches-bin/");
        remove_ten("cifar-10-batches-bin/");
        assert_int_equal(remove(at("cifar-100-binary/train.bin")), 0);
        assert_int_equal(rmdir(at("cifar-10-batches-bin")), 0);
        assert_int_equal(rmdir(at("cifar-100-binary")), 0);
        lg_close(c);
}

static void refused(lg_ctx *c, const void *data, size_t bytes, const char *text)
{
        put_file(at("test_batch.bin"), data, bytes);
        int64_t alive = lg_live_tensors(c);
        assert_null(lg_dataset_cifar10(c, "test", .folder = folder));
        assert_error(c, LG_ERR_FORMAT, text);
        assert_int_equal(lg_live_tensors(c), alive);
}

TEST_CASE(what_is_wrong_is_told)
{
        lg_ctx *c = open_ctx();
        write_batch(at("test_batch.bin"), 0, 3, 7, false);
        contents good = get_file(at("test_batch.bin"));
        assert_int_equal(lg_dataset_size(lg_dataset_cifar10(c, "test", .folder = folder)), 3);
        assert_ok(c);
        refused(c, good.data, 0, "test_batch.bin is empty; it should have records of 3073 bytes");
        refused(c, good.data, 1, "the record at byte 0 has 1 bytes; records have 3073");
        refused(c, good.data, good.bytes - 1, "is truncated: the record at byte 6146 has 3072 bytes");
        refused(c, good.data, 3074, "the record at byte 3073 has 1 bytes");
        good.data[3073] = 10;
        refused(c, good.data, good.bytes, "has label 10 at byte 3073; labels are 0 to 9");
        good.data[3073] = (char)255;
        refused(c, good.data, good.bytes, "has label 255 at byte 3073");
        good.data[0] = 0x1f;
        good.data[1] = (char)0x8b;
        refused(c, good.data, good.bytes, "is compressed by gzip");
        free(good.data);
        write_batch(at("test.bin"), 0, 3, 98, true); /* 100 is no class */
        drop(lg_dataset_cifar100(c, "test", .folder = folder));
        assert_error(c, LG_ERR_FORMAT, "lg_dataset_cifar100: ");
        contents hundred = get_file(at("test.bin"));
        hundred.data[2 * 3074 + 1] = 99;
        hundred.data[3074] = 20;
        put_file(at("test.bin"), hundred.data, hundred.bytes);
        drop(lg_dataset_cifar100(c, "test", .folder = folder)); /* also where coarse labels are not asked for */
        assert_error(c, LG_ERR_FORMAT, "has label 20 at byte 3074; labels are 0 to 19 there");
        free(hundred.data);
        drop(lg_dataset_cifar10(c, "validation", .folder = folder));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_cifar10: the part is \"validation\"");
        drop(lg_dataset_cifar100(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "lg_dataset_cifar100: the part is \"NULL\"");
        lg_close(c);
        assert_int_equal(remove(at("test_batch.bin")) + remove(at("test.bin")), 0);
}

TEST_CASE(every_failing_allocation_is_told)
{
        write_batch(at("test_batch.bin"), 0, 3, 7, false);
        for (int64_t n = 1, done = 0; !done; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                arm(&f, n, false);
                lg_dataset *d = lg_dataset_cifar10(c, "test", .folder = folder);
                done = f.calls < n;
                if (d)
                        assert_ok(c);
                else
                        assert_error(c, LG_ERR_MEMORY, "memory");
                assert_true(d || !done);
                lg_dataset_free(d);
                assert_int_equal(lg_live_tensors(c), 0);
                lg_close(c);
                assert_int_equal(f.bytes, 0);
        }
        assert_int_equal(remove(at("test_batch.bin")), 0);
}

AROUND_TESTS(make_folder, remove_folder);
