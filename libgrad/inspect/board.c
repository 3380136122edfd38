/* board.c - files of records for TensorBoard: opening, numbers, texts, closing.
 *
 * A file is a sequence of records: the length of the data (u64), a checksum of these 8 bytes (u32), the data, a
 * checksum of the data (u32), all little-endian. The data is a message Event of tensorboard/compat/proto/event.proto.
 */
#include "board.h"
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include "io/files.h"

#define HEAD 12          /* bytes of a record before its data */
#define NAME_ROOM 400    /* bytes of a file's name */
#define MOST_TRIES 10000 /* most names to try; several boards may be opened in one second */

/* Fields of Event and of SessionLog, and the status of a session that begins. */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7, STATUS = 1, START = 1 };
enum { VALUE = 1, TAG = 1 }; /* fields of Summary and of Summary.Value */

struct lg_board {
        lg__object object;
        char *path; /* of the file, for messages */
        size_t path_bytes;
        int fd;
        int64_t bytes; /* of whole records */
};

/* ---- records ---- */

uint32_t lg__crc32c(const void *data, size_t bytes)
{
        static const uint32_t halves[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                            0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                            0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
        const unsigned char *s = data;
        uint32_t crc = 0xffffffff;
        for (size_t i = 0; i < bytes; i++) {
                crc ^= s[i];
                crc = crc >> 4 ^ halves[crc & 15];
                crc = crc >> 4 ^ halves[crc & 15];
        }
        return ~crc;
}

/* Stores the checksum of a record's part: files that hold files with checksums keep checksums that differ. */
static void put_checksum(char *to, const void *data, size_t bytes)
{
        const uint32_t crc = lg__crc32c(data, bytes), masked = (crc >> 15 | crc << 17) + 0xa282ead8;
        for (int i = 0; i < 4; i++)
                to[i] = (char)(masked >> (8 * i));
}

static bool failed(lg_board *b, const char *op, const char *what)
{
        return lg__fail(b->object.ctx, lg__system_code(errno), "%s: %s cannot be %s: %s", op, b->path, what,
                        strerror(errno));
}

/* Begins the message of a record, after the room for the record's head. */
static void begin_record(lg__proto_out *o, int64_t step)
{
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        lg__proto_append(o, NULL, HEAD);
        lg__proto_put_f64(o, WALL_TIME, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
        lg__proto_put_int(o, STEP, step);
}

/* Writes a record after the last whole one, and frees the memory of o. */
static bool end_record(lg_board *b, const char *op, lg__proto_out *o, bool ok)
{
        const size_t bytes = ok ? (size_t)o->bytes - HEAD : 0;
        if (bytes > INT32_MAX)
                ok = lg__fail(o->ctx, LG_ERR_SHAPE, "%s: the record has %zu bytes; TensorBoard reads at most 2^31 - 1",
                              op, bytes);
        char *end = ok ? lg__proto_append(o, NULL, 4) : NULL;
        if (end) {
                for (int i = 0; i < 8; i++)
                        o->data[i] = (char)((uint64_t)bytes >> (8 * i));
                put_checksum(o->data + 8, o->data, 8);
                put_checksum(end, o->data + HEAD, bytes);
        }
        ok = end && (lg__pwrite_all(lg__files_of(o->ctx), b->fd, b->bytes, o->data, (size_t)o->bytes) ||
                     failed(b, op, "written"));
        b->bytes += ok ? o->bytes : 0;
        lg__proto_free(o);
        return ok;
}

bool lg__event_begin(lg__event *e, lg_board *b, const char *op, const char *tag, int64_t step)
{
        lg_ctx *c = b ? b->object.ctx : NULL;
        if (!lg__ok(c) || !lg__unrecorded(c, op))
                return false;
        if (!tag || !*tag || !lg__is_utf8(tag))
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the tag is %s", op,
                                !tag    ? "NULL"
                                : !*tag ? "empty"
                                        : "not UTF-8");
        *e = (lg__event){.board = b, .op = op, .out = {.ctx = c}};
        begin_record(&e->out, step);
        e->summary = lg__proto_begin(&e->out, SUMMARY);
        e->value = lg__proto_begin(&e->out, VALUE);
        lg__proto_put_text(&e->out, TAG, tag);
        return true;
}

bool lg__event_begin_of(lg__event *e, lg_board *b, const char *op, const char *tag, const lg_tensor *t, int64_t step)
{
        lg_ctx *c = b ? b->object.ctx : lg__ctx_of(t);
        if (!lg__ok(c))
                return false;
        if (!b || !t)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %s is NULL", op, b ? "t" : "b");
        return lg__in_context(c, t, op, "t") && lg__check(t, op, "t") && lg__event_begin(e, b, op, tag, step);
}

bool lg__event_end(lg__event *e, bool ok)
{
        lg__proto_end(&e->out, e->value);
        lg__proto_end(&e->out, e->summary);
        return end_record(e->board, e->op, &e->out, ok && lg__ok(e->out.ctx));
}

/* ---- numbers and texts ---- */

bool lg_board_scalar(lg_board *b, const char *tag, double value, int64_t step)
{
        lg__event e;
        if (!lg__event_begin(&e, b, "lg_board_scalar", tag, step))
                return false;
        lg__proto_put_f32(&e.out, LG__SCALAR, (float)value);
        return lg__event_end(&e, true);
}

/* A text is a TensorProto of one string, whose plugin is named in the metadata. */
bool lg_board_text(lg_board *b, const char *tag, const char *text, int64_t step)
{
        enum { DTYPE = 1, STRING = 7, SHAPE = 2, DIM = 2, SIZE = 1, STRING_VAL = 8, PLUGIN_DATA = 1, PLUGIN_NAME = 1 };
        lg__event e;
        if (!lg__event_begin(&e, b, "lg_board_text", tag, step))
                return false;
        const bool ok = text && lg__is_utf8(text);
        if (!ok)
                lg__fail(e.out.ctx, LG_ERR_ARGUMENT, "lg_board_text: the text is %s", text ? "not UTF-8" : "NULL");
        const int64_t tensor = lg__proto_begin(&e.out, LG__TENSOR);
        lg__proto_put_int(&e.out, DTYPE, STRING);
        const int64_t shape = lg__proto_begin(&e.out, SHAPE), dim = lg__proto_begin(&e.out, DIM);
        lg__proto_put_int(&e.out, SIZE, 1);
        lg__proto_end(&e.out, dim);
        lg__proto_end(&e.out, shape);
        lg__proto_put_text(&e.out, STRING_VAL, ok ? text : "");
        lg__proto_end(&e.out, tensor);
        const int64_t metadata = lg__proto_begin(&e.out, LG__METADATA);
        const int64_t plugin = lg__proto_begin(&e.out, PLUGIN_DATA);
        lg__proto_put_text(&e.out, PLUGIN_NAME, "text");
        lg__proto_end(&e.out, plugin);
        lg__proto_end(&e.out, metadata);
        return lg__event_end(&e, ok);
}

/* ---- opening and closing ---- */

static void destroy(lg__object *o)
{
        lg_board *b = (lg_board *)o;
        if (b->fd >= 0)
                lg__files_of(o->ctx)->close(b->fd);
        lg__free(o->ctx, b->path, b->path_bytes);
}

static const lg__type type = {.destroy = destroy};

/* Makes a folder, and the folders that it is in. Changes `path` meanwhile. */
static bool make_folder(const lg__files *files, char *path)
{
        if (!files->mkdir(path, 0777) || errno == EEXIST)
                return true;
        char *slash = errno == ENOENT ? strrchr(path, '/') : NULL;
        while (slash && slash > path && slash[-1] == '/') /* of several */
                slash--;
        if (!slash || slash == path)
                return false;
        *slash = '\0';
        const bool ok = make_folder(files, path);
        *slash = '/';
        return ok && (!files->mkdir(path, 0777) || errno == EEXIST);
}

/* Creates a file with a new name, whose beginning TensorBoard asks for, and which sorts by time. */
static bool create(lg_board *b, const char *folder)
{
        const lg__files *files = lg__files_of(b->object.ctx);
        const size_t bytes = strlen(folder);
        char host[256] = "localhost";
        b->path_bytes = bytes + NAME_ROOM;
        b->path = lg__alloc(b->object.ctx, b->path_bytes);
        if (!b->path)
                return false;
        gethostname(host, sizeof host - 1);
        strcpy(b->path, folder);
        if (!make_folder(files, b->path))
                return failed(b, "lg_board_open", "made");
        for (int i = 0; b->fd < 0 && i < MOST_TRIES; i++) {
                snprintf(b->path + bytes, NAME_ROOM, "%sevents.out.tfevents.%010lld.%s.%lld.%d",
                         folder[bytes - 1] == '/' ? "" : "/", (long long)time(NULL), host, (long long)getpid(), i);
                b->fd = files->open(b->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
                if (b->fd < 0 && errno != EEXIST && errno != EINTR)
                        break;
        }
        return b->fd >= 0 || failed(b, "lg_board_open", "made");
}

static bool begin_file(lg_board *b, int64_t purge_step)
{
        const char *op = "lg_board_open";
        lg__proto_out o = {.ctx = b->object.ctx};
        begin_record(&o, 0);
        lg__proto_put_text(&o, FILE_VERSION, "brain.Event:2");
        if (!end_record(b, op, &o, lg__ok(o.ctx)) || !purge_step)
                return lg__ok(o.ctx);
        begin_record(&o, lg__whole_option(purge_step, 0));
        const int64_t session = lg__proto_begin(&o, SESSION_LOG);
        lg__proto_put_int(&o, STATUS, START);
        lg__proto_end(&o, session);
        return end_record(b, op, &o, lg__ok(o.ctx));
}

lg_board *lg_board_open_with(lg_ctx *c, const char *folder, const lg_board_options *options)
{
        lg_board_options o;
        if (!lg__take(c, "lg_board_open", options, &o, sizeof o))
                return NULL;
        if (!folder || !*folder)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_board_open: the folder is %s", folder ? "empty" : "NULL");
        if (lg__whole_option(o.purge_step, 0) < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_board_open: .purge_step is %lld, below 0",
                                (long long)o.purge_step);
        lg_board *b = lg__object_new(c, &type, sizeof *b);
        if (!b)
                return NULL;
        b->fd = -1;
        if (!create(b, folder) || !begin_file(b, o.purge_step))
                return lg__object_destroy(b);
        return b;
}

static bool synchronise(lg_board *b, const char *op)
{
        int rc;
        do
                rc = lg__files_of(b->object.ctx)->fsync(b->fd);
        while (rc && errno == EINTR);
        return !rc || failed(b, op, "synchronised");
}

bool lg_board_flush(lg_board *b)
{
        return b && lg__ok(b->object.ctx) && synchronise(b, "lg_board_flush");
}

bool lg_board_close(lg_board *b)
{
        if (!b)
                return false;
        bool ok = synchronise(b, "lg_board_close");
        if (lg__files_of(b->object.ctx)->close(b->fd) && errno != EINTR) /* after EINTR the file is closed, too */
                ok = failed(b, "lg_board_close", "closed");
        b->fd = -1;
        lg__object_destroy(b);
        return ok;
}
