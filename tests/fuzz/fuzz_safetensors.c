/* fuzz_safetensors.c - any bytes as a safetensors file.
 *
 * What is read covers the file and, written again, is read as the same; what is not read is an error of the format, and
 * nothing is left behind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../failing.h"
#include "fuzz.h"
#include "io/files.h"
#include "io/safetensors.h"

static int tested = -1;
static char path[64], folder[64], copy[80];
static lg__files quick; /* the system's calls, but nothing waits for the disk */

static int no_fsync(int fd)
{
        (void)fd;
        return 0;
}

static void remove_all(void)
{
        unlink(copy);
        FUZZ_CHECK(rmdir(folder) == 0, "a temporary file is left in %s", folder);
}

static void prepare(void)
{
        tested = memfd_create("safetensors", MFD_CLOEXEC);
        FUZZ_CHECK(tested >= 0, "no memory for a file");
        snprintf(path, sizeof path, "/proc/self/fd/%d", tested);
        strcpy(folder, "/tmp/fuzz-safetensors-XXXXXX");
        FUZZ_CHECK(mkdtemp(folder), "no folder in /tmp");
        snprintf(copy, sizeof copy, "%s/copy", folder);
        atexit(remove_all);
        quick = lg__system_files;
        quick.fsync = no_fsync;
}

/* Every tensor's values, in the order of the file; a bool that is none is the only thing that can be wrong. NULL: one
 * is.
 */
static char **read_all_values(lg__weights *w)
{
        char **values = calloc((size_t)w->count + 1, sizeof *values);
        bool ok = true;
        int64_t at = 0;
        for (int64_t i = 0; i < w->count; i++) {
                const lg__weight *e = &w->entries[i];
                FUZZ_CHECK(e->begin == at && e->end >= at, "%s begins at %lld", e->name, (long long)e->begin);
                FUZZ_CHECK(lg__weights_find(w, e->name) == e, "%s is not found", e->name);
                FUZZ_CHECK(e->shape.ndim >= 0 && e->shape.ndim <= LG_MAX_DIMS, "%d dimensions", e->shape.ndim);
                at = e->end;
                values[i] = malloc((size_t)(e->end - e->begin) + 1);
                if (lg__weights_read(w, e, values[i]))
                        continue;
                FUZZ_CHECK(lg_error_code_of(w->ctx) == (e->dtype ? LG_ERR_FORMAT : LG_ERR_DTYPE), "%s",
                           lg_error(w->ctx));
                ok = ok && !e->dtype;
                lg_clear_error(w->ctx);
        }
        FUZZ_CHECK(at == w->file_bytes - w->data_at, "%lld bytes are nobody's", (long long)at);
        for (int64_t i = 0; i < w->count && !ok; i++)
                free(values[i]);
        if (!ok)
                free(values);
        return ok ? values : NULL;
}

static void check_copy(const lg__weights *w, char **values)
{
        lg__weights *v = lg__weights_open(w->ctx, "copy", copy);
        FUZZ_CHECK(v, "%s", lg_error(w->ctx));
        FUZZ_CHECK(v->meta_count == w->meta_count, "%lld strings", (long long)v->meta_count);
        for (int64_t i = 0; i < w->meta_count; i++) {
                const char *text = lg__weights_meta(v, w->metas[i].key);
                FUZZ_CHECK(text && !strcmp(text, w->metas[i].value), "%s is another", w->metas[i].key);
        }
        for (int64_t i = 0; i < w->count; i++) {
                const lg__weight *e = &w->entries[i], *f = lg__weights_find(v, e->name);
                size_t bytes = (size_t)(e->end - e->begin);
                if (!e->dtype)
                        continue;
                FUZZ_CHECK(f && f->dtype == e->dtype && lg__shape_equal(f->shape, e->shape), "%s is another", e->name);
                char *got = malloc(bytes + 1);
                FUZZ_CHECK(lg__weights_read(v, f, got) && !memcmp(got, values[i], bytes), "%s: other values", e->name);
                free(got);
        }
        lg__weights_close(v);
}

/* Writes what was read, and reads it again. */
static void write_again(lg__weights *w, char **values)
{
        lg__weight_out *out = calloc((size_t)w->count + 1, sizeof *out);
        int64_t n = 0;
        for (int64_t i = 0; i < w->count; i++)
                if (w->entries[i].dtype)
                        out[n++] = (lg__weight_out){.name = w->entries[i].name,
                                                    .dtype = w->entries[i].dtype,
                                                    .shape = w->entries[i].shape,
                                                    .data = values[i]};
        FUZZ_CHECK(lg__weights_save(w->ctx, "copy", copy, out, n, w->metas, w->meta_count), "%s", lg_error(w->ctx));
        check_copy(w, values);
        free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (tested < 0)
                prepare();
        FUZZ_CHECK(ftruncate(tested, 0) == 0 && pwrite(tested, data, size, 0) == (ssize_t)size, "no memory for a file");
        failing memory = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&memory));
        FUZZ_CHECK(c, "no memory for a context");
        c->files = &quick;
        lg__weights *w = lg__weights_open(c, "fuzz", path);
        if (w) {
                char **values = read_all_values(w);
                if (values)
                        write_again(w, values);
                for (int64_t i = 0; values && i < w->count; i++)
                        free(values[i]);
                free(values);
        } else {
                FUZZ_CHECK(lg_error_code_of(c) == LG_ERR_FORMAT && strstr(lg_error(c), "fuzz: "), "%s", lg_error(c));
        }
        lg__weights_close(w);
        lg_close(c);
        FUZZ_CHECK(memory.bytes == 0 && memory.allocs == memory.frees, "%lld bytes are left", (long long)memory.bytes);
        return 0;
}
