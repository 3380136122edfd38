/* adaptive_softmax.c - AdaptiveLogSoftmaxWithLoss: the soft-max of many classes by clusters (Grave et al., 2017).
 *
 * The head scores the frequent classes and one entry for each cluster of rarer ones; a cluster scores its classes.
 */
#include <math.h>
#include "graph/op.h"
#include "nn.h"

/* The first class of each cluster in increasing order, and the number of classes. */
typedef struct clusters {
        int64_t in, count; /* of features; of clusters */
        lg_adaptive_log_softmax_options o;
        int64_t first[]; /* count + 1 */
} clusters;

static lg_tensor *log_probabilities(lg_module *m, lg_tensor *x)
{
        lg_tensor *scores = lg_forward(m, x);
        return scores ? lg_log_softmax(lg__widened(scores), -1) : NULL;
}

/* Returns the logarithms of the probabilities of all classes: (..., classes) for x (..., in). */
static lg_tensor *all_classes(lg_module *m, lg_tensor *x, const clusters *k)
{
        lg_ctx *c = m->object.ctx;
        const size_t bytes = (size_t)(k->count + 1) * sizeof(lg_tensor *);
        lg_tensor *head = log_probabilities(lg_child(m, 0), x), **parts = head ? lg__alloc(c, bytes) : NULL;
        if (!parts)
                return NULL;
        parts[0] = lg_slice(head, -1, 0, k->first[0]);
        for (int64_t i = 0; i < k->count; i++) {
                lg_tensor *cluster = log_probabilities(lg_child(lg_child(m, 1), (int)i), x);
                parts[i + 1] = lg_add(cluster, lg_slice(head, -1, k->first[0] + i, k->first[0] + i + 1));
        }
        lg_tensor *y = lg_cat(LG_LIST_OF(k->count + 1, parts), -1);
        lg__free(c, parts, bytes);
        return y;
}

static lg_tensor *between(lg_tensor *target, int64_t low, int64_t high)
{
        return lg_logical_and(lg_ge_scalar(target, (double)low), lg_lt_scalar(target, (double)high));
}

/* Returns the logarithms of the probabilities of the targets (N), for x (N, in). The host waits for the targets. */
static lg_tensor *of_targets(lg_module *m, lg_tensor *x, lg_tensor *target, const clusters *k)
{
        lg_tensor *index = target, *sum = NULL;
        lg_tensor *frequent = lg_sum(between(target, 0, k->first[0]));
        int64_t valid = frequent ? (int64_t)lg_item(frequent) : 0;
        for (int64_t i = 0; i < k->count && index; i++) {
                lg_tensor *inside = between(target, k->first[i], k->first[i + 1]);
                lg_tensor *rows = lg_reshape(lg_nonzero(inside), LG_SHAPE(-1));
                if (!rows)
                        return NULL;
                index = lg_masked_fill(index, inside, (double)(k->first[0] + i));
                if (!lg_numel(rows))
                        continue;
                lg_tensor *own = lg_sub_scalar(lg_index_select(target, 0, rows), (double)k->first[i]);
                lg_tensor *cluster = log_probabilities(lg_child(lg_child(m, 1), (int)i), lg_index_select(x, 0, rows));
                lg_tensor *picked = lg_squeeze(lg_gather(cluster, 1, lg_unsqueeze(own, 1)), LG_DIMS(1));
                if (!sum && picked)
                        sum = lg_expand(lg__constant(picked, 0), target->at.shape);
                sum = lg_index_add(sum, 0, rows, picked);
                valid += lg_numel(rows);
        }
        if (index && valid != lg_numel(target))
                return lg__fail(m->object.ctx, LG_ERR_ARGUMENT, "%s: %lld of %lld targets are not in [0, %lld)",
                                m->type, (long long)(lg_numel(target) - valid), (long long)lg_numel(target),
                                (long long)k->first[k->count]);
        lg_tensor *head = log_probabilities(lg_child(m, 0), x);
        lg_tensor *y = head ? lg_squeeze(lg_gather(head, 1, lg_unsqueeze(index, 1)), LG_DIMS(1)) : NULL;
        return sum ? lg_add(y, sum) : y;
}

static bool forward(lg_module *m, lg_list in, lg_outputs *out, void *user)
{
        const clusters *k = user;
        lg_ctx *c = m->object.ctx;
        lg_tensor *x = in.items[0], *target = in.items[1];
        if (in.count < 1 || in.count > 2)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_forward: %s takes x and, for a loss, a target; %lld inputs",
                                m->type, (long long)in.count);
        if (!lg__check(x, m->type, "x") || (in.count == 2 && !lg__check(target, m->type, "target")))
                return false;
        const int n = x->at.shape.ndim;
        const bool fits = n >= 1 && x->at.shape.size[n - 1] == k->in;
        if (in.count == 1 && fits) {
                lg_tensor *y = all_classes(m, x, k);
                *out = (lg_outputs){.count = 1, .items = {y ? lg_cast(y, x->at.dtype) : NULL}};
                return out->items[0] != NULL;
        }
        if (!fits || n > 2 || target->at.shape.ndim != n - 1 ||
            (n == 2 && target->at.shape.size[0] != x->at.shape.size[0]))
                return lg__fail(c, LG_ERR_SHAPE, "%s: x is %s%s%s; it takes (N, %lld) and (N), or (%lld) and ()",
                                m->type, lg__tensor_text(x).s, in.count == 2 ? " and target " : "",
                                in.count == 2 ? lg__tensor_text(target).s : "", (long long)k->in, (long long)k->in);
        if (target->at.dtype != LG_I64)
                return lg__fail(c, LG_ERR_DTYPE, "%s: target is %s; classes are i64", m->type,
                                lg__tensor_text(target).s);
        lg_tensor *y = of_targets(m, n == 1 ? lg_unsqueeze(x, 0) : x, n == 1 ? lg_unsqueeze(target, 0) : target, k);
        lg_tensor *loss = y ? lg_cast(lg_neg(lg_mean(y)), x->at.dtype) : NULL;
        y = loss ? lg_cast(n == 1 ? lg_squeeze(y, LG_DIMS(0)) : y, x->at.dtype) : NULL;
        *out = (lg_outputs){.count = 2, .items = {loss, y}};
        return y != NULL;
}

