/* resident.h - the resident memory of this process, from Linux's /proc. */
#ifndef RESIDENT_H
#define RESIDENT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Returns the bytes of a line such as "VmHWM:  1234 kB" of /proc/self/status, or -1 if there is none. */
static inline int64_t resident(const char *name)
{
        char line[256];
        long long kilobytes = -1;
        FILE *f = fopen("/proc/self/status", "r");
        while (f && fgets(line, sizeof line, f))
                if (!strncmp(line, name, strlen(name)))
                        sscanf(line + strlen(name) + 1, "%lld", &kilobytes);
        if (f)
                fclose(f);
        return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* Resets VmHWM, the peak, to the current resident size. */
static inline void resident_reset(void)
{
        FILE *f = fopen("/proc/self/clear_refs", "w");
        if (f) {
                fputs("5", f);
                fclose(f);
        }
}

#endif
