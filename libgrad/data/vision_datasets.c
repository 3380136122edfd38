/* vision_datasets.c - reads CIFAR-10 and CIFAR-100 (Krizhevsky 2009) in their binary version, and Fashion-MNIST (Xiao,
 * Rasul, Vollgraf 2017, arXiv:1708.07747) from its four IDX files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "io/source.h"
#include "data.h"

#define PATH 4096

/* Folders in which the files of a data set are searched. */
typedef struct place {
        const char *who;    /* name of the public function, for messages */
        const char *sub;    /* subfolder of $LIBGRAD_DATA and, if in_sub is set, of .folder */
        const char *system; /* folder that is searched last; NULL: none */
        const char *advice; /* how to get the files, for messages */
        bool in_sub;
        bool zipped; /* FILE.gz is accepted in place of FILE */
} place;

/* Returns true if folder/sub/file or, if at->zipped, folder/sub/file.gz exists, and writes its path to `path`. */
static bool is_in_folder(const place *at, const char *folder, const char *sub, const char *file, char path[PATH])
{
        for (int zipped = 0; zipped <= at->zipped; zipped++) {
                int n = snprintf(path, PATH, "%s%s%s/%s%s", folder, *sub ? "/" : "", sub, file, zipped ? ".gz" : "");
                if (n < PATH && access(path, F_OK) == 0)
                        return true;
        }
        return false;
}

/* Finds a file in .folder or, if `folder` is NULL, in $LIBGRAD_DATA and the system's folder. Returns false and sets
 * LG_ERR_IO if the file is in none of them. */
static bool find_file(lg_ctx *c, const place *at, const char *folder, const char *file, char ret_path[PATH])
{
        const char *named = getenv("LIBGRAD_DATA");
        char names[200];
        snprintf(names, sizeof names, at->zipped ? "%.80s or %.80s.gz" : "%.80s", file, file);
        if (folder) {
                if (is_in_folder(at, folder, "", file, ret_path) ||
                    (at->in_sub && is_in_folder(at, folder, at->sub, file, ret_path)))
                        return true;
                return lg__fail(c, LG_ERR_IO, "%s: there is no %s in %.400s%s%s", at->who, names, folder,
                                at->in_sub ? " and its " : "", at->in_sub ? at->sub : "");
        }
        named = named && *named ? named : NULL;
        if (named && (is_in_folder(at, named, "", file, ret_path) || is_in_folder(at, named, at->sub, file, ret_path)))
                return true;
        if (at->system && is_in_folder(at, at->system, "", file, ret_path))
                return true;
        return lg__fail(c, LG_ERR_IO, "%s: there is no %s in $LIBGRAD_DATA (%.200s)%s%s; %s, or name a folder", at->who,
                        names, named ? named : "not set", at->system ? " or " : "", at->system ? at->system : "",
                        at->advice);
}

/* Returns 1 if part is "train" and 0 if "test"; otherwise returns -1 and sets LG_ERR_ARGUMENT. */
static int is_train(lg_ctx *c, const char *who, const char *part)
{
        if (part && (!strcmp(part, "train") || !strcmp(part, "test")))
                return part[1] == 'r';
        lg__fail(c, LG_ERR_ARGUMENT, "%s: the part is \"%.40s\"; it is \"train\" or \"test\"", who,
                 part ? part : "NULL");
        return -1;
}

/* Returns a data set of images x and labels y, scaled to [0, 1] unless `bytes` is set, or NULL if x or y is NULL. */
static lg_dataset *make_dataset(lg_ctx *c, lg_tensor *x, lg_tensor *y, bool bytes, lg_names classes)
{
        lg_dataset *d = x && y ? lg_dataset_tensors(c, x, y, .scale = bytes ? 0 : 1.0 / 255) : NULL;
        if (d)
                d->classes = classes;
        return d;
}

/* ---- CIFAR ----
 *
 * A file has records without a header. A record is a label of one byte (in CIFAR-100 a coarse and a fine label), then
 * 32 x 32 red, 32 x 32 green and 32 x 32 blue pixels.
 */

#define SIDE 32
#define PIXELS (3 * SIDE * SIDE)
#define MOST_FILES 5
#define MOST_LABELS 2

