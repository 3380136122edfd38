/* plot.c - curves as PNG pictures, drawn by gnuplot. */
#include <math.h>
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

/* Commands that begin a picture. The title is above, the legend below all else. */
static const char frame[] = "set terminal pngcairo size 1000,600 fontscale 1.1\n"
                            "set output picture\n"
                            "set title name noenhanced\n"
                            "set key bmargin center horizontal spacing 1.3\n"
                            "set bmargin 5.5\n"
                            "set grid lt 1 lw 1 lc rgb '#e0e0e0'\n"
                            "set linetype 1 lw 2 pt 7 ps 0.8 lc rgb '#0f4c81'\n"
                            "set linetype 2 lw 2 pt 9 ps 0.9 lc rgb '#5b9bd5'\n"
                            "set linetype 3 lw 2 pt 5 ps 0.7 lc rgb '#c8500a'\n"
                            "set linetype 4 lw 1.5 lc rgb '#a0a0a0'\n";

/* Starts gnuplot with a picture of that title. Returns NULL if it cannot be started. */
static FILE *begin(const char *png, const char *model, const char *what)
{
        char title[300];
        FILE *f = popen("gnuplot", "w");
        if (!f)
                return NULL;
        snprintf(title, sizeof title, "%.60s%s on Fashion-MNIST%s", model, strlen(model) > 60 ? "..." : "", what);
        set(f, "picture", png);
        set(f, "name", title);
        fputs(frame, f);
        return f;
}

static bool finish(FILE *f, const char *png)
{
        return pclose(f) == 0 && access(png, R_OK) == 0;
}

/* Commands that draw the losses by the left axis and the accuracy by the right one, each in the colour of its axis,
 * with at most ten epoch numbers. Losses of several magnitudes get a logarithmic axis. Single values have some room
 * around them. */
static const char epochs[] =
        "set datafile separator ','\n"
        "stats figures skip 1 using 1 name 'epoch' nooutput\n"
        "stats figures skip 1 using 4 name 'accuracy' nooutput\n"
        "low = high = NaN\n"
        "least(a, b) = b < a || a != a ? b : a\n"
        "greatest(a, b) = b > a || a != a ? b : a\n"
        "do for [c = 2:3] {\n"
        "stats figures skip 1 using (low = least(low, column(c)), high = greatest(high, column(c))) nooutput\n"
        "}\n"
        "if (low != low) { low = 0; high = 1 }\n"
        "room = high > low ? 0.05 * (high - low) : 0.05 * abs(high) + 0.01\n"
        "set yrange [low - room:high + room]\n"
        "if (low > 0 && high > 30 * low) {\n"
        "set logscale y\n"
        "set format y '%.3g'\n"
        "set yrange [low / 1.3:high * 1.3]\n"
        "}\n"
        "room = accuracy_max > accuracy_min ? 0.05 * (accuracy_max - accuracy_min) : 0.01\n"
        "set y2range [accuracy_min - room:accuracy_max + room]\n"
        "set xrange [epoch_min - 0.5:epoch_max + 0.5]\n"
        "set xtics ceil((epoch_max - epoch_min + 1) / 10)\n"
        "set ytics nomirror tc rgb '#0f4c81'\n"
        "set y2tics tc rgb '#c8500a'\n"
        "set xlabel 'epoch'\n"
        "set ylabel 'loss' tc rgb '#0f4c81'\n"
        "set y2label 'accuracy' tc rgb '#c8500a'\n"
        "if (epoch_records > 50) { set style data lines } else { set style data linespoints }\n"
        "plot figures skip 1 using 1:2 title 'training loss (left)', '' skip 1 using 1:3 title 'test loss (left)',"
        " '' skip 1 using 1:4 axes x1y2 title 'test accuracy (right)'\n";

bool plot_epochs(const char *csv, const char *png, const char *model)
{
        FILE *f = begin(png, model, "");
        if (!f)
                return false;
        set(f, "figures", csv);
        fputs(epochs, f);
        return finish(f, png);
}

/* Sets the range to the losses up to the lowest smoothed one; what diverges leaves the picture. */
static void set_range(FILE *f, const lg_lr_point *p, int64_t count)
{
        int64_t bottom = 0;
        for (int64_t i = 1; i < count; i++)
                bottom = p[i].smoothed < p[bottom].smoothed ? i : bottom;
        double low = p[0].loss, high = low;
        for (int64_t i = 0; i <= bottom; i++) {
                low = fmin(low, p[i].loss);
                high = fmax(high, p[i].loss);
        }
        if (high > low) /* else gnuplot chooses the range */
                fprintf(f, "set yrange [%.9g:%.9g]\n", low - 0.1 * (high - low), high + 0.5 * (high - low));
}

bool plot_rates(const lg_lr_point *p, int64_t count, double found, const char *png, const char *model)
{
        FILE *f = begin(png, model, ": loss at growing rates");
        if (!f)
                return false;
        fputs("$curve << end\n", f);
        for (int64_t i = 0; i < count; i++)
                fprintf(f, "%.9g %.9g %.9g\n", p[i].lr, p[i].loss, p[i].smoothed);
        fputs("end\nset logscale x\nset format x '10^{%L}'\nset xlabel 'learning rate'\nset ylabel 'loss'\n", f);
        set_range(f, p, count);
        const bool is_left = found < p[0].lr * pow(p[count - 1].lr / p[0].lr, 0.3);
        if (found > 0)
                fprintf(f,
                        "set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lw 2 lc rgb '#c8500a' dt 2\n"
                        "set label ' suggestion: %.3g ' at %.9g, graph 0.95 %s tc rgb '#c8500a'\n",
                        found, found, found, found, is_left ? "left" : "right");
        fputs("plot $curve using 1:2 with lines lt 4 title 'loss', '' using 1:3 with lines lt 1 title 'smoothed "
              "loss'\n",
              f);
        return finish(f, png);
}
