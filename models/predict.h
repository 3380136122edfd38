/* predict.h - classifying a picture by trained weights: --predict and --weights. */
#ifndef PREDICT_H
#define PREDICT_H

#include <stdio.h>
#include <grad.h>
#include "options.h"

/* Writes the classes with their probabilities to f, the most likely first. Returns false if the context has an error.
 */
bool predict(FILE *f, lg_ctx *c, const options *o);

#endif
