/* png_none.c - where libgrad is built without libpng, no pictures are read or written. */
#include "png_codec.h"

static bool refuse(lg__png_wrong *ret_wrong)
{
        snprintf(ret_wrong->s, sizeof ret_wrong->s, "cannot be read: " LG__BUILT_WITHOUT("libpng", "libpng-dev"));
        return false;
}

bool lg__png_look(const void *head, size_t bytes, int64_t file_bytes, lg__png_facts *ret, lg__png_wrong *ret_wrong)
{
        (void)head, (void)bytes, (void)file_bytes, (void)ret;
        return refuse(ret_wrong);
}

bool lg__png_decode(const lg__png_facts *facts, const void *file, size_t bytes, int channels, uint8_t *out,
                    void *scratch, lg__png_wrong *ret_wrong)
{
        (void)facts, (void)file, (void)bytes, (void)channels, (void)out, (void)scratch;
        return refuse(ret_wrong);
}

size_t lg__png_encode_scratch(int64_t width)
{
        (void)width;
        return 0;
}

bool lg__png_encode(const uint8_t *planes, int channels, int64_t height, int64_t width, lg__sink *to, void *scratch,
                    lg__png_wrong *ret_wrong)
{
        (void)planes, (void)channels, (void)height, (void)width, (void)to, (void)scratch;
        return refuse(ret_wrong);
}

bool lg__png_ready(lg_ctx *c, const char *op)
{
        return lg__fail(c, LG_ERR_STATE, "%s: " LG__BUILT_WITHOUT("libpng", "libpng-dev"), op);
}
