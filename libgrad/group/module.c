/* module.c - the module of the MPI whose launcher has started this process. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "group/group.h"

/* Variables by which a launcher tells how many processes there are, and whose launcher it is. */
typedef struct launcher {
        const char *count, *sign; /* `sign` is set, too; NULL: no other is asked for */
        const char *file;
} launcher;
static const launcher launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", NULL, "libgrad-openmpi.so.0"},
        {"PMI_SIZE", NULL, "libgrad-mpich.so.0"},
        {"SLURM_NTASKS", "PMIX_RANK", "libgrad-openmpi.so.0"},
        {"SLURM_NTASKS", NULL, "libgrad-mpich.so.0"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static const launcher *find(int *ret_launched)
{
        for (int i = 0; i < LAUNCHERS; i++) {
                const char *count = getenv(launchers[i].count);
                const int n = count ? atoi(count) : 0;
                const bool is_slurm = launchers[i].count[0] == 'S';
                if (n < 1 || (is_slurm && n < 2) || (launchers[i].sign && !getenv(launchers[i].sign)))
                        continue;
                *ret_launched = n;
                return &launchers[i];
        }
        *ret_launched = 1;
        return NULL;
}

static void *open_beside_us(const char *file)
{
        char path[4096];
        Dl_info info;
        const char *slash =
                dladdr((void *)(uintptr_t)lg_error, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        const int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
        const int n = snprintf(path, sizeof path, "%.*s%s", folder, slash ? info.dli_fname : "", file);
        void *module = n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        return module ? module : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

const lg_transport_api *lg__transport_module(lg_ctx *c, int *ret_launched)
{
        const launcher *l = find(ret_launched);
        const char *named = getenv("LIBGRAD_MPI"), *file = named ? named : l ? l->file : NULL;
        if (!file)
                return NULL;
        void *module = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : open_beside_us(file);
        if (!module)
                return lg__fail(c, LG_ERR_COMM,
                                "lg_group_open: %s = %d: a launcher has started this process, but the module for its "
                                "MPI could not be loaded: %s",
                                l ? l->count : "LIBGRAD_MPI", *ret_launched, dlerror());
        union {
                void *symbol;
                lg_transport_module_fn *get;
        } entry = {dlsym(module, "lg_transport_module")};
        const lg_transport_api *api = entry.symbol ? entry.get() : NULL;
        if (!api || api->abi != LG_TRANSPORT_ABI)
                return lg__fail(c, LG_ERR_COMM, "lg_group_open: %s is of another version of libgrad", file);
        return api;
}
