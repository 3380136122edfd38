/* emit.c - writes the forms of recorded ops as nodes of ONNX. */
#include "emit.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define OP "lg_onnx_save"

/* A name that a statement of the form has set. */
typedef struct lg__onnx_local {
        const char *text; /* in the form, of `length` characters */
        size_t length;
        const char *name; /* in the file */
} lg__onnx_local;

static size_t word_length(const char *s)
{
        size_t n = 0;
        while (isalnum((unsigned char)s[n]) || s[n] == '_')
                n++;
        return n;
}

static void skip_space(const char **p)
{
        while (isspace((unsigned char)**p))
                ++*p;
}

static const char *expression(lg__onnx_emitter *e, const char **p, bool reshape);

/* Adds the tensor of a value that no op computed to the constants of the file. */
static bool list_value(lg__onnx_emitter *e, lg__onnx_value *v)
{
        char text[32];
        if (v->listed || !v->tensor)
                return true;
        const int n = snprintf(text, sizeof text, "constant_%lld", (long long)e->names);
        if (!v->name) {
                e->names++;
                v->name = lg__onnx_kept(e, text, (size_t)n);
        }
        if (!v->name || !lg__grow(e->ctx, &e->constants, e->constant_count, &e->constant_room, sizeof *e->constants))
                return false;
        e->constants[e->constant_count++] =
                (lg__onnx_constant){.name = v->name, .tensor = v->tensor, .dtype = v->dtype, .shape = v->shape};
        return v->listed = true;
}

static const char *value_name(lg__onnx_emitter *e, int64_t i)
{
        lg__onnx_value *v = &e->recording->values[i];
        if (!list_value(e, v))
                return NULL;
        return v->name ? v->name
                       : lg__fail(e->ctx, LG_ERR_STATE, OP ": the form of an op leaves out a result that %s uses",
                                  e->op ? e->op->op->name : "the module");
}

/* Returns an operand's name, or "" if it is left out or the form has no operand of that name. */
static const char *operand(lg__onnx_emitter *e, const char *word, size_t length)
{
        const lg__op *op = e->op->op;
        for (int64_t i = e->local_count; i-- > 0;)
                if (e->locals[i].length == length && !strncmp(e->locals[i].text, word, length))
                        return e->locals[i].name;
        for (int i = 0; i < op->operand_count && i < e->op->in_count; i++)
                if (strlen(op->operands[i].name) == length && !strncmp(op->operands[i].name, word, length))
                        return e->op->in[i] < 0 ? "" : value_name(e, e->op->in[i]);
        return "";
}

/* Reads a list in (): whole numbers or texts. Returns its type. */
static int list(lg__onnx_out *n, const char **p)
{
        int type = TYPE_INTS;
        char *end;
        for (++*p; **p && **p != ')'; skip_space(p)) {
                if (**p == '\'') {
                        const size_t bytes = strcspn(*p + 1, "'");
                        lg__proto_put_bytes(&n->out, ATTRIBUTE_STRINGS, *p + 1, bytes);
                        *p += bytes + 2;
                        type = TYPE_STRINGS;
                } else {
                        lg__proto_put_int(&n->out, ATTRIBUTE_INTS, strtoll(*p, &end, 10));
                        if (end == *p)
                                break;
                        *p = end;
                }
        }
        *p += **p == ')';
        return type;
}

/* Returns the type of data that the word names, or 0. */
static int type_named(const char *word, size_t length)
{
        for (int d = LG_F32; d < LG_DTYPE_COUNT; d++)
                if (strlen(lg_dtype_name((lg_dtype)d)) == length && !strncmp(word, lg_dtype_name((lg_dtype)d), length))
                        return lg__onnx_type((lg_dtype)d);
        return 0;
}

/* Reads the value of an attribute and writes its fields. Returns its type. */
static int value(lg__onnx_out *n, const char **p)
{
        char *end;
        const size_t length = strcspn(*p, ",) ");
        const int dtype = type_named(*p, length);
        if (**p == '(')
                return list(n, p);
        if (**p == '\'') {
                const size_t bytes = strcspn(*p + 1, "'");
                lg__proto_put_bytes(&n->out, ATTRIBUTE_S, *p + 1, bytes);
                *p += bytes + 2;
                return TYPE_STRING;
        }
        const bool real = !dtype && strcspn(*p, ".en") < length;
        if (real)
                lg__proto_put_f32(&n->out, ATTRIBUTE_F, (float)strtod(*p, &end));
        else
                lg__proto_put_int(&n->out, ATTRIBUTE_I, dtype ? dtype : strtoll(*p, &end, 10));
        *p += length;
        return real ? TYPE_FLOAT : TYPE_INT;
}

