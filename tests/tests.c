/* tests.c - runs the tests of one file: tests NAME [PATTERN], those of test_NAME.c whose names match.
 *
 * Without an argument, lists the files' names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests.h"

static struct test *newest;

void add_test(struct test *t)
{
        t->next = newest;
        newest = t;
}

/* In the order of files and lines: constructors run in any. */
static int compare(const void *a, const void *b)
{
        const struct test *s = *(struct test *const *)a, *t = *(struct test *const *)b;
        const int order = strcmp(s->file, t->file);
        return order ? order : s->line - t->line;
}

/* The length of NAME in .../test_NAME.c, and where it begins. */
static int find_name(const char *file, const char **ret_name)
{
        const char *slash = strrchr(file, '/');
        *ret_name = (slash ? slash + 1 : file) + strlen("test_");
        return (int)(strlen(*ret_name) - strlen(".c"));
}

int main(int argc, char **argv)
{
        size_t all = 0, n = 0;
        for (struct test *t = newest; t; t = t->next)
                all++;
        struct test **sorted = calloc(all + 1, sizeof *sorted);
        struct CMUnitTest *units = calloc(all + 1, sizeof *units), group = {0};
        if (!sorted || !units)
                return 2;
        for (struct test *t = newest; t; t = t->next)
                sorted[n++] = t;
        qsort(sorted, n, sizeof *sorted, compare);
        n = 0;
        for (size_t i = 0; i < all; i++) {
                const char *name;
                const int length = find_name(sorted[i]->file, &name);
                if (argc < 2 && (i == 0 || strcmp(sorted[i]->file, sorted[i - 1]->file) != 0))
                        printf("%.*s\n", length, name);
                if (argc < 2 || strncmp(name, argv[1], (size_t)length) != 0 || argv[1][length])
                        continue;
                if (sorted[i]->unit.test_func)
                        units[n++] = sorted[i]->unit;
                else
                        group = sorted[i]->unit;
        }
        if (argc > 1 && n == 0) {
                fprintf(stderr, "%s: there are no tests of the name %s\n", argv[0], argv[1]);
                return 2;
        }
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        const int failed = n ? _cmocka_run_group_tests(argv[1], units, n, group.setup_func, group.teardown_func) : 0;
        free(sorted), free(units);
        return failed;
}
