/* text.h - texts from files and from callers: UTF-8, and how messages show them. Private. */
#ifndef LG_IO_TEXT_H
#define LG_IO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A part of a text. */
typedef struct lg__span {
        const char *s;
        size_t bytes;
} lg__span;

/* Bytes of the character at the beginning of a text; 0: it is empty, or this is not UTF-8. */
int lg__utf8_length(lg__span text);

/* A name as messages show it: in quotes, control characters as ?, and cut where it is long. */
typedef struct lg__quote {
        char s[128];
} lg__quote;
lg__quote lg__quoted(const char *name);

#endif
