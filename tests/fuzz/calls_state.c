/* calls_state.c - calls that save, load and copy what modules, optimisers, schedules, averages and loaders hold. */
#include <unistd.h>
#include "vm.h"

#define FILES 3

/* ---- files: in a folder of the process, empty again after each program ---- */

static char folder[32], files[FILES][40];

void files_forget(void)
{
        for (int i = 0; *folder && i < FILES; i++)
                unlink(files[i]);
}

static void remove_folder(void)
{
        FUZZ_CHECK(rmdir(folder) == 0, "a temporary file is left in %s", folder);
}

/* In memory where that is possible: every save waits for the disk. */
static void prepare(void)
{
        snprintf(folder, sizeof folder, "/dev/shm/fuzz-api-XXXXXX");
        if (!mkdtemp(folder)) {
                snprintf(folder, sizeof folder, "/tmp/fuzz-api-XXXXXX");
                FUZZ_CHECK(mkdtemp(folder), "no folder for files");
        }
        for (int i = 0; i < FILES; i++)
                snprintf(files[i], sizeof files[i], "%s/%d", folder, i);
        atexit(remove_folder);
}

static const char *path(vm *m)
{
        uint8_t b = byte(m);
        if (!*folder)
                prepare();
        return b < 0xF8 ? files[b % FILES] : b == 0xF8 ? NULL : b == 0xF9 ? folder : b == 0xFA ? "/nowhere/file" : "";
}

/* ---- modules ---- */

static void state_save(vm *m)
{
        lg_module *a = module(m);
        check_done(m, lg_save(a, path(m)));
}

static const char *prefix(vm *m)
{
        static const char *const names[] = {"0", "0.", "1", "model.", "weight", "2.bias", "", "x"};
        return names[byte(m) % COUNT(names)];
}

static void state_load(vm *m)
{
        lg_module *a = module(m);
        const char *from = path(m), *pairs[4];
        uint8_t b = byte(m);
        lg_load_options o = *LG_OPTIONS(lg_load_options, .partial = b & 1, .cast = b & 2);
        o.prefix = b & 4 ? prefix(m) : NULL;
        for (int i = 0; i < 4; i++)
                pairs[i] = b & 8 ? prefix(m) : NULL;
        o.rename = LG_NAMES_OF(b & 8 ? b / 16 % 5 : 0, b & 128 ? NULL : pairs);
        const lg_load_options *handed = HAND(m, o);
        const uint64_t before = parameter_values(m);
        bool ok = lg_load_with(a, from, handed);
        check_done(m, ok);
        FUZZ_CHECK(ok || m->odd || parameter_values(m) == before, "a load failed and changed parameters");
}

static void state_copy(vm *m)
{
        lg_module *to = module(m), *from = flag(m) ? module(m) : to;
        const uint64_t before = parameter_values(m);
        bool ok = lg_copy_state(to, from);
        check_done(m, ok);
        FUZZ_CHECK((ok && to != from) || m->odd || parameter_values(m) == before, "values came from elsewhere");
}

static void state_clone(vm *m)
{
        lg_module *a = module(m);
        lg_clone_options o = *LG_OPTIONS(lg_clone_options, .device = device(m));
        const int64_t count = lg_parameter_numel(a);
        lg_module *copy = lg_module_clone_with(a, HAND(m, o));
        check_done(m, copy != NULL);
        FUZZ_CHECK(!copy || m->depth || m->odd || lg_parameter_numel(copy) == count, "a copy of other parameters");
        if (copy)
                PUT(m, m->now->modules, copy);
}

/* ---- runs ---- */

static double real = 0.5;
static int64_t whole = 3;
static char text[8];

static void add_object(vm *m, lg_checkpoint *k, const char *name)
{
        uint8_t kind = byte(m) % 6;
        lg_optimizer *opt = PICK(m, m->now->optimizers);
        void *const objects[] = {module(m),
                                 module(m),
                                 opt,
                                 PICK(m, m->now->schedulers),
                                 PICK(m, m->now->emas),
                                 PICK(m, m->now->loaders)};
        check_done(m, lg_checkpoint_add_with(k, name, (lg_state_kind)(kind ? kind : 1), objects[kind]));
}

static void add(vm *m, lg_checkpoint *k)
{
        static const char *const names[] = {"a", "b", "c", "d", "e", "model", "random", "a.b", ""};
        uint8_t b = byte(m), letter;
        const char *name = b == 0xFF ? NULL : names[b % COUNT(names)];
        switch (byte(m) % 8) {
        case 0:
                real = number(m);
                check_done(m, lg_checkpoint_add_number(k, name, byte(m) < 0xF0 ? &real : NULL));
                return;
        case 1:
                whole = size(m);
                check_done(m, lg_checkpoint_add_i64(k, name, &whole));
                return;
        case 2:
                letter = byte(m);
                memset(text, letter, sizeof text - flag(m));
                check_done(m, lg_checkpoint_add_text(k, name, text, byte(m) < 0xF0 ? sizeof text : 0));
                return;
        default:
                add_object(m, k, name);
        }
}

/* Saves to and loads from one file or two; what was saved is the same after a load. */
static void save_and_load(vm *m, lg_checkpoint *k)
{
        const char *at = path(m), *from = flag(m) ? at : path(m);
        bool saved = flag(m) && lg_checkpoint_save(k, at);
        const uint64_t before = parameter_values(m);
        const double number = real;
        bool loaded = lg_checkpoint_load(k, from);
        check_done(m, loaded);
        if ((saved && from == at) || !loaded) {
                FUZZ_CHECK(m->odd || parameter_values(m) == before, "a load changed what it saved, or failed");
                FUZZ_CHECK(m->odd || !memcmp(&real, &number, sizeof real) || (isnan(real) && isnan(number)),
                           "%g is not %g", real, number);
        }
}

/* A run lives within a call: it must not be used when something in it is freed, as callbacks could. */
static void state_run(vm *m)
{
        const int depth = m->depth;
        lg_checkpoint *k = lg_checkpoint_new(m->now->ctx);
        check_done(m, k != NULL);
        m->odd = m->odd || !k;
        m->depth = 4;
        for (int n = byte(m) % 8; n > 0; n--) {
                add(m, k);
                if (!m->odd && byte(m) % 4)
                        lg_clear_error(m->now->ctx);
        }
        save_and_load(m, k);
        lg_checkpoint_free(k);
        m->depth = depth;
}

static void state_weights(vm *m)
{
        lg_weights *w = lg_weights_open(m->now->ctx, path(m));
        lg_weight it = {.name = NULL};
        const char *key, *value;
        check_done(m, w != NULL);
        if (lg_weights_at(w, byte(m) % 8, &it)) {
                FUZZ_CHECK(it.name && it.bytes >= 0, "%lld bytes", (long long)it.bytes);
                give(m, lg_weights_read(w, it.name));
        }
        lg_weights_metadata(w, byte(m) % 8, &key, &value);
        lg_weights_close(w);
}

/* The next byte says which, so that all of them take one number of calls.def. */
void call_state(vm *m)
{
        static call *const table[] = {state_save, state_load,    state_copy, state_clone,
                                      state_run,  state_weights, state_run};
        table[byte(m) % COUNT(table)](m);
}
