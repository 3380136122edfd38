/* csv.h - a table read from a CSV file, whose fields are kept as texts. Private. */
#ifndef LG_IO_CSV_H
#define LG_IO_CSV_H

#include "source.h"

/* A row. Its fields are stored one after another, each ended by a NUL. */
typedef struct lg__csv_row {
        const char *text;
        int64_t line; /* number of the line where the row begins, from 1 */
} lg__csv_row;

/* The different texts of a column, without those that count as missing, in the order of their codes 0, 1, ... */
typedef struct lg__csv_texts {
        struct lg__csv_texts *next; /* texts of another column; NULL: none */
        int64_t column;
        int64_t count;
        const char *items[]; /* pointers into the memory of the file */
} lg__csv_texts;
static inline size_t lg__csv_texts_bytes(int64_t count)
{
        return sizeof(lg__csv_texts) + (size_t)count * sizeof(const char *);
}

struct lg_csv {
        lg__object object;
        char *path;
        lg__whole file; /* the file's memory, which holds the fields */
        lg__csv_row *rows;
        int64_t row_count, row_room;
        const char **names; /* names of the columns, stored in `file` or in `numbers` */
        int64_t column_count;
        char *numbers; /* column names "0", "1", ... if the file has no header */
        size_t numbers_bytes;
        char **missing; /* texts that count as missing values */
        int64_t missing_count;
        lg__csv_texts *texts; /* list of the columns whose texts were requested */
};

/* Returns the next field of a row. */
static inline const char *lg__csv_next(const char *field)
{
        while (*field)
                field++;
        return field + 1;
}

#endif