static bool attribute(lg__onnx_out *n, const char *name, size_t length, const char **p)
{
        const int64_t begun = lg__proto_begin(&n->out, NODE_ATTRIBUTE);
        lg__proto_put_bytes(&n->out, ATTRIBUTE_NAME, name, length);
        lg__proto_put_int(&n->out, ATTRIBUTE_TYPE, value(n, p));
        lg__proto_end(&n->out, begun);
        return !n->out.ctx->error;
}

/* Reads an argument or attribute of operator `of`. */
static bool argument(lg__onnx_emitter *e, lg__onnx_out *n, const char *of, const char **p)
{
        const size_t length = word_length(*p);
        const lg__op *op = e->op->op;
        const char *word = *p;
        if (length && word[length] == '=') {
                *p += length + 1;
                return attribute(n, word, length, p);
        }
        const lg__operand *last = op->operand_count ? &op->operands[op->operand_count - 1] : NULL;
        if (!last || !last->variadic || strlen(last->name) != length || strncmp(last->name, word, length) ||
            word[length] == '(')
                return lg__onnx_add_argument(n, expression(e, p, !strncmp(of, "Reshape(", 8)));
        *p += length;
        for (int i = op->operand_count - 1; i < e->op->in_count; i++)
                if (!lg__onnx_add_argument(n, e->op->in[i] < 0 ? "" : value_name(e, e->op->in[i])))
                        return false;
        return true;
}

/* Reads an operator with its arguments and writes its node, with these names of results; out_count 0: a new one. */
static const char *operator(lg__onnx_emitter *e, const char **p, const char *const *out, int out_count)
{
        const char *name = *p;
        const size_t length = word_length(name);
        lg__onnx_out n = {.out.ctx = e->ctx};
        bool good = true;
        for (*p += length + 1; good && **p && **p != ')'; *p += **p == ',', skip_space(p)) {
                skip_space(p);
                good = argument(e, &n, name, p);
        }
        *p += **p == ')';
        const char *new = !good || out_count ? NULL : lg__onnx_new_name(e, name, length);
        if (!good || (!out_count && !new)) {
                lg__proto_free(&n.out);
                return NULL;
        }
        return lg__onnx_finish(e, &n, name, length, out_count ? out : &new, out_count ? out_count : 1);
}

static const char *expression(lg__onnx_emitter *e, const char **p, bool reshape)
{
        const size_t length = word_length(*p);
        const char *word = *p;
        if (*word == '[')
                return lg__onnx_vector(e, p, reshape);
        if (*word == '{')
                return lg__onnx_numbers(e, p);
        if (*word == '<') {
                char *end;
                const int64_t v = strtoll(word + 1, &end, 10);
                *p = end + (*end == '>');
                return lg__onnx_whole_numbers(e, &v, 1, true);
        }
        if (length && word[length] == '(')
                return operator(e, p, NULL, 0);
        *p += length;
        return length ? operand(e, word, length) : "";
}

/* Returns which result of the op has that name, or -1. Names of results of any number are y0, y1, .... */
static int result_of(const lg__onnx_applied *a, const char *word, size_t length)
{
        if (length == 2 && *word == 'y' && isdigit((unsigned char)word[1]) && word[1] - '0' < a->out_count)
                return word[1] - '0';
        for (int i = 0; i < a->op->result_count && i < a->out_count; i++)
                if (strlen(a->op->results[i].name) == length && !strncmp(a->op->results[i].name, word, length))
                        return i;
        return -1;
}

/* Notes the name of a statement's result. */
static bool set_local(lg__onnx_emitter *e, const char *word, size_t length, const char *name)
{
        const int k = result_of(e->op, word, length);
        if (k >= 0)
                e->recording->values[e->op->out[k]].name = name;
        if (!lg__grow(e->ctx, &e->locals, e->local_count, &e->local_room, sizeof *e->locals))
                return false;
        e->locals[e->local_count++] = (lg__onnx_local){word, length, name};
        return true;
}

/* A statement of a form: "a, b = expression". */
typedef struct statement {
        const char *words[LG__MAX_OUT]; /* names of its results, in the form */
        size_t lengths[LG__MAX_OUT];
        int count;
        const char *expression, *end;
        bool kept; /* a later statement or another op uses a result */
} statement;
#define MOST_STATEMENTS 24

/* Reads the names in front of an expression. If there are none, the statement sets the op's first result. */
static void read_targets(statement *t, const lg__op *op, const char *s)
{
        const char *p = s;
        t->count = 0;
        t->expression = NULL;
        while (t->count < LG__MAX_OUT && !t->expression) {
                skip_space(&p);
                const size_t length = word_length(p);
                if (!length)
                        break;
                t->words[t->count] = p;
                t->lengths[t->count++] = length;
                p += length;
                skip_space(&p);
                if (*p == '=')
                        t->expression = p + 1;
                else if (*p++ != ',')
                        break;
        }
        if (!t->expression) {
                t->words[0] = op->result_count ? op->results[0].name : "y";
                t->lengths[0] = strlen(t->words[0]);
                t->count = 1;
                t->expression = s;
        }
}

