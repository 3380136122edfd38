/* test_png.c - PNG files of every kind against the pixels of tests/data/png.py, what lg_write_png writes, damaged
 * files.
 */
#include <zlib.h>
#include "io/png_codec.h"
#include "io/source.h"
#include "files.h"

#define MOST_LINE 8192
#define MOST_BYTES 2048

/* ---- files made by others ---- */

typedef struct example {
        char name[64];
        int channels, height, width;
        uint8_t file[MOST_BYTES], planes[3][MOST_BYTES]; /* of 1, 3 and 4 channels */
        size_t bytes;
} example;

static size_t from_hex(const char *text, uint8_t *out)
{
        size_t n = strlen(text) / 2;
        assert_true(n <= MOST_BYTES);
        for (size_t i = 0; i < n; i++) {
                unsigned v;
                assert_int_equal(sscanf(text + 2 * i, "%2x", &v), 1);
                out[i] = (uint8_t)v;
        }
        return n;
}

static FILE *open_examples(void)
{
        char path[4096];
        const char *data = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/png.txt", data ? data : "tests/data");
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        return f;
}

static bool next_example(FILE *f, example *e)
{
        char hex[4][MOST_LINE];
        if (fscanf(f, "%63s %d %d %d %8191s %8191s %8191s %8191s", e->name, &e->channels, &e->height, &e->width, hex[0],
                   hex[1], hex[2], hex[3]) != 8)
                return false;
        e->bytes = from_hex(hex[0], e->file);
        const int channels[] = {1, 3, 4};
        for (int i = 0; i < 3; i++)
                assert_int_equal(from_hex(hex[i + 1], e->planes[i]), channels[i] * e->height * e->width);
        return true;
}

/* The example of that name. */
static void find_example(const char *name, example *e)
{
        FILE *f = open_examples();
        bool found = false;
        while (!found && next_example(f, e))
                found = !strcmp(e->name, name);
        fclose(f);
        assert_true(found);
}

static void assert_planes(const char *name, const lg_tensor *t, int channels, const example *e)
{
        uint8_t got[MOST_BYTES];
        if (!t)
                fail_msg("%s: there is no tensor", name);
        assert_int_equal(lg_dtype_of(t), LG_U8);
        assert_int_equal(lg_ndim_of(t), 3);
        assert_int_equal(lg_size_of(t, 0), channels);
        assert_int_equal(lg_size_of(t, 1), e->height);
        assert_int_equal(lg_size_of(t, 2), e->width);
        assert_true(lg_read(t, got, LG_U8, (size_t)lg_numel(t)));
        if (memcmp(got, e->planes[channels == 1 ? 0 : channels - 2], (size_t)lg_numel(t)) != 0)
                fail_msg("%s: %d channels are other ones", name, channels);
}

TEST_CASE(every_kind_is_read)
{
        lg_ctx *c = open_ctx();
        FILE *f = open_examples();
        int count = 0;
        for (example e; next_example(f, &e); count++) {
                put_file(at("e.png"), e.file, e.bytes);
                assert_planes(e.name, lg_read_png(c, at("e.png")), e.channels, &e);
                for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
                        assert_planes(e.name, lg_read_png(c, at("e.png"), .channels = channels), channels, &e);
                assert_ok(c);
        }
        fclose(f);
        assert_int_equal(count, 64);
        lg_close(c);
}

TEST_CASE(what_follows_the_picture_is_left)
{
        lg_ctx *c = open_ctx();
        example e;
        find_example("rgba8_interlaced", &e);
        memset(e.file + e.bytes, 7, 20);
        put_file(at("e.png"), e.file, e.bytes + 20);
        assert_planes(e.name, lg_read_png(c, at("e.png")), 3, &e);
        assert_ok(c);
        lg_close(c);
}

/* ---- files of one's own ---- */

static lg_tensor *bytes_like(lg_ctx *c, lg_shape shape)
{
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++)
                n *= shape.size[i];
        uint8_t *v = malloc((size_t)n);
        for (int64_t i = 0; i < n; i++)
                v[i] = (uint8_t)(i * i * 31 / 7 + i / 5);
        lg_tensor *t = lg_from(c, v, shape, .dtype = LG_U8);
        free(v);
        return t;
}

static void assert_same(const lg_tensor *a, const lg_tensor *b)
{
        assert_true(a && b);
        assert_int_equal(lg_numel(a), lg_numel(b));
        size_t n = (size_t)lg_numel(a);
        uint8_t *x = malloc(n), *y = malloc(n);
        assert_true(lg_read(a, x, LG_U8, n) && lg_read(b, y, LG_U8, n));
        assert_memory_equal(x, y, n);
        free(x);
        free(y);
}

