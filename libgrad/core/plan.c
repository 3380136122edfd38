/* plan.c - places of a step's pieces of memory: those that are never in use at once may share one.
 *
 * The pieces get their places one after the other. The order matters: the largest first is good most of the time. Where
 * it is not, other orders are tried, in which the piece that ends last is moved to the front.
 */
#include <stdlib.h>
#include <string.h>
#include "tape.h"

#define TRIES 60                /* most orders that begin as one kind of order */
#define WORK ((int64_t)1 << 27) /* most pairs of pieces that are compared in all */

static int by_size(const void *a, const void *b)
{
        const lg__life *x = *(lg__life *const *)a, *y = *(lg__life *const *)b;
        if (x->bytes != y->bytes)
                return x->bytes < y->bytes ? 1 : -1;
        return x->from < y->from ? -1 : 1;
}

static int by_duration(const void *a, const void *b)
{
        const lg__life *x = *(lg__life *const *)a, *y = *(lg__life *const *)b;
        const int64_t m = x->to - x->from, n = y->to - y->from;
        return m != n ? (m < n ? 1 : -1) : by_size(a, b);
}

static int by_time(const void *a, const void *b)
{
        const lg__life *x = *(lg__life *const *)a, *y = *(lg__life *const *)b;
        return x->from < y->from ? -1 : 1;
}

static bool at_once(const lg__life *a, const lg__life *b)
{
        return a->from < b->to && b->from < a->to;
}

/* Returns the offset of the smallest gap that l fits in, between pieces that are in use at the same time; after them if
 * there is none. `first` is the list of pieces that have places. */
static int64_t place(const lg__life *l, const lg__life *first)
{
        int64_t end = 0, best = -1, least = INT64_MAX;
        for (const lg__life *p = first; p; p = p->next) {
                if (!at_once(p, l))
                        continue;
                if (p->tried - end >= l->bytes && p->tried - end < least) {
                        best = end;
                        least = p->tried - end;
                }
                end = p->tried + p->bytes > end ? p->tried + p->bytes : end;
        }
        return best < 0 ? end : best;
}

/* Places the pieces in this order. Returns the bytes of all, and the number of the piece that ends last. */
static int64_t place_all(lg__life **order, int64_t count, int64_t *last)
{
        lg__life *first = NULL;
        int64_t bytes = 0;
        for (int64_t i = 0; i < count; i++) {
                lg__life *l = order[i], **at = &first;
                l->tried = place(l, first);
                if (l->tried + l->bytes > bytes) {
                        bytes = l->tried + l->bytes;
                        *last = i;
                }
                while (*at && (*at)->tried < l->tried)
                        at = &(*at)->next;
                l->next = *at;
                *at = l;
        }
        return bytes;
}

/* Returns the most bytes that are in use at once. */
static int64_t most_at_once(const lg__life *lives, int64_t count)
{
        int64_t most = 0;
        for (int64_t i = 0; i < count; i++) {
                int64_t sum = 0;
                for (int64_t k = 0; k <= i; k++)
                        sum += lives[k].to > lives[i].from ? lives[k].bytes : 0;
                most = sum > most ? sum : most;
        }
        return most;
}

int64_t lg__place_lives(lg__life *lives, int64_t count, lg__life **order)
{
        int (*const kinds[])(const void *a, const void *b) = {by_size, by_duration, by_time};
        const int64_t most = most_at_once(lives, count), tries = WORK / 3 / count / count;
        int64_t best = INT64_MAX, last = 0;
        for (int kind = 0; kind < 3; kind++) {
                for (int64_t i = 0; i < count; i++)
                        order[i] = &lives[i];
                qsort(order, (size_t)count, sizeof *order, kinds[kind]);
                for (int64_t t = 0; t == 0 || (t < TRIES && t < tries); t++) {
                        if (best <= most + most / 100)
                                return best;
                        const int64_t bytes = place_all(order, count, &last), to = t % 2 ? last / 2 : 0;
                        for (int64_t i = 0; bytes < best && i < count; i++)
                                lives[i].at = lives[i].tried;
                        best = bytes < best ? bytes : best;
                        lg__life *moved = order[last];
                        memmove(order + to + 1, order + to, (size_t)(last - to) * sizeof *order);
                        order[to] = moved;
                }
        }
        return best;
}
