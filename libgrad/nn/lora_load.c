/* lora_load.c - reads adapters in PEFT's form: a folder with adapter_model.safetensors and adapter_config.json. */
#include <math.h>
#include <string.h>
#include "io/json.h"
#include "io/safetensors.h"
#include "io/source.h"
#include "lora.h"

typedef struct load {
        lg_ctx *c;
        const char *op, *prefix;
        lg_module *root;
        lg__lora options; /* without the rank */
        char config_path[LG__LORA_PATH], weights_path[LG__LORA_PATH];
        lg__whole text; /* of the configuration */
        char *scratch;  /* its strings, decoded */
        lg__json alphas;
        lg__weights *weights;
} load;

/* A member of the configuration that must be missing, null, false, empty or one of `words`, since libgrad lacks others.
 */
static const struct {
        const char *name, *words[3];
} limits[] = {{"peft_type", {"LORA"}},
              {"bias", {"none"}},
              {"init_lora_weights", {"gaussian", "eva", "orthogonal"}},
              {"use_dora", {NULL}},
              {"modules_to_save", {NULL}},
              {"lora_bias", {NULL}},
              {"layer_replication", {NULL}},
              {"trainable_token_indices", {NULL}},
              {"target_parameters", {NULL}},
              {"alora_invocation_tokens", {NULL}},
              {"use_qalora", {NULL}},
              {"use_bdlora", {NULL}},
              {"velora_config", {NULL}},
              {"arrow_config", {NULL}},
              {"kasa_config", {NULL}}};
#define LIMITS ((int)(sizeof limits / sizeof *limits))

static bool is_allowed(lg__json p, int limit)
{
        if (!p.s || *p.s == 'n' || *p.s == 'f' || (*p.s == 't' && limits[limit].words[1]))
                return true;
        if (*p.s == '[' || *p.s == '{') {
                p.s++;
                return !lg__json_next(&p);
        }
        const char *word = *p.s == '"' ? lg__json_string(&p) : NULL;
        for (int i = 0; word && i < 3 && limits[limit].words[i]; i++)
                if (!strcmp(word, limits[limit].words[i]))
                        return true;
        return false;
}

static bool bad_config(const load *l, lg_error_code code, const char *what)
{
        return lg__fail(l->c, code, "%s: %.300s: %s", l->op, l->config_path, what);
}

static bool is_number(lg__json p)
{
        return *p.s == '-' || (*p.s >= '0' && *p.s <= '9');
}

static bool read_options(load *l, lg__json p)
{
        enum { ALPHA, DROPOUT, RSLORA, ALPHAS, MEMBERS };
        static const char *const names[] = {"lora_alpha", "lora_dropout", "use_rslora", "alpha_pattern"};
        lg__json at[MEMBERS];
        lg__json_pick(p, MEMBERS, names, at);
        for (int i = ALPHA; i <= DROPOUT; i++)
                if (at[i].s && !is_number(at[i]))
                        return bad_config(l, LG_ERR_FORMAT, "lora_alpha and lora_dropout must be numbers");
        l->options.alpha = at[ALPHA].s ? lg__json_real(&at[ALPHA]) : 8;
        l->options.dropout = at[DROPOUT].s ? lg__json_real(&at[DROPOUT]) : 0;
        l->options.use_rslora = at[RSLORA].s && lg__json_true(&at[RSLORA]);
        l->alphas = at[ALPHAS];
        if (!isfinite(l->options.alpha) || !(l->options.dropout >= 0 && l->options.dropout < 1))
                return bad_config(l, LG_ERR_FORMAT, "lora_alpha must be finite, and lora_dropout in [0, 1)");
        return true;
}

