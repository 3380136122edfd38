/* write.c - writes an ONNX file: its messages, and the elements of its tensors piece by piece. */
#include <stdio.h>
#include "io/sink.h"
#include "save.h"

#define OP "lg_onnx_save"
#define MOST_BYTES ((int64_t)INT32_MAX) /* of a message, by protobuf */
#define MOST_INSIDE 1024                /* bytes of a tensor that is never put beside the file */
#define ALIGNMENT 64                    /* of tensors beside the file, in bytes */

/* Writes the ValueInfoProto of an input or a result, whose sizes are products of symbols or, if not, unknown. */
static void put_info(const lg__onnx_job *j, lg__proto_out *o, int field, const char *name, int64_t value)
{
        const lg__onnx_value *v = &j->records[0].values[value];
        const int64_t info = lg__proto_begin(o, field);
        lg__proto_put_text(o, INFO_NAME, name);
        const int64_t type = lg__proto_begin(o, INFO_TYPE), tensor = lg__proto_begin(o, TYPE_OF_TENSOR);
        lg__proto_put_int(o, TENSOR_TYPE_DTYPE, lg__onnx_type(v->dtype));
        const int64_t shape = lg__proto_begin(o, TENSOR_TYPE_SHAPE);
        for (int d = 0; d < v->shape.ndim; d++) {
                int64_t sizes[LG__ONNX_SYMBOLS + 1], symbol = -1;
                char product[64] = "";
                for (int k = 0; k < j->count; k++)
                        sizes[k] = j->records[k].values[value].shape.size[d];
                const bool known = lg__onnx_product(sizes, j->count, &j->symbols, product);
                const int64_t dim = lg__proto_begin(o, SHAPE_DIM);
                if (known && !strchr(product, '$'))
                        lg__proto_put_int(o, DIM_VALUE, v->shape.size[d]);
                else if (known && !strncmp(product, "1*$", 3) && !strchr(product + 3, '$'))
                        symbol = product[3] - '0' + (product[4] ? 10 + product[4] - product[3] : 0);
                if (symbol >= 0 && symbol < j->symbols.count)
                        lg__proto_put_text(o, DIM_NAME, j->symbols.at[symbol].name);
                lg__proto_end(o, dim);
        }
        lg__proto_end(o, shape);
        lg__proto_end(o, tensor);
        lg__proto_end(o, type);
        lg__proto_end(o, info);
}

/* Writes a key and a text of StringStringEntryProto. */
static void put_entry(lg__proto_out *o, const char *key, const char *text)
{
        const int64_t entry = lg__proto_begin(o, TENSOR_EXTERNAL);
        lg__proto_put_text(o, ENTRY_KEY, key);
        lg__proto_put_text(o, ENTRY_VALUE, text);
        lg__proto_end(o, entry);
}

static int64_t bytes_of(const lg__onnx_constant *k)
{
        return lg__shape_numel(k->shape) * (int64_t)lg__dtype_bytes(k->dtype);
}

/* The files that are being written. */
typedef struct files {
        lg__sink model, data;
        bool external;      /* large tensors are put in `data` */
        int64_t at;         /* bytes of `data` so far */
        const char *folder; /* the path without its name; the name begins behind it */
        const char *path;
} files;

static bool is_outside(const files *f, const lg__onnx_constant *k)
{
        return f->external && k->tensor && bytes_of(k) > MOST_INSIDE;
}

