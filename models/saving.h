/* saving.h - the files of a run: --save, --resume, --keep-best and --onnx. */
#ifndef SAVING_H
#define SAVING_H

#include "run.h"

/* Makes the checkpoint and adds all that is saved, if --save or --resume is given. */
void saving_begin(run *r);
/* Loads the file of --resume, or prints that it does not exist yet. Returns false with an error if it cannot be used.
 */
bool saving_resume(run *r);
/* Returns the name of the model whose weights the file has under `prefix`, or NULL. The context must have no error. */
const char *saving_model_in(lg_ctx *c, const char *path, const char *prefix);
/* Returns whether the files of --save and --keep-best can be written, which rank 0 tests before hours of training. */
bool saving_possible(run *r);
bool saving_onnx_possible(run *r); /* the same for the file of --onnx */
/* Returns whether the path is a new file (*ret_is_new) or a regular file that may be replaced; else sets an error. */
bool saving_replaceable(run *r, const char *option, const char *path, bool *ret_is_new);
/* Writes the file of --save, if given. Returns false after an error. */
bool saving_write(run *r);
/* Records the accuracy of an epoch; if it is the best so far, writes the weights to the file of --keep-best. */
void saving_keep_best(run *r, double accuracy);
/* Writes the network, with averages of its weights if there are any, to the file of --onnx, if given. */
void saving_onnx(run *r);
/* Prints the command that resumes the run from the file of --save. */
void saving_print_command(FILE *f, const run *r, char *const *argv);

#endif
