/* images.c - a folder of PNG pictures as a data set. Threads read, decode and resize the pictures.
 *
 * All PNG headers are read when the data set is made, so that each thread's memory suffices for the largest picture,
 * and unreadable pictures are found before training begins.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "io/files.h"
#include "io/png_codec.h"
#include "transform.h"

static const char op[] = "lg_dataset_image_folder";

#define MOST_LEVELS 32 /* levels of nested folders; symbolic links may form cycles */

#define PATH 4096

typedef struct picture {
        char *path;
        int64_t label; /* index of the picture's class */
} picture;

/* A growing array of strings, which it owns. */
typedef struct texts {
        char **items;
        int64_t count, room;
} texts;

typedef struct folder {
        lg_ctx *ctx;
        texts classes; /* names of the class folders, in the order of strcmp() */
        picture *pictures;
        int64_t count, room;
} folder;

static bool add_text(lg_ctx *c, texts *t, const char *text)
{
        if (!lg__grow(c, &t->items, t->count, &t->room, sizeof *t->items))
                return false;
        t->items[t->count] = lg__strdup(c, text);
        return t->items[t->count] && ++t->count;
}

static void free_texts(lg_ctx *c, texts *t)
{
        for (int64_t i = 0; i < t->count; i++)
                lg__strfree(c, t->items[i]);
        lg__free(c, t->items, (size_t)t->room * sizeof *t->items);
        *t = (texts){NULL, 0, 0};
}

static bool add_picture(folder *f, const char *path)
{
        if (!lg__grow(f->ctx, &f->pictures, f->count, &f->room, sizeof *f->pictures))
                return false;
        f->pictures[f->count] = (picture){lg__strdup(f->ctx, path), f->classes.count - 1};
        return f->pictures[f->count].path && ++f->count;
}

/* ---- searching folders ---- */

