/* model.c - reads the messages of an ONNX file, and the elements of its tensors. */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- data types ---- */

typedef struct data_type {
        const char *name;
        lg_dtype dtype;
        int field; /* of the numbers, if they are not raw */
} data_type;

/* By the values of TensorProto.DataType. */
static const data_type types[] = {
        {"undefined", LG_DTYPE_NONE, 0},  {"float", LG_F32, TENSOR_FLOATS},     {"uint8", LG_U8, TENSOR_INTS32},
        {"int8", LG_DTYPE_NONE, 0},       {"uint16", LG_DTYPE_NONE, 0},         {"int16", LG_DTYPE_NONE, 0},
        {"int32", LG_I32, TENSOR_INTS32}, {"int64", LG_I64, TENSOR_INTS64},     {"string", LG_DTYPE_NONE, 0},
        {"bool", LG_BOOL, TENSOR_INTS32}, {"float16", LG_F16, TENSOR_INTS32},   {"double", LG_F64, TENSOR_DOUBLES},
        {"uint32", LG_DTYPE_NONE, 0},     {"uint64", LG_DTYPE_NONE, 0},         {"complex64", LG_DTYPE_NONE, 0},
        {"complex128", LG_DTYPE_NONE, 0}, {"bfloat16", LG_BF16, TENSOR_INTS32},
};
#define TYPES ((int64_t)(sizeof types / sizeof *types))

lg_dtype lg__onnx_dtype(int64_t type)
{
        return type > 0 && type < TYPES ? types[type].dtype : LG_DTYPE_NONE;
}

int lg__onnx_type(lg_dtype dtype)
{
        for (int i = 1; i < TYPES; i++)
                if (types[i].dtype == dtype)
                        return i;
        return 0;
}

const char *lg__onnx_type_name(int64_t type)
{
        return type > 0 && type < TYPES ? types[type].name : "a dtype of 8 bits or less";
}

/* ---- memory that is freed at once ---- */

typedef struct lg__arena {
        struct lg__arena *next;
        size_t bytes; /* of this block, with this header */
} lg__arena;

void *lg__arena_get(lg_ctx *c, struct lg__arena **arena, int64_t count, size_t bytes)
{
        const size_t all = sizeof(lg__arena) + (size_t)count * bytes;
        lg__arena *a = lg__alloc(c, all);
        if (!a)
                return NULL;
        *a = (lg__arena){*arena, all};
        *arena = a;
        return a + 1;
}

void lg__arena_free(lg_ctx *c, struct lg__arena **arena)
{
        for (lg__arena *a = *arena, *next; a; a = next) {
                next = a->next;
                lg__free(c, a, a->bytes);
        }
        *arena = NULL;
}

static void *room_for(lg__onnx_model *m, int64_t count, size_t bytes)
{
        return lg__arena_get(m->ctx, &m->arena, count, bytes);
}

void lg__onnx_model_free(lg__onnx_model *m)
{
        lg__arena_free(m->ctx, &m->arena);
}

/* ---- fields ---- */

static bool damaged(lg__onnx_model *m, const char *message, const char *why)
{
        return lg__fail(m->ctx, LG_ERR_FORMAT, "%s: %s: %s: %s", m->op, lg__quoted(m->path).s, message, why);
}

/* Returns true at the end of a message, or reports why reading ended early. */
static bool ended(lg__onnx_model *m, const lg__proto *p, const char *message)
{
        return !p->wrong || damaged(m, message, p->wrong);
}

/* Counts the fields of a message by number, up to `most`. Returns false with an error if the message is damaged. */
static bool count_fields(lg__onnx_model *m, lg__span message, const char *name, int64_t most, int64_t *counts)
{
        lg__proto p = {.rest = message};
        memset(counts, 0, (size_t)(most + 1) * sizeof *counts);
        while (lg__proto_next(&p))
                if (p.field <= most) {
                        const int wire = p.field == ATTRIBUTE_FLOATS ? LG__FIXED32 : LG__VARINT;
                        const bool packs =
                                most == ATTRIBUTE_TYPE && (p.field == ATTRIBUTE_FLOATS || p.field == ATTRIBUTE_INTS);
                        counts[p.field] += packs ? lg__proto_numbers(&p, wire) : 1;
                }
        return ended(m, &p, name);
}

