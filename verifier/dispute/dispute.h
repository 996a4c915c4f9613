/*
 * dispute.h - one dispute that we lead, or wait to lead: what is claimed, what was replied, whose
 * turn it is, and what was tried in it.
 *
 * A dispute has a folder. Each file in it is written once, whole, under its final name. So a
 * process that dies at any instant leaves a dispute that the next process reads back:
 *
 *     dispute     the struct below, as it stood when a child was started for it
 *     reply       what the accused replied last on the ledger
 *     walk        every reply about the trace so far (proofs/dispute/trace_walk.h)
 *     trace       the tensors of the step, so that it is run once (proofs/commit/trace_file.h)
 *     evidence    evidence that somebody gave (proofs/dispute/evidence_file.h)
 *     move-T-A    the move of turn T after A refusals (dispute_move.h)
 *     admitted    the accused is right, and the node has said so
 */
#ifndef VERIFIER_DISPUTE_DISPUTE_H
#define VERIFIER_DISPUTE_DISPUTE_H

#include "base/io/file.h"
#include "chain/game/game.h"
#include "proofs/dispute/ledger_query.h"

#define DISPUTE_NAME_MAX 64

/* Names in the folder. */
#define DISPUTE_FILE          "dispute"
#define DISPUTE_FILE_REPLY    "reply"
#define DISPUTE_FILE_QUERIED  "queried" /* that it is the reply to */
#define DISPUTE_FILE_BATCH    "batch"   /* root of the micro-batch that the accused gave last */
#define DISPUTE_FILE_WALK     "walk"
#define DISPUTE_FILE_TRACE    "trace"
#define DISPUTE_FILE_EVIDENCE "evidence"
#define DISPUTE_FILE_ADMITTED "admitted"

struct dispute {
    /* What is claimed. */
    struct hash32 claim;
    uint32_t step;            /* of its segment */
    struct digest trace_root; /* that the accused gave */

    /* Whose turn it is. */
    uint32_t turn;
    bool ours;
    bool follows;   /* it is another claimant's: where that one sleeps, we are next */
    bool late;      /* the clock of whose turn it is has run out */
    bool overtaken; /* another claim convicted the accused before it answered this one */

    /* What was tried in it. */
    bool under_way;     /* a move is being found or sent, or nothing more is tried */
    uint32_t attempt;   /* moves that the ledger refused */
    uint32_t acquitted; /* of them: evidence for which it did not convict */

    uint32_t move_max;          /* bytes of a move's payload; 0: what the ledger takes */
    char folder[FILE_PATH_MAX]; /* empty: none, as of a dispute that no ledger knows of */
};

/* Where a file of the dispute lies. */
MUST_CHECK enum status dispute_path(char path[FILE_PATH_MAX], const struct dispute *dispute,
                                    const char *name, struct error *error);

/* "move-3", and "move-3-1" after one refusal. */
void dispute_move_name(char name[DISPUTE_NAME_MAX], uint32_t turn, uint32_t attempt);

/* Makes the folder and writes the dispute. Of a turn that is ours or that we follow, in time and
 * free. */
MUST_CHECK enum status dispute_save(const struct dispute *dispute, struct error *error);
/* Reads it back. STATUS_NOT_FOUND: there is none. */
MUST_CHECK enum status dispute_load(struct dispute *dispute, const char *folder,
                                    struct error *error);

/* What was queried last on the ledger, and what the accused replied last; nothing where there is
 * none. The caller releases both. */
MUST_CHECK enum status dispute_last_said(struct file_bytes *queried, struct file_bytes *reply,
                                         const struct dispute *dispute, struct error *error);

/* The root of a micro-batch's list that the accused gave on the ledger; zeros where it did not. */
MUST_CHECK enum status dispute_batch_root(struct digest *root, const struct dispute *dispute,
                                          struct error *error);

#endif /* VERIFIER_DISPUTE_DISPUTE_H */
