/* npz_write.c - writes NumPy's npz archives with libzip.
 *
 * Through callbacks, libzip reads the arrays and writes the archive to a sink, which replaces the file atomically.
 */
#include <errno.h>
#include <string.h>
#include <zip.h>
#include "npy.h"
#include "sink.h"
#include "text.h"

#define MOST_NAME 65000 /* bytes; zip has names of at most 65535, with ".npy" */
/* 1 January 1980, the first date in a zip file, for every entry: equal arrays give equal archives. */
#define DOS_1980 (1 | 1 << 5)

/* An array that libzip reads. */
typedef struct array {
        const char *name;
        const lg_tensor *tensor;
        lg_tensor *host; /* row-major CPU tensor while open; may be `tensor` */
        char header[LG__NPY_HEADER];
        zip_uint64_t front, bytes, at; /* header size; total size; read position */
        zip_error_t error;
} array;

/* The archive that libzip writes. */
typedef struct output {
        lg__sink sink;
        int64_t at, end; /* write position; size so far */
        zip_error_t error;
} output;

typedef struct job {
        lg_ctx *ctx;
        const char *path;
        array *arrays;
        int64_t count;
        output out;
} job;

#define WHO "lg_write_npz"

/* ---- source callbacks of an array ---- */

static zip_int64_t stat_size(void *data, zip_uint64_t bytes, zip_uint64_t size)
{
        zip_stat_t *s = data;
        if (bytes < sizeof *s)
                return -1;
        zip_stat_init(s);
        s->size = size;
        s->valid |= ZIP_STAT_SIZE;
        return sizeof *s;
}

static zip_int64_t read_array(array *a, char *to, zip_uint64_t most)
{
        const zip_uint64_t left = a->bytes - a->at;
        zip_uint64_t n = most < left ? most : left;
        if (a->at < a->front && n > a->front - a->at)
                n = a->front - a->at;
        if (n)
                memcpy(to, a->at < a->front ? a->header + a->at : (char *)lg__data(a->host) + (a->at - a->front), n);
        a->at += n;
        return (zip_int64_t)n;
}

static void close_array(array *a)
{
        if (a->host != a->tensor)
                lg__tensor_release(a->host);
        a->host = NULL;
}

static zip_int64_t array_source(void *user, void *data, zip_uint64_t bytes, zip_source_cmd_t command)
{
        array *a = user;
        switch (command) {
        case ZIP_SOURCE_OPEN:
                a->at = 0;
                a->host = lg__npy_on_host(a->tensor);
                if (!a->host) /* the context already has the message */
                        zip_error_set(&a->error, ZIP_ER_READ, EIO);
                return a->host ? 0 : -1;
        case ZIP_SOURCE_READ:
                return read_array(a, data, bytes);
        case ZIP_SOURCE_CLOSE:
                close_array(a);
                return 0;
        case ZIP_SOURCE_STAT:
                return stat_size(data, bytes, a->bytes);
        case ZIP_SOURCE_ERROR:
                return zip_error_to_data(&a->error, data, bytes);
        case ZIP_SOURCE_FREE:
                return 0;
        case ZIP_SOURCE_SUPPORTS:
                return ZIP_SOURCE_SUPPORTS_READABLE;
        default:
                zip_error_set(&a->error, ZIP_ER_OPNOTSUPP, 0);
                return -1;
        }
}

/* ---- source callbacks of the archive ---- */

/* Overwrites bytes before o->end, since libzip goes back to the header of each entry, and appends the other bytes. */
static zip_int64_t write_output(output *o, const char *data, zip_uint64_t bytes)
{
        const zip_uint64_t behind = (zip_uint64_t)(o->end - o->at), old = bytes < behind ? bytes : behind;
        if ((old && !lg__sink_put_at(&o->sink, o->at, data, old)) || !lg__sink_put(&o->sink, data + old, bytes - old)) {
                zip_error_set(&o->error, ZIP_ER_WRITE, EIO);
                return -1;
        }
        o->at += (int64_t)bytes;
        o->end = o->at > o->end ? o->at : o->end;
        return (zip_int64_t)bytes;
}

static zip_int64_t output_source(void *user, void *data, zip_uint64_t bytes, zip_source_cmd_t command)
{
        output *o = user;
        switch (command) {
        case ZIP_SOURCE_STAT: /* reports that no archive exists yet */
                zip_error_set(&o->error, ZIP_ER_READ, ENOENT);
                return -1;
        case ZIP_SOURCE_BEGIN_WRITE:
        case ZIP_SOURCE_COMMIT_WRITE:
        case ZIP_SOURCE_ROLLBACK_WRITE:
        case ZIP_SOURCE_REMOVE:
        case ZIP_SOURCE_FREE:
                return 0;
        case ZIP_SOURCE_WRITE:
                return write_output(o, data, bytes);
        case ZIP_SOURCE_SEEK_WRITE: {
                const zip_int64_t at = zip_source_seek_compute_offset((zip_uint64_t)o->at, (zip_uint64_t)o->end, data,
                                                                      bytes, &o->error);
                o->at = at < 0 ? o->at : at;
                return at < 0 ? -1 : 0;
        }
        case ZIP_SOURCE_TELL_WRITE:
                return o->at;
        case ZIP_SOURCE_ERROR:
                return zip_error_to_data(&o->error, data, bytes);
        case ZIP_SOURCE_SUPPORTS:
                return ZIP_SOURCE_SUPPORTS_WRITABLE;
        default:
                zip_error_set(&o->error, ZIP_ER_OPNOTSUPP, 0);
                return -1;
        }
}

