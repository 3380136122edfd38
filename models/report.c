/* report.c - a confusion matrix: how often images of each class were classified as each class. */
#include "report.h"

const char *const report_names[REPORT_CLASSES] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                  "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

void report_add(report *r, const int64_t *labels, const int64_t *predicted, int64_t n)
{
        for (int64_t i = 0; i < n; i++)
                if (labels[i] >= 0 && labels[i] < REPORT_CLASSES && predicted[i] >= 0 && predicted[i] < REPORT_CLASSES)
                        r->count[labels[i]][predicted[i]]++;
}

static void print_share(FILE *f, int64_t part, int64_t all)
{
        if (all)
                fprintf(f, "  %9.4f", (double)part / (double)all);
        else
                fprintf(f, "  %9s", "-");
}

void report_print(FILE *f, const report *r)
{
        fprintf(f, "\nrows: class; columns: predicted\n%-12s", "");
        for (int p = 0; p < REPORT_CLASSES; p++)
                fprintf(f, " %6.6s", report_names[p]);
        fprintf(f, "  %9s  %9s\n", "accuracy", "precision");
        for (int k = 0; k < REPORT_CLASSES; k++) {
                int64_t row = 0, column = 0;
                fprintf(f, "%-12s", report_names[k]);
                for (int p = 0; p < REPORT_CLASSES; p++) {
                        fprintf(f, " %6lld", (long long)r->count[k][p]);
                        row += r->count[k][p];
                        column += r->count[p][k];
                }
                print_share(f, r->count[k][k], row);
                print_share(f, r->count[k][k], column);
                fputc('\n', f);
        }
        fputc('\n', f);
}
