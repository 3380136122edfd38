/* device.c - the devices of a context: a queue for each, opened at first use, and the public functions for devices. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/observer.h"
#include "core/tape.h"

/* Notes the address of a workspace, which the runs of the tape get again. Returns false without memory. */
static bool note_scratch(lg__tape *t, void *p)
{
        if (!lg__grow(t->ctx, &t->scratch, t->scratch_count, &t->scratch_room, sizeof *t->scratch))
                return false;
        t->scratch[t->scratch_count++] = p;
        return true;
}

static void *scratch(lg_queue *q, size_t bytes)
{
        lg__device *d = q->owner;
        lg__block *block = lg__cache_get(d->arena ? d->arena : &d->cache, bytes ? bytes : 1);
        if (block && d->cache.ctx->tape && !note_scratch(d->cache.ctx->tape, block->p)) {
                lg__cache_put(block);
                block = NULL;
        }
        if (!block) {
                lg_queue_fail(q, LG_NO_MEMORY, "no memory for scratch");
                return NULL;
        }
        block->next = d->scratch;
        d->scratch = block;
        return block->p;
}

static bool release_cached(lg_queue *q)
{
        lg__cache *cache = &((lg__device *)q->owner)->cache;
        const int64_t cached = cache->stats.cached;
        lg__cache_empty(cache);
        return cache->stats.cached < cached;
}

static void destroy(lg_ctx *c, lg__device *d)
{
        lg__host_free(c, d->queue, d->api->queue_size);
        lg__host_free(c, d, sizeof *d);
}

/* Opens a device. On failure, returns NULL and writes a reason to why or, if why stays empty, has set an error. */
static lg__device *open_device(lg_ctx *c, lg_device id, const lg_device_api *api, char *why, size_t size)
{
        char reason[256] = "";
        lg__device *d = lg__host_alloc(c, sizeof *d);
        lg_queue *q = d ? lg__host_alloc(c, api->queue_size) : NULL;
        if (!q) {
                if (d)
                        lg__host_free(c, d, sizeof *d);
                return NULL;
        }
        memset(q, 0, api->queue_size);
        *d = (lg__device){.id = id, .api = api, .queue = q, .cache = {.ctx = c, .device = id}};
        q->api = api;
        q->index = id.index;
        q->threads = c->threads;
        q->deterministic = c->deterministic;
        q->tf32 = c->tf32;
        q->conv_tf32 = c->conv_tf32;
        q->workspace = scratch;
        q->release_cached = release_cached;
        q->owner = d;
        if (!api->open(q, reason, sizeof reason)) {
                api->close(q);
                destroy(c, d);
                snprintf(why, size, "%s cannot be used: %s", lg_device_name(id), reason);
                return NULL;
        }
        d->next = c->devices;
        c->devices = d;
        return d;
}

static lg__device *find(const lg_ctx *c, lg_device id)
{
        lg__device *d = c->devices;
        while (d && (d->id.type != id.type || d->id.index != id.index))
                d = d->next;
        return d;
}

/* Loads the device's module and opens the device. Fails as open_device() does. */
static lg__device *open_new(lg_ctx *c, lg_device id, char *why, size_t size)
{
        char reason[512] = "";
        const lg_device_api *api = lg__device_type(id.type, reason, sizeof reason);
        const char *name = lg__device_type_name(id.type);
        int count = api ? api->count(reason, sizeof reason) : 0;
        if (count == 0)
                snprintf(why, size, "there is no device %s: %s; there is cpu", lg_device_name(id), reason);
        else if (id.index < 0 || id.index >= count)
                snprintf(why, size, "there is no device %s:%d; %s has %d device%s, from 0", name, id.index, name, count,
                         count > 1 ? "s" : "");
        else
                return open_device(c, id, api, why, size);
        return NULL;
}

lg__device *lg__device_get(lg_ctx *c, lg_device id)
{
        if (id.type == LG_DEVICE_NONE)
                id = c->default_device;
        lg__device *d = find(c, id);
        if (d)
                return d;
        if ((unsigned)id.type >= LG_DEVICE_TYPE_COUNT)
                return lg__fail(c, LG_ERR_ARGUMENT, "there is no device type %d", (int)id.type);
        char why[640] = "";
        d = open_new(c, id, why, sizeof why);
        if (!d && why[0])
                lg__fail(c, LG_ERR_DEVICE, "%s", why);
        return d;
}

void lg__devices_empty(lg_ctx *c)
{
        for (lg__device *d = c->devices; d; d = d->next) {
                lg_device_error ignored;
                d->api->synchronize(d->queue, &ignored);
                lg__cache_empty(&d->cache);
        }
}

void lg__devices_finish(lg_ctx *c)
{
        lg__devices_empty(c);
        while (c->devices) {
                lg__device *d = c->devices;
                c->devices = d->next;
                d->api->close(d->queue);
                if (d != c->cpu) /* the CPU's cache and statistics are used until the end */
                        destroy(c, d);
        }
        if (!c->cpu)
                return;
        lg__device *cpu = c->cpu;
        c->cpu = NULL;
        destroy(c, cpu);
}

