/* json.h - checks and reads JSON: the headers of files, and whole files. Private. */
#ifndef LG_IO_JSON_H
#define LG_IO_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include "text.h"

/* Returns true if the text is one object, which starts at the first byte and is followed by spaces only. Values are
 * strings, integers from 0 to 2^53 - 1, arrays and objects, nested at most three deep; strings are UTF-8 and have no
 * NUL. Otherwise *ret_wrong says what is wrong at byte *ret_at. Allocates no memory. */
bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at);
/* Checks a whole file in the same way: one object, with blanks around it, of values of any kind, nested at most 64
 * deep. A NUL must follow the text if lg__json_real() reads it. */
bool lg__json_check_any(lg__span text, const char **ret_wrong, size_t *ret_at);

/* A position in a checked text. To read the contents of an object or array, skip its opening bracket by s++. */
typedef struct lg__json {
        const char *s, *end; /* unread text: *s, the first byte of a value, shows its kind */
        char *to;            /* buffer for the next decoded string, never longer than its source */
        int64_t number;
        const char *wrong;
        bool any; /* the text was checked by lg__json_check_any() */
} lg__json;

/* Moves to the next value of an array. Returns false at the end, after moving past the closing bracket. */
bool lg__json_next(lg__json *p);
/* Decodes the name of the next member of an object and moves to the member's value. Returns NULL at the end of the
 * object, after moving past the closing bracket. */
const char *lg__json_member(lg__json *p);
/* Reads a string, a number, true (else false), or skips a value of any kind. A decoded string is stored at p->to, ended
 * by a NUL. With .any, lg__json_number() returns -1 unless the number is written as a whole one from 0 to 2^53 - 1. */
const char *lg__json_string(lg__json *p);
int64_t lg__json_number(lg__json *p);
double lg__json_real(lg__json *p);
bool lg__json_true(lg__json *p);
void lg__json_skip(lg__json *p);
/* Stores in ret[i] the position of the value of the member names[i] of an object, which p is at; its .s is NULL if
 * there is no such member, p is at no object, or p.s is NULL. Names are decoded at p.to, which later strings overwrite.
 */
void lg__json_pick(lg__json p, int count, const char *const *names, lg__json *ret);

/* Writes a string in quotes, with escapes for quotes, backslashes and control characters, by calls of put(to, piece,
 * bytes). Returns false once put does. */
bool lg__json_put_string(const char *s, bool (*put)(void *to, const char *piece, size_t bytes), void *to);

#endif
