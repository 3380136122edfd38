/* cudnn.cpp - the functions of cuDNN 9 in use: convolutions by the graph API, in plain loops, when the stream gets
 * there.
 *
 * Engines of every graph: one that says only at the plan that it cannot; one on tensor cores, which rounds f32 to TF32;
 * one that adds up gradients in another order each time; and, from the fallback heuristic, a plain one. All want
 * channels last. Only the tensor cores' adds a bias. Misuse dies; what cuDNN refuses is refused.
 */
#include "sim.h"
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <vector>
#include <cudnn.h>

using namespace cudasim;

struct cudnnContext {
        cudaStream_t stream;
        int device;
};

namespace
{
enum { LATE, TENSOR, UNSTEADY, PLAIN };

struct attribute {
        cudnnBackendAttributeType_t type;
        int64_t count;
        std::vector<char> bytes;
};
struct descriptor {
        cudnnBackendDescriptorType_t type;
        bool finished = false;
        std::map<int, attribute> has;
        int engine = 0; /* of an engine, a configuration, a plan */
        descriptor *graph = nullptr;
};
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
#define ADD_RULE(name)                                                                                                 \
        {                                                                                                              \
                CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_##name,                   \
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true                                                      \
        }

const rule rules[] = {
        TENSOR_RULE(DATA_TYPE, DATA_TYPE, 1, 1, true),
        TENSOR_RULE(DIMENSIONS, INT64, 4, 4, true),
        TENSOR_RULE(STRIDES, INT64, 4, 4, true),
        TENSOR_RULE(UNIQUE_ID, INT64, 1, 1, true),
        TENSOR_RULE(BYTE_ALIGNMENT, INT64, 1, 1, true),
        TENSOR_RULE(IS_VIRTUAL, BOOLEAN, 1, 1, false),
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
        ADD_RULE(PW_DESCRIPTOR),
        ADD_RULE(XDESC),
        ADD_RULE(BDESC),
        ADD_RULE(YDESC),
        {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 2,
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
        case CUDNN_TYPE_HEUR_MODE:
                return 4;
        default:
                return 8;
        }
}

descriptor *of(const void *p, const char *call)
{
        if (!alive().count((void *)p))
                die("%s: %p is no descriptor, or one that was destroyed", call, p);
        return (descriptor *)p;
}

template <typename T> T value(const descriptor *d, int name, int i = 0)
{
        T v;
        memcpy(&v, d->has.at(name).bytes.data() + (size_t)i * sizeof v, sizeof v);
        return v;
}
descriptor *part(const descriptor *d, int name, int i = 0)
{
        return of(value<void *>(d, name, i), "cudnnBackendFinalize");
}

size_t size_of(cudnnDataType_t t)
{
        return t == CUDNN_DATA_DOUBLE ? 8 : t == CUDNN_DATA_FLOAT ? 4 : 2;
}

/* ---- what a graph says ---- */

struct tensor {
        int64_t dims[4], strides[4], name, alignment;
        cudnnDataType_t type;
        bool is_virtual;
};
struct meaning {
        int kind; /* 0: forward, 1: input gradient, 2: weight gradient */
        tensor x, w, y, bias, result;
        int64_t stride[2], padding[2], dilation[2];
        bool biased, wide;
};

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
        return t;
}

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

/* ---- finalising ---- */

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

