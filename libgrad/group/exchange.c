/* exchange.c - what the processes of a group tell each other, how they wait, and how they fail together. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include "group/peer.h"
#include "tensor/tensor.h"

#define SPIN_SECONDS 2e-3 /* of a wait, before it begins to sleep */
#define NAP_NANOSECONDS 50000
#define GOODBYE_SECONDS 1.0

static double now(void)
{
        struct timespec s;
        clock_gettime(CLOCK_MONOTONIC, &s);
        return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* ---- words ---- */

typedef struct words {
        char s[300];
} words;

static words describe(const lg__joint *j)
{
        static const char *const names[] = {"barrier",        "all_reduce", "broadcast", "all_gather",
                                            "reduce_scatter", "send",       "receive",   "the end of the group"};
        static const char *const reductions[] = {"sum", "mean", "max"};
        words w;
        int n = snprintf(w.s, sizeof w.s, "%s", names[j->what]);
        if (j->what != LG__BARRIER && j->what != LG__LEAVE)
                n += snprintf(w.s + n, sizeof w.s - (size_t)n, " of %s%s%s %.120s", j->name, *j->name ? ", " : "",
                              lg_dtype_name(j->dtype), lg__shape_text(j->shape).s);
        if (j->what == LG__ALL_REDUCE || j->what == LG__REDUCE_SCATTER)
                snprintf(w.s + n, sizeof w.s - (size_t)n, ", %s", reductions[j->reduction]);
        else if (j->what == LG__BROADCAST || j->what == LG__SEND || j->what == LG__RECEIVE)
                n += snprintf(w.s + n, sizeof w.s - (size_t)n, " %s rank %d", j->what == LG__SEND ? "to" : "from",
                              j->root);
        else if (j->what == LG__BARRIER && *j->name)
                snprintf(w.s + n, sizeof w.s - (size_t)n, ", %s", j->name);
        if (j->recorded)
                snprintf(w.s + n, sizeof w.s - (size_t)n, " with a gradient");
        return w;
}

/* Breaks the group with the first failure's words, and tells the others. */
static bool fail(lg__peer *p, const char *format, ...)
{
        va_list args;
        if (p->broken)
                return false;
        va_start(args, format);
        vsnprintf(p->why, sizeof p->why, format, args);
        va_end(args);
        p->broken = true;
        p->last = (lg__said){.failed = true, .between = !p->under_way};
        snprintf(p->last.why, sizeof p->last.why, "%s", p->why);
        for (int r = 0; r < p->size; r++)
                if (r != p->rank) /* one that cannot be reached has no more to hear */
                        (void)p->t->api->send(p->t, p->world[r], p->tag, &p->last, sizeof p->last, &p->farewell[r]);
        return false;
}

const char *lg__peer_why(const lg__peer *p)
{
        return p->broken ? p->why : NULL;
}

void lg__peer_fail(lg__peer *p, const char *why)
{
        const lg__calm calm = lg__calm_begin();
        fail(p, "rank %d failed: %s", p->rank, why);
        lg__calm_end(&calm);
}

lg__calm lg__calm_begin(void)
{
        lg__calm k;
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &k.was);
        return k;
}

void lg__calm_end(const lg__calm *k)
{
        sigset_t pipe, pending;
        int taken;
        if (sigismember(&k->was, SIGPIPE)) /* the program blocks it, and may wait for it */
                return;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        if (sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE))
                sigwait(&pipe, &taken);
        pthread_sigmask(SIG_SETMASK, &k->was, NULL);
}

static void make_locks(lg__peer *p)
{
        pthread_condattr_t monotonic;
        pthread_condattr_init(&monotonic);
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->hurry, &monotonic);
        pthread_condattr_destroy(&monotonic);
}

void lg__peer_orphan(lg__peer *p)
{
        if (p->orphan)
                return;
        snprintf(p->why, sizeof p->why, "this process is a child of rank %d, which alone is in the group", p->rank);
        p->orphan = true;
        p->broken = true;
        make_locks(p);
}

/* ---- waiting ---- */

/* A receive is always waiting for what each rank says next, so that its failure is heard whatever it comes between. */
static bool listen(lg__peer *p, int r)
{
        p->heard[r] = false;
        p->listens[r] = p->t->api->receive(p->t, p->world[r], p->tag, &p->says[r], sizeof *p->says, &p->ears[r]);
        return p->listens[r] || fail(p, "rank %d cannot hear rank %d: %s", p->rank, r, p->t->why);
}

