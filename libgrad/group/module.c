/* module.c - loads the transport module of the MPI whose launcher has started this process. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "group/queue.h"

/* Environment variables by which a launcher is recognised. */
typedef struct launcher {
        const char *count, *sign; /* count: holds the number of processes; sign: must be set, too, unless NULL */
        const char *name, *mpi;   /* name: the launcher's, for messages; mpi: the MPI's in file names */
} launcher;
static const launcher launchers[] = {
        {"OMPI_COMM_WORLD_SIZE", NULL, "Open MPI's launcher", "openmpi"},
        {"PMI_SIZE", NULL, "MPICH's launcher", "mpich"},
        {"SLURM_STEP_NUM_TASKS", "PMIX_RANK", "Slurm, with PMIx,", "openmpi"},
        {"SLURM_STEP_NUM_TASKS", NULL, "Slurm", "mpich"},
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

/* Loads a file from libgrad's own folder if it is there, else from the system's search path. NULL: see dlerror(). */
static void *open_beside_us(const char *file)
{
        char path[4096];
        Dl_info info;
        const char *slash =
                dladdr((void *)(uintptr_t)lg_error, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
        const int folder = slash ? (int)(slash - info.dli_fname) + 1 : 0;
        const int n = snprintf(path, sizeof path, "%.*s%s", folder, slash ? info.dli_fname : "", file);
        const bool is_there = folder && n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
        return dlopen(is_there ? path : file, RTLD_NOW | RTLD_LOCAL);
}

static void *open_module(lg_ctx *c, const char *named, const launcher *l, int launched)
{
        char file[64] = "";
        if (!named)
                snprintf(file, sizeof file, "libgrad-%s.so.1", l->mpi);
        void *module = named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : open_beside_us(file);
        if (!module && named)
                return lg__fail(c, LG_ERR_COMM,
                                "lg_group_open: the module that LIBGRAD_MPI names could not be loaded: %s", dlerror());
        if (!module)
                return lg__fail(c, LG_ERR_COMM,
                                "lg_group_open: %s=%d: %s has started this process, but the module for its MPI could "
                                "not be loaded: %s; install libgrad1-%s, or build libgrad where lib%s-dev is installed",
                                l->count, launched, l->name, dlerror(), l->mpi, l->mpi);
        return module;
}

const lg_transport_api *lg__transport_module(lg_ctx *c, int *ret_launched)
{
        const launcher *l = find(ret_launched);
        const char *named = getenv("LIBGRAD_MPI");
        if (named ? !*named : !l)
                return NULL;
        void *module = open_module(c, named, l, *ret_launched);
        if (!module)
                return NULL;
        union {
                void *symbol;
                lg_transport_module_fn *get;
        } entry = {dlsym(module, "lg_transport_module")};
        const lg_transport_api *api = entry.symbol ? entry.get() : NULL;
        if (!api || api->abi != LG_TRANSPORT_ABI)
                return lg__fail(c, LG_ERR_COMM, "lg_group_open: the module %s is of another version of libgrad",
                                named ? named : l->mpi);
        return api;
}
