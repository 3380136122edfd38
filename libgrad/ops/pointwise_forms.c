/* pointwise_forms.c - the forms of elementwise ops in ONNX: written from the formulas of pointwise.def, unless an
 * operator of ONNX computes the whole. */
#include <math.h>
#include <string.h>
#include "../../kernels/constants.h"
#include "pointwise.h"

/* Operators that compute a whole formula: OPERATOR(name) is the second item of ONNX_name, or none if that is not
 * defined. */
#define ONNX_relu ~, "Relu(x)"
#define ONNX_reciprocal ~, "Reciprocal(x)"
#define ONNX_leaky_relu ~, "LeakyRelu(x, alpha=p0)"
#define ONNX_elu ~, "Elu(x, alpha=p0)"
#define ONNX_selu ~, "Selu(x)"
#define ONNX_gelu ~, "Gelu(x)"
#define ONNX_gelu_tanh ~, "Gelu(x, approximate='tanh')"
#define ONNX_mish ~, "Mish(x)"
#define ONNX_softsign ~, "Softsign(x)"
#define ONNX_hardsigmoid ~, "HardSigmoid(x, alpha=0.166666666666666667, beta=0.5)"
#define ONNX_hardswish ~, "HardSwish(x)"
#define ONNX_clamp ~, "Clip(x, {p0}, {p1})"
#define ONNX_hardtanh ~, "Clip(x, {p0}, {p1})"
#define ONNX_tanhshrink ~, "Sub(x, Tanh(x))"
#define ONNX_isnan ~, "IsNaN(x)"
#define ONNX_isinf ~, "Equal(Abs(x), {inf})"
#define OPERATOR(name) SECOND(ONNX_##name, NULL, )
#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define SECOND_OF(first, second, ...) second

/* The words of formulas as texts. NONE: ONNX has no operator for a word. */
#define NONE "?"
#define X "x"
#define A "a"
#define B "b"
#define C "condition"
#define P0 "{p0}"
#define P1 "{p1}"
#define NUMBER(...) "{" #__VA_ARGS__ "}"
#define K(v) NUMBER(v)
#define F1(name, a) name "(" a ")"
#define F2(name, a, b) name "(" a ", " b ")"
#define F3(name, a, b, c) name "(" a ", " b ", " c ")"
#define NEG(a) F1("Neg", a)
#define ABS(a) F1("Abs", a)
#define SIGN(a) F1("Sign", a)
#define SQUARE(a) MUL(a, a)
#define EXP(a) F1("Exp", a)
#define EXPM1(a) SUB(EXP(a), K(1))
#define EXP2(a) POW(K(2), a)
#define LOG(a) F1("Log", a)
#define LOG1P(a) LOG(ADD(a, K(1)))
#define LOG2(a) DIV(LOG(a), K(LG_LN2))
#define LOG10(a) DIV(LOG(a), K(LG_LN10))
#define SQRT(a) F1("Sqrt", a)
#define RSQRT(a) F1("Reciprocal", SQRT(a))
#define SIN(a) F1("Sin", a)
#define COS(a) F1("Cos", a)
#define TAN(a) F1("Tan", a)
#define ASIN(a) F1("Asin", a)
#define ACOS(a) F1("Acos", a)
#define ATAN(a) F1("Atan", a)
#define SINH(a) F1("Sinh", a)
#define COSH(a) F1("Cosh", a)
#define TANH(a) F1("Tanh", a)
#define ASINH(a) F1("Asinh", a)
#define ACOSH(a) F1("Acosh", a)
#define ATANH(a) F1("Atanh", a)
#define ERF(a) F1("Erf", a)
#define ERFC(a) SUB(K(1), ERF(a))
#define ERFINV(a) NONE
#define LGAMMA(a) NONE
#define DIGAMMA(a) NONE
#define POLYGAMMA(a, n) NONE
#define GAMMA_DRAW(a, b) NONE
#define GAMMA_SLOPE(a, b) NONE
#define POISSON_DRAW(a, b) NONE
#define SIGMOID(a) F1("Sigmoid", a)
#define LOG_SIGMOID(a) NEG(F1("Softplus", NEG(a)))
#define MISH_GATE(a) TANH(F1("Softplus", a))
#define ONE_PLUS(a) ADD(a, K(1))
#define ONE_MINUS(a) SUB(K(1), a)
#define FLOOR(a) F1("Floor", a)
#define CEIL(a) F1("Ceil", a)
#define ROUND(a) F1("Round", a)
#define TRUNC(a) MUL(SIGN(a), FLOOR(ABS(a)))
#define SIGNBIT(a) LT(a, K(0))
#define ADD(a, b) F2("Add", a, b)
#define SUB(a, b) F2("Sub", a, b)
#define MUL(a, b) F2("Mul", a, b)
#define DIV(a, b) F2("Div", a, b)
#define POW(a, b) F2("Pow", a, b)
#define MAX(a, b) F2("Max", a, b)
#define MIN(a, b) F2("Min", a, b)
#define FMOD(a, b) F3("Mod", a, b, "fmod=1")
#define FLOOR_DIVIDE(a, b) FLOOR(DIV(a, b))
#define REMAINDER(a, b) SUB(a, MUL(FLOOR_DIVIDE(a, b), b))
#define ATAN2(a, b) NONE
#define HYPOT(a, b) SQRT(ADD(SQUARE(a), SQUARE(b)))
#define COPYSIGN(a, b) MUL(ABS(a), SELECT(LT(b, K(0)), K(-1), K(1)))
#define IS_TAKEN(compare, a, b) OR(compare(a, b), NE(b, b))
#define EQ(a, b) F2("Equal", a, b)
#define NE(a, b) F1("Not", EQ(a, b))
#define LT(a, b) F2("Less", a, b)
#define LE(a, b) F2("LessOrEqual", a, b)
#define GT(a, b) F2("Greater", a, b)
#define GE(a, b) F2("GreaterOrEqual", a, b)
#define AND(a, b) F2("And", a, b)
#define OR(a, b) F2("Or", a, b)
#define SELECT(c, a, b) F3("Where", c, a, b)
#define BITWISE_AND(a, b) F2("BitwiseAnd", a, b)
#define BITWISE_OR(a, b) F2("BitwiseOr", a, b)
#define BITWISE_XOR(a, b) F2("BitwiseXor", a, b)
#define LEFT_SHIFT(a, b) NONE
#define RIGHT_SHIFT(a, b) NONE

