/* cudnn_graph.cpp - descriptors of cuDNN's graph API: which attributes they must have, and what a graph of them says.
 */
#include "cudnn_graph.h"
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

namespace cudasim::dnn
{
namespace
{
std::set<void *> &alive()
{
        static auto &s = *new std::set<void *>;
        return s;
}

/* What an attribute must be: its type, and how many values at least and at most. */
struct rule {
        cudnnBackendDescriptorType_t of;
        int name;
        cudnnBackendAttributeType_t type;
        int64_t least, most;
        bool needed;
};
#define TENSOR_RULE(name, type, least, most, needed)                                                                   \
        {                                                                                                              \
                CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_##name, CUDNN_TYPE_##type, least, most, needed      \
        }
#define CONV_RULE(name, type, count)                                                                                   \
        {                                                                                                              \
                CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_##name, CUDNN_TYPE_##type, count, count,  \
                        true                                                                                           \
        }
#define OPERATION_RULES(descriptor, prefix, x, w, y)                                                                     \
        {descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},        \
                {descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1,       \
                 true},                                                                                                  \
                {descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1,       \
                 true},                                                                                                  \
                {descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, \
                 true},                                                                                                  \
                {descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true},           \
        {                                                                                                                \
                descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA, CUDNN_TYPE_FLOAT, 1, 1, true               \
        }
#define PART_RULE(operation, name, needed)                                                                             \
        {                                                                                                              \
                CUDNN_BACKEND_OPERATION_##operation##_DESCRIPTOR, CUDNN_ATTR_OPERATION_##operation##_##name,           \
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, needed                                                    \
        }

const rule rules[] = {
        TENSOR_RULE(DATA_TYPE, DATA_TYPE, 1, 1, true),
        TENSOR_RULE(DIMENSIONS, INT64, 4, 4, true),
        TENSOR_RULE(STRIDES, INT64, 4, 4, true),
        TENSOR_RULE(UNIQUE_ID, INT64, 1, 1, true),
        TENSOR_RULE(BYTE_ALIGNMENT, INT64, 1, 1, true),
        TENSOR_RULE(IS_VIRTUAL, BOOLEAN, 1, 1, false),
        TENSOR_RULE(IS_BY_VALUE, BOOLEAN, 1, 1, false),
        CONV_RULE(COMP_TYPE, DATA_TYPE, 1),
        CONV_RULE(CONV_MODE, CONVOLUTION_MODE, 1),
        CONV_RULE(SPATIAL_DIMS, INT64, 1),
        CONV_RULE(DILATIONS, INT64, 2),
        CONV_RULE(FILTER_STRIDES, INT64, 2),
        CONV_RULE(PRE_PADDINGS, INT64, 2),
        CONV_RULE(POST_PADDINGS, INT64, 2),
        OPERATION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, FORWARD, X, W, Y),
        OPERATION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, BWD_DATA, DX, W, DY),
        OPERATION_RULES(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, BWD_FILTER, X, DW, DY),
        {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, true},
        {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, 1, false},
        PART_RULE(POINTWISE, PW_DESCRIPTOR, true),
        PART_RULE(POINTWISE, XDESC, true),
        PART_RULE(POINTWISE, BDESC, false),
        PART_RULE(POINTWISE, TDESC, false),
        PART_RULE(POINTWISE, YDESC, true),
        {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        PART_RULE(MATMUL, DESC, true),
        PART_RULE(MATMUL, ADESC, true),
        PART_RULE(MATMUL, BDESC, true),
        PART_RULE(MATMUL, CDESC, true),
        {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1,
         true},
        {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, true},
        PART_RULE(REDUCTION, DESC, true),
        PART_RULE(REDUCTION, XDESC, true),
        PART_RULE(REDUCTION, YDESC, true),
        PART_RULE(RESHAPE, XDESC, true),
        PART_RULE(RESHAPE, YDESC, true),
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 32,
         true},
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         1, true},
        {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, true},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, true},
        {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 16, true},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 16,
         true},
        {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, false},
};

size_t bytes_of(cudnnBackendAttributeType_t t)
{
        switch (t) {
        case CUDNN_TYPE_BOOLEAN:
                return sizeof(bool);
        case CUDNN_TYPE_FLOAT:
        case CUDNN_TYPE_DATA_TYPE:
        case CUDNN_TYPE_CONVOLUTION_MODE:
        case CUDNN_TYPE_POINTWISE_MODE:
        case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
        case CUDNN_TYPE_HEUR_MODE:
                return 4;
        default:
                return 8;
        }
}

} // namespace

descriptor *create(cudnnBackendDescriptorType_t type)
{
        descriptor *d = new descriptor;
        d->type = type;
        alive().insert(d);
        count_handles(1);
        return d;
}

