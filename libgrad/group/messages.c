/* messages.c - messages by which the ranks of a group compare collectives, wait for each other and report failures. */
#include "group/messages.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#define SPIN_SECONDS 2e-3 /* duration of polling, in a wait, before the first sleep */
#define NAP_NANOSECONDS 50000
#define NOTICE_SECONDS 1.0 /* time limit for delivering the notice of a failure */

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

sigset_t lg__sigpipe_guard(void)
{
        sigset_t was, pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &was);
        return was;
}

void lg__sigpipe_restore(const sigset_t *was)
{
        sigset_t pipe, pending;
        int taken;
        if (sigismember(was, SIGPIPE)) /* the program itself blocks SIGPIPE, and may expect one */
                return;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        if (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE))
                sigwait(&pipe, &taken);
        pthread_sigmask(SIG_SETMASK, was, NULL);
}

/* ---- failures ---- */

typedef struct words {
        char s[300];
} words;

static words describe(const lg__collective *c)
{
        static const char *const names[] = {"barrier",        "all_reduce", "broadcast", "all_gather",
                                            "reduce_scatter", "send",       "receive",   "the end of the group"};
        static const char *const reductions[] = {"sum", "mean", "max"};
        words w;
        int n = snprintf(w.s, sizeof w.s, "%s", names[c->kind]);
        if (c->kind != LG__BARRIER && c->kind != LG__LEAVE)
                n += snprintf(w.s + n, sizeof w.s - (size_t)n, " of %s%s%s %.120s", c->name, *c->name ? ", " : "",
                              lg_dtype_name(c->dtype), lg__shape_text(c->shape).s);
        if (c->kind == LG__ALL_REDUCE || c->kind == LG__REDUCE_SCATTER)
                snprintf(w.s + n, sizeof w.s - (size_t)n, ", %s", reductions[c->reduction]);
        else if (c->kind == LG__BROADCAST || c->kind == LG__SEND || c->kind == LG__RECEIVE)
                n += snprintf(w.s + n, sizeof w.s - (size_t)n, " %s rank %d", c->kind == LG__SEND ? "to" : "from",
                              c->root);
        else if (c->kind == LG__BARRIER && *c->name)
                snprintf(w.s + n, sizeof w.s - (size_t)n, ", %s", c->name);
        if (c->recorded)
                snprintf(w.s + n, sizeof w.s - (size_t)n, " with a gradient");
        return w;
}

/* Breaks the communicator, unless it is broken already, and reports the reason to the other ranks. Returns false. */
static bool fail(lg__comm *m, const char *format, ...)
{
        va_list args;
        if (m->broken)
                return false;
        va_start(args, format);
        vsnprintf(m->why, sizeof m->why, format, args);
        va_end(args);
        m->broken = true;
        m->notice = (lg__rank_message){.failed = true, .between = !m->active};
        snprintf(m->notice.why, sizeof m->notice.why, "%s", m->why);
        for (int r = 0; r < m->size; r++)
                if (r != m->rank) /* a send that fails is ignored: unreachable ranks need no notice */
                        (void)m->t->api->send(m->t, m->inbox[r].world, m->tag, &m->notice, sizeof m->notice,
                                              &m->inbox[r].notice);
        return false;
}

void lg__comm_fail(lg__comm *m, const char *why)
{
        const sigset_t mask = lg__sigpipe_guard();
        fail(m, "rank %d failed: %s", m->rank, why);
        lg__sigpipe_restore(&mask);
}

void lg__comm_orphan(lg__comm *m)
{
        if (m->orphan)
                return;
        snprintf(m->why, sizeof m->why, "this process is a child of rank %d, which alone is in the group", m->rank);
        m->orphan = true;
        m->broken = true;
}

/* ---- waiting ---- */

/* Posts a receive for rank r's next message. A receive is always posted, so failures are seen between collectives. */
static bool post_receive(lg__comm *m, int r)
{
        lg__inbox *b = &m->inbox[r];
        b->arrived = false;
        b->posted = m->t->api->receive(m->t, b->world, m->tag, &b->message, sizeof b->message, &b->receive);
        return b->posted || fail(m, "rank %d cannot hear rank %d: %s", m->rank, r, m->t->why);
}

/* Tests all posted receives. Returns false if a receive failed or a message reports a failure, which breaks m. */
static bool poll_inboxes(lg__comm *m)
{
        for (int r = 0; r < m->size; r++) {
                lg__inbox *b = &m->inbox[r];
                size_t bytes = 0;
                if (!b->posted || b->arrived)
                        continue;
                const lg_progress got = m->t->api->test(m->t, &b->receive, &bytes);
                if (got == LG_TRANSFER_UNDER_WAY)
                        continue;
                b->posted = false;
                if (got == LG_TRANSFER_FAILED || bytes != sizeof b->message)
                        return fail(m, "rank %d cannot hear rank %d: %s", m->rank, r, m->t->why);
                b->arrived = true;
                if (b->message.failed && !b->message.between)
                        return fail(m, "%s", b->message.why);
        }
        return true;
}

