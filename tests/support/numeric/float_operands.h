/*
 * float_operands.h - operands of binary32 operations that are hard to get right.
 *
 * Random patterns almost never hit the cases that implementations get wrong. So most operands are
 * made for their operation: results at ties, beside ties, at the ends of the range, subnormal ones,
 * cancellation of every depth at every exponent, addends too small or too large to matter, and
 * every pair of special numbers.
 */
#ifndef TESTS_SUPPORT_NUMERIC_FLOAT_OPERANDS_H
#define TESTS_SUPPORT_NUMERIC_FLOAT_OPERANDS_H

#include <stdint.h>

/* The operations of tests/contracts/Calculator.sol, by their numbers there. */
enum float_operation {
    FLOAT_ADD,
    FLOAT_SUB,
    FLOAT_MUL,
    FLOAT_DIV,
    FLOAT_SQRT,
    FLOAT_FMA,
    FLOAT_EXP,
    FLOAT_LOG,
    FLOAT_IS_LESS,
    FLOAT_IS_EQUAL,
    FLOAT_MAXIMUM,
    FLOAT_FROM_INTEGER, /* high and low half of the integer, power of two */
    FLOAT_TO_INTEGER,   /* pattern, power of two, limit */
    FLOAT_OPERATIONS,
};

extern const char *const float_operation_names[FLOAT_OPERATIONS];

struct float_operands {
    uint32_t a;
    uint32_t b;
    uint32_t c;
};

/* The next operands. The same seed gives the same operands. */
struct float_operands float_operands_make(uint64_t *seed, enum float_operation operation);

/* The operation's result on this machine; NaN is FLOAT_NAN_BITS. */
uint32_t float_operands_result(enum float_operation operation, struct float_operands operands);

/* A pattern of any kind: special, near a power of two, few bits, or anything. */
uint32_t float_operands_any(uint64_t *seed);

#endif /* TESTS_SUPPORT_NUMERIC_FLOAT_OPERANDS_H */
