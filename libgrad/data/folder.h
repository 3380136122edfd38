/* folder.h - the pictures of a folder in which each class has a folder of its own. Private to data/. */
#ifndef LG_DATA_FOLDER_H
#define LG_DATA_FOLDER_H

#include "tensor/tensor.h"

typedef struct lg__picture {
        char *path;
        int64_t label; /* the place of its class */
} lg__picture;

/* Texts that grow. */
typedef struct lg__texts {
        char **items;
        int64_t count, room;
} lg__texts;

typedef struct lg__folder {
        lg__texts classes; /* names of the folders, by their bytes */
        lg__picture *pictures;
        int64_t count, room;
} lg__folder;

/* Finds the PNG files in path/CLASS/ and in folders there. False, with an error "op: ...": LG_ERR_IO, LG_ERR_FORMAT (a
 * class without pictures, no classes), LG_ERR_MEMORY; what was found by then is in f, which is empty at first. */
bool lg__folder_read(lg_ctx *c, const char *op, const char *path, lg__folder *f);
void lg__folder_free(lg_ctx *c, lg__folder *f);

#endif
