/* without.c - patterns in a libgrad that was built without PCRE2: an error that says so. */
#include "pattern.h"

lg__pattern *lg__pattern_new(lg_ctx *c, const char *op, const char *file, const char *expression, bool *ret_looks_back)
{
        (void)file, (void)expression, (void)ret_looks_back;
        return lg__fail(c, LG_ERR_STATE,
                        "%s: libgrad was built without PCRE2; install it (Debian: libpcre2-dev) and build libgrad "
                        "again",
                        op);
}

void lg__pattern_free(lg_ctx *c, lg__pattern *p)
{
        (void)c, (void)p;
}

lg__found lg__pattern_find(lg__pattern *p, const char *op, const char *s, int64_t bytes, int64_t from, bool final,
                           int64_t *ret_begin, int64_t *ret_end)
{
        (void)p, (void)op, (void)s, (void)bytes, (void)from, (void) final, (void)ret_begin, (void)ret_end;
        return LG__FOUND_ERROR;
}
