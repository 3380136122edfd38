/* loaded.cu - loading the functions of a library that is not linked (loaded.h). */
#include "loaded.h"
#include <stdio.h>
#ifdef LG_CUDASIM
#include <stdlib.h>
#include <string.h>

bool lg_load_functions(const char *file, const char *simulation_switch, const lg_loaded_function *table, size_t count,
                       char *reason, size_t size)
{
        const char *wanted = getenv(simulation_switch);
        (void)file;
        if (wanted && strcmp(wanted, "0") == 0) {
                snprintf(reason, size, "$%s is 0", simulation_switch);
                return false;
        }
        for (size_t i = 0; i < count; i++)
                *table[i].to = table[i].simulated;
        return true;
}
#else
#include <dlfcn.h>

bool lg_load_functions(const char *file, const char *, const lg_loaded_function *table, size_t count, char *reason,
                       size_t size)
{
        void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (!module) {
                const char *words = dlerror();
                if (words)
                        snprintf(reason, size, "%s", words);
                else
                        snprintf(reason, size, "%s could not be loaded", file);
                return false;
        }
        for (size_t i = 0; i < count; i++) {
                *table[i].to = dlsym(module, table[i].name);
                if (!*table[i].to) {
                        snprintf(reason, size, "%s has no %s", file, table[i].name);
                        dlclose(module);
                        return false;
                }
        }
        return true;
}
#endif