static bool read_config(load *l)
{
        const char *wrong, *names[LIMITS];
        size_t at;
        lg__json members[LIMITS];
        if (!lg__whole_read(l->c, l->op, l->config_path, &l->text))
                return false;
        if (!lg__json_check_any((lg__span){l->text.data, l->text.bytes}, &wrong, &at))
                return lg__fail(l->c, LG_ERR_FORMAT, "%s: %.300s is not JSON: byte %zu: %s", l->op, l->config_path, at,
                                wrong);
        l->scratch = lg__alloc(l->c, l->text.bytes + 1);
        if (!l->scratch)
                return false;
        lg__json p = {.s = l->text.data, .end = l->text.data + l->text.bytes, .to = l->scratch, .any = true};
        while (*p.s != '{')
                p.s++;
        for (int i = 0; i < LIMITS; i++)
                names[i] = limits[i].name;
        lg__json_pick(p, LIMITS, names, members);
        bool ok = (members[0].s && *members[0].s == '"') || bad_config(l, LG_ERR_FORMAT, "peft_type is missing");
        for (int i = 0; ok && i < LIMITS; i++)
                if (!is_allowed(members[i], i))
                        ok = lg__fail(l->c, LG_ERR_STATE, "%s: %.300s: libgrad has no adapters with this %s", l->op,
                                      l->config_path, names[i]);
        return ok && read_options(l, p);
}

/* An adapter in the file: its module and its weights A and B, on the CPU. */
typedef struct adapter {
        lg_module *m;
        double alpha;
        lg_tensor *weight[2];
} adapter;

static void *bad_weight(const load *l, const lg__weight *e, lg_error_code code, const char *what)
{
        return lg__fail(l->c, code, "%s: %.300s: the tensor %s %s", l->op, l->weights_path, lg__quoted(e->name).s,
                        what);
}

/* Returns whether key, as in alpha_pattern, stands for a path: the whole path after '^', else its end, too. Other
 * regular expressions are an error, for which *ret_ok is set to false. */
static bool key_fits(const load *l, const char *key, const char *path, bool *ret_ok)
{
        const bool whole = *key == '^';
        const size_t n = strlen(key += whole), all = strlen(path);
        if (strpbrk(key, "*+?()[]{}|\\^$"))
                *ret_ok = lg__fail(l->c, LG_ERR_STATE,
                                   "%s: %.300s: libgrad reads no regular expressions in alpha_pattern: %s", l->op,
                                   l->config_path, lg__quoted(key).s);
        return n <= all && !strcmp(path + all - n, key) && (n == all || (!whole && path[all - n - 1] == '.'));
}

/* Sets *ret to the alpha of the module at `path`, as the file has it. Returns false with an error. */
static bool find_alpha(const load *l, const char *path, double *ret)
{
        lg__json p = l->alphas;
        bool ok = true, found = false;
        *ret = l->options.alpha;
        if (!p.s || *p.s++ != '{')
                return true;
        for (const char *key; ok && (key = lg__json_member(&p));) {
                if (!is_number(p))
                        return bad_config(l, LG_ERR_FORMAT, "alpha_pattern must have numbers");
                const double alpha = lg__json_real(&p);
                if (key_fits(l, key, path, &ok) && !found) {
                        *ret = alpha;
                        found = true;
                }
        }
        return ok && (isfinite(*ret) || bad_config(l, LG_ERR_FORMAT, "alphas must be finite"));
}

/* Reads the name of tensor e: the path of its module, with .prefix, and whether it is A (0) or B (1). Returns false
 * with an error. */
