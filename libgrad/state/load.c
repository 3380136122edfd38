/* load.c - loads values from a safetensors file into state entries. Matches names, checks everything and reads
 * everything before it changes anything. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/observer.h"
#include "load.h"

/* ---- mismatches between file and entries, collected and then reported as one error ---- */

typedef enum mismatch {
        DIFFERENT, /* reported first: the others may follow from it */
        MISSING,
        UNEXPECTED,
        MISSHAPEN,
        MISTYPED,
        MISMATCH_KINDS
} mismatch;

/* The texts of the first ten mismatches of each kind, and the number of all. */
typedef struct mismatches {
        int64_t count[MISMATCH_KINDS];
        size_t used[MISMATCH_KINDS];
        char text[MISMATCH_KINDS][LG__MESSAGE / 2];
} mismatches;

#define MOST_NAMED 10

static void add_mismatch(mismatches *c, mismatch kind, const char *format, ...) LG_PRINTF(3, 4);
static void add_mismatch(mismatches *c, mismatch kind, const char *format, ...)
{
        va_list args;
        char *text = c->text[kind];
        size_t room = sizeof c->text[kind] - c->used[kind];
        if (c->count[kind]++ >= MOST_NAMED)
                return;
        va_start(args, format);
        int comma = c->used[kind] ? snprintf(text + c->used[kind], room, ", ") : 0;
        int n = room > 2 ? vsnprintf(text + c->used[kind] + comma, room - (size_t)comma, format, args) : -1;
        va_end(args);
        if (n >= 0 && (size_t)(n + comma) < room)
                c->used[kind] += (size_t)(n + comma);
        else
                text[c->used[kind]] = 0; /* no room for another long name: drop it */
}

/* Returns whether there are no mismatches; if there are, sets the error "op: path does not fit<hint>: ...". */
static bool none_or_error(const mismatches *all, lg_ctx *c, const char *op, const char *path, const char *hint)
{
        static const char *const words[] = {"different", "missing", "unexpected", "of another shape",
                                            "of another dtype"};
        char text[LG__MESSAGE];
        size_t used = 0;
        text[0] = 0;
        lg_error_code code = LG_ERR_DTYPE;
        for (int k = 0; k < MISMATCH_KINDS; k++) {
                if (!all->count[k])
                        continue;
                code = k == MISTYPED ? code : LG_ERR_ARGUMENT;
                int64_t more = all->count[k] > MOST_NAMED ? all->count[k] - MOST_NAMED : 0;
                int n = snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "", words[k], all->text[k]);
                used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
                n = more ? snprintf(text + used, sizeof text - used, " and %lld more", (long long)more) : 0;
                used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
        }
        return !used || lg__fail(c, code, "%s: %s does not fit%s: %s", op, path, hint, text);
}

/* ---- the state of a load ---- */

typedef struct load {
        lg__state_entries *list;
        lg__weights *w;
        const char *path;
        const lg_load_options *o;
        const lg__weight **found; /* by entry: its tensor in the file; NULL: none */
        lg__staged *staged;
        int64_t count; /* number of elements of `staged` */
        mismatches mismatches;
} load;

/* ---- names ---- */

/* Returns the name of a file's tensor after .prefix and .rename, in `text` if renamed. NULL: the tensor is ignored. */
static const char *name_here(const load *l, const char *name, char text[LG__PATH])
{
        const lg_load_options *o = l->o;
        size_t skip = o->prefix ? strlen(o->prefix) : 0;
        if (skip && strncmp(name, o->prefix, skip))
                return NULL;
        name += skip;
        for (int64_t i = 0; i + 1 < o->rename.count; i += 2) {
                const char *from = o->rename.items[i];
                size_t n = strlen(from);
                if (strncmp(name, from, n) || (name[n] && name[n] != '.'))
                        continue;
                const char *to = o->rename.items[i + 1], *rest = name + n + (!*to && name[n] == '.');
                int length = snprintf(text, LG__PATH, "%s%s", to, rest);
                return length >= 0 && length < LG__PATH ? text : name;
        }
        return name;
}

