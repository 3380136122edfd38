/* plot.h - loss and accuracy curves as a picture, by gnuplot. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>

/* True if there is a gnuplot to run. */
bool plot_possible(void);
/* Draws the figures of a CSV file of fashion-mnist into a PNG file, below a title with the model; false if gnuplot
 * failed. */
bool plot_write(const char *csv, const char *png, const char *model);

#endif
