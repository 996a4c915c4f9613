/*
 * graph_expected.h - what PyTorch found in the first step of a graph's example: the loss, and of
 * the gradient of each parameter and of the next value of each state a norm and eight sums.
 *
 *     expect f64|f32
 *     expect %LOSS NUMBER
 *     expect %PARAMETER_OR_STATE NORM SUM ... SUM
 *
 * The first line says in which precision PyTorch computed it; without it that is binary64.
 *
 * The sums take each element with a sign that follows from its place (graph_expected_add), so that
 * the root of the mean square of their differences is about the norm of the difference.
 */
#ifndef ENGINE_MODELS_GRAPH_GRAPH_EXPECTED_H
#define ENGINE_MODELS_GRAPH_GRAPH_EXPECTED_H

#include "engine/models/graph/graph.h"

#define GRAPH_SUMS 8

struct graph_measure {
    double square; /* of the norm */
    double sums[GRAPH_SUMS];
};

/* One of a parameter, or of a state. */
struct graph_expected_tensor {
    char name[GRAPH_NAME_MAX + 1];
    char place[161]; /* "at" of the first call that reads it; empty: none does */
    bool state;
    bool given;
    struct graph_measure measure;
};

struct graph_expected {
    bool given;      /* false: the graph says nothing, and the rest is empty */
    bool single;     /* PyTorch computed it in binary32: the program did not run in binary64 */
    double bfloat16; /* how far the worst gradient is off in that type; 0: not said */
    double loss;
    uint32_t count;
    struct graph_expected_tensor *tensors;
};

/* Reads the lines `expect` of a graph that graph_read() has read. They are of all parameters and
 * states, and of the loss if there is one; or there are none. */
MUST_CHECK enum status graph_expected_read(struct graph_expected *expected,
                                           const struct graph *graph, struct error *error);
void graph_expected_release(struct graph_expected *expected); /* a zero-filled one is allowed */

/* Adds the element at a place. */
void graph_measure_add(struct graph_measure *measure, uint64_t place, double value);

#endif /* ENGINE_MODELS_GRAPH_GRAPH_EXPECTED_H */
