/* error.c - errors and messages. A context keeps its first error until lg_clear_error(). */
#include <errno.h>
#include <string.h>
#include "core/core.h"

static const char *const names[] = {"LG_ERR_NONE",   "LG_ERR_SHAPE",    "LG_ERR_DTYPE", "LG_ERR_DEVICE",
                                    "LG_ERR_MEMORY", "LG_ERR_ARGUMENT", "LG_ERR_STATE", "LG_ERR_IO",
                                    "LG_ERR_FORMAT", "LG_ERR_CUDA",     "LG_ERR_COMM"};

void *lg__vfail(lg_ctx *c, lg_error_code code, const char *format, va_list args)
{
        if (c && !c->error) {
                locale_t was = lg__point_begin();
                c->error = code;
                vsnprintf(c->message, sizeof c->message, format, args);
                lg__point_end(was);
        }
        return NULL;
}

void *lg__fail(lg_ctx *c, lg_error_code code, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        lg__vfail(c, code, format, args);
        va_end(args);
        return NULL;
}

bool lg__list_ok(lg_ctx *c, const char *op, int64_t count, const void *items)
{
        if (count < 0)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: the list has %lld entries", op, (long long)count);
        return !count || items || lg__fail(c, LG_ERR_ARGUMENT, "%s: the list is NULL", op);
}

lg_error_code lg__system_code(int error)
{
        return error == ENOMEM ? LG_ERR_MEMORY : LG_ERR_IO;
}

bool lg__written(lg_ctx *c, FILE *f, const char *op)
{
        if (fflush(f))
                return lg__fail(c, lg__system_code(errno), "%s: the file cannot be written: %s", op, strerror(errno));
        return !ferror(f) || lg__fail(c, LG_ERR_IO, "%s: the file cannot be written", op);
}

bool lg_set_error(lg_ctx *c, lg_error_code code, const char *format, ...)
{
        va_list args;
        va_start(args, format);
        lg__vfail(c, code == LG_ERR_NONE ? LG_ERR_STATE : code, format ? format : "no message", args);
        va_end(args);
        return false;
}

void lg_on_message(lg_ctx *c, lg_message_fn *fn, void *user)
{
        if (!c)
                return;
        c->message_fn = fn;
        c->message_user = user;
}

void lg__message(lg_ctx *c, const char *format, ...)
{
        char text[LG__MESSAGE];
        va_list args;
        if (!c->message_fn)
                return;
        locale_t was = lg__point_begin();
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        lg__point_end(was);
        c->user_calls++;
        c->message_fn(c, text, c->message_user);
        c->user_calls--;
}

const char *lg_error(const lg_ctx *c)
{
        if (!c)
                return "there is no context: NULL was given, or lg_open() failed (for want of memory, or since it was "
                       "given options of a newer libgrad)";
        return c->error ? c->message : NULL;
}

lg_error_code lg_error_code_of(const lg_ctx *c)
{
        return c ? c->error : LG_ERR_ARGUMENT;
}

const char *lg_error_name(lg_error_code code)
{
        size_t i = (size_t)code;
        return i < sizeof names / sizeof *names ? names[i] : "LG_ERR_?";
}

void lg__forget_error(lg_ctx *c)
{
        c->error = LG_ERR_NONE;
        c->message[0] = 0;
}
