/* memory.h - counts lines of memory that threads read, by the thread that wrote them last. */
#ifndef LOCALITY_MEMORY_H
#define LOCALITY_MEMORY_H

#include <stdint.h>

enum { MOST_THREADS = 32, LINE = 64 };

/* Last writer of a line that a thread reads: the thread itself; another one, if no other thread reads the line in this
 * loop; another one, if others do, too, as with weights; no kernel since counting began. */
enum { OWN, FOREIGN, SHARED, UNWRITTEN, KINDS };

extern int64_t lines_read[KINDS]; /* each line once for each thread and loop */
extern int64_t bytes_accessed;    /* with every repetition: the clock by which threads take turns */

/* Excludes the stack of the calling thread, whose number is `thread`. */
void memory_exclude_stack(int thread);
/* Begins a loop, or the code between two loops. */
void memory_begin_loop(void);
/* Attributes all accesses from now on to a thread; -1: counts none. */
void memory_run(int thread);

#endif
