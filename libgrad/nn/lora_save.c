/* lora_save.c - writes adapters as PEFT does: a folder with adapter_model.safetensors and adapter_config.json. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "io/json.h"
#include "io/safetensors.h"
#include "io/sink.h"
#include "lora.h"

const char *const lg__lora_endings[2] = {"lora_A.weight", "lora_B.weight"};

bool lg__lora_join(lg_ctx *c, const char *op, const char *folder, const char *name, char path[LG__LORA_PATH])
{
        if (!folder)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the folder is NULL", op);
        return snprintf(path, LG__LORA_PATH, "%s/%s", folder, name) < LG__LORA_PATH ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: the path of the folder, %.100s..., is too long", op, folder);
}

/* Names of the two tensors of an adapter in a file. */
typedef struct names {
        char of[2][LG__PATH + 64];
} names;

typedef struct save {
        lg_module *root;
        const lg__lora *first; /* options of the first adapter */
        lg_lora_save_options o;
        lg__sink sink;
} save;

/* Checks that the files can hold all adapters. Returns their number, or 0 with an error. */
static int64_t count_adapters(save *s, const char *op)
{
        lg_ctx *c = s->root->object.ctx;
        char path[LG__PATH], text[256];
        int64_t count = 0;
        for (lg_module *m = lg__lora_next(s->root, NULL); m; m = lg__lora_next(s->root, m)) {
                const lg__lora *o = lg__lora_of(m);
                if (!o)
                        continue;
                if (!count++)
                        s->first = o;
                if (o->dropout != s->first->dropout || o->use_rslora != s->first->use_rslora) {
                        lg__fail(
                                c, LG_ERR_ARGUMENT,
                                "%s: \"%s\" has another .dropout or .use_rslora than the first adapter; a file has one",
                                op, lg__lora_path(s->root, m, path));
                        return 0;
                }
        }
        if (!count)
                lg__fail(c, LG_ERR_ARGUMENT, "%s: no module has an adapter%s", op, lg__lora_names(s->root, text));
        return count;
}

static bool save_weights(save *s, int64_t count, const char *path, const char *op)
{
        lg_ctx *c = s->root->object.ctx;
        lg__weight_out *out = lg__alloc(c, (size_t)count * 2 * sizeof *out);
        names *all = out ? lg__alloc(c, (size_t)count * sizeof *all) : NULL;
        char text[LG__PATH];
        bool ok = all;
        int64_t n = 0;
        for (lg_module *m = ok ? lg__lora_next(s->root, NULL) : NULL; ok && m; m = lg__lora_next(s->root, m)) {
                const char *name = lg__lora_of(m) ? lg__lora_path(s->root, m, text) : NULL;
                for (int i = 0; name && ok && i < 2; i++, n++) {
                        char *to = all[n / 2].of[i];
                        lg_tensor *t = lg__lora_weight(m, i);
                        t = lg__clone_values(t, lg_cpu(), t->at.dtype);
                        ok = t &&
                             (snprintf(to, sizeof all->of[0], LG__LORA_FIRST "%s%s%s%s", s->o.prefix ? s->o.prefix : "",
                                       name, *name ? "." : "", lg__lora_endings[i]) < (int)sizeof all->of[0] ||
                              lg__fail(c, LG_ERR_ARGUMENT, "%s: the path \"%.100s\" is too long", op, name));
                        if (ok)
                                out[n] = (lg__weight_out){
                                        .name = to, .dtype = t->at.dtype, .shape = t->at.shape, .data = lg__data(t)};
                }
        }
        ok = ok && lg__weights_save(c, op, path, out, n, &(lg__meta){"format", "pt"}, 1);
        lg__free(c, all, (size_t)count * sizeof *all);
        lg__free(c, out, (size_t)count * 2 * sizeof *out);
        return ok;
}

static bool put(void *sink, const char *s, size_t bytes)
{
        return lg__sink_put(sink, s, bytes);
}

/* Writes a text without quotes and escapes. */
static bool put_text(save *s, const char *format, ...) LG_PRINTF(2, 3);
static bool put_text(save *s, const char *format, ...)
{
        char text[256];
        va_list args;
        va_start(args, format);
        const int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        return n >= 0 && (size_t)n < sizeof text && lg__sink_put(&s->sink, text, (size_t)n);
}

