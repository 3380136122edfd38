/* load.h - rosters from files and into files. Private to state/. */
#ifndef LG_STATE_LOAD_H
#define LG_STATE_LOAD_H

#include "roster.h"

/* Puts what a file holds into what the roster names. */
bool lg__state_load(lg__roster *r, const char *path, const lg_load_options *o);
/* Writes what the roster names to a file. */
bool lg__state_save(lg__roster *r, const char *path);

#endif
