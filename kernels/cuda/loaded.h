/* loaded.h - libraries that are not linked but loaded when they are first needed; they stay loaded. */
#ifndef LG_CUDA_LOADED_H
#define LG_CUDA_LOADED_H

#include <stddef.h>

typedef struct lg_loaded_function {
        const char *name;
        void **to;       /* receives the address of the function */
        void *simulated; /* address of the function in a simulation of CUDA */
} lg_loaded_function;

/* A row of a table of lg_loaded_function; the F(member of *l, function) of an X-macro. */
#ifdef LG_CUDASIM
#define LG_LOADED(member, function) {#function, (void **)&l->member, (void *)function},
#else
#define LG_LOADED(member, function) {#function, (void **)&l->member, NULL},
#endif

/* Loads `file` and the functions of `table`. Returns false, with the cause in `reason` (`size` bytes), if the file or a
 * function is missing. In a simulation all are present, unless the environment variable simulation_switch is "0". */
bool lg_load_functions(const char *file, const char *simulation_switch, const lg_loaded_function *table, size_t count,
                       char *reason, size_t size);

#endif
