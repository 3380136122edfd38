/* plot.h - curves as PNG pictures, drawn by gnuplot. */
#ifndef PLOT_H
#define PLOT_H

#include <grad.h>

/* Returns whether gnuplot is installed. */
bool plot_possible(void);
/* Draw losses and accuracy of a CSV file of fashion-mnist by epoch, and losses of lg_find_lr() by rate with a mark at
 * the rate that was found (0: none), into a PNG file, with the model's name as title. Return false if gnuplot failed.
 */
bool plot_epochs(const char *csv, const char *png, const char *model);
bool plot_rates(const lg_lr_point *p, int64_t count, double found, const char *png, const char *model);

#endif
