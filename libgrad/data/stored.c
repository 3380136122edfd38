/* stored.c - data sets whose samples stay in files, which may be larger than memory: records, rows of npy arrays, text,
 * tokens.
 *
 * Each field of sample i is a span of bytes from base + i * stride on in one of the files. Threads read with pread(),
 * which does not use the file position that they share.
 */
#include <string.h>
#include "io/files.h"
#include "io/npy.h"
#include "data.h"

typedef struct span {
        int file;
        int64_t base, stride, bytes; /* offset of sample 0, distance of samples, size */
} span;

/* Numbers in a file that become i64 elements of windows, text or tokens. */
typedef struct numbers {
        int width;         /* bytes of a number in the file; 0: elements are as in the file */
        bool is_signed;    /* i8 to i32; numbers of 64 bits are always taken for i64 */
        int64_t first;     /* byte of number 0 */
        int64_t below;     /* numbers must be less, and not negative */
        int64_t separator; /* last token of a document; -1: none */
} numbers;

typedef struct stored {
        lg_dataset head;
        const char *op; /* name of the public function, for messages */
        const lg__files *calls;
        int fd[LG_MAX_FIELDS];
        char *path[LG_MAX_FIELDS];
        int64_t bytes[LG_MAX_FIELDS]; /* size of each file */
        int files;
        span spans[LG_MAX_FIELDS];
        numbers numbers;
} stored;

static void destroy(lg_dataset *d)
{
        stored *o = (stored *)d;
        for (int i = 0; i < o->files; i++) {
                o->calls->close(o->fd[i]);
                lg__strfree(d->object.ctx, o->path[i]);
        }
}

/* ---- samples ---- */

static bool read_span(const stored *o, lg_sample *s, const span *p, void *to)
{
        const int64_t at = p->base + s->index * p->stride;
        int error = 0;
        const int64_t n = lg__pread_all(o->calls, o->fd[p->file], at, to, p->bytes, &error);
        if (n < 0)
                return lg__sample_fail(s, lg__system_code(error), "%.300s cannot be read at byte %lld: %s",
                                       o->path[p->file], (long long)at, strerror(error));
        return n == p->bytes ||
               lg__sample_fail(s, LG_ERR_FORMAT,
                               "%.300s became shorter: sample %lld ends at byte %lld, the file at %lld",
                               o->path[p->file], (long long)s->index, (long long)(at + p->bytes), (long long)(at + n));
}

#define WIDEN(type)                                                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                                              \
                type v;                                                                                                \
                memcpy(&v, from + i * (int64_t)sizeof v, sizeof v);                                                    \
                to[i] = (int64_t)v;                                                                                    \
        }

/* Widens n numbers at `from`, the end of the n elements at `to`: none is overwritten before its use. */
static void widen(const numbers *t, const char *from, int64_t *to, int64_t n)
{
        if (t->width == 1)
                WIDEN(uint8_t)
        else if (t->width == 2)
                WIDEN(uint16_t)
        else if (t->width == 4 && t->is_signed)
                WIDEN(int32_t)
        else if (t->width == 4)
                WIDEN(uint32_t)
}

static bool read_numbers(const stored *o, lg_sample *s, const span *p, int64_t *to)
{
        const numbers *t = &o->numbers;
        const int64_t n = p->bytes / t->width;
        char *bytes = (char *)(to + n) - p->bytes;
        if (!read_span(o, s, p, bytes))
                return false;
        widen(t, bytes, to, n);
        for (int64_t i = 0; i < n; i++)
                if (to[i] < 0 || to[i] >= t->below) {
                        const int64_t at = (p->base + s->index * p->stride - t->first) / t->width + i;
                        return lg__sample_fail(s, LG_ERR_FORMAT,
                                               "%.300s: token %lld is %lld; tokens are 0 or more and less than %lld",
                                               o->path[p->file], (long long)at, (long long)to[i], (long long)t->below);
                }
        return true;
}

/* Numbers the documents in a window, and the tokens in each document. */
static void find_documents(const stored *o, const lg_sample *s)
{
        const int64_t *x = s->data[0], n = o->spans[0].bytes / o->numbers.width;
        int64_t *position = s->data[2], *document = s->data[3], at = 0, number = 0;
        for (int64_t i = 0; i < n; i++) {
                position[i] = at++;
                document[i] = number;
                if (x[i] == o->numbers.separator) {
                        at = 0;
                        number++;
                }
        }
}

static bool get_windows(const lg_dataset *d, lg_sample *s)
{
        const stored *o = (const stored *)d;
        for (int f = 0; f < 2; f++)
                if (!read_numbers(o, s, &o->spans[f], s->data[f]))
                        return false;
        if (d->fields.count > 2)
                find_documents(o, s);
        return true;
}