static bool parse_name(const load *l, const lg__weight *e, char path[LG__PATH], int *ret_which)
{
        const size_t start = strlen(LG__LORA_FIRST), end = strlen(lg__lora_endings[0]), n = strlen(e->name);
        const size_t length = n < start + end ? 0 : n - start - end;
        const char *last = e->name + n - (n < end ? 0 : end);
        *ret_which = !strcmp(last, lg__lora_endings[1]);
        if (n < start + end || memcmp(e->name, LG__LORA_FIRST, start) || strcmp(last, lg__lora_endings[*ret_which]) ||
            (length && last[-1] != '.'))
                return bad_weight(l, e, LG_ERR_STATE,
                                  "is not \"" LG__LORA_FIRST "PATH.lora_A.weight\" or \"...lora_B.weight\"");
        if (length >= LG__PATH)
                return bad_weight(l, e, LG_ERR_ARGUMENT, "has a path that is too long");
        memcpy(path, e->name + start, length);
        path[length ? length - 1 : 0] = '\0';
        return !strncmp(path, l->prefix, strlen(l->prefix)) ||
               bad_weight(l, e, LG_ERR_ARGUMENT, "does not have .prefix behind \"" LG__LORA_FIRST "\"");
}

/* Returns the Linear module at that path; NULL with an error. */
static lg_module *linear_at(const load *l, const char *path)
{
        char names[256];
        lg_module *m = !*path ? l->root : lg_has_child(l->root, path) ? lg_child_named(l->root, path) : NULL;
        if (m && (lg__lora_of(m) || m->forward_epilogue == lg__linear_forward))
                return m;
        return lg__fail(l->c, LG_ERR_ARGUMENT, "%s: %.300s has an adapter of \"%.200s\", which is %s%s", l->op,
                        l->weights_path, path, m ? "no Linear module" : "missing here", lg__lora_names(l->root, names));
}

/* Returns tensor e as a tensor on the CPU; NULL with an error. */
static lg_tensor *read_tensor(const load *l, const lg__weight *e)
{
        if (!lg__dtype_float(e->dtype))
                return bad_weight(l, e, LG_ERR_DTYPE, "is of a dtype that is no float of libgrad");
        lg_tensor *t = lg__tensor_empty(l->c, lg_cpu(), e->dtype, e->shape);
        return t && lg__weights_read(l->weights, e, lg__data(t)) ? t : NULL;
}

/* Reads the adapter whose A is tensor e. Returns false with an error. */
static bool read_adapter(const load *l, const lg__weight *e, const char *path, adapter *ret)
{
        char other[LG__PATH + 64];
        const lg__weight *both[2] = {e};
        snprintf(other, sizeof other, "%.*s%s", (int)(strlen(e->name) - strlen(lg__lora_endings[0])), e->name,
                 lg__lora_endings[1]);
        both[1] = lg__weights_find(l->weights, other);
        if (!both[1])
                return bad_weight(l, e, LG_ERR_FORMAT, "has no lora_B.weight beside it");
        ret->m = linear_at(l, path + strlen(l->prefix));
        if (!ret->m || !find_alpha(l, path, &ret->alpha))
                return false;
        const lg__lora *o = lg__lora_of(ret->m);
        if (!o && !lg__lora_fits(l->root, ret->m, l->op))
                return false;
        if (ret->m->parts->kind != LG__PARAMETER)
                return lg__fail(l->c, LG_ERR_STATE, "%s: the weight of \"%.200s\" has parametrizations", l->op, path);
        const lg_shape w = ret->m->parts->tensor->at.shape, a = e->shape;
        const int64_t rank = a.ndim == 2 ? a.size[0] : 0;
        if (rank < 1 || !lg__shape_equal(a, LG_SHAPE(rank, w.size[1])) ||
            !lg__shape_equal(both[1]->shape, LG_SHAPE(w.size[0], rank)) || (o && o->rank != rank))
                return lg__fail(l->c, LG_ERR_SHAPE,
                                "%s: %.300s: the adapter of \"%.200s\" is %s and %s; its weight is %s%s", l->op,
                                l->weights_path, path, lg__shape_text(a).s, lg__shape_text(both[1]->shape).s,
                                lg__shape_text(w).s, o ? ", and it has an adapter of another rank" : "");
        for (int i = 0; i < 2; i++)
                if (!(ret->weight[i] = read_tensor(l, both[i])))
                        return false;
        return true;
}

