/* profiler_rows.c - finds the row of a profiler's table to which a span belongs, by a hash table. */
#include <string.h>
#include "io/text.h"
#include "profiler.h"

bool lg__profiler_room(const lg_profiler *p, void *items, int64_t count, int64_t *room, size_t item_bytes)
{
        const lg_ctx *c = p->object.ctx;
        void *old;
        memcpy(&old, items, sizeof old);
        if (count < *room)
                return true;
        int64_t wanted = *room ? *room : 32;
        while (wanted <= count)
                wanted *= 2;
        if ((uint64_t)wanted > SIZE_MAX / 2 / item_bytes)
                return false;
        void *p_new = c->alloc(c->memory_user, p->object.ctx, lg_cpu(), (size_t)wanted * item_bytes);
        if (!p_new)
                return false;
        if (old) {
                memcpy(p_new, old, (size_t)*room * item_bytes);
                c->free(c->memory_user, p->object.ctx, lg_cpu(), old, (size_t)*room * item_bytes);
        }
        memcpy(items, &p_new, sizeof p_new);
        *room = wanted;
        return true;
}

/* ---- keys ---- */

static uint64_t mixed(uint64_t h)
{
        h *= 0x9e3779b97f4a7c15u;
        return h ^ h >> 29;
}

/* Returns the entry of a key, or the free entry where it belongs. There is one. */
static lg__row_key *entry_of(const lg_profiler *p, const lg__row_key *k)
{
        const uint64_t mask = (uint64_t)p->key_room - 1;
        uint64_t i = mixed(mixed((uint64_t)(uintptr_t)k->p) + (uint64_t)(uintptr_t)k->q + (uint64_t)k->kind);
        while (p->keys[i & mask].row &&
               (p->keys[i & mask].p != k->p || p->keys[i & mask].q != k->q || p->keys[i & mask].kind != k->kind))
                i++;
        return &p->keys[i & mask];
}

/* Adds a key to the table, at most half of which is in use. Returns false if there is no memory. */
static bool add_key(lg_profiler *p, lg__row_key k)
{
        if (2 * (p->key_count + 1) > p->key_room) {
                lg__row_key *old = p->keys;
                const int64_t room = p->key_room;
                p->keys = NULL;
                p->key_room = 0;
                if (!lg__profiler_room(p, &p->keys, 2 * room, &p->key_room, sizeof *p->keys)) {
                        p->keys = old;
                        p->key_room = room;
                        return false;
                }
                memset(p->keys, 0, (size_t)p->key_room * sizeof *p->keys);
                for (int64_t i = 0; i < room; i++)
                        if (old[i].row)
                                *entry_of(p, &old[i]) = old[i];
                if (old)
                        p->object.ctx->free(p->object.ctx->memory_user, p->object.ctx, lg_cpu(), old,
                                            (size_t)room * sizeof *old);
        }
        *entry_of(p, &k) = k;
        p->key_count++;
        return true;
}

static uint32_t find(const lg_profiler *p, const lg__row_key *k)
{
        return p->key_room ? entry_of(p, k)->row : 0;
}

/* ---- rows ---- */

/* Appends a row with a name of its own. Returns its number, or 0 if there is no memory. */
static uint32_t append(lg_profiler *p, lg__row_kind kind, const char *name)
{
        if (p->row_count == UINT32_MAX || !lg__profiler_room(p, &p->rows, p->row_count, &p->row_room, sizeof *p->rows))
                return 0;
        lg__row *r = &p->rows[p->row_count];
        *r = (lg__row){.kind = kind};
        snprintf(r->name, sizeof r->name, "%s", name);
        for (char *s = r->name; *s;) { /* for tables and JSON */
                const int n = lg__utf8_length((lg__span){s, strlen(s)});
                if (!n || (unsigned char)*s < ' ')
                        *s = '?';
                s += n ? n : 1;
        }
        return (uint32_t)p->row_count++;
}

bool lg__profiler_first_rows(lg_profiler *p)
{
        static const char *const names[LG__ROWS] = {[LG__OTHER] = "other",
                                                    [LG__NO_MODULE] = "(no module)",
                                                    [LG__NO_REGION] = "(no region)",
                                                    [LG__FORWARD] = "forward"};
        static const lg__row_kind kinds[LG__ROWS] = {LG__ROW_OP, LG__ROW_MODULE, LG__ROW_REGION, LG__ROW_OP};
        for (int i = 0; i < LG__ROWS; i++) {
                append(p, kinds[i], names[i]);
                if (p->row_count != i + 1)
                        return false;
        }
        return true;
}

static uint32_t find_name(const lg_profiler *p, lg__row_kind kind, const char *name)
{
        for (int64_t i = LG__ROWS; i < p->row_count; i++)
                if (p->rows[i].kind == kind && !strcmp(p->rows[i].name, name))
                        return (uint32_t)i;
        return 0;
}

uint32_t lg__profiler_row(lg_profiler *p, lg__row_kind kind, const void *key, const void *second, const char *a,
                          const char *b)
{
        lg__row_key k = {.p = key, .q = second, .kind = kind};
        char name[sizeof p->rows->name];
        if (!key) { /* the same text at another address is the same region */
                uint64_t hash = 0;
                for (const char *s = a; *s; s++)
                        hash = mixed(hash + (unsigned char)*s);
                k.p = (const void *)(uintptr_t)(hash | 1);
        }
        if ((k.row = find(p, &k)))
                return k.row;
        snprintf(name, sizeof name, "%s%s%s", a, b ? " " : "", b ? b : "");
        k.row = find_name(p, kind, name);
        if (!k.row)
                k.row = append(p, kind, name);
        return k.row && add_key(p, k) ? k.row : 0;
}

uint32_t lg__profiler_module_row(lg_profiler *p, const lg__frame *f)
{
        lg__row_key k = {.p = f->module, .kind = LG__ROW_MODULE};
        char name[sizeof p->rows->name];
        if ((k.row = find(p, &k)))
                return k.row;
        f->name(f->module, name, sizeof name);
        k.row = append(p, LG__ROW_MODULE, name);
        if (!k.row || !add_key(p, k))
                return 0;
        p->rows[k.row].parent = p->depth ? p->spans[p->depth - 1].event.at.module : LG__NO_MODULE;
        return k.row;
}
