/* status.h - figures of this process, as /proc has them. */
#ifndef LG_TEST_STATUS_H
#define LG_TEST_STATUS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "Threads:", or kilobytes as "VmRSS:"; -1: it is not there. */
static inline long status_of(const char *key)
{
        char line[200];
        long value = -1;
        FILE *f = fopen("/proc/self/status", "r");
        while (f && value < 0 && fgets(line, sizeof line, f))
                if (!strncmp(line, key, strlen(key)))
                        value = strtol(line + strlen(key), NULL, 10);
        if (f)
                fclose(f);
        return value;
}

static inline long mappings(void)
{
        long n = 0;
        FILE *f = fopen("/proc/self/maps", "r");
        for (int c; f && (c = fgetc(f)) != EOF;)
                n += c == '\n';
        if (f)
                fclose(f);
        return n;
}

static inline long open_files(void)
{
        long n = 0;
        DIR *d = opendir("/proc/self/fd");
        while (d && readdir(d))
                n++;
        if (d)
                closedir(d);
        return n;
}

/* Whether no thread but the caller's runs, or could. */
static inline bool others_sleep(void)
{
        bool sleep = true;
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; d && (e = readdir(d));) {
                char path[300], state = 'S';
                snprintf(path, sizeof path, "/proc/self/task/%s/stat", e->d_name);
                FILE *f = atoi(e->d_name) && atoi(e->d_name) != gettid() ? fopen(path, "r") : NULL;
                sleep = sleep && (!f || fscanf(f, "%*d %*s %c", &state) != 1 || state != 'R');
                if (f)
                        fclose(f);
        }
        if (d)
                closedir(d);
        return sleep;
}

#endif
