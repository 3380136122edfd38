/* turns.h - loops of the library whose threads run one at a time. */
#ifndef LOCALITY_TURNS_H
#define LOCALITY_TURNS_H

#include <stdint.h>

/* Called before each loop on several threads, with 0, and after it, with the address of its range function. */
typedef void turns_fn(uintptr_t fn);
/* Lets threads take turns from now on, and counts their accesses and the caller's. */
void turns_begin(turns_fn *ended);

#endif
