/* predict.h - what is in a picture, by weights that were trained: --predict and --weights. */
#ifndef PREDICT_H
#define PREDICT_H

#include <stdio.h>
#include <grad.h>
#include "options.h"

/* Writes the classes with their probabilities to f, best first. False: the context has an error. */
bool predict(FILE *f, lg_ctx *c, const options *o);

#endif
