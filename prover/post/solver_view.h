/*
 * solver_view.h - what a round of a solver found, and its first trouble in words.
 */
#ifndef PROVER_POST_SOLVER_VIEW_H
#define PROVER_POST_SOLVER_VIEW_H

#include "chain/game/ledger.h"

#define SOLVER_VIEW_TROUBLE_MAX 400

/* What a round found. */
struct solver_view {
    bool read;             /* the ledger was read at least once */
    bool unreachable;      /* the ledger cannot be reached now */
    bool gone;             /* the ledger's file is not there any more */
    enum game_phase phase; /* of the job */
    bool ours;             /* we are, or at its end were, its solver */
    bool lost;             /* it is another's, or open and we do not take it */
    bool lost_for_good;    /* and no reorganization can give it back */
    bool late;             /* the next segment is overdue: the ledger takes no more */
    bool behind;           /* the job has final segments that we have not trained yet */
    bool early;            /* it is open, and cannot be staked on yet */
    bool contradicted;     /* the ledger has a root for a segment that is not ours */
    bool committed_for_good;
    bool collected;   /* the job is closed, and everything owed is withdrawn for good */
    uint32_t pending; /* moves that are not final yet */
    uint32_t segments;
    uint32_t trained;
    uint32_t committed;
    uint32_t finalized;
    uint32_t disputed; /* open claims */
    uint32_t awaited;  /* open claims that wait for the solver's answer */
    uint32_t hopeless; /* awaited ones whose answer will probably be late */
    uint64_t now_s;
    uint64_t due_s;           /* until when the next segment must be committed */
    uint64_t refused_until_s; /* the client or the keeper refused; 0: nobody did */
    uint32_t held;            /* segments that are void then */
    uint32_t unseen;          /* open segments whose states a verifier could not get */
    wei reward;               /* of a segment */
    wei stake;                /* of the job */
    wei owed;                 /* with collect or collect_now */
    char trouble[SOLVER_VIEW_TROUBLE_MAX];
    char endpoints[LEDGER_REASON_SIZE]; /* of the ledger: those that are ill */
};

/* Keeps the first trouble of a round: later ones often follow from it. */
void solver_view_note(struct solver_view *view, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Notes the outcome of a move. Trouble is not a failure: the next round submits its name again. */
void solver_view_follow(struct solver_view *view, struct ledger *ledger, const char *what,
                        const char *name, enum status submitted, struct error *error);

#endif /* PROVER_POST_SOLVER_VIEW_H */
