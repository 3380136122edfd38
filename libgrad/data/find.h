/* find.h - where the files of a data set are. Private to data/. */
#ifndef LG_DATA_FIND_H
#define LG_DATA_FIND_H

#include "tensor/tensor.h"

#define LG__FILE_PATH 4096

typedef struct lg__where {
        const char *who;    /* the function that looks, for messages */
        const char *folder; /* of the caller; NULL: $LIBGRAD_DATA, then the system's */
        const char *sub;    /* what the data set's own folder is called in $LIBGRAD_DATA, and in .folder if in_sub */
        const char *system; /* a last folder; NULL: there is none */
        const char *advice; /* how to get the files, for messages */
        bool in_sub;
        bool zipped; /* FILE.gz does, too */
} lg__where;

/* The path of a file that is there. False: LG_ERR_IO, with the folders that were looked in. */
bool lg__find_file(lg_ctx *c, const lg__where *where, const char *file, char ret_path[LG__FILE_PATH]);

/* 1 if part is "train", 0 if it is "test"; -1: LG_ERR_ARGUMENT. */
int lg__is_train(lg_ctx *c, const char *who, const char *part);

#endif
