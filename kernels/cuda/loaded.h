/* loaded.h - a library that is not linked: it is loaded when it is first needed, and stays. */
#ifndef LG_CUDA_LOADED_H
#define LG_CUDA_LOADED_H

#include <stddef.h>

typedef struct lg_loaded_function {
        const char *name;
        void **to;       /* where its address goes */
        void *simulated; /* its address in a simulation */
} lg_loaded_function;

/* A row of a table of them, for an X-macro of F(member of *l, function). */
#ifdef LG_CUDASIM
#define LG_LOADED(member, function) {#function, (void **)&l->member, (void *)function},
#else
#define LG_LOADED(member, function) {#function, (void **)&l->member, NULL},
#endif

/* False: there is no such file, or a function is missing in it; why is in `reason`, of `size` bytes. In a simulation
 * all are there, unless the environment says otherwise with that switch, 0. */
bool lg_load_functions(const char *file, const char *simulation_switch, const lg_loaded_function *table, size_t count,
                       char *reason, size_t size);

#endif