cudnnStatus_t finish_add(const descriptor *o)
{
        const descriptor *p = part(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        const tensor x = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)),
                     b = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)),
                     y = tensor_of(part(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        bool good = value<cudnnPointwiseMode_t>(p, CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD;
        for (int i = 0; i < 4; i++)
                good = good && x.dims[i] == y.dims[i] && b.dims[i] == (i == 1 ? y.dims[1] : 1);
        return good ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t finish_graph(const descriptor *g)
{
        const meaning m = meaning_of(g);
        if (!m.biased)
                return m.result.is_virtual ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
        const descriptor *conv = part(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0),
                         *add = part(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, 1);
        const descriptor *between = part(conv, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        return m.kind == 0 && between == part(add, CUDNN_ATTR_OPERATION_POINTWISE_XDESC) &&
                               tensor_of(between).is_virtual && !m.y.is_virtual
                       ? CUDNN_STATUS_SUCCESS
                       : CUDNN_STATUS_BAD_PARAM;
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
        const meaning m = meaning_of(of(p->graph, "cudnnBackendFinalize"));
        if ((refuse && *refuse == '1') || p->engine == LATE)
                return CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
        if (m.biased && p->engine != TENSOR)
                return CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
        return is_last(m.x) && is_last(m.w) && is_last(m.y) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
}

cudnnStatus_t finish_pack(const descriptor *d)
{
        const attribute &a = d->has.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                        &b = d->has.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        return a.count == b.count ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t finish(descriptor *d)
{
        for (const rule &r : rules)
                if (r.of == d->type && r.needed && !d->has.count(r.name))
                        die("cudnnBackendFinalize: descriptor of type %d without attribute %d", (int)d->type, r.name);
        switch (d->type) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
                return finish_tensor(d);
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
                return finish_add(d);
        case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
                return finish_graph(d);
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
                return finish_plan(d);
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
                return finish_pack(d);
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
                return CUDNN_STATUS_SUCCESS;
        default:
                return kind_of(d->type) >= 0 ? finish_conv(d) : CUDNN_STATUS_BAD_PARAM;
        }
}

/* ---- asking ---- */

std::vector<int> engines_of(const descriptor *heuristic)
{
        const auto mode = value<cudnnBackendHeurMode_t>(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE);
        if (mode == CUDNN_HEUR_MODE_A)
                return {LATE, TENSOR, UNSTEADY};
        if (mode == CUDNN_HEUR_MODE_FALLBACK)
                return {PLAIN};
        die("cuDNN: heuristic mode %d", (int)mode);
}

size_t workspace_of(const descriptor *plan)
{
        return plan->engine == PLAIN ? 0 : 1000 + (size_t)plan->engine;
}

void fill(descriptor *empty, cudnnBackendDescriptorType_t type, int engine, descriptor *graph)
{
        if (empty->type != type || empty->finished)
                die("cudnnBackendGetAttribute: a descriptor of type %d, where an empty one of type %d is filled in",
                    (int)empty->type, (int)type);
        empty->finished = true;
        empty->engine = engine;
        empty->graph = graph;
}

int64_t get(descriptor *d, int name, int64_t room, void *to)
{
        if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
                const std::vector<int> engines = engines_of(d);
                for (int64_t i = 0; i < room && i < (int64_t)engines.size(); i++)
                        fill(of(((void **)to)[i], "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                             engines[(size_t)i], part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
                return (int64_t)engines.size();
        }
        if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE && room == 1) {
                fill(of(*(void **)to, "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINE_DESCRIPTOR, d->engine,
                     d->graph);
                return 1;
        }
        if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
                const cudnnBackendNumericalNote_t note =
                        d->engine == TENSOR ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
                const bool steady = meaning_of(of(d->graph, "cudnnBackendGetAttribute")).kind == 0;
                const int64_t count = d->engine == TENSOR || (d->engine == UNSTEADY && !steady);
                if (count && room)
                        memcpy(to, &note, sizeof note);
                return count;
        }
        if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
            room == 1) {
                *(int64_t *)to = (int64_t)workspace_of(d);
                return 1;
        }
        die("cudnnBackendGetAttribute: attribute %d of a descriptor of type %d", name, (int)d->type);
}

/* ---- running ---- */

double load(const tensor &t, const char *p, int64_t at, bool tf32)
{
        switch (t.type) {
        case CUDNN_DATA_DOUBLE:
                return ((const double *)p)[at];
        case CUDNN_DATA_HALF:
                return __half2float(((const __half *)p)[at]);
        case CUDNN_DATA_BFLOAT16:
                return __bfloat162float(((const __nv_bfloat16 *)p)[at]);
        default: {
                uint32_t bits;
                memcpy(&bits, p + at * 4, 4);
                bits &= tf32 ? 0xffffe000u : 0xffffffffu;
                float f;
                memcpy(&f, &bits, 4);
                return f;
        }
        }
}

void store(const tensor &t, char *p, int64_t at, double v)
{
        switch (t.type) {
        case CUDNN_DATA_DOUBLE:
                ((double *)p)[at] = v;
                break;
        case CUDNN_DATA_HALF:
                ((__half *)p)[at] = __float2half((float)v);
                break;
        case CUDNN_DATA_BFLOAT16:
                ((__nv_bfloat16 *)p)[at] = __float2bfloat16((float)v);
                break;
        default:
                ((float *)p)[at] = (float)v;
        }
}

struct run {
        meaning m;
        char *x, *w, *y, *bias, *workspace;
        size_t workspace_bytes;
        int engine;
        bool backwards;
};

int64_t place(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d)
{
        return a * t.strides[0] + b * t.strides[1] + c * t.strides[2] + d * t.strides[3];
}

/* A tensor's values, tightly packed by the given order of its dimensions, the last one fastest. */
template <typename S> std::vector<S> unpack(const tensor &t, const char *p, const int (&order)[4], bool tf32)
{
        std::vector<S> v;
        int64_t i[4];
        v.reserve((size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]));
        for (i[order[0]] = 0; i[order[0]] < t.dims[order[0]]; i[order[0]]++)
                for (i[order[1]] = 0; i[order[1]] < t.dims[order[1]]; i[order[1]]++)
                        for (i[order[2]] = 0; i[order[2]] < t.dims[order[2]]; i[order[2]]++)
                                for (i[order[3]] = 0; i[order[3]] < t.dims[order[3]]; i[order[3]]++)
                                        v.push_back((S)load(t, p, place(t, i[0], i[1], i[2], i[3]), tf32));
        return v;
}

template <typename S> void pack(const run &r, const tensor &t, char *p, const int (&order)[4], const S *v)
{
        int64_t i[4];
        for (i[order[0]] = 0; i[order[0]] < t.dims[order[0]]; i[order[0]]++)
                for (i[order[1]] = 0; i[order[1]] < t.dims[order[1]]; i[order[1]]++)
                        for (i[order[2]] = 0; i[order[2]] < t.dims[order[2]]; i[order[2]]++)
                                for (i[order[3]] = 0; i[order[3]] < t.dims[order[3]]; i[order[3]]++) {
                                        S sum = *v++;
                                        if (r.m.biased)
                                                sum += (S)load(r.m.bias, r.bias, i[1] * r.m.bias.strides[1], false);
                                        store(t, p, place(t, i[0], i[1], i[2], i[3]), sum);
                                }
}

/* Of the simulator's own memory, and most of the work: not for sanitizers. */
template <typename S>
__attribute__((no_sanitize("address", "undefined"))) void add_scaled(int64_t n, S by, const S *x, S *y)
{
        for (int64_t i = 0; i < n; i++)
                y[i] += by * x[i];
}

/* One pixel of x meets one of y through one element of the kernel; c channels and o outputs in each group. `w` lies as
 * (c, all outputs), but for an input gradient as (all outputs, c). */
template <typename S>
__attribute__((no_sanitize("address", "undefined"))) void one_element(int kind, int64_t groups, int64_t c, int64_t o,
                                                                      S *x, S *w, S *y)
{
        for (int64_t g = 0; g < groups; g++, x += c, y += o, w += kind == 1 ? o * c : o)
                for (int64_t i = 0; i < (kind == 1 ? o : c); i++)
                        if (kind == 0)
                                add_scaled(o, x[i], w + i * o * groups, y);
                        else if (kind == 1)
                                add_scaled(c, y[i], w + i * c, x);
                        else
                                add_scaled(o, x[i], y, w + i * o * groups);
}

/* S: what is added up in. */
template <typename S> void convolve(const run &r)
{
        const meaning &m = r.m;
        const bool tf32 = r.engine == TENSOR;
        const int64_t channels = m.x.dims[1], outputs = m.w.dims[0], c = m.w.dims[1], groups = channels / c,
                      o = outputs / groups;
        const int pixels[4] = {0, 2, 3, 1}, by_output[4] = {2, 3, 1, 0}, by_channel[4] = {2, 3, 0, 1};
        const int(&weights)[4] = m.kind == 1 ? by_channel : by_output;
        std::vector<S> x, w, y, late;
        auto get = [&](int kind, const tensor &t, const char *p, const int(&order)[4]) {
                return m.kind == kind ? std::vector<S>((size_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]), 0)
                                      : unpack<S>(t, p, order, tf32);
        };
        y = get(0, m.y, r.y, pixels);
        x = get(1, m.x, r.x, pixels);
        w = get(2, m.w, r.w, weights);
        std::vector<S> &sums = m.kind == 0 ? y : m.kind == 1 ? x : w;
        late.assign(r.backwards ? sums.size() : 0, 0); /* every other pixel is added up on its own */
        int64_t number = 0;
        for (int64_t n = 0; n < m.x.dims[0]; n++)
                for (int64_t i = 0; i < m.y.dims[2]; i++)
                        for (int64_t j = 0; j < m.y.dims[3]; j++)
                                for (int64_t k = 0; k < m.w.dims[2]; k++)
                                        for (int64_t l = 0; l < m.w.dims[3]; l++) {
                                                int64_t h = i * m.stride[0] - m.padding[0] + k * m.dilation[0];
                                                int64_t v = j * m.stride[1] - m.padding[1] + l * m.dilation[1];
                                                if (h < 0 || v < 0 || h >= m.x.dims[2] || v >= m.x.dims[3])
                                                        continue;
                                                S *to = r.backwards && number++ % 2 ? late.data() : sums.data();
                                                S *px = (m.kind == 1 ? to : x.data()) +
                                                        ((n * m.x.dims[2] + h) * m.x.dims[3] + v) * channels;
                                                S *py = (m.kind == 0 ? to : y.data()) +
                                                        ((n * m.y.dims[2] + i) * m.y.dims[3] + j) * outputs;
                                                S *pw = (m.kind == 2 ? to : w.data()) +
                                                        (k * m.w.dims[3] + l) * c * outputs;
                                                one_element(m.kind, groups, c, o, px, pw, py);
                                        }
        for (size_t i = 0; i < late.size(); i++)
                sums[i] += late[i];
        if (m.kind == 0)
                pack(r, m.result, r.y, pixels, sums.data());
        else if (m.kind == 1)
                pack(r, m.result, r.x, pixels, sums.data());
        else
                pack(r, m.result, r.w, weights, sums.data());
}

/* Where the pack says that a tensor is. */
cudnnStatus_t find(const descriptor *pack, const tensor &t, char **ret)
{
        const attribute &ids = pack->has.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        *ret = nullptr;
        for (int i = 0; i < ids.count; i++)
                if (value<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == t.name)
                        *ret = value<char *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
        if (!*ret)
                die("cudnnBackendExecute: the pack has no tensor %d", (int)t.name);
        if ((uintptr_t)*ret % (uintptr_t)t.alignment)
                return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
        int64_t span = 1;
        for (int i = 0; i < 4; i++)
                span += (t.dims[i] - 1) * t.strides[i];
        check_device("cudnnBackendExecute", *ret, (size_t)span * size_of(t.type));
        return CUDNN_STATUS_SUCCESS;
}
} // namespace

