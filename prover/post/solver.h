/*
 * solver.h - the solver's side of a job on a ledger, one round at a time.
 *
 * A round looks at the ledger and makes every move that is the solver's to make now: accept,
 * commit what is trained, draw, settle, renew, finalize, take back the stake, withdraw. Each move
 * goes under a name that follows from the job and the ledger's own record, so that no crash and no
 * second try makes it happen twice. Deadlines follow the ledger's clock, never this machine's.
 *
 * What was trained is told with solver_add(), from any thread; everything else is for one thread.
 */
#ifndef PROVER_POST_SOLVER_H
#define PROVER_POST_SOLVER_H

#include "chain/game/job_record.h"
#include "proofs/job/job.h"
#include "prover/post/respond.h"

#define SOLVER_TROUBLE_MAX 400

struct solver_options {
    struct ledger_options ledger; /* its texts and its signer are borrowed */
    struct hash32 job;
    struct address account;  /* the signer's */
    bool accept;             /* take the job where it is open and was never ours */
    bool again;              /* and where we have lost it before */
    bool collect;            /* withdraw when the job is closed */
    bool collect_now;        /* withdraw whatever is owed */
    struct respond *respond; /* borrowed; who answers claims. NULL: nobody does */
    uint32_t segment_steps;  /* of the job: where a claim's step lies */
};

/* What a round found. */
struct solver_view {
    bool read;             /* the ledger was read at least once */
    bool unreachable;      /* and not now: it cannot be reached */
    enum game_phase phase; /* of the job */
    bool ours;             /* we are, or at its end were, its solver */
    bool lost;             /* it is another's, or open and we do not take it; */
    bool lost_for_good;    /* and no reorganization gives back what was ours before */
    bool late;             /* the next segment is overdue: the ledger takes no more */
    bool contradicted;     /* the ledger has another root for a segment than we have */
    bool committed_for_good;
    bool collected;   /* the job is closed, and what was owed is withdrawn for good */
    uint32_t pending; /* moves that were to be made and are not final */
    uint32_t segments;
    uint32_t trained;
    uint32_t committed;
    uint32_t finalized;
    uint32_t disputed; /* claims that are open */
    uint32_t awaited;  /* of them: that wait for the solver's answer */
    uint32_t hopeless; /* of those, at any time of the round: that would not have it in time, by
                          what replays take */
    uint64_t now_s;
    uint64_t due_s; /* until when the next segment must be committed */
    wei owed;       /* where it was asked for */
    char trouble[SOLVER_TROUBLE_MAX];
};

struct solver;

/* Touches no ledger yet. segments: of the whole job. */
MUST_CHECK enum status solver_new(struct solver **solver, const struct solver_options *options,
                                  uint64_t segments, struct error *error);
void solver_free(struct solver *solver); /* NULL is fine */

/* The next segment is trained. diverged_steps: how many it has where the training ended in it; 0:
 * it is whole. */
MUST_CHECK enum status solver_add(struct solver *solver, const struct digest *root,
                                  uint32_t diverged_steps, struct error *error);

/*
 * One round. Whatever keeps a move from happening (no endpoint, a full disk, a refusal) is told in
 * view->trouble, and the next round tries again: STATUS_OK. Only STATUS_NO_MEMORY is a failure.
 */
MUST_CHECK enum status solver_round(struct solver *solver, struct solver_view *view,
                                    struct error *error);

/* The record, between rounds. */
const struct job_record *solver_record(const struct solver *solver);

#endif /* PROVER_POST_SOLVER_H */
