/* files.h - pictures, arrays, data sets and tables from files in common formats.
 *
 * Functions that read a file need a regular one. Symbolic links are followed (so /dev/stdin works if a file is
 * redirected to it), but pipes, terminals and devices are refused. Functions fail with LG_ERR_IO if a file cannot be
 * opened, read or written, and with LG_ERR_FORMAT if its contents are not what the format demands, in which case the
 * message says where. Memory is allocated only for as much data as the file can hold, whatever its header promises.
 *
 * Tensors that are read are on the CPU. NumPy's files are in arrays.h, weights and checkpoints in state.h.
 */
#ifndef LG_FILES_H
#define LG_FILES_H

#include "grad/data.h"

LG_BEGIN

/* ---- pictures ----
 *
 * All fail with LG_ERR_STATE if libgrad was built without libpng.
 */

typedef struct lg_read_png_options {
        LG_OPTIONS_HEAD
        /* 1: grey, 3: RGB, 4: RGB and alpha; default: 1 or 3 as in the file, without alpha. */
        int channels LG_DEFAULT;
} lg_read_png_options;
/* Reads a PNG file of any kind into a tensor u8 (channels, H, W), with values in [0, 255]. They are the values that
 * Pillow's convert() computes: grey is (299 R + 587 G + 114 B) / 1000; alpha is dropped, or 255 if the file has none.
 * Samples of 16 bits lose their lower 8 bits. Colour profiles and gamma are ignored.
 * Example: lg_read_png(c, "cat.png", .channels = 3) */
#define lg_read_png(...) LG_CALL2(lg_read_png_with, lg_read_png_options, lg_read_png_takes_c_path, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_read_png_with(lg_ctx *c, const char *path, const lg_read_png_options *options);

/* Writes a tensor u8 (H, W), (1, H, W), (3, H, W) or (4, H, W) with pixels, on any device, to a PNG file. An existing
 * file is replaced only when the new one is whole. */
LG_API bool lg_write_png(const lg_tensor *t, const char *path);

/* ---- arrays in IDX files ---- */

/* Reads an IDX file, the format of MNIST, into a tensor. The file is plain or, if libgrad was built with zlib,
 * compressed by gzip. Its unsigned bytes become u8; signed bytes, shorts and ints become i32; floats and doubles become
 * f32 and f64. More data than the header says, or more than LG_MAX_DIMS dimensions, are LG_ERR_FORMAT. */
LG_API LG_NEW lg_tensor *lg_read_idx(lg_ctx *c, const char *path);

/* ---- known data sets ----
 *
 * The fields are "x", an image, f32 in [0, 1] or, with .bytes, u8 in [0, 255], on which transforms run faster, and "y",
 * the number of its class, i64 (). lg_dataset_classes() names the classes. The part is "train" or "test".
 */

typedef struct lg_dataset_fashion_mnist_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT; /* where the four files are; default: the places named below */
        bool bytes LG_DEFAULT;         /* images are u8 in [0, 255]; default false */
} lg_dataset_fashion_mnist_options;
/* Reads Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) into memory: images (1, 28, 28). The IDX files, which may be
 * compressed by gzip, are in .folder or, if that is not given, in $LIBGRAD_DATA, its folder fashion-mnist, or
 * /usr/share/datasets/fashion-mnist.
 * Example: lg_dataset_fashion_mnist(c, "train") */
#define lg_dataset_fashion_mnist(...)                                                                                  \
        LG_CALL2(lg_dataset_fashion_mnist_with, lg_dataset_fashion_mnist_options,                                      \
                 lg_dataset_fashion_mnist_takes_c_part, V, V, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_fashion_mnist_with(lg_ctx *c, const char *part,
                                                        const lg_dataset_fashion_mnist_options *options);

typedef struct lg_dataset_cifar10_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT; /* where the files, or their folder, are; default: $LIBGRAD_DATA */
        bool bytes LG_DEFAULT;         /* images are u8 in [0, 255]; default false */
} lg_dataset_cifar10_options;
/* Reads CIFAR-10 (Krizhevsky 2009) into memory: images (3, 32, 32). It takes the files of the binary version, not
 * compressed, from .folder or, if that is not given, from $LIBGRAD_DATA, or from the folder cifar-10-batches-bin in
 * either. Each file may have any number of records.
 * Example: lg_dataset_cifar10(c, "train", .folder = "/data") */
