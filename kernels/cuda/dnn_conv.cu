/* dnn_conv.cu - a convolution as a cuDNN graph. */
#include "dnn_graph.h"
#if LG_CUDNN

static cudnnDataType_t compute_type(const lg_dnn_key *k)
{
        return k->dtype == LG_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* Describes a tensor (N, C, H, W), stored with channels last. */
static cudnnBackendDescriptor_t image_tensor(lg_dnn_builder *b, const lg_dnn_key *k, int64_t number,
                                             const int64_t dims[4], bool is_virtual)
{
        const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
        return lg_dnn_tensor(b, is_virtual ? compute_type(k) : lg_dnn_type_of(k->dtype), number, dims, strides,
                             is_virtual ? 16 : k->alignment, is_virtual ? LG_DNN_VIRTUAL : LG_DNN_IN_MEMORY);
}

static cudnnBackendDescriptor_t geometry(lg_dnn_builder *b, const lg_dnn_key *k)
{
        const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
        cudnnBackendDescriptor_t c = b->make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        b->set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type(k));
        b->set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
        b->set(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, (int64_t)2);
        b->set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, k->at.padding);
        b->set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, k->at.padding);
        b->set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, k->at.stride);
        b->set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, k->at.dilation);
        b->finish(c);
        return c;
}

/* cuDNN's names of the operations and their attributes, indexed by lg_conv_kind. */
static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t geometry, x, w, y, alpha, beta;
} operations[] = {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
                  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
                  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

/* Describes the convolution of k->kind, with alpha = 1 and beta = 0 (the result is overwritten). */
static cudnnBackendDescriptor_t convolution(lg_dnn_builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t x,
                                            cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
        const auto &names = operations[k->kind];
        const float f[] = {1, 0};
        const double d[] = {1, 0};
        const bool wide = k->dtype == LG_F64;
        const cudnnBackendAttributeType_t type = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
        cudnnBackendDescriptor_t conv = geometry(b, k), o = b->make(names.type);
        b->set(o, names.geometry, conv);
        b->set(o, names.x, x);
        b->set(o, names.w, w);
        b->set(o, names.y, y);
        b->set(o, names.alpha, type, 1, wide ? (const void *)&d[0] : &f[0]);
        b->set(o, names.beta, type, 1, wide ? (const void *)&d[1] : &f[1]);
        b->finish(o);
        return o;
}

int64_t lg_dnn_conv_operations(lg_dnn_builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t *ret)
{
        const lg_conv_geometry *at = &k->at;
        const int64_t x_dims[] = {k->n, k->channels, at->in[0], at->in[1]};
        const int64_t w_dims[] = {k->outputs, k->channels / at->groups, at->kernel[0], at->kernel[1]};
        const int64_t y_dims[] = {k->n, k->outputs, at->out[0], at->out[1]}, b_dims[] = {1, k->outputs, 1, 1};
        cudnnBackendDescriptor_t x = image_tensor(b, k, LG_DNN_X, x_dims, false);
        cudnnBackendDescriptor_t w = image_tensor(b, k, LG_DNN_W, w_dims, false);
        cudnnBackendDescriptor_t y = image_tensor(b, k, LG_DNN_Y, y_dims, false);
        if (!k->bias) {
                ret[0] = convolution(b, k, x, w, y);
                return 1;
        }
        cudnnBackendDescriptor_t values = image_tensor(b, k, LG_DNN_B, b_dims, false);
        cudnnBackendDescriptor_t sum = image_tensor(b, k, LG_DNN_SUM, y_dims, true);
        ret[0] = convolution(b, k, x, w, sum);
        ret[1] = lg_dnn_pointwise(b, CUDNN_POINTWISE_ADD, compute_type(k), sum, values, nullptr, y);
        return 2;
}
#endif
