/* weights.h - the parts of lg-weights: listing a file, comparing two, and what both do with values and names. */
#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <stdio.h>
#include <grad.h>

/* Prints the tensors of a file and its texts. False: an error. */
bool weights_list(lg_ctx *c, const char *path);
/* Prints what is different; true: the tensors of both files are the same. Where there is an error, the result means
 * nothing. */
bool weights_compare(lg_ctx *c, const char *path, const char *other);

/* ---- weights_values.c ---- */

/* A part of a tensor's values, of the dtype that was asked for. */
#define WEIGHTS_PART 65536
typedef struct weights_part {
        lg_tensor *all; /* flat */
        lg_dtype dtype;
        int64_t at, count; /* where the part begins, how many values it has */
        union {
                double f64[WEIGHTS_PART];
                int64_t i64[WEIGHTS_PART];
        } values;
} weights_part;

/* Begins before the first part of a tensor, whose values become LG_F64 or LG_I64. NULL, with an error: it cannot be
 * read. */
weights_part *weights_begin(lg_ctx *c, lg_weights *w, const char *name, lg_dtype dtype);
/* Goes to the next part. False: there is none, or an error. */
bool weights_next(lg_ctx *c, weights_part *p);
void weights_end(weights_part *p);

/* A name or text, with what a terminal might obey as "?"; a shape as "(3, 4)". Filled up with spaces to the width. */
void weights_print_text(const char *text, int width);
void weights_print_shape(lg_shape shape, int width);
/* How wide these are without spaces. */
int weights_text_width(const char *text);
int weights_shape_width(lg_shape shape);

#endif
