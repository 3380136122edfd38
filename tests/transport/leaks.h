/* leaks.h - whether a process has leaked, asked while MPI is there: its own remains come later. */
#ifndef LG_TEST_LEAKS_H
#define LG_TEST_LEAKS_H

/* LeakSanitizer's, where the program was built with it. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static inline int leaks(void)
{
        return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}

#endif