TEST_CASE(what_is_written_is_read)
{
        lg_ctx *c = open_ctx();
        const lg_shape shapes[] = {LG_SHAPE(1, 1, 1), LG_SHAPE(1, 31, 17),  LG_SHAPE(3, 200, 301),
                                   LG_SHAPE(4, 9, 8), LG_SHAPE(3, 1, 5000), LG_SHAPE(4, 700, 1)};
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                lg_tensor *t = bytes_like(c, shapes[i]); /* on the device under test */
                assert_true(lg_write_png(t, at("w.png")));
                assert_same(t, lg_read_png(c, at("w.png"), .channels = (int)shapes[i].size[0]));
        }
        lg_tensor *flat = bytes_like(c, LG_SHAPE(6, 5)), *turned = lg_transpose(flat, 0, 1);
        assert_true(lg_write_png(flat, at("w.png")));
        assert_same(flat, lg_read_png(c, at("w.png")));
        assert_true(lg_write_png(turned, at("w.png")));
        assert_same(lg_contiguous(turned), lg_read_png(c, at("w.png")));
        assert_int_equal(count_files(false), 1 + 1); /* e.png of above, and no temporary file */
        assert_ok(c);
        lg_close(c);
}

TEST_CASE(wrong_calls_are_told)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = bytes_like(c, LG_SHAPE(3, 4, 5));
        assert_false(lg_write_png(lg_cast(t, LG_F32), at("x.png")));
        assert_error(c, LG_ERR_DTYPE, "lg_write_png: t is f32 (3, 4, 5)");
        assert_false(lg_write_png(lg_reshape(t, LG_SHAPE(5, 4, 3)), at("x.png")));
        assert_error(c, LG_ERR_SHAPE, "(5, 4, 3)");
        assert_false(lg_write_png(lg_reshape(t, LG_SHAPE(60)), at("x.png")));
        assert_error(c, LG_ERR_SHAPE, "(60,)");
        assert_false(lg_write_png(lg_zeros(c, LG_SHAPE(3, 0, 5), .dtype = LG_U8), at("x.png")));
        assert_error(c, LG_ERR_SHAPE, "(3, 0, 5)");
        assert_false(lg_write_png(t, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "path is NULL");
        assert_false(lg_write_png(NULL, at("x.png")));
        assert_false(lg_write_png(t, at("nowhere/x.png")));
        assert_error(c, LG_ERR_IO, "nowhere");
        drop(lg_read_png(c, at("e.png"), .channels = 2));
        assert_error(c, LG_ERR_ARGUMENT, ".channels is 2");
        drop(lg_read_png(c, at("e.png"), .channels = -1));
        assert_error(c, LG_ERR_ARGUMENT, ".channels is -1");
        drop(lg_read_png(c, NULL));
        assert_error(c, LG_ERR_ARGUMENT, "path is NULL");
        drop(lg_read_png(c, at("none.png")));
        assert_error(c, LG_ERR_IO, "none.png");
        drop(lg_read_png(c, folder));
        assert_error(c, LG_ERR_IO, "a folder");
        lg_close(c);
}

/* ---- damaged files ---- */

/* The file's bytes are refused. */
static void refused(lg_ctx *c, const uint8_t *file, size_t bytes, const char *text)
{
        int64_t alive = lg_live_tensors(c);
        put_file(at("d.png"), file, bytes);
        assert_null(lg_read_png(c, at("d.png")));
        assert_error(c, LG_ERR_FORMAT, text);
        assert_int_equal(lg_live_tensors(c), alive);
}

TEST_CASE(every_truncation_is_told)
{
        const char *const names[] = {"rgb8", "palette4_interlaced_clear", "grey16"};
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 3; k++) {
                example e;
                find_example(names[k], &e);
                for (size_t n = 0; n < e.bytes; n++)
                        refused(c, e.file, n, n < 16 ? "is no PNG file" : "d.png is ");
        }
        lg_close(c);
}

