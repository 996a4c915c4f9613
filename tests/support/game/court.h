/*
 * court.h - a job with one disputed step on both ledgers (twins.h), ready for the referee.
 *
 * The job's header, segments and states are made around the roots of the step, so that any
 * evidence_context can be disputed. A move that does not end as the test says fails the test.
 */
#ifndef TESTS_SUPPORT_GAME_COURT_H
#define TESTS_SUPPORT_GAME_COURT_H

#include "proofs/dispute/evidence.h"
#include "tests/support/game/promised.h"
#include "tests/support/game/twins.h"

#define COURT_STEPS     3 /* of a segment */
#define COURT_CLOCK     100
#define COURT_QUERY_FEE 3

enum court_player {
    COURT_NOBODY,
    COURT_CLIENT,
    COURT_SOLVER,
    COURT_CLAIMANT,
    COURT_EVE,
};

struct court {
    struct twins twins;
    struct game_terms terms;
    struct hash32 job;
    struct game_case shown; /* the true one */
    struct evidence_context context;
    struct hash32 claim;
    struct game_event queried; /* the last of its kind; its payload is in queried_bytes */
    uint8_t queried_bytes[GAME_QUERIED_MAX];
    bool first_step; /* the disputed step is the job's first */
    uint64_t salt;
    uint32_t jobs; /* of these contracts */
};

void court_open(struct court *court);
struct court *court_new(void); /* an open one; skips the test where no chain can be run */
void court_free(struct court *court);
void court_open_embedded(struct court *court); /* the embedded ledger alone */
void court_open_direct(struct court *court);   /* to measure gas: court->twins.gas */
void court_close(struct court *court);

/* A new job whose disputed step is `step` of segment `index`, 0 or 1; committed, with the segment
 * said to end in a divergence when the context says so. */
void court_commit(struct court *court, const struct evidence_context *context, uint32_t index,
                  uint32_t step);

/* Seal, claim and answer with the context's trace root. court_seal() alone gives the claim that is
 * to be made a block later. */
struct game_move court_seal(struct court *court);
void court_claim(struct court *court);
void court_answer(struct court *court);

/* All of that. */
void court_bring(struct court *court, const struct evidence_context *context, uint32_t index,
                 uint32_t step);

struct game_move court_move(const struct court *court, enum game_move_kind kind,
                            const uint8_t *payload, size_t size);
void court_done(struct court *court, const struct game_move *move, uint32_t player);
void court_refused(struct court *court, const struct game_move *move, uint32_t player,
                   enum game_refusal_kind kind);

/* The claimant's evidence convicts (GAME_REFUSED_NOT), or is refused. */
void court_convict(struct court *court, const struct buffer *evidence,
                   enum game_refusal_kind refusal);

/* The turn passes unused. */
void court_timeout(struct court *court);

/* The stake of a conviction is shared out. */
void court_pay(struct court *court);

/* Both ledgers so far. Between disputes only: now and then all begins again. */
void court_compare(struct court *court);

/* Prints how many queries, replies and evidence were refused: for tests of mutants. */
void court_tell_refused(const struct court *court);

/* What the ledger owes a player. */
wei court_owed(struct court *court, uint32_t player);

#endif /* TESTS_SUPPORT_GAME_COURT_H */
