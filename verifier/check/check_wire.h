/*
 * check_wire.h - the request and the result of a check, and both as JSON for the pipes between the
 * node and its children.
 */
#ifndef VERIFIER_CHECK_CHECK_WIRE_H
#define VERIFIER_CHECK_CHECK_WIRE_H

#include <jansson.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/io/file.h"
#include "chain/game/ask.h"
#include "proofs/commit/leaf_proof.h"
#include "proofs/mirror/mirror_set.h"

#define CHECK_REACH_MAX   64 /* segments before the one to check that may be replayed on the way */
#define CHECK_MIRRORS_MAX MIRROR_SET_MAX
#define CHECK_DATA_MAX    32
#define CHECK_NOTE_MAX    160
#define CHECK_DEVICE_MAX  120
#define CHECK_WIRE_MAX    ((size_t)2 << 20) /* bytes of a request or a result */
#define CHECK_FIGURES_MAX 512

/* A segment as it was committed: the ledger has its states. */
struct check_segment {
    uint32_t steps; /* 1 to GAME_STATES_MAX */
    struct digest root;
    struct digest states[GAME_STATES_MAX]; /* after each step */
};

struct check_request {
    struct digest job_id;
    uint64_t steps; /* of the job, by its terms */
    uint32_t segment_steps;
    uint32_t index;                                     /* of the segment to check */
    uint32_t segment_count;                             /* the last is the one to check */
    struct check_segment segments[CHECK_REACH_MAX + 1]; /* without a gap up to it */
    uint32_t reach; /* the replay may begin so many segments earlier */
    bool diverged;  /* the solver says that it ends in a NaN or an infinity */
    /* An audit's: a journal in place of a ledger's segments. The places follow each other without a
     * gap from first_step on, each as long as it is, and all of them are replayed. */
    bool journal;
    uint64_t first_step;
    struct digest first_root; /* of the state before it */
    bool open_end;            /* the journal ends there, and does not say that the run diverged */
    uint32_t figure_count;    /* the figures of so many last steps are wanted */

    struct hash32 seed; /* draws leaves of the segment's states; zero: none are wanted */
    uint32_t proven; /* one of these leaves is wanted with its proof: its number and one; 0: none */

    char cache[FILE_PATH_MAX];
    uint32_t mirror_count;
    uint32_t mirrors_tired; /* the last so many failed lately, and get a shorter timeout */
    char mirrors[CHECK_MIRRORS_MAX][FILE_PATH_MAX];
    uint32_t strangers;     /* bit i: mirror i was named by a stranger, and is asked */
    uint32_t contact_reach; /* within this: enum http_reach */
    uint32_t data_count;
    char data[CHECK_DATA_MAX][FILE_PATH_MAX];
    uint64_t memory_max;       /* bytes */
    uint64_t file_max;         /* bytes of any one file */
    uint64_t bandwidth_max;    /* bytes a second; 0: no limit */
    uint32_t mirror_timeout_s; /* how long an endpoint may be silent, or slower than a trickle */
    uint32_t processor_s;      /* of computing */
    uint64_t keep_max;         /* bytes of a state that is left in the cache; 0: none is */
    uint32_t resume_ms; /* at least so long apart it leaves a state for the next try; 0: none */
    uint32_t threads;   /* 0: as many as there are where it runs */
    char device[CHECK_DEVICE_MAX]; /* as machine_options_device() knows it */
    uint64_t device_memory;        /* of each device; 0: all of it */
    bool other;    /* compute with the other instruction set: for tests and the self-test */
    bool disagree; /* for the self-test: spoil the second replay */

    /* Instead of a check: only fetches the states that the last segment begins and ends with. */
    bool states;
    /* Or runs the first step of the job, again and again for a second, to learn whether all is
     * there that it needs, and what it takes. The request has one segment, of one step. */
    bool trial;

    /* A dispute instead of a check: what a visitor does with a step of the last segment. */
    bool disputed;
    uint32_t disputed_step;
    char folder[FILE_PATH_MAX]; /* the dispute's memory */
    char ask[ASK_TEXT_MAX];     /* signed, about this step, for who replies; empty: none */
};