static bool get(const lg_dataset *d, lg_sample *s)
{
        const stored *o = (const stored *)d;
        if (o->numbers.width)
                return get_windows(d, s);
        for (int f = 0; f < d->fields.count; f++) {
                const span *p = &o->spans[f];
                uint8_t *bytes = s->data[f];
                if (!read_span(o, s, p, bytes))
                        return false;
                for (int64_t i = 0; d->fields.field[f].dtype == LG_BOOL && i < p->bytes; i++)
                        bytes[i] = bytes[i] != 0;
        }
        return true;
}

static const lg__set_kind kind = {.get = get, .destroy = destroy, .bytes = sizeof(stored)};

/* ---- files ---- */

/* Returns a data set that has no files, fields or samples yet, or NULL with an error. */
static stored *begin(lg_ctx *c, const char *op)
{
        stored *o = (stored *)lg__dataset_new(c, &kind, 0);
        if (o) {
                o->op = op;
                o->calls = lg__files_of(c);
        }
        return o;
}

static bool open_file(stored *o, const char *path)
{
        lg_ctx *c = o->head.object.ctx;
        const int i = o->files;
        if (!path)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the path is NULL", o->op);
        o->path[i] = lg__strdup(c, path);
        if (!o->path[i])
                return false;
        o->fd[i] = lg__open_regular(c, o->op, path, &o->bytes[i]);
        if (o->fd[i] >= 0) {
                o->files++;
                return true;
        }
        lg__strfree(c, o->path[i]);
        return false;
}

/* ---- files of records ---- */

/* Sets the spans of all fields, without gaps from byte `skip` on. Returns the size of a record in bytes, or -1. */
static int64_t lay_record(stored *o, int64_t skip)
{
        lg_ctx *c = o->head.object.ctx;
        int64_t end = skip;
        for (int f = 0; f < o->head.fields.count; f++) {
                const lg_field *field = &o->head.fields.field[f];
                if (field->ragged) {
                        lg__fail(c, LG_ERR_ARGUMENT, "%s: field %s is ragged; records have one size", o->op,
                                 field->name);
                        return -1;
                }
                o->spans[f] = (span){.base = end, .bytes = (int64_t)lg__field_bytes(field)};
                if (__builtin_add_overflow(end, o->spans[f].bytes, &end)) {
                        lg__fail(c, LG_ERR_SHAPE, "%s: records of these fields have more than 2^63 bytes", o->op);
                        return -1;
                }
        }
        for (int f = 0; f < o->head.fields.count; f++)
                o->spans[f].stride = end - skip;
        if (end > skip)
                return end - skip;
        lg__fail(c, LG_ERR_SHAPE, "%s: records of these fields have no bytes", o->op);
        return -1;
}

static bool lay_records(stored *o, const char *path, const lg_fields *fields, int64_t skip)
{
        lg_ctx *c = o->head.object.ctx;
        if (!lg__fields_take(c, o->op, &o->head.fields, fields) || !open_file(o, path))
                return false;
        const int64_t from =
                skip < o->bytes[0] ? skip : o->bytes[0]; /* limited to the file size, so that sums do not overflow */
        const int64_t record = lay_record(o, from), rest = o->bytes[0] - from;
        if (record < 0)
                return false;
        if (rest < record)
                return lg__fail(c, LG_ERR_FORMAT,
                                "%s: %.300s has %lld bytes; %lld before a record of %lld are expected", o->op, path,
                                (long long)o->bytes[0], (long long)skip, (long long)record);
        if (rest % record)
                return lg__fail(c, LG_ERR_FORMAT,
                                "%s: %.300s is truncated: the record at byte %lld has %lld bytes; records have %lld",
                                o->op, path, (long long)(o->bytes[0] - rest % record), (long long)(rest % record),
                                (long long)record);
        o->head.size = rest / record;
        return true;
}

lg_dataset *lg_dataset_records_with(lg_ctx *c, const char *path, lg_fields fields, const lg_records_options *options)
{
        const char *op = "lg_dataset_records";
        lg_records_options o;
        if (!lg__take(c, op, options, &o, sizeof o))
                return NULL;
        if (o.skip < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .skip is %lld; it is a number of bytes", op,
                                (long long)o.skip);
        stored *made = begin(c, op);
        return made && lay_records(made, path, &fields, o.skip) ? made : lg__object_destroy(made);
}

/* ---- npy files ---- */