static bool rename_is_good(lg_ctx *c, const char *op, lg_names pairs)
{
        if (pairs.count % 2 || (pairs.count && !pairs.items))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .rename has %lld names; they are pairs, old and new", op,
                                (long long)pairs.count);
        for (int64_t i = 0; i < pairs.count; i++)
                if (!pairs.items[i])
                        return lg__fail(c, LG_ERR_ARGUMENT, "%s: name %lld of .rename is NULL", op, (long long)i);
        return true;
}

/* ---- hints for names that differ in their beginnings only ---- */

/* Returns whether an entry is stored as a tensor in files. */
static bool is_tensor(const lg__state_entry *entry)
{
        return entry->kind == LG__ENTRY_TENSOR || entry->kind == LG__ENTRY_COUNT;
}

static bool must_be_there(const lg__state_entry *entry)
{
        return is_tensor(entry) && !(entry->flags & (LG__ENTRY_REMOVABLE | LG__ENTRY_OPTIONAL));
}

/* Returns whether the file has every required tensor of the list whose name begins with the first `skip` bytes of
 * first->name, with the first n bytes of `name` in place of these, in the entry's shape. */
static bool begins_so(const load *l, const lg__state_entry *first, size_t skip, const char *name, size_t n)
{
        char there[LG__PATH];
        for (const lg__state_entry *entry = first; entry < l->list->items + l->list->count; entry++) {
                if (!must_be_there(entry) || strncmp(entry->name, first->name, skip) != 0)
                        continue;
                const int length = snprintf(there, sizeof there, "%.*s%s", (int)n, name, entry->name + skip);
                const lg__weight *e = length < LG__PATH ? lg__weights_find(l->w, there) : NULL;
                if (!e || !lg__shape_equal(e->shape, entry->like.shape))
                        return false;
        }
        return true;
}

/* Returns the length of the shortest beginning of names in the file, empty or up to a dot, that replaces the first
 * `skip` bytes of the list's names (begins_so()), and in *ret a name with it. -1: there is none. */
static int64_t beginning(const load *l, const lg__state_entry *first, size_t skip, const char **ret)
{
        const char *base = first->name + skip;
        const size_t m = strlen(base);
        int64_t best = -1;
        for (int64_t i = 0; i < l->w->count; i++) {
                const char *name = l->w->entries[i].name;
                const size_t all = strlen(name), n = all - m;
                if (all < m || strcmp(name + n, base) != 0 || (n && name[n - 1] != '.') ||
                    (best >= 0 && (int64_t)n >= best) || (n == skip && !strncmp(name, first->name, n)) ||
                    !begins_so(l, first, skip, name, n))
                        continue;
                best = (int64_t)n;
                *ret = name;
        }
        return best;
}

/* Returns a hint on how the names of the file begin, if they differ from the list's in that only; else "". */
static lg__text names_hint(const load *l)
{
        lg__text hint = {""};
        const lg__state_entry *first = l->list->items, *end = first + l->list->count;
        const char *there = NULL;
        while (first < end && !must_be_there(first))
                first++;
        if (first == end || l->o->rename.count)
                return hint;
        const char *dot = strchr(first->name, '.');
        const int mine = dot ? (int)(dot + 1 - first->name) : 0;
        int64_t n = beginning(l, first, 0, &there);
        if (n > 0) {
                snprintf(hint.s, sizeof hint.s,
                         " (its names begin with \"%.*s\", which .prefix = \"%.*s\" of lg_load() removes)", (int)n,
                         there, (int)n, there);
        } else if (mine && (n = beginning(l, first, (size_t)mine, &there)) >= 0) {
                snprintf(hint.s, sizeof hint.s,
                         n ? " (its names begin with \"%.*s\", not with \"%.*s\")"
                           : " (its names lack \"%.*s%.*s\": lg_load() reads them into that module)",
                         (int)n, there, mine, first->name);
        }
        return hint;
}

/* ---- matching ---- */

