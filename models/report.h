/* report.h - a confusion matrix: how often images of each class were classified as each class. */
#ifndef REPORT_H
#define REPORT_H

#include <stdint.h>
#include <stdio.h>

#define REPORT_CLASSES 10
extern const char *const report_names[REPORT_CLASSES]; /* names of Fashion-MNIST's ten classes */

typedef struct report {
        int64_t count[REPORT_CLASSES][REPORT_CLASSES]; /* numbers of images by [class][predicted class] */
} report;

void report_add(report *r, const int64_t *labels, const int64_t *predicted, int64_t n);
/* Prints the matrix, and the accuracy (recall) and precision of each class. */
void report_print(FILE *f, const report *r);

#endif
