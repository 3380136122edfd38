/* graph.h - what those that keep libraries' plans and memory must know of captured graphs. */
#ifndef LG_CUDA_GRAPH_H
#define LG_CUDA_GRAPH_H

#include "cuda.h"

/* Returns whether the process has graphs. These use the plans of libraries that their calls were captured with, so that
 * no plan may be freed. */
bool lg_cuda_has_graphs(void);
/* Returns whether q's calls are being captured. */
bool lg_cuda_captures(lg_queue *q);

#endif
