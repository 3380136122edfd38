/* json.c - checks the JSON of a header, and finds the members of its objects. */
#include "json.h"
#include <stdint.h>
#include <string.h>

#define DEEPEST 3
#define TOO_MUCH ((int64_t)1 << 53) /* from here on, a double does not hold every whole number */

typedef struct scan {
        const char *s, *end;
        const char *wrong;
} scan;

static bool wrong(scan *p, const char *what)
{
        p->wrong = what;
        return false;
}

/* The byte to be read next; at the end NUL, which is nowhere right. */
static char peek(const scan *p)
{
        return p->s < p->end ? *p->s : '\0';
}

static bool is_blank(char ch)
{
        return ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r';
}

static void skip_blanks(scan *p)
{
        while (is_blank(peek(p)))
                p->s++;
}

/* The four hexadecimal digits behind \u; -1: these are none. */
static int hex4(scan *p)
{
        int v = 0;
        for (int i = 0; i < 4; i++, p->s++) {
                char ch = peek(p);
                int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                            : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                            : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                                     : -1;
                if (digit < 0)
                        return -1;
                v = v * 16 + digit;
        }
        return v;
}

/* What stands behind a backslash. */
static bool escape(scan *p)
{
        char ch = peek(p);
        if (ch && strchr("\"\\/bfnrt", ch)) {
                p->s++;
                return true;
        }
        if (ch != 'u')
                return wrong(p, "an unknown escape");
        p->s++;
        int v = hex4(p);
        if (v < 0)
                return wrong(p, "\\u without four hexadecimal digits");
        if (v == 0)
                return wrong(p, "\\u0000 in a string");
        if (v < 0xd800 || v > 0xdfff)
                return true;
        if (v > 0xdbff || p->end - p->s < 2 || p->s[0] != '\\' || p->s[1] != 'u')
                return wrong(p, "a surrogate without its other half");
        p->s += 2;
        int low = hex4(p);
        return (low >= 0xdc00 && low <= 0xdfff) || wrong(p, "a surrogate without its other half");
}

static bool string(scan *p)
{
        if (peek(p) != '"')
                return wrong(p, "a name in quotes was expected");
        for (p->s++; p->s < p->end && *p->s != '"';) {
                int n = lg__utf8_length((lg__span){p->s, (size_t)(p->end - p->s)});
                if (!n)
                        return wrong(p, "this is not UTF-8");
                if ((unsigned char)*p->s < 0x20)
                        return wrong(p, "a control character in a string");
                bool escaped = *p->s == '\\';
                p->s += n;
                if (escaped && !escape(p))
                        return false;
        }
        if (p->s == p->end)
                return wrong(p, "a string does not end");
        p->s++;
        return true;
}

static bool number(scan *p)
{
        int64_t v = 0;
        const char *first = p->s;
        for (; peek(p) >= '0' && peek(p) <= '9'; p->s++) {
                v = v * 10 + (*p->s - '0');
                if (v >= TOO_MUCH)
                        return wrong(p, "a number of 2^53 or more");
        }
        if (*first == '0' && p->s - first > 1)
                return wrong(p, "a number with a zero before it");
        if (peek(p) == '.' || peek(p) == 'e' || peek(p) == 'E')
                return wrong(p, "a number that is not written as a whole one");
        return true;
}

static bool value(scan *p, int depth);

/* The values of an array or the members of an object, up to the closing bracket. */
static bool values(scan *p, char closing, int depth)
{
        if (depth > DEEPEST)
                return wrong(p, "this is nested more than 3 deep");
        p->s++;
        skip_blanks(p);
        for (bool first = true; peek(p) != closing; first = false) {
                if (!first && peek(p) != ',')
                        return wrong(p, closing == '}' ? "a comma or } was expected" : "a comma or ] was expected");
                p->s += !first;
                skip_blanks(p);
                if (closing == '}') {
                        if (!string(p))
                                return false;
                        skip_blanks(p);
                        if (peek(p) != ':')
                                return wrong(p, "a colon was expected");
                        p->s++;
                        skip_blanks(p);
                }
                if (!value(p, depth))
                        return false;
                skip_blanks(p);
        }
        p->s++;
        return true;
}

static bool value(scan *p, int depth)
{
        char ch = peek(p);
        if (ch == '{')
                return values(p, '}', depth + 1);
        if (ch == '[')
                return values(p, ']', depth + 1);
        if (ch == '"')
                return string(p);
        if (ch >= '0' && ch <= '9')
                return number(p);
        return wrong(p, ch == '-' ? "a negative number" : "a string, a whole number, [ or { was expected");
}

bool lg__json_check(lg__span text, const char **ret_wrong, size_t *ret_at)
{
        scan p = {text.s, text.s + text.bytes, NULL};
        bool ok = peek(&p) == '{' || wrong(&p, "{ was expected");
        if (ok && value(&p, 0)) {
                while (peek(&p) == ' ')
                        p.s++;
                ok = p.s == p.end || wrong(&p, "only spaces may follow the object");
        }
        *ret_wrong = p.wrong;
        *ret_at = (size_t)(p.s - text.s);
        return !p.wrong;
}

/* The value that begins at text.s[at]; of a checked text. */
static lg__span value_at(lg__span text, size_t at)
{
        size_t first = at;
        int depth = 0;
        for (bool quoted = false; at < text.bytes; at++) {
                char ch = text.s[at];
                if (quoted && ch == '\\') {
                        at++;
                } else if (quoted || ch == '"') {
                        quoted = !quoted || ch != '"';
                } else if (!depth && (ch == ',' || ch == ':' || ch == '}' || is_blank(ch))) {
                        break;
                } else {
                        depth += (ch == '{' || ch == '[') - (ch == '}' || ch == ']');
                }
        }
        return (lg__span){text.s + first, at - first};
}

bool lg__json_member(lg__span object, size_t *at, lg__span *ret_name, lg__span *ret_value)
{
        size_t i = *at;
        while (i < object.bytes && object.s[i] != '"') /* the bracket or the comma before it; blanks */
                i++;
        if (i == object.bytes)
                return false;
        *ret_name = value_at(object, i);
        i += ret_name->bytes;
        while (i < object.bytes && (object.s[i] == ':' || is_blank(object.s[i])))
                i++;
        *ret_value = value_at(object, i);
        *at = i + ret_value->bytes;
        return true;
}
