/* round_trip.h - the time of a word from one core to another and back. */
#ifndef ROUND_TRIP_H
#define ROUND_TRIP_H

/* Returns the seconds in which a word goes from one thread to another and back, the least of several rounds: about
 * 0.1 us where their cores share a cache, several times that where they do not. The threads run on these processors, by
 * Linux's numbers, or anywhere if -1. Returns 0 if there is no second thread or a processor may not be used. */
double round_trip(int from, int to);

/* Prints, in lines of processors with about the same time, the round trip from the first processor that this process
 * may use to each of the others. */
void print_round_trips(void);

#endif