/* Copies the text of the current field. */
static bool take_text(lg__onnx_model *m, const lg__proto *p, const char *message, const char **ret)
{
        const lg__span all = p->bytes;
        for (size_t at = 0; p->wire == LG__BYTES && at < all.bytes;) {
                const int n = lg__utf8_length((lg__span){all.s + at, all.bytes - at});
                if (!n || !all.s[at])
                        return damaged(m, message, "a text is not UTF-8 or has a NUL");
                at += (size_t)n;
        }
        if (p->wire != LG__BYTES)
                return damaged(m, message, "a text has another wire type than it must have");
        char *s = room_for(m, (int64_t)all.bytes + 1, 1);
        if (!s)
                return false;
        memcpy(s, all.s, all.bytes);
        *ret = s;
        return true;
}

static bool is_message(lg__onnx_model *m, const lg__proto *p, const char *message)
{
        return p->wire == LG__BYTES || damaged(m, message, "a message has another wire type than it must have");
}

static bool take_int(lg__onnx_model *m, const lg__proto *p, const char *message, int64_t *ret)
{
        *ret = (int64_t)p->bits;
        return p->wire == LG__VARINT || damaged(m, message, "an integer has another wire type than it must have");
}

/* ---- tensors ---- */

static bool take_dims(lg__onnx_model *m, lg__proto *p, lg_shape *shape)
{
        lg__span left = p->bytes;
        for (uint64_t v; lg__proto_number(p, LG__VARINT, &left, &v);) {
                if (shape->ndim == LG_MAX_DIMS)
                        return damaged(m, "a tensor", "it has more than 8 dimensions");
                shape->size[shape->ndim++] = (int64_t)v;
        }
        return ended(m, p, "a tensor");
}

/* Reads an entry of external_data: where the elements are. */
static bool take_place(lg__onnx_model *m, lg__span entry, lg__onnx_tensor *t)
{
        const char *key = "", *value = "";
        lg__proto p = {.rest = entry};
        while (lg__proto_next(&p))
                if ((p.field == ENTRY_KEY || p.field == ENTRY_VALUE) &&
                    !take_text(m, &p, "external data", p.field == ENTRY_KEY ? &key : &value))
                        return false;
        if (!strcmp(key, "location"))
                t->location = value;
        if (!strcmp(key, "offset"))
                t->offset = strtoll(value, NULL, 10);
        if (!strcmp(key, "length"))
                t->length = strtoll(value, NULL, 10);
        return ended(m, &p, "external data");
}

static bool take_tensor_field(lg__onnx_model *m, lg__proto *p, lg__onnx_tensor *t, bool *external)
{
        int64_t location = 0;
        switch (p->field) {
        case TENSOR_DIMS:
                return take_dims(m, p, &t->shape);
        case TENSOR_DTYPE:
                return take_int(m, p, "a tensor", &t->type);
        case TENSOR_NAME:
                return take_text(m, p, "a tensor", &t->name);
        case TENSOR_EXTERNAL:
                return is_message(m, p, "a tensor") && take_place(m, p->bytes, t);
        case TENSOR_RAW:
                t->raw = p->bytes;
                return is_message(m, p, "a tensor");
        case TENSOR_LOCATION:
                if (!take_int(m, p, "a tensor", &location))
                        return false;
                *external = location == 1;
                return true;
        default:
                return true;
        }
}

/* Checks that a tensor has as many elements as its shape says; memory is taken for them only afterwards. */
static bool check_elements(lg__onnx_model *m, lg__onnx_tensor *t, bool external)
{
        const lg_dtype dtype = lg__onnx_dtype(t->type);
        int64_t n = 1;
        if (!lg__shape_valid(m->ctx, m->op, t->shape))
                return false;
        n = lg__shape_numel(t->shape);
        if (!dtype || n == 0) /* lg__onnx_fill() reports the dtype if the tensor is used */
                return true;
        const int64_t bytes = n * (int64_t)lg_dtype_size(dtype);
        if (external)
                return (t->location && t->offset >= 0 && (!t->length || t->length == bytes)) ||
                       damaged(m, t->name, "its external data has no place or another size");
        if (t->raw.s)
                return (int64_t)t->raw.bytes == bytes ||
                       damaged(m, t->name, "its data has another size than its shape");
        t->field = types[t->type].field;
        const int wire = t->field == TENSOR_FLOATS    ? LG__FIXED32
                         : t->field == TENSOR_DOUBLES ? LG__FIXED64
                                                      : LG__VARINT;
        lg__proto p = {.rest = t->message};
        int64_t found = 0;
        while (lg__proto_next(&p))
                if (p.field == t->field)
                        found += lg__proto_numbers(&p, wire);
        return found == n || damaged(m, t->name, "it has another number of elements than its shape");
}

