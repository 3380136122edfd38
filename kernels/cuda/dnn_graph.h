/* dnn_graph.h - describing a cuDNN graph: descriptors, tensors and pointwise operations. */
#ifndef LG_CUDA_DNN_GRAPH_H
#define LG_CUDA_DNN_GRAPH_H

#include "dnn.h"
#if LG_CUDNN

/* Makes cuDNN descriptors; after the first call that fails, all further calls do nothing. */
struct lg_dnn_builder {
        lg_queue *q;
        lg_dnn_parts *parts;
        const lg_dnn_library *l = lg_dnn_find();
        lg_dnn_answer state = LG_DNN_DONE;
        cudnnStatus_t broken = CUDNN_STATUS_SUCCESS; /* first error of an engine, other than "not supported" */
        lg_dnn_words words = {};                     /* description of that error */
        int tried = 0; /* engines seen so far that may be used, in the order of preference */

        bool good() const
        {
                return state == LG_DNN_DONE;
        }
        void judge(const char *call, cudnnStatus_t s)
        {
                state = lg_dnn_judge(q, call, s);
        }
        cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
        {
                cudnnBackendDescriptor_t d = nullptr;
                if (good() && parts->count == LG_DNN_PARTS) {
                        lg_queue_fail(q, LG_BROKEN, "cuDNN: a graph of too many parts");
                        state = LG_DNN_FAILED;
                }
                if (good())
                        judge("cudnnBackendCreateDescriptor", l->make(type, &d));
                if (good())
                        parts->part[parts->count++] = d;
                return d;
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t count, const void *values)
        {
                if (good())
                        judge("cudnnBackendSetAttribute", l->set(d, name, type, count, values));
        }
        /* Set an attribute to one value, whose cuDNN type follows from the argument's type. */
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)
        {
                set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnDataType_t type)
        {
                set(d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t number)
        {
                set(d, name, CUDNN_TYPE_INT64, 1, &number);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, bool yes)
        {
                set(d, name, CUDNN_TYPE_BOOLEAN, 1, &yes);
        }
        /* Reads up to `room` values of an attribute; *count is the number available. */
        void get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t room, int64_t *count, void *values)
        {
                *count = 0;
                if (good())
                        judge("cudnnBackendGetAttribute", l->get(d, name, type, room, count, values));
        }
        void finish(cudnnBackendDescriptor_t d)
        {
                if (good())
                        judge("cudnnBackendFinalize", l->finish(d));
        }
};

static inline cudnnDataType_t lg_dnn_type_of(int32_t t)
{
        return t == LG_F64    ? CUDNN_DATA_DOUBLE
               : t == LG_F16  ? CUDNN_DATA_HALF
               : t == LG_BF16 ? CUDNN_DATA_BFLOAT16
                              : CUDNN_DATA_FLOAT;
}

/* Where a tensor is: in device memory, only within the graph, or a number that the host gives. */
typedef enum lg_dnn_memory { LG_DNN_IN_MEMORY, LG_DNN_VIRTUAL, LG_DNN_BY_VALUE } lg_dnn_memory;

/* Describes a tensor with four dimensions; its number must be unique in the graph. */
cudnnBackendDescriptor_t lg_dnn_tensor(lg_dnn_builder *b, cudnnDataType_t type, int64_t number, const int64_t *dims,
                                       const int64_t *strides, int64_t alignment, lg_dnn_memory memory);
/* Describes an operation on elements of x, and of y and z if they are not NULL, with results of tensor `to`. axis: that
 * of CUDNN_POINTWISE_GEN_INDEX. */
cudnnBackendDescriptor_t lg_dnn_pointwise(lg_dnn_builder *b, cudnnPointwiseMode_t mode, cudnnDataType_t precision,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y,
                                          cudnnBackendDescriptor_t z, cudnnBackendDescriptor_t to, int64_t axis = -1);

#define LG_DNN_OPERATIONS 32 /* most operations of a graph */
/* Describe the operations of the graph of a key in *ret. Return how many they are. */
int64_t lg_dnn_conv_operations(lg_dnn_builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t *ret);
int64_t lg_dnn_attention_operations(lg_dnn_builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t *ret);

#endif
#endif
