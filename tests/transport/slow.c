/* slow.c - a network in slow motion: a module for LIBGRAD_MPI around another one, whose messages it delays.
 *
 * LIBGRAD_SLOW_MPI names the other module; LIBGRAD_SLOW_LATENCY, in seconds, and LIBGRAD_SLOW_RATE, in bytes per
 * second, are read by each open: without them nothing is delayed. Each rank has a card with one line, on which what it
 * sends goes one after the other, to whomever: a message has left when the line has carried it, bytes / rate after
 * those before it, and arrives the latency later. Receiving is not limited, so both directions are used at once. Who
 * waits costs no processor: only test() looks at the clock, and time passes whether or not anyone looks. The sender
 * tells the receiver when a message arrives by a second one with the next tag, which takes processes of one machine,
 * that share the clock. With LIBGRAD_SLOW_PIPE each send raises SIGPIPE, as TCP's do where the other has died.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../transport/transport.h"

/* A message; of one that is sent or received, what the other module does for it. */
typedef struct parcel {
        struct parcel *next, **before;
        lg_transfer data, stamp;
        bool data_over, stamp_over, receives;
        size_t bytes;
        double when; /* it has left, or arrives */
} parcel;

typedef struct slow {
        lg_transport base, *inner;
        double latency, seconds_per_byte;
        double line; /* is free from then on */
        parcel *first;
} slow;

static lg_transport_api api;
static const lg_transport_api *inner_api;

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

static double number(const char *name)
{
        const char *text = getenv(name);
        return text ? atof(text) : 0;
}

/* ---- the ends ---- */

static void take_over(lg_transport *t)
{
        const lg_transport *inner = ((slow *)t)->inner;
        t->rank = inner->rank;
        t->size = inner->size;
        t->most_tag = inner->most_tag / 2;
        t->any_thread = inner->any_thread;
        t->recovers = inner->recovers;
        snprintf(t->host, sizeof t->host, "%.200s-%d", inner->host, inner->rank); /* a network is between hosts */
        memcpy(t->why, inner->why, sizeof t->why);
}

static void exits(lg_transport *inner)
{
        lg_transport *t = inner->user;
        if (t->exits)
                t->exits(t);
}

static bool open_slow(lg_transport *t, double seconds)
{
        slow *s = (slow *)t;
        const double rate = number("LIBGRAD_SLOW_RATE");
        s->latency = number("LIBGRAD_SLOW_LATENCY");
        s->seconds_per_byte = rate > 0 ? 1 / rate : 0;
        s->inner = calloc(1, inner_api->bytes);
        if (!s->inner) {
                snprintf(t->why, sizeof t->why, "no memory");
                return false;
        }
        s->inner->api = inner_api;
        s->inner->exits = exits;
        s->inner->user = t;
        const bool ok = inner_api->open(s->inner, seconds);
        take_over(t);
        if (!ok)
                free(s->inner);
        return ok;
}

static void forget(parcel *p)
{
        *p->before = p->next;
        if (p->next)
                p->next->before = p->before;
        free(p);
}

static void close_slow(lg_transport *t, bool broken)
{
        slow *s = (slow *)t;
        inner_api->close(s->inner, broken);
        while (!broken && s->first) /* of a broken one messages may be under way */
                forget(s->first);
        if (!broken)
                free(s->inner);
}

/* ---- messages ---- */

static parcel *of(const lg_transfer *x)
{
        parcel *p;
        memcpy(&p, &x->request, sizeof p);
        return p;
}

static parcel *new_parcel(slow *s, bool receives, size_t bytes, lg_transfer *ret)
{
        parcel *p = calloc(1, sizeof *p);
        *ret = (lg_transfer){0};
        if (!p) {
                snprintf(s->base.why, sizeof s->base.why, "no memory");
                return NULL;
        }
        *p = (parcel){.next = s->first, .before = &s->first, .receives = receives, .bytes = bytes};
        if (p->next)
                p->next->before = &p->next;
        s->first = p;
        memcpy(&ret->request, &p, sizeof p);
        return p;
}

/* Both messages have begun; if not, none is left. */
static bool begun(slow *s, parcel *p, bool first, bool second, lg_transfer *ret)
{
        if (first && second)
                return true;
        memcpy(s->base.why, s->inner->why, sizeof s->base.why);
        inner_api->cancel(s->inner, &p->data);
        if (!first)
                forget(p);
        *ret = (lg_transfer){0};
        return false;
}