/* ---- construction ---- */

static bool add(lg_module *m, const char *name, lg_module *child)
{
        if (child && lg__module_attach(m, name, child, "lg_nn_adaptive_log_softmax"))
                return true;
        lg__object_destroy(child);
        return false;
}

static lg_module *make_linear(const lg_module *m, int64_t in, int64_t out, bool bias)
{
        const clusters *k = m->user;
        return lg_nn_linear(m->object.ctx, in, out, .no_bias = !bias, .dtype = k->o.dtype, .device = k->o.device);
}

/* Returns in / div_value^power rounded down, as Python's // does; -1 if that is no size. */
static int64_t narrowed(const clusters *k, int64_t power)
{
        const double by = pow(lg__option(k->o.div_value, 4), (double)power), in = (double)k->in;
        const double size = rint((in - fmod(in, by)) / by);
        return size >= 0 && size < 9e15 ? (int64_t)size : size < 9e15 ? 0 : -1;
}

static bool fill(lg_module *m, const void *options)
{
        const clusters *k = options;
        lg_ctx *c = m->object.ctx;
        if (!add(m, "head", make_linear(m, k->in, k->first[0] + k->count, k->o.head_bias)) ||
            !add(m, "tail", lg_nn_module_list(c)))
                return false;
        for (int64_t i = 0; i < k->count; i++) {
                char name[24];
                lg_module *tail = lg_child(m, 1), *cluster = lg_nn_sequential(c);
                const int64_t hidden = narrowed(k, i + 1);
                snprintf(name, sizeof name, "%lld", (long long)i);
                if (!add(tail, name, cluster) || !add(cluster, "0", make_linear(m, k->in, hidden, false)) ||
                    !add(cluster, "1", make_linear(m, hidden, k->first[i + 1] - k->first[i], false)))
                        return false;
        }
        return true;
}

static bool are_good(lg_ctx *c, int64_t in, int64_t classes, lg_ints_in cutoffs, double div_value)
{
        const char *op = "lg_nn_adaptive_log_softmax";
        if (in < 1 || classes < 2)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld features and %lld classes; at least 1 and 2", op,
                                (long long)in, (long long)classes);
        if (!lg__list_ok(c, op, cutoffs.count, cutoffs.items))
                return false;
        if (cutoffs.count < 1 || cutoffs.count >= classes)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: %lld cutoffs of %lld classes; at least 1, fewer than classes",
                                op, (long long)cutoffs.count, (long long)classes);
        for (int64_t i = 0; i < cutoffs.count; i++)
                if (cutoffs.items[i] <= (i ? cutoffs.items[i - 1] : 0) || cutoffs.items[i] >= classes)
                        return lg__fail(c, LG_ERR_ARGUMENT,
                                        "%s: cutoff %lld is %lld; cutoffs increase, from 1 to classes - 1", op,
                                        (long long)i, (long long)cutoffs.items[i]);
        return (div_value > 0 && isfinite(div_value)) ||
               lg__fail(c, LG_ERR_ARGUMENT, "%s: div_value is %g; it is above 0", op, div_value);
}

lg_module *lg_nn_adaptive_log_softmax_with(lg_ctx *c, int64_t in, int64_t classes, lg_ints_in cutoffs,
                                           const lg_adaptive_log_softmax_options *options)
{
        lg_adaptive_log_softmax_options o;
        if (!lg__take(c, "lg_nn_adaptive_log_softmax", options, &o, sizeof o) ||
            !are_good(c, in, classes, cutoffs, lg__option(o.div_value, 4)) ||
            !lg__module_dtype(c, "lg_nn_adaptive_log_softmax", o.dtype))
                return NULL;
        const size_t bytes = sizeof(clusters) + (size_t)(cutoffs.count + 1) * sizeof(int64_t);
        clusters *k = lg__alloc(c, bytes);
        if (!k)
                return NULL;
        *k = (clusters){.in = in, .count = cutoffs.count, .o = o};
        for (int64_t i = 0; i < k->count; i++)
                k->first[i] = cutoffs.items[i];
        k->first[k->count] = classes;
        lg_module *m = lg__module_build(c, "AdaptiveLogSoftmaxWithLoss", NULL, k, bytes, fill, k);
        if (m)
                m->forward_all = forward;
        lg__free(c, k, bytes);
        return m;
}