typedef struct texts {
        const char *operator, * formula;
} texts;
#define ROW(name, formula) [LG_PW_##name] = {OPERATOR(name), formula},
#define UNARY(name, types, params, formula, ...) ROW(name, formula)
#define BINARY(name, types, formula, ...) ROW(name, formula)
#define TERNARY BINARY
#define COMPARE(name, formula) ROW(name, formula)
#define COMPARE_SCALAR COMPARE
#define TEST COMPARE
#define PLAIN(name, types, formula) ROW(name, formula)
#define PLAIN_SCALAR PLAIN
static const texts forms[LG_PW_COUNT] = {
#include "../../kernels/pointwise.def"
};

/* Returns the form for whole numbers where that of the formula would round, or NULL. */
static const char *for_whole(int id)
{
        switch (id) {
        case LG_PW_floor:
        case LG_PW_ceil:
        case LG_PW_round:
        case LG_PW_trunc:
                return "x";
        case LG_PW_remainder:
                return "Mod(a, b)";
        case LG_PW_remainder_scalar:
                return "Mod(x, {p0})";
        case LG_PW_floor_divide:
                return "Div(Sub(a, Mod(a, b)), b)";
        case LG_PW_floor_divide_scalar:
                return "Div(Sub(x, Mod(x, {p0})), {p0})";
        default:
                return NULL;
        }
}

/* Compares x with a number, by an operator "Greater(x, {p0})", where the number has to stay exact: 16-bit floats are
 * compared in f32, whole numbers with the next whole number. */
static void form_compare(lg__form *f, const lg__call *call, const char *text)
{
        const int id = call->op->pointwise;
        const double v = ((const pointwise_attributes *)call->attributes)->p0;
        const char *x = strchr(text, '('), *end = strrchr(text, '}');
        while (x[1] != 'x')
                x = strchr(x + 1, '(');
        if (lg__dtype_float(call->in[0]->at.dtype))
                lg__form_add(f, "%.*sCast(x, to=f32), Squeeze({f32 %.17g})%s", (int)(x + 1 - text), text, v, end + 1);
        else if (id == LG_PW_eq_scalar || id == LG_PW_ne_scalar)
                lg__form_add(f, id == LG_PW_eq_scalar ? "Less(x, x)" : "Equal(x, x)");
        else
                lg__form_add(f, "%.*sx, {%.17g%s", (int)(x + 1 - text), text,
                             id == LG_PW_lt_scalar || id == LG_PW_ge_scalar ? ceil(v) : floor(v), end);
}

static bool compares_inexactly(const lg__call *call)
{
        const lg_dtype dtype = call->in[0]->at.dtype;
        const double v = ((const pointwise_attributes *)call->attributes)->p0;
        switch (call->op->pointwise) {
        case LG_PW_eq_scalar:
        case LG_PW_ne_scalar:
        case LG_PW_lt_scalar:
        case LG_PW_le_scalar:
        case LG_PW_gt_scalar:
        case LG_PW_ge_scalar:
                return lg__dtype_float(dtype) ? lg__dtype_bytes(dtype) == 2 : floor(v) != v;
        default:
                return false;
        }
}

bool lg__pointwise_form(lg__form *f, const lg__call *call)
{
        const int id = call->op->pointwise;
        const texts *t = &forms[id];
        const char *text = lg__dtype_float(call->in[0]->at.dtype) ? NULL : for_whole(id);
        const pointwise_attributes *a = call->attributes;
        if (id == LG_PW_softplus && a->p1 >= 20) /* above, the formula is x, of which Softplus differs by 2e-9 */
                text = a->p0 == 1 ? "Softplus(x)" : "Div(Softplus(Mul(x, {p0})), {p0})";
        text = text ? text : t->operator? t->operator: t->formula;
        if (!text || strchr(text, '?'))
                return false;
        if (compares_inexactly(call))
                form_compare(f, call, text);
        else
                lg__form_expand(f, call, text);
        return true;
}
