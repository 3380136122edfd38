/* weights.h - what the tests of safetensors files share. */
#ifndef LG_TEST_WEIGHTS_H
#define LG_TEST_WEIGHTS_H

#include <cjson/cJSON.h>
#include "files.h"
#include "io/safetensors.h"

/* ---- memory ---- */

static failing *json_memory;

static inline void *json_alloc(size_t bytes)
{
        failing *f = json_memory;
        f->calls++;
        if (f->fail_at && (f->only ? f->calls == f->fail_at : f->calls >= f->fail_at))
                return NULL;
        f->allocs++;
        return malloc(bytes);
}

static inline void json_free(void *p)
{
        json_memory->frees += p != NULL;
        free(p);
}

/* cJSON's requests for memory are counted and fail with the others; NULL: no more. */
static inline void fail_json_too(failing *f)
{
        cJSON_Hooks hooks = {json_alloc, json_free};
        json_memory = f;
        cJSON_InitHooks(f ? &hooks : NULL);
}

#endif
