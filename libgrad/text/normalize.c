/* normalize.c - Unicode's normal form NFC, by utf8proc. */
#include <stdlib.h>
#ifdef LG_UTF8PROC
#include <utf8proc.h>
#endif
#include "tokenizer.h"

#ifdef LG_UTF8PROC
bool lg__can_normalize(lg_ctx *c, const char *op)
{
        (void)c, (void)op;
        return true;
}

bool lg__normalize(lg_ctx *c, const char *op, const char *s, int64_t bytes, lg__buffer *to)
{
        utf8proc_uint8_t *text = NULL;
        const utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)bytes, &text,
                                                UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        const bool ok = n < 0 ? lg__fail(c, n == UTF8PROC_ERROR_NOMEM ? LG_ERR_MEMORY : LG_ERR_FORMAT, "%s: %s", op,
                                         utf8proc_errmsg(n)) != NULL
                              : lg__buffer_put(c, to, (const char *)text, n);
        free(text);
        return ok;
}
#else
bool lg__can_normalize(lg_ctx *c, const char *op)
{
        return lg__fail(c, LG_ERR_STATE,
                        "%s: the tokenizer normalises texts (NFC), and libgrad was built without utf8proc; install it "
                        "(Debian: libutf8proc-dev) and build libgrad again",
                        op);
}

bool lg__normalize(lg_ctx *c, const char *op, const char *s, int64_t bytes, lg__buffer *to)
{
        (void)s, (void)bytes, (void)to;
        return lg__can_normalize(c, op);
}
#endif
