/* fuzz_npy.c - any bytes as NumPy's file of one array, as an archive of them, and as an entry of a right archive.
 *
 * What is read fits the bytes and is read again as it was written, what is not read is an error of that kind, and
 * nothing is left behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "../zip.h"
#include "fuzz.h"

#define MOST_MEMORY (8 << 20)

static int input = -1;
static char path[64], copy[64];

static void remove_copy(void)
{
        unlink(copy);
}

static void prepare(void)
{
        input = memfd_create("npy", MFD_CLOEXEC);
        FUZZ_CHECK(input >= 0, "no memory for a file");
        snprintf(path, sizeof path, "/proc/self/fd/%d", input);
        strcpy(copy, "/tmp/fuzz-npy-XXXXXX");
        const int fd = mkstemp(copy);
        FUZZ_CHECK(fd >= 0, "no file in /tmp");
        close(fd);
        atexit(remove_copy);
}

static void write_input(const void *data, size_t bytes)
{
        FUZZ_CHECK(ftruncate(input, 0) == 0 && pwrite(input, data, bytes, 0) == (ssize_t)bytes, "no memory for a file");
}

/* After a failure: one that a file can be the cause of. */
static void check_error(lg_ctx *c, const char *call)
{
        const lg_error_code code = lg_error_code_of(c);
        FUZZ_CHECK(code == LG_ERR_FORMAT || code == LG_ERR_MEMORY || code == LG_ERR_IO, "%s: %s: %s", call,
                   lg_error_name(code), lg_error(c) ? lg_error(c) : "no error");
        lg_clear_error(c);
}

static void check_copy(const lg_tensor *t, const lg_tensor *again)
{
        const size_t bytes = (size_t)lg_numel(t) * lg_dtype_size(lg_dtype_of(t));
        char *a = malloc(2 * bytes + 64), *b = a + (bytes + 31) / 32 * 32;
        FUZZ_CHECK(a && lg_dtype_of(t) == lg_dtype_of(again) && lg_ndim_of(t) == lg_ndim_of(again),
                   "another dtype or shape");
        for (int i = 0; i < lg_ndim_of(t); i++)
                FUZZ_CHECK(lg_size_of(t, i) == lg_size_of(again, i), "another size %d", i);
        FUZZ_CHECK(lg_read(t, a, lg_dtype_of(t), bytes) && lg_read(again, b, lg_dtype_of(t), bytes), "no values");
        FUZZ_CHECK(!memcmp(a, b, bytes), "other values");
        free(a);
}

/* A tensor that was read, or why it was not; ends it. */
static void check_tensor(lg_ctx *c, lg_tensor *t, const char *call)
{
        if (!t) {
                check_error(c, call);
                return;
        }
        FUZZ_CHECK(lg_is_contiguous(t) && lg_dtype_of(t) != LG_BF16, "%s: layout or dtype", call);
        lg_tensor *again = lg_write_npy(t, copy) ? lg_read_npy(c, copy) : NULL;
        if (again)
                check_copy(t, again);
        else
                FUZZ_CHECK(lg_error_code_of(c) == LG_ERR_MEMORY, "%s", lg_error(c) ? lg_error(c) : "no error");
        lg_clear_error(c);
        lg_free(again);
        lg_free(t);
}

static void read_archive(lg_ctx *c)
{
        lg_names names = lg_npz_names(c, path);
        if (lg_error(c))
                check_error(c, "lg_npz_names");
        for (int64_t i = 0; i < names.count && i < 8; i++)
                check_tensor(c, lg_read_npz(c, path, names.items[i]), "lg_read_npz");
        lg_names_free(c, names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        failing memory = {.limit = MOST_MEMORY};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        if (input < 0)
                prepare();
        write_input(data, size);
        check_tensor(c, lg_read_npy(c, path), "lg_read_npy");
        if (LG_ZIP) {
                read_archive(c);
                const zip_entry entry = {"a.npy", data, size, .method = size % 2 ? 8 : 0, .zip64 = size % 3 == 0};
                uint8_t *archive = calloc(1, 2 * size + 600);
                FUZZ_CHECK(archive, "no memory");
                write_input(archive, zip_make(archive, &entry, 1));
                free(archive);
                check_tensor(c, lg_read_npz(c, path, "a"), "lg_read_npz");
        }
        FUZZ_CHECK(lg_live_tensors(c) == 0, "%lld tensors are alive", (long long)lg_live_tensors(c));
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
        return 0;
}
