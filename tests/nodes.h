/* nodes.h - reads the node tests of ONNX from files in tests/data; data/nodes.py describes the lines. */
#ifndef LG_NODES_H
#define LG_NODES_H

#include "test.h"

enum { NODE_TENSORS = 512, NODE_PARTS = 16 };

typedef struct node_tensor {
        lg_dtype dtype;
        lg_shape shape;
        double *values;
} node_tensor;

typedef struct nodes {
        FILE *file;
        double *stream;
        node_tensor tensors[NODE_TENSORS];
        int tensor_count;
} nodes;

typedef struct node {
        const nodes *of;
        char name[96], attributes[NODE_PARTS][32], roles[NODE_PARTS][32];
        double values[NODE_PARTS];
        int tensors[NODE_PARTS];
        int attribute_count, tensor_count;
} node;

static inline double *node_numbers(FILE *f, int64_t n)
{
        double *v = calloc((size_t)n + 1, sizeof *v);
        assert_non_null(v);
        for (int64_t i = 0; i < n; i++)
                assert_int_equal(fscanf(f, "%lf", &v[i]), 1);
        return v;
}

static inline int node_int(FILE *f)
{
        int n;
        assert_int_equal(fscanf(f, "%d", &n), 1);
        return n;
}

static inline lg_dtype node_dtype(const char *name)
{
        for (int d = LG_F32; d <= LG_BOOL; d++)
                if (!strcmp(lg_dtype_name((lg_dtype)d), name))
                        return (lg_dtype)d;
        fail_msg("there is no dtype %s", name);
        return LG_F32;
}

static inline void read_node_tensor(nodes *n)
{
        char dtype[8];
        int64_t count = 1;
        assert_true(n->tensor_count < NODE_TENSORS);
        node_tensor *t = &n->tensors[n->tensor_count++];
        assert_int_equal(fscanf(n->file, "%7s", dtype), 1);
        t->dtype = node_dtype(dtype);
        t->shape = LG_SHAPE_0D;
        for (int ndim = node_int(n->file); t->shape.ndim < ndim;) {
                t->shape.size[t->shape.ndim] = node_int(n->file);
                count *= t->shape.size[t->shape.ndim++];
        }
        int place;
        if (fscanf(n->file, " @%d", &place) == 1) {
                t->values = calloc((size_t)count + 1, sizeof *t->values);
                assert_non_null(t->values);
                memcpy(t->values, n->stream + place, (size_t)count * sizeof *t->values);
        } else {
                t->values = node_numbers(n->file, count);
        }
}

/* Opens a file, of which the caller reads the nodes. */
static inline void open_nodes(nodes *n, const char *file)
{
        const char *folder = getenv("LG_TEST_DATA");
        char path[4096], word[16];
        snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/data", file);
        *n = (nodes){.file = fopen(path, "r")};
        if (!n->file)
                fail_msg("%s cannot be read", path);
        assert_int_equal(fscanf(n->file, "%15s", word), 1);
        assert_string_equal(word, "stream");
        n->stream = node_numbers(n->file, node_int(n->file));
}

static inline void close_nodes(nodes *n)
{
        fclose(n->file);
        free(n->stream);
        for (int i = 0; i < n->tensor_count; i++)
                free(n->tensors[i].values);
}

/* Reads the next node; false at the end. */
static inline bool next_node(nodes *n, node *ret)
{
        char word[16];
        *ret = (node){.of = n};
        while (fscanf(n->file, "%15s", word) == 1) {
                if (!strcmp(word, "tensor")) {
                        read_node_tensor(n);
                        continue;
                }
                assert_string_equal(word, "node");
                assert_int_equal(fscanf(n->file, "%95s", ret->name), 1);
                ret->attribute_count = node_int(n->file);
                assert_true(ret->attribute_count <= NODE_PARTS);
                for (int i = 0; i < ret->attribute_count; i++)
                        assert_int_equal(fscanf(n->file, "%31s %lf", ret->attributes[i], &ret->values[i]), 2);
                ret->tensor_count = node_int(n->file);
                assert_true(ret->tensor_count <= NODE_PARTS);
                for (int i = 0; i < ret->tensor_count; i++)
                        assert_int_equal(fscanf(n->file, "%31s %d", ret->roles[i], &ret->tensors[i]), 2);
                return true;
        }
        return false;
}

/* An attribute, or `otherwise`. */
static inline double node_attribute(const node *n, const char *name, double otherwise)
{
        for (int i = 0; i < n->attribute_count; i++)
                if (!strcmp(n->attributes[i], name))
                        return n->values[i];
        return otherwise;
}

static inline const node_tensor *node_part(const node *n, const char *role)
{
        for (int i = 0; i < n->tensor_count; i++)
                if (!strcmp(n->roles[i], role))
                        return &n->of->tensors[n->tensors[i]];
        return NULL;
}

/* An input as a new tensor, or NULL if there is none. */
static inline lg_tensor *node_input(lg_ctx *c, const node *n, const char *role)
{
        const node_tensor *t = node_part(n, role);
        return t ? lg_from(c, t->values, t->shape, .dtype = t->dtype) : NULL;
}

/* t is what the node test says, within the tolerance. */
static inline void assert_node(const node *n, const char *role, const lg_tensor *t, double tolerance)
{
        const node_tensor *wanted = node_part(n, role);
        if (!wanted || !t)
                fail_msg("%s: there is no %s", n->name, role);
        double *got = calloc((size_t)lg_numel(t) + 1, sizeof *got);
        assert_shape(t, wanted->shape);
        read_all(t, got, lg_numel(t));
        for (int64_t i = 0; i < lg_numel(t); i++)
                if (!(fabs(got[i] - wanted->values[i]) <= tolerance * fmax(1, fabs(wanted->values[i]))))
                        fail_msg("%s: element %lld of %s is %.9g, not %.9g", n->name, (long long)i, role, got[i],
                                 wanted->values[i]);
        free(got);
}

#endif
