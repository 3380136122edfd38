/* cudnn_graph.h - what the parts of the simulated cuDNN share: descriptors, and what a graph of them says. */
#ifndef SIM_CUDNN_GRAPH_H
#define SIM_CUDNN_GRAPH_H

#include "sim.h"
#include <map>
#include <vector>
#include <cudnn.h>

namespace cudasim::dnn
{
enum { LATE, TENSOR, UNSTEADY, PLAIN, COMPILED }; /* engines */
/* Of a plan; it says which engine it is by. */
inline int64_t workspace_of(int engine)
{
        return engine == PLAIN ? 0 : 1000 + engine;
}

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

/* Descriptors, counted and known while they live. of() dies unless p is one. */
descriptor *create(cudnnBackendDescriptorType_t type);
void destroy(descriptor *d);
descriptor *of(const void *p, const char *call);
/* Dies unless the attribute is one of d's type, with as many values of that type. */
void set(descriptor *d, int name, cudnnBackendAttributeType_t type, int64_t count, const void *values);
cudnnStatus_t finish(descriptor *d);

template <typename T> T value(const descriptor *d, int name, int i = 0)
{
        T v;
        memcpy(&v, d->has.at(name).bytes.data() + (size_t)i * sizeof v, sizeof v);
        return v;
}
inline descriptor *part(const descriptor *d, int name, int i = 0)
{
        return of(value<void *>(d, name, i), "cudnnBackendFinalize");
}

struct tensor {
        int64_t dims[4], strides[4], name, alignment;
        cudnnDataType_t type;
        bool is_virtual, by_value;
};
struct meaning {
        int kind; /* 0: forward, 1: input gradient, 2: weight gradient */
        tensor x, w, y, bias, result;
        int64_t stride[2], padding[2], dilation[2];
        bool biased, wide;
};
meaning meaning_of(const descriptor *graph);

struct run {
        meaning m;
        char *x, *w, *y, *bias, *workspace;
        size_t workspace_bytes;
        int engine;
        bool backwards;
};

void convolve(const run &r);
size_t size_of(cudnnDataType_t t);
/* An element of a tensor in memory, at an offset in elements. */
double load(const tensor &t, const char *p, int64_t at, bool tf32);
void store(const tensor &t, char *p, int64_t at, double v);
int64_t place(const tensor &t, int64_t a, int64_t b, int64_t c, int64_t d);

/* ---- graphs that are no convolution: attention ---- */

struct operation {
        cudnnBackendDescriptorType_t type;
        int mode; /* of a pointwise operation or a reduction */
        int64_t axis;
        std::vector<tensor> in;
        tensor to;
};
tensor tensor_of(const descriptor *d);
bool is_convolution(const descriptor *graph);
operation operation_of(const descriptor *d);
std::vector<operation> operations_of(const descriptor *graph);
/* Say whether cuDNN would accept an operation, or a graph of them. */
cudnnStatus_t finish_operation(const descriptor *d);
cudnnStatus_t finish_operations(const descriptor *graph);
/* Runs them in order. memory: addresses of the tensors that are in memory, and of copies of those by value. Products
 * that are floats in memory are added to what is there, from the other end if `backwards`. */
void compute(const std::vector<operation> &operations, const std::map<int64_t, char *> &memory, bool backwards);
} // namespace cudasim::dnn

#endif
