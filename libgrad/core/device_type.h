/* device_type.h - the types of devices. Private to libgrad/. */
#ifndef LG_DEVICE_TYPE_H
#define LG_DEVICE_TYPE_H

#include "../kernels/kernels.h"

/* "cuda" */
const char *lg__device_type_name(lg_device_type type);
/* The interface of a device type, whose module is loaded if need be; NULL and a reason in words. */
const lg_device_api *lg__device_type(lg_device_type type, char *reason, size_t size);

#endif
