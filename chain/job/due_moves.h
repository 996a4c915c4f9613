/*
 * due_moves.h - which move that anybody may make for a job on a ledger is due now.
 *
 * docs/PROTOCOL.md, section 8: every state has an exit, whoever has vanished. The order matters: a
 * claim is ended before the segment that it holds up is made final, and what can be final is made
 * final before the job expires, which would take reward and fees from those who have earned them.
 */
#ifndef CHAIN_JOB_DUE_MOVES_H
#define CHAIN_JOB_DUE_MOVES_H

#include "chain/job/job_record.h"

enum due_move_kind {
    DUE_MOVE_TIMEOUT, /* of a claim whose turn passed unused */
    DUE_MOVE_LAPSE,   /* of a claim whose accused is gone */
    DUE_MOVE_DRAW,    /* whether a segment must be covered is not drawn yet */
    DUE_MOVE_RENEW,
    DUE_MOVE_FINALIZE,
    DUE_MOVE_SETTLE, /* an attestation whose money is the account's */
    DUE_MOVE_RELEASE,
    DUE_MOVE_EXPIRE,
};

struct due_move_move {
    enum due_move_kind kind;
    uint32_t index;          /* DRAW, RENEW, FINALIZE, SETTLE: the segment; of a claim: its own */
    struct hash32 claim;     /* TIMEOUT, LAPSE */
    uint64_t turn_s;         /* likewise: until when the turn was */
    struct address attestor; /* SETTLE */
};

/*
 * The first that is due for account; false: none is. A late solver is not released by itself: that
 * costs it an eighth of its stake, and nothing if it waits for the job to expire.
 */
bool due_move_next(struct due_move_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account);

const char *due_move_name(enum due_move_kind kind); /* "finalize" */

/* From when on something is due that is not now; 0: nothing that time brings. */
uint64_t due_move_after(const struct job_record *record, uint64_t now_s);

#endif /* CHAIN_JOB_DUE_MOVES_H */
