/* refuse.h - the system's calls for memory and threads, which a program that links refuse.c counts and makes fail. */
#ifndef LG_TEST_REFUSE_H
#define LG_TEST_REFUSE_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum refusal { MEMORY, THREADS, REFUSALS } refusal; /* malloc and its kin, pthread_create */

typedef struct refusals {
        atomic_long live;            /* allocations of the whole process that have not been freed */
        atomic_long calls[REFUSALS]; /* since refuse_from() */
        atomic_long refused;         /* those that failed */
} refusals;

extern refusals refused;

/* From now on the n-th call of this kind fails, and all later ones if not `only` that; 0: none. */
void refuse_from(refusal kind, long n, bool only);

#endif
