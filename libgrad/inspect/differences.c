/* differences.c - compares the analytic gradient of one input of a gradient check with finite differences.
 *
 * Each element is changed in the input's own storage and restored. So inputs keep their strides and devices, and fn may
 * use the tensors otherwise than through its list of inputs, as a module does with its parameters.
 */
#include <math.h>
#include "check.h"

/* Computes *ret = <v, fn(x)>, with the sum done on the host in long double and not by an op. */
static bool evaluate(check *k, double *ret)
{
        lg_ctx *c = k->c;
        lg_scope scope = lg__scope_begin(c);
        lg_tensor *y = scope.id ? lg__check_call(k) : NULL, *host = NULL;
        if (y && !lg__shape_equal(y->at.shape, k->v->at.shape))
                lg__fail(c, LG_ERR_SHAPE, "%s: fn gave %s at first and then %s", k->name,
                         lg__shape_text(k->v->at.shape).s, lg__shape_text(y->at.shape).s);
        else if (y)
                host = lg__clone_values(y, lg_cpu(), LG_F64);
        if (host) {
                const double *a = lg__data(k->v), *b = lg__data(host);
                long double sum = 0;
                for (int64_t i = 0; i < lg__shape_numel(host->at.shape); i++)
                        sum += (long double)a[i] * b[i];
                *ret = (double)sum;
        }
        lg_scope_end(c, scope);
        return host != NULL;
}

/* A view of one element of an input, and a double on the host to copy there. Both are allocated before an element
 * changes, so that restoring the element needs no memory. */
typedef struct probe {
        lg_tensor *cell, *host;
} probe;

static bool put(const check *k, const probe *p, double value)
{
        *(double *)lg__data(p->host) = value;
        return lg__copy_values(p->cell, p->host, k->name);
}

/* Computes the difference quotient (f(x-2h) - 8 f(x-h) + 8 f(x+h) - f(x+2h)) / 12h for one element, h = .eps. */
static bool stencil(check *k, const probe *p, double x, double *ret)
{
        double h = k->o.eps, f[4] = {0};
        const double step[4] = {-2, -1, 1, 2};
        bool ok = true;
        for (int i = 0; i < 4 && ok; i++)
                ok = put(k, p, x + step[i] * h) && evaluate(k, &f[i]);
        bool back = put(k, p, x);
        *ret = (f[0] - f[3] + 8 * (f[2] - f[1])) / (12 * h);
        return ok && back;
}

static int64_t offset_of(const lg__layout *at, int64_t element)
{
        int64_t offset = at->offset;
        for (int i = at->shape.ndim - 1; i >= 0; i--) {
                offset += element % at->shape.size[i] * at->strides[i];
                element /= at->shape.size[i];
        }
        return offset;
}

/* Returns the next number of splitmix64 (Steele, Lea, Flood 2014), independent of the context's random state. */
static uint64_t next_random(uint64_t *state)
{
        uint64_t z = *state += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
}

/* Chooses `count` of n indices, ascending, all sets equally likely (Knuth, TAOCP 2, algorithm S). */
static void choose(int64_t n, int64_t count, uint64_t seed, int64_t *ret)
{
        for (int64_t i = 0, chosen = 0; chosen < count; i++)
                if (next_random(&seed) % (uint64_t)(n - i) < (uint64_t)(count - chosen))
                        ret[chosen++] = i;
}

static void judge(check *k, int64_t input, int64_t count, const int64_t *element, const double *numeric)
{
        const double *analytic = k->analytic[input] ? lg__data(k->analytic[input]) : NULL;
        double scale = 1;
        for (int64_t i = 0; i < count; i++)
                scale = fmax(scale, fabs(numeric[i]));
        for (int64_t i = 0; i < count; i++) {
                double a = analytic ? analytic[element[i]] : 0, error = fabs(a - numeric[i]) / scale;
                lg_check_report *w = &k->worst;
                /* NaN is the worst error; the first NaN is kept */
                bool worse = w->checked++ == 0 || error > w->error || (isnan(error) && !isnan(w->error));
                if (!worse)
                        continue;
                w->input = (int)input;
                w->element = element[i];
                w->analytic = a;
                w->numeric = numeric[i];
                w->error = error;
        }
}

bool lg__check_differences(check *k, int64_t input)
{
        lg_ctx *c = k->c;
        lg_tensor *x = k->x[input], *values = lg__clone_values(x, lg_cpu(), LG_F64);
        int64_t n = lg__shape_numel(x->at.shape), count = n;
        if (k->o.max_elements && k->o.max_elements < n)
                count = k->o.max_elements;
        int64_t *element = lg__check_scratch(c, count);
        double *numeric = lg__check_scratch(c, count);
        lg__layout cell = {.dtype = LG_F64};
        if (n == 0)
                return values && element && numeric;
        probe p = {lg__tensor_new(c, x->storage, &cell), lg__tensor_empty(c, lg_cpu(), LG_F64, cell.shape)};
        if (!values || !element || !numeric || !p.cell || !p.host)
                return false;
        choose(n, count, k->o.seed + (uint64_t)input, element);
        for (int64_t i = 0; i < count; i++) {
                p.cell->at.offset = offset_of(&x->at, element[i]);
                if (!stencil(k, &p, ((const double *)lg__data(values))[element[i]], &numeric[i]))
                        return false;
        }
        judge(k, input, count, element, numeric);
        return true;
}
