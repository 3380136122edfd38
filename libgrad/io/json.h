/* json.h - what is checked of a header's JSON before cJSON decodes it: cJSON takes more than JSON is. */
#ifndef LG_IO_JSON_H
#define LG_IO_JSON_H

#include <stdbool.h>
#include "text.h"

/* True if the text is one object, which begins at its first byte and has nothing but spaces behind it, of strings,
 * whole numbers below 2^53, arrays and objects, at most three deep; strings are UTF-8 without NUL, escaped ones too. If
 * not, *ret_wrong says what is wrong at byte *ret_at. Takes no memory. */
bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at);

/* Walks through the members of an object in a checked text: *at is 0 at first. False: there are no more. The name is a
 * string as it stands there, with its quotes. */
bool lg__json_member(lg__span object, size_t *at, lg__span *ret_name, lg__span *ret_value);

#endif