static bool parse_tensor(lg__onnx_model *m, lg__span message, lg__onnx_tensor *t)
{
        bool external = false;
        lg__proto p = {.rest = message};
        t->name = "";
        t->message = message;
        while (lg__proto_next(&p))
                if (!take_tensor_field(m, &p, t, &external))
                        return false;
        if (!external)
                t->location = NULL;
        return ended(m, &p, "a tensor") && check_elements(m, t, external);
}

/* ---- nodes ---- */

/* Reads a field that is repeated: the next floats, ints or string. */
static bool take_numbers(lg__onnx_model *m, lg__proto *p, lg__onnx_attribute *a, int64_t *at)
{
        const int wire = p->field == ATTRIBUTE_FLOATS ? LG__FIXED32 : LG__VARINT;
        lg__span left = p->bytes;
        for (uint64_t v; lg__proto_number(p, wire, &left, &v); (*at)++)
                if (a->floats)
                        a->floats[*at] = (double)lg__proto_f32(v);
                else
                        a->ints[*at] = (int64_t)v;
        return ended(m, p, "an attribute");
}

/* Reads a tensor from a copy of its message, which outlives the file's bytes. */
static bool take_attribute_tensor(lg__onnx_model *m, const lg__proto *p, lg__onnx_tensor *t)
{
        if (!is_message(m, p, "an attribute"))
                return false;
        char *copy = room_for(m, (int64_t)p->bytes.bytes + 1, 1);
        if (!copy)
                return false;
        memcpy(copy, p->bytes.s, p->bytes.bytes);
        return parse_tensor(m, (lg__span){copy, p->bytes.bytes}, t);
}

static bool take_attribute_field(lg__onnx_model *m, lg__proto *p, lg__onnx_attribute *a, int64_t *at)
{
        switch (p->field) {
        case ATTRIBUTE_NAME:
                return take_text(m, p, "an attribute", &a->name);
        case ATTRIBUTE_I:
                return take_int(m, p, "an attribute", &a->i);
        case ATTRIBUTE_TYPE:
                return true; /* read before */
        case ATTRIBUTE_S:
                return a->type != TYPE_STRING || take_text(m, p, "an attribute", &a->s);
        case ATTRIBUTE_T:
                return a->type != TYPE_TENSOR || take_attribute_tensor(m, p, &a->t);
        case ATTRIBUTE_F:
                a->f = (double)lg__proto_f32(p->bits);
                return p->wire == LG__FIXED32 || damaged(m, "an attribute", "a float has another wire type");
        case ATTRIBUTE_FLOATS:
        case ATTRIBUTE_INTS:
                return (!a->floats && !a->ints) || take_numbers(m, p, a, at);
        case ATTRIBUTE_STRINGS:
                return !a->strings || take_text(m, p, "an attribute", &a->strings[(*at)++]);
        default:
                return true;
        }
}

/* Sets the type of an attribute, which old files leave out if it follows from the field that is there. */
static bool take_type(lg__onnx_model *m, lg__span message, const int64_t *counts, lg__onnx_attribute *a)
{
        static const int fields[][2] = {{ATTRIBUTE_F, TYPE_FLOAT},        {ATTRIBUTE_I, TYPE_INT},
                                        {ATTRIBUTE_S, TYPE_STRING},       {ATTRIBUTE_T, TYPE_TENSOR},
                                        {ATTRIBUTE_FLOATS, TYPE_FLOATS},  {ATTRIBUTE_INTS, TYPE_INTS},
                                        {ATTRIBUTE_STRINGS, TYPE_STRINGS}};
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p))
                if (p.field == ATTRIBUTE_TYPE && !take_int(m, &p, "an attribute", &a->type))
                        return false;
        for (size_t i = 0; !a->type && i < sizeof fields / sizeof *fields; i++)
                if (counts[fields[i][0]])
                        a->type = fields[i][1];
        return true;
}

