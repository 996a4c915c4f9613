/*
 * watch.h - what a board of jobs says to a reader: when each segment can be final, whose turn it is
 * in each dispute, and what is wrong.
 *
 * It follows from the event log and the ledger's clock alone. Nothing is replayed or signed.
 */
#ifndef VERIFIER_STATUS_WATCH_H
#define VERIFIER_STATUS_WATCH_H

#include "chain/job/board.h"

#define WATCH_JOBS_MAX   4096
#define WATCH_ALARMS_MAX 1024

enum watch_alarm_kind {
    WATCH_SOLVER_LATE, /* the next segment is overdue, or due soon */
    WATCH_PANEL,       /* verdicts are missing, and little or no time is left for them */
    WATCH_UNSEEN,      /* seats of the panel cannot get a segment's states */
    WATCH_KEEPER,      /* the keeper of the job has vouched nothing for a while */
    WATCH_REFUSED,     /* client or keeper refused what is not final */
    WATCH_BARRED,      /* what was not final is void, and the client must resume */
    WATCH_CLAIMED,     /* somebody says that a step is false */
    WATCH_TURN,        /* a dispute whose next move is due soon, or overdue */
    WATCH_CONVICTED,   /* a solver was, and nobody has accepted the job since */
};

struct watch_alarm {
    enum watch_alarm_kind kind;
    struct hash32 job;
    uint32_t index;      /* of the segment */
    uint32_t last;       /* of one cause in several segments: the last of them */
    struct hash32 claim; /* zero where it is about none */
    uint64_t due_s;      /* 0: not about a deadline */
    char text[256];      /* without times: the same trouble has the same text */
};

const char *watch_alarm_name(enum watch_alarm_kind kind);

/* Writes what is wrong at now_s, or will be within margin_s, or within the last third of a period
 * that is short; returns how many were written. */
uint32_t watch_alarms(struct watch_alarm alarms[WATCH_ALARMS_MAX], const struct board *board,
                      uint64_t now_s, uint64_t margin_s);

#endif /* VERIFIER_STATUS_WATCH_H */
