/* gpt_weights.c - weights of networks, from and to the safetensors files of the Hugging Face Hub. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "gpt.h"
#include "json.h"

#define LONGEST 1200    /* bytes of a path or a name */
#define MOST_FILES 1000 /* of one model */
#define SHOWN 5         /* names of each kind in a message */

/* A parameter of the network; t is NULL behind the last one. */
typedef struct part {
        char name[LONGEST];
        lg_tensor *t;
        bool found;
} part;

/* Names to show in a message. */
typedef struct names {
        int64_t count;
        char text[SHOWN * 100];
} names;

typedef struct loading {
        lg_ctx *c;
        const gpt *g;
        part *parts;
        int64_t count;
        char (*files)[LONGEST];
        int64_t file_count;
        names missing, unknown, wrong;
} loading;

static void add_name(names *n, const char *name)
{
        const size_t used = strlen(n->text);
        if (n->count++ < SHOWN)
                snprintf(n->text + used, sizeof n->text - used, "%s%.90s", used ? ", " : "", name);
}

/* ---- names ---- */

/* Returns whether a weight is (in, out) in files: GPT-2's linear layers are Conv1D in transformers. */
static bool is_transposed(const gpt *g, const char *name)
{
        return !g->o.llama && (!fnmatch("*.c_attn.weight", name, 0) || !fnmatch("*.c_proj.weight", name, 0) ||
                               !fnmatch("*.c_fc.weight", name, 0));
}

/* Returns whether a tensor of a file is no parameter: masks and frequencies of older versions, a second copy of the
 * embedding. */
static bool is_ignored(const gpt *g, const char *name)
{
        return !fnmatch("*.attn.bias", name, 0) || !fnmatch("*.attn.masked_bias", name, 0) ||
               !fnmatch("*rotary_emb.inv_freq", name, 0) || (g->o.tied && !strcmp(name, "lm_head.weight"));
}

static part *find(loading *l, const char *name)
{
        const char *prefix = l->g->o.llama ? "model." : "transformer.";
        for (part *p = l->parts; p < l->parts + l->count; p++)
                if (!strcmp(p->name, name) ||
                    (!strncmp(p->name, prefix, strlen(prefix)) && !strcmp(p->name + strlen(prefix), name)))
                        return p;
        return NULL;
}

static void list_part(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        loading *l = user;
        if (is_buffer)
                return;
        part *more = realloc(l->parts, (size_t)(l->count + 1) * sizeof *more);
        if (!more) {
                lg_set_error(l->c, LG_ERR_MEMORY, "no memory for the names of weights");
                return;
        }
        l->parts = more;
        l->parts[l->count] = (part){.t = t};
        snprintf(l->parts[l->count++].name, LONGEST, "%s", path);
}

/* ---- files ---- */

static void add_file(loading *l, const char *folder, const char *name)
{
        char path[LONGEST];
        snprintf(path, sizeof path, "%s/%s", folder, name);
        for (int64_t i = 0; i < l->file_count; i++)
                if (!strcmp(l->files[i], path))
                        return;
        if (l->file_count == MOST_FILES || strchr(name, '/'))
                lg_set_error(l->c, LG_ERR_FORMAT,
                             "%s/model.safetensors.index.json: file %lld is \"%s\"; up to %d "
                             "files of the same folder are possible",
                             folder, (long long)l->file_count, name, MOST_FILES);
        else
                strcpy(l->files[l->file_count++], path);
}

/* Lists model.safetensors or, if there is none, the files of the index. */
static void list_files(loading *l, const char *folder)
{
        char path[LONGEST], name[256];
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        l->files = malloc(MOST_FILES * sizeof *l->files);
        if (!l->files)
                lg_set_error(l->c, LG_ERR_MEMORY, "no memory for the names of files");
        if (!l->files || !access(path, F_OK)) {
                if (l->files)
                        add_file(l, folder, "model.safetensors");
                return;
        }
        snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
        if (access(path, F_OK)) {
                lg_set_error(l->c, LG_ERR_IO, "%s: there is neither model.safetensors nor model.safetensors.index.json",
                             folder);
                return;
        }
        char *text = gpt_read_text(l->c, path);
        json map = json_member(text ? json_parse(text) : (json){NULL, NULL}, "weight_map");
        for (json key = {NULL, NULL}, file; json_next(map, &key, &file) && !lg_error(l->c);) {
                if (json_string(file, name, sizeof name))
                        add_file(l, folder, name);
                else
                        lg_set_error(l->c, LG_ERR_FORMAT, "%s: the file of %.*s is no text", path,
                                     (int)(key.end - key.at), key.at);
        }
        if (!l->file_count)
                lg_set_error(l->c, LG_ERR_FORMAT, "%s: \"weight_map\" names no file", path);
        free(text);
}

/* ---- reading ---- */

