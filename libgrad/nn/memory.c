/* memory.c - lg_module_print_memory(): a table of the memory that each module uses. */
#include "core/observer.h"
#include "nn.h"

/* ---- measuring a forward ---- */

/* Returns the memory statistics of the device of the module's first input. NULL: there is no input, or f is inside
 * another forward of the same module, and only the outer forward is measured. */
static lg_memory_stats_t *stats_of(const lg__frame *f)
{
        const lg__frame *outer = f->outer;
        while (outer && outer->module != f->module)
                outer = outer->outer;
        return f->device && !outer ? &f->device->cache.stats : NULL;
}

static void enter(lg__observer *o, const lg__frame *f)
{
        (void)o;
        lg_memory_stats_t *stats = stats_of(f);
        if (!stats)
                return;
        f->module->used_before = stats->used;
        f->module->peak_before = stats->peak;
        stats->peak = stats->used;
}

static void leave(lg__observer *o, const lg__frame *f)
{
        (void)o;
        lg_module *m = f->module;
        lg_memory_stats_t *stats = stats_of(f);
        if (!stats)
                return;
        m->kept_bytes = stats->used - m->used_before;
        m->most_bytes = stats->peak - m->used_before;
        stats->peak = m->peak_before > stats->peak ? m->peak_before : stats->peak;
}

/* ---- the table ---- */

static int64_t bytes_of(const lg_tensor *t)
{
        return t ? lg__shape_numel(t->at.shape) * (int64_t)lg__dtype_bytes(t->at.dtype) : 0;
}

typedef struct figures {
        int64_t parameters, gradients, buffers;
} figures;

static figures figures_of(const lg_module *m)
{
        figures f = {0, 0, 0};
        for (const lg__part *p = m->parts; p; p = p->next) {
                if (p->kind == LG__BUFFER)
                        f.buffers += bytes_of(p->tensor);
                if (p->kind == LG__PARAMETER) {
                        f.parameters += bytes_of(p->tensor);
                        f.gradients += bytes_of(lg_grad_of(p->tensor));
                }
        }
        return f;
}

typedef struct size_text {
        char s[24];
} size_text;

/* Formats a number of bytes, as in "1.5 MiB". */
static size_text size(int64_t bytes)
{
        static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
        size_text t;
        double v = (double)bytes;
        int unit = 0;
        for (; v >= 1024 && unit < 4; unit++)
                v /= 1024;
        snprintf(t.s, sizeof t.s, unit ? "%.1f %s" : "%.0f %s", v, units[unit]);
        return t;
}

static void line(FILE *f, const char *name, const char *type, figures n, int64_t kept, int64_t most)
{
        fprintf(f, "%-28s  %-18s  %10s  %10s  %10s  %10s  %10s\n", name, type, size(n.parameters).s,
                size(n.gradients).s, size(n.buffers).s, size(kept).s, size(most).s);
}

static void print(FILE *f, lg_module *root)
{
        char path[LG__PATH];
        figures all = {0, 0, 0};
        fprintf(f, "%-28s  %-18s  %10s  %10s  %10s  %10s  %10s\n", "name", "type", "parameters", "gradients", "buffers",
                "kept", "peak");
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                figures n = figures_of(m);
                all = (figures){all.parameters + n.parameters, all.gradients + n.gradients, all.buffers + n.buffers};
                if (lg__module_has_line(m))
                        line(f, lg__module_path_in(root, m, path), m->type, n, m->kept_bytes, m->most_bytes);
        }
        line(f, "total", root->type, all, root->kept_bytes, root->most_bytes);
}

/* ---- saving and restoring buffers and counts of batches ---- */

/* A buffer and a copy of its values before the forward, or a module and its count of batches; the other members are 0.
 * Buffers and modules that the forward adds are not saved. */
typedef struct kept {
        lg_tensor *buffer, *values;
        lg_module *module;
        int64_t batches;
} kept;

static bool keep(lg_module *root, kept *all)
{
        for (lg_module *m = root; m; m = lg__module_next(m, root)) {
                *all++ = (kept){.module = m, .batches = m->batches};
                for (lg__part *p = m->parts; p; p = p->next) {
                        lg_tensor *t = p->tensor;
                        if (p->kind != LG__BUFFER)
                                continue;
                        *all = (kept){t, lg__clone_values(t, t->storage->device->id, t->at.dtype)};
                        if (!all++->values)
                                return false;
                }
        }
        return true;
}

static bool restore(const kept *all, int64_t count)
{
        for (int64_t i = 0; i < count; i++) {
                if (all[i].module) {
                        all[i].module->batches = all[i].batches;
                        continue;
                }
                if (!lg__copy_values(all[i].buffer, all[i].values, "lg_module_print_memory"))
                        return false;
                all[i].buffer->storage->version++;
        }
        return true;
}

static int64_t count_kept(const lg_module *root)
{
        int64_t count = 0;
        for (const lg_module *m = root; m; m = lg__module_next(m, root), count++)
                for (const lg__part *p = m->parts; p; p = p->next)
                        count += p->kind == LG__BUFFER;
        return count;
}

bool lg_module_print_memory_with(FILE *f, lg_module *m, const lg_module_print_options *options)
{
        lg_module_print_options o;
        lg_ctx *c = lg_module_ctx(m);
        if (!lg__take(c, "lg_module_print_memory", options, &o, sizeof o) ||
            !lg__object_lasts(&m->object, "lg_module_print_memory") || !lg__unrecorded(c, "lg_module_print_memory") ||
            !lg__list_ok(c, "lg_module_print_memory", o.inputs.count, o.inputs.items))
                return false;
        if (!f)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_module_print_memory: the file is NULL");
        lg_scope scope = lg__scope_begin(c);
        int64_t count = count_kept(m);
        size_t bytes = (size_t)count * sizeof(kept);
        kept *saved = scope.id ? lg__alloc(c, bytes) : NULL;
        bool ok = saved && keep(m, saved);
        if (ok) {
                lg__observer observer = {.enter = enter, .leave = leave};
                bool recording = lg_set_grad_mode(c, true);
                lg__observe(c, &observer);
                ok = lg__module_try(m, &o);
                lg__unobserve(c, &observer);
                lg_set_grad_mode(c, recording);
                ok = restore(saved, count) && ok;
        }
        lg__free(c, saved, bytes);
        lg_scope_end(c, scope);
        if (!ok)
                return false;
        locale_t was = lg__point_begin();
        print(f, m);
        lg__point_end(was);
        return lg__written(c, f, "lg_module_print_memory");
}
