/* cifar.c - CIFAR-10 and CIFAR-100 (Krizhevsky 2009) from the files of their binary version.
 *
 * A file is records without a header: a label of one byte, in CIFAR-100 a coarse and a fine one, then 32 x 32 pixels of
 * red, of green and of blue.
 */
#include "io/source.h"
#include "data.h"
#include "find.h"

#define SIDE 32
#define PIXELS (3 * SIDE * SIDE)
#define MOST_FILES 5
#define MOST_LABELS 2

typedef struct cifar {
        lg_ctx *ctx;
        lg__where where;
        const char *const *files;
        int file_count;
        int label_count, label; /* in a record; which of them y gets */
        int classes[MOST_LABELS];
        bool bytes; /* x stays u8 */
        char path[MOST_FILES][LG__FILE_PATH];
        lg__source source[MOST_FILES];
        int open_count;
} cifar;

static int64_t record_bytes(const cifar *d)
{
        return d->label_count + PIXELS;
}

static bool check_size(const cifar *d, const lg__source *s)
{
        const int64_t bytes = record_bytes(d), rest = s->file_bytes % bytes;
        if (!s->plain)
                return lg__fail(d->ctx, LG_ERR_FORMAT, "%s: %s is compressed by gzip: gunzip it first", s->who,
                                s->path);
        if (!s->file_bytes)
                return lg__fail(d->ctx, LG_ERR_FORMAT, "%s: %s is empty; it should have records of %lld bytes", s->who,
                                s->path, (long long)bytes);
        if (rest)
                return lg__fail(d->ctx, LG_ERR_FORMAT,
                                "%s: %s is truncated: the record at byte %lld has %lld bytes; records have %lld",
                                s->who, s->path, (long long)(s->file_bytes - rest), (long long)rest, (long long)bytes);
        return true;
}

/* Opens all files and counts their records; -1: an error. Those that are open are closed by the caller. */
static int64_t open_files(cifar *d)
{
        int64_t count = 0;
        for (int i = 0; i < d->file_count; i++) {
                lg__source *s = &d->source[i];
                *s = (lg__source){.ctx = d->ctx, .who = d->where.who, .path = d->path[i]};
                if (!lg__find_file(d->ctx, &d->where, d->files[i], d->path[i]) || !lg__source_open(s))
                        return -1;
                d->open_count++;
                if (!check_size(d, s))
                        return -1;
                count += s->file_bytes / record_bytes(d);
        }
        return count;
}

/* One file's records. */
static bool read_file(const cifar *d, const lg__source *s, uint8_t *x, int64_t *y)
{
        const int64_t count = s->file_bytes / record_bytes(d);
        for (int64_t i = 0; i < count; i++, x += PIXELS) {
                uint8_t labels[MOST_LABELS];
                if (!lg__source_get(s, labels, (size_t)d->label_count) || !lg__source_get(s, x, PIXELS))
                        return false;
                for (int k = 0; k < d->label_count; k++)
                        if (labels[k] >= d->classes[k])
                                return lg__fail(d->ctx, LG_ERR_FORMAT,
                                                "%s: %s has label %d at byte %lld; labels are 0 to %d there", s->who,
                                                s->path, labels[k], (long long)(i * record_bytes(d) + k),
                                                d->classes[k] - 1);
                y[i] = labels[d->label];
        }
        return true;
}

static lg_dataset *read_files(cifar *d)
{
        const int64_t count = open_files(d);
        if (count < 0)
                return NULL;
        lg_tensor *x = lg__tensor_empty(d->ctx, lg_cpu(), LG_U8, LG_SHAPE(count, 3, SIDE, SIDE)),
                  *y = x ? lg__tensor_empty(d->ctx, lg_cpu(), LG_I64, LG_SHAPE(count)) : NULL;
        if (!y)
                return NULL;
        uint8_t *to = lg__data(x);
        int64_t *label = lg__data(y);
        for (int i = 0; i < d->file_count; i++) {
                if (!read_file(d, &d->source[i], to, label))
                        return NULL;
                to += d->source[i].file_bytes / record_bytes(d) * PIXELS;
                label += d->source[i].file_bytes / record_bytes(d);
        }
        return lg_dataset_tensors(d->ctx, x, y, .scale = d->bytes ? 0 : 1.0 / 255);
}

static lg_dataset *read_all(cifar *d)
{
        lg_scope scope = lg_scope_begin(d->ctx);
        lg_dataset *set = read_files(d);
        for (int i = 0; i < d->open_count; i++)
                lg__source_close(&d->source[i]);
        lg_scope_end(d->ctx, scope);
        return set;
}

lg_dataset *lg_cifar10_with(lg_ctx *c, const char *part, const lg_cifar10_options *options)
{
        static const char *const train_files[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                  "data_batch_4.bin", "data_batch_5.bin"},
                                 *const test_files[] = {"test_batch.bin"}, *const classes[] = {"airplane", "automobile",
                                                                                               "bird",     "cat",
                                                                                               "deer",     "dog",
                                                                                               "frog",     "horse",
                                                                                               "ship",     "truck"};
        lg_cifar10_options o;
        if (!lg__take(c, "lg_cifar10", options, &o, sizeof o))
                return NULL;
        int train = lg__is_train(c, "lg_cifar10", part);
        if (train < 0)
                return NULL;
        cifar d = {.ctx = c,
                   .where = {.who = "lg_cifar10",
                             .folder = o.folder,
                             .sub = "cifar-10-batches-bin",
                             .advice = "unpack cifar-10-binary.tar.gz there",
                             .in_sub = true},
                   .files = train ? train_files : test_files,
                   .file_count = train ? 5 : 1,
                   .label_count = 1,
                   .classes = {10},
                   .bytes = o.bytes};
        lg_dataset *set = read_all(&d);
        if (set)
                set->classes = (lg_names){10, classes};
        return set;
}

lg_dataset *lg_cifar100_with(lg_ctx *c, const char *part, const lg_cifar100_options *options)
{
        static const char *const train_files[] = {"train.bin"}, *const test_files[] = {"test.bin"};
        lg_cifar100_options o;
        if (!lg__take(c, "lg_cifar100", options, &o, sizeof o))
                return NULL;
        int train = lg__is_train(c, "lg_cifar100", part);
        if (train < 0)
                return NULL;
        cifar d = {.ctx = c,
                   .where = {.who = "lg_cifar100",
                             .folder = o.folder,
                             .sub = "cifar-100-binary",
                             .advice = "unpack cifar-100-binary.tar.gz there",
                             .in_sub = true},
                   .files = train ? train_files : test_files,
                   .file_count = 1,
                   .label_count = 2,
                   .label = o.coarse ? 0 : 1,
                   .classes = {20, 100},
                   .bytes = o.bytes};
        return read_all(&d);
}
