/* files.h - pictures, data sets and tables in the formats of others.
 *
 * Files must be regular ones: symbolic links are followed, but pipes and devices are refused. LG_ERR_IO: a file cannot
 * be opened, read or written; LG_ERR_FORMAT: its contents are not what they must be, and the message says where;
 * LG_ERR_MEMORY. Nothing is allocated for more data than the file can hold.
 */
#ifndef LG_FILES_H
#define LG_FILES_H

#include "grad/data.h"

LG_BEGIN

/* ---- pictures ---- */

typedef struct lg_read_png_options {
        LG_OPTIONS_HEAD
        int channels LG_DEFAULT; /* 1: grey, 3: RGB, 4: RGB and alpha; default: 1 or 3 as in the file, without alpha */
} lg_read_png_options;
/* A picture from a PNG file of any kind: u8 (channels, H, W) on the CPU, in [0, 255]. Values are as Pillow's convert()
 * computes them: grey is (299 R + 587 G + 114 B) / 1000, alpha is dropped or, where there is none, 255. Samples of 16
 * bits lose their lower 8. Colour profiles and gamma are ignored. LG_ERR_STATE: libgrad was built without libpng.
 * lg_read_png(c, "cat.png", .channels = 3) */
#define lg_read_png(...) LG_CALL2(lg_read_png_with, lg_read_png_options, lg_read_png_takes_c_path, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_read_png_with(lg_ctx *c, const char *path, const lg_read_png_options *options);
/* Writes u8 (H, W), (1, H, W), (3, H, W) or (4, H, W), on any device, as a PNG file, which replaces an old one only
 * when it is whole. LG_ERR_DTYPE, LG_ERR_SHAPE; LG_ERR_STATE as above. */
LG_API bool lg_write_png(const lg_tensor *t, const char *path);

/* ---- arrays in IDX files ---- */

/* A tensor from an IDX file (LeCun's format), plain or, where libgrad is built with zlib, gzip: u8 or any other IDX
 * type that has a dtype here (u8, i32, f32, f64; signed bytes and shorts become i32). The file must be a regular one:
 * symbolic links are followed (as /dev/stdin is, if a file is redirected to it), but pipes, terminals and devices are
 * refused. LG_ERR_IO: cannot be opened or read; LG_ERR_FORMAT: magic, sizes or truncation; LG_ERR_MEMORY. */
LG_API LG_NEW lg_tensor *lg_read_idx(lg_ctx *c, const char *path);

/* ---- data sets ---- */

/* Fashion-MNIST (Xiao, Rasul, Vollgraf 2017), part "train" or "test": x (N, 1, 28, 28) f32 in [0, 1], y (N) i64. Looks
 * in .folder if given, else in $LIBGRAD_DATA and its fashion-mnist/, else in /usr/share/datasets/fashion-mnist. */
typedef struct lg_fashion_mnist_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT;
        int64_t bytes LG_DEFAULT; /* 1: x is u8 in [0, 255], for lg_dataset_transform */
} lg_fashion_mnist_options;
#define lg_fashion_mnist(...)                                                                                          \
        LG_CALL2(lg_fashion_mnist_with, lg_fashion_mnist_options, lg_fashion_mnist_takes_c_part, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_fashion_mnist_with(lg_ctx *c, const char *part, const lg_fashion_mnist_options *options);

/* CIFAR-10 (Krizhevsky 2009), part "train" or "test", from the files of its binary version: x (N, 3, 32, 32) f32 in [0,
 * 1], y (N) i64. Looks in .folder if given, else in $LIBGRAD_DATA, and in cifar-10-batches-bin/ of either. A file has
 * any number of whole records. lg_cifar10(c, "train", .folder = "/data") */
typedef struct lg_cifar10_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT;
        bool bytes LG_DEFAULT; /* x is u8 in [0, 255], for lg_dataset_transform */
} lg_cifar10_options;
#define lg_cifar10(...) LG_CALL2(lg_cifar10_with, lg_cifar10_options, lg_cifar10_takes_c_part, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_cifar10_with(lg_ctx *c, const char *part, const lg_cifar10_options *options);
/* CIFAR-100 in the same way, in cifar-100-binary/: 100 classes, or 20 of them together. */
typedef struct lg_cifar100_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT;
        bool coarse LG_DEFAULT; /* y has the 20 superclasses */
        bool bytes LG_DEFAULT;  /* as above */
} lg_cifar100_options;
#define lg_cifar100(...) LG_CALL2(lg_cifar100_with, lg_cifar100_options, lg_cifar100_takes_c_part, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_cifar100_with(lg_ctx *c, const char *part, const lg_cifar100_options *options);

