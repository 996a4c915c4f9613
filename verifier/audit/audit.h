/*
 * audit.h - replays a bundle and says whether its journal is true. No network, no key.
 *
 * Only a step that was run again is called proven. A difference is called one only after a second
 * replay with another instruction set gave the same true state. If the two replays disagree, this
 * machine is at fault and the answer is CANNOT_TELL. So it is when something cannot be read or
 * reached, and where the last checkpoint, which is the trained model, is broken or missing.
 */
#ifndef VERIFIER_AUDIT_AUDIT_H
#define VERIFIER_AUDIT_AUDIT_H

#include "base/io/stop.h"
#include "proofs/run/run.h"
#include "verifier/audit/checkpoint_audit.h"
#include "verifier/audit/fault_location.h"

enum audit_answer {
    AUDIT_CANNOT_TELL = 0,
    AUDIT_REFUTED,
    AUDIT_PROVEN,
};

/* Why a step is refuted. */
enum audit_flaw {
    AUDIT_FLAW_NONE = 0,
    AUDIT_FLAW_STATE,        /* the step gives another state */
    AUDIT_FLAW_WENT_ON,      /* the state after it is not finite, and the run went on */
    AUDIT_FLAW_NOT_DIVERGED, /* the journal says that the run diverged there; it did not */
};

struct audit_options {
    uint64_t sample; /* segments to replay, drawn by seed; 0: all of them */
    uint64_t sample_seed;
    /* Replay only part `share` of share_count equal parts, in order; share_count 0: all. */
    uint32_t share;
    uint32_t share_count;
    struct machine_options machine; /* what replays */
    struct stop *stop;
    /* Locate a difference (fault_location.h), with trace replies from these places. */
    bool seek;
    const char *const *sources;
    size_t source_count;
    void (*progress)(void *context, uint64_t steps_done, uint64_t steps_wanted);
    void *progress_context;
    /* NULL, or called after every step; equal: its bits were the journal's. */
    void (*on_step)(void *context, const struct bundle_step *entry, uint64_t nanoseconds,
                    bool equal);
    void *step_context;
};

struct audit_result {
    enum audit_answer answer;
    struct digest job_id;
    uint64_t steps_of_job;
    uint64_t steps_journaled;       /* from the first, without a gap */
    uint64_t steps_wanted;          /* steps of the chosen segments */
    uint64_t steps_due;             /* of these, by this share */
    uint64_t steps_checked;         /* run again, with the journal's root */
    enum audit_flaw flaw;           /* REFUTED */
    uint64_t wrong_step;            /* REFUTED: the first false step that was found */
    struct digest wrong_root;       /* in the journal */
    struct digest true_root;        /* by two replays */
    struct fault_location location; /* REFUTED, with seek */
    struct checkpoint_audit checkpoints;
    struct error reason; /* CANNOT_TELL: why */
};

/* Replays and fills in result; release it with audit_result_release(). paths: the job's data. */
void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options);

/* A PROVEN result without a true last checkpoint becomes CANNOT_TELL. audit() does so itself, but
 * not with a share: its caller merges the shares first. */
void audit_conclude(struct audit_result *result);

void audit_result_release(struct audit_result *result); /* a zero-filled one is allowed */

const char *audit_answer_name(enum audit_answer answer);

/* "does not give what the journal says": of a step with the flaw. */
const char *audit_flaw_words(enum audit_flaw flaw);
const char *audit_flaw_name(enum audit_flaw flaw); /* "state" */

#endif /* VERIFIER_AUDIT_AUDIT_H */
