/* wolfe.c - line search by the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6), as in
 * PyTorch.
 *
 * A step length t is good if f(t) <= f(0) + 1e-4 t f'(0) and |f'(t)| <= 0.9 |f'(0)|. The search first grows t until a
 * good one is between two lengths, and then makes that bracket smaller, by cubic interpolation. */
#include "lbfgs.h"

#define DECREASE 1e-4
#define CURVATURE 0.9

/* A step length, and the loss, gradient and slope there. */
typedef struct point {
        double t, f;
        lg_tensor *g;
        double slope;
} point;

typedef struct search {
        lg__lbfgs_step *k;
        point start;
        int64_t tries, most; /* tries after the first one */
} search;

/* Returns the minimum within [low, high] of the cubic polynomial through a and b. */
static double interpolated(point a, point b, double low, double high)
{
        const double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
        if (!(square >= 0))
                return (low + high) / 2;
        const double d2 = sqrt(square);
        const double t = a.t <= b.t ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
                                    : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
        const double above = low > t ? low : t; /* NaN stays */
        return high < above ? high : above;
}

static bool attempt(const search *s, double t, point *ret)
{
        ret->t = t;
        if (!lg__lbfgs_try(s->k, t, &ret->f, &ret->g))
                return false;
        ret->slope = lg__lbfgs_dot(ret->g, s->k->memory->d);
        return !s->k->opt->object.ctx->error;
}

static bool too_high(const search *s, point p)
{
        return p.f > s->start.f + DECREASE * p.t * s->start.slope;
}

static bool flat(const search *s, point p)
{
        return fabs(p.slope) <= -CURVATURE * s->start.slope;
}

/* Grows the step length until bracket[0] and bracket[1] have a good one between them. *ret_done: bracket[0] is good. */
static bool grow(search *s, double t, point bracket[2], bool *ret_done)
{
        point last = s->start, p;
        *ret_done = false;
        if (!attempt(s, t, &p))
                return false;
        for (; s->tries < s->most; s->tries++) {
                bracket[0] = last;
                bracket[1] = p;
                if (too_high(s, p) || (s->tries > 1 && p.f >= last.f))
                        return true;
                if (flat(s, p)) {
                        bracket[0] = p;
                        return *ret_done = true;
                }
                if (p.slope >= 0)
                        return true;
                const double next = interpolated(last, p, p.t + 0.01 * (p.t - last.t), p.t * 10);
                last = p;
                if (!attempt(s, next, &p))
                        return false;
        }
        bracket[0] = s->start;
        bracket[1] = p;
        return true;
}

/* Returns the next step length to try in a bracket, which is not too near to its ends twice. */
static double between(const point bracket[2], bool *near)
{
        const double low = fmin(bracket[0].t, bracket[1].t), high = fmax(bracket[0].t, bracket[1].t);
        const double t = interpolated(bracket[0], bracket[1], low, high), margin = 0.1 * (high - low);
        if (!(fmin(high - t, t - low) < margin)) {
                *near = false;
                return t;
        }
        if (!*near && t < high && t > low) {
                *near = true;
                return t;
        }
        *near = false;
        return fabs(t - high) < fabs(t - low) ? high - margin : low + margin;
}

/* Makes the bracket smaller. Returns false with an error. */
static bool narrow(search *s, point bracket[2], int *low)
{
        const double reach = lg__lbfgs_greatest(s->k->memory->d);
        const lg_lbfgs_options *o = s->k->opt->options;
        bool done = false, near = false;
        for (; !done && s->tries < s->most; s->tries++) {
                point p;
                if (fabs(bracket[1].t - bracket[0].t) * reach < o->tolerance_change)
                        break;
                if (!attempt(s, between(bracket, &near), &p))
                        return false;
                const int high = 1 - *low;
                if (too_high(s, p) || p.f >= bracket[*low].f) {
                        bracket[high] = p;
                        *low = bracket[0].f <= bracket[1].f ? 0 : 1;
                        continue;
                }
                done = flat(s, p);
                if (!done && p.slope * (bracket[high].t - bracket[*low].t) >= 0)
                        bracket[high] = bracket[*low];
                bracket[*low] = p;
        }
        return true;
}

bool lg__lbfgs_search(lg__lbfgs_step *k, int64_t most, double *f, lg_tensor **g, double slope, double *t)
{
        search s = {.k = k, .start = {0, *f, *g, slope}, .most = most};
        point bracket[2];
        bool done;
        if (!grow(&s, *t, bracket, &done))
                return false;
        int low = done || bracket[0].f <= bracket[1].f ? 0 : 1;
        if (!done && !narrow(&s, bracket, &low))
                return false;
        *t = bracket[low].t;
        *f = bracket[low].f;
        *g = bracket[low].g;
        return true;
}
