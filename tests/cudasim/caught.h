/* caught.h - runs a deliberate bug in a process of its own, which must end with words about it. */
#ifndef CAUGHT_H
#define CAUGHT_H

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
extern "C" {
#include <cmocka.h>
}

/* Runs the bug; returns how it ended (signal or exit code) and what it said. */
static int ending_of(void (*bug)(), std::string *said)
{
        int pipe_[2], status = 0;
        assert_int_equal(pipe(pipe_), 0);
        pid_t child = fork();
        if (child == 0) {
                dup2(pipe_[1], 2);
                signal(SIGABRT, SIG_DFL);
                signal(SIGSEGV, SIG_DFL);
                bug();
                _exit(0);
        }
        close(pipe_[1]);
        char buffer[4096];
        for (ssize_t n; (n = read(pipe_[0], buffer, sizeof buffer)) > 0;)
                said->append(buffer, (size_t)n);
        close(pipe_[0]);
        waitpid(child, &status, 0);
        return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void caught(void (*bug)(), const char *words)
{
        std::string said;
        int end = ending_of(bug, &said);
        bool goes_on = strcmp(words, "data race") == 0; /* where ThreadSanitizer does not halt */
        if ((end == 0 && !goes_on) || said.find(words) == std::string::npos)
                fail_msg("ended with %d and said \"%s\", not \"%s\"", end, said.c_str(), words);
}

#endif
