/* csv.h - the figures of each epoch in a file, and the picture that is drawn of it. */
#ifndef CSV_H
#define CSV_H

#include "run.h"

/* The file of figures: the one asked for, or one beside the picture while the program runs. */
typedef struct csv {
        FILE *f; /* NULL: none is wanted */
        char name[4096];
        bool temporary;
} csv;

/* Begins the file, or, in a run that goes on, keeps what it has of the epochs that are done. False: an error. */
bool csv_open(csv *file, run *r);
void csv_write(csv *file, run *r, const figures *f);
/* Draws the picture, if there is no error. */
void csv_close(csv *file, run *r);

#endif
