/* conv.h - what the files of convolution by products share. */
#ifndef LG_CPU_CONV_H
#define LG_CPU_CONV_H

#include "cpu.h"

/* One call of the kernel. A window is the part of one group of one input image that an output pixel sees: a row of a
 * matrix, ordered (kernel, channels), zero outside the image. */
typedef struct lg_conv_job {
        const lg_conv_args *a;
        int64_t size;                 /* of an element */
        int64_t channels, outputs, k; /* of a group; k: length of a row of its windows */
        int64_t pixels, tile;         /* of the output: all, at once */
        bool direct;                  /* an image is its own matrix of windows */
        char *w;                      /* (outputs, kernel, channels of a group) */
        int slots;                    /* of the parallel loop */
        int64_t windows_bytes;        /* of each slot's matrix of windows */
        int64_t slot_bytes;           /* the same with the scratch of its products */
        char *windows;
} lg_conv_job;

/* Kernel rows [from, to) of the windows of `count` output pixels, of all images' pixels, as a matrix. */
#define lg_conv_gather LG_CPU(conv_gather)
void lg_conv_gather(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t from, int64_t to,
                    char *windows);
/* Adds the windows of `count` pixels to rows [top, bottom) of each image of dx. */
#define lg_conv_scatter LG_CPU(conv_scatter)
void lg_conv_scatter(const lg_conv_job *j, int64_t group, int64_t first, int64_t count, int64_t top, int64_t bottom,
                     const char *windows);
/* Weights of one output in (kernel, channels) order, from the (channels, kernel) of the arguments. */
#define lg_conv_kernel_first LG_CPU(conv_kernel_first)
void lg_conv_kernel_first(const lg_conv_job *j, void *to, const void *from);
/* And back: the sum of `count` of them that lie `apart` elements from each other. */
#define lg_conv_sum_back LG_CPU(conv_sum_back)
void lg_conv_sum_back(const lg_conv_job *j, void *to, const void *from, int64_t count, int64_t apart);

#endif