static bool hear(lg__peer *p)
{
        for (int r = 0; r < p->size; r++) {
                size_t bytes = 0;
                if (!p->listens[r] || p->heard[r])
                        continue;
                const lg_progress got = p->t->api->test(p->t, &p->ears[r], &bytes);
                if (got == LG_TRANSFER_UNDER_WAY)
                        continue;
                p->listens[r] = false;
                if (got == LG_TRANSFER_FAILED || bytes != sizeof *p->says)
                        return fail(p, "rank %d cannot hear rank %d: %s", p->rank, r, p->t->why);
                p->heard[r] = true;
                if (p->says[r].failed && !p->says[r].between)
                        return fail(p, "%s", p->says[r].why);
        }
        return true;
}

/* Leaves the processor to others for a while, or until a caller begins to wait. False: there is no patience. */
static bool nap(lg__peer *p)
{
        struct timespec until;
        pthread_mutex_lock(&p->lock);
        const bool patient = p->patient;
        if (patient) {
                clock_gettime(CLOCK_MONOTONIC, &until);
                until.tv_nsec += NAP_NANOSECONDS;
                until.tv_sec += until.tv_nsec / 1000000000;
                until.tv_nsec %= 1000000000;
                pthread_cond_timedwait(&p->hurry, &p->lock, &until);
        }
        pthread_mutex_unlock(&p->lock);
        return patient;
}

/* Lets others run: at first it watches, since most waits are short. */
static void pause_since(lg__peer *p, double start)
{
        if (nap(p))
                return;
        if (now() - start < SPIN_SECONDS)
                sched_yield();
        else
                nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
}

void lg__peer_be_patient(lg__peer *p, bool on)
{
        pthread_mutex_lock(&p->lock);
        p->patient = on;
        pthread_cond_signal(&p->hurry);
        pthread_mutex_unlock(&p->lock);
}

/* Whether rank r has let this one wait for too long. To leave, there is no limit, unless this process lives on where
 * another dies: what r does alone would be lost, since launchers end all processes with the first that does not wait.
 */
static bool is_late(lg__peer *p, double start, int r)
{
        if (now() - start < p->seconds)
                return false;
        if (p->joint.what == LG__LEAVE && !p->t->recovers) {
                if (!p->told)
                        lg__message(p->ctx, "rank %d has not left the group for %g s; rank %d waits for it", r,
                                    p->seconds, p->rank);
                p->told = true;
                return false;
        }
        fail(p, "rank %d has not answered rank %d for %g s: %s, operation %llu", r, p->rank, p->seconds,
             describe(&p->joint).s, (unsigned long long)p->count);
        return true;
}

static bool add_move(lg__peer *p, int r, bool ok)
{
        p->moves[p->move_count].rank = r;
        p->moves[p->move_count].key = p->key;
        p->move_count += ok;
        return ok || fail(p, "rank %d cannot reach rank %d: %s", p->rank, r, p->t->why);
}

bool lg__peer_sends(lg__peer *p, int r, const void *from, size_t bytes)
{
        lg_transfer *x = &p->moves[p->move_count].x;
        return add_move(p, r, p->t->api->send(p->t, p->world[r], p->tag + 1, from, bytes, x));
}

bool lg__peer_receives(lg__peer *p, int r, void *to, size_t bytes)
{
        lg_transfer *x = &p->moves[p->move_count].x;
        return add_move(p, r, p->t->api->receive(p->t, p->world[r], p->tag + 1, to, bytes, x));
}

static bool give_up(lg__peer *p)
{
        while (p->move_count > 0)
                p->t->api->cancel(p->t, &p->moves[--p->move_count].x);
        return false;
}

/* -1: for all. */
bool lg__peer_waits_for(lg__peer *p, int key)
{
        const double start = now();
        for (int i = p->move_count - 1; i >= 0 && !p->broken;) {
                lg__move *m = &p->moves[i];
                const lg_progress got =
                        key < 0 || m->key == key ? p->t->api->test(p->t, &m->x, NULL) : LG_TRANSFER_DONE;
                if (got == LG_TRANSFER_DONE) {
                        if (key < 0 || m->key == key)
                                *m = p->moves[--p->move_count];
                        i--;
                } else if (got == LG_TRANSFER_FAILED)
                        fail(p, "rank %d cannot reach rank %d: %s", p->rank, m->rank, p->t->why);
                else if (hear(p) && !is_late(p, start, m->rank))
                        pause_since(p, start);
        }
        return p->broken ? give_up(p) : true;
}

