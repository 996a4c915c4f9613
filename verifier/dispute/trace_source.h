/*
 * trace_source.h - walks through an accused's trace: finds each reply that the walk wants, in what
 * the ledger said, in a checkpoint of the state after the step, or at the mirrors.
 *
 * A reply is checked against the root that it is wanted by. Only the root of the trace itself, and
 * that of a micro-batch, can be anybody's word: a ledger alone holds the accused to it.
 */
#ifndef VERIFIER_DISPUTE_TRACE_SOURCE_H
#define VERIFIER_DISPUTE_TRACE_SOURCE_H

#include "base/io/file.h"
#include "proofs/dispute/trace_walk.h"
#include "verifier/check/fetch.h"

/* Everything is borrowed. */
struct trace_source {
    struct fetch *fetch; /* the mirrors */
    struct digest job;
    uint64_t step;             /* of the job */
    char reply[FILE_PATH_MAX]; /* a file: what the accused replied last on the ledger; empty: no */
    bool alone;               /* no ledger knows of the dispute: the accused is held to any reply */
    char walk[FILE_PATH_MAX]; /* a file: the walk so far, written after each reply; empty: no */
    const struct digest *states; /* roots of the states after the step, then their hashes as leaves,
                                    from a checkpoint; NULL: there is none */
};

/* Goes on with the walk that the file holds, where that is one about the same trace. */
MUST_CHECK enum status trace_source_open(struct trace_walk *walk, struct trace_server *own,
                                         const struct trace_source *source,
                                         const struct trace_walk_case *accused,
                                         struct error *error);

/* Until the walk has ended or nobody has the next reply. The walk then goes on, and error says
 * where the reply was looked for. */
MUST_CHECK enum status trace_source_walk(struct trace_walk *walk, const struct trace_source *source,
                                         struct error *error);

/* The root of the trace, by the first reply that a mirror has. STATUS_NOT_FOUND: none has one. */
MUST_CHECK enum status trace_source_root(struct digest *root, const struct trace_source *source,
                                         const struct tape *tape, struct error *error);

#endif /* VERIFIER_DISPUTE_TRACE_SOURCE_H */
