/*
 * run_progress.h - what a training run shows of itself: the curve of its loss, its pace, how it
 * stands on the ledger. For `lockstep prover run` and `resume`.
 */
#ifndef PROVER_COMMANDS_RUN_PROGRESS_H
#define PROVER_COMMANDS_RUN_PROGRESS_H

#include "base/io/notify.h"
#include "base/io/progress.h"
#include "proofs/run/loss_curve.h"
#include "prover/post/session.h"
#include "prover/train/gpu_meter.h"
#include "prover/train/time_split.h"

struct run_progress {
    struct progress progress;
    uint64_t steps;          /* done */
    uint64_t tokens;         /* of a step; 0: it draws none */
    struct time_split split; /* posting_ns: how long training waited for it */
    struct gpu_meter *meter; /* borrowed, like all below */
    struct session *session; /* NULL: there is no ledger */
    struct notify *notify;
    const struct log *log;
    struct loss_curve *curve; /* owned */
};

/* Reads how the steps of the bundle went. The caller has set what is borrowed. */
MUST_CHECK enum status run_progress_open(struct run_progress *run, struct bundle *bundle,
                                         struct error *error);
/* Shows the last state and leaves it. A zero-filled one is allowed. */
void run_progress_close(struct run_progress *run);

/* For struct train_options; context is the struct run_progress. */
void run_progress_step(void *context, const struct bundle_step *step);
enum status run_progress_segment(void *context, struct error *error);

#endif /* PROVER_COMMANDS_RUN_PROGRESS_H */