bool lg__peer_waits(lg__peer *p)
{
        return lg__peer_waits_for(p, -1);
}

/* ---- what is about to be done ---- */

static bool takes_part(const lg__peer *p, const lg__joint *j, int r)
{
        return r != p->rank && ((j->what != LG__SEND && j->what != LG__RECEIVE) || r == j->root);
}

/* Two processes that mean the same. */
static bool agree(const lg__peer *p, const lg__joint *a, const lg__joint *b)
{
        if (a->what == LG__SEND || a->what == LG__RECEIVE)
                return b->what == (a->what == LG__SEND ? LG__RECEIVE : LG__SEND) && b->root == p->rank &&
                       a->dtype == b->dtype && a->recorded == b->recorded && lg__shape_equal(a->shape, b->shape);
        return a->what == b->what && a->dtype == b->dtype && a->reduction == b->reduction && a->root == b->root &&
               lg__shape_equal(a->shape, b->shape) && strcmp(a->name, b->name) == 0;
}

static bool compare(lg__peer *p, int r)
{
        const lg__joint *theirs = &p->says[r].joint;
        if (p->says[r].failed)
                return fail(p, "%s", p->says[r].why);
        p->weights[r] = theirs->weight;
        p->weighted = p->weighted || theirs->weight != 1;
        p->bits |= theirs->bits;
        p->linked = p->linked && theirs->linked;
        if (agree(p, &p->joint, theirs))
                return p->joint.what == LG__LEAVE || listen(p, r);
        if (theirs->what == LG__LEAVE)
                return fail(p, "rank %d has left the group, and rank %d waits for it: %s, operation %llu%s%s", r,
                            p->rank, describe(&p->joint).s, (unsigned long long)p->count,
                            *p->says[r].why ? "; before, on that rank: " : "", p->says[r].why);
        return fail(p, "operation %llu of the group is %s on rank %d, but %s on rank %d", (unsigned long long)p->count,
                    describe(&p->joint).s, p->rank, describe(theirs).s, r);
}

/* Divides all weights by a power of two, by which the greatest is about 1: their sum, and what they multiply, stay
 * within the range of any dtype.
 */
static void scale_weights(lg__peer *p)
{
        double most = 0;
        for (int r = 0; r < p->size; r++)
                most = p->weights[r] > most ? p->weights[r] : most;
        for (int r = 0; r < p->size && most > 0; r++)
                p->weights[r] = scalbn(p->weights[r], -ilogb(most));
}

bool lg__peer_agrees(lg__peer *p, const lg__joint *j)
{
        const double start = now();
        if (p->broken)
                return false;
        p->joint = *j;
        p->said = (lg__said){.joint = *j};
        if (j->what == LG__LEAVE)
                snprintf(p->said.why, sizeof p->said.why, "%s", p->ctx->cleared);
        p->count++;
        p->said.joint.weight = p->weights[p->rank] = j->weighted ? j->weight : 1;
        p->weighted = p->weights[p->rank] != 1;
        p->bits = j->bits;
        p->linked = j->linked;
        for (int r = 0; r < p->size; r++) {
                lg_transfer *x = &p->moves[p->move_count].x;
                if (takes_part(p, j, r) &&
                    !add_move(p, r, p->t->api->send(p->t, p->world[r], p->tag, &p->said, sizeof p->said, x)))
                        return give_up(p);
        }
        for (int r = 0; r < p->size && !p->broken; r++)
                while (takes_part(p, j, r) && hear(p)) {
                        if (p->heard[r]) {
                                compare(p, r);
                                break;
                        }
                        if (is_late(p, start, r))
                                break;
                        pause_since(p, start);
                }
        if (p->weighted)
                scale_weights(p);
        return lg__peer_waits(p);
}

double lg__peer_share(const lg__peer *p)
{
        double sum = 0;
        for (int r = 0; r < p->size; r++)
                sum += p->weights[r];
        return p->weights[p->rank] / sum;
}

