/* device_type.c - device types: their names, and the loading of their modules. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

/* Location of the module of a device type: the path in an environment variable, or else a file name. `driver` is a
 * system library that the module needs; if that library is missing, the slow loading of the module is skipped. */
typedef struct type_row {
        const char *name, *variable, *file, *driver, *driver_name;
} type_row;
static const type_row rows[LG_DEVICE_TYPE_COUNT] = {
        [LG_DEVICE_NONE] = {"none", NULL, NULL, NULL, NULL},
        [LG_DEVICE_CPU] = {"cpu", NULL, NULL, NULL, NULL},
        [LG_DEVICE_CUDA] = {"cuda", "LIBGRAD_CUDA", "libgrad-cuda.so.1", "libcuda.so.1", "NVIDIA driver"},
        [LG_DEVICE_SHADOW] = {"shadow", "LIBGRAD_SHADOW", NULL, NULL, NULL},
};

#define EIGHT(name, tens)                                                                                              \
        name ":" tens "0", name ":" tens "1", name ":" tens "2", name ":" tens "3", name ":" tens "4",                 \
                name ":" tens "5", name ":" tens "6", name ":" tens "7"
static const char *const names[LG_DEVICE_TYPE_COUNT][16] = {
        [LG_DEVICE_NONE] = {"none"},
        [LG_DEVICE_CPU] = {"cpu"},
        [LG_DEVICE_CUDA] = {EIGHT("cuda", ""), "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13",
                            "cuda:14", "cuda:15"},
        [LG_DEVICE_SHADOW] = {EIGHT("shadow", "")},
};

const char *lg__device_type_name(lg_device_type type)
{
        return rows[type].name;
}

const char *lg_device_name(lg_device device)
{
        if ((unsigned)device.type >= LG_DEVICE_TYPE_COUNT)
                return "unknown device";
        const char *name = (unsigned)device.index < 16 ? names[device.type][device.index] : NULL;
        return name ? name : rows[device.type].name;
}

lg_device lg_cpu(void)
{
        return LG_DEVICE(LG_DEVICE_CPU, 0);
}

bool lg_device_equal(lg_device a, lg_device b)
{
        return a.type == b.type && a.index == b.index;
}

/* Sets path to the directory of libgrad.so, with a trailing slash; empty if unknown. */
static void own_folder(char *path, size_t size)
{
        Dl_info info;
        path[0] = 0;
        if (!dladdr((void *)(uintptr_t)lg_device_name, &info) || !info.dli_fname)
                return;
        const char *slash = strrchr(info.dli_fname, '/');
        if (slash && (size_t)(slash - info.dli_fname) + 2 < size) {
                memcpy(path, info.dli_fname, (size_t)(slash - info.dli_fname) + 1);
                path[slash - info.dli_fname + 1] = 0;
        }
}

static bool has_driver(const type_row *row, char *reason, size_t size)
{
        void *driver = row->driver ? dlopen(row->driver, RTLD_LAZY | RTLD_LOCAL) : NULL;
        if (driver)
                dlclose(driver);
        else if (row->driver)
                snprintf(reason, size, "there is no %s (%s)", row->driver_name, row->driver);
        return driver || !row->driver;
}

/* Loads the module of a device type. Returns NULL and a reason on failure. A module named by the environment is loaded
 * without a check for the driver, which it may not need. */
static void *open_module(const type_row *row, char *reason, size_t size)
{
        char path[4096];
        const char *named = getenv(row->variable);
        if (named)
                snprintf(path, sizeof path, "%s", named);
        else if (row->file) {
                own_folder(path, sizeof path - 64);
                strcat(path, row->file);
        } else
                path[0] = 0;
        if (!path[0]) {
                snprintf(reason, size, "$%s does not name its module", row->variable);
                return NULL;
        }
        if (!named && !has_driver(row, reason, size))
                return NULL;
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!module && !named)
                module = dlopen(row->file, RTLD_NOW | RTLD_LOCAL);
        if (!module)
                snprintf(reason, size, "its module could not be loaded: %s", dlerror());
        return module;
}

/* dlopen() keeps a loaded module, so that repeated calls are cheap. */
const lg_device_api *lg__device_type(lg_device_type type, char *reason, size_t size)
{
        if (type == LG_DEVICE_CPU)
                return lg_cpu_device();
        void *module = open_module(&rows[type], reason, size);
        if (!module)
                return NULL;
        union {
                void *symbol;
                const lg_device_api *(*get)(void);
        } entry = {dlsym(module, "lg_device_module")};
        const lg_device_api *api = entry.symbol ? entry.get() : NULL;
        if (!api || api->abi != LG_DEVICE_ABI) {
                snprintf(reason, size, "its module is of another version of libgrad");
                return NULL;
        }
        return api;
}
