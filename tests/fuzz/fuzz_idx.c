/* fuzz_idx.c - any bytes as an IDX file, plain and compressed, and as the images and the labels of Fashion-MNIST.
 *
 * What is read fits the bytes, what is not read is an error of that kind, and nothing is left behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"
#include "gzip.h"

#define MOST_MEMORY (8 << 20)
#define IMAGES 2

static char folder[64];
/* The file under test, and a good file of each kind, by which the other one is taken further. */
enum { TESTED, GOOD_IMAGES, GOOD_LABELS, FILES };
static int files[FILES];
static char paths[FILES][64];

static void write_file(int file, const void *data, size_t bytes)
{
        FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, bytes, 0) == (ssize_t)bytes, "no memory for a file");
}

static void link_part(const char *part, const char *name, int file)
{
        char path[128];
        snprintf(path, sizeof path, "%s/%s-%s", folder, part, name);
        FUZZ_CHECK(symlink(paths[file], path) == 0, "%s cannot be made", path);
}

static void unlink_all(void)
{
        static const char *const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                            "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                char path[128];
                snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                unlink(path);
        }
        rmdir(folder);
}

static void prepare(void)
{
        static const uint8_t images[16 + IMAGES * 28 * 28] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 28, 0, 0, 0, 28},
                                                       labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
        for (int i = 0; i < FILES; i++) {
                files[i] = memfd_create("idx", MFD_CLOEXEC);
                FUZZ_CHECK(files[i] >= 0, "no memory for a file");
                snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", files[i]);
        }
        strcpy(folder, "/tmp/fuzz-idx-XXXXXX");
        FUZZ_CHECK(mkdtemp(folder), "no folder in /tmp");
        atexit(unlink_all);
        write_file(files[GOOD_IMAGES], images, sizeof images);
        write_file(files[GOOD_LABELS], labels, sizeof labels);
        link_part("train", "images-idx3-ubyte", TESTED);
        link_part("train", "labels-idx1-ubyte", GOOD_LABELS);
        link_part("t10k", "images-idx3-ubyte", GOOD_IMAGES);
        link_part("t10k", "labels-idx1-ubyte", TESTED);
}

static lg_ctx *open_counted(failing *memory)
{
        *memory = (failing){.limit = MOST_MEMORY};
        lg_ctx *c = lg_open(.threads = 1, FAILING(memory));
        FUZZ_CHECK(c, "no memory for a context");
        return c;
}

static void close_counted(lg_ctx *c, failing *memory)
{
        lg_close(c);
        FUZZ_CHECK(memory->bytes == 0 && memory->allocs == memory->frees, "%lld bytes are left",
                   (long long)memory->bytes);
}

/* After a failure: one that a file can be the cause of. */
static void check_error(const lg_ctx *c, const char *call)
{
        lg_error_code code = lg_error_code_of(c);
        FUZZ_CHECK(code == LG_ERR_IO || code == LG_ERR_FORMAT || code == LG_ERR_MEMORY, "%s: %s: %s", call,
                   lg_error_name(code), lg_error(c) ? lg_error(c) : "no error");
        FUZZ_CHECK(strstr(lg_error(c), call), "%s is not in \"%s\"", call, lg_error(c));
}

static void check_tensor(const lg_tensor *t)
{
        double sum = 0, *values = malloc((size_t)lg_numel(t) * sizeof *values + 1);
        lg_dtype d = lg_dtype_of(t);
        int64_t n = 1;
        FUZZ_CHECK(d == LG_U8 || d == LG_I32 || d == LG_F32 || d == LG_F64, "dtype %s", lg_dtype_name(d));
        FUZZ_CHECK(lg_ndim_of(t) >= 1 && lg_ndim_of(t) <= LG_MAX_DIMS, "%d dimensions", lg_ndim_of(t));
        for (int i = 0; i < lg_ndim_of(t); i++)
                n *= lg_size_of(t, i);
        FUZZ_CHECK(n == lg_numel(t) && n * (int64_t)lg_dtype_size(d) <= MOST_MEMORY, "%lld elements", (long long)n);
        FUZZ_CHECK(values && lg_read(t, values, LG_F64, (size_t)n * sizeof *values), "the values cannot be read");
        for (int64_t i = 0; i < n; i++)
                sum += values[i];
        FUZZ_CHECK(sum == sum || d == LG_F32 || d == LG_F64, "NaN among integers");
        free(values);
}

static bool read_tested(void)
{
        failing memory;
        lg_ctx *c = open_counted(&memory);
        lg_tensor *t = lg_read_idx(c, paths[TESTED]);
        FUZZ_CHECK(lg_live_tensors(c) == (t ? 1 : 0), "%lld tensors are alive", (long long)lg_live_tensors(c));
        if (t)
                check_tensor(t);
        else
                check_error(c, "lg_read_idx");
        bool read = t != NULL;
        close_counted(c, &memory);
        return read;
}

static void read_folder(const char *part)
{
        failing memory;
        lg_ctx *c = open_counted(&memory);
        lg_dataset *d = lg_dataset_fashion_mnist(c, part, .folder = folder);
        if (d)
                FUZZ_CHECK(lg_dataset_size(d) == IMAGES, "%lld rows", (long long)lg_dataset_size(d));
        else
                check_error(c, "lg_");
        lg_dataset_free(d);
        FUZZ_CHECK(lg_live_tensors(c) == 0, "%lld tensors are alive", (long long)lg_live_tensors(c));
        close_counted(c, &memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!*folder)
                prepare();
        write_file(files[TESTED], data, size);
        bool plain = read_tested();
        read_folder("train");
        read_folder("test");
        size_t room = size + size / 8 + 256;
        uint8_t *packed = malloc(room);
        FUZZ_CHECK(packed, "no memory");
        write_file(files[TESTED], packed, compress_gzip(data, size, packed, room));
        FUZZ_CHECK(!plain || (size > 1 && data[0] == 0x1f) || read_tested(), "plain can be read, gzip cannot");
        read_tested();
        free(packed);
        return 0;
}