/* Returns the stream of file f, before its header. */
static lg__npy_in npy_of(stored *o, int f)
{
        return (lg__npy_in){.ctx = o->head.object.ctx,
                            .who = o->op,
                            .path = o->path[f],
                            .bytes = o->bytes[f],
                            .get = lg__npy_get_from_file,
                            .stream = &o->fd[f]};
}

static bool rows_are_as_here(const lg__npy_in *in, const lg__npy *h)
{
        if (h->shape.ndim < 1)
                return lg__npy_fail(in, LG_ERR_SHAPE, "has 0 dimensions; the first one is that of the samples");
        if (h->fortran && h->shape.ndim > 1)
                return lg__npy_fail(in, LG_ERR_STATE,
                                    "is in Fortran order, where rows are scattered: lg_read_npy() it");
        if ((h->swapped && h->width > 1) || (size_t)h->width != lg__dtype_bytes(h->dtype) ||
            (h->kind == 'u' && h->width > 1))
                return lg__npy_fail(in, LG_ERR_DTYPE, "has elements that are not as in memory: lg_read_npy() it");
        return true;
}

/* Opens an npy file and adds its rows as the next field. Returns false with an error. */
static bool add_array(stored *o, const char *path, lg_fields *fields)
{
        lg__npy h = {0};
        const int f = o->files;
        if (!open_file(o, path))
                return false;
        lg__npy_in in = npy_of(o, f);
        if (!lg__npy_get_header(&in, &h) || !lg__npy_check_end(&in, &h) || !rows_are_as_here(&in, &h))
                return false;
        if (f && h.shape.size[0] != o->head.size)
                return lg__npy_fail(&in, LG_ERR_SHAPE, "has %lld rows, and %.200s has %lld", (long long)h.shape.size[0],
                                    o->path[0], (long long)o->head.size);
        o->head.size = h.shape.size[0];
        lg_field *field = &fields->field[fields->count++];
        field->name = lg__field_names[f];
        field->dtype = h.dtype;
        field->shape.ndim = h.shape.ndim - 1;
        for (int i = 0; i < field->shape.ndim; i++)
                field->shape.size[i] = h.shape.size[i + 1];
        const int64_t bytes = (int64_t)lg__field_bytes(field);
        o->spans[f] = (span){.file = f, .base = in.at, .stride = bytes, .bytes = bytes};
        return true;
}

static bool add_arrays(stored *o, lg_names paths)
{
        lg_fields fields = {.count = 0};
        for (int64_t i = 0; i < paths.count; i++)
                if (!add_array(o, paths.items[i], &fields))
                        return false;
        return lg__fields_take(o->head.object.ctx, o->op, &o->head.fields, &fields);
}

lg_dataset *lg_dataset_npy(lg_ctx *c, lg_names paths)
{
        const char *op = "lg_dataset_npy";
        if (!lg__ok(c))
                return NULL;
        if (!lg__list_ok(c, op, paths.count, paths.items))
                return NULL;
        if (paths.count < 1 || paths.count > LG_MAX_FIELDS)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld files; 1 to %d make a data set", op,
                                (long long)paths.count, LG_MAX_FIELDS);
        stored *o = begin(c, op);
        return o && add_arrays(o, paths) ? o : lg__object_destroy(o);
}

/* ---- text and tokens ---- */

/* Sets fields and spans: windows of `length` of the `count` numbers in the file. Returns false with an error. */
static bool lay_windows(stored *o, const numbers *t, int64_t count, int64_t length, int64_t stride)
{
        lg_ctx *c = o->head.object.ctx;
        lg_fields fields = {.count = t->separator < 0 ? 2 : 4};
        const char *const names[] = {lg__field_names[0], lg__field_names[1], "position", "document"};
        for (int f = 0; f < fields.count; f++)
                fields.field[f] = LG_FIELD(names[f], LG_I64, LG_SHAPE(length));
        if (!lg__fields_take(c, o->op, &o->head.fields, &fields))
                return false;
        if (count <= length)
                return lg__fail(c, LG_ERR_FORMAT,
                                "%s: %.300s has %lld %s; a sample takes %lld and the one that follows", o->op,
                                o->path[0], (long long)count, t->width == 1 ? "bytes" : "tokens", (long long)length);
        stride = stride < count ? stride : count; /* limited, so that products do not overflow */
        o->numbers = *t;
        o->head.size = (count - 1 - length) / stride + 1;
        for (int f = 0; f < 2; f++)
                o->spans[f] = (span){.base = t->first + (int64_t)f * t->width,
                                     .stride = stride * t->width,
                                     .bytes = length * t->width};
        return true;
}

