/*
 * job_graph.h - a new job of a graph: its data are files of rows, its weights are given.
 */
#ifndef CLIENT_GRAPH_JOB_GRAPH_H
#define CLIENT_GRAPH_JOB_GRAPH_H

#include "base/cli/command.h"
#include "client/graph/graph_check.h"
#include "proofs/job/job_make.h"

/*
 * The job of --graph with the update that model says. --data names a .npy for each input, in their
 * order; --first-state the weights, and what is frozen beside them. Refuses rows of another number,
 * shape or type than the graph's, naming the input.
 */
MUST_CHECK enum status job_graph_make(struct job **job, struct graph_checked *checked,
                                      struct job_terms *terms, struct model_options *model,
                                      const struct options *options, struct error *error);

#endif /* CLIENT_GRAPH_JOB_GRAPH_H */
