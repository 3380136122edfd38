/* npz.c - reads NumPy's npz archives: zip files whose entries "name.npy" are arrays in the npy format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>
#include "files.h"
#include "npy.h"
#include "source.h"
#include "text.h"

#define Z_MEM_ERROR (-4) /* zlib's value; zlib.h is not needed otherwise */

typedef struct archive {
        lg_ctx *ctx;
        const char *who, *path;
        zip_t *zip;
        int64_t bytes; /* size of the file */
} archive;

/* Sets an error for an error e of libzip, with the entry's name unless `name` is NULL. Checks errno as well, which
 * open_archive() has cleared, because some functions report a lack of memory as a damaged file. Returns false. */
static bool zip_failed(const archive *a, const char *name, zip_error_t *e)
{
        const bool no_memory = errno == ENOMEM;
        const int kind = zip_error_code_zip(e), system = zip_error_code_system(e);
        const bool io = kind == ZIP_ER_READ || kind == ZIP_ER_OPEN || kind == ZIP_ER_SEEK || kind == ZIP_ER_TELL;
        const bool memory = no_memory || kind == ZIP_ER_MEMORY ||
                            kind == ZIP_ER_OK || /* some calls report no error if memory is lacking */
                            (io && system == ENOMEM) || (kind == ZIP_ER_ZLIB && system == Z_MEM_ERROR);
        return lg__fail(a->ctx,
                        memory             ? LG_ERR_MEMORY
                        : io && system > 0 ? LG_ERR_IO
                                           : LG_ERR_FORMAT,
                        "%s: %.300s%s%s %s: %s", a->who, a->path, name ? ", array " : "",
                        name ? lg__quoted(name).s : "",
                        memory || (io && system > 0) ? "cannot be read"
                        : name                       ? "is damaged"
                                                     : "is no zip archive, or damaged",
                        memory ? "there is no memory for libzip" : zip_error_strerror(e));
}

static bool open_archive(archive *a)
{
        int code = 0;
        int fd = lg__open_regular(a->ctx, a->who, a->path, &a->bytes);
        if (fd < 0)
                return false;
        errno = 0;
        a->zip = zip_fdopen(fd, 0, &code); /* zip_fdopen() owns fd on success */
        if (a->zip)
                return true;
        zip_error_t e;
        zip_error_init_with_code(&e, code);
        zip_failed(a, NULL, &e);
        zip_error_fini(&e);
        lg__files_of(a->ctx)->close(fd);
        return false;
}

/* Returns the name of entry i, or NULL with an error if memory to convert the name to UTF-8 is lacking. */
static const char *name_at(const archive *a, zip_int64_t i)
{
        const char *s = zip_get_name(a->zip, (zip_uint64_t)i, 0);
        if (!s)
                zip_failed(a, NULL, zip_get_error(a->zip));
        return s;
}

static bool twice(const archive *a, const char *name)
{
        return lg__fail(a->ctx, LG_ERR_FORMAT, "%s: %.300s has two entries %s", a->who, a->path, lg__quoted(name).s);
}

/* ---- reading an array ---- */

typedef struct entry {
        archive *archive;
        zip_file_t *file;
} entry;

static bool get_from_entry(lg__npy_in *in, void *data, size_t bytes)
{
        const entry *e = in->stream;
        for (size_t done = 0; done < bytes;) {
                const zip_int64_t n = zip_fread(e->file, (char *)data + done, bytes - done);
                if (n < 0)
                        return zip_failed(e->archive, in->name, zip_file_get_error(e->file));
                if (n == 0)
                        return lg__npy_bad(in, "is truncated: it ends at byte %lld; %lld bytes are expected",
                                           (long long)in->at + (long long)done, (long long)in->bytes);
                done += (size_t)n;
        }
        return true;
}

/* Returns true at the end of the data, where libzip compares the checksum, or false with an error. */
static bool entry_ends(const lg__npy_in *in)
{
        const entry *e = in->stream;
        char more;
        const zip_int64_t n = zip_fread(e->file, &more, 1);
        if (n < 0)
                return zip_failed(e->archive, in->name, zip_file_get_error(e->file));
        return n == 0 || lg__npy_bad(in, "has more data than the %lld bytes that the archive's directory says",
                                     (long long)in->bytes);
}

/* Returns the index of the entry called `name` followed by `end`, -1 if absent, -2 with an error, as for duplicates. */
static zip_int64_t find_one(const archive *a, const char *name, const char *end)
{
        const zip_int64_t count = zip_get_num_entries(a->zip, 0);
        const size_t length = strlen(name);
        zip_int64_t found = -1;
        for (zip_int64_t i = 0; i < count; i++) {
                const char *s = name_at(a, i);
                if (!s)
                        return -2;
                if (strncmp(s, name, length) != 0 || strcmp(s + length, end) != 0)
                        continue;
                if (found >= 0) {
                        twice(a, s);
                        return -2;
                }
                found = i;
        }
        return found;
}

static zip_int64_t find_entry(const archive *a, const char *name)
{
        const size_t length = strlen(name);
        zip_int64_t found = find_one(a, name, ".npy");
        if (found == -1 && length >= 4 && !strcmp(name + length - 4, ".npy"))
                found = find_one(a, name, "");
        if (found == -1)
                lg__fail(a->ctx, LG_ERR_ARGUMENT, "%s: %.300s has no array %s; lg_npz_names() lists what it has",
                         a->who, a->path, lg__quoted(name).s);
        return found;
}

