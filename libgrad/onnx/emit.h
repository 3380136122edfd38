/* emit.h - writes what was recorded as the nodes and constants of an ONNX file. Private to onnx/. */
#ifndef LG_ONNX_EMIT_H
#define LG_ONNX_EMIT_H

#include "recording.h"

/* A tensor of the file: of a value, or made for a form. */
typedef struct lg__onnx_constant {
        const char *name, *text; /* text: of the form, for finding it again; NULL for a value's */
        const lg_tensor *tensor; /* NULL: `bytes` bytes at `data` */
        lg_dtype dtype;
        lg_shape shape;
        void *data;
        size_t bytes;
} lg__onnx_constant;

typedef struct lg__onnx_emitter {
        lg_ctx *ctx;
        lg__onnx_recording *recording;
        const lg__onnx_symbols *symbols;
        const char *const *outputs;          /* names of the results */
        lg__proto_out nodes;                 /* fields of the GraphProto */
        const char *sizes[LG__ONNX_SYMBOLS]; /* names of the vectors of one i64 that hold the symbols' sizes */
        lg__onnx_constant *constants;
        int64_t constant_count, constant_room, names;
        int opset;                     /* lowest that has all operators so far */
        char newest[40];               /* the operator that needs it */
        const lg__onnx_applied *op;    /* the op whose form is written */
        struct lg__onnx_local *locals; /* names of the op's earlier statements */
        int64_t local_count, local_room;
        struct lg__arena *arena;
} lg__onnx_emitter;

/* Writes the nodes of all ops. Begin with ctx, recording, symbols and outputs. Returns false with an error; in any case
 * lg__onnx_emitter_free() frees what the emitter has. */
bool lg__onnx_emit(lg__onnx_emitter *e);
void lg__onnx_emitter_free(lg__onnx_emitter *e);

/* ---- nodes, constants and names: node.c. Functions return the name of a result, or NULL with an error. ---- */

/* A node that is being written. Arguments that are left out are written only if another follows. Begin with .out.ctx;
 * lg__onnx_finish() or lg__proto_free() of .out frees it. */
typedef struct lg__onnx_out {
        lg__proto_out out;
        int left_out;
} lg__onnx_out;
/* Adds an argument by its name; "": left out; NULL: an error, returns false. */
bool lg__onnx_add_argument(lg__onnx_out *n, const char *name);
void lg__onnx_add_int(lg__onnx_out *n, const char *name, int64_t v);
/* Writes the node, an operator of `length` characters, with these results, and frees it. */
const char *lg__onnx_finish(lg__onnx_emitter *e, lg__onnx_out *n, const char *operator, size_t length,
                            const char *const *out, int out_count);
/* Writes a node of one or two arguments and, if `name` is given, one whole attribute. */
const char *lg__onnx_simple(lg__onnx_emitter *e, const char *operator, const char * a, const char *b, const char *name,
                            int64_t v);
/* Returns a copy of a text, or a new name, of the module, the operator and a number. */
const char *lg__onnx_kept(lg__onnx_emitter *e, const char *s, size_t length);
const char *lg__onnx_new_name(lg__onnx_emitter *e, const char *operator, size_t length);
/* Returns the name of a made constant with these elements, which is found again by its text. */
const char *lg__onnx_constant_of(lg__onnx_emitter *e, const char *text, lg_dtype dtype, lg_shape shape,
                                 const void *data);
const char *lg__onnx_whole_numbers(lg__onnx_emitter *e, const int64_t *v, int count, bool scalar);
/* Reads a vector in [], of numbers and products of sizes. The only symbolic size of a reshape is -1 there. */
const char *lg__onnx_vector(lg__onnx_emitter *e, const char **p, bool reshape);
/* Reads numbers in {}, of the dtype of the op's first operand or of f32, if they begin with that. */
const char *lg__onnx_numbers(lg__onnx_emitter *e, const char **p);

#endif