/* Returns whether the word occurs from `from` to `to`. */
static bool mentions(const char *from, const char *to, const char *word, size_t length)
{
        while (from < to) {
                const size_t n = word_length(from);
                if (n == length && !strncmp(from, word, length))
                        return true;
                from += n ? n : 1;
        }
        return false;
}

/* Returns whether result k of statement i is a result of the op that is used, or a later statement needs it. */
static bool needed(const lg__onnx_emitter *e, const statement *all, int count, int i, int k)
{
        const char *word = all[i].words[k];
        const size_t length = all[i].lengths[k];
        const int result = result_of(e->op, word, length);
        bool need = e->op->op->compose ? i + 1 == count : result >= 0 && e->recording->values[e->op->out[result]].used;
        for (int later = i + 1; later < count && !need; later++)
                need = all[later].kept && mentions(all[later].expression, all[later].end, word, length);
        return need;
}

/* Splits the form into statements and marks those that are needed. Returns their number. */
static int read_statements(const lg__onnx_emitter *e, statement all[MOST_STATEMENTS])
{
        int count = 0;
        for (const char *p = e->op->form; *p && count < MOST_STATEMENTS; count++) {
                const char *end = p + strcspn(p, ";");
                all[count] = (statement){.end = end};
                read_targets(&all[count], e->op->op, p);
                p = end + (*end == ';');
                skip_space(&p);
        }
        for (int i = count - 1; i >= 0; i--)
                for (int k = 0; k < all[i].count; k++)
                        all[i].kept = all[i].kept || needed(e, all, count, i, k);
        return count;
}

/* Returns the name in the file of result k of statement i: an output's, if no later statement sets it again. */
static const char *planned_name(lg__onnx_emitter *e, const statement *all, int count, int i, int k)
{
        const lg__onnx_recording *r = e->recording;
        const statement *t = &all[i];
        const int result = e->op->op->compose && i + 1 == count ? 0 : result_of(e->op, t->words[k], t->lengths[k]);
        bool last = result >= 0;
        for (int later = i + 1; later < count; later++)
                for (int w = 0; w < all[later].count; w++)
                        last = last && (all[later].lengths[w] != t->lengths[k] ||
                                        strncmp(all[later].words[w], t->words[k], t->lengths[k]));
        for (int64_t o = 0; last && o < r->outputs.count; o++)
                if (r->output_values[o] == e->op->out[result])
                        return e->outputs[o];
        const char *operator= t->expression;
        skip_space(&operator);
        return lg__onnx_new_name(e, operator, word_length(operator));
}

/* Returns whether results of the operator at s, but for the first, may be left out. */
static bool has_optional_results(const char *s)
{
        static const char *const names[] = {"MaxPool(", "LSTM(", "GRU(", "RNN("};
        bool has = false;
        for (int i = 0; i < 4; i++)
                has = has || !strncmp(s, names[i], strlen(names[i]));
        return has;
}

static bool write_statement(lg__onnx_emitter *e, const statement *all, int count, int i)
{
        const statement *t = &all[i];
        const char *p = t->expression, *names[LG__MAX_OUT];
        int results = 0;
        skip_space(&p);
        const size_t length = word_length(p);
        if (!length || p[length] != '(') {
                names[0] = expression(e, &p, false);
                results = 1;
        } else {
                for (int k = 0; k < t->count; k++) {
                        const bool need = needed(e, all, count, i, k) || !has_optional_results(p);
                        names[k] = need ? planned_name(e, all, count, i, k) : "";
                        if (!names[k])
                                return false;
                        results = need ? k + 1 : results;
                }
                if (!operator(e, &p, names, results))
                        return false;
        }
        for (int k = 0; k < results; k++)
                if (!names[k] || !set_local(e, t->words[k], t->lengths[k], names[k]))
                        return false;
        if (e->op->op->compose && i + 1 == count) /* composites have no named results */
                e->recording->values[e->op->out[0]].name = names[0];
        return true;
}

static bool write_op(lg__onnx_emitter *e, const lg__onnx_applied *a)
{
        statement all[MOST_STATEMENTS];
        e->op = a;
        e->local_count = 0;
        const int count = read_statements(e, all);
        for (int i = 0; i < count; i++)
                if (all[i].kept && !write_statement(e, all, count, i))
                        return e->ctx->error ? false
                                             : lg__fail(e->ctx, LG_ERR_STATE, OP ": the form of %s cannot be read: %s",
                                                        a->op->name, a->form);
        return true;
}

