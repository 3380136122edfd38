/* device.c - devices: their names, the modules they come from, and the queue a context has on each. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core.h"

/* Where the module of a device type is found: a path in an environment variable, else a file name. */
typedef struct module_row {
        const char *name, *variable, *file;
} module_row;
static const module_row rows[LG_DEVICE_TYPE_COUNT] = {
        [LG_DEVICE_NONE] = {"none", NULL, NULL},
        [LG_DEVICE_CPU] = {"cpu", NULL, NULL},
        [LG_DEVICE_CUDA] = {"cuda", "LIBGRAD_CUDA", "libgrad-cuda.so.0"},
        [LG_DEVICE_SHADOW] = {"shadow", "LIBGRAD_SHADOW", NULL},
};

static const char *const names[LG_DEVICE_TYPE_COUNT][8] = {
        [LG_DEVICE_NONE] = {"none"},
        [LG_DEVICE_CPU] = {"cpu"},
        [LG_DEVICE_CUDA] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"},
        [LG_DEVICE_SHADOW] = {"shadow:0", "shadow:1"},
};

const char *lg_device_name(lg_device device)
{
        if ((unsigned)device.type >= LG_DEVICE_TYPE_COUNT)
                return "unknown device";
        const char *name = (unsigned)device.index < 8 ? names[device.type][device.index] : NULL;
        return name ? name : rows[device.type].name;
}

lg_device lg_cpu(void)
{
        return (lg_device){LG_DEVICE_CPU, 0};
}

bool lg_device_equal(lg_device a, lg_device b)
{
        return a.type == b.type && a.index == b.index;
}

/* The folder that libgrad.so lies in, with a slash; empty if that is not known. */
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

static void *open_module(const module_row *row, char *reason, size_t size)
{
        char path[4096];
        const char *named = getenv(row->variable);
        if (named)
                snprintf(path, sizeof path, "%s", named);
        else if (row->file) {
                own_folder(path, sizeof path - 64);
                strcat(path, row->file);
        } else {
                snprintf(reason, size, "$%s does not name its module", row->variable);
                return NULL;
        }
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!module && !named && row->file)
                module = dlopen(row->file, RTLD_NOW | RTLD_LOCAL);
        if (!module)
                snprintf(reason, size, "its module could not be loaded: %s", dlerror());
        return module;
}

/* The table of a device type; NULL and a reason. The system keeps a module loaded once it is; asking again is cheap. */
static const lg_device_api *api_of(lg_device_type type, char *reason, size_t size)
{
        if (type == LG_DEVICE_CPU)
                return lg_cpu_device();
        const module_row *row = &rows[type];
        void *module = open_module(row, reason, size);
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

static void *scratch(lg_queue *q, size_t bytes)
{
        lg__device *d = q->owner;
        lg__block *block = lg__cache_get(&d->cache, bytes ? bytes : 1);
        if (!block) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for scratch");
                return NULL;
        }
        block->next = d->scratch;
        d->scratch = block;
        return block->p;
}

static lg__device *open_device(lg_ctx *c, lg_device id, const lg_device_api *api)
{
        char reason[256] = "";
        lg__device *d = lg__host_alloc(c, sizeof *d);
        lg_queue *q = d ? lg__alloc(c, api->queue_size) : NULL;
        if (!q) {
                if (d)
                        lg__host_free(c, d, sizeof *d);
                return NULL;
        }
        *d = (lg__device){.id = id, .api = api, .queue = q, .cache = {.ctx = c, .device = id}};
        q->api = api;
        q->index = id.index;
        q->threads = c->threads;
        q->deterministic = c->deterministic;
        q->workspace = scratch;
        q->owner = d;
        if (!api->open(q, reason, sizeof reason)) {
                api->close(q);
                lg__free(c, q, api->queue_size);
                lg__host_free(c, d, sizeof *d);
                return lg__fail(c, LG_ERR_DEVICE, "%s cannot be used: %s", lg_device_name(id), reason);
        }
        d->next = c->devices;
        c->devices = d;
        return d;
}

lg__device *lg__device_get(lg_ctx *c, lg_device id)
{
        char reason[512] = "";
        if (id.type == LG_DEVICE_NONE)
                id = c->default_device;
        for (lg__device *d = c->devices; d; d = d->next)
                if (lg_device_equal(d->id, id))
                        return d;
        if ((unsigned)id.type >= LG_DEVICE_TYPE_COUNT)
                return lg__fail(c, LG_ERR_ARGUMENT, "there is no device type %d", (int)id.type);
        const lg_device_api *api = api_of(id.type, reason, sizeof reason);
        int count = api ? api->count(reason, sizeof reason) : 0;
        if (count == 0)
                return lg__fail(c, LG_ERR_DEVICE, "there is no device %s: %s; there is cpu", lg_device_name(id),
                                reason);
        if (id.index < 0 || id.index >= count)
                return lg__fail(c, LG_ERR_DEVICE, "there is no device %s:%d; %s has %d device%s, from 0",
                                rows[id.type].name, id.index, rows[id.type].name, count, count > 1 ? "s" : "");
        return open_device(c, id, api);
}

