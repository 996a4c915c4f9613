/*
 * Any bytes as a graph. What the declarations of one say is bounded; what model_build() makes of
 * its calls is a sound tape, and the same bytes make the same tape.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/models/graph/graph_expected.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "graph fuzz: %s\n", what);
        abort();
    }
}

static enum status build_of(struct model *model, const uint8_t *data, size_t size)
{
    struct graph_expected expected;
    struct model_options options;
    struct graph graph;

    *model = (struct model){.tape = NULL};
    if (graph_read(&graph, (const char *)data, size, NULL) != STATUS_OK) {
        return STATUS_BAD_FORMAT;
    }
    model_options_default(&options, MODEL_MLP);
    if (graph_expected_read(&expected, &graph, NULL) == STATUS_OK) {
        graph_expected_release(&expected);
    }
    graph.example = size % 3 == 0;
    options.graph = &graph;
    options.data_count = 3;
    options.accumulate = graph.trains ? 1 + (uint32_t)(size % 2) : 1;
    if (graph.evaluates && !graph.example) {
        options.held_out = (struct held_out_options){.batches = 1, .every = 1, .count = 7};
    }
    return model_build(model, &options, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model model;
    struct model again;

    if (build_of(&model, data, size) == STATUS_OK) {
        const uint64_t bytes = tape_encoded_size(model.tape);

        insist(tape_check(model.tape, NULL) == STATUS_OK, "an unsound tape");
        insist(build_of(&again, data, size) == STATUS_OK && tape_encoded_size(again.tape) == bytes,
               "another tape");
        model_release(&again);
        model_release(&model);
    }
    return 0;
}
