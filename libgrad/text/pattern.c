/* pattern.c - regular expressions of tokenizer files: Oniguruma's syntax, translated for PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <string.h>
#include "io/text.h"
#include "pattern.h"

#define MOST_BYTES 16384    /* of an expression */
#define MOST_HEAP_KIB 65536 /* memory that PCRE2 may use for a match */
#define MOST_STACK ((size_t)1 << 20)

struct lg__pattern {
        lg_ctx *ctx;
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *limits;
        pcre2_jit_stack *stack;
};

/* ---- translation ---- */

typedef struct translation {
        const char *s;     /* the rest of the expression */
        char *to;          /* the end of the result */
        const char *wrong; /* the part that PCRE2 reads in another way, or NULL */
} translation;

static void put(translation *x, const char *s, size_t bytes)
{
        memcpy(x->to, s, bytes);
        x->to += bytes;
}

/* Translates \p{...}: names longer than those of general categories are scripts, which PCRE2 widens unless told. */
static void put_property(translation *x)
{
        const char *end = x->s[2] == '{' ? strchr(x->s, '}') : NULL;
        if (!end || end - x->s > 40) {
                x->wrong = "\\p without a name in braces";
                return;
        }
        put(x, x->s, 3);
        x->s += 3;
        if (*x->s == '^')
                put(x, x->s++, 1);
        if (end - x->s > 2)
                put(x, "sc:", 3);
        put(x, x->s, (size_t)(end - x->s) + 1);
        x->s = end + 1;
}

/* Translates what a backslash begins. Blanks are Unicode's, without U+180E, which PCRE2 adds. */
static void put_escape(translation *x)
{
        const char ch = x->s[1];
        if (ch == 's' || ch == 'S') {
                put(x, ch == 's' ? "\\p{White_Space}" : "\\P{White_Space}", 15);
                x->s += 2;
        } else if (ch == 'p' || ch == 'P') {
                put_property(x);
        } else if (ch && (!isalpha((unsigned char)ch) || strchr("dDrntfx", ch))) {
                put(x, x->s, 2);
                x->s += 2;
        } else
                x->wrong = "a backslash with a letter other than d, D, f, n, p, P, r, s, S, t and x";
}

/* Translates a class in brackets. Oniguruma nests classes: one inside another adds its characters. */
static void put_class(translation *x)
{
        int depth = 0;
        do {
                if (*x->s == '\\') {
                        put_escape(x);
                        continue;
                }
                const bool nested = depth > 0 && (!strncmp(x->s, "[:", 2) || !strncmp(x->s, "[^", 2));
                if (!*x->s || nested || !strncmp(x->s, "&&", 2)) {
                        x->wrong = *x->s ? "a class with &&, [: or [^ inside" : "a class that does not end";
                        return;
                }
                const bool opens = *x->s == '[', closes = *x->s == ']';
                if (opens && depth == 0) {
                        const size_t n = x->s[1] == '^' ? 2 : 1;
                        put(x, x->s, n);
                        x->s += n - 1;
                        if (x->s[1] == ']')
                                x->wrong = "a class that begins with ]";
                } else if (!opens && (!closes || depth == 1))
                        put(x, x->s, 1);
                depth += opens - closes;
                x->s++;
        } while (depth > 0 && !x->wrong);
}

/* Writes the translated expression to `to`, which has eight times its bytes. Returns false and sets x->wrong. */
static bool translate(translation *x, bool *ret_looks_back)
{
        while (*x->s && !x->wrong) {
                if (*x->s == '\\')
                        put_escape(x);
                else if (*x->s == '[')
                        put_class(x);
                else if (!strncmp(x->s, "}+", 2) || !strncmp(x->s, "(?m", 3) || !strncmp(x->s, "(*", 2))
                        x->wrong = "}+, (?m or (*";
                else {
                        *ret_looks_back = *ret_looks_back || *x->s == '^';
                        put(x, x->s++, 1);
                }
        }
        put(x, "", 1);
        return !x->wrong;
}

/* ---- compilation ---- */