/* Writes the fields of a TensorProto before its elements, or where they are. Begins a piece at f->at in that case. */
static void put_head(files *f, lg__proto_out *o, const lg__onnx_constant *k)
{
        const char *slash = strrchr(f->path, '/');
        char text[LG__PATH];
        for (int d = 0; d < k->shape.ndim; d++)
                lg__proto_put_int(o, TENSOR_DIMS, k->shape.size[d]);
        lg__proto_put_int(o, TENSOR_DTYPE, lg__onnx_type(k->dtype));
        lg__proto_put_text(o, TENSOR_NAME, k->name);
        if (!is_outside(f, k)) {
                lg__proto_put_length(o, TENSOR_RAW, bytes_of(k));
                return;
        }
        f->at = (f->at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        snprintf(text, sizeof text, "%.900s.data", slash ? slash + 1 : f->path);
        put_entry(o, "location", text);
        snprintf(text, sizeof text, "%lld", (long long)f->at);
        put_entry(o, "offset", text);
        snprintf(text, sizeof text, "%lld", (long long)bytes_of(k));
        put_entry(o, "length", text);
        lg__proto_put_int(o, TENSOR_LOCATION, 1);
        f->at += bytes_of(k);
}

static bool put_elements(lg__sink *to, const lg__onnx_constant *k)
{
        lg_ctx *c = to->ctx;
        const size_t bytes = (size_t)bytes_of(k);
        if (!k->tensor)
                return lg__sink_put(to, k->data, bytes);
        const lg_scope scope = lg_scope_begin(c);
        const lg_tensor *host = lg__clone_values(k->tensor, c->cpu->id, k->dtype);
        const bool good = host && lg__device_wait(k->tensor->storage->device) &&
                          (!bytes || lg__sink_put(to, lg__data(host), bytes));
        lg_scope_end(c, scope);
        return good;
}

/* Writes a tensor as an initialiser of the graph, or only counts its bytes in *count. */
static bool put_constant(files *f, const lg__onnx_constant *k, int64_t *count)
{
        static const char zeros[ALIGNMENT];
        lg_ctx *c = f->model.ctx;
        lg__proto_out head = {.ctx = c}, length = {.ctx = c};
        const int64_t before = f->at;
        put_head(f, &head, k);
        const bool outside = is_outside(f, k);
        const int64_t bytes = head.bytes + (outside ? 0 : bytes_of(k));
        lg__proto_put_length(&length, GRAPH_INITIALIZER, bytes);
        bool good = !c->error;
        if (good && !count) {
                const size_t gap = outside ? (size_t)(f->at - bytes_of(k) - before) : 0;
                good = lg__sink_put(&f->model, length.data, (size_t)length.bytes) &&
                       lg__sink_put(&f->model, head.data, (size_t)head.bytes) &&
                       (!gap || lg__sink_put(&f->data, zeros, gap)) && put_elements(outside ? &f->data : &f->model, k);
        } else if (good) {
                *count += length.bytes + bytes;
        }
        lg__proto_free(&head);
        lg__proto_free(&length);
        return good;
}

/* Returns the version of the format in which that opset was published. */
static int64_t format_of(int opset)
{
        return opset < 15   ? 7
               : opset < 19 ? 8
               : opset < 21 ? 9
               : opset < 23 ? 10
               : opset < 24 ? 11
               : opset < 25 ? 12
                            : 13;
}

/* Writes the graph's inputs and outputs, and what comes before the graph. */
static void put_rest(const lg__onnx_job *j, int opset, lg__proto_out *graph, lg__proto_out *model)
{
        const lg__onnx_recording *r = &j->records[0];
        lg__proto_put_text(graph, GRAPH_NAME, j->m->type);
        for (int64_t i = 0; i < j->inputs.count; i++)
                put_info(j, graph, GRAPH_INPUT, j->names[i], i);
        for (int64_t i = 0; i < r->outputs.count; i++)
                put_info(j, graph, GRAPH_OUTPUT, j->names[j->inputs.count + i], r->output_values[i]);
        lg__proto_put_int(model, MODEL_IR_VERSION, format_of(opset));
        lg__proto_put_text(model, MODEL_PRODUCER, "libgrad");
        lg__proto_put_text(model, MODEL_PRODUCER_VERSION, LG_VERSION);
        const int64_t operators = lg__proto_begin(model, MODEL_OPSET);
        lg__proto_put_text(model, OPSET_DOMAIN, "");
        lg__proto_put_int(model, OPSET_VERSION, opset);
        lg__proto_end(model, operators);
}

/* Returns the bytes of the graph with its tensors, or -1 with an error. */
static int64_t graph_bytes(files *f, const lg__onnx_emitter *e, const lg__proto_out *rest)
{
        int64_t bytes = e->nodes.bytes + rest->bytes;
        f->at = 0;
        for (int64_t i = 0; i < e->constant_count; i++)
                if (!put_constant(f, &e->constants[i], &bytes))
                        return -1;
        f->at = 0;
        return bytes;
}

static bool put_file(lg__onnx_job *j, files *f, const lg__proto_out *graph, lg__proto_out *model)
{
        const lg__onnx_emitter *e = &j->emitter;
        int64_t bytes = graph_bytes(f, e, graph);
        if (bytes > MOST_BYTES - model->bytes - 16 && !f->external) {
                f->external = true;
                bytes = graph_bytes(f, e, graph);
        }
        if (bytes < 0 || bytes > MOST_BYTES - model->bytes - 16)
                return bytes >= 0 &&
                       lg__fail(j->ctx, LG_ERR_STATE, OP ": the graph has more than 2 GB without tensors");
        lg__proto_put_length(model, MODEL_GRAPH, bytes);
        if (j->ctx->error)
                return false;
        bool good = lg__sink_open(&f->model);
        if (f->external)
                good = lg__sink_open(&f->data) && good;
        good = good && lg__sink_put(&f->model, model->data, (size_t)model->bytes) &&
               lg__sink_put(&f->model, e->nodes.data, (size_t)e->nodes.bytes);
        for (int64_t i = 0; i < e->constant_count && good; i++)
                good = put_constant(f, &e->constants[i], NULL);
        good = good && lg__sink_put(&f->model, graph->data, (size_t)graph->bytes) &&
               (!f->external || lg__sink_commit(&f->data)) && lg__sink_commit(&f->model);
        lg__sink_close(&f->model);
        if (f->external)
                lg__sink_close(&f->data);
        return good;
}

bool lg__onnx_write(lg__onnx_job *j, const char *path)
{
        lg_ctx *c = j->ctx;
        const size_t room = strlen(path) + 6;
        char *beside = lg__arena_get(c, &j->arena, 1, room);
        lg__proto_out graph = {.ctx = c}, model = {.ctx = c};
        files f = {.model = {.ctx = c, .op = OP, .path = path},
                   .data = {.ctx = c, .op = OP, .path = beside},
                   .external = j->options.external,
                   .path = path};
        if (!beside)
                return false;
        snprintf(beside, room, "%s.data", path);
        put_rest(j, j->options.opset ? j->options.opset : j->emitter.opset, &graph, &model);
        const bool good = !c->error && put_file(j, &f, &graph, &model);
        lg__proto_free(&graph);
        lg__proto_free(&model);
        return good;
}