/* Checks an entry's directory record, and rejects sizes beyond deflate's maximum ratio before memory is allocated. */
static bool check_entry(const archive *a, lg__npy_in *in, const zip_stat_t *s)
{
        const zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
        if ((s->valid & needed) != needed)
                return lg__npy_bad(in, "has no size in the archive's directory");
        if ((s->valid & ZIP_STAT_ENCRYPTION_METHOD) && s->encryption_method != ZIP_EM_NONE)
                return lg__npy_bad(in, "is encrypted");
        if (s->comp_method != ZIP_CM_STORE && s->comp_method != ZIP_CM_DEFLATE)
                return lg__npy_bad(in, "is compressed by method %d; 0 (stored) and 8 (deflate) can be read",
                                   s->comp_method);
        const zip_uint64_t most = s->comp_method == ZIP_CM_STORE ? 1 : LG__MOST_INFLATED;
        if (s->comp_size > (zip_uint64_t)a->bytes || s->size / most > s->comp_size)
                return lg__npy_bad(in, "has impossible sizes: %llu bytes, compressed %llu, in an archive of %lld",
                                   (unsigned long long)s->size, (unsigned long long)s->comp_size, (long long)a->bytes);
        in->bytes = (int64_t)s->size;
        return true;
}

static lg_tensor *read_entry(archive *a, const char *name)
{
        const zip_int64_t index = find_entry(a, name);
        zip_stat_t s;
        entry e = {.archive = a};
        lg__npy_in in = {
                .ctx = a->ctx, .who = a->who, .path = a->path, .name = name, .get = get_from_entry, .stream = &e};
        if (index < 0)
                return NULL;
        if (zip_stat_index(a->zip, (zip_uint64_t)index, 0, &s) != 0) {
                zip_failed(a, name, zip_get_error(a->zip));
                return NULL;
        }
        if (!check_entry(a, &in, &s))
                return NULL;
        e.file = zip_fopen_index(a->zip, (zip_uint64_t)index, 0);
        if (!e.file) {
                zip_failed(a, name, zip_get_error(a->zip));
                return NULL;
        }
        lg_tensor *t = lg__npy_read(&in);
        t = lg__created(t, t && entry_ends(&in), false);
        zip_fclose(e.file);
        return t;
}

lg_tensor *lg_read_npz(lg_ctx *c, const char *path, const char *name)
{
        archive a = {.ctx = c, .who = "lg_read_npz", .path = path};
        if (!lg__ok(c) || !lg__unrecorded(c, a.who))
                return NULL;
        if (!name)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_read_npz: the name is NULL");
        if (!open_archive(&a))
                return NULL;
        lg_tensor *t = read_entry(&a, name);
        zip_discard(a.zip);
        return t;
}

/* ---- names of arrays ---- */

/* A list of names; its `items` are returned to the caller as lg_names. */
typedef struct names {
        lg__object object;
        int64_t count;
        const char *items[]; /* the names' text follows the pointers */
} names;

static const lg__type type = {.destroy = NULL};

/* Returns the number of arrays in the archive, or -1 with an error, and the bytes of their names, each without ".npy"
 * and with a NUL. Also stores the names in n unless n is NULL. */
static int64_t list_names(const archive *a, names *n, size_t *ret_bytes)
{
        const zip_int64_t entries = zip_get_num_entries(a->zip, 0);
        int64_t count = 0;
        *ret_bytes = 0;
        for (zip_int64_t i = 0; i < entries; i++) {
                const char *s = name_at(a, i);
                const size_t length = s ? strlen(s) : 0;
                if (!s)
                        return -1;
                if (length < 4 || strcmp(s + length - 4, ".npy") != 0)
                        continue;
                if (n)
                        n->items[count] = memcpy((char *)&n->items[n->count] + *ret_bytes, s, length - 4);
                *ret_bytes += length - 3;
                count++;
        }
        return count;
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool all_differ(const archive *a, const names *n)
{
        const size_t bytes = (size_t)n->count * sizeof *n->items;
        const char **sorted = lg__alloc(a->ctx, bytes);
        bool ok = sorted;
        if (ok && bytes)
                memcpy(sorted, n->items, bytes);
        if (ok)
                qsort(sorted, (size_t)n->count, sizeof *sorted, by_text);
        for (int64_t i = 1; i < n->count && ok; i++)
                ok = strcmp(sorted[i - 1], sorted[i]) != 0 || twice(a, sorted[i]);
        lg__free(a->ctx, sorted, bytes);
        return ok;
}

static names *read_names(const archive *a)
{
        size_t text;
        const int64_t count = list_names(a, NULL, &text);
        const size_t bytes = sizeof(names) + (size_t)(count < 0 ? 0 : count) * sizeof(char *) + text;
        names *n = count < 0 ? NULL : lg__object_new(a->ctx, &type, bytes);
        if (!n)
                return NULL;
        n->count = count;
        return list_names(a, n, &text) == count && all_differ(a, n) ? n : lg__object_destroy(n);
}

lg_names lg_npz_names(lg_ctx *c, const char *path)
{
        archive a = {.ctx = c, .who = "lg_npz_names", .path = path};
        if (!lg__ok(c) || !open_archive(&a))
                return (lg_names){0};
        names *n = read_names(&a);
        zip_discard(a.zip);
        return n ? (lg_names){n->count, n->items} : (lg_names){0};
}

void lg_names_free(lg_ctx *c, lg_names given)
{
        if (!c || !given.items)
                return;
        for (lg__link *l = c->objects.next; l != &c->objects; l = l->next) {
                lg__object *o = (lg__object *)(void *)l;
                if (o->type == &type && ((names *)(void *)o)->items == given.items) {
                        lg__object_destroy(o);
                        return;
                }
        }
}
