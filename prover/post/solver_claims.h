/*
 * solver_claims.h - the moves of a solver in claims: answers, replies, and timeouts of claimants.
 */
#ifndef PROVER_POST_SOLVER_CLAIMS_H
#define PROVER_POST_SOLVER_CLAIMS_H

#include "chain/codec/hex_data.h"
#include "chain/job/job_record.h"
#include "prover/post/move_retry.h"
#include "prover/post/solver_view.h"

#define SOLVER_CLAIMS_MAX      RESPOND_REQUESTS_MAX /* in one round */
#define SOLVER_CLAIM_NAME_SIZE (LEDGER_NAME_MAX + 1)

/* A claim in which this solver has a move, now or after its turn. */
struct solver_claim {
    const struct job_record_claim *shown;
    struct ledger_claim claim;
    char key[HEX_DATA_SIZE(HASH32_SIZE)];
    char name[SOLVER_CLAIM_NAME_SIZE]; /* of the move */
    struct respond_request request;
    bool held; /* the ledger refused the move, and it is not sent again yet */
};

/* A part of a solver, which sets the borrowed members. */
struct solver_claims {
    struct ledger *ledger;
    const struct address *account;
    const struct job_record *record;
    const struct ledger_clock *clock;
    struct solver_view *view;
    struct respond *respond; /* NULL: nobody answers claims */
    uint32_t segment_steps;
    struct move_retries retries;
    struct solver_claim due[SOLVER_CLAIMS_MAX + 1];
    struct respond_request requests[SOLVER_CLAIMS_MAX];
    uint8_t answer[RESPOND_BYTES_MAX];
};

/* Makes every move that is possible now. Trouble goes into the view. */
void solver_claims_act(struct solver_claims *claims);

#endif /* PROVER_POST_SOLVER_CLAIMS_H */