static int by_bytes(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool unreadable(const folder *f, const char *path)
{
        return lg__fail(f->ctx, lg__system_code(errno), "%s: %.300s cannot be read: %s", op, path, strerror(errno));
}

/* Lists the entries of a folder sorted by name, except those that begin with a dot. Returns false with an error. */
static bool list(const folder *f, const char *path, texts *ret)
{
        DIR *d = opendir(path);
        bool ok = d != NULL;
        if (!ok)
                return unreadable(f, path);
        errno = 0;
        for (struct dirent *e; ok && (e = readdir(d)); errno = 0)
                ok = e->d_name[0] == '.' || add_text(f->ctx, ret, e->d_name);
        if (ok && errno)
                ok = unreadable(f, path);
        closedir(d);
        if (ok && ret->count)
                qsort(ret->items, (size_t)ret->count, sizeof *ret->items, by_bytes);
        return ok;
}

typedef enum kind { OTHER, PICTURE, FOLDER, UNREADABLE } entry;

static entry look(const folder *f, const char *parent, const char *name, char path[PATH])
{
        struct stat facts;
        const size_t n = strlen(name);
        const int length = snprintf(path, PATH, "%s/%s", parent, name);
        if (length < 0 || length >= PATH)
                errno = ENAMETOOLONG;
        else if (!stat(path, &facts))
                return S_ISDIR(facts.st_mode)                                                 ? FOLDER
                       : S_ISREG(facts.st_mode) && n > 4 && !strcasecmp(name + n - 4, ".png") ? PICTURE
                                                                                              : OTHER;
        unreadable(f, path);
        return UNREADABLE;
}

static bool add_class(folder *f, const char *path, const char *name);

/* Adds each folder in `path` as a class if level is 0, else the PNG files in `path` and its subfolders to the last
 * class. Returns false and sets an error if something cannot be read; f keeps what was found before. */
static bool read_folder(folder *f, const char *path, int level)
{
        texts names = {NULL, 0, 0};
        char inner[PATH];
        if (level > MOST_LEVELS)
                return lg__fail(f->ctx, LG_ERR_FORMAT, "%s: %.300s is more than %d folders deep", op, path,
                                MOST_LEVELS);
        bool ok = list(f, path, &names);
        for (int64_t i = 0; ok && i < names.count; i++) {
                const entry k = look(f, path, names.items[i], inner);
                ok = k == OTHER || (k == PICTURE && (!level || add_picture(f, inner))) ||
                     (k == FOLDER && (level ? read_folder(f, inner, level + 1) : add_class(f, inner, names.items[i])));
        }
        free_texts(f->ctx, &names);
        return ok;
}

static bool add_class(folder *f, const char *path, const char *name)
{
        const int64_t before = f->count;
        if (!add_text(f->ctx, &f->classes, name) || !read_folder(f, path, 1))
                return false;
        return f->count > before ||
               lg__fail(f->ctx, LG_ERR_FORMAT, "%s: %.300s has no PNG files; each folder there is a class", op, path);
}

/* ---- the data set ---- */

typedef struct images {
        lg_dataset head;
        const lg__files *calls;
        folder folder;
        lg_transform *resize;
        int channels;
        int64_t height, width;
        size_t file, decoded, decoding, resized, resizing; /* sizes in bytes of areas in scratch memory */
} images;

static void destroy(lg_dataset *d)
{
        images *m = (images *)d;
        folder *f = &m->folder;
        for (int64_t i = 0; i < f->count; i++)
                lg__strfree(d->object.ctx, f->pictures[i].path);
        lg__free(d->object.ctx, f->pictures, (size_t)f->room * sizeof *f->pictures);
        free_texts(d->object.ctx, &f->classes);
        lg__object_done(m->resize);
}

/* ---- samples ---- */

static bool wrong(lg_sample *s, lg_error_code code, const picture *p, const char *what)
{
        return lg__sample_fail(s, code, "%.300s %s", p->path, what);
}

/* Reads the file of picture p into `to`. Returns its size, at most m->file bytes, or -1 after lg__sample_fail(). */
static int64_t read_file(const images *m, lg_sample *s, const picture *p, char *to)
{
        int error = 0;
        const int fd = m->calls->open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
        if (fd < 0) {
                lg__sample_fail(s, lg__system_code(errno), "%.300s cannot be opened: %s", p->path, strerror(errno));
                return -1;
        }
        const int64_t n = lg__pread_all(m->calls, fd, 0, to, (int64_t)m->file, &error);
        m->calls->close(fd);
        if (n < 0)
                lg__sample_fail(s, lg__system_code(error), "%.300s cannot be read: %s", p->path, strerror(error));
        return n;
}

static lg_field picture_field(int channels, int64_t height, int64_t width)
{
        return LG_FIELD("x", LG_U8, LG_SHAPE(channels, height, width));
}

static bool resize(const images *m, lg_sample *s, const lg__png_facts *facts, const char *from, char *to, char *scratch)
{
        const lg_field in = picture_field(m->channels, facts->height, facts->width),
                       out = picture_field(m->channels, m->height, m->width);
        const lg__step step = {&in, &out, from, to, s->rng, scratch, s};
        return m->resize->kind->run(m->resize, &step);
}

/* Returns true if the scratch memory suffices for a picture, whose file may have changed since it was listed. */
static bool has_room(const images *m, const lg__png_facts *facts)
{
        const lg_field in = picture_field(m->channels, facts->height, facts->width);
        lg_field out = in;
        size_t scratch = 0;
        if (facts->scratch > m->decoding ||
            (size_t)m->channels * (size_t)facts->height * (size_t)facts->width > m->decoded)
                return false;
        if (facts->height == m->height && facts->width == m->width)
                return true;
        return m->resize && lg__transform_infer(m->resize, NULL, &in, &out, &scratch) && scratch < m->resizing;
}

/* Decodes and resizes picture p in `scratch` and points *ret to the pixels. Returns false after lg__sample_fail(). */
static bool decode(const images *m, lg_sample *s, const picture *p, char *scratch, const uint8_t **ret)
{
        char *decoded = scratch + m->file, *resized = decoded + m->decoded, *rest = resized + m->resized;
        lg__png_facts facts;
        lg__png_wrong why;
        const int64_t bytes = read_file(m, s, p, scratch);
        if (bytes < 0)
                return false;
        const bool longer = (size_t)bytes == m->file; /* the file has grown since it was listed */
        if (!longer && !lg__png_look(scratch, (size_t)bytes, bytes, &facts, &why))
                return wrong(s, LG_ERR_FORMAT, p, why.s);
        if (longer || !has_room(m, &facts))
                return wrong(s, LG_ERR_FORMAT, p, "is another picture than when the data set was made");
        const bool same = facts.height == m->height && facts.width == m->width;
        if (!lg__png_decode(&facts, scratch, (size_t)bytes, m->channels, (uint8_t *)decoded, rest, &why))
                return wrong(s, LG_ERR_FORMAT, p, why.s);
        *ret = (const uint8_t *)(same ? decoded : resized);
        return same || resize(m, s, &facts, decoded, resized, rest);
}

static bool get(const lg_dataset *d, lg_sample *s)
{
        const images *m = (const images *)d;
        const lg__sampler *h = (const lg__sampler *)s;
        const picture *p = &m->folder.pictures[s->index];
        const uint8_t *bytes = NULL;
        if (!decode(m, s, p, h->scratch + h->scratch_used, &bytes))
                return false;
        const int64_t n = m->channels * m->height * m->width;
        if (d->fields.field[0].dtype == LG_U8)
                memcpy(s->data[0], bytes, (size_t)n);
        for (int64_t i = 0; i < n && d->fields.field[0].dtype == LG_F32; i++)
                ((float *)s->data[0])[i] = (float)(bytes[i] * (1.0 / 255));
        *(int64_t *)s->data[1] = p->label;
        return true;
}

static const lg__set_kind kind = {.get = get, .destroy = destroy, .bytes = sizeof(images)};

/* ---- reading headers ---- */

static void at_least(size_t *most, size_t bytes)
{
        *most = bytes > *most ? bytes : *most;
}

/* Enlarges the scratch areas for picture p. Returns false with an error if p needs resizing and m->resize is NULL. */
static bool count_in(images *m, const picture *p, const lg__png_facts *facts, int64_t bytes)
{
        lg_ctx *c = m->head.object.ctx;
        if (!m->height) {
                m->height = facts->height;
                m->width = facts->width;
        }
        at_least(&m->file, lg__aligned((size_t)bytes + 1)); /* the extra byte reveals a file that has grown since */
        at_least(&m->decoding, lg__aligned(facts->scratch));
        const lg_field in = picture_field(m->channels, facts->height, facts->width);
        if (!lg__shape_valid(c, op, in.shape))
                return false;
        at_least(&m->decoded, lg__aligned(lg__field_bytes(&in)));
        if (facts->height == m->height && facts->width == m->width)
                return true;
        if (!m->resize)
                return lg__fail(c, LG_ERR_FORMAT,
                                "%s: %.300s has %d x %d pixels, others %lld x %lld; .height and .width resize them", op,
                                p->path, facts->height, facts->width, (long long)m->height, (long long)m->width);
        lg_field out = in;
        size_t scratch = 0;
        if (!lg__transform_infer(m->resize, c, &in, &out, &scratch))
                return false;
        at_least(&m->resizing, lg__aligned(scratch + 1));
        return true;
}

static bool look_at(images *m, const picture *p)
{
        lg_ctx *c = m->head.object.ctx;
        char head[LG__PNG_HEAD];
        int64_t bytes;
        lg__png_facts facts;
        lg__png_wrong why;
        const int fd = lg__open_regular(c, op, p->path, &bytes);
        if (fd < 0)
                return false;
        const int64_t n = lg__read_at(c, op, p->path, fd, 0, head, LG__PNG_HEAD);
        m->calls->close(fd);
        if (n < 0)
                return false;
        if (!lg__png_look(head, (size_t)n, bytes, &facts, &why))
                return lg__fail(c, LG_ERR_FORMAT, "%s: %.300s %s", op, p->path, why.s);
        return count_in(m, p, &facts, bytes);
}

static bool fill(images *m, const char *path, const lg_dataset_image_folder_options *o)
{
        lg_ctx *c = m->head.object.ctx;
        m->calls = lg__files_of(c);
        m->channels = o->channels ? o->channels : 3;
        m->height = o->height;
        m->width = o->width;
        m->folder.ctx = c;
        if (!read_folder(&m->folder, path, 0))
                return false;
        if (!m->folder.count)
                return lg__fail(c, LG_ERR_FORMAT, "%s: %.300s has no folders; each class has one of its name", op,
                                path);
        for (int64_t i = 0; i < m->folder.count; i++)
                if (!look_at(m, &m->folder.pictures[i]))
                        return false;
        m->head.size = m->folder.count;
        m->head.classes = (lg_names){m->folder.classes.count, (const char *const *)m->folder.classes.items};
        const lg_fields fields =
                LG_FIELDS(LG_FIELD("x", o->bytes ? LG_U8 : LG_F32, LG_SHAPE(m->channels, m->height, m->width)),
                          LG_FIELD("y", LG_I64, LG_SHAPE_0D));
        m->resized = m->resize ? lg__aligned((size_t)(m->channels * m->height * m->width)) : 0;
        m->head.scratch_bytes =
                m->file + m->decoded + m->resized + (m->decoding > m->resizing ? m->decoding : m->resizing);
        return lg__fields_take(c, op, &m->head.fields, &fields);
}

lg_dataset *lg_dataset_image_folder_with(lg_ctx *c, const char *path, const lg_dataset_image_folder_options *options)
{
        lg_dataset_image_folder_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the path is NULL", op);
        if (o.channels && o.channels != 1 && o.channels != 3 && o.channels != 4)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .channels is %d; it is 1 (grey), 3 (RGB) or 4 (RGB and alpha)",
                                op, o.channels);
        if (!o.height != !o.width)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .height is %lld and .width %lld; give both, or neither", op,
                                (long long)o.height, (long long)o.width);
        /* Made before the data set, which uses it: lg_close() destroys the newest objects first. */
        lg_transform *t = o.height ? lg_transform_resize(c, o.height, o.width) : NULL;
        if (o.height && !t)
                return NULL;
        lg_dataset *d = lg__dataset_new(c, &kind, 0);
        if (d && t)
                ((images *)d)->resize = lg__object_use(t);
        lg_transform_free(t); /* the data set, if it was made, still keeps t alive */
        return d && fill((images *)d, path, &o) ? d : lg__object_destroy(d);
}
