/*
 * audit.h - replays a bundle and says whether its journal is true. No network, no key.
 *
 * A step is only ever called right after it was re-executed. A difference is confirmed by a second
 * replay with another instruction set before it is called one: if the two replays disagree, this
 * machine is at fault and the answer is "cannot tell". What cannot be read or reached is "cannot
 * tell" as well, never "refuted".
 */
#ifndef VERIFIER_AUDIT_H
#define VERIFIER_AUDIT_H

#include "base/stop.h"
#include "proofs/run.h"

enum audit_answer {
    AUDIT_CANNOT_TELL = 0,
    AUDIT_REFUTED,
    AUDIT_PROVEN,
};

struct audit_options {
    uint64_t sample; /* segments to replay, drawn by seed; 0: all of them */
    uint64_t sample_seed;
    struct machine_options machine; /* what replays */
    struct stop *stop;
    void (*progress)(void *context, uint64_t steps_done, uint64_t steps_wanted);
    void *progress_context;
    /* Told of every step that was run again, and whether its bits were the journal's; or NULL. */
    void (*told)(void *context, const struct bundle_step *entry, uint64_t nanoseconds, bool equal);
    void *told_context;
};

struct audit_result {
    enum audit_answer answer;
    uint64_t steps_of_job;
    uint64_t steps_journaled; /* without a gap, from the first */
    uint64_t steps_wanted;    /* how many were to be replayed */
    uint64_t steps_checked;   /* re-executed, with the journal's root */
    uint64_t wrong_step;      /* REFUTED: the first step found whose root is not true */
    struct digest wrong_root; /* what the journal says of it */
    struct digest true_root;  /* and what two replays gave */
    struct error reason;      /* CANNOT_TELL: why */
};

/* Replays; the answer and all else is in result. paths name the job's data. */
void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options);

const char *audit_answer_name(enum audit_answer answer);

#endif /* VERIFIER_AUDIT_H */
