/* board.h - curves, histograms, pictures and texts of a run, in files that TensorBoard shows.
 *
 *     lg_board *b = lg_board_open(c, "runs/first");
 *     ...
 *             lg_board_scalar(b, "loss/train", lg_item(loss), step);
 *     ...
 *     lg_board_parameters(b, net, step);
 *     lg_board_close(b);
 *
 * "pip install tensorboard; tensorboard --logdir runs" shows them while the program runs and afterwards. The folder is
 * the run's name, and tags with the same words before a '/' are shown together. Arguments have the order of PyTorch's
 * SummaryWriter: tag, value, step. Steps of a tag should not decrease.
 *
 * Each call writes one record to the file, by one system call, and keeps nothing in memory: a process that is killed
 * leaves a file of all its records, the last one perhaps in part, which TensorBoard leaves out. A call that fails, as
 * on a full disk, writes nothing that is read: the next record replaces its bytes.
 *
 * A tag is a text in UTF-8 and not empty (else LG_ERR_ARGUMENT). A file that cannot be written is LG_ERR_IO.
 */
#ifndef LG_BOARD_H
#define LG_BOARD_H

#include "grad/nn.h"

LG_BEGIN

/* A file of records for TensorBoard; belongs to the context. */
typedef struct lg_board lg_board;

typedef struct lg_board_options {
        LG_OPTIONS_HEAD
        int64_t purge_step LG_DEFAULT; /* earlier files' records of this step and later ones are not shown; default: all
                                          are; LG_ZERO_INT hides those of all steps from 0 on */
} lg_board_options;
/* Creates a new file in a folder, "events.out.tfevents." and the time, the host, the process and a number, and the
 * folder if there is none. A run that goes on from a checkpoint of step n opens the same folder with .purge_step =
 * n + 1, because the earlier process may have written later steps.
 * Example: lg_board_open(c, "runs/first", .purge_step = 1001) */
#define lg_board_open(...)                                                                                             \
        LG_CALL2(lg_board_open_with, lg_board_options, lg_board_open_takes_c_folder, V, V, __VA_ARGS__)
LG_API LG_NEW lg_board *lg_board_open_with(lg_ctx *c, const char *folder, const lg_board_options *options);

/* Writes a number, as f32; NaN and infinities are numbers, too. */
LG_API bool lg_board_scalar(lg_board *b, const char *tag, double value, int64_t step);

typedef struct lg_board_histogram_options {
        LG_OPTIONS_HEAD
        int64_t bins LG_DEFAULT; /* so many even bins from the least to the greatest element, at most 100000; default:
                                    PyTorch's "tensorflow", the same bins for all tensors, from 1e-12 to 1e20 with
                                    ends that grow by a tenth, for either sign */
} lg_board_histogram_options;
/* Writes the histogram of the elements of t, of any dtype, with their number, minimum, maximum, sum and sum of squares.
 * NaN and infinities are left out; if there is no other element, the histogram is empty. All is computed in f64 on t's
 * device, in pieces; a few KiB are copied to the host. Waits for the device.
 * Example: lg_board_histogram(b, "activations", x, step, .bins = 64) */
#define lg_board_histogram(...)                                                                                        \
        LG_CALL4(lg_board_histogram_with, lg_board_histogram_options, lg_board_histogram_takes_b_tag_t_step, V, V, V,  \
                 I, __VA_ARGS__)
LG_API bool lg_board_histogram_with(lg_board *b, const char *tag, lg_tensor *t, int64_t step,
                                    const lg_board_histogram_options *options);

/* Writes a histogram of each parameter of a module, with the tag "values/PATH", and of each gradient that there is,
 * "gradients/PATH". Reads all of them at once, after the last was computed. */
LG_API bool lg_board_parameters(lg_board *b, lg_module *m, int64_t step);

/* Writes a picture: u8 (H, W) or (C, H, W) with C = 1 (grey), 3 (RGB) or 4 (RGB and alpha), or of a float dtype with
 * values from 0 to 1; values outside are clamped, NaN is 0. Several pictures (N, C, H, W) become one, in rows of eight.
 * Waits for the device. Fails with LG_ERR_STATE if libgrad was built without libpng.
 * Example: lg_board_image(b, "input", x, step) */
LG_API bool lg_board_image(lg_board *b, const char *tag, lg_tensor *t, int64_t step);

/* Writes a text in UTF-8, which TensorBoard shows as Markdown.
 * Example: lg_board_text(b, "options", "Adam, *lr* 0.001", 0) */
LG_API bool lg_board_text(lg_board *b, const char *tag, const char *text, int64_t step);

/* Waits until all records are on the disk, so that they survive a power cut; every program can read them before.
 * Example: lg_board_flush(b) */
LG_API bool lg_board_flush(lg_board *b);

/* Flushes, closes the file and frees b, also while an error is set or if the file cannot be flushed (then false).
 * lg_close() frees boards without waiting for the disk. */
LG_API bool lg_board_close(lg_board *b);

LG_END_C
#endif
