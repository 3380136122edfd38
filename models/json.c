/* json.c - reads JSON texts of configurations: values are pieces of the text. */
#include "json.h"
#include <stdlib.h>
#include <string.h>

#define DEEPEST 64

static const char *skip_spaces(const char *s)
{
        return s + strspn(s, " \t\r\n");
}

static const char *end_of_string(const char *s)
{
        for (s++; *s != '"'; s++)
                if ((unsigned char)*s < ' ' || (*s == '\\' && !*++s))
                        return NULL;
        return s + 1;
}

static const char *end_of_value(const char *s, int depth);

/* Returns the end of an array or an object, which begins at s. */
static const char *end_of_list(const char *s, int depth)
{
        const bool object = *s == '{';
        const char close = object ? '}' : ']';
        s = skip_spaces(s + 1);
        if (*s == close)
                return s + 1;
        while (depth < DEEPEST) {
                if (object) {
                        s = *s == '"' ? end_of_string(s) : NULL;
                        s = s ? skip_spaces(s) : NULL;
                        if (!s || *s != ':')
                                return NULL;
                        s = skip_spaces(s + 1);
                }
                s = end_of_value(s, depth + 1);
                s = s ? skip_spaces(s) : NULL;
                if (!s || (*s != ',' && *s != close))
                        return NULL;
                if (*s == close)
                        return s + 1;
                s = skip_spaces(s + 1);
        }
        return NULL;
}

/* Returns the end of the value at s, or NULL if there is none. */
static const char *end_of_value(const char *s, int depth)
{
        static const char *const words[] = {"true", "false", "null"};
        if (*s == '{' || *s == '[')
                return end_of_list(s, depth);
        if (*s == '"')
                return end_of_string(s);
        for (int i = 0; i < 3; i++)
                if (!strncmp(s, words[i], strlen(words[i])))
                        return s + strlen(words[i]);
        const size_t n = *s == '-' || (*s >= '0' && *s <= '9') ? strspn(s, "+-.0123456789eE") : 0;
        return n ? s + n : NULL;
}

json json_parse(const char *text)
{
        const char *at = skip_spaces(text), *end = end_of_value(at, 0);
        return end && !*skip_spaces(end) ? (json){at, end} : (json){NULL, NULL};
}

bool json_next(json object, json *name, json *value)
{
        if (!object.at || *object.at != '{')
                return false;
        const char *s = skip_spaces((name->at ? value->end : object.at));
        if (*s == '}')
                return false;
        name->at = skip_spaces(s + 1);
        if (*name->at == '}')
                return false;
        name->end = end_of_string(name->at);
        value->at = skip_spaces(skip_spaces(name->end) + 1);
        value->end = end_of_value(value->at, 0);
        return true;
}

bool json_is(json value, const char *text)
{
        const size_t n = strlen(text);
        return value.at && (size_t)(value.end - value.at) == n && !memcmp(value.at, text, n);
}

json json_member(json object, const char *name)
{
        char own[128];
        for (json key = {NULL, NULL}, value; json_next(object, &key, &value);)
                if (json_string(key, own, sizeof own) && !strcmp(own, name) && !json_is(value, "null"))
                        return value;
        return (json){NULL, NULL};
}

bool json_string(json value, char *ret, size_t size)
{
        if (!value.at || *value.at != '"')
                return false;
        const size_t n = (size_t)(value.end - value.at) - 2;
        if (n >= size || memchr(value.at, '\\', n + 1))
                return false;
        memcpy(ret, value.at + 1, n);
        ret[n] = 0;
        return true;
}

bool json_number(json value, double *ret)
{
        char *end;
        if (!value.at || (*value.at != '-' && (*value.at < '0' || *value.at > '9')))
                return false;
        *ret = strtod(value.at, &end);
        return end == value.end;
}