typedef struct cifar {
        place place;
        const char *train[MOST_FILES], *test[MOST_FILES]; /* names of files, then NULL */
        int label_count;                                  /* number of labels in a record */
        int classes[MOST_LABELS];
        lg_names names;
} cifar;

/* Opens a file of records. Returns the number of records, or -1 with an error. */
static int64_t open_records(lg_ctx *c, const cifar *d, lg__source *s)
{
        if (!lg__source_open(s))
                return -1;
        const int64_t bytes = d->label_count + PIXELS, rest = s->file_bytes % bytes;
        if (!s->plain)
                lg__fail(c, LG_ERR_FORMAT, "%s: %s is compressed by gzip: gunzip it first", s->who, s->path);
        else if (!s->file_bytes)
                lg__fail(c, LG_ERR_FORMAT, "%s: %s is empty; it should have records of %lld bytes", s->who, s->path,
                         (long long)bytes);
        else if (rest)
                lg__fail(c, LG_ERR_FORMAT,
                         "%s: %s is truncated: the record at byte %lld has %lld bytes; records have %lld", s->who,
                         s->path, (long long)(s->file_bytes - rest), (long long)rest, (long long)bytes);
        if (s->plain && s->file_bytes && !rest)
                return s->file_bytes / bytes;
        lg__source_close(s);
        return -1;
}

/* Reads `count` records: pixels to x, (count, 3, 32, 32), label number `label` of each to y. Returns false if
 * damaged. */
static bool read_records(lg_ctx *c, const cifar *d, lg__source *s, int64_t count, int label, uint8_t *x, int64_t *y)
{
        for (int64_t i = 0; i < count; i++, x += PIXELS) {
                uint8_t labels[MOST_LABELS];
                if (!lg__source_get(s, labels, (size_t)d->label_count) || !lg__source_get(s, x, PIXELS))
                        return false;
                for (int k = 0; k < d->label_count; k++)
                        if (labels[k] >= d->classes[k])
                                return lg__fail(c, LG_ERR_FORMAT,
                                                "%s: %s has label %d at byte %lld; labels are 0 to %d there", s->who,
                                                s->path, labels[k], (long long)(i * (d->label_count + PIXELS) + k),
                                                d->classes[k] - 1);
                y[i] = labels[label];
        }
        return true;
}

static lg_dataset *read_cifar(lg_ctx *c, const cifar *d, const char *part, const char *folder, int label, bool bytes)
{
        const int train = is_train(c, d->place.who, part);
        lg_scope scope = train < 0 ? (lg_scope){0} : lg_scope_begin(c);
        if (!scope.id)
                return NULL;
        const char *const *files = train ? d->train : d->test;
        char path[MOST_FILES][PATH];
        lg__source source[MOST_FILES];
        int64_t count[MOST_FILES], all = 0;
        int open = 0;
        bool ok = true;
        for (; ok && open < MOST_FILES && files[open]; open += ok) {
                source[open] = (lg__source){.ctx = c, .who = d->place.who, .path = path[open]};
                ok = find_file(c, &d->place, folder, files[open], path[open]) &&
                     (count[open] = open_records(c, d, &source[open])) >= 0;
                all += ok ? count[open] : 0;
        }
        lg_tensor *x = ok ? lg__tensor_empty(c, lg_cpu(), LG_U8, LG_SHAPE(all, 3, SIDE, SIDE)) : NULL,
                  *y = x ? lg__tensor_empty(c, lg_cpu(), LG_I64, LG_SHAPE(all)) : NULL;
        ok = y != NULL;
        int64_t at = 0;
        for (int i = 0; i < open; at += count[i++]) {
                ok = ok && read_records(c, d, &source[i], count[i], label, (uint8_t *)lg__data(x) + at * PIXELS,
                                        (int64_t *)lg__data(y) + at);
                lg__source_close(&source[i]);
        }
        lg_dataset *set = ok ? make_dataset(c, x, y, bytes, d->names) : NULL;
        lg_scope_end(c, scope);
        return set;
}

