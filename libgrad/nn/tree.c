/* tree.c - walks through a module and its children: paths, lookups, the list of all parameters. */
#include <fnmatch.h>
#include <string.h>
#include "nn.h"

static lg__part *next_child(lg__part *p)
{
        while (p && p->kind != LG__CHILD)
                p = p->next;
        return p;
}

lg_module *lg__module_next(const lg_module *m, const lg_module *root)
{
        lg__part *p = next_child(m->parts);
        while (!p && m != root) {
                p = next_child(m->part->next);
                m = m->parent;
        }
        return p ? p->child : NULL;
}

void lg__module_title(const lg_module *m, char *text, size_t size)
{
        char path[LG__PATH];
        lg__module_path(m, path);
        if (*path)
                snprintf(text, size, "%s (%s)", path, m->type);
        else
                snprintf(text, size, "(%s)", m->type);
}

const char *lg__module_path(const lg_module *m, char text[LG__PATH])
{
        size_t at = LG__PATH - 1;
        text[at] = 0;
        for (; m->parent; m = m->parent) {
                size_t n = strlen(m->part->name), dot = text[at] != 0;
                if (n + dot > at)
                        break; /* the path is longer than LG__PATH: returns its end */
                if (dot)
                        text[--at] = '.';
                at -= n;
                memcpy(text + at, m->part->name, n);
        }
        return memmove(text, text + at, LG__PATH - at);
}

const char *lg__module_path_in(const lg_module *root, const lg_module *m, char text[LG__PATH])
{
        char outer[LG__PATH];
        const char *path = lg__module_path(m, text);
        path += strlen(lg__module_path(root, outer));
        return *path == '.' ? path + 1 : *path ? path : "-";
}

/* ---- lookups by path ---- */

static bool visit(lg_module *m, char path[LG__PATH], size_t length, lg__visit_fn *fn, void *user)
{
        for (lg__part *p = m->parts; p; p = p->next) {
                if (p->kind == LG__COMPUTED)
                        continue;
                size_t n = strlen(p->name);
                if (length + n + 2 > LG__PATH)
                        return lg__fail(m->object.ctx, LG_ERR_ARGUMENT,
                                        "the path to \"%s\" in a %s is longer than %d bytes", p->name, m->type,
                                        LG__PATH - 2);
                memcpy(path + length, p->name, n + 1);
                bool ok;
                if (p->child) {
                        memcpy(path + length + n, ".", 2);
                        ok = visit(p->child, path, length + n + 1, fn, user);
                } else {
                        ok = fn(path, p, user);
                }
                if (!ok)
                        return false;
        }
        return true;
}

/* Returns "; it has weight, bias" with the names of m's parts of these kinds, as many as fit; "" if there are none. */
static lg__text names_text(const lg_module *m, int kinds)
{
        lg__text text = {""};
        size_t used = 0;
        for (const lg__part *p = m->parts; p; p = p->next) {
                size_t room = sizeof text.s - used;
                int n = p->kind & kinds ? snprintf(text.s + used, room, "%s%s", used ? ", " : "; it has ", p->name) : 0;
                if (n < 0 || (size_t)n >= room) {
                        text.s[used] = 0;
                        break;
                }
                used += (size_t)n;
        }
        return text;
}

/* A search for the existing paths, of parts of these kinds, that are most similar to a missing one. */
typedef struct search {
        lg__near near;
        int kinds;
} search;

static bool offer_part(const char *path, lg__part *p, void *user)
{
        search *s = user;
        if (p->kind & s->kinds)
                lg__near_offer(&s->near, path);
        return true;
}

static const char *nearest(lg_module *m, search *s)
{
        char path[LG__PATH];
        visit(m, path, 0, offer_part, s);
        for (const lg_module *inner = m; s->kinds & LG__CHILD && (inner = lg__module_next(inner, m));)
                lg__near_offer(&s->near, lg__module_path_in(m, inner, path));
        return lg__near_words(&s->near);
}

