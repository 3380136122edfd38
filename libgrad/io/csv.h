/* csv.h - a table read from a CSV file: its fields as texts. Private. */
#ifndef LG_IO_CSV_H
#define LG_IO_CSV_H

#include "source.h"

/* A row's fields are zero-terminated and follow each other. */
typedef struct lg__csv_row {
        const char *text;
        int64_t line; /* where it begins in the file, from 1 */
} lg__csv_row;

/* The different texts of a column, missing ones left out, in the order of their codes. */
typedef struct lg__csv_texts {
        struct lg__csv_texts *next; /* those of another column */
        int64_t column;
        int64_t count;
        const char *items[]; /* into the file's memory */
} lg__csv_texts;
static inline size_t lg__csv_texts_bytes(int64_t count)
{
        return sizeof(lg__csv_texts) + (size_t)count * sizeof(const char *);
}

struct lg_csv {
        lg__object object;
        char *path;
        lg__whole file; /* its fields without what separated them */
        lg__csv_row *rows;
        int64_t row_count, row_room;
        const char **names; /* of the columns */
        int64_t column_count;
        char *numbers; /* the names where the file has none */
        size_t numbers_bytes;
        char **missing; /* texts that stand for no value */
        int64_t missing_count;
        lg__csv_texts *texts; /* of the columns that somebody has asked for */
};

/* The field behind one of a row. */
static inline const char *lg__csv_next(const char *field)
{
        while (*field)
                field++;
        return field + 1;
}

#endif