static bool send_slowly(lg_transport *t, int to, int tag, const void *from, size_t bytes, lg_transfer *ret)
{
        slow *s = (slow *)t;
        parcel *p = new_parcel(s, false, bytes, ret);
        if (!p)
                return false;
        if (getenv("LIBGRAD_SLOW_PIPE"))
                raise(SIGPIPE);
        const bool first = inner_api->send(s->inner, to, 2 * tag, from, bytes, &p->data);
        if (!first)
                return begun(s, p, first, false, ret);
        const double start = now();
        s->line = (s->line > start ? s->line : start) + (double)bytes * s->seconds_per_byte;
        p->when = s->line + s->latency; /* as the other is told */
        return begun(s, p, first, inner_api->send(s->inner, to, 2 * tag + 1, &p->when, sizeof p->when, &p->stamp), ret);
}

static bool receive_slowly(lg_transport *t, int from, int tag, void *to, size_t bytes, lg_transfer *ret)
{
        slow *s = (slow *)t;
        parcel *p = new_parcel(s, true, bytes, ret);
        if (!p)
                return false;
        const bool first = inner_api->receive(s->inner, from, 2 * tag, to, bytes, &p->data);
        return begun(s, p, first,
                     first && inner_api->receive(s->inner, from, 2 * tag + 1, &p->when, sizeof p->when, &p->stamp),
                     ret);
}

/* ---- their end ---- */

static lg_progress test_part(slow *s, lg_transfer *x, bool *over, size_t *ret_bytes)
{
        const lg_progress got = *over ? LG_TRANSFER_DONE : inner_api->test(s->inner, x, ret_bytes);
        *over = got != LG_TRANSFER_UNDER_WAY;
        return got;
}

static lg_progress test_slowly(lg_transport *t, lg_transfer *x, size_t *ret_bytes)
{
        slow *s = (slow *)t;
        parcel *p = of(x);
        if (!p)
                return LG_TRANSFER_DONE;
        const lg_progress data = test_part(s, &p->data, &p->data_over, p->receives ? &p->bytes : NULL);
        const lg_progress stamp = test_part(s, &p->stamp, &p->stamp_over, NULL);
        if (data == LG_TRANSFER_UNDER_WAY || stamp == LG_TRANSFER_UNDER_WAY)
                return LG_TRANSFER_UNDER_WAY;
        if (data == LG_TRANSFER_DONE && stamp == LG_TRANSFER_DONE && now() < p->when - (p->receives ? 0 : s->latency))
                return LG_TRANSFER_UNDER_WAY;
        if (ret_bytes)
                *ret_bytes = p->bytes;
        memcpy(t->why, s->inner->why, sizeof t->why);
        forget(p);
        *x = (lg_transfer){0};
        return data == LG_TRANSFER_FAILED ? data : stamp;
}

/* The record stays: the message that tells the time may still be read from it. */
static void cancel_slowly(lg_transport *t, lg_transfer *x)
{
        slow *s = (slow *)t;
        parcel *p = of(x);
        if (!p)
                return;
        if (!p->data_over)
                inner_api->cancel(s->inner, &p->data);
        if (!p->stamp_over)
                inner_api->cancel(s->inner, &p->stamp);
        *x = (lg_transfer){0};
}

/* ---- the entry ---- */

__attribute__((visibility("default"))) lg_transport_module_fn lg_transport_module;
const lg_transport_api *lg_transport_module(void)
{
        const char *file = getenv("LIBGRAD_SLOW_MPI");
        void *module = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
        union {
                void *symbol;
                lg_transport_module_fn *get;
        } entry = {module ? dlsym(module, "lg_transport_module") : NULL};
        inner_api = entry.symbol ? entry.get() : NULL;
        if (!inner_api || inner_api->abi != LG_TRANSPORT_ABI)
                return NULL;
        api = *inner_api; /* its name and version */
        api.bytes = sizeof(slow);
        api.open = open_slow;
        api.close = close_slow;
        api.send = send_slowly;
        api.receive = receive_slowly;
        api.test = test_slowly;
        api.cancel = cancel_slowly;
        return &api;
}