static void match_weight(load *l, const lg__weight *e)
{
        char text[LG__PATH];
        const char *name = name_here(l, e->name, text);
        lg__state_entry *entry = name ? lg__state_entries_find(l->list, name) : NULL;
        if (!entry || !is_tensor(entry)) {
                if (name && !l->o->partial)
                        add_mismatch(&l->mismatches, UNEXPECTED, "\"%.200s\"", name);
                return;
        }
        int64_t i = entry - l->list->items;
        bool castable = l->o->cast && lg__dtype_float(e->dtype) && lg__dtype_float(entry->like.dtype);
        const bool same_shape = lg__shape_equal(e->shape, entry->like.shape);
        if (!same_shape && l->o->partial && l->o->skip_mismatched)
                return;
        if (l->found[i])
                add_mismatch(&l->mismatches, UNEXPECTED, "\"%.200s\" a second time, as \"%.200s\"", name, e->name);
        else if (!same_shape)
                add_mismatch(&l->mismatches, MISSHAPEN, "\"%.200s\" %s, not %s", name, lg__shape_text(e->shape).s,
                             lg__shape_text(entry->like.shape).s);
        else if (e->dtype != entry->like.dtype && !castable)
                add_mismatch(&l->mismatches, MISTYPED, "\"%.200s\" %s, not %s", name, e->dtype_name,
                             lg_dtype_name(entry->like.dtype));
        l->found[i] = e;
}

/* Parses a number or text of the file for an entry into *ret. Returns whether the whole text is valid for its kind. */
static bool parse(const char *text, const lg__state_entry *entry, lg__staged *ret)
{
        const lg__entry_kind kind = entry->kind;
        char *end = NULL;
        locale_t was = lg__point_begin();
        errno = 0;
        if (kind == LG__ENTRY_I64)
                ret->number.i64 = strtoll(text, &end, 10);
        else if (kind == LG__ENTRY_U64)
                ret->number.u64 = strtoull(text, &end, 10);
        else if (kind == LG__ENTRY_F64)
                ret->number.f64 = strtod(text, &end);
        lg__point_end(was);
        if (kind == LG__ENTRY_BOOL) {
                ret->number.flag = !strcmp(text, "true");
                return ret->number.flag || !strcmp(text, "false");
        }
        if (kind == LG__ENTRY_TEXT) {
                ret->number.text = text;
                return (int64_t)strlen(text) < entry->most;
        }
        return end != text && !*end && (errno == 0 || kind == LG__ENTRY_F64) && (kind != LG__ENTRY_U64 || *text != '-');
}

static void match_number(load *l, lg__state_entry *entry)
{
        lg__staged *s = &l->staged[l->count];
        const char *text = lg__weights_meta(l->w, entry->name);
        *s = (lg__staged){.to = entry};
        if (!text) {
                if (!l->o->partial && !(entry->flags & LG__ENTRY_OPTIONAL))
                        add_mismatch(&l->mismatches, MISSING, "\"%.200s\"", entry->name);
        } else if (!parse(text, entry, s)) {
                lg__fail(l->list->c, LG_ERR_FORMAT, "%s: %s: \"%.200s\" is \"%.40s\", which %s", l->list->op, l->path,
                         entry->name, text,
                         entry->kind == LG__ENTRY_TEXT ? "is too long for its place" : "is no such number");
        } else if (entry->kind == LG__ENTRY_I64 && entry->most >= 0 &&
                   (s->number.i64 < 0 || s->number.i64 > entry->most)) {
                if (!l->mismatches.count[DIFFERENT]) /* otherwise the limit may depend on the entry that differs */
                        lg__fail(l->list->c, LG_ERR_FORMAT, "%s: %s: \"%.200s\" is %s; it must be from 0 to %lld",
                                 l->list->op, l->path, entry->name, text, (long long)entry->most);
        } else if (!(entry->flags & LG__ENTRY_FIXED)) {
                l->count++;
        } else if (entry->kind == LG__ENTRY_TEXT && strcmp(text, entry->at) != 0) {
                add_mismatch(&l->mismatches, DIFFERENT, "\"%.200s\" %.40s, but here %s", entry->name, text,
                             (const char *)entry->at);
        } else if (entry->kind == LG__ENTRY_I64 && s->number.i64 != *(int64_t *)entry->at) {
                add_mismatch(&l->mismatches, DIFFERENT, "\"%.200s\" %s, but here %lld", entry->name, text,
                             (long long)*(int64_t *)entry->at);
        }
}

