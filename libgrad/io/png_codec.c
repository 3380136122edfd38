/* png_codec.c - PNG (ISO/IEC 15948) by libpng, in memory of the caller.
 *
 * libpng reports errors by longjmp() to guarded(). Neither guarded() nor the functions that it runs own resources, and
 * libpng's memory is cut from the caller's scratch memory, so nothing needs to be freed. libpng's simplified functions,
 * which do not jump, are not used: they call malloc(), blend alpha with a background and correct gamma.
 */
#include <png.h>
#include <setjmp.h>
#include <string.h>
#include "png_codec.h"
#include "source.h"

#define INFLATE_SCRATCH ((size_t)192 << 10) /* libpng 1.6 and zlib need 50 KiB, zlib-ng twice as much */
#define DEFLATE_SCRATCH ((size_t)1 << 20)   /* zlib needs 270 KiB, zlib-ng 400 */
#define ROW_EXTRA 128                       /* bytes of a row besides its pixels, with alignment */

typedef struct work {
        jmp_buf jump; /* target of longjmp() from errors in libpng */
        char *memory; /* unused part of the scratch memory */
        size_t left;
        lg__png_wrong *wrong;
        const char *what; /* start of error messages: "is damaged" or "cannot be written" */
        int64_t height, width;
        int channels;
        /* for decoding: */
        const uint8_t *file;
        size_t bytes; /* bytes not yet read */
        uint8_t *out;
        /* for encoding: */
        const uint8_t *planes;
        lg__png_put *put;
        void *to;
} work;

static bool fail(lg__png_wrong *wrong, const char *format, ...) LG_PRINTF(2, 3);
static bool fail(lg__png_wrong *wrong, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        vsnprintf(wrong->s, sizeof wrong->s, format, args);
        va_end(args);
        return false;
}

/* ---- callbacks of libpng ---- */

