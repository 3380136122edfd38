/* fuzz_png.c - any bytes as a PNG file, as they are and with right checksums.
 *
 * What is read has the size that the header says, what is not read is an error of that kind, and nothing is left
 * behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "../failing.h"
#include "fuzz.h"

#define MOST_MEMORY (8 << 20)

static int file = -1;
static char path[64];

static uint32_t big_endian(const uint8_t *b)
{
        return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Gives every chunk that the bytes have the checksum that belongs to it. */
static void seal(uint8_t *data, size_t size)
{
        for (size_t at = 8; at + 12 <= size;) {
                size_t n = big_endian(data + at);
                if (n > size - at - 12)
                        return;
                uint32_t sum = (uint32_t)crc32(0, data + at + 4, (unsigned)n + 4);
                for (int i = 0; i < 4; i++)
                        data[at + 8 + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
                at += 12 + n;
        }
}

static void check_picture(const lg_tensor *t, int channels, const uint8_t *data)
{
        int64_t n = lg_numel(t);
        uint8_t *values = malloc((size_t)n);
        unsigned sum = 0;
        FUZZ_CHECK(lg_dtype_of(t) == LG_U8 && lg_ndim_of(t) == 3, "another kind of tensor");
        FUZZ_CHECK(lg_size_of(t, 0) == channels || (!channels && (lg_size_of(t, 0) == 1 || lg_size_of(t, 0) == 3)),
                   "%lld channels", (long long)lg_size_of(t, 0));
        FUZZ_CHECK(lg_size_of(t, 2) == big_endian(data + 16) && lg_size_of(t, 1) == big_endian(data + 20), "its sides");
        FUZZ_CHECK(values && lg_read(t, values, LG_U8, (size_t)n), "the values cannot be read");
        for (int64_t i = 0; i < n; i++) /* all of them have been set */
                sum += values[i];
        FUZZ_CHECK(sum <= 255 * (uint64_t)n, "no sum");
        free(values);
}

static void read_tested(const uint8_t *data, size_t size, int channels)
{
        failing memory = {.limit = MOST_MEMORY};
        FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size, "no memory for a file");
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        lg_tensor *t = lg_read_png(c, path, .channels = channels);
        FUZZ_CHECK(lg_live_tensors(c) == (t ? 1 : 0), "%lld tensors are alive", (long long)lg_live_tensors(c));
        if (t) {
                check_picture(t, channels, data);
        } else {
                lg_error_code code = lg_error_code_of(c);
                FUZZ_CHECK(code == LG_ERR_FORMAT || code == LG_ERR_MEMORY, "%s: %s", lg_error_name(code), lg_error(c));
        }
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (file < 0) {
                file = memfd_create("png", MFD_CLOEXEC);
                FUZZ_CHECK(file >= 0, "no memory for a file");
                snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        }
        read_tested(data, size, 0);
        uint8_t *sealed = malloc(size + 1);
        FUZZ_CHECK(sealed, "no memory");
        memcpy(sealed, data, size);
        seal(sealed, size);
        for (int channels = 0; channels <= 4; channels += channels == 1 ? 2 : 1)
                read_tested(sealed, size, channels);
        free(sealed);
        return 0;
}