/* Yields the processor while a caller has waited less than SPIN_SECONDS, as most waits are short; else sleeps. */
static void pause_since(const lg__comm *m, double start)
{
        if (!m->background && now() - start < SPIN_SECONDS)
                sched_yield();
        else
                nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
}

/* Returns whether rank r has exceeded the time limit, which breaks m. Leaving has no limit (a message is printed),
 * unless processes survive the death of others: most launchers end all processes when one exits, which would lose what
 * r still does. */
static bool is_late(lg__comm *m, double start, int r)
{
        if (now() - start < m->seconds)
                return false;
        if (m->collective.kind == LG__LEAVE && !m->t->recovers) {
                if (!m->reported)
                        lg__message(m->ctx, "rank %d has not left the group for %g s; rank %d waits for it", r,
                                    m->seconds, m->rank);
                m->reported = true;
                return false;
        }
        fail(m, "rank %d has not answered rank %d for %g s: %s, operation %llu", r, m->rank, m->seconds,
             describe(&m->collective).s, (unsigned long long)m->count);
        return true;
}

/* Starts to send `from` to rank r or, if `from` is NULL, to receive `to`. */
static bool begin_piece(lg__comm *m, int r, int tag, const void *from, void *to, size_t bytes)
{
        lg__piece *x = &m->pieces[m->piece_count];
        const int world = m->inbox[r].world;
        x->rank = r;
        x->key = m->key;
        if (!(from ? m->t->api->send(m->t, world, tag, from, bytes, &x->transfer)
                   : m->t->api->receive(m->t, world, tag, to, bytes, &x->transfer)))
                return fail(m, "rank %d cannot reach rank %d: %s", m->rank, r, m->t->why);
        m->piece_count++;
        return true;
}

bool lg__piece_send(lg__comm *m, int r, const void *from, size_t bytes)
{
        return begin_piece(m, r, m->tag + 1, from, NULL, bytes);
}

bool lg__piece_receive(lg__comm *m, int r, void *to, size_t bytes)
{
        return begin_piece(m, r, m->tag + 1, NULL, to, bytes);
}

bool lg__pieces_wait(lg__comm *m, int key)
{
        const double start = now();
        for (int i = m->piece_count - 1; i >= 0 && !m->broken;) {
                lg__piece *x = &m->pieces[i];
                if (key >= 0 && x->key != key) {
                        i--;
                        continue;
                }
                const lg_progress got = m->t->api->test(m->t, &x->transfer, NULL);
                if (got == LG_TRANSFER_DONE) {
                        *x = m->pieces[--m->piece_count];
                        i--;
                } else if (got == LG_TRANSFER_FAILED)
                        fail(m, "rank %d cannot reach rank %d: %s", m->rank, x->rank, m->t->why);
                else if (poll_inboxes(m) && !is_late(m, start, x->rank))
                        pause_since(m, start);
        }
        if (!m->broken)
                return true;
        while (m->piece_count > 0)
                m->t->api->cancel(m->t, &m->pieces[--m->piece_count].transfer);
        return false;
}

/* ---- agreement ---- */

static bool takes_part(const lg__comm *m, const lg__collective *c, int r)
{
        return r != m->rank && ((c->kind != LG__SEND && c->kind != LG__RECEIVE) || r == c->root);
}

/* Returns whether this rank's collective a and another rank's b are the same one. */
static bool is_same(const lg__comm *m, const lg__collective *a, const lg__collective *b)
{
        if (a->kind == LG__SEND || a->kind == LG__RECEIVE)
                return b->kind == (a->kind == LG__SEND ? LG__RECEIVE : LG__SEND) && b->root == m->rank &&
                       a->dtype == b->dtype && a->recorded == b->recorded && lg__shape_equal(a->shape, b->shape);
        return a->kind == b->kind && a->dtype == b->dtype && a->reduction == b->reduction && a->root == b->root &&
               lg__shape_equal(a->shape, b->shape) && strcmp(a->name, b->name) == 0;
}

/* Compares rank r's description with this rank's, and notes its weight and bits. False: r failed, or they differ. */
static bool compare(lg__comm *m, int r)
{
        const lg__rank_message *from = &m->inbox[r].message;
        const lg__collective *theirs = &from->collective;
        if (from->failed)
                return fail(m, "%s", from->why);
        m->weights[r] = theirs->weight;
        m->weighted = m->weighted || theirs->weight != 1;
        m->bits |= theirs->bits;
        m->linked = m->linked && theirs->linked;
        if (is_same(m, &m->collective, theirs))
                return m->collective.kind == LG__LEAVE || post_receive(m, r);
        if (theirs->kind == LG__LEAVE)
                return fail(m, "rank %d has left the group, and rank %d waits for it: %s, operation %llu%s%s", r,
                            m->rank, describe(&m->collective).s, (unsigned long long)m->count,
                            *from->why ? "; before, on that rank: " : "", from->why);
        return fail(m, "operation %llu of the group is %s on rank %d, but %s on rank %d", (unsigned long long)m->count,
                    describe(&m->collective).s, m->rank, describe(theirs).s, r);
}

