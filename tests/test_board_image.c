/* test_board_image.c - pictures in files for TensorBoard: their pixels, rows of several, wrong ones. */
#include "files.h"
#include "io/png_codec.h"
#include "io/protobuf.h"

/* ---- reading ---- */

typedef struct picture {
        int64_t height, width, channels;
        uint8_t pixels[1 << 16]; /* (channels, height, width) */
} picture;

/* Reads the picture of the only file's last record, and removes the file. */
static void read_picture(picture *ret)
{
        char path[512] = "";
        DIR *d = opendir(folder);
        for (struct dirent *e; (e = readdir(d));)
                if (*e->d_name != '.')
                        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        closedir(d);
        contents file = get_file(path);
        const uint64_t skipped = (uint64_t)(unsigned char)file.data[0] + 16; /* the record of the version is short */
        lg__proto p = {.rest = {file.data + skipped + 12, file.bytes - skipped - 16}};
        while (lg__proto_next(&p) && p.field != 5)
                ;
        static const int64_t path_in[] = {1, LG__BYTES}; /* Summary.value */
        lg__proto summary = {.rest = p.bytes};
        assert_true(lg__proto_next(&summary) && summary.field == path_in[0]);
        lg__proto value = {.rest = summary.bytes};
        while (lg__proto_next(&value) && value.field != 4)
                ;
        lg__proto image = {.rest = value.bytes};
        lg__span png = {0};
        while (lg__proto_next(&image)) {
                if (image.field == 4)
                        png = image.bytes;
                else
                        *(image.field == 1   ? &ret->height
                          : image.field == 2 ? &ret->width
                                             : &ret->channels) = (int64_t)image.bits;
        }
        lg__png_facts facts;
        lg__png_wrong wrong;
        if (!lg__png_look(png.s, png.bytes, (int64_t)png.bytes, &facts, &wrong))
                fail_msg("%s", wrong.s);
        assert_true(facts.height == ret->height && facts.width == ret->width);
        assert_true(ret->height * ret->width * ret->channels <= (int64_t)sizeof ret->pixels);
        void *scratch = malloc(facts.scratch);
        if (!lg__png_decode(&facts, png.s, png.bytes, (int)ret->channels, ret->pixels, scratch, &wrong))
                fail_msg("%s", wrong.s);
        free(scratch);
        free(file.data);
        unlink(path);
}

static lg_tensor *bytes_of(lg_ctx *c, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        return lg_cast(
                lg_reshape(lg_remainder_scalar(lg_mul_scalar(lg_arange(c, 0, (double)n, 1, .dtype = LG_I64), 37), 251),
                           shape),
                LG_U8);
}

static void write_and_read(lg_ctx *c, lg_tensor *t, picture *ret)
{
        lg_board *b = lg_board_open(c, folder);
        if (!lg_board_image(b, "x", t, 3))
                fail_msg("%s", lg_error(c));
        assert_true(lg_board_close(b));
        read_picture(ret);
}

/* ---- tests ---- */

TEST_CASE(pictures_of_bytes)
{
        static picture p;
        static double expect[4096];
        lg_ctx *c = open_ctx();
        const lg_shape shapes[] = {LG_SHAPE(1, 1),    LG_SHAPE(7, 5),    LG_SHAPE(1, 7, 5),
                                   LG_SHAPE(3, 7, 5), LG_SHAPE(4, 7, 5), LG_SHAPE(1, 3, 7, 5)};
        for (int i = 0; i < 6; i++) {
                lg_tensor *x = bytes_of(c, shapes[i]);
                for (int k = 0; k < 2; k++) {
                        lg_tensor *t = k ? lg_transpose(x, -1, -2) : x;
                        write_and_read(c, t, &p);
                        const int64_t n = read_all(t, expect, 4096);
                        assert_true(p.height == lg_size_of(t, -2) && p.width == lg_size_of(t, -1) &&
                                    p.channels * p.height * p.width == n);
                        for (int64_t j = 0; j < n; j++)
                                assert_true(p.pixels[j] == expect[j]);
                }
        }
        lg_close(c);
}

