/* narrow.h - from how many elements on kernels count in 64 bits, $CUDASIM_NARROW: included before each .cu. */
#ifndef PTX_NARROW_H
#define PTX_NARROW_H
extern "C" long ptx_narrow(void);
#endif
