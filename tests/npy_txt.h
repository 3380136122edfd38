/* npy_txt.h - the files that NumPy wrote, as data/npy.txt has them. */
#ifndef LG_TEST_NPY_TXT_H
#define LG_TEST_NPY_TXT_H

#include "files.h"

static inline FILE *open_npy_txt(void)
{
        char path[4096];
        const char *data = getenv("LG_TEST_DATA");
        snprintf(path, sizeof path, "%s/npy.txt", data ? data : "tests/data");
        FILE *f = fopen(path, "r");
        if (!f)
                fail_msg("%s cannot be opened", path);
        return f;
}

/* The words of a line, which the caller takes apart; each line in turn, NULL at the end. */
static inline char *next_line(FILE *f, char *line, size_t room)
{
        char *s = fgets(line, (int)room, f);
        assert_true(!s || strchr(s, '\n'));
        return s;
}

/* Bytes of hexadecimal digits, over them; returns how many. */
static inline size_t from_hex(char *text)
{
        size_t n = 0;
        for (unsigned byte; sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
                text[n] = (char)byte;
        return n;
}

#endif