void destroy(descriptor *d)
{
        alive().erase(d);
        delete d;
        count_handles(-1);
}

descriptor *of(const void *p, const char *call)
{
        if (!alive().count((void *)p))
                die("%s: %p is no descriptor, or one that was destroyed", call, p);
        return (descriptor *)p;
}

void set(descriptor *d, int name, cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
        const rule *found = nullptr;
        for (const rule &r : rules)
                if (r.of == d->type && r.name == name)
                        found = &r;
        if (!found || d->finished)
                die("cudnnBackendSetAttribute: attribute %d of a descriptor of type %d%s", name, (int)d->type,
                    d->finished ? ", which is finalised" : "");
        const bool factor = found->type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE;
        if ((type != found->type && !factor) || count < found->least || count > found->most)
                die("cudnnBackendSetAttribute: %d values of type %d for attribute %d", (int)count, (int)type, name);
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
                for (int64_t i = 0; i < count; i++)
                        if (!of(((void *const *)values)[i], "cudnnBackendSetAttribute")->finished)
                                die("cudnnBackendSetAttribute: a descriptor in attribute %d is not finalised", name);
        const char *bytes = (const char *)values;
        d->has[name] = {type, count, std::vector<char>(bytes, bytes + (size_t)count * bytes_of(type))};
}

size_t size_of(cudnnDataType_t t)
{
        return t == CUDNN_DATA_DOUBLE                           ? 8
               : t == CUDNN_DATA_FLOAT || t == CUDNN_DATA_INT32 ? 4
               : t == CUDNN_DATA_BOOLEAN                        ? 1
                                                                : 2;
}

/* ---- what a graph says ---- */

