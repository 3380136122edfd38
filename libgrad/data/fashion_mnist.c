/* fashion_mnist.c - Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747) from its four IDX files. */
#include "data.h"
#include "find.h"

#define CLASSES 10

static const char *const classes[CLASSES] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                             "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

static const lg__where place = {.who = "lg_fashion_mnist",
                                .sub = "fashion-mnist",
                                .system = "/usr/share/datasets/fashion-mnist",
                                .advice = "install Debian's dataset-fashion-mnist",
                                .zipped = true};

static lg_tensor *read_part(lg_ctx *c, const char *folder, const char *file, char path[LG__FILE_PATH])
{
        lg__where where = place;
        where.folder = folder;
        return lg__find_file(c, &where, file, path) ? lg_read_idx(c, path) : NULL;
}

static lg_tensor *read_images(lg_ctx *c, const char *folder, const char *file)
{
        char path[LG__FILE_PATH];
        lg_tensor *x = read_part(c, folder, file, path);
        if (!x)
                return NULL;
        if (x->at.dtype != LG_U8 || x->at.shape.ndim != 3 || x->at.shape.size[1] != 28 || x->at.shape.size[2] != 28)
                return lg__fail(c, LG_ERR_FORMAT, "lg_fashion_mnist: %s holds %s; it should be u8 (N, 28, 28)", path,
                                lg__tensor_text(x).s);
        return lg_unsqueeze(x, 1);
}

static lg_tensor *read_labels(lg_ctx *c, const char *folder, const char *file, int64_t count)
{
        char path[LG__FILE_PATH];
        lg_tensor *y = read_part(c, folder, file, path);
        if (!y)
                return NULL;
        if (y->at.dtype != LG_U8 || y->at.shape.ndim != 1 || y->at.shape.size[0] != count)
                return lg__fail(c, LG_ERR_FORMAT,
                                "lg_fashion_mnist: %s holds %s; it should be u8 (%lld), a label for each "
                                "image",
                                path, lg__tensor_text(y).s, (long long)count);
        const uint8_t *labels = lg__data(y);
        for (int64_t i = 0; i < count; i++) {
                if (labels[i] >= CLASSES)
                        return lg__fail(c, LG_ERR_FORMAT,
                                        "lg_fashion_mnist: %s has label %d at %lld; labels are 0 to %d", path,
                                        labels[i], (long long)i, CLASSES - 1);
        }
        return lg_cast(y, LG_I64);
}

lg_dataset *lg_fashion_mnist_with(lg_ctx *c, const char *part, const lg_fashion_mnist_options *options)
{
        lg_fashion_mnist_options o;
        if (!lg__take(c, "lg_fashion_mnist", options, &o, sizeof o))
                return NULL;
        int train = lg__is_train(c, "lg_fashion_mnist", part);
        if (train < 0)
                return NULL;
        lg_scope scope = lg_scope_begin(c);
        lg_dataset *d = NULL;
        lg_tensor *x = read_images(c, o.folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte"),
                  *y = NULL;
        if (x)
                y = read_labels(c, o.folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte",
                                x->at.shape.size[0]);
        if (y)
                d = lg_dataset_tensors(c, x, y, .scale = o.bytes ? 0 : 1.0 / 255);
        if (d)
                d->classes = (lg_names){CLASSES, classes};
        lg_scope_end(c, scope);
        return d;
}
