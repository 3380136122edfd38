/* fuzz_csv.c - any bytes as a CSV file; the first byte chooses how it is read, and whether it is compressed.
 *
 * What is read and written again with every field in quotes is the same table. What is not read is an error of the
 * file's format, and nothing is left behind.
 */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"
#include "gzip.h"

#define MOST_MEMORY (16 << 20)

static int file = -1;
static char path[64];

static void put(const void *data, size_t bytes)
{
        FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, bytes, 0) == (ssize_t)bytes, "no memory for a file");
}

/* An error that a file is the cause of; it is cleared. */
static void check_error(lg_ctx *c)
{
        lg_error_code code = lg_error_code_of(c);
        FUZZ_CHECK(code == LG_ERR_FORMAT || code == LG_ERR_MEMORY, "%s: %s", lg_error_name(code), lg_error(c));
        lg_clear_error(c);
}

/* Every text of a table without a header, row by row, as the codes of its columns give them; NULL: no memory. */
static const char **texts_of(lg_ctx *c, lg_csv *t)
{
        const int64_t rows = lg_csv_rows(t), columns = lg_csv_columns(t).count;
        const char **all = calloc((size_t)(rows * columns) + 1, sizeof *all);
        int64_t *codes = malloc((size_t)rows * sizeof *codes + 1);
        FUZZ_CHECK(all && codes, "no memory");
        for (int64_t k = 0; k < columns; k++) {
                const char *name = lg_csv_columns(t).items[k];
                lg_tensor *y = lg_csv_categories(t, name);
                lg_names texts = lg_csv_texts(t, name);
                if (lg_error(c)) {
                        check_error(c);
                        free(all);
                        free(codes);
                        return NULL;
                }
                FUZZ_CHECK(lg_numel(y) == rows && lg_read(y, codes, LG_I64, (size_t)rows * sizeof *codes), "codes");
                for (int64_t i = 0; i < rows; i++) {
                        FUZZ_CHECK(codes[i] >= 0 && codes[i] < texts.count, "code %lld", (long long)codes[i]);
                        all[i * columns + k] = texts.items[codes[i]];
                }
        }
        free(codes);
        return all;
}

/* As numbers where they are some; whatever is no number is an error. */
static void read_numbers(lg_ctx *c, lg_csv *t)
{
        lg_names columns = lg_csv_columns(t);
        lg_tensor *x = lg_csv_numbers(t, columns, .missing_as = 1.5), *y = NULL;
        if (x)
                FUZZ_CHECK(lg_size_of(x, 0) == lg_csv_rows(t) && lg_size_of(x, 1) == columns.count, "a shape");
        else
                check_error(c);
        for (int64_t k = 0; k < columns.count && k < 4; k++) {
                x = lg_csv_numbers(t, LG_NAMES(columns.items[k]), .dtype = LG_F64);
                y = x ? lg_csv_integers(t, columns.items[k]) : NULL;
                if (x && y && lg_numel(x))
                        FUZZ_CHECK(lg_item(lg_amax(lg_abs(lg_sub(lg_flatten(x), lg_cast(y, LG_F64))))) == 0,
                                   "whole numbers are other numbers");
                if (lg_error(c))
                        check_error(c);
        }
}

/* The table with everything in quotes, and CR LF; returns its bytes. */
static size_t write_quoted(const char **all, int64_t rows, int64_t columns, char *out)
{
        char *to = out;
        for (int64_t i = 0; i < rows * columns; i++) {
                *to++ = '"';
                for (const char *s = all[i]; *s; s++) {
                        *to++ = *s;
                        if (*s == '"')
                                *to++ = '"';
                }
                to = stpcpy(to, (i + 1) % columns ? "\"," : "\"\r\n");
        }
        return (size_t)(to - out);
}

static void check_again(lg_ctx *c, const char **all, int64_t rows, int64_t columns)
{
        lg_csv *t = lg_csv_open(c, path, .no_header = true, .missing = LG_NAMES("\x01\x02\x03"));
        if (!t) {
                FUZZ_CHECK(lg_error_code_of(c) == LG_ERR_MEMORY, "%s", lg_error(c));
                return;
        }
        FUZZ_CHECK(lg_csv_rows(t) == rows && lg_csv_columns(t).count == columns, "another shape");
        const char **again = texts_of(c, t);
        for (int64_t i = 0; again && i < rows * columns; i++)
                FUZZ_CHECK(!strcmp(all[i], again[i]), "%s became %s", all[i], again[i]);
        free(again);
}

static void read_table(lg_ctx *c, uint8_t form, size_t size)
{
        const char separator = form & 4 ? (form & 8 ? ';' : '\t') : ',';
        lg_csv *t = lg_csv_open(c, path, .separator = separator, .no_header = form & 1, .trim = form & 2);
        if (!t) {
                check_error(c);
                return;
        }
        if (form & 1)
                read_numbers(c, t);
        lg_csv_close(t);
        t = lg_csv_open(c, path, .separator = separator, .no_header = true, .trim = form & 2,
                        .missing = LG_NAMES("\x01\x02\x03"));
        if (!t) {
                check_error(c);
                return;
        }
        const int64_t rows = lg_csv_rows(t), columns = lg_csv_columns(t).count;
        const char **all = texts_of(c, t);
        char *out = all ? malloc(2 * size + (size_t)(rows * columns) * 5 + 16) : NULL;
        if (out && !(form & 16)) {
                put(out, write_quoted(all, rows, columns, out));
                check_again(c, all, rows, columns);
        }
        free(out);
        free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (file < 0) {
                file = memfd_create("csv", MFD_CLOEXEC);
                FUZZ_CHECK(file >= 0, "no memory for a file");
                snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        }
        if (!size)
                return 0;
        const uint8_t form = *data++;
        size--;
        put(data, size);
        if (form & 16) {
                size_t room = size + size / 8 + 256;
                uint8_t *packed = malloc(room);
                FUZZ_CHECK(packed, "no memory");
                put(packed, compress_gzip(data, size, packed, room));
                free(packed);
        }
        failing memory = {.limit = MOST_MEMORY};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        if (form & 16 || !(size > 1 && data[0] == 0x1f && data[1] == 0x8b)) /* gzip of its own may be of any size */
                read_table(c, form, size);
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
        return 0;
}