/* Reads all adapters. Returns their number, or -1 with an error. */
static int64_t read_adapters(const load *l, adapter *all)
{
        int64_t count = 0;
        char path[LG__PATH];
        for (int64_t i = 0; i < l->weights->count; i++) {
                const lg__weight *e = &l->weights->entries[i];
                int which;
                if (!parse_name(l, e, path, &which) || (!which && !read_adapter(l, e, path, &all[count++])))
                        return -1;
        }
        if (2 * count == l->weights->count && count)
                return count;
        lg__fail(l->c, LG_ERR_FORMAT, "%s: %.300s has %lld tensors, but %lld pairs of lora_A and lora_B", l->op,
                 l->weights_path, (long long)l->weights->count, (long long)count);
        return -1;
}

static bool file_has_all(const load *l, const adapter *all, int64_t count)
{
        char path[LG__PATH];
        for (lg_module *m = lg__lora_next(l->root, NULL); m; m = lg__lora_next(l->root, m)) {
                int64_t i = 0;
                while (i < count && all[i].m != m)
                        i++;
                if (lg__lora_of(m) && i == count)
                        return lg__fail(l->c, LG_ERR_ARGUMENT,
                                        "%s: %.300s lacks an adapter for \"%.200s\", which has one", l->op,
                                        l->weights_path, lg__lora_path(l->root, m, path));
        }
        return true;
}

/* Gives the module the adapter, or changes the one it has. Returns false with an error. */
static bool apply(const load *l, const adapter *from)
{
        lg__lora made = l->options;
        bool ok = true;
        made.alpha = from->alpha;
        made.rank = from->weight[0]->at.shape.size[0];
        if (!lg__lora_of(from->m) && !lg__lora_add(from->m, &made, l->op))
                return false;
        lg_no_grad(l->c) for (int i = 0; ok && i < 2; i++)
        {
                lg_tensor *to = lg__lora_weight(from->m, i);
                lg_tensor *t = lg__clone_values(from->weight[i], to->storage->device->id, to->at.dtype);
                ok = t && lg_copy_(to, t);
        }
        made.is_new = lg__lora_of(from->m)->is_new;
        *lg__lora_of(from->m) = made;
        return ok;
}

static bool load_all(load *l)
{
        lg_ctx *c = l->c;
        if (!read_config(l) || !(l->weights = lg__weights_open(c, l->op, l->weights_path)))
                return false;
        const size_t bytes = ((size_t)l->weights->count + 1) * sizeof(adapter);
        adapter *all = lg__alloc(c, bytes);
        const int64_t count = all ? read_adapters(l, all) : -1;
        bool ok = count > 0 && file_has_all(l, all, count);
        const lg_random_state state = c->random;
        for (int64_t i = 0; ok && i < count; i++)
                ok = apply(l, &all[i]);
        c->random = state;
        lg__free(c, all, bytes);
        return lg__lora_end(l->root, ok);
}

bool lg_lora_load_with(lg_module *m, const char *folder, const lg_lora_load_options *options)
{
        lg_lora_load_options o;
        lg_ctx *c = lg_module_ctx(m);
        load l = {.c = c, .op = "lg_lora_load", .root = m};
        if (!lg__take(c, l.op, options, &o, sizeof o) || !lg__object_lasts(&m->object, l.op) ||
            !lg__module_is_whole(m, l.op) ||
            !lg__lora_join(c, l.op, folder, "adapter_model.safetensors", l.weights_path) ||
            !lg__lora_join(c, l.op, folder, "adapter_config.json", l.config_path))
                return false;
        l.prefix = o.prefix ? o.prefix : "";
        lg_scope scope = lg_scope_begin(c);
        const bool ok = scope.id && load_all(&l);
        lg_scope_end(c, scope);
        lg__weights_close(l.weights);
        lg__free(c, l.scratch, l.text.bytes + 1);
        lg__free(c, l.text.data, (size_t)l.text.room);
        return ok;
}