enum check_outcome {
    CHECK_CANNOT_TELL = 0,
    CHECK_PROVEN,
    CHECK_REFUTED,
    CHECK_FAULT, /* of this machine */
};

/* Why a step is refuted. The evidence of a claim depends on it. */
enum check_flaw {
    CHECK_FLAW_NONE = 0,
    CHECK_FLAW_STATE,        /* the step gives another state */
    CHECK_FLAW_WENT_ON,      /* the state after it is not finite, and the job went on */
    CHECK_FLAW_NOT_DIVERGED, /* the solver says that the job diverged there; it did not */
};

/* What a replayed step gave beside its state; as a journal has it (proofs/bundle/bundle.h). */
struct check_figures {
    uint32_t loss_bits;
    uint32_t evaluated; /* 1: there was a look at held-out data, which gave: */
    uint32_t held_out_bits;
    uint32_t accuracy_bits;
};

struct check_result {
    enum check_outcome outcome;
    bool permanent;
    bool unavailable;      /* CANNOT_TELL: what the check needs was to be had nowhere, */
    bool line_works;       /* ... though a mirror answered */
    uint64_t wanted_bytes; /* of `states` */
    uint64_t fetch_ns;     /* that fetching took */
    char reason[ERROR_TEXT_MAX];
    char advice[ERROR_ADVICE_MAX]; /* empty: there is none */
    char note[CHECK_NOTE_MAX];     /* what the operator may want to know of it; empty: nothing */
    enum check_flaw flaw;
    bool has_header; /* the job was to be had: */
    uint8_t header[GAME_JOB_HEADER_SIZE];
    bool has_leaves;                       /* PROVEN, with a seed: the leaves that it draws */
    struct game_right rights[GAME_LEAVES]; /* their bytes are below */
    uint8_t leaves[GAME_LEAVES][MERKLE_LEAF_SIZE];
    uint32_t proof_size; /* of the wanted one; 0: none was */
    uint8_t proof[LEAF_PROOF_SIZE_MAX];
    uint32_t index; /* REFUTED, FAULT: the segment and the step in it, */
    uint32_t step;
    struct digest
        before; /* the state root that this segment (PROVEN: the checked one) begins with */
    struct digest pre_state; /* the states as they were committed, */
    struct digest post_state;
    struct digest true_state;  /* what the first replay gave */
    struct digest other_state; /* and the second */
    bool kept;       /* the state that the segment ends in lies in the cache (check_keep.h), */
    bool kept_start; /* of `states`: and so does the one that it begins with */
    char keep_trouble[CHECK_NOTE_MAX]; /* it does not, though it was to; empty: nothing is wrong */
    bool loss_known; /* PROVEN: the replay had one, finite, in the last step of the segment: */
    uint32_t loss_bits;
    bool no_start;         /* CANNOT_TELL: of a journal: there is no state before first_step */
    uint32_t figure_count; /* of a journal's steps: those that are known, from the first wanted */
    struct check_figures figures[CHECK_FIGURES_MAX];
    uint64_t steps_run;
    uint64_t compute_ns;
    uint32_t mirror_count;
    struct mirror_note mirrors[CHECK_MIRRORS_MAX];
};

const char *check_outcome_name(enum check_outcome outcome); /* "cannot-tell" */
const char *check_flaw_name(enum check_flaw flaw);          /* "state" */
/* "does not give what the journal says": of a step with the flaw. */
const char *check_flaw_words(enum check_flaw flaw);

json_t *check_request_json(const struct check_request *request); /* NULL: no memory */
MUST_CHECK enum status check_request_parse(struct check_request *request, const void *bytes,
                                           size_t size, struct error *error);
json_t *check_result_json(const struct check_result *result);
/* What a verdict "right" of this owner shows. Of a result with leaves. */
void check_result_rights(struct game_leaves *leaves, const struct check_result *result,
                         const struct address *owner, const struct hash32 *seed,
                         const struct hash32 *segment_hash);
/* Checks every field: the child read hostile bytes. */
MUST_CHECK enum status check_result_parse(struct check_result *result, const void *bytes,
                                          size_t size, struct error *error);

#endif /* VERIFIER_CHECK_CHECK_WIRE_H */