/* ---- the archive ---- */

/* Sets an error for an error of libzip, unless the context already has one. Returns false. */
static bool zip_failed(const job *j, zip_error_t *e)
{
        const int kind = zip_error_code_zip(e);
        const bool memory =
                kind == ZIP_ER_MEMORY || kind == ZIP_ER_OK; /* some calls report no error if memory is lacking */
        return lg__fail(j->ctx,
                        memory                 ? LG_ERR_MEMORY
                        : kind == ZIP_ER_INVAL ? LG_ERR_ARGUMENT
                                               : LG_ERR_IO,
                        WHO ": %s cannot be written: %s", j->path,
                        memory ? "there is no memory for libzip" : zip_error_strerror(e));
}

static bool add(const job *j, zip_t *zip, array *a)
{
        const size_t room = strlen(a->name) + 5;
        char *name = lg__alloc(j->ctx, room);
        if (!name)
                return false;
        snprintf(name, room, "%s.npy", a->name);
        zip_source_t *source = zip_source_function(zip, array_source, a);
        const zip_int64_t i = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
        lg__free(j->ctx, name, room);
        if (i >= 0 && !zip_set_file_compression(zip, (zip_uint64_t)i, ZIP_CM_STORE, 0) &&
            !zip_file_set_dostime(zip, (zip_uint64_t)i, 0, DOS_1980, 0))
                return true;
        const int kind = zip_error_code_zip(zip_get_error(zip));
        if (i < 0)
                zip_source_free(source);
        if (kind == ZIP_ER_EXISTS || kind == ZIP_ER_INVAL)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, WHO ": the name %s %s", lg__quoted(a->name).s,
                                kind == ZIP_ER_EXISTS ? "is given twice" : "is no UTF-8");
        return zip_failed(j, zip_get_error(zip));
}

static bool write_archive(job *j)
{
        zip_error_t e;
        zip_error_init(&e);
        zip_source_t *out = zip_source_function_create(output_source, &j->out, &e);
        zip_t *zip = out ? zip_open_from_source(out, ZIP_CREATE | ZIP_TRUNCATE, &e) : NULL;
        if (!zip) {
                zip_source_free(out);
                zip_failed(j, &e);
                zip_error_fini(&e);
                return false;
        }
        bool ok = true;
        for (int64_t i = 0; i < j->count && ok; i++)
                ok = add(j, zip, &j->arrays[i]);
        if (ok && !zip_close(zip))
                return true;
        if (ok)
                zip_failed(j, zip_get_error(zip));
        zip_discard(zip);
        return false;
}

static bool write_file(job *j)
{
        j->out.sink = (lg__sink){.ctx = j->ctx, .op = WHO, .path = j->path};
        bool ok = lg__sink_open(&j->out.sink) && write_archive(j) && lg__sink_commit(&j->out.sink);
        lg__sink_close(&j->out.sink);
        return ok;
}

/* ---- arguments ---- */

static bool take(const job *j, const char *name, const lg_tensor *t, array *ret)
{
        const long long i = ret - j->arrays;
        if (!name || !t)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, WHO ": %s %lld is NULL", name ? "array" : "name", i);
        const size_t length = strlen(name);
        if (!length || length > MOST_NAME)
                return lg__fail(j->ctx, LG_ERR_ARGUMENT, WHO ": name %lld has %zu bytes; 1 to %d are right", i, length,
                                MOST_NAME);
        if (!lg__in_context(j->ctx, t, WHO, name) || !lg__check(t, WHO, name) || !lg__npy_writable(t, WHO))
                return false;
        ret->name = name;
        ret->tensor = t;
        ret->front = lg__npy_header(t, ret->header);
        ret->bytes = ret->front + (zip_uint64_t)lg__shape_numel(t->at.shape) * lg__dtype_bytes(t->at.dtype);
        return true;
}

bool lg_write_npz(lg_ctx *c, const char *path, lg_names names, lg_list arrays)
{
        job j = {.ctx = c, .path = path, .count = arrays.count};
        if (!lg__ok(c))
                return false;
        if (arrays.count < 1 || names.count != arrays.count)
                return lg__fail(c, LG_ERR_ARGUMENT, WHO ": %lld names for %lld arrays; one for each of at least one",
                                (long long)names.count, (long long)arrays.count);
        if (!lg__list_ok(c, WHO, names.count, names.items) || !lg__list_ok(c, WHO, arrays.count, arrays.items))
                return false;
        const size_t bytes = (size_t)j.count * sizeof *j.arrays;
        j.arrays = lg__alloc(c, bytes);
        bool ok = j.arrays;
        for (int64_t i = 0; i < j.count && ok; i++)
                ok = take(&j, names.items[i], arrays.items[i], &j.arrays[i]);
        ok = ok && write_file(&j);
        for (int64_t i = 0; i < j.count && j.arrays; i++)
                zip_error_fini(&j.arrays[i].error);
        lg__free(c, j.arrays, bytes);
        zip_error_fini(&j.out.error);
        return ok;
}
