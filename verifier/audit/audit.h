/*
 * audit.h - replays a bundle and says whether its journal is true. No network, no key.
 *
 * A step is only ever called right after it was re-executed. A difference is confirmed by a second
 * replay with another instruction set before it is called one: if the two replays disagree, this
 * machine is at fault and the answer is "cannot tell". What cannot be read or reached is "cannot
 * tell" as well, never "refuted".
 */
#ifndef VERIFIER_AUDIT_AUDIT_H
#define VERIFIER_AUDIT_AUDIT_H

#include "base/io/stop.h"
#include "proofs/run/run.h"
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
    AUDIT_FLAW_NOT_DIVERGED, /* the run is said to have diverged there, and did not */
};

struct audit_options {
    uint64_t sample; /* segments to replay, drawn by seed; 0: all of them */
    uint64_t sample_seed;
    /* Of these only the part number `share` of share_count, in order; share_count 0: all. */
    uint32_t share;
    uint32_t share_count;
    struct machine_options machine; /* what replays */
    struct stop *stop;
    /* Look into a difference (fault_location.h), with answers about the trace from these places. */
    bool seek;
    const char *const *sources;
    size_t source_count;
    void (*progress)(void *context, uint64_t steps_done, uint64_t steps_wanted);
    void *progress_context;
    /* Told of every step that was run again, and whether its bits were the journal's; or NULL. */
    void (*reply)(void *context, const struct bundle_step *entry, uint64_t nanoseconds, bool equal);
    void *told_context;
};

struct audit_result {
    enum audit_answer answer;
    struct digest job_id;
    uint64_t steps_of_job;
    uint64_t steps_journaled;       /* without a gap, from the first */
    uint64_t steps_wanted;          /* how many were to be replayed */
    uint64_t steps_due;             /* of these, by this share */
    uint64_t steps_checked;         /* re-executed, with the journal's root */
    enum audit_flaw flaw;           /* REFUTED */
    uint64_t wrong_step;            /* REFUTED: the first step found that is not true */
    struct digest wrong_root;       /* what the journal says of it */
    struct digest true_root;        /* and what two replays gave */
    struct fault_location location; /* REFUTED, and seek was wanted */
    struct error reason;            /* CANNOT_TELL: why */
};

/* Replays; the answer and all else is in result, which is released with audit_result_release().
 * paths name the job's data. */
void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options);

void audit_result_release(struct audit_result *result); /* a zero-filled one is allowed */

const char *audit_answer_name(enum audit_answer answer);

/* "does not give what the journal says": what a step does that has the flaw. */
const char *audit_flaw_words(enum audit_flaw flaw);
const char *audit_flaw_name(enum audit_flaw flaw); /* "state" */

#endif /* VERIFIER_AUDIT_AUDIT_H */
