/* node.c - the nodes of an ONNX file, and the constants that they need. */
#include "emit.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define OP "lg_onnx_save"

/* ---- operators: the first opset in which one has the meaning that forms use, and takes bf16 ---- */

typedef struct since {
        int opset, bf16;
        const char *names;
} since;
/* Operators that are not listed have both since opset 13. */
static const since later[] = {
        {13, 16, " LeakyRelu "},
        {13, 22,
         " Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cos Cosh Elu"
         " GlobalAveragePool HardSigmoid InstanceNormalization MaxPool MaxUnpool Round Selu Sin"
         " Sinh Softplus Softsign Tan "},
        {13, 24, " TopK "},
        {13, 28, " Celu "},
        {14, 14, " Add CumSum Div Identity Mul Relu Reshape Sub Trilu "},
        {14, 22, " GRU HardSwish LSTM RNN "},
        {15, 15, " BatchNormalization CastLike Pow Shape "},
        {16, 16, " GreaterOrEqual LessOrEqual Where "},
        {17, 17, " LayerNormalization "},
        {18, 18,
         " BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Col2Im ReduceL2 ReduceMax ReduceMean"
         " ReduceMin ReduceProd ScatterElements "},
        {18, 22, " Mish "},
        {19, 19, " Resize "},
        {20, 20, " AffineGrid Gelu "},
        {20, 22, " GridSample "},
        {21, 21, " GroupNormalization "},
        {23, 23, " Attention RMSNormalization RotaryEmbedding "},
};

static void need(lg__onnx_emitter *e, const char *name, size_t length, bool bf16)
{
        char word[64];
        if ((size_t)snprintf(word, sizeof word, " %.*s ", (int)length, name) >= sizeof word)
                return;
        for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
                const char *found = strstr(later[i].names, word);
                const int opset = bf16 ? later[i].bf16 : later[i].opset;
                if (!found || opset <= e->opset)
                        continue;
                e->opset = opset;
                snprintf(e->newest, sizeof e->newest, "%.*s", (int)length, name);
        }
}

/* ---- names and constants ---- */

const char *lg__onnx_kept(lg__onnx_emitter *e, const char *s, size_t length)
{
        char *copy = lg__arena_get(e->ctx, &e->arena, 1, length + 1);
        return copy ? memcpy(copy, s, length) : NULL;
}

const char *lg__onnx_new_name(lg__onnx_emitter *e, const char *operator, size_t length)
{
        char text[LG__PATH + 96];
        const char *where = e->op ? e->op->where : "-";
        const int n = snprintf(text, sizeof text, "%s/%.*s_%lld", *where == '-' ? "" : where,
                               (int)length, operator,(long long) e->names++);
        return lg__onnx_kept(e, text, (size_t)n);
}

const char *lg__onnx_constant_of(lg__onnx_emitter *e, const char *text, lg_dtype dtype, lg_shape shape,
                                 const void *data)
{
        for (int64_t i = 0; i < e->constant_count; i++) {
                const lg__onnx_constant *k = &e->constants[i];
                if (k->text && k->dtype == dtype && !strcmp(k->text, text))
                        return k->name;
        }
        const size_t bytes = (size_t)lg__shape_numel(shape) * lg__dtype_bytes(dtype);
        if (!lg__grow(e->ctx, &e->constants, e->constant_count, &e->constant_room, sizeof *e->constants))
                return NULL;
        lg__onnx_constant k = {.dtype = dtype, .shape = shape, .bytes = bytes};
        char name[32];
        snprintf(name, sizeof name, "constant_%lld", (long long)e->names++);
        k.name = lg__onnx_kept(e, name, strlen(name));
        k.text = lg__onnx_kept(e, text, strlen(text));
        k.data = lg__arena_get(e->ctx, &e->arena, 1, bytes + 1);
        if (!k.name || !k.text || !k.data)
                return NULL;
        if (bytes)
                memcpy(k.data, data, bytes);
        e->constants[e->constant_count++] = k;
        return k.name;
}

const char *lg__onnx_whole_numbers(lg__onnx_emitter *e, const int64_t *v, int count, bool scalar)
{
        lg__form text = {.length = 0};
        lg__form_add(&text, scalar ? "<" : "[");
        for (int i = 0; i < count; i++)
                lg__form_add(&text, "%lld ", (long long)v[i]);
        return lg__onnx_constant_of(e, text.s, LG_I64, scalar ? LG_SHAPE_0D : LG_SHAPE(count), v);
}

