/* options.c - structs passed between a program and a library of different versions. They begin with their size, or are
 * passed with their size. */
#include <string.h>
#include "core/core.h"

/* First member of every struct of options. */
typedef struct head {
        size_t size_;
} head;

#define MOST 65536 /* sanity limit in bytes: a larger size means an uninitialised struct */

static bool all_zero(const char *bytes, size_t from, size_t to)
{
        while (from < to && !bytes[from])
                from++;
        return from >= to;
}

bool lg__take(lg_ctx *c, const char *op, const void *options, void *ret, size_t size)
{
        if (!lg__ok(c))
                return false;
        if (lg__take_without(options, ret, size))
                return true;
        size_t given = ((const head *)options)->size_;
        if (given < sizeof(head) || given > MOST)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: options without their size; give them by name to the macro",
                                op);
        return lg__fail(
                c, LG_ERR_ARGUMENT,
                "%s: an option of a newer libgrad: the program was compiled with a later header than that of the "
                "library it runs with, " LG_VERSION,
                op);
}

bool lg__take_without(const void *options, void *ret, size_t size)
{
        const size_t given = options ? ((const head *)options)->size_ : 0;
        const bool sized = given >= sizeof(head) && given <= MOST;
        const size_t both = !sized ? 0 : given < size ? given : size;
        if (both)
                memcpy(ret, options, both);
        memset((char *)ret + both, 0, size - both);
        ((head *)ret)->size_ = size; /* the copy has the size that this library knows */
        return !options || (sized && all_zero(options, size, given));
}

void lg__give(void *ret, size_t size, const void *from, size_t known)
{
        size_t both = size < known ? size : known;
        memcpy(ret, from, both);
        memset((char *)ret + both, 0, size - both);
}
