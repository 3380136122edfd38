/* program.h - a loaded ONNX graph: its values and nodes by number, shared by the copies of its module. Private to
 * onnx/. */
#ifndef LG_ONNX_PROGRAM_H
#define LG_ONNX_PROGRAM_H

#include "import.h"
#include "nn/nn.h"

/* A value of the graph: an input, an initialiser or the result of a node. */
typedef struct lg__onnx_slot {
        const char *name;
        int64_t part;        /* number of the module's part that holds it, or -1 */
        lg_tensor *tensor;   /* of that part of the first module; for building */
        lg_tensor *constant; /* owned by the library, on the CPU, or NULL; then: */
        lg_tensor *copy;     /* a copy on the device that asked for one last, or NULL */
        int64_t last;        /* the last node that reads it; node_count: it is a result of the graph */
        bool sizes;          /* depends on sizes and constants alone, not on values of inputs or parameters */
} lg__onnx_slot;

typedef struct lg__onnx_step {
        const lg__onnx_operator *op; /* NULL: the results are constants */
        int in_count;
        int64_t *in; /* slots of the operands; -1: left out */
        int64_t out[LG__ONNX_MOST_OUT];
} lg__onnx_step;

/* A loaded graph, shared by the copies of its module. */
typedef struct lg__onnx_program {
        lg_ctx *ctx;
        int uses;
        lg__onnx_model model;
        lg__onnx_slot *slots;
        int64_t slot_count, slot_room;
        int64_t *table, table_size; /* slots by a hash of their names; -1: free */
        lg__onnx_step *steps;
        int64_t *operands, operand_count; /* memory of all step.in */
        int64_t part_count;
} lg__onnx_program;

/* A run of a program: the values of the slots so far. */
typedef struct lg__onnx_run {
        lg__onnx_program *program;
        lg_ctx *ctx;
        lg_tensor **parts, **values; /* the tensors of the module's parts; values by slot, NULL: none yet */
} lg__onnx_run;

/* Returns the place in the table of the slot of that name, or of where it would be. */
int64_t lg__onnx_place(const lg__onnx_program *p, const char *name);
/* Runs node i. Returns false with an error. */
bool lg__onnx_run_step(const lg__onnx_run *r, int64_t i);
/* Runs all nodes: the forward of the module, whose `user` is a program. */
lg_forward_all_fn lg__onnx_forward;

#endif
