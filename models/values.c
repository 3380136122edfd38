/* values.c - values of options of a command line. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "values.h"

bool value_whole_number(const char *name, const char *text, int64_t least, int64_t most, int64_t *ret)
{
        char *end;
        errno = 0;
        long long value = strtoll(text, &end, 10);
        if (errno || end == text || *end || value < least || value > most) {
                fprintf(stderr, "--%s %s: a whole number from %lld to %lld is needed\n", name, text, (long long)least,
                        (long long)most);
                return false;
        }
        *ret = value;
        return true;
}

bool value_thread_count(const char *name, const char *text, int64_t *ret)
{
        if (!strcmp(text, "auto"))
                return (*ret = -1) != 0;
        if (*text && strspn(text, "0123456789") == strlen(text))
                return value_whole_number(name, text, 0, 1024, ret);
        fprintf(stderr, "--%s %s: a whole number or \"auto\" is needed\n", name, text);
        return false;
}

bool value_positive(const char *name, const char *text, double *ret)
{
        char *end;
        double value = strtod(text, &end);
        if (end == text || *end || !isfinite(value) || value < 0) {
                fprintf(stderr, "--%s %s: a number of 0 or more is needed\n", name, text);
                return false;
        }
        *ret = value;
        return true;
}

bool value_decay(const char *name, const char *text, double *ret)
{
        char *end;
        double value = strtod(text, &end);
        if (end == text || *end || !(value >= 0 && value < 1)) {
                fprintf(stderr, "--%s %s: a number from 0 to less than 1 is needed\n", name, text);
                return false;
        }
        *ret = value;
        return true;
}

bool value_word(const char *name, const char *text, const char *const *words, const char **ret)
{
        for (int i = 0; words[i]; i++)
                if (!strcmp(text, words[i]))
                        return (*ret = text) != NULL;
        fprintf(stderr, "--%s %s: there are", name, text);
        for (int i = 0; words[i]; i++)
                fprintf(stderr, "%s %s", i ? "," : "", words[i]);
        fputc('\n', stderr);
        return false;
}

bool value_file(const char *name, const char *text, const char **ret)
{
        *ret = text;
        if (!*text)
                fprintf(stderr, "--%s: the name of a file is needed\n", name);
        return *text != 0;
}