static bool fits(const gpt *g, const part *p, const lg_weight *w)
{
        const lg_shape s = lg_shape_of(p->t);
        const bool turned = is_transposed(g, p->name);
        if (s.ndim != w->shape.ndim ||
            (w->dtype != LG_F32 && w->dtype != LG_F64 && w->dtype != LG_F16 && w->dtype != LG_BF16))
                return false;
        for (int i = 0; i < s.ndim; i++)
                if (w->shape.size[i] != s.size[turned ? s.ndim - 1 - i : i])
                        return false;
        return true;
}

/* Matches the tensors of a file with the parameters. */
static void check_file(loading *l, const char *path)
{
        lg_weights *file = lg_weights_open(l->c, path);
        lg_weight w;
        for (int64_t i = 0; lg_weights_at(file, i, &w); i++) {
                part *p = find(l, w.name);
                if (!p && !is_ignored(l->g, w.name))
                        add_name(&l->unknown, w.name);
                if (p && (p->found || !fits(l->g, p, &w)))
                        add_name(&l->wrong, w.name);
                if (p)
                        p->found = true;
        }
        lg_weights_close(file);
}

static void read_file(loading *l, const char *path)
{
        lg_weights *file = lg_weights_open(l->c, path);
        lg_weight w;
        for (int64_t i = 0; lg_weights_at(file, i, &w) && !lg_error(l->c); i++) {
                lg_scope scope = lg_scope_begin(l->c);
                const part *p = find(l, w.name);
                lg_tensor *t = p ? lg_weights_read(file, w.name) : NULL;
                if (p)
                        lg_copy_(p->t, is_transposed(l->g, p->name) ? lg_transpose(t, 0, 1) : t);
                lg_scope_end(l->c, scope);
        }
        lg_weights_close(file);
}

static bool refuse(const loading *l, const char *folder, const names *n, const char *words)
{
        return lg_set_error(l->c, LG_ERR_ARGUMENT, "%s: %lld tensors %s: %s%s", folder, (long long)n->count, words,
                            n->text, n->count > SHOWN ? ", ..." : "");
}

static bool check_all(loading *l, const char *folder)
{
        for (int64_t i = 0; i < l->file_count; i++)
                check_file(l, l->files[i]);
        for (int64_t i = 0; i < l->count; i++)
                if (!l->parts[i].found)
                        add_name(&l->missing, l->parts[i].name);
        if (lg_error(l->c))
                return false;
        if (l->missing.count)
                return refuse(l, folder, &l->missing, "of the network are missing");
        if (l->unknown.count)
                return refuse(l, folder, &l->unknown, "are not in the network of config.json");
        return !l->wrong.count ||
               refuse(l, folder, &l->wrong,
                      "have another shape than config.json says, or no float dtype, or are there twice");
}

bool gpt_load(gpt *g, const char *folder)
{
        loading l = {.c = lg_module_ctx(g->net), .g = g};
        if (strlen(folder) > 800)
                return lg_set_error(l.c, LG_ERR_ARGUMENT, "the name of the folder is too long: %.100s...", folder);
        lg_each_tensor(g->net, list_part, &l);
        if (!lg_error(l.c))
                list_files(&l, folder);
        if (!lg_error(l.c) && check_all(&l, folder))
                lg_no_grad(l.c) for (int64_t i = 0; i < l.file_count; i++) read_file(&l, l.files[i]);
        free(l.parts);
        free(l.files);
        return !lg_error(l.c);
}

/* ---- writing ---- */

/* A tree of modules with the tensors that a file has, for lg_save(). */
typedef struct saving {
        const gpt *g;
        lg_module *tree;
} saving;

/* Adds a copy of a parameter under its path, and the modules on that path. */
static void add_copy(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        const saving *s = user;
        lg_module *m = s->tree;
        char name[LONGEST];
        const char *at = path;
        if (is_buffer)
                return;
        for (const char *dot; (dot = strchr(at, '.')) && m; at = dot + 1) {
                snprintf(name, sizeof name, "%.*s", (int)(dot - at), at);
                m = lg_has_child(m, name) ? lg_child_named(m, name)
                                          : lg_module_add(m, name, lg_nn_module(lg_ctx_of(t), "Weights"));
        }
        lg_module_add_parameter(m, at, lg_copy(is_transposed(s->g, path) ? lg_transpose(t, 0, 1) : t, lg_cpu()));
}

bool gpt_save(gpt *g, const char *text, const char *folder)
{
        lg_ctx *c = lg_module_ctx(g->net);
        char path[LONGEST];
        if (lg_error(c))
                return false;
        if (strlen(folder) > 800)
                return lg_set_error(c, LG_ERR_ARGUMENT, "the name of the folder is too long: %.100s...", folder);
        if (mkdir(folder, 0777) && errno != EEXIST)
                return lg_set_error(c, LG_ERR_IO, "%s: %s", folder, strerror(errno));
        saving s = {g, lg_nn_module(c, "Weights")};
        lg_no_grad(c) lg_each_tensor(g->net, add_copy, &s);
        snprintf(path, sizeof path, "%s/model.safetensors", folder);
        lg_save(s.tree, path);
        if (s.tree)
                lg_module_free(s.tree);
        snprintf(path, sizeof path, "%s/config.json", folder);
        return !lg_error(c) && gpt_config_write(c, text, path);
}
