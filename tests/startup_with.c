/* startup_with.c - a program that uses libgrad and never asks for CUDA. */
#include <grad.h>

int main(void)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_tensor *x = lg_ones(c, LG_SHAPE(3));
        int status = x ? 0 : 1;
        lg_close(c);
        return status;
}