static bool length_is_good(lg_ctx *c, const char *op, int64_t length, int64_t stride)
{
        return (length >= 1 && stride >= 0) ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: the length is %lld, .stride %lld; both are 1 or more", op,
                        (long long)length, (long long)stride);
}

lg_dataset *lg_dataset_text_with(lg_ctx *c, const char *path, int64_t length, const lg_text_options *options)
{
        const char *op = "lg_dataset_text";
        const numbers bytes = {.width = 1, .below = 256, .separator = -1};
        lg_text_options o;
        if (!lg__take(c, op, options, &o, sizeof o) || !length_is_good(c, op, length, o.stride))
                return NULL;
        stored *made = begin(c, op);
        return made && open_file(made, path) &&
                               lay_windows(made, &bytes, made->bytes[0], length, o.stride ? o.stride : length)
                       ? made
                       : lg__object_destroy(made);
}

static bool npy_tokens(stored *o, numbers *t, int64_t *ret_count)
{
        lg__npy_in in = npy_of(o, 0);
        lg__npy h = {0};
        if (!lg__npy_get_header(&in, &h) || !lg__npy_check_end(&in, &h))
                return false;
        if (h.shape.ndim != 1)
                return lg__npy_fail(&in, LG_ERR_SHAPE, "has %d dimensions; tokens have one", h.shape.ndim);
        if ((h.kind != 'u' && (h.kind != 'i' || h.width < 4)) || (h.swapped && h.width > 1))
                return lg__npy_fail(&in, LG_ERR_DTYPE,
                                    "has elements of type %c%d%s; tokens are u1, u2, u4, u8, i4 or i8", h.kind, h.width,
                                    h.swapped ? " in foreign byte order" : "");
        t->width = h.width;
        t->is_signed = h.kind == 'i';
        t->first = in.at;
        *ret_count = h.shape.size[0];
        return true;
}

static bool raw_tokens(stored *o, numbers *t, int64_t bits, int64_t skip, int64_t *ret_count)
{
        lg_ctx *c = o->head.object.ctx;
        t->width = bits ? (int)(bits / 8) : 2;
        t->first = skip;
        if (o->bytes[0] < skip || (o->bytes[0] - skip) % t->width)
                return lg__fail(c, LG_ERR_FORMAT,
                                "%s: %.300s has %lld bytes; .skip = %lld and whole tokens of %d bytes are expected",
                                o->op, o->path[0], (long long)o->bytes[0], (long long)skip, t->width);
        *ret_count = (o->bytes[0] - skip) / t->width;
        return true;
}

static bool lay_tokens(stored *o, const char *path, int64_t length, const lg_tokens_options *options)
{
        lg_ctx *c = o->head.object.ctx;
        numbers t = {.below = options->vocabulary ? options->vocabulary : INT64_MAX,
                     .separator = options->separator == LG_ZERO_INT ? 0
                                  : options->separator              ? options->separator
                                                                    : -1};
        char magic[6] = {0};
        int64_t count = 0;
        if (!open_file(o, path) || lg__read_at(c, o->op, path, o->fd[0], 0, magic, sizeof magic) < 0)
                return false;
        const bool is_npy = !memcmp(magic, "\x93NUMPY", sizeof magic);
        if (is_npy && (options->bits || options->skip))
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "%s: %.300s is an npy file, whose header states what .bits and .skip do: leave them out", o->op,
                        path);
        return (is_npy ? npy_tokens(o, &t, &count) : raw_tokens(o, &t, options->bits, options->skip, &count)) &&
               lay_windows(o, &t, count, length, options->stride ? options->stride : length);
}

lg_dataset *lg_dataset_tokens_with(lg_ctx *c, const char *path, int64_t length, const lg_tokens_options *options)
{
        const char *op = "lg_dataset_tokens";
        lg_tokens_options o;
        if (!lg__take(c, op, options, &o, sizeof o) || !length_is_good(c, op, length, o.stride))
                return NULL;
        if (o.bits && o.bits != 16 && o.bits != 32)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .bits is %lld; it is 16 or 32", op, (long long)o.bits);
        if (o.skip < 0 || o.vocabulary < 0 || (o.separator < 0 && o.separator != LG_ZERO_INT))
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: .skip is %lld, .vocabulary %lld, .separator %lld; none is negative", op,
                                (long long)o.skip, (long long)o.vocabulary, (long long)o.separator);
        if (o.vocabulary && o.separator >= o.vocabulary)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: .separator is %lld, .vocabulary %lld, which must be greater",
                                op, (long long)o.separator, (long long)o.vocabulary);
        stored *made = begin(c, op);
        return made && lay_tokens(made, path, length, &o) ? made : lg__object_destroy(made);
}
