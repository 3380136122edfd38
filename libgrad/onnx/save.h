/* save.h - a call of lg_onnx_save(). Private to onnx/. */
#ifndef LG_ONNX_SAVE_H
#define LG_ONNX_SAVE_H

#include "emit.h"
#include "grad/onnx.h"

typedef struct lg__onnx_job {
        lg_ctx *ctx;
        lg_module *m;
        lg_list inputs;
        lg_onnx_save_options options;
        lg__onnx_symbols symbols;
        int count;          /* number of recordings */
        const char **names; /* of inputs, then of outputs */
        struct lg__arena *arena;
        lg__onnx_recording records[LG__ONNX_SYMBOLS + 1];
        lg__onnx_emitter emitter;
} lg__onnx_job;

/* Writes the file, or two, of what was emitted. Returns false with an error. */
bool lg__onnx_write(lg__onnx_job *j, const char *path);

#endif
