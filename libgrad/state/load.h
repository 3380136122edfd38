/* load.h - rosters from files and into files. Private to state/. */
#ifndef LG_STATE_LOAD_H
#define LG_STATE_LOAD_H

#include "io/safetensors.h"
#include "roster.h"

/* Puts what a file holds into what the roster names. */
bool lg__state_load(lg__roster *r, const char *path, const lg_load_options *o);
/* Writes what the roster names to a file. */
bool lg__state_save(lg__roster *r, const char *path);
/* read.c. The values of a tensor of a file, in a new tensor; NULL: an error. */
lg_tensor *lg__weight_tensor(lg__weights *w, const lg__weight *e, lg_dtype dtype, lg_device device);
/* The same into t, contiguous and of that shape, in pieces, converted to its dtype. t may be NULL: they are read, to
 * see that they can be. */
bool lg__weight_put(lg__weights *w, const lg__weight *e, lg_tensor *t);

#endif