/* Writes the shortest text that is read as v. */
static bool put_number(save *s, double v)
{
        char text[32];
        for (int digits = 6; digits < 18; digits++) {
                snprintf(text, sizeof text, "%.*g", digits, v);
                if (strtod(text, NULL) == v)
                        break;
        }
        return put_text(s, "%s", text);
}

static bool put_path(save *s, const char *before, const char *path)
{
        char text[LG__PATH + 64];
        const int n = snprintf(text, sizeof text, "%s%s%s", before, s->o.prefix ? s->o.prefix : "", path);
        return n < (int)sizeof text && lg__json_put_string(text, put, &s->sink);
}

/* Writes a list of the paths (item 0), or an object with the ranks (1) or alphas (2) that differ from the first. */
static bool put_modules(save *s, int item)
{
        char path[LG__PATH];
        bool ok = put_text(s, item ? "{" : "["), any = false;
        for (lg_module *m = lg__lora_next(s->root, NULL); ok && m; m = lg__lora_next(s->root, m)) {
                const lg__lora *o = lg__lora_of(m);
                if (!o || (item == 1 && o->rank == s->first->rank) || (item == 2 && o->alpha == s->first->alpha))
                        continue;
                ok = (!any || put_text(s, ", ")) && put_path(s, item ? "^" : "", lg__lora_path(s->root, m, path)) &&
                     (!item || (put_text(s, ": ") && put_number(s, item == 1 ? (double)o->rank : o->alpha)));
                any = true;
        }
        return ok && put_text(s, item ? "}" : "]");
}

static bool put_config(save *s)
{
        const lg__lora *o = s->first;
        return put_text(s, "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": null,\n  \"base_model_name_or_path\": ") &&
               (s->o.base_model ? lg__json_put_string(s->o.base_model, put, &s->sink) : put_text(s, "null")) &&
               put_text(s, ",\n  \"r\": %lld,\n  \"lora_alpha\": ", (long long)o->rank) && put_number(s, o->alpha) &&
               put_text(s, ",\n  \"lora_dropout\": ") && put_number(s, o->dropout) &&
               put_text(s, ",\n  \"fan_in_fan_out\": %s,\n  \"use_rslora\": %s,\n  \"target_modules\": ",
                        s->o.fan_in_fan_out ? "true" : "false", o->use_rslora ? "true" : "false") &&
               put_modules(s, 0) && put_text(s, ",\n  \"rank_pattern\": ") && put_modules(s, 1) &&
               put_text(s, ",\n  \"alpha_pattern\": ") && put_modules(s, 2) &&
               put_text(s, ",\n  \"bias\": \"none\",\n  \"modules_to_save\": null,\n  \"use_dora\": false,\n"
                           "  \"init_lora_weights\": true,\n  \"inference_mode\": true\n}\n");
}

static bool save_config(save *s, const char *path, const char *op)
{
        s->sink = (lg__sink){.ctx = s->root->object.ctx, .op = op, .path = path};
        const locale_t was = lg__point_begin();
        const bool ok = lg__sink_open(&s->sink) && put_config(s) && lg__sink_commit(&s->sink);
        lg__point_end(was);
        lg__sink_close(&s->sink);
        return ok;
}

bool lg_lora_save_with(lg_module *m, const char *folder, const lg_lora_save_options *options)
{
        const char *op = "lg_lora_save";
        char weights[LG__LORA_PATH], config[LG__LORA_PATH];
        lg_ctx *c = lg_module_ctx(m);
        save s = {.root = m};
        if (!lg__take(c, op, options, &s.o, sizeof s.o) || !lg__object_lasts(&m->object, op) ||
            !lg__module_is_whole(m, op) || !lg__lora_join(c, op, folder, "adapter_model.safetensors", weights) ||
            !lg__lora_join(c, op, folder, "adapter_config.json", config))
                return false;
        const int64_t count = count_adapters(&s, op);
        if (!count || !lg_synchronize(c))
                return false;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
                return lg__fail(c, LG_ERR_IO, "%s: the folder %.300s cannot be made: %s", op, folder, strerror(errno));
        lg_scope scope = lg_scope_begin(c);
        const bool ok = scope.id && save_weights(&s, count, weights, op) && save_config(&s, config, op);
        lg_scope_end(c, scope);
        return ok;
}
