/* made.c - every generated call succeeds for some operands, since fuzzing one that never does would be for nothing; and
 * each is an error, without a leak, when any of its allocations fails. */
#include "vm.h"

#define TRIES 4000

int main(void)
{
        return made_that_fail(TRIES) != 0;
}
