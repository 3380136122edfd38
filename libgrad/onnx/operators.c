/* operators.c - the table of operators, and those that are a call of libgrad. */
#include "import.h"

#define UNARY(name, function)                                                                                          \
        static LG__ONNX(name)                                                                                          \
        {                                                                                                              \
                return lg_##function(c->in[0]);                                                                        \
        }
#define BINARY(name, function)                                                                                         \
        static LG__ONNX(name)                                                                                          \
        {                                                                                                              \
                return lg_##function(c->in[0], c->in[1]);                                                              \
        }
#define OPERATOR(name, ...) LG__ONNX(name);
#define RANDOM(name, ...) LG__ONNX(name);
#include "operators.def"

static const lg__onnx_operator operators[] = {
#define UNARY(name, function) {#name, lg__onnx_##name, 1, 1, 0, 0, false},
#define BINARY(name, function) {#name, lg__onnx_##name, 2, 2, 0, 0, false},
#define OPERATOR(name, least, most, host, stats) {#name, lg__onnx_##name, least, most, host, stats, false},
#define RANDOM(name, least, most, host) {#name, lg__onnx_##name, least, most, host, 0, true},
#include "operators.def"
};

const lg__onnx_operator *lg__onnx_find(const char *name)
{
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
                if (!strcmp(operators[i].name, name))
                        return &operators[i];
        return NULL;
}