/* A folder with a folder for each class, and PNG pictures in these and in folders there, in the order of their names: x
 * (channels, H, W) f32 in [0, 1], as lg_read_png decodes it, y () i64, the place of the class, whose name
 * lg_dataset_classes gives. Pictures are read by the loader's threads when they are needed. Their headers are read
 * at once: LG_ERR_FORMAT where one is no PNG picture, a class has none, or sizes differ without .height and .width,
 * to which lg_transform_resize's rule resizes all. LG_ERR_STATE: libgrad was built without libpng.
 * lg_image_folder(c, "pets", .height = 64, .width = 64) */
typedef struct lg_image_folder_options {
        LG_OPTIONS_HEAD
        int64_t height LG_DEFAULT; /* of all; that of the pictures, which have one size */
        int64_t width LG_DEFAULT;
        int channels LG_DEFAULT; /* 1: grey, 3: RGB, 4: RGB and alpha; 3 */
        int bytes LG_DEFAULT;    /* 1: x is u8 in [0, 255], for lg_dataset_transform */
} lg_image_folder_options;
#define lg_image_folder(...)                                                                                           \
        LG_CALL2(lg_image_folder_with, lg_image_folder_options, lg_image_folder_takes_c_path, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_image_folder_with(lg_ctx *c, const char *path, const lg_image_folder_options *options);

/* ---- data sets that stay in their files ----
 *
 * The loader's threads read each sample when it is needed, so that files may be larger than memory. The file must not
 * change meanwhile: LG_ERR_FORMAT from the loader where it has become shorter.
 */

typedef struct lg_records_options {
        LG_OPTIONS_HEAD
        int64_t skip LG_DEFAULT; /* bytes before the first record */
} lg_records_options;
/* Records of one size to the end of the file: the fields one after the other, without gaps, as they are in memory.
 * lg_dataset_records(c, "train.bin", LG_FIELDS(LG_FIELD("y", LG_U8, LG_SHAPE_0D), LG_FIELD("x", LG_U8, LG_SHAPE(3, 32,
 * 32))), .skip = 16) */
#define lg_dataset_records(...)                                                                                        \
        LG_CALL3(lg_dataset_records_with, lg_records_options, lg_dataset_records_takes_c_path_fields, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_records_with(lg_ctx *c, const char *path, lg_fields fields,
                                                  const lg_records_options *options);
/* Row i of each array in NumPy's files, for sample i: lg_dataset_npy(c, LG_NAMES("images.npy", "labels.npy")). Fields
 * are called "x", "y" and "field2" to "field7". Arrays have the dtypes of libgrad and this machine's byte order
 * (LG_ERR_DTYPE), C order (LG_ERR_STATE), and as many rows as each other (LG_ERR_SHAPE). */
LG_API LG_NEW lg_dataset *lg_dataset_npy(lg_ctx *c, lg_names_in paths);

typedef struct lg_text_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT; /* bytes from one sample to the next; length, so that samples do not overlap */
} lg_text_options;
/* A file's bytes for a language model: x (length) i64 are bytes in [0, 255], and y are those that follow each of them.
 * What is left at the end, less than a sample, is left out. lg_dataset_text(c, "book.txt", 256) */
#define lg_dataset_text(...)                                                                                           \
        LG_CALL3(lg_dataset_text_with, lg_text_options, lg_dataset_text_takes_c_path_length, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_text_with(lg_ctx *c, const char *path, int64_t length,
                                               const lg_text_options *options);

/* ---- tables ---- */

/* A CSV file (RFC 4180), plain or gzip: fields in quotes may hold separators, quotes (doubled) and line breaks. Lines
 * end with LF, CR LF or CR; empty ones are left out; all others have as many fields as the first one. The text is
 * UTF-8 or another superset of ASCII. It is read as a whole and belongs to the context until lg_csv_free. */
typedef struct lg_csv lg_csv;
typedef struct lg_csv_options {
        LG_OPTIONS_HEAD
        char separator LG_DEFAULT;      /* ','; or '\t', ';', ... */
        bool no_header LG_DEFAULT;      /* the first line is a row, too; the columns are called "0", "1", ... */
        bool trim LG_DEFAULT;           /* spaces and tabs around fields are left out: "a, b" */
        lg_names_in missing LG_DEFAULT; /* fields that stand for no value; LG_NAMES("", "NA", "?") */
} lg_csv_options;
/* lg_csv_open(c, "iris.csv", .separator = ';') LG_ERR_FORMAT: the message says which line is wrong. */
#define lg_csv_open(...) LG_CALL2(lg_csv_open_with, lg_csv_options, lg_csv_open_takes_c_path, __VA_ARGS__)
LG_API LG_NEW lg_csv *lg_csv_open_with(lg_ctx *c, const char *path, const lg_csv_options *options);
LG_API void lg_csv_free(lg_csv *t);
LG_API int64_t lg_csv_rows(const lg_csv *t); /* without the header */
/* The names of the columns; they last as long as t. */
LG_API lg_names lg_csv_columns(const lg_csv *t);

typedef struct lg_csv_numbers_options {
        LG_OPTIONS_HEAD
        double missing_as LG_DEFAULT; /* the value of missing fields (LG_ZERO is 0); they are an error if not given */
        lg_dtype dtype LG_DEFAULT;    /* LG_F32; or LG_F64 */
} lg_csv_numbers_options;
/* Columns of numbers as (rows, columns) on the CPU, in the order of the names: lg_csv_numbers(t, LG_NAMES("length",
 * "width")), or lg_csv_columns(t) for all. "inf" and "nan" are numbers; hexadecimal ones and decimal commas are not.
 * LG_ERR_ARGUMENT: no column, or two, of a name; LG_ERR_FORMAT: a field is missing, no number, or too large. */
#define lg_csv_numbers(...)                                                                                            \
        LG_CALL2(lg_csv_numbers_with, lg_csv_numbers_options, lg_csv_numbers_takes_t_columns, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_numbers_with(lg_csv *t, lg_names_in columns, const lg_csv_numbers_options *options);

typedef struct lg_csv_integers_options {
        LG_OPTIONS_HEAD
        int64_t missing_as LG_DEFAULT; /* the value of missing fields (LG_ZERO_INT is 0) */
} lg_csv_integers_options;
/* One column of whole numbers as i64 (rows): labels, indices. lg_csv_integers(t, "label") Errors as above. */
#define lg_csv_integers(...)                                                                                           \
        LG_CALL2(lg_csv_integers_with, lg_csv_integers_options, lg_csv_integers_takes_t_column, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_integers_with(lg_csv *t, const char *column, const lg_csv_integers_options *options);

/* The different texts of a column without missing ones, in the order of their bytes or, where all of them are numbers,
 * of the numbers. They last as long as t. No texts: an error, or there are none. */
LG_API lg_names lg_csv_texts(lg_csv *t, const char *column);
typedef struct lg_csv_categories_options {
        LG_OPTIONS_HEAD
        lg_names_in texts LG_DEFAULT;  /* whose places are the codes, and which are all there may be; lg_csv_texts */
        int64_t missing_as LG_DEFAULT; /* the code of missing fields (LG_ZERO_INT is 0); else they are an error */
} lg_csv_categories_options;
/* One column of texts as i64 (rows) codes, from 0 on. A second file gets the same codes by the first one's texts:
 * lg_csv_categories(test, "species", .texts = lg_csv_texts(train, "species")). Errors as above. */
#define lg_csv_categories(...)                                                                                         \
        LG_CALL2(lg_csv_categories_with, lg_csv_categories_options, lg_csv_categories_takes_t_column, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_categories_with(lg_csv *t, const char *column,
                                                const lg_csv_categories_options *options);

LG_END_C
#endif