TEST_CASE(pictures_of_floats)
{
        static const lg_dtype dtypes[] = {LG_F32, LG_F64, LG_F16, LG_BF16};
        static picture p;
        lg_ctx *c = open_ctx();
        const float values[] = {0, 1, 0.5f, 0.25f, -1, 2, NAN, INFINITY};
        const uint8_t expect[] = {0, 255, 127, 63, 0, 255, 0, 255};
        for (int i = 0; i < 4; i++) {
                lg_tensor *t = lg_cast(lg_from(c, values, LG_SHAPE(1, 2, 4)), dtypes[i]);
                lg_set_requires_grad(t, true);
                write_and_read(c, t, &p);
                assert_memory_equal(p.pixels, expect, 8);
        }
        assert_true(lg_grad_mode(c));
        lg_close(c);
}

TEST_CASE(several_pictures_are_rows_of_eight)
{
        static picture p;
        static double values[1 << 14];
        lg_ctx *c = open_ctx();
        const int counts[] = {1, 3, 8, 9, 17};
        for (int i = 0; i < 5; i++) {
                const int n = counts[i], columns = n < 8 ? n : 8, rows = (n + 7) / 8;
                lg_tensor *t = bytes_of(c, LG_SHAPE(n, 3, 4, 5));
                write_and_read(c, t, &p);
                read_all(t, values, 1 << 14);
                assert_true(p.height == rows * 4 && p.width == columns * 5 && p.channels == 3);
                for (int64_t j = 0; j < 3 * p.height * p.width; j++) {
                        const int64_t plane = j / (p.height * p.width), y = j / p.width % p.height, x = j % p.width;
                        const int64_t image = y / 4 * columns + x / 5;
                        const double is = image < n ? values[((image * 3 + plane) * 4 + y % 4) * 5 + x % 5] : 0;
                        assert_true(p.pixels[j] == is);
                }
        }
        lg_close(c);
}

TEST_CASE(wrong_pictures)
{
        lg_ctx *c = open_ctx();
        lg_board *b = lg_board_open(c, folder);
        const lg_shape shapes[] = {LG_SHAPE_0D,          LG_SHAPE(5),       LG_SHAPE(2, 5, 5), LG_SHAPE(0, 5, 5),
                                   LG_SHAPE(0, 3, 5, 5), LG_SHAPE(3, 0, 5), LG_SHAPE(5, 0),    LG_SHAPE(1, 1, 1, 5, 5)};
        for (int i = 0; i < 8; i++) {
                assert_false(lg_board_image(b, "x", lg_zeros(c, shapes[i]), 1));
                assert_error(c, LG_ERR_SHAPE, "lg_board_image: t is f32");
        }
        const lg_dtype dtypes[] = {LG_I64, LG_I32, LG_BOOL};
        for (int i = 0; i < 3; i++) {
                assert_false(lg_board_image(b, "x", lg_zeros(c, LG_SHAPE(5, 5), .dtype = dtypes[i]), 1));
                assert_error(c, LG_ERR_DTYPE, "pictures are u8, or of a float dtype from 0 to 1");
        }
        lg_tensor *wide = lg_expand(lg_zeros(c, LG_SHAPE(1, 1), .dtype = LG_U8), LG_SHAPE(1, (int64_t)1 << 31));
        assert_false(lg_board_image(b, "x", wide, 1));
        assert_error(c, LG_ERR_SHAPE, "a picture has 1 to 268435455 pixels in a row");
        assert_false(lg_board_image(b, "x", NULL, 1));
        assert_error(c, LG_ERR_ARGUMENT, "lg_board_image: t is NULL");
        lg_close(c);
        assert_int_equal(count_files(true), 1);
}

TEST_CASE(every_failing_allocation_of_a_picture)
{
        for (int n = 1, done = 0; !done; n++) {
                failing memory = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
                test_device(c);
                lg_tensor *t = lg_ones(c, LG_SHAPE(9, 3, 40, 50));
                lg_board *b = lg_board_open(c, folder);
                const int64_t live = lg_live_tensors(c);
                arm(&memory, n, false);
                const bool ok = lg_board_image(b, "x", t, 1);
                done = memory.calls < n;
                arm(&memory, 0, false);
                assert_int_equal(ok, done);
                if (!done)
                        assert_error(c, LG_ERR_MEMORY, "");
                assert_int_equal(lg_live_tensors(c), live);
                lg_close(c);
                assert_int_equal(memory.bytes, 0);
                count_files(true);
        }
}

AROUND_TESTS(make_folder, remove_folder);
