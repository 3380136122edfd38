/* json.h - checks and reads the JSON of a file's header. */
#ifndef LG_IO_JSON_H
#define LG_IO_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include "text.h"

/* True if the text is one object, which begins at its first byte and has nothing but spaces behind it, of strings,
 * whole numbers below 2^53, arrays and objects, at most three deep; strings are UTF-8 without NUL, escaped ones too. If
 * not, *ret_wrong says what is wrong at byte *ret_at. Takes no memory. */
bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at);

/* A place in a checked text. An object or an array is read after its opening bracket is skipped by s++. */
typedef struct lg__json {
        const char *s, *end; /* what is to be read: *s is the first byte of a value, which tells its kind */
        char *to;            /* where the next string is decoded to: never more bytes than are read */
        int64_t number;
        const char *wrong;
} lg__json;

/* Goes to the next value of an array, or past its end. False: it has ended. */
bool lg__json_next(lg__json *p);
/* Decodes the name of the next member of an object, and goes to its value, or past the object's end. NULL: it has
 * ended. */
const char *lg__json_member(lg__json *p);
/* Reads a string or a number, or skips any value. */
const char *lg__json_string(lg__json *p);
int64_t lg__json_number(lg__json *p);
void lg__json_skip(lg__json *p);

#endif
