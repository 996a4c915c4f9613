/*
 * graph_check.h - the first step of a graph's example, held to what PyTorch found in it.
 *
 * All that goes wrong between a program and its tape without a word shows here: a gradient that
 * autograd hides, another epsilon, an axis that is swapped. The example lies beside the weights as
 * "example.NAME".
 */
#ifndef CLIENT_GRAPH_GRAPH_CHECK_H
#define CLIENT_GRAPH_GRAPH_CHECK_H

#include "base/sheet/sheet.h"
#include "engine/models/graph/graph.h"
#include "proofs/job/job.h"

/* Of a step, relatively; of gradients and of states the farthest. */
struct graph_apart {
    double loss;
    double gradients;
    double states;
};

struct graph_checked {
    bool looked; /* it is a job of a graph */
    bool made;   /* false: the graph does not say what a first step makes */
    bool has_loss;
    bool single; /* PyTorch computed in binary32: the program does not run in binary64 */
    struct graph_apart found;
    struct graph_apart allowed;
};

/* Runs the step with the bits of the options and refuses what is too far, naming the tensor and
 * where the program reads it. */
MUST_CHECK enum status graph_check(struct graph_checked *checked, const struct graph *graph,
                                   const struct model_options *options, const char *weights,
                                   struct error *error);

void graph_check_show(struct sheet *sheet, const struct graph_checked *checked);

/* The same for the notes of the job (job_notes.h), and from there. */
void graph_check_note(struct buffer *notes, const struct graph_checked *checked);
void graph_check_show_noted(struct sheet *sheet, const struct job *job);

#endif /* CLIENT_GRAPH_GRAPH_CHECK_H */