/* Divides all weights by the power of two that brings the greatest into [1, 2), so that their sum, and their products
 * with values, stay within the range of any dtype. */
static void scale_weights(lg__comm *m)
{
        double most = 0;
        for (int r = 0; r < m->size; r++)
                most = m->weights[r] > most ? m->weights[r] : most;
        for (int r = 0; r < m->size && most > 0; r++)
                m->weights[r] = scalbn(m->weights[r], -ilogb(most));
}

bool lg__comm_agree(lg__comm *m, const lg__collective *what)
{
        const double start = now();
        if (m->broken)
                return false;
        m->active = what->kind != LG__LEAVE;
        m->collective = *what;
        m->own = (lg__rank_message){.collective = *what};
        if (what->kind == LG__LEAVE)
                snprintf(m->own.why, sizeof m->own.why, "%s", m->ctx->cleared);
        m->count++;
        m->own.collective.weight = m->weights[m->rank] = what->weighted ? what->weight : 1;
        m->weighted = m->weights[m->rank] != 1;
        m->bits = what->bits;
        m->linked = what->linked;
        for (int r = 0; r < m->size && !m->broken; r++)
                if (takes_part(m, what, r))
                        begin_piece(m, r, m->tag, &m->own, NULL, sizeof m->own);
        for (int r = 0; r < m->size && !m->broken; r++)
                while (takes_part(m, what, r) && poll_inboxes(m)) {
                        if (m->inbox[r].arrived) {
                                compare(m, r);
                                break;
                        }
                        if (is_late(m, start, r))
                                break;
                        pause_since(m, start);
                }
        if (m->weighted)
                scale_weights(m);
        const bool ok = lg__pieces_wait(m, -1);
        m->active = ok && !m->linked; /* the data on a device link does not pass through m */
        return ok;
}

double lg__comm_share(const lg__comm *m)
{
        double sum = 0;
        for (int r = 0; r < m->size; r++)
                sum += m->weights[r];
        return m->weights[m->rank] / sum;
}

/* ---- creation and destruction ---- */

lg__comm *lg__comm_new(lg_ctx *c, lg_transport *t, int rank, int size, const int *world, int first_tag, double seconds)
{
        const size_t n = (size_t)size, share = LG__STAGING / LG__WINDOW / n / 8 * 8;
        const size_t piece = share < LG__PIECE ? share : LG__PIECE;
        const size_t fixed = sizeof(lg__comm) + n * (sizeof(lg__inbox) + 4 * LG__WINDOW * sizeof(lg__piece) +
                                                     sizeof(double) + sizeof(void *));
        const size_t bytes = fixed + LG__WINDOW * n * piece;
        lg__comm *m = lg__host_alloc(c, bytes);
        if (!m)
                return NULL;
        memset(m, 0, fixed);
        *m = (lg__comm){.ctx = c, .bytes = bytes, .t = t, .rank = rank, .size = size, .tag = first_tag};
        m->seconds = seconds;
        m->piece_bytes = piece;
        m->inbox = (lg__inbox *)(m + 1);
        m->pieces = (lg__piece *)(m->inbox + n);
        m->weights = (double *)(m->pieces + 4 * LG__WINDOW * n);
        m->parts = (const void **)(m->weights + n);
        m->staging = (char *)m + fixed;
        for (int r = 0; r < size; r++)
                m->inbox[r].world = world[r];
        for (int r = 0; r < size; r++)
                if (r != rank)
                        post_receive(m, r);
        return m;
}

void lg__comm_refuse(lg_transport *t, int rank, int to, int first_tag, const char *why)
{
        lg__rank_message notice = {.failed = true};
        lg_transfer x;
        const double start = now();
        snprintf(notice.why, sizeof notice.why, "rank %d failed: %s", rank, why);
        const sigset_t mask = lg__sigpipe_guard();
        if (t->api->send(t, to, first_tag, &notice, sizeof notice, &x)) {
                while (t->api->test(t, &x, NULL) == LG_TRANSFER_UNDER_WAY && now() - start < NOTICE_SECONDS)
                        nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
                t->api->cancel(t, &x);
        }
        lg__sigpipe_restore(&mask);
}

bool lg__comm_free(lg__comm *m)
{
        const double start = now();
        const sigset_t mask = lg__sigpipe_guard();
        const bool whole = lg__comm_agree(m, &(lg__collective){.kind = LG__LEAVE});
        for (int r = 0; r < m->size && !m->orphan; r++) {
                lg__inbox *b = &m->inbox[r];
                if (b->posted)
                        m->t->api->cancel(m->t, &b->receive);
                while (!whole && r != m->rank && now() - start < NOTICE_SECONDS &&
                       m->t->api->test(m->t, &b->notice, NULL) == LG_TRANSFER_UNDER_WAY)
                        pause_since(m, start);
        }
        lg__sigpipe_restore(&mask);
        lg__host_free(m->ctx, m, m->bytes);
        return whole;
}
