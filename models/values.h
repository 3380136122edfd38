/* values.h - values of options of a command line: each function parses the text of option --name into *ret, or returns
 * false after a message on stderr. */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stdint.h>

bool value_whole_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *ret);
/* Parses a number of threads; "auto" is -1. */
bool value_thread_count(const char *name, const char *text, int64_t *ret);
/* Parses a finite number that is not negative. */
bool value_positive(const char *name, const char *text, double *ret);
/* Parses the decay of a moving average: from 0 to less than 1. */
bool value_decay(const char *name, const char *text, double *ret);
/* Accepts a text that is one of WORDS(...). */
bool value_word(const char *name, const char *text, const char *const *words, const char **ret);
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
/* Accepts the name of a file, which is not empty. */
bool value_file(const char *name, const char *text, const char **ret);

#endif
