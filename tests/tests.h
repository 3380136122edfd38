/* tests.h - TEST_CASE(name) {...}: a test that adds itself to those of the program. */
#ifndef LG_TESTS_H
#define LG_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Whether a sanitizer, or counting for coverage, makes all this many times as long: then SOME of many cases of a kind
 * are enough. */
#ifdef SANITIZED
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif
#define SOME(cases) (SANITIZED ? ((cases) + 4) / 5 : (cases))

struct test {
        const char *file;
        int line;
        struct CMUnitTest unit; /* no function: what comes before and after all tests of the file */
        struct test *next;
};
void add_test(struct test *t);

#define ADD_TEST(adds, ...)                                                                                            \
        __attribute__((constructor)) static void adds(void)                                                            \
        {                                                                                                              \
                static struct test added = {__FILE__, __LINE__, __VA_ARGS__, NULL};                                    \
                add_test(&added);                                                                                      \
        }

#define TEST_CASE(name) TEST_CASE_WITH(name, NULL, NULL)
#define TEST_CASE_WITH(name, before, after)                                                                            \
        static void name(void **state);                                                                                \
        ADD_TEST(add_##name, cmocka_unit_test_setup_teardown(name, before, after))                                     \
        static void name(__attribute__((unused)) void **state)

/* Functions that run before and after all tests of a file. */
#define AROUND_TESTS(before, after)                                                                                    \
        ADD_TEST(add_group, {NULL, NULL, before, after, NULL})                                                         \
        struct test

#endif