/* Returns the part of one of the kinds at the end of a path, or NULL. Stores where the search ended: in *ret_at the
 * module, or NULL if one on the way is missing; in *ret_name the rest of the path, never NULL. */
static lg__part *part_at(const lg_module *m, const char *path, int kinds, const lg_module **ret_at,
                         const char **ret_name)
{
        const lg_module *at = m;
        const char *name = path, *dot;
        while (at && (dot = strchr(name, '.'))) {
                lg__part *p = lg__module_part(at, name, (size_t)(dot - name), LG__CHILD);
                at = p ? p->child : NULL;
                name = dot + 1;
        }
        *ret_at = at;
        *ret_name = name;
        return at ? lg__module_part(at, name, strlen(name), kinds) : NULL;
}

/* Returns the part of m at that path if its kind is in `kinds`; else NULL, with an error that names similar paths.
 * `what` is the word for that kind in the message. */
static lg__part *find(lg_module *m, const char *path, int kinds, const char *op, const char *what)
{
        if (!m || !lg__object_lasts(&m->object, op))
                return NULL;
        lg__module_seen(m);
        if (!path)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: the path is NULL", op);
        const lg_module *at;
        const char *name;
        lg__part *p = part_at(m, path, kinds, &at, &name);
        if (!p && at && at != m) {
                lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: there is no %s \"%.200s\": \"%.*s\" is a %s%s", op, what,
                         path, (int)(name - path - 1), path, at->type, names_text(at, kinds).s);
        } else if (!p) {
                const lg__text own = at ? names_text(m, kinds) : (lg__text){""};
                search s = {.near = {.name = path}, .kinds = kinds};
                lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: there is no %s \"%.200s\" in this %s%s", op, what, path,
                         m->type, *own.s ? own.s : nearest(m, &s));
        }
        return p;
}

lg_module *lg_child_named(lg_module *m, const char *path)
{
        lg__part *p = find(m, path, LG__CHILD, "lg_child_named", "module");
        return p ? p->child : NULL;
}

bool lg_has_child(const lg_module *m, const char *path)
{
        const lg_module *at;
        const char *name;
        return m && path && part_at(m, path, LG__CHILD, &at, &name);
}

lg_module *lg_module_replace(lg_module *m, const char *path, lg_module *child)
{
        lg__part *p = find(m, path, LG__CHILD, "lg_module_replace", "module");
        return p && lg__unrecorded(m->object.ctx, "lg_module_replace") &&
                               lg__module_exchange(p, child, "lg_module_replace")
                       ? child
                       : NULL;
}

lg_tensor *lg_parameter(lg_module *m, const char *path)
{
        lg__part *p = find(m, path, LG__PARAMETER, "lg_parameter", "parameter");
        return p ? p->tensor : NULL;
}

lg_tensor *lg_buffer(lg_module *m, const char *path)
{
        lg__part *p = find(m, path, LG__BUFFER, "lg_buffer", "buffer");
        return p ? p->tensor : NULL;
}

int lg_child_count(const lg_module *m)
{
        int count = 0;
        for (lg__part *p = m ? next_child(m->parts) : NULL; p; p = next_child(p->next))
                count++;
        return count;
}

lg_module *lg_child(lg_module *m, int index)
{
        int i = 0;
        if (m && !lg__object_lasts(&m->object, "lg_child"))
                return NULL;
        if (m)
                lg__module_seen(m);
        for (lg__part *p = m ? next_child(m->parts) : NULL; p; p = next_child(p->next)) {
                if (i++ == index)
                        return p->child;
        }
        if (m)
                lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_child: there is no child %d in this %s; it has %d", index,
                         m->type, lg_child_count(m));
        return NULL;
}

/* ---- all parameters and buffers ---- */

typedef struct each {
        lg_tensor_fn *fn;
        void *user;
} each;

static bool each_part(const char *path, lg__part *p, void *user)
{
        each *e = user;
        e->fn(path, p->tensor, p->kind == LG__BUFFER, e->user);
        return true;
}

