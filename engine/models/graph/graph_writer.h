/*
 * graph_writer.h - what is written of a graph's lines so far. Inside engine/models/ only.
 */
#ifndef ENGINE_MODELS_GRAPH_GRAPH_WRITER_H
#define ENGINE_MODELS_GRAPH_GRAPH_WRITER_H

#include "base/buffer.h"
#include "engine/models/graph/graph_line.h"
#include "engine/models/model_writer.h"

#define GRAPH_PLACE_MAX  160 /* bytes of an "at" that an error repeats */
#define GRAPH_PLACES_MAX (UINT32_C(1) << 20)

/* Where a line stands. */
enum graph_part {
    GRAPH_DECLARES = 0,
    GRAPH_CALLS,   /* and what is next of states */
    GRAPH_LEFT,    /* of a pass over held-out data: the calls of a step */
    GRAPH_ENDED,   /* behind the loss, or behind the last line of a graph without one */
    GRAPH_SKIPPED, /* of a step: what is found on held-out data */
    GRAPH_EXPECTS,
};

struct graph_writer {
    struct model_writer *writer;
    struct builder *builder;
    uint32_t *ids; /* the tensor of each value */
    uint32_t count;
    uint32_t room;
    uint32_t declared; /* values of declarations */
    enum graph_part part;
    uint32_t loss;
    uint32_t states;
    uint32_t afters;
    struct graph_split {
        uint32_t x;
        uint32_t count; /* 0: none yet */
        uint64_t widths[OP_OUTPUTS_MAX];
        uint32_t parts[OP_OUTPUTS_MAX];
    } split; /* the last one: its parts are lines of their own */
    struct graph_sort {
        bool is_there;
        bool descending;
        uint32_t x;
        struct sorted made;
    } sort; /* likewise */
    char place[GRAPH_PLACE_MAX + 1];
    struct buffer places; /* of the model */
    bool placed;          /* the last line of them is no "end" */
};

/* Writes the call of a line; *id is the tensor that it makes. What the builder refuses is left in
 * the builder. */
MUST_CHECK enum status graph_call(uint32_t *id, struct graph_writer *graph,
                                  const struct graph_line *line, struct error *error);

#endif /* ENGINE_MODELS_GRAPH_GRAPH_WRITER_H */
