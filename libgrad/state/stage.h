/* stage.h - values on their way into what objects hold: all are made before any is put in its place. Private to state/.
 */
#ifndef LG_STATE_STAGE_H
#define LG_STATE_STAGE_H

#include "roster.h"

/* What an item of a roster gets: a tensor of its dtype and shape on its device, or a number; or that it goes. */
typedef struct lg__staged {
        lg__held *to;
        lg_tensor *tensor;
        const struct lg__weight *late; /* its values are put there by others */
        bool goes;
        union {
                int64_t i64;
                uint64_t u64;
                double f64;
                bool flag;
                const char *text; /* of the file that is open */
        } number;
} lg__staged;

/* Puts everything in its place: tensors that are there keep their handles. Only a device that does not work any more
 * can make it fail. */
bool lg__stage_commit(lg__roster *r, lg__staged *all, int64_t count);

#endif
