/* memory.h - counts lines of memory that threads read, by the thread that wrote them last. */
#ifndef LOCALITY_MEMORY_H
#define LOCALITY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_THREADS = 32, LINE = 64 };

/* Last writer of a line that a thread reads: the thread itself; another one, if no other thread reads the line in this
 * loop; another one, if others do, too, as with weights; no kernel since counting began. */
enum { OWN, FOREIGN, SHARED, UNWRITTEN, KINDS };

extern int64_t lines_read[KINDS], activations_read[KINDS]; /* each line once for each thread and loop */
extern int64_t bytes_accessed; /* with every repetition: the clock by which threads take turns */

/* Excludes the stack of the calling thread, whose number is `thread`. */
void memory_exclude_stack(int thread);
/* Sets whether lines hold activations or their gradients; at first, none do. */
void memory_mark(const void *p, size_t bytes, bool activations);
/* Begins a loop, or the code between two loops. */
void memory_begin_loop(void);
/* Attributes all accesses from now on to a thread; -1: counts none. */
void memory_run(int thread);

#endif