bool lg__kernel_done(lg__device *d, const char *op, bool ok)
{
        while (d->scratch) {
                lg__block *block = d->scratch;
                d->scratch = block->next;
                lg__cache_put(block);
        }
        if (d->cache.ctx->tape)
                lg__tape_done(d->cache.ctx->tape);
        const bool noted = d->id.type == LG_DEVICE_CPU && d->queue->error.code != LG_DEVICE_OK;
        if (ok && !d->queue->status) /* CPU kernels run at once, so their errors are reported at once */
                return !noted || lg__device_wait(d);
        lg_status status = d->queue->status;
        d->queue->status = LG_OK;
        lg_error_code code = status == LG_NO_MEMORY         ? LG_ERR_MEMORY
                             : status == LG_LOST            ? LG_ERR_COMM
                             : d->id.type == LG_DEVICE_CUDA ? LG_ERR_CUDA
                                                            : LG_ERR_DEVICE;
        lg__fail(d->cache.ctx, code, "%s: on %s: %s", op, lg_device_name(d->id), d->queue->message);
        return false;
}

static bool report_error(lg_ctx *c, const lg_device_error *f)
{
        static const char *const op[] = {[LG__ORIGIN_CROSS_ENTROPY] = "cross_entropy",
                                         [LG__ORIGIN_NLL] = "nll",
                                         [LG__ORIGIN_GATHER] = "gather",
                                         [LG__ORIGIN_SCATTER_ADD] = "scatter_add",
                                         [LG__ORIGIN_INDEX_SELECT] = "index_select",
                                         [LG__ORIGIN_INDEX_ADD] = "index_add",
                                         [LG__ORIGIN_EMBEDDING] = "embedding",
                                         [LG__ORIGIN_ONE_HOT] = "one_hot",
                                         [LG__ORIGIN_TAKE_ALONG_DIM] = "take_along_dim",
                                         [LG__ORIGIN_SCATTER] = "scatter",
                                         [LG__ORIGIN_SCATTER_SCALAR] = "scatter_scalar",
                                         [LG__ORIGIN_SCATTER_REDUCE] = "scatter_reduce",
                                         [LG__ORIGIN_INDEX_COPY] = "index_copy",
                                         [LG__ORIGIN_INDEX_REDUCE] = "index_reduce",
                                         [LG__ORIGIN_MAX_UNPOOL] = "max_unpool",
                                         [LG__ORIGIN_TAKE] = "take",
                                         [LG__ORIGIN_PUT] = "put",
                                         [LG__ORIGIN_INDEX_FILL] = "index_fill",
                                         [LG__ORIGIN_INDEX] = "index",
                                         [LG__ORIGIN_INDEX_PUT] = "index_put"};
        long long value = (long long)f->value, limit = (long long)f->limit;
        if (f->code == LG_DEVICE_LOST)
                return lg__fail(c, LG_ERR_COMM,
                                "lg_synchronize: an exchange with devices of other processes was given up; what was "
                                "computed since is void, and optimisers have changed nothing");
        if (f->code <= LG__ORIGIN_NLL)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: target holds the class index %lld, but x has %lld classes (0 to %lld)",
                                op[f->code], value, limit, limit - 1);
        if (f->code == LG__ORIGIN_ATTENTION)
                return lg__fail(c, LG_ERR_ARGUMENT, "attention: kv_lengths holds %lld, but there are %lld keys", value,
                                limit - 1);
        if (f->code == LG__ORIGIN_RECURRENT)
                return lg__fail(c, LG_ERR_ARGUMENT, "recurrent: lengths holds %lld, but x has %lld steps", value,
                                limit - 1);
        if (f->code == LG__ORIGIN_MASKED_SCATTER)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "masked_scatter: the mask has more true elements than src has elements");
        if (f->code == LG__ORIGIN_CHOLESKY)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "cholesky: matrix %lld of the batch is not positive definite (the leading minor of "
                                "order %lld)",
                                value, limit);
        if (f->code == LG__ORIGIN_SOLVE || f->code == LG__ORIGIN_INVERSE)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: matrix %lld of the batch is singular (the pivot of column %lld is 0 or NaN)",
                                f->code == LG__ORIGIN_SOLVE ? "solve" : "inverse", value, limit - 1);
        if (f->code == LG__ORIGIN_EIGH || f->code == LG__ORIGIN_SVD)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "%s: the iteration on matrix %lld of the batch did not converge (at row %lld)",
                                f->code == LG__ORIGIN_SVD ? "svd" : "eigh", value, limit - 1);
        return lg__fail(c, LG_ERR_ARGUMENT, "%s: index holds %lld, but there are %lld places to point at, from %lld on",
                        op[f->code], value, limit, f->code >= LG__ORIGIN_TAKE ? -limit : 0LL);
}

