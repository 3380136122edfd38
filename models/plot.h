/* plot.h - curves of loss and accuracy as a PNG picture, drawn by gnuplot. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>

/* Returns whether gnuplot is installed. */
bool plot_possible(void);
/* Draws the figures of a CSV file of fashion-mnist into a PNG file, with the model's name as title. Returns false if
 * gnuplot failed. */
bool plot_write(const char *csv, const char *png, const char *model);

#endif