bool lg__module_visit(lg_module *m, char path[LG__PATH], lg__visit_fn *fn, void *user)
{
        return visit(m, path, 0, fn, user);
}

bool lg_each_tensor(lg_module *m, lg_tensor_fn *fn, void *user)
{
        char path[LG__PATH];
        if (!m)
                return false;
        if (!fn)
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_each_tensor: fn is NULL");
        m->running++;
        m->object.ctx->user_calls++;
        bool ok = visit(m, path, 0, each_part, &(each){fn, user});
        m->object.ctx->user_calls--;
        m->running--;
        return ok;
}

/* State of a walk that counts the parameters matching a pattern and, if items is not NULL, stores them there. A pattern
 * that begins with '!' selects the parameters that do not match the rest. */
typedef struct selection {
        const char *pattern;
        lg_tensor **items;
        int64_t count;
} selection;

bool lg__path_matches(const char *pattern, const char *path)
{
        const bool inverted = *pattern == '!';
        return (fnmatch(pattern + inverted, path, 0) == 0) != inverted;
}

static bool select_part(const char *path, lg__part *p, void *user)
{
        selection *s = user;
        if (p->kind != LG__PARAMETER || (s->pattern && !lg__path_matches(s->pattern, path)))
                return true;
        if (s->items)
                s->items[s->count] = p->tensor;
        s->count++;
        return true;
}

static bool same_pattern(const char *a, const char *b)
{
        return a && b ? !strcmp(a, b) : a == b;
}

/* Makes and caches the list of m's parameters that match a pattern (NULL: all). Returns NULL with an error. */
static lg__listing *listing_of(lg_module *m, const char *pattern)
{
        char path[LG__PATH];
        lg_ctx *c = m->object.ctx;
        selection s = {.pattern = pattern};
        lg__listing *l = visit(m, path, 0, select_part, &s) ? lg__alloc(c, sizeof *l) : NULL;
        if (!l)
                return NULL;
        l->count = s.count;
        l->pattern = pattern ? lg__strdup(c, pattern) : NULL;
        l->items = (!pattern || l->pattern) && s.count ? lg__alloc(c, (size_t)s.count * sizeof *l->items) : NULL;
        if (s.count && !l->items) {
                lg__strfree(c, l->pattern);
                lg__free(c, l, sizeof *l);
                return NULL;
        }
        s.items = l->items;
        s.count = 0;
        if (l->items)
                visit(m, path, 0, select_part, &s);
        l->next = m->listings;
        return m->listings = l;
}

void lg__module_relist(lg_module *m)
{
        char path[LG__PATH];
        for (lg__listing *l = m->listings; l; l = l->next)
                visit(m, path, 0, select_part, &(selection){l->pattern, l->items, 0});
}

static lg_list parameters(lg_module *m, const char *pattern)
{
        lg__module_seen(m);
        lg__listing *l = m->listings;
        while (l && !same_pattern(l->pattern, pattern))
                l = l->next;
        if (!l)
                l = listing_of(m, pattern);
        return l ? (lg_list){l->count, l->items} : (lg_list){0, NULL};
}

lg_list lg_parameters(lg_module *m)
{
        return m ? parameters(m, NULL) : (lg_list){0, NULL};
}

lg_list lg_parameters_matching(lg_module *m, const char *pattern)
{
        if (m && !pattern)
                lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "lg_parameters_matching: the pattern is NULL");
        return m && pattern ? parameters(m, pattern) : (lg_list){0, NULL};
}

int64_t lg_parameter_numel(lg_module *m)
{
        int64_t elements = 0;
        for (const lg_module *inner = m; inner; inner = lg__module_next(inner, m))
                for (const lg__part *p = inner->parts; p; p = p->next)
                        elements += p->kind == LG__PARAMETER ? lg__shape_numel(p->tensor->at.shape) : 0;
        return elements;
}
