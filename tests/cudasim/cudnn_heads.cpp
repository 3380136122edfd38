/* cudnn_heads.cpp - graphs of products, pointwise operations, reductions and reshapes, such as attention: operation by
 * operation, in plain loops. Each result is rounded to its type.
 */
#include "cudnn_graph.h"
#include "runtime.h"
#include <cmath>

namespace cudasim::dnn
{
/* ---- what a graph says ---- */

namespace
{
/* The names of the inputs, the result and the descriptor of an operation that is no convolution. */
struct names_of_operation {
        cudnnBackendDescriptorType_t type;
        int in[3], to, descriptor, mode; /* -1: none */
};
const names_of_operation other_names[] = {{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                           {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                            CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                                           CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
                                           CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                           CUDNN_ATTR_POINTWISE_MODE},
                                          {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                           {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, -1},
                                           CUDNN_ATTR_OPERATION_MATMUL_CDESC,
                                           CUDNN_ATTR_OPERATION_MATMUL_DESC,
                                           -1},
                                          {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                           {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, -1, -1},
                                           CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
                                           CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                                           CUDNN_ATTR_REDUCTION_OPERATOR},
                                          {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                                           {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, -1, -1},
                                           CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
                                           -1,
                                           -1}};

} // namespace

operation operation_of(const descriptor *d)
{
        for (const names_of_operation &n : other_names) {
                if (n.type != d->type)
                        continue;
                operation o = {d->type, 0, 0, {}, tensor_of(part(d, n.to))};
                for (int name : n.in)
                        if (name >= 0 && d->has.count(name))
                                o.in.push_back(tensor_of(part(d, name)));
                const descriptor *p = n.descriptor >= 0 ? part(d, n.descriptor) : nullptr;
                if (n.mode >= 0)
                        o.mode = value<int>(p, n.mode);
                if (p && p->has.count(CUDNN_ATTR_POINTWISE_AXIS))
                        o.axis = value<int64_t>(p, CUDNN_ATTR_POINTWISE_AXIS);
                return o;
        }
        die("cuDNN: an operation of type %d, where a graph begins otherwise", (int)d->type);
}

std::vector<operation> operations_of(const descriptor *graph)
{
        std::vector<operation> all;
        for (int i = 0; i < graph->has.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).count; i++)
                all.push_back(operation_of(part(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i)));
        return all;
}

/* Of a pointwise operation, product, reduction or reshape. */
cudnnStatus_t finish_operation(const descriptor *d)
{
        const operation o = operation_of(d);
        const bool product = d->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                   pointwise = d->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
        int64_t size = 1, to_size = 1;
        bool good = o.in.size() == (product || !pointwise ? 1 + product : o.in.size());
        for (int i = 0; i < 4; i++) {
                size *= o.in[0].dims[i];
                to_size *= o.to.dims[i];
                for (const tensor &t : o.in)
                        good = good && (!pointwise || t.dims[i] == o.to.dims[i] || t.dims[i] == 1);
                if (d->type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
                        good = good && (o.to.dims[i] == o.in[0].dims[i] || o.to.dims[i] == 1);
                if (product && i < 2)
                        good = good && o.in[0].dims[i] == o.to.dims[i] && o.in[1].dims[i] == o.to.dims[i];
        }
        if (d->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
                good = size == to_size;
        if (product)
                good = good && o.in[0].dims[2] == o.to.dims[2] && o.in[0].dims[3] == o.in[1].dims[2] &&
                       o.in[1].dims[3] == o.to.dims[3];
        return good ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
}

/* Each operation has its inputs before it, and a name means one tensor. */
cudnnStatus_t finish_operations(const descriptor *g)
{
        std::map<int64_t, tensor> known;
        for (const operation &o : operations_of(g)) {
                for (const tensor &t : o.in)
                        if (t.is_virtual && !known.count(t.name))
                                return CUDNN_STATUS_BAD_PARAM;
                for (const tensor &t : o.in)
                        if (known.emplace(t.name, t).first->second.type != t.type)
                                return CUDNN_STATUS_BAD_PARAM;
                if (o.to.by_value || !known.emplace(o.to.name, o.to).second)
                        return CUDNN_STATUS_BAD_PARAM;
        }
        return CUDNN_STATUS_SUCCESS;
}

/* ---- running it ---- */

namespace
{
/* The values of a tensor in row-major order of its dimensions. */
struct values {
        const int64_t *dims;
        std::vector<float> v;

        /* Index of an element, where dimensions of size 1 are broadcast. */
        size_t at(const int64_t (&i)[4]) const
        {
                int64_t place = 0;
                for (int d = 0; d < 4; d++)
                        place = place * dims[d] + (dims[d] == 1 ? 0 : i[d]);
                return (size_t)place;
        }
};

template <typename F> void each(const int64_t *dims, const F &f)
{
        int64_t i[4];
        for (i[0] = 0; i[0] < dims[0]; i[0]++)
                for (i[1] = 0; i[1] < dims[1]; i[1]++)
                        for (i[2] = 0; i[2] < dims[2]; i[2]++)
                                for (i[3] = 0; i[3] < dims[3]; i[3]++)
                                        f(i);
}

struct machine {
        const std::map<int64_t, char *> &memory;
        bool backwards;
        std::map<int64_t, std::vector<float>> known; /* results so far */

        values read(const tensor &t)
        {
                values x = {t.dims, {}};
                if (known.count(t.name)) {
                        x.v = known.at(t.name);
                        return x;
                }
                each(t.dims, [&](const int64_t(&i)[4]) {
                        x.v.push_back((float)load(t, memory.at(t.name), place(t, i[0], i[1], i[2], i[3]), false));
                });
                return x;
        }
        void write(const tensor &t, values &x)
        {
                for (float &v : x.v) {
                        char room[8];
                        if (t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16) {
                                store(t, room, 0, v);
                                v = (float)load(t, room, 0, false);
                        }
                }
                size_t n = 0;
                if (!t.is_virtual)
                        each(t.dims, [&](const int64_t(&i)[4]) {
                                store(t, memory.at(t.name), place(t, i[0], i[1], i[2], i[3]), x.v[n++]);
                        });
                known[t.name] = x.v;
        }
        void multiply(const operation &o)
        {
                const values a = read(o.in[0]), b = read(o.in[1]);
                const bool adds = !o.to.is_virtual && o.to.type == CUDNN_DATA_FLOAT;
                values c = {o.to.dims, {}};
                const values before = adds ? read(o.to) : c;
                each(o.to.dims, [&](const int64_t(&i)[4]) {
                        float sum = adds ? before.v[c.v.size()] : 0;
                        const int64_t terms = o.in[0].dims[3];
                        for (int64_t k = 0; k < terms; k++) {
                                const int64_t l = adds && backwards ? terms - 1 - k : k;
                                sum += a.v[a.at({i[0], i[1], i[2], l})] * b.v[b.at({i[0], i[1], l, i[3]})];
                        }
                        c.v.push_back(sum);
                });
                write(o.to, c);
        }
        void reduce(const operation &o)
        {
                const bool most = o.mode == CUDNN_REDUCE_TENSOR_MAX;
                const values x = read(o.in[0]);
                values y = {o.to.dims, {}};
                y.v.assign(y.at({o.to.dims[0] - 1, o.to.dims[1] - 1, o.to.dims[2] - 1, o.to.dims[3] - 1}) + 1,
                           most ? -INFINITY : 0);
                each(o.in[0].dims, [&](const int64_t(&i)[4]) {
                        float &to = y.v[y.at(i)];
                        to = most ? fmaxf(to, x.v[x.at(i)]) : to + x.v[x.at(i)];
                });
                write(o.to, y);
        }
        /* The same memory with the last two dimensions exchanged. */
        void reshape(const operation &o)
        {
                const tensor &x = o.in[0], &y = o.to;
                if (x.strides[2] != y.strides[3] || x.strides[3] != y.strides[2] || x.dims[2] != y.dims[3])
                        die("cuDNN: a reshape that is no transposition");
                const values from = read(x);
                values to = {y.dims, {}};
                each(y.dims, [&](const int64_t(&i)[4]) { to.v.push_back(from.v[from.at({i[0], i[1], i[3], i[2]})]); });
                write(y, to);
        }
        static float apply(int mode, float x, float y, float z)
        {
                switch (mode) {
                case CUDNN_POINTWISE_ADD:
                        return x + y;
                case CUDNN_POINTWISE_SUB:
                        return x - y;
                case CUDNN_POINTWISE_MUL:
                        return x * y;
                case CUDNN_POINTWISE_DIV:
                        return x / y;
                case CUDNN_POINTWISE_EXP:
                        return expf(x);
                case CUDNN_POINTWISE_LOG:
                        return logf(x);
                case CUDNN_POINTWISE_IDENTITY:
                        return x;
                case CUDNN_POINTWISE_CMP_GE:
                        return x >= y;
                case CUDNN_POINTWISE_BINARY_SELECT:
                        return z != 0 ? x : y;
                default:
                        die("cuDNN: pointwise mode %d is not simulated", mode);
                }
        }
        void pointwise(const operation &o)
        {
                std::vector<values> in;
                for (const tensor &t : o.in)
                        in.push_back(read(t));
                values to = {o.to.dims, {}};
                each(o.to.dims, [&](const int64_t(&i)[4]) {
                        float x[3] = {};
                        for (size_t k = 0; k < in.size(); k++)
                                x[k] = in[k].v[in[k].at(i)];
                        to.v.push_back(o.mode == CUDNN_POINTWISE_GEN_INDEX ? (float)i[o.axis]
                                                                           : apply(o.mode, x[0], x[1], x[2]));
                });
                write(o.to, to);
        }
};
} // namespace

void compute(const std::vector<operation> &operations, const std::map<int64_t, char *> &memory, bool backwards)
{
        machine m = {memory, backwards, {}};
        for (const operation &o : operations)
                if (o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
                        m.multiply(o);
                else if (o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
                        m.reduce(o);
                else if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
                        m.reshape(o);
                else
                        m.pointwise(o);
}
} // namespace cudasim::dnn
