/* form.c - forms of ops in ONNX: the text of an application, with the values of its attributes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "graph/op.h"

void lg__form_add(lg__form *f, const char *format, ...)
{
        va_list args;
        if (f->length >= sizeof f->s)
                return;
        va_start(args, format);
        f->length += (size_t)vsnprintf(f->s + f->length, sizeof f->s - f->length, format, args);
        va_end(args);
}

/* Writes a number so that it does not look like a whole one, exact. */
static void add_number(lg__form *f, double v)
{
        char text[40];
        snprintf(text, sizeof text, "%.17g", v);
        lg__form_add(f, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void add_value(lg__form *f, const lg__field *field, const void *p)
{
        const lg_dims *dims = p;
        const lg_shape *shape = p;
        switch (field->type) {
        case LG__FIELD_bool:
                lg__form_add(f, "%d", *(const bool *)p);
                break;
        case LG__FIELD_int:
                lg__form_add(f, "%d", *(const int *)p);
                break;
        case LG__FIELD_i64:
                lg__form_add(f, "%lld", (long long)*(const int64_t *)p);
                break;
        case LG__FIELD_f64:
                add_number(f, *(const double *)p);
                break;
        case LG__FIELD_dtype:
                lg__form_add(f, "%s", lg_dtype_name(*(const lg_dtype *)p));
                break;
        case LG__FIELD_dims:
                for (int i = 0; i < dims->count; i++)
                        lg__form_add(f, "%s%d", i ? " " : "", dims->dim[i]);
                break;
        case LG__FIELD_shape:
                for (int i = 0; i < shape->ndim; i++)
                        lg__form_add(f, "%s%lld", i ? " " : "", (long long)shape->size[i]);
                break;
        default:
                f->length = sizeof f->s; /* of a type that has no number */
        }
}

/* Appends the name of `length` characters or, if it names a field, its value. */
static void add_name(lg__form *f, const lg__call *call, const char *name, size_t length)
{
        const lg__field *next = call->op->fields;
        size_t at = 0;
        for (const void *p; (p = lg__next_field(call->attributes, &next, &at));)
                if (strlen(next[-1].name) == length && !strncmp(next[-1].name, name, length)) {
                        add_value(f, next - 1, p);
                        return;
                }
        lg__form_add(f, "%.*s", (int)length, name);
}

void lg__form_expand(lg__form *f, const lg__call *call, const char *form)
{
        bool quoted = false;
        while (*form) {
                size_t length = 0;
                quoted ^= *form == '\'';
                while (isalnum((unsigned char)form[length]) || form[length] == '_')
                        length++;
                const bool value =
                        !quoted && isalpha((unsigned char)*form) && form[length] != '(' && form[length] != '=';
                if (value)
                        add_name(f, call, form, length);
                else
                        lg__form_add(f, "%.*s", (int)(length ? length : 1), form);
                form += length ? length : 1;
        }
}

bool lg__form_of(lg__form *f, const lg__call *call)
{
        const locale_t locale = lg__point_begin();
        bool has = true;
        f->length = 0;
        if (call->op->onnx)
                lg__form_expand(f, call, call->op->onnx);
        else
                has = call->op->form && call->op->form(f, call);
        lg__point_end(locale);
        return has && f->length && f->length < sizeof f->s;
}
