/* reference_general.c - the general kinds in double precision; see reference_core.h. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/reference/reference_core.h"

#define SQRT_2_PI      2.50662827463100050242
#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBE      0.044715

static double logistic(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double gelu_tanh(double x)
{
    return tanh(SQRT_2_OVER_PI * (x + GELU_CUBE * x * x * x));
}

static double gelu_slope(double x)
{
    double t = gelu_tanh(x);

    return 0.5 * (1.0 + t) +
           0.5 * x * (1.0 - t * t) * SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBE * x * x);
}

static double silu_slope(double x)
{
    double s = logistic(x);

    return s + x * s * (1.0 - s);
}

static double function_of_one(enum map_function function, double x, double constant)
{
    switch (function) {
    case MAP_NEG:
        return -x;
    case MAP_ABS:
        return fabs(x);
    case MAP_SIGN:
        return (x > 0.0) - (x < 0.0);
    case MAP_FLOOR:
        return floor(x);
    case MAP_CEIL:
        return ceil(x);
    case MAP_ROUND:
        return nearbyint(x);
    case MAP_SQRT:
        return sqrt(x);
    case MAP_RSQRT:
        return 1.0 / sqrt(x);
    case MAP_RECIPROCAL:
        return 1.0 / x;
    case MAP_EXP:
        return exp(x);
    case MAP_LOG:
        return log(x);
    case MAP_TANH:
        return tanh(x);
    case MAP_SIGMOID:
        return logistic(x);
    case MAP_ERF:
        return erf(x);
    case MAP_SIN:
        return sin(x);
    case MAP_COS:
        return cos(x);
    case MAP_GELU_ERF:
        return 0.5 * x * erfc(-x * M_SQRT1_2);
    case MAP_GELU_ERF_SLOPE:
        return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / SQRT_2_PI;
    case MAP_SCALE:
        return x * constant;
    case MAP_RELU:
        return x > 0.0 ? x : isnan(x) ? x : 0.0;
    case MAP_GELU:
        return 0.5 * x * (1.0 + gelu_tanh(x));
    case MAP_SILU:
        return x * logistic(x);
    case MAP_FUNCTION_COUNT:
        break;
    }
    abort();
}

static double function_of_two(enum binary_function function, double a, double b)
{
    switch (function) {
    case BINARY_ADD:
        return a + b;
    case BINARY_SUB:
        return a - b;
    case BINARY_MUL:
        return a * b;
    case BINARY_DIV:
        return a / b;
    case BINARY_MAX:
        return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    case BINARY_MIN:
        return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case BINARY_POW:
        return pow(a, b);
    case BINARY_LESS:
        return a < b;
    case BINARY_LESS_EQUAL:
        return a <= b;
    case BINARY_EQUAL:
        return a == b;
    case BINARY_NOT_EQUAL:
        return a != b;
    case BINARY_RELU_GRAD:
        return a > 0.0 ? b : isnan(a) ? a : 0.0;
    case BINARY_GELU_GRAD:
        return gelu_slope(a) * b;
    case BINARY_SILU_GRAD:
        return silu_slope(a) * b;
    case BINARY_SQUARED_ERROR:
        return (a - b) * (a - b);
    case BINARY_SQUARED_ERROR_SLOPE:
        return 2.0 * (a - b);
    case BINARY_FUNCTION_COUNT:
        break;
    }
    abort();
}

/* The element that an operand's view reads for the output's element i. */
static double viewed(const struct reference_op *run, uint32_t input, int dims_at, int64_t i)
{
    const int64_t *dims = &run->attributes[dims_at];
    const int64_t *strides = dims + VIEW_AXES * (input + 1);
    int64_t inner = dims[1] * dims[2] * dims[3];
    int64_t at = i / inner * strides[0];

    at += i / (dims[2] * dims[3]) % dims[1] * strides[1];
    at += i / dims[3] % dims[2] * strides[2];
    at += i % dims[3] * strides[3];
    return run->in[input][at];
}

void reference_map(const struct reference_op *run)
{
    enum map_function function = (enum map_function)run->attributes[MAP_FUNCTION];

    double constant = reference_constant(run, MAP_CONSTANT_BITS);
    int64_t count = run->out_count[0];

#pragma omp parallel for if (count > 1024)
    for (int64_t i = 0; i < count; i++) {
        run->out[0][i] = function_of_one(function, run->in[0][i], constant);
    }
}