#define LOCK std::lock_guard<std::recursive_mutex> guard_(everything())
#define FAIL                                                                                                           \
        if (fails(__func__))                                                                                           \
        return CUDNN_STATUS_INTERNAL_ERROR
#define FAIL_MEMORY(where)                                                                                             \
        if (fails(__func__))                                                                                           \
        return CUDNN_STATUS_INTERNAL_ERROR_##where##_ALLOCATION_FAILED

extern "C" {
size_t CUDNNWINAPI cudnnGetVersion(void)
{
        return CUDNN_VERSION;
}

const char *CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t s)
{
        return s == CUDNN_STATUS_SUCCESS          ? "CUDNN_STATUS_SUCCESS"
               : s == CUDNN_STATUS_INTERNAL_ERROR ? "CUDNN_STATUS_INTERNAL_ERROR"
               : s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                       ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
               : s == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                       ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
               : CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM"
                                                                    : "CUDNN_STATUS_NOT_SUPPORTED";
}

cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t *h)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        if (fails(__func__, LOAD))
                return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
        int device = 0;
        cudaGetDevice(&device);
        *h = new cudnnContext{nullptr, device};
        count_handles(1);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t h)
{
        LOCK;
        delete h;
        count_handles(-1);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
        LOCK;
        FAIL;
        h->stream = s;
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *ret)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        descriptor *d = new descriptor;
        d->type = type;
        alive().insert(d);
        count_handles(1);
        *ret = d;
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t p)
{
        LOCK;
        descriptor *d = of(p, "cudnnBackendDestroyDescriptor");
        alive().erase(d);
        delete d;
        count_handles(-1);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
        LOCK;
        FAIL;
        descriptor *d = of(p, "cudnnBackendSetAttribute");
        const rule *found = nullptr;
        for (const rule &r : rules)
                if (r.of == d->type && r.name == name)
                        found = &r;
        if (!found || d->finished)
                die("cudnnBackendSetAttribute: attribute %d of a descriptor of type %d%s", (int)name, (int)d->type,
                    d->finished ? ", which is finalised" : "");
        const bool factor = found->type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE;
        if ((type != found->type && !factor) || count < found->least || count > found->most)
                die("cudnnBackendSetAttribute: %d values of type %d for attribute %d", (int)count, (int)type,
                    (int)name);
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
                for (int64_t i = 0; i < count; i++)
                        if (!of(((void *const *)values)[i], "cudnnBackendSetAttribute")->finished)
                                die("cudnnBackendSetAttribute: a descriptor in attribute %d is not finalised",
                                    (int)name);
        const char *bytes = (const char *)values;
        d->has[name] = {type, count, std::vector<char>(bytes, bytes + (size_t)count * bytes_of(type))};
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t const p, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t, int64_t room, int64_t *count,
                                                   void *values)
{
        LOCK;
        FAIL;
        descriptor *d = of(p, "cudnnBackendGetAttribute");
        if (!d->finished)
                die("cudnnBackendGetAttribute: a descriptor of type %d that is not finalised", (int)d->type);
        *count = get(d, name, room, values);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t p)
{
        LOCK;
        FAIL;
        descriptor *d = of(p, "cudnnBackendFinalize");
        if (d->finished)
                die("cudnnBackendFinalize: a descriptor of type %d, a second time", (int)d->type);
        const cudnnStatus_t s = finish(d);
        d->finished = s == CUDNN_STATUS_SUCCESS;
        return s;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                              cudnnBackendDescriptor_t pack)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(DEVICE);
        descriptor *p = of(plan, "cudnnBackendExecute"), *v = of(pack, "cudnnBackendExecute");
        int device = -1;
        cudaGetDevice(&device);
        if (!p->finished || !v->finished || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
            v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                die("cudnnBackendExecute: not a plan and a pack that are finalised");
        if (device != h->device || value<cudnnHandle_t>(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != h)
                die("cudnnBackendExecute: a handle of another plan or device");
        run r = {meaning_of(of(p->graph, "cudnnBackendExecute")),
                 nullptr,
                 nullptr,
                 nullptr,
                 nullptr,
                 nullptr,
                 workspace_of(p),
                 p->engine,
                 false};
        cudnnStatus_t s = find(v, r.m.x, &r.x);
        s = s == CUDNN_STATUS_SUCCESS ? find(v, r.m.w, &r.w) : s;
        s = s == CUDNN_STATUS_SUCCESS ? find(v, r.m.y, &r.y) : s;
        if (r.m.biased && s == CUDNN_STATUS_SUCCESS)
                s = find(v, r.m.bias, &r.bias);
        if (s != CUDNN_STATUS_SUCCESS)
                return s;
        if (r.workspace_bytes) {
                r.workspace = value<char *>(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
                check_device("cudnnBackendExecute (workspace)", r.workspace, r.workspace_bytes);
        }
        static bool other;
        other = !other;
        r.backwards = p->engine == UNSTEADY && r.m.kind != 0 && other;
        enqueue(h->stream, [r] {
                if (r.workspace_bytes)
                        memset(r.workspace, 0x5a, r.workspace_bytes);
                r.m.wide ? convolve<double>(r) : convolve<float>(r);
        });
        return CUDNN_STATUS_SUCCESS;
}
} // extern "C"
