/* weights.h - declarations shared by the parts of lg-weights: listing a file, comparing two, values and names. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdio.h>
#include <grad.h>

/* Prints the tensors of a file and its metadata. Returns false after an error. */
bool weights_list(lg_ctx *c, const char *path);
/* Prints the differences and returns whether the tensors of both files are the same. After an error the result is
 * meaningless. */
bool weights_compare(lg_ctx *c, const char *path, const char *other);

/* ---- weights_values.c ---- */

/* A part of a tensor's values, converted to dtype, LG_F64 or LG_I64. */
#define WEIGHTS_PART 65536
typedef struct weights_part {
        lg_tensor *all; /* the whole tensor, flat */
        lg_dtype dtype;
        int64_t at, count; /* index of the first value of the part, number of values */
        union {
                double f64[WEIGHTS_PART];
                int64_t i64[WEIGHTS_PART];
        } values;
} weights_part;

/* Opens a tensor for reading in parts, as LG_F64 or LG_I64; weights_next() reads the first part. Returns NULL with an
 * error if the tensor cannot be read. */
weights_part *weights_begin(lg_ctx *c, lg_weights *w, const char *name, lg_dtype dtype);
/* Reads the next part. Returns false if there is none, or after an error. */
bool weights_next(lg_ctx *c, weights_part *p);
void weights_end(weights_part *p);

/* Print a name or text, with control characters as "?", or a shape as "(3, 4)", padded with spaces to `width`. */
void weights_print_text(const char *text, int width);
void weights_print_shape(lg_shape shape, int width);
/* Return the printed widths of a text and a shape without padding. */
int weights_text_width(const char *text);
int weights_shape_width(lg_shape shape);

#endif