void reference_binary(const struct reference_op *run)
{
    enum binary_function function = (enum binary_function)run->attributes[BINARY_FUNCTION];
    int64_t count = run->out_count[0];

#pragma omp parallel for if (count > 1024)
    for (int64_t i = 0; i < count; i++) {
        run->out[0][i] = function_of_two(function, viewed(run, 0, BINARY_DIMS, i),
                                         viewed(run, 1, BINARY_DIMS, i));
    }
}

/* Integers of up to 32 bits are exact in a double; what does not fit comes round. */
static double function_of_integers(enum integer_function function, double a, double b)
{
    const double span = 4294967296.0;
    double low = 0.0;

    switch (function) {
    case INTEGER_ADD:
        return fmod(a + b, span);
    case INTEGER_SUB:
        return fmod(a - b + span, span);
    case INTEGER_MUL: /* 16 bits of b at a time */
        low = fmod(a * fmod(b, 65536.0), span);
        return fmod(fmod(a * floor(b / 65536.0), 65536.0) * 65536.0 + low, span);
    case INTEGER_DIV:
        return b == 0.0 ? span - 1.0 : (a - fmod(a, b)) / b;
    case INTEGER_MOD:
        return b == 0.0 ? a : fmod(a, b);
    case INTEGER_AND:
    case INTEGER_OR:
    case INTEGER_XOR:
        for (int bit = 0; bit < 32; bit++) {
            const bool one = fmod(floor(ldexp(a, -bit)), 2.0) != 0.0;
            const bool other = fmod(floor(ldexp(b, -bit)), 2.0) != 0.0;
            const bool set = function == INTEGER_AND  ? one && other
                             : function == INTEGER_OR ? one || other
                                                      : one != other;

            low += set ? ldexp(1.0, bit) : 0.0;
        }
        return low;
    case INTEGER_SHIFT_LEFT:
        return b >= 32.0 ? 0.0 : fmod(ldexp(a, (int)b), span);
    case INTEGER_SHIFT_RIGHT:
        return b >= 32.0 ? 0.0 : floor(ldexp(a, -(int)b));
    case INTEGER_LESS:
        return a < b;
    case INTEGER_LESS_EQUAL:
        return a <= b;
    case INTEGER_EQUAL:
        return a == b;
    case INTEGER_NOT_EQUAL:
        return a != b;
    case INTEGER_FUNCTION_COUNT:
        break;
    }
    abort();
}

void reference_integer(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] =
            function_of_integers((enum integer_function)run->attributes[INTEGER_FUNCTION],
                                 viewed(run, 0, BINARY_DIMS, i), viewed(run, 1, BINARY_DIMS, i));
    }
}

void reference_select(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = viewed(run, viewed(run, 0, SELECT_DIMS, i) != 0.0 ? 1 : 2, SELECT_DIMS, i);
    }
}

/* Where the addressed tensor is read or written for element i of the dense side. */
static int64_t moved(const struct reference_op *run, int64_t i)
{
    int64_t at = run->attributes[MOVE_OFFSET];

    for (int axis = MOVE_AXES - 1; axis >= 0; axis--) {
        int64_t length = run->attributes[MOVE_DIMS + axis];

        at += i % length * run->attributes[MOVE_STRIDES + axis];
        i /= length;
    }
    return at;
}

void reference_move(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = run->in[0][moved(run, i)];
    }
}

void reference_place(const struct reference_op *run)
{
    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = run->in[1][run->in_count[1] == 1 ? 0 : i];
    }
    for (int64_t i = 0; i < run->in_count[0]; i++) {
        run->out[0][moved(run, i)] = run->in[0][i];
    }
}

/* Without the rounding: a double holds every number of the other types. */
void reference_cast(const struct reference_op *run)
{
    const struct tape *tape = run->reference->tape;
    const enum dtype to = tape->tensors[run->op->outputs[0]].dtype;
    const bool whole = to == DTYPE_I32 || to == DTYPE_U32;

    for (int64_t i = 0; i < run->out_count[0]; i++) {
        run->out[0][i] = whole ? trunc(run->in[0][i]) : run->in[0][i];
        if (to == DTYPE_U32 && run->out[0][i] < 0) {
            run->out[0][i] = 0;
        }
    }
}
