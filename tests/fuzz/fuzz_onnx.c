/* fuzz_onnx.c - any bytes as an ONNX file: a module whose forward runs or fails, or an error, and nothing is left. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"

#define MOST_MEMORY (8 << 20)

/* Runs the module on ones of a few shapes. What it computes depends on the file; it ends, and fails with an error. */
static void run(lg_ctx *c, lg_module *m)
{
        for (int i = 0; i < 3; i++) {
                const lg_scope scope = lg_scope_begin(c);
                lg_tensor *x = lg_ones(c, i ? LG_SHAPE(1, 3, 4) : LG_SHAPE(2, 3)), *n = lg_arange(c, 0, 3, 1);
                lg_outputs out;
                const bool good = i == 2 ? lg_forward_all(m, &out, x, n) : lg_forward_all(m, &out, x);
                FUZZ_CHECK(good || lg_error(c), "a forward failed without an error");
                lg_clear_error(c);
                lg_scope_end(c, scope);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static int input = -1;
        char path[64];
        failing memory = {.limit = MOST_MEMORY};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        if (input < 0)
                input = memfd_create("onnx", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", input);
        FUZZ_CHECK(ftruncate(input, 0) == 0 && pwrite(input, data, size, 0) == (ssize_t)size, "no memory for a file");
        lg_module *m = lg_onnx_load(c, path);
        const lg_error_code code = lg_error_code_of(c);
        FUZZ_CHECK(m || code, "a load failed without an error");
        if (m)
                run(c, m);
        lg_clear_error(c);
        lg_module_free(m);
        FUZZ_CHECK(lg_live_tensors(c) == 0, "%lld tensors are alive", (long long)lg_live_tensors(c));
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
        return 0;
}