/* Checksums find every byte that is wrong, wherever it is. */
TEST_CASE(every_flipped_byte_is_told)
{
        const char *const names[] = {"rgba8", "palette2_clear", "grey1_interlaced"};
        lg_ctx *c = open_ctx();
        for (int k = 0; k < 3; k++) {
                example e;
                find_example(names[k], &e);
                for (size_t i = 0; i < e.bytes; i++)
                        for (int bit = 0; bit < 8; bit += 3) {
                                e.file[i] ^= (uint8_t)(1 << bit);
                                refused(c, e.file, e.bytes, "lg_read_png: ");
                                e.file[i] ^= (uint8_t)(1 << bit);
                        }
        }
        lg_close(c);
}

static void put_u32(uint8_t *to, uint32_t v)
{
        for (int i = 0; i < 4; i++)
                to[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A header's checksum, and those of all chunks behind it. */
static void seal(uint8_t *file, size_t bytes)
{
        for (size_t at = 8; at + 12 <= bytes;) {
                size_t n =
                        (size_t)file[at] << 24 | (size_t)file[at + 1] << 16 | (size_t)file[at + 2] << 8 | file[at + 3];
                if (n > bytes - at - 12)
                        return;
                put_u32(file + at + 8 + n, (uint32_t)crc32(0, file + at + 4, (unsigned)n + 4));
                at += 12 + n;
        }
}

/* Damage under right checksums. */
TEST_CASE(every_sealed_flip_is_a_picture_or_an_error)
{
        const char *const names[] = {"rgb16_clear", "palette8_interlaced_clear", "grey4", "sides_1_5_1"};
        lg_ctx *c = open_ctx();
        int pictures = 0, errors = 0;
        for (int k = 0; k < 4; k++) {
                example e, damaged;
                find_example(names[k], &e);
                for (size_t i = 8; i < e.bytes; i++)
                        for (int bit = 0; bit < 8; bit++) {
                                damaged = e;
                                damaged.file[i] ^= (uint8_t)(1 << bit);
                                seal(damaged.file, damaged.bytes);
                                put_file(at("d.png"), damaged.file, damaged.bytes);
                                lg_tensor *t = lg_read_png(c, at("d.png"), .channels = 4);
                                if (t) {
                                        pictures++;
                                        lg_free(lg_keep(t));
                                        continue;
                                }
                                assert_error(c, LG_ERR_FORMAT, "lg_read_png: ");
                                errors++;
                        }
        }
        assert_true(pictures > 100 && errors > 100);
        lg_close(c);
}

TEST_CASE(headers_are_checked)
{
        static const struct {
                size_t at;
                uint8_t value;
                const char *text;
        } wrong[] = {{24, 3, "colour type 2 of 3 bits"},
                     {24, 0, "of 0 bits"},
                     {24, 4, "of 4 bits"},
                     {24, 255, "of 255 bits"},
                     {25, 1, "colour type 1"},
                     {25, 5, "colour type 5"},
                     {25, 200, "colour type 200"},
                     {26, 1, "methods 1, 0 and 0"},
                     {27, 2, "methods 0, 2 and 0"},
                     {28, 2, "methods 0, 0 and 2"},
                     {19, 0, "0 x 5 pixels"},
                     {16, 128, "pixels"},
                     {20, 255, "pixels"}};
        lg_ctx *c = open_ctx();
        example e;
        find_example("rgb8", &e);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
                example damaged = e;
                damaged.file[wrong[i].at] = wrong[i].value;
                seal(damaged.file, damaged.bytes);
                refused(c, damaged.file, damaged.bytes, wrong[i].text);
        }
        lg_close(c);
}

/* Sizes that no file of that length can have are refused before memory is taken. */
TEST_CASE(bombs_take_no_memory)
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        example e;
        find_example("rgb8", &e);
        const uint32_t sides[][2] = {{INT32_MAX, INT32_MAX}, {1, INT32_MAX}, {INT32_MAX, 1}, {100000, 100000}};
        int64_t before = lg_memory_stats(c, lg_cpu()).peak;
        for (int i = 0; i < 4; i++) {
                put_u32(e.file + 16, sides[i][0]);
                put_u32(e.file + 20, sides[i][1]);
                seal(e.file, e.bytes);
                refused(c, e.file, e.bytes, "is truncated: its header says");
        }
        /* nor is anything unpacked that could not be a picture */
        gzFile packed = gzopen(at("a.png"), "wb");
        char zeros[65536] = {0};
        for (int i = 0; i < 64; i++)
                assert_int_equal(gzwrite(packed, zeros, sizeof zeros), sizeof zeros);
        assert_int_equal(gzclose(packed), Z_OK);
        assert_null(lg_read_png(c, at("a.png")));
        assert_error(c, LG_ERR_FORMAT, "is no PNG file: it does not begin as one");
        assert_true(lg_memory_stats(c, lg_cpu()).peak - before < 4096);
        put_u32(e.file + 16, 300);
        put_u32(e.file + 20, 200); /* possible, but not true */
        seal(e.file, e.bytes);
        refused(c, e.file, e.bytes, "is damaged: libpng says");
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

/* ---- without memory, without files ---- */

TEST_CASE(every_failing_allocation_is_told)
{
        example e;
        find_example("palette4_interlaced", &e);
        put_file(at("e.png"), e.file, e.bytes);
        for (int64_t n = 1, done = 0; !done; n++) {
                failing f = {0};
                lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
                arm(&f, n, false);
                lg_tensor *t = lg_read_png(c, at("e.png"));
                bool written = t && lg_write_png(t, at("f.png"));
                done = f.calls < n;
                if (done)
                        assert_true(written);
                else if (lg_error(c))
                        assert_error(c, LG_ERR_MEMORY, "memory");
                lg_close(c);
                assert_int_equal(f.bytes, 0);
                assert_true(n < 100);
        }
        remove(at("f.png"));
}

TEST_CASE(every_failing_call_leaves_the_old_file)
{
        lg_ctx *c = open_ctx();
        lg_tensor *t = bytes_like(c, LG_SHAPE(3, 400, 500)), *other = lg_flip(t, LG_ALL_DIMS);
        assert_true(lg_write_png(t, at("k.png")));
        contents old = get_file(at("k.png"));
        int before = count_files(false);
        c->files = &faulty_files;
        memset(&faulty, 0, sizeof faulty);
        faulty.error = ENOSPC;
        for (faulty.fail_at = 1;; faulty.fail_at++) {
                faulty.calls = 0;
                faulty.failed = NULL;
                bool ok = lg_write_png(other, at("k.png"));
                if (!faulty.failed)
                        break;
                if (!ok)
                        assert_error(c, LG_ERR_IO, "lg_write_png: ");
                else
                        assert_true(is_done_without());
                assert_int_equal(count_files(false), before + !strcmp(faulty.failed, "unlink"));
                if (!ok && !has(at("k.png"), old)) /* only where the folder could not be synchronised */
                        assert_string_equal(faulty.failed, "fsync");
                c->files = NULL;
                assert_true(lg_write_png(t, at("k.png")));
                c->files = &faulty_files;
        }
        assert_true(faulty.fail_at > 8);
        c->files = NULL;
        assert_same(other, lg_read_png(c, at("k.png")));
        free(old.data);
        lg_close(c);
}

/* ---- without a context ---- */

TEST_CASE(decoding_needs_no_context)
{
        example e;
        lg__png_facts facts;
        lg__png_wrong wrong = {""};
        uint8_t out[4 * 5 * 7 + 1];
        find_example("grey_alpha8_interlaced", &e);
        assert_false(lg__png_look(e.file, LG__PNG_HEAD - 1, (int64_t)e.bytes, &facts, &wrong));
        assert_string_equal(wrong.s, "is truncated: it ends in its header, at byte 32");
        assert_true(lg__png_look(e.file, LG__PNG_HEAD, (int64_t)e.bytes, &facts, &wrong));
        assert_true(facts.height == 5 && facts.width == 7 && facts.channels == 1);
        char *scratch = malloc(facts.scratch);
        out[4 * 5 * 7] = 0xa5;
        for (int i = 0; i < 3; i++) { /* the same memory again */
                memset(scratch, 0xff, facts.scratch);
                assert_true(lg__png_decode(&facts, e.file, e.bytes, 4, out, scratch, &wrong));
                assert_memory_equal(out, e.planes[2], 4 * 5 * 7);
        }
        assert_int_equal(out[4 * 5 * 7], 0xa5);
        facts.width++; /* the file has become another one */
        assert_false(lg__png_decode(&facts, e.file, e.bytes, 3, out, scratch, &wrong));
        assert_non_null(strstr(wrong.s, "another one"));
        facts.width -= 2;
        assert_false(lg__png_decode(&facts, e.file, e.bytes, 3, out, scratch, &wrong));
        assert_non_null(strstr(wrong.s, "is damaged"));
        facts.width++;
        facts.scratch = 3000;
        assert_false(lg__png_decode(&facts, e.file, e.bytes, 3, out, scratch, &wrong));
        assert_non_null(strstr(wrong.s, "is damaged"));
        free(scratch);
}

AROUND_TESTS(make_folder, remove_folder);