static bool is_used(const lg__onnx_recording *r, const lg__onnx_applied *a)
{
        bool used = false;
        for (int k = 0; k < a->out_count; k++)
                used = used || r->values[a->out[k]].used;
        return used;
}

/* Marks the values that results of the module need. */
static void mark_used(lg__onnx_recording *r)
{
        for (int64_t i = 0; i < r->outputs.count; i++)
                r->values[r->output_values[i]].used = true;
        for (int64_t i = r->op_count; i-- > 0;) {
                const lg__onnx_applied *a = &r->ops[i];
                const bool used = is_used(r, a);
                for (int k = 0; k < a->in_count && used; k++)
                        if (a->in[k] >= 0)
                                r->values[a->in[k]].used = true;
        }
}

/* Writes 0, 1, 2, ... up to the number in a vector of one. */
static const char *count_to(lg__onnx_emitter *e, const char *end, lg_dtype dtype)
{
        static const int64_t numbers[] = {0, 1};
        const char *zero = lg__onnx_whole_numbers(e, &numbers[0], 1, true),
                   *one = lg__onnx_whole_numbers(e, &numbers[1], 1, true);
        const char *result = lg__onnx_new_name(e, "Range", 5),
                   *limit = lg__onnx_simple(e, "Squeeze", end, NULL, NULL, 0);
        lg__onnx_out n = {.out.ctx = e->ctx};
        if (!result || !lg__onnx_add_argument(&n, zero) || !lg__onnx_add_argument(&n, limit) ||
            !lg__onnx_add_argument(&n, one)) {
                lg__proto_free(&n.out);
                return NULL;
        }
        const char *name = lg__onnx_finish(e, &n, "Range", 5, &result, 1);
        return dtype == LG_I64 || !name ? name : lg__onnx_simple(e, "Cast", name, NULL, "to", lg__onnx_type(dtype));
}

/* Writes the number of value i, all of whose elements are equal, as often as `sizes` say. */
static const char *repeated(lg__onnx_emitter *e, int64_t i, const char *sizes)
{
        const lg__onnx_value *v = &e->recording->values[i];
        char text[32];
        snprintf(text, sizeof text, "{%lld", (long long)i);
        const lg_scope scope = lg_scope_begin(e->ctx);
        const lg_tensor *host = lg__clone_values(v->tensor, e->ctx->cpu->id, v->dtype);
        const char *one = host ? lg__onnx_constant_of(e, text, v->dtype, LG_SHAPE_0D, lg__data(host)) : NULL;
        lg_scope_end(e->ctx, scope);
        return one ? lg__onnx_simple(e, "Expand", one, sizes, NULL, 0) : NULL;
}

/* Writes the constants whose sizes change. */
static bool expand_constants(lg__onnx_emitter *e)
{
        lg__onnx_recording *r = e->recording;
        for (int64_t i = 0; i < r->value_count; i++) {
                lg__onnx_value *v = &r->values[i];
                const char *p = v->sizes;
                if (!v->sizes || !v->used)
                        continue;
                const char *sizes = lg__onnx_vector(e, &p, false);
                if (!sizes || !(v->name = v->counts ? count_to(e, sizes, v->dtype) : repeated(e, i, sizes)))
                        return false;
                lg__tensor_release(v->tensor);
                v->tensor = NULL;
        }
        return true;
}

bool lg__onnx_emit(lg__onnx_emitter *e)
{
        lg__onnx_recording *r = e->recording;
        e->opset = 13;
        e->nodes.ctx = e->ctx;
        mark_used(r);
        if (!expand_constants(e))
                return false;
        for (int64_t i = 0; i < r->op_count; i++)
                if (is_used(r, &r->ops[i]) && !write_op(e, &r->ops[i]))
                        return false;
        e->op = NULL;
        for (int64_t i = 0; i < r->outputs.count; i++) {
                const char *name = value_name(e, r->output_values[i]);
                lg__onnx_out n = {.out.ctx = e->ctx};
                if (!name)
                        return false;
                if (strcmp(name, e->outputs[i]) &&
                    (!lg__onnx_add_argument(&n, name) || !lg__onnx_finish(e, &n, "Identity", 8, &e->outputs[i], 1)))
                        return false;
        }
        return true;
}

void lg__onnx_emitter_free(lg__onnx_emitter *e)
{
        lg__proto_free(&e->nodes);
        lg__free(e->ctx, e->constants, (size_t)e->constant_room * sizeof *e->constants);
        lg__free(e->ctx, e->locals, (size_t)e->local_room * sizeof *e->locals);
        lg__arena_free(e->ctx, &e->arena);
}
