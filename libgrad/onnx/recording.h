/* recording.h - what a module computes, as forms of ops, and the values between these. Private to onnx/. */
#ifndef LG_ONNX_RECORDING_H
#define LG_ONNX_RECORDING_H

#include "core/observer.h"
#include "graph/op.h"
#include "model.h"
#include "nn/nn.h"

/* A value: an input, a tensor that no recorded op computed, or a result. */
typedef struct lg__onnx_value {
        lg_tensor *tensor; /* of a value that no op computed: a handle of the recording's; else NULL */
        int64_t user;      /* of such a value: the op that used it first */
        int64_t input;     /* number of the input, or -1 */
        const char *sizes; /* of a constant whose size changes: its shape as products of sizes; else NULL */
        bool counts;       /* such a constant is 0, 1, 2, ...; if not, its elements are equal */
        const char *name;  /* in the file; set for inputs and parameters, else by lg__onnx_emit() */
        bool used;         /* the results of the module need it */
        bool listed;       /* among the constants of the file */
        lg_dtype dtype;
        lg_shape shape;
} lg__onnx_value;

/* A tensor that was seen: memory at one version in one layout, which has a value. */
typedef struct lg__onnx_place {
        lg__storage *storage; /* kept */
        uint32_t version;
        lg__layout at;
        int64_t value;
} lg__onnx_place;

/* An application of an op. */
typedef struct lg__onnx_applied {
        const lg__op *op;
        const char *form, *where; /* `where`: path of the module */
        int in_count, out_count;
        int64_t *in; /* values; -1: left out */
        int64_t out[LG__MAX_OUT];
} lg__onnx_applied;

typedef struct lg__onnx_recording {
        lg__observer observer;
        lg_ctx *ctx;
        const lg_module *root;
        int inside; /* number of composites that have a form, within each other, whose ops are not recorded */
        lg__onnx_applied *ops;
        lg__onnx_value *values;
        lg__onnx_place *places;
        int64_t op_count, op_room, value_count, value_room, place_count, place_room;
        struct lg__arena *arena;
        char missing[600]; /* names of ops that have no form */
        lg_outputs outputs;
        int64_t output_values[LG_MAX_OUTPUTS];
} lg__onnx_recording;

/* Runs m on the inputs and records what it applies. Begin with .ctx and .root. Returns false with an error; in
 * any case lg__onnx_recording_free() frees what the recording has. */
bool lg__onnx_record(lg__onnx_recording *r, lg_module *m, lg_list inputs);
void lg__onnx_recording_free(lg__onnx_recording *r);

/* ---- sizes that may change: merge.c ---- */

/* A dimension of an input that may have any size. */
typedef struct lg__onnx_symbol {
        int input, dim; /* the first input that has it */
        int64_t size;   /* in the first recording */
        int64_t other;  /* in the recording in which only this size differs */
        char name[24];
} lg__onnx_symbol;

#define LG__ONNX_SYMBOLS 16
typedef struct lg__onnx_symbols {
        int count;
        lg__onnx_symbol at[LG__ONNX_SYMBOLS];
} lg__onnx_symbols;

/* Compares recordings with other values: the first with the sizes of all symbols, the others with one of them changed
 * each. Numbers in [] that differ become products in the forms of the first, such as "4*$0"; any other difference is an
 * error. */
bool lg__onnx_merge(lg__onnx_recording *const *r, int count, const lg__onnx_symbols *symbols);
/* Sets ret to a product of symbols that has these values in the recordings, as a text. Returns false if none has. */
bool lg__onnx_product(const int64_t *v, int count, const lg__onnx_symbols *symbols, char ret[64]);

#endif
