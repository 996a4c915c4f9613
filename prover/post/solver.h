/*
 * solver.h - the solver's side of a job on a ledger, one round at a time.
 *
 * A round reads the ledger and makes every move of the solver that is possible now: accept, commit
 * trained segments, answer claims, draw, settle, take back the stake, withdraw. It stakes on a job
 * that others began only when it has trained what is final, and found the same. It commits no more
 * than its stake is worth while nobody vouches (policy_ahead()), but what is due. The name of a
 * move follows from the job and the ledger's record, so that neither a crash nor a retry makes it
 * twice. Deadlines follow the ledger's clock, never this machine's.
 *
 * Any thread may call solver_add(); everything else is for one thread.
 */
#ifndef PROVER_POST_SOLVER_H
#define PROVER_POST_SOLVER_H

#include "chain/view/job_view.h"
#include "proofs/job/job.h"
#include "prover/post/respond.h"
#include "prover/post/solver_policy.h"
#include "prover/post/solver_view.h"

struct solver_options {
    struct ledger_options ledger; /* its texts and its signer are borrowed */
    struct ledger *shared; /* borrowed: that ledger, open already; NULL: the solver opens it */
    struct hash32 job;
    struct address account;      /* the signer's */
    bool accept;                 /* take the job where it is open and was never ours */
    bool again;                  /* also where we have lost it before */
    bool collect;                /* withdraw when the job is closed */
    bool collect_now;            /* withdraw all that is owed */
    struct respond *respond;     /* borrowed; answers claims. NULL: nobody does */
    uint32_t segment_steps;      /* of the job: where a claim's step lies */
    const char *allow_list;      /* file; NULL: none */
    const char *contact;         /* where this solver serves; NULL: nobody could fetch */
    const char *vouches;         /* folder (chain/job/vouch_box.h); NULL: no vouch is handed over */
    const char *known;           /* --known (stake_ready.h); NULL: any panel will do */
    uint32_t ahead;              /* segments open that nobody vouched for; 0: any number */
    struct solver_policy policy; /* checked before the stake; zeros: no limits */
};

struct solver;

/* Touches no ledger yet. segments: of the whole job. */
MUST_CHECK enum status solver_new(struct solver **solver, const struct solver_options *options,
                                  uint64_t segments, struct error *error);
void solver_free(struct solver *solver); /* NULL is fine */

/* Adds the next trained segment by the roots of the states after each of its steps. diverged: the
 * training ended with the last of them. */
MUST_CHECK enum status solver_add(struct solver *solver, const struct game_hashes *states,
                                  bool diverged, struct error *error);

/* Nothing more will be added: the rounds to come give the job back, for as little as the rules
 * allow. What was added before is still committed. */
void solver_give_up(struct solver *solver);

/*
 * One round. What prevents a move (no endpoint, a full disk, a refusal) goes into view->trouble;
 * the status is STATUS_OK, and the next round tries again. A ledger whose file is gone is gone for
 * good: view->gone. Only STATUS_NO_MEMORY is a failure.
 */
MUST_CHECK enum status solver_round(struct solver *solver, struct solver_view *view,
                                    struct error *error);

/* Where the job stands by the last round; for the thread of the rounds. */
void solver_show(struct job_standing *standing, struct solver *solver);

#endif /* PROVER_POST_SOLVER_H */
