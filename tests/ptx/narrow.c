/* narrow.c - from how many elements on the kernels of a module that runs on GPUs count in 64 bits. */
long ptx_narrow(void)
{
        return 0x80000000;
}
