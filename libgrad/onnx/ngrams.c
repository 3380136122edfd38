/* ngrams.c - ONNX's TfIdfVectorizer: how often sequences of numbers have parts of a list, on the host. */
#include "import.h"

/* The list of parts: those of n numbers begin at pool[starts[n - 1]]. */
typedef struct pool {
        const lg__onnx_attribute *numbers, *starts, *places; /* places: the column of each part's count */
        int64_t columns;
} pool;

static bool take_pool(const lg__onnx_call *c, pool *p)
{
        p->numbers = lg__onnx_attribute_of(c, "pool_int64s");
        p->starts = lg__onnx_attribute_of(c, "ngram_counts");
        p->places = lg__onnx_attribute_of(c, "ngram_indexes");
        bool good = p->numbers && p->numbers->ints && p->starts && p->starts->ints && p->places && p->places->ints;
        int64_t parts = 0;
        for (int64_t n = 1; good && n <= p->starts->count; n++) {
                const int64_t from = p->starts->ints[n - 1];
                const int64_t to = n < p->starts->count ? p->starts->ints[n] : p->numbers->count;
                good = from >= 0 && from <= to && to <= p->numbers->count && (to - from) % n == 0;
                parts += good ? (to - from) / n : 0;
        }
        good = good && parts <= p->places->count;
        for (int64_t i = 0; good && i < p->places->count; i++) {
                good = p->places->ints[i] >= 0 && p->places->ints[i] < INT32_MAX;
                p->columns = p->places->ints[i] >= p->columns ? p->places->ints[i] + 1 : p->columns;
        }
        return good || lg__onnx_fail(c, LG_ERR_ARGUMENT, "its list of parts of integers is missing or damaged");
}

/* Counts the n numbers x[0], x[step], ... if the pool has them. The last of equal parts counts. */
static void count_part(const pool *p, int64_t n, const int64_t *x, int64_t step, float *counts)
{
        const int64_t from = p->starts->ints[n - 1];
        const int64_t parts = ((n < p->starts->count ? p->starts->ints[n] : p->numbers->count) - from) / n;
        int64_t before = 0; /* parts of fewer numbers */
        for (int64_t k = 1; k < n; k++)
                before += (p->starts->ints[k] - p->starts->ints[k - 1]) / k;
        for (int64_t i = parts - 1; i >= 0; i--) {
                int64_t same = 0;
                while (same < n && x[same * step] == p->numbers->ints[from + i * n + same])
                        same++;
                if (same == n) {
                        counts[p->places->ints[before + i]]++;
                        return;
                }
        }
}

/* Counts the parts of a row of `length` numbers. */
static void count_row(const lg__onnx_call *c, const pool *p, const int64_t *x, int64_t length, float *counts)
{
        const int64_t least = lg__onnx_int(c, "min_gram_length", 1), most = lg__onnx_int(c, "max_gram_length", 1);
        const int64_t skips = lg__onnx_int(c, "max_skip_count", 0);
        for (int64_t n = least < 1 ? 1 : least; n <= most && n <= p->starts->count && n <= length; n++)
                for (int64_t step = 1; step - 1 <= (n == 1 ? 0 : skips) && (n - 1) * step < length; step++)
                        for (int64_t at = 0; at + (n - 1) * step < length; at++)
                                count_part(p, n, x + at, step, counts);
}

LG__ONNX(TfIdfVectorizer)
{
        const lg_shape *s = &c->in[0]->at.shape;
        const char *mode = lg__onnx_text(c, "mode", "TF");
        const lg__onnx_attribute *weights = lg__onnx_attribute_of(c, "weights");
        pool p = {0};
        if (s->ndim < 1 || s->ndim > 2 || lg__dtype_float(c->in[0]->at.dtype))
                return lg__onnx_fail(c, LG_ERR_SHAPE, "its operand is %s", lg__tensor_text(c->in[0]).s);
        if (!take_pool(c, &p))
                return NULL;
        if (weights && (!weights->floats || weights->count < p.columns))
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "%lld weights", (long long)weights->count);
        const int64_t rows = s->ndim == 2 ? s->size[0] : 1, length = s->size[s->ndim - 1];
        lg_tensor *x = lg__clone_values(c->in[0], lg_cpu(), LG_I64);
        lg_tensor *y =
                x ? lg_zeros(c->ctx, s->ndim == 2 ? LG_SHAPE(rows, p.columns) : LG_SHAPE(p.columns), .device = lg_cpu())
                  : NULL;
        for (int64_t r = 0; y && r < rows && length && p.columns; r++) {
                float *counts = (float *)lg__data(y) + r * p.columns;
                count_row(c, &p, (int64_t *)lg__data(x) + r * length, length, counts);
                for (int64_t i = 0; i < p.columns && strcmp(mode, "TF") != 0; i++) {
                        counts[i] = !strcmp(mode, "IDF") && counts[i] > 1 ? 1 : counts[i];
                        counts[i] *= weights ? (float)weights->floats[i] : 1;
                }
        }
        return y;
}
