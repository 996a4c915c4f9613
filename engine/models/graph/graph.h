/*
 * graph.h - a program as calls of the builder, one a line: the text that share/lockstep's exporter
 * writes of a PyTorch module. docs/FORMATS.md, "A graph", has the format.
 *
 *     lockstep-graph 1
 *     %0 input x f32 32 784
 *     %1 param fc.weight 10 784
 *     at fc model.py:12
 *     %2 contract %0 %1 ... = 32 10
 *     loss %9
 *
 * Behind that may stand what is found on held-out data, and what PyTorch found in a first step.
 *
 * The text is hostile: lines, words, numbers and names are bounded, and what the builder refuses is
 * named with the number of its line and its place. Nothing is clever here: no shape is guessed.
 */
#ifndef ENGINE_MODELS_GRAPH_GRAPH_H
#define ENGINE_MODELS_GRAPH_GRAPH_H

#include "engine/models/graph/graph_line.h"
#include "engine/models/model.h"

#define GRAPH_INPUTS_MAX     16u
#define GRAPH_NAMES_MAX      16384u
/* Data of inputs that stand for others have one of these before their names. */
#define GRAPH_EXAMPLE        "example."
#define GRAPH_HELD_OUT       "held_out."
#define GRAPH_EXAMPLE_SEED   1 /* of the draws of an example */
#define GRAPH_INPUT_NAME_MAX (TENSOR_NAME_MAX - 9)

/* A tensor of a batch: dims[0] is the number of its rows. */
struct graph_input {
    char name[GRAPH_NAME_MAX + 1];
    enum dtype dtype; /* DTYPE_F32 or DTYPE_U32: what the program reads */
    uint32_t rank;
    uint64_t dims[TENSOR_RANK_MAX];
    enum dtype file_dtype; /* the caller sets it: of integers u8, u16 or u32 */
};

struct graph {
    const char *text; /* borrowed */
    size_t size;
    uint32_t input_count;
    struct graph_input inputs[GRAPH_INPUTS_MAX];
    bool frozen;    /* does it name frozen weights? */
    bool trains;    /* it has parameters, and a loss; else each step makes states of states */
    bool evaluates; /* it says what is found on held-out data */
    /* The caller sets it by graph_freeze(): parameters whose names fit stay as they are. */
    const struct recipe_rules *freeze;
    /* The caller sets it: the tape of the first step of an example. The data of input NAME are
     * "example.NAME", one batch as it lies, and nothing is dropped. */
    bool example;
};

/* Reads the declarations, and takes all lines apart; model_build() then reads the calls.
 * Borrows text for as long as the graph is used. */
MUST_CHECK enum status graph_read(struct graph *graph, const char *text, size_t size,
                                  struct error *error);

/* Parameters whose names fit a pattern are frozen weights. Borrows the patterns. Refuses one that
 * none fits, and a graph of which nothing would be trained. */
MUST_CHECK enum status graph_freeze(struct graph *graph, const struct recipe_rules *patterns,
                                    struct error *error);

#endif /* ENGINE_MODELS_GRAPH_GRAPH_H */
