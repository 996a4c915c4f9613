/*
 * due_moves.h - the public moves of a job that are due: anybody may make them.
 *
 * docs/PROTOCOL.md: every state has an exit, even if a party is gone. The order matters: a claim
 * ends before its segment is settled, segments are drawn and settled before the job is released.
 */
#ifndef CHAIN_JOB_DUE_MOVES_H
#define CHAIN_JOB_DUE_MOVES_H

#include "chain/job/job_record.h"

enum due_move_kind {
    DUE_MOVE_TIMEOUT, /* of a claim whose turn passed without a move */
    DUE_MOVE_LAPSE,   /* of a claim that a conviction has overtaken */
    DUE_MOVE_PAY,     /* the pot of a conviction: no claim of its generation is open */
    DUE_MOVE_DRAW,    /* of the next segment: does the panel look at it? Or of another round */
    DUE_MOVE_SETTLE,  /* of a segment: its round ends, a refused one is vouched, final or void */
    DUE_MOVE_RELEASE, /* of a solver that is late, or was refused and had nothing open */
    DUE_MOVE_CLOSE,   /* of a job that has no solver at its deadline */
    DUE_MOVE_DEPART,  /* of an entry of the record's account: its bond can be taken back */
};

struct due_move {
    enum due_move_kind kind;
    uint32_t index;                /* of the segment: DRAW, SETTLE; of a claim: its own */
    struct game_segment segment;   /* DRAW, SETTLE: the one to show */
    struct game_commits commits;   /* DRAW: whose seed */
    enum job_segment_wait because; /* SETTLE, DRAW */
    uint32_t round;                /* SETTLE, DRAW: the last one */
    bool vouched;                  /* SETTLE: bring the record's vouch */
    uint32_t entry;                /* DEPART */
    uint32_t generation;           /* PAY, DEPART */
    struct hash32 claim;           /* TIMEOUT, LAPSE */
    uint64_t turn_s;               /* TIMEOUT: the end of the turn */
};

/* The move that one segment needs now: DRAW or SETTLE; false: none. */
bool due_move_of_segment(enum due_move_kind *kind, const struct job_segment *segment,
                         const struct ledger_clock *clock);

/* Would a settle of this segment do better with a vouch that we have? */
bool due_move_wants_vouch(const struct job_segment *segment);

/* The same of a record, to be submitted. */
bool due_move_at(struct due_move *move, const struct job_record *record, uint32_t index,
                 const struct ledger_clock *clock);

/* The first move that is due for account; false: none is. A late solver does not release itself
 * before the deadline: that costs it an eighth of its stake. */
bool due_move_next(struct due_move *move, const struct job_record *record,
                   const struct ledger_clock *clock, const struct address *account);

const char *due_move_name(enum due_move_kind kind); /* "settle" */

/* When the next move becomes due by time alone; 0: none does. */
uint64_t due_move_after(const struct job_record *record, uint64_t now_s);

#endif /* CHAIN_JOB_DUE_MOVES_H */
