/* failing.h - memory hooks that count what they give and get back, and fail when they are told to. */
#ifndef LG_TEST_FAILING_H
#define LG_TEST_FAILING_H

#include "test.h"

typedef struct failing {
        int64_t allocs, frees, bytes; /* over the whole life; bytes: not yet given back */
        int64_t limit;                /* of bytes; 0: none */
        int64_t calls, fail_at;       /* since armed; 0: not armed */
        bool only;                    /* that call alone; else it and all later ones */
        size_t of;                    /* calls for so many bytes alone are counted and fail; 0: all */
} failing;

static inline void *failing_alloc(void *user, lg_ctx *c, lg_device device, size_t bytes)
{
        failing *f = user;
        bool counts = !f->of || bytes == f->of;
        f->calls += counts;
        if (counts && f->fail_at && (f->only ? f->calls == f->fail_at : f->calls >= f->fail_at))
                return NULL;
        if (f->limit && f->bytes + (int64_t)bytes > f->limit)
                return NULL;
        void *p = lg_system_alloc(c, device, bytes);
        f->allocs += p != NULL;
        f->bytes += p ? (int64_t)bytes : 0;
        return p;
}

static inline void failing_free(void *user, lg_ctx *c, lg_device device, void *p, size_t bytes)
{
        failing *f = user;
        f->frees++;
        f->bytes -= (int64_t)bytes;
        lg_system_free(c, device, p, bytes);
}

/* lg_open(.threads = 1, FAILING(&f)) */
#define FAILING(f) .alloc = failing_alloc, .free = failing_free, .user = (f)

/* The n-th call from now on fails. */
static inline void arm(failing *f, int64_t n, bool only)
{
        f->calls = 0;
        f->fail_at = n;
        f->only = only;
}

/* Calls make() while the n-th allocation fails, for n from 1 on until it needs no more: each failure is LG_ERR_MEMORY
 * and, if they are `counted`, leaves no tensor behind. Returns the last n. */
static inline int64_t fail_each(lg_ctx *c, failing *f, bool counted, lg_tensor *(*make)(lg_ctx *c, void *user),
                                void *user)
{
        const int64_t before = lg_live_tensors(c);
        lg_tensor *y = NULL;
        int64_t n = 0;
        while (!y) {
                lg_empty_cache(c);
                arm(f, ++n, false);
                y = make(c, user);
                arm(f, 0, false);
                if (!y)
                        assert_error(c, LG_ERR_MEMORY, "");
                assert_true(!counted || lg_live_tensors(c) == before + (y != NULL));
        }
        lg_free(y);
        return n;
}

/* fail_each() of a step with a network, in a context of its own: modes are as before, and no byte is left. */
static inline void fail_each_of_step(lg_tensor *(*step)(lg_ctx *c, void *net), lg_module *(*network)(lg_ctx *c))
{
        failing f = {0};
        lg_ctx *c = lg_open(.threads = 1, FAILING(&f));
        test_device(c);
        assert_true(fail_each(c, &f, false, step, network(c)) > 5);
        assert_true(lg_grad_mode(c));
        assert_int_equal(lg_autocast_mode(c), LG_DTYPE_NONE);
        lg_close(c);
        assert_int_equal(f.bytes, 0);
}

#endif