#define lg_dataset_cifar10(...)                                                                                        \
        LG_CALL2(lg_dataset_cifar10_with, lg_dataset_cifar10_options, lg_dataset_cifar10_takes_c_part, V, V,           \
                 __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_cifar10_with(lg_ctx *c, const char *part,
                                                  const lg_dataset_cifar10_options *options);

typedef struct lg_dataset_cifar100_options {
        LG_OPTIONS_HEAD
        const char *folder LG_DEFAULT; /* where the files, or their folder, are; default: $LIBGRAD_DATA */
        bool coarse LG_DEFAULT;        /* "y" has the 20 superclasses; default false: the 100 classes */
        bool bytes LG_DEFAULT;         /* images are u8 in [0, 255]; default false */
} lg_dataset_cifar100_options;
/* Reads CIFAR-100 as lg_dataset_cifar10() reads CIFAR-10, from the folder cifar-100-binary. Its classes have no names.
 * Example: lg_dataset_cifar100(c, "test", .coarse = true) */
#define lg_dataset_cifar100(...)                                                                                       \
        LG_CALL2(lg_dataset_cifar100_with, lg_dataset_cifar100_options, lg_dataset_cifar100_takes_c_part, V, V,        \
                 __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_cifar100_with(lg_ctx *c, const char *part,
                                                   const lg_dataset_cifar100_options *options);

/* ---- data sets that stay in their files ----
 *
 * Making one of these data sets reads no more of the files than their headers. The loader's threads read each sample
 * when it is needed, so that files may be larger than memory. They must not change meanwhile: lg_loader_next() fails
 * with LG_ERR_FORMAT if a file has become shorter, and with LG_ERR_IO if it cannot be read.
 */

typedef struct lg_dataset_image_folder_options {
        LG_OPTIONS_HEAD
        int64_t height LG_DEFAULT; /* resizes all pictures; default: that of the pictures, which must be equal */
        int64_t width LG_DEFAULT;  /* the same; .height and .width are given together */
        int channels LG_DEFAULT;   /* 1: grey, 3: RGB, 4: RGB and alpha; default 3 */
        bool bytes LG_DEFAULT;     /* "x" is u8 in [0, 255]; default false */
} lg_dataset_image_folder_options;
/* Makes a data set of a folder that has a folder for each class, with PNG files in it and in folders below it (as
 * torchvision's ImageFolder). "x" is a picture (channels, height, width), f32 in [0, 1], decoded as by lg_read_png()
 * and resized as by lg_transform_resize(). "y" is the number of its class, i64 (): classes are numbered in the order of
 * their folders' names, which lg_dataset_classes() returns. Samples are in the order of classes and file names; names
 * that begin with a dot are ignored. Fails with LG_ERR_FORMAT if one is no PNG file, if a class has no picture, if the
 * folder has no class, or if sizes differ and .height and .width are not given; and with LG_ERR_STATE if libgrad was
 * built without libpng.
 * Example: lg_dataset_image_folder(c, "pets", .height = 64, .width = 64) */
#define lg_dataset_image_folder(...)                                                                                   \
        LG_CALL2(lg_dataset_image_folder_with, lg_dataset_image_folder_options, lg_dataset_image_folder_takes_c_path,  \
                 V, V, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_image_folder_with(lg_ctx *c, const char *path,
                                                       const lg_dataset_image_folder_options *options);

typedef struct lg_records_options {
        LG_OPTIONS_HEAD
        int64_t skip LG_DEFAULT; /* bytes before the first record; default 0 */
} lg_records_options;
/* Makes a data set of a file of one or more whole records: the fields of a sample, none ragged, without gaps, in this
 * machine's byte order. Bytes of bool other than 0 are true. Records without bytes are LG_ERR_SHAPE.
 * Example: lg_dataset_records(c, "a.bin", LG_FIELDS(LG_FIELD("x", LG_U8, LG_SHAPE(3))), .skip = 16) */
#define lg_dataset_records(...)                                                                                        \
        LG_CALL3(lg_dataset_records_with, lg_records_options, lg_dataset_records_takes_c_path_fields, V, V, V,         \
                 __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_records_with(lg_ctx *c, const char *path, lg_fields fields,
                                                  const lg_records_options *options);

/* Makes a data set of 1 to LG_MAX_FIELDS of NumPy's npy files: sample i has row i of each array, in fields named "x",
 * "y" and "field2" to "field7". All have as many rows. Fails with LG_ERR_DTYPE for a dtype that libgrad does not have
 * or a foreign byte order, and with LG_ERR_STATE for Fortran order; lg_read_npy() reads the latter two.
 * Example: lg_dataset_npy(c, LG_NAMES("images.npy", "labels.npy")) */
LG_API LG_NEW lg_dataset *lg_dataset_npy(lg_ctx *c, lg_names_in paths);

typedef struct lg_text_options {
        LG_OPTIONS_HEAD
        int64_t stride LG_DEFAULT; /* bytes from one sample to the next; default: length, so that none overlap */
} lg_text_options;
/* Makes a data set of the bytes of a file, for a language model: "x" is `length` successive bytes as i64 (length) in
 * [0, 255], and "y" is the byte that follows each of them, of the same shape. Bytes at the end that do not fill a
 * sample are left out; at least one must be full (else LG_ERR_FORMAT). length is at least 1.
 * Example: lg_dataset_text(c, "book.txt", 256) */
#define lg_dataset_text(...)                                                                                           \
        LG_CALL3(lg_dataset_text_with, lg_text_options, lg_dataset_text_takes_c_path_length, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_text_with(lg_ctx *c, const char *path, int64_t length,
                                               const lg_text_options *options);

typedef struct lg_tokens_options {
        LG_OPTIONS_HEAD
        int64_t bits LG_DEFAULT;       /* size of a token in a file without a header, 16 or 32; default 16 */
        int64_t skip LG_DEFAULT;       /* bytes before the first token, such as a foreign header; default 0 */
        int64_t stride LG_DEFAULT;     /* tokens from one sample to the next; default: length, so that none overlap */
        int64_t vocabulary LG_DEFAULT; /* tokens must be less; default: not checked */
        int64_t separator LG_DEFAULT;  /* the last token of each document; default: none; LG_ZERO_INT for token 0 */
} lg_tokens_options;
/* Makes a data set of a file of tokens, for a language model: "x" is `length` successive tokens as i64 (length), and
 * "y" is the token that follows each of them, of the same shape. The file has unsigned little-endian tokens without a
 * header, or is NumPy's npy file of one dimension and u1, u2, u4, u8, i4 or i8. It stays on disk and may be larger than
 * memory. Samples may begin in one document and end in another. With .separator, they have two more fields of i64
 * (length): "position" numbers the tokens of each document from 0, also at the start of a sample, and "document" the
 * documents of the sample; a token after a separator begins a document. Tokens at the end that do not fill a sample are
 * left out; at least one must be full (else LG_ERR_FORMAT). Reading a token that is negative or not less than
 * .vocabulary is LG_ERR_FORMAT. lg_dataset_concat() joins several files.
 * Example: lg_dataset_tokens(c, "train.bin", 1024, .vocabulary = 50257, .separator = 50256) */
#define lg_dataset_tokens(...)                                                                                         \
        LG_CALL3(lg_dataset_tokens_with, lg_tokens_options, lg_dataset_tokens_takes_c_path_length, V, V, I, __VA_ARGS__)
LG_API LG_NEW lg_dataset *lg_dataset_tokens_with(lg_ctx *c, const char *path, int64_t length,
                                                 const lg_tokens_options *options);

/* ---- tables ----
 *
 * lg_csv_open() reads a CSV file (RFC 4180), plain or compressed by gzip; the other functions convert its columns to
 * tensors. Fields in quotes may contain separators, doubled quotes and line breaks. Lines end with LF, CR LF or CR.
 * Empty lines are skipped; all others must have as many fields as the first. The text is UTF-8 or another superset of
 * ASCII; a byte order mark of UTF-8 is skipped. Numbers are read in the same way in every locale.
 *
 *     lg_csv *t = lg_csv_open(c, "iris.csv");
 *     lg_tensor *x = lg_csv_numbers(t, LG_NAMES("length", "width"));
 *     lg_tensor *y = lg_csv_categories(t, "species");
 *     lg_dataset *iris = lg_dataset_tensors(c, x, y);
 *
 * Functions that read a column fail with LG_ERR_ARGUMENT if the table has no column of that name, or two, and with
 * LG_ERR_FORMAT, naming line and column, if a field does not fit or a value is missing without .missing_as.
 */

/* A table, which is in memory as a whole. */
typedef struct lg_csv lg_csv;

typedef struct lg_csv_options {
        LG_OPTIONS_HEAD
        char separator LG_DEFAULT; /* between fields: ';', '\t', ...; default ',' */
        bool no_header LG_DEFAULT; /* the first line is a row, and columns are named "0", "1", ...; default false */
        bool trim LG_DEFAULT;      /* removes spaces and tabs around fields, as in "a, b"; default false */
        lg_names_in missing LG_DEFAULT; /* fields that stand for a missing value; default LG_NAMES("", "NA", "?") */
} lg_csv_options;
/* Reads a table. Fails with LG_ERR_FORMAT also if a quote does not end, or if the file is empty or contains a zero
 * byte. .separator is neither a quote nor the end of a line.
 * Example: lg_csv_open(c, "iris.csv", .separator = ';') */
#define lg_csv_open(...) LG_CALL2(lg_csv_open_with, lg_csv_options, lg_csv_open_takes_c_path, V, V, __VA_ARGS__)
LG_API LG_NEW lg_csv *lg_csv_open_with(lg_ctx *c, const char *path, const lg_csv_options *options);

/* Frees a table. Tensors made from it stay. */
LG_API void lg_csv_close(lg_csv *t);

/* Returns the number of rows, without the header, or the names of the columns, which are valid until lg_csv_close(). */
LG_API int64_t lg_csv_rows(const lg_csv *t);
LG_API lg_names lg_csv_columns(const lg_csv *t);

typedef struct lg_csv_numbers_options {
        LG_OPTIONS_HEAD
        double missing_as LG_DEFAULT; /* replaces missing values; LG_ZERO sets 0. Default: they are an error. */
        lg_dtype dtype LG_DEFAULT;    /* LG_F32 or LG_F64; default LG_F32 */
} lg_csv_numbers_options;
/* Returns columns of numbers as a tensor (rows, columns), in the order of the given names; lg_csv_columns(t) names them
 * all. "inf" and "nan" are numbers; hexadecimal numbers, decimal commas and what is too large for the dtype are not.
 * Example: lg_csv_numbers(t, LG_NAMES("length", "width")) */
#define lg_csv_numbers(...)                                                                                            \
        LG_CALL2(lg_csv_numbers_with, lg_csv_numbers_options, lg_csv_numbers_takes_t_columns, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_numbers_with(lg_csv *t, lg_names_in columns, const lg_csv_numbers_options *options);

typedef struct lg_csv_integers_options {
        LG_OPTIONS_HEAD
        int64_t missing_as LG_DEFAULT; /* replaces missing values; LG_ZERO_INT sets 0. Default: they are an error. */
} lg_csv_integers_options;
/* Returns a column of whole numbers of i64, such as labels or indices, as a tensor i64 (rows). "3.0" counts as one.
 * Example: lg_csv_integers(t, "label") */
#define lg_csv_integers(...)                                                                                           \
        LG_CALL2(lg_csv_integers_with, lg_csv_integers_options, lg_csv_integers_takes_t_column, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_integers_with(lg_csv *t, const char *column, const lg_csv_integers_options *options);

/* Returns the different texts of a column, without those that stand for a missing value, in the order of the numbers if
 * all of them are numbers, else in the order of their bytes. lg_csv_categories() gives them the codes 0, 1, ... The
 * texts are valid until lg_csv_close(). Returns no texts after an error, and if the column has none. */
LG_API lg_names lg_csv_texts(lg_csv *t, const char *column);

typedef struct lg_csv_categories_options {
        LG_OPTIONS_HEAD
        lg_names_in texts LG_DEFAULT;  /* the possible texts, in the order of their codes; default: lg_csv_texts() */
        int64_t missing_as LG_DEFAULT; /* the code of missing values; LG_ZERO_INT sets 0. Default: they are an error. */
} lg_csv_categories_options;
/* Returns a column of texts as a tensor i64 (rows) of codes from 0 on: the place of each text in .texts, where it
 * occurs once; other texts do not fit. Pass the texts of one file to give those of another file the same codes.
 * Example: lg_csv_categories(test, "species", .texts = lg_csv_texts(train, "species")) */
#define lg_csv_categories(...)                                                                                         \
        LG_CALL2(lg_csv_categories_with, lg_csv_categories_options, lg_csv_categories_takes_t_column, V, V, __VA_ARGS__)
LG_API LG_NEW lg_tensor *lg_csv_categories_with(lg_csv *t, const char *column,
                                                const lg_csv_categories_options *options);

LG_END_C
#endif
