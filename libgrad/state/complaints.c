/* complaints.c - what does not fit, collected before it becomes an error. */
#include "complaints.h"

#define NAMED 10

void lg__complain(lg__complaints *c, lg__complaint kind, const char *format, ...)
{
        va_list args;
        char *text = c->text[kind];
        size_t room = sizeof c->text[kind] - c->used[kind];
        if (c->count[kind]++ >= NAMED)
                return;
        va_start(args, format);
        int comma = c->used[kind] ? snprintf(text + c->used[kind], room, ", ") : 0;
        int n = room > 2 ? vsnprintf(text + c->used[kind] + comma, room - (size_t)comma, format, args) : -1;
        va_end(args);
        if (n >= 0 && (size_t)(n + comma) < room)
                c->used[kind] += (size_t)(n + comma);
        else
                text[c->used[kind]] = 0; /* names that are so long that ten do not fit: those that do */
}

bool lg__complaints_end(const lg__complaints *all, lg_ctx *c, const char *op, const char *path, const char *hint)
{
        static const char *const words[] = {"different", "missing", "unexpected", "of another shape",
                                            "of another dtype"};
        char text[LG__MESSAGE];
        size_t used = 0;
        text[0] = 0;
        lg_error_code code = LG_ERR_DTYPE;
        for (int k = 0; k < LG__COMPLAINTS; k++) {
                if (!all->count[k])
                        continue;
                code = k == LG__MISTYPED ? code : LG_ERR_ARGUMENT;
                int64_t more = all->count[k] > NAMED ? all->count[k] - NAMED : 0;
                int n = snprintf(text + used, sizeof text - used, "%s%s: %s", used ? "; " : "", words[k], all->text[k]);
                used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
                n = more ? snprintf(text + used, sizeof text - used, " and %lld more", (long long)more) : 0;
                used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
        }
        return !used || lg__fail(c, code, "%s: %s does not fit%s: %s", op, path, hint, text);
}
