/* controls.h - the simulator's controls (sim.h) and the CUDA module's counts, in the module that libgrad loads. */
#ifndef CONTROLS_H
#define CONTROLS_H

#include <dlfcn.h>
#include "../test.h"

/* What fails, as in sim.h. */
enum { CALL, ALLOCATION, LOAD, WAYS };

static struct controls {
        void (*fail_at)(int64_t n, bool from, int way);
        int64_t (*calls)(int way);
        int64_t (*waits)(void);
        int64_t (*copies)(void);
        int64_t (*bytes)(void);
        int64_t (*handles)(void);
        const char *(*failed)(void);
        int64_t (*products_described)(void);
        /* of the CUDA module itself; forget: frees the plans that contexts leave, of convolutions and of products */
        void (*forget)(void), (*forget_algorithms)(void);
        int64_t (*launches)(void);
} sim;

static int find_controls(void **state)
{
        (void)state;
        void *module = dlopen(getenv("LIBGRAD_CUDA"), RTLD_NOW | RTLD_LOCAL);
        if (!module)
                fail_msg("%s", dlerror());
#define FIND(name) assert_non_null(*(void **)&sim.name = dlsym(module, "cudasim_" #name))
        FIND(fail_at);
        FIND(calls);
        FIND(waits);
        FIND(copies);
        FIND(bytes);
        FIND(handles);
        FIND(failed);
        FIND(products_described);
        assert_non_null(*(void **)&sim.forget = dlsym(module, "lg_cuda_dnn_forget"));
        assert_non_null(*(void **)&sim.forget_algorithms = dlsym(module, "lg_cuda_forget_algorithms"));
        assert_non_null(*(void **)&sim.launches = dlsym(module, "lg_cuda_launches"));
        return 0;
}

#endif
