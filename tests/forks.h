/* forks.h - what tests of fork() have in common: what sanitizers cannot do, and how a child must end. */
#ifndef LG_TEST_FORKS_H
#define LG_TEST_FORKS_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include "tests.h"

/* GCC's ThreadSanitizer takes a thread of a child for one of its parent, and stops. */
#ifdef __SANITIZE_THREAD__
static const bool forks = false;
#else
static const bool forks = true;
#endif
/* A thread that is starting may hold locks of a sanitizer, which nobody gives back in the child. */
static const bool forks_among_starts = !SANITIZED;

static inline void child_ends_well(pid_t child)
{
        int status;
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
