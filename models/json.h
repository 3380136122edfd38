/* json.h - reads JSON texts of configurations: values are pieces of the text. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>

/* A value: its first byte and the byte behind it. at is NULL if there is none. */
typedef struct json {
        const char *at, *end;
} json;

/* Returns the value that the text is, up to 64 levels deep, or none if the text is not one value and spaces. */
json json_parse(const char *text);
/* Moves to the next member of an object, from { NULL, NULL } in *name on. Returns false behind the last one, and if
 * `object` is no object. */
bool json_next(json object, json *name, json *value);
/* Returns the value of a member of an object; none if there is no such member, if its value is null, or if `object` is
 * no object. */
json json_member(json object, const char *name);
bool json_is(json value, const char *text);
/* Copies the contents of a string. Returns false if it is no string, has an escape, or does not fit. */
bool json_string(json value, char *ret, size_t size);
bool json_number(json value, double *ret);

#endif