lg_dataset *lg_dataset_cifar10_with(lg_ctx *c, const char *part, const lg_dataset_cifar10_options *options)
{
        static const char *const classes[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
        const cifar cifar10 = {.place = {.who = "lg_dataset_cifar10",
                                         .sub = "cifar-10-batches-bin",
                                         .advice = "unpack cifar-10-binary.tar.gz there",
                                         .in_sub = true},
                               .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                         "data_batch_5.bin"},
                               .test = {"test_batch.bin"},
                               .label_count = 1,
                               .classes = {10},
                               .names = {10, classes}};
        lg_dataset_cifar10_options o;
        return lg__take(c, "lg_dataset_cifar10", options, &o, sizeof o)
                       ? read_cifar(c, &cifar10, part, o.folder, 0, o.bytes)
                       : NULL;
}

lg_dataset *lg_dataset_cifar100_with(lg_ctx *c, const char *part, const lg_dataset_cifar100_options *options)
{
        const cifar cifar100 = {.place = {.who = "lg_dataset_cifar100",
                                          .sub = "cifar-100-binary",
                                          .advice = "unpack cifar-100-binary.tar.gz there",
                                          .in_sub = true},
                                .train = {"train.bin"},
                                .test = {"test.bin"},
                                .label_count = 2,
                                .classes = {20, 100}};
        lg_dataset_cifar100_options o;
        return lg__take(c, "lg_dataset_cifar100", options, &o, sizeof o)
                       ? read_cifar(c, &cifar100, part, o.folder, o.coarse ? 0 : 1, o.bytes)
                       : NULL;
}

/* ---- Fashion-MNIST ---- */

#define CLASSES 10

static const place fashion_mnist = {.who = "lg_dataset_fashion_mnist",
                                    .sub = "fashion-mnist",
                                    .system = "/usr/share/datasets/fashion-mnist",
                                    .advice = "install Debian's dataset-fashion-mnist",
                                    .zipped = true};

static lg_tensor *read_idx(lg_ctx *c, const char *folder, const char *file, char path[PATH])
{
        return find_file(c, &fashion_mnist, folder, file, path) ? lg_read_idx(c, path) : NULL;
}

static lg_tensor *read_images(lg_ctx *c, const char *folder, const char *file)
{
        char path[PATH];
        lg_tensor *x = read_idx(c, folder, file, path);
        if (!x)
                return NULL;
        if (x->at.dtype != LG_U8 || x->at.shape.ndim != 3 || x->at.shape.size[1] != 28 || x->at.shape.size[2] != 28)
                return lg__fail(c, LG_ERR_FORMAT, "lg_dataset_fashion_mnist: %s holds %s; it should be u8 (N, 28, 28)",
                                path, lg__tensor_text(x).s);
        return lg_unsqueeze(x, 1);
}

static lg_tensor *read_labels(lg_ctx *c, const char *folder, const char *file, int64_t count)
{
        char path[PATH];
        lg_tensor *y = read_idx(c, folder, file, path);
        if (!y)
                return NULL;
        if (y->at.dtype != LG_U8 || y->at.shape.ndim != 1 || y->at.shape.size[0] != count)
                return lg__fail(c, LG_ERR_FORMAT,
                                "lg_dataset_fashion_mnist: %s holds %s; it should be u8 (%lld), a label for each "
                                "image",
                                path, lg__tensor_text(y).s, (long long)count);
        const uint8_t *labels = lg__data(y);
        for (int64_t i = 0; i < count; i++) {
                if (labels[i] >= CLASSES)
                        return lg__fail(c, LG_ERR_FORMAT,
                                        "lg_dataset_fashion_mnist: %s has label %d at %lld; labels are 0 to %d", path,
                                        labels[i], (long long)i, CLASSES - 1);
        }
        return lg_cast(y, LG_I64);
}

lg_dataset *lg_dataset_fashion_mnist_with(lg_ctx *c, const char *part, const lg_dataset_fashion_mnist_options *options)
{
        static const char *const classes[CLASSES] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                     "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
        lg_dataset_fashion_mnist_options o;
        if (!lg__take(c, "lg_dataset_fashion_mnist", options, &o, sizeof o))
                return NULL;
        int train = is_train(c, "lg_dataset_fashion_mnist", part);
        if (train < 0)
                return NULL;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *x = read_images(c, o.folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte"),
                  *y = x ? read_labels(c, o.folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte",
                                       x->at.shape.size[0])
                         : NULL;
        lg_dataset *d = make_dataset(c, x, y, o.bytes, (lg_names){CLASSES, classes});
        lg_scope_end(c, scope);
        return d;
}