/* Returns true, but with .partial sets an error if no tensor matches, since the file or .prefix must be wrong. */
static bool fits_in_part(const load *l)
{
        bool fits = !l->o->partial || !l->list->count;
        for (int64_t i = 0; i < l->list->count; i++)
                fits = fits || l->found[i];
        return fits || lg__fail(l->list->c, LG_ERR_ARGUMENT,
                                "%s: %s has no tensor of this module%s%.200s%s, whose first is \"%.200s\"%s",
                                l->list->op, l->path, l->o->prefix ? " under \"" : "", l->o->prefix ? l->o->prefix : "",
                                l->o->prefix ? "\"" : "", l->list->items[0].name, names_hint(l).s);
}

static bool match(load *l)
{
        for (int64_t i = 0; i < l->w->count; i++)
                match_weight(l, &l->w->entries[i]);
        for (int64_t i = 0; i < l->w->meta_count && l->list->all_numbers; i++) {
                const char *key = l->w->metas[i].key;
                if (!lg__state_entries_find(l->list, key) &&
                    strcmp(key, "format") != 0) /* other programs add "format" */
                        add_mismatch(&l->mismatches, UNEXPECTED, "\"%.200s\"", key);
        }
        for (int64_t i = 0; i < l->list->count; i++) {
                lg__state_entry *entry = &l->list->items[i];
                if (!is_tensor(entry))
                        match_number(l, entry);
                else if (!l->found[i] && !l->o->partial && !(entry->flags & (LG__ENTRY_REMOVABLE | LG__ENTRY_OPTIONAL)))
                        add_mismatch(&l->mismatches, MISSING, "\"%.200s\"", entry->name);
        }
        if (!lg__ok(l->list->c))
                return false;
        const lg__text hint = l->mismatches.count[MISSING] ? names_hint(l)
                              : l->o->partial && l->mismatches.count[MISSHAPEN]
                                      ? (lg__text){" (.skip_mismatched leaves tensors of another shape as they are)"}
                                      : (lg__text){""};
        return none_or_error(&l->mismatches, l->list->c, l->list->op, l->path, hint.s) && fits_in_part(l);
}

/* ---- reading ---- */

/* Limit, in bytes, of new values held in memory for tensors that exist; the file is read twice for values beyond it. */
int64_t lg__most_staged = (int64_t)64 << 20;

static bool read_entry(load *l, lg__state_entry *entry, const lg__weight *e, int64_t *staged)
{
        lg__staged s = {.to = entry, .removed = !e};
        const int64_t bytes = e ? e->end - e->begin : 0;
        bool ok = true;
        if (entry->kind == LG__ENTRY_COUNT) {
                ok = lg__weights_read(l->w, e, &s.number.i64);
        } else if (e && *(lg_tensor **)entry->at && *staged + bytes > lg__most_staged) {
                s.reread = e;
                ok = lg__weight_put(l->w, e, NULL);
        } else if (e) {
                *staged += *(lg_tensor **)entry->at ? bytes : 0;
                ok = (s.tensor = lg__weight_tensor(l->w, e, entry->like.dtype, entry->device)) != NULL;
        }
        l->staged[l->count++] = s;
        return ok;
}

static bool read_all(load *l)
{
        int64_t staged = 0;
        for (int64_t i = 0; i < l->list->count; i++) {
                lg__state_entry *entry = &l->list->items[i];
                bool removed = !l->found[i] && !l->o->partial && (entry->flags & LG__ENTRY_REMOVABLE);
                if (is_tensor(entry) && (l->found[i] || removed) && !read_entry(l, entry, l->found[i], &staged))
                        return false;
        }
        return true;
}