void lg__devices_finish(lg_ctx *c)
{
        for (lg__device *d = c->devices; d; d = d->next) {
                lg_fault ignored;
                d->api->synchronize(d->queue, &ignored);
                lg__cache_empty(&d->cache);
        }
        while (c->devices) {
                lg__device *d = c->devices;
                c->devices = d->next;
                d->api->close(d->queue);
                if (d != c->cpu) /* whose cache and statistics serve until the end */
                        lg__host_free(c, d, sizeof *d);
        }
        if (!c->cpu)
                return;
        lg__device *cpu = c->cpu;
        c->cpu = NULL;
        lg__host_free(c, cpu, sizeof *cpu);
}

bool lg__kernel_done(lg__device *d, const char *op, bool ok)
{
        while (d->scratch) {
                lg__block *block = d->scratch;
                d->scratch = block->next;
                lg__cache_put(&d->cache, block);
        }
        if (ok && !d->queue->status)
                return true;
        lg_status status = d->queue->status;
        d->queue->status = LG_OK;
        lg__fail(d->cache.ctx, status == LG_NO_MEMORY ? LG_ERR_MEMORY : LG_ERR_DEVICE, "%s: on %s: %s", op,
                 lg_device_name(d->id), d->queue->message);
        return false;
}

static bool fault_error(lg_ctx *c, const lg_fault *f)
{
        static const char *const op[] = {[LG_FAULT_GATHER] = "gather",
                                         [LG_FAULT_SCATTER_ADD] = "scatter_add",
                                         [LG_FAULT_INDEX_SELECT] = "index_select",
                                         [LG_FAULT_INDEX_ADD] = "index_add",
                                         [LG_FAULT_EMBEDDING] = "embedding",
                                         [LG_FAULT_ONE_HOT] = "one_hot"};
        if (f->code == LG_FAULT_LABEL)
                return lg__fail(
                        c, LG_ERR_ARGUMENT,
                        "cross_entropy or nll: target holds the class index %lld, but x has %lld classes (0 to %lld)",
                        (long long)f->value, (long long)f->limit, (long long)f->limit - 1);
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: index holds %lld, but there are %lld places to point at, from 0 on",
                        op[f->code], (long long)f->value, (long long)f->limit);
}

bool lg__device_wait(lg__device *d)
{
        lg_fault fault = {0};
        if (!d->api->synchronize(d->queue, &fault))
                return lg__kernel_done(d, "lg_synchronize", false);
        return fault.code == LG_FAULT_NONE || fault_error(d->cache.ctx, &fault);
}

bool lg_synchronize(lg_ctx *c)
{
        if (!lg__ok(c))
                return false;
        bool ok = true;
        for (lg__device *d = c->devices; d; d = d->next)
                ok = lg__device_wait(d) && ok;
        return ok;
}

int lg_device_count(lg_ctx *c, lg_device_type type)
{
        char reason[512];
        if (!c || type <= LG_DEVICE_NONE || type >= LG_DEVICE_TYPE_COUNT)
                return 0;
        const lg_device_api *api = api_of(type, reason, sizeof reason);
        return api ? api->count(reason, sizeof reason) : 0;
}

lg_device lg_try_cuda(lg_ctx *c, int index)
{
        return index >= 0 && index < lg_device_count(c, LG_DEVICE_CUDA) ? (lg_device){LG_DEVICE_CUDA, index} : lg_cpu();
}

/* The index behind a device's name: 0 for none, -1 if it is no number. One too big for any device stays that. */
static int parse_index(const char *text)
{
        if (!*text)
                return 0;
        char *end;
        long index = *text == ':' && text[1] >= '0' && text[1] <= '9' ? strtol(text + 1, &end, 10) : -1;
        return index < 0 || *end ? -1 : index < INT_MAX ? (int)index : INT_MAX;
}

lg_device lg_parse_device(lg_ctx *c, const char *text)
{
        lg_device none = {LG_DEVICE_NONE, 0};
        if (!lg__ok(c))
                return none;
        for (int type = LG_DEVICE_CPU; text && type < LG_DEVICE_TYPE_COUNT; type++) {
                size_t n = strlen(rows[type].name);
                int index = strncmp(text, rows[type].name, n) == 0 ? parse_index(text + n) : -1;
                lg_device device = {(lg_device_type)type, index};
                if (index >= 0)
                        return lg__device_get(c, device) ? device : none;
        }
        lg__fail(c, LG_ERR_ARGUMENT, "lg_parse_device: \"%s\" is no device; write cpu, cuda or cuda:1",
                 text ? text : "NULL");
        return none;
}

lg_device lg_default_device(lg_ctx *c, lg_device device)
{
        lg_device was = c ? c->default_device : (lg_device){LG_DEVICE_NONE, 0};
        if (lg__ok(c) && device.type != LG_DEVICE_NONE && lg__device_get(c, device))
                c->default_device = device;
        return was;
}

bool lg_device_info(lg_ctx *c, lg_device device, lg_device_info_t *ret)
{
        lg_device_facts facts;
        if (!lg__ok(c))
                return false;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_device_info: ret is NULL");
        lg__device *d = lg__device_get(c, device);
        if (!d)
                return false;
        if (!d->api->facts(d->id.index, &facts))
                return lg__fail(c, LG_ERR_DEVICE, "lg_device_info: %s does not answer", lg_device_name(d->id));
        memcpy(ret->name, facts.name, sizeof ret->name);
        ret->total_bytes = facts.total_bytes;
        ret->free_bytes = facts.free_bytes;
        return true;
}
