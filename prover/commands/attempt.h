/*
 * attempt.h - what `prover run` and `resume` open for one bundle, and how they train it: in a
 * process of its own, which they start again when it is ended from outside.
 */
#ifndef PROVER_COMMANDS_ATTEMPT_H
#define PROVER_COMMANDS_ATTEMPT_H

#include "base/io/notify.h"
#include "base/io/stop.h"
#include "proofs/bundle/stop_rule.h"
#include "proofs/run/data_paths.h"
#include "prover/commands/ranks_launch.h"
#include "prover/commands/run_progress.h"
#include "prover/commands/serve_commands.h"
#include "prover/confined/trainer.h"
#include "prover/post/session.h"

struct attempt {
    struct job *job;
    struct bundle *bundle;
    struct session session;
    bool with_ledger;
    struct stop_rule rule;   /* of a new bundle */
    bool is_new;             /* this command made the bundle */
    struct bundle *held;     /* open for writing while nobody trains: no other command may go on */
    struct trainer *trainer; /* reads and writes the bundle; this process only reads it */
    struct data_paths data;
    struct serve_beside *beside; /* NULL: nothing is served */
    struct run_sight *sight;
    struct stop stop;
    struct notify notify;
    struct machine_options machine;
    struct ranks_launch launch; /* where several ranks train */
};

#define ATTEMPT_NONE                                                                               \
    {                                                                                              \
        .stop.descriptor = -1, .notify.descriptor = -1, .launch.listener = -1                      \
    }

/* Checkpoints to keep. */
uint64_t attempt_keep(const struct command_context *context, const struct job *job);

/* Gives the bundle its notes, leaves it to the process that trains, and waits until that has data
 * and machine. *step_ns: how long a step takes; 0: not known. A mistake in either leaves no new
 * bundle behind. */
MUST_CHECK enum status attempt_begin(uint64_t *step_ns, struct attempt *attempt,
                                     struct command_context *context, struct error *error);

/* For struct session_plan; context is the attempt. */
void attempt_keep_signature(void *context, uint64_t segment, const uint8_t *signature, size_t size);

/* Trains under the device's lock. A run by hand goes on without it: its owner may want that. */
MUST_CHECK enum status attempt_train(struct train_result *result, struct attempt *attempt,
                                     struct command_context *context, struct error *error);

#endif /* PROVER_COMMANDS_ATTEMPT_H */