tensor tensor_of(const descriptor *d)
{
        tensor t;
        for (int i = 0; i < 4; i++) {
                t.dims[i] = value<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
                t.strides[i] = value<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES, i);
        }
        t.name = value<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID);
        t.alignment = value<int64_t>(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
        t.type = value<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
        t.is_virtual = d->has.count(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && value<bool>(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
        t.by_value = d->has.count(CUDNN_ATTR_TENSOR_IS_BY_VALUE) && value<bool>(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
        return t;
}

namespace
{
/* The names of x, w, y, alpha, beta and the geometry, by kind. */
const int names[3][6] = {
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}};

int kind_of(cudnnBackendDescriptorType_t t)
{
        return t == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR           ? 0
               : t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR   ? 1
               : t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? 2
                                                                                     : -1;
}

meaning meaning_of_conv(const descriptor *o)
{
        meaning m = {};
        m.kind = kind_of(o->type);
        if (m.kind < 0)
                die("cuDNN: the first operation of a graph is no convolution");
        m.x = tensor_of(part(o, names[m.kind][0]));
        m.w = tensor_of(part(o, names[m.kind][1]));
        m.y = tensor_of(part(o, names[m.kind][2]));
        m.result = m.kind == 0 ? m.y : m.kind == 1 ? m.x : m.w;
        const descriptor *c = part(o, names[m.kind][5]);
        for (int i = 0; i < 2; i++) {
                m.stride[i] = value<int64_t>(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
                m.padding[i] = value<int64_t>(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
                m.dilation[i] = value<int64_t>(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
        }
        m.wide = m.x.type == CUDNN_DATA_DOUBLE;
        return m;
}

} // namespace

meaning meaning_of(const descriptor *graph)
{
        meaning m = meaning_of_conv(part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0));
        m.biased = graph->has.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).count == 2;
        if (m.biased) {
                const descriptor *o = part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 1);
                m.bias = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
                m.y = m.result = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        }
        return m;
}

bool is_convolution(const descriptor *graph)
{
        return kind_of(part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0)->type) >= 0;
}

/* ---- finalising ---- */

namespace
{
cudnnStatus_t finish_tensor(const descriptor *d)
{
        const tensor t = tensor_of(d);
        for (int i = 0; i < 4; i++)
                if (t.dims[i] < 1 || t.strides[i] < 1)
                        return CUDNN_STATUS_BAD_PARAM;
        return t.alignment < (int64_t)size_of(t.type) || t.alignment & (t.alignment - 1) ? CUDNN_STATUS_BAD_PARAM
                                                                                         : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_conv(const descriptor *o)
{
        const meaning m = meaning_of_conv(o);
        const descriptor *c = part(o, names[m.kind][5]);
        const cudnnDataType_t compute = value<cudnnDataType_t>(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
        const double alpha = m.wide ? value<double>(o, names[m.kind][3]) : value<float>(o, names[m.kind][3]);
        const double beta = m.wide ? value<double>(o, names[m.kind][4]) : value<float>(o, names[m.kind][4]);
        if (compute != (m.wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) || alpha != 1 || beta != 0 ||
            value<int64_t>(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2 ||
            value<cudnnConvolutionMode_t>(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
                return CUDNN_STATUS_BAD_PARAM;
        if (m.x.dims[0] != m.y.dims[0] || m.w.dims[0] != m.y.dims[1] || m.x.dims[1] % m.w.dims[1] ||
            m.w.dims[0] % (m.x.dims[1] / m.w.dims[1]))
                return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
        for (int i = 0; i < 2; i++) {
                const int64_t room = m.x.dims[i + 2] + m.padding[i] +
                                     value<int64_t>(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) -
                                     m.dilation[i] * (m.w.dims[i + 2] - 1) - 1;
                if (room < 0 || m.y.dims[i + 2] != room / m.stride[i] + 1)
                        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
        }
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish_graph(const descriptor *g)
{
        if (!is_convolution(g))
                return finish_operations(g);
        const meaning m = meaning_of(g);
        if (!m.biased)
                return m.result.is_virtual ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
        const descriptor *conv = part(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0),
                         *add = part(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, 1);
        const descriptor *between = part(conv, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        bool sum = operation_of(add).mode == CUDNN_POINTWISE_ADD;
        for (int i = 0; i < 4; i++)
                sum = sum && m.bias.dims[i] == (i == 1 ? m.y.dims[1] : 1);
        return m.kind == 0 && sum && between == part(add, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) &&
                               tensor_of(between).is_virtual && !m.y.is_virtual
                       ? CUDNN_STATUS_SUCCESS
                       : CUDNN_STATUS_BAD_PARAM;
}

/* Appends what a graph convolves to $CUDASIM_CUDNN_GRAPHS, once in a process: a line of tests/data/graphs.txt. */
void record(const meaning &m)
{
        static auto &known = *new std::set<std::string>;
        static const char *const kinds[] = {"forward", "input", "weight"};
        const char *file = getenv("CUDASIM_CUDNN_GRAPHS");
        if (!file || !*file)
                return;
        const char *type = m.x.type == CUDNN_DATA_DOUBLE  ? "f64"
                           : m.x.type == CUDNN_DATA_FLOAT ? "f32"
                           : m.x.type == CUDNN_DATA_HALF  ? "f16"
                                                          : "bf16";
        std::string line = std::string(kinds[m.kind]) + " " + type;
        for (int64_t i : {m.x.dims[0], m.x.dims[1], m.w.dims[0], m.x.dims[2], m.x.dims[3], m.w.dims[2], m.w.dims[3],
                          m.y.dims[2], m.y.dims[3], m.stride[0], m.stride[1], m.padding[0], m.padding[1], m.dilation[0],
                          m.dilation[1], m.x.dims[1] / m.w.dims[1], (int64_t)m.biased, m.x.alignment})
                line += " " + std::to_string(i);
        if (!known.insert(line).second)
                return;
        FILE *to = fopen(file, "a");
        if (!to || fprintf(to, "%s\n", line.c_str()) < 0 || fclose(to) != 0)
                die("$CUDASIM_CUDNN_GRAPHS: %s cannot be written", file);
}

bool is_last(const tensor &t)
{
        return t.dims[1] == 1 || t.strides[1] == 1;
}

cudnnStatus_t finish_plan(descriptor *p)
{
        const descriptor *config = part(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        const char *refuse = getenv("CUDASIM_CUDNN_REFUSE");
        p->engine = config->engine;
        p->graph = config->graph;
        if ((refuse && *refuse == '1') || p->engine == LATE)
                return CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
        if (!is_convolution(p->graph))
                return p->engine == COMPILED ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
        const meaning m = meaning_of(of(p->graph, "cudnnBackendFinalize"));
        if ((m.biased && p->engine != TENSOR) || (m.x.alignment < 16 && p->engine == COMPILED))
                return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
        return is_last(m.x) && is_last(m.w) && is_last(m.y) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
}

cudnnStatus_t finish_pack(const descriptor *d)
{
        const attribute &a = d->has.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                        &b = d->has.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        return a.count == b.count ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

} // namespace

cudnnStatus_t finish(descriptor *d)
{
        for (const rule &r : rules)
                if (r.of == d->type && r.needed && !d->has.count(r.name))
                        die("cudnnBackendFinalize: descriptor of type %d without attribute %d", (int)d->type, r.name);
        switch (d->type) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
                return finish_tensor(d);
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
                return finish_operation(d);
        case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: {
                const cudnnStatus_t s = finish_graph(d);
                if (s == CUDNN_STATUS_SUCCESS && is_convolution(d))
                        record(meaning_of(d));
                return s;
        }
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
                return finish_plan(d);
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
                return finish_pack(d);
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
        case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
                return CUDNN_STATUS_SUCCESS;
        default:
                return kind_of(d->type) >= 0 ? finish_conv(d) : CUDNN_STATUS_BAD_PARAM;
        }
}
} // namespace cudasim::dnn
