/* csv.h - a CSV file with the figures of each epoch, and the picture that is drawn from it. */
#ifndef CSV_H
#define CSV_H

#include "run.h"

/* The CSV file: that of --csv, or a temporary one named after the picture of --plot. */
typedef struct csv {
        FILE *f; /* NULL if this process writes no CSV file */
        char name[4096];
        bool temporary;
} csv;

/* Creates the file, or keeps its lines of finished epochs if the run is resumed. Returns false after an error. */
bool csv_open(csv *file, run *r);
void csv_write(csv *file, run *r, const figures *f);
/* Closes the file and draws the picture of --plot, unless there is an error. */
void csv_close(csv *file, run *r);

#endif
