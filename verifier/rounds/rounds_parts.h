/* rounds_parts.h - what the files of this folder share while one round is audited. */
#ifndef VERIFIER_ROUNDS_ROUNDS_PARTS_H
#define VERIFIER_ROUNDS_ROUNDS_PARTS_H

#include "chain/game/ledger.h"
#include "proofs/rounds/round_mean.h"
#include "verifier/audit/audit.h"
#include "verifier/rounds/rounds_result.h"

struct rounds_check {
    struct rounds_result *result;
    const struct audit_options *options;
    struct ledger *ledger;
    struct address client; /* who opened the jobs on it, once one was found */
    bool asked;
    struct job *given[ROUNDS_OWNERS_MAX]; /* the jobs of the owners, as they were given */
    uint32_t number;
    struct round_record record;
    struct digest previous; /* what the record's `previous` must be */
    struct digest begins;   /* the root with which its jobs must begin */
    /* Trees, for each state of the jobs' tape: of the round's first state, of its velocity, and
     * what the step of the mean made of them. */
    struct digest *start;
    struct digest *velocity;
    struct digest *next;
    struct digest *next_velocity;
};

void rounds_parts_say(struct rounds_check *check, enum finding list, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What a failure says of a round's file: bytes that are wrong refute it, others leave it open. */
void rounds_parts_blame(struct rounds_check *check, const struct error *error);

/* The record against agreement and record before: *holds says whether the rest can be looked at. */
MUST_CHECK enum status rounds_record_check(bool *holds, struct rounds_check *check,
                                           struct error *error);

/* The states of the owners, and their bundles. */
MUST_CHECK enum status rounds_states_check(struct rounds_check *check, struct error *error);

/* The mean: its job from headers, its step again, and what follows from it. */
MUST_CHECK enum status rounds_mean_check(bool *holds, struct rounds_check *check,
                                         struct error *error);

/* rounds_ledger.c: is it so on the ledger? */
MUST_CHECK enum status rounds_ledger_check(struct rounds_check *check, uint32_t owner,
                                           struct error *error);

#endif /* VERIFIER_ROUNDS_ROUNDS_PARTS_H */
