/* find_lr.h - the learning-rate range test of fashion-mnist, in place of a training. */
#ifndef FIND_LR_H
#define FIND_LR_H

#include "run.h"

/* Tests growing rates on the training images, prints the losses and the suggestion, and writes the files of --csv and
 * --plot, which have the curve also if there is no suggestion. Errors are set in r->c. */
void find_lr(run *r);

#endif
