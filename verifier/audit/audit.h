/*
 * audit.h - replays a bundle and says whether its journal is true. No network, no key.
 *
 * The replay is the check's (verifier/check): the audit cuts the journal into checks, runs them in
 * confined child processes, and puts their results together. Only a step that was run again is
 * called proven. A difference is called one only after a second replay with another instruction set
 * gave the same true state. If the two replays disagree, this machine is at fault and the answer is
 * CANNOT_TELL. So it is when something cannot be read or reached; where the last checkpoint, which
 * is the trained model, is broken or missing; where a figure of the journal is not what the replay
 * gives; where the journal is not what its solver signed; and where a run went on past the step at
 * which the bundle's own rule (stop_rule.h) ends it.
 */
#ifndef VERIFIER_AUDIT_AUDIT_H
#define VERIFIER_AUDIT_AUDIT_H

#include "base/io/stop.h"
#include "proofs/bundle/stop_rule.h"
#include "proofs/run/run.h"
#include "verifier/audit/checkpoint_audit.h"
#include "verifier/audit/fault_location.h"
#include "verifier/check/check_wire.h"

#define AUDIT_WORKERS_MAX 256

enum audit_answer {
    AUDIT_CANNOT_TELL = 0,
    AUDIT_REFUTED,
    AUDIT_PROVEN,
};

/* A step of the journal that is known to be true or false. */
struct audit_step {
    const struct bundle_step *entry;
    const struct check_figures *figures; /* as replayed; NULL: the step is false */
    uint64_t nanoseconds;                /* the mean of the steps that were replayed with it */
};

struct audit_options {
    uint64_t sample; /* segments to replay, drawn by seed; 0: all of them */
    uint64_t sample_seed;
    uint32_t workers;   /* processes that replay at a time; 0: one */
    const char *launch; /* what starts them (verifier/check/workers.h); NULL: this program */
    /* What replays, as a check's request has it. */
    const char *device; /* NULL: the CPU */
    uint64_t device_memory;
    uint64_t memory_max; /* bytes; 0: no limit */
    uint32_t threads;    /* of each process; 0: those of its machine */
    struct stop *stop;   /* NULL: it cannot be stopped */
    /* Locate a difference (fault_location.h), with trace replies from these places. */
    bool seek;
    const char *const *sources;
    size_t source_count;
    void (*progress)(void *context, uint64_t steps_done, uint64_t steps_wanted);
    void *progress_context;
    void (*on_step)(void *context, const struct audit_step *step); /* NULL, or after every step */
    void *step_context;
};

/* The first figure of the journal that is not what the replay gives. */
struct audit_figure {
    const char *name; /* "loss"; NULL: there is none */
    uint64_t step;
    uint32_t journal_bits; /* binary32 */
    uint32_t true_bits;
};

struct audit_result {
    enum audit_answer answer;
    struct digest job_id;
    uint64_t steps_of_job;
    uint64_t steps_journaled; /* from the first, without a gap */
    uint64_t steps_wanted;    /* steps of the chosen segments */
    uint64_t steps_checked;   /* run again, with the journal's root */
    uint64_t sample;          /* what chose them, as in the options */
    uint64_t sample_seed;
    enum check_flaw flaw;                    /* REFUTED */
    uint64_t wrong_step;                     /* REFUTED: the first false step that was found */
    struct digest wrong_root;                /* in the journal */
    struct digest true_root;                 /* by two replays */
    uint64_t wrong_segment;                  /* the segment of the step, */
    struct digest segment_root;              /* its root by the journal, */
    uint8_t signature[BUNDLE_SIGNATURE_MAX]; /* and the solver's signature of that root: what is */
    size_t signature_size;                   /* refuted; 0: the bundle has none */
    struct fault_location location;          /* REFUTED, with seek */
    struct audit_figure figure;
    bool final_loss_known; /* of the journal's last step, as replayed: */
    uint32_t final_loss_bits;
    struct checkpoint_audit checkpoints;
    char ended[STOP_SENTENCE]; /* by which rule of the bundle the run ended early; "": by none */
    struct error reason;       /* CANNOT_TELL: why */
};

/* Replays and fills in result; release it with audit_result_release(). paths: the job's data. */
void audit(struct audit_result *result, struct bundle *bundle, const char *const *paths,
           size_t path_count, const struct audit_options *options);

/* Were all of these steps run again, with the journal's roots? Only of a PROVEN result. */
bool audit_ran(const struct audit_result *result, struct bundle *bundle, uint64_t from,
               uint64_t end);

/* A REFUTED result about a journal that is not what was signed, or committed on a ledger, becomes
 * CANNOT_TELL: "which root the journal does not have" is said by whose. */
void audit_distrust_journal(struct audit_result *result, const char *whose);

void audit_result_release(struct audit_result *result); /* a zero-filled one is allowed */

const char *audit_answer_name(enum audit_answer answer);

#endif /* VERIFIER_AUDIT_AUDIT_H */
