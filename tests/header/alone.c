/* alone.c - the public header compiles with nothing before it, and twice. */
#include <grad.h>
#include <grad.h>

int main(void)
{
        return lg_error(0) ? 0 : 1;
}
