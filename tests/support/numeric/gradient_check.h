/*
 * gradient_check.h - holds the gradient rules of a small tape to differences in double precision.
 *
 * For each small tape the check compares, for every element of every parameter:
 *
 *   1. central differences of the forward operations in double (support/reference/reference.h)
 *   2. the tape's own backward operations in double precision: must agree to about 1e-7
 *   3. the engine's backward operations, quantized: must agree as far as the bits allow
 *
 * The first two share nothing but the tape, so a wrong rule, view or attribute shows. Inputs avoid
 * the corners of ReLU and of maxima, where there is no derivative.
 */
#ifndef TESTS_SUPPORT_NUMERIC_GRADIENT_CHECK_H
#define TESTS_SUPPORT_NUMERIC_GRADIENT_CHECK_H

#include "engine/tape/builder_core.h"

#define NET_TENSORS_MAX 8

struct net {
    struct builder *builder;
    uint32_t parameters[NET_TENSORS_MAX];
    uint32_t gradients[NET_TENSORS_MAX];
    uint32_t parameter_count;
    uint32_t indexes; /* a u32 constant, or TENSOR_NONE */
    uint32_t index_below;
    bool ignores;     /* every third index is TARGET_IGNORED */
    uint32_t forward; /* operations of the forward part */
    double spread;    /* distance between any two values of a parameter; 0: plain random */
    double slack;     /* the engine may be so many times farther away; 0: 1 */
    struct tape *tape;
};

/* Writes the operations of one case; returns the tensor whose weighted mean is the loss. */
typedef uint32_t write_case(struct net *net);

uint32_t net_parameter(struct net *net, uint32_t rank, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d);
uint32_t net_vector(struct net *net, uint64_t n);
uint32_t net_matrix(struct net *net, uint64_t rows, uint64_t columns);
uint32_t net_cube(struct net *net, uint64_t a, uint64_t b, uint64_t c);
/* The tape's constant of indexes, each below `below`. */
uint32_t net_index(struct net *net, uint64_t count, uint32_t below);

/* The parameters of gradient_check() lie between -1 and 1; with a spread, any two values of one
 * lie at least so far apart. */
void gradient_check(write_case *write);
void gradient_check_spread(write_case *write, double spread);

/* The case has no gradient, and the error says these words. */
void gradient_check_refused(write_case *write, const char *words);

#endif /* TESTS_SUPPORT_NUMERIC_GRADIENT_CHECK_H */
