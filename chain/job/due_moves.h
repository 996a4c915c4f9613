/*
 * due_moves.h - the public moves of a job that are due: anybody may make them.
 *
 * docs/PROTOCOL.md: every state has an exit, even if a party is gone. The order matters: a claim
 * ends before its segment is made final, and segments are made final before the job expires, since
 * expiry would take rewards and fees from those who earned them.
 */
#ifndef CHAIN_JOB_DUE_MOVES_H
#define CHAIN_JOB_DUE_MOVES_H

#include "chain/job/job_record.h"

enum due_move_kind {
    DUE_MOVE_TIMEOUT, /* of a claim whose turn passed without a move */
    DUE_MOVE_LAPSE,   /* of a claim that a conviction has overtaken */
    DUE_MOVE_PAY,     /* the pot of a conviction: no claim of its generation is open */
    DUE_MOVE_DRAW,    /* of a segment: nobody knows yet whether the panel must say something */
    DUE_MOVE_RENEW,
    DUE_MOVE_FINALIZE,
    DUE_MOVE_FORFEIT,
    DUE_MOVE_LEAVE, /* of an entry of the account in a closed job */
    DUE_MOVE_RELEASE,
    DUE_MOVE_EXPIRE,
    DUE_MOVE_DELIVER,
};

struct due_move {
    enum due_move_kind kind;
    uint32_t index;              /* of the segment: DRAW to FORFEIT; of a claim: its own */
    struct game_segment segment; /* DRAW to FORFEIT: the one to show */
    uint32_t entry;              /* LEAVE */
    uint32_t generation;         /* PAY */
    struct hash32 claim;         /* TIMEOUT, LAPSE */
    uint64_t turn_s;             /* TIMEOUT: the end of the turn */
};

/* The move that one segment needs now; false: none. */
bool due_move_of_segment(enum due_move_kind *kind, const struct job_segment *segment,
                         const struct ledger_clock *clock);

/* The first move that is due for account; false: none is. A late solver does not release itself: a
 * release costs it an eighth of its stake, and waiting for the job to expire costs nothing. */
bool due_move_next(struct due_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account);

const char *due_move_name(enum due_move_kind kind); /* "finalize" */

/* When the next move becomes due by time alone; 0: none does. */
uint64_t due_move_after(const struct job_record *record, uint64_t now_s);

#endif /* CHAIN_JOB_DUE_MOVES_H */
