/* board.h - curves and histograms of a run for TensorBoard: --board. Functions do nothing without --board. */
#ifndef BOARD_H
#define BOARD_H

#include "run.h"

/* Opens a file in the folder of --board, on rank 0. A run that was resumed hides the later steps of earlier files.
 * Returns false after an error. */
bool board_open(run *r);
/* Returns on all processes whether the loss of this step is written. */
bool board_is_due(const run *r);
/* Writes a number at this step. */
void board_number(run *r, const char *tag, double value);
/* Writes histograms of the parameters and gradients. */
void board_parameters(run *r);
void board_close(run *r);

#endif
