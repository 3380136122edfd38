/* items.c - the list of all items, and the choice of items by name. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

enum { MOST_ITEMS = 128 };

static item of_kernel(const kernel *k, place place)
{
        item it = {.what = k->what, .place = place, .make = k->make, .run = k->run, .units = 1};
        it.elements = place == IN_CACHE ? CACHE_ELEMENTS : MEMORY_ELEMENTS;
        it.bytes = k->passes * it.elements * (double)sizeof(float);
        snprintf(it.name, sizeof it.name, "%s/%s", k->name, place == IN_CACHE ? "cache" : "memory");
        return it;
}

const item *items_all(int *ret_count)
{
        static item all[MOST_ITEMS];
        int n = 0;
        for (int i = 0; i < workload_count; i++)
                all[n++] = workloads[i];
        for (int i = 0; i < kernel_count; i++)
                for (int place = IN_CACHE; place <= IN_MEMORY; place++)
                        all[n++] = of_kernel(&kernels[i], (enum place)place);
        *ret_count = n;
        return all;
}

/* Returns whether a name of `length` bytes is that of the item, of its kernel, or of its group. */
static bool named(const item *it, const char *name, size_t length)
{
        const char *slash = strchr(it->name, '/');
        const char *group = it->place == WORKLOAD ? "workloads" : it->place == LARGE ? "large" : "kernels";
        if (slash && (size_t)(slash - it->name) == length && !strncmp(it->name, name, length))
                return true;
        return (strlen(it->name) == length && !strncmp(it->name, name, length)) ||
               (strlen(group) == length && !strncmp(group, name, length));
}

bool item_chosen(const item *it, const char *names)
{
        for (const char *name = names; name;) {
                size_t length = strcspn(name, ",");
                if (named(it, name, length))
                        return true;
                name = name[length] ? name + length + 1 : NULL;
        }
        return !names && it->place != LARGE;
}

char *items_unknown(const char *names)
{
        int count;
        const item *all = items_all(&count);
        for (const char *name = names; name;) {
                size_t length = strcspn(name, ",");
                bool known = false;
                for (int i = 0; i < count && !known; i++)
                        known = named(&all[i], name, length);
                if (!known)
                        return strndup(name, length);
                name = name[length] ? name + length + 1 : NULL;
        }
        return NULL;
}
