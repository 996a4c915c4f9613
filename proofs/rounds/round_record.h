/*
 * round_record.h - what a round came to, as round.json keeps it: the jobs of all owners, what came
 * of each, the mean, and the state that the next round begins with.
 *
 * Records are a chain: each holds the id of its rounds and the SHA-256 of the record before it. A
 * record names all owners, in the agreement's order. An owner gave a state, or is left out for a
 * reason that its ledger knows.
 */
#ifndef PROOFS_ROUNDS_ROUND_RECORD_H
#define PROOFS_ROUNDS_ROUND_RECORD_H

#include "proofs/rounds/rounds.h"

#define ROUND_RECORD_FILE     "round.json"
#define ROUND_RECORD_FORMAT   "lockstep.round.v1"
#define ROUND_RECORD_SIZE_MAX (64u << 20)
#define ROUND_TRIES_MAX       16
#define ROUND_TREES_MAX       65536

/* How a try of an owner ended. */
enum round_end {
    ROUND_END_NONE = 0,  /* it goes on */
    ROUND_END_FINAL,     /* its last state is final */
    ROUND_END_CONVICTED, /* its solver lied */
    ROUND_END_LATE,      /* its solver was released, since it was late */
    ROUND_END_VOID,      /* what it committed became void */
    ROUND_END_UNTAKEN,   /* no solver took it before its deadline */
    ROUND_END_DIVERGED,  /* the training met a NaN or an infinity */
    ROUND_END_COUNT,
};
const char *round_end_word(enum round_end end); /* "convicted" */

struct round_try {
    struct digest key; /* of the job on the ledger; zero: there is none */
    uint64_t salt;
    enum round_end end;
};

struct round_owner {
    struct digest job; /* the id of its job in this round */
    struct round_try tries[ROUND_TRIES_MAX];
    uint32_t try_count;
    bool has_state; /* false: it is left out, because its last try ended so */
    struct digest state;
    struct digest *trees; /* of each tensor of the state (round_trees.h); owned */
    uint32_t tree_count;
};

struct round_record {
    struct digest rounds; /* the id of the agreement */
    uint32_t number;      /* from 1 */
    struct digest previous;
    struct digest start; /* the root of the first state of its jobs */
    struct round_owner owners[ROUNDS_OWNERS_MAX];
    char names[ROUNDS_OWNERS_MAX][ROUNDS_NAME_MAX + 1];
    uint32_t owner_count;
    struct digest mean_job;
    struct digest mean_state;
    struct digest next; /* the root of the first state of the next round's jobs */
    struct digest sha256;
};

void round_record_release(struct round_record *record); /* a zero-filled one is allowed */
MUST_CHECK enum status round_record_write(struct round_record *record, const char *folder,
                                          struct error *error);
/* Release it also after a failure. STATUS_NOT_FOUND: the round has none. */
MUST_CHECK enum status round_record_read(struct round_record *record, const char *folder,
                                         uint32_t round, struct error *error);
/* The same of bytes. */
MUST_CHECK enum status round_record_parse(struct round_record *record, const void *bytes,
                                          size_t size, struct error *error);

/* An owner by itself, for the client that goes on where it stopped. */
json_t *round_owner_json(const struct round_owner *owner, const char *name);
MUST_CHECK enum status round_owner_read(struct round_owner *owner, char name[ROUNDS_NAME_MAX + 1],
                                        const json_t *json, struct error *error);
void round_owner_release(struct round_owner *owner);

#endif /* PROOFS_ROUNDS_ROUND_RECORD_H */
