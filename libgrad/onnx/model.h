/* model.h - ONNX's messages, as far as libgrad knows them, and their numbers: https://onnx.ai/onnx/repo-docs/IR.html.
 * Private to onnx/. */
#ifndef LG_ONNX_MODEL_H
#define LG_ONNX_MODEL_H

#include "io/protobuf.h"
#include "io/text.h"
#include "tensor/tensor.h"

/* The newest opset whose operators libgrad knows, and the newest version of the format. */
#define LG__ONNX_OPSET 28
#define LG__ONNX_IR 10

/* ---- field numbers of onnx.proto ---- */

enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { MODEL_FUNCTIONS = 25 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_SPARSE = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum {
        ATTRIBUTE_NAME = 1,
        ATTRIBUTE_F = 2,
        ATTRIBUTE_I = 3,
        ATTRIBUTE_S = 4,
        ATTRIBUTE_T = 5,
        ATTRIBUTE_FLOATS = 7,
        ATTRIBUTE_INTS = 8,
        ATTRIBUTE_STRINGS = 9,
        ATTRIBUTE_TYPE = 20
};
/* Values of AttributeProto.type. */
enum {
        TYPE_FLOAT = 1,
        TYPE_INT = 2,
        TYPE_STRING = 3,
        TYPE_TENSOR = 4,
        TYPE_FLOATS = 6,
        TYPE_INTS = 7,
        TYPE_STRINGS = 8
};
enum {
        TENSOR_DIMS = 1,
        TENSOR_DTYPE = 2,
        TENSOR_FLOATS = 4,
        TENSOR_INTS32 = 5,
        TENSOR_INTS64 = 7,
        TENSOR_NAME = 8,
        TENSOR_RAW = 9,
        TENSOR_DOUBLES = 10,
        TENSOR_UINTS64 = 11,
        TENSOR_EXTERNAL = 13,
        TENSOR_LOCATION = 14
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_OF_TENSOR = 1, TENSOR_TYPE_DTYPE = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };

/* Returns libgrad's dtype for a value of TensorProto.DataType, or LG_DTYPE_NONE, and the reverse. The name of a data
 * type that libgrad lacks, such as "int8", is for messages. */
lg_dtype lg__onnx_dtype(int64_t type);
int lg__onnx_type(lg_dtype dtype);
const char *lg__onnx_type_name(int64_t type);

/* ---- memory that is freed at once ---- */

struct lg__arena;
/* Returns zeroed memory for `count` items, or NULL with LG_ERR_MEMORY. *arena begins as NULL. */
void *lg__arena_get(lg_ctx *c, struct lg__arena **arena, int64_t count, size_t bytes);
void lg__arena_free(lg_ctx *c, struct lg__arena **arena);

/* ---- a model in memory ---- */

/* A tensor in a file. Its elements are `bytes` bytes at `data` or, if `numbers` is not 0, that many numbers in fields
 * of the message (lg__onnx_fill() reads them). */
typedef struct lg__onnx_tensor {
        const char *name;
        int64_t type; /* TensorProto.DataType */
        lg_shape shape;
        lg__span raw;         /* row-major elements, the lowest byte first; may be unaligned */
        lg__span message;     /* of the TensorProto, if the elements are not raw */
        int field;            /* of the message that has the elements, if they are not raw */
        const char *location; /* file of the elements, if they are external; then: */
        int64_t offset, length;
} lg__onnx_tensor;

typedef struct lg__onnx_attribute {
        const char *name;
        int64_t type; /* TYPE_INT, ...; another one is a kind that libgrad lacks */
        double f;
        int64_t i;
        const char *s;
        int64_t count; /* of floats, ints or strings */
        double *floats;
        int64_t *ints;
        const char **strings;
        lg__onnx_tensor t;
} lg__onnx_attribute;

typedef struct lg__onnx_node {
        const char *op, *name;
        bool foreign; /* of another domain than ONNX's own */
        int64_t in_count, out_count, attribute_count;
        const char **in, **out; /* names; "": an operand or result that is left out */
        lg__onnx_attribute *attributes;
} lg__onnx_node;

/* An input or output of the graph. A dimension of the shape is -1 if the file gives no number; it may have a name. */
typedef struct lg__onnx_info {
        const char *name;
        int64_t type;                  /* TensorProto.DataType; 0: no tensor */
        lg_shape shape;                /* ndim -1: not given */
        const char *dims[LG_MAX_DIMS]; /* names of dimensions, or NULL */
} lg__onnx_info;

typedef struct lg__onnx_model {
        lg_ctx *ctx;
        const char *op;   /* name of the public function, for messages */
        const char *path; /* of the file */
        int64_t opset;
        const char *producer, *producer_version; /* the program that wrote the file; NULL: not given */
        int64_t node_count, initializer_count, input_count, output_count;
        lg__onnx_node *nodes;
        lg__onnx_tensor *initializers;
        lg__onnx_info *inputs, *outputs;
        struct lg__arena *arena; /* memory of all of these */
} lg__onnx_model;

/* Reads the messages in `file`, to which the model then refers. The caller sets ctx, op and path. Returns false with an
 * error: LG_ERR_FORMAT, LG_ERR_MEMORY. In any case lg__onnx_model_free() frees what the model has. */
bool lg__onnx_parse(lg__onnx_model *m, lg__span file);
void lg__onnx_model_free(lg__onnx_model *m);

/* Reads the elements of t into `to`, which has room for them, or returns a tensor of them on the CPU, of libgrad's
 * dtype. Fails with LG_ERR_FORMAT, LG_ERR_DTYPE, LG_ERR_IO. */
bool lg__onnx_fill(const lg__onnx_model *m, const lg__onnx_tensor *t, void *to);
lg_tensor *lg__onnx_tensor_of(const lg__onnx_model *m, const lg__onnx_tensor *t);

#endif
