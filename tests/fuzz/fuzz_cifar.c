/* fuzz_cifar.c - any bytes as a file of CIFAR-10 and of CIFAR-100; those of an input that is short are repeated.
 *
 * What is read has as many rows as the file has records and labels that are classes; what is not read is an error of
 * the file's format, and nothing is left behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"

#define MOST_MEMORY (8 << 20)
#define PIXELS 3072

static char folder[64];
static int file;

static void unlink_all(void)
{
        static const char *const names[] = {"test_batch.bin", "test.bin"};
        for (int i = 0; i < 2; i++) {
                char path[128];
                snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                unlink(path);
        }
        rmdir(folder);
}

static void prepare(void)
{
        static const char *const names[] = {"test_batch.bin", "test.bin"};
        char target[64], path[128];
        file = memfd_create("cifar", MFD_CLOEXEC);
        FUZZ_CHECK(file >= 0, "no memory for a file");
        snprintf(target, sizeof target, "/proc/self/fd/%d", file);
        strcpy(folder, "/tmp/fuzz-cifar-XXXXXX");
        FUZZ_CHECK(mkdtemp(folder), "no folder in /tmp");
        atexit(unlink_all);
        for (int i = 0; i < 2; i++) {
                snprintf(path, sizeof path, "%s/%s", folder, names[i]);
                FUZZ_CHECK(symlink(target, path) == 0, "%s cannot be made", path);
        }
}

/* classes: 10, or those of CIFAR-100, 100 fine ones or 20 coarse ones. */
static void read_set(size_t size, int classes)
{
        failing memory = {.limit = MOST_MEMORY};
        const int64_t record = PIXELS + (classes == 10 ? 1 : 2);
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        lg_dataset *d = classes == 10 ? lg_dataset_cifar10(c, "test", .folder = folder)
                                      : lg_dataset_cifar100(c, "test", .folder = folder, .coarse = classes == 20);
        if (d) {
                FUZZ_CHECK(lg_dataset_size(d) * record == (int64_t)size, "%lld rows", (long long)lg_dataset_size(d));
                lg_batch b;
                lg_loader *l = lg_loader_open(c, d, lg_dataset_size(d));
                FUZZ_CHECK(lg_loader_next(l, &b), "%s", lg_error(c));
                FUZZ_CHECK(lg_item(lg_amax(b.y)) < classes && lg_item(lg_amin(b.y)) >= 0, "no class");
                FUZZ_CHECK(lg_item(lg_amax(b.x)) <= 1 && lg_item(lg_amin(b.x)) >= 0, "no pixel");
        } else {
                FUZZ_CHECK(lg_error_code_of(c) == LG_ERR_FORMAT, "%s", lg_error(c));
        }
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
}

static void read_sets(const uint8_t *data, size_t size)
{
        FUZZ_CHECK(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == (ssize_t)size, "no memory for a file");
        read_set(size, 10);
        read_set(size, 100);
        read_set(size, 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static uint8_t records[3 * (PIXELS + 2)];
        if (!*folder)
                prepare();
        read_sets(data, size);
        for (size_t i = 0; i < sizeof records; i++)
                records[i] = size ? data[i % size] : 0;
        read_sets(records, 2 * (PIXELS + 1));
        read_sets(records, sizeof records);
        return 0;
}
