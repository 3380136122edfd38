/* startup.c - how many more pages of memory one program touches from start to end than another: startup A B PAGES.
 * Counts what a start costs, relocations and first uses, where times would depend on what else the machine does. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

/* Returns the page faults of one run that needed no reading from a disk. */
static long run_once(const char *program)
{
        char *arguments[] = {(char *)(size_t)program, NULL};
        struct rusage used = {0};
        pid_t child;
        int status = -1;
        if (posix_spawn(&child, program, NULL, NULL, arguments, environ) != 0 ||
            wait4(child, &status, 0, &used) != child || status != 0) {
                fprintf(stderr, "%s did not run: status %d\n", program, status);
                exit(1);
        }
        return used.ru_minflt;
}

int main(int argc, char **argv)
{
        long fewest[2] = {1000000, 1000000};
        if (argc != 4)
                return 2;
        for (int i = 0; i < 10; i++) {
                long pages = run_once(argv[1 + i % 2]);
                if (pages < fewest[i % 2])
                        fewest[i % 2] = pages;
        }
        printf("%s: %ld pages, %s: %ld pages\n", argv[1], fewest[0], argv[2], fewest[1]);
        return fewest[0] - fewest[1] <= atol(argv[3]) ? 0 : 1;
}
