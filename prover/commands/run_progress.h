/*
 * run_progress.h - what a training run shows of itself: the curve of its loss, its pace, how it
 * stands on the ledger. For `lockstep prover run` and `resume`.
 */
#ifndef PROVER_COMMANDS_RUN_PROGRESS_H
#define PROVER_COMMANDS_RUN_PROGRESS_H

#include <pthread.h>

#include "base/io/notify.h"
#include "base/io/progress.h"
#include "chain/view/job_page.h"
#include "prover/post/session.h"
#include "prover/train/gpu_meter.h"
#include "prover/train/time_split.h"

/* What is shown, while it trains and afterwards. */
struct run_sight {
    pthread_mutex_t lock; /* of view */
    struct job_view view;
    struct poster *poster; /* borrowed; NULL: there is no ledger */
    struct job_page *page; /* NULL: none is served */
};

/* Reads how the steps of the bundle went, and serves the page that the options ask for. */
MUST_CHECK enum status run_sight_open(struct run_sight **sight, struct command_context *context,
                                      struct bundle *bundle, struct poster *poster,
                                      struct error *error);
void run_sight_close(struct run_sight *sight); /* NULL is fine */

struct run_progress {
    struct progress progress;
    uint64_t steps;          /* done */
    uint64_t tokens;         /* of a step; 0: it draws none */
    bool trains;             /* the job has a loss */
    struct time_split split; /* posting_ns: how long training waited for it */
    struct gpu_meter *meter; /* borrowed, like all below */
    struct session *session; /* NULL: there is no ledger */
    struct notify *notify;
    const struct log *log;
    struct run_sight *sight; /* borrowed */
};

/* The caller has set what is borrowed. */
MUST_CHECK enum status run_progress_open(struct run_progress *run, struct bundle *bundle,
                                         struct error *error);
/* Shows the last state and leaves it. A zero-filled one is allowed. */
void run_progress_close(struct run_progress *run);

/* For struct trainer_watch; context is the struct run_progress. */
void run_progress_step(void *context, const struct bundle_step *step);
enum status run_progress_segment(void *context, struct error *error);
uint32_t run_progress_final(void *context);

#endif /* PROVER_COMMANDS_RUN_PROGRESS_H */
