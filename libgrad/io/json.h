/* json.h - checks and reads the JSON of a file header. Private. */
#ifndef LG_IO_JSON_H
#define LG_IO_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include "text.h"

/* Returns true if the text is one object, which starts at the first byte and is followed by spaces only. Values are
 * strings, integers from 0 to 2^53 - 1, arrays and objects, nested at most three deep; strings are UTF-8 and have no
 * NUL. Otherwise *ret_wrong says what is wrong at byte *ret_at. Allocates no memory. */
bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at);

/* A position in a checked text. To read the contents of an object or array, skip its opening bracket by s++. */
typedef struct lg__json {
        const char *s, *end; /* unread text: *s, the first byte of a value, shows its kind */
        char *to;            /* buffer for the next decoded string, never longer than its source */
        int64_t number;
        const char *wrong;
} lg__json;

/* Moves to the next value of an array. Returns false at the end, after moving past the closing bracket. */
bool lg__json_next(lg__json *p);
/* Decodes the name of the next member of an object and moves to the member's value. Returns NULL at the end of the
 * object, after moving past the closing bracket. */
const char *lg__json_member(lg__json *p);
/* Reads a string or an integer, or skips a value of any kind. A decoded string is stored at p->to, ended by a NUL. */
const char *lg__json_string(lg__json *p);
int64_t lg__json_number(lg__json *p);
void lg__json_skip(lg__json *p);

#endif
