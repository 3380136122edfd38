/* transfer.h - copies between host and device memory, and waits of the host for a device. */
#ifndef LG_CUDA_TRANSFER_H
#define LG_CUDA_TRANSFER_H

#include "cuda.h"

/* The functions of lg_device_api, to be called with q's device current. */
bool lg_cuda_upload(lg_queue *q, void *device, const void *host, size_t bytes);
bool lg_cuda_download(lg_queue *q, void *host, const void *device, size_t bytes);
bool lg_cuda_item(lg_queue *q, const void *p, lg_dtype from, void *ret, lg_dtype to, lg_device_error *error);
bool lg_cuda_synchronize(lg_queue *q, lg_device_error *ret);
bool lg_cuda_clear_error(lg_queue *q);

/* Returns whether event e has happened. If wait, makes the host wait for it: for operations of links before e no longer
 * than their time limit. */
bool lg_cuda_finish(lg_queue *q, cudaEvent_t e, bool wait = true);

#endif
