/* plot.c - curves of loss and accuracy as a PNG picture, drawn by gnuplot. */
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

/* Sets a variable of gnuplot to `text` in single quotes; quotes inside it are doubled. */
static void set(FILE *f, const char *variable, const char *text)
{
        fprintf(f, "%s = '", variable);
        for (; *text; text++) {
                if (*text == '\'')
                        fputc('\'', f);
                fputc(*text, f);
        }
        fputs("'\n", f);
}

/* Commands that draw a panel for the loss and one for the accuracy, with at most ten epoch numbers on each axis. */
static const char panels[] =
        "set datafile separator ','\n"
        "stats figures skip 1 using 4 name 'accuracy' nooutput\n"
        "stats figures skip 1 using 1 nooutput\n"
        "set terminal pngcairo size 1200,500\n"
        "set output picture\n"
        "set multiplot layout 1,2 title model.' on Fashion-MNIST' font ',14' noenhanced\n"
        "set xlabel 'epoch'\n"
        "set xrange [STATS_min - 0.5:STATS_max + 0.5]\n"
        "set xtics ceil((STATS_max - STATS_min + 1) / 10)\n"
        "set linetype 1 lw 2 pt 7\n"
        "set linetype 2 lw 2 pt 5\n"
        "set grid\n"
        "set key tmargin horizontal\n"
        "if (STATS_records > 50) { set style data lines } else { set style data linespoints }\n"
        "set ylabel 'loss'\n"
        "plot figures skip 1 using 1:2 title 'training loss', '' skip 1 using 1:3 title 'test loss'\n"
        "set ylabel 'accuracy'\n"
        "set yrange [accuracy_min - 0.005:accuracy_max + 0.005]\n"
        "plot figures skip 1 using 1:4 title 'test accuracy' lt 2\n"
        "unset multiplot\n";

bool plot_write(const char *csv, const char *png, const char *model)
{
        FILE *f = popen("gnuplot", "w");
        if (!f)
                return false;
        set(f, "figures", csv);
        set(f, "picture", png);
        set(f, "model", model);
        fputs(panels, f);
        return pclose(f) == 0 && access(png, R_OK) == 0;
}
