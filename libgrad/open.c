/* open.c - the door: contexts are opened and closed, and lower rooms learn what they need of upper ones. */
#include <string.h>
#include "graph/op.h"

static const lg__upward up = {.collect = lg__exports_collect,
                              .leaf_node = lg__leaf_node,
                              .leave_node = lg__leave_node,
                              .add = lg_add,
                              .cast = lg_cast,
                              .contiguous = lg_contiguous,
                              .channels_last = lg__channels_last,
                              .sum_to = lg__sum_to,
                              .has_op = lg__has_elementwise};

static void *standard_alloc(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        (void)user;
        return lg_system_alloc(c, device, bytes);
}

static void standard_free(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        (void)user;
        lg_system_free(c, device, p, bytes);
}

lg_ctx *lg_open_with(const lg_open_options *options)
{
        lg_open_options o;
        if (!lg__take_without(options, &o, sizeof o))
                return NULL;
        if (!o.alloc || !o.free) {
                o.alloc = standard_alloc;
                o.free = standard_free;
        }
        lg_ctx *c = o.alloc(o.user, NULL, lg_cpu(), sizeof *c);
        if (!c)
                return NULL;
        memset(c, 0, sizeof *c);
        c->live = LG__CTX_LIVE;
        c->alloc = o.alloc;
        c->free = o.free;
        c->memory_user = o.user;
        c->default_device = lg_cpu();
        c->threads = lg__threads_for(o.threads);
        c->random.seed = o.seed;
        c->recording = c->conv_tf32 = true;
        c->up = &up;
        c->scope_ids = (uint64_t)(uintptr_t)c << 20; /* a scope of another context is not taken for one of this */
        lg__link_init(&c->objects);
        lg__link_init(&c->owned);
        lg__link_init(&c->casts);
        c->cpu = lg__device_get(c, lg_cpu());
        if (!c->cpu || !lg_scope_begin(c).id) {
                lg_close(c);
                return NULL;
        }
        return c;
}

static bool is_in_a_call(const lg_ctx *c)
{
        const lg__scope *s = c->scope;
        while (s && !s->fence)
                s = s->parent;
        return s || c->user_calls;
}

void lg_close(lg_ctx *c)
{
        if (!c || c->live != LG__CTX_LIVE)
                return;
        if (is_in_a_call(c)) {
                lg__fail(c, LG_ERR_STATE,
                         "lg_close: a call that uses the context has not returned; close it outside hooks, release "
                         "functions and own functions");
                return;
        }
        lg__report_error(c);
        c->live = 0;
        lg__fail(c, LG_ERR_STATE, "the context is being closed"); /* release functions make nothing in it any more */
        lg__drop_casts(c);
        while (c->objects.prev != &c->objects)
                lg__object_destroy((lg__object *)c->objects.prev);
        lg__scopes_finish(c);
        while (c->owned.prev != &c->owned)
                lg__tensor_release((lg_tensor *)c->owned.prev);
        lg__exports_close(c);
}
