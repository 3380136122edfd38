/* text.h - checks texts from files and callers for UTF-8, and quotes names for messages. Private. */
#ifndef LG_IO_TEXT_H
#define LG_IO_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A part of a text, not ended by a NUL. */
typedef struct lg__span {
        const char *s;
        size_t bytes;
} lg__span;

/* Returns the bytes of the first UTF-8 character in a text, or 0 if the text is empty or not UTF-8 there. */
int lg__utf8_length(lg__span text);
/* Returns whether all of a text is UTF-8. */
bool lg__is_utf8(const char *s);

/* A name for messages: quoted, with control characters and invalid bytes as ?, and cut if long. */
typedef struct lg__quote {
        char s[128];
} lg__quote;
lg__quote lg__quoted(const char *name);

#endif
