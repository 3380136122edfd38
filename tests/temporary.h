/* temporary.h - a file of a test program's own, in the current folder: `path`, between begin and end. */
#ifndef LG_TEST_TEMPORARY_H
#define LG_TEST_TEMPORARY_H

#include <unistd.h>
#include "test.h"

static char path[64];

static inline int begin(void **state)
{
        (void)state;
        snprintf(path, sizeof path, "grad-XXXXXX");
        int fd = mkstemp(path);
        return fd < 0 || close(fd);
}

static inline int end(void **state)
{
        (void)state;
        unlink(path);
        return 0;
}

#endif
