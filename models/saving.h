/* saving.h - a run in a file: --save, --resume and --keep-best. */
#ifndef SAVING_H
#define SAVING_H

#include "run.h"

/* Names what is saved. Does nothing where no file is wanted. */
void saving_begin(run *r);
/* Goes on from --resume's file, or says that it is not there. False: it is there and cannot be; an error. */
bool saving_resume(run *r);
/* The model whose weights a file has under that prefix; NULL: none of these. The context must have no error. */
const char *saving_model_in(lg_ctx *c, const char *path, const char *prefix);
/* True if the first process can write the files of --save and --keep-best now, before hours are spent. */
bool saving_possible(run *r);
/* Writes --save's file, if one is wanted. */
bool saving_write(run *r);
/* Notes the accuracy of an epoch; the best one's weights go to --keep-best's file. */
void saving_keep_best(run *r, double accuracy);
/* Prints the command that goes on from --save's file. */
void saving_print_command(FILE *f, const run *r, char *const *argv);

#endif
