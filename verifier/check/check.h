/*
 * check.h - one piece of work: is this segment, as it was committed, what its job gives?
 *
 * A check fetches the job, a checkpoint and the data by their roots (fetch.h), runs the steps again
 * and compares every state with what the ledger has. A difference is REFUTED only after a
 * second replay on another instruction set gave the same true state; two replays that disagree mean
 * a FAULT of this machine. All other trouble is CANNOT_TELL with a reason; `permanent` says that
 * another try would fail too.
 *
 * A check runs in a child process (workers.h): every byte it reads is a stranger's.
 */
#ifndef VERIFIER_CHECK_CHECK_H
#define VERIFIER_CHECK_CHECK_H

#include "verifier/check/check_wire.h"

/* Memory that a replay needs beside its machine: the job, a tensor being read, the program. */
#define CHECK_MEMORY_BESIDE ((uint64_t)64 << 20)

/* A step that is disputed, as a visitor is shown it. Everything is borrowed. */
struct check_step {
    const struct check_request *request;
    struct fetch *fetch;
    struct run *run;         /* of the job; */
    bool stands;             /* its machine holds the state before the step, the committed one */
    bool is_last;            /* of a training that is said to have diverged in it */
    uint64_t step;           /* of the job */
    struct digest pre_state; /* the committed ones */
    struct digest post_state;
    uint64_t runs; /* how often the visitor has run the step */
};

/* A check knows nothing of disputes: its caller gives it the visitor. */
struct check_visitor {
    /* Is the result of the step known? Then no machine needs to compute the state before it. */
    bool (*knows)(const struct check_request *request);
    enum status (*visit)(struct check_step *step, struct error *error);
};

/* Does the work; all that happens is in result. visitor: for requests that are disputed; NULL: they
 * are refused. seal: called when a check has fetched all that it wants; NULL: nothing is. */
void check_run(struct check_result *result, const struct check_request *request,
               const struct check_visitor *visitor, void (*seal)(void));

/* The machine that a request wants; other: the one for a second opinion. */
struct machine_options;
MUST_CHECK enum status check_machine(struct machine_options *options,
                                     const struct check_request *request, bool other,
                                     struct error *error);

#endif /* VERIFIER_CHECK_CHECK_H */
