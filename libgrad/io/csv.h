/* csv.h - a table read from a CSV file: its fields as texts. Private. */
#ifndef LG_IO_CSV_H
#define LG_IO_CSV_H

#include "whole.h"

/* A row's fields are zero-terminated and follow each other. */
typedef struct lg__csv_row {
        const char *text;
        int64_t line; /* where it begins in the file, from 1 */
} lg__csv_row;

/* The different texts of a column, missing ones left out, in the order of their codes. */
typedef struct lg__csv_texts {
        struct lg__csv_texts *next; /* those of another column */
        int64_t column;
        const char **items; /* into the file's memory */
        int64_t count;
        size_t bytes; /* of items */
} lg__csv_texts;

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

/* How a file is to be read. */
typedef struct lg__csv_form {
        char separator;
        bool trim;
} lg__csv_form;

/* Takes t->file apart into t->rows of t->column_count fields; False: LG_ERR_FORMAT or LG_ERR_MEMORY. */
bool lg__csv_parse(lg_csv *t, lg__csv_form form);

/* The field behind one of a row. */
static inline const char *lg__csv_next(const char *field)
{
        while (*field)
                field++;
        return field + 1;
}

/* The number that a text is, between lg__point_begin and lg__point_end, as f32, f64 or i64: digits with a point and an
 * exponent, inf or nan; as i64, digits with nothing but zeros behind a point. Spaces around it are left out. Returns
 * NULL or what is wrong: "is no number". */
const char *lg__csv_number(const char *text, lg_dtype dtype, void *ret);

#endif