static void on_error(png_structp png, png_const_charp text)
{
        work *w = png_get_error_ptr(png);
        fail(w->wrong, "%s: libpng says \"%.120s\"", w->what, text);
        longjmp(w->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
        (void)png, (void)text;
}

static void *take(work *w, size_t bytes)
{
        const size_t step = _Alignof(max_align_t) > 16 ? _Alignof(max_align_t) : 16;
        if (bytes > w->left || (bytes = (bytes + step - 1) / step * step) > w->left)
                return NULL;
        void *p = w->memory;
        w->memory += bytes;
        w->left -= bytes;
        return p;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t bytes)
{
        return take(png_get_mem_ptr(png), bytes);
}

static void on_free(png_structp png, png_voidp p)
{
        (void)png, (void)p; /* scratch memory is freed as a whole */
}

static void on_read(png_structp png, png_bytep data, size_t bytes)
{
        work *w = png_get_io_ptr(png);
        if (bytes > w->bytes)
                png_error(png, "the file ends too early");
        memcpy(data, w->file, bytes);
        w->file += bytes;
        w->bytes -= bytes;
}

static void on_write(png_structp png, png_bytep data, size_t bytes)
{
        work *w = png_get_io_ptr(png);
        if (!w->put(w->to, data, bytes))
                png_error(png, "the file cannot be written");
}

static void on_flush(png_structp png)
{
        (void)png;
}

/* Runs a function that calls libpng. Returns false if libpng reports an error, which is then in w->wrong. */
static bool guarded(work *w, void (*run)(work *w))
{
        if (setjmp(w->jump))
                return false;
        run(w);
        return true;
}

/* Returns libpng's info struct. Jumps with an error if png is NULL: libpng is not the version compiled for. */
static png_infop check_made(work *w, png_structp png)
{
        png_infop info = png ? png_create_info_struct(png) : NULL;
        if (!info) {
                fail(w->wrong, "%s: libpng is not the %s that libgrad was built for", w->what, PNG_LIBPNG_VER_STRING);
                longjmp(w->jump, 1);
        }
        png_set_user_limits(png, (png_uint_32)w->width, (png_uint_32)w->height);
        return info;
}

/* ---- the header ---- */

static uint32_t big_endian(const uint8_t *b)
{
        return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Returns the bits of a pixel, or 0 if the PNG standard has no such combination of colour type and bit depth. */
static int bits_of(int colour, int depth)
{
        static const struct {
                int samples, depths; /* valid bit depths, added: all are powers of two */
        } kinds[] = {
                {1, 1 | 2 | 4 | 8 | 16}, {0, 0}, {3, 8 | 16}, {1, 1 | 2 | 4 | 8}, {2, 8 | 16}, {0, 0}, {4, 8 | 16}};
        if (colour > 6 || !depth || depth & (depth - 1) || !(kinds[colour].depths & depth))
                return 0;
        return kinds[colour].samples * depth;
}

/* Returns whether a file of file_bytes can hold these pixels at deflate's maximum ratio; ignores filter bytes. */
static bool fits_file(int64_t height, int64_t width, int bits, int64_t file_bytes)
{
        int64_t row = (width * bits + 7) / 8, most, all;
        return __builtin_mul_overflow(file_bytes, LG__MOST_INFLATED, &most) ||
               (!__builtin_mul_overflow(height, row, &all) && all <= most);
}

bool lg__png_look(const void *head, size_t bytes, int64_t file_bytes, lg__png_facts *ret, lg__png_wrong *ret_wrong)
{
        static const uint8_t begin[16] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
        const uint8_t *b = head;
        if (bytes < sizeof begin || memcmp(b, begin, sizeof begin) != 0)
                return fail(ret_wrong, "is no PNG file: it does not begin as one");
        if (bytes < LG__PNG_HEAD)
                return fail(ret_wrong, "is truncated: it ends in its header, at byte %zu", bytes);
        uint32_t width = big_endian(b + 16), height = big_endian(b + 20);
        int depth = b[24], colour = b[25], bits = bits_of(colour, depth);
        if (!width || !height || width > INT32_MAX || height > INT32_MAX)
                return fail(ret_wrong, "is damaged: its header says %u x %u pixels", width, height);
        if (!bits || b[26] || b[27] || b[28] > 1)
                return fail(ret_wrong, "is damaged: its header says colour type %d of %d bits, methods %d, %d and %d",
                            colour, depth, b[26], b[27], b[28]);
        if (!fits_file(height, width, bits, file_bytes))
                return fail(ret_wrong, "is truncated: its header says %u x %u pixels of %d bits, and it has %lld bytes",
                            width, height, bits, (long long)file_bytes);
        int64_t scratch = (int64_t)INFLATE_SCRATCH + 2 * (8 * (int64_t)width + ROW_EXTRA) + 4 * (int64_t)width;
        if (scratch > PTRDIFF_MAX)
                return fail(ret_wrong, "is too wide for this machine: %u pixels", width);
        *ret = (lg__png_facts){.height = (int32_t)height,
                               .width = (int32_t)width,
                               .channels = colour & 2 ? 3 : 1,
                               .scratch = (size_t)scratch};
        return true;
}

/* ---- decoding ---- */

/* Writes pixels x, x + step, ... of a decoded row to the grey plane, colours by ITU-R 601 in 16 bits as Pillow does. */
static void put_grey(const work *w, const uint8_t *row, int samples, int64_t x, int64_t step, uint8_t *out)
{
        for (; x < w->width; x += step) {
                const uint8_t *p = row + x * samples;
                out[x] = samples < 3 ? p[0] : (uint8_t)((19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16);
        }
}

static void put_colours(const work *w, const uint8_t *row, int samples, int64_t x, int64_t step, uint8_t *out)
{
        const int64_t plane = w->height * w->width;
        const int g = samples < 3 ? 0 : 1, b = samples < 3 ? 0 : 2;
        for (; x < w->width; x += step) {
                const uint8_t *p = row + x * samples;
                out[x] = p[0];
                out[x + plane] = p[g];
                out[x + 2 * plane] = p[b];
                if (w->channels == 4)
                        out[x + 3 * plane] = samples % 2 ? 255 : p[samples - 1];
        }
}

/* Reads one pass: all pixels or, for an interlaced picture, some pixels of some rows. */
static void read_pass(const work *w, png_structp png, int pass, bool interlaced, uint8_t *row, int samples)
{
        const int64_t first = interlaced ? PNG_PASS_START_COL(pass) : 0,
                      step = interlaced ? (int64_t)1 << PNG_PASS_COL_SHIFT(pass) : 1;
        for (int64_t y = 0; y < w->height; y++) {
                png_read_row(png, row, NULL);
                if (interlaced && !PNG_ROW_IN_INTERLACE_PASS(y, pass))
                        continue;
                (w->channels == 1 ? put_grey : put_colours)(w, row, samples, first, step, w->out + y * w->width);
        }
}

static png_structp begin_decoding(work *w, png_infop *ret_info)
{
        png_structp png =
                png_create_read_struct_2(PNG_LIBPNG_VER_STRING, w, on_error, on_warning, w, on_malloc, on_free);
        png_infop info = *ret_info = check_made(w, png);
        png_set_read_fn(png, w, on_read);
        png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
        png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* skips all optional chunks except tRNS */
        png_read_info(png, info);
        if (png_get_image_width(png, info) != w->width || png_get_image_height(png, info) != w->height)
                png_error(png, "the size is another one than before");
        return png;
}

static void decode(work *w)
{
        png_infop info;
        png_structp png = begin_decoding(w, &info);
        bool interlaced = png_get_interlace_type(png, info) != PNG_INTERLACE_NONE;
        png_set_expand(png); /* expands samples to 8 bits or more, palettes to colours, tRNS to alpha */
        png_set_strip_16(png);
        int passes = png_set_interlace_handling(png);
        png_read_update_info(png, info);
        int samples = png_get_channels(png, info);
        size_t row_bytes = (size_t)w->width * (size_t)samples;
        uint8_t *row = png_get_rowbytes(png, info) == row_bytes ? take(w, row_bytes) : NULL;
        if (!row)
                png_error(png, "rows are longer than expected");
        for (int pass = 0; pass < passes; pass++)
                read_pass(w, png, pass, interlaced, row, samples);
        png_read_end(png, NULL);
}

bool lg__png_decode(const lg__png_facts *facts, const void *file, size_t bytes, int channels, uint8_t *out,
                    void *scratch, lg__png_wrong *ret_wrong)
{
        work w = {.memory = scratch,
                  .left = facts->scratch,
                  .wrong = ret_wrong,
                  .what = "is damaged",
                  .height = facts->height,
                  .width = facts->width,
                  .channels = channels,
                  .file = file,
                  .bytes = bytes,
                  .out = out};
        return guarded(&w, decode);
}

/* ---- encoding ---- */

static void encode(work *w)
{
        png_structp png =
                png_create_write_struct_2(PNG_LIBPNG_VER_STRING, w, on_error, on_warning, w, on_malloc, on_free);
        png_infop info = check_made(w, png);
        const size_t samples = (size_t)w->channels, plane = (size_t)w->height * (size_t)w->width;
        uint8_t *row = take(w, samples * (size_t)w->width);
        if (!row)
                png_error(png, "rows are longer than expected");
        png_set_write_fn(png, w, on_write, on_flush);
        png_set_IHDR(png, info, (png_uint_32)w->width, (png_uint_32)w->height, 8,
                     samples == 1   ? PNG_COLOR_TYPE_GRAY
                     : samples == 3 ? PNG_COLOR_TYPE_RGB
                                    : PNG_COLOR_TYPE_RGB_ALPHA,
                     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
        png_write_info(png, info);
        for (int64_t y = 0; y < w->height; y++) {
                const uint8_t *from = w->planes + y * w->width;
                for (size_t x = 0; x < (size_t)w->width; x++)
                        for (size_t i = 0; i < samples; i++)
                                row[x * samples + i] = from[i * plane + x];
                png_write_row(png, row);
        }
        png_write_end(png, NULL);
}

size_t lg__png_encode_scratch(int64_t width)
{
        return DEFLATE_SCRATCH +
               5 * (4 * (size_t)width + ROW_EXTRA); /* encode()'s row; libpng's current, previous and two trial rows */
}

bool lg__png_encode(const uint8_t *planes, int channels, int64_t height, int64_t width, lg__png_put *put, void *to,
                    void *scratch, lg__png_wrong *ret_wrong)
{
        work w = {.memory = scratch,
                  .left = lg__png_encode_scratch(width),
                  .wrong = ret_wrong,
                  .what = "cannot be written",
                  .height = height,
                  .width = width,
                  .channels = channels,
                  .planes = planes,
                  .put = put,
                  .to = to};
        return guarded(&w, encode);
}