/* ---- nodes ---- */

bool lg__onnx_add_argument(lg__onnx_out *n, const char *name)
{
        if (!name)
                return false;
        if (!*name) {
                n->left_out++;
                return true;
        }
        for (; n->left_out; n->left_out--)
                lg__proto_put_text(&n->out, NODE_INPUT, "");
        lg__proto_put_text(&n->out, NODE_INPUT, name);
        return !n->out.ctx->error;
}

void lg__onnx_add_int(lg__onnx_out *n, const char *name, int64_t v)
{
        const int64_t begun = lg__proto_begin(&n->out, NODE_ATTRIBUTE);
        lg__proto_put_text(&n->out, ATTRIBUTE_NAME, name);
        lg__proto_put_int(&n->out, ATTRIBUTE_I, v);
        lg__proto_put_int(&n->out, ATTRIBUTE_TYPE, TYPE_INT);
        lg__proto_end(&n->out, begun);
}

const char *lg__onnx_finish(lg__onnx_emitter *e, lg__onnx_out *n, const char *operator, size_t length,
                            const char *const *out, int out_count)
{
        const bool bf16 =
                e->op && e->op->in_count && e->op->in[0] >= 0 && e->recording->values[e->op->in[0]].dtype == LG_BF16;
        need(e, operator, length, bf16);
        for (int i = 0; i < out_count; i++)
                lg__proto_put_text(&n->out, NODE_OUTPUT, out[i]);
        lg__proto_put_text(&n->out, NODE_NAME, out[0]);
        lg__proto_put_bytes(&n->out, NODE_OP, operator, length);
        if (!n->out.ctx->error)
                lg__proto_put_bytes(&e->nodes, GRAPH_NODE, n->out.data, (size_t)n->out.bytes);
        lg__proto_free(&n->out);
        return e->ctx->error ? NULL : out[0];
}

const char *lg__onnx_simple(lg__onnx_emitter *e, const char *operator, const char * a, const char *b, const char *name,
                            int64_t v)
{
        const size_t length = strlen(operator);
        lg__onnx_out n = {.out.ctx = e->ctx};
        const char *result = lg__onnx_new_name(e, operator, length);
        if (!result || !lg__onnx_add_argument(&n, a) || (b && !lg__onnx_add_argument(&n, b))) {
                lg__proto_free(&n.out);
                return NULL;
        }
        if (name)
                lg__onnx_add_int(&n, name, v);
        return lg__onnx_finish(e, &n, operator, length, &result, 1);
}

/* ---- vectors of sizes ---- */

/* A number of a vector: a factor and symbols. */
typedef struct size {
        int64_t factor;
        int symbols[LG__ONNX_SYMBOLS], count;
} size;

/* Reads "12*$0*$1". Moves *p behind it. */
static size read_size(const char **p)
{
        char *end;
        size s = {.factor = strtoll(*p, &end, 10)};
        while (end[0] == '*' && end[1] == '$' && s.count < LG__ONNX_SYMBOLS)
                s.symbols[s.count++] = (int)strtol(end + 2, &end, 10);
        *p = end;
        return s;
}

/* Returns the name of the vector of one number that is the size of symbol j. */
static const char *symbol(lg__onnx_emitter *e, int j)
{
        const lg__onnx_symbol *s = &e->symbols->at[j];
        if (e->sizes[j])
                return e->sizes[j];
        lg__onnx_out n = {.out.ctx = e->ctx};
        const char *result = lg__onnx_kept(e, s->name, strlen(s->name));
        if (!result || !lg__onnx_add_argument(&n, e->recording->values[s->input].name)) {
                lg__proto_free(&n.out);
                return NULL;
        }
        lg__onnx_add_int(&n, "start", s->dim);
        if (s->dim + 1 < e->recording->values[s->input].shape.ndim)
                lg__onnx_add_int(&n, "end", s->dim + 1);
        return e->sizes[j] = lg__onnx_finish(e, &n, "Shape", 5, &result, 1);
}

static const char *one_size(lg__onnx_emitter *e, const size *s)
{
        const char *product = s->factor == 1 && s->count ? NULL : lg__onnx_whole_numbers(e, &s->factor, 1, false);
        for (int i = 0; i < s->count; i++) {
                const char *name = symbol(e, s->symbols[i]);
                if (!name)
                        return NULL;
                product = product ? lg__onnx_simple(e, "Mul", product, name, NULL, 0) : name;
        }
        return product;
}