/* Reads the values beyond lg__most_staged a second time, directly into the existing tensors. */
static bool put_reread(load *l)
{
        char why[LG__MESSAGE];
        bool changed = false, ok = true;
        for (int64_t i = 0; i < l->count && ok; i++) {
                const lg__staged *s = &l->staged[i];
                if (!s->reread)
                        continue;
                lg_tensor *t = *(lg_tensor **)s->to->at;
                lg__storage_finish_copies(t->storage);
                t->storage->version++;
                ok = lg__weight_put(l->w, s->reread, t);
                changed = true;
        }
        if (ok || !changed)
                return ok;
        const lg_error_code code = l->list->c->error;
        memcpy(why, l->list->c->message, sizeof why);
        lg__forget_error(l->list->c);
        return lg__fail(l->list->c, code, "%.700s; it could be read before, and part of its values are in place", why);
}

/* ---- storing ---- */

static bool put_tensor(lg__state_entries *list, const lg__staged *s)
{
        lg_tensor **at = s->to->at;
        if (*at && !s->removed) {
                lg__storage_finish_copies((*at)->storage);
                if (!lg__copy_values(*at, s->tensor, list->op))
                        return false;
                (*at)->storage->version++;
                return true;
        }
        lg_tensor *old = *at;
        *at = s->removed ? NULL : lg__tensor_own(s->tensor);
        lg__tensor_release(old);
        return true;
}

static void put_number(const lg__staged *s)
{
        static const size_t bytes[] = {[LG__ENTRY_I64] = 8,
                                       [LG__ENTRY_U64] = 8,
                                       [LG__ENTRY_F64] = 8,
                                       [LG__ENTRY_COUNT] = 8,
                                       [LG__ENTRY_BOOL] = sizeof(bool)};
        if (s->to->kind == LG__ENTRY_TEXT)
                memcpy(s->to->at, s->number.text, strlen(s->number.text) + 1);
        else if (s->to->kind != LG__ENTRY_TENSOR)
                memcpy(s->to->at, &s->number, bytes[s->to->kind]);
}

bool lg__stage_commit(lg__state_entries *list, lg__staged *all, int64_t count)
{
        for (int64_t i = 0; i < count; i++)
                if (all[i].to->kind == LG__ENTRY_TENSOR && !all[i].reread && !put_tensor(list, &all[i]))
                        return false;
        for (int64_t i = 0; i < count; i++)
                put_number(&all[i]);
        return true;
}

static bool load_weights(load *l)
{
        lg_ctx *c = l->list->c;
        size_t found = (size_t)l->list->count * sizeof *l->found + 1,
               staged = (size_t)l->list->count * sizeof *l->staged + 1;
        lg_scope scope = lg__scope_begin(c);
        l->found = scope.id ? lg__alloc(c, found) : NULL;
        l->staged = l->found ? lg__alloc(c, staged) : NULL;
        bool ok =
                l->staged && match(l) && read_all(l) && put_reread(l) && lg__stage_commit(l->list, l->staged, l->count);
        lg__free(c, l->staged, staged);
        lg__free(c, l->found, found);
        lg_scope_end(c, scope);
        return ok;
}

bool lg__state_load(lg__state_entries *list, const char *path, const lg_load_options *o)
{
        if (!lg__unrecorded(list->c, list->op) || !rename_is_good(list->c, list->op, o->rename))
                return false;
        if (o->skip_mismatched && !o->partial)
                return lg__fail(list->c, LG_ERR_ARGUMENT,
                                "%s: .skip_mismatched is an option of a load in part; give .partial, too", list->op);
        lg__state_entries_sort(list);
        load *l = lg__alloc(list->c, sizeof *l);
        if (!l)
                return false;
        lg__frame span;
        lg__span_begin(list->c, &span, "load", NULL, NULL);
        *l = (load){.list = list, .path = path, .o = o};
        l->w = lg__weights_open(list->c, list->op, path);
        bool ok = l->w && load_weights(l);
        lg__weights_close(l->w);
        lg__free(list->c, l, sizeof *l);
        lg__span_end(list->c, &span);
        return ok;
}