static bool parse_attribute(lg__onnx_model *m, lg__span message, lg__onnx_attribute *a)
{
        int64_t counts[ATTRIBUTE_TYPE + 1], at = 0;
        a->name = a->s = "";
        if (!count_fields(m, message, "an attribute", ATTRIBUTE_TYPE, counts) || !take_type(m, message, counts, a))
                return false;
        if (a->type == TYPE_FLOATS &&
            !(a->floats = room_for(m, a->count = counts[ATTRIBUTE_FLOATS], sizeof *a->floats)))
                return false;
        if (a->type == TYPE_INTS && !(a->ints = room_for(m, a->count = counts[ATTRIBUTE_INTS], sizeof *a->ints)))
                return false;
        if (a->type == TYPE_STRINGS &&
            !(a->strings = room_for(m, a->count = counts[ATTRIBUTE_STRINGS], sizeof *a->strings)))
                return false;
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p))
                if ((p.field != ATTRIBUTE_FLOATS || a->floats) && (p.field != ATTRIBUTE_INTS || a->ints) &&
                    !take_attribute_field(m, &p, a, &at))
                        return false;
        if (a->type == TYPE_TENSOR && !a->t.name)
                return damaged(m, "an attribute", "it has no tensor");
        return ended(m, &p, "an attribute");
}

static bool parse_node(lg__onnx_model *m, lg__span message, lg__onnx_node *n)
{
        int64_t counts[NODE_DOMAIN + 1], in = 0, out = 0, attributes = 0;
        const char *domain = "";
        n->op = n->name = "";
        if (!count_fields(m, message, "a node", NODE_DOMAIN, counts) ||
            !(n->in = room_for(m, n->in_count = counts[NODE_INPUT], sizeof *n->in)) ||
            !(n->out = room_for(m, n->out_count = counts[NODE_OUTPUT], sizeof *n->out)) ||
            !(n->attributes = room_for(m, n->attribute_count = counts[NODE_ATTRIBUTE], sizeof *n->attributes)))
                return false;
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p)) {
                const char **to = p.field == NODE_INPUT    ? &n->in[in++]
                                  : p.field == NODE_OUTPUT ? &n->out[out++]
                                  : p.field == NODE_NAME   ? &n->name
                                  : p.field == NODE_OP     ? &n->op
                                  : p.field == NODE_DOMAIN ? &domain
                                                           : NULL;
                if (to && !take_text(m, &p, "a node", to))
                        return false;
                if (p.field == NODE_ATTRIBUTE &&
                    (!is_message(m, &p, "a node") || !parse_attribute(m, p.bytes, &n->attributes[attributes++])))
                        return false;
        }
        n->foreign = *domain && strcmp(domain, "ai.onnx") != 0;
        return ended(m, &p, "a node");
}

/* ---- inputs and outputs ---- */

static bool parse_dim(lg__onnx_model *m, lg__span message, int64_t *ret, const char **ret_name)
{
        lg__proto p = {.rest = message};
        *ret = -1;
        while (lg__proto_next(&p))
                if ((p.field == DIM_VALUE && !take_int(m, &p, "a dimension", ret)) ||
                    (p.field == DIM_NAME && !take_text(m, &p, "a dimension", ret_name)))
                        return false;
        return ended(m, &p, "a dimension");
}

/* Reads the messages TypeProto, its TypeProto.Tensor and the TensorShapeProto in it. */
static bool parse_type(lg__onnx_model *m, lg__span message, int level, lg__onnx_info *info)
{
        static const int inner[] = {TYPE_OF_TENSOR, TENSOR_TYPE_SHAPE, SHAPE_DIM};
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p)) {
                if (level == 1 && p.field == TENSOR_TYPE_DTYPE && !take_int(m, &p, "a type", &info->type))
                        return false;
                if (p.field != inner[level])
                        continue;
                if (!is_message(m, &p, "a type"))
                        return false;
                if (level == 1)
                        info->shape.ndim = 0;
                if (level == 2 && info->shape.ndim == LG_MAX_DIMS)
                        return damaged(m, info->name, "it has more than 8 dimensions");
                const int at = info->shape.ndim;
                if (level == 2 ? !parse_dim(m, p.bytes, &info->shape.size[info->shape.ndim++], &info->dims[at])
                               : !parse_type(m, p.bytes, level + 1, info))
                        return false;
        }
        return ended(m, &p, "a type");
}

