/* folder.c - looks through a folder for pictures by class. */
#include "folder.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "find.h"

#define MOST_LEVELS 32 /* of folders: links may lead back */

typedef struct walk {
        lg_ctx *ctx;
        const char *op;
        lg__folder *folder;
} walk;

/* ---- arrays that grow ---- */

/* Twice the room for items of that size; false: LG_ERR_MEMORY. */
static bool grow(lg_ctx *c, void **items, int64_t count, int64_t *room, size_t size)
{
        if (count < *room)
                return true;
        const int64_t more = *room ? 2 * *room : 64;
        void *p = lg__alloc(c, (size_t)more * size);
        if (!p)
                return false;
        if (count)
                memcpy(p, *items, (size_t)count * size);
        lg__free(c, *items, (size_t)*room * size);
        *items = p;
        *room = more;
        return true;
}

static bool add_text(lg_ctx *c, lg__texts *t, const char *text)
{
        void *items = t->items;
        if (!grow(c, &items, t->count, &t->room, sizeof *t->items))
                return false;
        t->items = items;
        t->items[t->count] = lg__strdup(c, text);
        return t->items[t->count] && ++t->count;
}

static void free_texts(lg_ctx *c, lg__texts *t)
{
        for (int64_t i = 0; i < t->count; i++)
                lg__strfree(c, t->items[i]);
        lg__free(c, t->items, (size_t)t->room * sizeof *t->items);
        *t = (lg__texts){NULL, 0, 0};
}

static bool add_picture(const walk *w, const char *path)
{
        lg__folder *f = w->folder;
        void *items = f->pictures;
        if (!grow(w->ctx, &items, f->count, &f->room, sizeof *f->pictures))
                return false;
        f->pictures = items;
        f->pictures[f->count] = (lg__picture){lg__strdup(w->ctx, path), f->classes.count - 1};
        return f->pictures[f->count].path && ++f->count;
}

void lg__folder_free(lg_ctx *c, lg__folder *f)
{
        for (int64_t i = 0; i < f->count; i++)
                lg__strfree(c, f->pictures[i].path);
        lg__free(c, f->pictures, (size_t)f->room * sizeof *f->pictures);
        free_texts(c, &f->classes);
        *f = (lg__folder){.count = 0};
}

/* ---- folders ---- */

static int by_bytes(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool unreadable(const walk *w, const char *path)
{
        return lg__fail(w->ctx, lg__system_code(errno), "%s: %.300s cannot be read: %s", w->op, path, strerror(errno));
}

/* What is in a folder, by name, without what begins with a dot. */
static bool list(const walk *w, const char *path, lg__texts *ret)
{
        DIR *d = opendir(path);
        bool ok = d != NULL;
        if (!ok)
                return unreadable(w, path);
        errno = 0;
        for (struct dirent *e; ok && (e = readdir(d)); errno = 0)
                ok = e->d_name[0] == '.' || add_text(w->ctx, ret, e->d_name);
        if (ok && errno)
                ok = unreadable(w, path);
        closedir(d);
        if (ok && ret->count)
                qsort(ret->items, (size_t)ret->count, sizeof *ret->items, by_bytes);
        return ok;
}

typedef enum kind { OTHER, PICTURE, FOLDER, UNREADABLE } kind;

static kind look(const walk *w, const char *folder, const char *name, char path[LG__FILE_PATH])
{
        struct stat facts;
        const size_t n = strlen(name);
        const int length = snprintf(path, LG__FILE_PATH, "%s/%s", folder, name);
        if (length < 0 || length >= LG__FILE_PATH)
                errno = ENAMETOOLONG;
        else if (!stat(path, &facts))
                return S_ISDIR(facts.st_mode)                                                 ? FOLDER
                       : S_ISREG(facts.st_mode) && n > 4 && !strcasecmp(name + n - 4, ".png") ? PICTURE
                                                                                              : OTHER;
        unreadable(w, path);
        return UNREADABLE;
}

/* The pictures of a class. */
static bool read_class(const walk *w, const char *path, int levels)
{
        lg__texts names = {NULL, 0, 0};
        char inner[LG__FILE_PATH];
        if (!levels)
                return lg__fail(w->ctx, LG_ERR_FORMAT, "%s: %.300s is more than %d folders deep", w->op, path,
                                MOST_LEVELS);
        bool ok = list(w, path, &names);
        for (int64_t i = 0; ok && i < names.count; i++) {
                const kind k = look(w, path, names.items[i], inner);
                ok = k == OTHER || (k == PICTURE && add_picture(w, inner)) ||
                     (k == FOLDER && read_class(w, inner, levels - 1));
        }
        free_texts(w->ctx, &names);
        return ok;
}

static bool add_class(const walk *w, const char *path, const char *name)
{
        const int64_t before = w->folder->count;
        if (!add_text(w->ctx, &w->folder->classes, name) || !read_class(w, path, MOST_LEVELS))
                return false;
        return w->folder->count > before ||
               lg__fail(w->ctx, LG_ERR_FORMAT, "%s: %.300s has no PNG files; each folder there is a class", w->op,
                        path);
}

bool lg__folder_read(lg_ctx *c, const char *op, const char *path, lg__folder *f)
{
        const walk w = {c, op, f};
        lg__texts names = {NULL, 0, 0};
        char inner[LG__FILE_PATH];
        bool ok = list(&w, path, &names);
        for (int64_t i = 0; ok && i < names.count; i++) {
                const kind k = look(&w, path, names.items[i], inner);
                ok = k != UNREADABLE && (k != FOLDER || add_class(&w, inner, names.items[i]));
        }
        free_texts(c, &names);
        if (ok && !f->count)
                ok = lg__fail(c, LG_ERR_FORMAT, "%s: %.300s has no folders; each class has one of its name", op, path);
        return ok;
}