bool lg__peer_weighted(const lg__peer *p)
{
        return p->weighted;
}

uint64_t lg__peer_bits(const lg__peer *p)
{
        return p->bits;
}

bool lg__peer_linked(const lg__peer *p)
{
        return p->linked;
}

/* ---- the beginning and the end ---- */

/* Less where there are many, so that their pieces have room. */
static size_t piece_of(int size)
{
        const size_t most = LG__STAGING / LG__WINDOW / (size_t)size / 8 * 8;
        return most < LG__PIECE ? most : LG__PIECE;
}

static size_t bytes_of(int size, size_t *ret_parts)
{
        const size_t n = (size_t)size;
        const size_t parts[LG__PEER_PARTS] = {n * sizeof(int),
                                              n * sizeof(lg__said),
                                              n * sizeof(lg_transfer),
                                              n * sizeof(lg_transfer),
                                              4 * LG__WINDOW * n * sizeof(lg__move),
                                              n * sizeof(void *),
                                              LG__WINDOW * n * piece_of(size),
                                              2 * n,
                                              n * sizeof(double)};
        size_t sum = sizeof(lg__peer);
        for (int i = 0; i < LG__PEER_PARTS; i++) {
                ret_parts[i] = sum;
                sum += (parts[i] + 63) / 64 * 64;
        }
        return sum;
}

void lg__peer_refuse(lg_transport *t, int rank, int to, int first_tag, const char *why)
{
        lg__said last = {.failed = true};
        lg_transfer x;
        const double start = now();
        snprintf(last.why, sizeof last.why, "rank %d failed: %s", rank, why);
        const lg__calm calm = lg__calm_begin();
        if (t->api->send(t, to, first_tag, &last, sizeof last, &x)) {
                while (t->api->test(t, &x, NULL) == LG_TRANSFER_UNDER_WAY && now() - start < GOODBYE_SECONDS)
                        nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
                t->api->cancel(t, &x);
        }
        lg__calm_end(&calm);
}

lg__peer *lg__peer_new(lg_ctx *c, lg_transport *t, int rank, int size, const int *world, int first_tag, double seconds)
{
        size_t at[LG__PEER_PARTS];
        const size_t bytes = bytes_of(size, at);
        lg__peer *p = lg__host_alloc(c, bytes);
        if (!p)
                return NULL;
        memset(p, 0, sizeof *p);
        *p = (lg__peer){
                .ctx = c, .bytes = bytes, .t = t, .rank = rank, .size = size, .tag = first_tag, .seconds = seconds};
        make_locks(p);
        p->piece = piece_of(size);
        p->world = (int *)((char *)p + at[0]);
        p->says = (lg__said *)((char *)p + at[1]);
        p->ears = (lg_transfer *)((char *)p + at[2]);
        p->farewell = (lg_transfer *)((char *)p + at[3]);
        p->moves = (lg__move *)((char *)p + at[4]);
        p->parts = (const void **)((char *)p + at[5]);
        p->staging = (char *)p + at[6];
        p->heard = (bool *)((char *)p + at[7]);
        p->listens = p->heard + size;
        p->weights = (double *)((char *)p + at[8]);
        memset((char *)p + at[0], 0, at[6] - at[0]);
        memset((char *)p + at[7], 0, bytes - at[7]);
        memcpy(p->world, world, (size_t)size * sizeof *world);
        for (int r = 0; r < size; r++)
                if (r != rank)
                        listen(p, r);
        return p;
}

bool lg__peer_free(lg__peer *p)
{
        if (!p)
                return true;
        const double start = now();
        const lg__calm calm = lg__calm_begin();
        const bool whole = lg__peer_agrees(p, &(lg__joint){.what = LG__LEAVE});
        for (int r = 0; r < p->size && !p->orphan; r++) {
                if (p->listens[r])
                        p->t->api->cancel(p->t, &p->ears[r]);
                while (!whole && r != p->rank && now() - start < GOODBYE_SECONDS &&
                       p->t->api->test(p->t, &p->farewell[r], NULL) == LG_TRANSFER_UNDER_WAY)
                        pause_since(p, start);
        }
        lg__calm_end(&calm);
        pthread_mutex_destroy(&p->lock);
        pthread_cond_destroy(&p->hurry);
        lg__host_free(p->ctx, p, p->bytes);
        return whole;
}
