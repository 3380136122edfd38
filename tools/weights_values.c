/* weights_values.c - reads values of tensors in parts, and prints names and shapes, for lg-weights. */
#include <stdlib.h>
#include <string.h>
#include "weights.h"

/* ---- values ---- */

weights_part *weights_begin(lg_ctx *c, lg_weights *w, const char *name, lg_dtype dtype)
{
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = lg_weights_read(w, name);
        lg_tensor *flat = t ? lg_reshape(t, LG_SHAPE(lg_numel(t))) : NULL;
        weights_part *p = flat ? malloc(sizeof *p) : NULL;
        if (p) {
                p->all = lg_keep(flat);
                p->dtype = dtype;
                p->at = p->count = 0;
        } else if (flat) {
                lg_set_error(c, LG_ERR_MEMORY, "no memory for the values of a tensor");
        }
        lg_scope_end(c, scope);
        return p;
}

bool weights_next(lg_ctx *c, weights_part *p)
{
        if (!p || lg_error(c))
                return false;
        p->at += p->count;
        p->count = lg_numel(p->all) - p->at;
        if (p->count > WEIGHTS_PART)
                p->count = WEIGHTS_PART;
        if (!p->count)
                return false;
        lg_scope scope = lg_scope_begin(c);
        lg_tensor *part = lg_slice(p->all, 0, p->at, p->at + p->count);
        bool ok = lg_read(part, &p->values, p->dtype, (size_t)p->count * lg_dtype_size(p->dtype));
        lg_scope_end(c, scope);
        return ok;
}

void weights_end(weights_part *p)
{
        if (p)
                lg_free(p->all);
        free(p);
}

/* ---- names and shapes ---- */

/* Returns the bytes of the first character of a text. *ret_controls: it controls a terminal (0 to 31, 127 to 159). */
static int next_character(const char *text, bool *ret_controls)
{
        const unsigned char *s = (const unsigned char *)text;
        int n = 1;
        while ((s[n] & 0xc0) == 0x80)
                n++;
        *ret_controls = s[0] < 32 || s[0] == 127 || (s[0] == 0xc2 && s[1] < 0xa0);
        return n;
}

int weights_text_width(const char *text)
{
        bool controls;
        int width = 0;
        for (; *text; text += next_character(text, &controls))
                width++;
        return width;
}

void weights_print_text(const char *text, int width)
{
        width -= weights_text_width(text);
        bool controls;
        for (int n; *text; text += n) {
                n = next_character(text, &controls);
                printf("%.*s", controls ? 1 : n, controls ? "?" : text);
        }
        printf("%*s", width > 0 ? width : 0, "");
}

/* Writes a shape as text, for which 256 bytes are always enough, and returns its length. */
static int shape_text(lg_shape shape, char text[256])
{
        int n = snprintf(text, 256, "(");
        for (int i = 0; i < shape.ndim; i++)
                n += snprintf(text + n, (size_t)(256 - n), "%s%lld", i ? ", " : "", (long long)shape.size[i]);
        return n + snprintf(text + n, (size_t)(256 - n), ")");
}

int weights_shape_width(lg_shape shape)
{
        char text[256];
        return shape_text(shape, text);
}

void weights_print_shape(lg_shape shape, int width)
{
        char text[256];
        shape_text(shape, text);
        printf("%-*s", width, text);
}
