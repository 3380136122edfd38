/* onednn.h - convolution by oneDNN: compiled once, and only where the library is. */
#ifndef LG_CPU_ONEDNN_H
#define LG_CPU_ONEDNN_H

#include "../kernels.h"

typedef enum lg_onednn_result {
        LG_ONEDNN_DONE,
        LG_ONEDNN_FAILED, /* the queue knows why */
        LG_ONEDNN_REFUSED /* oneDNN has nothing for this, or what it has is slow */
} lg_onednn_result;

/* The conv kernel, f32. The bits of WEIGHT_GRAD depend on the number of threads. */
lg_onednn_result lg__onednn_conv(lg_queue *q, const lg_conv_args *a);
/* Frees what the queue remembers of earlier calls. */
void lg__onednn_close(lg_queue *q);

#endif