/* Writes a vector that is joined of numbers and symbols. */
static const char *join_sizes(lg__onnx_emitter *e, const size *sizes, int count)
{
        lg__onnx_out n = {.out.ctx = e->ctx};
        const char *last = NULL;
        int pieces = 0;
        for (int i = 0; i < count; pieces++) {
                int64_t fixed[LG_MAX_DIMS * 2];
                int run = 0;
                while (i < count && !sizes[i].count)
                        fixed[run++] = sizes[i++].factor;
                last = run ? lg__onnx_whole_numbers(e, fixed, run, false) : one_size(e, &sizes[i++]);
                if (!lg__onnx_add_argument(&n, last)) {
                        lg__proto_free(&n.out);
                        return NULL;
                }
        }
        if (pieces == 1) {
                lg__proto_free(&n.out);
                return last;
        }
        lg__onnx_add_int(&n, "axis", 0);
        const char *result = lg__onnx_new_name(e, "Concat", 6);
        return lg__onnx_finish(e, &n, "Concat", 6, &result, 1);
}

const char *lg__onnx_vector(lg__onnx_emitter *e, const char **p, bool reshape)
{
        size sizes[LG_MAX_DIMS * 2];
        int64_t fixed[LG_MAX_DIMS * 2];
        int count = 0, symbolic = 0;
        bool zero = false;
        for (++*p; **p && **p != ']';) {
                if (isspace((unsigned char)**p)) {
                        ++*p;
                        continue;
                }
                if (count == LG_MAX_DIMS * 2)
                        return lg__fail(e->ctx, LG_ERR_STATE, OP ": %s has too many numbers", e->op->op->name);
                sizes[count] = read_size(p);
                symbolic += sizes[count].count != 0;
                zero = zero || sizes[count].factor == 0;
                fixed[count] = sizes[count].count ? -1 : sizes[count].factor;
                count++;
        }
        *p += **p == ']';
        return !symbolic || (reshape && symbolic == 1 && !zero) ? lg__onnx_whole_numbers(e, fixed, count, false)
                                                                : join_sizes(e, sizes, count);
}

/* ---- numbers ---- */

#define MOST_NUMBERS 32

/* Reads the numbers of {0.5}, {1 2.5} or {1 / 3}; {1*64} is one, that many times. Returns how many there are. */
static int read_numbers(const char *s, double v[MOST_NUMBERS], int64_t *times)
{
        int n = 0;
        *times = 0;
        for (char *end; *s && n < MOST_NUMBERS; s = end) {
                const double number = strtod(s, &end);
                if (end == s) {
                        s += strspn(s, " ");
                        if (*s == '/' && n)
                                v[n - 1] /= strtod(s + 1, &end);
                        else if (*s == '*')
                                *times = strtoll(s + 1, &end, 10);
                        else
                                break;
                        continue;
                }
                v[n++] = number;
        }
        return n;
}

const char *lg__onnx_numbers(lg__onnx_emitter *e, const char **p)
{
        lg_ctx *c = e->ctx;
        const char *from = *p + 1;
        const size_t length = strcspn(from, "}");
        const bool f32 = !strncmp(from, "f32", 3);
        char text[LG__FORM];
        double v[MOST_NUMBERS];
        int64_t times;
        memcpy(text, from, length);
        text[length] = 0;
        *p = from + length + (from[length] == '}');
        const int count = read_numbers(text + (f32 ? 3 : 0), v, &times);
        const lg_dtype dtype = f32 ? LG_F32 : e->recording->values[e->op->in[0]].dtype;
        const bool vector = f32 || times;
        if (!count)
                return lg__fail(c, LG_ERR_STATE, OP ": the form of %s has no number in {%s}", e->op->op->name, text);
        const lg_scope scope = lg_scope_begin(c);
        lg_tensor *t = lg__tensor_empty(c, c->cpu->id, LG_F64, LG_SHAPE(times ? times : count));
        for (int64_t i = 0; t && i < (times ? times : count); i++)
                ((double *)lg__data(t))[i] = v[times ? 0 : i];
        t = t ? lg__clone_values(t, c->cpu->id, dtype) : NULL;
        snprintf(text + length, sizeof text - length, "%s", vector ? "}" : "");
        const char *name =
                t ? lg__onnx_constant_of(e, text, dtype, vector ? t->at.shape : LG_SHAPE_0D, lg__data(t)) : NULL;
        lg_scope_end(c, scope);
        return name;
}