bool lg__device_wait(lg__device *d)
{
        lg_device_error found = {0};
        lg__frame span;
        lg__span_begin(d->cache.ctx, &span, "wait", "device", NULL);
        const bool ok = d->api->synchronize(d->queue, &found);
        lg__span_end(d->cache.ctx, &span);
        if (!ok)
                return lg__kernel_done(d, "lg_synchronize", false);
        return found.code == LG_DEVICE_OK || report_error(d->cache.ctx, &found);
}

bool lg__device_item(lg__device *d, const void *p, lg_dtype from, void *ret, lg_dtype to)
{
        lg_device_error found = {0};
        lg__frame span;
        lg__span_begin(d->cache.ctx, &span, "wait", "device", NULL);
        const bool ok = lg__kernel_done(d, "lg_item", d->api->item(d->queue, p, from, ret, to, &found));
        lg__span_end(d->cache.ctx, &span);
        if (!ok)
                return false;
        return found.code == LG_DEVICE_OK || report_error(d->cache.ctx, &found);
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
        const lg_device_api *api = lg__device_type(type, reason, sizeof reason);
        return api ? api->count(reason, sizeof reason) : 0;
}

/* Returns whether the device exists and works. Sets an error only if the host is out of memory. */
static bool usable(lg_ctx *c, lg_device device)
{
        char why[640];
        return lg__ok(c) && device.index >= 0 && (find(c, device) || open_new(c, device, why, sizeof why));
}

lg_device lg_try_cuda(lg_ctx *c, int index)
{
        lg_device device = LG_DEVICE(LG_DEVICE_CUDA, index);
        return usable(c, device) ? device : lg_cpu();
}

int lg_try_all_cuda(lg_ctx *c, int max, lg_device *ret)
{
        int n = 0, count = lg_device_count(c, LG_DEVICE_CUDA);
        for (int i = 0; ret && i < count && n < max; i++)
                if (usable(c, LG_DEVICE(LG_DEVICE_CUDA, i)))
                        ret[n++] = LG_DEVICE(LG_DEVICE_CUDA, i);
        if (n == 0 && ret && max > 0)
                ret[n++] = lg_cpu();
        return n;
}

/* Returns the index in `text`, the part after a device's name: 0 if empty, -1 if not ":<digits>"; at most INT_MAX. */
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
        lg_device none = LG_NO_DEVICE;
        if (!lg__ok(c))
                return none;
        for (int type = LG_DEVICE_CPU; text && type < LG_DEVICE_TYPE_COUNT; type++) {
                const char *name = lg__device_type_name((lg_device_type)type);
                size_t n = strlen(name);
                int index = strncmp(text, name, n) == 0 ? parse_index(text + n) : -1;
                lg_device device = LG_DEVICE((lg_device_type)type, index);
                if (index >= 0)
                        return lg__device_get(c, device) ? device : none;
        }
        lg__fail(c, LG_ERR_ARGUMENT, "lg_parse_device: \"%s\" is no device; write cpu, cuda or cuda:1",
                 text ? text : "NULL");
        return none;
}

lg_device lg_set_default_device(lg_ctx *c, lg_device device)
{
        lg_device was = c ? c->default_device : LG_NO_DEVICE;
        if (lg__ok(c) && device.type != LG_DEVICE_NONE && lg__device_get(c, device))
                c->default_device = device;
        return was;
}

lg_device lg_default_device(const lg_ctx *c)
{
        return c ? c->default_device : LG_NO_DEVICE;
}

/* Returns a version such as "2.28.9" as a number, 22809; 0 for other text. */
static int64_t number_of(const char *version)
{
        int part[3] = {0};
        const bool good = sscanf(version, "%d.%d.%d", &part[0], &part[1], &part[2]) == 3;
        return good ? part[0] * INT64_C(10000) + part[1] * INT64_C(100) + part[2] : 0;
}

bool lg_device_info_with(lg_ctx *c, lg_device device, lg_device_info_t *ret, size_t size)
{
        lg_device_facts facts = {.free_bytes = -1, .total_bytes = -1};
        if (!lg__ok(c))
                return false;
        if (!ret)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_device_info: ret is NULL");
        lg__device *d = lg__device_get(c, device);
        if (!d)
                return false;
        if (!d->api->facts(d->id.index, &facts))
                return lg__fail(c, LG_ERR_DEVICE, "lg_device_info: %s does not answer", lg_device_name(d->id));
        lg_device_info_t info = {.total_bytes = facts.total_bytes,
                                 .free_bytes = facts.free_bytes,
                                 .processors = facts.processors,
                                 .major = facts.major,
                                 .minor = facts.minor};
        memcpy(info.name, facts.name, sizeof info.name);
        memcpy(info.driver, facts.driver, sizeof info.driver);
        memcpy(info.runtime, facts.runtime, sizeof info.runtime);
        memcpy(info.blas, facts.blas, sizeof info.blas);
        memcpy(info.dnn, facts.dnn, sizeof info.dnn);
        memcpy(info.nccl, facts.links, sizeof info.nccl);
        info.nccl_number = number_of(facts.links);
        lg__give(ret, size, &info, sizeof info);
        return true;
}