static bool compile(lg__pattern *p, const char *op, const char *file, const char *expression, const char *translated)
{
        int code;
        size_t at;
        p->code = pcre2_compile((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
        if (!p->code) {
                PCRE2_UCHAR why[160] = "";
                pcre2_get_error_message(code, why, sizeof why);
                return lg__fail(p->ctx, code == PCRE2_ERROR_HEAP_FAILED ? LG_ERR_MEMORY : LG_ERR_FORMAT,
                                "%s: %s: the expression %s cannot be used: %s", op, lg__quoted(file).s,
                                lg__quoted(expression).s, (const char *)why);
        }
        pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD); /* without it, matching is slower */
        p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
        p->limits = pcre2_match_context_create(NULL);
        p->stack = pcre2_jit_stack_create(32768, MOST_STACK, NULL);
        if (!p->data || !p->limits)
                return lg__fail(p->ctx, LG_ERR_MEMORY, "%s: there is no memory for PCRE2", op);
        pcre2_set_heap_limit(p->limits, MOST_HEAP_KIB);
        pcre2_jit_stack_assign(p->limits, NULL, p->stack);
        return true;
}

lg__pattern *lg__pattern_new(lg_ctx *c, const char *op, const char *file, const char *expression, bool *ret_looks_back)
{
        const size_t bytes = strlen(expression), room = 8 * bytes + 1;
        if (bytes > MOST_BYTES)
                return lg__fail(c, LG_ERR_FORMAT, "%s: %s: an expression of %zu bytes; %d are the most", op,
                                lg__quoted(file).s, bytes, MOST_BYTES);
        lg__pattern *p = lg__alloc(c, sizeof *p);
        char *translated = p ? lg__alloc(c, room) : NULL;
        translation x = {.s = expression, .to = translated};
        bool ok = translated != NULL;
        if (ok) {
                p->ctx = c;
                ok = translate(&x, ret_looks_back) ||
                     lg__fail(c, LG_ERR_FORMAT, "%s: %s: the expression %s has %s, which is not supported", op,
                              lg__quoted(file).s, lg__quoted(expression).s, x.wrong);
        }
        uint32_t back = 0;
        ok = ok && compile(p, op, file, expression, translated) &&
             pcre2_pattern_info(p->code, PCRE2_INFO_MAXLOOKBEHIND, &back) == 0;
        *ret_looks_back = *ret_looks_back || back > 0;
        lg__free(c, translated, room);
        if (ok)
                return p;
        lg__pattern_free(c, p);
        return NULL;
}

void lg__pattern_free(lg_ctx *c, lg__pattern *p)
{
        if (!p)
                return;
        pcre2_jit_stack_free(p->stack);
        pcre2_match_context_free(p->limits);
        pcre2_match_data_free(p->data);
        pcre2_code_free(p->code);
        lg__free(c, p, sizeof *p);
}

/* ---- matches ---- */

static lg__found failed(const lg__pattern *p, const char *op, int code)
{
        PCRE2_UCHAR why[160] = "";
        pcre2_get_error_message(code, why, sizeof why);
        lg__fail(p->ctx, code == PCRE2_ERROR_NOMEMORY ? LG_ERR_MEMORY : LG_ERR_STATE,
                 "%s: the tokenizer's regular expression takes too long or too much memory on this text: %s", op,
                 (const char *)why);
        return LG__FOUND_ERROR;
}

lg__found lg__pattern_find(lg__pattern *p, const char *op, const char *s, int64_t bytes, int64_t from, bool final,
                           int64_t *ret_begin, int64_t *ret_end)
{
        const uint32_t options = PCRE2_NO_UTF_CHECK | (final ? 0 : PCRE2_PARTIAL_HARD);
        const int code = pcre2_match(p->code, (PCRE2_SPTR)s, (size_t)bytes, (size_t)from, options, p->data, p->limits);
        const size_t *at = pcre2_get_ovector_pointer(p->data);
        if (code == PCRE2_ERROR_NOMATCH)
                return LG__FOUND_NOTHING;
        if (code < 0 && code != PCRE2_ERROR_PARTIAL)
                return failed(p, op, code);
        *ret_begin = (int64_t)at[0];
        *ret_end = (int64_t)at[1];
        return code == PCRE2_ERROR_PARTIAL ? LG__FOUND_PART : LG__FOUND;
}