static bool parse_info(lg__onnx_model *m, lg__span message, lg__onnx_info *info)
{
        lg__proto p = {.rest = message};
        *info = (lg__onnx_info){.name = "", .shape.ndim = -1};
        while (lg__proto_next(&p))
                if ((p.field == INFO_NAME && !take_text(m, &p, "an input or output", &info->name)) ||
                    (p.field == INFO_TYPE &&
                     (!is_message(m, &p, "an input or output") || !parse_type(m, p.bytes, 0, info))))
                        return false;
        return ended(m, &p, "an input or output");
}

/* ---- the graph and the model ---- */

static bool parse_graph(lg__onnx_model *m, lg__span message)
{
        int64_t counts[GRAPH_SPARSE + 1], initializer = 0, node = 0, in = 0, out = 0;
        if (m->nodes)
                return damaged(m, "the model", "it has two graphs");
        if (!count_fields(m, message, "the graph", GRAPH_SPARSE, counts))
                return false;
        if (counts[GRAPH_SPARSE])
                return damaged(m, "the graph", "it has sparse initialisers, which libgrad lacks");
        m->node_count = counts[GRAPH_NODE];
        m->initializer_count = counts[GRAPH_INITIALIZER];
        m->input_count = counts[GRAPH_INPUT];
        m->output_count = counts[GRAPH_OUTPUT];
        if (!(m->nodes = room_for(m, m->node_count, sizeof *m->nodes)) ||
            !(m->initializers = room_for(m, m->initializer_count, sizeof *m->initializers)) ||
            !(m->inputs = room_for(m, m->input_count, sizeof *m->inputs)) ||
            !(m->outputs = room_for(m, m->output_count, sizeof *m->outputs)))
                return false;
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p)) {
                const bool known = p.field == GRAPH_NODE || p.field == GRAPH_INITIALIZER || p.field == GRAPH_INPUT ||
                                   p.field == GRAPH_OUTPUT;
                if (!known)
                        continue;
                if (!is_message(m, &p, "the graph"))
                        return false;
                const bool good = p.field == GRAPH_NODE ? parse_node(m, p.bytes, &m->nodes[node++])
                                  : p.field == GRAPH_INITIALIZER
                                          ? parse_tensor(m, p.bytes, &m->initializers[initializer++])
                                  : p.field == GRAPH_INPUT ? parse_info(m, p.bytes, &m->inputs[in++])
                                                           : parse_info(m, p.bytes, &m->outputs[out++]);
                if (!good)
                        return false;
        }
        return ended(m, &p, "the graph");
}

/* Reads an OperatorSetIdProto. */
static bool parse_opset(lg__onnx_model *m, lg__span message)
{
        const char *domain = "";
        int64_t version = 0;
        lg__proto p = {.rest = message};
        while (lg__proto_next(&p))
                if ((p.field == OPSET_DOMAIN && !take_text(m, &p, "an opset", &domain)) ||
                    (p.field == OPSET_VERSION && !take_int(m, &p, "an opset", &version)))
                        return false;
        if (!*domain || !strcmp(domain, "ai.onnx"))
                m->opset = version;
        return ended(m, &p, "an opset");
}

bool lg__onnx_parse(lg__onnx_model *m, lg__span file)
{
        lg__proto p = {.rest = file};
        int64_t ir = 0;
        while (lg__proto_next(&p)) {
                if (p.field == MODEL_FUNCTIONS)
                        return damaged(m, "the model",
                                       "it has local functions, which libgrad lacks; inline them first");
                if (p.field == MODEL_IR_VERSION && !take_int(m, &p, "the model", &ir))
                        return false;
                if ((p.field == MODEL_PRODUCER && !take_text(m, &p, "the model", &m->producer)) ||
                    (p.field == MODEL_PRODUCER_VERSION && !take_text(m, &p, "the model", &m->producer_version)))
                        return false;
                if (p.field == MODEL_OPSET && (!is_message(m, &p, "the model") || !parse_opset(m, p.bytes)))
                        return false;
                if (p.field == MODEL_GRAPH && (!is_message(m, &p, "the model") || !parse_graph(m, p.bytes)))
                        return false;
        }
        if (!ended(m, &p, "the model"))
                return false;
        if (!m->nodes || !ir)
                return damaged(m, "the model", "it has no graph or no version; this is no ONNX file");
        if (m->opset < 1 || m->opset > LG__ONNX_OPSET)
                return lg__fail(m->ctx, LG_ERR_FORMAT, "%s: %s: its opset is %lld; libgrad knows those up to %d", m->op,
                                lg__quoted(m->path).s, (long long)m->opset, LG__ONNX_OPSET);
        return true;
}
