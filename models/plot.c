/* plot.c - loss and accuracy curves as a picture, by gnuplot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "plot.h"

bool plot_possible(void)
{
        const char *path = getenv("PATH");
        char file[4096];
        while (path && *path) {
                size_t n = strcspn(path, ":");
                snprintf(file, sizeof file, "%.*s/gnuplot", (int)n, path);
                if (access(file, X_OK) == 0)
                        return true;
                path += n + (path[n] == ':');
        }
        return false;
}

/* A file's name as gnuplot reads it: in single quotes, those inside it doubled. */
static void quoted(FILE *f, const char *s)
{
        fputc('\'', f);
        for (; *s; s++) {
                if (*s == '\'')
                        fputc('\'', f);
                fputc(*s, f);
        }
        fputc('\'', f);
}

bool plot_write(const char *csv, const char *png)
{
        FILE *f = popen("gnuplot", "w");
        if (!f)
                return false;
        fputs("set terminal pngcairo size 1000,500\nset output ", f);
        quoted(f, png);
        fputs("\nset datafile separator ','\nset key autotitle columnhead\nset xlabel 'epoch'\nset ylabel 'loss'\n"
              "set y2label 'accuracy'\nset ytics nomirror\nset y2tics\nset xtics 1\nset grid\nset key bottom center "
              "outside "
              "horizontal\nplot ",
              f);
        quoted(f, csv);
        fputs(" using 1:2 with linespoints title 'train loss', '' using 1:3 with linespoints title 'test loss', "
              "'' using 1:4 axes x1y2 with linespoints title 'test accuracy'\n",
              f);
        return pclose(f) == 0 && access(png, R_OK) == 0;
}
